"""Whether a new statement repeats, contradicts or merely joins what stands: the decision of a write, without a store.

Purpose: `decide` looks at the nearest standing memories of the same namespace and says what the write does: created,
merged, superseded, rejected or contested, about which memories, and why. A small calibrated model over the features of
pairs tells how two statements relate (distinct, same, incompatible); plain rules of rank, certainty, time and cue
turn that relation into an outcome. When unsure the statement is created: two memories too many cost less than one lost.

Threading: pure functions over frozen values; no lock, no store, no model call.

Rejected: a cosine threshold ("service A uses Python" and "service B uses Python" are nearer than a paraphrase); one
classifier for the five outcomes (rank and time are rules of the house, not things to learn from examples); an LLM
inside of the write transaction (seconds, and no evidence that can be checked).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.memory.conflict.claims import Claim
from memsvc.memory.conflict.cues import Cue
from memsvc.memory.conflict.pairs import FEATURE_MAX, FEATURES, Comparison, compare
from memsvc.model import MemoryType, Outcome

HOUR_US = 3_600_000_000
COMPARED_MAX = 5  # of the candidates, the nearest by cosine and shared words; bounds the time of a decision
SUMMARY_MAX_CHARS = 160
FRAGMENT_MAX = 2  # concepts
_DECIDING_CUES = int(Cue.UPDATE | Cue.CORRECTION)
_ONE_OFF_CUE, _HEDGE_CUE, _CORRECTION_CUE = int(Cue.ONE_OFF), int(Cue.HEDGE), int(Cue.CORRECTION)


class Relation(IntEnum):
    """How two statements stand to each other; the columns of `Calibration.weights`."""

    DISTINCT = 0
    SAME = 1
    INCOMPATIBLE = 2


class CosineRange(msgspec.Struct, frozen=True):
    """Cosines of one language pair: what unrelated statements reach (0 on the calibrated scale) and paraphrases (1)."""

    unrelated: float
    same: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Thresholds of one embedding model, written by bench/calibrate_conflict.py.

    `weights` holds one row per feature of pairs.FEATURES and one column per Relation. A pair counts as same or
    incompatible when its probability reaches the threshold. On the calibrated scale of cosines (0 unrelated, 1 the same
    in other words) nothing is merged below `merge_floor`, and a pair without shared words isn't compared below `gate`.
    `contest_window_us`: incompatible statements nearer in time than this, with no cue, are contested.
    """

    model_id: str
    features: tuple[str, ...]
    weights: tuple[tuple[float, float, float], ...]
    han: CosineRange
    latin: CosineRange
    cross: CosineRange
    same_threshold: float = 0.42
    incompatible_threshold: float = 0.55
    merge_floor: float = 0.5
    gate: float = 0.2
    contest_window_us: int = 6 * HOUR_US

    def __post_init__(self) -> None:
        if self.features != FEATURES or len(self.weights) != len(FEATURES):
            raise ValueError("the calibration is of other features: run bench/calibrate_conflict.py again")

    @cached_property
    def weight_array(self) -> NDArray[np.float64]:
        """`weights` as (features, relations) float64."""
        return np.array(self.weights)

    def scale(self, cosine: float, first: Claim, second: Claim) -> float:
        """The cosine on the calibrated scale of the pair's languages, within -0.5 and 1.5."""
        same_language = self.han if first.chinese else self.latin
        span = self.cross if first.chinese != second.chinese else same_language
        return min(1.5, max(-0.5, (cosine - span.unrelated) / (span.same - span.unrelated)))


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that is about to be written. `occur_time_us`: when it was said, UTC microseconds."""

    content: str
    type: MemoryType
    claim: Claim
    occur_time_us: int
    subject: str = ""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """An active memory of the same namespace. `cosine`: of its passage vector and the new statement's, -1 to 1."""

    memory_id: str
    content: str
    type: MemoryType
    claim: Claim
    occur_time_us: int
    cosine: float
    subject: str = ""
    importance: float = 0.5
    confidence: float = 1.0


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What the write does, and why.

    `memory_ids` are the memories it is about, the surest first: merged into (one), superseded (one or more), in whose
    favour it is rejected, or contested with; empty for created. `evidence` holds the numbers and words that decided,
    JSON-ready; it quotes words of the statements, so it belongs where their content may go. `summary` is one line for
    the person who arbitrates.
    """

    outcome: Outcome
    memory_ids: tuple[str, ...] = ()
    evidence: dict[str, Any] = {}
    summary: str = ""


class _Pair(msgspec.Struct, frozen=True):
    standing: Standing
    comparison: Comparison
    chances: tuple[float, float, float]
    outcome: Outcome
    reason: str


def decide(new: Incoming, standing: Sequence[Standing], calibration: Calibration) -> Decision:
    """Decides about a new statement against what stands (the nearest some 16 memories of its namespace, in any order).

    Time is `occur_time_us`, not the order of writes. An older statement that contradicts a newer one comes out as
    `rejected` with the id of what stands: the caller keeps it, if at all, as SUPERSEDED by that memory, never ACTIVE.
    A DECISION outranks a FACT whatever the order; a guess never outranks a firm statement. EVENTs are always created.
    """
    if new.type == MemoryType.EVENT:
        return Decision(outcome=Outcome.CREATED, evidence={"reason": "events are never merged or superseded"})
    compared = [(old, compare(old.claim, new.claim, cosine)) for old, cosine in _nearest(new, standing, calibration)]
    if not compared:
        return Decision(outcome=Outcome.CREATED, evidence={"reason": "nothing near stands"})
    rows = np.minimum([comparison.features for _, comparison in compared], FEATURE_MAX)
    scores = (rows @ calibration.weight_array).tolist()
    pairs = []
    for (old, comparison), row in zip(compared, scores, strict=True):
        chances = _softmax(row)
        outcome, reason = _judge(new, old, comparison, chances, calibration)
        pairs.append(_Pair(old, comparison, chances, outcome, reason))
    return _combine(new, pairs)


def _comparable(new: Incoming, old: Standing) -> bool:
    """Whether the two can be about the same thing at all: no events, no other subject."""
    if old.type == MemoryType.EVENT:
        return False
    return _subjects_meet(new.claim.subject, old.claim.subject)


def _nearest(new: Incoming, standing: Sequence[Standing], calibration: Calibration) -> list[tuple[Standing, float]]:
    """The standing memories worth comparing, each with its calibrated cosine: at most COMPARED_MAX."""
    content = new.claim.content
    ranked = []
    for place, old in enumerate(standing):
        if not _comparable(new, old):
            continue
        cosine = calibration.scale(old.cosine, old.claim, new.claim)
        shared = len(content & old.claim.content) / (1 + min(len(content), len(old.claim.content)))
        if shared > 0.0 or cosine >= calibration.gate:
            ranked.append((-cosine - shared, place, old, cosine))
    ranked.sort()
    return [(old, cosine) for _, _, old, cosine in ranked[:COMPARED_MAX]]


def _subjects_meet(first: str, second: str) -> bool:
    """Two subjects can be one when either is unknown, they are equal, or one is the other's parent (`a/b` of `a`)."""
    if not first or not second or first == second:
        return True
    return first.startswith(f"{second}/") or second.startswith(f"{first}/")


def _softmax(row: Sequence[float]) -> tuple[float, float, float]:
    top = max(row)
    a, b, c = (math.exp(value - top) for value in row)
    total = a + b + c
    return a / total, b / total, c / total


def _judge(
    new: Incoming, old: Standing, comparison: Comparison, chances: tuple[float, float, float], calibration: Calibration
) -> tuple[Outcome, str]:
    """The outcome of the new statement against one standing memory, with the reason."""
    if new.claim.key == old.claim.key and not (new.claim.long or old.claim.long):
        if (new.type, new.claim.subject) == (old.type, old.claim.subject):
            return Outcome.MERGED, "same words"
        return Outcome.CREATED, "same words, said to be of another type or subject"
    if (new.claim.cues ^ old.claim.cues) & _ONE_OFF_CUE:
        return Outcome.CREATED, "one of them holds for one time only"
    _, same, incompatible = chances
    if new.claim.long or old.claim.long:
        return Outcome.CREATED, "too long to be one statement"
    if not new.claim.content or not old.claim.content:
        return Outcome.CREATED, "too short to say anything"
    if new.claim.labels and old.claim.labels and new.claim.labels.isdisjoint(old.claim.labels):
        return Outcome.CREATED, "another number or identifier names another thing"
    if _repeats(comparison, same, incompatible, calibration):
        if (
            comparison.old_only
            and comparison.new_only
            and min(len(new.claim.content), len(old.claim.content)) <= FRAGMENT_MAX
        ):
            return Outcome.CREATED, "too short to be sure that other words mean the same"
        return Outcome.MERGED, "same meaning"
    if _contradicts(comparison, same, incompatible, calibration):
        return _settle(new, old, comparison, calibration.contest_window_us)
    return Outcome.CREATED, "distinct, or not surely the same subject"


def _differs(comparison: Comparison) -> bool:
    """Statements can only contradict each other when each says something that the other doesn't, or one denies."""
    features = comparison.features
    if comparison.turned or features[_DIFFERENCE] > 0.0:
        return True
    return features[_UPDATE] > 0.0 and features[_HEDGE] == 0.0 and bool(comparison.new_only)


def _contradicts(comparison: Comparison, same: float, incompatible: float, calibration: Calibration) -> bool:
    """Whether the two are incompatible: by their chance and some difference, or because the new one says so."""
    features = comparison.features
    replaced = features[_HARD_NEW] or features[_HARD_BOTH] or features[_UPDATE]
    if (
        features[_GIVEN_UP]
        and replaced
        and comparison.new_only
        and features[_COSINE] >= 0.5
        and not features[_CONDITION]
    ):
        return True
    threshold = calibration.incompatible_threshold
    if features[_HEDGE] and not comparison.turned and not features[_ANY_SWAP]:
        threshold = (1.0 + threshold) / 2  # a guess is seldom about the decision that it only touches
    elif features[_QUALIFIER] and not features[_GIVEN_UP] and not features[_CORRECTION]:
        return False  # another environment, platform or season, before and after: both hold
    elif features[_ENTITY] and not features[_GIVEN_UP]:
        threshold = (1.0 + threshold) / 2  # another environment, person or number in the topic: another thing
    if features[_COSINE] < 0.35 and not comparison.shared:
        return False
    return incompatible >= threshold and incompatible > same and _differs(comparison)


def _repeats(comparison: Comparison, same: float, incompatible: float, calibration: Calibration) -> bool:
    """Whether merging is safe: the same by its chance, and nothing on either side that a merge would lose."""
    features = comparison.features
    if features[_AGAINST] > 0.0 or features[_GIVEN_UP] > 0.0:
        return False
    if not comparison.old_only and not comparison.new_only and not comparison.turned and features[_COSINE] >= 0.4:
        return True  # the same concepts to the last one, if in another order or language
    if features[_COSINE] < calibration.merge_floor or (features[_UPDATE] and comparison.new_only):
        return False
    if features[_SLOT] and features[_VALUE_SWAP] >= 1.0:
        return False
    if features[_ADDITIVE] > 0.0 and features[_VALUE_SWAP] >= 0.5:
        return False
    if features[_HARD_BOTH] >= 1.0 or features[_TOPIC_SWAP] >= 0.9 or comparison.loses:
        return False
    return same >= calibration.same_threshold and same >= incompatible


def _settle(new: Incoming, old: Standing, comparison: Comparison, window_us: int) -> tuple[Outcome, str]:
    """Which of two incompatible statements wins."""
    if old.type == MemoryType.DECISION and new.type == MemoryType.FACT:
        return Outcome.REJECTED, "a decision outranks a fact"
    if new.type == MemoryType.DECISION and old.type == MemoryType.FACT:
        return Outcome.SUPERSEDED, "a decision outranks a fact"
    new_guess, old_guess = bool(new.claim.cues & _HEDGE_CUE), bool(old.claim.cues & _HEDGE_CUE)
    if new_guess != old_guess:
        if new_guess:
            return Outcome.REJECTED, "a guess against a firm statement"
        return Outcome.SUPERSEDED, "a firm statement against a guess"
    gap_us = new.occur_time_us - old.occur_time_us
    later, earlier = (new, old) if gap_us >= 0 else (old, new)
    cue = bool(later.claim.cues & _DECIDING_CUES) or (later is new and _given_up(comparison))
    if abs(gap_us) <= window_us and (not cue or earlier.claim.cues & _CORRECTION_CUE):
        return Outcome.CONTESTED, "same rank, nearly the same time, no cue which is right"
    if gap_us < 0:
        return Outcome.REJECTED, "what stands was said later"
    return Outcome.SUPERSEDED, "the newer statement wins"


def _at(name: str) -> int:
    return FEATURES.index(name)


_COSINE, _CONDITION, _DIFFERENCE, _ANY_SWAP = (
    _at("cosine"),
    _at("condition_new_only"),
    _at("plain_difference"),
    _at("any_swap"),
)
_GIVEN_UP, _AGAINST, _UPDATE, _HEDGE = _at("given_up"), _at("pole_against"), _at("update"), _at("hedge")
_HARD_BOTH, _HARD_NEW, _SLOT, _ENTITY = _at("hard_both"), _at("hard_new_only"), _at("slot"), _at("topic_entity_swap")
_QUALIFIER, _CORRECTION = _at("qualifier_swap_topic"), _at("correction")
_TOPIC_SWAP, _VALUE_SWAP, _ADDITIVE = _at("topic_swap"), _at("value_swap"), _at("additive")


def _given_up(comparison: Comparison) -> bool:
    """Whether the new statement names the old one's value and denies it."""
    return comparison.features[_GIVEN_UP] > 0.0


def _combine(new: Incoming, pairs: list[_Pair]) -> Decision:
    """One outcome from the pairs: what forbids the write first, then what repeats it, then what it replaces."""
    by_chance = sorted(pairs, key=lambda p: -max(p.chances[1], p.chances[2]))
    if all(pair.outcome == Outcome.CREATED for pair in by_chance):
        return Decision(outcome=Outcome.CREATED, evidence=_chances(by_chance[0]))
    found = {outcome: [p for p in by_chance if p.outcome == outcome] for outcome in Outcome}
    merged = [p for p in found[Outcome.MERGED] if p.reason == "same words"] or found[Outcome.MERGED]
    against = found[Outcome.REJECTED] or found[Outcome.CONTESTED] or found[Outcome.SUPERSEDED]
    if merged and (not against or merged[0].reason == "same words" or merged[0].chances[1] >= against[0].chances[2]):
        chosen = merged[:1]
    else:
        chosen = against
    return Decision(
        outcome=chosen[0].outcome,
        memory_ids=tuple(pair.standing.memory_id for pair in chosen),
        evidence=_evidence(new, chosen[0]),
        summary=_summary(new, chosen[0]) if chosen[0].outcome != Outcome.MERGED else "",
    )


def _chances(pair: _Pair) -> dict[str, Any]:
    """The short evidence: of a statement that is created, which most are and nobody asks why."""
    return {
        "reason": pair.reason,
        "nearest": pair.standing.memory_id,
        "cosine": round(pair.standing.cosine, 4),
        "chance_same": round(pair.chances[1], 3),
        "chance_incompatible": round(pair.chances[2], 3),
    }


def _evidence(new: Incoming, pair: _Pair) -> dict[str, Any]:
    old = pair.standing
    features = dict(zip(FEATURES, pair.comparison.features, strict=True))
    return {
        **_chances(pair),
        "cosine_scaled": round(features["cosine"], 3),
        "overlap": round(features["covered_most"], 3),
        "shared": list(pair.comparison.shared[:12]),
        "old_only": list(pair.comparison.old_only[:12]),
        "new_only": list(pair.comparison.new_only[:12]),
        "negation_differs": bool(features["odd_differs"]),
        "opposites": bool(features["pole_against"]),
        "given_up": bool(features["given_up"]),
        "subject_same": bool(new.claim.subject) and new.claim.subject == old.claim.subject,
        "types": [old.type.name, new.type.name],
        "time_gap_hours": round((new.occur_time_us - old.occur_time_us) / HOUR_US, 2),
        "cues": [cue.name for cue in Cue if cue & new.claim.cues],
    }


def _summary(new: Incoming, pair: _Pair) -> str:
    """One line for a person: what each says, and what differs."""
    old_only, new_only = pair.comparison.old_only[:4], pair.comparison.new_only[:4]
    differs = f" (differs: {' '.join(old_only) or '-'} / {' '.join(new_only) or '-'})"
    return f"stands: {_cut(pair.standing.content)} | new: {_cut(new.content)}{differs}"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SUMMARY_MAX_CHARS else f"{text[: SUMMARY_MAX_CHARS - 1]}…"
