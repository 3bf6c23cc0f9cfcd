"""What a store must do: ReadTxn, WriteTxn, Engine. Small protocols; `tests/conformance` is their meaning.

Purpose: memory policy and retrieval talk to the store only through these. A namespace is in every call, so that the
same tables shard by it on a distributed database.

Threading: an Engine is shared by all threads. A ReadTxn is a consistent snapshot used by the thread that opened it.
`Engine.write` may be called from any thread; the functions given to it run one at a time, in submission order, and
several may share one durable commit (group commit). Each is atomic by itself: an exception inside one rolls back that
one alone and is raised to its caller. A function may be run again (a full map, a serialisation failure): it changes
nothing but its transaction, and starts from nothing when it is called. It does not write while it walks an iterator of
the same transaction, and opens no other transaction; nor does `on_commit` write.

Rejected: a raw key-value protocol (a SQL engine would have to emulate cursors, and index upkeep would live in policy);
async methods (LMDB reads are microseconds, and a thread-pool server needs none).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.model import AuditEntry, Change, ChangeKind, Memory, Namespace

T = TypeVar("T")


class NamespaceHead(msgspec.Struct, frozen=True):
    """State of a namespace: `sequence` of its last change, counts of memories and of those recallable."""

    namespace: Namespace
    sequence: int
    memory_count: int
    active_count: int


class RecordTable(StrEnum):
    """Databases of small records beside the memories of a namespace: they have no versions and no change log.

    PERMANENT is the permanent store: only `memory.permanent` names it. TOKEN is the register of tokens: only
    `memory.token_register` names it. ERASURE has the receipts of purges: only `memory.receipts` names it.
    """

    ACCESS = "accesses"
    ERASURE = "erasures"
    JOB = "jobs"
    PERMANENT = "permanent"
    TOKEN = "tokens"  # noqa: S105  the name of a table


class AuditHead(msgspec.Struct, frozen=True):
    """The last entry of a namespace's audit: its number and its hash."""

    number: int
    hash: bytes


class StoredAnswer(msgspec.Struct, frozen=True):
    """The first answer to a mutation, kept for its replay. `fingerprint` is a hash of the request's body."""

    fingerprint: bytes
    answer: bytes
    time_us: int


class ErasedCounts(msgspec.Struct, frozen=True):
    """What was erased: memories with their versions, vectors, and records of other tables."""

    memories: int = 0
    versions: int = 0
    vectors: int = 0
    records: int = 0

    def __add__(self, other: ErasedCounts) -> ErasedCounts:
        return ErasedCounts(
            self.memories + other.memories,
            self.versions + other.versions,
            self.vectors + other.vectors,
            self.records + other.records,
        )


class VerifyProblem(msgspec.Struct, frozen=True):
    """One disagreement that `verify` found. `where` names table and key without memory content."""

    where: str
    what: str


class ReadTxn(Protocol):
    """A consistent snapshot. Iterators are valid until the transaction closes."""

    def head(self, namespace: Namespace) -> NamespaceHead | None:
        """None for a namespace that was never written; a read never creates one."""

    def heads(self) -> Iterator[NamespaceHead]:
        """Every namespace, in a stable order."""

    def get(self, namespace: Namespace, memory_id: str, version: int = 0) -> Memory | None:
        """A version of a memory, the current one for 0; None if there is none in this namespace.

        Here and wherever a memory id is given: raises InvalidArgument for a text that is not a memory id, and
        StoreCorrupt for a stored value that can't be read.
        """

    def get_many(self, namespace: Namespace, keys: Sequence[tuple[str, int]]) -> list[Memory | None]:
        """`get` for each (memory_id, version), in order."""

    def versions(self, namespace: Namespace, memory_id: str) -> list[Memory]:
        """All versions, oldest first; empty if the id is unknown here."""

    def scan(self, namespace: Namespace, *, after_id: str = "", reverse: bool = False) -> Iterator[Memory]:
        """Current versions in id order (ids are time-ordered), after `after_id` exclusively in scan direction."""

    def all_versions(self, namespace: Namespace) -> Iterator[Memory]:
        """Every version of every memory in sequence order."""

    def by_subject(self, namespace: Namespace, subject: str) -> Iterator[Memory]:
        """Current versions, any status, whose subject equals the text exactly, in id order.

        Raises InvalidArgument for an empty subject, which is not indexed.
        """

    def by_content_hash(self, namespace: Namespace, content_hash: bytes) -> Iterator[Memory]:
        """Current versions, any status, whose content has this 16-byte hash, in id order.

        Raises InvalidArgument for another length.
        """

    def by_occur_time(
        self, namespace: Namespace, start_us: int, end_us: int, *, reverse: bool = False
    ) -> Iterator[Memory]:
        """Current versions, any status, with start_us <= occur_time_us <= end_us, in (time, id) order."""

    def changes(self, namespace: Namespace, after_sequence: int, limit: int) -> list[Change]:
        """At most `limit` changes with sequence > after_sequence, in order, without gaps."""

    def audit(self, namespace: Namespace, after_number: int, limit: int) -> list[AuditEntry]:
        """At most `limit` entries of the namespace's audit with number > after_number, in order, as they are stored:
        whether their hashes hold is `audit_chain`'s question.
        """

    def audit_head(self, namespace: Namespace) -> AuditHead | None:
        """The last entry; None where there is none."""

    def vector(self, namespace: Namespace, model_id: str, content_hash: bytes) -> NDArray[np.float32] | None:
        """The stored vector, shape (dim,), float32 (values rounded to float16, as `put_vector` stores them)."""

    def vectors(
        self, namespace: Namespace, model_id: str, content_hashes: Sequence[bytes], dim: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Vectors for many hashes: (n, dim) float32 with zero rows where missing, and (n,) bool found.

        Raises InvalidArgument when the model's vectors have another dimension.
        """

    def answer(self, tenant: str, request_id: str) -> StoredAnswer | None:
        """What `put_answer` stored for this request."""

    def record(self, table: RecordTable, namespace: Namespace, key: str) -> bytes | None:
        """A record, or None."""

    def records(self, table: RecordTable, namespace: Namespace) -> Iterator[tuple[str, bytes]]:
        """All (key, record) of a namespace, in no particular order."""

    def all_records(self, table: RecordTable) -> Iterator[tuple[Namespace, str, bytes]]:
        """All records of a table, namespace by namespace."""

    def meta(self, key: str) -> bytes | None:
        """A small store-wide value (model id, reindex state)."""


class WriteTxn(ReadTxn, Protocol):
    """A read-write transaction; reads see its own writes."""

    def put(
        self,
        memory: Memory,
        kind: ChangeKind,
        *,
        time_us: int,
        actor: str,
        reason: str = "",
        request_id: str = "",
        evidence: str = "",
    ) -> Memory:
        """Writes `memory` as the next version of its id: sets `version` and `sequence`, keeps indexes and counts,
        appends the change. Returns the memory as stored. Creates the namespace when it is new.

        Raises InvalidArgument, and leaves the transaction as it was, for a text that is not Unicode, a number that
        does not fit into 64 bits, or another layer than the memory has.
        """

    def append_audit(self, namespace: Namespace, entry: AuditEntry) -> AuditEntry:
        """Appends to the namespace's audit: sets `number` and `hash` (see `audit_chain`) and returns the entry as
        stored. Entries are never changed. Creates the namespace when it is new.

        Raises InvalidArgument, and leaves the transaction as it was, for a text that is not Unicode, an id that is
        none, more than AUDIT_IDS_MAX of them, or a number that does not fit into 64 bits.
        """

    def put_vector(self, namespace: Namespace, model_id: str, content_hash: bytes, vector: NDArray[np.float32]) -> None:
        """Stores a (dim,) vector as float16; overwriting is allowed. Creates the namespace when it is new.

        Raises InvalidArgument for another dimension than the model's first vector had, a hash that has not 16 bytes,
        and values that are not finite in float16.
        """

    def drop_vectors(self, model_id: str) -> int:
        """Removes all vectors of a model, and what is known of it; returns how many."""

    def put_answer(self, tenant: str, request_id: str, answer: StoredAnswer) -> None:
        """Stores the answer of a mutation in the mutation's own transaction."""

    def drop_answers(self, before_us: int, limit: int) -> int:
        """Removes up to `limit` answers older than `before_us`; returns how many."""

    def put_record(self, table: RecordTable, namespace: Namespace, key: str, value: bytes) -> None:
        """Sets a record. Creates the namespace when it is new. Raises InvalidArgument for an empty key."""

    def drop_record(self, table: RecordTable, namespace: Namespace, key: str) -> bool:
        """Removes a record; returns whether there was one."""

    def erase_namespace(self, namespace: Namespace) -> ErasedCounts:
        """Removes a namespace with all of its rows: memories, vectors, log, audit, records of every table, names.
        Written again, it begins at sequence 1. Nothing happens for an unknown one. The bytes are gone after
        `Engine.rewrite`.
        """

    def erase_memories(self, namespace: Namespace, memory_ids: Sequence[str]) -> ErasedCounts:
        """Blanks every version of these memories, status PURGED; their changes lose reason, evidence and request id,
        those of others the evidence that tells of them; vectors go unless a memory that stands has the same text, uses
        too. Ids that are unknown here, or erased already, are passed over. The bytes are gone after `Engine.rewrite`.
        """

    def erase_answers(self, tenant: str, is_kept: Callable[[bytes], bool]) -> int:
        """Removes the stored answers of a tenant that `is_kept` (asked with `StoredAnswer.answer`) does not keep;
        returns how many.
        """

    def put_meta(self, key: str, value: bytes) -> None:
        """Sets a store-wide value. Raises InvalidArgument for an empty key, one past 500 bytes, or the engine's own."""


class Engine(Protocol):
    """An open store."""

    def read(self) -> AbstractContextManager[ReadTxn]:
        """Opens a snapshot for this thread."""

    def write(self, operation: Callable[[WriteTxn], T], *, on_commit: Callable[[T], None] | None = None) -> T:
        """Runs `operation` in a write transaction and returns its result after the commit is durable.

        `on_commit(result)` runs after the commit and before `write` returns, in commit order, on the writer's
        thread: it keeps derived indexes in step and must not fail; if it does, its exception is raised although the
        operation is stored. Raises StorageFull when the disk or map is full, Unavailable after close, and whatever
        `operation` raises; in each case nothing of the operation is stored. Raises StorageFailure on I/O errors:
        whether the operation is stored is decided by its request_id on a retry.
        """

    def verify(self) -> Iterator[VerifyProblem]:
        """Checks that versions, heads, indexes, log, counts and vectors agree; yields each problem."""

    def backup(self, directory: Path) -> int:
        """Writes a consistent copy, while reads and writes go on, into an empty directory that `serve` opens.
        Returns its size in bytes.
        """

    def rewrite(self) -> int:
        """Makes the store's files anew from what they hold, so that no byte of what was erased or replaced is left in
        them, and wipes the old ones; returns the size in bytes. Writes wait; reads go on but for a moment. Raises
        StorageFull, StorageFailure, and Unavailable when snapshots stay open: then all is as it was. After a crash the
        next open finds one of both files whole, and wipes the other.
        """

    def size_bytes(self) -> int:
        """Bytes used on disk."""

    def close(self) -> None:
        """Waits for running writes, then closes. Idempotent."""


class SessionLog(Protocol):
    """The journal of open sessions: small records by namespace, in the order in which they were appended.

    Any number of threads. Lighter than an Engine: what was appended survives the end of the process at once, a power
    loss only some time later (the implementation says when).
    """

    def append(self, namespace: Namespace, record: bytes) -> None:
        """Adds a record, which makes the session known. Raises InvalidArgument for an empty or too long one,
        StorageFull, StorageFailure, and Unavailable after close; then nothing of it is kept.
        """

    def read(self, namespace: Namespace) -> list[bytes]:
        """Every record, oldest first; empty for an unknown session. Raises StoreCorrupt, StorageFailure."""

    def open_sessions(self) -> Iterator[Namespace]:
        """Every session that has a record and was not dropped."""

    def drop(self, namespace: Namespace, *, is_wiped: bool = False) -> None:
        """Forgets a session and its records; nothing happens for an unknown one. `is_wiped`: so that nobody reads them
        from the disk any more. Raises StorageFailure.
        """

    def backup(self, directory: Path) -> int:
        """Writes every session, up to its last whole record, into a new or empty directory that a SessionLog of the
        same kind opens, while others append; on disk when it returns. Returns its bytes. A session that is moved to
        another namespace meanwhile (appended there before it is dropped here) is in it. Raises StorageFull,
        StorageFailure; then the directory may hold a part.
        """

    def close(self) -> None:
        """Flushes and closes. Idempotent."""
