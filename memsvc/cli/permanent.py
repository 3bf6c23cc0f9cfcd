"""Commands about the permanent store: permanent list, propose, decide, put, remove, history.

Purpose: who the user is, who the agent is, what must never be done; everybody proposes, a person decides.

Threading: one command a process.

Rejected: a question before a change (every change needs a reason, which is typed on purpose).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

from memsvc.cli.common import (
    Call,
    MemoryId,
    OneScope,
    Scopes,
    app,
    examples,
    out,
    print_json,
    say,
    shared,
)
from memsvc.cli.tables import ID, Column, brief, rows_table
from memsvc_client import PermanentMemory

permanent_app = typer.Typer(help="Permanent memories: profile, safety limits, agent identity.", no_args_is_help=True)
app.add_typer(permanent_app, name="permanent")


class Kind(StrEnum):
    """What a permanent memory is."""

    profile = "profile"
    safety = "safety"
    identity = "identity"


class Decision(StrEnum):
    """What becomes of a proposal."""

    accept = "accept"
    reject = "reject"


OneKind = Annotated[
    Kind, typer.Option("-k", "--kind", help="profile: of the user; safety: what must never be; identity: of the agent.")
]
Why = Annotated[str, typer.Option("--reason", help="Why; required, kept in the history.")]


@permanent_app.command("list", epilog=examples("memsvc permanent list", "memsvc permanent list --proposals -o json"))
@shared
def permanent_list(
    call: Call,
    proposals: Annotated[bool, typer.Option("--proposals", help="Also proposals that wait for a person.")] = False,
    scope: Scopes = None,
) -> None:
    """List what always applies: safety limits, then identity, then profile."""
    with call.client() as client:
        found = client.permanent.list(include_proposals=proposals, scopes=scope)
    if call.wants_json:
        print_json([memory.to_dict() for memory in found])
    elif found:
        out.print(_table(found))
    else:
        say(out, "no permanent memories" + (" and no proposals" if proposals else ""))


def _table(memories: Sequence[PermanentMemory]) -> Table:
    columns = [Column("kind"), Column("scope"), Column("content", text=True), ID]
    rows = []
    for memory in memories:
        state = "" if memory.status == "active" else f" [{memory.status}: {memory.reason}]"
        rows.append((memory.kind, memory.scope, memory.content + state, memory.memory_id))
    return rows_table(columns, rows)


def _print(memory: PermanentMemory, done: str, call: Call) -> None:
    if call.wants_json:
        print_json(memory.to_dict())
    else:
        say(out, f"{done} {memory.memory_id}: {memory.content}")


@permanent_app.command(
    "propose",
    epilog=examples(
        'memsvc permanent propose "The user is allergic to peanuts" -k profile --reason "said twice"',
        "memsvc permanent propose --memory mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f -k profile --reason lasting",
    ),
)
@shared
def permanent_propose(
    call: Call,
    kind: OneKind,
    reason: Why,
    content: Annotated[str, typer.Argument(help="The statement; or name a memory by --memory.")] = "",
    memory: Annotated[str, typer.Option(help="Id of an ordinary memory to propose.")] = "",
    scope: OneScope = None,
) -> None:
    """Ask for a statement to become permanent. Nothing changes until somebody accepts it."""
    if bool(content) == bool(memory):
        raise typer.BadParameter("give either the statement or --memory ID")
    with call.client() as client:
        proposed = client.permanent.propose(content, kind=kind.value, reason=reason, memory_id=memory, scope=scope)
    _print(proposed, "proposed" if proposed.status == "pending" else f"{proposed.status} already", call)


@permanent_app.command(
    "decide",
    epilog=examples(
        'memsvc permanent decide mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f accept --reason "asked the user"'
    ),
)
@shared
def permanent_decide(
    call: Call, memory_id: MemoryId, decision: Annotated[Decision, typer.Argument()], reason: Why
) -> None:
    """Accept or reject a proposal."""
    with call.client() as client:
        decided = client.permanent.decide(memory_id, accept=decision is Decision.accept, reason=reason)
    _print(decided, f"{decision.value}ed", call)


@permanent_app.command(
    "put",
    epilog=examples(
        'memsvc permanent put "Never send e-mail to customers from a test" -k safety --reason "incident of May"'
    ),
)
@shared
def permanent_put(
    call: Call,
    content: Annotated[str, typer.Argument(help="The statement.")],
    kind: OneKind,
    reason: Why,
    replaces: Annotated[str, typer.Option(help="Id of the permanent memory that it replaces.")] = "",
    scope: OneScope = None,
) -> None:
    """Write or replace a permanent memory."""
    with call.client() as client:
        stored = client.permanent.put(content, kind=kind.value, reason=reason, memory_id=replaces, scope=scope)
    _print(stored, f"stored version {stored.version} of", call)


@permanent_app.command(
    "remove", epilog=examples("memsvc permanent remove mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f --reason outdated")
)
@shared
def permanent_remove(call: Call, memory_id: MemoryId, reason: Why) -> None:
    """Take a permanent memory out. Its versions are kept for audit."""
    with call.client() as client:
        removed = client.permanent.remove(memory_id, reason=reason)
    _print(removed, "removed", call)


@permanent_app.command("history", epilog=examples("memsvc permanent history mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f"))
@shared
def permanent_history(call: Call, memory_id: MemoryId) -> None:
    """Show every version of a permanent memory, who wrote it and why; newest first."""
    with call.client() as client:
        versions = client.permanent.history(memory_id)
    if call.wants_json:
        print_json([version.to_dict() for version in versions])
        return
    columns = [*map(Column, ("version", "time", "status")), Column("content", text=True), Column("who", aside=True)]
    rows = [
        (str(one.version), brief(one.update_time), one.status, one.content, f"{one.actor}: {one.reason}")
        for one in versions
    ]
    out.print(rows_table(columns, rows))
