"""A recall beside the agent's own work.

Purpose: what `MemoryClient.recall_in_background` returns.

Threading: thread-safe; gRPC's own threads wait for the answer.

Rejected: concurrent.futures.Future (its `result` raises at the timeout; a recall falls back).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .results import Recall


class BackgroundRecall:
    """A recall that is on its way. `call` is gRPC's future, `collect` makes a result of it within a number of seconds;
    `ready` is the result when none was sent.
    """

    def __init__(self, call: Any, collect: Callable[[float | None], Recall], ready: Recall | None = None) -> None:
        self._call = call
        self._collect = collect
        self._ready = ready
        self._lock = threading.Lock()

    def done(self) -> bool:
        """Whether `result` would return at once."""
        return self._ready is not None or self._call.done()

    def result(self, timeout_s: float | None = None) -> Recall:
        """The hits; falls back like `recall` when `timeout_s` (or the recall's own timeout) is over first."""
        with self._lock:
            if self._ready is None:
                self._ready = self._collect(timeout_s)
            return self._ready
