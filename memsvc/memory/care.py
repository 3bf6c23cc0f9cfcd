"""Care of a store: statistics, verification, backup and background re-embedding.

Purpose: what AdminService and the command line offer the operator, on an open store.

Threading: any thread; at most one reindex runs at a time, on a thread of its own.

Rejected: a cron-like scheduler in here (the operator has one).
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path

import msgspec
import numpy as np

from memsvc.errors import InvalidArgument, MemsvcError
from memsvc.memory.reindex import Reindexer, stored_model
from memsvc.model import RECALLABLE, Namespace
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.segment import OPEN_SEQ
from memsvc.retrieval.segments import SegmentStore
from memsvc.storage.engine import Engine, NamespaceHead, SessionLog
from memsvc.storage.engine import VerifyProblem as VerifyProblem

LOG = logging.getLogger("memsvc.care")


class ReindexState(IntEnum):
    """Phases; numbers equal the contract's."""

    IDLE = 1
    RUNNING = 2
    DONE = 3
    FAILED = 4


class ReindexStatus(msgspec.Struct, frozen=True):
    """How far a reindex is."""

    state: ReindexState = ReindexState.IDLE
    model_id: str = ""
    dim: int = 0
    done_count: int = 0
    total_count: int = 0
    error: str = ""


class StoreStats(msgspec.Struct, frozen=True):
    """Counts of a store; `heads` are the largest namespaces first."""

    memory_count: int
    active_count: int
    namespace_count: int
    heads: list[NamespaceHead]
    disk_size_bytes: int


def stats(engine: Engine, most: int = 100) -> StoreStats:
    """Counts over all namespaces."""
    with engine.read() as txn:
        heads = list(txn.heads())
    largest = sorted(heads, key=lambda h: (-h.memory_count, h.namespace.owner))[:most]
    return StoreStats(
        sum(h.memory_count for h in heads), sum(h.active_count for h in heads), len(heads), largest, engine.size_bytes()
    )


def verify(engine: Engine, segments: SegmentStore) -> Iterator[VerifyProblem]:
    """The store's own checks, then each namespace's segment against the store."""
    yield from engine.verify()
    with engine.read() as txn:
        namespaces = [head.namespace for head in txn.heads()]
    for namespace in namespaces:
        yield from _checked(engine, segments, namespace)


def _checked(engine: Engine, segments: SegmentStore, namespace: Namespace) -> list[VerifyProblem]:
    """What is wrong with a namespace's segment; what a purge beside the check makes look wrong is looked at again."""
    while True:
        erasures = segments.erasures
        with engine.read() as txn:
            head = txn.head(namespace)
        problems = [] if head is None else list(_verify_segment(engine, segments, head))
        if not problems or not segments.purged_since(erasures):
            return problems


def verify_store(engine: Engine, segments_directory: Path) -> Iterator[VerifyProblem]:
    """`verify` of a store that no server has open, with its saved segments."""
    record = stored_model(engine)
    if record is None:
        yield from engine.verify()
        return
    yield from verify(engine, SegmentStore(engine, record.model_id, record.dim, segments_directory))


def _verify_segment(engine: Engine, segments: SegmentStore, head: NamespaceHead) -> Iterator[VerifyProblem]:
    segment = segments.get(head.namespace)
    where = f"segment of {head.namespace.scope.name} namespace, sequence {head.sequence}"
    if segment is None and not head.sequence:  # it has entries of the permanent store, and never had a memory
        return
    if segment is None or segment.sequence < head.sequence:
        yield VerifyProblem(where, "is behind the store")
        return
    with segment.apply_lock, engine.read() as txn:
        columns, rows = segment.columns, segment.rows
        standing = np.flatnonzero(columns.end_seq[:rows] == OPEN_SEQ).tolist()
        memories = {m.memory_id: m for m in txn.scan(head.namespace) if m.sequence <= rows}
    if len(standing) != len(memories):
        yield VerifyProblem(where, f"shows {len(standing)} memories, the store has {len(memories)}")
    for row in standing:
        memory = memories.get(segment.memory_id(row))
        if memory is None or memory.version != int(columns.version[row]) or memory.sequence != row + 1:
            yield VerifyProblem(where, f"row {row} is not a current version of the store")
        elif memory.status != int(columns.status[row]):
            yield VerifyProblem(where, f"row {row} has another status than the store")
        elif memory.status in RECALLABLE and memory.embedding_dim and not columns.has_vector[row]:
            yield VerifyProblem(where, f"row {row} has no vector")


def backup(engine: Engine, sessions: SessionLog, store_directory: Path, sessions_directory: Path) -> int:
    """A hot copy into directories that do not exist or are empty; returns its bytes. The sessions come first: called
    while nothing is consolidated, no turn is missing from both. A failure leaves nothing behind.

    Raises InvalidArgument, StorageFull, StorageFailure.
    """
    for directory in (store_directory, sessions_directory):
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise InvalidArgument(f"{directory} exists and is not an empty directory", field="directory")
    try:
        return sessions.backup(sessions_directory) + engine.backup(store_directory)
    except BaseException:  # whatever stopped it: half of a backup must not look like one
        shutil.rmtree(sessions_directory, ignore_errors=True)
        raise


class ReindexJob:
    """The background re-embedding of a serving process."""

    def __init__(
        self, engine: Engine, open_model: Callable[[str], Embedder], switch: Callable[[Embedder], None]
    ) -> None:
        self._engine = engine
        self._open_model = open_model
        self._switch = switch
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._status = ReindexStatus()

    @property
    def status(self) -> ReindexStatus:
        """Now."""
        return self._status

    def start(self, model_directory: str) -> ReindexStatus:
        """Starts the job. Raises InvalidArgument while one runs, ModelUnavailable and kin for a bad directory."""
        with self._lock:
            if self._status.state == ReindexState.RUNNING:
                raise InvalidArgument(f"a reindex to {self._status.model_id} is running", field="model_directory")
            embedder = self._open_model(model_directory)
            self._status = ReindexStatus(ReindexState.RUNNING, embedder.model_id, embedder.dim)
            self._thread = threading.Thread(target=self._run, args=(embedder,), name="reindex", daemon=True)
            self._thread.start()
        return self._status

    def _run(self, embedder: Embedder) -> None:
        def progress(done: int, total: int) -> None:
            self._status = msgspec.structs.replace(self._status, done_count=done, total_count=total)

        try:
            finished = Reindexer(self._engine, embedder, progress, lambda: self._stopping).run(
                lambda: self._switch(embedder)
            )
        except MemsvcError as error:
            LOG.error("reindex failed: %s", error.message)
            self._status = msgspec.structs.replace(self._status, state=ReindexState.FAILED, error=error.message)
            return
        state = ReindexState.DONE if finished else ReindexState.FAILED
        why = "" if finished else "the server stopped; start it again to resume"
        self._status = msgspec.structs.replace(self._status, state=state, error=why)

    def close(self) -> None:
        """Stops a running job at its next batch and waits for it."""
        self._stopping = True
        if self._thread is not None:
            self._thread.join()
