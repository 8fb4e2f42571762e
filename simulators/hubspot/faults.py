"""The menu of faults, and the script that says which request gets which."""

import enum
import zlib
from typing import Final

import msgspec


class Fault(str, enum.Enum):
    """What goes wrong, in the order of an exchange. `commits` tells which ones do their effect first."""

    REFUSE = "refuse"
    """Connections are refused (the listening socket is closed), `times` plays no part, until restored."""
    RESET_ON_ACCEPT = "reset_on_accept"
    RESET_BEFORE_BODY = "reset_before_body"
    RESET_DURING_BODY = "reset_during_body"
    RESET_AFTER_BODY = "reset_after_body"
    CLOSE_UNANSWERED = "close_unanswered"
    COMMIT_RESET = "commit_reset"
    COMMIT_CLOSE = "commit_close"
    STALL = "stall"
    """Done, and never answered."""
    HALF_HEAD = "half_head"
    HALF_ANSWER = "half_answer"
    SLOW_DRIP = "slow_drip"
    """Done, and answered byte by byte, one each `delay_ms`."""
    LENGTH_SHORT = "length_short"
    """The body is longer than its Content-Length."""
    LENGTH_LONG = "length_long"
    """The body is shorter than its Content-Length; then the connection is closed."""
    INTERIM = "interim"
    """`count` interim (103) replies before the answer."""
    INTERIM_FLOOD = "interim_flood"
    """Interim replies without end."""
    REDIRECT = "redirect"
    STATUS = "status"
    """`status` with the vendor's error body, `retry_after` if given; not done, unless `commit`."""
    OK_FALSE = "ok_false"
    MALFORMED_JSON = "malformed_json"
    SECOND_JSON = "second_json"
    EMPTY = "empty"
    GIGABYTE = "gigabyte"
    GZIP_BOMB = "gzip_bomb"
    DEFLATE_BOMB = "deflate_bomb"
    CHUNK_GARBAGE = "chunk_garbage"
    GLUED_REPLY = "glued_reply"
    """A second reply right behind the first."""
    LATE_REPLY = "late_reply"
    """A second reply, `delay_ms` after the first, on the idle connection."""
    UNTIL_CLOSE = "until_close"
    """An HTTP/1.0 answer without a length, ended by the close of the connection."""
    CLOSE_IDLE = "close_idle"
    """Answered; then the kept connection is closed at once."""
    CLOSE_ON_NEXT = "close_on_next"
    """Answered; then the kept connection is closed when the next request comes, which is not read."""
    RESET_ON_NEXT = "reset_on_next"


_NO_EFFECT: Final = frozenset(
    {
        Fault.REFUSE,
        Fault.RESET_ON_ACCEPT,
        Fault.RESET_BEFORE_BODY,
        Fault.RESET_DURING_BODY,
        Fault.RESET_AFTER_BODY,
        Fault.CLOSE_UNANSWERED,
        Fault.REDIRECT,
        Fault.STATUS,
        Fault.OK_FALSE,
    }
)


class Rule(msgspec.Struct, forbid_unknown_fields=True):
    """`fault` for the next `times` requests with this method and a target that starts with `path`."""

    fault: Fault
    method: str = "*"
    path: str = "*"
    times: int = 1
    status: int = 0
    retry_after: str = ""
    location: str = "/elsewhere"
    delay_ms: int = 20
    count: int = 3
    commit: bool | None = None

    @property
    def commits(self) -> bool:
        """Whether the effect happens although something goes wrong."""
        return self.commit if self.commit is not None else self.fault not in _NO_EFFECT


class Script:
    """Rules in the order given; each request takes the first one that fits it."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(self, rule: Rule) -> None:
        """Append a rule."""
        self._rules.append(rule)

    def clear(self) -> None:
        """Forget all rules."""
        self._rules.clear()

    def rules(self) -> list[Rule]:
        """What is still to come."""
        return list(self._rules)

    def take(self, method: str, target: str) -> Rule | None:
        """The rule for this request, used up by it."""
        for rule in self._rules:
            if (
                rule.fault is not Fault.RESET_ON_ACCEPT
                and rule.method in ("*", method)
                and (rule.path == "*" or target.startswith(rule.path))
            ):
                return self._used(rule)
        return None

    def take_on_accept(self) -> Rule | None:
        """The rule for a connection that was just accepted, used up by it."""
        for rule in self._rules:
            if rule.fault is Fault.RESET_ON_ACCEPT:
                return self._used(rule)
        return None

    def _used(self, rule: Rule) -> Rule:
        rule.times -= 1
        if rule.times <= 0:
            self._rules.remove(rule)
        return rule


def bomb(wbits: int, plain_mib: int = 64) -> bytes:
    """`plain_mib` MiB of spaces, compressed about a thousandfold."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, wbits)
    mebibyte = b" " * 1_048_576
    return b"".join(deflater.compress(mebibyte) for _ in range(plain_mib)) + deflater.flush()
