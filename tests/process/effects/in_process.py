"""Waiting for facts while an engine works in this very process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")


async def eventually(fact: Callable[[], T], what: str, *, seconds: float = 30.0) -> T:
    """The first true value of `fact`, which is asked again and again; fails with `what` after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            while not (value := fact()):
                await asyncio.sleep(0.02)
            return value
    except TimeoutError:
        pytest.fail(f"not within {seconds} s: {what}")
