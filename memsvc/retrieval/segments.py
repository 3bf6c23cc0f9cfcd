"""All segments of this process: loaded on first use, kept in step with the store, saved and completed.

Purpose: `get` gives the segment of a namespace, from its saved file completed by the change log, or rebuilt from the
store; `applied` follows the commits; a background thread moves rows into vector graphs and saves segments that
changed much, so that a restart is fast.

Threading: `get` from any thread (one load per namespace at a time; others wait for it). `applied` is called on the
store's writer thread in commit order. One background thread; `close` stops it and saves.

Rejected: loading everything at start (a fleet's laptop has thousands of namespaces and opens three of them).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.model import Memory, Namespace, content_hash, embedded_text
from memsvc.retrieval import segment_file
from memsvc.retrieval.segment import Segment
from memsvc.retrieval.vector import GRAPH_FROM_ROWS
from memsvc.storage.engine import Engine, ReadTxn

LOG = logging.getLogger("memsvc.segments")
CATCH_UP_CHANGES = 512
IDLE_WAIT_S = 5.0
ABSENT_MAX = 10_000
BACKGROUND_NICE = 10  # where recalls want all cores, a graph is built with a tenth of one


class Applied(msgspec.Struct, frozen=True):
    """One committed version, its vector ((dim,) float32) if it has one, and the version that it replaced."""

    memory: Memory
    vector: NDArray[np.float32] | None
    before: Memory | None


def vector_hash(memory: Memory) -> bytes:
    """Key of the memory's vector in the store."""
    return content_hash(embedded_text(memory))


class SegmentStore:
    """See the module. `directory` holds the saved segments; None keeps them in memory only."""

    def __init__(
        self, engine: Engine, model_id: str, dim: int, directory: Path | None, *, save_after_changes: int = 5000
    ) -> None:
        self._engine = engine
        self.model_id = model_id
        self.dim = dim
        self._directory = directory
        self._save_after_changes = save_after_changes
        self._segments: dict[Namespace, Segment] = {}
        self._loading: dict[Namespace, threading.Lock] = {}
        self._lock = threading.Lock()
        self._saved_at: dict[Namespace, int] = {}
        self._absent: set[Namespace] = set()  # asked for and not in the store; a commit takes one out again
        self._births = 0
        self.erasures = 0  # how often something was purged; see `purged_since`
        self._erasing = 0
        self._saving = threading.Lock()
        self.on_load: Callable[[Segment], None] = lambda _segment: None  # before a loaded segment is searched
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the background thread."""
        self._thread = threading.Thread(target=self._maintain, name="segments", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the background work and saves what changed since the last save."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        for segment in list(self._segments.values()):
            if segment.vectors.has_graph or segment.rows >= segment_file.SAVE_FROM_ROWS:
                self._save(segment, least_changes=1)

    def get(self, namespace: Namespace) -> Segment | None:
        """The namespace's segment at the store's head or later; None if the namespace was never written."""
        segment = self._segments.get(namespace)
        if segment is not None:
            return segment
        if not self.exists(namespace):
            return None
        with self._lock:
            gate = self._loading.setdefault(namespace, threading.Lock())
        with gate:
            segment = self._segments.get(namespace)
            while segment is None:
                segment = self._loaded(namespace)
                if segment is None and not self.exists(namespace):
                    return None  # purged meanwhile
        return segment

    def _loaded(self, namespace: Namespace) -> Segment | None:
        """Loads the segment and puts it into the table; None when something was purged meanwhile: try again."""
        erasures = self.erasures
        segment = self._load(namespace)
        if segment is None:
            return None
        self.on_load(segment)
        with segment.apply_lock:
            with self._lock:
                if erasures != self.erasures:
                    return None
                self._segments[namespace] = segment
            self._catch_up(segment)  # commits from now on come through `applied`
        self._wake.set()
        return segment

    def exists(self, namespace: Namespace) -> bool:
        """Whether the namespace was ever written.

        That it was not is remembered until `applied` brings its first change, so that every commit that can create a
        namespace must come through there.
        """
        if namespace in self._segments:
            return True
        if namespace in self._absent:
            return False
        births = self._births
        with self._engine.read() as txn:
            found = txn.head(namespace) is not None
        if not found:
            with self._lock:
                if births == self._births and len(self._absent) < ABSENT_MAX:
                    self._absent.add(namespace)
        return found

    def loaded(self, namespaces: Iterable[Namespace]) -> list[Segment]:
        """The segments of these namespaces that are in memory."""
        return [segment for name in namespaces if (segment := self._segments.get(name)) is not None]

    def is_loaded(self, namespace: Namespace) -> bool:
        """Whether `get` would answer without loading."""
        return namespace in self._segments

    def _load(self, namespace: Namespace) -> Segment | None:
        """The segment at the store's head; None when the namespace is not there any more."""
        segment = None
        if self._directory is not None:
            segment = segment_file.load(self._directory, namespace, self.model_id, self.dim)
            if segment is not None:
                self._saved_at[namespace] = segment.sequence
        if segment is None:
            segment = Segment(namespace, self.model_id, self.dim)
        with self._engine.read() as txn:
            head = txn.head(namespace)
            if head is None:
                return None
            if segment.sequence > head.sequence:
                LOG.warning("saved segment is ahead of the store (restored from a backup?): rebuilding it")
                segment = Segment(namespace, self.model_id, self.dim)
        self._catch_up(segment)
        return segment

    def _catch_up(self, segment: Segment) -> None:
        """Applies what the change log has beyond the segment, in chunks of one read transaction each."""
        while True:
            with self._engine.read() as txn:
                changes = txn.changes(segment.namespace, segment.sequence, CATCH_UP_CHANGES)
                if not changes:
                    return
                memories = txn.get_many(segment.namespace, [(c.memory_id, c.version) for c in changes])
                befores = txn.get_many(segment.namespace, [(c.memory_id, c.before_version or 1) for c in changes])
                vectors, found = self._stored_vectors(txn, segment.namespace, memories)
            for i, memory in enumerate(memories):
                if memory is None:
                    raise RuntimeError(f"change {changes[i].sequence} has no version; run `memsvc verify`")
                before = befores[i] if changes[i].before_version else None
                segment.apply(memory, vectors[i] if found[i] else None, before)

    def _stored_vectors(
        self, txn: ReadTxn, namespace: Namespace, memories: Sequence[Memory | None]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        hashes = [vector_hash(m) if m is not None else b"" for m in memories]
        return txn.vectors(namespace, self.model_id, hashes, self.dim)

    def applied(self, changes: Sequence[Applied]) -> None:
        """Follows a commit: applies its changes to the loaded segments."""
        for change in changes:
            segment = self._segments.get(change.memory.namespace)
            if segment is None:
                with self._lock:
                    self._births += 1
                    self._absent.discard(change.memory.namespace)
                continue
            with segment.apply_lock:
                if change.memory.sequence == segment.sequence + 1:
                    segment.apply(change.memory, change.vector, change.before)
                elif change.memory.sequence > segment.sequence:
                    self._catch_up(segment)
        if changes:
            self._wake.set()

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """Stands around the transaction of a purge and its `forget`: what it removed is gone from the store before the
        segments are.
        """
        with self._lock:
            self._erasing += 1
        try:
            yield
        finally:
            with self._lock:
                self.erasures += 1
                self._erasing -= 1

    def purged_since(self, erasures: int) -> bool:
        """Whether anything was purged since `erasures` was read, which must be before the segment was asked for and
        before the transaction began. Ask after the read: then a row without a record is no damage.
        """
        return self._erasing > 0 or erasures != self.erasures  # in this order: `erasing` ends in the other

    def forget(self, namespaces: Iterable[Namespace]) -> None:
        """Drops the loaded segments of namespaces whose past changed in the store; call it on the writer's thread,
        after the commit, inside `erasing`. A search that has one still may find what is gone: see `purged_since`.
        """
        with self._lock:
            self.erasures += 1
            for namespace in namespaces:
                self._segments.pop(namespace, None)
                self._saved_at.pop(namespace, None)

    def wipe(self, namespace: Namespace) -> None:
        """Removes the saved segment so that nobody reads it from the disk any more. Raises StorageFailure."""
        if self._directory is not None:
            with self._saving:
                segment_file.wipe_saved(self._directory, namespace)

    def switch_model(self, model_id: str, dim: int, while_paused: Callable[[], None]) -> None:
        """Drops all segments for those of another model, after `while_paused` has switched the embedder."""
        with self._lock:
            while_paused()
            self.model_id, self.dim = model_id, dim
            self._segments = {}
            self._saved_at = {}

    # -- background ----------------------------------------------------------------------------------------------

    def _maintain(self) -> None:
        if sys.platform == "linux":  # elsewhere threads have no priority of their own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICE)
        while not self._stop.is_set():
            self._wake.wait(IDLE_WAIT_S)
            self._wake.clear()
            for segment in list(self._segments.values()):
                self._index(segment)
                if self._stop.is_set():
                    return
                self._save(segment, least_changes=max(self._save_after_changes, segment.rows // 5))

    def _index(self, segment: Segment) -> None:
        """Moves rows into the graph."""
        while segment.index_more() and not self._stop.is_set():
            pass

    def unindexed_rows(self) -> int:
        """Rows of loaded segments that wait for their place in a graph."""
        segments = [s for s in self._segments.values() if s.rows >= GRAPH_FROM_ROWS]
        return sum(s.rows - s.vectors.graph_rows for s in segments)

    def _save(self, segment: Segment, least_changes: int) -> None:
        if self._directory is None:
            return
        if segment.sequence - self._saved_at.get(segment.namespace, 0) < least_changes:
            return
        try:
            with self._saving:
                if self._segments.get(segment.namespace) is not segment:
                    return  # purged meanwhile
                self._saved_at[segment.namespace] = segment_file.save(self._directory, segment)
        except OSError as error:
            # Derived data: the store is whole without it, and a restart rebuilds it. Say so and go on.
            LOG.warning("could not save a segment: %s", error)
            self._saved_at[segment.namespace] = segment.sequence
