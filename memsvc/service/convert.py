"""Between the contract's messages and the model's values, both ways.

Purpose: reading requests (refusing unknown fields, empty owner ids, bad enums and times, with the field's path) and
writing answers. Versions are immutable, so the encoded form of a memory is kept: a warm recall copies bytes instead of
building two dozen fields a hit.

Threading: pure functions and a bounded cache whose races only cost a second encoding.

Rejected: protobuf's json_format (ten times slower), a generic descriptor walk for reading (the checks differ by field).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any

from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, unknown_fields
from google.protobuf.message import Message

from memsvc.errors import InvalidArgument, UnknownField
from memsvc.memory.drafts import METADATA_MAX_DEPTH, Draft, check_time
from memsvc.memory.feed import ChangeEvent
from memsvc.memory.memories import WriteResult
from memsvc.memory.owners import Owners
from memsvc.memory.recall import Hit, RecallAnswer
from memsvc.model import (
    EARLIEST_TIME_US,
    NEVER_US,
    Event,
    Filter,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    Source,
    Status,
    TimeSpan,
    effective_status,
)
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb

ENCODED_CACHE_ENTRIES = 8192
_MICROS = 1_000_000


# -- reading -----------------------------------------------------------------------------------------------------


def refuse_unknown(message: Message, path: str = "") -> None:
    """Raises UnknownField if the message, or one inside it, holds a field that this version does not know."""
    unknown = unknown_fields.UnknownFieldSet(message)
    if len(unknown):
        number = unknown[0].field_number
        where = path or message.DESCRIPTOR.name
        raise UnknownField(f"{where} holds an unknown field, number {number}", field=f"{where}.{number}")
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is None or kind.full_name.startswith("google.protobuf.") or kind.GetOptions().map_entry:
            continue
        inner = f"{path}.{field.name}" if path else field.name
        for item in value if field.is_repeated else (value,):
            refuse_unknown(item, inner)


def owners(message: pb.Owners) -> Owners:
    """Owner ids; an id that is set stays set even when empty, so that it can be refused."""
    return Owners(**{name: getattr(message, name) for name in Owners.__struct_fields__ if message.HasField(name)})


def _enum(kind: type[Any], value: int, field: str) -> Any:
    try:
        return kind(value)
    except ValueError as error:
        raise InvalidArgument(f"{field} is not a known value: {value}", field=field) from error


def optional_enum(kind: type[Any], value: int, field: str) -> Any:
    """The enum, or None for the unspecified 0. Raises InvalidArgument for an unknown number."""
    return None if value == 0 else _enum(kind, value, field)


def enums(kind: type[Any], values: Iterable[int], field: str) -> tuple[Any, ...]:
    """The enums of a repeated field; 0 is refused (an unset member restricts to nothing)."""
    return tuple(_enum(kind, value, field) for value in values)


def time_us(message: timestamp_pb2.Timestamp, field: str) -> int:
    """Microseconds of a Timestamp. Raises InvalidArgument for nanos out of range, and outside of years 1 to 9999."""
    if not 0 <= message.nanos < 1_000_000_000:
        raise InvalidArgument(f"{field}.nanos must be from 0 to 999999999", field=f"{field}.nanos")
    found_us = message.seconds * _MICROS + message.nanos // 1000
    check_time(found_us, field)
    return found_us


def duration_us(message: duration_pb2.Duration, field: str) -> int:
    """Microseconds of a Duration; nothing and less is refused. Raises InvalidArgument."""
    value_us = message.seconds * 1_000_000 + message.nanos // 1000
    if value_us <= 0:
        raise InvalidArgument(f"{field} must be longer than 0", field=field)
    return value_us


def span(holder: Any, name: str, path: str) -> TimeSpan:
    """The TimeRange `name` of a message, open where it is not set. Raises InvalidArgument naming `path`."""
    if not holder.HasField(name):
        return TimeSpan()
    given = getattr(holder, name)
    start = time_us(given.start_time, f"{path}.start_time") if given.HasField("start_time") else EARLIEST_TIME_US
    end = time_us(given.end_time, f"{path}.end_time") if given.HasField("end_time") else NEVER_US
    if start > end:
        raise InvalidArgument(f"{path} ends before it starts", field=path)
    return TimeSpan(start, end)


def condition(message: pb.Filter) -> Filter:
    """The filter. Raises InvalidArgument naming the field."""
    for name in ("tags_all", "tags_any", "subjects", "source_tools", "source_session_ids"):
        if "" in getattr(message, name):
            raise InvalidArgument(f"filter.{name} holds an empty text", field=f"filter.{name}")
    bounds = {}
    for name in ("min_importance", "max_importance", "min_confidence", "max_confidence"):
        if message.HasField(name):
            bounds[name] = getattr(message, name)
            if not 0.0 <= bounds[name] <= 1.0:
                raise InvalidArgument(f"filter.{name} must be from 0 to 1", field=f"filter.{name}")
    return Filter(
        types=enums(MemoryType, message.types, "filter.types"),
        layers=enums(Layer, message.layers, "filter.layers"),
        statuses=enums(Status, message.statuses, "filter.statuses"),
        tags_all=tuple(message.tags_all),
        tags_any=tuple(message.tags_any),
        subjects=tuple(message.subjects),
        source_tools=tuple(message.source_tools),
        source_session_ids=tuple(message.source_session_ids),
        create_time=span(message, "create_time", "filter.create_time"),
        occur_time=span(message, "occur_time", "filter.occur_time"),
        **bounds,
    )


def namespace(message: pb.Namespace, field: str) -> Namespace:
    """A namespace as the contract writes it."""
    return Namespace(message.tenant or "default", _enum(Scope, message.scope, f"{field}.scope"), message.owner)


def plain(value: struct_pb2.Value, depth: int = 0) -> Any:
    """A Struct's value as Python's; integral numbers come back as int (JSON knows no difference).

    Raises InvalidArgument past METADATA_MAX_DEPTH levels.
    """
    if depth > METADATA_MAX_DEPTH:
        raise InvalidArgument(f"metadata is nested deeper than {METADATA_MAX_DEPTH} levels", field="metadata")
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if kind == "struct_value":
        return {key: plain(item, depth + 1) for key, item in value.struct_value.fields.items()}
    if kind == "list_value":
        return [plain(item, depth + 1) for item in value.list_value.values]
    if kind in ("string_value", "bool_value"):
        return getattr(value, kind)
    return None


def metadata(message: struct_pb2.Struct) -> dict[str, Any]:
    """Metadata as plain Python values."""
    return {key: plain(item) for key, item in message.fields.items()}


def draft(message: spb.MemoryDraft, path: str) -> Draft:
    """A draft; its values are checked later by the memory room. Raises InvalidArgument for enums and times."""
    return Draft(
        content=message.content,
        type=optional_enum(MemoryType, message.type, f"{path}.type"),
        layer=optional_enum(Layer, message.layer, f"{path}.layer"),
        scope=optional_enum(Scope, message.scope, f"{path}.scope"),
        subject=message.subject,
        tags=tuple(message.tags),
        metadata=metadata(message.metadata) if message.HasField("metadata") else {},
        source=source(message.source),
        importance=message.importance if message.HasField("importance") else None,
        confidence=message.confidence if message.HasField("confidence") else None,
        occur_time_us=time_us(message.occur_time, f"{path}.occur_time") if message.HasField("occur_time") else None,
        expire_time_us=time_us(message.expire_time, f"{path}.expire_time") if message.HasField("expire_time") else None,
        supersedes=tuple(message.supersedes),
        event=event(message.event) if message.HasField("event") else None,
    )


def source(message: pb.Source) -> Source:
    """Where a memory came from; one that is not set is empty."""
    return Source(message.tool, message.session_id, message.message_id)


def event(message: pb.EventDetail) -> Event:
    """What an event is beyond its summary."""
    return Event(
        message.event_type,
        metadata(message.payload) if message.HasField("payload") else {},
        tuple(message.participants),
        tuple(message.caused_by),
    )


# -- writing -----------------------------------------------------------------------------------------------------


def timestamp(value_us: int) -> timestamp_pb2.Timestamp:
    """A Timestamp of UTC microseconds."""
    seconds, micros = divmod(value_us, _MICROS)
    return timestamp_pb2.Timestamp(seconds=seconds, nanos=micros * 1000)


def namespace_message(value: Namespace) -> pb.Namespace:
    """A namespace."""
    return pb.Namespace(tenant=value.tenant, scope=int(value.scope), owner=value.owner)  # type: ignore[arg-type]


def at_message(value: Namespace, sequence: int) -> pb.NamespaceSequence:
    """A position."""
    return pb.NamespaceSequence(namespace=namespace_message(value), sequence=sequence)


def source_message(source: Source) -> pb.Source:
    """Where a memory came from."""
    return pb.Source(tool=source.tool, session_id=source.session_id, message_id=source.message_id)


def struct_message(value: dict[str, Any]) -> struct_pb2.Struct:
    """Plain values as a Struct."""
    message = struct_pb2.Struct()
    message.update(value)
    return message


def value_message(value: Any) -> struct_pb2.Value:
    """A plain value as a Value."""
    return struct_message({"value": value}).fields["value"]


def event_message(event: Event) -> pb.EventDetail:
    """What an event is beyond its summary."""
    message = pb.EventDetail(event_type=event.event_type, participants=event.participants, caused_by=event.caused_by)
    if event.payload:
        message.payload.update(event.payload)
    return message


def memory_message(memory: Memory, now_us: int, retention: float | None = None) -> pb.Memory:
    """A memory with the status that counts at `now_us`, and how well it is remembered where that is known."""
    message = pb.Memory(
        memory_id=memory.memory_id,
        version=memory.version,
        namespace=namespace_message(memory.namespace),
        layer=int(memory.layer),  # type: ignore[arg-type]
        type=int(memory.type),  # type: ignore[arg-type]
        subject=memory.subject,
        content=memory.content,
        tags=memory.tags,
        source=source_message(memory.source),
        importance=memory.importance,
        confidence=memory.confidence,
        status=int(effective_status(memory, now_us)),  # type: ignore[arg-type]
        superseded_by=memory.superseded_by,
        supersedes=memory.supersedes,
        create_time=timestamp(memory.create_time_us),
        update_time=timestamp(memory.update_time_us),
        occur_time=timestamp(memory.occur_time_us),
        access_count=memory.access_count,
        etag=memory.etag,
        sequence=memory.sequence,
        seen_count=memory.seen_count,
        further_sources=[source_message(source) for source in memory.further_sources],
        blocked=memory.blocked,
        retention=retention,
    )
    if memory.last_seen_time_us:
        message.last_seen_time.CopyFrom(timestamp(memory.last_seen_time_us))
    if memory.metadata:
        message.metadata.update(memory.metadata)
    if memory.expire_time_us != NEVER_US:
        message.expire_time.CopyFrom(timestamp(memory.expire_time_us))
    if memory.last_access_time_us:
        message.last_access_time.CopyFrom(timestamp(memory.last_access_time_us))
    if memory.event is not None:
        message.event.CopyFrom(event_message(memory.event))
    if memory.fact is not None:
        message.fact.key = memory.fact.key
        message.fact.value.CopyFrom(value_message(memory.fact.value))
    if memory.skill:
        message.skill_name = memory.subject
    if memory.embedding_dim:
        message.embedding.CopyFrom(pb.EmbeddingInfo(model=memory.embedding_model, dim=memory.embedding_dim))
    return message


def write_result(result: WriteResult) -> spb.WriteResult:
    """What became of one draft."""
    message = spb.WriteResult(
        memory_id=result.memory_id,
        outcome=int(result.outcome),  # type: ignore[arg-type]
        at=at_message(result.namespace, result.sequence),
        version=result.version,
        conflicting_ids=result.conflicting_ids,
    )
    if result.evidence:
        message.evidence.update(result.evidence)
    return message


def change_message(event: ChangeEvent, now_us: int) -> spb.Change:
    """A change with its images."""
    change = event.change
    message = spb.Change(
        at=at_message(event.namespace, change.sequence),
        kind=int(change.kind),  # type: ignore[arg-type]
        time=timestamp(change.time_us),
        actor=change.actor,
        reason=change.reason,
        request_id=change.request_id,
        after=memory_message(event.after, now_us),
    )
    if event.before is not None:
        message.before.CopyFrom(memory_message(event.before, now_us))
    if change.evidence:
        message.evidence.update(json.loads(change.evidence))
    return message


class EncodedMemories:
    """The `memory` field of a hit in wire format, by version, bounded; for recall answers."""

    def __init__(self) -> None:
        self._encoded: dict[tuple[Namespace, str, int, Status], bytes] = {}

    def forget(self) -> None:
        """Empties the cache."""
        self._encoded = {}

    def encoded(self, memory: Memory, now_us: int) -> bytes:
        """Tag, length and bytes of `memory_message`."""
        key = (memory.namespace, memory.memory_id, memory.version, effective_status(memory, now_us))
        known = self._encoded.get(key)
        if known is None:
            message = memory_message(memory, now_us).SerializeToString()
            known = b"\x0a" + _varint(len(message)) + message
            if len(self._encoded) >= ENCODED_CACHE_ENTRIES:
                self._encoded = {}
            self._encoded[key] = known
        return known

    def recall_response(self, answer: RecallAnswer, now_us: int) -> spb.RecallResponse:
        """The answer of a recall."""
        timings = answer.timings
        response = spb.RecallResponse(
            degraded=[int(d) for d in answer.degraded],  # type: ignore[misc]
            sequences=[at_message(name, sequence) for name, sequence in answer.sequences],
            timings=spb.RecallTimings(
                total_us=timings.total_us,
                plan_us=timings.plan_us,
                embed_us=timings.embed_us,
                search_us=timings.search_us,
                fetch_us=timings.fetch_us,
                vector_cached=timings.vector_cached,
            ),
        )
        hits = b"".join([self._hit_bytes(hit, now_us) for hit in answer.hits])
        response.MergeFromString(hits)
        return response

    def _hit_bytes(self, hit: Hit, now_us: int) -> bytes:
        """One entry of `RecallResponse.hits` in wire format; a test compares it with the message built field by
        field, which costs ten times as much.
        """
        found = hit.found
        memory = self.encoded(hit.memory, now_us)
        paths = _PATHS[found.paths]
        vector, lexical, exact, time, importance, neighbour, score, cosine, bm25 = found.components
        scores = _SCORES.pack(
            *(0x11, score, 0x1A, _COMPONENTS_SIZE),
            *(9, vector, 17, lexical, 25, exact, 33, time, 41, importance, 49, neighbour),
            *(57, cosine, 65, bm25),
        )
        return b"".join((b"\x0a", _varint(len(memory) + len(scores) + len(paths)), memory, scores, paths))


# Wire format of a hit: memory is field 1, score 2, components 3 (eight doubles, fields 1 to 8), paths a packed field 4.
_SCORES = struct.Struct("<BdBB" + "Bd" * 8)
_COMPONENTS_SIZE = struct.calcsize("<" + "Bd" * 8)
_PATHS = tuple(
    b"\x22" + bytes([len(paths)]) + bytes(paths) if paths else b""
    for paths in ([path for path in range(1, 6) if bits >> path & 1] for bits in range(64))
)


def _varint(value: int) -> bytes:
    """A protobuf varint."""
    if value < 0x80:
        return _BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    return bytes((value & 0x7F | 0x80,)) + _varint(value >> 7)


_BYTE = tuple(bytes((value,)) for value in range(0x80))
