"""What both clients share: requests, caches, fallbacks, retries, the state of the Watch.

Purpose: `MemoryClient` and `AsyncMemoryClient` only move bytes; every decision is made here, without I/O.

Threading: thread-safe.

Rejected: the async client as a wrapper of the sync one in threads (or the other way round): each would pay the other's
scheduler in the middle of an agent's turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import grpc

from . import requests
from ._proto import memory_pb2 as pb
from ._proto import memory_service_pb2 as spb
from .breaker import CircuitBreaker
from .cache import RecallCache, RecentMemories
from .errors import (
    CALLERS_FAULT,
    Aborted,
    InvalidArgument,
    MemsvcClientError,
    ResourceExhausted,
    TransportError,
    cause_of,
)
from .results import Recall

BATCH_MAX = 1000
FENCE_S = 5.0  # own writes younger than this are demanded of the next recall
BACKOFF_FIRST_S = 0.05
BACKOFF_MAX_S = 1.0
WATCH_BACKOFF_MAX_S = 10.0
MESSAGE_MAX_BYTES = 32 * 1024 * 1024
STANDING_OUTCOMES = (spb.WRITE_OUTCOME_CREATED, spb.WRITE_OUTCOME_SUPERSEDED, spb.WRITE_OUTCOME_CONTESTED)
LOOPBACK = ("127.", "localhost", "[::1]", "::1", "unix:")


class PreparedRecall:
    """A recall on its way: the request, its cache key, and what it was asked with."""

    __slots__ = ("generation", "key", "options", "query", "request", "started_s")

    def __init__(
        self,
        request: spb.RecallRequest,
        key: bytes,
        query: str,
        options: Mapping[str, Any],
        generation: int,
        started_s: float,
    ) -> None:
        self.request = request
        self.key = key
        self.query = query
        self.options = options
        self.generation = generation
        self.started_s = started_s


class Core:
    """See the module. `timer_s` is monotonic, `clock_s` wall time, `random` gives 0..1."""

    def __init__(
        self,
        target: str,
        *,
        owners: Mapping[str, str | None],
        token: str | None,
        tls: bool,
        tool: str,
        timeout_s: float,
        write_timeout_s: float,
        cache_ttl_s: float,
        cache_entries: int,
        recent_count: int,
        timer_s: Callable[[], float],
        clock_s: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        if token and not tls and not target.startswith(LOOPBACK):
            raise InvalidArgument(
                f"a token must not travel to {target} in the clear: pass tls=True or root_certificates"
            )
        for name, value in owners.items():
            if value == "":
                raise InvalidArgument(
                    f"{name} is empty; leave it out or give an id", field_violations=[(name, "empty")]
                )
        self.target = target
        self.owners: pb.Owners = requests.encodable(
            lambda: pb.Owners(**{name: value for name, value in owners.items() if value is not None}), "an owner id"
        )
        self.session_id = owners.get("session_id") or ""
        self.tool = tool
        self.timeout_s = timeout_s
        self.write_timeout_s = write_timeout_s
        self.recent_count = recent_count
        self.metadata: tuple[tuple[str, str], ...] = (("authorization", f"Bearer {token}"),) if token else ()
        self.breaker = CircuitBreaker(timer_s, random)
        self.cache = RecallCache(cache_entries, cache_ttl_s, timer_s)
        self.recent = RecentMemories(recent_count)
        self._timer_s = timer_s
        self._clock_s = clock_s
        self._random = random
        self._lock = threading.Lock()
        self._generation = 0
        self._live = False
        self._positions: dict[bytes, pb.NamespaceSequence] = {}
        self._written: dict[bytes, tuple[pb.NamespaceSequence, float]] = {}

    def channel_options(self) -> list[tuple[str, Any]]:
        """Options of the gRPC channel."""
        options: list[tuple[str, Any]] = [
            ("grpc.max_send_message_length", MESSAGE_MAX_BYTES),
            ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 5_000),
        ]
        if self.target.startswith(LOOPBACK):
            options.append(("grpc.enable_http_proxy", 0))
        return options

    # -- recall --------------------------------------------------------------------------------------------------

    def prepare(self, query: str, options: dict[str, Any]) -> PreparedRecall:
        """Builds a recall. Raises TypeError for unknown names and InvalidArgument for bad values."""
        started_s = self._timer_s()
        request = requests.recall_request(self.owners, query, options)
        return PreparedRecall(request, requests.cache_key(request), query, options, self._generation, started_s)

    def from_cache(self, prepared: PreparedRecall) -> Recall | None:
        """The stored answer, if it must still be what the server would say."""
        if not self._live:
            return None
        entry = self.cache.get(prepared.key)
        if entry is None:
            return None
        response, generation, fresh = entry
        if not fresh or generation != self._generation:
            return None
        return Recall(response, "cache", (), self._elapsed_ms(prepared))

    def fence(self, prepared: PreparedRecall) -> spb.RecallRequest:
        """The request, demanding the client's own recent writes."""
        if self._written:
            now_s = self._timer_s()
            with self._lock:
                self._written = {k: v for k, v in self._written.items() if now_s - v[1] < FENCE_S}
                prepared.request.min_sequences.extend(at for at, _ in self._written.values())
        return prepared.request

    def answered(self, prepared: PreparedRecall, response: spb.RecallResponse) -> Recall:
        """The server's answer."""
        self.breaker.succeeded()
        if not response.degraded:
            self.cache.put(prepared.key, response, prepared.generation)
        return Recall(response, "server", (), self._elapsed_ms(prepared))

    def not_answered(self, prepared: PreparedRecall, error: MemsvcClientError) -> Recall:
        """A fallback for the service's trouble; raises the caller's own faults."""
        if isinstance(error, CALLERS_FAULT) and error.reason != "SEQUENCE_NOT_REACHED":
            self.breaker.succeeded()
            raise error
        self.note_trouble(error)
        return self.fallback(prepared, cause_of(error))

    def note_trouble(self, error: MemsvcClientError) -> None:
        """Tells the breaker of a recall or a context that the service did not give."""
        if isinstance(error, ResourceExhausted):
            self.breaker.refused(error.retry_delay_s or 0.0)
        else:
            self.breaker.failed()

    def held_back(self) -> str:
        """What `degraded` calls it when the breaker let no call out."""
        return "RETRY_LATER" if self.breaker.is_held else "CIRCUIT_OPEN"

    def fallback(self, prepared: PreparedRecall, cause: str) -> Recall:
        """The stored answer without what stopped standing, then the recent memories that match; or nothing."""
        degraded = [cause]
        top_k = prepared.options.get("top_k") or 8
        hits: list[spb.Hit] = []
        entry = self.cache.get(prepared.key)
        if entry is not None:
            degraded.append("STALE")
            hits = [self._current(hit) for hit in entry[0].hits if not self.recent.is_gone(hit.memory.memory_id)]
        local = self.recent.match(prepared.query, prepared.options, self._clock_s())
        if local:
            known = {hit.memory.memory_id for hit in hits}
            fresh = [hit for hit in local if hit.memory.memory_id not in known]
            hits = fresh[:top_k] if entry is None else self._merged(hits, fresh, top_k)
            if entry is None:
                degraded.append("LOCAL_ONLY")
        if entry is None and not hits:
            return Recall(None, "none", degraded, self._elapsed_ms(prepared))
        return Recall(spb.RecallResponse(hits=hits[:top_k]), "cache", degraded, self._elapsed_ms(prepared))

    def _current(self, hit: spb.Hit) -> spb.Hit:
        newer = self.recent.newer_version(hit.memory)
        if newer is hit.memory:
            return hit
        changed = spb.Hit()
        changed.CopyFrom(hit)
        changed.memory.CopyFrom(newer)
        return changed

    def _merged(self, stored: list[spb.Hit], fresh: list[spb.Hit], top_k: int) -> list[spb.Hit]:
        """Stored hits with room made for what was written since, which the stored answer can't know."""
        room = min(len(fresh), max(1, top_k // 4))
        return fresh[:room] + stored[: top_k - room]

    def _elapsed_ms(self, prepared: PreparedRecall) -> float:
        return (self._timer_s() - prepared.started_s) * 1000

    # -- mutations -----------------------------------------------------------------------------------------------

    def source(self, tool: str, session_id: str | None, message_id: str) -> pb.Source:
        """Where a mutation comes from; tool and session are the client's unless given."""
        return pb.Source(tool=tool or self.tool, session_id=session_id or self.session_id, message_id=message_id)

    def write_request(self, fields: Mapping[str, Any]) -> spb.WriteRequest:
        """One memory, with a fresh request_id."""
        draft = requests.draft(fields, self.tool, self.session_id)
        return spb.WriteRequest(owners=self.owners, memory=draft, request_id=requests.fresh_request_id())

    def batch_requests(self, items: Iterable[Mapping[str, Any] | str]) -> list[spb.BatchWriteRequest]:
        """Batches of at most BATCH_MAX memories, each with a fresh request_id."""
        drafts = [
            requests.draft({"content": item} if isinstance(item, str) else item, self.tool, self.session_id)
            for item in items
        ]
        return [
            spb.BatchWriteRequest(
                owners=self.owners, memories=drafts[i : i + BATCH_MAX], request_id=requests.fresh_request_id()
            )
            for i in range(0, len(drafts), BATCH_MAX)
        ]

    def wrote(self, drafts: Sequence[spb.MemoryDraft], results: Sequence[spb.WriteResult]) -> None:
        """After an acknowledged write: the next recall demands it, and the recent memories hold it."""
        now_s = self._timer_s()
        for draft, result in zip(drafts, results, strict=True):
            self._reached(result.at, now_s)
            if result.outcome in STANDING_OUTCOMES:
                self.recent.apply(_as_memory(draft, result, self._clock_s()))
                for memory_id in draft.supersedes:
                    self.recent.apply(pb.Memory(memory_id=memory_id, version=2**31 - 1, status=pb.STATUS_SUPERSEDED))
                if result.outcome != spb.WRITE_OUTCOME_CREATED:
                    for memory_id in result.conflicting_ids:
                        self.recent.replaced(memory_id)

    def ingested(self, verdicts: Iterable[spb.MessageVerdict]) -> None:
        """After an acknowledged ingest: as after the writes that it made."""
        made = [memory for verdict in verdicts for memory in verdict.memories if memory.HasField("result")]
        self.wrote([memory.memory for memory in made], [memory.result for memory in made])

    def updated(self, memory: pb.Memory) -> None:
        """After an acknowledged update."""
        at = pb.NamespaceSequence(namespace=memory.namespace, sequence=memory.sequence)
        self._reached(at, self._timer_s())
        self.recent.apply(memory)

    def forgot(self, memory_ids: Iterable[str], at: Iterable[pb.NamespaceSequence]) -> None:
        """After an acknowledged forget."""
        self.stored(at)
        for memory_id in memory_ids:
            self.recent.apply(pb.Memory(memory_id=memory_id, version=2**31 - 1, status=pb.STATUS_FORGOTTEN))

    def stored(self, at: Iterable[pb.NamespaceSequence] = ()) -> None:
        """After an acknowledged mutation of a resource: no answer from before it stands for the server's, and the next
        recall demands these positions.
        """
        now_s = self._timer_s()
        for position in at:
            self._reached(position, now_s)
        with self._lock:
            self._generation += 1

    def _reached(self, at: pb.NamespaceSequence, now_s: float) -> None:
        key = at.namespace.SerializeToString(deterministic=True)
        with self._lock:
            self._generation += 1
            known = self._written.get(key)
            if known is None or known[0].sequence < at.sequence:
                self._written[key] = (at, now_s)

    def retry_delay_s(self, error: MemsvcClientError, attempt: int, started_s: float) -> float | None:
        """Seconds to wait before the same mutation is tried again; None when it must not or time is up."""
        again = isinstance(error, TransportError) or (isinstance(error, Aborted) and error.reason != "ETAG_MISMATCH")
        again = again or (isinstance(error, ResourceExhausted) and error.retry_delay_s is not None)
        if not again:
            return None
        delay_s = min(BACKOFF_FIRST_S * 2.0**attempt, BACKOFF_MAX_S) * (0.5 + 0.5 * self._random())
        delay_s = max(delay_s, error.retry_delay_s or 0.0)
        return delay_s if self.left_s(started_s) > delay_s else None

    def left_s(self, started_s: float) -> float:
        """What is left of the write timeout."""
        return self.write_timeout_s - (self._timer_s() - started_s)

    def now_s(self) -> float:
        """The monotonic timer."""
        return self._timer_s()

    # -- watch ---------------------------------------------------------------------------------------------------

    def watch_request(self) -> spb.WatchRequest:
        """The stream that keeps caches coherent, resuming where the last one ended."""
        with self._lock:
            after = list(self._positions.values())
        return spb.WatchRequest(
            owners=self.owners, after=after, recent_count=0 if after else min(self.recent_count, 100)
        )

    def watched(self, response: spb.WatchResponse) -> None:
        """Follows one message of the stream."""
        with self._lock:
            if response.started_at:
                first = not self._positions
                self._positions = {_name(at): at for at in response.started_at}
            else:
                first = False
        if first:
            self.recent.replace_all(response.recent)
        if response.HasField("change"):
            with self._lock:
                self._positions[_name(response.change.at)] = response.change.at
                self._generation += 1
            self.recent.apply(response.change.after)
        self._live = True

    def watch_ended(self, error: MemsvcClientError | None) -> None:
        """The stream broke: stored answers are fallbacks until it lives again. A position that the server does not
        know means another store: what was known of the old one goes.
        """
        self._live = False
        if isinstance(error, InvalidArgument):
            with self._lock:
                self._positions = {}
                self._written = {}
                self._generation += 1
            self.cache.clear()

    def watch_backoff_s(self, attempt: int) -> float:
        """Seconds before the stream is opened again."""
        return min(0.1 * 2.0 ** min(attempt, 10), WATCH_BACKOFF_MAX_S) * (0.5 + 0.5 * self._random())

    @property
    def is_coherent(self) -> bool:
        """Whether a Watch stream is live."""
        return self._live


def _name(at: pb.NamespaceSequence) -> bytes:
    return at.namespace.SerializeToString(deterministic=True)


def _as_memory(draft: spb.MemoryDraft, result: spb.WriteResult, now_s: float) -> pb.Memory:
    """The record as far as the client can know it before the Watch brings the real one."""
    memory = pb.Memory(
        memory_id=result.memory_id,
        version=result.version,
        namespace=result.at.namespace,
        layer=draft.layer or (pb.LAYER_EPISODIC if draft.type == pb.MEMORY_TYPE_EVENT else pb.LAYER_SEMANTIC),
        type=draft.type or pb.MEMORY_TYPE_FACT,
        subject=draft.subject,
        content=draft.content,
        tags=draft.tags,
        source=draft.source,
        importance=draft.importance if draft.HasField("importance") else 0.5,
        confidence=draft.confidence if draft.HasField("confidence") else 1.0,
        status=pb.STATUS_CONTESTED if result.outcome == spb.WRITE_OUTCOME_CONTESTED else pb.STATUS_ACTIVE,
        seen_count=1,
        etag=f"v{result.version}",
        sequence=result.at.sequence,
    )
    memory.create_time.FromMicroseconds(int(now_s * 1e6))
    memory.update_time.CopyFrom(memory.create_time)
    memory.occur_time.CopyFrom(draft.occur_time if draft.HasField("occur_time") else memory.create_time)
    if draft.HasField("metadata"):
        memory.metadata.CopyFrom(draft.metadata)
    if draft.HasField("event"):
        memory.event.CopyFrom(draft.event)
    if draft.HasField("expire_time"):
        memory.expire_time.CopyFrom(draft.expire_time)
    return memory


def credentials(tls: bool, root_certificates: bytes | None) -> grpc.ChannelCredentials | None:
    """TLS credentials, or None for a plain channel."""
    return grpc.ssl_channel_credentials(root_certificates) if tls or root_certificates else None
