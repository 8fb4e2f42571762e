"""The outbox row lives and dies with the application's own transaction (PROTOCOL F1)."""

from typing import Any

import pytest
from tests.store.runtime.applications import Application

from doonce.base.digests import digest_bytes
from doonce.base.errors import Conflict, Invalid
from doonce.base.keys import parse_handoff_key
from doonce.base.limits import LIMITS
from doonce.runtime import outbox
from doonce.wire import HandoffScope


def emit(connection: Any, scope: HandoffScope, **changed: Any) -> outbox.OutboxId:
    intent = {"operation": "person.update", "payload": {"title": "CTO"}, "local_ref": "42", **changed}
    return outbox.emit(connection, scope=scope, **intent)


class Undone(Exception):
    """What the application's transaction ends with in a test."""


def test_the_row_and_the_change_commit_together(app: Application, scope: HandoffScope) -> None:
    with app.transaction() as connection:
        app.execute(connection, "INSERT INTO things (id, title) VALUES (1, 'CTO')")
        outbox_id = emit(connection, scope)

    assert app.count("things") == 1
    assert app.rows("SELECT outbox_id FROM doonce_outbox") == [(outbox_id,)]


def test_the_row_and_the_change_roll_back_together(app: Application, scope: HandoffScope) -> None:
    def change() -> None:
        with app.transaction() as connection:
            app.execute(connection, "INSERT INTO things (id, title) VALUES (1, 'CTO')")
            emit(connection, scope, source_lane="person/42")
            raise Undone

    with pytest.raises(Undone):
        change()
    assert (app.count("things"), app.count("doonce_outbox"), app.count("doonce_outbox_lane")) == (0, 0, 0)


def test_emit_refuses_without_an_open_transaction(app: Application, scope: HandoffScope) -> None:
    with app.without_transaction() as connection, pytest.raises(Conflict, match="no transaction") as refused:
        emit(connection, scope)

    assert refused.value.hint
    assert app.count("doonce_outbox") == 0


def test_everything_is_pinned(app: Application, scope: HandoffScope) -> None:
    payload = b'{"title": "CTO",  "n": 1.50}'
    with app.transaction() as connection:
        outbox_id = emit(
            connection, scope, payload=payload, key="change-7", link="lnk_1", source_lane="person/42"
        )

    columns = (
        "outbox_id, handoff_key, org, installation, capability, binding_digest, binding_generation,"
        " operation, local_ref, link, payload, payload_digest, source_lane, lane_position, state, wish"
    )
    (row,) = app.rows(f"SELECT {columns} FROM doonce_outbox")
    key = parse_handoff_key(row[1])
    assert (key.org, key.installation, key.capability, key.binding_digest, key.local_key) == (
        scope.org,
        scope.installation,
        scope.capability,
        scope.binding_digest,
        "change-7",
    )
    assert row[0] == outbox_id
    assert row[2:10] == (
        scope.org,
        scope.installation,
        scope.capability,
        scope.binding_digest,
        3,
        "person.update",
        "42",
        "lnk_1",
    )
    assert bytes(row[10]) == payload
    assert row[11:] == (digest_bytes(payload), "person/42", 1, "pending", "accept")


def test_a_key_means_one_intent(app: Application, scope: HandoffScope) -> None:
    with app.transaction() as connection:
        first = emit(connection, scope, key="change-7")
        assert emit(connection, scope, key="change-7") == first
    with app.transaction() as connection:
        assert emit(connection, scope, key="change-7") == first
    with pytest.raises(Conflict, match="another intent"), app.transaction() as connection:
        emit(connection, scope, key="change-7", payload={"title": "CEO"})

    assert app.count("doonce_outbox") == 1


@pytest.mark.parametrize("changed", [{"local_ref": "43"}, {"link": "lnk_1"}, {"operation": "person.create"}])
def test_every_part_of_an_intent_counts(
    plain: Application, scope: HandoffScope, changed: dict[str, Any]
) -> None:
    with plain.transaction() as connection:
        emit(connection, scope, key="change-7")
    with pytest.raises(Conflict, match="another intent"), plain.transaction() as connection:
        emit(connection, scope, key="change-7", **changed)


def test_an_outbox_id_belongs_to_one_key(app: Application, scope: HandoffScope) -> None:
    with app.transaction() as connection:
        emit(connection, scope, key="a", outbox_id="obx_1")
    with pytest.raises(Conflict, match="outbox id"), app.transaction() as connection:
        emit(connection, scope, key="b", outbox_id="obx_1")

    assert app.count("doonce_outbox") == 1


def test_without_a_key_every_call_is_another_effect(plain: Application, scope: HandoffScope) -> None:
    with plain.transaction() as connection:
        assert emit(connection, scope) != emit(connection, scope)

    assert plain.count("doonce_outbox") == 2


def test_a_payload_may_be_exactly_at_its_bound(app: Application, scope: HandoffScope) -> None:
    payload = b'"' + b"x" * (LIMITS.payload_bytes_max - 2) + b'"'
    with app.transaction() as connection:
        emit(connection, scope, payload=payload)

    ((stored,),) = app.rows("SELECT payload FROM doonce_outbox")
    assert bytes(stored) == payload


BAD = {
    "payload one over": {"payload": b'"' + b"x" * (LIMITS.payload_bytes_max - 1) + b'"'},
    "payload not JSON": {"payload": b"{"},
    "payload twice the same key": {"payload": b'{"a":1,"a":2}'},
    "payload NaN": {"payload": b'{"a":NaN}'},
    "payload two documents": {"payload": b"{} {}"},
    "payload a float that is no number": {"payload": {"a": float("nan")}},
    "payload an unpaired surrogate": {"payload": b'"\\ud800"'},
    "payload NUL": {"payload": b'"\\u0000"'},
    "payload a text": {"payload": "{}"},
    "operation empty": {"operation": ""},
    "operation NUL": {"operation": "a\0b"},
    "local_ref one over": {"local_ref": "x" * (LIMITS.local_ref_bytes_max + 1)},
    "local_ref one over in bytes": {"local_ref": "é" * (LIMITS.local_ref_bytes_max // 2 + 1)},
    "key one over": {"key": "x" * (LIMITS.local_key_bytes_max + 1)},
    "key empty": {"key": ""},
    "lane one over": {"source_lane": "x" * (LIMITS.lane_bytes_max + 1)},
    "link empty": {"link": ""},
    "outbox_id a surrogate": {"outbox_id": "\ud800"},
}


@pytest.mark.parametrize("changed", BAD.values(), ids=list(BAD))
def test_bad_input_is_one_typed_error_and_writes_nothing(
    plain: Application, scope: HandoffScope, changed: dict[str, Any]
) -> None:
    with plain.transaction() as connection:
        plain.execute(connection, "INSERT INTO things (id, title) VALUES (1, 'CTO')")
        with pytest.raises(Invalid):
            emit(connection, scope, **changed)

    assert (plain.count("things"), plain.count("doonce_outbox"), plain.count("doonce_outbox_lane")) == (
        1,
        0,
        0,
    )


def test_every_field_at_its_bound_is_stored(app: Application) -> None:
    scope = HandoffScope(
        org="o" * LIMITS.org_bytes_max,
        installation="i" * LIMITS.installation_bytes_max,
        capability="c" * LIMITS.capability_bytes_max,
        binding_digest="sha256:" + "0" * 64,
        binding_generation=2**53 - 1,
    )
    with app.transaction() as connection:
        emit(
            connection,
            scope,
            key="k" * LIMITS.local_key_bytes_max,
            local_ref="r" * LIMITS.local_ref_bytes_max,
            operation="p" * LIMITS.name_bytes_max,
            link="l" * LIMITS.name_bytes_max,
            source_lane="s" * LIMITS.lane_bytes_max,
            outbox_id="x" * LIMITS.name_bytes_max,
        )

    assert app.count("doonce_outbox") == 1
