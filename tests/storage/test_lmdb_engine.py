"""What is particular to the LMDB store: its lock, its format, its map, its files."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest
from lmdb_samples import MODEL, NS, memory, put

from memsvc.errors import (
    FormatVersionUnknown,
    InvalidArgument,
    StorageFailure,
    StorageFull,
    StoreCorrupt,
    StoreLocked,
    Unavailable,
)
from memsvc.model import AuditEntry, AuditKind, ChangeKind, content_hash
from memsvc.storage import lmdb_engine
from memsvc.storage.engine import RecordTable, StoredAnswer, WriteTxn
from memsvc.storage.lmdb_engine import LmdbEngine
from memsvc.storage.lmdb_errors import storage_error
from memsvc.storage.lmdb_tables import TABLES

WAIT_S = 60
SMALL_MAP_BYTES = 1 << 20
LEAF_PAGE = 2  # of LMDB's page flags


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "store"


def raw_env(directory: Path) -> lmdb.Environment:
    return lmdb.open(str(directory), max_dbs=50, map_size=1 << 30)


def test_opening_twice_in_one_process_is_refused(directory: Path) -> None:
    engine = LmdbEngine.open(directory)
    with pytest.raises(StoreLocked, match="this process") as caught:
        LmdbEngine.open(directory)
    assert str(directory) in caught.value.message
    assert caught.value.metadata["pid"] == str(os.getpid())
    engine.close()
    LmdbEngine.open(directory).close()


def test_files_are_for_their_owner_only(directory: Path) -> None:
    engine = LmdbEngine.open(directory)
    engine.write(lambda txn: put(txn, memory(1)))
    engine.backup(directory.parent / "copy")
    for place in (directory, directory.parent / "copy"):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        for file in place.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert {file.name for file in (directory.parent / "copy").iterdir()} == {"data.mdb"}
    engine.close()


@pytest.mark.parametrize("found", [b"2", b"0", b"", b"\xff\xfe"])
def test_another_format_is_refused_and_the_file_left_alone(directory: Path, found: bytes) -> None:
    LmdbEngine.open(directory).close()
    with raw_env(directory) as env, env.begin(write=True) as txn:
        txn.put(b"format_version", found, db=env.open_db(b"meta", txn=txn))
    before = (directory / "data.mdb").read_bytes()
    with pytest.raises(FormatVersionUnknown, match="export from there and import here") as caught:
        LmdbEngine.open(directory)
    assert caught.value.metadata["known"] == "1"
    assert f"format {found.decode(errors='replace')};" in caught.value.message
    assert (directory / "data.mdb").read_bytes() == before


def test_an_lmdb_file_of_somebody_else_is_refused(directory: Path) -> None:
    directory.mkdir()
    with raw_env(directory) as env, env.begin(write=True) as txn:
        txn.put(b"k", b"v")
    with pytest.raises(FormatVersionUnknown):
        LmdbEngine.open(directory)
    with raw_env(directory) as env, env.begin() as txn:
        assert list(txn.cursor()) == [(b"k", b"v")]


def test_a_file_that_is_no_store_is_corrupt(directory: Path) -> None:
    directory.mkdir()
    (directory / "data.mdb").write_bytes(b"not a database " * 1000)
    with pytest.raises(StoreCorrupt):
        LmdbEngine.open(directory)
    assert (directory / "data.mdb").read_bytes() == b"not a database " * 1000


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9, 0.99])
def test_a_cut_file_is_corrupt_and_does_not_kill_the_process(directory: Path, kept: float) -> None:
    """Reading a map past the end of its file is a bus error; the store sees to it that it has pages of zeros there."""
    engine = LmdbEngine.open(directory)
    engine.write(lambda txn: [put(txn, memory(n, content="x" * 900 + str(n))) for n in range(500)])
    engine.close()
    os.truncate(directory / "data.mdb", int((directory / "data.mdb").stat().st_size * kept))
    said = subprocess.run(  # in a process of its own, which may die
        [sys.executable, "-c", READ_ALL, str(directory)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("damaged"), said.stdout


READ_ALL = """
import sys, pathlib
from memsvc.errors import StoreCorrupt
from memsvc.storage.lmdb_engine import LmdbEngine
try:
    problems = list(LmdbEngine.open(pathlib.Path(sys.argv[1])).verify())
except StoreCorrupt as error:
    problems = [error]
print("damaged" if problems else "whole", problems[:3])
"""


def test_a_missing_table_is_corrupt(directory: Path) -> None:
    LmdbEngine.open(directory).close()
    with raw_env(directory) as env:
        table = env.open_db(b"log")
        with env.begin(write=True) as txn:
            txn.drop(table)
    with pytest.raises(StoreCorrupt):
        LmdbEngine.open(directory)


def test_an_unreadable_place_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailure):
        LmdbEngine.open(tmp_path / "file" / "store")


def test_what_the_disk_says_is_told_apart() -> None:
    assert isinstance(storage_error(lmdb.DiskError("mdb_txn_commit: No space left on device"), "commit"), StorageFull)
    assert isinstance(storage_error(lmdb.Error("mdb_txn_commit: File too large"), "commit"), StorageFull)
    assert isinstance(storage_error(OSError(122, "quota"), "open"), StorageFull)
    assert isinstance(storage_error(lmdb.Error("mdb_txn_commit: Input/output error"), "commit"), StorageFailure)
    assert isinstance(storage_error(lmdb.CorruptedError("x"), "read"), StoreCorrupt)
    assert storage_error(lmdb.TxnFullError("x"), "run").reason == "RESOURCE_EXHAUSTED"
    assert storage_error(lmdb.ReadersFullError("x"), "read").reason == "RESOURCE_EXHAUSTED"


# -- the map


def test_the_map_grows_while_readers_read(directory: Path) -> None:
    engine = LmdbEngine.open(directory, initial_map_size_bytes=SMALL_MAP_BYTES)
    done = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.wait(0.001):  # gives the writer its turns
                with engine.read() as txn:
                    head = txn.head(NS)
                    assert len(list(txn.scan(NS))) == (head.memory_count if head else 0)
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for n in range(100):
        engine.write(lambda txn, n=n: put(txn, memory(n, content="x" * 60_000 + str(n))))
    done.set()
    for reader in readers:
        reader.join(WAIT_S)
    assert failures == []
    assert engine.size_bytes() > 5 * SMALL_MAP_BYTES
    assert list(engine.verify()) == []
    engine.close()


def test_one_operation_larger_than_the_map_makes_it_grow(directory: Path) -> None:
    engine = LmdbEngine.open(directory, initial_map_size_bytes=SMALL_MAP_BYTES)
    runs = []

    def operation(txn: WriteTxn) -> int:
        runs.append(1)
        for n in range(200):
            put(txn, memory(n, content="x" * 30_000 + str(n)))
        return len(runs)

    assert engine.write(operation) == len(runs) > 1
    with engine.read() as txn:
        assert txn.head(NS).sequence == 200  # type: ignore[union-attr]
    assert list(engine.verify()) == []
    engine.close()


def test_at_its_limit_the_store_refuses_writes_and_goes_on_reading(directory: Path) -> None:
    engine = LmdbEngine.open(directory, initial_map_size_bytes=SMALL_MAP_BYTES, max_map_size_bytes=2 * SMALL_MAP_BYTES)
    count = 0

    def write_one() -> None:
        nonlocal count
        engine.write(lambda txn: put(txn, memory(count, content="x" * 3000)))
        count += 1

    with pytest.raises(StorageFull) as caught:  # noqa: PT012 - the loop ends with it
        while True:
            write_one()
    assert caught.value.metadata["limit"] == str(2 * SMALL_MAP_BYTES)
    with engine.read() as txn:
        assert len(list(txn.scan(NS))) == count > 100
    assert list(engine.verify()) == []
    engine.close()
    engine = LmdbEngine.open(directory, max_map_size_bytes=4 * SMALL_MAP_BYTES)
    assert engine.write(lambda txn: put(txn, memory(count))).sequence == count + 1
    engine.close()


def test_a_large_operation_that_does_not_fit_takes_no_small_ones_down(directory: Path) -> None:
    engine = LmdbEngine.open(directory, initial_map_size_bytes=SMALL_MAP_BYTES, max_map_size_bytes=SMALL_MAP_BYTES)
    entered, release = threading.Event(), threading.Event()
    outcomes: dict[int, str] = {}

    def hold(txn: WriteTxn) -> None:
        entered.set()
        assert release.wait(WAIT_S)

    def submit(n: int, size: int) -> None:
        try:
            engine.write(lambda txn: put(txn, memory(n, content="x" * size)))
            outcomes[n] = "stored"
        except StorageFull:
            outcomes[n] = "full"

    threads = [threading.Thread(target=engine.write, args=(hold,))]
    threads[0].start()
    assert entered.wait(WAIT_S)
    for n, size in enumerate((10, 3 * SMALL_MAP_BYTES, 10, 10)):
        threads.append(threading.Thread(target=submit, args=(n, size)))
        threads[-1].start()
        while len(engine._writer._queue) <= n:
            assert threads[-1].is_alive()
    release.set()
    for thread in threads:
        thread.join(WAIT_S)
    assert outcomes == {0: "stored", 1: "full", 2: "stored", 3: "stored"}
    with engine.read() as txn:
        assert [m.content for m in txn.all_versions(NS)] == ["x" * 10] * 3
    assert list(engine.verify()) == []
    engine.close()


def test_a_snapshot_that_stays_open_delays_growth_and_is_named(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_engine, "GROW_PATIENCE_S", 0.3)
    engine = LmdbEngine.open(directory, initial_map_size_bytes=SMALL_MAP_BYTES)
    with engine.read() as old:
        with pytest.raises(Unavailable, match="1 snapshots"):
            engine.write(lambda txn: put(txn, memory(1, content="x" * 3 * SMALL_MAP_BYTES)))
        with engine.read() as txn:
            assert txn.head(NS) is None
        assert old.head(NS) is None
    assert engine.write(lambda txn: put(txn, memory(1, content="x" * 3 * SMALL_MAP_BYTES))).sequence == 1
    engine.close()


def test_close_names_snapshots_that_stay_open_and_can_be_called_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_engine, "CLOSE_PATIENCE_S", 0.3)
    engine = LmdbEngine.open(directory)
    engine.write(lambda txn: put(txn, memory(1)))
    with engine.read() as txn:
        with pytest.raises(Unavailable, match="1 snapshots"):
            engine.close()
        assert txn.head(NS) is not None
    engine.close()
    LmdbEngine.open(directory).close()


def test_old_pages_are_used_again(directory: Path) -> None:
    """Snapshots that are closed pin nothing: rewriting the same memory does not make the file grow for ever."""
    engine = LmdbEngine.open(directory)
    for n in range(40):
        with engine.read() as txn:
            txn.get(NS, memory(1).memory_id)
        engine.write(lambda txn, n=n: txn.put_meta("blob", bytes([n]) * 100_000))
    assert engine.size_bytes() < 2_000_000
    engine.close()


def test_a_failed_backup_leaves_nothing_behind(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LmdbEngine.open(directory)
    target = directory.parent / "copy"

    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises((StorageFull, StorageFailure)):
            engine.backup(target)
    assert not target.exists() or list(target.iterdir()) == []
    assert engine.backup(target) > 0
    engine.close()
    with pytest.raises(Unavailable):
        engine.backup(directory.parent / "other")


def test_a_backup_is_not_made_into_a_directory_in_use(directory: Path) -> None:
    engine = LmdbEngine.open(directory)
    with pytest.raises(InvalidArgument):
        engine.backup(directory)
    engine.close()


# -- verify


def filled(directory: Path) -> None:
    engine = LmdbEngine.open(directory)

    def operation(txn: WriteTxn) -> None:
        for n in range(3):
            value = memory(n, embedding_model=MODEL, embedding_dim=2)
            txn.put_vector(NS, MODEL, hash_of(value), np.ones(2, np.float32))
            put(txn, value)
        put(txn, memory(1, embedding_model=MODEL, embedding_dim=2, importance=0.9), ChangeKind.UPDATED)
        txn.put_answer("t", "r", StoredAnswer(b"f", b"a", 7))
        for detail in ("one", "two", "three"):
            txn.append_audit(NS, AuditEntry(kind=AuditKind.READ, time_us=1, actor="a", call="c", detail=detail))
        for table in RecordTable:
            txn.put_record(table, NS, "k", b"v")

    engine.write(operation)
    assert list(engine.verify()) == []
    engine.close()


def hash_of(value: Any) -> bytes:
    return content_hash(value.content)


def first_key(txn: Any, table: Any) -> bytes:
    cursor = txn.cursor(table)
    assert cursor.first()
    return bytes(cursor.key())


def drop_first(txn: Any, table: Any) -> None:
    assert txn.delete(first_key(txn, table), db=table)


def cut_first(txn: Any, table: Any) -> None:
    key = first_key(txn, table)
    txn.put(key, txn.get(key, db=table)[:-1], db=table)


def spoil_first(txn: Any, table: Any) -> None:
    key = first_key(txn, table)
    txn.put(key, b"\x09" + txn.get(key, db=table)[1:], db=table)


def add_stray(txn: Any, table: Any) -> None:
    """An entry beside the first that nothing else knows."""
    key = first_key(txn, table)
    txn.put(key[:-1] + bytes([key[-1] ^ 0xFF]), txn.get(key, db=table), db=table)


def add_foreign(txn: Any, table: Any) -> None:
    """The first entry again, in a namespace that does not exist."""
    key = first_key(txn, table)
    start = 4 if len(key) == 28 and key[:4] == b"\0\0\0\1" else 0
    txn.put(key[:start] + b"\x77" * 8 + key[start + 8 :], txn.get(key, db=table), db=table)


def add_misshapen(txn: Any, table: Any) -> None:
    txn.put(first_key(txn, table) + b"x", b"", db=table)


def swap_value(txn: Any, table: Any) -> None:
    """The last entry's value under the first key."""
    cursor = txn.cursor(table)
    assert cursor.last()
    txn.put(first_key(txn, table), bytes(cursor.value()), db=table)


def change_number(txn: Any, table: Any) -> None:
    key = first_key(txn, table)
    raw = bytearray(txn.get(key, db=table))
    raw[-1] ^= 0x3
    txn.put(key, bytes(raw), db=table)


def swap_key(txn: Any, table: Any) -> None:
    """The first value under another key of the same namespace."""
    key = first_key(txn, table)
    txn.put(key[:8] + bytes(len(key) - 8), bytes(txn.get(key, db=table)), db=table)


DAMAGE = [
    ("states", change_number, "recallable"),
    ("states", drop_first, "no state"),
    ("states", cut_first, "no state"),
    ("states", add_foreign, "belongs to no namespace"),
    ("namespaces", spoil_first, "unknown format|belongs to no namespace"),
    ("namespaces", drop_first, "belongs to no namespace"),
    ("namespaces", add_stray, "not the digest"),
    ("current", drop_first, "does not name the newest version"),
    ("current", change_number, "does not name the newest version"),
    ("current", add_stray, "names no version"),
    ("current", add_foreign, "belongs to no namespace"),
    ("versions", drop_first, "names no version"),
    ("versions", cut_first, "can't be decoded"),
    ("versions", spoil_first, "unknown format"),
    ("versions", swap_value, "another version than its key says"),
    ("versions", add_foreign, "belongs to no namespace"),
    ("versions", add_misshapen, "bytes instead of"),
    ("log", drop_first, "is missing before it"),
    ("log", cut_first, "can't be decoded"),
    ("log", swap_value, "not written by it"),
    ("log", add_stray, "is missing before it"),
    ("log", add_foreign, "belongs to no namespace"),
    ("subjects", drop_first, "is missing"),
    ("subjects", add_stray, "names no current value"),
    ("subjects", add_foreign, "belongs to no namespace"),
    ("contents", drop_first, "is missing"),
    ("contents", add_stray, "names no current value"),
    ("contents", add_misshapen, "bytes instead of"),
    ("times", drop_first, "is missing"),
    ("times", add_stray, "names no current value"),
    ("times", add_foreign, "belongs to no namespace"),
    ("vectors", drop_first, "has no vector"),
    ("vectors", cut_first, "bytes instead of 2 dimensions"),
    ("vectors", add_foreign, "belongs to no namespace"),
    ("models", drop_first, "belongs to no model"),
    ("models", spoil_first, "unknown format"),
    ("models", add_stray, "not the digest"),
    ("answers", drop_first, "names no answer"),
    ("answers", cut_first, "can't be decoded"),
    ("answers", add_stray, "not the digest"),
    ("answer_times", drop_first, "no entry in answer_times"),
    ("answer_times", add_stray, "names no answer"),
    ("answer_times", add_misshapen, "names no answer"),
    ("audit", drop_first, "number 2 follows 0"),
    ("audit", swap_value, "its hash does not follow"),
    ("audit", change_number, "its hash does not follow"),
    ("audit", add_stray, "number"),
    ("audit", cut_first, "can't be decoded"),
    ("audit", add_foreign, "belongs to no namespace"),
    *[(table.value, cut_first, "can't be decoded") for table in RecordTable],
    *[(table.value, swap_key, "not the digest") for table in RecordTable],
    *[(table.value, add_foreign, "belongs to no namespace") for table in RecordTable],
]


@pytest.mark.parametrize(("table", "damage", "expected"), DAMAGE, ids=[f"{t}-{d.__name__}" for t, d, _ in DAMAGE])
def test_verify_finds_damage(directory: Path, table: str, damage: Any, expected: str) -> None:
    filled(directory)
    with raw_env(directory) as env:
        opened = env.open_db(table.encode())
        with env.begin(write=True) as txn:
            damage(txn, opened)
    engine = LmdbEngine.open(directory)
    found = [f"{p.where}: {p.what}" for p in engine.verify()]
    engine.close()
    assert any(word in text for text in found for word in expected.split("|")), found
    assert not any("fact" in text for text in found), "a problem never shows content"


def test_damage_is_tested_in_every_table() -> None:
    assert {table for table, _, _ in DAMAGE} | {"meta"} == set(TABLES)


def test_verify_reports_pages_that_cannot_be_read(directory: Path) -> None:
    engine = LmdbEngine.open(directory)
    engine.write(lambda txn: [put(txn, memory(n, content="x" * 500 + str(n))) for n in range(500)])
    engine.close()
    path = directory / "data.mdb"
    raw = bytearray(path.read_bytes())
    page_bytes = os.sysconf("SC_PAGESIZE")
    for page in range(2, len(raw) // page_bytes):
        at = page * page_bytes
        flags, lower = struct.unpack_from("<HH", raw, at + 10)
        if flags == LEAF_PAGE and (lower - 16) // 2 < 8 and raw.count(b"x" * 400, at, at + page_bytes) > 3:
            raw[at : at + page_bytes] = bytes(page_bytes)
    path.write_bytes(raw)
    engine = LmdbEngine.open(directory)
    found = list(engine.verify())
    assert any("can't be read on" in p.what for p in found)
    with pytest.raises(StoreCorrupt), engine.read() as txn:
        list(txn.scan(NS))
    engine.close()


def test_reading_damage_is_an_error_and_never_an_empty_answer(directory: Path) -> None:
    filled(directory)
    with raw_env(directory) as env:
        tables = {name: env.open_db(name.encode()) for name in TABLES}
        with env.begin(write=True) as txn:
            drop_first(txn, tables["versions"])
            cut_first(txn, tables["vectors"])
            drop_first(txn, tables["states"])
    engine = LmdbEngine.open(directory)
    with engine.read() as txn:
        for read in (
            lambda: txn.get(NS, memory(0).memory_id),
            lambda: list(txn.scan(NS)),
            lambda: list(txn.all_versions(NS)),
            lambda: list(txn.by_content_hash(NS, hash_of(memory(0)))),
            lambda: txn.head(NS),
            lambda: list(txn.heads()),
            lambda: txn.vectors(NS, MODEL, [hash_of(memory(n)) for n in range(3)], 2),
        ):
            with pytest.raises(StoreCorrupt, match="memsvc verify"):
                read()
    engine.close()
