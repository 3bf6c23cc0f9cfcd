"""A rewritten store: no byte of what was erased, whole after a kill at any stage, readers and writers beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lmdb_samples import NS, memory, put

from memsvc.errors import Unavailable
from memsvc.model import Namespace, Scope
from memsvc.storage import lmdb_engine, lmdb_rewrite
from memsvc.storage.engine import RecordTable, StoredAnswer
from memsvc.storage.lmdb_engine import LmdbEngine
from memsvc.storage.wipe import wipe

BOB = Namespace("acme", Scope.USER, "bob")
MARKS = ["zebra-marker", "斑马标记"]
ROOT = Path(__file__).parents[2]


def holds(directory: Path, text: str) -> list[str]:
    """Files below the directory that hold the text's bytes."""
    return [p.name for p in directory.rglob("*") if p.is_file() and text.encode() in p.read_bytes()]


def fill(engine: LmdbEngine) -> None:
    for at in range(0, 300, 50):
        for namespace, marks in ((NS, MARKS), (BOB, ["bob's own"])):

            def write(txn, at=at, namespace=namespace, marks=marks):
                for n in range(at, at + 50):
                    long = marks[n % len(marks)] * (300 if n % 10 == 0 else 3)
                    put(txn, memory(n, namespace, content=f"{long} {n}", subject=marks[0]))
                txn.put_record(RecordTable.PERMANENT, namespace, f"{marks[0]} {at}", marks[-1].encode() * 20)
                txn.put_answer("acme", f"r{at}{namespace.owner}", StoredAnswer(b"f", marks[-1].encode(), at))

            engine.write(write)


def erase(engine: LmdbEngine) -> None:
    engine.write(lambda txn: (txn.erase_namespace(NS), txn.erase_answers("acme", lambda raw: b"bob" in raw)))


def check_bob(engine: LmdbEngine) -> None:
    assert list(engine.verify()) == []
    with engine.read() as txn:
        assert txn.head(NS) is None
        assert sum(1 for _ in txn.scan(BOB)) == 300


def test_no_byte_is_left(tmp_path: Path) -> None:
    store = tmp_path / "store"
    engine = LmdbEngine.open(store)
    fill(engine)
    erase(engine)
    assert all(holds(store, mark) for mark in (*MARKS, "alice")), "free pages still have it: the test can fail"
    engine.rewrite()
    assert [holds(store, mark) for mark in (*MARKS, "alice")] == [[], [], []]
    assert holds(store, "bob's own")
    check_bob(engine)
    engine.close()
    engine = LmdbEngine.open(store)
    check_bob(engine)
    engine.close()


@pytest.mark.parametrize("stage", ["copied", "linked", "swapped", "wiping", "wiped"])
def test_a_kill_at_any_stage_leaves_a_whole_store(tmp_path: Path, stage: str) -> None:
    store = tmp_path / "store"
    engine = LmdbEngine.open(store)
    fill(engine)
    engine.write(lambda txn: txn.erase_answers("acme", lambda raw: b"bob" in raw))
    engine.close()
    child = Path(__file__).parent / "rewrite_child.py"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(child), stage, str(store)], env=env, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    engine = LmdbEngine.open(store)
    assert not (store / lmdb_rewrite.FRESH_FILE).exists()
    assert not (store / lmdb_rewrite.OLD_FILE).exists()
    check_bob(engine)
    if stage not in ("copied", "linked"):
        assert holds(store, MARKS[0]) == []
    engine.rewrite()
    assert [holds(store, mark) for mark in (*MARKS, "alice")] == [[], [], []]
    check_bob(engine)
    engine.close()


def test_readers_and_writers_go_on(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store")
    fill(engine)
    stop = threading.Event()
    failures: list[BaseException] = []
    written: list[int] = []

    def work(action) -> None:
        number = 10_000
        while not stop.is_set():
            number += 1
            try:
                action(number)
            except BaseException as error:  # noqa: BLE001 - shown by the assertion below
                failures.append(error)
                return

    def write(number: int) -> None:
        engine.write(lambda txn: put(txn, memory(number, BOB)))
        written.append(number)

    def read(_: int) -> None:
        with engine.read() as txn:
            assert sum(1 for _ in txn.scan(BOB)) >= 300

    threads = [threading.Thread(target=work, args=(action,)) for action in (write, read, read)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        engine.rewrite()
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    with engine.read() as txn:
        assert {m.memory_id for m in txn.scan(BOB)} >= {memory(n).memory_id for n in written}
    assert list(engine.verify()) == []
    engine.close()


def test_an_open_snapshot_is_waited_for_and_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmdb_engine, "SWAP_PATIENCE_S", 0.2)
    engine = LmdbEngine.open(tmp_path / "store")
    fill(engine)
    with engine.read() as txn:
        with pytest.raises(Unavailable, match="1 snapshots"):
            engine.rewrite()
        assert sum(1 for _ in txn.scan(BOB)) == 300
    assert not (tmp_path / "store" / lmdb_rewrite.FRESH_FILE).exists()
    engine.rewrite()
    engine.write(lambda txn: put(txn, memory(999, BOB)))
    assert list(engine.verify()) == []
    engine.close()


def test_wiping_zeroes_every_byte(tmp_path: Path) -> None:
    path, other = tmp_path / "secret", tmp_path / "other name"
    path.write_bytes(b"secret" * 300_000)
    os.link(path, other)
    assert wipe(path)
    assert not path.exists()
    assert set(other.read_bytes()) == {0}
    assert other.stat().st_size == 1_800_000
    assert not wipe(path)
