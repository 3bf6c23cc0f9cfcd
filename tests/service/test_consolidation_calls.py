"""End and GetConsolidation over the wire: what is refused, how long is waited, and that the answer says all of it."""

from __future__ import annotations

import datetime as dt

import grpc
import pytest

from memsvc.errors import InvalidArgument
from memsvc.memory.memories import WriteResult
from memsvc.memory.sessions.consolidation import Consolidation, ConsolidationState
from memsvc.model import Namespace, Outcome, Scope
from memsvc.service.consolidation_calls import WAIT_MAX_S, consolidation_message
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as rpc

HERE = Namespace("default", Scope.USER, "u")
DONE, DISCARDED = spb.CONSOLIDATION_STATE_DONE, spb.CONSOLIDATION_STATE_DISCARDED
TURNS = [
    "Please always write the weekly report as PDF.",
    "We decided to use PostgreSQL for the billing service.",
]


@pytest.fixture(scope="module")
def sessions(channel: grpc.Channel) -> rpc.SessionServiceStub:
    return rpc.SessionServiceStub(channel)


@pytest.fixture
def whom(sessions, fresh_id) -> pb.Owners:
    """The owners of an open session with two turns."""
    owners = pb.Owners(user_id=fresh_id(), session_id="s")
    sessions.Start(spb.SessionServiceStartRequest(owners=owners, tool="shell", goal="set up the report"))
    turns = [mpb.Message(speaker=mpb.SPEAKER_USER, content=text) for text in TURNS]
    sessions.AppendTurns(spb.SessionServiceAppendTurnsRequest(owners=owners, turns=turns))
    return owners


def end(sessions, owners: pb.Owners, **fields) -> spb.Consolidation:
    return sessions.End(spb.SessionServiceEndRequest(owners=owners, **fields)).consolidation


def ask(sessions, owners: pb.Owners, seconds: int = 0, nanos: int = 0) -> spb.Consolidation:
    request = spb.SessionServiceGetConsolidationRequest(owners=owners, wait={"seconds": seconds, "nanos": nanos})
    return sessions.GetConsolidation(request).consolidation


def finished(sessions, owners: pb.Owners) -> spb.Consolidation:
    return ask(sessions, owners, 60)


def refused(call) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details()


def test_an_ended_session_says_what_it_stored(sessions, stub, whom):
    first = end(sessions, whom)
    assert first.session_id == "s"
    assert first.total_turns == len(TURNS)
    assert first.state in (spb.CONSOLIDATION_STATE_PENDING, spb.CONSOLIDATION_STATE_RUNNING, DONE)
    view = finished(sessions, whom)
    assert (view.state, view.done_turns, view.total_turns, view.error) == (DONE, 2, 2, "")
    assert view.create_time.ToDatetime() <= view.update_time.ToDatetime()
    assert view.create_time == first.create_time
    listed = stub.List(mpb.ListRequest(owners=pb.Owners(user_id=whom.user_id), include_inactive=True)).memories
    stored = {memory.memory_id: memory for memory in listed}
    assert {result.memory_id for result in view.results} | {view.episode_id} == stored.keys()
    assert len(view.results) == len(TURNS)
    episode = stored[view.episode_id]
    assert episode.event.event_type == "session_summary"
    assert "shell" in episode.content


def test_asking_and_ending_again_answer_the_same(sessions, whom):
    end(sessions, whom)
    view = finished(sessions, whom)
    assert ask(sessions, whom) == ask(sessions, whom, 0, 1) == view
    assert end(sessions, whom) == view
    assert end(sessions, whom, discard=True) == view


def test_discarding_keeps_nothing(sessions, stub, whom):
    view = end(sessions, whom, discard=True)
    assert (view.state, list(view.results), view.episode_id) == (DISCARDED, [], "")
    assert finished(sessions, whom) == view
    owners = pb.Owners(user_id=whom.user_id)
    assert not stub.List(mpb.ListRequest(owners=owners, include_inactive=True)).memories
    state = spb.SessionServiceGetStateRequest(owners=whom)
    assert refused(lambda: sessions.GetState(state))[0] == grpc.StatusCode.NOT_FOUND


def test_what_is_kept_goes_to_the_scope_that_is_asked_for(sessions, stub, fresh_id):
    owners = pb.Owners(user_id=fresh_id(), project_id=fresh_id(), session_id="s")
    sessions.Start(spb.SessionServiceStartRequest(owners=owners))
    turns = [mpb.Message(speaker=mpb.SPEAKER_USER, content=TURNS[1])]
    sessions.AppendTurns(spb.SessionServiceAppendTurnsRequest(owners=owners, turns=turns))
    end(sessions, owners, scope=pb.SCOPE_PROJECT)
    view = finished(sessions, owners)
    assert view.state == DONE
    listed = stub.List(mpb.ListRequest(owners=pb.Owners(project_id=owners.project_id))).memories
    assert view.episode_id in {memory.memory_id for memory in listed}
    assert not stub.List(mpb.ListRequest(owners=pb.Owners(user_id=owners.user_id))).memories


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(-1, 0), (0, -1), (int(WAIT_MAX_S), 1), (int(WAIT_MAX_S) + 1, 0), (10**10, 0)]
)
def test_a_wait_out_of_range_is_refused_and_named(sessions, whom, seconds, nanos):
    end(sessions, whom)
    code, details = refused(lambda: ask(sessions, whom, seconds, nanos))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith("wait ")


def test_what_is_not_there_or_makes_no_sense_is_refused(sessions, whom, fresh_id):
    stranger = pb.Owners(user_id=fresh_id(), session_id="s")
    nobody = pb.Owners(user_id=whom.user_id)
    assert refused(lambda: ask(sessions, whom))[0] == grpc.StatusCode.NOT_FOUND  # still open
    assert refused(lambda: ask(sessions, stranger, 1))[0] == grpc.StatusCode.NOT_FOUND
    assert refused(lambda: end(sessions, stranger))[0] == grpc.StatusCode.NOT_FOUND
    for call in (
        lambda: end(sessions, nobody),
        lambda: ask(sessions, nobody),
        lambda: end(sessions, whom, scope=99),
        lambda: end(sessions, whom, scope=pb.SCOPE_PROJECT),  # no project is named
    ):
        assert refused(call)[0] == grpc.StatusCode.INVALID_ARGUMENT
    state = sessions.GetState(spb.SessionServiceGetStateRequest(owners=whom))
    assert state.session.turn_count == len(TURNS)  # what was refused ended nothing


def test_an_id_whose_consolidation_failed_can_be_opened_again(sessions, service, whom, monkeypatch):
    def fail(*arguments, **options):
        raise InvalidArgument("no")

    with monkeypatch.context() as broken:
        broken.setattr(service.ingestor, "ingest", fail)
        end(sessions, whom)
        assert finished(sessions, whom).state == spb.CONSOLIDATION_STATE_FAILED
    started = sessions.Start(spb.SessionServiceStartRequest(owners=whom))
    assert (started.resumed, started.session.turn_count) == (False, 0)
    failed = ask(sessions, whom)
    assert (failed.state, failed.error) == (spb.CONSOLIDATION_STATE_FAILED, "INVALID_ARGUMENT: no")
    end(sessions, whom)
    later = finished(sessions, whom)
    assert (later.state, later.total_turns, later.set_aside_id) == (DONE, 0, failed.set_aside_id)
    aside = pb.Owners(user_id=whom.user_id, session_id=later.set_aside_id)
    assert (ask(sessions, aside).error, ask(sessions, aside).total_turns) == (failed.error, len(TURNS))
    end(sessions, aside)
    assert (finished(sessions, aside).state, len(finished(sessions, aside).results)) == (DONE, len(TURNS))


def test_the_message_holds_every_field_of_the_view():
    view = Consolidation(
        session_id="s",
        state=ConsolidationState.FAILED,
        create_time_us=1_500_000,
        update_time_us=2_000_001,
        total_turns=9,
        done_turns=4,
        results=(
            WriteResult("mem_1", Outcome.MERGED, HERE, sequence=3, version=2),
            WriteResult("mem_2", Outcome.STAGED, HERE, sequence=4, version=1),
        ),
        episode_id="mem_3",
        error="UNAVAILABLE: no",
        set_aside_id="failed-1",
    )
    message = consolidation_message(view)
    assert {field.name for field, _ in message.ListFields()} == {field.name for field in message.DESCRIPTOR.fields}
    assert (message.session_id, message.state, message.done_turns, message.total_turns) == ("s", 4, 4, 9)
    assert [(r.memory_id, r.version, r.outcome) for r in message.results] == [
        ("mem_1", 2, int(Outcome.MERGED)),
        ("mem_2", 1, int(Outcome.STAGED)),
    ]
    assert (message.episode_id, message.error, message.set_aside_id) == ("mem_3", "UNAVAILABLE: no", "failed-1")
    assert message.create_time.ToDatetime(dt.UTC).microsecond == 500_000
    assert message.update_time.ToDatetime(dt.UTC) == dt.datetime(1970, 1, 1, 0, 0, 2, 1, dt.UTC)


def test_states_have_the_numbers_of_the_contract():
    names = spb.ConsolidationState.items()
    assert {name.removeprefix("CONSOLIDATION_STATE_"): number for name, number in names if number} == {
        state.name: int(state) for state in ConsolidationState
    }
