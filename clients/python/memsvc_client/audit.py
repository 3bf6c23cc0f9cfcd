"""The audit: who read what, who changed what, and why a memory is as it is.

Purpose: the calls of AuditService, and what they return.

Threading: as the client.

Rejected: checking the chains in the client (`memsvc audit export` and the comments of audit_service.proto say how that
is done elsewhere).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from . import requests
from ._proto import audit_service_pb2 as apb
from ._proto import audit_service_pb2_grpc as rpc
from ._proto import memory_pb2 as pb
from ._proto import memory_service_pb2 as spb
from .core import Core
from .operations import (
    AsyncResource,
    Call,
    Pages,
    Resource,
    async_call,
    async_pages,
    page_of,
    sync_call,
    sync_pages,
)
from .results import Change, Memory
from .views import Owned, View


class AuditEntry(Owned[apb.AuditEntry]):
    """One entry: who did what, when; no content."""

    __slots__ = ()
    NAMES = (
        "number",
        "scope",
        "owner",
        "time",
        "kind",
        "actor",
        "call",
        "outcome",
        "memory_ids",
        "count",
        "sequence",
        "change",
        "detail",
        "hash",
    )

    @property
    def number(self) -> int:
        """Counts from 1 without gaps in each namespace."""
        return self._pb.number

    @property
    def time(self) -> dt.datetime | None:
        """When."""
        return self._time("entry_time")

    @property
    def kind(self) -> str:
        """read, change, admin or denied."""
        return requests.enum_name(apb.AuditKind, "AUDIT_KIND", self._pb.kind)

    @property
    def actor(self) -> str:
        """local, token:ID (behind a < each, those that it was made from), or a job's name."""
        return self._pb.actor

    @property
    def call(self) -> str:
        """By which call, such as MemoryService/Recall."""
        return self._pb.call

    @property
    def outcome(self) -> str:
        """Empty for done, else a reason code."""
        return self._pb.outcome

    @property
    def memory_ids(self) -> list[str]:
        """The first 100 memories."""
        return list(self._pb.memory_ids)

    @property
    def count(self) -> int:
        """How many memories, or calls where there are no memories."""
        return self._pb.count

    @property
    def sequence(self) -> int:
        """The change's number in the change log; 0 for what is not in it."""
        return self._pb.sequence

    @property
    def change(self) -> str:
        """created, updated, superseded, forgotten or purged; "" for what is no change."""
        return requests.enum_name(spb.ChangeKind, "CHANGE_KIND", self._pb.change) if self._pb.change else ""

    @property
    def detail(self) -> str:
        """A missing grant, a token's id, a receipt. Never content."""
        return self._pb.detail

    @property
    def hash(self) -> str:
        """In hex."""
        return self._pb.hash


class AuditChain(Owned[apb.AuditChain]):
    """What a check of one namespace's chain found."""

    __slots__ = ()
    NAMES = (
        "scope",
        "owner",
        "whole",
        "head_number",
        "head_hash",
        "broken_number",
        "problem",
        "missing_count",
        "stray_count",
    )

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not (self._pb.problem or self._pb.missing_count or self._pb.stray_count)

    @property
    def head_number(self) -> int:
        """Number of the last good entry. Keep it with its hash elsewhere."""
        return self._pb.head.number

    @property
    def head_hash(self) -> str:
        """Hash of the last good entry, in hex."""
        return self._pb.head.hash

    @property
    def broken_number(self) -> int:
        """Number of the first broken entry; 0 if there is none."""
        return self._pb.broken_number

    @property
    def problem(self) -> str:
        """What is wrong there."""
        return self._pb.problem

    @property
    def missing_count(self) -> int:
        """Changes without an entry."""
        return self._pb.missing_count

    @property
    def stray_count(self) -> int:
        """Entries whose change is not in the change log, or is another one."""
        return self._pb.stray_count


class Why(View[apb.AuditServiceWhyResponse]):
    """Why a memory is as it is."""

    __slots__ = ()
    NAMES = ("memory", "changes", "related", "reads")

    @property
    def memory(self) -> Memory:
        """As it is now."""
        return Memory(self._pb.memory)

    @property
    def changes(self) -> list[Change]:
        """Its changes, oldest first, with reasons and evidence."""
        return [Change(change) for change in self._pb.changes]

    @property
    def related(self) -> list[dict[str, str]]:
        """Memories that it replaced, that replaced it, or that it contradicts: relation, memory_id, status."""
        return [
            {
                "relation": requests.enum_name(apb.MemoryRelation, "MEMORY_RELATION", one.relation),
                "memory_id": one.memory_id,
                "status": requests.enum_name(pb.Status, "STATUS", one.status),
            }
            for one in self._pb.related
        ]

    @property
    def reads(self) -> list[AuditEntry]:
        """Who was shown it, newest first, as far as the audit noted it; empty without the right `audit`."""
        return [AuditEntry(entry) for entry in self._pb.reads]


def list_(
    core: Core,
    *,
    kinds: Iterable[str] | None = None,
    actor: str = "",
    memory_id: str = "",
    scopes: Iterable[str] | None = None,
    newest_first: bool = True,
    limit: int | None = None,
    timeout_s: float | None = None,
) -> Pages[AuditEntry]:
    """Entries of the client's owners, namespace by namespace. kinds: read, change, admin, denied. Needs the right
    `audit`. Raises InvalidArgument, PermissionDenied.
    """
    wanted = [requests.enum_value(apb.AuditKind, "AUDIT_KIND", kind, "kinds") for kind in kinds or ()]
    request = requests.encodable(
        lambda: apb.AuditServiceQueryRequest(
            owners=core.owners,
            scopes=requests.scopes(scopes),
            kinds=wanted,  # type: ignore[arg-type]
            actor=actor,
            memory_id=memory_id,
            newest_first=newest_first,
        ),
        "the query",
    )
    return Pages(
        Call(rpc.AuditServiceStub, "Query", request, page_of("entries", AuditEntry), timeout_s=timeout_s), limit
    )


def verify(
    core: Core, *, scopes: Iterable[str] | None = None, timeout_s: float | None = None
) -> Call[list[AuditChain]]:
    """Checks the chains of the client's owners, and compares them with the change log. Needs the right `audit`."""
    request = apb.AuditServiceVerifyRequest(owners=core.owners, scopes=requests.scopes(scopes))
    return Call(
        rpc.AuditServiceStub,
        "Verify",
        request,
        lambda response: [AuditChain(chain) for chain in response.chains],
        timeout_s=timeout_s,
    )


def why(core: Core, memory_id: str, *, timeout_s: float | None = None) -> Call[Why]:
    """Where a memory comes from, what decided, what became of it, and who was shown it. Raises NotFound."""
    request = requests.encodable(
        lambda: apb.AuditServiceWhyRequest(owners=core.owners, memory_id=memory_id), "memory_id"
    )
    return Call(rpc.AuditServiceStub, "Why", request, Why, timeout_s=timeout_s)


class Audit(Resource):
    """Who read what, who changed what, and why a memory is as it is."""

    list = sync_pages(list_)
    verify = sync_call(verify)
    why = sync_call(why)


class AsyncAudit(AsyncResource):
    """`Audit` for asyncio."""

    list = async_pages(list_)
    verify = async_call(verify)
    why = async_call(why)
