"""Recall: plan, budget, degrade order, answer.

Purpose: turns a question of some owners into hits. Words, identifiers and time need no embedding; the query's vector
comes from the cache or is waited for as long as the budget allows, and if it does not come the answer goes out without
it and says so. A namespace whose segment is not loaded yet is loaded inside the budget or left out, named.

Threading: any number of threads; stateless but for a bounded cache of records (versions are immutable, so nothing in
it can be stale).

Rejected: searching by words first and again with the vector (the second search repeats the first; both together take
a tenth of an embedding), a thread per path (a hand-over costs more than a path).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from enum import IntEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import DeadlineExceeded, InvalidArgument, LimitExceeded, SequenceNotReached, StoreCorrupt
from memsvc.memory.waiting import never_stood
from memsvc.model import APPROVED, NO_FILTER, RECALLABLE, Filter, Memory, Namespace, Status
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.lexical import analyze_query
from memsvc.retrieval.searcher import DecaySettings, Found, SearchQuery, search
from memsvc.retrieval.searcher import Weights as Weights
from memsvc.retrieval.segment import Segment
from memsvc.retrieval.segments import SegmentStore
from memsvc.storage.engine import Engine

TOP_K_DEFAULT = 8
TOP_K_MAX = 100
QUERY_MAX_CHARS = 8192
RECORD_CACHE_ENTRIES = 8192


class Degraded(IntEnum):
    """What a recall left out; numbers equal the contract's."""

    VECTOR_SKIPPED = 1
    NAMESPACES_SKIPPED = 2


class RecallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for and how; see the contract. `is_use`: whether the hits count as used; the past never does."""

    namespaces: Sequence[Namespace]
    query: str
    top_k: int = TOP_K_DEFAULT
    condition: Filter = NO_FILTER
    min_score: float = -math.inf
    weights: Weights = Weights()
    include_inactive: bool = False
    as_of_us: int | None = None
    min_sequences: dict[Namespace, int] = {}
    budget_s: float = 0.05
    session_id: str = ""
    is_use: bool = True


class Hit(msgspec.Struct, frozen=True):
    """A memory found, and why."""

    memory: Memory
    found: Found


class Timings(msgspec.Struct):
    """Where the time went, in microseconds."""

    total_us: int = 0
    plan_us: int = 0
    embed_us: int = 0
    search_us: int = 0
    fetch_us: int = 0
    vector_cached: bool = False


class RecallAnswer(msgspec.Struct):
    """Hits, best first; what was left out; the sequence seen per namespace that was looked in."""

    hits: list[Hit]
    degraded: list[Degraded]
    sequences: list[tuple[Namespace, int]]
    timings: Timings


class Recaller:
    """See the module. `clock_us` is wall time; `timer_s` a monotonic one, in seconds; `used(memories, now_us)` hears
    which memories (namespace and 16 bytes of the id) were found.
    """

    def __init__(
        self,
        engine: Engine,
        embedder: Embedder,
        segments: SegmentStore,
        *,
        clock_us: Callable[[], int],
        timer_s: Callable[[], float] = time.perf_counter,
        decay: DecaySettings | None = None,
        used: Callable[[list[tuple[Namespace, bytes]], int], None] | None = None,
    ) -> None:
        self._engine = engine
        self.embedder = embedder
        self._segments = segments
        self._clock_us = clock_us
        self._timer_s = timer_s
        self._decay = decay or DecaySettings()
        self._used = used
        self._records: dict[tuple[Namespace, bytes, int], Memory] = {}
        self._count_lock = threading.Lock()
        self.recall_count = 0
        self.degraded_count = 0

    def recall(self, request: RecallRequest, decay: DecaySettings | None = None) -> RecallAnswer:
        """Answers inside the budget; `decay` stands in for the usual one. Raises InvalidArgument, SequenceNotReached,
        DeadlineExceeded.
        """
        started = self._timer_s()
        _check(request)
        timings = Timings()
        degraded: list[Degraded] = []
        erasures = self._segments.erasures
        segments = self._segments_for(request, started, degraded)
        self._fence(request, segments)
        planned = self._timer_s()
        vector = self._vector(request, started, timings, degraded)
        embedded = self._timer_s()
        now_us = self._clock_us()
        targets = [(segment, _sequence_of(segment, request.as_of_us)) for segment in segments]
        found, seen = search(targets, self._search_query(request, vector, now_us, decay or self._decay))
        searched = self._timer_s()
        hits = self._fetch(found, erasures)
        if self._used is not None and request.is_use and request.as_of_us is None:
            self._used([(one.namespace, one.raw_id) for one in found], now_us)
        ended = self._timer_s()
        timings.plan_us = round((planned - started) * 1e6)
        timings.embed_us = 0 if timings.vector_cached else round((embedded - planned) * 1e6)
        timings.search_us = round((searched - embedded) * 1e6)
        timings.fetch_us = round((ended - searched) * 1e6)
        timings.total_us = round((ended - started) * 1e6)
        with self._count_lock:
            self.recall_count += 1
            self.degraded_count += bool(degraded)
        sequences = [(segment.namespace, sequence) for segment, sequence in zip(segments, seen, strict=True)]
        return RecallAnswer(hits, degraded, sequences, timings)

    def forget_records(self) -> None:
        """Empties the cache of records."""
        self._records = {}

    def _segments_for(self, request: RecallRequest, started: float, degraded: list[Degraded]) -> list[Segment]:
        """Segments of the namespaces that exist; loading stops when the budget is used up."""
        segments = []
        for namespace in request.namespaces:
            if not self._segments.is_loaded(namespace) and self._timer_s() - started > request.budget_s:
                if Degraded.NAMESPACES_SKIPPED not in degraded and self._segments.exists(namespace):
                    degraded.append(Degraded.NAMESPACES_SKIPPED)
                continue
            segment = self._segments.get(namespace)
            if segment is not None:
                segments.append(segment)
        return segments

    def _fence(self, request: RecallRequest, segments: list[Segment]) -> None:
        """Demanded sequences must have been seen. This node applies a commit before it answers the write, so that a
        sequence that is not there was never acknowledged by this store.
        """
        if not request.min_sequences:
            return
        reached = {segment.namespace: segment.sequence for segment in segments}
        for namespace, sequence in request.min_sequences.items():
            if namespace in request.namespaces and reached.get(namespace, 0) < sequence:
                raise SequenceNotReached(
                    f"sequence {sequence} is demanded, this store is at {reached.get(namespace, 0)}",
                    sequence=str(reached.get(namespace, 0)),
                )

    def _vector(
        self, request: RecallRequest, started: float, timings: Timings, degraded: list[Degraded]
    ) -> NDArray[np.float32] | None:
        """The query's vector, from the cache or waited for; None when it is not wanted or too late."""
        if not request.query.strip() or request.weights.vector == 0.0:
            return None
        cached = self.embedder.cached_query(request.query)
        if cached is not None:
            timings.vector_cached = True
            return cached
        left_s = request.budget_s - (self._timer_s() - started)
        if left_s > 0:
            try:
                return self.embedder.submit_query(request.query).result(timeout=left_s)
            except FutureTimeoutError:
                pass  # the embedding goes on and fills the cache for the next try
        degraded.append(Degraded.VECTOR_SKIPPED)
        return None

    def _search_query(
        self, request: RecallRequest, vector: NDArray[np.float32] | None, now_us: int, decay: DecaySettings
    ) -> SearchQuery:
        statuses = request.condition.statuses or (APPROVED if request.include_inactive else RECALLABLE)
        return SearchQuery(
            analysis=analyze_query(request.query),
            vector=vector,
            top_k=request.top_k,
            now_us=now_us if request.as_of_us is None else request.as_of_us,
            condition=msgspec.structs.replace(request.condition, statuses=())
            if request.condition.statuses
            else request.condition,
            statuses=statuses,
            session_id=request.session_id if request.as_of_us is None else "",
            min_score=request.min_score,
            weights=request.weights,
            decay=decay,
            text=request.query,
        )

    def _fetch(self, found: list[Found], erasures: int) -> list[Hit]:
        """The records, from the cache or the store. What was purged since the search began is no hit."""
        records = self._records
        hits: list[Hit | None] = []
        missing: dict[Namespace, list[int]] = {}
        for i, one in enumerate(found):
            memory = records.get((one.namespace, one.raw_id, one.version))
            hits.append(None if memory is None else Hit(memory, one))
            if memory is None:
                missing.setdefault(one.namespace, []).append(i)
        if missing:
            with self._engine.read() as txn:
                for namespace, indexes in missing.items():
                    keys = [(found[i].memory_id, found[i].version) for i in indexes]
                    for i, memory in zip(indexes, txn.get_many(namespace, keys), strict=True):
                        if memory is None or memory.status == Status.PURGED:
                            if self._segments.purged_since(erasures):
                                continue
                            raise StoreCorrupt(f"{found[i].memory_id} is indexed, not stored; run `memsvc verify`")
                        self._remember(found[i], memory)
                        hits[i] = Hit(memory, found[i])
        return self._approved([hit for hit in hits if hit is not None])

    def _approved(self, hits: list[Hit]) -> list[Hit]:
        """Without what was forgotten before anybody approved it: it was never for everybody."""
        if all(hit.memory.status != Status.FORGOTTEN for hit in hits):
            return hits
        with self._engine.read() as txn:
            return [hit for hit in hits if not never_stood(txn, hit.memory)]

    def _remember(self, one: Found, memory: Memory) -> None:
        if len(self._records) >= RECORD_CACHE_ENTRIES:
            self._records = {}
        self._records[one.namespace, one.raw_id, one.version] = memory


def _sequence_of(segment: Segment, as_of_us: int | None) -> int | None:
    return None if as_of_us is None else segment.sequence_at(as_of_us)


def _check(request: RecallRequest) -> None:
    if not 1 <= request.top_k <= TOP_K_MAX:
        raise InvalidArgument(f"top_k must be from 1 to {TOP_K_MAX}, not {request.top_k}", field="top_k")
    if Status.PURGED in request.condition.statuses:
        raise InvalidArgument(
            "status PURGED is in no recall: nothing of it is left; List names what it was", field="filter.statuses"
        )
    if Status.PENDING in request.condition.statuses:
        raise InvalidArgument(
            "status PENDING is in no recall: what waits for approval is listed by ReviewService, or List",
            field="filter.statuses",
        )
    if len(request.query) > QUERY_MAX_CHARS:
        raise LimitExceeded(
            f"query has {len(request.query)} characters, the limit is {QUERY_MAX_CHARS}",
            field="query",
            limit=str(QUERY_MAX_CHARS),
        )
    if request.budget_s <= 0:
        raise DeadlineExceeded("the deadline had passed before the recall began")
