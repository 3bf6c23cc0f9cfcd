"""SessionService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own. Assemble, End and GetConsolidation
come from the calls beside this file.

Threading: methods run on the server's threads.

Rejected: a stream of turns (a call a turn costs little more than an echo, and its answer says that the turn is safe).
"""

from __future__ import annotations

from collections.abc import Callable

import grpc

from memsvc.memory.context import ContextBuilder
from memsvc.memory.listing import page_size
from memsvc.memory.sessions.consolidation import Consolidator
from memsvc.memory.sessions.sessions import Sessions
from memsvc.memory.token_counts import TokenCounts
from memsvc.service import convert, convert_learning, convert_sessions
from memsvc.service.calls import answers, mutation
from memsvc.service.consolidation_calls import ConsolidationCalls
from memsvc.service.context_servicer import AssembleCalls
from memsvc.v1 import session_service_pb2 as spb


class SessionServicer(ConsolidationCalls, AssembleCalls):
    """See the module."""

    def __init__(
        self,
        sessions: Sessions,
        consolidator: Consolidator,
        builder: ContextBuilder,
        *,
        latency_budget_s: float,
        clock_us: Callable[[], int],
        counts: TokenCounts,
    ) -> None:
        self._sessions = sessions
        self._consolidator = consolidator
        self._builder = builder
        self._latency_budget_s = latency_budget_s
        self._clock_us = clock_us
        self._counts = counts

    @answers
    def Start(
        self, request: spb.SessionServiceStartRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceStartResponse:
        """Opens a session, or returns the open one."""
        ttl_us = convert.duration_us(request.ttl, "ttl") if request.HasField("ttl") else 0
        session, resumed = self._consolidator.open(
            convert.owners(request.owners), tool=request.tool, ttl_us=ttl_us, goal=request.goal
        )
        return spb.SessionServiceStartResponse(session=convert_sessions.session_message(session), resumed=resumed)

    @answers
    def AppendTurns(
        self, request: spb.SessionServiceAppendTurnsRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceAppendTurnsResponse:
        """Appends turns in order."""
        now_us = self._clock_us()
        turns = [convert_learning.said(turn, f"turns[{i}]", now_us) for i, turn in enumerate(request.turns)]
        first, count = self._sessions.append_turns(convert.owners(request.owners), turns, mutation(request))
        return spb.SessionServiceAppendTurnsResponse(first_turn=first, turn_count=count)

    @answers
    def GetState(
        self, request: spb.SessionServiceGetStateRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceGetStateResponse:
        """State, window and summary."""
        session = self._sessions.get(convert.owners(request.owners))
        return convert_sessions.get_response(session, self._counts.of)

    @answers
    def UpdateState(
        self, request: spb.SessionServiceUpdateStateRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceUpdateStateResponse:
        """Changes the state by hand."""
        session = self._sessions.update_state(
            convert.owners(request.owners), convert_sessions.change(request), request.etag
        )
        return spb.SessionServiceUpdateStateResponse(
            session=convert_sessions.session_message(session), state=convert_sessions.state_message(session.state)
        )

    @answers
    def RecordToolOutput(
        self, request: spb.SessionServiceRecordToolOutputRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceRecordToolOutputResponse:
        """Keeps what a tool returned."""
        truncated = self._sessions.record_tool_output(
            convert.owners(request.owners), request.tool, request.content, mutation(request)
        )
        return spb.SessionServiceRecordToolOutputResponse(truncated=truncated)

    @answers
    def List(
        self, request: spb.SessionServiceListRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceListResponse:
        """Open sessions of the owners, page by page."""
        found, token = self._sessions.list(
            convert.owners(request.owners), page_size(request.page_size), request.page_token
        )
        return spb.SessionServiceListResponse(
            sessions=[convert_sessions.session_message(session) for session in found], next_page_token=token
        )
