"""Type, layer, subject, importance and confidence of a statement.

Purpose: one place that says what a statement is, from the judge's distribution and the cues.

Threading: pure functions.

Rejected: a subject for every statement (a wrong subject makes two memories fight; an empty one only leaves the
comparison to their words).
"""

from __future__ import annotations

import re

from memsvc.memory.funnel.cues import Cue
from memsvc.model import Layer, MemoryType

_IMPORTANCE = {
    MemoryType.DECISION: 0.8,
    MemoryType.RULE: 0.8,
    MemoryType.PREFERENCE: 0.7,
    MemoryType.FACT: 0.6,
    MemoryType.EVENT: 0.5,
}
_REMEMBER_IMPORTANCE = 0.9
_DATED_IMPORTANCE = 0.55
_STANDING = Cue.LASTING | Cue.RECURRING | Cue.OBLIGE | Cue.CHANGED
_ORDERS = (MemoryType.PREFERENCE, MemoryType.RULE, MemoryType.DECISION)
_STANDING_ORDER = re.compile(
    r"^\W*(?:and |so |please )?(?:from (?:now|here|today) on|from today|going forward|always|never|by default|"
    r"whenever)\b|"
    r"^\W*(?:以后|从现在起|从今往后|从今以后|今后|往后|从下次起|下次开始)",
    re.I,
)
_SUBJECTS: tuple[tuple[str, MemoryType, re.Pattern[str]], ...] = tuple(
    (key, kind, re.compile(pattern, re.I))
    for key, kind, pattern in (
        ("user.name", MemoryType.PREFERENCE, r"\bcall me\b|\bi go by\b|(?:叫|喊|称呼)我"),
        ("user.pronouns", MemoryType.PREFERENCE, r"\bmy pronouns\b|the user's pronouns"),
        ((
            "answer.language"
        ), MemoryType.PREFERENCE, (
            r"\b(?:reply|answer|respond|talk)\w*\b.{0,25}\bin (?:english|chinese|french|german|spanish|japanese)\b|"
            r"(?:用|说)(?:中文|英文|英语|法语|日语)(?:回答|回复|跟我|和我)|回(?:答|复)我?.{0,6}用(?:中文|英文|英语)"
        )),
        ((
            "answer.length"
        ), MemoryType.PREFERENCE, (
            r"\b(?:replies|answers?|responses?)\b.{0,25}\b(?:short|brief|under|lines|words|sentences)\b|(?:回答|"
            r"回复|总结).{0,14}(?:简短|字以内|字之内|[行句条]以内|别超过)"
        )),
        ("units", MemoryType.PREFERENCE, r"\b(?:metric|imperial)\b|公制|英制"),
        ("theme", MemoryType.PREFERENCE, r"\b(?:dark|light) (?:mode|theme)\b|[深浅]色(?:模式|主题)"),
        ((
            "user.employment"
        ), MemoryType.FACT, (
            r"\b(?:just became|promoted to|transferred to|joined)\b|转岗|升了|入职|离职"
        )),
        ("user.blood_type", MemoryType.FACT, r"\bblood type\b|血型|[ABO]{1,2} ?型血"),
    )
)  # fmt: skip


def type_of(types: tuple[float, ...], text: str, speaker: str) -> MemoryType:
    """The likeliest type. What an agent or a tool reports is an event; a standing order states no fact and no event."""
    if speaker != "user":
        return MemoryType.EVENT
    allowed = _ORDERS if _STANDING_ORDER.search(text) else tuple(MemoryType)
    return max(allowed, key=lambda kind: types[kind - 1])


def is_dated(cues_of_sentences: list[int]) -> bool:
    """Whether a sentence is bound to a date rather than to a habit or a standing state."""
    return any(cues & (Cue.DATED) and not cues & _STANDING for cues in cues_of_sentences)


def layer_of(kind: MemoryType, dated: bool) -> Layer:
    """EPISODIC for events and for facts bound to a date, else SEMANTIC."""
    if kind == MemoryType.EVENT:
        return Layer.EPISODIC
    if kind == MemoryType.FACT and dated:
        return Layer.EPISODIC
    return Layer.SEMANTIC


def importance_of(kind: MemoryType, layer: Layer, cues: int) -> float:
    """0 to 1: an explicit wish to remember, rules and decisions, preferences, facts, events."""
    if cues & (Cue.REMEMBER):
        return _REMEMBER_IMPORTANCE
    if kind == MemoryType.FACT and layer == Layer.EPISODIC:
        return _DATED_IMPORTANCE
    return _IMPORTANCE[kind]


def confidence_of(keep: float, by_signal: bool) -> float:
    """0 to 1: how sure the funnel is. A signal is surer than the model; the model is as sure as its probability."""
    return round(max(0.9, keep) if by_signal else 0.85 * keep, 3)


def subject_of(content: str, kind: MemoryType) -> str:
    """The subject's key where the words leave no doubt, else empty."""
    return next((key for key, wanted, pattern in _SUBJECTS if wanted == kind and pattern.search(content)), "")
