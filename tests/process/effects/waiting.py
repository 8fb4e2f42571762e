"""Waiting for a fact, within a bound: no test here sleeps and hopes."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
EVERY_S = 0.02


def until(fact: Callable[[], T], what: str, *, seconds: float = 30.0) -> T:
    """The first true value of `fact`, which is asked again and again; fails with `what` after `seconds`."""
    deadline_s = time.monotonic() + seconds
    while not (value := fact()):
        assert time.monotonic() < deadline_s, f"not within {seconds} s: {what}"
        time.sleep(EVERY_S)
    return value
