"""A recall beside the agent's own work.

Purpose: what `MemoryClient.recall_in_background` returns.

Threading: thread-safe; gRPC's own threads wait for the answer.

Rejected: concurrent.futures.Future (its `result` raises at the timeout; a recall falls back).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from .errors import MemsvcClientError
from .results import Recall

LOG = logging.getLogger("memsvc_client")


class BackgroundRecall:
    """A recall that is on its way. `call` is gRPC's future, `collect` makes a result of it within a number of seconds;
    `ready` is the result when none was sent. An answer is collected when it comes, so that the breaker and the cache
    hear of it whether anybody asks for it or not.
    """

    def __init__(self, call: Any, collect: Callable[[float | None], Recall], ready: Recall | None = None) -> None:
        self._call = call
        self._collect = collect
        self._ready = ready
        self._lock = threading.Lock()
        if ready is None:
            call.add_done_callback(self._came)

    def _came(self, _: Any) -> None:
        """On gRPC's thread, or at once: `result` does not wait, and gives or raises the same again."""
        try:
            self.result(0.0)
        except MemsvcClientError as failure:
            LOG.debug("a recall in the background was refused: %s", failure.reason or failure.code)

    def done(self) -> bool:
        """Whether `result` would return at once."""
        return self._ready is not None or self._call.done()

    def result(self, timeout_s: float | None = None) -> Recall:
        """The hits; falls back like `recall` when `timeout_s` (or the recall's own timeout) is over first."""
        with self._lock:
            if self._ready is None:
                self._ready = self._collect(timeout_s)
            return self._ready
