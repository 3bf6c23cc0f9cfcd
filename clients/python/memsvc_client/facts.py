"""Exact facts: keys and typed values.

Purpose: the calls of FactService, and what they return.

Threading: as the client.

Rejected: an exception for a key that is not there (asking whether a fact is known is the ordinary use), values of types
that JSON does not have (see `values`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, ClassVar

from . import requests
from ._proto import fact_service_pb2 as fpb
from ._proto import fact_service_pb2_grpc as rpc
from .core import Core
from .errors import InvalidArgument
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
from .values import plain, to_value
from .views import Owned, source_dict


class Fact(Owned[fpb.Fact]):
    """A fact at one version."""

    __slots__ = ()
    NAMES: ClassVar[tuple[str, ...]] = (
        "key",
        "value",
        "version",
        "scope",
        "owner",
        "memory_id",
        "update_time",
        "deleted",
        "source",
    )

    @property
    def key(self) -> str:
        """Such as default_currency."""
        return self._pb.key

    @property
    def value(self) -> Any:
        """None, bool, int, float, str, list or dict, as it was put."""
        return plain(self._pb.value)

    @property
    def version(self) -> int:
        """Counts from 1; every put of another value writes a new one."""
        return self._pb.version

    @property
    def memory_id(self) -> str:
        """Id of the memory that holds it."""
        return self._pb.memory_id

    id = memory_id

    @property
    def update_time(self) -> dt.datetime | None:
        """When this version was put."""
        return self._time("update_time")

    @property
    def deleted(self) -> bool:
        """Whether this version removed the key."""
        return self._pb.deleted

    @property
    def source(self) -> dict[str, str]:
        """tool, session_id, message_id."""
        return source_dict(self._pb.source)


class FactWrite(Fact):
    """A fact as it is after a put."""

    __slots__ = ("_put",)
    NAMES = (*Fact.NAMES, "changed", "sequence")

    def __init__(self, response: fpb.FactServicePutResponse) -> None:
        super().__init__(response.fact)
        self._put = response

    @property
    def changed(self) -> bool:
        """Whether this put changed it; False when the value was the same."""
        return self._put.changed

    @property
    def sequence(self) -> int:
        """The namespace's change that stored it."""
        return self._put.at.sequence


def put(
    core: Core,
    key: str,
    value: Any,
    *,
    if_version: int | None = None,
    if_absent: bool = False,
    scope: str | None = None,
    reason: str = "",
    tool: str = "",
    session_id: str | None = None,
    message_id: str = "",
) -> Call[FactWrite]:
    """Sets the value of a key: None, bool, int (below 2^53), float, str, or lists and dicts of them.

    With `if_version` only if the key has this version now, with `if_absent` only if there is no such key; otherwise
    raises Aborted, whose `metadata["version"]` is the version now ("0" for none). Retried with the same request_id.
    Raises InvalidArgument for a value that would come back as something else, naming the fix.
    """
    if if_absent and if_version is not None:
        raise InvalidArgument("if_absent means if_version=0; give one of them")
    request = requests.encodable(
        lambda: fpb.FactServicePutRequest(
            owners=core.owners,
            scope=requests.scope(scope),
            key=key,
            value=to_value(value, "value"),
            if_version=0 if if_absent else if_version,
            source=core.source(tool, session_id, message_id),
            reason=reason,
            request_id=requests.fresh_request_id(),
        ),
        "the fact",
    )

    def read(response: fpb.FactServicePutResponse) -> FactWrite:
        core.stored([response.at])
        return FactWrite(response)

    return Call(rpc.FactServiceStub, "Put", request, read, retried=True)


def get(
    core: Core, key: str, *, scopes: Iterable[str] | None = None, timeout_s: float | None = None
) -> Call[Fact | None]:
    """The fact of a key, or None: of several scopes that have it, the narrowest one's."""
    request = _get_request(core, [key], scopes)

    def read(response: fpb.FactServiceGetResponse) -> Fact | None:
        return Fact(response.facts[0]) if response.facts else None

    return Call(rpc.FactServiceStub, "Get", request, read, timeout_s=timeout_s)


def get_many(
    core: Core, keys: Iterable[str], *, scopes: Iterable[str] | None = None, timeout_s: float | None = None
) -> Call[list[Fact]]:
    """The facts of up to 1000 keys, in order of the keys, and for one key from the narrowest scope to global. Keys that
    are not there are left out.
    """
    request = _get_request(core, requests.texts(keys, "keys"), scopes)
    return Call(rpc.FactServiceStub, "Get", request, _facts, timeout_s=timeout_s)


def list_(
    core: Core,
    prefix: str = "",
    *,
    scopes: Iterable[str] | None = None,
    page_size: int = 100,
    timeout_s: float | None = None,
) -> Pages[Fact]:
    """The facts whose keys begin with `prefix`, by key; pages are fetched as they are needed."""
    request = requests.encodable(
        lambda: fpb.FactServiceListRequest(
            owners=core.owners, scopes=requests.scopes(scopes), key_prefix=prefix, page_size=page_size
        ),
        "prefix",
    )
    return Pages(Call(rpc.FactServiceStub, "List", request, page_of("facts", Fact), timeout_s=timeout_s))


def history(core: Core, key: str, *, scope: str | None = None, timeout_s: float | None = None) -> Call[list[Fact]]:
    """All versions of a key in one scope, newest first, removed ones included. Raises NotFound if it was never put."""
    request = requests.encodable(
        lambda: fpb.FactServiceHistoryRequest(owners=core.owners, scope=requests.scope(scope), key=key), "key"
    )
    return Call(rpc.FactServiceStub, "History", request, _facts, timeout_s=timeout_s)


def delete(
    core: Core, key: str, *, if_version: int | None = None, scope: str | None = None, reason: str = ""
) -> Call[bool]:
    """Removes a key; whether there was one. Its versions are kept for audit. With `if_version` only if the key has this
    version now; otherwise raises Aborted.
    """
    request = requests.encodable(
        lambda: fpb.FactServiceDeleteRequest(
            owners=core.owners,
            scope=requests.scope(scope),
            key=key,
            if_version=if_version,
            reason=reason,
            request_id=requests.fresh_request_id(),
        ),
        "key or reason",
    )

    def read(response: fpb.FactServiceDeleteResponse) -> bool:
        core.stored([response.at])
        return response.deleted

    return Call(rpc.FactServiceStub, "Delete", request, read, retried=True)


def match(
    core: Core,
    /,
    query: str = "",
    *,
    scopes: Iterable[str] | None = None,
    timeout_s: float | None = None,
    **others: Any,
) -> Call[list[Fact]]:
    """The facts that a text mentions by key or value, at most 100, by their first mention. `text` is another name of
    `query`.
    """
    (query,) = requests.guessed("match", others, query=query)
    request = requests.encodable(
        lambda: fpb.FactServiceMatchRequest(owners=core.owners, scopes=requests.scopes(scopes), query=query), "query"
    )
    return Call(rpc.FactServiceStub, "Match", request, _facts, timeout_s=timeout_s)


def _get_request(core: Core, keys: list[str], scopes: Iterable[str] | None) -> fpb.FactServiceGetRequest:
    request: fpb.FactServiceGetRequest = requests.encodable(
        lambda: fpb.FactServiceGetRequest(owners=core.owners, scopes=requests.scopes(scopes), keys=keys), "keys"
    )
    return request


def _facts(response: Any) -> list[Fact]:
    return [Fact(fact) for fact in response.facts]


class Facts(Resource):
    """Exact facts of the client's owners: keys with typed values, found by mention and never by meaning."""

    put = sync_call(put)
    get = sync_call(get)
    get_many = sync_call(get_many)
    list = sync_pages(list_)
    history = sync_call(history)
    delete = sync_call(delete)
    match = sync_call(match)


class AsyncFacts(AsyncResource):
    """`Facts` for asyncio."""

    put = async_call(put)
    get = async_call(get)
    get_many = async_call(get_many)
    list = async_pages(list_)
    history = async_call(history)
    delete = async_call(delete)
    match = async_call(match)
