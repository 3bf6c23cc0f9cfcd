"""The running summary of what left a session's window: its best sentences, in the order in which they were said.

Purpose: decisions, constraints, results, names and numbers stay, inside a limit of tokens; chatter goes. A sentence is
scored once, by the funnel's cues, and the weakest go when the limit is passed, the older of equals first. What is said
again replaces what was said before.

Threading: pure functions.

Rejected: a summary by a language model on the path of a turn (seconds; `condensing` asks one behind it); TextRank (it
favours what is repeated, while a decision is said once).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from memsvc.memory.funnel import Message
from memsvc.memory.funnel.cues import Cue
from memsvc.memory.funnel.rules import strip_blocks
from memsvc.memory.funnel.signals import read
from memsvc.memory.one_line import shortened

SENTENCE_MAX_CHARS = 240
SENTENCES_MAX = 12  # of one turn
TURN_MAX_CHARS = 4000  # of a longer turn, its beginning
_WEIGHTS = (
    (Cue.DECIDED | Cue.REMEMBER | Cue.CORRECTION, 4.0),
    (Cue.OBLIGE | Cue.PROHIBIT | Cue.OUTCOME, 3.0),
    (Cue.LASTING | Cue.PREFER | Cue.CAUSE | Cue.CHANGED | Cue.REQUEST, 2.0),
    (Cue.NUMBER | Cue.SPEC | Cue.IDENTIFIER, 1.5),
    (Cue.REASON | Cue.THRESHOLD | Cue.NAMING | Cue.DATED | Cue.TRAIT | Cue.GROUP, 1.0),
)
_WORTHLESS = Cue.PHATIC | Cue.MOOD
_USER_BONUS = 1.0
_LEAST_SCORE = 2.0
_LINE_BREAK_TOKENS = 1  # at most, between two lines
_CODE = re.compile(r"```.*?(?:```|\Z)", re.S)


class SummaryLine(msgspec.Struct, frozen=True, array_like=True):
    """A sentence with who said it, what it is worth and how many tokens it has, its line break counted."""

    text: str
    score: float
    token_count: int


Summary = tuple[SummaryLine, ...]


def extended(
    summary: Summary, turns: Sequence[Message], max_tokens: int, count_tokens: Callable[[str], int]
) -> Summary:
    """The summary with turns that came after it; at most `max_tokens` in all."""
    lines = {_key(kept.text.partition(": ")[2]): kept for kept in summary}
    for turn in turns:
        for text, score in _sentences(turn):
            key = _key(text)
            lines.pop(key, None)
            lines[key] = line(turn.speaker, text, score, count_tokens)
    kept = list(lines.values())
    total = sum(one.token_count for one in kept)
    while total > max_tokens:
        total -= _drop_weakest(kept)
    return tuple(kept)


def line(speaker: str, text: str, score: float, count_tokens: Callable[[str], int]) -> SummaryLine:
    """A line of a summary."""
    said = f"{speaker}: {text}"
    return SummaryLine(said, score, count_tokens(said) + _LINE_BREAK_TOKENS)


def spoken(turn: Message) -> str:
    """What a turn says by itself: without code and blocks of recalled memories, of a long one the beginning."""
    return _CODE.sub(" ", strip_blocks(turn.content[:TURN_MAX_CHARS]))


def _drop_weakest(lines: list[SummaryLine]) -> int:
    weakest = min(range(len(lines)), key=lambda i: (lines[i].score, i))
    return lines.pop(weakest).token_count


def _sentences(turn: Message) -> list[tuple[str, float]]:
    """The sentences of a turn that are worth keeping, with their scores."""
    if turn.speaker == "system":
        return []
    found: list[tuple[str, float]] = []
    for sentence in read(spoken(turn)).sentences[:SENTENCES_MAX]:
        score = _score(sentence.cues, sentence.live, turn.speaker)
        if score >= _LEAST_SCORE:
            found.append((shortened(sentence.text, SENTENCE_MAX_CHARS), score))
    return found


def _score(cues: int, live: bool, speaker: str) -> float:
    if not live and not (speaker == "user" and cues & Cue.REQUEST):
        return 0.0
    if speaker == "tool" and not cues & (Cue.OUTCOME | Cue.CAUSE):
        return 0.0
    score = sum(weight for mask, weight in _WEIGHTS if cues & mask)
    if cues & _WORTHLESS:
        score -= 2.0
    return score + (_USER_BONUS if speaker == "user" else 0.0)


def _key(text: str) -> str:
    """What two sayings of the same have in common: letters and digits of the sentence, not who said it."""
    return re.sub(r"[\W_]+", "", text.lower())
