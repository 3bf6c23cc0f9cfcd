"""Pages of sessions, newest first.

Purpose: a token names the last session of a page by start time and id, so that sessions that come or go between two
pages neither repeat nor hide others.

Threading: pure functions.

Rejected: offsets (a new session would shift them).
"""

from __future__ import annotations

import base64
import binascii
import heapq
from collections.abc import Iterable

import msgspec

from memsvc.errors import InvalidArgument
from memsvc.memory.sessions.session import Session


def _place(session: Session) -> tuple[int, str]:
    return session.start_time_us, session.session_id


def page(sessions: Iterable[Session], size: int, page_token: str) -> tuple[list[Session], str]:
    """At most `size` sessions behind the token, and the next token ("" on the last page). Raises InvalidArgument."""
    below = _decoded(page_token) if page_token else None
    left = [session for session in sessions if below is None or _place(session) < below]
    newest = heapq.nlargest(size, left, key=_place)
    more = len(left) > len(newest)
    return newest, base64.urlsafe_b64encode(msgspec.msgpack.encode(_place(newest[-1]))).decode() if more else ""


def _decoded(token: str) -> tuple[int, str]:
    try:
        raw = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        place: tuple[int, str] = msgspec.msgpack.decode(raw, type=tuple[int, str])
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise InvalidArgument("page_token is not one of this service's", field="page_token") from error
    return place
