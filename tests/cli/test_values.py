"""Typed values of a command line: a text becomes a number only if nothing of it is lost."""

from __future__ import annotations

import json

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from memsvc.cli.values import ValueType, read_field, read_object, read_value, type_of, value_text


def auto(text: str) -> object:
    return read_value(text, ValueType.auto, "VALUE")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8080", 8080),
        ("-5", -5),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ('{"daily": 3}', {"daily": 3}),
        ('["a", 1]', ["a", 1]),
    ],
)
def test_what_json_reads_is_typed(text, value):
    read = auto(text)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        *("CNY", "", " 5", "1.10", "007", "1e5", "+1", "True", "NaN", "Infinity", "-Infinity", "1e999", '"quoted"'),
        *("12345678901234567890", "9007199254740993", "1" * 400, "1" * 5000, "[1", "{1}", '{"a": NaN}'),
        *("no", "人民币", "👨‍👩‍👧", "[" * 100_000, '{"a": 1e999}', '{"id": 12345678901234567890}'),
    ],
)
def test_everything_else_stays_the_text_that_it_is(text):
    assert auto(text) == text


@given(st.text(max_size=20) | st.integers().map(str) | st.floats().map(repr))
def test_what_was_given_is_what_is_printed(text):
    value = auto(text)
    assert value_text(value) == text or json.loads(text) == value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("02139", ValueType.text, "02139"),
        ("8080", ValueType.text, "8080"),
        ("1e5", ValueType.number, 100_000.0),
        ("false", ValueType.bool, False),
        ("null", ValueType.null, None),
        ('"quoted"', ValueType.json, "quoted"),
    ],
)
def test_a_named_type_is_that_type(text, kind, value):
    read = read_value(text, kind, "VALUE")
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("x", ValueType.number, "not a number"),
        ('"5"', ValueType.number, "not a number"),
        ("yes", ValueType.bool, "not true or false"),
        ("1", ValueType.bool, "not true or false"),
        ("", ValueType.null, "not null"),
        ("{", ValueType.json, "not JSON"),
        ("[" * 100_000, ValueType.json, "nested too deep"),
        ("12345678901234567890", ValueType.json, "write it as text"),
        ("NaN", ValueType.number, "no finite number"),
    ],
)
def test_what_has_not_the_named_type_is_refused_naming_the_problem(text, kind, told):
    with pytest.raises(typer.BadParameter, match=told) as caught:
        read_value(text, kind, "VALUE")
    assert len(caught.value.message) < 300


def test_fields_and_objects():
    assert read_field("order.id=ORD-2025-0110", "--field") == ("order.id", "ORD-2025-0110")
    assert read_field("count=3", "--field") == ("count", 3)
    assert read_field("note=a=b", "--field") == ("note", "a=b")
    for text in ("", "order", "=3"):
        with pytest.raises(typer.BadParameter, match="NAME=VALUE"):
            read_field(text, "--field")
    assert read_object('{"a": [1]}', "--payload") == {"a": [1]}
    with pytest.raises(typer.BadParameter, match="not a JSON object"):
        read_object("[1]", "--payload")


def test_types_have_names():
    named = {type_of(value) for value in ("x", 1, 1.5, True, None, [], {})}
    assert named == {"text", "number", "bool", "null", "list", "object"}
