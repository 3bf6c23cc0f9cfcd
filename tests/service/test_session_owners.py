"""A session is its agent's and project's on loopback too: who names another is told that there is none."""

from __future__ import annotations

import grpc
import pytest

from memsvc.v1 import context_service_pb2 as csb
from memsvc.v1 import context_service_pb2_grpc as crpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as rpc

GOAL = "brew jasmine"


@pytest.fixture(scope="module")
def calls(channel: grpc.Channel):
    """Every call about a session: name -> call of owner ids."""
    sessions, contexts = rpc.SessionServiceStub(channel), crpc.ContextServiceStub(channel)
    turn = mpb.Message(speaker=mpb.SPEAKER_USER, content="Tea, please.")

    def of(method, kind, **fields):
        return lambda **ids: method(kind(owners=pb.Owners(session_id="s", **ids), **fields))

    return {
        "Start": of(sessions.Start, spb.SessionServiceStartRequest, goal=GOAL),
        "AppendTurns": of(sessions.AppendTurns, spb.SessionServiceAppendTurnsRequest, turns=[turn]),
        "GetState": of(sessions.GetState, spb.SessionServiceGetStateRequest),
        "UpdateState": of(sessions.UpdateState, spb.SessionServiceUpdateStateRequest, add_pending=["pour"]),
        "RecordToolOutput": of(
            sessions.RecordToolOutput, spb.SessionServiceRecordToolOutputRequest, tool="kettle", content="boils"
        ),
        "Assemble": of(sessions.Assemble, spb.SessionServiceAssembleRequest, query="tea"),
        "AssembleContext": of(contexts.AssembleContext, csb.AssembleContextRequest, query="tea"),
        "End": of(sessions.End, spb.SessionServiceEndRequest, discard=True),
        "GetConsolidation": of(sessions.GetConsolidation, spb.SessionServiceGetConsolidationRequest),
    }


def refused(call, **ids) -> bool:
    """Whether the call finds no session. Raises what else it is answered."""
    try:
        call(**ids)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.NOT_FOUND:
            return True
        raise
    return False


@pytest.mark.parametrize("field", ["agent_id", "project_id"])
def test_another_agents_or_projects_session_is_not_found(calls, fresh_id, field):
    user = fresh_id()
    calls["Start"](user_id=user, **{field: "a"})
    for name, call in calls.items():
        assert refused(call, user_id=user, **{field: "b"}), name
    state = calls["GetState"](user_id=user, **{field: "a"})
    assert (state.state.goal, state.session.turn_count, list(state.state.pending)) == (GOAL, 0, [])
    assert GOAL in calls["AssembleContext"](user_id=user, **{field: "a"}).context.text


@pytest.mark.parametrize("by", ["a", None])
@pytest.mark.parametrize("field", ["agent_id", "project_id"])
def test_an_ended_session_stays_its_agents_and_projects_whoever_ended_it(calls, fresh_id, field, by):
    user = fresh_id()
    calls["Start"](user_id=user, **{field: "a"})
    calls["End"](user_id=user, **{field: by})
    for name in ("Start", "End", "GetConsolidation", "AssembleContext"):
        assert refused(calls[name], user_id=user, **{field: "b"}), name
    calls["GetConsolidation"](user_id=user, **{field: "a"})


def test_without_a_token_who_names_nobody_reaches_every_session(calls, fresh_id):
    user = fresh_id()
    calls["Start"](user_id=user, agent_id="a", project_id="p")
    for name, call in calls.items():
        assert not refused(call, user_id=user), name


def test_a_session_that_names_nobody_is_open_to_every_agent(calls, fresh_id):
    user = fresh_id()
    calls["Start"](user_id=user)
    for name, call in calls.items():
        assert not refused(call, user_id=user, agent_id="b", project_id="q"), name
