"""Events: what happened, in order, and what caused what.

Purpose: the calls of EventService, and what they return.

Threading: as the client.

Rejected: a list for a question and an iterator for conditions (they go together: "the last error with this order").
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from . import requests
from ._proto import event_service_pb2 as epb
from ._proto import event_service_pb2_grpc as rpc
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
from .results import Memory, WriteResult
from .values import struct, to_struct, to_value

Span = tuple[dt.datetime | None, dt.datetime | None]


class Event(Memory):
    """An event: a memory whose content is its summary."""

    __slots__ = ("_found",)
    NAMES = (*(name for name in Memory.NAMES if name != "event"), "event_type", "payload", "participants", "caused_by")

    def __init__(self, memory: pb.Memory, found: epb.FoundEvent | None = None) -> None:
        super().__init__(memory)
        self._found = epb.FoundEvent() if found is None else found

    @property
    def summary(self) -> str:
        """What happened in one line."""
        return self._pb.content

    @property
    def event_type(self) -> str:
        """task_start, task_end, error, recovery, feedback, or a word of the writer's own."""
        return self._pb.event.event_type

    @property
    def payload(self) -> dict[str, Any]:
        """Structured data."""
        return struct(self._pb.event.payload)

    @property
    def participants(self) -> list[str]:
        """Who took part."""
        return list(self._pb.event.participants)

    @property
    def caused_by(self) -> list[str]:
        """Ids of the events that led to it."""
        return list(self._pb.event.caused_by)

    @property
    def causes(self) -> list[Event]:
        """The events that led to it, oldest first."""
        return [Event(memory) for memory in self._found.causes]

    @property
    def consequences(self) -> list[Event]:
        """The events that it led to, oldest first."""
        return [Event(memory) for memory in self._found.consequences]

    @property
    def score(self) -> float:
        """How well it answers the query; 0 without one."""
        return self._found.score

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready; causes and consequences without theirs."""
        links = {name: [one._alone() for one in getattr(self, name)] for name in ("causes", "consequences")}
        return {**self._alone(), **links, "score": self.score}

    def _alone(self) -> dict[str, Any]:
        return super().to_dict()


def record(
    core: Core,
    summary: str,
    *,
    event_type: str,
    payload: Mapping[str, Any] | None = None,
    participants: Iterable[str] = (),
    caused_by: Iterable[str] = (),
    occur_time: dt.datetime | None = None,
    tags: Iterable[str] = (),
    importance: float | None = None,
    scope: str | None = None,
    tool: str = "",
    session_id: str | None = None,
    message_id: str = "",
) -> Call[WriteResult]:
    """Records what happened in one line of at most 100 characters; durable when it returns.

    event_type: task_start, task_end, error, recovery, feedback, or a word of your own. payload: JSON values.
    caused_by: ids of events that led to it. occur_time: when it happened; now if None. Retried with the same
    request_id, so it is stored once. Raises InvalidArgument, also for a cause that is no event of the same scope.
    """

    def build() -> epb.EventServiceRecordRequest:
        return epb.EventServiceRecordRequest(
            owners=core.owners,
            scope=requests.scope(scope),
            summary=summary,
            event=pb.EventDetail(
                event_type=event_type,
                payload=None if payload is None else to_struct(payload, "payload"),
                participants=requests.texts(participants, "participants"),
                caused_by=requests.texts(caused_by, "caused_by"),
            ),
            occur_time=None if occur_time is None else requests.timestamp(occur_time, "occur_time"),
            tags=requests.texts(tags, "tags"),
            source=core.source(tool, session_id, message_id),
            importance=importance,
            request_id=requests.fresh_request_id(),
        )

    request: epb.EventServiceRecordRequest = requests.encodable(build, "the event")

    def read(response: epb.EventServiceRecordResponse) -> WriteResult:
        core.wrote([_draft(request)], [response.result])
        return WriteResult(response.result)

    return Call(rpc.EventServiceStub, "Record", request, read, retried=True)


def _draft(request: epb.EventServiceRecordRequest) -> spb.MemoryDraft:
    """The memory that the event is, for the recent memories of the client."""
    return spb.MemoryDraft(
        content=request.summary,
        type=pb.MEMORY_TYPE_EVENT,
        layer=pb.LAYER_EPISODIC,
        tags=request.tags,
        source=request.source,
        importance=request.importance if request.HasField("importance") else None,
        occur_time=request.occur_time if request.HasField("occur_time") else None,
        event=request.event,
    )


def query(
    core: Core,
    /,
    query: str = "",
    *,
    event_types: Iterable[str] | None = None,
    occur_time: Span | None = None,
    payload: Mapping[str, Any] | None = None,
    participant: str = "",
    mentions: str = "",
    scopes: Iterable[str] | None = None,
    top_k: int | None = None,
    newest_first: bool = False,
    page_size: int = 100,
    timeout_s: float | None = None,
    **others: Any,
) -> Pages[Event]:
    """Events that pass all conditions, oldest first; with a query, a question, the best first, each with the events
    that led to it and that it led to. At most top_k; else all, or 50 with a query. Pages are fetched as needed.

    occur_time: (start, end), either may be None. payload: fields and the values that they equal; dots go into nested
    objects. participant: who took part. mentions: an identifier in summary, tags, participants or payload, matched
    whole. newest_first: not with a query. `text` and `limit` are accepted for query and top_k.
    Raises InvalidArgument, and TypeError for an unknown name.
    """
    query, top_k = requests.guessed("query", others, query=query, top_k=top_k)
    asked = bool(query.strip())
    size = page_size if top_k is None and not asked else top_k if asked else min(top_k or 0, page_size)
    request = requests.encodable(
        lambda: epb.EventServiceQueryRequest(
            owners=core.owners,
            scopes=requests.scopes(scopes),
            occur_time=None if occur_time is None else requests.time_range(occur_time, "occur_time"),
            event_types=requests.texts(event_types, "event_types"),
            payload=[
                epb.PayloadCondition(field=field, equals=to_value(value, f"payload.{field}"))
                for field, value in (payload or {}).items()
            ],
            participant=participant,
            mentions=mentions,
            query=query,
            page_size=size,
            newest_first=newest_first,
        ),
        "the query",
    )
    call = Call(rpc.EventServiceStub, "Query", request, page_of("events", _event), timeout_s=timeout_s)
    return Pages(call, top_k)


def chain(
    core: Core, mentions: str, *, scopes: Iterable[str] | None = None, timeout_s: float | None = None
) -> Pages[Event]:
    """What happened with an order, a ticket, a file: all events that mention this identifier, oldest first."""
    return query(core, mentions=mentions, scopes=scopes, timeout_s=timeout_s)


def _event(found: epb.FoundEvent) -> Event:
    return Event(found.memory, found)


class Events(Resource):
    """What happened to the client's owners. Each event is a memory too: recall, get, forget and watch know it."""

    record = sync_call(record)
    query = sync_pages(query)
    chain = sync_pages(chain)


class AsyncEvents(AsyncResource):
    """`Events` for asyncio."""

    record = async_call(record)
    query = async_pages(query)
    chain = async_pages(chain)
