"""SIGKILL around every commit between a provider's request and its event: what was answered with success is there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.process.effects.settings import Armed
from tests.process.effects.waiting import until
from tests.process.kill.boundaries import RECEIVER_OPERATIONS, WORKER_OPERATIONS, sides
from tests.process.kill.shop import Sender, opened

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def test_killed_at_each_commit_while_deliveries_come_in(
    database_url: str, tmp_path: Path, kill_seed: int
) -> None:
    """One process dies at each point, mid-stream; the sender sends what it has no success for to the next one."""
    rng = random.Random(f"receiving {kill_seed}")  # a seed is to be repeated
    points = [side for name in RECEIVER_OPERATIONS for side in sides(name)]
    rng.shuffle(points)
    sender = Sender(rng)
    with opened(database_url, tmp_path) as shop:
        following = shop.spawn()
        for point in points:
            doomed, following = following, shop.spawn()
            url = shop.serve(doomed, Armed(point, "kill", hit=rng.randint(1, 3)))
            sender.send_until_dead(url, doomed)
            doomed.wait_killed()
            held = shop.receipts()
            assert {one.digest for one in sender.taken} <= held["receipt"] | held["quarantine"], point
        url = shop.serve(following)
        sender.send_rest(url)
        until(shop.is_quiet, "the end of every derivation")
        following.stop()
        shared = {side for name in WORKER_OPERATIONS for side in sides(name)}
        assert shop.points() - shared == set(points), "nothing else durable happens here"
        assert shop.rejections() > 0
        shop.check(sender)
