"""Commands that run the service: serve, demo, version.

Purpose: start a server in this process until a signal, or show the main job with one.

Threading: signals reach the main thread, which waits for them; the service has its own threads.

Rejected: a daemon mode (systemd, launchd and containers do that better).
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from memsvc import __version__
from memsvc.cli.common import Bar, DataDir, app, examples, out, progress, server_settings

SIGNAL_POLL_S = 0.2


@app.command(epilog=examples("memsvc serve", "memsvc serve --data-dir ~/memories --listen 127.0.0.1:50051"))
def serve(
    data_dir: DataDir = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT; port 0 takes a free one (env MEMSVC_LISTEN).")] = None,
    require_token: Annotated[
        bool | None, typer.Option("--require-token", help="Take calls with a token only (env MEMSVC_REQUIRE_TOKEN).")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="PEM certificate chain; turns TLS on (env MEMSVC_TLS_CERT).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM key of the certificate (env MEMSVC_TLS_KEY).")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="PEM CAs of client certificates; each client then needs one.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model directory; the default model if unset (env MEMSVC_MODEL).")
    ] = None,
    latency_budget_ms: Annotated[float | None, typer.Option(help="Budget of a recall that names none.")] = None,
    worker_threads: Annotated[int | None, typer.Option(help="Calls served at once.")] = None,
    admission_queue_max: Annotated[
        int | None, typer.Option(help="Calls that may wait before heavy ones are refused; 0: any number.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = None,
) -> None:
    """Run the service until SIGTERM or Ctrl-C. Prints `ready grpc=HOST:PORT data=DIR` when it can answer."""
    from memsvc.app import Service

    settings = server_settings(
        data_dir=data_dir,
        listen=listen,
        require_token=require_token,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_client_ca=tls_client_ca,
        model=model,
        latency_budget_ms=latency_budget_ms,
        worker_threads=worker_threads,
        admission_queue_max=admission_queue_max,
        log_level=log_level,
    )
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    with progress() as display:
        service = Service(settings, Bar(display))
        address = service.start()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    sys.stdout.write(f"ready grpc={address} data={settings.data_dir}\n")
    sys.stdout.flush()
    while not stop.wait(SIGNAL_POLL_S):
        pass  # the system may hand a signal to any thread; its handler runs when the main thread wakes
    service.close()


@app.command(epilog=examples("memsvc demo"))
def demo() -> None:
    """Show the main job: one tool teaches a fresh server, another tool recalls."""
    from memsvc.demo import run_demo

    run_demo(out)


@app.command(epilog=examples("memsvc version"))
def version() -> None:
    """Print the version."""
    out.print(__version__, highlight=False)
