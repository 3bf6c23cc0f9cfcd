"""Uses on a real store: what is written, when, and what a crash, a full queue or a failing store costs."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsvc.errors import StorageFailure
from memsvc.memory import access as module
from memsvc.memory.access import AccessBook, accesses, put_access, read_access
from memsvc.memory.lifecycle.policy import policy_of
from memsvc.memory.lifecycle.retention import strengthened
from memsvc.model import Access, ChangeKind, Layer, Memory, MemoryType, Namespace, Scope, id_from_bytes, id_to_bytes
from memsvc.storage.lmdb_engine import LmdbEngine

ANN = Namespace("acme", Scope.USER, "ann")
BOB = Namespace("acme", Scope.USER, "bob")
START_US = 1_700_000_000_000_000
HOUR_US = 3_600_000_000
WAIT_S = 60
POLICY = policy_of("", 0.6, 0.4)


def id_of(number: int) -> str:
    return id_from_bytes(number.to_bytes(16, "big"))


def memory(namespace: Namespace, number: int) -> Memory:
    return Memory(
        memory_id=id_of(number),
        version=0,
        sequence=0,
        namespace=namespace,
        layer=Layer.SEMANTIC,
        type=MemoryType.FACT,
        content=f"statement {number}",
        create_time_us=START_US,
        update_time_us=START_US,
        occur_time_us=START_US,
    )


def stronger(access: Access, used: Memory, used_us: int) -> Access:
    return strengthened(access, used, used_us, POLICY)


def store_of(engine: LmdbEngine, *namespaces: Namespace, count: int = 4) -> None:
    def fill(txn: Any) -> None:
        for namespace in namespaces:
            for number in range(count):
                txn.put(memory(namespace, number), ChangeKind.CREATED, time_us=START_US, actor="test")

    engine.write(fill)


def of(engine: Any, namespace: Namespace) -> dict[str, Access]:
    with engine.read() as txn:
        return accesses(txn, namespace)


@pytest.fixture
def new_engine(tmp_path: Path) -> Iterator[Callable[[], LmdbEngine]]:
    opened: list[LmdbEngine] = []

    def make() -> LmdbEngine:
        opened.append(LmdbEngine.open(tmp_path / os.urandom(8).hex(), max_map_size_bytes=2**30))
        return opened[-1]

    yield make
    for engine in opened:
        engine.close()


@pytest.fixture
def engine(new_engine: Callable[[], LmdbEngine]) -> LmdbEngine:
    made = new_engine()
    store_of(made, ANN, BOB)
    return made


@pytest.fixture
def book(engine: LmdbEngine) -> AccessBook:
    return AccessBook(engine, stronger, flush_s=3600)


class Failing:
    """A store whose disk takes `writes` more transactions."""

    def __init__(self, engine: LmdbEngine, writes: int) -> None:
        self._engine = engine
        self.read = engine.read
        self.left = writes

    def write(self, operation: Callable[[Any], Any], **options: Any) -> Any:
        if self.left <= 0:
            raise StorageFailure("the disk said no")
        self.left -= 1
        return self._engine.write(operation, **options)


# -- what is written -------------------------------------------------------------------------------------------------

USES = st.lists(
    st.tuples(st.sampled_from([ANN, BOB]), st.integers(0, 5), st.booleans()), max_size=6
)  # 4 and 5 are of no memory
STEPS = st.lists(st.tuples(USES, st.integers(0, 3000)), max_size=12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=1, max_size=3))
def test_what_is_written_is_each_use_in_order_of_time(new_engine, flushes):
    engine = new_engine()
    store_of(engine, ANN, BOB)
    book = AccessBook(engine, stronger, flush_s=3600)
    expected: dict[Namespace, dict[str, Access]] = {ANN: {}, BOB: {}}
    for steps in flushes:
        times: dict[tuple[Namespace, int], list[int]] = defaultdict(list)
        for uses, hours in steps:
            now_us = START_US + hours * HOUR_US
            book.note([(ns, id_of(n) if as_text else id_to_bytes(id_of(n))) for ns, n, as_text in uses], now_us)
            for namespace, number, _ in uses:
                times[namespace, number].append(now_us)
        assert book.flush() == len(times)
        for (namespace, number), used in times.items():
            if number < 4:
                access = expected[namespace].get(id_of(number), Access())
                for used_us in sorted(used):
                    access = stronger(access, memory(namespace, number), used_us)
                expected[namespace][id_of(number)] = access
    assert {namespace: of(engine, namespace) for namespace in expected} == expected
    assert book.flush() == 0
    assert book.dropped_count == 0


def test_uses_show_after_a_flush_and_outlive_a_restart(tmp_path):
    engine = LmdbEngine.open(tmp_path, max_map_size_bytes=2**30)
    store_of(engine, ANN)
    book = AccessBook(engine, stronger, flush_s=3600)
    book.note([(ANN, id_of(1))], START_US)
    assert of(engine, ANN) == {}
    book.close()
    book.note([(ANN, id_of(2))], START_US)  # after the last flush: lost
    engine.close()
    engine = LmdbEngine.open(tmp_path, max_map_size_bytes=2**30)
    assert of(engine, ANN) == {id_of(1): stronger(Access(), memory(ANN, 1), START_US)}
    engine.close()


def test_a_record_is_the_memorys_own(engine):
    kept = Access(count=3, last_time_us=START_US, stability_days=12.5, day_count=2, proposed_time_us=7)
    engine.write(lambda txn: put_access(txn, memory(ANN, 1), kept))
    with engine.read() as txn:
        assert [read_access(txn, ns, id_of(n)) for ns in (ANN, BOB) for n in (1, 2)] == [
            kept,
            Access(),
            Access(),
            Access(),
        ]
        assert (accesses(txn, ANN), accesses(txn, BOB)) == ({id_of(1): kept}, {})


def test_a_use_changes_nothing_else_and_keeps_what_the_lifecycle_noted(engine, book):
    engine.write(lambda txn: put_access(txn, memory(ANN, 1), Access(proposed_time_us=77)))
    with engine.read() as txn:
        before = (txn.get(ANN, id_of(1)), txn.head(ANN))
    book.note([(ANN, id_of(1))], START_US)
    book.flush()
    with engine.read() as txn:
        assert (txn.get(ANN, id_of(1)), txn.head(ANN)) == before
        assert read_access(txn, ANN, id_of(1)).proposed_time_us == 77


def test_the_newest_version_decides(engine, book):
    def update(txn: Any) -> None:
        changed = msgspec.structs.replace(txn.get(ANN, id_of(1)), type=MemoryType.RULE)
        txn.put(changed, ChangeKind.UPDATED, time_us=START_US, actor="test")

    engine.write(update)
    for number in (0, 1):
        book.note([(ANN, id_of(number))], START_US + HOUR_US)
    book.flush()
    found = of(engine, ANN)
    assert found[id_of(1)].stability_days > found[id_of(0)].stability_days * 2


# -- bounds and failures ---------------------------------------------------------------------------------------------


def test_a_full_queue_drops_and_counts_uses(engine, book, monkeypatch):
    monkeypatch.setattr(module, "QUEUE_MAX", 2)
    for number in range(4):
        book.note([(ANN, id_of(number)), (BOB, id_of(number)), (BOB, id_of(0))], START_US)
        book.note([], START_US)
    assert book.dropped_count == 6
    assert book.flush() == 4
    assert (sorted(of(engine, ANN)), sorted(of(engine, BOB))) == ([id_of(0), id_of(1)], [id_of(0), id_of(1)])
    book.note([(ANN, id_of(3))], START_US)
    assert (book.flush(), book.dropped_count) == (1, 6)


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_failing_store_loses_what_is_left_and_counts_it(new_engine, monkeypatch, writes):
    monkeypatch.setattr(module, "MEMORIES_PER_WRITE", 3)
    engine = new_engine()
    store_of(engine, ANN, count=8)
    failing = Failing(engine, writes)
    book = AccessBook(failing, stronger, flush_s=3600)  # type: ignore[arg-type]
    for _ in range(2):
        book.note([(ANN, id_of(number)) for number in range(8)], START_US)
    with pytest.raises(StorageFailure):
        book.flush()
    written = 3 * writes
    assert book.dropped_count == 2 * (8 - written)
    assert sorted(of(engine, ANN)) == [id_of(number) for number in range(written)]
    failing.left = 1
    assert book.flush() == 0


def test_closing_goes_on_without_statistics_and_says_so_without_content(engine, caplog):
    book = AccessBook(Failing(engine, 0), stronger, flush_s=3600)  # type: ignore[arg-type]
    book.note([(ANN, id_of(1))], START_US)
    book.close()
    assert [record.getMessage() for record in caplog.records if record.name == "memsvc.access"] == [
        f"could not write access statistics: {StorageFailure.reason}"
    ]
    assert book.dropped_count == 1


# -- threads ---------------------------------------------------------------------------------------------------------


def test_the_thread_flushes_by_itself_and_survives_a_failure(engine):
    wrote = threading.Event()

    class Watched(Failing):
        def write(self, operation: Callable[[Any], Any], **options: Any) -> Any:
            try:
                done = super().write(operation, **options)
            except StorageFailure:
                self.left = 1000
                raise
            wrote.set()
            return done

    book = AccessBook(Watched(engine, 0), stronger, flush_s=0.001)  # type: ignore[arg-type]
    book.start()
    for _ in range(WAIT_S * 100):
        book.note([(ANN, id_of(1))], START_US)
        if wrote.wait(0.01):
            break
    book.close()
    assert wrote.is_set()
    assert book.dropped_count >= 1
    assert of(engine, ANN)[id_of(1)].count >= 1


def test_parallel_notes_and_flushes_lose_nothing(engine, book):
    rounds, threads = 200, 4

    def use(number: int) -> None:
        for at in range(rounds):
            book.note([(ANN, id_of(number)), (BOB, id_of(0))], START_US + at)

    def flush() -> None:
        while any(worker.is_alive() for worker in workers):
            book.flush()

    workers = [threading.Thread(target=use, args=(number,)) for number in range(threads)]
    flushers = [threading.Thread(target=flush) for _ in range(2)]
    for thread in (*workers, *flushers):
        thread.start()
    for thread in (*workers, *flushers):
        thread.join(WAIT_S)
    book.close()
    assert {key: access.count for key, access in of(engine, ANN).items()} == {id_of(n): rounds for n in range(threads)}
    assert of(engine, BOB)[id_of(0)].count == rounds * threads
