"""Links: transitions, repeated and contradicting requests."""

from __future__ import annotations

import dataclasses
from itertools import product

import pytest

from doonce.base.errors import Invalid
from doonce.links.model import (
    TRANSITIONS,
    Adoption,
    LinkEvent,
    LinkMove,
    LinkState,
    Moved,
    NewLink,
    RemoteLink,
    authority_of,
    judge_adoption,
    judge_move,
)

LINK = RemoteLink(
    id="lnk_1",
    org="acme",
    installation="main",
    principal_id="prn_1",
    generation=2,
    kind="person",
    local_ref="L1",
    remote_id="R1",
    state=LinkState.ACTIVE,
    version=3,
    authority=authority_of("prn_1", 2, "person", "R1"),
)
NEW = NewLink("lnk_2", "acme", "main", "prn_1", 2, "person", "L1", "R1")


def move(event: LinkEvent, version: int | None = None) -> LinkMove:
    return LinkMove("lnk_1", "acme", "main", event, version)


@pytest.mark.parametrize("state,event", list(product(LinkState, LinkEvent)))
def test_each_state_and_event_is_legal_repeated_or_refused(state: LinkState, event: LinkEvent) -> None:
    verdict = judge_move(dataclasses.replace(LINK, state=state), move(event))
    legal = {
        (LinkState.ACTIVE, LinkEvent.SUSPEND),
        (LinkState.SUSPENDED, LinkEvent.RESUME),
        (LinkState.ACTIVE, LinkEvent.RETIRE),
        (LinkState.SUSPENDED, LinkEvent.RETIRE),
    }
    repeated = {
        (LinkState.SUSPENDED, LinkEvent.SUSPEND),
        (LinkState.ACTIVE, LinkEvent.RESUME),
        (LinkState.RETIRED, LinkEvent.RETIRE),
    }
    if (state, event) in legal:
        assert verdict is Moved.DONE
    elif (state, event) in repeated:
        assert verdict is Moved.REPEATED
    else:
        assert verdict is Moved.ILLEGAL
    assert set(TRANSITIONS) == legal


def test_a_move_that_saw_another_version_is_refused() -> None:
    assert judge_move(LINK, move(LinkEvent.SUSPEND, 3)) is Moved.DONE
    assert judge_move(LINK, move(LinkEvent.SUSPEND, 2)) is Moved.CHANGED


def test_t5_a_rerun_of_a_written_move_is_recognized_by_its_version() -> None:
    suspended = dataclasses.replace(LINK, state=LinkState.SUSPENDED, version=4)
    assert judge_move(suspended, move(LinkEvent.SUSPEND, 3)) is Moved.REPEATED
    assert judge_move(suspended, move(LinkEvent.SUSPEND, 1)) is Moved.CHANGED


def test_adoption_compares_identities() -> None:
    assert judge_adoption(LINK, NEW) is Adoption.SAME
    assert judge_adoption(LINK, dataclasses.replace(NEW, remote_id="R2")) is Adoption.CONTRADICTED
    assert judge_adoption(LINK, dataclasses.replace(NEW, principal_id="prn_2")) is Adoption.CONTRADICTED
    assert judge_adoption(LINK, dataclasses.replace(NEW, generation=3)) is Adoption.RENEWED
    assert judge_adoption(LINK, dataclasses.replace(NEW, generation=1)) is Adoption.OUTDATED


def test_only_an_active_link_may_be_used() -> None:
    assert [dataclasses.replace(LINK, state=state).current for state in LinkState] == [True, False, False]


def test_every_part_of_the_snapshot_is_in_the_authority() -> None:
    snapshots = [
        ("prn_1", 2, "person", "R1"),
        ("prn_2", 2, "person", "R1"),
        ("prn_1", 3, "person", "R1"),
        ("prn_1", 2, "company", "R1"),
        ("prn_1", 2, "person", "R2"),
    ]
    assert len({authority_of(*snapshot) for snapshot in snapshots}) == len(snapshots)


@pytest.mark.parametrize(
    "field,value", [("remote_id", "x" * 513), ("local_ref", ""), ("kind", "a\x00b"), ("org", "\ud800")]
)
def test_texts_that_cannot_be_stored_are_refused(field: str, value: str) -> None:
    with pytest.raises(Invalid, match=field):
        NewLink(**(dataclasses.asdict(NEW) | {field: value})).check()


def test_a_remote_id_at_its_limit_is_accepted() -> None:
    dataclasses.replace(NEW, remote_id="x" * 512).check()
