"""Commands about exact facts: facts set, get, list, history, delete.

Purpose: keys and typed values from a shell. `facts get` of one key prints the value alone, for scripts.

Threading: one command a process.

Rejected: `facts KEY=VALUE` (a value may hold anything, and a word of its own says what is done).
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from memsvc.cli.common import (
    Call,
    Limit,
    OneScope,
    Reason,
    Scopes,
    app,
    err,
    examples,
    out,
    print_json,
    say,
    shared,
    take,
)
from memsvc.cli.tables import Column, brief, rows_table
from memsvc.cli.values import ValueType, read_value, type_of, value_text
from memsvc.errors import EtagMismatch, MemsvcError, NotFound, Unavailable
from memsvc_client import Aborted, Fact

facts_app = typer.Typer(help="Exact facts: keys and typed values.", no_args_is_help=True)
app.add_typer(facts_app, name="facts")

Key = Annotated[str, typer.Argument(help="Key, such as default_currency.")]
IfVersion = Annotated[int | None, typer.Option(min=0, help="Refuse unless the key has this version now; 0: none.")]


@facts_app.command(
    "set",
    epilog=examples(
        "memsvc facts set default_currency CNY",
        "memsvc facts set staging.port 9078 --if-version 1",
        "memsvc facts set zip_code 02139 --type text --if-absent",
        """memsvc facts set limits '{"daily": 3}'""",
        "memsvc facts set offset -- -5",
    ),
)
@shared
def facts_set(
    call: Call,
    key: Key,
    value: Annotated[str, typer.Argument(help="The value; `-` reads it from standard input.")],
    type: Annotated[
        ValueType, typer.Option("-t", "--type", help="How to read it; auto: what JSON would read, else text.")
    ] = ValueType.auto,
    if_absent: Annotated[bool, typer.Option("--if-absent", help="Refuse if the key has a value.")] = False,
    if_version: IfVersion = None,
    scope: OneScope = None,
    reason: Reason = "",
) -> None:
    """Set the value of a key. The same value again changes nothing."""
    if if_absent and if_version is not None:
        raise typer.BadParameter("--if-absent and --if-version exclude each other")
    given = sys.stdin.read().removesuffix("\n") if value == "-" else value
    read = read_value(given, type, "VALUE")
    with call.client() as client:
        try:
            fact = client.facts.put(key, read, if_absent=if_absent, if_version=if_version, scope=scope, reason=reason)
        except Aborted as error:
            raise _changed(key, error) from error
    if call.wants_json:
        print_json(fact.to_dict())
    else:
        say(out, f"{'set' if fact.changed else 'unchanged'} {_told(fact)}")


def _changed(key: str, error: Aborted) -> MemsvcError:
    """What to tell when the key has another version than the caller thought."""
    if error.reason != EtagMismatch.reason:
        return Unavailable(f"{error.message}; try again")
    version = error.metadata.get("version", "0")
    if version == "0":
        return EtagMismatch(f"{key} has no value; leave --if-version out, or say 0")
    return EtagMismatch(f"{key} has version {version} now; `memsvc facts history {key}` shows what changed")


def _told(fact: Fact) -> str:
    return f"{fact.key} = {value_text(fact.value)} ({type_of(fact.value)}, version {fact.version}, {fact.scope})"


@facts_app.command(
    "get", epilog=examples("memsvc facts get default_currency", "memsvc facts get default_currency staging.port")
)
@shared
def facts_get(
    call: Call,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="One or more keys.")],
    scope: Scopes = None,
) -> None:
    """Print the value of a key, of the narrowest scope that has it; of several keys, a line each.

    The exit code is 1 if a key has no value.
    """
    with call.client() as client:
        found = {key: client.facts.get(key, scopes=scope) for key in keys}
    there = {key: fact for key, fact in found.items() if fact is not None}
    if call.wants_json:
        print_json([fact.to_dict() for fact in there.values()])
    else:
        for fact in there.values():
            say(out, value_text(fact.value) if len(found) == 1 else f"{fact.key} = {value_text(fact.value)}")
    missing = [key for key in found if key not in there]
    if missing:
        raise NotFound(f"no fact {', '.join(missing)}; `memsvc facts list` shows what there is")


@facts_app.command("list", epilog=examples("memsvc facts list", "memsvc facts list --prefix staging. -o json"))
@shared
def facts_list(
    call: Call,
    prefix: Annotated[str, typer.Option(help="Only keys that begin with this.")] = "",
    scope: Scopes = None,
    limit: Limit = 50,
) -> None:
    """List facts by key."""
    with call.client() as client:
        found = take(client.facts.list(prefix, scopes=scope), limit)
    if call.wants_json:
        print_json([fact.to_dict() for fact in found])
    elif found:
        columns = [Column("key", text=True), Column("value", text=True), *map(Column, ("type", "scope", "version"))]
        rows = [(f.key, value_text(f.value), type_of(f.value), f.scope, str(f.version)) for f in found]
        out.print(rows_table(columns, rows))
    else:
        say(out, "no facts" + (f" whose key begins with {prefix}" if prefix else ""))


@facts_app.command("history", epilog=examples("memsvc facts history default_currency"))
@shared
def facts_history(call: Call, key: Key, scope: OneScope = None) -> None:
    """Show every version of a key, newest first."""
    with call.client() as client:
        versions = client.facts.history(key, scope=scope)
    if call.wants_json:
        print_json([fact.to_dict() for fact in versions])
        return
    columns = [
        Column("version", right=True),
        Column("time"),
        Column("value", text=True),
        Column("type"),
    ]
    rows = [
        (
            str(fact.version),
            brief(fact.update_time),
            "" if fact.deleted else value_text(fact.value),
            "removed" if fact.deleted else type_of(fact.value),
        )
        for fact in versions
    ]
    out.print(rows_table(columns, rows))


@facts_app.command("delete", epilog=examples("memsvc facts delete default_currency --reason 'not any more'"))
@shared
def facts_delete(
    call: Call, key: Key, if_version: IfVersion = None, scope: OneScope = None, reason: Reason = ""
) -> None:
    """Remove a key. Its versions are kept for audit."""
    with call.client() as client:
        try:
            deleted = client.facts.delete(key, if_version=if_version, scope=scope, reason=reason)
        except Aborted as error:
            raise _changed(key, error) from error
    if call.wants_json:
        print_json({"key": key, "deleted": deleted})
    elif deleted:
        say(out, f"deleted {key}")
    else:
        say(err, f"nothing to delete: there is no fact {key}")
