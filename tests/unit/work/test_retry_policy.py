"""When a try is repeated: exponential, full jitter, capped, never before a provider said; and when it is given up."""

from hypothesis import given
from hypothesis import strategies as st

from doonce.work.model import RetryPolicy

JITTER = st.floats(0, 1, exclude_max=True)
POLICIES = st.builds(RetryPolicy, base_us=st.integers(1, 10**7), cap_us=st.integers(10**7, 10**10))


@given(POLICIES, st.integers(0, 10_000), JITTER, st.integers(0, 10**11))
def test_a_delay_is_never_under_its_floor_nor_over_both_bounds(
    policy: RetryPolicy, count: int, jitter: float, floor_us: int
) -> None:
    delay_us = policy.delay_us(count, jitter, floor_us)
    assert floor_us <= delay_us <= max(policy.cap_us, floor_us)
    assert isinstance(delay_us, int)


@given(POLICIES, st.integers(0, 100), JITTER)
def test_delays_grow_with_the_count_until_the_cap(policy: RetryPolicy, count: int, jitter: float) -> None:
    assert policy.delay_us(count, jitter) <= policy.delay_us(count + 1, jitter)


@given(POLICIES, st.integers(1, 60))
def test_full_jitter_uses_the_whole_range(policy: RetryPolicy, count: int) -> None:
    ceiling_us = min(policy.cap_us, policy.base_us * 2 ** (count - 1))
    assert policy.delay_us(count, 0.0) == 0
    assert policy.delay_us(count, 0.5) == ceiling_us // 2
    assert policy.delay_us(count, 1 - 2**-53) in (ceiling_us, ceiling_us - 1)


@given(st.integers(0, 100), st.integers(0, 2**60), st.integers(0, 2**60))
def test_failures_are_bounded_in_number_and_in_time(
    failures: int, first_failed_at: int, passed_us: int
) -> None:
    policy = RetryPolicy()
    exhausted = policy.exhausted_failures(failures, first_failed_at, first_failed_at + passed_us)
    assert exhausted == (failures >= policy.failures_max or passed_us >= policy.failing_us_max)


def test_failures_without_a_first_one_are_bounded_in_number_only() -> None:
    policy = RetryPolicy()
    assert not policy.exhausted_failures(policy.failures_max - 1, None, 2**60)
    assert policy.exhausted_failures(policy.failures_max, None, 0)
