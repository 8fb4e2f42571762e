"""The link that an accepted create makes: in the transaction that ends its command, and never against another link.

| what is known of the created object          | the link                                | the command's end         |
|----------------------------------------------|-----------------------------------------|---------------------------|
| neither record nor object has a link         | made, under the command's own principal | as it is                  |
| the two are linked to each other already     | stays, whatever its state               | as it is                  |
| the local record is linked to another object | nothing changes                         | accepted, says not linked |
| the object is linked to another local record | nothing changes                         | accepted, says not linked |
| no remote id, or one that cannot be stored   | nothing changes                         | accepted, says not linked |

The effect has happened, so no conflict undoes its acceptance; a link that stands is never moved (DESIGN: RemoteLink is
created by create, adopt, finalize, rebind). The link's id is derived from its command: a rerun finds its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from doonce.base.errors import Conflict, Invalid
from doonce.base.json import loads
from doonce.base.limits import LIMITS
from doonce.base.records import Record
from doonce.catalog.model import RESULT_REMOTE_ID
from doonce.commands.model import Command
from doonce.db.transaction import Txn
from doonce.links import store as links
from doonce.links.model import NewLink, RemoteLink

UNLINKED: Final = "not linked: "
"""How the reason of an end says that a create was accepted and has no link."""


class Linked(str, Enum):
    """What became of the link of an accepted create."""

    MADE = "made"
    KEPT = "kept"
    REFUSED = "refused"


class Creation(Record, frozen=True):
    """An accepted create: whose object of this kind the result names."""

    command: Command
    kind: str
    result_json: str


class Linking(Record, frozen=True):
    """What became of it, and why there is no link where there is none."""

    linked: Linked
    why: str = ""

    def said(self, reason: str) -> str:
        """The reason of the command's end, with what an operator has to know of its link."""
        return reason if self.linked is not Linked.REFUSED else f"{reason}; {UNLINKED}{self.why}"


def link_of(creation: Creation) -> NewLink | str:
    """The link that a create's result asks for, or why there can be none."""
    result = loads(creation.result_json.encode(), bytes_max=LIMITS.response_bytes_max)
    remote_id = result.get(RESULT_REMOTE_ID) if isinstance(result, dict) else None
    if not isinstance(remote_id, str):
        return "what proves the effect names no object"
    command = creation.command
    wanted = NewLink(
        id=f"lnk_{command.id[4:]}",
        org=command.scope.org,
        installation=command.scope.installation,
        principal_id=command.pins.principal_id,
        generation=command.pins.generation,
        kind=creation.kind,
        local_ref=command.local_ref,
        remote_id=remote_id,
    )
    try:
        wanted.check()
    except Invalid as refused:
        return f"the object's id cannot be kept: {refused.message}"
    return wanted


def hold(creations: Iterable[Creation]) -> Txn[None]:
    """Lock the links that these may meet, at their place in the lock order: before lanes (PROTOCOL T4)."""
    wanted = [link for link in map(link_of, creations) if isinstance(link, NewLink)]
    yield from links.hold(wanted)


def finalize(creations: Sequence[Creation]) -> Txn[list[Linking]]:
    """Make each link, or leave what stands; in the transaction that ends the commands, after `hold`."""
    asked = [link_of(creation) for creation in creations]
    adopted = yield from links.adopt([link for link in asked if isinstance(link, NewLink)])
    answers = iter(adopted)
    found: list[Linking] = []
    for wanted in asked:
        if isinstance(wanted, str):
            found.append(Linking(Linked.REFUSED, wanted))
            continue
        answer = next(answers)
        if isinstance(answer, Conflict):
            found.append(Linking(Linked.REFUSED, answer.message))
        else:  # the same object in a newer generation is the same link
            made = isinstance(answer, RemoteLink) and answer.id == wanted.id
            found.append(Linking(Linked.MADE if made else Linked.KEPT))
    return found
