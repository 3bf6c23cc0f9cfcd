"""The synchronous client.

Purpose: `MemoryClient`: remember and recall from any thread, without ever making an agent wait past its timeout.

Threading: thread-safe. One daemon thread follows the Watch stream, from the first recall or write until `close`; each
`recall_in_background` uses gRPC's own threads.

Rejected: connecting in the constructor (an agent's start must not depend on the memory service).
"""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

import grpc

from . import learning
from ._proto import context_service_pb2_grpc as context_rpc
from ._proto import memory_service_pb2 as spb
from ._proto import memory_service_pb2_grpc as rpc
from .audit import Audit
from .background import BackgroundRecall
from .calls import forget_all_request, forget_request, history_pages, list_pages, query_of, update_request
from .context import Context, Contexts
from .core import Core, PreparedRecall, credentials
from .erasure import Erasure
from .errors import Cancelled, ClientClosed, MemsvcClientError, from_rpc_error
from .events import Events
from .facts import Facts
from .lifecycle import Lifecycle
from .operations import Call, iterate
from .permanent import Permanent
from .results import Change, ForgetResult, Memory, Recall, WriteResult
from .session import Session
from .session_core import SessionCore
from .session_results import SessionInfo
from .session_view import session_pages
from .skills import Skills
from .verdicts import Conflict, IngestResult

WATCH_JOIN_S = 2.0
T = TypeVar("T")


class MemoryClient:
    """A memory service at one address, for one set of owners. Creating it does no I/O.

    `facts`, `events`, `skills`, `permanent`, `erasure`, `audit` and `lifecycle` hold further calls; see the classes
    of these names.
    target: "HOST:PORT". timeout_s bounds a recall, write_timeout_s a mutation with its retries and every other call.
    token goes out as a bearer token, only over TLS or to loopback. cache_ttl_s and cache_entries bound the stored
    recall answers, recent_count the memories held for times without a server (0: none).
    Raises InvalidArgument for empty ids.
    """

    def __init__(
        self,
        target: str = "127.0.0.1:50051",
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        tenant: str | None = None,
        token: str | None = None,
        tool: str = "",
        timeout_s: float = 0.25,
        write_timeout_s: float = 5.0,
        cache_ttl_s: float = 60.0,
        cache_entries: int = 256,
        recent_count: int = 48,
        tls: bool = False,
        root_certificates: bytes | None = None,
        timer_s: Callable[[], float] = time.monotonic,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        secure = credentials(tls, root_certificates)
        owners = {
            "tenant": tenant,
            "user_id": user_id,
            "project_id": project_id,
            "agent_id": agent_id,
            "session_id": session_id,
        }
        self._core = Core(
            target,
            owners=owners,
            token=token,
            tls=secure is not None,
            tool=tool,
            timeout_s=timeout_s,
            write_timeout_s=write_timeout_s,
            cache_ttl_s=cache_ttl_s,
            cache_entries=cache_entries,
            recent_count=recent_count,
            timer_s=timer_s,
            clock_s=clock_s,
            random=random.random,
        )
        options = self._core.channel_options()
        self._channel = (
            grpc.insecure_channel(target, options) if secure is None else grpc.secure_channel(target, secure, options)
        )
        self._closed = threading.Event()
        self._stubs: dict[Any, Any] = {}
        self._stubs_lock = threading.Lock()
        self._is_channel_closed = False
        self._stub = self._service(rpc.MemoryServiceStub)
        self._watching = False
        self._watch_lock = threading.Lock()
        self._watch_thread: threading.Thread | None = None
        self._watch_call: Any = None
        self._clock_s = clock_s
        self._contexts = Contexts(self._core, cache_entries)
        self._sending: set[Session] = set()
        self.facts = Facts(self._core, self._call)
        self.events = Events(self._core, self._call)
        self.skills = Skills(self._core, self._call)
        self.permanent = Permanent(self._core, self._call)
        self.erasure = Erasure(self._core, self._call)
        self.audit = Audit(self._core, self._call)
        self.lifecycle = Lifecycle(self._core, self._call)

    def _service(self, stub: Callable[[grpc.Channel], Any]) -> Any:
        """The stub of a service."""
        with self._stubs_lock:
            if stub not in self._stubs:
                if self._is_channel_closed:  # grpc would crash
                    raise ClientClosed("the client is closed")
                self._stubs[stub] = stub(self._channel)
            return self._stubs[stub]

    def _call(self, call: Call[T]) -> T:
        """Sends a call of a resource."""
        method = getattr(self._service(call.service), call.rpc)
        if call.retried:
            return call.read(self._mutate(method, call.request))
        return call.read(self._read(method, call.request, call.timeout_s))

    # -- recall --------------------------------------------------------------------------------------------------

    def recall(self, query: str = "", *, timeout_s: float | None = None, **options: Any) -> Recall:
        """The memories that matter for `query`, best first. Never raises for a slow or missing server: at the timeout
        the answer comes from the cache, or is empty, and `source` and `degraded` say so.

        Options: top_k (default 8, at most 100), types, layers, statuses, tags_all, tags_any, subjects, source_tools,
        source_session_ids (lists), create_time and occur_time ((start, end), either may be None), min_importance,
        max_importance, min_confidence, max_confidence, scopes, min_score, weights (dict), include_inactive, as_of,
        latency_budget_ms. `text` and `limit` are accepted for query and top_k.
        Raises TypeError for an unknown name, InvalidArgument and other StatusErrors for the caller's own mistakes.
        """
        self._check_open()
        query, options = query_of("recall", query, options)
        core = self._core
        prepared = core.prepare(query, options)
        if not self._watching:
            self._start_watch()
        cached = core.from_cache(prepared)
        if cached is not None:
            return cached
        if not core.breaker.allow():
            return core.fallback(prepared, core.held_back())
        try:
            response = self._stub.Recall(
                core.fence(prepared),
                timeout=core.timeout_s if timeout_s is None else timeout_s,
                metadata=core.metadata,
            )
        except grpc.RpcError as error:
            return core.not_answered(prepared, from_rpc_error(error))
        return core.answered(prepared, response)

    search = recall

    def recall_in_background(
        self, query: str = "", *, timeout_s: float | None = None, **options: Any
    ) -> BackgroundRecall:
        """Starts a recall and returns at once; collect it with `.result()`."""
        self._check_open()
        query, options = query_of("recall_in_background", query, options)
        core = self._core
        prepared = core.prepare(query, options)
        self._start_watch()
        ready = core.from_cache(prepared)
        if ready is None and not core.breaker.allow():
            ready = core.fallback(prepared, core.held_back())
        if ready is not None:
            return BackgroundRecall(None, lambda _: ready, ready)
        call = self._stub.Recall.future(
            core.fence(prepared),
            timeout=core.timeout_s if timeout_s is None else timeout_s,
            metadata=core.metadata,
        )
        return BackgroundRecall(call, functools.partial(self._collect, prepared, call))

    def _collect(self, prepared: PreparedRecall, call: Any, timeout_s: float | None) -> Recall:
        try:
            return self._core.answered(prepared, call.result(timeout_s))
        except grpc.FutureTimeoutError:
            call.cancel()
            self._core.breaker.abandoned()
            return self._core.fallback(prepared, "SERVER_TIMEOUT")
        except grpc.FutureCancelledError:
            self._core.breaker.abandoned()
            return self._core.fallback(prepared, "CANCELLED")
        except grpc.RpcError as error:
            return self._core.not_answered(prepared, from_rpc_error(error))

    # -- context and sessions ------------------------------------------------------------------------------------

    def context(self, query: str = "", *, timeout_s: float | None = None, **options: Any) -> Context:
        """The block of memories for a prompt. Never raises for a slow or missing server: at the timeout it is the last
        block of the same request (source "cache"), or empty (source "none"), and `degraded` says so.

        Options: token_budget (32 to 131072, default 1024), sections (permanent, preferences, facts, skills, events,
        session), format (text, json, messages), order (best_last, best_first), max_memories (default 8), scopes,
        min_score, latency_budget_ms, and `recall`'s filters.
        Raises TypeError for an unknown name, InvalidArgument and other StatusErrors for the caller's own mistakes.
        """
        self._check_open()
        prepared = self._contexts.prepare(query, options)
        self._start_watch()
        if not self._core.breaker.allow():
            return self._contexts.fallback(prepared, self._core.held_back())
        try:
            response = self._service(context_rpc.ContextServiceStub).AssembleContext(
                prepared.request,
                timeout=self._core.timeout_s if timeout_s is None else timeout_s,
                metadata=self._core.metadata,
            )
        except grpc.RpcError as error:
            return self._contexts.not_answered(prepared, from_rpc_error(error))
        return self._contexts.answered(prepared, response.context)

    def session(
        self,
        session_id: str | None = None,
        *,
        goal: str = "",
        tool: str = "",
        ttl_s: float | None = None,
        consolidate: bool = True,
    ) -> Session:
        """A session, for `with`. No I/O before it begins.

        session_id: the client's, or a fresh one, if left out; an open one of that id is resumed. goal: what the user
        wants, if known. ttl_s: how long the server keeps it without a call. consolidate: whether its end moves what
        mattered to the long-term layers, or drops everything. Raises InvalidArgument.
        """
        state = SessionCore(
            self._core,
            self._contexts,
            session_id=session_id,
            goal=goal,
            tool=tool,
            ttl_s=ttl_s,
            consolidate=consolidate,
            clock_s=self._clock_s,
        )
        return Session(self, state)

    def sessions(self, *, page_size: int = 100) -> Iterator[SessionInfo]:
        """Open sessions of exactly the client's owner ids, newest first; pages are fetched as they are needed."""
        return iterate(self._call, session_pages(self._core, page_size))

    # -- mutations -----------------------------------------------------------------------------------------------

    def write(self, content: str, **fields: Any) -> WriteResult:
        """Stores a statement; durable when it returns. Retried with the same request_id, so it is stored once.

        Fields: type (fact, preference, decision, event, rule), layer, scope, subject, tags, metadata, importance,
        confidence, occur_time, expire_time, supersedes, session_id, message_id, tool.
        Raises TypeError for an unknown name, and a MemsvcClientError when it was not stored.
        """
        request = self._core.write_request({"content": content, **fields})
        response = self._mutate(self._stub.Write, request)
        self._core.wrote([request.memory], [response.result])
        return WriteResult(response.result)

    add = write

    def batch_write(self, items: Iterable[Mapping[str, Any] | str]) -> list[WriteResult]:
        """Stores many memories (dicts of `write`'s fields with "content", or texts), 1000 to a transaction."""
        results: list[WriteResult] = []
        for request in self._core.batch_requests(items):
            response = self._mutate(self._stub.BatchWrite, request)
            self._core.wrote(request.memories, response.results)
            results.extend(WriteResult(result) for result in response.results)
        return results

    def update(self, memory_id: str, *, etag: str = "", reason: str = "", **fields: Any) -> Memory:
        """Writes a new version with the given fields (content, type, subject, tags, metadata, importance, confidence,
        occur_time, expire_time). With an etag, raises Aborted when the memory has changed since.
        """
        request = update_request(self._core, memory_id, etag, reason, fields)
        response = self._mutate(self._stub.Update, request)
        self._core.updated(response.memory)
        return Memory(response.memory)

    def forget(self, memory_id: str | Iterable[str], *, reason: str = "", etag: str = "") -> ForgetResult:
        """Takes one or more memories out of every recall; the text is kept for audit."""
        request = forget_request(self._core, memory_id, reason, etag)
        response = self._mutate(self._stub.Forget, request)
        self._core.forgot(request.memory_ids, response.at)
        return ForgetResult(response)

    delete = forget

    def forget_all(self, *, scopes: Iterable[str] | None = None, reason: str = "", **options: Any) -> ForgetResult:
        """Forgets everything of the named scopes (all but global by default) that passes the filter."""
        request = forget_all_request(self._core, scopes, reason, options)
        response = self._mutate(self._stub.Forget, request)
        self._core.forgot((), response.at)
        return ForgetResult(response)

    def ingest(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        session_id: str | None = None,
        tool: str = "",
        scope: str | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> IngestResult:
        """Lets the service judge raw messages, oldest first, and store what is worth keeping; a dry run stores nothing.

        A message is a dict: speaker or role (user, agent or assistant, tool, system), content, time (aware datetime or
        ISO 8601 with zone; now if left out), tool_calls (dicts of name and arguments), message_id or id. More than 200
        are sent in parts, whose request_ids follow from `request_id` (a UUID); `write_timeout_s` bounds each part, and
        after a failure the error's `partial` holds the verdicts of the parts before it (and the places that the server
        names count from the part's first message).
        Raises InvalidArgument naming the message and key, before anything is sent, and a MemsvcClientError.
        """
        parts = learning.ingest_requests(
            self._core,
            messages,
            session_id=session_id,
            tool=tool,
            scope=scope,
            dry_run=dry_run,
            request_id=request_id,
        )
        verdicts: list[spb.MessageVerdict] = []
        for request in parts:
            response = self._part(self._stub.Ingest, request, lambda: IngestResult(verdicts))
            self._core.ingested(response.verdicts)
            verdicts.extend(response.verdicts)
        return IngestResult(verdicts)

    def review(self, decisions: Iterable[Mapping[str, Any]]) -> list[Memory]:
        """Carries out a person's decisions; the memories as they are now, in order.

        A decision is a dict: memory_id or id, action (confirm, correct, forget, block), content (the right statement,
        for correct only), reason. 1000 go into one transaction, all or none; after a failure the error's `partial`
        holds the memories of the transactions before it. Raises InvalidArgument, NotFound, FailedPrecondition.
        """
        memories: list[Memory] = []
        for request in learning.review_requests(self._core, decisions):
            response = self._part(self._stub.Review, request, lambda: memories)
            memories.extend(learning.settled(self._core, response.memories))
        return memories

    def resolve_conflict(self, memory_id: str, resolution: str, *, reason: str = "") -> list[Memory]:
        """Settles a contradiction of `list_conflicts`: keep_newer, keep_older or keep_both. The memories as they are
        now, the newer first. Raises InvalidArgument, NotFound, and FailedPrecondition when nothing waits there.
        """
        request = learning.resolve_request(self._core, memory_id, resolution, reason)
        return learning.settled(self._core, self._mutate(self._stub.ResolveConflict, request).memories)

    def _part(self, method: Any, request: Any, so_far: Callable[[], Any]) -> Any:
        """One part of a call that is sent in parts: a failure carries what was acknowledged before."""
        try:
            return self._mutate(method, request)
        except MemsvcClientError as error:
            error.partial = so_far()
            raise

    def _mutate(self, method: Any, request: Any) -> Any:
        """One mutation with safe retries until write_timeout_s."""
        self._check_open()
        self._start_watch()
        started_s = self._core.now_s()
        attempt = 0
        while True:
            try:
                return method(request, timeout=max(self._core.left_s(started_s), 0.001), metadata=self._core.metadata)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
            delay_s = self._core.retry_delay_s(failure, attempt, started_s)
            if delay_s is None:
                raise failure
            if self._closed.wait(delay_s):
                raise ClientClosed("the client was closed while it retried; the mutation may or may not be stored")
            attempt += 1

    # -- reads ---------------------------------------------------------------------------------------------------

    def get(self, memory_id: str, *, version: int = 0) -> Memory:
        """One memory by id. Raises NotFound."""
        request = spb.GetRequest(owners=self._core.owners, memory_id=memory_id, version=version)
        return Memory(self._read(self._stub.Get, request).memory)

    def list(self, *, page_size: int = 100, **options: Any) -> Iterator[Memory]:
        """All memories that pass, newest first; pages are fetched as they are needed. Options: scopes,
        include_inactive, and `recall`'s filters.
        """
        return iterate(self._call, list_pages(self._core, page_size, options))

    get_all = list

    def history(self, memory_id: str) -> Iterator[Change]:
        """All changes of one memory, newest first. Raises NotFound."""
        return iterate(self._call, history_pages(self._core, memory_id))

    def list_conflicts(self, *, scopes: Iterable[str] | None = None, page_size: int = 100) -> Iterator[Conflict]:
        """Contradictions that wait for a person, newest first; pages are fetched as they are needed."""
        return iterate(self._call, learning.conflict_pages(self._core, scopes, page_size))

    def watch(self) -> Iterator[Change]:
        """Changes of the client's namespaces from now on, until the stream breaks (raises) or the client closes."""
        self._check_open()
        call = self._stub.Watch(spb.WatchRequest(owners=self._core.owners), metadata=self._core.metadata)
        try:
            for response in call:
                if response.HasField("change"):
                    yield Change(response.change)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        finally:
            call.cancel()

    def _read(self, method: Any, request: Any, timeout_s: float | None = None) -> Any:
        self._check_open()
        limit_s = self._core.write_timeout_s if timeout_s is None else timeout_s
        try:
            return method(request, timeout=limit_s, metadata=self._core.metadata)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error

    # -- watch thread --------------------------------------------------------------------------------------------

    @property
    def is_coherent(self) -> bool:
        """Whether the local cache follows the server's changes now."""
        return self._core.is_coherent

    def _start_watch(self) -> None:
        if self._watching:
            return
        with self._watch_lock:
            if self._watching or self._closed.is_set():
                return
            self._watching = True
            self._watch_thread = threading.Thread(target=self._watch_loop, name="memsvc-watch", daemon=True)
            self._watch_thread.start()

    def _watch_loop(self) -> None:
        attempt = 0
        while not self._closed.is_set():
            failure: MemsvcClientError | None = None
            try:
                with self._watch_lock:
                    if self._closed.is_set():
                        return
                    self._watch_call = self._stub.Watch(self._core.watch_request(), metadata=self._core.metadata)
                for response in self._watch_call:
                    self._core.watched(response)
                    attempt = 0
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
            self._core.watch_ended(failure)
            if isinstance(failure, Cancelled) and self._closed.is_set():
                return
            self._closed.wait(self._core.watch_backoff_s(attempt))
            attempt += 1

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ClientClosed("the client is closed")

    def close(self) -> None:
        """Ends the Watch thread, what sessions still send, and the connection. Idempotent."""
        self._closed.set()
        with self._watch_lock:
            call = self._watch_call
        if call is not None:
            call.cancel()
        if self._watch_thread is not None and self._watch_thread is not threading.current_thread():
            self._watch_thread.join(WATCH_JOIN_S)
        for session in list(self._sending):
            session._close()
        with self._stubs_lock:
            self._is_channel_closed = True
            self._channel.close()

    def __enter__(self) -> MemoryClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
