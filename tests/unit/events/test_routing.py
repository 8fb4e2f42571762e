"""Whose work an event is, and in whose order it stands."""

import pytest

from doonce.base.json import JsonValue, dumps
from doonce.catalog.webhooks import BodyFormat, EventRule, Route
from doonce.events.mapping import Told
from doonce.events.model import Derived, derive, handed_to, is_hydrated, lane_of
from doonce.ownership.model import Family

ROUTE = ("acme", "main", "shop.events", "batch")


def route(*handle: str, push: str | None = None, hydrate: tuple[str, ...] = ()) -> Route:
    return Route(url=None, accepts_loss=None, reconcile=True, handle=handle, push=push, hydrate=hydrate)


def object_of(content: JsonValue, *places: str) -> tuple[str, ...] | None:
    """The object that one event is about."""
    rule = EventRule(
        format=BodyFormat.JSON,
        each=None,
        type=None,
        identity=(),
        object_id=places,
        objects={},
        stable_bodies=True,
    )
    found = derive(rule, ROUTE, "receipt", dumps(content))
    assert isinstance(found, tuple)
    (event,) = found
    assert isinstance(event, Derived)
    return event.object_id


@pytest.mark.parametrize(
    "handed, kind, family",
    [
        (route(), "made", None),
        (route("paid"), "made", None),
        (route("made"), "made", Family.HANDLER),
        (route("ma*"), "made", Family.HANDLER),
        (route("*", push="crm"), "made", Family.PUSH),
    ],
)
def test_a_type_is_handed_to_whom_the_route_says(handed: Route, kind: str, family: Family | None) -> None:
    assert handed_to(handed, kind) is family


@pytest.mark.parametrize(
    "content, places, about",
    [
        ({"id": 7}, ("/id",), ("7",)),
        ({"id": "7"}, ("/id",), ("7",)),
        ({"id": 7, "kind": "a"}, ("/kind", "/id"), ("a", "7")),
        ({"id": 7}, (), None),
        ({}, ("/id",), None),
        ({"id": None}, ("/id",), None),
        ({"id": True}, ("/id",), None),
        ({"id": [7]}, ("/id",), None),
        ({"id": 7}, ("/kind", "/id"), None),
    ],
)
def test_an_object_is_named_by_its_places(
    content: JsonValue, places: tuple[str, ...], about: tuple[str, ...] | None
) -> None:
    assert object_of(content, *places) == about


def test_a_lane_is_one_object_of_one_capability() -> None:
    lanes = {
        lane_of(ROUTE, ("7",)),
        lane_of(ROUTE, ("7", "")),
        lane_of(ROUTE, ("8",)),
        lane_of(("other", *ROUTE[1:]), ("7",)),
        lane_of((ROUTE[0], "other", *ROUTE[2:]), ("7",)),
        lane_of((*ROUTE[:2], "other", ROUTE[3]), ("7",)),
    }
    assert len(lanes) == 6
    assert lane_of((*ROUTE[:3], "another webhook"), ("7",)) == lane_of(ROUTE, ("7",))
    assert lane_of(ROUTE, None) is None


def test_any_text_of_a_provider_names_a_lane() -> None:
    lane = lane_of(ROUTE, ("\n\u0001" + "x" * 10_000,))
    assert lane is not None
    assert len(lane) < 255


@pytest.mark.parametrize(
    "told, read",
    [
        (Told("item", "7", deleted=False, fields={}), True),
        (Told("item", "7", deleted=True, fields={}), False),
        (Told("order", "7", deleted=False, fields={}), False),
        (None, False),
    ],
)
def test_what_is_read_as_a_whole(told: Told | None, read: bool) -> None:
    assert is_hydrated(route("*", hydrate=("item",)), told) is read
    assert not is_hydrated(route("*"), told)
