"""The examples of the guide for pack authors are packs and bindings that work."""

import re
from pathlib import Path

from tests.unit.catalog.samples import sample_binding, sample_pack

from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.render import render

GUIDE = (Path(__file__).parents[3] / "docs" / "packs.md").read_text()
SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "price": {"type": "number"}},
    "additionalProperties": False,
}


def test_the_first_pack_and_binding_send_what_they_say() -> None:
    examples = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    pack = next(text for text in examples if "doonce.pack/1" in text)
    binding = next(text for text in examples if "doonce.binding/1" in text)
    view = compile_view(
        sample_pack(pack, {"item.change.json": SCHEMA}), sample_binding(binding), origins=OriginPolicy()
    )
    request = render(view, "item.change", b'{"name":"A"}', remote_id="7", command_id="cmd_1").request
    assert (request.target, request.body) == ("/items/7", b'{"label":"A"}')


def test_the_other_examples_fit_the_first_pack() -> None:
    examples = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    first = next(text for text in examples if "doonce.pack/1" in text)
    more = "".join(text for text in examples if text.startswith(("[[operations", "[operations", "[webhooks")))
    read = """
[operations."item.read"]
summary = "Read"
method = "GET"
target = "/items/{remote_id}"
payload_schema = "empty.json"
link = "existing"
call_budget = "10s"
send_window = "2s"
evidence = []
"""
    settled = first.replace('link = "existing"', 'link = "existing"\nsettle_after = "60s"')
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    pack = sample_pack(settled + more + read, {"item.change.json": SCHEMA, "empty.json": empty})
    assert len(pack.operations["item.change"].outcomes) == 2
    assert pack.operations["item.change"].probe is not None
    assert {*(pack.webhooks or {})} == {"event"}
