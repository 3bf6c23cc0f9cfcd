"""Typed values on a command line, and how they are printed.

Purpose: `facts set port 8080` stores a number and `facts set version 1.10` a text, without a word about types: a text
is read as a number only if the number would be printed as the same text.

Threading: pure functions.

Rejected: everything is text unless said otherwise (`true` and `8080` would be found, and compared, as words); YAML's
rules (`no` is not a boolean to somebody who writes about Norway).
"""

from __future__ import annotations

import json
import math
from enum import StrEnum
from typing import Any

import typer


class ValueType(StrEnum):
    """How a value is read; `auto` takes what JSON would read, and everything else as text."""

    auto = "auto"
    text = "text"
    number = "number"
    bool = "bool"
    null = "null"
    json = "json"


_WORDS = {"true": True, "false": False, "null": None}


def read_value(text: str, kind: ValueType, option: str) -> Any:
    """The typed value of a text. Raises typer.BadParameter naming the fix for one that has not this type."""
    if kind is ValueType.auto:
        return _guessed(text)
    if kind is ValueType.text:
        return text
    try:
        value = _from_json(text)
    except ValueError as error:
        raise typer.BadParameter(f"{_short(text)} is not {_named(kind)}: {error}", param_hint=option) from error
    if kind is not ValueType.json and type_of(value) != kind.value:
        raise typer.BadParameter(f"{_short(text)} is not {_named(kind)}", param_hint=option)
    return value


def read_field(text: str, option: str) -> tuple[str, Any]:
    """NAME=VALUE, the value read by `auto`. Raises typer.BadParameter for anything else."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{_short(text)} is not NAME=VALUE, such as order=ORD-2025-0110", param_hint=option)
    return name, _guessed(value)


def read_object(text: str, option: str) -> dict[str, Any]:
    """A JSON object. Raises typer.BadParameter for anything else."""
    value = read_value(text, ValueType.json, option)
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{_short(text)} is not a JSON object", param_hint=option)
    return value


def type_of(value: Any) -> str:
    """The name of a value's type: text, number, bool, null, list or object."""
    if isinstance(value, bool):
        return "bool"
    named = {str: "text", int: "number", float: "number", list: "list", dict: "object"}
    return next((name for kind, name in named.items() if isinstance(value, kind)), "null")


def value_text(value: Any) -> str:
    """A value as a person writes it: texts as they are, everything else as JSON on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _guessed(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    try:
        value = _from_json(text)
    except ValueError:
        return text
    is_number = isinstance(value, (int, float))
    return value if isinstance(value, (dict, list)) or (is_number and json.dumps(value) == text) else text


def _from_json(text: str) -> Any:
    """As json.loads, for numbers that a double holds. Raises ValueError, also for what is nested too deep."""
    try:
        return json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_exact)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{_short(text)} is no finite number")
    return number


def _exact(text: str) -> int:
    try:
        number = int(text)
        if float(number) == number:
            return number
    except (ValueError, OverflowError):
        pass  # more digits than Python reads, or than a double can count
    raise ValueError(f"{_short(text)} is no number that can be kept exactly; write it as text")


def _named(kind: ValueType) -> str:
    return {
        ValueType.number: "a number such as 9078 or 1.5",
        ValueType.bool: "true or false",
        ValueType.null: "null",
    }.get(kind, "JSON")


def _short(text: str) -> str:
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    return repr(shown)
