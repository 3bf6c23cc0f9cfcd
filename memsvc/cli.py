"""The command line.

Purpose: `memsvc serve` runs the service; the other commands talk to a running one through the Python client, or, where
the store must be free (`verify --data-dir`, `reindex --data-dir`), open it themselves. `-o json` prints one JSON value.

Threading: one command a process.

Rejected: opening the store for reads beside a server (it is locked, rightly).
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import signal
import sys
import threading
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import grpc
import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from memsvc import __version__
from memsvc.config import ClientSettings, Settings, default_model_cache_dir
from memsvc.errors import MemsvcError
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as arpc
from memsvc_client import MemoryClient, MemsvcClientError
from memsvc_client.errors import from_rpc_error

app = typer.Typer(
    name="memsvc",
    help="An independent memory service for AI agents. Start it with `memsvc serve`, try it with `memsvc demo`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
model_app = typer.Typer(help="Embedding models: build the default one, or pull one from a hub.", no_args_is_help=True)
app.add_typer(model_app, name="model")
err = Console(stderr=True)
out = Console()

CLI_TIMEOUT_S = 30.0
REINDEX_POLL_S = 0.5
SIGNAL_POLL_S = 0.2


class Output(StrEnum):
    """How to print."""

    text = "text"
    json = "json"


UserId = Annotated[str, typer.Option("-u", "--user-id", help="Whose memories (env MEMSVC_USER_ID).")]
ProjectId = Annotated[str, typer.Option("-p", "--project-id", help="Project (env MEMSVC_PROJECT_ID).")]
AgentId = Annotated[str, typer.Option("-a", "--agent-id", help="Agent (env MEMSVC_AGENT_ID).")]
SessionId = Annotated[str, typer.Option("-s", "--session-id", help="Session (env MEMSVC_SESSION_ID).")]
Server = Annotated[str, typer.Option("--server", help="HOST:PORT of the server (env MEMSVC_SERVER).")]
Format = Annotated[Output, typer.Option("-o", "--output", help="text or json.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Data directory (env MEMSVC_DATA_DIR).")]
MemoryId = Annotated[str, typer.Argument(help="mem_...")]


def main() -> None:
    """Entry point: errors become one line on stderr and exit code 1; Ctrl-C is 130."""
    try:
        app()
    except (MemsvcError, MemsvcClientError) as error:
        err.print(f"[red]error[/red] {error.reason or getattr(error, 'code', '')}: ", end="")
        err.print(error.message, markup=False, highlight=False)
        sys.exit(1)
    except ValidationError as error:
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"])
            err.print(f"error: setting {name}: {problem['msg']}", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _client(server: str, user: str, project: str, agent: str, session: str) -> MemoryClient:
    """A client for the command: options, then environment; nobody named means user "default"."""
    settings = ClientSettings()
    ids = {
        "user_id": user or settings.user_id,
        "project_id": project or settings.project_id,
        "agent_id": agent or settings.agent_id,
        "session_id": session or settings.session_id,
    }
    if not any(ids.values()):
        ids["user_id"] = "default"
    given: dict[str, Any] = {name: value for name, value in ids.items() if value}
    if settings.tenant:
        given["tenant"] = settings.tenant
    return MemoryClient(
        server or settings.server,
        tool="memsvc-cli",
        timeout_s=CLI_TIMEOUT_S,
        write_timeout_s=CLI_TIMEOUT_S,
        recent_count=0,
        **given,
    )


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and value != []}


def _time(text: str | None, option: str) -> dt.datetime | None:
    """An ISO 8601 time with zone. Raises typer.BadParameter for anything else, naming the fix."""
    if text is None:
        return None
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not an ISO 8601 time, e.g. 2025-01-10T09:00:00Z", param_hint=option
        ) from error
    if time.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone; add Z or +08:00", param_hint=option)
    return time


def _memories_table(memories: list[dict[str, Any]], scores: bool) -> Table:
    table = Table(show_lines=False, expand=True)
    if scores:
        table.add_column("score", justify="right", no_wrap=True)
    for name in ("type", "scope"):
        table.add_column(name, no_wrap=True)
    table.add_column("content", ratio=1, overflow="fold")
    if scores:
        table.add_column("why", no_wrap=True)
    table.add_column("id", no_wrap=True, style="dim")
    for memory in memories:
        state = "" if memory["status"] == "active" else f" [{memory['status']}]"
        cells = [memory["type"], memory["scope"], memory["content"] + state]
        if scores:
            cells = [f"{memory['score']:.3f}", *cells, ",".join(memory["paths"])]
        table.add_row(*(_escaped(cell) for cell in cells), memory["memory_id"])
    return table


def _escaped(text: str) -> str:
    """Text of memories is data: no markup, no control characters reach the terminal."""
    clean = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    return clean.replace("[", "\\[")


@app.command()
def remember(
    content: Annotated[str, typer.Argument(help="The statement; `-` reads it from standard input.")],
    type: Annotated[str | None, typer.Option("-t", "--type", help="fact, preference, decision, event or rule.")] = None,
    layer: Annotated[str | None, typer.Option(help="episodic, semantic or procedural.")] = None,
    scope: Annotated[str | None, typer.Option(help="session, agent, user, project or global.")] = None,
    subject: Annotated[str | None, typer.Option(help="Key of what it is about, e.g. report.format.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A label; may be repeated.")] = None,
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    occur_time: Annotated[str | None, typer.Option(help="When it happened, ISO 8601 with zone.")] = None,
    expire_time: Annotated[str | None, typer.Option(help="When it stops being recalled.")] = None,
    supersedes: Annotated[
        list[str] | None, typer.Option(help="Id of a memory that it replaces; may be repeated.")
    ] = None,
    user_id: UserId = "",
    project_id: ProjectId = "",
    agent_id: AgentId = "",
    session_id: SessionId = "",
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Store a memory."""
    text = sys.stdin.read() if content == "-" else content
    fields = _given(
        type=type,
        layer=layer,
        scope=scope,
        subject=subject,
        tags=tag,
        importance=importance,
        occur_time=_time(occur_time, "--occur-time"),
        expire_time=_time(expire_time, "--expire-time"),
        supersedes=supersedes,
    )
    with _client(server, user_id, project_id, agent_id, session_id) as client:
        result = client.write(text, **fields)
    if output is Output.json:
        _print_json(result.to_dict())
    else:
        out.print(f"{result.outcome} {result.memory_id}", highlight=False)


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="What to look for; empty: the most recent.")] = "",
    top_k: Annotated[int, typer.Option("-k", "--top-k", help="At most this many; at most 100.")] = 8,
    type: Annotated[list[str] | None, typer.Option("-t", "--type", help="Only these types.")] = None,
    layer: Annotated[list[str] | None, typer.Option(help="Only these layers.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="Only these scopes.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with all of these tags.")] = None,
    since: Annotated[str | None, typer.Option(help="Only what happened at or after this time.")] = None,
    until: Annotated[str | None, typer.Option(help="Only what happened at or before this time.")] = None,
    as_of: Annotated[str | None, typer.Option(help="The state as it was at this time.")] = None,
    include_inactive: Annotated[
        bool, typer.Option("--include-inactive", help="Also forgotten, superseded, ...")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print every score component and the timings.")] = False,
    user_id: UserId = "",
    project_id: ProjectId = "",
    agent_id: AgentId = "",
    session_id: SessionId = "",
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Find the memories that matter for a question."""
    start, end = _time(since, "--since"), _time(until, "--until")
    options = _given(
        types=type,
        layers=layer,
        scopes=scope,
        tags_all=tag,
        occur_time=(start, end) if start or end else None,
        as_of=_time(as_of, "--as-of"),
    )
    with _client(server, user_id, project_id, agent_id, session_id) as client:
        hits = client.recall(query, top_k=top_k, include_inactive=include_inactive, **options)
        found = [hit.to_dict() for hit in hits]
    if hits.source == "none":
        raise MemsvcError(f"no answer from the server ({', '.join(hits.degraded)}); is `memsvc serve` running?")
    if output is Output.json:
        _print_json({"hits": found, "degraded": hits.degraded, "source": hits.source, "timings": hits.timings})
        return
    out.print(_memories_table(found, scores=True) if found else "nothing found")
    if explain:
        out.print(components_table(found))
        out.print(f"timings {hits.timings}", highlight=False)
    if hits.degraded:
        err.print(f"degraded: {', '.join(hits.degraded)}")


def components_table(found: list[dict[str, Any]]) -> Table:
    """Score components of hits."""
    names = ("vector", "lexical", "exact", "time", "importance", "neighbour", "cosine", "bm25")
    table = Table("content", *names)
    for hit in found:
        table.add_row(_escaped(hit["content"][:40]), *(f"{hit['components'][name]:.3f}" for name in names))
    return table


@app.command()
def get(
    memory_id: MemoryId,
    version: Annotated[int, typer.Option(help="A version; the current one by default.")] = 0,
    user_id: UserId = "",
    project_id: ProjectId = "",
    agent_id: AgentId = "",
    session_id: SessionId = "",
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Show one memory."""
    with _client(server, user_id, project_id, agent_id, session_id) as client:
        memory = client.get(memory_id, version=version).to_dict()
    _print_memory(memory, output)


def _print_memory(memory: dict[str, Any], output: Output) -> None:
    if output is Output.json:
        _print_json(memory)
        return
    table = Table(show_header=False)
    for name, value in memory.items():
        if value not in (None, "", [], {}):
            table.add_row(name, _escaped(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    out.print(table)


@app.command(name="list")
def list_memories(
    limit: Annotated[int, typer.Option("-n", "--limit", help="At most this many; 0: all.")] = 50,
    type: Annotated[list[str] | None, typer.Option("-t", "--type", help="Only these types.")] = None,
    layer: Annotated[list[str] | None, typer.Option(help="Only these layers.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="Only these scopes.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with all of these tags.")] = None,
    subject: Annotated[list[str] | None, typer.Option(help="Only these subjects.")] = None,
    include_inactive: Annotated[
        bool, typer.Option("--include-inactive", help="Also forgotten, superseded, ...")
    ] = False,
    user_id: UserId = "",
    project_id: ProjectId = "",
    agent_id: AgentId = "",
    session_id: SessionId = "",
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """List memories, newest first."""
    options = _given(types=type, layers=layer, scopes=scope, tags_all=tag, subjects=subject)
    found: list[dict[str, Any]] = []
    with _client(server, user_id, project_id, agent_id, session_id) as client:
        for memory in client.list(include_inactive=include_inactive, **options):
            if limit and len(found) == limit:
                break
            found.append(memory.to_dict())
    if output is Output.json:
        _print_json(found)
    else:
        out.print(_memories_table(found, scores=False) if found else "nothing stored")


@app.command()
def update(
    memory_id: MemoryId,
    content: Annotated[str | None, typer.Option(help="New statement.")] = None,
    type: Annotated[str | None, typer.Option("-t", "--type", help="New type.")] = None,
    subject: Annotated[str | None, typer.Option(help="New subject.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="New tags, replacing all; may be repeated.")] = None,
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    confidence: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    expire_time: Annotated[str | None, typer.Option(help="When it stops being recalled.")] = None,
    etag: Annotated[str, typer.Option(help="Refuse if the memory has changed since it had this etag.")] = "",
    reason: Annotated[str, typer.Option(help="Why; kept in the history.")] = "",
    user_id: UserId = "",
    project_id: ProjectId = "",
    agent_id: AgentId = "",
    session_id: SessionId = "",
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Change fields of a memory; the old version stays in its history."""
    fields = _given(
        content=content,
        type=type,
        subject=subject,
        tags=tag,
        importance=importance,
        confidence=confidence,
        expire_time=_time(expire_time, "--expire-time"),
    )
    with _client(server, user_id, project_id, agent_id, session_id) as client:
        memory = client.update(memory_id, etag=etag, reason=reason, **fields).to_dict()
    _print_memory(memory, output)


@app.command()
def forget(
    memory_id: Annotated[list[str] | None, typer.Argument(help="Ids (mem_...).")] = None,
    all: Annotated[
        bool, typer.Option("--all", help="Everything of the named owners (with --scope, --tag: that).")
    ] = False,
    scope: Annotated[list[str] | None, typer.Option(help="With --all: only these scopes.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="With --all: only with all of these tags.")] = None,
    reason: Annotated[str, typer.Option(help="Why; kept in the history.")] = "",
    yes: Annotated[bool, typer.Option("-y", "--yes", help="With --all: don't ask.")] = False,
    user_id: UserId = "",
    project_id: ProjectId = "",
    agent_id: AgentId = "",
    session_id: SessionId = "",
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Take memories out of every recall. The text is kept for audit."""
    if bool(memory_id) == all:
        raise typer.BadParameter("name ids, or say --all")
    if all and not yes:
        typer.confirm("Forget everything that matches?", abort=True)
    with _client(server, user_id, project_id, agent_id, session_id) as client:
        if all:
            result = client.forget_all(scopes=scope, reason=reason, **_given(tags_all=tag))
        else:
            result = client.forget(memory_id or [], reason=reason)
    if output is Output.json:
        _print_json(result.to_dict())
    else:
        out.print(f"forgotten: {result.forgotten_count}, before already: {len(result.already_forgotten_ids)}")


@app.command()
def history(
    memory_id: MemoryId,
    user_id: UserId = "",
    project_id: ProjectId = "",
    agent_id: AgentId = "",
    session_id: SessionId = "",
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Show every version of a memory and why it changed."""
    with _client(server, user_id, project_id, agent_id, session_id) as client:
        changes = [change.to_dict() for change in client.history(memory_id)]
    if output is Output.json:
        _print_json(changes)
        return
    table = Table("time", "change", "version", "actor", "reason", "content")
    for change in changes:
        after = change["after"]
        cells = (
            change["time"],
            change["kind"],
            str(after["version"]),
            change["actor"],
            change["reason"],
            after["content"],
        )
        table.add_row(*(_escaped(cell) for cell in cells))
    out.print(table)


# -- the operator's side -----------------------------------------------------------------------------------------


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err, transient=True)


class _Bar:
    """A progress bar that follows (stage, done, total) calls."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None)

    def __call__(self, stage: str, done: int, total: int) -> None:
        self._progress.update(self._task, description=stage, completed=done, total=total or None)


def _settings(**given: Any) -> Settings:
    return Settings(**{name: value for name, value in given.items() if value is not None})


@app.command()
def serve(
    data_dir: DataDir = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT; port 0 takes a free one (env MEMSVC_LISTEN).")] = None,
    model: Annotated[
        str | None, typer.Option(help="Model directory; the default model if unset (env MEMSVC_MODEL).")
    ] = None,
    latency_budget_ms: Annotated[float | None, typer.Option(help="Budget of a recall that names none.")] = None,
    worker_threads: Annotated[int | None, typer.Option(help="Calls served at once.")] = None,
    log_level: Annotated[str | None, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = None,
) -> None:
    """Run the service until SIGTERM or Ctrl-C. Prints `ready grpc=HOST:PORT data=DIR` when it can answer."""
    from memsvc.app import Service

    settings = _settings(
        data_dir=data_dir,
        listen=listen,
        model=model,
        latency_budget_ms=latency_budget_ms,
        worker_threads=worker_threads,
        log_level=log_level,
    )
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    with _progress() as progress:
        service = Service(settings, _Bar(progress))
        address = service.start()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    sys.stdout.write(f"ready grpc={address} data={settings.data_dir}\n")
    sys.stdout.flush()
    while not stop.wait(SIGNAL_POLL_S):
        pass  # the system may hand a signal to any thread; its handler runs when the main thread wakes
    service.close()


@app.command()
def demo() -> None:
    """Show the main job: one tool teaches a fresh server, another tool recalls."""
    from memsvc.demo import run_demo

    run_demo(out)


def _admin(server: str) -> tuple[grpc.Channel, arpc.AdminServiceStub]:
    channel = grpc.insecure_channel(server or ClientSettings().server, [("grpc.enable_http_proxy", 0)])
    return channel, arpc.AdminServiceStub(channel)


def _ask(server: str, method: str, request: Any, timeout_s: float | None) -> Any:
    """One call of AdminService. Raises a MemsvcClientError."""
    channel, stub = _admin(server)
    with channel:
        try:
            return getattr(stub, method)(request, timeout=timeout_s)
        except grpc.RpcError as error:
            raise from_rpc_error(error) from error


@app.command()
def stats(server: Server = "", output: Format = Output.text) -> None:
    """Show counts, sizes and the largest namespaces of a running server."""
    from google.protobuf.json_format import MessageToDict

    answer = _ask(server, "GetStats", apb.GetStatsRequest(), CLI_TIMEOUT_S)
    values = MessageToDict(answer, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    if output is Output.json:
        _print_json(values)
        return
    table = Table(show_header=False)
    for name, value in values.items():
        if name != "namespaces":
            table.add_row(name, _escaped(str(value)))
    out.print(table)
    largest = Table("scope", "owner", "memories", "recallable", "sequence")
    for entry in answer.namespaces[:20]:
        scope = entry.at.namespace.scope
        name = MessageToDict(entry.at.namespace).get("scope", str(scope)).removeprefix("SCOPE_").lower()
        numbers = (entry.memory_count, entry.active_count, entry.at.sequence)
        largest.add_row(name, _escaped(entry.at.namespace.owner), *(str(number) for number in numbers))
    out.print(largest)


@app.command()
def verify(data_dir: DataDir = None, server: Server = "", output: Format = Output.text) -> None:
    """Check that records, log, vectors and segments agree: of a running server, or of --data-dir with none running."""
    if data_dir is None:
        answer = _ask(server, "Verify", apb.VerifyRequest(), None)
        problems = [{"where": p.where, "what": p.what} for p in answer.problems]
        count = answer.memory_count
    else:
        problems, count = _verify_offline(_settings(data_dir=data_dir))
    if output is Output.json:
        _print_json({"problems": problems, "memory_count": count})
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


@app.command()
def backup(
    directory: Annotated[Path, typer.Argument(help="Empty or new directory on the server's machine.")],
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Write a consistent copy of a running server's store; `memsvc serve --data-dir` opens it."""
    answer = _ask(server, "Backup", apb.BackupRequest(directory=str(directory.absolute())), None)
    if output is Output.json:
        _print_json({"directory": str(directory), "size_bytes": answer.size_bytes})
    else:
        out.print(f"{answer.size_bytes} bytes in {directory}", highlight=False)


@app.command()
def reindex(
    model: Annotated[str, typer.Option(help="Model directory to move to; the default model if unset.")] = "",
    data_dir: DataDir = None,
    server: Server = "",
    output: Format = Output.text,
) -> None:
    """Re-embed everything with another model. A running server goes on serving and switches at the end; with
    --data-dir the store is opened here (no server running). Interrupted, it resumes when started again.
    """
    with _progress() as progress:
        bar = _Bar(progress)
        if data_dir is not None:
            done, total = _reindex_offline(_settings(data_dir=data_dir), model, bar)
        else:
            done, total = _reindex_online(server, model, bar)
    if output is Output.json:
        _print_json({"done_count": done, "total_count": total})
    else:
        out.print(f"re-embedded: {done} of {total} memories")


def _reindex_online(server: str, model: str, bar: _Bar) -> tuple[int, int]:
    directory = str(Path(model).absolute()) if model else ""
    status = _ask(server, "StartReindex", apb.StartReindexRequest(model_directory=directory), CLI_TIMEOUT_S).status
    pause = threading.Event()
    while status.state == apb.REINDEX_STATE_RUNNING:
        bar("re-embedding", status.done_count, status.total_count)
        pause.wait(REINDEX_POLL_S)
        status = _ask(server, "GetReindex", apb.GetReindexRequest(), CLI_TIMEOUT_S).status
    if status.state != apb.REINDEX_STATE_DONE:
        raise MemsvcError(f"the reindex stopped: {status.error}")
    return status.done_count, status.total_count


def _reindex_offline(settings: Settings, model: str, bar: _Bar) -> tuple[int, int]:
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


@model_app.command("build")
def model_build() -> None:
    """Build the default model now instead of at the first start."""
    from memsvc.retrieval.default_model import ensure_default_model

    with _progress() as progress:
        path = ensure_default_model(default_model_cache_dir(), _Bar(progress))
    out.print(str(path), highlight=False)


@model_app.command("pull")
def model_pull(
    repo: Annotated[str, typer.Argument(help="REPO or REPO@REVISION on the Hugging Face hub, with an ONNX export.")],
    directory: Annotated[Path | None, typer.Option(help="Where to put it; below the cache directory if unset.")] = None,
) -> None:
    """Fetch an embedding model (needs the extra `hub`). Serve with it: `memsvc serve --model DIR`."""
    from memsvc.retrieval.model_files import pull_model

    name, _, revision = repo.partition("@")
    target = directory or default_model_cache_dir() / name.replace("/", "--")
    with _progress() as progress:
        endpoint = Settings().hf_endpoint
        path = pull_model(name, revision or None, target, endpoint=endpoint, progress=_Bar(progress))
    out.print(str(path), highlight=False)


@app.command()
def version() -> None:
    """Print the version."""
    out.print(__version__, highlight=False)
