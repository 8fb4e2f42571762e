"""Every named point at which a process can die, and what makes a worker come by it."""

from __future__ import annotations

from enum import Enum

CALLS = ("call.connected", "call.marked", "call.answered")
"""Each side of the network call."""

IN_FLIGHT = "call.in_flight"
"""Not a named point: the request has arrived, and its answer never comes. The test kills from outside."""

WORKER_OPERATIONS = (
    "claim_and_prepare", "mark", "finish", "renew", "claim_questions", "prepare_reads", "resolve", "append_evidence",
    "claim_completions", "settle", "sweep", "erase", "retire",
)  # fmt: skip
"""The durable commits of a working process."""

ACCEPT_OPERATIONS = ("accept", "reject")
"""The durable commits of acceptance."""

RECEIVER_OPERATIONS = ("receive", "note", "claim_unread", "finish_derivations", "claim_handings")
"""The durable commits between a provider's request and its event at the door of the application."""

READER_OPERATIONS = ("claim_hydrations", "prepare_reads", "mark", "finish_hydrations")
"""The durable commits between an event and its object at the door of the application."""
CATCH_UP_OPERATIONS = ("start_catch_up", "claim_catch_ups", "begin_pass", "turn_page")
"""The durable commits between a gap and its end, beside those of every call."""

HANDLER = ("handler.inside", "handler.before_commit", "handler.after_commit")
"""Inside a handler of the embedding application, around the commit of its own transaction."""

EMBEDDED_OPERATIONS = ("finish_derivations", "claim_handings", "settle")
"""The durable commits of the embedding process between an event and the end of its handing."""

OPERATOR_OPERATIONS = frozenset(
    {
        "add", "adopt", "_adopt", "append", "cancel", "close_gap", "connect", "disconnect", "_examine", "follow",
        "issue", "open_gap", "publish", "raise_mark", "reconnect", "release", "replace", "replay", "revoke", "rotate",
        "set_mark",
    }
)  # fmt: skip
"""The durable commits of somebody who sees an error and asks again: setting up, deciding, the check at each start."""

LOOKS = frozenset({"look_at"})
"""Locked looks that write nothing: dying in one leaves nothing behind."""

PLUMBING = frozenset({"_operation", "claim"})
"""Call sites that pass on an operation which is named elsewhere."""


class Needs(str, Enum):
    """What a round of commands must meet so that a worker reaches some point."""

    NOTHING = "nothing"
    UNKNOWN = "an outcome that nobody knows"
    SLOW = "a call that outlasts a third of its lease"


NEEDS = {
    "claim_questions": Needs.UNKNOWN,
    "prepare_reads": Needs.UNKNOWN,
    "resolve": Needs.UNKNOWN,
    "renew": Needs.SLOW,
}


def sides(operation: str) -> tuple[str, str]:
    """Before and after the commit of an operation."""
    return f"{operation}.before_commit", f"{operation}.after_commit"


def needs(point: str) -> Needs:
    """What it takes to come by this point."""
    return NEEDS.get(point.partition(".")[0], Needs.NOTHING)


def groups() -> list[tuple[str, ...]]:
    """The points of working processes, some to a database; late evidence is the paused processes' part."""
    operations = [name for name in WORKER_OPERATIONS if name != "append_evidence"]
    points = [*CALLS, IN_FLIGHT, *(side for name in operations for side in sides(name))]
    count = 4
    return [tuple(points[number::count]) for number in range(count)]
