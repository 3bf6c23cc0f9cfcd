"""Mentions: which exact facts a text names by key or value, and whether a text holds a phrase whole.

Purpose: a key or value becomes one exact term of the postings, as an identifier does, so that filters, statuses,
`as_of` and scores of a recall need nothing of their own. What is here finds out which of these terms a text names:
each phrase waits at one word (the one at which the fewest wait), and only the words of the text are looked up.

Rules. All text is compared in NFKC, case-folded, with single spaces. A key is named when all of its words are there, in
any order (`_ - . : /` and camel case part words); where they are all stop words or single characters, or where there
are none, only when it is there whole. A text or number value is named when it is there whole and says something: at
least MIN_CHARS characters (MIN_RUN_CHARS of scripts without spaces), at least MIN_DIGITS digits for a number, not a
stop word alone or one of PLAIN_VALUES, at most VALUE_MAX_CHARS characters. A key of one stop word, letter or ASCII sign
is never named. "Whole" is at word boundaries, where a join such as `-` or `.` belongs to the word, and anywhere in
scripts without spaces.

Threading: `add` by one writer at a time; `named` by any number of readers beside it, which may miss what is being added
(its rows are not visible to them yet).

Rejected: a scan over the facts (its cost would grow with their number), an Aho-Corasick automaton (words of a key in
any order are no one string, and it is rebuilt for each new key), n-grams of the query (one length for each length of
key).
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

from memsvc.retrieval.lexical import EXACT_PREFIX, STOP_BIGRAMS, STOP_WORDS, camel_split, is_run_char, normalize, pieces

MIN_CHARS = 3
MIN_RUN_CHARS = 2
MIN_DIGITS = 4
VALUE_MAX_CHARS = 128
NAMED_MAX = 100
PLAIN_VALUES = frozenset("true false null none yes no on off unknown default other".split())

_KEY = EXACT_PREFIX + "\x02k"
_VALUE = EXACT_PREFIX + "\x02v"
_JOINS = "-._@"
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*")


class Named(NamedTuple):
    """A term that a text names, and where in the text (folded, in characters) first."""

    position: int
    term: str


class _Phrase(NamedTuple):
    """`parts`: the words that must be there; `whole`: that must be there as one piece, or empty."""

    term: str
    parts: tuple[str, ...]
    whole: str


def folded(text: str) -> str:
    """The text as mentions compare it."""
    return " ".join(normalize(text).replace("’", "'").split())


def key_term(key: str) -> str:
    """The term of a fact's key."""
    return _KEY + key


def value_term(value: Any) -> str:
    """The term of a fact's value; "" for a value that no text can name."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = folded(str(value)) if len(str(value)) <= VALUE_MAX_CHARS else ""
    return _VALUE + text if _says_something(text) else ""


def _says_something(text: str) -> bool:
    if text in PLAIN_VALUES or text in STOP_BIGRAMS:
        return False
    if _NUMBER.fullmatch(text):
        return sum(char.isdigit() for char in text) >= MIN_DIGITS
    parts = list(pieces(text))
    if all(part in STOP_WORDS for part, _ in parts):
        return False
    return len(text) >= (MIN_RUN_CHARS if any(is_run_char(char) for char in text) else MIN_CHARS)


def whole_at(text: str, phrase: str) -> int:
    """Where a folded text first holds a folded phrase whole; -1 for nowhere."""
    if not phrase:
        return -1
    at = text.find(phrase)
    while at >= 0:
        if _parted(text, at - 1, phrase[0], -1) and _parted(text, at + len(phrase), phrase[-1], 1):
            return at
        at = text.find(phrase, at + 1)
    return -1


def _parted(text: str, beside: int, edge: str, step: int) -> bool:
    """Whether the character beside a phrase's edge does not continue its word."""
    if not _in_word(edge) or not 0 <= beside < len(text):
        return True
    char = text[beside]
    if char in _JOINS and char != "_":
        return not (0 <= beside + step < len(text) and _in_word(text[beside + step]))
    return not _in_word(char)


def _in_word(char: str) -> bool:
    return (char.isalnum() or char == "_") and not is_run_char(char)


@lru_cache(maxsize=128)
def _looked_up(text: str) -> tuple[str, dict[str, int]]:
    """The folded text, and each word, bigram, single character of a run and symbol in it with its first position."""
    plain = folded(text)
    found: dict[str, int] = {}
    for part, at in pieces(plain):
        found.setdefault(part, at)
        if is_run_char(part[0]):
            for i in range(len(part)):
                found.setdefault(part[i], at + i)
                found.setdefault(part[i : i + 2], at + i)
    for match in _SYMBOL.finditer(plain):
        found.setdefault(match.group(), match.start())
    return plain, found


_SYMBOL = re.compile(r"[^\w\s]|_")  # one at a time: a text may have others beside a key's


def _phrases(term: str) -> Iterator[_Phrase]:
    """How a term can be named: none, one, or a second one for a key in camel case."""
    if term.startswith(_VALUE):
        text = term[len(_VALUE) :]
        yield _Phrase(term, tuple(dict.fromkeys(part for part, _ in pieces(text))), text)
        return
    key = term[len(_KEY) :]
    for text in dict.fromkeys((folded(key), folded(camel_split(key)))):
        words = [part for part, _ in pieces(text)]
        parts = tuple(dict.fromkeys(words))
        if not parts and (len(text) > 1 or not text.isascii()):
            yield _Phrase(term, (), text)
        elif any(len(part) > 1 and part not in STOP_WORDS and part not in STOP_BIGRAMS for part in parts):
            yield _Phrase(term, parts, "")
        elif len(words) > 1:
            yield _Phrase(term, parts, text)


def _anchors(phrase: _Phrase) -> list[str]:
    """What of a phrase is looked up: any one of them is in every text that names it."""
    if not phrase.parts:
        return _SYMBOL.findall(phrase.whole)
    anchors = []
    for part in phrase.parts:
        is_run = is_run_char(part[0]) and len(part) > 2
        anchors += [part[i : i + 2] for i in range(len(part) - 1)] if is_run else [part]
    return anchors


class Mentions:
    """The facts' terms of one segment. `keys`: every key that was ever put, in order."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._known: set[str] = set()
        self._waiting: dict[str, list[_Phrase]] = {}

    @property
    def count(self) -> int:
        """How many terms there are; 0 spares every look-up."""
        return len(self._known)

    def add(self, terms: Iterable[str]) -> None:
        """Takes up those of the terms that are a fact's and new."""
        for term in terms:
            if not term.startswith((_KEY, _VALUE)) or term in self._known:
                continue
            self._known.add(term)
            if term.startswith(_KEY):
                insort(self.keys, term[len(_KEY) :])
            for phrase in _phrases(term):
                anchors = _anchors(phrase)
                if anchors:
                    rarest = min(anchors, key=lambda anchor: len(self._waiting.get(anchor, ())))
                    self._waiting.setdefault(rarest, []).append(phrase)

    def keys_from(self, start: str, prefix: str) -> list[str]:
        """The keys at or behind `start` that begin with the prefix, in order of their code points."""
        keys = self.keys.copy()  # a writer may go on
        at = bisect_left(keys, max(start, prefix))
        return list(takewhile(lambda key: key.startswith(prefix), keys[at:]))

    def named(self, text: str) -> list[Named]:
        """The terms that a text names, at most NAMED_MAX, by first mention."""
        plain, found = _looked_up(text)
        named: dict[str, int] = {}
        for anchor in found:
            for phrase in self._waiting.get(anchor, ()):
                at = _position(phrase, plain, found)
                if at >= 0:
                    named[phrase.term] = min(at, named.get(phrase.term, at))
        return sorted(Named(at, term) for term, at in named.items())[:NAMED_MAX]


def _position(phrase: _Phrase, plain: str, found: dict[str, int]) -> int:
    """Where a text begins to name a phrase; -1 where it does not."""
    if phrase.whole:
        return whole_at(plain, phrase.whole)
    first = len(plain)
    for part in phrase.parts:
        at = plain.find(part) if is_run_char(part[0]) else found.get(part, -1)
        if at < 0:
            return -1
        first = min(first, at)
    return first
