"""Commands about what is learnt: ingest, conflicts list, conflicts resolve.

Purpose: hand a log of messages to the service and see its verdict on each; settle contradictions.

Threading: one command a process.

Rejected: request ids that follow from a file's content (an ingest after a forget would get an old answer).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from memsvc.cli.common import (
    LASTING_OWNERS,
    Bar,
    Call,
    app,
    err,
    escaped,
    examples,
    out,
    print_json,
    progress,
    read_file,
    say,
    shared,
)
from memsvc.cli.message_files import BadLine, Record, parse
from memsvc.cli.tables import ID, Column, memories_table, rows_table
from memsvc_client import IngestResult, InvalidArgument, MemsvcClientError, Verdict
from memsvc_client.learning import MESSAGES_MAX

INGEST_TIMEOUT_S = 600.0  # a part of 200 messages may wait for a slow endpoint
_INDEX = re.compile(r"messages\[(\d+)\]")

conflicts_app = typer.Typer(help="Contradictions that wait for a person.", no_args_is_help=True)
app.add_typer(conflicts_app, name="conflicts")


class Resolution(StrEnum):
    """How a contradiction is settled."""

    keep_newer = "keep-newer"
    keep_older = "keep-older"
    keep_both = "keep-both"


@dataclass
class Progressed:
    """How far an ingest came: verdicts by line, bad lines, and how many records are dealt with."""

    verdicts: list[tuple[int, Verdict]] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)
    done_count: int = 0

    def refuse(self, problem: BadLine) -> None:
        """Notes a bad line and tells it at once."""
        self.bad.append(problem)
        say(err, f"line {problem.line}: {problem.reason}")


def send(
    ingest: Callable[[list[dict[str, Any]]], IngestResult],
    records: Sequence[Record],
    so_far: Progressed,
    bar: Callable[[str, int, int], None],
) -> None:
    """Sends records in parts; `so_far` is true at any moment, also when this raises."""
    for start in range(0, len(records), MESSAGES_MAX):
        bar("judging", start, len(records))
        part = records[start : start + MESSAGES_MAX]
        _send_part(ingest, part, so_far)
        so_far.done_count += len(part)


def _send_part(
    ingest: Callable[[list[dict[str, Any]]], IngestResult], part: Sequence[Record], so_far: Progressed
) -> None:
    """One part; messages that the server names as wrong are told and left out, and the rest is sent again."""
    while part:
        try:
            result = ingest([record.fields for record in part])
        except InvalidArgument as error:
            refused = _refused(error, len(part))
            if not refused:
                raise
            for index, reason in sorted(refused.items()):
                so_far.refuse(BadLine(part[index].line, reason))
            part = [record for index, record in enumerate(part) if index not in refused]
            continue
        lines = (record.line for record in part)
        so_far.verdicts.extend(zip(lines, result.verdicts, strict=True))
        return


def _refused(error: InvalidArgument, count: int) -> dict[int, str]:
    """Reasons by index of the messages that an error names."""
    named = ((_INDEX.match(path), path) for path, _ in error.field_violations)
    return {
        int(match[1]): f"the server refuses it: {error.reason or error.code} at {path}"
        for match, path in named
        if match is not None and int(match[1]) < count
    }


@app.command(
    epilog=examples(
        "memsvc ingest chat.jsonl --session-id s42 --tool my-editor",
        "memsvc ingest chat.jsonl --dry-run",
        """echo '{"role": "user", "content": "From now on answer in English"}' | memsvc ingest -""",
    )
)
@shared
def ingest(
    call: Call,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE|-", help="Messages as JSON Lines or one JSON array; `-` reads standard input."),
    ],
    tool: Annotated[str, typer.Option(help="Name of the tool that the messages come from.")] = "",
    scope: Annotated[
        str | None, typer.Option(help="Scope of what is kept: session, agent, user, project or global.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Judge only; store nothing.")] = False,
) -> None:
    """Let the service judge messages of a conversation, oldest first, and store what is worth keeping.

    A message is an object with speaker or role (user, agent or assistant, tool, system), content, time (ISO 8601 with
    zone), tool_calls and message_id. --session-id says which conversation they belong to. A bad line is reported and
    left out; the exit code is 1 if there was one.
    """
    so_far = Progressed()
    records, bad = parse(read_file(file))
    for problem in bad:
        so_far.refuse(problem)
    needed = (*LASTING_OWNERS, *(("session_id",) if scope == "session" else ()))
    stopped: BaseException | None = None
    with call.client(call.owners(needed), INGEST_TIMEOUT_S) as client, progress() as display:
        bar = Bar(display) if len(records) > MESSAGES_MAX else _no_bar
        try:
            send(lambda part: client.ingest(part, tool=tool, scope=scope, dry_run=dry_run), records, so_far, bar)
        except (KeyboardInterrupt, MemsvcClientError) as error:
            stopped = error
    _print_verdicts(so_far, len(records), call)
    if stopped is not None:
        _tell_how_far(so_far, records)
    if isinstance(stopped, KeyboardInterrupt):
        raise typer.Exit(130)
    if stopped is not None:
        raise stopped
    if so_far.bad:
        raise typer.Exit(1)


def _no_bar(stage: str, done: int, total: int) -> None:
    """No progress is shown."""


def _tell_how_far(so_far: Progressed, records: Sequence[Record]) -> None:
    done, total = so_far.done_count, len(records)
    say(err, f"stopped: {done} of {total} messages were judged and acknowledged; these stay")
    if done < total:
        say(
            err,
            f"of the next {min(MESSAGES_MAX, total - done)} it is not known; go on from line {records[done].line}",
        )


def _print_verdicts(so_far: Progressed, total: int, call: Call) -> None:
    decisions = [verdict.decision for _, verdict in so_far.verdicts]
    counts = {name: decisions.count(name) for name in ("kept", "staged", "dropped")}
    if call.wants_json:
        print_json(
            {
                "message_count": total,
                "acknowledged_count": so_far.done_count,
                **{f"{name}_count": count for name, count in counts.items()},
                "verdicts": [{"line": line, **verdict.to_dict()} for line, verdict in so_far.verdicts],
                "bad_lines": [{"line": line, "reason": reason} for line, reason in so_far.bad],
            }
        )
        return
    if so_far.verdicts:
        out.print(verdicts_table(so_far.verdicts))
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    say(out, f"{told}, {len(so_far.bad)} bad lines" if so_far.bad else told)


def verdicts_table(verdicts: Sequence[tuple[int, Verdict]]) -> Table:
    """One message a row: line, verdict, stage, reason, what was made."""
    table = Table(expand=True)
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("stage", no_wrap=True)
    table.add_column("reason", ratio=1, overflow="fold")
    table.add_column("what was made", ratio=2, overflow="fold")
    for line, verdict in verdicts:
        stage = f"{verdict.stage} (fell back)" if verdict.fell_back else verdict.stage
        made = []
        for memory in verdict.memories:
            result = memory.result
            done = f"{result.outcome} {result.memory_id}: " if result is not None else ""
            made.append(f"{done}{memory.content} [{memory.type}]")
        cells = (verdict.decision, stage, verdict.reason, "\n".join(made))
        table.add_row(str(line), *(escaped(cell) for cell in cells))
    return table


@conflicts_app.command("list", epilog=examples("memsvc conflicts list", "memsvc conflicts list -p my-project -o json"))
@shared
def conflicts_list(
    call: Call,
    scope: Annotated[list[str] | None, typer.Option(help="Only these scopes.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", help="At most this many; 0: all.")] = 50,
) -> None:
    """List contradictions that wait for a person, newest first."""
    found: list[dict[str, Any]] = []
    with call.client() as client:
        for conflict in client.list_conflicts(scopes=scope):
            if limit and len(found) == limit:
                break
            found.append(conflict.to_dict())
    if call.wants_json:
        print_json(found)
        return
    if not found:
        say(out, "no contradictions wait")
        return
    columns = [*(Column(name, text=True) for name in ("newer", "older", "what differs")), ID]
    rows = [
        (one["newer"]["content"], "\n".join(m["content"] for m in one["older"]), one["summary"], one["memory_id"])
        for one in found
    ]
    out.print(rows_table(columns, rows, lines=True))


@conflicts_app.command(
    "resolve",
    epilog=examples(
        "memsvc conflicts resolve mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f keep-newer --reason 'asked the team'"
    ),
)
@shared
def conflicts_resolve(
    call: Call,
    conflict_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the newer memory (mem_...).")],
    resolution: Annotated[Resolution, typer.Argument(help="Which statement stands.")],
    reason: Annotated[str, typer.Option(help="Why; kept in the history.")] = "",
) -> None:
    """Settle a contradiction: the newer statement stands, the older ones stand again, or all stand."""
    with call.client() as client:
        settled = client.resolve_conflict(conflict_id, resolution.value.replace("-", "_"), reason=reason)
        memories = [memory.to_dict() for memory in settled]
    if call.wants_json:
        print_json(memories)
    else:
        out.print(memories_table(memories, scores=False))
