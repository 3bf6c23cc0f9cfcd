"""How commands reach a server: the token and the CA of their calls, and calls of AdminService.

Purpose: a token comes from the environment or a file, never from the command line, where every user of the machine
could read it.

Threading: one command a process.

Rejected: a `--token` option (argv is public).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import grpc
import typer

from memsvc.config import ClientSettings
from memsvc.errors import ConfigInvalid
from memsvc.v1 import admin_service_pb2_grpc as arpc
from memsvc_client.core import LOOPBACK
from memsvc_client.errors import from_rpc_error

TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="File that holds the token (env MEMSVC_TOKEN_FILE, MEMSVC_TOKEN).")
]


def token(token_file: Path | None = None) -> str:
    """The token of the calls, "" for none: the option's file, else MEMSVC_TOKEN, else MEMSVC_TOKEN_FILE. Raises
    ConfigInvalid for a file that can't be read.
    """
    settings = ClientSettings()
    given = "" if token_file else settings.token.get_secret_value().strip()
    path = token_file or settings.token_file
    if given or path is None:
        return given
    return _read(path, "token_file").decode("utf-8", "replace").strip()


def root_certificates() -> bytes | None:
    """The CA of the server's certificate, or None without TLS. Raises ConfigInvalid for a file that can't be read."""
    path = ClientSettings().server_ca
    return None if path is None else _read(path, "server_ca")


def ask_admin(server: str, method: str, request: Any, timeout_s: float | None, token_file: Path | None = None) -> Any:
    """One call of AdminService. Raises a MemsvcClientError, and ConfigInvalid for a token that would travel in the
    clear.
    """
    target = server or ClientSettings().server
    secret, roots = token(token_file), root_certificates()
    options = [("grpc.enable_http_proxy", 0)]
    if roots is not None:
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(roots), options)
    elif secret and not target.startswith(LOOPBACK):
        raise ConfigInvalid(
            f"a token must not travel to {target} in the clear: set MEMSVC_SERVER_CA", setting="server_ca"
        )
    else:
        channel = grpc.insecure_channel(target, options)
    with channel:
        metadata = (("authorization", f"Bearer {secret}"),) if secret else ()
        try:
            return getattr(arpc.AdminServiceStub(channel), method)(request, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error


def _read(path: Path, setting: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigInvalid(f"{setting} {path} can't be read: {error.strerror}", setting=setting) from error
