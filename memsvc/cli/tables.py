"""Tables that stay readable in a narrow terminal.

Purpose: a memory's id takes 40 columns. Where a terminal has fewer than WIDE_COLUMNS, ids and reasons stand below the
text that they belong to instead of beside it, so that the text keeps half of the width. Cells are data: no markup, no
control characters reach the terminal.

Threading: one command a process.

Rejected: shortened ids (they could not be copied into the next command), one layout for every width (the wide one
leaves the text no room in 80 columns, the narrow one wastes a wide screen).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from memsvc.cli.common import Call, out, print_json, printable
from memsvc.cli.values import value_text

WIDE_COLUMNS = 120
COMPONENTS = ("vector", "lexical", "exact", "time", "importance", "neighbour", "cosine", "bm25")


class Column(NamedTuple):
    """A column: short by default; `text` shares what is left of the width, `aside` goes below the first text where the
    terminal is narrow.
    """

    name: str
    text: bool = False
    aside: bool = False
    right: bool = False


ID = Column("id", aside=True)


def rows_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, lines: bool = False) -> Table:
    """One row a record, cells in order of the columns; the first text column takes the asides of a narrow terminal.
    `lines`: with a line between records.
    """
    narrow = out.width < WIDE_COLUMNS
    table = Table(expand=True, show_lines=lines)
    for column in columns:
        if column.text:
            table.add_column(column.name, ratio=1, overflow="fold")
        elif not (narrow and column.aside):
            table.add_column(
                column.name,
                justify="right" if column.right else "left",
                no_wrap=True,
                style="dim" if column.aside else "",
            )
    first = next(i for i, column in enumerate(columns) if column.text)
    for row in rows:
        below = [cell for column, cell in zip(columns, row, strict=True) if narrow and column.aside and cell]
        cells = [
            _with_asides(cell, below) if i == first else Text(printable(cell))
            for i, (column, cell) in enumerate(zip(columns, row, strict=True))
            if not (narrow and column.aside)
        ]
        table.add_row(*cells)
    return table


def _with_asides(cell: str, asides: Sequence[str]) -> Text:
    text = Text(printable(cell))
    for aside in asides:
        text.append("\n" + printable(aside), style="dim")
    return text


def fields_table(fields: dict[str, Any]) -> Table:
    """One record, a field a row; empty fields are left out."""
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value not in (None, "", [], {}):
            table.add_row(name, Text(printable(value_text(value))))
    return table


def print_memory(memory: dict[str, Any], call: Call) -> None:
    """One memory, field by field."""
    if call.wants_json:
        print_json(memory)
    else:
        out.print(fields_table(memory))


def memories_table(memories: list[dict[str, Any]], scores: bool) -> Table:
    """One memory a row."""
    columns = [Column("type"), Column("scope"), Column("content", text=True), ID]
    if scores:
        columns = [Column("score", right=True), *columns[:3], Column("why", aside=True), ID]
    rows = []
    for memory in memories:
        state = "" if memory["status"] == "active" else f" [{memory['status']}]"
        row = [memory["type"], memory["scope"], memory["content"] + state, memory["memory_id"]]
        rows.append([f"{memory['score']:.3f}", *row[:3], ",".join(memory["paths"]), row[3]] if scores else row)
    return rows_table(columns, rows)


def components_table(found: Sequence[dict[str, Any]]) -> Table:
    """Score components of hits: a column each, or one column for all where the terminal is narrow."""
    if out.width >= WIDE_COLUMNS:
        columns = [Column("content", text=True), *(Column(name, right=True) for name in COMPONENTS)]
        rows = [[hit["content"], *(f"{hit['components'][name]:.3f}" for name in COMPONENTS)] for hit in found]
        return rows_table(columns, rows)
    return rows_table(
        [Column("content", text=True), Column("components")], [[hit["content"], _pairs(hit)] for hit in found]
    )


def _pairs(hit: dict[str, Any]) -> str:
    """Components of a hit, two a line."""
    told = [f"{name} {hit['components'][name]:.3f}" for name in COMPONENTS]
    return "\n".join(f"{left:<17}{right}" for left, right in zip(told[::2], told[1::2], strict=True))


def brief(time: dt.datetime | str | None) -> str:
    """A UTC time to the second, 20 characters; "" for none."""
    if not time:
        return ""
    moment = dt.datetime.fromisoformat(time) if isinstance(time, str) else time
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
