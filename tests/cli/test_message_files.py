"""Files of messages: both forms, and every kind of damage, with the line that it is on."""

from __future__ import annotations

import json

import pytest

from memsvc.cli.message_files import CONTENT_MAX_BYTES, parse
from memsvc.errors import InvalidArgument

GOOD = '{"role": "user", "content": "以后都用中文"}'


def lines(raw: bytes | str) -> tuple[list[int], list[tuple[int, str]]]:
    records, bad = parse(raw.encode() if isinstance(raw, str) else raw)
    return [record.line for record in records], [tuple(one) for one in bad]


@pytest.mark.parametrize("raw", ["", "\n \n", "[]", " [\n] "])
def test_nothing_is_nothing(raw):
    assert lines(raw) == ([], [])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_json_lines_count_from_one_and_skip_empty_ones(newline, bom):
    records, bad = parse(bom + newline.join([GOOD, "", GOOD]).encode())
    assert [record.line for record in records] == [1, 3]
    assert records[0].fields == json.loads(GOOD)
    assert bad == []


def test_an_array_gives_the_line_on_which_each_element_begins():
    raw = f'\n[\n  {GOOD},\n  {{\n"role": "tool",\n"content": "a\\nb"}}, {GOOD}\n,\n{GOOD}]\n'
    assert lines(raw) == ([3, 4, 6, 8], [])
    assert lines(json.dumps([json.loads(GOOD)] * 3, indent=2)) == ([2, 6, 10], [])


def test_bad_lines_cost_only_themselves():
    raw = b"\n".join(
        [
            GOOD.encode(),
            b'{"role": "user"',
            b'{"role": "user", "content": null}',
            b'{"role": "narrator", "content": "x"}',
            b'{"role": "user", "content": "x", "time": "2025-01-10 09:00"}',
            b'{"role": "user", "content": "x", "when": 1}',
            b'"text"',
            b'{"role": "user", "content": "\xff"}',
            b'{"role": "user", "content": "\\ud800"}',
            b"[" * 100_000,
            json.dumps({"role": "user", "content": "语" * (CONTENT_MAX_BYTES // 3 + 1)}).encode(),
            GOOD.encode(),
            GOOD[:-5].encode(),  # a torn last line
        ]
    )
    good, bad = lines(raw)
    assert good == [1, 12]
    assert [line for line, _ in bad] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]
    reasons = dict(bad)
    for line, told in (
        (2, "not JSON: "),
        (3, "content is missing"),
        (4, "'narrator' is not one of"),
        (5, "no time zone; add Z"),
        (6, "no key 'when'"),
        (7, "must be an object"),
        (8, "not UTF-8 at byte 30"),
        (9, "lone surrogate"),
        (10, "not JSON"),
        (11, f"65538 bytes; at most {CONTENT_MAX_BYTES}"),
        (13, "not JSON: "),
    ):
        assert told in reasons[line], line


@pytest.mark.parametrize(
    ("raw", "good", "bad_line", "told"),
    [
        (f"[{GOOD},\n{GOOD[:-3]}", [1], 2, "the rest of the array can't be read"),
        (f"[{GOOD},\n", [1], 2, "the rest of the array can't be read"),
        (f"[{GOOD}\n{GOOD}]", [1], 2, "a comma or the end"),
        (f"[{GOOD}", [1], 1, "a comma or the end"),
        (f"[{GOOD}]\n\n{GOOD}", [1], 3, "after the end of the array"),
        (f'[{GOOD},\n{{"role": "user"}},\n{GOOD}]', [1, 3], 2, "content is missing"),
    ],
)
def test_a_damaged_array_gives_what_stands_before_the_damage(raw, good, bad_line, told):
    found, bad = lines(raw)
    assert found == good
    assert [line for line, _ in bad] == [bad_line]
    assert told in bad[0][1]


def test_an_array_that_is_not_utf_8_names_the_line():
    assert lines(b'[\n{"role": "\xff"}]') == ([], [(2, "not UTF-8; nothing of the array was read")])


@pytest.mark.parametrize(
    "raw", [b"memory_id,action,new_content\r\n", b'\xef\xbb\xbf{"memory_id": "mem_1", "action": ""}']
)
def test_a_checklist_is_refused_naming_the_right_command(raw):
    with pytest.raises(InvalidArgument, match="memsvc review apply"):
        parse(raw)
