"""What both kinds of session share: what to send next, and what each answer and each failure means.

Purpose: `Session` and `AsyncSession` only move bytes and wait; every decision is made here, without I/O. A session is
opened when it has to be, its turns and outputs go out one request after the other, and its end comes last. What became
of a request decides what comes next:

| answer | what happens |
|---|---|
| no answer, server in trouble | the same request again (with its request_id), with growing pauses |
| the server does not know the session, or ended it | it is opened again, then the same request goes out |
| the server refuses a request, or fails on it STATUS_ATTEMPTS times | it is dropped and named, the next one follows |
| the server refuses to open the session | nothing more is sent; `start` raises it |

Threading: none of its own: a session calls it under its lock, an async one from its loop.

Rejected: sending inside the append (an agent would wait for the service in every turn, and two threads' turns would
have to be put in order anyway); outputs of tools as turns (they would push what was said out of the window).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import Message

from . import learning, requests
from ._proto import context_service_pb2 as csb
from ._proto import context_service_pb2_grpc as context_rpc
from ._proto import memory_pb2 as pb
from ._proto import memory_service_pb2 as mpb
from ._proto import session_service_pb2 as spb
from ._proto import session_service_pb2_grpc as rpc
from .context import Contexts, PreparedContext
from .core import BACKOFF_MAX_S, Core
from .errors import (
    CALLERS_FAULT,
    FailedPrecondition,
    InvalidArgument,
    MemsvcClientError,
    NotFound,
    StatusError,
    Timeout,
    TransportError,
    cause_of,
)
from .operations import Call
from .outbox import END, TOOL_OUTPUTS, TURNS, Item, Outbox
from .session_results import Consolidation, Dropped

LOG = logging.getLogger("memsvc_client.session")

STATUS_ATTEMPTS = 5
QUERY_MAX_CHARS = 8192  # of the contract
OUTPUT_MAX_CHARS = 65_536 + 8192  # the server keeps less, and looks for secrets a little beyond


class Step(NamedTuple):
    """A request that is to be sent now."""

    method: str
    request: Any


class ContextCall(NamedTuple):
    """The call that gives a block: of which service, which, with what, and what its answer will lack."""

    service: Callable[[Any], Any]
    rpc: str
    request: Message
    missing: list[str]


class SessionCore:
    """See the module. `clock_s` is wall time: a turn is dated when it was said, whenever it is sent."""

    def __init__(
        self,
        core: Core,
        contexts: Contexts,
        *,
        session_id: str | None,
        goal: str,
        tool: str,
        ttl_s: float | None,
        consolidate: bool,
        clock_s: Callable[[], float],
    ) -> None:
        if session_id == "":
            raise InvalidArgument(
                "session_id is empty; leave it out or give an id", field_violations=[("session_id", "empty")]
            )
        self.core = core
        self._contexts = contexts
        self._consolidate = consolidate
        self._clock_s = clock_s
        self.session_id = session_id or core.session_id or requests.fresh_request_id()
        self.goal = goal
        self.owners = pb.Owners()
        self.owners.CopyFrom(core.owners)
        self._start: spb.SessionServiceStartRequest = requests.encodable(
            lambda: self._start_request(tool or core.tool, ttl_s), "the session"
        )
        self._outbox = Outbox()
        self._is_wanted = False  # somebody started it, or appended to it
        self._is_open = False  # as far as is known
        self._attempt = 0  # failures in a row
        self._losses = 0  # times in a row that it had to be opened again
        self._restarted = False
        self._trouble: MemsvcClientError | None = None
        self._ending = False
        self._discards = False
        self._end_overdue = False
        self._last_user_text = ""
        self.refusal: MemsvcClientError | None = None
        self.end_refusal: MemsvcClientError | None = None
        self.resumed: bool | None = None
        self.loss_count = 0
        self.turn_count = 0
        self.is_finished = False
        self.consolidation: Consolidation | None = None

    def _start_request(self, tool: str, ttl_s: float | None) -> spb.SessionServiceStartRequest:
        self.owners.session_id = self.session_id
        request = spb.SessionServiceStartRequest(owners=self.owners, tool=tool, goal=self.goal)
        if ttl_s is not None:
            request.ttl.CopyFrom(requests.duration(ttl_s))
        return request

    # -- what comes in -------------------------------------------------------------------------------------------

    def want(self) -> None:
        """The session is to be open from now on. Raises FailedPrecondition after its end."""
        if self._ending:
            raise FailedPrecondition(f"session {self.session_id} has ended; open a new one", reason="NOT_ACTIVE")
        self._is_wanted = True

    def turns(self, records: Iterable[Mapping[str, Any]]) -> list[Item]:
        """The requests of turns, at most 200 in each. Raises InvalidArgument naming the place."""
        if isinstance(records, (str, bytes, Mapping)):
            raise InvalidArgument(f"turns must be a list, not {type(records).__name__}")
        messages = [learning.message(record, f"turns[{i}]") for i, record in enumerate(records)]
        now_us = int(self._clock_s() * 1e6)
        for i, message in enumerate(messages):
            if not message.content.strip() and not message.tool_calls:
                raise InvalidArgument(
                    f"turns[{i}].content is empty", field_violations=[(f"turns[{i}].content", "empty")]
                )
            if not message.HasField("time"):
                message.time.FromMicroseconds(now_us)
        most = learning.MESSAGES_MAX
        return [self._append(messages[i : i + most]) for i in range(0, len(messages), most)]

    def _append(self, turns: Sequence[mpb.Message]) -> Item:
        request = spb.SessionServiceAppendTurnsRequest(
            owners=self.owners, turns=turns, request_id=requests.fresh_request_id()
        )
        return Item(TURNS, "AppendTurns", request, len(turns))

    def tool_output(self, name: str, output: str) -> Item:
        """The request of a tool's output. Raises InvalidArgument."""
        for field, value in (("tool", name), ("output", output)):
            if not isinstance(value, str):
                raise InvalidArgument(f"{field} must be a text, not {type(value).__name__}; str() or json.dumps() it")
        if not name:
            raise InvalidArgument("tool is empty; name the tool", field_violations=[("tool", "empty")])
        request = requests.encodable(
            lambda: spb.SessionServiceRecordToolOutputRequest(
                owners=self.owners,
                tool=name,
                content=output[:OUTPUT_MAX_CHARS],
                request_id=requests.fresh_request_id(),
            ),
            "the output",
        )
        return Item(TOOL_OUTPUTS, "RecordToolOutput", request, 1)

    def has_room(self, item: Item) -> bool:
        """Whether the item can be taken without waiting; always while the server is in trouble."""
        return self._outbox.has_room(item) or self._trouble is not None or self.refusal is not None

    def take(self, item: Item) -> str:
        """Puts an item in order; the text that a recall should start from, or "". Raises FailedPrecondition."""
        self.want()
        self._outbox.add(item)
        if self.refusal is not None:
            self._outbox.drop_all(_named(self.refusal))
        said = item.request.turns if item.kind == TURNS else ()
        users = [turn.content for turn in said if turn.speaker == mpb.SPEAKER_USER and turn.content.strip()]
        if not users:
            return ""
        self._last_user_text = users[-1][:QUERY_MAX_CHARS]
        return self._last_user_text

    def end(self, consolidate: bool | None) -> None:
        """The session is to end when all before it has arrived; the first time counts."""
        if self._ending:
            return
        self._ending = True
        self._discards = not (self._consolidate if consolidate is None else consolidate)
        if self._discards:
            self._outbox.clear_unsent()
        request = spb.SessionServiceEndRequest(owners=self.owners, discard=self._discards)
        self._outbox.add(Item(END, "End", request))
        if self.refusal is not None:
            self._finish(None)

    def close(self) -> None:
        """The client was closed: what was not sent is dropped."""
        if not self.is_finished:
            self._outbox.drop_all("CLIENT_CLOSED")
            self._is_wanted = False

    # -- what goes out -------------------------------------------------------------------------------------------

    def next_step(self) -> Step | None:
        """What is to be sent now; None while there is nothing."""
        if self.is_finished or self.refusal is not None:
            return None
        head = self._outbox.head
        if not self._is_open and (self._is_wanted if head is None else head.kind != END):
            return Step("Start", self._start)
        if head is None:
            return None
        head.sent = True
        return Step(head.method, head.request)

    def answered(self, step: Step, response: Any, took_s: float) -> float:
        """After an answer that took so long: seconds until the next step."""
        if took_s <= self.core.timeout_s:  # a recall would have had its answer, too
            self.core.breaker.succeeded()
        if self._trouble is not None:
            LOG.info("the server answers a session again")
            self._trouble = None
        self._attempt = 0
        if step.method == "Start":
            self._opened(response)
            return 0.0
        self._losses = 0
        head = self._outbox.head
        assert head is not None  # it stays while it is sent
        if step.method == "AppendTurns":
            self.turn_count = response.turn_count
            if any(turn.speaker == mpb.SPEAKER_USER for turn in head.request.turns):
                self._start.goal = ""  # the conversation has moved on, should it have to be opened again
        elif step.method == "End":
            self.consolidation = Consolidation(response.consolidation)
            self._finish(None)
            return 0.0
        self._outbox.done()
        return 0.0

    def _opened(self, response: spb.SessionServiceStartResponse) -> None:
        self._is_open = True
        if self.resumed is None:
            self.resumed = response.resumed
        elif not response.resumed:
            self._restarted = True
        self.turn_count = response.session.turn_count

    def failed(self, step: Step, error: MemsvcClientError) -> float:
        """After a failure: seconds until the next step."""
        if isinstance(error, TransportError):
            return self._again(error)
        refused = isinstance(error, CALLERS_FAULT)
        if step.method == "Start":
            if refused and not _has_ended(error):
                self._refuse(error)
                return 0.0
            return self._again(error)
        if step.method == "End":
            if refused:
                self._finish(error)
                return 0.0
            return self._again(error)
        if _is_unknown(error):
            self._lost()
            return 0.0 if self._losses == 1 else self._pause_s(self._losses)
        return self._item_failed(error, refused)

    def _item_failed(self, error: MemsvcClientError, refused: bool) -> float:
        head = self._outbox.head
        assert head is not None
        head.attempts += 1
        if refused or head.attempts >= STATUS_ATTEMPTS:
            self._outbox.refuse(_named(error))
            self._attempt = 0
            return 0.0
        return self._again(error)

    def _again(self, error: MemsvcClientError) -> float:
        if self._trouble is None:
            LOG.warning("a session goes on without the server: %s", _named(error))
        self._trouble = error
        self._attempt += 1
        return max(self._pause_s(self._attempt), error.retry_delay_s or 0.0)

    def _pause_s(self, attempt: int) -> float:
        return min(self.core.watch_backoff_s(attempt - 1), BACKOFF_MAX_S)

    def _lost(self) -> None:
        """The server does not know the session any more: its time to live passed, or somebody ended it."""
        self._is_open = False
        self._losses += 1
        self.loss_count += 1
        LOG.warning("the server no longer knows a session; it is started again")

    def _refuse(self, error: MemsvcClientError) -> None:
        """The session can't be opened."""
        self.refusal = error
        self._trouble = None
        self._outbox.drop_all(_named(error))
        LOG.warning("the server refuses to open a session: %s", _named(error))
        if self._ending:
            self._finish(None)

    def _finish(self, error: MemsvcClientError | None) -> None:
        self.is_finished = True
        self.end_refusal = error
        self._is_open = False
        self._trouble = None
        self._outbox.drop_all("SESSION_ENDED")

    # -- waiting -------------------------------------------------------------------------------------------------

    @property
    def is_settled_open(self) -> bool:
        """Whether it is known if the session is open."""
        return self._is_open or self.refusal is not None or self.is_finished

    def overdue(self) -> None:
        """What a caller waited for did not happen in time: the agent goes on without."""
        if self._trouble is None:
            self._trouble = Timeout("the server does not answer in time")
            LOG.warning("a session goes on without the server: %s", _named(self._trouble))

    def end_result(self) -> Consolidation | None:
        """What the server said to the end; None when it has not answered, or had nothing left to end. Raises the
        caller's own faults, e.g. NotFound for a session that nobody opened.
        """
        if self.end_refusal is not None and not (self._is_wanted and _is_unknown(self.end_refusal)):
            raise self.end_refusal
        return self.consolidation

    def end_overdue(self) -> None:
        """The end was not acknowledged in time."""
        if not self._end_overdue and not self.is_finished:
            self._end_overdue = True
            LOG.warning("the end of a session is not acknowledged; %d turns and outputs wait", self._outbox.count)

    @property
    def watermark(self) -> int:
        """Number of the newest item, for `is_sent`."""
        return self._outbox.added

    def is_sent(self, number: int) -> bool:
        """Whether everything up to that item was sent or dropped, and the session is open if it was started."""
        if self.refusal is not None or self.is_finished:
            return True
        return self._outbox.is_settled(number) and (self._is_open or not self._is_wanted)

    def unsent(self) -> MemsvcClientError:
        """The error of a call that could not wait for what was to be sent before it."""
        return self._trouble or Timeout("what was appended before was not sent in time")

    # -- calls that wait -----------------------------------------------------------------------------------------

    def prepare_context(self, query: str | None, options: Mapping[str, Any]) -> PreparedContext:
        """A block of this session. Raises TypeError and InvalidArgument, FailedPrecondition after its end."""
        if self._ending:
            self.want()
        return self._contexts.prepare(query or "", options, self.owners, "Session.context")

    def can_assemble(self, number: int) -> bool:
        """Whether a block can be asked for; without the session's state while the server can't open it."""
        return self.is_sent(number) or isinstance(self._trouble, StatusError)

    def context_call(self, prepared: PreparedContext) -> ContextCall:
        """The call that gives the block: of the open session, or of the memories alone."""
        if self._is_open or not self._is_wanted:
            request = spb.SessionServiceAssembleRequest(
                owners=self.owners, query=prepared.query, options=prepared.options
            )
            return ContextCall(rpc.SessionServiceStub, "Assemble", request, [])
        query = prepared.query or self._last_user_text or self.goal[:QUERY_MAX_CHARS]
        memories = csb.AssembleContextRequest(owners=self.owners, query=query, options=prepared.options)
        missing = "SESSION_REFUSED" if self.refusal is not None else self.trouble
        return ContextCall(context_rpc.ContextServiceStub, "AssembleContext", memories, [missing] if missing else [])

    def state_request(self) -> spb.SessionServiceGetStateRequest:
        """A GetStateRequest."""
        return spb.SessionServiceGetStateRequest(owners=self.owners)

    def update_request(
        self,
        goal: str | None,
        lists: Mapping[str, Iterable[str]],
        set_slots: Mapping[str, str] | None,
        etag: str,
    ) -> spb.SessionServiceUpdateStateRequest:
        """An UpdateStateRequest; `lists` by the contract's names. Raises InvalidArgument."""
        request: spb.SessionServiceUpdateStateRequest = requests.encodable(
            lambda: spb.SessionServiceUpdateStateRequest(
                owners=self.owners,
                goal=goal,
                set_slots=set_slots,
                etag=etag,
                **{name: requests.texts(values, name) for name, values in lists.items()},
            ),
            "the change",
        )
        return request

    def consolidation_call(self, wait_s: float) -> Call[Consolidation]:
        """The GetConsolidation, which may take its wait and the client's timeout."""
        request = spb.SessionServiceGetConsolidationRequest(owners=self.owners, wait=requests.duration(wait_s))
        return Call(
            rpc.SessionServiceStub,
            "GetConsolidation",
            request,
            lambda response: Consolidation(response.consolidation),
            timeout_s=wait_s + self.core.write_timeout_s,
        )

    def forgotten(self, error: MemsvcClientError, loss_count: int) -> bool:
        """Whether a call failed because the server no longer knows the session; then it is opened again. `loss_count`
        as it was before the call: another may have noticed first.
        """
        if not (self._is_wanted and _is_unknown(error)) or self._ending:
            return False
        if self._is_open and self.loss_count == loss_count:
            self._lost()
        return True

    # -- what is told --------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        """What `degraded` calls the trouble of the last request, or ""."""
        if self._trouble is None:
            return ""
        return "SESSION_ENDING" if _has_ended(self._trouble) else cause_of(self._trouble)

    @property
    def degraded(self) -> list[str]:
        """See `SessionView.degraded`."""
        told = [self.trouble] if self._trouble is not None else []
        for name, holds in (
            ("SESSION_REFUSED", self.refusal is not None),
            ("SESSION_RESTARTED", self._restarted),
            ("SESSION_LOST", self.end_refusal is not None and not self._discards),
            ("DROPPED", self._outbox.dropped_count > 0),
            ("END_UNACKNOWLEDGED", self._end_overdue and not self.is_finished),
        ):
            if holds:
                told.append(name)
        return told

    @property
    def dropped(self) -> list[Dropped]:
        """See `SessionView.dropped`."""
        return list(self._outbox.dropped)

    @property
    def dropped_count(self) -> int:
        """Turns and outputs that were dropped."""
        return self._outbox.dropped_count

    @property
    def buffered_count(self) -> int:
        """Turns and outputs that wait."""
        return self._outbox.count

    @property
    def is_ending(self) -> bool:
        """Whether its end was asked for."""
        return self._ending


def _named(error: MemsvcClientError) -> str:
    """The error without its message: for a log, and as a cause."""
    return error.reason or error.code


def _has_ended(error: MemsvcClientError) -> bool:
    return isinstance(error, FailedPrecondition) and error.reason == "NOT_ACTIVE"


def _is_unknown(error: MemsvcClientError) -> bool:
    return isinstance(error, NotFound) or _has_ended(error)
