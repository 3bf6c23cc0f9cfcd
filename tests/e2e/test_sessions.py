"""A session survives kill -9 of the real process: every acknowledged turn is there, in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from chat_double import Endpoint, said

from memsvc.v1 import admin_service_pb2 as admin_pb2
from memsvc.v1 import admin_service_pb2_grpc as admin_rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as rpc

LIMIT_S = 60.0
OWNERS = pb.Owners(user_id="u", session_id="s")


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(data_dir: Path, **environment: str) -> tuple[subprocess.Popen[str], str]:
        arguments = ["serve", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0", "--log-level", "WARNING"]
        process = subprocess.Popen(
            [sys.executable, "-m", "memsvc", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().partition("grpc=")[2].split()[0]

    yield start
    for process in started:
        process.kill()
        process.wait(LIMIT_S)
        assert process.stdout is not None
        process.stdout.close()


def test_kill_9_loses_no_acknowledged_turn(serve, tmp_path):
    state = spb.SessionServiceGetStateRequest(owners=OWNERS)
    count = 0
    for _ in range(3):
        process, address = serve(tmp_path / "data")
        with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
            stub = rpc.SessionServiceStub(channel)
            assert stub.Start(spb.SessionServiceStartRequest(owners=OWNERS)).resumed == (count > 0)
            before = stub.GetState(state)
            assert before.session.turn_count == count
            assert [turn.content for turn in before.window] == [f"turn {i}" for i in range(max(0, count - 6), count)]
            for _ in range(25):
                turns = [mpb.Message(speaker=mpb.SPEAKER_USER, content=f"turn {count}")]
                answer = stub.AppendTurns(spb.SessionServiceAppendTurnsRequest(owners=OWNERS, turns=turns))
                assert answer.first_turn == count + 1
                count += 1
            stub.UpdateState(spb.SessionServiceUpdateStateRequest(owners=OWNERS, set_slots={"count": str(count)}))
            process.send_signal(signal.SIGKILL)
            process.wait(LIMIT_S)
    _, address = serve(tmp_path / "data")
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        answer = rpc.SessionServiceStub(channel).GetState(state)
    assert (answer.session.turn_count, dict(answer.state.slots)) == (75, {"count": "75"})


def test_the_chat_endpoint_condenses_the_summary_and_kill_9_keeps_it(
    serve: Callable[..., tuple[subprocess.Popen[str], str]], tmp_path: Path, endpoint: Endpoint
) -> None:
    lines = [
        {"text": "Order 7 shipped, it is done.", "sources": [0]},
        {"text": "Everybody is an administrator.", "sources": [1]},
    ]
    endpoint.answers = [said(json.dumps({"lines": lines}))]
    process, address = serve(tmp_path / "data", MEMSVC_CHAT_URL=endpoint.url, MEMSVC_CHAT_MODEL="m")
    state = spb.SessionServiceGetStateRequest(owners=OWNERS)
    condensed = "user: Order 7 shipped, it is done.\nuser: We decided that order 8 is shipped today."
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        stub = rpc.SessionServiceStub(channel)
        stub.Start(spb.SessionServiceStartRequest(owners=OWNERS))
        for number in range(7, 13):
            say(
                stub,
                f"We decided that order {number} is shipped today." if number > 7 else "Order 7 shipped, it is done.",
            )
        for _ in range(6):
            say(stub, "ok")
        deadline_s = time.monotonic() + LIMIT_S
        while stub.GetState(state).summary != condensed:
            assert time.monotonic() < deadline_s, stub.GetState(state).summary
            time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(LIMIT_S)
    _, address = serve(tmp_path / "data")
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        assert rpc.SessionServiceStub(channel).GetState(state).summary == condensed


def test_a_backup_has_the_open_sessions(serve, tmp_path):
    _, address = serve(tmp_path / "data")
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        stub = rpc.SessionServiceStub(channel)
        stub.Start(spb.SessionServiceStartRequest(owners=OWNERS, goal="keep going"))
        say(stub, "in the backup")
        ended = pb.Owners(user_id="u", session_id="ended")
        stub.Start(spb.SessionServiceStartRequest(owners=ended))
        say(stub, "We decided to use PostgreSQL for billing.", ended)
        stub.End(spb.SessionServiceEndRequest(owners=ended))
        backup = admin_pb2.BackupRequest(directory=str(tmp_path / "copy"))
        assert admin_rpc.AdminServiceStub(channel).Backup(backup).size_bytes > 0
        say(stub, "after it")
    _, address = serve(tmp_path / "copy")
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        stub = rpc.SessionServiceStub(channel)
        state = stub.GetState(spb.SessionServiceGetStateRequest(owners=OWNERS))
        assert ([turn.content for turn in state.window], state.state.goal) == (["in the backup"], "keep going")
        say(stub, "and on")
        done = spb.SessionServiceGetConsolidationRequest(owners=ended, wait={"seconds": 60})
        consolidation = stub.GetConsolidation(done).consolidation
        assert (consolidation.state, consolidation.done_turns) == (spb.CONSOLIDATION_STATE_DONE, 1)
        assert len(consolidation.results) == 1


def say(stub: rpc.SessionServiceStub, text: str, owners: pb.Owners = OWNERS) -> None:
    turns = [mpb.Message(speaker=mpb.SPEAKER_USER, content=text)]
    stub.AppendTurns(spb.SessionServiceAppendTurnsRequest(owners=owners, turns=turns))
