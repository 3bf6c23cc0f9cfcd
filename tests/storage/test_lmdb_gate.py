"""The gate of the map: readers are never locked out for long, the writer gets in when they are gone."""

from __future__ import annotations

import threading
from collections.abc import Callable

from memsvc.storage.lmdb_gate import MapGate

WAIT_S = 60


def started(target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target)
    thread.start()
    return thread


def test_alone_runs_at_once_when_nobody_is_inside() -> None:
    gate = MapGate()
    ran: list[int] = []
    assert gate.alone(lambda: ran.append(1), patience_s=0)
    assert ran == [1]


def test_alone_gives_up_and_lets_readers_pass_meanwhile() -> None:
    gate = MapGate()
    gate.enter()
    ran: list[int] = []
    answers: list[bool] = []
    assert not gate.alone(lambda: ran.append(1), patience_s=0)
    writer = started(lambda: answers.append(gate.alone(lambda: ran.append(1), patience_s=0.5)))
    passed = 0
    while writer.is_alive():
        gate.enter()
        gate.leave()
        passed += 1
    writer.join(WAIT_S)
    assert answers == [False]
    assert ran == []
    assert passed > 0
    assert gate.inside_count() == 1


def test_alone_runs_when_the_last_reader_leaves() -> None:
    gate = MapGate()
    gate.enter()
    gate.enter()
    answers: list[bool] = []
    inside: list[int] = []
    writer = started(lambda: answers.append(gate.alone(lambda: inside.append(gate.inside_count()), patience_s=WAIT_S)))
    gate.leave()
    gate.leave()
    writer.join(WAIT_S)
    assert answers == [True]
    assert inside == [0]


def test_nobody_is_inside_while_it_runs() -> None:
    gate = MapGate()
    stop = threading.Event()
    inside: list[int] = []

    def read() -> None:
        while not stop.is_set():
            gate.enter()
            gate.leave()

    readers = [started(read) for _ in range(3)]
    for _ in range(50):
        assert gate.alone(lambda: inside.append(gate.inside_count()), patience_s=WAIT_S)
    stop.set()
    for reader in readers:
        reader.join(WAIT_S)
    assert inside == [0] * 50
