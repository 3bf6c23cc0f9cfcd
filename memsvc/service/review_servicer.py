"""The ReviewService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own.

Threading: methods run on the server's threads.

Rejected: all decisions of a call in one transaction (one item that somebody else decided would undo a hundred).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import grpc
import msgspec

from memsvc.errors import InvalidArgument, MemsvcError
from memsvc.memory.listing import page_size
from memsvc.memory.owners import Owners
from memsvc.memory.reviewing import Item, ItemAction, ItemDecision, ItemKind, Resolved, Reviews
from memsvc.memory.transactions import Mutation, fingerprint
from memsvc.model import Namespace
from memsvc.service import convert
from memsvc.service.calls import answers, mutation, named, reached, still_wanted
from memsvc.v1 import review_service_pb2 as vpb
from memsvc.v1 import review_service_pb2_grpc as rpc

DECISIONS_MAX = 100


class ReviewServicer(rpc.ReviewServiceServicer):
    """See the module."""

    def __init__(self, reviews: Reviews, *, clock_us: Callable[[], int]) -> None:
        self._reviews = reviews
        self._clock_us = clock_us

    @answers
    def List(
        self, request: vpb.ReviewServiceListRequest, context: grpc.ServicerContext
    ) -> vpb.ReviewServiceListResponse:
        """Lists what waits."""
        kinds = convert.enums(ItemKind, request.kinds, "kinds")
        size = page_size(request.page_size)
        items, token = self._reviews.page(named(request), kinds, size, request.page_token, still_wanted(context))
        now_us = self._clock_us()
        return vpb.ReviewServiceListResponse(items=[_message(item, now_us) for item in items], next_page_token=token)

    @answers
    def Get(self, request: vpb.ReviewServiceGetRequest, context: grpc.ServicerContext) -> vpb.ReviewServiceGetResponse:
        """Reads one item."""
        _, namespaces = reached(request)
        item = self._reviews.get(namespaces, request.item_id)
        return vpb.ReviewServiceGetResponse(item=_message(item, self._clock_us()))

    @answers
    def Resolve(
        self, request: vpb.ReviewServiceResolveRequest, context: grpc.ServicerContext
    ) -> vpb.ReviewServiceResolveResponse:
        """Decides items, each for itself."""
        if not 1 <= len(request.decisions) <= DECISIONS_MAX:
            raise InvalidArgument(
                f"decisions has {len(request.decisions)} entries; send 1 to {DECISIONS_MAX}", field="decisions"
            )
        decisions = [_decision(message, f"decisions[{i}]") for i, message in enumerate(request.decisions)]
        if len({decision.item_id for decision in decisions}) < len(decisions):
            raise InvalidArgument("decisions names an item twice", field="decisions")
        owner_ids, namespaces = reached(request)
        whole = mutation(request)
        results = [self._result(namespaces, owner_ids, decision, whole) for decision in decisions]
        return vpb.ReviewServiceResolveResponse(results=results)

    def _result(
        self, namespaces: list[Namespace], owners: Owners, decision: ItemDecision, whole: Mutation
    ) -> vpb.ReviewItemResult:
        try:
            resolved = self._reviews.resolve(namespaces, owners, decision, _part(whole, decision))
        except MemsvcError as error:
            return vpb.ReviewItemResult(
                item_id=decision.item_id, error_reason=error.reason, error_message=error.message
            )
        return _resolved_message(decision.item_id, resolved, self._clock_us())


def _decision(message: vpb.ReviewItemDecision, path: str) -> ItemDecision:
    action = convert.optional_enum(ItemAction, message.action, f"{path}.action")
    if action is None:
        raise InvalidArgument(f"{path}.action is not set", field=f"{path}.action")
    return ItemDecision(message.item_id, action, message.content, message.etag, message.reason)


def _part(whole: Mutation, decision: ItemDecision) -> Mutation:
    """The mutation of one item: a request_id of its own, which the call's and the item's id give."""
    parts = (decision.item_id, decision.action.name, decision.content, decision.etag, decision.reason)
    request_id = str(uuid.uuid5(uuid.UUID(whole.request_id), decision.item_id)) if whole.request_id else ""
    own = fingerprint(*(part.encode() for part in parts))
    return msgspec.structs.replace(whole, request_id=request_id, fingerprint=own)


def _message(item: Item, now_us: int) -> vpb.ReviewItem:
    return vpb.ReviewItem(
        item_id=item.item_id,
        kind=int(item.kind),  # type: ignore[arg-type]
        etag=item.etag,
        memories=[convert.memory_message(memory, now_us) for memory in item.memories],
        summary=item.summary,
        actor=item.actor,
        create_time=convert.timestamp(item.time_us),
    )


def _resolved_message(item_id: str, resolved: Resolved, now_us: int) -> vpb.ReviewItemResult:
    return vpb.ReviewItemResult(
        item_id=item_id,
        memories=[convert.memory_message(memory, now_us) for memory in resolved.memories],
        outcome=int(resolved.outcome or 0),  # type: ignore[arg-type]
    )
