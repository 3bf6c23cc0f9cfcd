"""The round trip of a review: what is exported comes back unchanged, and only what a person wrote is decided."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.cli.checklist import COLUMNS, Format, guarded, read, unguarded, write
from memsvc.errors import InvalidArgument

ID = "mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f"


def memory(number: int = 1, content: str = '报告用 PDF, "不"用 Word\n第二行') -> dict[str, Any]:
    return {
        "memory_id": f"mem_{number}",
        "content": content,
        "status": "staged",
        "type": "fact",
        "layer": "semantic",
        "scope": "user",
        "subject": "report.format",
        "confidence": 0.5,
        "importance": 0.4,
        "seen_count": 1,
        "create_time": "2025-01-10T09:00:00+00:00",
        "source": {"tool": "t", "session_id": "s", "message_id": ""},
    }


def filled(form: Format, *answers: dict[str, str]) -> bytes:
    """A checklist of as many memories as there are answers, filled in."""
    text = write([memory(i) for i in range(len(answers))], form)
    if form is Format.jsonl:
        rows = [json.loads(line) for line in text.splitlines()]
        return "\n".join(json.dumps({**row, **answer}) for row, answer in zip(rows, answers, strict=True)).encode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows({**row, **answer} for row, answer in zip(rows, answers, strict=True))
    return out.getvalue().encode("utf-8-sig")


@given(st.text(alphabet=st.sampled_from("'=+-@\t\r\n a语"), max_size=6))
def test_the_guard_is_undone_for_every_text_and_leaves_no_formula(text):
    assert unguarded(guarded(text)) == text
    assert not guarded(text).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("form", list(Format))
@given(content=st.text(max_size=40))
def test_a_correction_comes_back_as_it_was_written(form, content):
    answer = guarded(content) if form is Format.csv else content
    found = read(filled(form, {"action": "correct", "new_content": answer}))
    if content.strip():
        assert [decision.content for decision in found.decisions] == [content]
    else:
        assert [line for line, _ in found.problems]


def test_columns_begin_with_what_is_to_be_filled_in():
    rows = list(csv.DictReader(io.StringIO(write([memory(content='=HYPERLINK("http://x")')], Format.csv), newline="")))
    assert list(rows[0])[:4] == ["memory_id", "action", "new_content", "reason"]
    assert (rows[0]["action"], rows[0]["new_content"], rows[0]["source"]) == ("", "", "t/s")
    assert rows[0]["content"] == '\'=HYPERLINK("http://x")'
    row = json.loads(write([memory(content="=1+1")], Format.jsonl))
    assert (row["content"], row["confidence"], row["action"]) == ("=1+1", 0.5, "")


@pytest.mark.parametrize("form", list(Format))
def test_decisions_skips_and_lines(form):
    found = read(
        filled(
            form,
            {"action": " Confirm "},
            {},
            {"action": "correct", "new_content": "报告用 HTML"},
            {"action": "forget", "reason": "wrong"},
            {"action": "block"},
        )
    )
    assert [(d.memory_id, d.action, d.content, d.reason) for d in found.decisions] == [
        ("mem_0", "confirm", "", ""),
        ("mem_2", "correct", "报告用 HTML", ""),
        ("mem_3", "forget", "", "wrong"),
        ("mem_4", "block", "", ""),
    ]
    assert (found.skipped_count, found.problems) == (1, [])
    # In CSV the content of each memory holds a line break, so that each takes two lines below the header.
    assert [d.line for d in found.decisions] == ([2, 6, 8, 10] if form is Format.csv else [1, 3, 4, 5])


@pytest.mark.parametrize("form", list(Format))
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"action": "approve"}, "unknown action 'approve'; use confirm, correct, forget, block"),
        ({"action": "correct"}, "correct needs the right statement"),
        ({"action": "forget", "new_content": "x"}, "new_content goes with correct, not with forget"),
        ({"new_content": "x"}, "new_content without an action"),
        ({"action": "confirm", "memory_id": ""}, "memory_id is missing"),
        ({"action": "confirm", "memory_id": "mem_0"}, "already"),
    ],
)
def test_problems_name_line_and_value(form, answer, told):
    found = read(filled(form, {"action": "confirm"}, answer))
    assert [line for line, _ in found.problems] == [4 if form is Format.csv else 2]
    assert told in found.problems[0].reason


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_what_a_spreadsheet_of_another_locale_saves_is_read(delimiter):
    raw = (
        delimiter.join(("Memory_ID", "Action", "notes")) + "\r\n" + delimiter.join((ID, "forget", "a, b")) + "\r\n\r\n"
    )
    assert [(d.line, d.memory_id, d.action) for d in read(raw.encode()).decisions] == [(2, ID, "forget")]


def test_short_rows_and_empty_rows_are_left_as_they_are():
    found = read(f"memory_id,action,new_content,reason\r\n{ID}\r\n,,,\r\n".encode())
    assert (found.decisions, found.skipped_count, found.problems) == ([], 1, [])


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "the file is empty"),
        (b"id,action\r\n", "no column memory_id"),
        (b"memory_id,notes\r\n", "no column action"),
        ("memory_id,action\r\nmem_1,确认".encode("gbk"), "CSV UTF-8"),
        (b"hello\nworld\n", "memsvc ingest"),
    ],
)
def test_a_file_that_is_no_checklist_is_refused_naming_the_fix(raw, told):
    with pytest.raises(InvalidArgument, match=told):
        read(raw)


@pytest.mark.parametrize("raw", [b'{"memory_id": "mem_1"', b'{"role": "user"}', b'{"memory_id": "mem_1", "action": 1}'])
def test_a_bad_json_line_is_a_problem(raw):
    assert [line for line, _ in read(b'{"memory_id": "mem_2", "action": null}\n' + raw).problems] == [2]
