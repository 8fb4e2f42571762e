"""PROTOCOL S2: after a lossy declaration, which commands may have been sent by a mark that was lost."""

from types import SimpleNamespace
from typing import Any

import pytest

from doonce.base.ids import uuid7
from doonce.effects.service import _may_have_been_lost

LOSSY_AT = 1_700_000_000_000_000
BEFORE, AFTER = LOSSY_AT - 1_000_000, LOSSY_AT + 1_000_000


def start(*, accepted: int, emitted: int, lossy_at: int | None = LOSSY_AT, lineage: Any = None) -> Any:
    """What one claim knows, as far as the rule looks at it: when it was accepted, and its outbox row made."""
    command = SimpleNamespace(accepted_at=accepted, outbox_id=f"obx_{uuid7(emitted * 1000, bytes(8)):032x}")
    return SimpleNamespace(command=command, lossy_at=lossy_at, lineage=lineage)


@pytest.mark.parametrize(
    "accepted, emitted, lost",
    [
        (BEFORE, BEFORE, True),
        (AFTER, BEFORE, True),
        (BEFORE, AFTER, True),
        (AFTER, AFTER, False),
        (LOSSY_AT, LOSSY_AT, False),
    ],
    ids=[
        "both before",
        "handed over again",
        "by an application whose clock is ahead",
        "both after",
        "at once",
    ],
)
def test_whatever_began_before_the_declaration_may_have_been_sent(
    accepted: int, emitted: int, lost: bool
) -> None:
    assert _may_have_been_lost(start(accepted=accepted, emitted=emitted)) is lost


def test_without_a_loss_or_after_a_verdict_nothing_is_in_doubt() -> None:
    assert not _may_have_been_lost(start(accepted=BEFORE, emitted=BEFORE, lossy_at=None))
    assert not _may_have_been_lost(start(accepted=BEFORE, emitted=BEFORE, lineage=object()))
    assert not _may_have_been_lost(SimpleNamespace(command=None, lossy_at=LOSSY_AT, lineage=None))  # type: ignore[arg-type]  # what it looks at
