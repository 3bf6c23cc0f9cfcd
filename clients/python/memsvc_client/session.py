"""A session of the synchronous client.

Purpose: `with client.session() as s`: the session is opened, what is said goes to the server behind the calls, the
memories for the next step are recalled meanwhile, and the session ends with the block. Decisions are `SessionCore`'s.

Threading: any number of threads. One daemon thread sends, from the first use until the end has arrived or the client
closes; `_changed` guards the state and wakes whoever waits.

Rejected: a thread of the client for all sessions (one that waits for its server's answer would hold up the others);
raising out of the block's exit (the agent's own exception, or its result, is what matters there).
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import grpc

from ._proto import session_service_pb2_grpc as rpc
from .context import Context
from .errors import Cancelled, ClientClosed, MemsvcClientError, from_rpc_error
from .outbox import Item
from .results import Recall
from .session_core import SessionCore, Step
from .session_results import Consolidation, DialogueState, SessionState
from .session_view import SessionView

if TYPE_CHECKING:
    from .background import BackgroundRecall
    from .client import MemoryClient

LOG = logging.getLogger("memsvc_client.session")

JOIN_S = 2.0


class Session(SessionView):
    """A session, made by `MemoryClient.session`. Use it with `with`: opened at its begin, ended at its end.

    Nothing here waits for a slow or missing server longer than timeout_s, but `flush`, `state`, `update_state`, `end`
    and `consolidation` (write_timeout_s). What is appended is sent in order, each request once, also after a pause of
    the server; `degraded` says what is not as it should be.
    """

    def __init__(self, client: MemoryClient, state: SessionCore) -> None:
        self._client = client
        self._state = state
        self._core = state.core
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._call: Any = None
        self._stopping = False
        self._recall: BackgroundRecall | None = None

    def _guard(self) -> AbstractContextManager[Any]:
        return self._changed

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Session:
        """Opens the session, or resumes the open one of that id. Returns at timeout_s at the latest: without an answer
        the session goes on locally and is opened as soon as the server answers. `with` does this.

        Raises the caller's own faults (InvalidArgument, PermissionDenied, NotFound for another owner's id, ...).
        """
        self._client._check_open()
        with self._changed:
            self._state.want()
            self._kick()
        if self._state.goal.strip():
            self._ask(self._state.goal)
        limit_s = 0.0 if self._core.breaker.is_open else self._core.timeout_s
        with self._changed:
            if not self._until(lambda: self._state.is_settled_open, limit_s):
                self._state.overdue()
            if self._state.refusal is not None:
                raise self._state.refusal
        return self

    def end(self, consolidate: bool | None = None) -> Consolidation | None:
        """Ends the session once all before it has arrived; consolidation runs behind the answer. With consolidate
        False everything is dropped instead; None is what the session was made with. Again, it answers the same.

        None when the server has not answered within write_timeout_s (the end is still sent until the client closes)
        or knows no such session any more; `degraded` says so. Raises the caller's own faults.
        """
        with self._changed:
            self._state.end(consolidate)
            self._kick()
            if not self._until(lambda: self._state.is_finished, self._core.write_timeout_s):
                self._state.end_overdue()
            recall = self._recall
        self._collect(recall)
        return self._state.end_result()

    def __enter__(self) -> Session:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state.is_ending:
            return
        try:
            self.end()
        except MemsvcClientError as failure:
            LOG.warning("the server refused the end of a session: %s", failure.reason or failure.code)

    # -- what is said --------------------------------------------------------------------------------------------

    def user(self, text: str, *, message_id: str = "", time: dt.datetime | str | None = None) -> None:
        """Appends what the user said, and starts the recall for it. Returns at once; see `append`."""
        self.append([{"speaker": "user", "content": text, "message_id": message_id, "time": time}])

    def agent(
        self,
        text: str,
        *,
        tool_calls: Iterable[Mapping[str, Any]] | None = None,
        message_id: str = "",
        time: dt.datetime | str | None = None,
    ) -> None:
        """Appends what the agent said. Returns at once; see `append`."""
        turn = {"speaker": "agent", "content": text, "message_id": message_id, "time": time}
        self.append([{**turn, "tool_calls": None if tool_calls is None else list(tool_calls)}])

    def tool(self, name: str, output: str) -> None:
        """Keeps what a tool returned with the session's state; the server cuts it to its limit. Returns at once."""
        self._client._check_open()
        self._put(self._state.tool_output(name, output))

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Appends turns, oldest first; records as `MemoryClient.ingest` takes them. Up to 200 stay together.

        They are sent in order behind the call; a turn without a time is dated now. While the server is slow or gone
        they wait here, at most 1000; then the oldest are dropped, and `dropped` names them. A healthy server that is
        busy is waited for instead, up to timeout_s.
        Raises InvalidArgument naming the place before anything is appended, FailedPrecondition after the end.
        """
        self._client._check_open()
        for item in self._state.turns(records):
            said = self._put(item)
            if said:
                self._ask(said)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until everything appended so far has arrived or was dropped; False if timeout_s (or write_timeout_s)
        was over first.
        """
        limit_s = self._core.write_timeout_s if timeout_s is None else timeout_s
        with self._changed:
            number = self._state.watermark
            return self._until(lambda: self._state.is_sent(number), limit_s)

    def _put(self, item: Item) -> str:
        with self._changed:
            self._until(lambda: self._state.has_room(item), self._core.timeout_s)
            said = self._state.take(item)
            self._kick()
            return said

    # -- what comes back -----------------------------------------------------------------------------------------

    def recalled(self, timeout_s: float | None = None) -> Recall:
        """What the newest user turn (or the goal) recalls; falls back as `MemoryClient.recall`. Empty, with source
        "none" and NOTHING_ASKED, before anything was said.
        """
        with self._changed:
            recall = self._recall
        return Recall(None, "none", ["NOTHING_ASKED"], 0.0) if recall is None else recall.result(timeout_s)

    def context(self, query: str | None = None, *, timeout_s: float | None = None, **options: Any) -> Context:
        """The block for the next prompt, with this session's state and turns; what was appended before is in it.
        Options as of `MemoryClient.context`; the last user turn is the query if none is given.

        Never raises for a slow or missing server: at the timeout it is the last block of this session (source
        "cache"), or empty (source "none").
        """
        self._client._check_open()
        state, core = self._state, self._core
        prepared = state.prepare_context(query, options)
        self._client._start_watch()
        contexts = self._client._contexts
        if not core.breaker.allow():
            return contexts.fallback(prepared, core.held_back())
        limit_s = core.timeout_s if timeout_s is None else timeout_s
        while True:
            with self._changed:
                number, loss_count = state.watermark, state.loss_count
                left_s = limit_s - (core.now_s() - prepared.started_s)
                if not self._until(lambda n=number: state.can_assemble(n), left_s):  # type: ignore[misc]
                    state.overdue()
                    return contexts.not_answered(prepared, state.unsent())
                call = state.context_call(prepared)
            left_s = limit_s - (core.now_s() - prepared.started_s)
            try:
                method = getattr(self._client._service(call.service), call.rpc)
                response = method(call.request, timeout=max(left_s, 0.001), metadata=core.metadata)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
                if self._is_forgotten(failure, loss_count):
                    continue
                return contexts.not_answered(prepared, failure)
            return contexts.answered(prepared, response.context, call.missing)

    def state(self) -> SessionState:
        """State, last turns and summary, with everything appended before. Raises Timeout, Unavailable, NotFound, ..."""
        return SessionState(self._ask_server("GetState", self._state.state_request(), repeatable=False))

    def update_state(
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
        """Changes the state by hand, after everything appended before; the state as it is then. goal "" clears it,
        `finish` moves steps from pending to finished, an empty value removes a slot.

        Raises Aborted when an etag is given and the session changed since, InvalidArgument, Timeout, Unavailable, ...
        """
        lists = {
            "add_constraints": add_constraints,
            "remove_constraints": remove_constraints,
            "add_pending": add_pending,
            "finish": finish,
        }
        request = self._state.update_request(goal, lists, set_slots, etag)
        return DialogueState(self._ask_server("UpdateState", request, repeatable=not etag))

    def consolidation(self, wait_s: float = 0.0) -> Consolidation:
        """How far the consolidation is, after waiting up to wait_s (at most 60) for it to be done.

        Raises NotFound for a session that was not ended, Timeout, Unavailable, ...
        """
        self._wait_sent(self._core.now_s())
        return self._client._call(self._state.consolidation_call(wait_s))

    def _ask_server(self, name: str, request: Any, *, repeatable: bool) -> Any:
        started_s = self._core.now_s()
        attempt = 0
        while True:
            loss_count = self._wait_sent(started_s)
            method = getattr(self._client._service(rpc.SessionServiceStub), name)
            try:
                return self._client._read(method, request, max(self._core.left_s(started_s), 0.001))
            except MemsvcClientError as failure:
                again = self._is_forgotten(failure, loss_count)
                delay_s = 0.0 if again else self._core.retry_delay_s(failure, attempt, started_s)
                if delay_s is None or not (again or repeatable):
                    raise
            if self._client._closed.wait(delay_s):
                raise ClientClosed("the client was closed while it retried")
            attempt += 1

    def _wait_sent(self, started_s: float) -> int:
        """Waits for what was appended before. Raises why it was not sent."""
        self._client._check_open()
        with self._changed:
            number = self._state.watermark
            if not self._until(lambda: self._state.is_sent(number), self._core.left_s(started_s)):
                raise self._state.unsent()
            if self._state.refusal is not None:
                raise self._state.refusal
            return self._state.loss_count

    def _is_forgotten(self, failure: MemsvcClientError, loss_count: int) -> bool:
        with self._changed:
            forgotten = self._state.forgotten(failure, loss_count)
            if forgotten:
                self._kick()
            return forgotten

    # -- background recall ---------------------------------------------------------------------------------------

    def _ask(self, query: str) -> None:
        recall = self._client.recall_in_background(query)
        with self._changed:
            last, self._recall = self._recall, recall
        self._collect(last)

    def _collect(self, recall: BackgroundRecall | None) -> None:
        """Ends a recall that nobody waits for any more."""
        if recall is not None:
            try:
                recall.result(0.0)
            except MemsvcClientError as failure:
                LOG.debug("a recall that nobody asked for was refused: %s", failure.reason or failure.code)

    # -- the sending thread --------------------------------------------------------------------------------------

    def _until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Under the lock: waits for a condition; whether it came true."""
        self._changed.wait_for(lambda: condition() or self._is_stopping(), max(limit_s, 0.0))
        return condition()

    def _is_stopping(self) -> bool:
        return self._stopping or self._client._closed.is_set()

    def _kick(self) -> None:
        """Under the lock: there may be something to send."""
        self._changed.notify_all()
        if self._thread is None and self._state.next_step() is not None:
            self._client._sending.add(self)
            if not self._is_stopping():  # after the add: `close` sees the session, or this sees that it is closed
                self._thread = threading.Thread(target=self._send_all, name="memsvc-session", daemon=True)
                self._thread.start()

    def _send_all(self) -> None:
        delay_s = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, delay_s)
                self._changed.wait_for(lambda: self._stopping or self._is_over() or self._state.next_step() is not None)
                step = None if self._stopping else self._state.next_step()
                if step is None:
                    self._client._sending.discard(self)
                    return
                started_s = self._core.now_s()
                method = getattr(self._client._service(rpc.SessionServiceStub), step.method)
                self._call = method.future(
                    step.request, timeout=self._core.write_timeout_s, metadata=self._core.metadata
                )
            delay_s = self._sent(step, self._call, started_s)

    def _is_over(self) -> bool:
        return self._state.is_finished or self._state.refusal is not None

    def _sent(self, step: Step, call: Any, started_s: float) -> float:
        failure: MemsvcClientError | None = None
        response: Any = None
        try:
            response = call.result()
        except grpc.FutureCancelledError:
            failure = Cancelled("the client was closed")
        except grpc.RpcError as error:
            failure = from_rpc_error(error)
        with self._changed:
            if failure is None:
                delay_s = self._state.answered(step, response, self._core.now_s() - started_s)
            else:
                delay_s = self._state.failed(step, failure)
            self._changed.notify_all()
            return delay_s

    def _close(self) -> None:
        """The client is closed: stops sending, and names what was not sent."""
        with self._changed:
            self._stopping = True
            call, thread = self._call, self._thread
            self._changed.notify_all()
        if call is not None:
            call.cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join(JOIN_S)
        with self._changed:
            self._state.close()
