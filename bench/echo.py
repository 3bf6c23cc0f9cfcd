"""The floor: a plain gRPC echo with the server's own settings, in a process of its own.

`python -m bench.echo` prints `ready HOST:PORT` and serves until its standard input closes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import grpc

from memsvc.service.server import SERVER_OPTIONS


def serve() -> None:
    """Serves the echo."""
    from memsvc.config import Settings

    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    server = grpc.server(ThreadPoolExecutor(Settings().worker_threads), options=list(SERVER_OPTIONS))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", {"Say": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"ready 127.0.0.1:{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop(None).wait()


class EchoProcess:
    """The echo server as a child process; `call(channel)` makes a callable that says 32 bytes."""

    def __enter__(self) -> EchoProcess:
        command = [sys.executable, "-m", "bench.echo"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().split()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    @staticmethod
    def call(channel: grpc.Channel) -> Callable[[Any], Any]:
        say = channel.unary_unary("/bench.Echo/Say")
        return lambda _: say(b"x" * 32)


if __name__ == "__main__":
    serve()
