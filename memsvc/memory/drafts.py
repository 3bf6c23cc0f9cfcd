"""Checking what callers want stored: limits, ranges, times; from a draft to the fields of a memory.

Purpose: every input has a limit and an error that names it; the same door for write, batch and update.

Threading: pure functions; `check_causes` reads in the caller's transaction.

Rejected: truncating what is too long (a statement cut in half says something else).
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from memsvc.errors import InvalidArgument, LayerNotWritable, LimitExceeded
from memsvc.model import (
    EARLIEST_TIME_US,
    LATEST_TIME_US,
    Event,
    Layer,
    MemoryType,
    Namespace,
    Scope,
    Source,
    id_to_bytes,
)
from memsvc.storage.engine import ReadTxn

SUBJECT_MAX_CHARS = 256
TAGS_MAX = 64
TAG_MAX_CHARS = 128
METADATA_MAX_BYTES = 16_384
METADATA_MAX_DEPTH = 16
SOURCE_MAX_CHARS = 256
SUPERSEDES_MAX = 16
REASON_MAX_CHARS = 1024
BATCH_MAX = 1000
SUMMARY_MAX_CHARS = 100
EVENT_TYPE_MAX_CHARS = 64
PARTICIPANTS_MAX = 32
CAUSES_MAX = 16


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A memory to be stored; None means unset. Times are UTC microseconds. `staged`: not important enough to be active;
    only the funnel says so.
    """

    content: str
    type: MemoryType | None = None
    layer: Layer | None = None
    scope: Scope | None = None
    subject: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    source: Source = Source()
    importance: float | None = None
    confidence: float | None = None
    occur_time_us: int | None = None
    expire_time_us: int | None = None
    supersedes: tuple[str, ...] = ()
    staged: bool = False
    event: Event | None = None


def check_draft(draft: Draft, content_max_bytes: int, path: str) -> None:
    """Raises InvalidArgument, LimitExceeded or LayerNotWritable naming the field below `path`."""
    check_content(draft.content, content_max_bytes, f"{path}.content")
    if draft.layer in (Layer.WORKING, Layer.PERMANENT):
        way = "sessions" if draft.layer == Layer.WORKING else "the maintenance path"
        raise LayerNotWritable(
            f"layer {draft.layer.name} is written by {way} only; use EPISODIC, SEMANTIC or PROCEDURAL",
            field=f"{path}.layer",
        )
    check_subject(draft.subject, f"{path}.subject")
    check_tags(draft.tags, f"{path}.tags")
    check_metadata(draft.metadata, f"{path}.metadata")
    check_source(draft.source, f"{path}.source")
    for name in ("importance", "confidence"):
        check_unit(getattr(draft, name), f"{path}.{name}")
    check_time(draft.occur_time_us, f"{path}.occur_time")
    check_time(draft.expire_time_us, f"{path}.expire_time")
    if len(draft.supersedes) > SUPERSEDES_MAX:
        raise _too_many(len(draft.supersedes), SUPERSEDES_MAX, f"{path}.supersedes")
    for memory_id in draft.supersedes:
        check_memory_id(memory_id, f"{path}.supersedes")
    if draft.event is not None:
        _check_event(draft, draft.event, path)


def kind_and_layer(kind: MemoryType | None, layer: Layer | None, is_event: bool) -> tuple[MemoryType, Layer]:
    """Type and layer of a draft where they are not given: what is no event is a fact, events are EPISODIC, all other
    types SEMANTIC.
    """
    kind = kind or (MemoryType.EVENT if is_event else MemoryType.FACT)
    return kind, layer or (Layer.EPISODIC if kind == MemoryType.EVENT else Layer.SEMANTIC)


def _check_event(draft: Draft, event: Event, path: str) -> None:
    if draft.type not in (None, MemoryType.EVENT) or draft.layer not in (None, Layer.EPISODIC):
        raise InvalidArgument(
            f"{path}.event is set: type must be EVENT, layer EPISODIC, or unset", field=f"{path}.type"
        )
    check_length(draft.content, SUMMARY_MAX_CHARS, f"{path}.content")
    if not event.event_type:
        raise InvalidArgument(f"{path}.event.event_type is empty", field=f"{path}.event.event_type")
    check_length(event.event_type, EVENT_TYPE_MAX_CHARS, f"{path}.event.event_type")
    check_metadata(event.payload, f"{path}.event.payload")
    check_labels(event.participants, PARTICIPANTS_MAX, f"{path}.event.participants")
    if len(event.caused_by) > CAUSES_MAX:
        raise _too_many(len(event.caused_by), CAUSES_MAX, f"{path}.event.caused_by")
    for memory_id in event.caused_by:
        check_memory_id(memory_id, f"{path}.event.caused_by")


def check_causes(txn: ReadTxn, namespace: Namespace, draft: Draft, path: str) -> None:
    """Raises InvalidArgument naming a cause that is not an event of the namespace; `check_draft` comes first."""
    field = f"{path}.event.caused_by"
    for cause in () if draft.event is None else draft.event.caused_by:
        memory = txn.get(namespace, cause)
        if memory is None or (memory.layer, memory.type) != (Layer.EPISODIC, MemoryType.EVENT):
            raise InvalidArgument(f"{field}: {cause} is not an event of this namespace", field=field, memory_id=cause)


def check_content(content: str, content_max_bytes: int, field: str) -> None:
    """Content must hold something other than white space and fit its limit (bytes of UTF-8)."""
    if not content.strip():
        raise InvalidArgument(f"{field} is empty; a memory needs a statement", field=field)
    size = len(content.encode("utf-8", "surrogatepass"))
    if size > content_max_bytes:
        raise LimitExceeded(
            f"{field} has {size} bytes, the limit is {content_max_bytes} (setting content_max_bytes); split it",
            field=field,
            limit=str(content_max_bytes),
        )


def check_subject(subject: str, field: str) -> None:
    """At most SUBJECT_MAX_CHARS characters."""
    check_length(subject, SUBJECT_MAX_CHARS, field)


def check_tags(tags: tuple[str, ...], field: str) -> None:
    """At most TAGS_MAX non-empty tags of at most TAG_MAX_CHARS characters."""
    check_labels(tags, TAGS_MAX, field)


def check_labels(labels: tuple[str, ...], limit: int, field: str) -> None:
    """At most `limit` non-empty texts of at most TAG_MAX_CHARS characters."""
    if len(labels) > limit:
        raise _too_many(len(labels), limit, field)
    for label in labels:
        if not label:
            raise InvalidArgument(f"{field} holds an empty text", field=field)
        check_length(label, TAG_MAX_CHARS, field)


def check_metadata(metadata: dict[str, Any], field: str) -> None:
    """At most METADATA_MAX_BYTES as JSON, with finite numbers only."""
    if metadata:
        check_json(metadata, METADATA_MAX_BYTES, field)


def check_json(value: Any, limit_bytes: int, field: str) -> None:
    """At most `limit_bytes` as JSON, with finite numbers only."""
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise InvalidArgument(f"{field} holds a number that JSON can't: use finite ones", field=field) from error
    if size > limit_bytes:
        raise LimitExceeded(
            f"{field} has {size} bytes as JSON, the limit is {limit_bytes}", field=field, limit=str(limit_bytes)
        )


def check_source(source: Source, field: str) -> None:
    """Each text of at most SOURCE_MAX_CHARS characters."""
    for name in Source.__struct_fields__:
        check_length(getattr(source, name), SOURCE_MAX_CHARS, f"{field}.{name}")


def check_length(text: str, limit: int, field: str) -> None:
    """Raises LimitExceeded when the text has more than `limit` characters."""
    if len(text) > limit:
        raise LimitExceeded(f"{field} has {len(text)} characters, the limit is {limit}", field=field, limit=str(limit))


def check_unit(value: float | None, field: str) -> None:
    """None or a number from 0 to 1 (NaN is neither)."""
    if value is not None and not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"{field} must be from 0 to 1, not {value}", field=field)


def check_time(time_us: int | None, field: str) -> None:
    """None or a time that a protobuf Timestamp can hold (years 1 to 9999)."""
    if time_us is not None and not EARLIEST_TIME_US <= time_us <= LATEST_TIME_US:
        raise InvalidArgument(f"{field} is outside of the years 1 to 9999", field=field)


def check_memory_id(memory_id: str, field: str) -> None:
    """Raises InvalidArgument for anything that isn't `mem_` + a UUID in lower case."""
    if not memory_id:
        raise InvalidArgument(f"{field} is empty", field=field)
    if id_to_bytes(memory_id) is None:
        raise InvalidArgument(f"{field} is not a memory id (mem_ and a UUID in lower case)", field=field)


def _too_many(count: int, limit: int, field: str) -> LimitExceeded:
    return LimitExceeded(f"{field} has {count} entries, the limit is {limit}", field=field, limit=str(limit))
