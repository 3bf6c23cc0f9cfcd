"""Permanent memories: profile, safety limits, agent identity.

Purpose: the calls of PermanentService, and what they return.

Threading: as the client.

Rejected: these as memories of `recall` (they are rules of every session, not answers to questions).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

from . import requests
from ._proto import memory_pb2 as pb
from ._proto import permanent_service_pb2 as ppb
from ._proto import permanent_service_pb2_grpc as rpc
from .core import Core
from .operations import AsyncResource, Call, Resource, async_call, sync_call
from .views import Owned


class PermanentMemory(Owned[ppb.PermanentMemory]):
    """One version of a permanent memory or of a proposal."""

    __slots__ = ()
    NAMES = (
        "memory_id",
        "version",
        "scope",
        "owner",
        "kind",
        "content",
        "status",
        "proposed_from",
        "actor",
        "reason",
        "create_time",
        "update_time",
    )

    @property
    def memory_id(self) -> str:
        """mem_ + UUIDv7."""
        return self._pb.memory_id

    id = memory_id

    @property
    def version(self) -> int:
        """Counts from 1."""
        return self._pb.version

    @property
    def kind(self) -> str:
        """What it is: profile (the user), safety (what must never be done) or identity (the agent)."""
        return requests.enum_name(ppb.PermanentKind, "PERMANENT_KIND", self._pb.kind)

    @property
    def content(self) -> str:
        """The statement."""
        return self._pb.content

    @property
    def status(self) -> str:
        """active, pending for a proposal, forgotten when removed or rejected."""
        return requests.enum_name(pb.Status, "STATUS", self._pb.status)

    @property
    def proposed_from(self) -> str:
        """Id of the ordinary memory that it was proposed from, or ""."""
        return self._pb.proposed_from

    @property
    def actor(self) -> str:
        """Who wrote this version."""
        return self._pb.actor

    @property
    def reason(self) -> str:
        """Why."""
        return self._pb.reason

    @property
    def create_time(self) -> dt.datetime | None:
        """When it was first stored."""
        return self._time("create_time")

    @property
    def update_time(self) -> dt.datetime | None:
        """When this version was stored."""
        return self._time("update_time")


def list_(
    core: Core,
    *,
    include_proposals: bool = False,
    scopes: Iterable[str] | None = None,
    timeout_s: float | None = None,
) -> Call[list[PermanentMemory]]:
    """What stands: safety limits, then identity, then profile, each oldest first; also proposals that wait for a person
    if asked for. At most 200 per namespace.
    """
    request = ppb.PermanentServiceListRequest(
        owners=core.owners, scopes=requests.scopes(scopes), include_proposals=include_proposals
    )
    return Call(
        rpc.PermanentServiceStub,
        "List",
        request,
        lambda response: [PermanentMemory(memory) for memory in response.memories],
        timeout_s=timeout_s,
    )


def propose(
    core: Core, content: str = "", *, kind: str, reason: str, memory_id: str = "", scope: str | None = None
) -> Call[PermanentMemory]:
    """Asks for a statement, or for an ordinary memory's, to become permanent; a person decides. The proposal, or what
    says the same already. kind: profile, safety or identity. Raises NotFound, FailedPrecondition, ResourceExhausted.
    """
    return _mutation(
        core,
        "Propose",
        ppb.PermanentServiceProposeRequest,
        scope=requests.scope(scope),
        kind=_kind(kind),
        content=content,
        memory_id=memory_id,
        reason=reason,
    )


def decide(core: Core, memory_id: str, *, accept: bool, reason: str) -> Call[PermanentMemory]:
    """Accepts or rejects a proposal. Raises NotFound, and FailedPrecondition for what is none."""
    return _mutation(
        core, "Decide", ppb.PermanentServiceDecideRequest, memory_id=memory_id, accept=accept, reason=reason
    )


def put(
    core: Core, content: str, *, kind: str, reason: str, memory_id: str = "", scope: str | None = None
) -> Call[PermanentMemory]:
    """Writes a permanent memory, or another wording or kind of the one with `memory_id`. kind: profile, safety or
    identity. Raises NotFound, FailedPrecondition, ResourceExhausted.
    """
    return _mutation(
        core,
        "Put",
        ppb.PermanentServicePutRequest,
        scope=requests.scope(scope),
        kind=_kind(kind),
        content=content,
        memory_id=memory_id,
        reason=reason,
    )


def remove(core: Core, memory_id: str, *, reason: str) -> Call[PermanentMemory]:
    """Takes a permanent memory out; its versions are kept for audit. Raises NotFound, FailedPrecondition."""
    return _mutation(core, "Remove", ppb.PermanentServiceRemoveRequest, memory_id=memory_id, reason=reason)


def history(core: Core, memory_id: str, *, timeout_s: float | None = None) -> Call[list[PermanentMemory]]:
    """All versions, newest first. Raises NotFound."""
    request = requests.encodable(
        lambda: ppb.PermanentServiceHistoryRequest(owners=core.owners, memory_id=memory_id), "memory_id"
    )
    return Call(
        rpc.PermanentServiceStub,
        "History",
        request,
        lambda response: [PermanentMemory(version) for version in response.versions],
        timeout_s=timeout_s,
    )


def _kind(kind: str) -> int:
    return requests.enum_value(ppb.PermanentKind, "PERMANENT_KIND", kind, "kind")


def _mutation(core: Core, name: str, request_class: Callable[..., Any], **fields: Any) -> Call[PermanentMemory]:
    """A call that writes: with a fresh request_id, and retried. Recalls do not know permanent memories, so nothing is
    demanded of the next one.
    """
    request = requests.encodable(
        lambda: request_class(owners=core.owners, request_id=requests.fresh_request_id(), **fields),
        "the permanent memory",
    )
    return Call(
        rpc.PermanentServiceStub, name, request, lambda response: PermanentMemory(response.memory), retried=True
    )


class Permanent(Resource):
    """Permanent memories of the client's owners: in every context, written by the maintenance path only."""

    list = sync_call(list_)
    propose = sync_call(propose)
    decide = sync_call(decide)
    put = sync_call(put)
    remove = sync_call(remove)
    history = sync_call(history)


class AsyncPermanent(AsyncResource):
    """`Permanent` for asyncio."""

    list = async_call(list_)
    propose = async_call(propose)
    decide = async_call(decide)
    put = async_call(put)
    remove = async_call(remove)
    history = async_call(history)
