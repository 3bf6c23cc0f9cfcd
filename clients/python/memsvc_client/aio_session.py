"""A session of the asyncio client.

Purpose: `async with client.session() as s`: `Session` for asyncio; see there. Decisions are `SessionCore`'s.

Threading: belongs to the loop of its client. One task of that loop sends, from the first use until the end has arrived
or the client closes.

Rejected: asyncio.Condition (a lock that every append would have to wait for, where nothing runs at the same time).
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import grpc

from ._proto import session_service_pb2_grpc as rpc
from .context import Context, PreparedContext
from .errors import ClientClosed, MemsvcClientError, from_rpc_error
from .outbox import Item
from .results import Recall
from .session_core import SessionCore, Step
from .session_results import Consolidation, DialogueState, SessionState
from .session_view import SessionView

if TYPE_CHECKING:
    from .aio import AsyncMemoryClient

LOG = logging.getLogger("memsvc_client.session")


class AsyncSession(SessionView):
    """`Session` for asyncio, made by `AsyncMemoryClient.session`; see there."""

    def __init__(self, client: AsyncMemoryClient, state: SessionCore) -> None:
        self._client = client
        self._state = state
        self._core = state.core
        self._waiters: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._recall: asyncio.Task[Recall] | None = None

    # -- life ----------------------------------------------------------------------------------------------------

    async def start(self) -> AsyncSession:
        """See `Session.start`."""
        self._check_open()
        self._state.want()
        self._kick()
        if self._state.goal.strip():
            self._ask(self._state.goal)
        limit_s = 0.0 if self._core.breaker.is_open else self._core.timeout_s
        if not await self._until(lambda: self._state.is_settled_open, limit_s):
            self._state.overdue()
        if self._state.refusal is not None:
            raise self._state.refusal
        return self

    async def end(self, consolidate: bool | None = None) -> Consolidation | None:
        """See `Session.end`."""
        self._state.end(consolidate)
        self._kick()
        if not await self._until(lambda: self._state.is_finished, self._core.write_timeout_s):
            self._state.end_overdue()
        return self._state.end_result()

    async def __aenter__(self) -> AsyncSession:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state.is_ending:
            return
        try:
            await self.end()
        except MemsvcClientError as failure:
            LOG.warning("the server refused the end of a session: %s", failure.reason or failure.code)

    # -- what is said --------------------------------------------------------------------------------------------

    async def user(self, text: str, *, message_id: str = "", time: dt.datetime | str | None = None) -> None:
        """See `Session.user`."""
        await self.append([{"speaker": "user", "content": text, "message_id": message_id, "time": time}])

    async def agent(
        self,
        text: str,
        *,
        tool_calls: Iterable[Mapping[str, Any]] | None = None,
        message_id: str = "",
        time: dt.datetime | str | None = None,
    ) -> None:
        """See `Session.agent`."""
        turn = {"speaker": "agent", "content": text, "message_id": message_id, "time": time}
        await self.append([{**turn, "tool_calls": None if tool_calls is None else list(tool_calls)}])

    async def tool(self, name: str, output: str) -> None:
        """See `Session.tool`."""
        self._check_open()
        await self._put(self._state.tool_output(name, output))

    async def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """See `Session.append`."""
        self._check_open()
        for item in self._state.turns(records):
            said = await self._put(item)
            if said:
                self._ask(said)

    async def flush(self, timeout_s: float | None = None) -> bool:
        """See `Session.flush`."""
        number = self._state.watermark
        limit_s = self._core.write_timeout_s if timeout_s is None else timeout_s
        return await self._until(lambda: self._state.is_sent(number), limit_s)

    async def _put(self, item: Item) -> str:
        await self._until(lambda: self._state.has_room(item), self._core.timeout_s)
        said = self._state.take(item)
        self._kick()
        return said

    # -- what comes back -----------------------------------------------------------------------------------------

    async def recalled(self, timeout_s: float | None = None) -> Recall:
        """See `Session.recalled`."""
        recall = self._recall
        if recall is None:
            return Recall(None, "none", ["NOTHING_ASKED"], 0.0)
        await asyncio.wait({recall}, timeout=timeout_s)
        return recall.result() if recall.done() else Recall(None, "none", ["SERVER_TIMEOUT"], 0.0)

    async def context(self, query: str | None = None, *, timeout_s: float | None = None, **options: Any) -> Context:
        """See `Session.context`."""
        self._check_open()
        prepared = self._state.prepare_context(query, options)
        self._client._start_watch()
        if not self._core.breaker.allow():
            return self._client._contexts.fallback(prepared, self._core.held_back())
        try:
            return await self._context(prepared, self._core.timeout_s if timeout_s is None else timeout_s)
        except asyncio.CancelledError:
            self._core.breaker.abandoned()
            raise

    async def _context(self, prepared: PreparedContext, limit_s: float) -> Context:
        state, core, contexts = self._state, self._core, self._client._contexts
        while True:
            number, loss_count = state.watermark, state.loss_count
            left_s = limit_s - (core.now_s() - prepared.started_s)
            if not await self._until(lambda n=number: state.can_assemble(n), left_s):  # type: ignore[misc]
                state.overdue()
                return contexts.not_answered(prepared, state.unsent())
            call = state.context_call(prepared)
            left_s = limit_s - (core.now_s() - prepared.started_s)
            try:
                method = getattr(self._client._service(call.service), call.rpc)
                response = await method(call.request, timeout=max(left_s, 0.001), metadata=core.metadata)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
                if self._is_forgotten(failure, loss_count):
                    continue
                return contexts.not_answered(prepared, failure)
            return contexts.answered(prepared, response.context, call.missing)

    async def state(self) -> SessionState:
        """See `Session.state`."""
        return SessionState(await self._ask_server("GetState", self._state.state_request(), repeatable=False))

    async def update_state(
        self,
        *,
        goal: str | None = None,
        add_constraints: Iterable[str] = (),
        remove_constraints: Iterable[str] = (),
        add_pending: Iterable[str] = (),
        finish: Iterable[str] = (),
        set_slots: Mapping[str, str] | None = None,
        etag: str = "",
    ) -> DialogueState:
        """See `Session.update_state`."""
        lists = {
            "add_constraints": add_constraints,
            "remove_constraints": remove_constraints,
            "add_pending": add_pending,
            "finish": finish,
        }
        request = self._state.update_request(goal, lists, set_slots, etag)
        return DialogueState(await self._ask_server("UpdateState", request, repeatable=not etag))

    async def consolidation(self, wait_s: float = 0.0) -> Consolidation:
        """See `Session.consolidation`."""
        await self._wait_sent(self._core.now_s())
        return await self._client._call(self._state.consolidation_call(wait_s))

    async def _ask_server(self, name: str, request: Any, *, repeatable: bool) -> Any:
        started_s = self._core.now_s()
        attempt = 0
        while True:
            loss_count = await self._wait_sent(started_s)
            method = getattr(self._client._service(rpc.SessionServiceStub), name)
            try:
                return await self._client._read(method, request, max(self._core.left_s(started_s), 0.001))
            except MemsvcClientError as failure:
                again = self._is_forgotten(failure, loss_count)
                delay_s = 0.0 if again else self._core.retry_delay_s(failure, attempt, started_s)
                if delay_s is None or not (again or repeatable):
                    raise
            await asyncio.sleep(delay_s)
            attempt += 1

    async def _wait_sent(self, started_s: float) -> int:
        """Waits for what was appended before. Raises why it was not sent."""
        self._check_open()
        number = self._state.watermark
        if not await self._until(lambda: self._state.is_sent(number), self._core.left_s(started_s)):
            raise self._state.unsent()
        if self._state.refusal is not None:
            raise self._state.refusal
        return self._state.loss_count

    def _is_forgotten(self, failure: MemsvcClientError, loss_count: int) -> bool:
        forgotten = self._state.forgotten(failure, loss_count)
        if forgotten:
            self._kick()
        return forgotten

    def _ask(self, query: str) -> None:
        self._recall = self._client.recall_in_background(query)
        self._recall.add_done_callback(_seen)

    def _check_open(self) -> None:
        if self._client._closed:
            raise ClientClosed("the client is closed")

    # -- the sending task ----------------------------------------------------------------------------------------

    async def _until(self, condition: Callable[[], bool], limit_s: float | None) -> bool:
        """Waits for a condition; whether it came true."""
        loop = asyncio.get_running_loop()
        until_s = None if limit_s is None else loop.time() + limit_s
        while not condition() and not self._client._closed:
            left_s = None if until_s is None else until_s - loop.time()
            if left_s is not None and left_s <= 0:
                break
            waiter = loop.create_future()
            self._waiters.append(waiter)
            await asyncio.wait({waiter}, timeout=left_s)
        return condition()

    def _notify(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _kick(self) -> None:
        """There may be something to send."""
        self._notify()
        if self._task is None and not self._client._closed and self._state.next_step() is not None:
            self._client._sending.add(self)
            self._task = asyncio.get_running_loop().create_task(self._send_all())

    async def _send_all(self) -> None:
        while True:
            await self._until(lambda: self._is_over() or self._state.next_step() is not None, None)
            if self._client._closed:  # `_close` comes next
                return
            step = self._state.next_step()
            if step is None:
                self._client._sending.discard(self)
                return
            await self._until(lambda: False, await self._send(step))

    def _is_over(self) -> bool:
        return self._state.is_finished or self._state.refusal is not None

    async def _send(self, step: Step) -> float:
        started_s = self._core.now_s()
        try:
            method = getattr(self._client._service(rpc.SessionServiceStub), step.method)
            response = await method(step.request, timeout=self._core.write_timeout_s, metadata=self._core.metadata)
        except grpc.RpcError as error:
            delay_s = self._state.failed(step, from_rpc_error(error))
        else:
            delay_s = self._state.answered(step, response, self._core.now_s() - started_s)
        self._notify()
        return delay_s

    async def _close(self) -> None:
        """The client is closed: stops sending, and names what was not sent."""
        self._notify()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._state.close()


def _seen(recall: asyncio.Task[Recall]) -> None:
    """Marks a recall's failure as seen: nobody has to collect it."""
    if not recall.cancelled():
        recall.exception()
