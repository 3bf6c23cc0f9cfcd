"""An OpenAI-compatible endpoint for tests: a real HTTP server that speaks the protocol, well and badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-" + "do-not-tell" * 2


class Endpoint:
    """Answers each request with the next of `answers`: (status, headers, body), or a function of the request that
    gives one, or an iterator of bytes that are sent as they come.
    """

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.paths: list[str] = []
        self.release = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append(body)
                endpoint.keys.append(self.headers.get("authorization", ""))
                endpoint.paths.append(self.path)
                answer = endpoint.answers.pop(0)
                self.close_connection = True
                try:
                    endpoint.send(self, answer(body) if callable(answer) else answer)
                except (BrokenPipeError, ConnectionResetError):
                    return  # who asked has gone

            def log_message(self, *_: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def send(self, handler: BaseHTTPRequestHandler, answer: Any) -> None:
        if not isinstance(answer, tuple):
            for piece in answer:
                handler.wfile.write(piece)
            return
        status, headers, raw = answer
        handler.send_response_only(status)
        for name, value in {"content-length": str(len(raw)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)

    def trickle(self, start: bytes, piece: bytes) -> Iterator[bytes]:
        """Never ends by itself, and never pauses long."""
        yield start
        while not self.release.wait(0.01):
            yield piece

    def asked(self) -> list[list[dict[str, Any]]]:
        """The data of each request."""
        return [json.loads(request["messages"][1]["content"]) for request in self.requests]

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


def said(content: Any, finish: Any = "stop", **message: Any) -> tuple[int, dict[str, str], bytes]:
    choice = {"finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return 200, {}, json.dumps({"choices": [choice]}).encode()
