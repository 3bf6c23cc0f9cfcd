"""The FactService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own.

Threading: methods run on the server's threads.

Rejected: facts as calls of MemoryService (their values are typed, a memory's content is a statement).
"""

from __future__ import annotations

from typing import Any

import grpc

from memsvc.memory.facts import Facts
from memsvc.memory.listing import page_size
from memsvc.memory.owners import check, namespace_for
from memsvc.model import Fact, Scope
from memsvc.service import convert
from memsvc.service.calls import answers, mutation, named
from memsvc.service.convert_facts import fact_message, value
from memsvc.v1 import fact_service_pb2 as fpb
from memsvc.v1 import fact_service_pb2_grpc as rpc


class FactServicer(rpc.FactServiceServicer):
    """See the module."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @answers
    def Put(self, request: fpb.FactServicePutRequest, context: grpc.ServicerContext) -> fpb.FactServicePutResponse:
        """Sets the value of a key."""
        done = self._facts.put(
            convert.owners(request.owners),
            convert.optional_enum(Scope, request.scope, "scope"),
            Fact(request.key, value(request.value, "value")),
            _if_version(request),
            convert.source(request.source),
            request.reason,
            mutation(request),
        )
        at = convert.at_message(done.memory.namespace, done.memory.sequence)
        return fpb.FactServicePutResponse(fact=fact_message(done.memory), changed=done.changed, at=at)

    @answers
    def Get(self, request: fpb.FactServiceGetRequest, context: grpc.ServicerContext) -> fpb.FactServiceGetResponse:
        """Reads keys."""
        memories = self._facts.get(named(request), list(request.keys))
        return fpb.FactServiceGetResponse(facts=[fact_message(memory) for memory in memories])

    @answers
    def List(self, request: fpb.FactServiceListRequest, context: grpc.ServicerContext) -> fpb.FactServiceListResponse:
        """Lists facts in order of their keys."""
        size = page_size(request.page_size)
        page, token = self._facts.list_page(named(request), request.key_prefix, size, request.page_token)
        return fpb.FactServiceListResponse(facts=[fact_message(memory) for memory in page], next_page_token=token)

    @answers
    def History(
        self, request: fpb.FactServiceHistoryRequest, context: grpc.ServicerContext
    ) -> fpb.FactServiceHistoryResponse:
        """All versions of a key."""
        owner_ids = convert.owners(request.owners)
        check(owner_ids)
        namespace = namespace_for(owner_ids, convert.optional_enum(Scope, request.scope, "scope"))
        versions = self._facts.history(namespace, request.key)
        return fpb.FactServiceHistoryResponse(facts=[fact_message(memory) for memory in versions])

    @answers
    def Delete(
        self, request: fpb.FactServiceDeleteRequest, context: grpc.ServicerContext
    ) -> fpb.FactServiceDeleteResponse:
        """Removes a key."""
        done = self._facts.delete(
            convert.owners(request.owners),
            convert.optional_enum(Scope, request.scope, "scope"),
            request.key,
            _if_version(request),
            request.reason,
            mutation(request),
        )
        return fpb.FactServiceDeleteResponse(deleted=done.deleted, at=convert.at_message(done.namespace, done.sequence))

    @answers
    def Match(
        self, request: fpb.FactServiceMatchRequest, context: grpc.ServicerContext
    ) -> fpb.FactServiceMatchResponse:
        """The facts that a text mentions."""
        memories = self._facts.match(named(request), request.query)
        return fpb.FactServiceMatchResponse(facts=[fact_message(memory) for memory in memories])


def _if_version(request: Any) -> int | None:
    return request.if_version if request.HasField("if_version") else None
