"""How commands reach a server: the token and the CA of their calls, and calls of AdminService.

Purpose: a token comes from the environment or a file, never from the command line, where every user of the machine
could read it.

Threading: one command a process.

Rejected: a `--token` option (argv is public).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import grpc
import typer

from memsvc.config import ClientSettings
from memsvc.errors import ConfigInvalid
from memsvc.v1 import admin_service_pb2_grpc as arpc
from memsvc_client import Unavailable
from memsvc_client.core import LOOPBACK
from memsvc_client.errors import from_rpc_error

REACHABLE_WITHIN_S = 3.0  # a server that was started just before has this long to listen
CONNECT_EVERY_S = 0.1

TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="File that holds the token (env MEMSVC_TOKEN_FILE, MEMSVC_TOKEN).")
]


def token(token_file: Path | None = None) -> str:
    """The token of the calls, "" for none: the option's file, else MEMSVC_TOKEN, else MEMSVC_TOKEN_FILE. Raises
    ConfigInvalid for a file that can't be read or is empty.
    """
    settings = ClientSettings()
    given = "" if token_file else settings.token.get_secret_value().strip()
    path = token_file or settings.token_file
    if given or path is None:
        return given
    held = _read(path, "token_file").decode("utf-8", "replace").strip()
    if not held:
        raise ConfigInvalid(f"token_file {path} is empty", setting="token_file")
    return held


def root_certificates() -> bytes | None:
    """The CA of the server's certificate, or None without TLS. Raises ConfigInvalid for a file that can't be read."""
    path = ClientSettings().server_ca
    return None if path is None else _read(path, "server_ca")


def ask_admin(server: str, method: str, request: Any, timeout_s: float | None, token_file: Path | None = None) -> Any:
    """One call of AdminService; see `ask`."""
    return ask(arpc.AdminServiceStub, server, method, request, timeout_s, token_file)


def ask(
    stub: Callable[[grpc.Channel], Any],
    server: str,
    method: str,
    request: Any,
    timeout_s: float | None,
    token_file: Path | None = None,
) -> Any:
    """One call of a service. Raises a MemsvcClientError, and ConfigInvalid for a token that would travel in the
    clear.
    """
    target = server or ClientSettings().server
    secret, roots = token(token_file), root_certificates()
    if secret and roots is None and not target.startswith(LOOPBACK):
        raise ConfigInvalid(
            f"a token must not travel to {target} in the clear: set MEMSVC_SERVER_CA", setting="server_ca"
        )
    with _channel(target, roots) as channel:
        metadata = (("authorization", f"Bearer {secret}"),) if secret else ()
        try:
            return getattr(stub(channel), method)(request, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error


def check_reachable(target: str, within_s: float = REACHABLE_WITHIN_S) -> None:
    """Raises memsvc_client's Unavailable if the connection is refused and not taken within that time. A server that
    takes it and is slow passes: the call's own timeout is for that.
    """
    roots = root_certificates()
    until_s = time.monotonic() + within_s
    with _channel(
        target, roots, ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100)
    ) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check", None, None)
        while True:
            try:
                check(b"", timeout=max(until_s - time.monotonic(), 0.001))
                return
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    return
                if time.monotonic() >= until_s - CONNECT_EVERY_S:
                    how = "" if roots is None else f" over TLS: {error.details()}"
                    raise Unavailable(f"nothing answers at {target}{how}") from error
            time.sleep(CONNECT_EVERY_S)


def _channel(target: str, roots: bytes | None, *options: tuple[str, int]) -> grpc.Channel:
    """A channel to the server, over TLS where its CA is known; a proxy is no way to this machine."""
    given = [*options, ("grpc.enable_http_proxy", 0)] if target.startswith(LOOPBACK) else list(options)
    if roots is None:
        return grpc.insecure_channel(target, given)
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(roots), given)


def _read(path: Path, setting: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigInvalid(f"{setting} {path} can't be read: {error.strerror}", setting=setting) from error
