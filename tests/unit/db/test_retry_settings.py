"""The pauses between runs of one transaction: exponential, full jitter, capped, and short in all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.db.fake import fake_database

from doonce.base.errors import Unavailable
from doonce.db.database import RetrySettings
from doonce.db.faults import Disconnected
from doonce.db.transaction import Txn

JITTER = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 10_000), JITTER)
def test_a_pause_is_within_its_cap_and_grows_with_the_tries(tries: int, jitter: float) -> None:
    settings = RetrySettings()
    pause_ms = settings.pause_ms(tries, jitter)
    assert 0 <= pause_ms <= settings.cap_ms
    assert pause_ms <= settings.pause_ms(tries + 1, jitter)


@given(st.integers(1, 100))
def test_full_jitter_spreads_over_the_whole_pause(tries: int) -> None:
    settings = RetrySettings()
    assert settings.pause_ms(tries, 0.0) == 0
    assert settings.pause_ms(tries, 0.5) * 2 == settings.pause_ms(tries, 1.0)


def test_all_pauses_together_stay_far_below_a_lease() -> None:
    settings = RetrySettings()
    assert sum(settings.pause_ms(tries, 1.0) for tries in range(1, settings.tries_max)) < 3_000


def test_contended_tries_are_fewer_since_each_has_waited() -> None:
    assert 1 <= RetrySettings().contended_tries_max < RetrySettings().tries_max


async def test_every_pause_is_drawn_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or whoever lost the same server at the same moment would all be back at the same moment."""
    drawn: list[float] = []

    def pause_ms(_: RetrySettings, tries: int, jitter: float) -> float:
        drawn.append(jitter)
        return 0.0

    def operation() -> Txn[None]:
        yield from ()

    monkeypatch.setattr(RetrySettings, "pause_ms", pause_ms)
    database, driver = fake_database(RetrySettings(tries_max=100))
    driver.fault = lambda _: Disconnected("no connection to the database")
    for attempt in (database.transact, database.read):
        drawn.clear()
        with pytest.raises(Unavailable):
            await attempt(operation)
        assert len(set(drawn)) == 99
        assert min(drawn) < 0.2
        assert max(drawn) > 0.8
