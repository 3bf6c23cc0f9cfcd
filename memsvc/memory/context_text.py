"""The text of a context block: neutral lines between markers, in three forms.

Purpose: memory text is data that somebody else may have written. A line is one line, holds no control characters, no
control tokens of chat templates and nothing that looks like a marker, so that it can neither end the block nor speak in
another role. The markers are those that the funnel takes out of logs (`funnel.rules.strip_blocks`), so that a block
that comes back in an import is not the user's words.

Threading: pure functions.

Rejected: escaping as XML (models read `&lt;` as noise, and code is full of angle brackets: only what looks like a
control token or a marker is changed); memory ids in the text (40 characters are 25 tokens; a line has a number, and the
answer's lines name the id).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from enum import IntEnum

import msgspec

from memsvc.memory.one_line import shortened

OPEN_MARKER = '<memory source="memsvc">'
CLOSE_MARKER = "</memory>"
LINE_MAX_CHARS = 280
LONG_LINE_MAX_CHARS = 2000  # where the budget has room left


class Section(IntEnum):
    """Parts of a block in their order; numbers equal the contract's."""

    PERMANENT = 1
    PREFERENCES = 2
    FACTS = 3
    SKILLS = 4
    EVENTS = 5
    SESSION = 6


class Format(IntEnum):
    """Forms of a block; numbers equal the contract's."""

    TEXT = 1
    JSON = 2
    MESSAGES = 3


class Order(IntEnum):
    """Where the best line of a section stands; numbers equal the contract's."""

    BEST_LAST = 1
    BEST_FIRST = 2


TITLES = {
    Section.PERMANENT: "Always applies:",
    Section.PREFERENCES: "Preferences, rules and decisions:",
    Section.FACTS: "Facts:",
    Section.SKILLS: "Skills:",
    Section.EVENTS: "What happened:",
    Section.SESSION: "This session:",
}


class Line(msgspec.Struct, frozen=True):
    """One line of a block. `memory_id` is empty for session state; `score` 0 for what was not recalled."""

    section: Section
    text: str
    memory_id: str = ""
    score: float = 0.0


_NAMES = (
    r"s|bos|eos|unk|pad|sys|inst|system|user|assistant|human|tool|think|begin_of_text|end_of_text|start_of_turn|"
    r"end_of_turn|function_calls?|tool_calls?|tool_response|invoke|parameter|memor(?:y|ies)|system[-_]reminder|context|"
    r"retrieved_memories|relevant_memories|user_memory|memory_context|recalled|knowledge|env|environment_details|"
    r"persisted-output|(?:local-)?command-\w+"
)
_CONTROL = re.compile(
    r"<\s*\|.{0,64}?\|\s*>"  # <|im_start|>, <|endoftext|>, <|eot_id|>
    r"|<<\s*/?\s*SYS\s*>>"
    rf"|<\s*/?\s*(?:{_NAMES})(?![\w-])(?:[\s:=/][^<>]{{0,200}})?>?"
    r"|\[\s*/?\s*(?:INST|SYSTEM|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\s*\]",
    re.I,
)
_NO_WORD = re.compile(r"[\W_]+")
_HARMLESS = str.maketrans("<>[]|", "()()/")
_DROPPED = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))
_JOINERS = "\u200c\u200d"  # letters of Persian, Indic scripts and emoji


def neutral(text: str, limit: int = LINE_MAX_CHARS) -> str:
    """The text as one line of at most `limit` characters, without control characters (Unicode Cc, Cf but
    joiners, Cs, Co, Cn), and with the brackets of control tokens and marker look-alikes made round.
    """
    if not text.isprintable():  # what most lines are
        text = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace() or char in _JOINERS or unicodedata.category(char) not in _DROPPED
        )
    text = " ".join(text.split())
    plain = unicodedata.normalize("NFKC", text).replace(_JOINERS[0], "").replace(_JOINERS[1], "")
    if _CONTROL.search(plain):  # full-width letters and joiners don't hide a token
        text = plain
    before = ""
    while before != text:  # taking one token apart may put another together
        before = text
        text = _CONTROL.sub(lambda match: match.group().translate(_HARMLESS), text)
    return shortened(text, limit)


def same_key(text: str) -> str:
    """What two lines share when they say the same in the same words."""
    return _NO_WORD.sub("", unicodedata.normalize("NFKC", text).casefold())


def number_of(lines: Sequence[Line]) -> dict[int, int]:
    """The citation number of each line (by its index) that has a memory: 1, 2, ... in order of the block."""
    cited = [i for i, line in enumerate(lines) if line.memory_id]
    return {index: number for number, index in enumerate(cited, start=1)}


def row_parts(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    """The rows of a text block, markers included, each as the parts that a space joins; `lines` are in block order.
    Empty for no lines.
    """
    if not lines:
        return []
    rows: list[tuple[str, ...]] = [(OPEN_MARKER,)]
    numbers = number_of(lines)
    for i, line in enumerate(lines):
        if i == 0 or lines[i - 1].section != line.section:
            rows.append((TITLES[line.section],))
        rows.append((f"- [{numbers[i]}]" if i in numbers else "-", line.text))
    return [*rows, (CLOSE_MARKER,)]


def rendered(lines: Sequence[Line], form: Format) -> str:
    """The block in its form; empty for no lines."""
    if not lines:
        return ""
    if form == Format.TEXT:
        return "\n".join(" ".join(parts) for parts in row_parts(lines))
    if form == Format.MESSAGES:
        return json.dumps([{"role": "system", "content": rendered(lines, Format.TEXT)}], ensure_ascii=False)
    entries = [
        {"section": line.section.name.lower(), "text": line.text} | ({"id": line.memory_id} if line.memory_id else {})
        for line in lines
    ]
    return "\n".join((OPEN_MARKER, json.dumps({"memory": entries}, ensure_ascii=False), CLOSE_MARKER))
