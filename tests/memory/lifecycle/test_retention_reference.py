"""Retention and strengthening against a slow reading of FSRS-4.5's and Ebbinghaus's formulas in exact arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memsvc.memory.lifecycle.policy import Policy, policy_of
from memsvc.memory.lifecycle.retention import (
    DAY_US,
    SAME_USE_US,
    STABILITY_MAX_DAYS,
    Columns,
    rank_factor,
    retention,
    retentions,
    strengthened,
)
from memsvc.model import Access, Fact, Layer, Memory, MemoryType, Namespace, Scope

START_US = 1_700_000_000_000_000
# Default parameters of FSRS-4.5, w[0] to w[16], as its wiki lists them.
W = tuple(
    map(
        Decimal,
        "0.4872 1.4003 3.7145 13.8206 5.1618 1.2298 0.8975 0.031 1.6474 0.1367 1.0461 2.1072 0.0793 0.3246 1.587 "
        "0.2272 2.8755".split(),
    )
)
DIFFICULTY = 5
BASES = {
    MemoryType.EVENT: "28",
    MemoryType.FACT: "56",
    MemoryType.PREFERENCE: "168",
    MemoryType.DECISION: "168",
    MemoryType.RULE: "168",
}
FACTORS = {Layer.WORKING: "0.1", Layer.EPISODIC: "0.5", Layer.SEMANTIC: "1"}

shares = st.floats(0, 1)
layers = st.sampled_from(list(Layer))
kinds = st.sampled_from(list(MemoryType))
curves = st.sampled_from(["power", "exponential"])
times_us = st.integers(-400 * DAY_US, 20_000 * DAY_US).map(lambda age_us: START_US + age_us)


def policy_with(curve: str) -> Policy:
    return policy_of(f'{{"curve": "{curve}"}}', 0.6, 0.4)


def memory(**fields) -> Memory:
    base = {
        "memory_id": "mem_018bcfe5-6800-7000-8000-000000000001",
        "version": 1,
        "sequence": 1,
        "namespace": Namespace("default", Scope.USER, "u"),
        "layer": Layer.SEMANTIC,
        "type": MemoryType.FACT,
        "content": "x",
        "create_time_us": START_US,
        "update_time_us": START_US,
        "occur_time_us": START_US,
    }
    return Memory(**{**base, **fields})


def slow_curve(curve: str, age_us: int, stability: Decimal) -> Decimal:
    days = Decimal(max(age_us, 0)) / DAY_US
    if curve == "power":
        return 1 / (1 + Decimal(19) / 81 * days / stability).sqrt()
    rate = -Decimal("0.9").ln() / stability  # e^(-rate t) is 0.9 at t = stability
    return (-rate * days).exp()


def slow_base(it: Memory) -> Decimal | None:
    """None: never fades."""
    return Decimal(FACTORS[it.layer]) * Decimal(BASES[it.type]) if it.layer in FACTORS else None


def slow_retention(it: Memory, access: Access, now_us: int, curve: str) -> float:
    base = slow_base(it)
    if base is None or it.fact is not None or it.skill:
        return 1.0
    stability = max(base, Decimal(access.stability_days))
    stability *= (Decimal(4).ln() * (2 * Decimal(it.importance) - 1)).exp()
    stability *= (1 + Decimal(it.confidence)) / 2
    touched_us = max(it.update_time_us, it.occur_time_us, access.last_time_us)
    return float(slow_curve(curve, now_us - touched_us, stability))


@settings(max_examples=200, deadline=None)
@given(
    curves,
    layers,
    kinds,
    shares,
    shares,
    st.tuples(times_us, times_us, st.just(0) | times_us),
    st.just(0.0) | st.floats(0.1, 36_500),
    st.sampled_from(["", "fact", "skill"]),
    times_us,
)
def test_retention_is_the_formula(curve, layer, kind, importance, confidence, touched, stability, kept, now_us):
    policy = policy_with(curve)
    it = memory(
        layer=layer,
        type=kind,
        importance=importance,
        confidence=confidence,
        update_time_us=touched[0],
        occur_time_us=touched[1],
        fact=Fact("k", 1) if kept == "fact" else None,
        skill="name: x" if kept == "skill" else "",
    )
    access = Access(last_time_us=touched[2], stability_days=stability)
    with localcontext() as context:
        context.prec = 40
        expected = slow_retention(it, access, now_us, curve)
    assert retention(it, access, now_us, policy) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    columns = Columns(
        layer=np.array([layer], np.uint8),
        type=np.array([kind], np.uint8),
        importance=np.array([importance]),
        confidence=np.array([confidence]),
        touched_us=np.array([max(touched)], np.int64),
        stability_days=np.array([stability]),
        exempt=np.array([bool(kept)], np.bool_),
    )
    assert retentions(columns, now_us, policy)[0] == pytest.approx(expected, rel=1e-9, abs=1e-300)


def slow_uses(it: Memory, uses_us: list[int], curve: str) -> tuple[int, int, float, int]:
    """count, last time, stability and days after the uses: FSRS's next stability after recall, rating "good"."""
    stability = slow_base(it)
    last_us = 0
    for used_us in uses_us:
        since_us = used_us - (last_us or it.create_time_us)
        counts = not last_us or since_us >= SAME_USE_US
        if stability is not None and counts:
            known = slow_curve(curve, since_us, stability)
            gain = W[8].exp() * (11 - DIFFICULTY) * (-W[9] * stability.ln()).exp() * ((W[10] * (1 - known)).exp() - 1)
            stability = min(stability * (1 + gain), Decimal(STABILITY_MAX_DAYS))
        last_us = max(last_us, used_us)
    days = len({used_us // DAY_US for used_us in uses_us})
    return len(uses_us), last_us, 0.0 if stability is None else float(stability), days


@settings(max_examples=150, deadline=None)
@given(
    curves,
    layers,
    kinds,
    st.lists(st.integers(0, 2 * SAME_USE_US) | st.integers(0, 3000 * DAY_US), min_size=1, max_size=12),
)
@example("power", Layer.SEMANTIC, MemoryType.FACT, [0, SAME_USE_US])  # an hour later is another use
def test_uses_strengthen_by_the_formula(curve, layer, kind, gaps_us):
    it = memory(layer=layer, type=kind)
    uses_us = [START_US + sum(gaps_us[: at + 1]) for at in range(len(gaps_us))]
    access = Access(proposed_time_us=5)
    for used_us in uses_us:
        access = strengthened(access, it, used_us, policy_with(curve))
    with localcontext() as context:
        context.prec = 40
        count, last_us, stability, days = slow_uses(it, uses_us, curve)
    assert (access.count, access.last_time_us, access.day_count, access.proposed_time_us) == (count, last_us, days, 5)
    assert access.stability_days == pytest.approx(stability, rel=1e-9)


def test_a_use_that_comes_late_counts_but_takes_nothing_back():
    """Another process's flush may bring a use that is older than the last."""
    it, policy = memory(), policy_with("power")
    newest = strengthened(Access(), it, START_US + 50 * DAY_US, policy)
    late = strengthened(newest, it, START_US + 10 * DAY_US, policy)
    assert (late.count, late.day_count) == (2, 1)
    assert (late.last_time_us, late.stability_days) == (newest.last_time_us, newest.stability_days)


@given(
    st.lists(shares, max_size=8),
    shares.filter(lambda limit: limit == 0 or limit > 1e-6),
    st.sampled_from([0.0, 0.3, 0.7, 1.0]),
)
def test_rank_is_whole_down_to_the_limit_then_falls_in_a_line_to_its_floor(values, limit, floor):
    policy = policy_of(f'{{"rank_floor": {floor}}}', limit, 0.0)
    expected = [1.0 if value >= limit else floor + (1 - floor) * value / limit for value in values]
    np.testing.assert_allclose(rank_factor(np.array(values), policy), expected, rtol=1e-5, atol=1e-7)
