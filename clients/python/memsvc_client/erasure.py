"""Purges and their receipts.

Purpose: the call of ErasureService, those of AdminService about receipts, and what they return.

Threading: as the client.

Rejected: an option of `forget` (which keeps the text for audit: one slip of the hand would be final).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from . import requests
from ._proto import admin_service_pb2 as apb
from ._proto import admin_service_pb2_grpc as arpc
from ._proto import erasure_service_pb2 as epb
from ._proto import erasure_service_pb2_grpc as rpc
from ._proto import memory_pb2 as pb
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
from .views import View

PURGE_TIMEOUT_S = 600.0


class PurgeReceipt(View[epb.PurgeReceipt]):
    """What was purged, for whom and when; no content."""

    __slots__ = ()
    NAMES = (
        "receipt_id",
        "state",
        "actor",
        "reason",
        "namespaces",
        "memory_ids",
        "start_time",
        "end_time",
        "memory_count",
        "version_count",
        "vector_count",
        "record_count",
        "session_count",
        "answer_count",
        "hash",
    )

    @property
    def receipt_id(self) -> str:
        """rcp_ + UUIDv7; "" for a dry run."""
        return self._pb.receipt_id

    id = receipt_id

    @property
    def state(self) -> str:
        """Started (it is finished by itself, also after a crash) or done."""
        return requests.enum_name(epb.PurgeState, "PURGE_STATE", self._pb.state)

    @property
    def actor(self) -> str:
        """Who asked for it."""
        return self._pb.actor

    @property
    def reason(self) -> str:
        """Why."""
        return self._pb.reason

    @property
    def namespaces(self) -> list[dict[str, Any]]:
        """Removed namespaces, or those that the memories were in: tenant, scope, owner."""
        return [
            {"tenant": n.tenant, "scope": requests.enum_name(pb.Scope, "SCOPE", n.scope), "owner": n.owner}
            for n in self._pb.namespaces
        ]

    @property
    def memory_ids(self) -> list[str]:
        """Memories that were purged by id."""
        return list(self._pb.memory_ids)

    @property
    def start_time(self) -> dt.datetime | None:
        """When it was asked for."""
        return self._time("start_time")

    @property
    def end_time(self) -> dt.datetime | None:
        """When nothing was left."""
        return self._time("end_time")

    @property
    def memory_count(self) -> int:
        """How many memories."""
        return self._pb.memory_count

    @property
    def version_count(self) -> int:
        """How many versions of them."""
        return self._pb.version_count

    @property
    def vector_count(self) -> int:
        """How many vectors."""
        return self._pb.vector_count

    @property
    def record_count(self) -> int:
        """How many records beside them: permanent memories, statistics of use, jobs."""
        return self._pb.record_count

    @property
    def session_count(self) -> int:
        """How many open sessions."""
        return self._pb.session_count

    @property
    def answer_count(self) -> int:
        """How many stored answers to mutations."""
        return self._pb.answer_count

    @property
    def hash(self) -> str:
        """SHA-256 of all other fields, in hex; the audit names it. "" before the end."""
        return self._pb.hash


def purge(
    core: Core,
    memory_ids: Iterable[str] = (),
    *,
    reason: str,
    scopes: Iterable[str] | None = None,
    dry_run: bool = False,
    timeout_s: float | None = None,
) -> Call[PurgeReceipt]:
    """Removes every trace of the client's owners (of all whose ids it has, or of the scopes), or of the named memories.
    It can't be undone, and backups are not reached. dry_run only counts. Waits up to 600 s, or timeout_s; after a
    timeout the server goes on. Needs the right `erase`. Raises InvalidArgument, NotFound, PermissionDenied and
    Unavailable.
    """
    request = requests.encodable(
        lambda: epb.PurgeRequest(
            owners=core.owners,
            scopes=requests.scopes(scopes),
            memory_ids=memory_ids,
            reason=reason,
            dry_run=dry_run,
            request_id=requests.fresh_request_id(),
        ),
        "the purge",
    )
    limit_s = PURGE_TIMEOUT_S if timeout_s is None else timeout_s
    return Call(
        rpc.ErasureServiceStub, "Purge", request, lambda response: PurgeReceipt(response.receipt), timeout_s=limit_s
    )


def receipt(core: Core, receipt_id: str, *, timeout_s: float | None = None) -> Call[PurgeReceipt]:
    """One receipt. Raises NotFound."""
    request = requests.encodable(
        lambda: apb.GetReceiptRequest(tenant=core.owners.tenant, receipt_id=receipt_id), "receipt_id"
    )
    return Call(
        arpc.AdminServiceStub,
        "GetReceipt",
        request,
        lambda response: PurgeReceipt(response.receipt),
        timeout_s=timeout_s,
    )


def receipts(core: Core, *, limit: int | None = None, timeout_s: float | None = None) -> Pages[PurgeReceipt]:
    """Receipts of the client's tenant, newest first."""
    request = apb.ListReceiptsRequest(tenant=core.owners.tenant)
    read = page_of("receipts", PurgeReceipt)
    return Pages(Call(arpc.AdminServiceStub, "ListReceipts", request, read, timeout_s=timeout_s), limit)


class Erasure(Resource):
    """Purges of the client's owners. `forget` keeps the text for audit; this does not."""

    purge = sync_call(purge)
    receipt = sync_call(receipt)
    receipts = sync_pages(receipts)


class AsyncErasure(AsyncResource):
    """`Erasure` for asyncio."""

    purge = async_call(purge)
    receipt = async_call(receipt)
    receipts = async_pages(receipts)
