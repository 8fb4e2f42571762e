"""How long a claimer pauses. Each draws its own time: many that began at one moment do not come back at one."""

from __future__ import annotations

import random
from typing import Final

SHORTEST_POLL: Final = 0.5
LONGEST_SAT_OUT: Final = 1.5


def until_next_look(poll_seconds: float, whole_in_seconds: float) -> float:
    """Half a poll's time up to a whole one; less where something may have been put in below a floor.

    `whole_in_seconds`: how long a floor may still hide what was put in below it.
    """
    below_seconds = max(whole_in_seconds, poll_seconds / 5)
    return min(_spread(poll_seconds, SHORTEST_POLL, 1.0), below_seconds)


def after_failure(poll_seconds: float) -> float:
    """Half a poll's time up to one and a half: so the end of an outage is met by one after the other."""
    return _spread(poll_seconds, SHORTEST_POLL, LONGEST_SAT_OUT)


def _spread(seconds: float, least: float, most: float) -> float:
    return seconds * random.uniform(least, most)  # noqa: S311 (spreads load; not a secret)
