"""The API's description has exactly the API's paths, and every reference in it leads somewhere."""

import json
from typing import Any

from starlette.routing import Route

from doonce.app.web.api import Api
from doonce.app.web.openapi import DOCUMENT, OPERATIONS, PATH

DESCRIBED = json.loads(DOCUMENT)


def routes() -> set[tuple[str, str]]:
    """The methods and paths below /v1 that are served."""
    api = Api.__new__(Api)
    served = api.application(handoffs=True, deliveries=False).routes
    return {
        (method, route.path)
        for route in served
        if isinstance(route, Route) and route.path.startswith("/v1/") and route.path != PATH
        for method in route.methods or ()
        if method != "HEAD"
    }


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = {value["$ref"]} if "$ref" in value else set()
        return found.union(*[references(inner) for inner in value.values()])
    if isinstance(value, list):
        return set().union(*[references(inner) for inner in value])
    return set()


def test_what_is_served_is_described_and_nothing_else() -> None:
    assert routes() == {(one.method, one.path) for one in OPERATIONS}


def test_every_reference_leads_to_a_schema() -> None:
    there = {f"#/components/schemas/{name}" for name in DESCRIBED["components"]["schemas"]}
    assert references(DESCRIBED) <= there


def test_operations_have_names_of_their_own_and_say_what_they_need() -> None:
    described = [one for methods in DESCRIBED["paths"].values() for one in methods.values()]
    assert len({one["operationId"] for one in described}) == len(OPERATIONS)
    for one in OPERATIONS:
        path = one.path.replace(":path", "")
        words = DESCRIBED["paths"][path][one.method.lower()]
        assert ("doonce.operate" in words.get("description", "")) is one.operates
        assert ("requestBody" in words) is (one.asks is not None)


def test_a_body_that_is_read_is_described_with_its_bounds() -> None:
    closing = DESCRIBED["components"]["schemas"]["CloseGapBody"]
    assert closing["properties"]["losses"]["minimum"] == 0
    assert set(closing["required"]) == {"capability", "webhook", "sequence", "losses", "reason"}
