"""Files of messages: JSON Lines, or one JSON array.

Purpose: every record with the line that it stands on, checked before anything is sent; a bad one is told with its line
and reason, and costs only itself.

Threading: pure functions.

Rejected: guessing the shapes of tools' own logs here (that is an importer's work).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from memsvc.errors import InvalidArgument as WrongFile
from memsvc_client import InvalidArgument
from memsvc_client.learning import message

CONTENT_MAX_BYTES = 65_536
_SPACE = " \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """A message record and its line, counted from 1."""

    line: int
    fields: dict[str, Any]


class BadLine(NamedTuple):
    """A line that can't be taken, and why; the reason holds no content."""

    line: int
    reason: str


def parse(raw: bytes) -> tuple[list[Record], list[BadLine]]:
    """Records and bad lines of a file, in order. Raises InvalidArgument for a checklist of `memsvc review export`."""
    raw = raw.removeprefix(_BOM)
    _refuse_checklist(raw)
    records: list[Record] = []
    bad: list[BadLine] = []
    for line, value in _array(raw) if raw.lstrip().startswith(b"[") else _lines(raw):
        problem = value.reason if isinstance(value, BadLine) else _problem(value)
        if problem:
            bad.append(BadLine(line, problem))
        else:
            records.append(Record(line, value))
    return records, bad


def _refuse_checklist(raw: bytes) -> None:
    first = raw.lstrip().partition(b"\n")[0]
    if first.startswith(b"memory_id,") or (b'"memory_id"' in first and b'"action"' in first):
        raise WrongFile("this is a checklist, not messages; apply it with `memsvc review apply FILE`")


def _problem(value: Any) -> str:
    """Why a value is no message; "" if it is one."""
    try:
        built = message(value, "message")
    except InvalidArgument as error:
        return error.message
    size = len(built.content.encode())
    if size > CONTENT_MAX_BYTES:
        return f"message.content has {size} bytes; at most {CONTENT_MAX_BYTES}"
    return ""


def _lines(raw: bytes) -> Iterator[tuple[int, Any]]:
    for line, part in enumerate(raw.split(b"\n"), 1):
        if part.strip():
            yield line, _value(part, line)


def _value(part: bytes, line: int) -> Any:
    try:
        return json.loads(part.decode())
    except UnicodeDecodeError as error:
        return BadLine(line, f"not UTF-8 at byte {error.start + 1}")
    except json.JSONDecodeError as error:
        return BadLine(line, f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return BadLine(line, f"not JSON: {type(error).__name__}")


def _array(raw: bytes) -> Iterator[tuple[int, Any]]:
    """Elements of one array; what stands before damage is still given."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        yield line, BadLine(line, "not UTF-8; nothing of the array was read")
        return
    decoder = json.JSONDecoder()
    at = text.index("[") + 1
    line = text.count("\n", 0, at) + 1
    while True:
        start = _skip(text, at)
        line += text.count("\n", at, start)
        at = start
        if text[at : at + 1] == "]":
            rest = _skip(text, at + 1)
            if rest < len(text):
                line += text.count("\n", at, rest)
                yield line, BadLine(line, "text after the end of the array")
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield line, BadLine(line, "not JSON; the rest of the array can't be read")
            return
        yield line, value
        line += text.count("\n", at, end)
        at = _skip(text, end)
        line += text.count("\n", end, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            yield line, BadLine(line, "a comma or the end of the array is missing; the rest can't be read")
            return


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
