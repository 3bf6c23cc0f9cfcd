"""Commands about single memories: remember, recall, get, list, update, forget, history.

Purpose: the everyday calls of the client, from a shell.

Threading: one command a process.

Rejected: a prompt for missing arguments (scripts would hang).
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from memsvc.cli.common import (
    Call,
    MemoryId,
    app,
    err,
    examples,
    given,
    moment,
    out,
    print_json,
    say,
    shared,
    utc_now,
)
from memsvc.cli.tables import Column, brief, components_table, memories_table, print_memory, rows_table
from memsvc.errors import MemsvcError
from memsvc_client import WriteResult


@app.command(
    epilog=examples(
        'memsvc remember "Reports go out as PDF" --type preference --subject report.format',
        "git log -1 --format=%B | memsvc remember - --type event -p my-project",
    )
)
@shared
def remember(
    call: Call,
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
) -> None:
    """Store a memory."""
    text = sys.stdin.read() if content == "-" else content
    fields = given(
        type=type,
        layer=layer,
        scope=scope,
        subject=subject,
        tags=tag,
        importance=importance,
        occur_time=moment(occur_time, "--occur-time"),
        expire_time=moment(expire_time, "--expire-time"),
        supersedes=supersedes,
    )
    with call.client() as client:
        result = client.write(text, **fields)
    if call.wants_json:
        print_json(result.to_dict())
    else:
        for line in told(result):
            say(out, line)


def told(result: WriteResult) -> list[str]:
    """What became of a write, in words: the outcome, and when nothing was simply created, which memory and why."""
    others = ", ".join(result.conflicting_ids) or "an older memory"
    why = f": {result.evidence['reason']}" if result.evidence.get("reason") else ""
    told_of = {
        "merged": "it was said before",
        "superseded": f"it replaces {others}",
        "rejected": f"{result.memory_id} stands against it",
        "contested": f"it stands in for {others} until somebody decides, see `memsvc conflicts list`",
        "staged": "it is kept aside until the same is said in another session",
        "pending": f"it waits for approval: memsvc review resolve {result.memory_id} approve",
    }
    first = f"{result.outcome} {result.memory_id}"
    return [first] if result.outcome not in told_of else [first, f"  {told_of[result.outcome]}{why}"]


@app.command(
    epilog=examples(
        'memsvc recall "which format do reports have?" -k 3 --explain',
        "memsvc recall --since 7d --type decision -o json",
    )
)
@shared
def recall(
    call: Call,
    query: Annotated[str, typer.Argument(help="What to look for; empty: the most recent.")] = "",
    top_k: Annotated[int, typer.Option("-k", "--top-k", help="At most this many; at most 100.")] = 8,
    type: Annotated[list[str] | None, typer.Option("-t", "--type", help="Only these types.")] = None,
    layer: Annotated[list[str] | None, typer.Option(help="Only these layers.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="Only these scopes.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with all of these tags.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only what happened at or after this time, or so long ago: 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only what happened at or before this time.")] = None,
    as_of: Annotated[str | None, typer.Option(help="The state as it was at this time.")] = None,
    include_inactive: Annotated[
        bool, typer.Option("--include-inactive", help="Also forgotten, superseded, ...")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print every score component and the timings.")] = False,
) -> None:
    """Find the memories that matter for a question."""
    now = utc_now()
    start, end = moment(since, "--since", now), moment(until, "--until", now)
    options = given(
        types=type,
        layers=layer,
        scopes=scope,
        tags_all=tag,
        occur_time=(start, end) if start or end else None,
        as_of=moment(as_of, "--as-of"),
    )
    with call.client() as client:
        hits = client.recall(query, top_k=top_k, include_inactive=include_inactive, **options)
        found = [hit.to_dict() for hit in hits]
    if hits.source == "none":
        raise MemsvcError(f"no answer from the server ({', '.join(hits.degraded)}); is `memsvc serve` running?")
    if call.wants_json:
        print_json({"hits": found, "degraded": hits.degraded, "source": hits.source, "timings": hits.timings})
        return
    out.print(memories_table(found, scores=True) if found else "nothing found")
    if explain:
        out.print(components_table(found))
        out.print(f"timings {hits.timings}", highlight=False)
    if hits.degraded:
        err.print(f"degraded: {', '.join(hits.degraded)}")


@app.command(epilog=examples("memsvc get mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f"))
@shared
def get(
    call: Call,
    memory_id: MemoryId,
    version: Annotated[int, typer.Option(help="A version; the current one by default.")] = 0,
) -> None:
    """Show one memory."""
    with call.client() as client:
        memory = client.get(memory_id, version=version).to_dict()
    print_memory(memory, call)


@app.command(
    name="list", epilog=examples("memsvc list --type rule -n 20", "memsvc list --include-inactive -n 0 -o json")
)
@shared
def list_memories(
    call: Call,
    limit: Annotated[int, typer.Option("-n", "--limit", help="At most this many; 0: all.")] = 50,
    type: Annotated[list[str] | None, typer.Option("-t", "--type", help="Only these types.")] = None,
    layer: Annotated[list[str] | None, typer.Option(help="Only these layers.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="Only these scopes.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with all of these tags.")] = None,
    subject: Annotated[list[str] | None, typer.Option(help="Only these subjects.")] = None,
    include_inactive: Annotated[
        bool, typer.Option("--include-inactive", help="Also forgotten, superseded, ...")
    ] = False,
) -> None:
    """List memories, newest first."""
    options = given(types=type, layers=layer, scopes=scope, tags_all=tag, subjects=subject)
    found: list[dict[str, Any]] = []
    with call.client() as client:
        for memory in client.list(include_inactive=include_inactive, **options):
            if limit and len(found) == limit:
                break
            found.append(memory.to_dict())
    if call.wants_json:
        print_json(found)
    else:
        out.print(memories_table(found, scores=False) if found else "nothing stored")


@app.command(
    epilog=examples(
        'memsvc update mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f --content "Reports go out as HTML" --reason "said so"'
    )
)
@shared
def update(
    call: Call,
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
) -> None:
    """Change fields of a memory; the old version stays in its history."""
    fields = given(
        content=content,
        type=type,
        subject=subject,
        tags=tag,
        importance=importance,
        confidence=confidence,
        expire_time=moment(expire_time, "--expire-time"),
    )
    with call.client() as client:
        memory = client.update(memory_id, etag=etag, reason=reason, **fields).to_dict()
    print_memory(memory, call)


@app.command(
    epilog=examples("memsvc forget mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f", "memsvc forget --all --tag trial --yes")
)
@shared
def forget(
    call: Call,
    memory_id: Annotated[list[str] | None, typer.Argument(help="Ids (mem_...).")] = None,
    all: Annotated[
        bool, typer.Option("--all", help="Everything of the named owners (with --scope, --tag: that).")
    ] = False,
    scope: Annotated[list[str] | None, typer.Option(help="With --all: only these scopes.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="With --all: only with all of these tags.")] = None,
    reason: Annotated[str, typer.Option(help="Why; kept in the history.")] = "",
    yes: Annotated[bool, typer.Option("-y", "--yes", help="With --all: don't ask.")] = False,
) -> None:
    """Take memories out of every recall. The text is kept for audit."""
    if bool(memory_id) == all:
        raise typer.BadParameter("name ids, or say --all")
    if all and not yes:
        typer.confirm("Forget everything that matches?", abort=True)
    with call.client() as client:
        if all:
            result = client.forget_all(scopes=scope, reason=reason, **given(tags_all=tag))
        else:
            result = client.forget(memory_id or [], reason=reason)
    if call.wants_json:
        print_json(result.to_dict())
    else:
        out.print(f"forgotten: {result.forgotten_count}, before already: {len(result.already_forgotten_ids)}")


@app.command(epilog=examples("memsvc history mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f"))
@shared
def history(
    call: Call,
    memory_id: MemoryId,
) -> None:
    """Show every version of a memory and why it changed."""
    with call.client() as client:
        changes = [change.to_dict() for change in client.history(memory_id)]
    if call.wants_json:
        print_json(changes)
        return
    columns = [Column("time"), Column("change"), Column("version", right=True), Column("content", text=True)]
    rows = [
        (
            brief(change["time"]),
            change["kind"],
            str(change["after"]["version"]),
            change["after"]["content"],
            ": ".join(part for part in (change["actor"], change["reason"]) if part),
        )
        for change in changes
    ]
    out.print(rows_table([*columns, Column("who and why", aside=True)], rows))
