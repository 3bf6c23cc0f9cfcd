"""A command against an address where nobody answers says so before it would give up its own call."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from concurrent import futures

import grpc
import pytest

from memsvc.cli.connecting import check_reachable
from memsvc_client import Unavailable

LIMIT_S = 60.0


@pytest.fixture
def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def listening(port: int) -> grpc.Server:
    server = grpc.server(futures.ThreadPoolExecutor(1))
    assert server.add_insecure_port(f"127.0.0.1:{port}") == port
    server.start()
    return server


@pytest.mark.parametrize(
    "arguments",
    [["remember", "x"], ["facts", "set", "k", "1"], ["ingest", "-"], ["session", "end", "s"], ["recall", "x"]],
    ids=" ".join,
)
def test_a_refused_connection_is_told_with_the_fix(free_port, arguments):
    command = [sys.executable, "-m", "memsvc", *arguments, "--server", f"127.0.0.1:{free_port}"]
    said = '{"speaker": "user", "content": "x"}\n'
    done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 1
    assert f"UNAVAILABLE: nothing answers at 127.0.0.1:{free_port}; is `memsvc serve` running" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_begins_to_listen_is_waited_for(free_port):
    with pytest.raises(Unavailable):
        check_reachable(f"127.0.0.1:{free_port}", 0.2)
    raised: list[Unavailable] = []

    def check() -> None:
        try:
            check_reachable(f"127.0.0.1:{free_port}", LIMIT_S)
        except Unavailable as error:
            raised.append(error)

    waiting = threading.Thread(target=check)
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    server = listening(free_port)
    waiting.join(LIMIT_S)
    server.stop(None)
    assert not waiting.is_alive()
    assert raised == []


def test_a_slow_server_is_left_to_the_calls_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection and says nothing
        check_reachable(f"127.0.0.1:{silent.getsockname()[1]}", 0.5)
