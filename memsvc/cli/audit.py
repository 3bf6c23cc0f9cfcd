"""Commands about the audit: audit list, verify, export; and why.

Purpose: AuditService of a running server; `audit verify --data-dir` checks the store of a stopped one. An export holds
what its hashes are made of, so that others can check it.

Threading: one command a process.

Rejected: an export of protobuf's JSON (its 64-bit numbers are texts, and its times would have to be parsed to be
hashed).
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

import typer
from rich.text import Text
from rich.tree import Tree

from memsvc.cli.common import (
    CLI_TIMEOUT_S,
    OWNER_OPTIONS,
    Call,
    DataDir,
    Limit,
    MemoryId,
    Scopes,
    app,
    err,
    examples,
    moment,
    out,
    print_json,
    printable,
    say,
    server_settings,
    shared,
    take,
    utc_now,
)
from memsvc.cli.connecting import ask, check_reachable
from memsvc.cli.tables import Column, brief, rows_table
from memsvc.cli.values import value_text
from memsvc.config import ClientSettings
from memsvc.v1 import audit_service_pb2 as apb
from memsvc.v1 import audit_service_pb2_grpc as arpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb

if TYPE_CHECKING:
    from memsvc.memory.audit_reader import ChainReport

PAGE_SIZE = 1000
KINDS = ("read", "change", "admin", "denied")
SCOPES = ("session", "agent", "user", "project", "global")

audit_app = typer.Typer(help="Read, check and export the audit.", no_args_is_help=True)
app.add_typer(audit_app, name="audit")

Kinds = Annotated[list[str] | None, typer.Option("--kind", help=f"{', '.join(KINDS)}; may be repeated.")]
Actor = Annotated[str, typer.Option("--actor", help="Who: local, token:ID, or a job's name.")]
OfMemory = Annotated[str, typer.Option("--memory", help="Entries that name this memory.")]
Since = Annotated[str | None, typer.Option(help="30m, 12h, 7d, 2w back, or an ISO 8601 time with zone.")]
Until = Annotated[str | None, typer.Option(help="As --since.")]


@audit_app.command(
    "list", epilog=examples("memsvc audit list --since 7d", "memsvc audit list --actor token:tok_018f...")
)
@shared
def list_entries(
    call: Call,
    scope: Scopes = None,
    kind: Kinds = None,
    actor: Actor = "",
    memory: OfMemory = "",
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
) -> None:
    """List entries of the named owners, newest first in each namespace: who changed what, and by which call."""
    request = _query(call.owners(), _scopes(scope), kind, actor, memory, since, until)
    request.newest_first = True
    found = [_plain(entry) for entry in take(_entries(call, request, limit), limit)]
    if call.wants_json:
        print_json(found)
        return
    columns = (Column("time"), Column("what", text=True), Column("who", aside=True), Column("where", aside=True))
    rows = [
        (
            brief(entry["time"]),
            _told(entry),
            entry["actor"],
            f"{_where(entry)} number {entry['number']}",
        )
        for entry in found
    ]
    out.print(rows_table(columns, rows))


@audit_app.command(
    epilog=examples(
        "memsvc audit verify",
        "memsvc audit verify --data-dir ~/memories",
        "memsvc audit verify -u u1 --scope user --expect 1024:9f86d081...",
    )
)
@shared
def verify(
    call: Call,
    scope: Scopes = None,
    expect: Annotated[
        str, typer.Option(metavar="NUMBER:HASH", help="A head that was noted before; for one namespace.")
    ] = "",
    data_dir: DataDir = None,
) -> None:
    """Check the chains of the tenant, or of the owners and scopes that are named; exit code 1 if one is not whole.

    Note the heads elsewhere and give one as --expect: a chain alone can't show that its tail was cut off.
    """
    owners, scopes = _named(call, scope), _scopes(scope)
    request = apb.AuditServiceVerifyRequest(owners=pb.Owners(**(owners or _tenant())), scopes=scopes, all=not owners)
    if expect:
        request.expect.CopyFrom(_head(expect))
    chains = _ask(call, "Verify", request, None).chains if data_dir is None else _verified_offline(data_dir, request)
    if call.wants_json:
        print_json([{**_where_of(chain.namespace), **_report(chain)} for chain in chains])
    else:
        for chain in chains:
            say(out, f"{_where(_where_of(chain.namespace))}: {_state(chain)}")
        broken = sum(not _whole(chain) for chain in chains)
        entries = sum(chain.head.number for chain in chains)
        say(out, f"{entries} entries in {len(chains)} chains are good, {broken} chains are not whole")
    if not all(map(_whole, chains)):
        raise typer.Exit(1)


@audit_app.command(
    epilog=examples("memsvc audit export > audit.jsonl", "memsvc audit export -u u1 --since 30d --output u1.jsonl")
)
@functools.partial(shared, output=False)
def export(
    call: Call,
    scope: Scopes = None,
    kind: Kinds = None,
    actor: Actor = "",
    memory: OfMemory = "",
    since: Since = None,
    until: Until = None,
    output: Annotated[
        Path | None, typer.Option("--output", dir_okay=False, help="File to write; standard output if unset.")
    ] = None,
) -> None:
    """Write entries as JSON Lines, oldest first: of the tenant, or of the owners and scopes that are named."""
    owners = _named(call, scope)
    parts = [(owners, _scopes(scope))] if owners else list(_of_tenant(call))
    count = 0
    with nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as file:
        for ids, scopes in parts:
            request = _query(ids, scopes, kind, actor, memory, since, until)
            count += _write(file, _entries(call, request, 0))
    say(err, f"{count} entries")


@app.command(epilog=examples("memsvc why mem_018f...", "memsvc why mem_018f... -o json"))
@shared
def why(call: Call, memory_id: MemoryId) -> None:
    """Show why a memory is as it is: its source, what was decided and by whom, what it replaced, how it is used."""
    request = apb.AuditServiceWhyRequest(owners=pb.Owners(**call.owners()), memory_id=memory_id)
    answer = _ask(call, "Why", request)
    if call.wants_json:
        print_json(_message(answer))
    else:
        out.print(_tree(answer))


# -- asking ------------------------------------------------------------------------------------------------------


def _ask(call: Call, method: str, request: Any, timeout_s: float | None = CLI_TIMEOUT_S) -> Any:
    check_reachable(call.server or ClientSettings().server)
    return ask(arpc.AuditServiceStub, call.server, method, request, timeout_s, call.token_file)


def _entries(call: Call, request: apb.AuditServiceQueryRequest, limit: int) -> Iterator[apb.AuditEntry]:
    request.page_size = min(limit or PAGE_SIZE, PAGE_SIZE)
    while True:
        answer = _ask(call, "Query", request)
        yield from answer.entries
        request.page_token = answer.next_page_token
        if not request.page_token:
            return


def _query(
    owners: dict[str, str],
    scopes: list[str],
    kinds: list[str] | None,
    actor: str,
    memory_id: str,
    since: str | None,
    until: str | None,
) -> apb.AuditServiceQueryRequest:
    request = apb.AuditServiceQueryRequest(
        owners=pb.Owners(**owners),
        scopes=scopes,
        kinds=[f"AUDIT_KIND_{_one_of(kind, KINDS, '--kind')}" for kind in kinds or ()],
        actor=actor,
        memory_id=memory_id,
    )
    now = utc_now()
    for name, text in (("start_time", since), ("end_time", until)):
        time = moment(text, "--since" if name == "start_time" else "--until", now)
        if time is not None:
            getattr(request.entry_time, name).FromDatetime(time)
    return request


def _of_tenant(call: Call) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Owner ids and scope of each namespace of the tenant."""
    request = apb.AuditServiceVerifyRequest(owners=pb.Owners(**_tenant()), all=True)
    for chain in _ask(call, "Verify", request, None).chains:
        name = chain.namespace
        yield {**_tenant(), **_ids(name)}, [pb.Scope.Name(name.scope)]


def _ids(name: pb.Namespace) -> dict[str, str]:
    """The owner ids that name a namespace."""
    if name.scope == pb.SCOPE_SESSION:
        user, _, session = name.owner.rpartition("/")
        ids = {"user_id": unquote(user), "session_id": unquote(session)}
        return {field: value for field, value in ids.items() if value}
    fields = {pb.SCOPE_AGENT: "agent_id", pb.SCOPE_USER: "user_id", pb.SCOPE_PROJECT: "project_id"}
    return {fields[name.scope]: name.owner} if name.scope in fields else {}


def _named(call: Call, scopes: list[str] | None) -> dict[str, str]:
    """Owner ids, if the command line names any, or scopes; else nothing, which is all of the tenant."""
    return call.owners() if scopes or any(getattr(call, name) for name in OWNER_OPTIONS) else {}


def _tenant() -> dict[str, str]:
    tenant = ClientSettings().tenant
    return {"tenant": tenant} if tenant else {}


def _scopes(names: list[str] | None) -> list[str]:
    return [f"SCOPE_{_one_of(name, SCOPES, '--scope')}" for name in names or ()]


def _one_of(word: str, words: Iterable[str], option: str) -> str:
    if word.lower() not in words:
        raise typer.BadParameter(f"{word!r} is none of {', '.join(words)}", param_hint=option)
    return word.upper()


def _head(text: str) -> apb.AuditHead:
    number, _, digest = text.partition(":")
    if not (number.isdecimal() and len(number) < 19 and digest):
        raise typer.BadParameter(f"{text!r} is not NUMBER:HASH", param_hint="--expect")
    return apb.AuditHead(number=int(number), hash=digest)


def _verified_offline(data_dir: Path, request: apb.AuditServiceVerifyRequest) -> list[apb.AuditChain]:
    """The check on the store of a stopped server. Raises StoreLocked."""
    from memsvc.app import now_us, open_engine
    from memsvc.memory import audit
    from memsvc.memory.audit_reader import AuditReader
    from memsvc.memory.owners import DEFAULT_TENANT, namespaces_for
    from memsvc.model import Scope
    from memsvc.service import convert
    from memsvc.service.audit_servicer import chain_message, head_value

    engine = open_engine(server_settings(data_dir=data_dir))
    try:
        audit.begin(engine, now_us())
        reader, owners = AuditReader(engine), convert.owners(request.owners)
        if request.all:
            names = reader.of_tenant(owners.tenant or DEFAULT_TENANT)
        else:
            names = namespaces_for(owners, convert.enums(Scope, request.scopes, "scopes"))
        expect = head_value(request.expect) if request.HasField("expect") else None
        reports: list[ChainReport] = reader.verify(names, expect=expect)
        return [chain_message(report) for report in reports]
    finally:
        engine.close()


# -- telling -----------------------------------------------------------------------------------------------------


def _where_of(name: pb.Namespace) -> dict[str, str]:
    return {"tenant": name.tenant, "scope": _word(pb.Scope.Name(name.scope), "SCOPE_"), "owner": name.owner}


def _where(of: dict[str, Any]) -> str:
    return f"{of['scope'].lower()} {of['owner']}".rstrip()


def _word(name: str, prefix: str) -> str:
    return name.removeprefix(prefix)


def _plain(entry: apb.AuditEntry) -> dict[str, Any]:
    """An entry with what its hash is made of, as it is hashed, and its time to read."""
    return {
        **_where_of(entry.namespace),
        "number": entry.number,
        "time": entry.entry_time.ToJsonString(),
        "time_us": entry.entry_time.ToMicroseconds(),
        "kind": _word(apb.AuditKind.Name(entry.kind), "AUDIT_KIND_"),
        "actor": entry.actor,
        "call": entry.call,
        "outcome": entry.outcome,
        "memory_ids": list(entry.memory_ids),
        "count": entry.count,
        "sequence": entry.sequence,
        "change": _word(spb.ChangeKind.Name(entry.change), "CHANGE_KIND_") if entry.change else "",
        "detail": entry.detail,
        "reason_hash": entry.reason_hash,
        "hash": entry.hash,
    }


def _write(file: IO[str], entries: Iterable[apb.AuditEntry]) -> int:
    count = 0
    for entry in entries:
        file.write(json.dumps(_plain(entry), separators=(",", ":")) + "\n")
        count += 1
    return count


def _told(entry: dict[str, Any]) -> str:
    what = entry["outcome"] or entry["change"]
    told = (entry["call"], what.lower(), ", ".join(entry["memory_ids"][:3]), entry["detail"])
    return " ".join(one for one in told if one)


def _whole(chain: apb.AuditChain) -> bool:
    return not (chain.problem or chain.missing_count or chain.stray_count)


def _report(chain: apb.AuditChain) -> dict[str, Any]:
    return {
        "whole": _whole(chain),
        "head": f"{chain.head.number}:{chain.head.hash}",
        "broken_number": chain.broken_number,
        "problem": chain.problem,
        "baseline_sequence": chain.baseline_sequence,
        "missing_count": chain.missing_count,
        "first_missing_sequence": chain.first_missing_sequence,
        "stray_count": chain.stray_count,
        "first_stray_number": chain.first_stray_number,
    }


def _state(chain: apb.AuditChain) -> str:
    head = f"head {chain.head.number}:{chain.head.hash}"
    if chain.problem:
        return f"BROKEN at entry {chain.broken_number}: {chain.problem}; {head}"
    told = [] if _whole(chain) else ["NOT WHOLE"]
    if chain.missing_count:
        told.append(f"{chain.missing_count} changes without an entry, the first is {chain.first_missing_sequence}")
    if chain.stray_count:
        told.append(f"{chain.stray_count} entries without their change, the first is {chain.first_stray_number}")
    return "; ".join([*told, head])


# -- why ---------------------------------------------------------------------------------------------------------


def _message(message: Any) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    plain: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return plain


def _tree(answer: apb.AuditServiceWhyResponse) -> Tree:
    memory = answer.memory
    tree = Tree(Text(f"{printable(memory.content)} [{_word(pb.Status.Name(memory.status), 'STATUS_').lower()}]"))
    _leaf(tree, "source", _source(memory.source))
    for source in memory.further_sources:
        _leaf(tree, "also said in", _source(source))
    _leaf(tree, "seen", f"{memory.seen_count} times" if memory.seen_count > 1 else "once")
    _leaf(tree, "importance", f"{memory.importance:.2f}, confidence {memory.confidence:.2f}")
    used = f"{memory.access_count} times, last {_time(memory.last_access_time)}" if memory.access_count else "never"
    _leaf(tree, "recalled", used)
    for related in answer.related:
        relation = _word(apb.MemoryRelation.Name(related.relation), "MEMORY_RELATION_").lower().replace("_", " ")
        status = _word(pb.Status.Name(related.status), "STATUS_").lower()
        said = {"superseded": "it replaced", "superseded by": "replaced by", "contested": "it contradicts"}[relation]
        _leaf(tree, said, f"{related.memory_id} ({status})")
    changes = tree.add("changes")
    for change in answer.changes:
        what = _word(spb.ChangeKind.Name(change.kind), "CHANGE_KIND_").lower()
        reason = f": {change.reason}" if change.reason else ""
        node = changes.add(Text(printable(f"{_time(change.time)} {what} by {change.actor or 'unknown'}{reason}")))
        for name, value in _message(change.evidence).items():
            _leaf(node, name, value_text(value))
    if answer.reads:
        reads = tree.add("shown")
        for entry in answer.reads:
            sampled = f" ({entry.detail})" if entry.detail else ""
            reads.add(Text(printable(f"{_time(entry.entry_time)} to {entry.actor} by {entry.call}{sampled}")))
    return tree


def _leaf(tree: Tree, name: str, text: str) -> None:
    tree.add(Text.assemble((f"{name} ", "dim"), printable(text)))


def _source(source: pb.Source) -> str:
    named = (("tool", source.tool), ("session", source.session_id), ("message", source.message_id))
    return ", ".join(f"{name} {value}" for name, value in named if value) or "unknown"


def _time(time: Any) -> str:
    return brief(time.ToJsonString())
