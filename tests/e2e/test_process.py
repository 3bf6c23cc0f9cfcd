"""The real process: `python -m memsvc serve`, its signals, its lock, and the command line against it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memsvc_client import MemoryClient

LIMIT_S = 60.0
COMMAND = [sys.executable, "-m", "memsvc"]


class Server:
    """A serving process; `address` after its ready line."""

    def __init__(self, data_dir: Path) -> None:
        arguments = ["serve", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0", "--log-level", "WARNING"]
        self.process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline().strip()
        self.address = self.ready.partition("grpc=")[2].partition(" ")[0]

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        code = self.process.wait(LIMIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Server]]:
    started: list[Server] = []

    def start(data_dir: Path) -> Server:
        started.append(Server(data_dir))
        return started[-1]

    yield start
    for server in started:
        server.end(signal.SIGKILL)


def client_of(server: Server, **options: Any) -> MemoryClient:
    return MemoryClient(server.address, user_id="u", **{"timeout_s": 20.0, "write_timeout_s": 20.0, **options})


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=LIMIT_S, **options)


def test_ready_line_sigterm_and_lock(serve, tmp_path):
    server = serve(tmp_path / "data")
    assert server.ready == f"ready grpc={server.address} data={tmp_path / 'data'}"
    second = run("serve", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    assert second.returncode == 1
    assert "STORE_LOCKED" in second.stderr
    assert str(server.process.pid) in second.stderr
    assert "Traceback" not in second.stderr
    with client_of(server) as client:
        client.write("still served after the refusal")
        assert len(client.recall("served")) == 1
    assert server.end(signal.SIGTERM) == 0


def test_kill_9_then_restart_finds_every_acknowledged_write(serve, tmp_path):
    server = serve(tmp_path / "data")
    acknowledged: list[str] = []
    with client_of(server) as client:
        acknowledged += [client.write(f"single {i}").memory_id for i in range(50)]
        acknowledged += [r.memory_id for r in client.batch_write(f"batched {i}" for i in range(150))]
        gone = client.write("forgotten before the crash").memory_id
        client.forget(gone)
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    server = serve(tmp_path / "data")
    with client_of(server) as client:
        assert [m.memory_id for m in client.list()] == acknowledged[::-1]
        assert client.recall("single 42")[0].content == "single 42"
        assert gone not in {hit.memory_id for hit in client.recall("forgotten before the crash", top_k=100)}
    assert json.loads(run("verify", "--server", server.address, "-o", "json").stdout) == {
        "problems": [],
        "memory_count": 201,
    }


def test_recall_of_a_frozen_server_returns_within_its_timeout_from_the_cache(serve, tmp_path):
    server = serve(tmp_path / "data")
    with client_of(server) as client:
        client.write("the frozen lake")
        assert client.recall("frozen lake").source == "server"
        os.kill(server.process.pid, signal.SIGSTOP)
        started_s = time.monotonic()
        answer = client.recall("lake under ice", timeout_s=0.3)
        assert time.monotonic() - started_s < 5.0
        assert (answer.source, [hit.content for hit in answer]) == ("cache", ["the frozen lake"])
        assert answer.degraded[0] == "SERVER_TIMEOUT"
        os.kill(server.process.pid, signal.SIGCONT)
        assert client.recall("lake under the ice").source == "server"
    assert server.end() == 0


def test_command_line_against_a_server_and_its_backup(serve, tmp_path):
    server = serve(tmp_path / "data")
    environment = {**os.environ, "MEMSVC_SERVER": server.address, "MEMSVC_USER_ID": "u"}

    def ask(*arguments: str) -> Any:
        done = run(*arguments, "-o", "json", env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    written = ask(
        "remember", "报告用 PDF [bold]格式[/bold]", "--type", "preference", "--tag", "a", "--subject", "report"
    )
    memory_id = written["memory_id"]
    assert written["outcome"] == "created"
    found = ask("recall", "报告格式")
    assert [hit["memory_id"] for hit in found["hits"]] == [memory_id]
    assert found["source"] == "server"
    assert ask("get", memory_id)["content"] == "报告用 PDF [bold]格式[/bold]"
    assert ask("update", memory_id, "--content", "报告用 HTML", "--reason", "changed")["version"] == 2
    assert [m["content"] for m in ask("list", "--type", "preference")] == ["报告用 HTML"]
    assert ask("list", "-u", "another") == []
    kept = ask("remember", "stays in the backup")["memory_id"]
    assert ask("forget", memory_id) == {"forgotten_count": 1, "already_forgotten_ids": []}
    assert [c["kind"] for c in ask("history", memory_id)] == ["forgotten", "updated", "created"]
    assert ask("verify") == {"problems": [], "memory_count": 2}
    assert ask("backup", str(tmp_path / "copy"))["size_bytes"] > 0
    stats = ask("stats")
    assert (int(stats["memory_count"]), int(stats["active_count"])) == (2, 1)

    missing = run("get", "mem_00000000-0000-7000-8000-000000000000", env=environment)
    assert missing.returncode == 1
    assert "NOT_FOUND" in missing.stderr
    assert run("backup", str(tmp_path / "copy"), env=environment).returncode == 1
    assert server.end() == 0

    copy = serve(tmp_path / "copy")
    with client_of(copy) as client:
        assert [m.memory_id for m in client.list()] == [kept]
        assert client.recall("backup")[0].memory_id == kept
    assert copy.end() == 0
    offline = run("verify", "--data-dir", str(tmp_path / "copy"), "-o", "json")
    assert json.loads(offline.stdout) == {"problems": [], "memory_count": 2}
