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
_BOUNDARY = re.compile(r"[。！？；!?…]+[”’\"）)」]*|\.+[\"')”]*(?=\s|$|[\u3400-\u9fff])|;(?=\s)|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|no|st|approx|inc|ltd|co|jr|sr|u\.s|a\.m|p\.m)|^\s*\d{1,2}|\b[a-z])$", re.I
)
# Of these a full stop may end the sentence as well: it does when a word follows that opens sentences and is no name.
_MAY_END = re.compile(r"(?<!^)(?:(?<![\n(\[])\b[a-z]|\b(?:etc|inc|ltd|co|jr|sr|no|a\.m|p\.m))$", re.I)
_OPENER = re.compile(
    r"\s+(?:(?:The|An|We|I|It|He|She|They|You|My|Our|Your|This|That|These|Those|There|Please|Always|Never|From|If|"
    r"When|And|But|So|Then|Now|Also|For|On|In|At|All|Use|Do|Don['’]t|Let['’]s|No|Not|Keep|Make)(?:['’]\w+)?(?=[\s,])|"
    r"(?:我|你|您|他|她|它|请|这|那|以后|今后|然后|另外|但|所以|因为|不|别|必须|都|就))"
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
        if sign[0] == "." and _holds(text[start:place], text, match.end()):
            continue
        if text[match.end() :].lstrip().startswith("```"):
            continue
        _append(sentences, text[start : match.end()])
        start = match.end()
    _append(sentences, text[start:])
    return sentences


def _holds(before: str, text: str, end: int) -> bool:
    """Whether the full stop belongs to an abbreviation, an initial or a list's number."""
    if _ABBREVIATION.search(before) is None:
        return False
    return _MAY_END.search(before) is None or _OPENER.match(text, end) is None


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
