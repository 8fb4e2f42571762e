"""What the simulator is, apart from sockets: contacts, ledger, script of faults, rate limit, credentials."""

import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from simulators.hubspot.contacts import Answer, Contacts, error
from simulators.hubspot.faults import Fault, Rule, Script
from simulators.hubspot.ledger import Ledger

_DAILY: Final = 500_000
_INTERVAL_MS: Final = 10_000


@dataclass(slots=True)
class RateLimit:
    """A fixed window, reported in the vendor's headers and enforced only where `enforced` is set."""

    calls_max: int = 190
    enforced: bool = False
    _window: int = 0
    _used: int = 0
    _used_today: int = 0

    def count(self) -> bool:
        """Count a call; whether it is within the limit."""
        window = time.monotonic_ns() // (_INTERVAL_MS * 1_000_000)
        if window != self._window:
            self._window, self._used = window, 0
        self._used += 1
        self._used_today += 1
        return not self.enforced or self._used <= self.calls_max

    def header_lines(self) -> str:
        """The headers, each with its line end."""
        return (
            f"X-HubSpot-RateLimit-Daily: {_DAILY}\r\n"
            f"X-HubSpot-RateLimit-Daily-Remaining: {max(0, _DAILY - self._used_today)}\r\n"
            f"X-HubSpot-RateLimit-Interval-Milliseconds: {_INTERVAL_MS}\r\n"
            f"X-HubSpot-RateLimit-Max: {self.calls_max}\r\n"
            f"X-HubSpot-RateLimit-Remaining: {max(0, self.calls_max - self._used)}\r\n"
        )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass(slots=True)
class Service:
    """One simulated portal. `token` empty: any bearer token is accepted, none is not."""

    ledger: Ledger
    token: str = ""
    contacts: Contacts = field(default_factory=lambda: Contacts(_now))
    script: Script = field(default_factory=Script)
    rate: RateLimit = field(default_factory=RateLimit)
    connections: int = 0

    def answer(
        self,
        method: str,
        target: str,
        authorization: str,
        body: bytes,
        conditions: Mapping[str, str],
    ) -> Answer:
        """Do what is asked and say so, as the vendor would."""
        if refused := self._unauthorized(authorization):
            return refused
        if not self.rate.count():
            return rate_limited()
        return self.contacts.handle(method, target, body, conditions)

    def answer_with(
        self,
        rule: Rule,
        method: str,
        target: str,
        authorization: str,
        body: bytes,
        conditions: Mapping[str, str],
    ) -> Answer:
        """The same under a fault: done only if the fault commits, and another answer where it says so."""
        done = self.answer(method, target, authorization, body, conditions) if rule.commits else Answer(0)
        match rule.fault:
            case Fault.REDIRECT:
                status = rule.status or 302
                return Answer(status, b"", done.committed, (("Location", rule.location),))
            case Fault.STATUS:
                retry = (("Retry-After", rule.retry_after),) if rule.retry_after else ()
                failed = failure(rule.status or 500)
                return Answer(failed.status, failed.body, done.committed, retry)
            case Fault.OK_FALSE:
                return Answer(200, b'{"ok":false,"error":"not_done"}', done.committed)
            case Fault.MALFORMED_JSON:
                return Answer(done.status, b'{"id":"512","properties":{', done.committed)
            case Fault.SECOND_JSON:
                return Answer(done.status, done.body + b'{"id":"513"}', done.committed)
            case Fault.EMPTY:
                return Answer(done.status, b"", done.committed)
            case _:
                return done

    def reset(self) -> None:
        """Forget contacts, faults and, for readers over HTTP, the ledger."""
        self.contacts = Contacts(_now)
        self.script.clear()
        self.ledger.reset()

    def _unauthorized(self, authorization: str) -> Answer | None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token and (not self.token or token == self.token):
            return None
        return error(
            401,
            "INVALID_AUTHENTICATION",
            "Authentication credentials not found. This API supports OAuth 2.0 authentication and you can "
            "find more details at https://developers.hubspot.com/docs/methods/auth/oauth-overview",
        )


def rate_limited() -> Answer:
    """The vendor's 429."""
    return error(
        429,
        "RATE_LIMITS",
        "You have reached your ten_secondly_rolling limit.",
        errorType="RATE_LIMIT",
        policyName="TEN_SECONDLY_ROLLING",
    )


def failure(status: int) -> Answer:
    """The vendor's error body for a status that is none of the operation's own."""
    if status == 429:
        return rate_limited()
    category = "SERVER_ERROR" if status >= 500 else "CLIENT_ERROR"
    return error(status, category, f"simulated {status}")
