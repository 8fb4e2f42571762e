"""The packs that ship: they load, and say about their providers what the providers document."""

import json
from pathlib import Path

import pytest

from doonce.base.errors import Invalid
from doonce.catalog.binding import read_binding
from doonce.catalog.classify import classify_response, classify_unanswered, resends_by_itself
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.exchange import Response
from doonce.catalog.files import load_pack
from doonce.catalog.model import Outcome, Verdict
from doonce.catalog.probe import judge, probe_request
from doonce.catalog.render import render

PACKS = Path(__file__).parents[3] / "packs"
COMMAND = "cmd_1"
SECOND = 1_000_000
DISPATCHED = 1_796_000_000 * SECOND
LATE = DISPATCHED + 600 * SECOND


def view(pack: str, operations: list[str], **more: object) -> BindingView:
    """A view over a shipped pack."""
    binding = {
        "format": "doonce.binding/1",
        "org": "acme",
        "installation": "main",
        "capability": "crm.contacts",
        "pack": f"{pack}@1.0.0",
        "principal": "prn_1",
        "operations": operations,
        **more,
    }
    return compile_view(load_pack(PACKS / pack), read_binding(binding), origins=OriginPolicy())


CONTACTS = view(
    "hubspot",
    ["contact.patch", "contact.create", "contact.delete", "contact.read"],
    fields={
        "contact": {
            "outbound": {"title": "jobtitle", "mail": "email"},
            "inbound": {"stage": "lifecyclestage"},
        }
    },
)
CARDS = view(
    "carddav",
    ["card.create", "card.update", "card.read"],
    origin="https://dav.example",
    parameters={"collection": "ann/contacts"},
)
TITLE = b'{"title":"CTO"}'


@pytest.mark.parametrize("name", sorted(path.parent.name for path in PACKS.glob("*/pack.toml")))
def test_every_shipped_pack_loads(name: str) -> None:
    assert load_pack(PACKS / name).name == name


def test_a_provider_that_tries_again_only_when_asked_is_asked() -> None:
    """Zendesk repeats what was shed with 503 if the answer says after how long, and only then."""
    for webhook in (load_pack(PACKS / "zendesk").webhooks or {}).values():
        assert (webhook.answers.overload_status, webhook.answers.retry_after_seconds) == (503, 5)


def test_a_title_is_one_sparse_patch() -> None:
    request = render(CONTACTS, "contact.patch", TITLE, remote_id="512", command_id=COMMAND).request
    assert (request.method, request.target) == ("PATCH", "/crm/v3/objects/contacts/512")
    assert request.body == b'{"properties":{"jobtitle":"CTO"}}'
    with pytest.raises(Invalid, match="provider's to write"):
        render(CONTACTS, "contact.patch", b'{"stage":"lead"}', remote_id="512", command_id=COMMAND)
    with pytest.raises(Invalid, match="not accepted"):
        render(CONTACTS, "contact.patch", b"{}", remote_id="512", command_id=COMMAND)


@pytest.mark.parametrize(
    "status, outcome",
    [
        (200, Outcome.ACCEPTED),
        (400, Outcome.REJECTED),
        (404, Outcome.REJECTED),
        (409, Outcome.REJECTED),
        (429, Outcome.REPLAY_SAFE_RETRY),
        (500, Outcome.OUTCOME_UNKNOWN),
        (503, Outcome.OUTCOME_UNKNOWN),
    ],
)
def test_a_patch_is_one_attempt(status: int, outcome: Outcome) -> None:
    contract = CONTACTS.operation("contact.patch").contract
    request = render(CONTACTS, "contact.patch", TITLE, remote_id="512", command_id=COMMAND).request
    assert classify_response(contract, request, Response(status, (), b'{"id":"512"}')).outcome is outcome
    assert classify_unanswered(contract, "reset").outcome is Outcome.OUTCOME_UNKNOWN
    assert not resends_by_itself(contract, now_us=LATE, first_dispatched_at_us=DISPATCHED)


def contact(title: str | None, updated: str) -> Response:
    """A contact as the vendor shows it."""
    body = {"id": "512", "properties": {"jobtitle": title}, "updatedAt": updated, "archived": False}
    return Response(200, (), json.dumps(body).encode())


@pytest.mark.parametrize(
    "payload, response, verdict",
    [
        (TITLE, contact("CTO", "2026-11-30T00:53:21.000Z"), Verdict.EFFECT_PROVEN),
        (TITLE, contact("CEO", "2026-11-29T00:00:00.000Z"), Verdict.NO_EFFECT_PROVEN),
        (TITLE, contact("CEO", "2026-11-30T00:53:21.000Z"), Verdict.CANNOT_TELL),
        (TITLE, contact("CEO", "2026-11-30T09:00:00.000Z"), Verdict.CANNOT_TELL),
        (b'{"title":""}', contact(None, "2026-11-30T00:53:21.000Z"), Verdict.EFFECT_PROVEN),
        (TITLE, Response(404, (), b""), Verdict.CANNOT_TELL),
    ],
)
def test_the_patch_is_looked_for_in_the_contact(payload: bytes, response: Response, verdict: Verdict) -> None:
    request = render(CONTACTS, "contact.patch", payload, remote_id="512", command_id=COMMAND).request
    contract = CONTACTS.operation("contact.patch").contract
    judged = judge(contract, request, response, dispatched_at_us=DISPATCHED, probed_at_us=LATE)
    assert judged.verdict is verdict
    probe = probe_request(CONTACTS, "contact.patch", payload, remote_id="512", command_id=COMMAND)
    assert probe.target == "/crm/v3/objects/contacts/512?properties=jobtitle"


def test_a_create_is_looked_for_by_its_address() -> None:
    contract = CONTACTS.operation("contact.create").contract
    payload = b'{"mail":"ann+1@x.example","title":"CTO"}'
    request = render(CONTACTS, "contact.create", payload, remote_id=None, command_id=COMMAND).request
    probe = probe_request(CONTACTS, "contact.create", payload, remote_id=None, command_id=COMMAND)
    assert probe.target.startswith(
        "/crm/v3/objects/contacts/ann%2B1%40x.example?idProperty=email&properties="
    )
    taken = classify_response(contract, request, Response(409, (), b'{"category":"CONFLICT"}'))
    assert (taken.outcome, taken.verify) == (Outcome.OUTCOME_UNKNOWN, True)

    def verdict(response: Response, refused_with: int | None = None) -> Verdict:
        return judge(
            contract,
            request,
            response,
            dispatched_at_us=DISPATCHED,
            probed_at_us=LATE,
            refused_with=refused_with,
        ).verdict

    ours = Response(200, (), b'{"id":"9","properties":{"email":"ann+1@x.example","jobtitle":"CTO"}}')
    another = Response(200, (), b'{"id":"9","properties":{"email":"ann+1@x.example","jobtitle":"CEO"}}')
    assert verdict(ours) is verdict(ours, 409) is Verdict.EFFECT_PROVEN
    assert verdict(another) is Verdict.CANNOT_TELL
    assert verdict(another, 409) is Verdict.SUPERSEDED
    assert verdict(Response(404, (), b"")) is Verdict.NO_EFFECT_PROVEN
    assert resends_by_itself(contract, now_us=LATE, first_dispatched_at_us=DISPATCHED)
    for address in (b"a/b@x.example", b"Ann@x.example"):  # neither would be found again as it was written
        unfit = b'{"mail":"' + address + b'"}'
        with pytest.raises(Invalid, match="not accepted at email"):
            render(CONTACTS, "contact.create", unfit, remote_id=None, command_id=COMMAND)


def test_a_delete_is_proven_by_absence() -> None:
    contract = CONTACTS.operation("contact.delete").contract
    request = render(CONTACTS, "contact.delete", b"{}", remote_id="512", command_id=COMMAND).request
    assert classify_response(contract, request, Response(204, (), b"")).outcome is Outcome.ACCEPTED
    gone = judge(contract, request, Response(404, (), b""), dispatched_at_us=DISPATCHED, probed_at_us=LATE)
    there = judge(contract, request, contact("x", ""), dispatched_at_us=DISPATCHED, probed_at_us=LATE)
    assert (gone.verdict, there.verdict) == (Verdict.EFFECT_PROVEN, Verdict.NO_EFFECT_PROVEN)


def test_a_read_asks_for_all_that_is_mapped() -> None:
    request = render(CONTACTS, "contact.read", b"{}", remote_id="512", command_id=COMMAND).request
    assert request.target.endswith("?properties=email%2Cjobtitle%2Clifecyclestage")


def test_a_card_is_created_only_where_there_is_none() -> None:
    payload = json.dumps({"uid": "u1", "card": "BEGIN:VCARD\r\nEND:VCARD\r\n"}).encode()
    request = render(CARDS, "card.create", payload, remote_id=None, command_id=COMMAND).request
    assert (request.method, request.target) == ("PUT", "/ann/contacts/u1.vcf")
    assert ("If-None-Match", "*") in request.headers
    assert request.body == b"BEGIN:VCARD\r\nEND:VCARD\r\n"
    contract = CARDS.operation("card.create").contract
    created = classify_response(contract, request, Response(201, (("etag", '"1"'),), b""))
    assert created.outcome is Outcome.ACCEPTED
    assert json.loads(created.result or b"") == {"remote_id": "u1.vcf", "etag": '"1"'}
    refused = classify_response(contract, request, Response(412, (), b""), earlier_maybe_sent=True)
    assert (refused.outcome, refused.verify) == (Outcome.OUTCOME_UNKNOWN, True)
    assert classify_unanswered(contract, "reset").outcome is Outcome.REPLAY_SAFE_RETRY


def test_a_create_and_its_updates_share_a_lane() -> None:
    create = json.dumps({"uid": "u1", "card": "BEGIN:VCARD"}).encode()
    update = json.dumps({"etag": '"1"', "card": "BEGIN:VCARD"}).encode()
    lanes = (
        render(CARDS, "card.create", create, remote_id=None, command_id=COMMAND).target_lane,
        render(CARDS, "card.update", update, remote_id="u1.vcf", command_id=COMMAND).target_lane,
    )
    assert lanes[0] == lanes[1] is not None


@pytest.mark.parametrize("etag", ['W/"1"', "*", "1", '"1', '"a"b"', '"1"\r\nX: y', '"1", "2"'])
def test_an_update_names_exactly_one_version(etag: str) -> None:
    payload = json.dumps({"etag": etag, "card": "BEGIN:VCARD"}).encode()
    with pytest.raises(Invalid, match="strong entity tag"):
        render(CARDS, "card.update", payload, remote_id="u1.vcf", command_id=COMMAND)
