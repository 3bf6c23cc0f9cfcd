"""Reading the cues of a sentence: the patterns of both languages, compiled and applied.

Purpose: the vocabulary of stage 2 in one place. A cue says what a sentence sounds like (lasting, a question, a guess,
an outcome); what follows from it is decided elsewhere, mostly by weights that were trained on bench/funnel_train.jsonl.

Threading: compiled at import, read only.

Rejected: a parser or a segmenter (tens of milliseconds and megabytes a message for what a few dozen patterns give);
one giant alternation (it reports one cue per position, and cues overlap).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memsvc.memory.funnel import cues_en, cues_zh
from memsvc.memory.funnel.cue import CUE_COUNT, Cue
from memsvc.memory.funnel.patterns import branches, factored, needed_prefixes, prefixes_of

__all__ = ["ANY", "CHINESE", "CUE_COUNT", "ENGLISH", "HAN", "Cue", "cues_of", "english_cues", "is_mostly_latin"]

_ANY: dict[int, str] = {
    Cue.NUMBER: r"\d|[一二三四五六七八九十百千万两]+(?:个|条|次|天|点|号|元|块|人|岁|年|月|份|套|台|页|层|楼)|\b(?:two|"
    r"three|four|five|six|"
    r"seven|eight|nine|ten|twelve|fifteen|twenty|thirty|fifty|hundred|thousand|million)\b",
    Cue.SPEC: r"\d+ ?(?:%|ms|s\b|min|h\b|gb|mb|kb|px|km|kg|g\b|l\b|usd|eur|cad|兆|天|周|元|块|万|分钟|小时|岁|坐席|"
    r"人|个|"
    r"台|平|公里|码|qps|rps|k\b|m\b)|[$€£¥]\d|\d{1,2}:\d\d|"
    r"\d ?(?:am|pm)\b|\bv?\d+\.\d+",
}

_Test = Callable[[str], re.Match[str] | None]


_Tests = tuple[tuple[int, _Test, frozenset[str] | None], ...]


def _compiled(patterns: dict[int, str]) -> _Tests:
    """The tests of each cue: what stands at the beginning is matched there only, the rest is looked for everywhere,
    and only in a text that has one of the needed prefixes.
    """
    tests: list[tuple[int, _Test, frozenset[str] | None]] = []
    for cue, pattern in patterns.items():
        parts = branches(pattern)
        heads = [part[1:] for part in parts if part.startswith("^")]
        words = [part for part in parts if needed_prefixes(part) is not None]
        others = [part for part in parts if not part.startswith("^") and part not in words]
        if heads:
            tests.append((cue, re.compile("|".join(heads)).match, None))
        if words:
            joined = "|".join(words)
            tests.append((cue, re.compile(factored(joined)).search, needed_prefixes(joined)))
        if others:
            tests.append((cue, re.compile(factored("|".join(others))).search, None))
    return tuple(tests)


ENGLISH = _compiled(cues_en.ENGLISH)
CHINESE = tuple((cue, re.compile(pattern).search) for cue, pattern in cues_zh.CHINESE.items())
ANY = tuple((cue, re.compile(pattern).search) for cue, pattern in _ANY.items())

_IDENTIFIER = re.compile(
    r"`[^`]+`|\b[A-Za-z]+[-_./@][\w./@-]*\d?|\b[A-Za-z]+\d[\w-]*|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\b|"
    r"[^.!?\s：:“\"'(*-] ?\b[A-Z][a-z]{2,}"
)
_CODE = re.compile(r"```")
HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[a-z]{2}")


def cues_of(text: str) -> int:
    """The cues of one sentence as bits of `Cue` (plain int: flag arithmetic is slow)."""
    words = text.partition("```")[0]  # a code block belongs to what is said of it; its comments say nothing
    lowered = (words if words.strip() else text).lower().replace("’", "'")
    bits = 0
    if HAN.search(lowered):
        for bit, search in CHINESE:
            if search(lowered):
                bits |= bit
        if is_mostly_latin(lowered):
            bits |= english_cues(lowered)
    elif _LATIN.search(lowered):
        bits |= english_cues(lowered)
    for bit, search in ANY:
        if search(lowered):
            bits |= bit
    if _IDENTIFIER.search(text):
        bits |= Cue.IDENTIFIER
    if _CODE.search(text):
        bits |= Cue.CODE
    return bits


def english_cues(lowered: str) -> int:
    """The English cues of a lower-cased text with straight apostrophes."""
    bits = 0
    there = prefixes_of(lowered)
    for bit, test, needed in ENGLISH:
        if not bits & bit and (needed is None or not there.isdisjoint(needed)) and test(lowered):
            bits |= bit
    return bits


def is_mostly_latin(text: str) -> bool:
    """More Latin words than Han characters: a Chinese sentence with English terms is read as Chinese."""
    return len(re.findall(r"[a-z]{2,}", text)) > len(HAN.findall(text))
