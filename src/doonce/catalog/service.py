"""Views as the rest of the service uses them: published once, opened once a process, never looked up as "latest"."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from doonce.base.digests import check_digest
from doonce.base.errors import Internal, Invalid, MissingOrDenied
from doonce.catalog import store
from doonce.catalog.compile import BindingView, open_view
from doonce.catalog.store import NewView, Publication, PublishedAs
from doonce.db.clock import boottime_ns
from doonce.db.database import Database


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """What is kept in this process's memory. Views and publications never change, so none of it can become wrong.

    `views_max`: opened views, some 100 KiB each. `facts_max`: proven publications. `installations_every_ms`: how soon
    a first view that another process published for an installation makes this one work for it.
    """

    views_max: int = 256
    facts_max: int = 16_384
    installations_every_ms: int = 1_000


class Views:
    """The published views of one database. Safe to share between tasks of one event loop."""

    def __init__(
        self,
        database: Database,
        settings: ViewSettings | None = None,
        now_ns: Callable[[], int] = boottime_ns,
    ) -> None:
        self._database = database
        self._settings = settings or ViewSettings()
        self._now_ns = now_ns
        self._opened: OrderedDict[str, BindingView] = OrderedDict()
        self._opening: dict[str, asyncio.Task[BindingView]] = {}
        self._facts: OrderedDict[PublishedAs, None] = OrderedDict()
        self._installations: tuple[int, Sequence[tuple[str, str]]] | None = None

    async def publish(self, views: Sequence[BindingView]) -> list[Publication]:
        """Make each view the newest of its scope, all or none; repeating it changes nothing.

        Raises `Invalid` when two of them are for one scope.
        """
        new = [_new_view(view) for view in views]
        if len({view.scope for view in new}) != len(new):
            raise Invalid("two of these views are for one capability of one installation")
        publications = await self._database.transact(store.publish, new)
        self._installations = None
        return publications

    async def get(self, digest: str) -> BindingView:
        """Exactly the view that `digest` names.

        Raises `MissingOrDenied` when there is none, `Internal` when what is stored is not what the digest names: then
        nothing pinned to it is executed.
        """
        view = self._opened.get(digest)
        if view is not None:
            self._opened.move_to_end(digest)
            return view
        opening = self._opening.get(digest)
        if opening is None:
            opening = self._opening[digest] = asyncio.ensure_future(self._open(digest))
            opening.add_done_callback(lambda done: self._finish(digest, done))
        return await asyncio.shield(opening)

    async def published(self, org: str, installation: str, capability: str, digest: str) -> BindingView:
        """The view, if it was ever published for exactly this scope (PROTOCOL F1).

        Raises `Invalid` for a text that is no digest, and one `MissingOrDenied` whether the view does not exist or is
        somebody else's.
        """
        check_digest("binding_digest", digest)
        fact = (org, installation, capability, digest)
        if fact in self._facts:
            self._facts.move_to_end(fact)
        elif fact in await self._database.read(store.published, [fact]):
            self._facts[fact] = None
            while len(self._facts) > self._settings.facts_max:
                self._facts.popitem(last=False)
        else:
            raise MissingOrDenied(
                "no such binding view is published for this scope",
                hint="publish the binding, then emit with the digest that was printed",
            )
        return await self.get(digest)

    async def latest(self, org: str, installation: str, capability: str) -> BindingView:
        """The newest view of a scope, for emitters and operators; never for a row that pinned one.

        Raises `MissingOrDenied` when none was published.
        """
        scope = (org, installation, capability)
        found = (await self._database.read(store.latest, [scope])).get(scope)
        if found is None:
            raise MissingOrDenied(
                "no binding view is published for this scope", hint="publish a binding for it"
            )
        return await self.get(found.digest)

    async def all_latest(self) -> list[BindingView]:
        """The newest view of every scope: for checks at a start, not for work."""
        return [await self.get(digest) for digest in await self._database.read(store.all_latest)]

    async def installations(self) -> Sequence[tuple[str, str]]:
        """Every (org, installation) with a published view; at most `installations_every_ms` old.

        The same list until there is another one: who makes something of it need not make it again.
        """
        now_ns = self._now_ns()
        known = self._installations
        if known is None or now_ns - known[0] >= self._settings.installations_every_ms * 1_000_000:
            found = await self._database.read(store.installations)
            known = self._installations = (now_ns, known[1] if known and known[1] == found else found)
        return known[1]

    async def _open(self, digest: str) -> BindingView:
        document = await self._database.read(store.load, digest)
        if document is None:
            raise MissingOrDenied(f"there is no binding view {digest}")
        try:
            return await asyncio.to_thread(open_view, document, digest)
        except Invalid as fault:
            raise Internal(
                f"the stored binding view {digest} cannot be used: {fault.message}",
                hint="nothing pinned to it is executed; restore its row of binding_view",
            ) from fault

    def _finish(self, digest: str, done: asyncio.Task[BindingView]) -> None:
        del self._opening[digest]
        if done.cancelled() or done.exception() is not None:
            return
        self._opened[digest] = done.result()
        while len(self._opened) > self._settings.views_max:
            self._opened.popitem(last=False)


def _new_view(view: BindingView) -> NewView:
    document = view.document
    pack_name, _, pack_version = document.pack.rpartition("@")
    return NewView(
        digest=view.digest,
        document=view.raw,
        org=document.org,
        installation=document.installation,
        capability=document.capability,
        pack_name=pack_name,
        pack_version=pack_version,
    )
