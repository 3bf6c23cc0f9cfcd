"""Commands of the review queue: review list, show, resolve.

Purpose: ReviewService of a running server: writes for everybody that wait for approval, and contradictions.

Threading: one command a process.

Rejected: asking item by item in the terminal (an agent's shell would hang).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from memsvc.cli.common import CLI_TIMEOUT_S, Call, Reason, Scopes, examples, out, print_json, say, shared
from memsvc.cli.connecting import ask
from memsvc.cli.reviewing import review_app
from memsvc.cli.tables import ID, Column, brief, fields_table, rows_table
from memsvc.errors import InvalidArgument, MemsvcError
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import review_service_pb2 as vpb
from memsvc.v1.review_service_pb2_grpc import ReviewServiceStub

PAGE_SIZE = 1000
ItemId = Annotated[str, typer.Argument(metavar="ID", help="Id of the item (mem_...).")]


class Kind(StrEnum):
    """Why an item waits."""

    pending_write = "pending-write"
    conflict = "conflict"


class Action(StrEnum):
    """What to do with an item."""

    approve = "approve"
    reject = "reject"
    edit = "edit"
    keep_newer = "keep-newer"
    keep_older = "keep-older"
    keep_both = "keep-both"


class Undecided(MemsvcError):
    """The server refused a decision; `reason` is the server's."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def _ask(call: Call, method: str, request: Any) -> Any:
    return ask(ReviewServiceStub, call.server, method, request, CLI_TIMEOUT_S, call.token_file)


def _owners(call: Call) -> pb.Owners:
    return pb.Owners(**call.owners())


def _kind_name(kind: int) -> str:
    return vpb.ReviewItemKind.Name(kind).removeprefix("REVIEW_ITEM_KIND_").lower().replace("_", "-")


def _plain(item: vpb.ReviewItem) -> dict[str, Any]:
    return {
        "item_id": item.item_id,
        "kind": _kind_name(item.kind),
        "etag": item.etag,
        "summary": item.summary,
        "actor": item.actor,
        "create_time": item.create_time.ToJsonString(),
        "memories": [_plain_memory(memory) for memory in item.memories],
    }


def _plain_memory(memory: pb.Memory) -> dict[str, str]:
    return {
        "memory_id": memory.memory_id,
        "status": pb.Status.Name(memory.status).removeprefix("STATUS_").lower(),
        "scope": pb.Scope.Name(memory.namespace.scope).removeprefix("SCOPE_").lower(),
        "type": pb.MemoryType.Name(memory.type).removeprefix("MEMORY_TYPE_").lower(),
        "subject": memory.subject,
        "tool": memory.source.tool,
        "content": memory.content,
    }


@review_app.command("list", epilog=examples("memsvc review list --scope global", "memsvc review list --kind conflict"))
@shared
def review_list(
    call: Call,
    scope: Scopes = None,
    kind: Annotated[list[Kind] | None, typer.Option(help="Only these kinds; may be repeated.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="At most this many; 0: all.")] = 50,
) -> None:
    """List what waits for a person, oldest first: writes for everybody, and contradictions."""
    request = vpb.ReviewServiceListRequest(
        owners=_owners(call),
        scopes=[_scope(name) for name in scope or ()],
        kinds=[f"REVIEW_ITEM_KIND_{one.name.upper()}" for one in kind or ()],
        page_size=min(limit or PAGE_SIZE, PAGE_SIZE),
    )
    found: list[dict[str, Any]] = []
    while True:
        answer = _ask(call, "List", request)
        found += [_plain(item) for item in answer.items]
        request.page_token = answer.next_page_token
        if not request.page_token or (limit and len(found) >= limit):
            break
    found = found[: limit or None]
    if call.wants_json:
        print_json(found)
    elif not found:
        say(out, "nothing waits")
    else:
        columns = [
            Column("kind"),
            Column("waits", text=True),
            Column("why", text=True),
            Column("since", aside=True),
            ID,
        ]
        rows = [
            (one["kind"], one["memories"][0]["content"], one["summary"], brief(one["create_time"]), one["item_id"])
            for one in found
        ]
        out.print(rows_table(columns, rows, lines=True))


def _scope(name: str) -> str:
    known = f"SCOPE_{name.upper()}"
    if known not in pb.Scope.keys():  # noqa: SIM118  # an enum's wrapper is no dictionary
        raise InvalidArgument("--scope is session, agent, user, project or global", field="scopes")
    return known


@review_app.command("show", epilog=examples("memsvc review show mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f"))
@shared
def review_show(call: Call, item_id: ItemId) -> None:
    """Show one item with everything that it is about."""
    request = vpb.ReviewServiceGetRequest(owners=_owners(call), item_id=item_id)
    item = _plain(_ask(call, "Get", request).item)
    if call.wants_json:
        print_json(item)
        return
    out.print(fields_table({name: value for name, value in item.items() if name != "memories"}))
    for memory in item["memories"]:
        out.print(fields_table(memory))


@review_app.command(
    "resolve",
    epilog=examples(
        "memsvc review resolve mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f approve",
        "memsvc review resolve mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f edit --content 'Reports go out as PDF.'",
        "memsvc review resolve mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f reject --reason 'not for everybody'",
    ),
)
@shared
def review_resolve(
    call: Call,
    item_id: ItemId,
    action: Annotated[
        Action,
        typer.Argument(help="approve, reject or edit a write; keep-newer, keep-older or keep-both of a conflict."),
    ],
    content: Annotated[str, typer.Option(help="The right statement, for edit.")] = "",
    etag: Annotated[str, typer.Option(help="Refuse unless the item still has this etag.")] = "",
    reason: Reason = "",
) -> None:
    """Decide an item. What is approved is checked against what stands by then."""
    decision = vpb.ReviewItemDecision(
        item_id=item_id,
        action=f"REVIEW_ITEM_ACTION_{action.name.upper()}",
        content=content,
        etag=etag,
        reason=reason,
    )
    request = vpb.ReviewServiceResolveRequest(owners=_owners(call), decisions=[decision])
    (result,) = _ask(call, "Resolve", request).results
    if result.error_reason:
        raise Undecided(result.error_message, result.error_reason)
    outcome = spb.WriteOutcome.Name(result.outcome).removeprefix("WRITE_OUTCOME_").lower() if result.outcome else ""
    memories = [_plain_memory(memory) for memory in result.memories]
    if call.wants_json:
        print_json({"item_id": item_id, "outcome": outcome, "memories": memories})
        return
    for memory in memories:
        say(out, f"{memory['status']} {memory['memory_id']}")
