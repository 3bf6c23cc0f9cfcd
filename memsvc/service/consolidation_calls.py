"""The calls of SessionService about a session's end: End and GetConsolidation.

Purpose: reads requests, calls the consolidator, writes answers; a part of `SessionServicer` in a file of its own.

Threading: as `SessionServicer`. GetConsolidation holds its thread while it waits; the consolidator bounds how many do.

Rejected: a stream of progress (a session is consolidated in seconds, and polling with a wait needs no stream's thread).
"""

from __future__ import annotations

import grpc

from memsvc.errors import InvalidArgument
from memsvc.memory.sessions.consolidation import Consolidation, Consolidator
from memsvc.model import Scope
from memsvc.service import convert
from memsvc.service.calls import actor, answers, left_s, still_wanted
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as rpc

WAIT_MAX_S = 60.0


class ConsolidationCalls(rpc.SessionServiceServicer):
    """See the module; `SessionServicer` sets the attribute."""

    _consolidator: Consolidator

    @answers
    def End(  # noqa: N802  (the method of the contract)
        self, request: spb.SessionServiceEndRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceEndResponse:
        """Ends a session; consolidation runs behind the answer."""
        view = self._consolidator.end(
            convert.owners(request.owners),
            convert.optional_enum(Scope, request.scope, "scope"),
            request.discard,
            actor(),
        )
        return spb.SessionServiceEndResponse(consolidation=consolidation_message(view))

    @answers
    def GetConsolidation(  # noqa: N802  (the method of the contract)
        self, request: spb.SessionServiceGetConsolidationRequest, context: grpc.ServicerContext
    ) -> spb.SessionServiceGetConsolidationResponse:
        """How far a consolidation is, waiting for it if asked to."""
        wait_s = request.wait.seconds + request.wait.nanos / 1e9
        if not 0.0 <= wait_s <= WAIT_MAX_S:
            raise InvalidArgument(f"wait must be from 0 to {WAIT_MAX_S:.0f} s", field="wait")
        view = self._consolidator.wait(convert.owners(request.owners), left_s(context, wait_s), still_wanted(context))
        return spb.SessionServiceGetConsolidationResponse(consolidation=consolidation_message(view))


def consolidation_message(view: Consolidation) -> spb.Consolidation:
    """The contract's message."""
    return spb.Consolidation(
        session_id=view.session_id,
        state=int(view.state),  # type: ignore[arg-type]
        done_turns=view.done_turns,
        total_turns=view.total_turns,
        results=[convert.write_result(result) for result in view.results],
        episode_id=view.episode_id,
        error=view.error,
        create_time=convert.timestamp(view.create_time_us),
        update_time=convert.timestamp(view.update_time_us),
        set_aside_id=view.set_aside_id,
    )
