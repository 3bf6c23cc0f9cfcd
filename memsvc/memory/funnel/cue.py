"""The cues' names: one bit each.

Purpose: the names that the patterns of both languages and all readers of cues share.

Threading: constants.

Rejected: IntFlag (its operators cost a microsecond each, a hundred of them a message); names as strings (a sentence's
cues are one integer, cheap to mask and to count).
"""

from __future__ import annotations


class Cue:
    """What a sentence sounds like."""

    QUESTION = 1 << 0
    HYPOTHETICAL = 1 << 1
    UNDECIDED = 1 << 2
    WISH = 1 << 3
    REPORTED = 1 << 4
    WORDING = 1 << 5
    SARCASM = 1 << 6
    MOOD = 1 << 7
    ONE_OFF = 1 << 8
    REQUEST = 1 << 9
    PHATIC = 1 << 10
    ADOPTED = 1 << 11
    LASTING = 1 << 12
    PREFER = 1 << 13
    REMEMBER = 1 << 14
    DECIDED = 1 << 15
    OBLIGE = 1 << 16
    THRESHOLD = 1 << 17
    CORRECTION = 1 << 18
    CHANGED = 1 << 19
    SELF = 1 << 20
    GROUP = 1 << 21
    TRAIT = 1 << 22
    OUTCOME = 1 << 23
    CAUSE = 1 << 24
    REASON = 1 << 25
    DATED = 1 << 26
    RECURRING = 1 << 27
    PROHIBIT = 1 << 28
    FEEDBACK = 1 << 29
    NAMING = 1 << 30
    NUMBER = 1 << 31
    IDENTIFIER = 1 << 32
    CODE = 1 << 33
    PLAN = 1 << 34
    GENERAL = 1 << 35
    ADDRESSED = 1 << 36
    RULE_WORD = 1 << 37
    PAST = 1 << 38
    ORG = 1 << 39
    THIS = 1 << 40
    SPEC = 1 << 41


CUE_COUNT = 42
