"""Commands about erasure: purge, receipts list, receipts show.

Purpose: what a person has a right to have removed. Owners are named on the command line only: an id from the
environment must not widen what is final.

Threading: one command a process.

Rejected: `forget --purge` (one slip of the hand would be final).
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from memsvc.cli.common import OWNER_OPTIONS, Call, Limit, Scopes, app, err, examples, out, print_json, say, shared, take
from memsvc.cli.tables import ID, Column, brief, rows_table
from memsvc.config import ClientSettings
from memsvc_client import PurgeReceipt

receipts_app = typer.Typer(help="Receipts of purges.", no_args_is_help=True)
app.add_typer(receipts_app, name="receipts")


@app.command(
    epilog=examples(
        'memsvc purge -u u1 --reason "asked for by mail on 3 May" --dry-run',
        "memsvc purge -u u1 --reason 'request 17'",
        "memsvc purge mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f -u u1 --reason 'a name by mistake' --yes",
    )
)
@shared
def purge(
    call: Call,
    reason: Annotated[str, typer.Option("--reason", help="Why; required, kept in the receipt.")],
    memory_ids: Annotated[list[str] | None, typer.Argument(help="Only these memories (mem_...).")] = None,
    scope: Scopes = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove every trace of an owner, or of memories, for good.

    Nothing brings it back, and backups that were made before are not reached. `forget` keeps the text for audit; this
    does not. What was named by -u, -p, -a is removed; with -s only the session.
    """
    named = {name: getattr(call, name) for name in OWNER_OPTIONS if getattr(call, name)}
    if not named and not memory_ids:
        raise typer.BadParameter("name on the command line whom to purge: -u, -p, -a or -s", param_hint="-u")
    tenant = ClientSettings().tenant
    owners = call.owners() if memory_ids else {**named, **({"tenant": tenant} if tenant else {})}
    with call.client(owners) as client:
        planned = client.erasure.purge(memory_ids or (), reason=reason, scopes=scope, dry_run=True)
        if dry_run:
            _print(planned, call)
            return
        if not yes:
            _ask(planned)
        with err.status("purging: rows, segments, journals, then the store's file is made anew"):
            receipt = client.erasure.purge(memory_ids or (), reason=reason, scopes=scope)
    _print(receipt, call)


def _ask(planned: PurgeReceipt) -> None:
    """Has the owner typed again. Raises typer.Abort."""
    say(err, f"This removes for good: {_what(planned)}.")
    wanted = planned.memory_ids[0] if planned.memory_ids else str(planned.namespaces[0]["owner"])
    if typer.prompt(f"Type {wanted} to go on", err=True) != wanted:
        raise typer.Abort


def _what(receipt: PurgeReceipt) -> str:
    where = ", ".join(f"{one['scope']} {one['owner']}".strip() for one in receipt.namespaces)
    return (
        f"{receipt.memory_count} memories in {receipt.version_count} versions, {receipt.record_count} records and "
        f"{receipt.session_count} open sessions of {where}"
    )


def _print(receipt: PurgeReceipt, call: Call) -> None:
    if call.wants_json:
        print_json(receipt.to_dict())
    elif not receipt.receipt_id:
        say(out, f"would remove {_what(receipt)}")
    else:
        say(out, f"removed {_what(receipt)}")
        say(out, f"receipt {receipt.receipt_id}, sha256 {receipt.hash}")
        say(err, "backups that were made before still hold it: remove them too")


@receipts_app.command("list", epilog=examples("memsvc receipts list", "memsvc receipts list -o json"))
@shared
def receipts_list(call: Call, limit: Limit = 50) -> None:
    """List receipts of the tenant, newest first."""
    with call.client() as client:
        found = take(client.erasure.receipts(), limit)
    if call.wants_json:
        print_json([receipt.to_dict() for receipt in found])
    elif found:
        out.print(_table(found))
    else:
        say(out, "no receipts")


def _table(found: list[PurgeReceipt]) -> Table:
    columns = [Column("time"), Column("state"), Column("what", text=True), Column("why", text=True), ID]
    rows = [(brief(r.start_time), r.state, _what(r), r.reason, r.receipt_id) for r in found]
    return rows_table(columns, rows)


@receipts_app.command("show", epilog=examples("memsvc receipts show rcp_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f"))
@shared
def receipts_show(call: Call, receipt_id: Annotated[str, typer.Argument(help="rcp_...")]) -> None:
    """Show one receipt."""
    with call.client() as client:
        receipt = client.erasure.receipt(receipt_id)
    if call.wants_json:
        print_json(receipt.to_dict())
        return
    for name, value in receipt.to_dict().items():
        say(out, f"{name}: {value}")
