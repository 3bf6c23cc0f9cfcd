"""Retention: how well a memory is still remembered, 1 to 0.

Purpose: one formula, as a scalar for one memory and vectorised for the columns of a segment; the scalar is the oracle.

Retention of a memory that was last touched t days ago and has stability S, in days:
- power (default): (1 + 19/81 * t/S) ** -0.5, the forgetting curve of FSRS-4.5
  (github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm); 0.9 at t = S.
- exponential: 0.9 ** (t/S): Ebbinghaus's e^(-t/S) as MemoryBank has it (arXiv 2305.10250), scaled to 0.9 at t = S.
S is the base of layer and type, or what uses have made of it, times importance_factor ** (2 * importance - 1), times
(1 + confidence) / 2. Touched: written, merged with the same said again, used, or (an event in the future) happening.

A use lengthens S by FSRS-4.5's rule for a good answer of middle difficulty (w8, w9, w10 of its default parameters):
S * (1 + 6 * e^w8 * S^-w9 * (e^(w10 * (1 - R)) - 1)). A use right after the last one finds R near 1 and adds nearly
nothing; within an hour it counts as none.

Threading: pure functions.

Rejected: MemoryBank's S + 1 per recall (twenty recalls in one task would count as twenty days' worth), counting age
from the occur time (a year of chat imported today would be forgotten tonight).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.memory.lifecycle.policy import Policy
from memsvc.model import Access, Layer, Memory, MemoryType

DAY_US = 86_400_000_000
SAME_USE_US = 3_600_000_000
STABILITY_MAX_DAYS = 36_500.0  # FSRS's longest interval
_FACTOR = 19.0 / 81.0
_W8, _W9, _W10 = 1.6474, 0.1367, 1.0461
_EASE = 6.0  # 11 less the difficulty, which goes from 1 to 10
NO_ACCESS = Access()


def never_fades(memory: Memory) -> bool:
    """Exact facts and skills are kept by their own services, whatever their age."""
    return memory.fact is not None or bool(memory.skill)


def _curve(age_days: float, stability_days: float, policy: Policy) -> float:
    share = max(age_days, 0.0) / stability_days
    left: float = 0.9**share if policy.curve == "exponential" else (1.0 + _FACTOR * share) ** -0.5
    return left


def retention(memory: Memory, access: Access, now_us: int, policy: Policy) -> float:
    """How well the memory is remembered at a time."""
    if never_fades(memory):
        return 1.0
    base = policy.base_days(memory.layer, memory.type)
    touched_us = max(memory.update_time_us, memory.occur_time_us, access.last_time_us)
    stability = max(base, access.stability_days)
    stability *= policy.importance_factor ** (2.0 * memory.importance - 1.0) * (1.0 + memory.confidence) / 2.0
    return _curve((now_us - touched_us) / DAY_US, stability, policy)


class Columns(msgspec.Struct, frozen=True):
    """What retention hangs on, one entry a memory: enum numbers, shares, UTC microseconds, days.

    `exempt`: facts and skills. `stability_days` 0 where there was no use.
    """

    layer: NDArray[np.uint8]
    type: NDArray[np.uint8]
    importance: NDArray[np.float64]
    confidence: NDArray[np.float64]
    touched_us: NDArray[np.int64]
    stability_days: NDArray[np.float64]
    exempt: NDArray[np.bool_]


def retentions(columns: Columns, now_us: int, policy: Policy) -> NDArray[np.float64]:
    """(n,) `retention` of each memory."""
    bases = np.full((max(Layer) + 1, max(MemoryType) + 1), np.inf)
    for layer in Layer:
        for kind in MemoryType:
            bases[layer, kind] = policy.base_days(layer, kind)
    stability = np.maximum(bases[columns.layer, columns.type], columns.stability_days)
    stability = stability * policy.importance_factor ** (2.0 * columns.importance - 1.0)
    stability *= (1.0 + columns.confidence) / 2.0
    share = np.maximum(now_us - columns.touched_us, 0) / DAY_US / stability
    values = 0.9**share if policy.curve == "exponential" else (1.0 + _FACTOR * share) ** -0.5
    return np.where(columns.exempt, 1.0, values)


def rank_factor(values: NDArray[np.float64], policy: Policy) -> NDArray[np.float32]:
    """(n,) what retention leaves of a score: all of it down to `fade_below`, then less, never below `rank_floor`."""
    if policy.fade_below == 0.0:
        return np.ones(values.shape[0], np.float32)
    share = np.minimum(values / policy.fade_below, 1.0)
    return (policy.rank_floor + (1.0 - policy.rank_floor) * share).astype(np.float32)


def strengthened(access: Access, memory: Memory, used_us: int, policy: Policy) -> Access:
    """What one more use makes of a memory's access. Uses come in the order of their times."""
    base = policy.base_days(memory.layer, memory.type)
    stability = max(base, access.stability_days)
    age_us = used_us - (access.last_time_us or memory.create_time_us)
    if math.isfinite(stability) and not (access.count and age_us < SAME_USE_US):
        known = _curve(age_us / DAY_US, stability, policy)
        growth = _EASE * math.exp(_W8) * stability**-_W9 * math.expm1(_W10 * (1.0 - known))
        stability = max(stability, min(stability * (1.0 + growth), STABILITY_MAX_DAYS))
    new_day = not access.count or used_us // DAY_US > access.last_time_us // DAY_US
    return msgspec.structs.replace(
        access,
        count=access.count + 1,
        last_time_us=max(access.last_time_us, used_us),
        stability_days=stability if math.isfinite(stability) else 0.0,
        day_count=access.day_count + new_day,
    )
