"""Making long alternations fast.

Purpose: Python's regular expressions try the branches of an alternation one by one at every word. Grouped by their
first letter they fail after a handful of comparisons; a search for whether there is a match stays the same.

Threading: pure functions.

Rejected: a third-party engine (one more dependency for one factor of two); writing the patterns grouped (nobody could
read them).
"""

from __future__ import annotations

import re

_OPEN = r"\b(?:"
_QUANTIFIERS = "?*+{"
_LEAST_BRANCHES = 5
_PREFIX_CHARS = 3
_WORDS = re.compile(r"[a-z0-9]+").findall


def branches(pattern: str) -> list[str]:
    """The top-level alternatives of a pattern; escapes, classes and groups are not cut."""
    parts, depth, in_class, start, at = [], 0, False, 0, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            parts.append(pattern[start:at])
            start = at + 1
        at += 1
    return [*parts, pattern[start:]]


def factored(pattern: str) -> str:
    """The pattern with the word lists at the head of its alternatives grouped by first letter. It matches somewhere
    exactly where the given one does; which branch matches, and so the match's length, may differ.
    """
    return "|".join(_factored_branch(branch) for branch in branches(pattern))


def _factored_branch(branch: str) -> str:
    if not branch.startswith(_OPEN):
        return branch
    end = _closing(branch, len(_OPEN))
    words = branches(branch[len(_OPEN) : end])
    return branch if len(words) < _LEAST_BRANCHES else _OPEN + _grouped(words) + branch[end:]


def _grouped(words: list[str]) -> str:
    by_letter: dict[str, list[str]] = {}
    rest = []
    for word in words:
        if len(word) > 1 and word[0].isascii() and word[0].isalpha() and word[1] not in _QUANTIFIERS:
            by_letter.setdefault(word[0], []).append(word[1:])
        else:
            rest.append(word)
    grouped = [
        letter + (tails[0] if len(tails) == 1 else f"(?:{'|'.join(tails)})") for letter, tails in by_letter.items()
    ]
    return "|".join([*grouped, *rest])


def _closing(pattern: str, start: int) -> int:
    """Index of the bracket that closes the group whose content begins at `start`."""
    depth, in_class, at = 1, False, start
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return at
        at += 1
    raise ValueError("the pattern's brackets don't match")


def prefixes_of(text: str) -> set[str]:
    """What the words of a lower-cased text begin with: 1 to 3 characters, and whole short words with a space behind."""
    found: set[str] = set()
    for word in set(_WORDS(text)):
        found.update((word[:1], word[:2], word[:3]))
        if len(word) < _PREFIX_CHARS:
            found.add(word + " ")
    return found


def needed_prefixes(pattern: str) -> frozenset[str] | None:
    """Prefixes of which a text must have one (see `prefixes_of`) for the pattern to match; None when unknown."""
    needed: set[str] = set()
    for branch in branches(pattern):
        if not branch.startswith(_OPEN):
            return None
        for word in branches(branch[len(_OPEN) : _closing(branch, len(_OPEN))]):
            found = _literal_prefixes(word)
            if found is None:
                return None
            needed |= found
    return frozenset(needed)


def _literal_prefixes(word: str) -> set[str] | None:
    if word.startswith("(?:"):
        end = _closing(word, 3)
        if word[end + 1 : end + 2] in tuple(_QUANTIFIERS):
            return None
        inner = [_literal_prefixes(part) for part in branches(word[3:end])]
        return None if None in inner else set().union(*(part for part in inner if part))
    literal = ""
    for place, char in enumerate(word[:_PREFIX_CHARS]):
        if not (char.isascii() and char.isalnum()):
            ends = char in " '" and word[place + 1 : place + 2] not in tuple(_QUANTIFIERS)
            return {literal + " " if ends else literal} if literal else None
        if word[place + 1 : place + 2] in tuple(_QUANTIFIERS):
            return {literal} if literal else None
        literal += char
    return {literal} if literal else None
