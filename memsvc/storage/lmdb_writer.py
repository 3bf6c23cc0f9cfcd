"""Group commit: operations that wait at the same time share one durable commit.

Purpose: `GroupWriter` decides who commits and in which order. The thread that finds nobody committing leads: it takes
all that waits, has `commit` run it, calls the `on_commit` functions in order and wakes the others. Whoever waits
first then leads the next group. A lone writer so pays for its own commit and for no hand-over.

Threading: `submit` from any thread. One group runs at a time; `commit` and the `on_commit` functions run on the
leader's thread and must not submit (that raises RuntimeError instead of waiting for itself).

Rejected: a writer thread (two hand-overs a write: 0.09 ms idle, where a commit takes 0.9, and more when threads
compete); one lock that all writers wait for (each wakes in turn only to find that its work is done, and holds the
next leader up); a leader that goes on while others come (its own caller would wait for strangers).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from memsvc.errors import MemsvcError, StorageFailure, Unavailable

GROUP_MAX = 256  # operations that share a commit


class Operation:
    """One queued write: what to run, and what came of it. `wake` is released when it is done or must lead. One that
    `is_alone` shares no commit: it is a group of its own, and `run` is what the owner of the queue makes of it.
    """

    __slots__ = ("done", "error", "is_alone", "leads", "on_commit", "result", "run", "wake")

    def __init__(
        self, run: Callable[..., Any], on_commit: Callable[[Any], None] | None, *, is_alone: bool = False
    ) -> None:
        self.run = run
        self.is_alone = is_alone
        self.on_commit = on_commit
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.wake = threading.Lock()
        self.wake.acquire()


class GroupWriter:
    """See the module. `commit(group)` makes a group durable and sets each operation's `result` or `error`; what it
    raises fails the whole group.
    """

    def __init__(self, commit: Callable[[list[Operation]], None]) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._queue: list[Operation] = []
        self._busy = False
        self._closed = False
        self._leader_ident = 0

    def submit(self, mine: Operation) -> None:
        """Returns when the operation is durable. Raises its error, or Unavailable after `close`."""
        if self._leader_ident == threading.get_ident():
            raise RuntimeError("a write was started inside a write or its on_commit")
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed")
            self._queue.append(mine)
            leads = not self._busy
            self._busy = True
        if not leads:
            self._wait(mine)
        if not mine.done:
            self._lead(mine)
        if mine.error is not None:
            raise mine.error

    def close(self) -> bool:
        """Refuses new operations and waits for those that were submitted; False if it was closed before."""
        with self._lock:
            first, self._closed = not self._closed, True
            while self._busy:
                self._idle.wait()
        return first

    def _wait(self, mine: Operation) -> None:
        try:
            mine.wake.acquire()
        except BaseException:  # a signal handler raised: leave the queue without stopping those behind, and go
            with self._lock:
                if mine in self._queue:
                    self._queue.remove(mine)
                    if mine.leads:
                        self._promote()
            raise

    def _lead(self, mine: Operation) -> None:
        with self._lock:
            size = _group_size(self._queue)
            group, self._queue = self._queue[:size], self._queue[size:]
        self._leader_ident = threading.get_ident()
        try:
            self._run(group)
        finally:
            self._leader_ident = 0
            with self._lock:
                self._promote()
            for operation in group:
                operation.done = True
                if operation is not mine:
                    operation.wake.release()

    def _promote(self) -> None:
        """Hands the lead to the first that waits. The caller holds the lock."""
        if self._queue:
            self._queue[0].leads = True
            self._queue[0].wake.release()
        else:
            self._busy = False
            self._idle.notify_all()

    def _run(self, group: list[Operation]) -> None:
        try:
            self._commit(group)
        except MemsvcError as error:
            for operation in group:
                operation.error = type(error)(error.message, **error.metadata)  # an instance for each thread
                operation.error.__cause__ = error.__cause__
        except BaseException:  # a bug, or a signal's exception in this thread: it is the leader's, the others retry
            for operation in group:
                operation.error = StorageFailure("the write was interrupted; its request_id decides on a retry")
            raise
        else:
            for operation in group:
                if operation.error is None and operation.on_commit is not None:
                    _follow(operation, operation.on_commit)


def _group_size(queue: list[Operation]) -> int:
    """How many of those that wait go together: up to the first that must be alone."""
    if queue[0].is_alone:
        return 1
    return next((at for at, one in enumerate(queue[:GROUP_MAX]) if one.is_alone), GROUP_MAX)


def _follow(operation: Operation, on_commit: Callable[[Any], None]) -> None:
    """Runs `on_commit`; it must not fail, and if it does its own caller hears of it and the others go on."""
    try:
        on_commit(operation.result)
    except Exception as error:  # noqa: BLE001 - raised again in the caller's thread by `submit`
        operation.error = error
