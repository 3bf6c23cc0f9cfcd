"""Sessions while their server is stopped, killed, restarted or away."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc_client import AsyncMemoryClient, AsyncSession, MemoryClient, TransportError

PATIENT_S = 60.0


def wait_until(condition: Callable[[], bool], limit_s: float = PATIENT_S) -> None:
    """Polls a condition that another thread makes true."""
    tick = threading.Event()
    for _ in range(round(limit_s / 0.01)):
        if condition():
            return
        tick.wait(0.01)
    raise AssertionError("the condition did not come true")


def nobody() -> str:
    """HOST:PORT where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


@contextlib.contextmanager
def serving(target: str, data_dir: Path) -> Iterator[None]:
    """A server in this process."""
    service = Service(Settings(data_dir=data_dir, listen=target, latency_budget_ms=20_000, session_window_turns=100))
    try:
        service.start()
        yield
    finally:
        service.close()


class Server:
    """A server in a process of its own, always at the same address."""

    def __init__(self, data_dir: Path) -> None:
        self.target = nobody()
        self._data_dir = data_dir
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        arguments = ["serve", "--data-dir", str(self._data_dir), "--listen", self.target, "--log-level", "WARNING"]
        command = [sys.executable, "-m", "memsvc", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert "grpc=" in self.process.stdout.readline()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENT_S)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path / "data")
    one.start()
    yield one
    one.kill()


def client_of(target: str, **options: Any) -> MemoryClient:
    return MemoryClient(target, user_id="u", **{"timeout_s": PATIENT_S, "write_timeout_s": PATIENT_S, **options})


def said(client: MemoryClient, session_id: str) -> list[str]:
    return [turn.content for turn in client.session(session_id).state().window]


def test_a_session_begun_without_a_server_arrives_when_there_is_one(tmp_path, caplog):
    target = nobody()
    with caplog.at_level(logging.WARNING, "memsvc_client"), client_of(target, timeout_s=0.3) as client:
        s = client.session("s", goal="ship it").start()
        s.user("hidden 0")
        s.agent("hidden 1")
        block = s.context()
        assert (block.source, block.text, len(block.lines)) == ("none", "", 0)
        assert block.degraded[0] in ("SERVER_UNAVAILABLE", "SERVER_TIMEOUT", "CIRCUIT_OPEN")
        assert s.degraded[0] in ("SERVER_UNAVAILABLE", "SERVER_TIMEOUT")
        assert s.recalled().source == "none"
        assert (s.resumed, s.buffered_count) == (None, 2)
        with serving(target, tmp_path / "data"):
            assert s.flush(PATIENT_S)
            assert (s.resumed, s.buffered_count, s.degraded) == (False, 0, [])
            with client_of(target) as patient:
                assert said(patient, "s") == ["hidden 0", "hidden 1"]
                assert s.end() is not None
        assert len([record for record in caplog.records if "without the server" in record.message]) == 1
        assert "hidden" not in caplog.text


def test_a_frozen_server_holds_nobody_up_and_gets_everything_once_when_it_goes_on(server):
    with client_of(server.target) as patient, client_of(server.target, timeout_s=0.3, write_timeout_s=1.0) as client:
        for _ in range(3):  # the first calls of a process are slow; not a matter here
            with patient.session(consolidate=False) as warm:
                warm.user("words")
                warm.context()
        s = client.session("s").start()
        s.user(
            "We deploy on Fridays, once all of the tests pass, and never in the last week of a quarter, says the lead"
        )
        wait_until(lambda: s.flush(1.0))
        wait_until(lambda: s.context(token_budget=500).source == "server")
        server.send(signal.SIGSTOP)
        try:
            started_s = time.monotonic()
            for i in range(20):
                s.user(f"turn {i}")
            s.tool("ls", "a.txt")
            stale = s.context("something else")
            assert (stale.source, stale.degraded[-1]) == ("cache", "STALE")
            assert "We deploy on Fridays" in stale.text
            small = s.context(token_budget=32)
            assert (small.source, small.text) == ("none", "")  # the last block is larger than 32 tokens
            late = client.session("late").start()
            late.user("turn of another session")
            assert late.degraded == ["SERVER_TIMEOUT"]
            assert time.monotonic() - started_s < PATIENT_S / 2  # six waits of 0.3 s, were it not for busy machines
            assert not s.flush(0.0)
            with pytest.raises(TransportError):
                s.state()
            assert s.buffered_count == 21
        finally:
            server.send(signal.SIGCONT)
        assert s.flush(PATIENT_S)
        assert late.flush(PATIENT_S)
        assert s.degraded == late.degraded == []
        assert s.turn_count == 21
        assert said(patient, "s")[-6:] == [f"turn {i}" for i in range(14, 20)]
        assert [o.content for o in patient.session("s").state().tool_outputs] == ["a.txt"]
        assert said(patient, "late") == ["turn of another session"]


def test_kill_9_in_the_middle_and_a_restart_lose_and_repeat_nothing(server):
    with client_of(server.target, timeout_s=1.0) as client:
        with client.session("s", consolidate=True) as s:
            for round_number in range(2):
                for i in range(10):
                    s.user(f"round {round_number} turn {i}")
                    if i == 5:
                        server.kill()
                assert s.buffered_count >= 4
                server.start()
                assert s.flush(PATIENT_S)
            assert s.degraded == []
            assert s.turn_count == 20
            state = s.state()
            assert state.session.turn_count == 20
            assert [turn.content for turn in state.window] == [f"round 1 turn {i}" for i in range(4, 10)]
        assert s.end().total_turns == 20
        assert s.consolidation(PATIENT_S).done_turns == 20


def test_a_server_that_is_gone_at_the_end_is_told_and_hides_no_exception(tmp_path, caplog):
    target = nobody()
    with caplog.at_level(logging.WARNING, "memsvc_client"), client_of(target, timeout_s=0.2) as client:
        client._core.write_timeout_s = 0.3
        s = client.session("s")

        def body() -> None:
            with s:
                s.user("hidden words")
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            body()
        assert s.degraded[0] in ("SERVER_UNAVAILABLE", "SERVER_TIMEOUT")
        assert s.degraded[-1] == "END_UNACKNOWLEDGED"
        assert "the end of a session is not acknowledged; 1 turns and outputs wait" in caplog.text
        assert "hidden" not in caplog.text
        with client.session("quiet"):
            pass  # no exception of its own either
        client._core.write_timeout_s = PATIENT_S
        with serving(target, tmp_path / "data"):  # the end is still on its way
            done = s.consolidation(PATIENT_S)
            assert (done.state, done.total_turns) == ("done", 1)
            assert s.degraded == []


def test_an_exit_after_an_end_that_had_no_answer_does_not_wait_again():
    with client_of(nobody(), timeout_s=0.1) as client, client.session() as s:
        client._core.write_timeout_s = 0.2
        assert s.end() is None
        client._core.write_timeout_s = 100_000.0  # the test's own limit would tell
    assert s.degraded[-1] == "END_UNACKNOWLEDGED"


def test_a_client_that_closes_without_a_server_names_what_is_lost(caplog):
    with caplog.at_level(logging.WARNING, "memsvc_client"):
        with client_of(nobody(), timeout_s=0.1, write_timeout_s=0.1) as client, client.session() as s:
            s.append({"role": "user", "content": f"hidden {i}"} for i in range(3))
            s.tool("ls", "hidden")
        assert [(d.kind, d.first, d.count, d.cause) for d in s.dropped] == [
            ("turns", 1, 3, "CLIENT_CLOSED"),
            ("tool_outputs", 1, 1, "CLIENT_CLOSED"),
        ]
        assert "END_UNACKNOWLEDGED" in s.degraded
        assert "hidden" not in caplog.text


def test_with_an_open_breaker_nothing_waits():
    now_s = [100.0]
    with client_of(nobody(), write_timeout_s=0.1, timer_s=lambda: now_s[0]) as client:
        for _ in range(3):
            client._core.breaker.failed()
        s = client.session().start()  # timeout_s is a minute: the test's own limit would tell
        assert s.degraded[0] in ("SERVER_UNAVAILABLE", "SERVER_TIMEOUT")
        assert s.context("x").degraded == ["CIRCUIT_OPEN"]
        assert client.context("x").degraded == ["CIRCUIT_OPEN"]


def test_the_async_session_goes_on_without_a_server_too(tmp_path):
    target = nobody()

    async def failing(t: AsyncSession) -> None:
        async with t:
            await t.user("lost")
            raise KeyError("mine")

    async def main() -> None:
        options = {"timeout_s": 0.3, "write_timeout_s": PATIENT_S}
        async with AsyncMemoryClient(target, user_id="u", **options) as client:
            s = await client.session("s").start()
            await s.user("turn 0")
            await s.tool("ls", "a.txt")
            assert (await s.context()).source == "none"
            assert (await s.recalled()).source == "none"
            assert s.degraded[0] in ("SERVER_UNAVAILABLE", "SERVER_TIMEOUT")
            with serving(target, tmp_path / "data"):
                assert await s.flush(PATIENT_S)
                await s.user("turn 1")
                state = await s.state()
                assert [turn.content for turn in state.window] == ["turn 0", "turn 1"]
                assert len(state.tool_outputs) == 1
                assert s.degraded == []
                assert (await s.context(timeout_s=PATIENT_S)).source == "server"
            client._core.write_timeout_s = 0.3
            stale = await s.context("gone again")
            assert (stale.source, "turn 1" in stale.text) == ("cache", True)
            t = client.session("t")
            with pytest.raises(KeyError, match="mine"):
                await failing(t)
            assert t.degraded[-1] == "END_UNACKNOWLEDGED"
        assert [(d.kind, d.count, d.cause) for d in t.dropped] == [("turns", 1, "CLIENT_CLOSED")]

    asyncio.run(main())
