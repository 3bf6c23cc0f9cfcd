"""Retention: the formula, its monotony, and the vectorised twin against the scalar."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.errors import ConfigInvalid
from memsvc.memory.lifecycle.policy import policy_of
from memsvc.memory.lifecycle.retention import (
    DAY_US,
    Columns,
    rank_factor,
    retention,
    retentions,
    strengthened,
)
from memsvc.model import Access, Fact, Layer, Memory, MemoryType, Namespace, Scope

START_US = 1_700_000_000_000_000
POLICIES = [policy_of("", 0.6, 0.4), policy_of('{"curve": "exponential"}', 0.6, 0.4)]
policies = st.sampled_from(POLICIES)
shares = st.floats(0, 1)
days = st.floats(0, 20_000)
layers = st.sampled_from(list(Layer))
kinds = st.sampled_from(list(MemoryType))


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


@given(policies, layers, kinds, shares, shares, days, days)
def test_older_is_never_better_remembered(policy, layer, kind, importance, confidence, one, other):
    it = memory(layer=layer, type=kind, importance=importance, confidence=confidence)
    near, far = sorted((one, other))
    first = retention(it, Access(), START_US + round(near * DAY_US), policy)
    later = retention(it, Access(), START_US + round(far * DAY_US), policy)
    assert 0.0 <= later <= first <= 1.0


@given(policies, layers, kinds, days, st.tuples(shares, shares), st.tuples(shares, shares))
def test_important_and_sure_keeps_longer(policy, layer, kind, age, importances, confidences):
    at_us = START_US + round(age * DAY_US)
    low, high = sorted(importances), sorted(confidences)
    weak = memory(layer=layer, type=kind, importance=low[0], confidence=high[0])
    strong = msgspec.structs.replace(weak, importance=low[1], confidence=high[1])
    assert retention(weak, Access(), at_us, policy) <= retention(strong, Access(), at_us, policy) + 1e-12


@given(policies, kinds, st.lists(st.floats(0.1, 400), min_size=1, max_size=12))
def test_each_use_strengthens(policy, kind, gaps):
    it, access, at_us = memory(type=kind), Access(), START_US
    for gap in gaps:
        at_us += round(gap * DAY_US)
        used = strengthened(access, it, at_us, policy)
        assert used.count == access.count + 1
        later_us = at_us + 100 * DAY_US
        assert retention(it, used, later_us, policy) >= retention(it, access, later_us, policy)
        access = used


def test_uses_in_one_hour_count_once_for_strength():
    first = strengthened(Access(), memory(), START_US + 10 * DAY_US, POLICIES[0])
    again = strengthened(first, memory(), START_US + 10 * DAY_US + 60_000_000, POLICIES[0])
    assert (again.count, again.stability_days) == (2, first.stability_days)


def test_the_curve_is_nine_tenths_at_its_stability():
    for policy in POLICIES:
        it = memory(confidence=1.0, importance=0.5)
        at_us = START_US + round(policy.stability_days.fact * DAY_US)
        assert retention(it, Access(), at_us, policy) == pytest.approx(0.9)


def test_facts_skills_and_permanent_layers_never_fade():
    for it in (memory(fact=Fact("k", 1)), memory(skill="name: x"), memory(layer=Layer.PROCEDURAL)):
        assert retention(it, Access(), START_US + 50_000 * DAY_US, POLICIES[0]) == 1.0


@given(
    policies, st.lists(st.tuples(layers, kinds, shares, shares, days, st.floats(0, 900), st.booleans()), max_size=20)
)
def test_the_columns_agree_with_one_by_one(policy, rows):
    now_us = START_US + 20_000 * DAY_US
    memories = [
        memory(
            layer=layer,
            type=kind,
            importance=importance,
            confidence=confidence,
            update_time_us=now_us - round(age * DAY_US),
            fact=Fact("k", 1) if exempt else None,
        )
        for layer, kind, importance, confidence, age, _, exempt in rows
    ]
    accesses = [Access(stability_days=stability) for *_, stability, _ in rows]
    columns = Columns(
        layer=np.array([m.layer for m in memories], np.uint8),
        type=np.array([m.type for m in memories], np.uint8),
        importance=np.array([m.importance for m in memories]),
        confidence=np.array([m.confidence for m in memories]),
        touched_us=np.array([max(m.update_time_us, m.occur_time_us) for m in memories], np.int64),
        stability_days=np.array([a.stability_days for a in accesses]),
        exempt=np.array([m.fact is not None for m in memories], np.bool_),
    )
    slow = [retention(m, a, now_us, policy) for m, a in zip(memories, accesses, strict=True)]
    np.testing.assert_allclose(retentions(columns, now_us, policy), slow, rtol=1e-9)


def test_rank_falls_only_below_the_limit():
    policy = POLICIES[0]
    factors = rank_factor(np.array([1.0, 0.6, 0.3, 0.0]), policy)
    assert factors[:2].tolist() == [1.0, 1.0]
    assert 1.0 > factors[2] > factors[3] == policy.rank_floor


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"curve": "line"}', '{"stability_days": {"fact": 0}}', '{"stability_days": {"facts": 3}}']
)
def test_a_malformed_policy_is_refused(text):
    with pytest.raises(ConfigInvalid, match="lifecycle_policy"):
        policy_of(text, 0.6, 0.4)
    with pytest.raises(ConfigInvalid, match="archive_below"):
        policy_of("", 0.3, 0.4)
