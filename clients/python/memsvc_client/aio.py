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
from typing import Any

import grpc

from . import learning
from ._proto import memory_service_pb2 as spb
from ._proto import memory_service_pb2_grpc as rpc
from .calls import forget_all_request, forget_request, list_request, query_of, update_request
from .core import Core, credentials
from .errors import ClientClosed, MemsvcClientError, from_rpc_error
from .results import Change, ForgetResult, Memory, Recall, WriteResult
from .verdicts import Conflict, IngestResult


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
        self._opened: tuple[Any, Any] | None = None
        self._closed = False
        self._watch_task: asyncio.Task[None] | None = None

    @property
    def _stub(self) -> Any:
        """The stub; the channel is made inside the running loop."""
        if self._closed:
            raise ClientClosed("the client is closed")
        if self._opened is None:
            options = self._core.channel_options()
            target = self._core.target
            channel = (
                grpc.aio.insecure_channel(target, options)
                if self._secure is None
                else grpc.aio.secure_channel(target, self._secure, options)
            )
            self._opened = (channel, rpc.MemoryServiceStub(channel))
        return self._opened[1]

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
            return core.fallback(prepared, "CIRCUIT_OPEN")
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

    async def write(self, content: str, **fields: Any) -> WriteResult:
        """See `MemoryClient.write`."""
        request = self._core.write_request({"content": content, **fields})
        response = await self._mutate("Write", request)
        self._core.wrote([request.memory], [response.result])
        return WriteResult(response.result)

    add = write

    async def batch_write(self, items: Iterable[Mapping[str, Any] | str]) -> list[WriteResult]:
        """See `MemoryClient.batch_write`."""
        results: list[WriteResult] = []
        for request in self._core.batch_requests(items):
            response = await self._mutate("BatchWrite", request)
            self._core.wrote(request.memories, response.results)
            results.extend(WriteResult(result) for result in response.results)
        return results

    async def update(self, memory_id: str, *, etag: str = "", reason: str = "", **fields: Any) -> Memory:
        """See `MemoryClient.update`."""
        response = await self._mutate("Update", update_request(self._core, memory_id, etag, reason, fields))
        self._core.updated(response.memory)
        return Memory(response.memory)

    async def forget(self, memory_id: str | Iterable[str], *, reason: str = "", etag: str = "") -> ForgetResult:
        """See `MemoryClient.forget`."""
        request = forget_request(self._core, memory_id, reason, etag)
        response = await self._mutate("Forget", request)
        self._core.forgot(request.memory_ids, response.at)
        return ForgetResult(response)

    delete = forget

    async def forget_all(
        self, *, scopes: Iterable[str] | None = None, reason: str = "", **options: Any
    ) -> ForgetResult:
        """See `MemoryClient.forget_all`."""
        response = await self._mutate("Forget", forget_all_request(self._core, scopes, reason, options))
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
            response = await self._part("Ingest", request, lambda: IngestResult(verdicts))
            self._core.ingested(response.verdicts)
            verdicts.extend(response.verdicts)
        return IngestResult(verdicts)

    async def review(self, decisions: Iterable[Mapping[str, Any]]) -> list[Memory]:
        """See `MemoryClient.review`."""
        memories: list[Memory] = []
        for request in learning.review_requests(self._core, decisions):
            response = await self._part("Review", request, lambda: memories)
            memories.extend(learning.settled(self._core, response.memories))
        return memories

    async def resolve_conflict(self, memory_id: str, resolution: str, *, reason: str = "") -> list[Memory]:
        """See `MemoryClient.resolve_conflict`."""
        request = learning.resolve_request(self._core, memory_id, resolution, reason)
        return learning.settled(self._core, (await self._mutate("ResolveConflict", request)).memories)

    async def _part(self, name: str, request: Any, so_far: Callable[[], Any]) -> Any:
        """One part of a call that is sent in parts: a failure carries what was acknowledged before."""
        try:
            return await self._mutate(name, request)
        except MemsvcClientError as error:
            error.partial = so_far()
            raise

    async def _mutate(self, name: str, request: Any) -> Any:
        method = getattr(self._stub, name)
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
        return Memory((await self._read("Get", request)).memory)

    async def list(self, *, page_size: int = 100, **options: Any) -> AsyncIterator[Memory]:
        """See `MemoryClient.list`; use with `async for`."""
        request = list_request(self._core, page_size, options)
        while True:
            response = await self._read("List", request)
            for message in response.memories:
                yield Memory(message)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

    get_all = list

    async def history(self, memory_id: str) -> AsyncIterator[Change]:
        """See `MemoryClient.history`; use with `async for`."""
        request = spb.HistoryRequest(owners=self._core.owners, memory_id=memory_id)
        while True:
            response = await self._read("History", request)
            for message in response.changes:
                yield Change(message)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

    async def list_conflicts(
        self, *, scopes: Iterable[str] | None = None, page_size: int = 100
    ) -> AsyncIterator[Conflict]:
        """See `MemoryClient.list_conflicts`; use with `async for`."""
        request = learning.conflicts_request(self._core, scopes, page_size)
        while True:
            response = await self._read("ListConflicts", request)
            for message in response.conflicts:
                yield Conflict(message)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

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

    async def _read(self, name: str, request: Any) -> Any:
        try:
            return await getattr(self._stub, name)(
                request, timeout=self._core.write_timeout_s, metadata=self._core.metadata
            )
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
        """Ends the Watch task and the connection. Idempotent."""
        self._closed = True
        if self._watch_task is not None:
            self._watch_task.cancel()
            await asyncio.gather(self._watch_task, return_exceptions=True)
            self._watch_task = None
        if self._opened is not None:
            await self._opened[0].close()
            self._opened = None

    async def __aenter__(self) -> AsyncMemoryClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
