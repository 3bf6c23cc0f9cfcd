"""What the calls of a session return: the session, its state, its turns, and its consolidation.

Purpose: as `results`, thin views over the answer's messages; and what a session could not send.

Threading: values; a view never changes.

Rejected: one class for both answers about the state (UpdateState's has no window, and an empty list would say that
nothing was said).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ._proto import memory_service_pb2 as mpb
from ._proto import session_service_pb2 as spb
from .requests import enum_name
from .results import WriteResult
from .views import View

_FINAL = (spb.CONSOLIDATION_STATE_DONE, spb.CONSOLIDATION_STATE_FAILED, spb.CONSOLIDATION_STATE_DISCARDED)


class SessionInfo(View[spb.Session]):
    """A session as the server has it. Times are aware UTC datetimes."""

    __slots__ = ()
    NAMES = ("session_id", "tool", "start_time", "update_time", "expire_time", "turn_count", "etag")

    @property
    def session_id(self) -> str:
        """Its id."""
        return self._pb.session_id

    @property
    def tool(self) -> str:
        """The tool that opened it."""
        return self._pb.tool

    @property
    def start_time(self) -> dt.datetime | None:
        """When it was opened."""
        return self._time("start_time")

    @property
    def update_time(self) -> dt.datetime | None:
        """When it was last used."""
        return self._time("update_time")

    @property
    def expire_time(self) -> dt.datetime | None:
        """When it ends by itself if nobody uses it."""
        return self._time("expire_time")

    @property
    def turn_count(self) -> int:
        """How many turns it has."""
        return self._pb.turn_count

    @property
    def etag(self) -> str:
        """Changes with the session; goes with `update_state` to refuse a lost update."""
        return self._pb.etag


class ToolOutput(View[spb.ToolOutput]):
    """What a tool returned."""

    __slots__ = ()
    NAMES = ("tool", "content", "truncated", "time")

    @property
    def tool(self) -> str:
        """Name of the tool."""
        return self._pb.tool

    @property
    def content(self) -> str:
        """The output, cut to the server's limit."""
        return self._pb.content

    @property
    def truncated(self) -> bool:
        """Whether something was cut away."""
        return self._pb.truncated

    @property
    def time(self) -> dt.datetime | None:
        """When the server took it."""
        return self._time("time")


class Turn(View[mpb.Message]):
    """One turn as it was said, secrets redacted."""

    __slots__ = ()
    NAMES = ("speaker", "content", "time", "message_id", "tool_calls")

    @property
    def speaker(self) -> str:
        """user, agent, tool or system."""
        return enum_name(mpb.Speaker, "SPEAKER", self._pb.speaker)

    @property
    def content(self) -> str:
        """Its text."""
        return self._pb.content

    @property
    def time(self) -> dt.datetime | None:
        """When it was said."""
        return self._time("time")

    @property
    def message_id(self) -> str:
        """The caller's id of it, or ""."""
        return self._pb.message_id

    @property
    def tool_calls(self) -> list[dict[str, str]]:
        """Calls of tools in it: name and arguments."""
        return [{"name": call.name, "arguments": call.arguments} for call in self._pb.tool_calls]


class DialogueState(View[Any]):
    """What the conversation is about now. Lists are oldest first."""

    __slots__ = ()
    NAMES: ClassVar[tuple[str, ...]] = (
        "session",
        "goal",
        "constraints",
        "finished",
        "pending",
        "slots",
        "tool_outputs",
    )

    @property
    def session(self) -> SessionInfo:
        """The session that it is of."""
        return SessionInfo(self._pb.session)

    @property
    def goal(self) -> str:
        """What the user wants now, or ""."""
        return str(self._pb.state.goal)

    @property
    def constraints(self) -> list[str]:
        """What the result must observe."""
        return list(self._pb.state.constraints)

    @property
    def finished(self) -> list[str]:
        """What is done."""
        return list(self._pb.state.finished)

    @property
    def pending(self) -> list[str]:
        """What is still to do, in order."""
        return list(self._pb.state.pending)

    @property
    def slots(self) -> dict[str, str]:
        """Named values that were agreed on."""
        return dict(self._pb.state.slots)

    @property
    def tool_outputs(self) -> list[ToolOutput]:
        """The newest outputs of tools."""
        return [ToolOutput(output) for output in self._pb.state.tool_outputs]


class SessionState(DialogueState):
    """State, last turns and summary of a session."""

    __slots__ = ()
    NAMES = (*DialogueState.NAMES, "window", "summary", "window_tokens", "summary_tokens")

    @property
    def window(self) -> list[Turn]:
        """The last turns word for word, oldest first."""
        return [Turn(turn) for turn in self._pb.window]

    @property
    def summary(self) -> str:
        """What was said before the window, in short; "" while the window holds everything."""
        return str(self._pb.summary)

    @property
    def window_tokens(self) -> int:
        """Tokens of the window."""
        return int(self._pb.window_tokens)

    @property
    def summary_tokens(self) -> int:
        """Tokens of the summary."""
        return int(self._pb.summary_tokens)


class Consolidation(View[spb.Consolidation]):
    """How far the consolidation of an ended session is, and what it stored."""

    __slots__ = ()
    NAMES = (
        "session_id",
        "state",
        "done_turns",
        "total_turns",
        "results",
        "episode_id",
        "error",
        "create_time",
        "update_time",
        "set_aside_id",
    )

    @property
    def session_id(self) -> str:
        """Id of the session."""
        return self._pb.session_id

    @property
    def state(self) -> str:
        """pending, running, done, failed or discarded."""
        return enum_name(spb.ConsolidationState, "CONSOLIDATION_STATE", self._pb.state)

    @property
    def is_final(self) -> bool:
        """Whether it moves no more: done, failed or discarded."""
        return self._pb.state in _FINAL

    @property
    def done_turns(self) -> int:
        """Turns judged so far."""
        return self._pb.done_turns

    @property
    def total_turns(self) -> int:
        """Turns to judge."""
        return self._pb.total_turns

    @property
    def results(self) -> list[WriteResult]:
        """What was stored, merged or staged, in order."""
        return [WriteResult(result) for result in self._pb.results]

    @property
    def episode_id(self) -> str:
        """The event that sums the session up; "" when it said nothing."""
        return self._pb.episode_id

    @property
    def error(self) -> str:
        """Why it failed, or ""."""
        return self._pb.error

    @property
    def create_time(self) -> dt.datetime | None:
        """When it was asked for."""
        return self._time("create_time")

    @property
    def update_time(self) -> dt.datetime | None:
        """When it last moved."""
        return self._time("update_time")

    @property
    def set_aside_id(self) -> str:
        """The id under which an earlier session of this id is kept whose consolidation had failed, or ""."""
        return self._pb.set_aside_id

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready: times as ISO 8601."""
        return {**super().to_dict(), "results": [result.to_dict() for result in self.results]}


@dataclass(frozen=True)
class Dropped:
    """Neighbouring turns, or outputs of tools, that did not reach the server.

    kind: "turns" or "tool_outputs". first: number of the first, counted from 1 over those that this object took.
    cause: BUFFER_FULL, CLIENT_CLOSED, or the reason for which the server refused them.
    """

    kind: str
    first: int
    count: int
    cause: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)
