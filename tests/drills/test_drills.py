"""PROTOCOL S2: a second database in the place of the first closes dispatch, and no declaration sends anything twice.

Each drill is held with servers of its own and a service that is a real process; the ledger is the provider's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from simulators.launch import Simulator
from tests.drills.drill import COMMAND_S, Drill, drilling
from tests.drills.stands import STANDS, stand
from tests.process.effects.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


COMPLETE = ("postgresql-promoted-standby", "postgresql-base-backup", "mariadb-promoted-replica")
"""What can lack nothing and still be another database; an equal copy of a SQLite file is the database itself."""


@pytest.fixture
def drill(name: str, simulator: Simulator, tmp_path: Path) -> Iterator[Drill]:
    with stand(name) as held, drilling(held, simulator, tmp_path) as made:
        yield made


@pytest.mark.parametrize("name", STANDS)
def test_s2_what_a_copy_lacks_is_not_sent_again_once_it_is_declared_lossy(drill: Drill) -> None:
    waiting = drill.accept(3)
    drill.part()
    with drill.serving() as running:
        drill.wait_sent(waiting)
        late = drill.accept(2)
        drill.wait_sent(late)
        if drill.stand.lived_through:  # a process lives through the change, and notices it by itself
            drill.fall()
            assert drill.closed(running)
            drill.nothing_is_sent()
    if not drill.stand.lived_through:
        drill.fall()
    fresh = drill.accept(1)
    with drill.serving() as running:  # a restart forgets nothing
        reason = drill.closed(running)
        assert drill.ask("status")["dispatch"] == f"closed: {reason}"
        assert drill.ask("declare", "lossy", "--reason", "a drill")["declared"] == "lossy"
        running.until_ready(ready=True)
        told_again = drill.deployment.accept_again(late)
        drill.wait_ended([*waiting, *told_again])
        (unsent,) = until(drill.deployment.undecided, "the finding that one never arrived", seconds=COMMAND_S)
        drill.deployment.decide(unsent.attempt_id, resend=True)
        later = drill.accept(2)
        drill.wait_sent([*fresh, *later])
    everything = [*waiting, *late, *fresh, *later]
    assert drill.sent(everything) == [1] * len(everything)


@pytest.mark.parametrize("name", COMPLETE)
def test_s2_a_copy_that_lacks_nothing_goes_on_where_the_first_one_was_once_it_is_declared_lossless(
    drill: Drill,
) -> None:
    early = drill.accept(2)
    with drill.serving():
        drill.wait_sent(early)
    waiting = drill.accept(3)
    drill.part()
    drill.fall()
    with drill.serving() as running:
        reason = drill.closed(running)
        assert drill.ask("status")["dispatch"] == f"closed: {reason}"
        drill.nothing_is_sent()
        assert drill.ask("declare", "lossless", "--reason", "a drill")["declared"] == "lossless"
        running.until_ready(ready=True)
        drill.wait_sent(waiting)
        later = drill.accept(2)
        drill.wait_sent(later)
    everything = [*early, *waiting, *later]
    assert drill.sent(everything) == [1] * len(everything)
