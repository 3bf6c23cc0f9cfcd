"""The record and its neighbours: the words of the house as plain values.

Purpose: one definition of memory, namespace, change and the enums, shared by all rooms. Numbers of enums equal those
of the proto, so that converting is free; a test compares them.

Threading: all structs are frozen; share them freely.

Rejected: dataclasses (msgspec structs are 5 to 10 times cheaper to build, encode and compare); datetime inside the
record (numpy columns, LMDB keys and the kernel all need integers; the edges convert and reject naive times).
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import msgspec

EARLIEST_TIME_US = -62_135_596_800_000_000  # 0001-01-01T00:00:00Z, the first instant of a protobuf Timestamp
LATEST_TIME_US = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z, the last one
NEVER_US = 2**62  # "does not expire"; past LATEST_TIME_US so that no stored time equals it


class Layer(IntEnum):
    """Which kind of memory it is, and so how long it lives and who may write it."""

    WORKING = 1
    EPISODIC = 2
    SEMANTIC = 3
    PROCEDURAL = 4
    PERMANENT = 5


class MemoryType(IntEnum):
    """What sort of statement it is."""

    FACT = 1
    PREFERENCE = 2
    DECISION = 3
    EVENT = 4
    RULE = 5


class Scope(IntEnum):
    """Who a memory belongs to."""

    SESSION = 1
    AGENT = 2
    USER = 3
    PROJECT = 4
    GLOBAL = 5


class Status(IntEnum):
    """Where a memory is in its life. ACTIVE and CONTESTED come back from a recall; the rest only when asked for,
    and PENDING and PURGED never. PURGED has neither content nor anything else that was said.
    """

    ACTIVE = 1
    SUPERSEDED = 2
    FORGOTTEN = 3
    EXPIRED = 4
    ARCHIVED = 5
    CONTESTED = 6
    PENDING = 7
    STAGED = 8
    PURGED = 9


RECALLABLE = (Status.ACTIVE, Status.CONTESTED)
APPROVED = tuple(status for status in Status if status not in (Status.PENDING, Status.PURGED))
EXPIRING = (*RECALLABLE, Status.STAGED)  # statuses that an expire time ends


def effective_status(memory: Memory, now_us: int) -> Status:
    """The status that counts: a standing or staged memory past its expire time is EXPIRED, whether or not a job said
    so.
    """
    if memory.expire_time_us <= now_us and memory.status in EXPIRING:
        return Status.EXPIRED
    return memory.status


class ChangeKind(IntEnum):
    """What a change of the log did to its memory."""

    CREATED = 1
    UPDATED = 2
    SUPERSEDED = 3
    FORGOTTEN = 4
    PURGED = 5


class Outcome(IntEnum):
    """What a write did."""

    CREATED = 1
    MERGED = 2
    SUPERSEDED = 3
    REJECTED = 4
    CONTESTED = 5
    STAGED = 6
    PENDING = 7


class Namespace(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """The unit of isolation, ordering, indexing and distribution. `owner` is empty only for GLOBAL."""

    tenant: str
    scope: Scope
    owner: str


class Source(msgspec.Struct, frozen=True, array_like=True):
    """Where a memory came from. Empty strings mean unknown."""

    tool: str = ""
    session_id: str = ""
    message_id: str = ""


class Event(msgspec.Struct, frozen=True, array_like=True):
    """What an event is beyond its summary. `caused_by`: ids of earlier events of the same namespace."""

    event_type: str
    payload: dict[str, Any] = {}
    participants: tuple[str, ...] = ()
    caused_by: tuple[str, ...] = ()


class Fact(msgspec.Struct, frozen=True, array_like=True):
    """An exact fact: a key and a JSON value whose type is kept."""

    key: str
    value: Any = None


class Memory(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One immutable version of a memory. Times are UTC microseconds since 1970; new fields go at the end.

    `memory_id` is `mem_` + UUIDv7 in hex with dashes; `version` counts from 1; `sequence` is the namespace's change
    number that wrote this version; `embedding_dim` 0 means that the version has no vector. `seen_count`,
    `last_seen_time_us` and `further_sources` (the newest few) tell of later statements that were merged into it;
    `blocked` puts a forgotten memory on the blocklist. `event`, `fact` and `skill` (the text of its skill.yaml) are set
    for memories that are more than a statement; only their own services write the latter two.
    """

    memory_id: str
    version: int
    sequence: int
    namespace: Namespace
    layer: Layer
    type: MemoryType
    content: str
    status: Status = Status.ACTIVE
    subject: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    source: Source = Source()
    importance: float = 0.5
    confidence: float = 1.0
    superseded_by: str = ""
    supersedes: tuple[str, ...] = ()
    create_time_us: int = 0
    update_time_us: int = 0
    occur_time_us: int = 0
    expire_time_us: int = NEVER_US
    last_access_time_us: int = 0
    access_count: int = 0
    embedding_model: str = ""
    embedding_dim: int = 0
    seen_count: int = 1
    last_seen_time_us: int = 0
    further_sources: tuple[Source, ...] = ()
    blocked: bool = False
    event: Event | None = None
    fact: Fact | None = None
    skill: str = ""

    @property
    def etag(self) -> str:
        """Opaque to callers: changes with every version."""
        return f"v{self.version}"


class Access(msgspec.Struct, frozen=True, array_like=True):
    """How a memory was used, beside its versions: `count` recalls or contexts that used it, when last, and how long it
    keeps (`stability_days`, 0 before its first use). `day_count`: on how many UTC days; `proposed_time_us`: when the
    lifecycle proposed it for the permanent store, 0 for never.
    """

    count: int = 0
    last_time_us: int = 0
    stability_days: float = 0.0
    day_count: int = 0
    proposed_time_us: int = 0


class Change(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One entry of a namespace's change log.

    The before-image is version `version - 1` of the memory (versions are immutable and kept, so a second copy in the
    log would be the same truth twice); 0 means that there was none. `evidence` is a JSON object of what a conflict
    check saw, or empty.
    """

    sequence: int
    kind: ChangeKind
    memory_id: str
    version: int
    time_us: int
    actor: str = ""
    reason: str = ""
    request_id: str = ""
    evidence: str = ""

    @property
    def before_version(self) -> int:
        """Version that stood before the change; 0 if the change created the memory."""
        return self.version - 1


class AuditKind(IntEnum):
    """What an entry of the audit tells of."""

    READ = 1
    CHANGE = 2
    ADMIN = 3
    DENIED = 4


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a namespace's audit: who did what, when; never content.

    `actor` and `call` as the contract names them (`token:ID`, `MemoryService/Recall`; a job's name for a job).
    `outcome`: "" for done, else a reason code. `memory_ids`: the first AUDIT_IDS_MAX of `count` memories; without ids,
    `count` counts calls. `sequence` is the change's number in the change log, 0 for what is not in it; `change` what
    it did. `detail`: a missing grant, a token's id, versions with hashes. `reason_hash`: `content_hash` of the reason,
    or empty. The store sets `number` (gap-free, from 1) and `hash` (32 bytes, see `storage.audit_chain`).
    """

    kind: AuditKind
    time_us: int
    actor: str
    call: str
    outcome: str = ""
    memory_ids: tuple[str, ...] = ()
    count: int = 0
    sequence: int = 0
    change: ChangeKind | None = None
    detail: str = ""
    reason_hash: bytes = b""
    number: int = 0
    hash: bytes = b""


AUDIT_IDS_MAX = 100  # ids in one entry


class TimeSpan(msgspec.Struct, frozen=True):
    """A span of UTC microseconds, both bounds inclusive."""

    start_us: int = EARLIEST_TIME_US
    end_us: int = NEVER_US


class Filter(msgspec.Struct, frozen=True):
    """Conditions on a memory that all must hold; an empty tuple and an open bound do not restrict."""

    types: tuple[MemoryType, ...] = ()
    layers: tuple[Layer, ...] = ()
    statuses: tuple[Status, ...] = ()
    tags_all: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    source_tools: tuple[str, ...] = ()
    source_session_ids: tuple[str, ...] = ()
    create_time: TimeSpan = TimeSpan()
    occur_time: TimeSpan = TimeSpan()
    min_importance: float = 0.0
    max_importance: float = 1.0
    min_confidence: float = 0.0
    max_confidence: float = 1.0

    def matches(self, memory: Memory) -> bool:
        """Whether the memory passes; statuses are the caller's business (they also widen what is looked at)."""
        tags = set(memory.tags)
        return (
            (not self.types or memory.type in self.types)
            and (not self.layers or memory.layer in self.layers)
            and tags.issuperset(self.tags_all)
            and (not self.tags_any or not tags.isdisjoint(self.tags_any))
            and (not self.subjects or memory.subject in self.subjects)
            and (not self.source_tools or memory.source.tool in self.source_tools)
            and (not self.source_session_ids or memory.source.session_id in self.source_session_ids)
            and self.create_time.start_us <= memory.create_time_us <= self.create_time.end_us
            and self.occur_time.start_us <= memory.occur_time_us <= self.occur_time.end_us
            and self.min_importance <= memory.importance <= self.max_importance
            and self.min_confidence <= memory.confidence <= self.max_confidence
        )


NO_FILTER = Filter()


def speaker_of(memory: Memory) -> str:
    """Who said it: the string under "speaker" in the metadata, or empty."""
    name = memory.metadata.get("speaker", "")
    return name if isinstance(name, str) else ""


def embedded_text(memory: Memory) -> str:
    """What is embedded and hashed for a memory: the content, behind the speaker's name where one is known (a question
    names people; the turn itself says "I").
    """
    speaker = speaker_of(memory)
    return f"{speaker}: {memory.content}" if speaker else memory.content


def content_hash(text: str) -> bytes:
    """16-byte BLAKE2b of the UTF-8 text: the one content-hash function (vector cache, duplicates, verify)."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class IdMinter:
    """Makes memory ids: `mem_` + UUIDv7 (RFC 9562), strictly increasing within a process even in one millisecond.

    `clock_us` returns UTC microseconds, `random_bytes(n)` n random bytes; both are passed in for tests.
    Thread-safe.
    """

    def __init__(self, clock_us: Callable[[], int], random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._clock_us = clock_us
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._last = 0

    def mint(self) -> str:
        """A fresh id. RFC 9562 method 3: the 12 bits after the milliseconds hold the sub-millisecond fraction,
        and a value that would not grow is the last one plus one.
        """
        with self._lock:
            now_us = self._clock_us()
            stamp = (now_us // 1000 << 12) | (now_us % 1000 * 4096 // 1000)
            stamp = max(stamp, self._last + 1)
            self._last = stamp
        high = (stamp >> 12 << 16) | 0x7000 | (stamp & 0xFFF)
        low = struct.unpack(">Q", self._random_bytes(8))[0] & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        text = f"{high:016x}{low:016x}"
        return f"mem_{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def id_to_bytes(memory_id: str) -> bytes | None:
    """The 16 bytes of a memory id, or None if the text is not one (wrong prefix, length or digits).

    40 characters less the prefix and four dashes are 32, and 16 bytes come out of them only if all are hexadecimal
    digits. On a recall's path for each hit, hence without helpers.
    """
    m = memory_id
    if len(m) != 40 or m[:4] != "mem_" or not (m[12] == m[17] == m[22] == m[27] == "-") or not m.islower():
        return None
    try:
        raw = bytes.fromhex(m[4:].replace("-", ""))
    except ValueError:
        return None
    return raw if len(raw) == 16 else None


def id_from_bytes(raw: bytes) -> str:
    """Inverse of `id_to_bytes` for 16 bytes."""
    text = raw.hex()
    return f"mem_{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
