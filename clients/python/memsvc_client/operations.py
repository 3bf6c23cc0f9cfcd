"""The calls of a resource, written once for both clients.

Purpose: a resource's module has one pure function a call, which checks the arguments and builds a `Call` (or `Pages`):
the request, and how the answer is read. `sync_call` and its kin make of it a method of `Facts` that answers, and of
`AsyncFacts` that is awaited, with the function's own parameters, types and docstring.

Threading: pure functions; a resource is as thread-safe as its client.

Rejected: each call written out in both clients (three copies of every signature), a metaclass or generated code (type
checkers see neither), one class with methods that return either (its types would be unions).
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from .core import Core

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Call(Generic[T]):
    """One RPC: which, with what, and how its answer is read.

    retried: a mutation with a request_id, which is tried again until write_timeout_s. Otherwise it is tried once, for
    timeout_s (the client's write_timeout_s if None).
    """

    service: Callable[[Any], Any]  # class of the stub
    rpc: str
    request: Any
    read: Callable[[Any], T]
    retried: bool = False
    timeout_s: float | None = None


class Pages(Generic[T]):
    """A list that is fetched page by page. `call` reads a page: its items and the token of the next."""

    def __init__(self, call: Call[tuple[list[T], str]], limit: int | None = None) -> None:
        self.next: Call[tuple[list[T], str]] | None = call
        self._left = limit

    def take(self, page: tuple[list[T], str]) -> list[T]:
        """The items of a page that arrived, at most what is left of the limit; `next` is then the page after it."""
        items, token = page
        if self._left is not None:
            items = items[: self._left]
            self._left -= len(items)
        if not token or self._left == 0:
            self.next = None
        elif self.next is not None:
            self.next.request.page_token = token
        return items


def page_of(items: str, view: Callable[[Any], T]) -> Callable[[Any], tuple[list[T], str]]:
    """Reads a page: the field `items` of an answer as views, and its next_page_token."""
    return lambda response: ([view(message) for message in getattr(response, items)], response.next_page_token)


class Perform(Protocol):
    """Sends a call and returns what it read."""

    def __call__(self, call: Call[T], /) -> T:
        """Raises a MemsvcClientError."""
        ...


class AsyncPerform(Protocol):
    """Sends a call and returns what it read."""

    def __call__(self, call: Call[T], /) -> Coroutine[Any, Any, T]:
        """Raises a MemsvcClientError."""
        ...


class Resource:
    """The calls of one service, made with its client."""

    def __init__(self, core: Core, perform: Perform) -> None:
        self._core = core
        self._perform = perform


class AsyncResource:
    """The calls of one service, made with its client."""

    def __init__(self, core: Core, perform: AsyncPerform) -> None:
        self._core = core
        self._perform = perform


def iterate(perform: Perform, pages: Pages[T]) -> Iterator[T]:
    """The items; pages are fetched as they are needed."""
    while pages.next is not None:
        yield from pages.take(perform(pages.next))


async def iterate_async(perform: AsyncPerform, pages: Pages[T]) -> AsyncIterator[T]:
    """The items; pages are fetched as they are needed."""
    while pages.next is not None:
        for item in pages.take(await perform(pages.next)):
            yield item


def sync_call(build: Callable[Concatenate[Core, P], Call[T]]) -> Callable[Concatenate[Resource, P], T]:
    """The method that sends what `build` builds."""

    def method(self: Resource, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._perform(build(self._core, *args, **kwargs))

    return _described(method, build)


def async_call(
    build: Callable[Concatenate[Core, P], Call[T]],
) -> Callable[Concatenate[AsyncResource, P], Coroutine[Any, Any, T]]:
    """The coroutine method that sends what `build` builds."""

    async def method(self: AsyncResource, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._perform(build(self._core, *args, **kwargs))

    return _described(method, build)


def sync_pages(build: Callable[Concatenate[Core, P], Pages[T]]) -> Callable[Concatenate[Resource, P], Iterator[T]]:
    """The method that iterates over what `build` builds; arguments are checked at the call."""

    def method(self: Resource, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return iterate(self._perform, build(self._core, *args, **kwargs))

    return _described(method, build, Iterator)


def async_pages(
    build: Callable[Concatenate[Core, P], Pages[T]],
) -> Callable[Concatenate[AsyncResource, P], AsyncIterator[T]]:
    """The method that iterates over what `build` builds, for `async for`; arguments are checked at the call."""

    def method(self: AsyncResource, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return iterate_async(self._perform, build(self._core, *args, **kwargs))

    return _described(method, build, AsyncIterator)


def _described(method: F, build: Callable[..., Any], iterator: Any = None) -> F:
    """The method with the builder's name, docstring and parameters: `self` for the core, the result for the call."""
    functools.update_wrapper(method, build)
    signature = inspect.signature(build, eval_str=True)
    (result,) = typing.get_args(signature.return_annotation)
    returns = result if iterator is None else iterator[result]
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [this, *list(signature.parameters.values())[1:]]
    described: Any = method
    described.__signature__ = inspect.Signature(parameters, return_annotation=returns)
    described.__annotations__ = {**{p.name: p.annotation for p in parameters[1:]}, "return": returns}
    described.__name__ = build.__name__.rstrip("_")
    return method
