"""A consolidation that SIGKILL ended between two batches ends like one that nothing disturbed.

Run as a program (`python test_consolidation.py DIRECTORY BATCH MOMENT`) this file serves a directory and kills itself
before or after that batch of a consolidation; batch 0 never comes.
"""

from __future__ import annotations

import datetime as dt
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.memory.sessions.consolidation import BATCH_TURNS
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import memory_service_pb2_grpc as memory_rpc
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as rpc

LIMIT_S = 60.0
OWNERS = pb.Owners(user_id="ann", session_id="long")
START = dt.datetime(2025, 3, 3, 9, tzinfo=dt.UTC)
USER, AGENT = mpb.SPEAKER_USER, mpb.SPEAKER_AGENT
ACROSS = {
    # around the first border: an answer that means nothing without the question
    49: (AGENT, "Option A: cache the sessions in Redis. Option B: keep them in PostgreSQL. Which one?"),
    50: (USER, "Option A, we have decided: it is running already."),
    # around the second: what was said already, and an echo of it
    98: (USER, "Please always write the weekly report as PDF."),
    100: (USER, "As I said, always write the weekly report as a PDF file."),
    101: (AGENT, "Got it, I will always write the weekly report as PDF."),
}


def serve_and_kill(directory: str, batch: str, moment: str) -> None:
    """The program."""
    service = Service(Settings(data_dir=Path(directory), listen="127.0.0.1:0"))
    ingest, numbers = service.ingestor.ingest, itertools.count(1)

    def counted(*arguments: Any, **options: Any) -> Any:
        is_last = next(numbers) == int(batch)
        if is_last and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = ingest(*arguments, **options)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    service.ingestor.ingest = counted  # type: ignore[method-assign]
    sys.stdout.write(service.start() + "\n")
    sys.stdout.flush()
    signal.pause()


def turns() -> list[mpb.Message]:
    said = {number: (USER, f"We decided that team {number} owns service {number * 7919}.") for number in range(120)}
    return [
        mpb.Message(
            speaker=speaker,
            content=content,
            time={"seconds": int(START.timestamp()) + 60 * number},
            message_id=f"m-{number}",
        )
        for number, (speaker, content) in sorted((said | ACROSS).items())
    ]


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., tuple[subprocess.Popen[str], grpc.Channel]]]:
    started: list[tuple[subprocess.Popen[str], grpc.Channel]] = []

    def start(directory: Path, batch: int = 0, moment: str = "before") -> tuple[subprocess.Popen[str], grpc.Channel]:
        command = [sys.executable, __file__, str(directory), str(batch), moment]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        channel = grpc.insecure_channel(process.stdout.readline().strip(), [("grpc.enable_http_proxy", 0)])
        started.append((process, channel))
        return started[-1]

    yield start
    for process, channel in started:
        channel.close()
        process.kill()
        process.wait(LIMIT_S)
        assert process.stdout is not None
        process.stdout.close()


def end(channel: grpc.Channel) -> None:
    """Tells a session and ends it."""
    sessions = rpc.SessionServiceStub(channel)
    sessions.Start(spb.SessionServiceStartRequest(owners=OWNERS, tool="shell", goal="set up the services"))
    sessions.AppendTurns(spb.SessionServiceAppendTurnsRequest(owners=OWNERS, turns=turns()))
    sessions.End(spb.SessionServiceEndRequest(owners=OWNERS))


def outcome(channel: grpc.Channel) -> dict[str, Any]:
    """What a consolidation left, without ids and the times of the run."""
    asked = spb.SessionServiceGetConsolidationRequest(owners=OWNERS, wait={"seconds": 60})
    view = rpc.SessionServiceStub(channel).GetConsolidation(asked).consolidation
    assert view.state == spb.CONSOLIDATION_STATE_DONE, view.error
    listed = mpb.ListRequest(owners=OWNERS, include_inactive=True, page_size=1000)
    memories = {m.memory_id: m for m in memory_rpc.MemoryServiceStub(channel).List(listed).memories}
    episode = memories[view.episode_id]
    named = [memories[memory_id].content for memory_id in episode.event.payload["memory_ids"]]
    del episode.event.payload["memory_ids"]
    for memory in memories.values():
        for field in ("memory_id", "create_time", "update_time", "expire_time", "etag", "retention"):
            memory.ClearField(field)
        others = [memories[one].content for one in (*memory.supersedes, memory.superseded_by) if one]
        memory.metadata["others"] = " ".join(others)
        memory.ClearField("supersedes")
        memory.ClearField("superseded_by")
    return {
        "turns": (view.done_turns, view.total_turns),
        "results": [(r.outcome, r.version, memories[r.memory_id].content) for r in view.results],
        "episode": named,
        "memories": sorted(str(memory) for memory in memories.values()),
        "contents": sorted(memory.content for memory in memories.values() if memory is not episode),
    }


@pytest.fixture(scope="module")
def undisturbed(serve, tmp_path_factory) -> dict[str, Any]:
    _, channel = serve(tmp_path_factory.mktemp("whole"))
    end(channel)
    return outcome(channel)


def test_the_turns_before_a_batch_give_it_meaning(undisturbed):
    assert undisturbed["turns"] == (120, 120)
    assert BATCH_TURNS == 50, "the borders of ACROSS"
    contents = undisturbed["contents"]
    assert any("Redis" in content and "PostgreSQL" not in content for content in contents)
    assert sum("PDF" in content for content in contents) == 1
    assert not any(outcome == mpb.WRITE_OUTCOME_MERGED for outcome, _, _ in undisturbed["results"])


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("batch", [2, 3])
def test_killed_between_two_batches_it_ends_the_same(serve, tmp_path, undisturbed, batch, moment):
    process, channel = serve(tmp_path, batch, moment)
    end(channel)
    assert process.wait(LIMIT_S) == -signal.SIGKILL
    _, channel = serve(tmp_path)
    assert outcome(channel) == undisturbed


if __name__ == "__main__":
    serve_and_kill(*sys.argv[1:])
