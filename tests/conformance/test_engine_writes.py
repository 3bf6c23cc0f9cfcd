"""Atomicity, order, isolation and concurrency of every engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from samples import NS, OTHER, memory, memory_id, put

from memsvc.errors import InvalidArgument, NotFound, Unavailable
from memsvc.model import ChangeKind, Namespace, Scope, Status
from memsvc.storage.engine import Engine, NamespaceHead, StoredAnswer, WriteTxn

WAIT_S = 60


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Runs `work(i)` in threads that start together; raises the first failure."""
    failures: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            start.wait(WAIT_S)
            work(number)
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_a_failing_operation_stores_nothing(engine: Engine) -> None:
    engine.write(lambda txn: put(txn, memory(1)))

    def fail(txn: WriteTxn) -> None:
        put(txn, memory(2, subject="s"))
        put(txn, memory(3, OTHER))
        txn.put_answer("t", "r", StoredAnswer(b"", b"", 1))
        txn.put_meta("k", b"v")
        raise NotFound("no")

    called = []
    with pytest.raises(NotFound):
        engine.write(fail, on_commit=called.append)
    assert called == []
    with engine.read() as txn:
        assert list(txn.heads()) == [NamespaceHead(NS, 1, 1, 1)]
        assert list(txn.by_subject(NS, "s")) == []
        assert txn.answer("t", "r") is None
        assert txn.meta("k") is None
    assert engine.write(lambda txn: put(txn, memory(4))).sequence == 2
    assert engine.write(lambda txn: put(txn, memory(5, OTHER))).sequence == 1
    assert list(engine.verify()) == []


def test_any_exception_reaches_the_caller(engine: Engine) -> None:
    def divide(txn: WriteTxn) -> float:
        put(txn, memory(1))
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        engine.write(divide)
    with engine.read() as txn:
        assert txn.head(NS) is None


def test_a_refused_put_leaves_the_transaction_usable(engine: Engine) -> None:
    engine.write(lambda txn: put(txn, memory(1)))

    def operation(txn: WriteTxn) -> None:
        put(txn, memory(2))
        for bad in (
            {"metadata": {"n": 2**70}},
            {"occur_time_us": 2**80},
            {"content": "\ud800"},
            {"namespace": Namespace("\ud800", Scope.USER, "x")},
        ):
            with pytest.raises(InvalidArgument):
                put(txn, msgspec.structs.replace(memory(3), **bad))
        with pytest.raises(InvalidArgument):
            txn.put(memory(3), ChangeKind.CREATED, time_us=1, actor="\ud800")
        put(txn, memory(4))

    engine.write(operation)
    with engine.read() as txn:
        assert [m.memory_id for m in txn.all_versions(NS)] == [memory_id(n) for n in (1, 2, 4)]
        assert [head.namespace for head in txn.heads()] == [NS]
    assert list(engine.verify()) == []


def test_a_snapshot_does_not_move(engine: Engine) -> None:
    first = engine.write(lambda txn: put(txn, memory(1)))
    with engine.read() as txn:
        engine.write(lambda w: put(w, msgspec.structs.replace(first, content="new"), ChangeKind.UPDATED))
        engine.write(lambda w: put(w, memory(2)))
        engine.write(lambda w: put(w, memory(3, OTHER)))
        with engine.read() as later:
            assert later.head(NS) == NamespaceHead(NS, 3, 2, 2)
            assert later.head(OTHER) == NamespaceHead(OTHER, 1, 1, 1)
        assert txn.head(NS) == NamespaceHead(NS, 1, 1, 1)
        assert txn.get(NS, memory_id(1)) == first
        assert list(txn.all_versions(NS)) == list(txn.scan(NS)) == [first]
        assert txn.head(OTHER) is None
        assert txn.get(OTHER, memory_id(3)) is None
        assert list(txn.scan(OTHER)) == []


def test_abandoned_iterators_do_no_harm(engine: Engine) -> None:
    engine.write(lambda txn: [put(txn, memory(n)) for n in range(10)])
    kept = []
    for _ in range(300):
        with engine.read() as txn:
            scan = txn.scan(NS)
            next(scan)
            kept.append(scan)
    engine.write(lambda txn: put(txn, memory(11)))
    with engine.read() as txn:
        assert len(list(txn.scan(NS))) == 11


def test_concurrent_writers_lose_nothing_and_sequences_have_no_gaps(engine: Engine) -> None:
    spaces = [Namespace("t", Scope.USER, f"u{n}") for n in range(3)]
    seen: dict[Namespace, list[int]] = {ns: [] for ns in spaces}

    def committed(stored: Any) -> None:
        seen[stored.namespace].append(stored.sequence)

    def work(thread: int) -> None:
        for n in range(40):
            number = thread * 1000 + n
            stored = engine.write(
                lambda txn, number=number: put(txn, memory(number, spaces[number % 3])), on_commit=committed
            )
            with engine.read() as txn:
                assert txn.get(stored.namespace, stored.memory_id) == stored, "a writer reads its own write"

    in_threads(8, work)
    with engine.read() as txn:
        for namespace in spaces:
            head = txn.head(namespace)
            assert head is not None
            assert seen[namespace] == list(range(1, head.sequence + 1)), "on_commit runs in commit order"
            assert [c.sequence for c in txn.changes(namespace, 0, 10_000)] == seen[namespace]
        assert sum(head.memory_count for head in txn.heads()) == 320
    assert list(engine.verify()) == []


def test_failures_among_concurrent_writers_undo_themselves_alone(engine: Engine) -> None:
    def work(thread: int) -> None:
        for n in range(30):
            number = thread * 1000 + n

            def operation(txn: WriteTxn, number: int = number) -> None:
                put(txn, memory(number))
                if number % 3 == 0:
                    raise NotFound(str(number))

            if number % 3:
                engine.write(operation)
            else:
                with pytest.raises(NotFound) as caught:
                    engine.write(operation)
                assert caught.value.message == str(number)

    in_threads(8, work)
    with engine.read() as txn:
        numbers = {int(m.content.split()[1]) for m in txn.scan(NS)}
        assert numbers == {t * 1000 + n for t in range(8) for n in range(30) if (t * 1000 + n) % 3}
        assert [c.sequence for c in txn.changes(NS, 0, 10_000)] == list(range(1, len(numbers) + 1))
    assert list(engine.verify()) == []


def test_concurrent_updates_of_one_memory_each_see_the_one_before(engine: Engine) -> None:
    engine.write(lambda txn: put(txn, memory(1, access_count=0)))

    def bump(txn: WriteTxn) -> None:
        now = txn.get(NS, memory_id(1))
        assert now is not None
        put(txn, msgspec.structs.replace(now, access_count=now.access_count + 1), ChangeKind.UPDATED)

    in_threads(8, lambda thread: [engine.write(bump) for _ in range(25)])  # type: ignore[func-returns-value]
    with engine.read() as txn:
        assert [m.access_count for m in txn.versions(NS, memory_id(1))] == list(range(201))


def test_the_same_request_stores_once(engine: Engine) -> None:
    answers = []

    def once(txn: WriteTxn) -> bytes:
        known = txn.answer("t", "request")
        if known is not None:
            return known.answer
        stored = put(txn, memory(1 + (txn.head(NS) or NamespaceHead(NS, 0, 0, 0)).memory_count))
        txn.put_answer("t", "request", StoredAnswer(b"f", stored.memory_id.encode(), 1))
        return stored.memory_id.encode()

    in_threads(8, lambda thread: answers.append(engine.write(once)))
    assert set(answers) == {memory_id(1).encode()}
    with engine.read() as txn:
        assert txn.head(NS) == NamespaceHead(NS, 1, 1, 1)


def test_readers_see_whole_transactions_while_writers_write(engine: Engine) -> None:
    """Each write puts a pair; no snapshot ever shows half of one."""
    done = threading.Event()

    def work(thread: int) -> None:
        if thread < 2:
            for n in range(40):
                number = thread * 1000 + n * 2
                engine.write(lambda txn, n=number: [put(txn, memory(n)), put(txn, memory(n + 1))])
            if thread == 0:
                done.set()
            return
        while not done.is_set():
            with engine.read() as txn:
                head = txn.head(NS)
                assert head is None or head.sequence % 2 == 0
                assert len(list(txn.scan(NS))) == (head.memory_count if head else 0)

    in_threads(5, work)


def test_on_commit_sees_the_commit_and_runs_before_write_returns(engine: Engine) -> None:
    heads = []

    def follow(stored: Any) -> None:
        with engine.read() as txn:
            heads.append((stored.sequence, txn.head(NS)))

    engine.write(lambda txn: put(txn, memory(1)), on_commit=follow)
    assert heads == [(1, NamespaceHead(NS, 1, 1, 1))]


def test_a_failing_on_commit_is_reported_and_stops_nobody(engine: Engine) -> None:
    def fail(stored: Any) -> None:
        raise ValueError("index")

    with pytest.raises(ValueError, match="index"):
        engine.write(lambda txn: put(txn, memory(1)), on_commit=fail)
    assert engine.write(lambda txn: put(txn, memory(2))).sequence == 2


def test_a_write_inside_a_write_is_refused_instead_of_hanging(engine: Engine) -> None:
    with pytest.raises(RuntimeError):
        engine.write(lambda txn: engine.write(lambda inner: None))
    with pytest.raises(RuntimeError):
        engine.write(lambda txn: None, on_commit=lambda done: engine.write(lambda inner: None))
    assert engine.write(lambda txn: put(txn, memory(1))).sequence == 1


def test_many_threads_hold_snapshots_at_once(engine: Engine) -> None:
    engine.write(lambda txn: put(txn, memory(1)))
    inside = threading.Barrier(300)

    def work(thread: int) -> None:
        with engine.read() as txn:
            inside.wait(WAIT_S)
            assert txn.get(NS, memory_id(1)) is not None

    in_threads(300, work)


def test_close_lets_running_writes_finish_and_refuses_later_ones(engine: Engine) -> None:
    stored: list[int] = []
    refused: list[int] = []
    lock = threading.Lock()
    busy = threading.Event()

    def work(thread: int) -> None:
        if thread == 0:
            assert busy.wait(WAIT_S)
            engine.close()
            return
        for n in range(10_000):
            number = thread * 100_000 + n
            try:
                engine.write(lambda txn, n=number: put(txn, memory(n)))
            except Unavailable:
                with lock:
                    refused.append(number)
                return
            with lock:
                stored.append(number)
            if n == 5:
                busy.set()

    in_threads(5, work)
    assert len(refused) == 4
    assert stored


def test_statuses_move_the_counts(engine: Engine) -> None:
    value = engine.write(lambda txn: put(txn, memory(1)))
    for status, active in ((Status.CONTESTED, 1), (Status.FORGOTTEN, 0), (Status.FORGOTTEN, 0), (Status.ACTIVE, 1)):
        value = engine.write(
            lambda txn, v=value, s=status: put(txn, msgspec.structs.replace(v, status=s), ChangeKind.UPDATED)
        )
        with engine.read() as txn:
            head = txn.head(NS)
            assert head is not None
            assert (head.memory_count, head.active_count) == (1, active)
