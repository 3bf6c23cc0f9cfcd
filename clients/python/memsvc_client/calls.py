"""Requests of the calls about single memories, from the arguments of both clients.

Purpose: `MemoryClient` and `AsyncMemoryClient` take the same arguments; here they become requests, once.

Threading: pure functions.

Rejected: methods of the core (it decides; what an argument is called is not its business).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import requests
from ._proto import memory_service_pb2 as spb
from ._proto import memory_service_pb2_grpc as rpc
from .core import Core
from .operations import Call, Pages, page_of
from .results import Change, Memory


def query_of(call: str, query: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The query and options with guessed names resolved."""
    if not options:
        return query, options
    named = requests.unalias(call, options)
    if "query" in named:
        if query:
            raise TypeError(f"{call}() got the query twice")
        query = named.pop("query")
    return query, named


def update_request(core: Core, memory_id: str, etag: str, reason: str, fields: Mapping[str, Any]) -> spb.UpdateRequest:
    """An UpdateRequest with a fresh request_id."""
    request = spb.UpdateRequest(
        owners=core.owners, memory_id=memory_id, etag=etag, reason=reason, request_id=requests.fresh_request_id()
    )
    requests.patch(fields, request)
    return request


def forget_request(core: Core, memory_id: str | Iterable[str], reason: str, etag: str) -> spb.ForgetRequest:
    """A ForgetRequest by id with a fresh request_id."""
    ids = [memory_id] if isinstance(memory_id, str) else [*memory_id]
    return spb.ForgetRequest(
        owners=core.owners, memory_ids=ids, reason=reason, etag=etag, request_id=requests.fresh_request_id()
    )


def forget_all_request(
    core: Core, scopes: Iterable[str] | None, reason: str, options: Mapping[str, Any]
) -> spb.ForgetRequest:
    """A ForgetRequest for everything that matches."""
    requests.check_names("forget_all", options, requests.FILTER_NAMES)
    request = spb.ForgetRequest(
        owners=core.owners,
        all=True,
        scopes=requests.scopes(scopes),
        reason=reason,
        request_id=requests.fresh_request_id(),
    )
    requests.condition(options, request.filter)
    return request


def list_pages(core: Core, page_size: int, options: Mapping[str, Any]) -> Pages[Memory]:
    """The pages of a List."""
    requests.check_names("list", options, (*requests.FILTER_NAMES, "scopes", "include_inactive"))
    request = spb.ListRequest(
        owners=core.owners,
        scopes=requests.scopes(options.get("scopes")),
        include_inactive=bool(options.get("include_inactive")),
        page_size=page_size,
    )
    requests.condition(options, request.filter)
    return Pages(Call(rpc.MemoryServiceStub, "List", request, page_of("memories", Memory)))


def history_pages(core: Core, memory_id: str) -> Pages[Change]:
    """The pages of a History."""
    request = spb.HistoryRequest(owners=core.owners, memory_id=memory_id)
    return Pages(Call(rpc.MemoryServiceStub, "History", request, page_of("changes", Change)))
