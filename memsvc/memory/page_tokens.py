"""Page tokens: where a page ended, as opaque text for the caller.

Purpose: one encoding and one check for every list. A token names its list, so that one list's token is refused by
another, and holds the place of the last entry, so that pages neither skip nor repeat while writes go on.

Threading: pure functions.

Rejected: signed tokens (a place that somebody makes up shows nothing that the call would not show anyway).
"""

from __future__ import annotations

import base64
import binascii
import heapq
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from memsvc.errors import InvalidArgument

T = TypeVar("T")
Item = TypeVar("Item")
Place = TypeVar("Place", bound=tuple[Any, ...])


def encode(kind: str, *place: object) -> str:
    """The token of a place in the list `kind`."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode((kind, *place))).decode()


def decode(text: str, kind: str, place: type[T]) -> T:
    """Inverse of `encode`; `place` is a tuple type. Raises InvalidArgument for what is no token of this list."""
    try:
        raw = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
        found, *values = msgspec.msgpack.decode(raw, type=list[Any])
        if found == kind:
            return msgspec.convert(tuple(values), place)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise InvalidArgument("page_token is not one of this service's", field="page_token") from error
    raise InvalidArgument("page_token belongs to another call", field="page_token")


def newest_first(
    kind: str, items: Iterable[Item], place: Callable[[Item], Place], size: int, page_token: str, form: type[Place]
) -> tuple[list[Item], str]:
    """At most `size` of the items behind the token, greatest place first, and the next token ("" on the last page).

    `place` orders the items and is of the tuple type `form`. Raises InvalidArgument.
    """
    below = decode(page_token, kind, form) if page_token else None
    left = [item for item in items if below is None or place(item) < below]
    newest = heapq.nlargest(size, left, key=place)
    return newest, encode(kind, *place(newest[-1])) if len(left) > len(newest) else ""
