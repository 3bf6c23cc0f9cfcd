"""What the calls about memories return.

Purpose: memories, hits, writes and changes as views (see `views`), so that a recall of eight hits does not convert two
hundred fields that nobody looks at.

Threading: values; a view never changes.

Rejected: the recall as a plain list (it would lose who answered, and what is missing).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, overload

from ._proto import memory_pb2 as pb
from ._proto import memory_service_pb2 as spb
from .requests import datetime_of, enum_name
from .values import plain, struct
from .views import Owned, View, source_dict


class Memory(Owned[pb.Memory]):
    """One version of a memory. Times are aware UTC datetimes or None; enums are lower-case names."""

    __slots__ = ()
    NAMES: ClassVar[tuple[str, ...]] = (
        "memory_id",
        "version",
        "content",
        "type",
        "layer",
        "scope",
        "owner",
        "status",
        "subject",
        "tags",
        "metadata",
        "source",
        "further_sources",
        "seen_count",
        "importance",
        "confidence",
        "supersedes",
        "superseded_by",
        "etag",
        "sequence",
        "access_count",
        "blocked",
        "event",
        "fact",
        "skill_name",
        "retention",
        "create_time",
        "update_time",
        "occur_time",
        "expire_time",
        "last_seen_time",
        "last_access_time",
    )

    @property
    def memory_id(self) -> str:
        """mem_ + UUIDv7."""
        return self._pb.memory_id

    id = memory_id

    @property
    def content(self) -> str:
        """The statement."""
        return self._pb.content

    memory = content

    @property
    def version(self) -> int:
        """Counts from 1."""
        return self._pb.version

    @property
    def type(self) -> str:
        """fact, preference, decision, event or rule."""
        return enum_name(pb.MemoryType, "MEMORY_TYPE", self._pb.type)

    @property
    def layer(self) -> str:
        """working, episodic, semantic, procedural or permanent."""
        return enum_name(pb.Layer, "LAYER", self._pb.layer)

    @property
    def status(self) -> str:
        """active, contested, staged, superseded, forgotten, expired, archived or pending."""
        return enum_name(pb.Status, "STATUS", self._pb.status)

    @property
    def subject(self) -> str:
        """Key of what it is about."""
        return self._pb.subject

    @property
    def tags(self) -> list[str]:
        """Labels."""
        return list(self._pb.tags)

    @property
    def metadata(self) -> dict[str, Any]:
        """Free structured data."""
        return struct(self._pb.metadata)

    @property
    def source(self) -> dict[str, str]:
        """tool, session_id, message_id."""
        return source_dict(self._pb.source)

    @property
    def further_sources(self) -> list[dict[str, str]]:
        """Where the same statement was met besides `source`; the newest 8."""
        return [source_dict(source) for source in self._pb.further_sources]

    @property
    def seen_count(self) -> int:
        """How often the same statement was met; 1 when nothing was merged into it."""
        return self._pb.seen_count or 1

    @property
    def blocked(self) -> bool:
        """Whether it is on the blocklist: it is forgotten, and a write that says the same is rejected."""
        return self._pb.blocked

    @property
    def importance(self) -> float:
        """0..1."""
        return self._pb.importance

    @property
    def confidence(self) -> float:
        """0..1."""
        return self._pb.confidence

    @property
    def supersedes(self) -> list[str]:
        """Ids of what it replaced."""
        return list(self._pb.supersedes)

    @property
    def superseded_by(self) -> str:
        """Id of what replaced it, or ""."""
        return self._pb.superseded_by

    @property
    def etag(self) -> str:
        """Changes with every version."""
        return self._pb.etag

    @property
    def sequence(self) -> int:
        """The change that wrote this version."""
        return self._pb.sequence

    @property
    def access_count(self) -> int:
        """Recalls that returned it, as far as recorded."""
        return self._pb.access_count

    @property
    def create_time(self) -> dt.datetime | None:
        """When it was first stored."""
        return self._time("create_time")

    created_at = create_time

    @property
    def update_time(self) -> dt.datetime | None:
        """When this version was stored."""
        return self._time("update_time")

    updated_at = update_time

    @property
    def occur_time(self) -> dt.datetime | None:
        """When it happened or was said."""
        return self._time("occur_time")

    @property
    def expire_time(self) -> dt.datetime | None:
        """When it stops being recalled; None for never."""
        return self._time("expire_time")

    @property
    def last_seen_time(self) -> dt.datetime | None:
        """When the same statement was last met."""
        return self._time("last_seen_time")

    @property
    def last_access_time(self) -> dt.datetime | None:
        """When it was last used, as far as recorded."""
        return self._time("last_access_time")

    @property
    def event(self) -> dict[str, Any] | None:
        """event_type, payload, participants and caused_by of an event that was recorded with them; None otherwise."""
        if not self._pb.HasField("event"):
            return None
        detail = self._pb.event
        return {
            "event_type": detail.event_type,
            "payload": struct(detail.payload),
            "participants": list(detail.participants),
            "caused_by": list(detail.caused_by),
        }

    @property
    def fact(self) -> dict[str, Any] | None:
        """The key and value of an exact fact; None otherwise."""
        if not self._pb.HasField("fact"):
            return None
        return {"key": self._pb.fact.key, "value": plain(self._pb.fact.value)}

    @property
    def skill_name(self) -> str:
        """Name of the skill that it holds, or ""."""
        return self._pb.skill_name

    @property
    def retention(self) -> float | None:
        """How well it is still remembered, 1 to 0; known in answers of get and list."""
        return self._pb.retention if self._pb.HasField("retention") else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.memory_id}, {self.content!r})"


class Hit(Memory):
    """A memory that a recall found, with its score and the reasons for it."""

    __slots__ = ("_hit",)
    NAMES = (*Memory.NAMES, "score", "components", "paths")

    def __init__(self, hit: spb.Hit) -> None:
        super().__init__(hit.memory)
        self._hit = hit

    @property
    def score(self) -> float:
        """Sum of the weighted components; comparable inside one recall."""
        return self._hit.score

    @property
    def components(self) -> dict[str, float]:
        """vector, lexical, exact, time, importance, neighbour (they add up to the score); cosine, bm25 (raw)."""
        parts = self._hit.components
        return {field.name: getattr(parts, field.name) for field in parts.DESCRIPTOR.fields}

    @property
    def paths(self) -> list[str]:
        """How it was found: vector, lexical, exact, recent, neighbour."""
        return [enum_name(spb.RecallPath, "RECALL_PATH", path) for path in self._hit.paths]


class Recall(Sequence[Hit]):
    """Hits, best first. `source` says who answered: "server", "cache" or "none"; `degraded` what is missing."""

    def __init__(
        self, response: spb.RecallResponse | None, source: str, degraded: Sequence[str], latency_ms: float
    ) -> None:
        self._hits = response.hits if response is not None else ()
        self._response = response
        self.source = source
        self._degraded = list(degraded)
        self.latency_ms = latency_ms

    @property
    def degraded(self) -> list[str]:
        """What was left out, by the client (SERVER_TIMEOUT, SERVER_UNAVAILABLE, CIRCUIT_OPEN, RETRY_LATER, STALE,
        LOCAL_ONLY) or the server (VECTOR_SKIPPED, ...); empty for a full answer.
        """
        given = self._response.degraded if self._response is not None else ()
        return self._degraded + [enum_name(spb.Degraded, "DEGRADED", d).upper() for d in given]

    @property
    def timings(self) -> dict[str, int | bool]:
        """The server's timings in microseconds; empty when it did not answer."""
        if self._response is None or not self._response.HasField("timings"):
            return {}
        timings = self._response.timings
        return {field.name: getattr(timings, field.name) for field in timings.DESCRIPTOR.fields}

    @property
    def sequences(self) -> dict[tuple[str, str], int]:
        """The sequence seen, by (scope, owner)."""
        if self._response is None:
            return {}
        return {
            (enum_name(pb.Scope, "SCOPE", at.namespace.scope), at.namespace.owner): at.sequence
            for at in self._response.sequences
        }

    def __len__(self) -> int:
        return len(self._hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        if isinstance(index, slice):
            return [Hit(hit) for hit in self._hits[index]]
        return Hit(self._hits[index])

    def __iter__(self) -> Iterator[Hit]:
        return (Hit(hit) for hit in self._hits)

    def __repr__(self) -> str:
        return f"Recall({len(self)} hits from {self.source}, {self.latency_ms:.1f} ms, degraded={self.degraded})"


class WriteResult(View[spb.WriteResult]):
    """What became of a write."""

    __slots__ = ()
    NAMES = ("memory_id", "outcome", "scope", "sequence", "version", "conflicting_ids", "evidence")

    @property
    def memory_id(self) -> str:
        """The memory that now stands for it; for "rejected", the one that outranks it, was said later, or blocks it."""
        return self._pb.memory_id

    id = memory_id

    @property
    def outcome(self) -> str:
        """created, merged, superseded, rejected, contested, staged or pending."""
        return enum_name(spb.WriteOutcome, "WRITE_OUTCOME", self._pb.outcome)

    @property
    def sequence(self) -> int:
        """The namespace's change that stored it."""
        return self._pb.at.sequence

    @property
    def version(self) -> int:
        """Version of the memory."""
        return self._pb.version

    @property
    def scope(self) -> str:
        """Scope that it went to."""
        return enum_name(pb.Scope, "SCOPE", self._pb.at.namespace.scope)

    @property
    def conflicting_ids(self) -> list[str]:
        """Memories that the decision was about: replaced, contradicted, or the one that stands."""
        return list(self._pb.conflicting_ids)

    @property
    def evidence(self) -> dict[str, Any]:
        """What decided: "reason", and the numbers and words behind it."""
        return struct(self._pb.evidence)

    def __repr__(self) -> str:
        return f"WriteResult({self.memory_id}, {self.outcome}, sequence={self.sequence})"


class ForgetResult(View[spb.ForgetResponse]):
    """What a forget did."""

    __slots__ = ()
    NAMES = ("forgotten_count", "already_forgotten_ids")

    @property
    def forgotten_count(self) -> int:
        """How many were forgotten by this call."""
        return self._pb.forgotten_count

    @property
    def already_forgotten_ids(self) -> list[str]:
        """Ids that were forgotten before."""
        return list(self._pb.already_forgotten_ids)


class Change(View[spb.Change]):
    """One entry of a memory's history or of a watch."""

    __slots__ = ()
    NAMES = ("kind", "scope", "sequence", "time", "actor", "reason", "evidence", "after", "before")

    @property
    def kind(self) -> str:
        """created, updated, superseded, forgotten or purged."""
        return enum_name(spb.ChangeKind, "CHANGE_KIND", self._pb.kind)

    @property
    def sequence(self) -> int:
        """Its number in the namespace."""
        return self._pb.at.sequence

    @property
    def scope(self) -> str:
        """Scope of the namespace."""
        return enum_name(pb.Scope, "SCOPE", self._pb.at.namespace.scope)

    @property
    def time(self) -> dt.datetime:
        """When."""
        return datetime_of(self._pb.time)

    @property
    def actor(self) -> str:
        """Who."""
        return self._pb.actor

    @property
    def reason(self) -> str:
        """Why."""
        return self._pb.reason

    @property
    def evidence(self) -> dict[str, Any]:
        """What decided, where a conflict check did."""
        return struct(self._pb.evidence)

    @property
    def after(self) -> Memory:
        """The version that it wrote."""
        return Memory(self._pb.after)

    @property
    def before(self) -> Memory | None:
        """The version that stood before."""
        return Memory(self._pb.before) if self._pb.HasField("before") else None
