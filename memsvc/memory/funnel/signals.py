"""Stage 2: what a message says, read from its cues; and the features that the trained weights are over.

Purpose: find what is surely worthless (nothing but questions, guesses, quotations, moods) and what is surely valuable,
and hand the rest to stage 3 with everything that was seen.

Threading: pure functions.

Rejected: a cue that decides alone ("always" is in complaints and in questions; what counts is the sentence it is in).
"""

from __future__ import annotations

import re

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.memory.funnel.cues import CUE_COUNT, HAN, Cue, cues_of
from memsvc.memory.funnel.segments import split_sentences
from memsvc.memory.funnel.tasks import continues_task, names_work, without_task

QUESTION = Cue.QUESTION
_HYPO = Cue.HYPOTHETICAL
_UNDECIDED = Cue.UNDECIDED
_WISH = Cue.WISH
_REPORTED = Cue.REPORTED
_WORDING = Cue.WORDING
_SARCASM = Cue.SARCASM
_ADOPTED = Cue.ADOPTED
_DROPS = QUESTION | _HYPO | _UNDECIDED | _WISH | _REPORTED | _WORDING | _SARCASM
_STRONG = Cue.REMEMBER | Cue.DECIDED | Cue.CORRECTION | Cue.LASTING | Cue.OBLIGE
VALUE = (
    Cue.LASTING | Cue.PREFER | Cue.REMEMBER | Cue.DECIDED | Cue.OBLIGE | Cue.THRESHOLD | Cue.CORRECTION | Cue.CHANGED
    | Cue.TRAIT | Cue.OUTCOME | Cue.CAUSE | Cue.RECURRING | Cue.PROHIBIT | Cue.FEEDBACK | Cue.NAMING | Cue.RULE_WORD
    | Cue.ORG | Cue.DATED | Cue.NUMBER | Cue.SPEC | Cue.SELF | Cue.GROUP
)  # fmt: skip

_REPORTS = re.compile(
    r"\b(?:i've|i have|has been|have been|was|were|is now|are now|done|\w{3,}ed)\b|了|已|完成|"
    r"成功|完毕",
    re.I,
)

THIS_TURN = "this turn only"
REASONS = {
    QUESTION: "question",
    _HYPO: "hypothetical or counterfactual",
    _UNDECIDED: "not decided",
    _WISH: "wish",
    _REPORTED: "someone else's words",
    _WORDING: "text to be worked on, not a statement",
    _SARCASM: "sarcasm",
    Cue.ONE_OFF: THIS_TURN,
}
_SPEAKERS = ("user", "agent", "tool")
_EXTRA = 20
FEATURE_COUNT = 2 * CUE_COUNT + _EXTRA


class Sentence(msgspec.Struct, frozen=True):
    """A sentence with its cues; `live` is False for one that states nothing (a question, a guess, a quotation)."""

    text: str
    cues: int
    live: bool


class Reading(msgspec.Struct, frozen=True):
    """A message as read. `dropped_by` is the bit that makes the whole message worthless, or 0."""

    sentences: tuple[Sentence, ...]
    cues: int
    dropped_by: int
    is_chinese: bool

    @property
    def live(self) -> list[Sentence]:
        """The sentences that state something."""
        return [sentence for sentence in self.sentences if sentence.live]


_FOR_EVER = re.compile(
    r"\b(?:from now on|from here on|going forward|henceforth|until further notice)\b"
    r"|\bplease (?:always|never)\b(?! mind)|请(?:你|您)?(?:总是|始终|永远|一律)"
    r"|从现在(?:起|开始)|从今以后|从今往后|(?:以后|今后|往后)(?:都|请|麻烦|一律|统一|全部|默认|别再|不要)",
    re.IGNORECASE,
)


def asks_for_ever(reading: Reading) -> bool:
    """Whether a sentence that states something says in so many words that it holds from now on."""
    return any(_FOR_EVER.search(sentence.text) and not sentence.cues & _SARCASM for sentence in reading.live)


def read(text: str) -> Reading:
    """Sentences, cues, and whether anything is stated at all. Requests for work now state nothing."""
    texts = split_sentences(text)
    all_cues = [cues_of(sentence) for sentence in texts]
    whole = _whole_message_drop(all_cues)
    sentences = [
        Sentence(sentence, cues, not whole and _is_live(cues)) for sentence, cues in zip(texts, all_cues, strict=True)
    ]
    if not whole:
        _take_tasks_out(sentences)
    union = 0
    dropped_by = whole
    for sentence in sentences:
        union |= sentence.cues if sentence.live else sentence.cues & (_DROPS | (Cue.MOOD | Cue.PHATIC | Cue.ONE_OFF))
    if not whole and sentences and not any(sentence.live for sentence in sentences):
        dropped_by = _first_drop(sentences[0].cues)
    return Reading(tuple(sentences), union, dropped_by, HAN.search(text) is not None)


def _take_tasks_out(sentences: list[Sentence]) -> None:
    """Requests for work now, and what they must be like, are no longer live; what is said besides them stays."""
    is_task = False
    for place, sentence in enumerate(sentences):
        text = sentence.text
        rest = "" if is_task and continues_task(text) else without_task(text)
        follower = sentences[place + 1].text if place + 1 < len(sentences) else ""
        is_task = not rest or (continues_task(follower) and names_work(text))
        if not sentence.live:
            continue
        if is_task:
            sentences[place] = Sentence(text, sentence.cues | Cue.ONE_OFF, False)
        elif rest != text:
            sentences[place] = Sentence(rest, cues_of(rest), True)


def reports(reading: Reading) -> bool:
    """Whether an agent's message can be a report: an outcome or a cause, or something done that is named or counted."""
    if reading.cues & (Cue.OUTCOME | Cue.CAUSE):
        return True
    if reading.cues & (Cue.GENERAL):
        return False
    named = reading.cues & (Cue.NUMBER | Cue.IDENTIFIER)
    return bool(named) and any(_REPORTS.search(sentence.text) for sentence in reading.live)


def _first_drop(cues: int) -> int:
    return next((bit for bit in REASONS if cues & bit), 0)


def _whole_message_drop(all_cues: list[int]) -> int:
    """Cues that colour all that follows: a pretended world, a text to work on, a quotation nobody adopted."""
    adopted = any(cues & _ADOPTED for cues in all_cues)
    for place, cues in enumerate(all_cues):
        if cues & _HYPO and place == 0 and not cues & (Cue.DECIDED | Cue.REMEMBER):
            return _HYPO
        if cues & _WORDING:
            return _WORDING
        if cues & _SARCASM and place <= 1:
            return _SARCASM
    first = all_cues[0] if all_cues else 0
    if first & _REPORTED and not adopted and any(cues & QUESTION for cues in all_cues):
        return _REPORTED
    if (
        first & _REPORTED
        and not adopted
        and not first & (Cue.OBLIGE | Cue.REMEMBER | Cue.TRAIT | Cue.GROUP | Cue.DECIDED)
        and len(all_cues) <= 2
    ):
        return _REPORTED
    return 0


def _is_live(cues: int) -> bool:
    if cues & QUESTION:
        return False
    if cues & _ADOPTED or cues & (Cue.REMEMBER):
        return True
    if cues & (_HYPO | _WISH):
        return False
    return not cues & _UNDECIDED or bool(cues & (Cue.DECIDED) and cues & (Cue.REASON))


def features(reading: Reading, speaker: str, previous: str) -> NDArray[np.float32]:
    """float32 of shape (FEATURE_COUNT,): which cues there are, which are in the best sentence, sizes, who spoke."""
    row = np.zeros(FEATURE_COUNT, np.float32)
    _spread(reading.cues, row, 0)
    best = max((s.cues for s in reading.sentences if s.live), key=lambda cues: (cues & VALUE).bit_count(), default=0)
    _spread(best, row, CUE_COUNT)
    at = 2 * CUE_COUNT
    live = reading.live
    size = sum(len(sentence.text) for sentence in live) * (2 if reading.is_chinese else 1)
    cues = reading.cues
    row[at : at + _EXTRA] = (
        *(speaker == name for name in _SPEAKERS),
        bool(previous),
        len(live) / max(1, len(reading.sentences)),
        min(size, 400) / 200,
        size < 30,
        len(reading.sentences) > 4,
        min((cues & VALUE).bit_count(), 8) / 4,
        bool(cues & (Cue.REQUEST)) and not cues & (Cue.LASTING),
        bool(cues & (Cue.LASTING | Cue.PREFER)) and bool(cues & (Cue.ADDRESSED)),
        bool(cues & (Cue.MOOD)) and not cues & (Cue.LASTING | Cue.NUMBER | Cue.TRAIT | Cue.OBLIGE),
        bool(cues & (Cue.ONE_OFF)) and not cues & (Cue.LASTING),
        speaker != "user" and bool(cues & (Cue.OUTCOME)) and bool(cues & (Cue.NUMBER | Cue.IDENTIFIER)),
        bool(best & (Cue.REQUEST | Cue.FEEDBACK)) and bool(best & (Cue.LASTING)),
        bool(best & (Cue.LASTING | Cue.PREFER)) and bool(best & (Cue.ADDRESSED | Cue.SELF)),
        bool(best & (Cue.OBLIGE | Cue.PROHIBIT)) and bool(best & (Cue.RULE_WORD | Cue.THRESHOLD | Cue.GROUP)),
        bool(best & (Cue.DECIDED)) and bool(cues & (Cue.REASON)),
        bool(best & (Cue.OUTCOME)) and bool(cues & (Cue.PAST | Cue.CAUSE)),
        bool(best & (Cue.SELF | Cue.GROUP | Cue.TRAIT))
        and not best & (Cue.PREFER | Cue.LASTING | Cue.OBLIGE | Cue.DECIDED),
    )
    return row


_BIT_BYTES = (CUE_COUNT + 7) // 8


def _spread(cues: int, row: NDArray[np.float32], start: int) -> None:
    bits = np.frombuffer(cues.to_bytes(_BIT_BYTES, "little"), np.uint8)
    row[start : start + CUE_COUNT] = np.unpackbits(bits, count=CUE_COUNT, bitorder="little")
