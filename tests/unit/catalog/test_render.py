"""A request has exactly the values of its payload, and the same bytes every time (PROTOCOL F5, D7)."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.catalog.samples import sample_view

from doonce.base.digests import digest_bytes
from doonce.base.errors import Invalid
from doonce.base.json import loads
from doonce.catalog.compile import BindingView
from doonce.catalog.exchange import FrozenRequest
from doonce.catalog.render import idempotency_key, render

VIEW = sample_view()
COMMAND = "cmd_" + "0" * 32


def change(payload: bytes, *, view: BindingView = VIEW, remote_id: str | None = "42") -> FrozenRequest:
    """The rendered change of item 42."""
    return render(view, "item.change", payload, remote_id=remote_id, command_id=COMMAND).request


def test_a_whole_request() -> None:
    request = change(b'{"note":"n","cost":1.50,"name":"A"}')
    body = b'{"data":{"attributes":{"label":"A","price":1.50},"note":"n","type":"item"},"dry_run":false}'
    assert request == FrozenRequest(
        method="PATCH",
        origin="https://api.shop.example",
        target="/stores/north/items/42",
        headers=(("Accept", "application/json"), ("Content-Type", "application/json")),
        body=body,
        body_sha256=digest_bytes(body),
        idempotency_key=None,
    )


@pytest.mark.parametrize(
    "value",
    [
        "null",
        "false",
        "true",
        "0",
        '""',
        '"null"',
        "1.0",
        "1",
        "1e2",
        "0.1",
        "12345678901234567890123",
        "-0.0",
        '"\\u00e4"',
    ],
)
def test_a_value_is_sent_as_exactly_the_value_it_is(value: str) -> None:
    body = loads(change(f'{{"cost":{value}}}'.encode()).body, bytes_max=1_000)
    sent = body["data"]["attributes"]["price"]  # type: ignore[index,call-overload]
    given_value = loads(value, bytes_max=100)
    assert type(sent) is type(given_value)
    assert str(sent) == str(given_value)


def test_an_absent_field_stays_absent() -> None:
    assert b"price" not in change(b'{"name":null}').body
    assert json.loads(change(b"{}").body) == {"data": {"attributes": {}, "type": "item"}, "dry_run": False}


@given(
    st.dictionaries(
        st.sampled_from(["name", "cost", "note"]),
        st.one_of(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)),
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_payload_does_not_reach_the_request(payload: dict[str, str], order: object) -> None:
    names = list(payload)
    order.shuffle(names)  # type: ignore[attr-defined]
    one = change(json.dumps(payload).encode())
    other = change(json.dumps({name: payload[name] for name in names}, indent=2).encode())
    assert one == other


UNDECLARED = {
    "an undeclared field": (b'{"name":"A","x":1}', "undeclared field 'x'"),
    "the provider's own name": (b'{"label":"A"}', "undeclared field 'label'"),
    "an inbound field": (b'{"stock_level":1}', "stock_level is the provider's to write"),
    "a wrong type": (b'{"name":5}', "not accepted at label"),
    "no object": (b"[]", "JSON object"),
    "a duplicate key": (b'{"name":"A","name":"B"}', "a key that its object has already"),
    "NaN": (b'{"cost":NaN}', "NaN"),
    "an unpaired surrogate": (b'{"name":"\\ud800"}', "surrogate"),
    "a NUL": (b'{"name":"\\u0000"}', "NUL"),
    "two documents": (b"{}{}", "JSON"),
    "nothing": (b"", "JSON"),
}


@pytest.mark.parametrize("case", UNDECLARED)
def test_a_bad_payload_is_one_clear_error(case: str) -> None:
    payload, what = UNDECLARED[case]
    with pytest.raises(Invalid, match=what):
        change(payload)


def test_an_error_never_shows_a_value() -> None:
    with pytest.raises(Invalid) as refused:
        render(VIEW, "item.create", b'{"name":["s3cr3t"]}', remote_id=None, command_id=COMMAND)
    assert "s3cr3t" not in refused.value.message + refused.value.hint


def test_a_field_of_another_operation_is_refused() -> None:
    with pytest.raises(Invalid, match=r"item\.create does not carry cost"):
        render(VIEW, "item.create", b'{"name":"A","cost":1}', remote_id=None, command_id=COMMAND)


def test_the_payloads_bound_is_exact() -> None:
    head, tail = b'{"name":"', b'"}'
    fits = head + b"a" * (262_144 - len(head) - len(tail)) + tail
    assert change(fits).body
    with pytest.raises(Invalid, match="at most 262144"):
        change(fits + b" ")


def test_a_link_is_given_where_it_is_needed_and_only_there() -> None:
    with pytest.raises(Invalid, match="needs a linked record"):
        change(b"{}", remote_id=None)
    with pytest.raises(Invalid, match="takes no linked record"):
        render(VIEW, "item.create", b'{"name":"A"}', remote_id="42", command_id=COMMAND)


@pytest.mark.parametrize("remote_id", ["../42", "a/b", "..", "", "4\n2", "\ud800", "x" * 513])
def test_a_hostile_remote_id_is_refused(remote_id: str) -> None:
    with pytest.raises(Invalid):
        change(b"{}", remote_id=remote_id)


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(Invalid, match=r"offers no operation 'item\.sell'"):
        render(VIEW, "item.sell", b"{}", remote_id=None, command_id=COMMAND)


def test_the_idempotency_key_is_the_commands() -> None:
    one, again, other = (
        render(VIEW, "item.create", b'{"name":"A"}', remote_id=None, command_id=command).request
        for command in ("cmd_1", "cmd_1", "cmd_2")
    )
    assert one == again
    assert one.idempotency_key == idempotency_key("cmd_1", "item.create") != other.idempotency_key
    assert ("Idempotency-Key", one.idempotency_key) in one.headers
    assert idempotency_key("cmd_1", "item.create") != idempotency_key("cmd_1", "item.associate")
    assert one.body == b'{"label":"A"}'


def test_a_target_lane_is_one_per_thing() -> None:
    lanes = {
        render(VIEW, "item.change", b"{}", remote_id=remote_id, command_id=COMMAND).target_lane
        for remote_id in ("1", "2")
    }
    assert len(lanes) == 2
    long = render(VIEW, "item.change", b"{}", remote_id="x" * 400, command_id=COMMAND).target_lane
    assert long is not None
    assert len(long.encode()) <= 255
    assert (
        render(VIEW, "item.create", b'{"name":"A"}', remote_id=None, command_id=COMMAND).target_lane is None
    )


def test_decimals_keep_their_spelling() -> None:
    body = loads(change(b'{"cost":10.00}').body, bytes_max=1_000)
    assert str(body["data"]["attributes"]["price"]) == str(Decimal("10.00"))  # type: ignore[index,call-overload]
