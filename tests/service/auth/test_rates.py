"""Token buckets on a clock of the test's own: what they admit, how long they say to wait, what they keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.errors import RateLimited
from memsvc.service.auth.rates import MINUTE_US, PER_MINUTE_MAX, SWEEP_MIN, Bucket, Rates
from memsvc.service.auth.rules import RULES, AdminRule, Kind, kind_of

PER_MINUTE = st.one_of(st.integers(1, 200), st.integers(1, PER_MINUTE_MAX))
PAUSES_US = st.lists(st.one_of(st.just(0), st.integers(0, 1000), st.integers(0, 3 * MINUTE_US)), max_size=300)


class Timer:
    def __init__(self) -> None:
        self.now_us = 5

    def __call__(self) -> int:
        return self.now_us


def rates(reads: int = 0, writes: int = 0) -> tuple[Rates, Timer]:
    timer = Timer()
    return Rates({Kind.READ: reads, Kind.WRITE: writes}, timer_us=timer), timer


def wait_us(kept: Rates, token_id: str = "tok_1", kind: Kind = Kind.READ, own: int = 0) -> int:
    """0 for an admitted call."""
    try:
        kept.take(token_id, kind, own)
    except RateLimited as error:
        return error.retry_us
    return 0


@given(PER_MINUTE, PAUSES_US)
def test_over_any_stretch_no_more_than_rate_times_time_and_burst(per_minute, pauses_us):
    bucket, now_us, admitted = Bucket(per_minute, 0), 0, []
    for pause_us in pauses_us:
        now_us += pause_us
        if not bucket.take(per_minute, now_us):
            admitted.append(now_us)
    for first, start_us in enumerate(admitted):
        for last in range(first, len(admitted)):
            allowed = per_minute + (admitted[last] - start_us) * per_minute / MINUTE_US
            assert last - first + 1 <= allowed


@given(PER_MINUTE, PAUSES_US)
def test_after_the_named_wait_a_call_is_admitted_and_not_before(per_minute, pauses_us):
    bucket, now_us = Bucket(per_minute, 0), 0
    bucket.level = bucket.level % MINUTE_US  # empty, so that small schedules meet refusals at any rate
    for pause_us in pauses_us:
        now_us += pause_us
        wait = bucket.take(per_minute, now_us)
        if not wait:
            continue
        assert bucket.take(per_minute, now_us + wait - 1) == 1
        now_us += wait
        assert bucket.take(per_minute, now_us) == 0


def test_a_minutes_calls_may_come_at_once_and_come_back_evenly():
    kept, timer = rates(reads=60)
    assert [wait_us(kept) for _ in range(61)] == [0] * 60 + [1_000_000]
    timer.now_us += 250_000
    assert wait_us(kept) == 750_000
    timer.now_us += 750_000
    assert [wait_us(kept), wait_us(kept)] == [0, 1_000_000]


def test_a_clock_that_stands_or_goes_back_admits_nothing_more():
    bucket = Bucket(1, 1000)
    assert bucket.take(1, 1000) == 0
    assert bucket.take(1, 0) == MINUTE_US
    assert bucket.take(1, 1000) == MINUTE_US


def test_tokens_and_kinds_have_buckets_of_their_own_and_own_limits_go_first():
    kept, _ = rates(reads=1)
    assert [wait_us(kept), wait_us(kept)] == [0, MINUTE_US]
    assert wait_us(kept, "tok_2") == 0
    assert [wait_us(kept, kind=Kind.WRITE) for _ in range(5)] == [0] * 5, "writes are unlimited here"
    assert [wait_us(kept, "tok_3", Kind.WRITE, 2) for _ in range(3)] == [0, 0, MINUTE_US // 2]
    assert [wait_us(kept, "tok_4", Kind.READ, 2) for _ in range(3)] == [0, 0, MINUTE_US // 2]


def test_a_refusal_names_the_limit():
    kept, _ = rates(writes=1)
    kept.take("tok_1", Kind.WRITE, 0)
    with pytest.raises(RateLimited, match="1 write calls a minute") as caught:
        kept.take("tok_1", Kind.WRITE, 0)
    assert caught.value.metadata == {"limit": "writes_per_minute", "per_minute": "1"}


def test_full_buckets_are_forgotten_and_others_never():
    kept, timer = rates(reads=1)
    for number in range(10 * SWEEP_MIN):
        timer.now_us += MINUTE_US // 100  # the last hundred are not full yet
        assert wait_us(kept, f"tok_{number}") == 0
        assert len(kept) <= SWEEP_MIN + 1
    assert all(wait_us(kept, f"tok_{10 * SWEEP_MIN - back}") > 0 for back in range(1, 100))


def test_without_limits_nothing_is_kept():
    kept, _ = rates()
    assert wait_us(kept) == 0
    assert len(kept) == 0


def test_the_table_of_rules_says_what_reads():
    kinds = {call: kind_of(row) for call, row in RULES.items()}
    reading = {call for call, kind in kinds.items() if kind is Kind.READ}
    assert {"MemoryService/Recall", "MemoryService/Watch", "ContextService/AssembleContext"} <= reading
    assert not reading & {"MemoryService/Write", "MemoryService/Review", "PermanentService/Put", "SessionService/End"}
    assert not any(isinstance(RULES[call], AdminRule) for call in reading)
    assert kind_of(None) is Kind.WRITE
