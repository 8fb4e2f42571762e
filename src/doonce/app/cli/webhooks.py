"""Commands about webhooks: a route's secrets, and whether a delivery that somebody kept is believed."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from doonce.app.cli.options import AsJson, Deployment, read_secret
from doonce.app.cli.options import opened as opened_deployment
from doonce.app.cli.output import console, print_facts, print_json
from doonce.app.installing import pack_folder
from doonce.app.operate.model import when
from doonce.base.errors import Invalid, Unauthenticated
from doonce.base.secrets import Secret
from doonce.catalog.bounds import SECOND_US, WEBHOOK_BODY_BYTES_MAX
from doonce.catalog.files import load_pack
from doonce.catalog.model import Pack
from doonce.catalog.webhooks import Webhook
from doonce.ingress.challenge import answer_body
from doonce.ingress.endpoint import path_of
from doonce.ingress.model import Delivery, Reason, Rejected
from doonce.ingress.receipts import RouteKey
from doonce.ingress.verify import open_verifier, verify

HERE: Final = Deployment()
HINTS: Final = {
    Reason.PROOF_WRONG: "compare secret and --url with the provider's page; the body must be the bytes that came",
    Reason.PROOF_MISSING: "give every header of the delivery with --header",
    Reason.HEADER_MISSING: "give every header of the delivery with --header",
    Reason.TIMESTAMP_MISSING: "give every header of the delivery with --header",
    Reason.TIMESTAMP_OLD: "give the time at which it came with --at, in seconds since 1970",
    Reason.TIMESTAMP_AHEAD: "give the time at which it came with --at, in seconds since 1970",
}


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Kept:
    """A delivery that somebody kept."""

    body: Annotated[
        Path, Parameter(allow_leading_hyphen=True, help="A file with the raw body, or - for standard input.")
    ]
    header: Annotated[list[str], Parameter(negative="", help="`Name: value`; repeatable.")]
    query: Annotated[str, Parameter(help="The query that came, without its question mark.")] = ""
    method: str = "POST"
    at: Annotated[int | None, Parameter(help="When it came, in seconds since 1970 (now).")] = None

    def delivery(self) -> Delivery:
        """The delivery as it came; raises `Invalid` for what HTTP could not have carried."""
        method, query = _bytes("--method", self.method), _bytes("--query", self.query)
        return Delivery(method, query, _headers(self.header), _body(self.body))

    def at_us(self) -> int:
        """When it came."""
        return time.time_ns() // 1_000 if self.at is None else self.at * SECOND_US


async def verify_webhook(
    pack: Path,
    webhook: str,
    /,
    *,
    kept: Kept,
    secret_file: Annotated[
        list[Path],
        Parameter(
            allow_leading_hyphen=True,
            negative="",
            help="A file with an active secret, or - for standard input; repeatable.",
        ),
    ],
    url: Annotated[str | None, Parameter(help="The route's address as the provider knows it.")] = None,
    json: AsJson = False,
) -> None:
    """Check a delivery against a pack's verifier. Nothing is stored, and no database is needed.

    Parameters
    ----------
    pack
        The pack's folder, or the name of a pack that comes with doonce.
    webhook
        The name that the pack gives to this kind of delivery.
    """
    contract = _webhook(await asyncio.to_thread(load_pack, pack_folder(pack)), webhook)
    opened = open_verifier(contract, [_secret(file) for file in secret_file], url=url)
    delivery = await asyncio.to_thread(kept.delivery)
    decision = verify(opened, delivery, now_us=kept.at_us())
    if isinstance(decision, Rejected):
        raise Unauthenticated(
            f"the delivery is not believed: {decision.reason.value}", hint=HINTS.get(decision.reason, "")
        )
    answer = answer_body(contract, delivery)
    facts: dict[str, str | int | None] = {
        "verified": webhook,
        "secret": decision.secret_index + 1,
        "signed_at_us": decision.signed_at_us,
        "challenge_answer": None if answer is None else answer.body.decode(),
    }
    if json:
        print_json(facts)
        return
    shown = {name.replace("_", " "): str(value) for name, value in facts.items() if value is not None}
    if decision.signed_at_us is not None:
        shown["signed at us"] = f"{decision.signed_at_us}  ({when(decision.signed_at_us)})"
    print_facts(console(), shown)


async def webhook_secret(
    org: str,
    installation: str,
    capability: str,
    webhook: str,
    /,
    *,
    secret_file: Annotated[
        Path, Parameter(allow_leading_hyphen=True, help="A file with the secret, or - for standard input.")
    ],
    alone: Annotated[
        bool, Parameter(negative="", help="End every other active secret of the route.")
    ] = False,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Make a provider's secret active for a route that is published; running processes notice within a second.

    Parameters
    ----------
    capability
        The capability of the binding that receives the webhook.
    webhook
        The pack's name for this kind of delivery.
    """
    key = RouteKey(org, installation, capability, webhook)
    async with opened_deployment(deployment) as engine:
        active = await engine.ingress.add_secret(key, _secret(secret_file), alone=alone)
    path = path_of(key)
    if json:
        print_json(
            {"path": path, "secrets": [{"id": one.id, "created_at_us": one.created_at} for one in active]}
        )
        return
    print_facts(
        console(), {"path": path} | {one.id: f"active since {when(one.created_at)}" for one in active}
    )


def _webhook(pack: Pack, name: str) -> Webhook:
    known = pack.webhooks or {}
    if name not in known:
        raise Invalid(
            f"the pack {pack.name} has no webhook {name!r}",
            hint=f"one of {', '.join(sorted(known))}" if known else "it declares none",
        )
    return known[name]


def _secret(file: Path) -> Secret:
    secret = read_secret(file)
    if secret is None:
        raise Invalid("a secret is needed", hint="name its file with --secret-file")
    return secret


def _headers(given: list[str]) -> tuple[tuple[bytes, bytes], ...]:
    headers = []
    for line in given:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise Invalid(f"--header {name!r} has no name and value", hint="write --header 'Name: value'")
        headers.append((_bytes("--header", name.strip().lower()), _bytes("--header", value.strip())))
    return tuple(headers)


def _bytes(option: str, text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise Invalid(f"{option} holds a character that HTTP has none for") from None


def _body(file: Path) -> bytes:
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read(WEBHOOK_BODY_BYTES_MAX + 1)
        with file.open("rb") as opened:
            return opened.read(WEBHOOK_BODY_BYTES_MAX + 1)
    except OSError as error:
        raise Invalid(f"the body {file} cannot be read: {error.strerror}", hint="check the path") from error
