"""Commands that look after a store: stats, verify, backup, reindex.

Purpose: AdminService of a running server; `verify` and `reindex` also open a store themselves where it is free.

Threading: one command a process.

Rejected: opening the store for reads beside a server (it is locked, rightly).
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from memsvc.cli.common import (
    CLI_TIMEOUT_S,
    Bar,
    DataDir,
    Format,
    Output,
    Server,
    app,
    escaped,
    examples,
    out,
    print_json,
    progress,
    server_settings,
)
from memsvc.cli.connecting import ask_admin
from memsvc.config import Settings
from memsvc.errors import MemsvcError
from memsvc.v1 import admin_service_pb2 as apb

REINDEX_POLL_S = 0.5


@app.command(epilog=examples("memsvc stats"))
def stats(server: Server = "", output: Format = Output.text) -> None:
    """Show counts, sizes and the largest namespaces of a running server."""
    from google.protobuf.json_format import MessageToDict

    answer = ask_admin(server, "GetStats", apb.GetStatsRequest(), CLI_TIMEOUT_S)
    values = MessageToDict(answer, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    if output is Output.json:
        print_json(values)
        return
    table = Table(show_header=False)
    for name, value in values.items():
        if name != "namespaces":
            table.add_row(name, escaped(str(value)))
    out.print(table)
    largest = Table("scope", "owner", "memories", "recallable", "sequence")
    for entry in answer.namespaces[:20]:
        scope = entry.at.namespace.scope
        name = MessageToDict(entry.at.namespace).get("scope", str(scope)).removeprefix("SCOPE_").lower()
        numbers = (entry.memory_count, entry.active_count, entry.at.sequence)
        largest.add_row(name, escaped(entry.at.namespace.owner), *(str(number) for number in numbers))
    out.print(largest)


@app.command(epilog=examples("memsvc verify", "memsvc verify --data-dir ~/memories"))
def verify(data_dir: DataDir = None, server: Server = "", output: Format = Output.text) -> None:
    """Check that records, log, vectors and segments agree: of a running server, or of --data-dir with none running."""
    if data_dir is None:
        answer = ask_admin(server, "Verify", apb.VerifyRequest(), None)
        problems = [{"where": p.where, "what": p.what} for p in answer.problems]
        count = answer.memory_count
    else:
        problems, count = _verify_offline(server_settings(data_dir=data_dir))
    if output is Output.json:
        print_json({"problems": problems, "memory_count": count})
    else:
        for problem in problems:
            out.print(f"{problem['where']}: {problem['what']}", markup=False, highlight=False)
        out.print(f"{count} memories checked, {len(problems)} problems")
    if problems:
        raise typer.Exit(1)


def _verify_offline(settings: Settings) -> tuple[list[dict[str, str]], int]:
    from memsvc.app import SEGMENTS_DIR, open_engine
    from memsvc.memory import care

    engine = open_engine(settings)
    try:
        problems = [
            {"where": p.where, "what": p.what} for p in care.verify_store(engine, settings.data_dir / SEGMENTS_DIR)
        ]
        return problems, care.stats(engine).memory_count
    finally:
        engine.close()


@app.command(epilog=examples("memsvc backup /var/backups/memsvc-monday"))
def backup(
    directory: Annotated[Path, typer.Argument(help="Empty or new directory on the server's machine.")],
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Write a copy of a running server's store and open sessions; `memsvc serve --data-dir` opens it."""
    answer = ask_admin(server, "Backup", apb.BackupRequest(directory=str(directory.absolute())), None)
    if output is Output.json:
        print_json({"directory": str(directory), "size_bytes": answer.size_bytes})
    else:
        out.print(f"{answer.size_bytes} bytes in {directory}", highlight=False)


@app.command(epilog=examples("memsvc reindex --model ~/models/bge-m3", "memsvc reindex --data-dir ~/memories"))
def reindex(
    model: Annotated[str, typer.Option(help="Model directory to move to; the default model if unset.")] = "",
    data_dir: DataDir = None,
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Re-embed everything with another model. A running server goes on serving and switches at the end; with
    --data-dir the store is opened here (no server running). Interrupted, it resumes when started again.
    """
    with progress() as display:
        bar = Bar(display)
        if data_dir is not None:
            done, total = _reindex_offline(server_settings(data_dir=data_dir), model, bar)
        else:
            done, total = _reindex_online(server, model, bar)
    if output is Output.json:
        print_json({"done_count": done, "total_count": total})
    else:
        out.print(f"re-embedded: {done} of {total} memories")


def _reindex_online(server: str, model: str, bar: Bar) -> tuple[int, int]:
    directory = str(Path(model).absolute()) if model else ""
    status = ask_admin(server, "StartReindex", apb.StartReindexRequest(model_directory=directory), CLI_TIMEOUT_S).status
    pause = threading.Event()
    while status.state == apb.REINDEX_STATE_RUNNING:
        bar("re-embedding", status.done_count, status.total_count)
        pause.wait(REINDEX_POLL_S)
        status = ask_admin(server, "GetReindex", apb.GetReindexRequest(), CLI_TIMEOUT_S).status
    if status.state != apb.REINDEX_STATE_DONE:
        raise MemsvcError(f"the reindex stopped: {status.error}")
    return status.done_count, status.total_count


def _reindex_offline(settings: Settings, model: str, bar: Bar) -> tuple[int, int]:
    from memsvc.app import open_engine, open_model
    from memsvc.memory.reindex import Reindexer

    engine = open_engine(settings)
    try:
        embedder = open_model(model, bar)
        job = Reindexer(engine, embedder, lambda done, total: bar("re-embedding", done, total))
        job.run()
        embedder.close()
        return job.done_count, job.total_count
    finally:
        engine.close()
