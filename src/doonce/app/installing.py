"""Publishing a binding and connecting its principal: what makes an installation able to act. Repeatable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from doonce.app.engine import Engine
from doonce.base.errors import Conflict, DoonceError, Invalid, MissingOrDenied, Stale
from doonce.base.ids import new_id, new_token
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.files import PACK_FILE, load_binding, load_pack
from doonce.catalog.model import AuthScheme
from doonce.commands.service import link_kind
from doonce.db.transaction import Txn
from doonce.links import store as links
from doonce.links.model import NewLink, RemoteLink
from doonce.principals import store as principals
from doonce.principals.model import Principal, PrincipalState

HERE: Final = Path(__file__).resolve()
SHIPPED: Final = HERE.parents[3] / "packs" if HERE.parents[2].name == "src" else HERE.parents[1] / "_packs"
"""The packs that come with this release: in the installed package, or beside the sources of a checkout."""

BindingSource = str | Path | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Installed:
    """A published view with the principal that acts under it: what an emitter pins."""

    view: BindingView
    principal: Principal

    @property
    def generation(self) -> int:
        """The binding generation to emit with."""
        return self.principal.generation


def compiled(pack: str | Path, binding: BindingSource, origins: OriginPolicy) -> BindingView:
    """The view of a binding over a pack. Raises `Invalid`, which names file, table and field."""
    read = load_pack(pack_folder(pack))
    if isinstance(binding, Mapping):
        return compile_view(read, read_binding(binding, file="the binding"), origins=origins)
    return compile_view(read, load_binding(Path(binding)), origins=origins, file=str(binding))


def pack_folder(pack: str | Path) -> Path:
    """A pack's folder: the path itself, or by a bare name one of the packs that come with this release.

    A path that leads nowhere is never answered with another pack that happens to have its last name.
    """
    folder = Path(pack)
    shipped = SHIPPED / folder
    is_name = folder.name == str(pack)
    if is_name and not (folder / PACK_FILE).exists() and (shipped / PACK_FILE).exists():
        return shipped
    return folder


async def install(engine: Engine, view: BindingView, secret: Secret | None, *, reason: str) -> Installed:
    """Connect the binding's principal, then publish its view; repeating it changes nothing.

    Another secret than the stored one becomes the next token version of the same generation; a principal that was
    disconnected begins a new generation. Without a secret the principal must be connected already.
    """
    principal = await connect(engine, view, secret, reason=reason)
    await engine.views.publish([view])
    return Installed(view, principal)


async def connect(engine: Engine, view: BindingView, secret: Secret | None, *, reason: str) -> Principal:
    """The principal that the view names, connected with this secret."""
    document = view.document
    try:
        known = await engine.principals.find(document.org, document.installation, document.principal)
    except MissingOrDenied:
        if secret is None and not _uses_secret(view):
            secret = Secret(new_token())  # never sent: nobody is called, or nobody asks who calls
        if secret is None:
            raise Invalid(
                f"the principal {document.principal!r} is not connected yet", hint="give its secret"
            ) from None
        return await engine.principals.connect(
            org=document.org,
            installation=document.installation,
            pack=document.pack,
            name=document.principal,
            secret=secret,
        )
    if secret is None:
        return known
    if known.state is PrincipalState.DISCONNECTED:
        return await engine.principals.reconnect(known, secret, reason=reason)
    if await engine.principals.secret(known.id, known.generation) != secret:
        await engine.principals.rotate(known, secret)
    return known


def _uses_secret(view: BindingView) -> bool:
    """Whether calls are made with the principal's secret: effects, or the reads that a webhook asks for."""
    document = view.document
    return bool(document.offered) or (
        bool(document.operations) and document.auth.scheme is not AuthScheme.NONE
    )


async def adopt(engine: Engine, installed: Installed, kind: str, local: str, remote: str) -> RemoteLink:
    """Link a record of the application's to a provider's that exists already; the same link again is the same one.

    Raises `Conflict` when either is linked to something else, `Stale` when the principal's generation has ended.
    """
    document = installed.view.document
    kinds = {link_kind(installed.view, operation) for operation in installed.view.operations.values()}
    kinds |= {name for webhook in (document.webhooks or {}).values() for name in webhook.events.objects}
    if kind not in kinds:
        raise Invalid(f"the binding links no {kind!r}", hint=f"one of {', '.join(sorted(kinds))}")
    link = NewLink(
        id=new_id("lnk"),
        org=document.org,
        installation=document.installation,
        principal_id=installed.principal.id,
        generation=installed.principal.generation,
        kind=kind,
        local_ref=local,
        remote_id=remote,
    )
    link.check()
    adopted = await engine.database.transact(_adopt, link)
    if isinstance(adopted, DoonceError):
        raise adopted
    return adopted


def _adopt(link: NewLink) -> Txn[RemoteLink | Conflict | Stale]:
    """Under the generation's fence, as every adoption (see `links.store`)."""
    current = yield from principals.fence([link.principal_id])
    if current.get(link.principal_id) != link.generation:
        return Stale("the principal's generation has ended", hint="connect it again", axis="generation")
    return (yield from links.adopt([link]))[0]
