"""Group commit without a store: who leads, in which order, and what failures do."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from memsvc.errors import StorageFailure, StorageFull, Unavailable
from memsvc.storage.lmdb_writer import GroupWriter, Operation

WAIT_S = 60


def operation(number: int = 0, on_commit: Any = None) -> Operation:
    return Operation(lambda txn: number, on_commit)


class Commits:
    """A commit that waits at `gate`, so that others queue up behind the first."""

    def __init__(self) -> None:
        self.groups: list[list[Operation]] = []
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.failure: BaseException | None = None

    def __call__(self, group: list[Operation]) -> None:
        self.groups.append(group)
        self.entered.set()
        assert self.gate.wait(WAIT_S)
        if self.failure is not None and len(self.groups) == 2:
            raise self.failure
        for one in group:
            one.result = one.run(None)  # type: ignore[arg-type]


def queue_up(writer: GroupWriter, commits: Commits, count: int, errors: dict[int, BaseException]) -> list[Any]:
    """Starts a first operation, and `count` more that wait while it commits; lets all go and returns results."""
    operations = [operation(n) for n in range(count + 1)]

    def submit(n: int) -> None:
        try:
            writer.submit(operations[n])
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            errors[n] = error

    threads = [threading.Thread(target=submit, args=(0,))]
    threads[0].start()
    assert commits.entered.wait(WAIT_S)
    for n in range(1, count + 1):
        threads.append(threading.Thread(target=submit, args=(n,)))
        threads[-1].start()
        while len(writer._queue) < n:
            assert threads[-1].is_alive()
    commits.gate.set()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
    return [one.result for one in operations]


def test_a_lone_writer_commits_on_its_own_thread() -> None:
    threads = []
    writer = GroupWriter(lambda group: threads.append(threading.current_thread()))
    writer.submit(operation())
    assert threads == [threading.current_thread()]


def test_those_that_wait_share_a_commit_in_order() -> None:
    commits = Commits()
    errors: dict[int, BaseException] = {}
    results = queue_up(GroupWriter(commits), commits, 10, errors)
    assert errors == {}
    assert results == list(range(11))
    assert [[one.result for one in group] for group in commits.groups] == [[0], list(range(1, 11))]


def test_a_failed_commit_is_told_to_each_with_an_error_of_its_own() -> None:
    commits = Commits()
    commits.failure = StorageFull("full", limit="1")
    errors: dict[int, BaseException] = {}
    queue_up(GroupWriter(commits), commits, 4, errors)
    assert sorted(errors) == [1, 2, 3, 4]
    assert all(isinstance(e, StorageFull) and e.metadata == {"limit": "1"} for e in errors.values())
    assert len({id(e) for e in errors.values()}) == 4


def test_an_interrupt_in_the_leader_is_its_own_and_the_others_may_retry() -> None:
    commits = Commits()
    commits.failure = KeyboardInterrupt()
    errors: dict[int, BaseException] = {}
    writer = GroupWriter(commits)
    queue_up(writer, commits, 4, errors)
    assert [type(errors[n]) for n in (1, 2, 3, 4)] == [KeyboardInterrupt] + [StorageFailure] * 3
    writer.submit(operation())


def test_a_failing_on_commit_keeps_the_others_going() -> None:
    followed: list[int] = []
    writer = GroupWriter(lambda group: None)

    def fail(result: Any) -> None:
        raise ValueError("index")

    group = [operation(1, fail), operation(2, followed.append)]
    writer._run(group)
    assert isinstance(group[0].error, ValueError)
    assert followed == [None]


def test_who_gives_up_waiting_hands_the_lead_on() -> None:
    writer = GroupWriter(lambda group: None)
    first, second = operation(1), operation(2)
    writer._busy = True
    writer._queue = [first, second]
    with writer._lock:
        writer._promote()
    assert first.leads

    class Interrupting:
        def acquire(self) -> None:
            raise KeyboardInterrupt

    first.wake = Interrupting()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        writer._wait(first)
    assert second.leads
    assert writer._queue == [second]


def test_close_refuses_later_operations() -> None:
    writer = GroupWriter(lambda group: None)
    assert writer.close()
    assert not writer.close()
    with pytest.raises(Unavailable):
        writer.submit(operation())
