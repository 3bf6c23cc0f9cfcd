"""Commands about forgetting: lifecycle plan, lifecycle run.

Purpose: what fades, is archived, expires or is proposed for the permanent store, and why; `run` does now what the
server does by itself on a schedule.

Threading: one command a process.

Rejected: `run --dry-run` (that is `plan`); asking before a run (it forgets nothing for good: what is archived wakes up
when it is said again).
"""

from __future__ import annotations

from typing import Annotated

import typer

from memsvc.cli.common import Call, app, err, examples, moment, out, print_json, say, shared
from memsvc.cli.tables import ID, Column, rows_table
from memsvc_client import LifecycleCounts

STEPS_MAX = 10_000
RUN_TIMEOUT_S = 3600.0

lifecycle_app = typer.Typer(help="Forgetting: what fades, is archived or expires.", no_args_is_help=True)
app.add_typer(lifecycle_app, name="lifecycle")

AllOwners = Annotated[bool, typer.Option("--all", help="Everybody's memories, not only the named owners'.")]


@lifecycle_app.command(
    "plan", epilog=examples("memsvc lifecycle plan", "memsvc lifecycle plan --all --at 2030-01-01T00:00:00Z -n 20")
)
@shared
def lifecycle_plan(
    call: Call,
    all_owners: AllOwners = False,
    at: Annotated[str | None, typer.Option(help="As if it were this time, ISO 8601 with zone.")] = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=STEPS_MAX, help="At most so many steps, least remembered first.")
    ] = 100,
) -> None:
    """Show what a run would change, and why. Changes nothing."""
    at_time = moment(at, "--at")
    with call.client(timeout_s=RUN_TIMEOUT_S) as client:
        plan = client.lifecycle.plan(all_owners=all_owners, max_steps=limit, at_time=at_time, timeout_s=RUN_TIMEOUT_S)
        if call.wants_json:
            print_json(plan.to_dict())
            return
        about = [step.owner if all_owners else client.get(step.memory_id).content for step in plan.steps]
    if plan.steps:
        what = Column("owner" if all_owners else "content", text=True)
        columns = [*map(Column, ("action", "scope")), what, Column("why", aside=True), ID]
        rows = [
            (step.action, step.scope, text, step.reason, step.memory_id)
            for step, text in zip(plan.steps, about, strict=True)
        ]
        out.print(rows_table(columns, rows))
    counts = plan.counts
    total = counts.faded_count + counts.archived_count + counts.expired_count + counts.proposed_count
    if total > len(plan.steps):
        say(err, f"{len(plan.steps)} of {total} steps are listed; -n lists more")
    say(out, _told(counts, "would change" if total else "nothing would change"))


def _told(counts: LifecycleCounts, what: str) -> str:
    return (
        f"{what}: {counts.faded_count} rank lower, {counts.archived_count} archived, {counts.expired_count} expired, "
        f"{counts.proposed_count} proposed as permanent, of {counts.seen_count} memories"
    )


@lifecycle_app.command("run", epilog=examples("memsvc lifecycle run", "memsvc lifecycle run --all -o json"))
@shared
def lifecycle_run(call: Call, all_owners: AllOwners = False) -> None:
    """Do it now. Stopped by Ctrl-C, what was done stays, and the next run goes on."""
    try:
        with call.client(timeout_s=RUN_TIMEOUT_S) as client:
            counts = client.lifecycle.run(all_owners=all_owners, timeout_s=RUN_TIMEOUT_S)
    except KeyboardInterrupt:
        say(err, "stopped: what was done stays; `memsvc lifecycle run` goes on")
        raise
    if call.wants_json:
        print_json(counts.to_dict())
    else:
        say(out, _told(counts, "changed"))
