"""K1 for events: a push has succeeded only when the application's whole receipt fits."""

from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from tests.store.ingress.routes import view
from tests.unit.wire.test_events import notice

from doonce.base.errors import Unavailable
from doonce.base.secrets import Secret
from doonce.effects.handing import HandlerSettings, Pusher
from doonce.effects.telling import Inbox
from doonce.http import Client, NotSent, Replied, Request, Sent, Stage, Unanswered
from doonce.wire import EventReceipt, EventState, encode

INBOX = Inbox("https://crm.internal", "/doonce/events", Secret("token"))
RECEIPT = EventReceipt(
    event_id=notice().event_id,
    notice_digest=notice().digest,
    state=EventState.DUPLICATE,
    receipt_id="rcp_1",
)


class Application:
    """Answers as a test says, and keeps what was asked."""

    def __init__(self, answer: Sent) -> None:
        self.answer = answer
        self.asked: list[tuple[Request, dict[str, Secret]]] = []

    async def send(self, request: Request, *, secret_headers: dict[str, Secret], **_: Any) -> Sent:
        self.asked.append((request, secret_headers))
        return self.answer


def replied(body: bytes, status: int = 200, *, complete: bool = True) -> Replied:
    return Replied(status=status, headers=(), body=body, complete=complete, reason="")


async def push(application: Application, inboxes: dict[str, Inbox] | None = None) -> str:
    given = {"crm": INBOX} if inboxes is None else inboxes
    pusher = Pusher(cast("Client", application), given, HandlerSettings())
    return await pusher.hand(view(handle=["*"], push="crm"), notice())


async def test_a_push_is_the_notice_with_the_inboxs_credential() -> None:
    application = Application(replied(encode(RECEIPT)))
    assert await push(application) == "duplicate: rcp_1"
    ((request, secrets),) = application.asked
    assert (request.method, request.origin, request.target) == ("POST", INBOX.origin, INBOX.target)
    assert request.body == encode(notice())
    assert secrets["authorization"].reveal() == "Bearer token"


ANSWERS: dict[str, Callable[[], Sent]] = {
    "an error": lambda: replied(encode(RECEIPT), 500),
    "an accepted": lambda: replied(encode(RECEIPT), 202),
    "half a receipt": lambda: replied(encode(RECEIPT)[:-9]),
    "a body that was cut": lambda: replied(encode(RECEIPT), complete=False),
    "nothing": lambda: replied(b""),
    "an unknown field": lambda: replied(encode(RECEIPT)[:-1] + b',"more":1}'),
    "another event": lambda: replied(encode(msgspec.structs.replace(RECEIPT, event_id="evt_2"))),
    "another notice": lambda: replied(
        encode(msgspec.structs.replace(RECEIPT, notice_digest="sha256:" + "0" * 64))
    ),
    "no connection": lambda: NotSent(Stage.CONNECT, "refused"),
    "no answer": lambda: Unanswered("reset"),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_anything_but_the_whole_receipt_is_pushed_again(name: str) -> None:
    with pytest.raises(Unavailable):
        await push(Application(ANSWERS[name]()))


async def test_an_inbox_that_is_not_configured_is_said() -> None:
    application = Application(replied(encode(RECEIPT)))
    with pytest.raises(Unavailable, match="no inbox named 'crm' is configured"):
        await push(application, {})
    assert not application.asked
