"""Commands about events: events record, events list.

Purpose: what happened, in order, and what caused what.

Threading: one command a process.

Rejected: a command of its own for chains (a chain is a list of what mentions an identifier, oldest first).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from memsvc.cli.common import (
    Call,
    Limit,
    OneScope,
    Scopes,
    app,
    examples,
    moment,
    out,
    print_json,
    say,
    shared,
    take,
    utc_now,
)
from memsvc.cli.memories import told
from memsvc.cli.tables import ID, Column, brief, rows_table
from memsvc.cli.values import read_field, read_object, value_text
from memsvc_client import Event

QUESTION_LIMIT = 100  # the most that a question is answered with

events_app = typer.Typer(help="Events: what happened, and what caused what.", no_args_is_help=True)
app.add_typer(events_app, name="events")


@events_app.command(
    "record",
    epilog=examples(
        """memsvc events record "Deploy of billing failed" -t error --payload '{"service": "billing"}'""",
        'memsvc events record "Rolled back to 1.4" -t recovery --caused-by mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f',
    ),
)
@shared
def events_record(
    call: Call,
    summary: Annotated[str, typer.Argument(help="What happened, in at most 100 characters.")],
    type: Annotated[
        str, typer.Option("-t", "--type", help="task_start, task_end, error, recovery, feedback, or your own word.")
    ],
    payload: Annotated[str | None, typer.Option(help="Structured data: a JSON object.")] = None,
    participant: Annotated[list[str] | None, typer.Option(help="Who took part; may be repeated.")] = None,
    caused_by: Annotated[list[str] | None, typer.Option(help="Id of an event that led to it; may be repeated.")] = None,
    occur_time: Annotated[str | None, typer.Option(help="When it happened, ISO 8601 with zone; now if unset.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A label; may be repeated.")] = None,
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    scope: OneScope = None,
) -> None:
    """Record one event."""
    fields = None if payload is None else read_object(payload, "--payload")
    when = moment(occur_time, "--occur-time")
    with call.client() as client:
        result = client.events.record(
            summary,
            event_type=type,
            payload=fields,
            participants=participant or (),
            caused_by=caused_by or (),
            occur_time=when,
            tags=tag or (),
            importance=importance,
            scope=scope,
        )
    if call.wants_json:
        print_json(result.to_dict())
    else:
        for line in told(result):
            say(out, line)


@events_app.command(
    "list",
    epilog=examples(
        "memsvc events list --chain ORD-2025-0110",
        "memsvc events list --type error --since 7d --newest-first -n 5",
        "memsvc events list --field order.id=ORD-2025-0110 --involving 张经理",
        'memsvc events list "how was the last timeout solved?"',
    ),
)
@shared
def events_list(
    call: Call,
    query: Annotated[str, typer.Argument(help="A question: best first, with causes and consequences.")] = "",
    type: Annotated[list[str] | None, typer.Option("-t", "--type", help="Only these event types.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only what happened at or after this time, or so long ago: 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only what happened at or before this time.")] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Only with this payload field; dots go into objects."),
    ] = None,
    chain: Annotated[str, typer.Option(help="Only what mentions this order, ticket, file, ...")] = "",
    involving: Annotated[str, typer.Option(help="Only with this participant.")] = "",
    scope: Scopes = None,
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Newest first; not with a question.")] = False,
    limit: Limit = 50,
) -> None:
    """List events, oldest first; with a question the best first. All conditions must hold."""
    now = utc_now()
    start, end = moment(since, "--since", now), moment(until, "--until", now)
    fields = dict(read_field(one, "--field") for one in field or ())
    if query and newest_first:
        raise typer.BadParameter("a question is answered best first; leave --newest-first out")
    if query and limit > QUESTION_LIMIT:
        raise typer.BadParameter(f"a question has at most {QUESTION_LIMIT} answers", param_hint="--limit")
    with call.client() as client:
        events = client.events.query(
            query,
            event_types=type,
            occur_time=(start, end) if start or end else None,
            payload=fields,
            participant=involving,
            mentions=chain,
            scopes=scope,
            top_k=(limit or QUESTION_LIMIT) if query else None,
            newest_first=newest_first,
        )
        found = take(events, limit)
    if call.wants_json:
        print_json([event.to_dict() for event in found])
    elif found:
        out.print(events_table(found))
    else:
        say(out, "no events" + (" match" if query or type or since or until or field or chain or involving else ""))


def events_table(events: Sequence[Event]) -> Table:
    """One event a row, with its payload and what it is linked to below the summary."""
    columns = [Column("time"), Column("type"), Column("what happened", text=True), ID]
    rows = [(brief(event.occur_time), event.event_type, _with_links(event), event.memory_id) for event in events]
    return rows_table(columns, rows)


def _with_links(event: Event) -> str:
    lines = [event.summary]
    if event.participants:
        lines.append(f"with {', '.join(event.participants)}")
    if event.payload:
        lines.append(", ".join(f"{name}={value_text(value)}" for name, value in sorted(event.payload.items())))
    lines += [f"after: {cause.summary}" for cause in event.causes]
    lines += [f"led to: {consequence.summary}" for consequence in event.consequences]
    return "\n".join(lines)
