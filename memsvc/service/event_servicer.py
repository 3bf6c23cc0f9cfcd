"""The EventService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own.

Threading: methods run on the server's threads.

Rejected: two calls instead of one Query (a question and conditions go together: "the last error with this order").
"""

from __future__ import annotations

from collections.abc import Callable

import grpc

from memsvc.errors import InvalidArgument
from memsvc.memory.drafts import Draft
from memsvc.memory.events import EventQuery, Events, FoundEvent
from memsvc.memory.listing import PAGE_SIZE_DEFAULT, page_size
from memsvc.memory.recall import TOP_K_MAX
from memsvc.model import Scope
from memsvc.service import convert
from memsvc.service.calls import answers, left_s, mutation, named, still_wanted
from memsvc.service.convert_facts import value
from memsvc.v1 import event_service_pb2 as epb
from memsvc.v1 import event_service_pb2_grpc as rpc

QUESTION_BUDGET_S = 2.0  # the answer has no field for "degraded": the question's vector is waited for


class EventServicer(rpc.EventServiceServicer):
    """See the module."""

    def __init__(self, events: Events, *, clock_us: Callable[[], int]) -> None:
        self._events = events
        self._clock_us = clock_us

    @answers
    def Record(
        self, request: epb.EventServiceRecordRequest, context: grpc.ServicerContext
    ) -> epb.EventServiceRecordResponse:
        """Records one event."""
        if not request.HasField("event"):
            raise InvalidArgument("event is not set; it names the event_type", field="event")
        draft = Draft(
            content=request.summary,
            scope=convert.optional_enum(Scope, request.scope, "scope"),
            tags=tuple(request.tags),
            source=convert.source(request.source),
            importance=request.importance if request.HasField("importance") else None,
            occur_time_us=convert.time_us(request.occur_time, "occur_time") if request.HasField("occur_time") else None,
            event=convert.event(request.event),
        )
        owner_ids = convert.owners(request.owners)
        result = self._events.record(owner_ids, draft, mutation(request), still_wanted(context))
        return epb.EventServiceRecordResponse(result=convert.write_result(result))

    @answers
    def Query(
        self, request: epb.EventServiceQueryRequest, context: grpc.ServicerContext
    ) -> epb.EventServiceQueryResponse:
        """Finds events by conditions, or by a question."""
        namespaces = named(request)
        query = EventQuery(
            occur_time=convert.span(request, "occur_time", "occur_time"),
            event_types=tuple(request.event_types),
            payload=tuple((c.field, value(c.equals, f"payload[{i}].equals")) for i, c in enumerate(request.payload)),
            participant=request.participant,
            mentions=request.mentions,
        )
        size = page_size(request.page_size)
        if request.query.strip():
            if request.page_token or request.newest_first:
                field = "page_token" if request.page_token else "newest_first"
                raise InvalidArgument(f"{field} does not go with a query, which is answered best first", field=field)
            if request.page_size > TOP_K_MAX:
                raise InvalidArgument(f"page_size must be at most {TOP_K_MAX} with a query", field="page_size")
            size = request.page_size or PAGE_SIZE_DEFAULT
            budget_s = left_s(context, QUESTION_BUDGET_S)
            found = self._events.answer(namespaces, request.query, query, size, budget_s, still_wanted(context))
            return self._response(found, "")
        found, token = self._events.page(
            namespaces, query, size, request.page_token, request.newest_first, still_wanted(context)
        )
        return self._response(found, token)

    def _response(self, found: list[FoundEvent], token: str) -> epb.EventServiceQueryResponse:
        now_us = self._clock_us()
        events = [
            epb.FoundEvent(
                memory=convert.memory_message(one.memory, now_us),
                causes=[convert.memory_message(memory, now_us) for memory in one.causes],
                consequences=[convert.memory_message(memory, now_us) for memory in one.consequences],
                score=one.score,
            )
            for one in found
        ]
        return epb.EventServiceQueryResponse(events=events, next_page_token=token)
