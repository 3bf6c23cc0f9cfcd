"""Tables in terminals of several widths: content stays readable, ids stay whole, data is never markup."""

from __future__ import annotations

import re
from typing import Any

import pytest

from memsvc.cli import tables
from memsvc.cli.common import printable
from memsvc.cli.tables import ID, Column, brief, components_table, fields_table, memories_table, rows_table

MEMORY_ID = "mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f"
CONTENT = "The staging server listens on port 9077 and restarts every Sunday at three"


@pytest.fixture
def rendered(monkeypatch, capsys):
    """The printed text of what a function makes, in a terminal of some columns."""

    def render(columns: int, make: Any) -> str:
        monkeypatch.setattr(tables.out, "_width", columns)
        tables.out.print(make())
        return capsys.readouterr().out

    return render


def hit(content: str = CONTENT) -> dict[str, Any]:
    memory = {"type": "preference", "scope": "session", "content": content, "status": "active", "memory_id": MEMORY_ID}
    return {
        **memory,
        "score": 1.0304,
        "paths": ["vector", "lexical", "exact", "recent", "neighbour"],
        "components": dict.fromkeys(tables.COMPONENTS, 0.123),
    }


def longest_piece(text: str) -> int:
    """Most characters of the content that stand on one line."""
    pieces = (CONTENT[a:b] for a in range(len(CONTENT)) for b in range(a + 1, len(CONTENT) + 1))
    return max(len(piece) for piece in pieces if piece in text)


@pytest.mark.parametrize("columns", [80, 100, 119])
def test_a_narrow_terminal_leaves_the_content_room_and_the_id_whole(rendered, columns):
    for make in (lambda: memories_table([hit()], scores=True), lambda: memories_table([hit()], scores=False)):
        text = rendered(columns, make)
        assert longest_piece(text) >= 30
        assert MEMORY_ID in text
        assert max(len(line) for line in text.splitlines()) <= columns


def test_explained_scores_are_all_there_in_80_columns_beside_a_readable_content(rendered):
    text = rendered(80, lambda: components_table([hit()]))
    assert longest_piece(text) >= 30
    assert re.findall(r"(\w+) 0\.123", text) == list(tables.COMPONENTS)


def test_a_wide_terminal_has_a_column_for_each(rendered):
    text = rendered(160, lambda: memories_table([hit()], scores=True))
    line = next(line for line in text.splitlines() if MEMORY_ID in line)
    assert CONTENT[:40] in line
    assert "vector,lexical" in line
    header = rendered(160, lambda: components_table([hit()])).splitlines()[1]
    assert all(name in header for name in tables.COMPONENTS)


@pytest.mark.parametrize("columns", [80, 200])
def test_cells_are_data(rendered, columns):
    content = "[red]x[/red] [/] \\[ \x1b[31m\x9b31m \u202e \x00"
    table = rows_table([Column("content", text=True), ID], [(content, "[bold]")])
    text = rendered(columns, lambda: table)
    assert "[red]x[/red] [/] \\[" in text
    assert "[bold]" in text
    assert not set(text) & set("\x1b\x9b\u202e\x00")
    assert "[red]" in rendered(columns, lambda: fields_table({"content": content, "empty": ""}))


def test_joined_emoji_stay_joined():
    assert printable("👨‍👩‍👧 می‌خواهم") == "👨‍👩‍👧 می‌خواهم"


def test_an_empty_aside_makes_no_line(rendered):
    text = rendered(
        80, lambda: rows_table([Column("text", text=True), Column("why", aside=True), ID], [("x", "", "i")])
    )
    assert [line.strip("│ \n") for line in text.splitlines()[3:5]] == ["x", "i"]


def test_times_are_brief_and_utc():
    assert brief("2025-01-10T17:00:00.123+08:00") == "2025-01-10 09:00:00Z"
    assert brief(None) == ""
