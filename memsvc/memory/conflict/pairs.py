"""What two claims have in common and what parts them: the numbers that `conflict.decide` weighs.

Purpose: `compare` turns an old and a new claim and their cosine into a fixed list of named features. Every feature is a
reason that can be told to a person: shared words, another value, another environment, a negation.

Threading: pure functions.

Rejected: difflib or alignment per pair (50 us; the zones of a claim give the slots); features of the raw texts (they
would learn the wording of the training pairs).
"""

from __future__ import annotations

import msgspec

from memsvc.memory.conflict.claims import Claim, Group, Term, Zone
from memsvc.memory.conflict.cues import Cue
from memsvc.model import MemoryType

FEATURES = (
    "bias",
    "cosine",
    "cosine_cross",
    "cross_language",
    "covered_least",
    "covered_most",
    "topic_covered",
    "value_covered",
    "topic_swap",
    "topic_old_only",
    "topic_new_only",
    "value_swap",
    "value_old_only",
    "value_new_only",
    "condition_swap",
    "condition_new_only",
    "qualifier_swap_topic",
    "qualifier_swap_value",
    "qualifier_new_only",
    "qualifier_old_only",
    "kind_swap_topic",
    "kind_swap_value",
    "name_swap_topic",
    "name_swap_value",
    "mark_swap_topic",
    "mark_swap_value",
    "number_same",
    "number_swap_topic",
    "number_swap",
    "number_old_only",
    "number_new_only",
    "pole_against",
    "pole_agree",
    "odd_differs",
    "flipped",
    "given_up",
    "hard_both",
    "hard_new_only",
    "hard_old_only",
    "frame_same",
    "slot",
    "update",
    "correction",
    "hedge",
    "added",
    "fresh",
    "additive",
    "same_type",
    "decision_old_fact_new",
    "decision_new",
    "rule_both",
    "preference_both",
    # products that a line cannot make of the ones above
    "update_topic",
    "update_swap",
    "covered_swap",
    "covered_all",
    "hedge_decision",
    "hedge_swap",
    "hedge_topic",
    "update_hard_topic",
    "update_qualifier",
    "against_topic",
    "plain_difference",
    "number_topic_apart",
    "number_same_swap",
    "against_update",
    "turned_swap",
    "any_swap",
    "value_same_topic_swap",
    "topic_same_value_swap",
    "additive_swap",
    "odd_covered",
    "cosine_covered",
    "cosine_no_swap",
    "topic_entity_swap",
)
FEATURE_MAX = 3.0  # callers clip to it: a long statement must not outvote everything by its length


MERGE_LEFT_MAX = 1.9  # weight that each side may have of its own in a merge ...
MERGE_LEFT_MAX_NUMBER = 0.9  # ... and where they share a number: "logs, 30 days" and "backups, 30 days" are two things


class Comparison(msgspec.Struct, frozen=True):
    """Features (parallel to FEATURES, not yet clipped to FEATURE_MAX), and the words behind them for the evidence.

    `turned`: something is denied or opposite in one of them. `loses`: the new one names a value, number or name that
    the old one has no counterpart for, so that merging would lose it.
    """

    features: list[float]
    turned: bool
    loses: bool
    shared: tuple[str, ...]
    old_only: tuple[str, ...]
    new_only: tuple[str, ...]


# A value says what it is about: "in UTC+8" names the time zone, 上海 the place where someone lives.
_IMPLIED = {
    "tz": ("timezone",),
    "db": ("database",),
    "queue": ("queue",),
    "nlang": ("language",),
    "plang": ("language", "code"),
    "place": ("live", "city", "address", "home", "region"),
    "job": ("work",),
    "weekday": ("day", "week", "weekly"),
    "#clock": ("time", "morning", "afternoon", "night"),
    "#mday": ("date", "day"),
    "#mon": ("date",),
    "version": ("version",),
}

# Plain integers: an enum member costs three times as much to compare, and this runs some hundred times a pair.
_NUMBER, _QUALIFIER, _VALUE, _NAME, _MARK = (
    int(group) for group in (Group.NUMBER, Group.QUALIFIER, Group.VALUE, Group.NAME, Group.MARK)
)
_POLE, _FRAME = int(Group.POLE), int(Group.FRAME)
_IN_TOPIC, _IN_VALUE = int(Zone.TOPIC), int(Zone.VALUE)
_UPDATE, _CORRECTION, _HEDGE, _ADDED, _FRESH = (
    int(cue) for cue in (Cue.UPDATE, Cue.CORRECTION, Cue.HEDGE, Cue.ADDED, Cue.FRESH)
)


class _Side:
    """Weights of the terms that only one statement has, by what they are and where they stand."""

    __slots__ = (
        "condition",
        "extra",
        "hard",
        "kinds",
        "marks",
        "names",
        "numbers",
        "qualifiers",
        "topic",
        "total",
        "value",
    )

    def __init__(self, terms: list[tuple[str, Term]]) -> None:
        topic = value = condition = hard = extra = 0.0
        self.qualifiers: dict[str, bool] = {}  # kind -> whether it stands outside of the value
        self.kinds: dict[str, bool] = {}  # kind -> whether it stands in the topic
        self.numbers: dict[str, bool] = {}
        self.names = self.marks = 0  # 0 none, 1 in the value, 2 in the topic
        for _, (weight, kind, group, zone, _) in terms:
            if group == _FRAME:
                continue
            if zone == _IN_TOPIC:
                topic += weight
            elif zone == _IN_VALUE:
                value += weight
            else:
                condition += weight
            if group == _NUMBER:
                self.numbers[kind] = zone == _IN_TOPIC or self.numbers.get(kind, False)
                hard += weight
                extra += weight
            elif group == _QUALIFIER:
                self.qualifiers[kind] = zone != _IN_VALUE or self.qualifiers.get(kind, False)
                hard += weight if kind != "period" else 0.0
            elif group == _VALUE:
                self.kinds[kind] = zone == _IN_TOPIC or self.kinds.get(kind, False)
                hard += weight
                extra += weight
            elif group in (_NAME, _MARK):
                place = 2 if zone == _IN_TOPIC else 1
                if group == _NAME:
                    self.names = max(self.names, place)
                else:
                    self.marks = max(self.marks, place)
                hard += weight
                extra += weight
        self.topic, self.value, self.condition, self.hard, self.extra = topic, value, condition, hard, extra
        self.total = topic + value + condition


class _Shared:
    """What both statements have: weights by place, agreements and denials."""

    __slots__ = ("against", "agree", "flipped", "frame", "given_up", "names", "numbers", "topic", "value", "weight")

    def __init__(self, both: list[tuple[str, Term, Term]], both_deny: bool) -> None:
        topic = value = total = flipped = given_up = 0.0
        self.against = self.agree = self.numbers = 0.0
        self.frame = False
        names = []
        for concept, (weight, kind, group, zone, denied), other in both:
            total += weight
            if group == _POLE:
                if denied != other.denied:
                    self.against += 1.0
                else:
                    self.agree += 1.0
            if weight < 0.5:
                self.frame = self.frame or kind == "exclusive"
                continue
            names.append(concept)
            if group == _NUMBER:
                self.numbers += 1.0
            if denied != other.denied and group != _POLE:
                flipped += weight
                if other.denied and (_QUALIFIER <= group <= _MARK or zone == _IN_VALUE):
                    given_up += weight
            if zone == _IN_TOPIC:
                topic += weight
            else:
                value += weight
        self.topic, self.value, self.weight, self.names = topic, value, total, tuple(names)
        # where both deny, the place of the "not" is mere wording
        self.flipped, self.given_up = (0.0, 0.0) if both_deny else (flipped, given_up)


def compare(old: Claim, new: Claim, cosine: float) -> Comparison:
    """Compares two claims. `cosine` is the calibrated one: 0 for unrelated, 1 for the same in other words."""
    old_terms, new_terms = old.terms, new.terms
    both = [(concept, term, new_terms[concept]) for concept, term in old_terms.items() if concept in new_terms]
    old_only = [pair for pair in old_terms.items() if pair[0] not in new_terms]
    new_only = [pair for pair in new_terms.items() if pair[0] not in old_terms]
    implied = {name for _, term, _ in both if term.kind in _IMPLIED for name in _IMPLIED[term.kind]}
    if implied:
        old_only = [pair for pair in old_only if pair[0] not in implied]
        new_only = [pair for pair in new_only if pair[0] not in implied]
    shared = _Shared(both, old.odd and new.odd)
    first, second = _Side(old_only), _Side(new_only)
    return Comparison(
        features=_features(old, new, cosine, first, second, shared),
        turned=shared.against > 0 or shared.flipped > 0 or old.odd != new.odd,
        loses=_loses(first, second, cosine, shared.numbers > 0),
        shared=shared.names,
        old_only=tuple([concept for concept, term in old_only if term.weight >= 0.5]),
        new_only=tuple([concept for concept, term in new_only if term.weight >= 0.5]),
    )


def _loses(old: _Side, new: _Side, cosine: float, number_shared: bool) -> bool:
    """Whether a merge would lose what the new side says: its own value, two words more, or another thing's name."""
    if new.extra >= 1.0 and old.extra < 1.0:
        return True
    if new.total >= 2.0 and old.total < 0.5 and cosine < 0.9:
        return True
    most = MERGE_LEFT_MAX_NUMBER if number_shared else MERGE_LEFT_MAX
    return new.total >= most and old.total >= most


def _qualifier_swaps(a: _Side, b: _Side) -> tuple[float, float, float]:
    """Kinds of qualifier that both sides have another one of: outside of the value, in it; and the new side's own."""
    outside = inside = own = 0.0
    for kind, apart in b.qualifiers.items():
        if kind not in a.qualifiers:
            own += kind != "period"
        elif apart and a.qualifiers[kind]:
            outside += 1.0
        else:
            inside += 1.0
    return outside, inside, own


def _kind_swaps(old: dict[str, bool], new: dict[str, bool]) -> tuple[float, float]:
    """Kinds that both sides have another one of: in the topic, and in the value."""
    in_topic = in_value = 0.0
    for kind, topical in new.items():
        if kind in old:
            if topical and old[kind]:
                in_topic += 1.0
            else:
                in_value += 1.0
    return in_topic, in_value


def _features(old: Claim, new: Claim, cosine: float, a: _Side, b: _Side, both: _Shared) -> list[float]:
    """The list that FEATURES names."""
    least = min(both.weight / max(min(old.weight, new.weight), 0.5), 1.0)
    most = min(both.weight / max(old.weight, new.weight, 0.5), 1.0)
    topic_covered = both.topic / (both.topic + min(a.topic, b.topic) + 0.25)
    value_covered = both.value / (both.value + max(a.value, b.value) + 0.25)
    topic_swap, value_swap = min(a.topic, b.topic, 2.0), min(a.value, b.value, 2.0)
    qualifier_topic, qualifier_value, qualifier_own = _qualifier_swaps(a, b)
    kind_topic, kind_value = _kind_swaps(a.kinds, b.kinds)
    number_topic, number_swap = _kind_swaps(a.numbers, b.numbers)
    if not number_topic + number_swap and (("#" in a.numbers and b.numbers) or ("#" in b.numbers and a.numbers)):
        number_swap = 0.7
    name_topic = float(a.names == 2 and b.names == 2)
    name_value = float(a.names > 0 and b.names > 0) - name_topic
    mark_topic = float(a.marks == 2 and b.marks == 2)
    mark_value = float(a.marks > 0 and b.marks > 0) - mark_topic
    value_moves = min(1.0, kind_value + number_swap + name_value + mark_value + qualifier_value)
    topic_moves = min(1.0, qualifier_topic + name_topic + mark_topic + kind_topic + number_topic + topic_swap)
    cues = new.cues
    update, hedge = float(cues & _UPDATE > 0), float(cues & _HEDGE > 0)
    odd = float(old.odd != new.odd)
    additive = float(old.additive and new.additive)
    cross = float(old.chinese != new.chinese)
    old_type, new_type = old.type, new.type
    decision_fact = float(old_type == _DECISION and new_type == _FACT)
    slot = both.frame and both.topic > 0.0 and a.topic + b.topic < 0.25 and a.value > 0.0 and b.value > 0.0
    against = min(both.against, 1.0)
    return [
        1.0,
        cosine,
        cosine * cross,
        cross,
        least,
        most,
        topic_covered,
        value_covered,
        topic_swap,
        a.topic,
        b.topic,
        value_swap,
        a.value,
        b.value,
        min(a.condition, b.condition),
        b.condition,
        qualifier_topic,
        qualifier_value,
        qualifier_own,
        float(len(a.qualifiers.keys() - b.qualifiers.keys())),
        kind_topic,
        kind_value,
        name_topic,
        name_value,
        mark_topic,
        mark_value,
        both.numbers,
        number_topic,
        number_swap,
        float(bool(a.numbers) and not b.numbers),
        float(bool(b.numbers) and not a.numbers),
        both.against,
        both.agree,
        odd,
        both.flipped,
        both.given_up,
        min(a.hard, b.hard),
        b.hard if not a.hard else 0.0,
        a.hard if not b.hard else 0.0,
        float(both.frame),
        float(slot and not additive),
        update,
        float(cues & _CORRECTION > 0),
        hedge,
        float(cues & _ADDED > 0),
        float(cues & _FRESH > 0),
        additive,
        float(old_type == new_type),
        decision_fact,
        float(new_type == _DECISION),
        float(old_type == _RULE and new_type == _RULE),
        float(old_type == _PREFERENCE and new_type == _PREFERENCE),
        update * topic_covered,
        update * value_moves,
        least * value_moves,
        least * most,
        hedge * decision_fact,
        hedge * value_moves,
        hedge * topic_covered,
        update * topic_moves,
        update * min(qualifier_value, 1.0),
        against * topic_covered,
        float(a.total >= 0.5 and b.total >= 0.5),
        min(number_topic, 1.0) * (1.0 - value_covered),
        min(both.numbers, 1.0) * min(a.total, b.total, 1.0),
        against * update,
        odd * value_moves,
        value_moves,
        min(both.value, 1.0) * topic_moves,
        topic_covered * value_moves * (1.0 - topic_moves),
        additive * min(value_swap, 1.0),
        odd * least,
        cosine * least,
        cosine * (1.0 - value_moves) * (1.0 - topic_moves),
        min(1.0, qualifier_topic + name_topic + mark_topic + number_topic),
    ]


_FACT, _PREFERENCE, _DECISION, _RULE = (
    int(kind) for kind in (MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.DECISION, MemoryType.RULE)
)
