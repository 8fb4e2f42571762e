"""Handlers of the process that embeds doonce: coroutine functions on its loop, plain functions on threads of ours."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import structlog

from doonce.base.errors import DoonceError, Unavailable
from doonce.base.patterns import overlap
from doonce.catalog.compile import BindingView
from doonce.runtime.events import Event, EventHandlers, event_of
from doonce.wire.events import EventNotice

log = structlog.get_logger("doonce.handlers")

EventHandler: TypeAlias = Callable[[Event], None] | Callable[[Event], Awaitable[None]]
"""Does what an event means. It may run again for one event: it opens its own transaction and asks `inbox.once`."""


class LocalHandlers:
    """The registered handlers, and how they are run."""

    def __init__(self) -> None:
        self.handlers: EventHandlers[EventHandler] = EventHandlers()
        self._threads: ThreadPoolExecutor | None = None

    def open(self, threads: int) -> None:
        """Have threads for handlers that are plain functions: at most so many run at once."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="doonce-handler")

    def close(self) -> None:
        """Start no plain function any more; one that runs goes on to its end, unheard."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def hand(self, _: BindingView, notice: EventNotice) -> str:
        """Run the event's handler to its end; see `effects.handing.Hand`.

        A fault of the handler's is logged with its trace, here in the application's own log. What an operator is shown
        is its kind and place: its text may have anything in it (DESIGN rule 8).
        """
        event = event_of(notice)
        handler = self.handlers.find(event)
        if handler is None:
            raise Unavailable(f"no handler of this process takes {event.name}")
        try:
            await self._run(handler, event)
        except DoonceError:
            raise
        except Exception as failed:
            # As text: a renderer of traces may show the variables of each frame, and with them what was delivered.
            trace = "".join(traceback.format_exception(failed))
            log.error("handler.failed", name=event.name, event_id=event.id, trace=trace)  # noqa: TRY400
            raise Unavailable(described(failed)) from failed
        return "handled"

    async def _run(self, handler: EventHandler, event: Event) -> None:
        if inspect.iscoroutinefunction(handler):
            await handler(event)
            return
        if self._threads is None:
            raise Unavailable("this process is stopping")
        returned = await asyncio.get_running_loop().run_in_executor(self._threads, _called, handler, event)
        if inspect.isawaitable(returned):  # a callable object or a wrapper that gives a coroutine
            await returned


def _called(handler: EventHandler, event: Event) -> object:
    """On a thread: its result, or its fault. A future cannot carry `StopIteration`; it would never be done."""
    try:
        return handler(event)
    except StopIteration as failed:
        raise RuntimeError("a handler let StopIteration out") from failed


def described(failed: BaseException) -> str:
    """An exception's kind and the place where it was raised, and nothing of its text."""
    frames = traceback.extract_tb(failed.__traceback__)
    kind = type(failed).__qualname__
    if not frames:
        return kind
    last = frames[-1]
    return f"{kind} in {last.name} ({Path(last.filename).name}, line {last.lineno})"


def unrouted(handlers: Iterable[str], pack: str, published: Iterable[BindingView]) -> list[str]:
    """The handlers of a pack that none of these bindings hands an event to in this process."""
    routed = routed_here(published)
    return [
        name
        for name in handlers
        if name.startswith(f"{pack}.") and not any(overlap(name, pattern) for pattern in routed)
    ]


def routed_here(published: Iterable[BindingView]) -> set[str]:
    """What these bindings hand to handlers of the process that embeds doonce."""
    return {
        f"{pack_of(view)}.{pattern}"
        for view in published
        for route in (view.document.routes or {}).values()
        if route.push is None
        for pattern in route.handle
    }


def pack_of(view: BindingView) -> str:
    """The name of a view's pack, without its version."""
    return view.document.pack.partition("@")[0]
