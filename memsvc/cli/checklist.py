"""Checklists of a review, as CSV or JSON Lines: written for a person, read back as decisions.

Purpose: a round trip that loses nothing. In CSV a cell that a spreadsheet would run as a formula gets a leading
apostrophe, which reading takes away again: `guarded` and `unguarded` are inverse for every text.

Threading: pure functions.

Rejected: Excel files (a dependency for what CSV does); quoting by a space (it can't be told from the text's own).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from memsvc.errors import InvalidArgument

ACTIONS = ("confirm", "correct", "forget", "block")
FIELDS = ("action", "new_content", "reason")  # what a person fills in
COLUMNS = (
    "memory_id",
    *FIELDS,
    "content",
    "status",
    "type",
    "layer",
    "scope",
    "subject",
    "confidence",
    "importance",
    "seen_count",
    "create_time",
    "source",
)
_RISKY = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
_DELIMITERS = ",;\t"  # spreadsheets save with the one of their locale


class Format(StrEnum):
    """How a checklist is written."""

    csv = "csv"
    jsonl = "jsonl"


class Decision(NamedTuple):
    """What a person wrote into one line."""

    line: int
    memory_id: str
    action: str
    content: str
    reason: str

    def fields(self) -> dict[str, str]:
        """As `MemoryClient.review` takes it."""
        return {"memory_id": self.memory_id, "action": self.action, "content": self.content, "reason": self.reason}


class Problem(NamedTuple):
    """A line that can't be applied, and why."""

    line: int
    reason: str


class Checklist(NamedTuple):
    """What a file says: decisions, how many lines were left empty, and lines that can't be applied."""

    decisions: list[Decision]
    skipped_count: int
    problems: list[Problem]


def guarded(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula."""
    return f"'{cell}" if _RISKY.match(cell) else cell


def unguarded(cell: str) -> str:
    """What `guarded` was given."""
    return cell[1:] if _GUARDED.match(cell) else cell


def rows(memories: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of memories (as `Memory.to_dict`), with nothing decided."""
    for memory in memories:
        source = memory["source"]
        named = "/".join(part for part in (source["tool"], source["session_id"], source["message_id"]) if part)
        yield {**dict.fromkeys(FIELDS, ""), **{name: memory[name] for name in COLUMNS if name in memory}} | {
            "source": named
        }


def write(memories: Iterable[dict[str, Any]], form: Format) -> str:
    """The text of a checklist."""
    text = io.StringIO(newline="")
    if form is Format.jsonl:
        for row in rows(memories):
            text.write(json.dumps({name: row[name] for name in COLUMNS}, ensure_ascii=False) + "\n")
        return text.getvalue()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows(memories):
        writer.writerow([guarded(str(row[name])) for name in COLUMNS])
    return text.getvalue()


def read(raw: bytes) -> Checklist:
    """The decisions of a checklist. Raises InvalidArgument, naming the fix, for a file that is none."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument("the file is not UTF-8; save it as `CSV UTF-8`") from error
    found = list(_json_rows(text) if text.lstrip().startswith("{") else _csv_rows(text))
    decisions: list[Decision] = []
    problems: list[Problem] = []
    lines_by_id: dict[str, int] = {}
    for line, row in found:
        decision = _decision(line, row)
        if isinstance(decision, Decision):
            first = lines_by_id.setdefault(decision.memory_id, line)
            if first != line:
                decision = Problem(line, f"memory_id was decided about in line {first} already")
        if isinstance(decision, Problem):
            problems.append(decision)
        elif decision is not None:
            decisions.append(decision)
    return Checklist(decisions, len(found) - len(decisions) - len(problems), problems)


def _decision(line: int, row: dict[str, str] | Problem) -> Decision | Problem | None:
    """What a row decides; None for nothing."""
    if isinstance(row, Problem):
        return row
    action = row["action"].strip().lower()
    content = row["new_content"]
    if not action:
        return Problem(line, "new_content without an action; write correct") if content.strip() else None
    if action not in ACTIONS:
        shown = row["action"] if len(row["action"]) <= 40 else f"{row['action'][:40]}..."
        return Problem(line, f"unknown action {shown!r}; use {', '.join(ACTIONS)}, or leave it empty")
    if action == "correct" and not content.strip():
        return Problem(line, "correct needs the right statement in new_content")
    if action != "correct" and content.strip():
        return Problem(line, f"new_content goes with correct, not with {action}")
    memory_id = row["memory_id"].strip()
    if not memory_id.startswith("mem_"):
        return Problem(line, "memory_id is missing or not one (mem_...)")
    return Decision(line, memory_id, action, content if action == "correct" else "", row["reason"].strip())


def _csv_rows(text: str) -> Iterator[tuple[int, dict[str, str] | Problem]]:
    header = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=header.count))
    line = 0
    names: list[str] = []
    try:
        for cells in reader:
            line, first = reader.line_num, line + 1
            if not names:
                names = [cell.strip().lower() for cell in cells]
                _check_columns(names)
            elif any(cell.strip() for cell in cells):
                row = dict(zip(names, cells, strict=False))
                yield first, {name: unguarded(row.get(name, "")) for name in ("memory_id", *FIELDS)}
    except csv.Error as error:
        raise InvalidArgument(f"line {line + 1} is not CSV: {error}") from error
    if not names:
        raise InvalidArgument("the file is empty; `memsvc review export` writes a checklist")


def _check_columns(names: list[str]) -> None:
    for name in ("memory_id", "action"):
        if name not in names:
            raise InvalidArgument(
                f"the file has no column {name}: it is not a checklist of `memsvc review export`"
                " (messages go to `memsvc ingest`)"
            )


def _json_rows(text: str) -> Iterator[tuple[int, dict[str, str] | Problem]]:
    for line, part in enumerate(text.split("\n"), 1):
        if part.strip():
            yield line, _json_row(part, line)


def _json_row(part: str, line: int) -> dict[str, str] | Problem:
    try:
        value = json.loads(part)
    except (ValueError, RecursionError):
        return Problem(line, "not JSON")
    if not isinstance(value, dict) or "memory_id" not in value or "action" not in value:
        return Problem(line, "no object with memory_id and action, as `memsvc review export` writes it")
    row = {name: "" if value.get(name) is None else value[name] for name in ("memory_id", *FIELDS)}
    for name, cell in row.items():
        if not isinstance(cell, str):
            return Problem(line, f"{name} must be a text")
    return row
