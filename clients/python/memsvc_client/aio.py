"""The asyncio client.

Purpose: `AsyncMemoryClient`: the same calls as coroutines, over grpc.aio; every decision is the shared core's.

Threading: belongs to one event loop. The Watch stream is a task of that loop, started by the first recall or write.

Rejected: running the sync client in a thread pool (a thread per call in flight, and cancellation that does not reach).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import grpc

from . import learning
from ._proto import context_service_pb2_grpc as context_rpc
from ._proto import memory_service_pb2 as spb
from ._proto import memory_service_pb2_grpc as rpc
from .aio_session import AsyncSession
from .audit import AsyncAudit
from .calls import forget_all_request, forget_request, history_pages, list_pages, query_of, update_request
from .context import Context, Contexts
from .core import Core, credentials
from .erasure import AsyncErasure
from .errors import ClientClosed, MemsvcClientError, from_rpc_error
from .events import AsyncEvents
from .facts import AsyncFacts
from .lifecycle import AsyncLifecycle
from .operations import Call, iterate_async
from .permanent import AsyncPermanent
from .results import Change, ForgetResult, Memory, Recall, WriteResult
from .session_core import SessionCore
from .session_results import SessionInfo
from .session_view import session_pages
from .skills import AsyncSkills
from .verdicts import Conflict, IngestResult

T = TypeVar("T")


class AsyncMemoryClient:
    """`MemoryClient` for asyncio; see there for the arguments. Creating it does no I/O and needs no running loop."""

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
        self._secure = credentials(tls, root_certificates)
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
            tls=self._secure is not None,
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
        self._channel: grpc.aio.Channel | None = None
        self._stubs: dict[Any, Any] = {}
        self._closed = False
        self._watch_task: asyncio.Task[None] | None = None
        self._clock_s = clock_s
        self._contexts = Contexts(self._core, cache_entries)
        self._sending: set[AsyncSession] = set()
        self.facts = AsyncFacts(self._core, self._call)
        self.events = AsyncEvents(self._core, self._call)
        self.skills = AsyncSkills(self._core, self._call)
        self.permanent = AsyncPermanent(self._core, self._call)
        self.erasure = AsyncErasure(self._core, self._call)
        self.audit = AsyncAudit(self._core, self._call)
        self.lifecycle = AsyncLifecycle(self._core, self._call)

    def _service(self, stub: Callable[[Any], Any]) -> Any:
        """The stub of a service; the channel is made inside the running loop."""
        if self._closed:
            raise ClientClosed("the client is closed")
        if self._channel is None:
            options = self._core.channel_options()
            target = self._core.target
            self._channel = (
                grpc.aio.insecure_channel(target, options)
                if self._secure is None
                else grpc.aio.secure_channel(target, self._secure, options)
            )
        if stub not in self._stubs:
            self._stubs[stub] = stub(self._channel)
        return self._stubs[stub]

    @property
    def _stub(self) -> Any:
        return self._service(rpc.MemoryServiceStub)

    async def _call(self, call: Call[T]) -> T:
        """Sends a call of a resource."""
        method = getattr(self._service(call.service), call.rpc)
        if call.retried:
            return call.read(await self._mutate(method, call.request))
        return call.read(await self._read(method, call.request, call.timeout_s))

    async def recall(self, query: str = "", *, timeout_s: float | None = None, **options: Any) -> Recall:
        """See `MemoryClient.recall`."""
        query, options = query_of("recall", query, options)
        core = self._core
        prepared = core.prepare(query, options)
        stub = self._stub
        self._start_watch()
        cached = core.from_cache(prepared)
        if cached is not None:
            return cached
        if not core.breaker.allow():
            return core.fallback(prepared, core.held_back())
        try:
            response = await stub.Recall(
                core.fence(prepared),
                timeout=core.timeout_s if timeout_s is None else timeout_s,
                metadata=core.metadata,
            )
        except grpc.RpcError as error:
            return core.not_answered(prepared, from_rpc_error(error))
        except asyncio.CancelledError:
            core.breaker.abandoned()
            raise
        return core.answered(prepared, response)

    search = recall

    def recall_in_background(
        self, query: str = "", *, timeout_s: float | None = None, **options: Any
    ) -> asyncio.Task[Recall]:
        """Starts a recall at once; await the task to collect it."""
        return asyncio.get_running_loop().create_task(self.recall(query, timeout_s=timeout_s, **options))

    async def context(self, query: str = "", *, timeout_s: float | None = None, **options: Any) -> Context:
        """See `MemoryClient.context`."""
        prepared = self._contexts.prepare(query, options)
        stub = self._service(context_rpc.ContextServiceStub)
        self._start_watch()
        if not self._core.breaker.allow():
            return self._contexts.fallback(prepared, self._core.held_back())
        limit_s = self._core.timeout_s if timeout_s is None else timeout_s
        try:
            response = await stub.AssembleContext(prepared.request, timeout=limit_s, metadata=self._core.metadata)
        except grpc.RpcError as error:
            return self._contexts.not_answered(prepared, from_rpc_error(error))
        except asyncio.CancelledError:
            self._core.breaker.abandoned()
            raise
        return self._contexts.answered(prepared, response.context)

    def session(
        self,
        session_id: str | None = None,
        *,
        goal: str = "",
        tool: str = "",
        ttl_s: float | None = None,
        consolidate: bool = True,
    ) -> AsyncSession:
        """See `MemoryClient.session`; use with `async with`."""
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
        return AsyncSession(self, state)

    def sessions(self, *, page_size: int = 100) -> AsyncIterator[SessionInfo]:
        """See `MemoryClient.sessions`; use with `async for`."""
        return iterate_async(self._call, session_pages(self._core, page_size))

    async def write(self, content: str, **fields: Any) -> WriteResult:
        """See `MemoryClient.write`."""
        request = self._core.write_request({"content": content, **fields})
        response = await self._mutate(self._stub.Write, request)
        self._core.wrote([request.memory], [response.result])
        return WriteResult(response.result)

    add = write

    async def batch_write(self, items: Iterable[Mapping[str, Any] | str]) -> list[WriteResult]:
        """See `MemoryClient.batch_write`."""
        results: list[WriteResult] = []
        for request in self._core.batch_requests(items):
            response = await self._mutate(self._stub.BatchWrite, request)
            self._core.wrote(request.memories, response.results)
            results.extend(WriteResult(result) for result in response.results)
        return results

    async def update(self, memory_id: str, *, etag: str = "", reason: str = "", **fields: Any) -> Memory:
        """See `MemoryClient.update`."""
        response = await self._mutate(self._stub.Update, update_request(self._core, memory_id, etag, reason, fields))
        self._core.updated(response.memory)
        return Memory(response.memory)

    async def forget(self, memory_id: str | Iterable[str], *, reason: str = "", etag: str = "") -> ForgetResult:
        """See `MemoryClient.forget`."""
        request = forget_request(self._core, memory_id, reason, etag)
        response = await self._mutate(self._stub.Forget, request)
        self._core.forgot(request.memory_ids, response.at)
        return ForgetResult(response)

    delete = forget

    async def forget_all(
        self, *, scopes: Iterable[str] | None = None, reason: str = "", **options: Any
    ) -> ForgetResult:
        """See `MemoryClient.forget_all`."""
        response = await self._mutate(self._stub.Forget, forget_all_request(self._core, scopes, reason, options))
        self._core.forgot((), response.at)
        return ForgetResult(response)

    async def ingest(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        session_id: str | None = None,
        tool: str = "",
        scope: str | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> IngestResult:
        """See `MemoryClient.ingest`."""
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
            response = await self._part(self._stub.Ingest, request, lambda: IngestResult(verdicts))
            self._core.ingested(response.verdicts)
            verdicts.extend(response.verdicts)
        return IngestResult(verdicts)

    async def review(self, decisions: Iterable[Mapping[str, Any]]) -> list[Memory]:
        """See `MemoryClient.review`."""
        memories: list[Memory] = []
        for request in learning.review_requests(self._core, decisions):
            response = await self._part(self._stub.Review, request, lambda: memories)
            memories.extend(learning.settled(self._core, response.memories))
        return memories

    async def resolve_conflict(self, memory_id: str, resolution: str, *, reason: str = "") -> list[Memory]:
        """See `MemoryClient.resolve_conflict`."""
        request = learning.resolve_request(self._core, memory_id, resolution, reason)
        return learning.settled(self._core, (await self._mutate(self._stub.ResolveConflict, request)).memories)

    async def _part(self, method: Any, request: Any, so_far: Callable[[], Any]) -> Any:
        """One part of a call that is sent in parts: a failure carries what was acknowledged before."""
        try:
            return await self._mutate(method, request)
        except MemsvcClientError as error:
            error.partial = so_far()
            raise

    async def _mutate(self, method: Any, request: Any) -> Any:
        self._start_watch()
        started_s = self._core.now_s()
        attempt = 0
        while True:
            try:
                left_s = max(self._core.left_s(started_s), 0.001)
                return await method(request, timeout=left_s, metadata=self._core.metadata)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
            delay_s = self._core.retry_delay_s(failure, attempt, started_s)
            if delay_s is None:
                raise failure
            await asyncio.sleep(delay_s)
            attempt += 1

    async def get(self, memory_id: str, *, version: int = 0) -> Memory:
        """See `MemoryClient.get`."""
        request = spb.GetRequest(owners=self._core.owners, memory_id=memory_id, version=version)
        return Memory((await self._read(self._stub.Get, request)).memory)

    def list(self, *, page_size: int = 100, **options: Any) -> AsyncIterator[Memory]:
        """See `MemoryClient.list`; use with `async for`."""
        return iterate_async(self._call, list_pages(self._core, page_size, options))

    get_all = list

    def history(self, memory_id: str) -> AsyncIterator[Change]:
        """See `MemoryClient.history`; use with `async for`."""
        return iterate_async(self._call, history_pages(self._core, memory_id))

    def list_conflicts(self, *, scopes: Iterable[str] | None = None, page_size: int = 100) -> AsyncIterator[Conflict]:
        """See `MemoryClient.list_conflicts`; use with `async for`."""
        return iterate_async(self._call, learning.conflict_pages(self._core, scopes, page_size))

    async def watch(self) -> AsyncIterator[Change]:
        """See `MemoryClient.watch`; use with `async for`."""
        call = self._stub.Watch(spb.WatchRequest(owners=self._core.owners), metadata=self._core.metadata)
        try:
            async for response in call:
                if response.HasField("change"):
                    yield Change(response.change)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error
        finally:
            call.cancel()

    async def _read(self, method: Any, request: Any, timeout_s: float | None = None) -> Any:
        limit_s = self._core.write_timeout_s if timeout_s is None else timeout_s
        try:
            return await method(request, timeout=limit_s, metadata=self._core.metadata)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error

    @property
    def is_coherent(self) -> bool:
        """Whether the local cache follows the server's changes now."""
        return self._core.is_coherent

    def _start_watch(self) -> None:
        if self._watch_task is None:
            self._watch_task = asyncio.get_running_loop().create_task(self._watch_loop())

    async def _watch_loop(self) -> None:
        attempt = 0
        while not self._closed:
            failure: MemsvcClientError | None = None
            call = self._stub.Watch(self._core.watch_request(), metadata=self._core.metadata)
            try:
                async for response in call:
                    self._core.watched(response)
                    attempt = 0
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
            finally:
                call.cancel()
            self._core.watch_ended(failure)
            await asyncio.sleep(self._core.watch_backoff_s(attempt))
            attempt += 1

    async def close(self) -> None:
        """Ends the Watch task, what sessions still send, and the connection. Idempotent."""
        self._closed = True
        if self._watch_task is not None:
            self._watch_task.cancel()
            await asyncio.gather(self._watch_task, return_exceptions=True)
            self._watch_task = None
        for session in list(self._sending):
            await session._close()
        if self._channel is not None:
            await self._channel.close(None)
            self._channel = None

    async def __aenter__(self) -> AsyncMemoryClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
