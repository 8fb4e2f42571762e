"""What a node of a cluster says of itself, and what its members say of what the cluster lost."""

import pytest

from doonce.db.galera import carries_on, doubts, is_node, members_text
from doonce.db.incarnation import Place, carried_on

SYNCED = {"wsrep_cluster_status": "Primary", "wsrep_local_state_comment": "Synced", "wsrep_ready": "ON"}


def test_a_synced_node_of_the_primary_component_is_worked_with() -> None:
    assert doubts(SYNCED) == []
    assert is_node({"wsrep_on": "ON"})
    assert not is_node({"wsrep_on": "OFF"})
    assert not is_node({})


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"wsrep_cluster_status": "non-Primary"}, "majority"),
        ({"wsrep_cluster_status": "Disconnected"}, "majority"),
        ({"wsrep_local_state_comment": "Joined"}, "Joined"),
        ({"wsrep_local_state_comment": "Donor/Desynced"}, "Donor"),
        ({"wsrep_ready": "OFF"}, "ready"),
    ],
)
def test_s1_any_other_node_is_not(changes: dict[str, str], said: str) -> None:
    (doubt,) = doubts(SYNCED | changes)
    assert said in doubt


def test_s1_a_node_that_says_nothing_is_not() -> None:
    assert doubts({})


@pytest.mark.parametrize(
    "pinned, found, kept",
    [
        ("a b c", "a b c", True),
        ("a b c", "a b", True),
        ("a b c", "a b d", True),
        ("a b c", "a", False),
        ("a b c", "a d e", False),
        ("a b c d", "a b", False),
        ("a b", "a", False),
        ("a", "a b c", True),
        ("a b c", "d e f", False),
        ("", "a", False),
    ],
)
def test_s2_only_the_majority_of_the_members_carries_a_cluster_on(
    pinned: str, found: str, kept: bool
) -> None:
    assert carries_on(pinned, found) is kept


def test_members_fit_into_a_name_and_are_told_apart_whatever_their_order() -> None:
    ids = [f"b4fae46{digit:x}-eca7-11f1-abe7-1e5a013ed57e" for digit in range(15)]
    assert members_text(ids) == members_text(reversed(ids))
    assert len(set(members_text(ids).split())) == 15
    assert len(members_text(ids)) <= 255


def test_s2_nothing_but_the_pinned_cluster_is_followed() -> None:
    pinned = Place("cluster:x", "a b c")
    assert carried_on(pinned, Place("cluster:x", "a b"))
    assert not carried_on(pinned, Place("cluster:x", "a"))
    assert not carried_on(pinned, Place("cluster:y", "a b"))
    assert not carried_on(pinned, pinned)
    assert not carried_on(Place("server:1", "a b c"), Place("server:1", "a b"))
