"""Working memory against the echo floor of the same run: append, state read, resident memory, restart."""

from __future__ import annotations

import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import grpc
import psutil
from rich.table import Table

from bench import common
from bench.echo import EchoProcess
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as rpc

BAR_RATIO = 2.0
BAR_MEMORY_MB = 150
TALK = (
    (mpb.SPEAKER_USER, "帮我写一个同步 {i} 号仓库订单的脚本，不要用 Docker，端口是80{i:02d}。"),
    (mpb.SPEAKER_AGENT, "计划：\n1. 读取订单接口\n2. 写入数据库\n3. 加测试"),
    (mpb.SPEAKER_USER, "Use PostgreSQL for it, and the timeout is 30s. At most 3 retries."),
    (
        mpb.SPEAKER_AGENT,
        "I've finished reader {i}: it parses 1,200 orders a minute. The slow part was the JSON decoder.",
    ),
    (mpb.SPEAKER_USER, "We decided to keep the old table until March because the finance report reads it."),
    (mpb.SPEAKER_AGENT, "The migration of shard {i} is done, 48 rows were skipped because their currency is missing."),
)


def turn(i: int) -> mpb.Message:
    """The i-th turn of a conversation about work, a third of it in Chinese; about 25 tokens."""
    speaker, text = TALK[i % len(TALK)]
    return mpb.Message(speaker=speaker, content=text.format(i=i % 100))


def owners(session: str) -> pb.Owners:
    return pb.Owners(user_id="bench", session_id=session)


def append(stub: rpc.SessionServiceStub, session: str, i: int) -> Any:
    turns = [turn(i)]
    request = spb.SessionServiceAppendTurnsRequest(owners=owners(session), turns=turns, request_id=str(uuid.uuid4()))
    return stub.AppendTurns(request)


def latency(stub: rpc.SessionServiceStub, echo: Any, count: int) -> dict[str, Any]:
    """Percentiles. `append_then_read` is the pair as an agent uses it: the read writes the summary."""
    stub.Start(spb.SessionServiceStartRequest(owners=owners("latency")))
    state = spb.SessionServiceGetStateRequest(owners=owners("latency"))

    def pair(i: int) -> None:
        append(stub, "latency", i)
        stub.GetState(state)

    figures: dict[str, Any] = {
        "echo": common.timed(echo, count),
        "append": common.timed(lambda i: append(stub, "latency", i), count),
        "state_read": common.timed(lambda _: stub.GetState(state), count),
        "append_then_read": common.timed(pair, count),
        "echo_again": common.timed(echo, count),
    }
    floor = min(figures["echo"]["p50_ms"], figures["echo_again"]["p50_ms"])
    for name in ("append", "state_read"):
        figures[name]["x_echo"] = common.ratio(figures[name]["p50_ms"], floor)
    figures["append_then_read"]["x_echo"] = common.ratio(figures["append_then_read"]["p50_ms"], 2 * floor)
    return figures


def memory(stub: rpc.SessionServiceStub, pid: int, sessions: int, turns: int) -> dict[str, Any]:
    """Resident memory that open sessions take, one call a turn, their states read at the end."""
    process = psutil.Process(pid)
    before = process.memory_info().rss
    for s in range(sessions):
        stub.Start(spb.SessionServiceStartRequest(owners=owners(f"m{s}")))
        for i in range(turns):
            append(stub, f"m{s}", s + i)
        stub.GetState(spb.SessionServiceGetStateRequest(owners=owners(f"m{s}")))
    grown = process.memory_info().rss - before
    return {"sessions": sessions, "turns": turns, "resident_mb": round(grown / 2**20, 1)}


def measure(count: int, sessions: int, turns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory:
        data = Path(directory)
        figures = run(data, count, sessions, turns)
        began = time.perf_counter()
        with common.server(data) as (_, _, channel):
            figures["restart_s"] = round(time.perf_counter() - began, 2)
            figures["restored"] = open_sessions(rpc.SessionServiceStub(channel))
    return figures


def run(data: Path, count: int, sessions: int, turns: int) -> dict[str, Any]:
    with (
        EchoProcess() as echo,
        grpc.insecure_channel(echo.address, common.OPTIONS) as echo_channel,
        common.server(data) as (_, process, channel),
    ):
        stub = rpc.SessionServiceStub(channel)
        figures = latency(stub, EchoProcess.call(echo_channel), count)
        figures["memory"] = memory(stub, process.pid, sessions, turns)
    return figures


def open_sessions(stub: rpc.SessionServiceStub) -> int:
    """How many sessions the bench's user has, page by page."""
    found, token = 0, ""
    while True:
        page = stub.List(spb.SessionServiceListRequest(owners=pb.Owners(user_id="bench"), page_token=token))
        found, token = found + len(page.sessions), page.next_page_token
        if not token:
            return found


def tables(result: dict[str, Any]) -> list[Table]:
    shown = Table("call", "p50 ms", "p95 ms", "p99 ms", "x echo", title=f"sessions (bar: <= {BAR_RATIO} x echo)")
    for name in ("echo", "append", "state_read", "append_then_read"):
        row = result[name]
        shown.add_row(name, *(f"{row[p]:.3f}" for p in ("p50_ms", "p95_ms", "p99_ms")), str(row.get("x_echo", 1.0)))
    held = Table("sessions", "turns each", "resident MB", "bar MB", "restart s", "restored")
    kept = result["memory"]
    figures = (kept["sessions"], kept["turns"], kept["resident_mb"], BAR_MEMORY_MB, result["restart_s"])
    held.add_row(*map(str, (*figures, result["restored"])))
    return [shown, held]


def main() -> None:
    given = common.parser(__doc__ or "").parse_args()
    result = measure(40, 5, 10) if given.small else measure(2000, 1000, 50)
    common.emit(result, tables(result), given.json)


if __name__ == "__main__":
    main()
