"""The PermanentService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own.

Threading: methods run on the server's threads.

Rejected: calls of MemoryService for these (the maintenance path gets a permission of its own).
"""

from __future__ import annotations

import grpc

from memsvc.errors import InvalidArgument
from memsvc.memory.owners import namespace_for
from memsvc.memory.permanent import Permanent, PermanentKind, PermanentMemory
from memsvc.model import Scope
from memsvc.service import convert
from memsvc.service.calls import answers, mutation, named, reached
from memsvc.v1 import permanent_service_pb2 as ppb
from memsvc.v1 import permanent_service_pb2_grpc as rpc


class PermanentServicer(rpc.PermanentServiceServicer):
    """See the module."""

    def __init__(self, permanent: Permanent) -> None:
        self._permanent = permanent

    @answers
    def List(
        self, request: ppb.PermanentServiceListRequest, context: grpc.ServicerContext
    ) -> ppb.PermanentServiceListResponse:
        """Lists what stands, and proposals when asked for."""
        found = self._permanent.listed(named(request), include_proposals=request.include_proposals)
        return ppb.PermanentServiceListResponse(memories=[_message(memory) for memory in found])

    @answers
    def Propose(
        self, request: ppb.PermanentServiceProposeRequest, context: grpc.ServicerContext
    ) -> ppb.PermanentServiceProposeResponse:
        """Asks for a statement, or an ordinary memory's, to become permanent."""
        owner_ids, namespaces = reached(request)
        kind, scope = _kind(request.kind), convert.optional_enum(Scope, request.scope, "scope")
        change = mutation(request)
        if request.memory_id:
            if request.content:
                raise InvalidArgument("give content or memory_id, not both", field="content")
            into = None if scope is None else namespace_for(owner_ids, scope)
            proposed = self._permanent.propose_memory(
                owner_ids, namespaces, into, kind, request.memory_id, request.reason, change
            )
        else:
            into = namespace_for(owner_ids, scope)
            proposed = self._permanent.propose(owner_ids, into, kind, request.content, request.reason, change)
        return ppb.PermanentServiceProposeResponse(memory=_message(proposed))

    @answers
    def Decide(
        self, request: ppb.PermanentServiceDecideRequest, context: grpc.ServicerContext
    ) -> ppb.PermanentServiceDecideResponse:
        """Accepts or rejects a proposal."""
        owner_ids, namespaces = reached(request)
        decided = self._permanent.decide(
            owner_ids, namespaces, request.memory_id, request.accept, request.reason, mutation(request)
        )
        return ppb.PermanentServiceDecideResponse(memory=_message(decided))

    @answers
    def Put(
        self, request: ppb.PermanentServicePutRequest, context: grpc.ServicerContext
    ) -> ppb.PermanentServicePutResponse:
        """Writes or replaces a permanent memory."""
        owner_ids, namespaces = reached(request)
        kind, scope = _kind(request.kind), convert.optional_enum(Scope, request.scope, "scope")
        change = mutation(request)
        if request.memory_id:
            among = namespaces if scope is None else [namespace_for(owner_ids, scope)]
            stored = self._permanent.replace(
                owner_ids, among, request.memory_id, kind, request.content, request.reason, change
            )
        else:
            into = namespace_for(owner_ids, scope)
            stored = self._permanent.put(owner_ids, into, kind, request.content, request.reason, change)
        return ppb.PermanentServicePutResponse(memory=_message(stored))

    @answers
    def Remove(
        self, request: ppb.PermanentServiceRemoveRequest, context: grpc.ServicerContext
    ) -> ppb.PermanentServiceRemoveResponse:
        """Takes a permanent memory out."""
        owner_ids, namespaces = reached(request)
        removed = self._permanent.remove(owner_ids, namespaces, request.memory_id, request.reason, mutation(request))
        return ppb.PermanentServiceRemoveResponse(memory=_message(removed))

    @answers
    def History(
        self, request: ppb.PermanentServiceHistoryRequest, context: grpc.ServicerContext
    ) -> ppb.PermanentServiceHistoryResponse:
        """All versions, newest first."""
        _, namespaces = reached(request)
        versions = self._permanent.history(namespaces, request.memory_id)
        return ppb.PermanentServiceHistoryResponse(versions=[_message(version) for version in versions])


def _kind(value: int) -> PermanentKind:
    kind: PermanentKind | None = convert.optional_enum(PermanentKind, value, "kind")
    if kind is None:
        raise InvalidArgument("kind is not set: PROFILE, SAFETY or IDENTITY", field="kind")
    return kind


def _message(memory: PermanentMemory) -> ppb.PermanentMemory:
    return ppb.PermanentMemory(
        memory_id=memory.memory_id,
        version=memory.version,
        namespace=convert.namespace_message(memory.namespace),
        kind=int(memory.kind),  # type: ignore[arg-type]
        content=memory.content,
        status=int(memory.status),  # type: ignore[arg-type]
        proposed_from=memory.proposed_from,
        actor=memory.actor,
        reason=memory.reason,
        create_time=convert.timestamp(memory.create_time_us),
        update_time=convert.timestamp(memory.update_time_us),
    )
