"""ContextService of the contract, and the Assemble call of SessionService.

Purpose: reads requests, calls the context builder, writes answers; holds no rules of its own.

Threading: methods run on the server's threads.

Rejected: converting hits to messages first (a block needs lines, not records).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from memsvc.memory.context import (
    BUDGET_DEFAULT,
    MEMORIES_DEFAULT,
    Block,
    ContextBuilder,
    ContextRequest,
)
from memsvc.memory.context_text import Format, Order, Section
from memsvc.memory.owners import check, namespace_for, namespaces_for
from memsvc.model import NO_FILTER, Scope
from memsvc.service import convert
from memsvc.service.calls import answers, budget_s
from memsvc.v1 import context_pb2 as cpb
from memsvc.v1 import context_service_pb2 as csb
from memsvc.v1 import context_service_pb2_grpc as rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as session_rpc

if TYPE_CHECKING:
    from memsvc.memory.sessions.sessions import Sessions


class ContextServicer(rpc.ContextServiceServicer):
    """See the module. `latency_budget_s` is the time of a recall that names none."""

    def __init__(self, builder: ContextBuilder, latency_budget_s: float) -> None:
        self._builder = builder
        self._latency_budget_s = latency_budget_s

    @answers
    def AssembleContext(
        self, request: csb.AssembleContextRequest, context: grpc.ServicerContext
    ) -> csb.AssembleContextResponse:
        """One block for a prompt."""
        asked = context_request(request.owners, request.query, request.options, self._latency_budget_s, context)
        return csb.AssembleContextResponse(context=context_message(self._builder.assemble(asked), asked.form))


class AssembleCalls(session_rpc.SessionServiceServicer):
    """The Assemble call; `SessionServicer` sets the attributes."""

    _builder: ContextBuilder
    _latency_budget_s: float
    _sessions: Sessions

    @answers
    def Assemble(
        self, request: spb.SessionServiceAssembleRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceAssembleResponse:
        """The block for the next prompt of an open session."""
        self._sessions.get(convert.owners(request.owners))  # raises where there is none
        asked = context_request(request.owners, request.query, request.options, self._latency_budget_s, context)
        return spb.SessionServiceAssembleResponse(context=context_message(self._builder.assemble(asked), asked.form))


def context_request(
    owner_ids: pb.Owners, query: str, options: cpb.ContextOptions, default_s: float, context: grpc.ServicerContext
) -> ContextRequest:
    """What to assemble. Raises InvalidArgument and LimitExceeded naming the field."""
    owners = convert.owners(owner_ids)
    check(owners)
    return ContextRequest(
        namespaces=namespaces_for(owners, convert.enums(Scope, options.scopes, "options.scopes")),
        query=query,
        session=namespace_for(owners, Scope.SESSION) if owners.session_id is not None else None,
        session_id=owners.session_id or "",
        token_budget=options.token_budget or BUDGET_DEFAULT,
        sections=convert.enums(Section, options.sections, "options.sections"),
        form=convert.optional_enum(Format, options.format, "options.format") or Format.TEXT,
        best_last=convert.optional_enum(Order, options.order, "options.order") != Order.BEST_FIRST,
        max_memories=options.max_memories or MEMORIES_DEFAULT,
        condition=convert.condition(options.filter) if options.HasField("filter") else NO_FILTER,
        min_score=options.min_score if options.HasField("min_score") else float("-inf"),
        budget_s=budget_s(context, options, "options.latency_budget", default_s),
    )


def context_message(block: Block, form: Format) -> cpb.Context:
    """The block."""
    messages = [cpb.ContextMessage(role="system", content=block.prompt)] if form == Format.MESSAGES else []
    return cpb.Context(
        text=block.text,
        messages=messages if block.prompt else [],
        token_count=block.token_count,
        lines=[
            cpb.ContextLine(
                section=int(line.section),  # type: ignore[arg-type]
                text=line.text,
                memory_id=line.memory_id,
                score=line.score,
            )
            for line in block.lines
        ],
        left_out_count=block.left_out_count,
        degraded=block.degraded,
    )
