"""Between the contract's messages and the model's values, for sessions.

Purpose: the part of `convert` that SessionService needs.

Threading: pure functions.

Rejected: protobuf's json_format (see `convert`).
"""

from __future__ import annotations

from collections.abc import Callable

from memsvc.memory.funnel import Message
from memsvc.memory.sessions.session import Session
from memsvc.memory.sessions.state import SessionState, StateChange
from memsvc.service import convert
from memsvc.service.convert_learning import SPEAKERS
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import session_service_pb2 as spb

_SPEAKERS = {name: value for value, name in SPEAKERS.items()}


def session_message(session: Session) -> spb.Session:
    """A session as it is."""
    return spb.Session(
        session_id=session.session_id,
        tool=session.tool,
        start_time=convert.timestamp(session.start_time_us),
        update_time=convert.timestamp(session.update_time_us),
        expire_time=convert.timestamp(session.expire_time_us),
        turn_count=session.turn_count,
        etag=session.etag,
    )


def state_message(state: SessionState) -> spb.DialogueState:
    """The state."""
    return spb.DialogueState(
        goal=state.goal,
        constraints=state.constraints,
        finished=state.finished,
        pending=state.pending,
        slots=state.slots,
        tool_outputs=[
            spb.ToolOutput(
                tool=output.tool,
                content=output.content,
                truncated=output.truncated,
                time=convert.timestamp(output.time_us),
            )
            for output in state.tool_outputs
        ],
    )


def turn_message(turn: Message) -> mpb.Message:
    """A turn as it was said, secrets redacted."""
    return mpb.Message(
        speaker=_SPEAKERS[turn.speaker],
        content=turn.content,
        time=convert.timestamp(turn.time_us),
        message_id=turn.message_id,
        tool_calls=[mpb.ToolCall(name=call["name"], arguments=call["arguments"]) for call in turn.tool_calls],
    )


def get_response(session: Session, count_tokens: Callable[[str], int]) -> spb.SessionServiceGetStateResponse:
    """State, window and summary with their tokens."""
    return spb.SessionServiceGetStateResponse(
        session=session_message(session),
        state=state_message(session.state),
        window=[turn_message(turn) for turn in session.window],
        summary=session.summary,
        window_tokens=sum(count_tokens(turn.content) for turn in session.window),
        summary_tokens=count_tokens(session.summary),
    )


def change(request: spb.SessionServiceUpdateStateRequest) -> StateChange:
    """A change by hand."""
    return StateChange(
        goal=request.goal if request.HasField("goal") else None,
        add_constraints=tuple(request.add_constraints),
        remove_constraints=tuple(request.remove_constraints),
        add_pending=tuple(request.add_pending),
        finish=tuple(request.finish),
        set_slots=dict(request.set_slots),
    )
