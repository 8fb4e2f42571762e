"""What the relay needs of the service: two idempotent questions about a handoff key."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from doonce.wire import AcceptRequest, Admission, Refused, RejectRequest


class Handoffs(Protocol):
    """The service, over HTTP (`http_port.HttpHandoffs`) or in the same process (`EmbeddedHandoffs`).

    Both calls may be repeated at will after a lost answer: the key's first durable admission is everybody's
    answer. A request that the service will not take comes back as `Refused`, or as a raised `DoonceError`.
    """

    async def accept(self, requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        """Return one answer for each request, in their order."""
        ...

    async def reject(self, request: RejectRequest) -> Admission | Refused:
        """Return the durable admission: the rejection, or the acceptance that came first."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddedHandoffs:
    """The port of a service that lives in this process, given as its two functions."""

    accept_all: Callable[[Sequence[AcceptRequest]], Awaitable[Sequence[Admission | Refused]]]
    reject_one: Callable[[RejectRequest], Awaitable[Admission | Refused]]

    async def accept(self, requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        """Call the service directly."""
        return await self.accept_all(requests)

    async def reject(self, request: RejectRequest) -> Admission | Refused:
        """Call the service directly."""
        return await self.reject_one(request)
