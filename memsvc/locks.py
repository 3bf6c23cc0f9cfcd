"""A lock that many readers or one writer hold.

Purpose: searches and graph inserts, read transactions and the map's growth exclude each other, readers don't.

Threading: fair to writers: a waiting writer holds new readers back. Not reentrant.

Rejected: a mutex (readers release the GIL and should use both cores).
"""

from __future__ import annotations

import threading
from types import TracebackType


class _Shared:
    """The reading side, as a context manager without a generator's cost."""

    __slots__ = ("_lock",)

    def __init__(self, lock: SharedLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire_shared()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release_shared()


class _Exclusive:
    """The writing side."""

    __slots__ = ("_lock",)

    def __init__(self, lock: SharedLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire_exclusive()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release_exclusive()


class SharedLock:
    """See the module. Use `with lock.shared:` or `with lock.exclusive:`."""

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._readers = 0
        self._writers_waiting = 0
        self._writing = False
        self.waits = 0  # how often a reader had to wait; a writer that holds them up can pause
        self.shared = _Shared(self)
        self.exclusive = _Exclusive(self)

    def acquire_shared(self) -> None:
        """Waits for the writer, and for writers that wait already."""
        with self._condition:
            if self._writing or self._writers_waiting:
                self.waits += 1
            while self._writing or self._writers_waiting:
                self._condition.wait()
            self._readers += 1

    def release_shared(self) -> None:
        """Leaves; the last reader wakes a writer."""
        with self._condition:
            self._readers -= 1
            if self._readers == 0 and self._writers_waiting:
                self._condition.notify_all()

    def acquire_exclusive(self) -> None:
        """Waits until nobody is inside."""
        with self._condition:
            self._writers_waiting += 1
            while self._writing or self._readers:
                self._condition.wait()
            self._writers_waiting -= 1
            self._writing = True

    def release_exclusive(self) -> None:
        """Leaves and wakes everybody."""
        with self._condition:
            self._writing = False
            self._condition.notify_all()
