"""The lock of many readers or one writer: who is inside together, who waits, and that nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from memsvc.locks import SharedLock

WAIT_S = 60


@pytest.fixture
def start() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Runs a function on a thread; at the end none may be left."""
    threads: list[threading.Thread] = []

    def run(job: Callable[[], object]) -> threading.Thread:
        threads.append(threading.Thread(target=job, daemon=True))
        threads[-1].start()
        return threads[-1]

    yield run
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive(), "somebody waits for ever"


def until(holds: Callable[[], bool]) -> None:
    """Waits for what another thread is about to do."""
    tick = threading.Event()
    for _ in range(WAIT_S * 1000):
        if holds():
            return
        tick.wait(0.001)
    raise AssertionError("it never came to that")


def writer_of(lock: SharedLock, log: list[str], name: str = "writer") -> Callable[[], None]:
    def write() -> None:
        with lock.exclusive:
            log.append(name)

    return write


def reader_of(lock: SharedLock, log: list[str]) -> Callable[[], None]:
    def read() -> None:
        with lock.shared:
            log.append("reader")

    return read


def test_readers_are_inside_together(start):
    lock = SharedLock()
    together = threading.Barrier(3)

    def read() -> None:
        with lock.shared:
            together.wait(WAIT_S)  # breaks unless all three are inside

    threads = [start(read) for _ in range(3)]
    for thread in threads:
        thread.join(WAIT_S)
    assert not together.broken
    assert lock.waits == 0


def test_a_writer_waits_for_the_last_reader_and_holds_new_ones_back(start):
    lock, log = SharedLock(), []
    lock.acquire_shared()
    lock.acquire_shared()
    start(writer_of(lock, log))
    until(lambda: lock._writers_waiting == 1)
    start(reader_of(lock, log))
    until(lambda: lock.waits == 1)  # it came later, so it waits although only readers are inside
    lock.release_shared()
    assert log == []
    lock.release_shared()
    until(lambda: len(log) == 2)
    assert log == ["writer", "reader"]


def test_readers_and_writers_wait_for_the_writer(start):
    lock, log = SharedLock(), []
    lock.acquire_exclusive()
    start(reader_of(lock, log))
    until(lambda: lock.waits == 1)
    start(writer_of(lock, log))
    until(lambda: lock._writers_waiting == 1)
    assert log == []
    lock.release_exclusive()
    until(lambda: len(log) == 2)
    assert log == ["writer", "reader"]  # a writer that waits goes before readers, whoever came first
    with lock.shared, lock.shared:
        assert lock.waits == 1


def test_all_who_wait_get_in(start):
    lock, log = SharedLock(), []
    lock.acquire_exclusive()
    for _ in range(5):
        start(reader_of(lock, log))
        start(writer_of(lock, log))
    until(lambda: (lock.waits, lock._writers_waiting) == (5, 5))
    lock.release_exclusive()
    until(lambda: len(log) == 10)
    assert log == ["writer"] * 5 + ["reader"] * 5


@pytest.mark.parametrize("side", ["shared", "exclusive"])
def test_an_exception_leaves_the_lock_and_goes_through(start, side):
    lock, log = SharedLock(), []
    with pytest.raises(KeyError, match="mine"), getattr(lock, side):
        raise KeyError("mine")
    start(writer_of(lock, log)).join(WAIT_S)
    start(reader_of(lock, log)).join(WAIT_S)
    assert log == ["writer", "reader"]


def test_under_load_a_writer_is_alone_and_no_change_is_lost(start):
    lock = SharedLock()
    pair = [0, 0]
    inside = {"readers": 0, "writers": 0}
    counting = threading.Lock()
    torn: list[tuple[int, ...]] = []

    def come(who: str, step: int) -> None:
        with counting:
            inside[who] += step
            if inside["writers"] > 1 or (inside["writers"] and inside["readers"]):
                torn.append(tuple(inside.values()))

    def write() -> None:
        for _ in range(300):
            with lock.exclusive:
                come("writers", 1)
                pair[0] += 1
                pair[1] += 1
                come("writers", -1)

    def read() -> None:
        for _ in range(300):
            with lock.shared:
                come("readers", 1)
                if pair[0] != pair[1]:
                    torn.append(tuple(pair))
                come("readers", -1)

    threads = [start(job) for job in (write, read, write, read, read)]
    for thread in threads:
        thread.join(WAIT_S)
    assert torn == []
    assert pair == [600, 600]
