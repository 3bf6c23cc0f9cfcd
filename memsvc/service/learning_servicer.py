"""The calls of MemoryService that learn and settle what was learnt: Ingest, Review, ListConflicts, ResolveConflict.

Purpose: reads requests, calls the room, writes answers; a part of `MemoryServicer` in a file of its own.

Threading: as `MemoryServicer`.

Rejected: a gRPC service of its own (one client, one address, one permission model: it is the same service).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from memsvc.memory import drafts as rules
from memsvc.memory.ingest import Ingestor
from memsvc.memory.listing import page_size
from memsvc.memory.settling import Settling
from memsvc.model import Scope
from memsvc.service import convert, convert_learning
from memsvc.service.calls import answers, named, reached, still_wanted
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc

if TYPE_CHECKING:
    from collections.abc import Callable

    from memsvc.memory.transactions import Mutation


class LearningCalls(rpc.MemoryServiceServicer):
    """See the module; `MemoryServicer` sets the attributes and has the helper."""

    _ingestor: Ingestor
    _settling: Settling
    _clock_us: Callable[[], int]

    def _mutation(self, request: Any) -> Mutation:
        raise NotImplementedError

    @answers
    def Ingest(self, request: spb.IngestRequest, context: grpc.ServicerContext) -> spb.IngestResponse:
        """Judges messages and stores what is worth keeping."""
        now_us = self._clock_us()
        judged = self._ingestor.ingest(
            convert.owners(request.owners),
            convert.optional_enum(Scope, request.scope, "scope"),
            [convert_learning.said(m, f"messages[{i}]", now_us) for i, m in enumerate(request.messages)],
            session_id=request.session_id,
            tool=request.tool,
            dry_run=request.dry_run,
            mutation=self._mutation(request),
            still_wanted=still_wanted(context),
        )
        return spb.IngestResponse(verdicts=[convert_learning.verdict(one) for one in judged])

    @answers
    def Review(self, request: spb.ReviewRequest, context: grpc.ServicerContext) -> spb.ReviewResponse:
        """Carries out a person's decisions."""
        decisions = [convert_learning.decision(d, f"decisions[{i}]") for i, d in enumerate(request.decisions)]
        owner_ids, namespaces = reached(request)
        memories = self._settling.review(namespaces, owner_ids, decisions, self._mutation(request))
        now_us = self._clock_us()
        return spb.ReviewResponse(memories=[convert.memory_message(memory, now_us) for memory in memories])

    @answers
    def ListConflicts(
        self, request: spb.ListConflictsRequest, context: grpc.ServicerContext
    ) -> spb.ListConflictsResponse:
        """Lists what waits for a person."""
        size = page_size(request.page_size)
        conflicts, token = self._settling.conflicts(named(request), size, request.page_token)
        now_us = self._clock_us()
        return spb.ListConflictsResponse(
            conflicts=[convert_learning.conflict_message(one, now_us) for one in conflicts], next_page_token=token
        )

    @answers
    def ResolveConflict(
        self, request: spb.ResolveConflictRequest, context: grpc.ServicerContext
    ) -> spb.ResolveConflictResponse:
        """Settles a contradiction."""
        rules.check_memory_id(request.memory_id, "memory_id")
        rules.check_length(request.reason, rules.REASON_MAX_CHARS, "reason")
        resolution = convert_learning.resolution(request.resolution)
        owner_ids, namespaces = reached(request)
        memories = self._settling.resolve(
            namespaces, owner_ids, request.memory_id, resolution, request.reason, self._mutation(request)
        )
        now_us = self._clock_us()
        return spb.ResolveConflictResponse(memories=[convert.memory_message(memory, now_us) for memory in memories])
