"""A partial update carries the declared inbound fields that it has, exactly, and nothing else (authority section 7)."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace as changed

from doonce.base.json import loads
from doonce.catalog.model import FieldMap
from doonce.catalog.webhooks import BodyFormat, EventRule, Hydration, ObjectRule
from doonce.events.mapping import Told, fields_of, told_of

MAPS = {"item": FieldMap(outbound={"name": "label"}, inbound={"cost": "price", "left": "stock"})}
ITEM = ObjectRule(
    types=("item.*",),
    remote_id="/id",
    fields="/fields",
    field_name=None,
    field_value=None,
    deletes=("item.gone",),
    hydrate=Hydration(operation="item.read", fields="/item/fields", missing_statuses=(404,)),
)
SINGLE = changed(ITEM, fields=None, field_name="/name", field_value="/value")


def told(content: str, kind: str = "item.changed", item: ObjectRule = ITEM, **maps: FieldMap) -> Told | None:
    rule = EventRule(
        format=BodyFormat.JSON,
        each=None,
        type="/type",
        identity=("/id",),
        object_id=(),
        objects={"item": item},
        stable_bodies=False,
    )
    return told_of(rule, maps or MAPS, kind, loads(content, bytes_max=10_000))


def item(**fields: Any) -> Told:
    return Told("item", "7", deleted=False, fields=fields)


@pytest.mark.parametrize(
    "content, fields",
    [
        ('{"id":7,"fields":{"price":1.10}}', {"cost": Decimal("1.10")}),
        ('{"id":"7","fields":{"price":null,"stock":0}}', {"cost": None, "left": 0}),
        ('{"id":7,"fields":{"price":"","stock":false}}', {"cost": "", "left": False}),
        ('{"id":7,"fields":{"stock":9007199254740993}}', {"left": 9007199254740993}),
        ('{"id":7,"fields":{"label":"x","other":1}}', {}),
        ('{"id":7,"fields":{"price":{"a":[1]}}}', {"cost": {"a": [1]}}),
        ('{"id":7,"fields":[]}', {}),
        ('{"id":7}', {}),
    ],
)
def test_only_inbound_fields_that_the_event_has(content: str, fields: dict[str, Any]) -> None:
    found = told(content)
    assert found == item(**fields)
    assert found is not None
    assert {name: type(value) for name, value in found.fields.items()} == {
        name: type(value) for name, value in fields.items()
    }


@pytest.mark.parametrize(
    "content, fields",
    [
        ('{"id":7,"name":"price","value":null}', {"cost": None}),
        ('{"id":7,"name":"price"}', {}),
        ('{"id":7,"name":"label","value":"x"}', {}),
        ('{"id":7,"name":{"a":1},"value":"x"}', {}),
        ('{"id":7,"value":"x"}', {}),
    ],
)
def test_an_event_of_one_field(content: str, fields: dict[str, Any]) -> None:
    assert told(content, item=SINGLE) == item(**fields)


def test_a_deletion_has_no_fields() -> None:
    assert told('{"id":7,"fields":{"price":1}}', "item.gone") == replace(item(), deleted=True)


@pytest.mark.parametrize(
    "content",
    ['{"id":null}', '{"id":true}', '{"id":""}', '{"id":[7]}', "{}", '{"id":1.5}', f'{{"id":"{"x" * 513}"}}'],
)
def test_without_an_id_there_is_no_object(content: str) -> None:
    assert told(content) is None


def test_an_event_of_another_type_is_about_none() -> None:
    assert told('{"id":7}', "order.paid") is None


def test_without_a_mapping_there_are_no_fields() -> None:
    assert told('{"id":7,"fields":{"price":1}}', other=MAPS["item"]) == item()


@pytest.mark.parametrize(
    "document, fields",
    [
        (
            '{"item":{"fields":{"price":1.10,"stock":null,"label":"x"}}}',
            {"cost": Decimal("1.10"), "left": None},
        ),
        ('{"item":{"fields":{"stock":9007199254740993}}}', {"left": 9007199254740993}),
        ('{"item":{"fields":{"price":"","stock":false}}}', {"cost": "", "left": False}),
        ('{"item":{"fields":{}}}', {}),
    ],
)
def test_a_whole_object_has_every_inbound_field_that_it_has(document: str, fields: dict[str, Any]) -> None:
    found = fields_of(ITEM, MAPS["item"], document.encode())
    assert found == fields
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in fields.items()
    }


def test_a_whole_object_that_nothing_is_mapped_of_has_no_fields() -> None:
    assert fields_of(ITEM, None, b'{"item":{"fields":{"price":1}}}') == {}
