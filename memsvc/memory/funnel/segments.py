"""Cutting a message into sentences and clauses, in English and Chinese, without a segmenter.

Purpose: cues are read per sentence, and a statement is made of whole sentences. Code blocks stay with the sentence
before them, quotations are never cut, list lines are sentences of their own.

Threading: pure functions.

Rejected: cutting at every comma (a Chinese sentence is a chain of clauses that need each other).
"""

from __future__ import annotations

import re

_PROTECTED = re.compile(
    r"```.*?(?:```|\Z)|“[^”]{0,300}”|「[^」]{0,300}」|\"[^\"\n]{0,300}\"|（[^）]{0,200}）|`[^`\n]+`", re.S
)
_BOUNDARY = re.compile(r"[。！？；!?…]+[”’\"）)」]*|(?<![A-Z])\.+[\"')”]*(?=\s|$|[\u3400-\u9fff])|;(?=\s)|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|no|st|approx|inc|ltd|co|jr|sr|u\.s|a\.m|p\.m)|^\s*\d{1,2}|\b[a-z])$", re.I
)
_CLAUSE = re.compile(
    r"[，、]?(?:所以|因此|但是?|不过|另外|还有|同时)|[，；]|,? +(?=so (?!that)|but |and (?:please|don't|always|"
    r"never|i'm |i |we |long |my |keep ))|"
    r", (?=(?:which means|please|don't|do not|leave|use|skip|keep|plan|give|put|make|no |only|show|schedule|"
    r"block|filter|avoid|so |but |and |round|in |"
    r"arm|everything|for ))| [-–—] |; ",
    re.I,
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, none empty. Their join says all that the text says."""
    spans = [match.span() for match in _PROTECTED.finditer(text)]
    sentences: list[str] = []
    start = 0
    span_at = 0
    for match in _BOUNDARY.finditer(text):
        place = match.start()
        while span_at < len(spans) and spans[span_at][1] <= place:
            span_at += 1
        if span_at < len(spans) and spans[span_at][0] <= place < spans[span_at][1]:
            continue
        sign = match.group()
        if sign[0] == "." and _ABBREVIATION.search(text[start:place]):
            continue
        if text[match.end() :].lstrip().startswith("```"):
            continue
        _append(sentences, text[start : match.end()])
        start = match.end()
    _append(sentences, text[start:])
    return sentences


def split_clauses(sentence: str) -> list[str]:
    """The clauses of a sentence, stripped, none empty; a quotation or a code block is never cut."""
    spans = [match.span() for match in _PROTECTED.finditer(sentence)]
    clauses: list[str] = []
    start = 0
    for match in _CLAUSE.finditer(sentence):
        place = match.start()
        if place <= start or any(low <= place < high for low, high in spans):
            continue
        _append(clauses, sentence[start:place])
        start = match.end() if sentence[place] in "，；,; " and match.group().strip(" ,，；;-–—") == "" else place
    _append(clauses, sentence[start:])
    return clauses


def _append(parts: list[str], piece: str) -> None:
    stripped = piece.strip()
    if stripped.strip(" \t\r\n.。!！?？,，;；…~～-—:："):
        parts.append(stripped)
    elif stripped and parts and not stripped.startswith(("-", "—")):
        parts[-1] += stripped
