"""SessionService over gRPC: what the contract says, against a real server."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import grpc
import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as rpc


@pytest.fixture(scope="module")
def sessions(channel: grpc.Channel) -> rpc.SessionServiceStub:
    return rpc.SessionServiceStub(channel)


@pytest.fixture
def whom(sessions: rpc.SessionServiceStub, fresh_id) -> pb.Owners:
    """The owners of a session that is open."""
    owners = pb.Owners(user_id=fresh_id(), session_id="s")
    sessions.Start(spb.SessionServiceStartRequest(owners=owners, tool="shell"))
    return owners


def say(*contents: str) -> list[mpb.Message]:
    return [mpb.Message(speaker=mpb.SPEAKER_USER, content=content) for content in contents]


def append(stub: rpc.SessionServiceStub, owners: pb.Owners, *contents: str, request_id: str = ""):
    request = spb.SessionServiceAppendTurnsRequest(owners=owners, turns=say(*contents), request_id=request_id)
    return stub.AppendTurns(request)


def state_of(stub: rpc.SessionServiceStub, owners: pb.Owners) -> spb.SessionServiceGetStateResponse:
    return stub.GetState(spb.SessionServiceGetStateRequest(owners=owners))


def refused(call) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details()


def test_start_append_and_read(sessions, fresh_id):
    owners = pb.Owners(user_id=fresh_id(), session_id="one")
    started = sessions.Start(
        spb.SessionServiceStartRequest(owners=owners, tool="shell", ttl={"seconds": 60}, goal="ship it")
    )
    assert (started.session.session_id, started.session.tool, started.resumed) == ("one", "shell", False)
    assert started.session.expire_time.seconds - started.session.start_time.seconds == 60
    turn = mpb.Message(
        speaker=mpb.SPEAKER_AGENT,
        content="看一下日志",
        message_id="m-1",
        tool_calls=[mpb.ToolCall(name="ls", arguments="{}")],
        time={"seconds": 1_700_000_000},
    )
    request = spb.SessionServiceAppendTurnsRequest(owners=owners, turns=[*say("帮我修登录，端口是8080"), turn])
    assert sessions.AppendTurns(request) == spb.SessionServiceAppendTurnsResponse(first_turn=1, turn_count=2)
    answer = state_of(sessions, owners)
    assert answer.window[1] == turn
    assert (answer.state.goal, dict(answer.state.slots)) == ("修登录", {"端口": "8080"})
    assert answer.session.turn_count == 2
    assert answer.window_tokens > 5
    assert (answer.summary, answer.summary_tokens) == ("", 0)
    assert sessions.Start(spb.SessionServiceStartRequest(owners=owners)).resumed


def test_a_fresh_id_is_made(sessions, fresh_id):
    owners = pb.Owners(user_id=fresh_id())
    made = sessions.Start(spb.SessionServiceStartRequest(owners=owners)).session.session_id
    assert made
    owners.session_id = made
    assert append(sessions, owners, "hello").turn_count == 1


def test_the_newest_user_turn_steers(sessions, whom):
    append(sessions, whom, "Please write a crawler. It must not use Docker.")
    assert state_of(sessions, whom).state.constraints == ["It must not use Docker"]
    append(sessions, whom, "Actually, let's build a dashboard instead.")
    state = state_of(sessions, whom).state
    assert (state.goal, list(state.constraints)) == ("build a dashboard", [])


def test_the_summary_takes_over_what_leaves_the_window(sessions, whom):
    append(sessions, whom, "We decided to use PostgreSQL because MySQL was too slow.", *(f"turn {i}" for i in range(6)))
    answer = state_of(sessions, whom)
    assert len(answer.window) == 6
    assert "PostgreSQL" in answer.summary
    for i in range(60):
        append(sessions, whom, f"We decided that service {i} must use port 80{i}, 因为第 {i} 个团队要求。")
    assert 100 < state_of(sessions, whom).summary_tokens <= 200


def test_replay_and_another_body(sessions, whom):
    request_id = str(uuid.uuid4())
    first = append(sessions, whom, "a", "b", request_id=request_id)
    append(sessions, whom, "c")
    assert append(sessions, whom, "a", "b", request_id=request_id) == first
    code, _ = refused(lambda: append(sessions, whom, "x", request_id=request_id))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert state_of(sessions, whom).session.turn_count == 3


def test_update_state_and_etag(sessions, whom):
    etag = state_of(sessions, whom).session.etag
    answer = sessions.UpdateState(
        spb.SessionServiceUpdateStateRequest(
            owners=whom, goal="g", add_pending=["a", "b"], add_constraints=["c"], set_slots={"k": "v"}, etag=etag
        )
    )
    assert (answer.state.goal, list(answer.state.pending), dict(answer.state.slots)) == ("g", ["a", "b"], {"k": "v"})
    code, _ = refused(lambda: sessions.UpdateState(spb.SessionServiceUpdateStateRequest(owners=whom, etag=etag)))
    assert code == grpc.StatusCode.ABORTED
    answer = sessions.UpdateState(
        spb.SessionServiceUpdateStateRequest(
            owners=whom, goal="", finish=["a"], remove_constraints=["c"], set_slots={"k": ""}, etag=answer.session.etag
        )
    )
    assert answer.state == spb.DialogueState(pending=["b"], finished=["a"])


def test_tool_outputs(sessions, whom):
    for i in range(7):
        sent = spb.SessionServiceRecordToolOutputRequest(owners=whom, tool=f"t{i}", content="x" * 600)
        assert sessions.RecordToolOutput(sent).truncated
    outputs = state_of(sessions, whom).state.tool_outputs
    assert [(o.tool, len(o.content), o.truncated) for o in outputs] == [(f"t{i}", 500, True) for i in range(2, 7)]


def test_an_output_that_is_sent_again_is_kept_once(sessions, whom):
    sent = spb.SessionServiceRecordToolOutputRequest(
        owners=whom, tool="ls", content="x" * 600, request_id=str(uuid.uuid4())
    )
    answers = [sessions.RecordToolOutput(sent) for _ in range(2)]
    assert answers == [spb.SessionServiceRecordToolOutputResponse(truncated=True)] * 2
    assert len(state_of(sessions, whom).state.tool_outputs) == 1
    other = spb.SessionServiceRecordToolOutputRequest(owners=whom, tool="ls", request_id=sent.request_id)
    code, details = refused(lambda: sessions.RecordToolOutput(other))
    assert (code, details) == (grpc.StatusCode.INVALID_ARGUMENT, "request_id came before with another request")
    other.request_id = "seven"
    assert refused(lambda: sessions.RecordToolOutput(other))[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_parallel_appends_keep_every_turn(sessions, service, whom):
    def work(worker: int) -> None:
        for i in range(10):
            append(sessions, whom, f"{worker}.{i}.0", f"{worker}.{i}.1")

    threads = [threading.Thread(target=work, args=(w,)) for w in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state_of(sessions, whom).session.turn_count == 120
    (namespace,) = [n for n, e in service.sessions._table.items() if e.session.owners.user_id == whom.user_id]
    turns = [turn.content for turn in service.sessions.turns(namespace)]
    for worker in range(6):
        assert [t for t in turns if t.startswith(f"{worker}.")] == [
            f"{worker}.{i}.{k}" for i in range(10) for k in (0, 1)
        ]


def test_list_pages(sessions, fresh_id):
    user = fresh_id()
    for i in range(5):
        sessions.Start(spb.SessionServiceStartRequest(owners=pb.Owners(user_id=user, session_id=f"{i}")))
    found, token = [], ""
    while True:
        request = spb.SessionServiceListRequest(owners=pb.Owners(user_id=user), page_size=2, page_token=token)
        page = sessions.List(request)
        found += [s.session_id for s in page.sessions]
        token = page.next_page_token
        if not token:
            break
    assert found == ["4", "3", "2", "1", "0"]


def test_an_unknown_session_is_not_found(sessions, fresh_id):
    owners = pb.Owners(user_id=fresh_id(), session_id="none")
    for call in (
        lambda: append(sessions, owners, "x"),
        lambda: state_of(sessions, owners),
        lambda: sessions.UpdateState(spb.SessionServiceUpdateStateRequest(owners=owners)),
        lambda: sessions.RecordToolOutput(spb.SessionServiceRecordToolOutputRequest(owners=owners, tool="t")),
    ):
        assert refused(call)[0] == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("owners", "field"),
    [
        (pb.Owners(user_id=""), "owners.user_id"),
        (pb.Owners(user_id="u"), "owners.session_id"),
        (pb.Owners(user_id="u", session_id=""), "owners.session_id"),
        (pb.Owners(user_id="u", session_id="x" * 129), "owners.session_id"),
    ],
)
def test_bad_owners_are_named(sessions, owners, field):
    code, details = refused(lambda: state_of(sessions, owners))
    assert (code, field in details) == (grpc.StatusCode.INVALID_ARGUMENT, True)


def test_limits(sessions, whom):
    unset = mpb.Message(content="x")
    for call in (
        lambda: append(sessions, whom),
        lambda: append(sessions, whom, *"x" * 201),
        lambda: append(sessions, whom, "x", request_id="no uuid"),
        lambda: sessions.AppendTurns(spb.SessionServiceAppendTurnsRequest(owners=whom, turns=[unset])),
        lambda: sessions.Start(spb.SessionServiceStartRequest(owners=whom, ttl={"seconds": 0})),
        lambda: sessions.Start(spb.SessionServiceStartRequest(owners=whom, ttl={"seconds": 31 * 86_400})),
        lambda: sessions.List(spb.SessionServiceListRequest(owners=whom, page_size=1001)),
    ):
        assert refused(call)[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert state_of(sessions, whom).session.turn_count == 0


def test_nothing_is_left_in_long_term_layers(sessions, stub, whom):
    append(sessions, whom, "From now on always answer in French. We decided to use Go because it is fast.")
    listed = stub.List(mpb.ListRequest(owners=whom, include_inactive=True))
    assert not listed.memories


def test_an_ended_session_takes_nothing_more(sessions, whom):
    append(sessions, whom, "hello")
    sessions.End(spb.SessionServiceEndRequest(owners=whom, discard=True))
    assert refused(lambda: append(sessions, whom, "late"))[0] in (
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
    )


def test_a_restart_keeps_open_sessions(tmp_path: Path):
    owners = pb.Owners(user_id="u", session_id="s")
    seen = []
    for start in (True, False):
        running = Service(Settings(data_dir=tmp_path, listen="127.0.0.1:0"))
        try:
            with grpc.insecure_channel(running.start(), [("grpc.enable_http_proxy", 0)]) as channel:
                stub = rpc.SessionServiceStub(channel)
                if start:
                    stub.Start(spb.SessionServiceStartRequest(owners=owners, tool="shell"))
                    append(stub, owners, "帮我写爬虫，必须用 Go", *(f"We decided on item {i}." for i in range(9)))
                answer = state_of(stub, owners)
                for field in ("update_time", "expire_time"):
                    answer.session.ClearField(field)
                seen.append(answer)
        finally:
            running.close()
    assert seen[0] == seen[1]
    assert seen[0].state.goal == "写爬虫"
