"""From Python arguments to the contract's messages.

Purpose: one place for names that people guess, enums by their lower-case names, aware datetimes, filters and weights.
An unknown keyword is a TypeError that names it and the nearest right one.

Threading: pure functions.

Rejected: accepting naive datetimes as local time (a laptop that travels would rewrite history).
"""

from __future__ import annotations

import datetime as dt
import difflib
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf import duration_pb2, timestamp_pb2
from google.protobuf.message import Message

from ._proto import memory_pb2 as pb
from ._proto import memory_service_pb2 as spb
from .errors import InvalidArgument
from .values import to_struct

ALIASES = {"text": "query", "limit": "top_k", "run_id": "session_id", "user": "user_id", "agent": "agent_id"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def check_names(call: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError for a keyword that the call does not have."""
    known = list(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it takes {', '.join(sorted(known))}"
            raise TypeError(f"{call}() has no argument {name!r}{hint}")


def unalias(call: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options with guessed names replaced by the right ones. Raises TypeError when both are given."""
    named: dict[str, Any] = {}
    for name, value in options.items():
        right = ALIASES.get(name, name)
        if right in named:
            raise TypeError(f"{call}() got {name!r} and {right!r}, which mean the same")
        named[right] = value
    return named


def guessed(call: str, others: Mapping[str, Any], **known: Any) -> tuple[Any, ...]:
    """The known arguments in order, filled from others that go by a guessed name. Raises TypeError for an unknown name,
    and when an argument is given twice.
    """
    check_names(call, [ALIASES.get(name, name) for name in others], known)
    for name, value in others.items():
        if known[ALIASES[name]] not in (None, ""):
            raise TypeError(f"{call}() got {name!r} and {ALIASES[name]!r}, which mean the same")
        known[ALIASES[name]] = value
    return tuple(known.values())


def enum_value(kind: Any, prefix: str, value: str | int, field: str) -> int:
    """Number of an enum given by name ("preference") or number. Raises InvalidArgument naming the field."""
    if isinstance(value, int):
        return value
    name = f"{prefix}_{value.upper()}"
    if name not in kind.keys():  # noqa: SIM118  # an EnumTypeWrapper is not a mapping
        names = [n[len(prefix) + 1 :].lower() for n in kind.keys() if not n.endswith("_UNSPECIFIED")]  # noqa: SIM118
        raise InvalidArgument(f"{field} {value!r} is not one of {', '.join(names)}", field_violations=[(field, value)])
    number: int = kind.Value(name)
    return number


def enum_name(kind: Any, prefix: str, number: int) -> str:
    """Lower-case name of an enum's number; "" for unspecified, the number itself for one of a newer server."""
    if number == 0:
        return ""
    descriptor = kind.DESCRIPTOR.values_by_number.get(number)
    return str(number) if descriptor is None else descriptor.name[len(prefix) + 1 :].lower()


def duration(seconds: float) -> duration_pb2.Duration:
    """A Duration, to the nanosecond."""
    nanos = round(seconds * 1e9)
    return duration_pb2.Duration(seconds=nanos // 10**9, nanos=nanos % 10**9)


def timestamp(value: dt.datetime, field: str) -> timestamp_pb2.Timestamp:
    """A Timestamp of an aware datetime. Raises InvalidArgument for a naive one, naming the fix."""
    if not isinstance(value, dt.datetime):
        raise InvalidArgument(f"{field} must be a datetime, not {type(value).__name__}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidArgument(
            f"{field} has no time zone; say which: {field}=datetime(..., tzinfo=timezone.utc)",
            field_violations=[(field, "naive datetime")],
        )
    delta = value - _EPOCH
    seconds = delta.days * 86_400 + delta.seconds
    return timestamp_pb2.Timestamp(seconds=seconds, nanos=delta.microseconds * 1000)


def datetime_of(message: timestamp_pb2.Timestamp) -> dt.datetime:
    """The aware UTC datetime of a Timestamp."""
    return _EPOCH + dt.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def encodable(build: Callable[[], Any], what: str) -> Any:
    """Runs a builder; text that is not Unicode becomes InvalidArgument instead of UnicodeEncodeError."""
    try:
        return build()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{what} holds a lone surrogate, which is not text; remove it") from error
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{what}: {error}") from error


DRAFT_NAMES = (
    "content",
    "type",
    "layer",
    "scope",
    "subject",
    "tags",
    "metadata",
    "importance",
    "confidence",
    "occur_time",
    "expire_time",
    "supersedes",
    "session_id",
    "message_id",
    "tool",
)


def draft(fields: Mapping[str, Any], tool: str, session_id: str) -> spb.MemoryDraft:
    """A MemoryDraft of keyword arguments; tool and session are the client's unless given."""
    check_names("write", fields, DRAFT_NAMES)
    message: spb.MemoryDraft = encodable(lambda: _draft(fields, tool, session_id), "the memory")
    return message


def _draft(fields: Mapping[str, Any], tool: str, session_id: str) -> spb.MemoryDraft:
    message = spb.MemoryDraft(content=fields.get("content", ""))
    for name, kind, prefix in (
        ("type", pb.MemoryType, "MEMORY_TYPE"),
        ("layer", pb.Layer, "LAYER"),
        ("scope", pb.Scope, "SCOPE"),
    ):
        if fields.get(name) is not None:
            setattr(message, name, enum_value(kind, prefix, fields[name], name))
    if fields.get("subject"):
        message.subject = fields["subject"]
    message.tags.extend(texts(fields.get("tags"), "tags"))
    if fields.get("metadata"):
        message.metadata.CopyFrom(to_struct(fields["metadata"], "metadata"))
    for name in ("importance", "confidence"):
        if fields.get(name) is not None:
            setattr(message, name, fields[name])
    for name in ("occur_time", "expire_time"):
        if fields.get(name) is not None:
            getattr(message, name).CopyFrom(timestamp(fields[name], name))
    message.supersedes.extend(texts(fields.get("supersedes"), "supersedes"))
    message.source.tool = fields.get("tool") or tool
    message.source.session_id = fields.get("session_id") or session_id
    message.source.message_id = fields.get("message_id") or ""
    return message


def texts(value: Iterable[str] | None, field: str) -> list[str]:
    """A list of texts. Raises InvalidArgument for one text, whose characters nobody means."""
    if value is None:
        return []
    if isinstance(value, str):
        raise InvalidArgument(f"{field} must be a list of texts, not one text", field_violations=[(field, "a text")])
    return list(value)


def scope(value: str | None) -> Any:
    """Number of a scope; 0, which leaves it to the server, for None."""
    return 0 if value is None else enum_value(pb.Scope, "SCOPE", value, "scope")


def scopes(values: Iterable[str] | None) -> list[Any]:
    """Scope numbers."""
    return [enum_value(pb.Scope, "SCOPE", v, "scopes") for v in texts(values, "scopes")]


def time_range(span: tuple[dt.datetime | None, dt.datetime | None], field: str) -> pb.TimeRange:
    """A TimeRange of (start, end), either of which may be None."""
    start, end = span
    message = pb.TimeRange()
    if start is not None:
        message.start_time.CopyFrom(timestamp(start, f"{field}[0]"))
    if end is not None:
        message.end_time.CopyFrom(timestamp(end, f"{field}[1]"))
    return message


FILTER_NAMES = (
    "types",
    "layers",
    "statuses",
    "tags_all",
    "tags_any",
    "subjects",
    "source_tools",
    "source_session_ids",
    "create_time",
    "occur_time",
    "min_importance",
    "max_importance",
    "min_confidence",
    "max_confidence",
)


def condition(options: Mapping[str, Any], into: pb.Filter) -> None:
    """Fills a Filter from keyword arguments; times are (start, end) pairs, either of which may be None."""
    for name, kind, prefix in (
        ("types", pb.MemoryType, "MEMORY_TYPE"),
        ("layers", pb.Layer, "LAYER"),
        ("statuses", pb.Status, "STATUS"),
    ):
        values = texts(options.get(name), name)
        getattr(into, name).extend(enum_value(kind, prefix, v, name) for v in values)
    for name in ("tags_all", "tags_any", "subjects", "source_tools", "source_session_ids"):
        getattr(into, name).extend(texts(options.get(name), name))
    for name in ("create_time", "occur_time"):
        if options.get(name) is not None:
            getattr(into, name).CopyFrom(time_range(options[name], name))
    for name in ("min_importance", "max_importance", "min_confidence", "max_confidence"):
        if options.get(name) is not None:
            setattr(into, name, options[name])


RECALL_NAMES = (
    *FILTER_NAMES,
    "scopes",
    "top_k",
    "min_score",
    "weights",
    "include_inactive",
    "as_of",
    "latency_budget_ms",
)
_WEIGHTS = ("vector", "lexical", "time", "importance", "neighbour")


def recall_request(owners: pb.Owners, query: str, options: Mapping[str, Any]) -> spb.RecallRequest:
    """A RecallRequest of keyword arguments."""
    if not options:
        request: spb.RecallRequest = encodable(lambda: spb.RecallRequest(owners=owners, query=query), "the query")
        return request
    check_names("recall", options, RECALL_NAMES)
    check_names("recall weights", options.get("weights") or (), _WEIGHTS)
    request = encodable(lambda: _recall_request(owners, query, options), "the recall")
    return request


def _recall_request(owners: pb.Owners, query: str, options: Mapping[str, Any]) -> spb.RecallRequest:
    request = spb.RecallRequest(
        owners=owners,
        query=query,
        top_k=options.get("top_k") or 0,
        include_inactive=bool(options.get("include_inactive")),
        scopes=scopes(options.get("scopes")),
    )
    if any(options.get(name) is not None for name in FILTER_NAMES):
        request.filter.SetInParent()
        condition(options, request.filter)
    if options.get("min_score") is not None:
        request.min_score = options["min_score"]
    if options.get("weights"):
        request.weights.SetInParent()
        for name, value in options["weights"].items():
            setattr(request.weights, name, value)
    if options.get("as_of") is not None:
        request.as_of.CopyFrom(timestamp(options["as_of"], "as_of"))
    if options.get("latency_budget_ms") is not None:
        request.latency_budget.CopyFrom(duration(options["latency_budget_ms"] / 1000))
    return request


UPDATE_NAMES = (
    "content",
    "type",
    "subject",
    "tags",
    "metadata",
    "importance",
    "confidence",
    "occur_time",
    "expire_time",
)


def patch(fields: Mapping[str, Any], request: spb.UpdateRequest) -> None:
    """Fills patch and mask of an UpdateRequest; expire_time=None means "never"."""
    check_names("update", fields, UPDATE_NAMES)
    if not fields:
        raise InvalidArgument(f"name what to update: {', '.join(UPDATE_NAMES)}")
    encodable(lambda: _patch(fields, request), "the update")


def _patch(fields: Mapping[str, Any], request: spb.UpdateRequest) -> None:
    for name, value in fields.items():
        request.update_mask.paths.append(name)
        if name == "type":
            request.patch.type = enum_value(pb.MemoryType, "MEMORY_TYPE", value, "type")  # type: ignore[assignment]
        elif name == "tags":
            request.patch.tags.extend(texts(value, "tags"))
        elif name == "metadata":
            request.patch.metadata.CopyFrom(to_struct(value or {}, "metadata"))
        elif name in ("occur_time", "expire_time"):
            if value is not None:
                getattr(request.patch, name).CopyFrom(timestamp(value, name))
        else:
            setattr(request.patch, name, value)


def cache_key(request: Message) -> bytes:
    """Equal for equal requests."""
    return request.SerializeToString(deterministic=True)


def fresh_request_id() -> str:
    """A UUID that names one mutation."""
    return str(uuid.uuid4())
