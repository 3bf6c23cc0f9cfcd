"""Pages of sessions, newest first.

Purpose: a token names the last session of a page by start time and id, so that sessions that come or go between two
pages neither repeat nor hide others.

Threading: pure functions.

Rejected: offsets (a new session would shift them).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from memsvc.memory import page_tokens
from memsvc.memory.sessions.session import Session


def _place(session: Session) -> tuple[int, str]:
    return session.start_time_us, session.session_id


def page(sessions: Iterable[Session], size: int, page_token: str) -> tuple[list[Session], str]:
    """At most `size` sessions behind the token, and the next token ("" on the last page). Raises InvalidArgument."""
    below = page_tokens.decode(page_token, "sessions", tuple[int, str]) if page_token else None
    left = [session for session in sessions if below is None or _place(session) < below]
    newest = heapq.nlargest(size, left, key=_place)
    more = len(left) > len(newest)
    return newest, page_tokens.encode("sessions", *_place(newest[-1])) if more else ""
