"""Statistics that are gathered in RAM and written now and then.

Purpose: one thread that writes every few seconds and once more at the end, and survives a store that can't take it.

Threading: `start` and `close` from one thread; the duty runs on a thread of its own, and in `close`.

Rejected: writing on the caller's path (a commit in front of each answer).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from memsvc.errors import MemsvcError


class Periodic:
    """Runs `duty` every `every_s` from `start` to `close`. When the duty raises a MemsvcError, `log` gets the warning
    `failure` with the reason, and the next time tries again: the service goes on without statistics, and says so.
    """

    def __init__(
        self, name: str, duty: Callable[[], object], *, every_s: float, log: logging.Logger, failure: str
    ) -> None:
        self._name = name
        self._duty = duty
        self._every_s = every_s
        self._log = log
        self._failure = failure
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the thread and runs the duty once more. Safe without `start`."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._once()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._once()

    def _once(self) -> None:
        try:
            self._duty()
        except MemsvcError as error:
            self._log.warning("%s: %s", self._failure, error.reason)
