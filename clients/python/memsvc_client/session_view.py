"""What a session tells about itself without asking the server.

Purpose: the properties that `Session` and `AsyncSession` share, and the list of open sessions.

Threading: properties may be read from any thread.

Rejected: the properties written out in both classes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ._proto import session_service_pb2 as spb
from ._proto import session_service_pb2_grpc as rpc
from .core import Core
from .operations import Call, Pages, page_of
from .session_core import SessionCore
from .session_results import Dropped, SessionInfo


def session_pages(core: Core, page_size: int) -> Pages[SessionInfo]:
    """The open sessions of exactly the client's owner ids."""
    request = spb.SessionServiceListRequest(owners=core.owners, page_size=page_size)
    return Pages(Call(rpc.SessionServiceStub, "List", request, page_of("sessions", SessionInfo)))


class SessionView:
    """What a session tells about itself without asking the server."""

    _state: SessionCore

    def _guard(self) -> AbstractContextManager[Any]:
        """Held while the state is looked at."""
        return nullcontext()

    @property
    def session_id(self) -> str:
        """Its id."""
        return self._state.session_id

    @property
    def resumed(self) -> bool | None:
        """Whether it was open before; None while the server has not said."""
        return self._state.resumed

    @property
    def turn_count(self) -> int:
        """How many turns the server has acknowledged, those of an earlier part of the session included."""
        return self._state.turn_count

    @property
    def is_ended(self) -> bool:
        """Whether its end was asked for."""
        return self._state.is_ending

    @property
    def degraded(self) -> list[str]:
        """What is not as it should be; empty while all is well.

        SERVER_TIMEOUT, SERVER_UNAVAILABLE, SERVER_<CODE>: the last request had no answer, turns wait here.
        SESSION_ENDING: the session of that id has ended and is being consolidated; it is opened as soon as that is
        done. SESSION_RESTARTED: the server no longer knew it, so that earlier turns are not in its state.
        SESSION_REFUSED: it can't be opened. SESSION_LOST: it was gone at its end. DROPPED: see `dropped`.
        END_UNACKNOWLEDGED: the server has not said that it ended.
        """
        with self._guard():
            return self._state.degraded

    @property
    def dropped(self) -> list[Dropped]:
        """Turns and outputs that did not reach the server, oldest first; the newest 100 groups."""
        with self._guard():
            return self._state.dropped

    @property
    def dropped_count(self) -> int:
        """How many turns and outputs were dropped."""
        return self._state.dropped_count

    @property
    def buffered_count(self) -> int:
        """How many turns and outputs are still to be sent."""
        return self._state.buffered_count
