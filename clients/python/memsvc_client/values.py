"""JSON values between Python and the contract's Struct and Value.

Purpose: both directions in one place, so that what goes in comes back equal: whatever would come back as something else
is refused, naming the fix.

Threading: pure functions.

Rejected: Struct.update (an int beyond 2^53 loses its last digits without a word), dates and decimals as texts made
here (they would come back as texts, and nobody would know which ones).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2

from .errors import InvalidArgument

EXACT_BELOW = 2**53  # a Value's numbers are doubles: below this every int is one
DEPTH_MAX = 64  # the server allows less; this ends a list that holds itself
_FIXES = {"datetime": "value.isoformat()", "date": "value.isoformat()", "Decimal": "str(value)", "bytes": "base64 text"}


def plain(value: struct_pb2.Value) -> Any:
    """A Struct's value as Python's; integral numbers are ints (a Struct holds doubles only)."""
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < EXACT_BELOW else number
    if kind == "struct_value":
        return struct(value.struct_value)
    if kind == "list_value":
        return [plain(item) for item in value.list_value.values]
    return getattr(value, kind) if kind in ("string_value", "bool_value") else None


def struct(value: struct_pb2.Struct) -> dict[str, Any]:
    """A Struct as a dict."""
    return {key: plain(item) for key, item in value.fields.items()}


def to_value(value: Any, field: str, depth: int = 0) -> struct_pb2.Value:
    """The Value of None, a bool, int, float or str, or of lists and dicts of them. Raises InvalidArgument naming the
    field and the fix for anything else, for ints that a double does not hold, and for NaN and infinity.
    """
    if depth > DEPTH_MAX:
        raise _wrong(field, f"is nested deeper than {DEPTH_MAX} levels")
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, (int, float)):
        return struct_pb2.Value(number_value=_number(value, field))
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=to_struct(value, field, depth + 1))
    if isinstance(value, (list, tuple)):
        items = [to_value(item, f"{field}[{i}]", depth + 1) for i, item in enumerate(value)]
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=items))
    kind = type(value).__name__
    fix = f"; give {_FIXES[kind]}" if kind in _FIXES else ""
    raise _wrong(field, f"is a {kind}; a value is None, bool, int, float, str, list or dict{fix}")


def to_struct(value: Mapping[str, Any], field: str, depth: int = 0) -> struct_pb2.Struct:
    """The Struct of a dict with texts as keys. Raises InvalidArgument as `to_value`."""
    if not isinstance(value, Mapping):
        raise _wrong(field, f"must be a dict, not a {type(value).__name__}")
    for key in value:
        if not isinstance(key, str):
            raise _wrong(field, f"has the key {key!r}; keys are texts")
    return struct_pb2.Struct(fields={key: to_value(item, f"{field}.{key}", depth) for key, item in value.items()})


def _number(value: int | float, field: str) -> float:
    if isinstance(value, int) and abs(value) >= EXACT_BELOW:
        raise _wrong(field, "is an int of 2^53 or more, which would lose digits; give it as text")
    if value != value or value in (float("inf"), float("-inf")):
        raise _wrong(field, f"is {value}, which is no number; give None or a text")
    return float(value)


def _wrong(field: str, what: str) -> InvalidArgument:
    return InvalidArgument(f"{field} {what}", field_violations=[(field, what)])
