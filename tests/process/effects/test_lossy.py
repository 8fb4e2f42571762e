"""PROTOCOL S2: after a lossy declaration whatever had not ended starts as unknown; nothing is sent on a guess."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from tests.process.effects.deployment import Deployment, Wanted
from tests.process.effects.journal import sync_engine
from tests.process.effects.waiting import until

from doonce.base.ids import new_id
from doonce.db.incarnation import Declaration, database_incarnation


def declare_lossy(url: str) -> None:
    """What `doonce declare lossy` records, now."""
    engine = sync_engine(url)
    with engine.connect() as connection:
        newest = connection.execute(sa.select(sa.func.max(database_incarnation.c.sequence))).scalar() or 0
        connection.execute(
            sa.insert(database_incarnation).values(
                sequence=newest + 1,
                id=new_id("dsp"),
                identity="",
                timeline="",
                declaration=Declaration.LOSSY.value,
                operator="test",
                reason="restored from a backup",
                declared_at=2**62,
            )
        )
    engine.dispose()


def test_s2_a_command_from_before_is_looked_into_and_not_sent(deployment: Deployment) -> None:
    deployment.contacts("501")
    (accepted,) = deployment.accept(Wanted("k1", "contact.patch", "501", {"title": "CTO"}))
    declare_lossy(deployment.url)
    deployment.worker()

    def probed() -> list[Any]:
        return [attempt for attempt in deployment.journal.attempts() if attempt.kind == "probe"]

    until(lambda: any(attempt.outcome for attempt in probed()), "a probe that has ended")
    (attempt,) = deployment.journal.attempts(accepted.id)
    assert (attempt.outcome, attempt.dispatched_at) == ("OUTCOME_UNKNOWN", None)
    assert {entry["method"] for entry in deployment.simulator.ledger()} == {"GET"}
    assert accepted.id not in deployment.journal.ends()
