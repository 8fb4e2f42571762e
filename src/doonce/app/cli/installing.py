"""Commands that connect applications and providers: publish, connect, link, credentials."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from doonce.app import installing
from doonce.app.cli.options import CONNECTING, AsJson, Deployment, opened, read_secret
from doonce.app.cli.output import console, print_facts, print_json
from doonce.app.installing import Installed
from doonce.app.operate.model import when
from doonce.app.web.api import OPERATE, published
from doonce.base.errors import Invalid
from doonce.principals.model import PrincipalState
from doonce.trust.service import BearerCredentials

HERE: Final = Deployment()
SecretFile = Annotated[
    Path | None,
    Parameter(allow_leading_hyphen=True, help="A file with the provider's secret, or - for standard input."),
]


async def publish(
    pack: Path,
    binding: Path,
    /,
    *,
    secret_file: SecretFile = None,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Publish a binding over a pack, and connect its principal when a secret is given. Repeatable.

    Parameters
    ----------
    pack
        The pack's folder, or the name of a pack that comes with doonce.
    binding
        The binding's TOML file: how one installation uses the pack.
    """
    secret = read_secret(secret_file)
    async with opened(deployment) as engine:
        origins = deployment.settings().egress.origins()
        view = await asyncio.to_thread(installing.compiled, pack, binding, origins)
        installed = await installing.install(engine, view, secret, reason="published by an operator")
    if json:
        print_json(published(installed))
        return
    document = view.document
    print_facts(
        console(),
        {
            "published": f"{document.pack} for {document.org} / {document.installation}",
            "capability": document.capability,
            "binding digest": view.digest,
            "generation": str(installed.generation),
            "principal": installed.principal.id,
            "operations": ", ".join(document.offered),
        },
    )


async def connect(
    org: str,
    installation: str,
    principal: str,
    /,
    *,
    secret_file: Annotated[
        Path,
        Parameter(allow_leading_hyphen=True, help="A file with the new secret, or - for standard input."),
    ],
    new_generation: Annotated[bool, Parameter(negative="")] = False,
    reason: str = "connected by an operator",
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Give a principal another secret.

    Parameters
    ----------
    principal
        The name that its binding gives it.
    new_generation
        It is another identity at the provider: work that was accepted for the old one is never sent with the new one.
    """
    secret = read_secret(secret_file)
    if secret is None:
        raise Invalid("a secret is needed", hint="name its file with --secret-file")
    async with opened(deployment) as engine:
        known = await engine.principals.find(org, installation, principal)
        if new_generation or known.state is PrincipalState.DISCONNECTED:
            known = await engine.principals.reconnect(known, secret, reason=reason)
        else:
            await engine.principals.rotate(known, secret)
    _print_principal(known.id, known.generation, known.state, json=json)


async def disconnect(
    org: str,
    installation: str,
    principal: str,
    /,
    *,
    reason: str = "disconnected by an operator",
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """End a principal's generation: nothing that was accepted for it is sent any more."""
    async with opened(deployment) as engine:
        known = await engine.principals.find(org, installation, principal)
        known = await engine.principals.disconnect(known, reason=reason)
    _print_principal(known.id, known.generation, known.state, json=json)


def _print_principal(principal_id: str, generation: int, state: PrincipalState, *, json: bool) -> None:
    facts = {"principal": principal_id, "generation": str(generation), "state": state.value}
    if json:
        print_json(facts | {"generation": generation})
    else:
        print_facts(console(), facts)


async def link(
    org: str,
    installation: str,
    capability: str,
    kind: str,
    /,
    *,
    local: str,
    remote: str,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Say that an application's record is a provider's object. Repeatable.

    Parameters
    ----------
    capability
        The capability of the binding under which the object is known.
    kind
        The pack's kind of object.
    local
        The application's id of the record.
    remote
        The provider's id of the object.
    """
    async with opened(deployment) as engine:
        view = await engine.views.latest(org, installation, capability)
        principal = await engine.principals.find(org, installation, view.document.principal)
        adopted = await installing.adopt(engine, Installed(view, principal), kind, local, remote)
    facts = {"link": adopted.id, "state": adopted.state.value, "record": local, "remote id": remote}
    if json:
        print_json({"link": adopted.id, "state": adopted.state.value, "version": adopted.version})
    else:
        print_facts(console(), facts)


credential_app = App(
    name="credential", group=CONNECTING, help="Bearer credentials of applications and operators."
)


@credential_app.command
async def issue(
    org: str,
    installation: str,
    capability: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    note: str = "",
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Issue a credential. Its token is printed once and stored nowhere.

    Parameters
    ----------
    capability
        What it may hand over: the capabilities of bindings; `doonce.operate` for deciding and publishing.
    note
        Whom it is for.
    """
    async with opened(deployment) as engine:
        credential, token = await BearerCredentials(engine.database).issue(
            org, installation, capability, note
        )
    facts = {"credential": credential.id, "token": token.reveal()}
    if json:
        print_json(facts)
    else:
        print_facts(console(), facts)


@credential_app.command
async def revoke(credential: str, /, *, deployment: Deployment = HERE, json: AsJson = False) -> None:
    """End a credential, for ever; running processes notice within a second."""
    async with opened(deployment) as engine:
        revoked = await BearerCredentials(engine.database).revoke(credential)
    facts = {"credential": revoked.id, "state": revoked.state.value}
    if json:
        print_json(facts)
    else:
        print_facts(console(), facts)


@credential_app.command(name="list")
async def list_credentials(*, deployment: Deployment = HERE, json: AsJson = False) -> None:
    """List credentials, without their tokens."""
    async with opened(deployment) as engine:
        found = await BearerCredentials(engine.database).all()
    if json:
        print_json(
            [
                {
                    "credential": one.id,
                    "org": one.org,
                    "installation": one.installation,
                    "capabilities": sorted(one.capabilities),
                    "state": one.state.value,
                    "note": one.note,
                    "created_at_us": one.created_at,
                    "revoked_at_us": one.revoked_at,
                }
                for one in found
            ]
        )
        return
    out = console()
    for one in found:
        shown = "operator" if OPERATE in one.capabilities else ", ".join(sorted(one.capabilities))
        out.print(
            f"{one.id}  {one.state.value}  {one.org} / {one.installation}  {shown}  {when(one.created_at)}  {one.note}",
            markup=False,
        )
