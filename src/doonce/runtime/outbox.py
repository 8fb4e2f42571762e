"""Writing an intent into the application's own transaction, so that both happen or neither (PROTOCOL F1, F3).

    with engine.begin() as connection:
        connection.execute(...)                                  # the application's change
        outbox.emit(connection, scope=scope, operation="…", payload={…}, local_ref="42")

Every function works inside an *open* transaction of the application and raises `Conflict` when there is none:
nothing here begins or commits. The variants ending in `_async` take SQLAlchemy's asyncio connections.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from doonce.base import json
from doonce.base.digests import digest_bytes
from doonce.base.errors import Invalid
from doonce.base.ids import new_id
from doonce.base.json import JsonValue
from doonce.base.keys import handoff_key
from doonce.base.limits import LIMITS, check_text
from doonce.runtime import outbox_store as store
from doonce.runtime.connections import execute, execute_async
from doonce.runtime.model import OutboxId, OutboxState, Wish, Withdrawal
from doonce.runtime.outbox_store import Intent, OutboxStatus
from doonce.wire import AcceptRequest, HandoffScope

__all__ = [
    "OutboxId",
    "OutboxState",
    "OutboxStatus",
    "Wish",
    "Withdrawal",
    "dismiss",
    "dismiss_async",
    "emit",
    "emit_async",
    "refused",
    "refused_async",
    "resend",
    "resend_async",
    "status",
    "status_async",
    "withdraw",
    "withdraw_async",
]


def emit(  # noqa: PLR0913  # an intent has this many facts, each by its name
    connection: Any,
    *,
    scope: HandoffScope,
    operation: str,
    payload: bytes | Mapping[str, JsonValue],
    local_ref: str,
    link: str | None = None,
    key: str | None = None,
    source_lane: str | None = None,
    outbox_id: str | None = None,
) -> OutboxId:
    """Write one outbox row in the open transaction of `connection` and return its id.

    The row pins the handoff key, the whole scope with its binding digest and generation, and the payload's
    bytes and digest, for ever: whatever is published or reconnected later, the relay sends exactly these.

    `key` is the application's own name for this effect within the scope (at most 255 bytes); emitting it
    again with the same content returns the first row's id and writes nothing, with other content raises
    `Conflict`. Without it every call is another effect. `payload` is one JSON document: bytes are pinned as
    they are, a mapping is written compactly once. Rows of one `source_lane` are handed over in the order in
    which their transactions committed; a lane is held from `emit` to commit, so transactions that use several
    lanes take them in one order everywhere. `link` names a remote link; without it the service finds one by
    `local_ref`.

    Raises `Conflict` (no open transaction, or the key or `outbox_id` is taken) and `Invalid` (a value out of
    its bounds, a payload that is not strict JSON, a connection of an unknown kind); then nothing was written.
    """
    intent = _intent(scope, operation, payload, local_ref, link, key, source_lane, outbox_id)
    return execute(connection, store.emit(intent))


async def emit_async(  # noqa: PLR0913  # as `emit`
    connection: AsyncConnection | AsyncSession,
    *,
    scope: HandoffScope,
    operation: str,
    payload: bytes | Mapping[str, JsonValue],
    local_ref: str,
    link: str | None = None,
    key: str | None = None,
    source_lane: str | None = None,
    outbox_id: str | None = None,
) -> OutboxId:
    """`emit` inside an open transaction of SQLAlchemy's asyncio."""
    intent = _intent(scope, operation, payload, local_ref, link, key, source_lane, outbox_id)
    return await execute_async(connection, store.emit(intent))


def withdraw(connection: Any, outbox_id: str) -> Withdrawal:
    """Ask that the effect of this row never happens; the wish is part of the application's transaction.

    `ASKED`: once committed, the relay asks the service, and only its durable rejection ends the row
    (`WITHDRAWN` from then on); if an acceptance was first, the row goes on as accepted. `TOO_LATE`: it was
    accepted already. Not having been sent proves nothing, so no row is ended here (PROTOCOL F3).
    Raises `MissingOrDenied` for an unknown row, `Conflict` without an open transaction.
    """
    return execute(connection, store.withdraw(OutboxId(outbox_id)))


async def withdraw_async(connection: AsyncConnection | AsyncSession, outbox_id: str) -> Withdrawal:
    """`withdraw` inside an open transaction of SQLAlchemy's asyncio."""
    return await execute_async(connection, store.withdraw(OutboxId(outbox_id)))


def resend(connection: Any, outbox_id: str) -> OutboxStatus:
    """Hand a refused row over again, byte for byte, after its cause was repaired.

    Raises `Conflict` for a row that is not refused, `MissingOrDenied` for an unknown one.
    """
    return execute(connection, store.resend(OutboxId(outbox_id)))


async def resend_async(connection: AsyncConnection | AsyncSession, outbox_id: str) -> OutboxStatus:
    """`resend` inside an open transaction of SQLAlchemy's asyncio."""
    return await execute_async(connection, store.resend(OutboxId(outbox_id)))


def dismiss(connection: Any, outbox_id: str, *, reason: str) -> OutboxStatus:
    """End a refused row on a person's word, so that it holds up its source lane no longer.

    It proves nothing: should the service have accepted the key before it refused a repetition, the completion
    is still applied. Raises `Conflict` for a row that is not refused.
    """
    check_text("reason", reason, LIMITS.reason_bytes_max)
    return execute(connection, store.dismiss(OutboxId(outbox_id), reason))


async def dismiss_async(
    connection: AsyncConnection | AsyncSession, outbox_id: str, *, reason: str
) -> OutboxStatus:
    """`dismiss` inside an open transaction of SQLAlchemy's asyncio."""
    check_text("reason", reason, LIMITS.reason_bytes_max)
    return await execute_async(connection, store.dismiss(OutboxId(outbox_id), reason))


def status(connection: Any, outbox_id: str) -> OutboxStatus:
    """Return what this database knows of a row; raise `MissingOrDenied` for an unknown one."""
    return execute(connection, store.status(OutboxId(outbox_id)))


async def status_async(connection: AsyncConnection | AsyncSession, outbox_id: str) -> OutboxStatus:
    """`status` inside an open transaction of SQLAlchemy's asyncio."""
    return await execute_async(connection, store.status(OutboxId(outbox_id)))


def refused(connection: Any, *, rows_max: int = 100) -> list[OutboxStatus]:
    """Return rows that wait for a person, the oldest first, at most `rows_max`."""
    return execute(connection, store.refused(rows_max))


async def refused_async(
    connection: AsyncConnection | AsyncSession, *, rows_max: int = 100
) -> list[OutboxStatus]:
    """`refused` inside an open transaction of SQLAlchemy's asyncio."""
    return await execute_async(connection, store.refused(rows_max))


def _intent(
    scope: HandoffScope,
    operation: str,
    payload: bytes | Mapping[str, JsonValue],
    local_ref: str,
    link: str | None,
    key: str | None,
    source_lane: str | None,
    outbox_id: str | None,
) -> Intent:
    """Check everything the service would refuse as malformed, before a byte is written."""
    raw = _payload(payload)
    row_id = OutboxId(outbox_id if outbox_id is not None else new_id("obx"))
    whole_key = handoff_key(
        scope.org,
        scope.installation,
        scope.capability,
        scope.binding_digest,
        key if key is not None else row_id,
    )
    request = AcceptRequest(
        key=whole_key,
        scope=scope,
        outbox_id=row_id,
        operation=operation,
        local_ref=local_ref,
        link=link,
        payload=raw,
        payload_digest=digest_bytes(raw),
        source_lane=source_lane,
    )
    return Intent(
        outbox_id=row_id,
        handoff_key=request.key,
        org=scope.org,
        installation=scope.installation,
        capability=scope.capability,
        binding_digest=scope.binding_digest,
        binding_generation=scope.binding_generation,
        operation=request.operation,
        local_ref=request.local_ref,
        link=request.link,
        payload=request.payload,
        payload_digest=request.payload_digest,
        source_lane=request.source_lane,
    )


def _payload(payload: bytes | Mapping[str, JsonValue]) -> bytes:
    if isinstance(payload, Mapping):
        payload = json.dumps(dict(payload))
    if not isinstance(payload, bytes):
        raise Invalid("payload must be bytes or a mapping", hint="encode a text to UTF-8 yourself")
    json.loads(payload, bytes_max=LIMITS.payload_bytes_max)
    return payload
