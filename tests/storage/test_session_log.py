"""The journal of sessions: whatever happens to its files, whole records before the damage come back."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.errors import InvalidArgument, Unavailable
from memsvc.model import Namespace, Scope
from memsvc.storage.session_log import ASIDE_SUFFIX, FileSessionLog, whole_records

ONE = Namespace("t", Scope.SESSION, "u/one")
RECORDS = [b"first", b"\x00" * 40, "第三".encode()]


def filled(directory: Path, records: list[bytes] = RECORDS, namespace: Namespace = ONE) -> Path:
    log = FileSessionLog(directory)
    for record in records:
        log.append(namespace, record)
    log.close()
    (path,) = directory.glob("*.log")
    return path


def reread(directory: Path, namespace: Namespace = ONE) -> list[bytes]:
    log = FileSessionLog(directory)
    try:
        return log.read(namespace)
    finally:
        log.close()


def test_records_come_back_in_order_and_per_session(tmp_path: Path) -> None:
    log = FileSessionLog(tmp_path, open_files_max=2)
    names = [Namespace("t", Scope.SESSION, f"u/{i}") for i in range(7)]
    for turn in range(5):
        for i, name in enumerate(names):
            log.append(name, f"{i}:{turn}".encode())
    assert sorted(n.owner for n in log.open_sessions()) == [n.owner for n in names]
    log.close()
    again = FileSessionLog(tmp_path, open_files_max=2)
    for i, name in enumerate(names):
        assert again.read(name) == [f"{i}:{turn}".encode() for turn in range(5)]
    again.drop(names[0])
    again.append(names[1], b"more")
    assert again.read(names[0]) == []
    assert again.read(names[1])[-1] == b"more"
    again.close()
    assert len(list(tmp_path.glob("*.log"))) == 6


def test_a_backup_ends_at_a_record_while_others_append(tmp_path: Path) -> None:
    log = FileSessionLog(tmp_path / "live", open_files_max=2)
    names = [Namespace("t", Scope.SESSION, f"u/{i}") for i in range(5)]
    for name in names:
        for record in RECORDS:
            log.append(name, record)
    going, stopped = threading.Event(), threading.Event()

    def append() -> None:
        for number in range(2000):
            log.append(names[0], b"%d" % number * 250)
            going.set()
            if stopped.is_set():
                return

    thread = threading.Thread(target=append)
    thread.start()
    going.wait()
    try:
        sizes = [log.backup(tmp_path / f"copy-{i}") for i in range(8)]
    finally:
        stopped.set()
        thread.join()
    log.drop(names[1])
    live = log.read(names[0])
    log.close()
    for i, size in enumerate(sizes):
        files = list((tmp_path / f"copy-{i}").iterdir())
        assert size == sum(path.stat().st_size for path in files)
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
        for path in files:
            assert whole_records(path.read_bytes())[1] == path.stat().st_size
        copied = reread(tmp_path / f"copy-{i}", names[0])
        assert copied == live[: len(copied)]
        assert reread(tmp_path / f"copy-{i}", names[1]) == RECORDS


def test_a_backup_has_a_session_that_moves_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = FileSessionLog(tmp_path / "live")
    here, there = (Namespace("t", Scope.SESSION, f"u/{name}") for name in ("here", "there"))
    log.append(here, b"first")
    listed = log.open_sessions

    def moving():  # type: ignore[no-untyped-def]
        names = list(listed())
        if here in names:
            log.append(there, b"first")
            log.drop(here)
        return iter(names)

    monkeypatch.setattr(log, "open_sessions", moving)
    assert log.backup(tmp_path / "copy") > 0
    log.close()
    assert reread(tmp_path / "copy", there) == [b"first"]


def test_no_more_files_are_open_than_allowed(tmp_path: Path) -> None:
    log = FileSessionLog(tmp_path, open_files_max=3)
    for i in range(20):
        log.append(Namespace("t", Scope.SESSION, str(i)), b"x")
    assert sum(file.fd >= 0 for file in log._files.values()) <= 3
    log.close()
    assert all(file.fd < 0 for file in log._files.values())


def test_a_torn_tail_at_every_byte_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = filled(tmp_path / "a").read_bytes()
    for size in range(len(whole)):
        directory = tmp_path / f"cut-{size}"
        directory.mkdir()
        path = directory / (tmp_path / "a").glob("*.log").__next__().name
        path.write_bytes(whole[:size])
        expected, end = whole_records(whole[:size])
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            assert reread(directory) == expected[1:]
        assert bool(caplog.records) == (end != size or len(expected) < 2)
        assert not list(directory.glob("*" + ASIDE_SUFFIX))
        log = FileSessionLog(directory)
        log.append(ONE, b"after")
        assert log.read(ONE) == [*expected[1:], b"after"]
        log.close()


def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    path = filled(tmp_path)
    path.write_bytes(path.read_bytes() + b"\x00" * 4096)
    assert reread(tmp_path) == RECORDS
    assert not list(tmp_path.glob("*" + ASIDE_SUFFIX))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_flipped_byte_never_gives_a_wrong_record(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("flip")
    records = data.draw(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=6))
    path = filled(directory, records)
    raw = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    found = reread(directory)
    assert found == records[: len(found)]
    assert len(found) < len(records)
    assert reread(directory) == found


def test_a_damaged_file_keeps_what_is_before_the_damage_and_is_kept_aside(tmp_path: Path) -> None:
    path = filled(tmp_path)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"\x00" * 40)] ^= 1
    path.write_bytes(raw)
    assert reread(tmp_path) == RECORDS[:1]
    assert path.with_suffix(ASIDE_SUFFIX).read_bytes() == raw


def test_a_foreign_file_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = filled(tmp_path)
    (tmp_path / "0123.log").write_bytes(path.read_bytes())
    log = FileSessionLog(tmp_path)
    assert list(log.open_sessions()) == [ONE]
    log.close()
    assert (tmp_path / ("0123" + ASIDE_SUFFIX)).exists()
    assert "moved aside" in caplog.text


def test_parallel_appends_lose_nothing(tmp_path: Path) -> None:
    log = FileSessionLog(tmp_path, open_files_max=2)
    names = [Namespace("t", Scope.SESSION, str(i)) for i in range(5)]

    def work(worker: int) -> None:
        for i in range(40):
            log.append(names[(worker + i) % len(names)], f"{worker}-{i}".encode())

    threads = [threading.Thread(target=work, args=(w,)) for w in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    again = FileSessionLog(tmp_path)
    found = [record for name in names for record in again.read(name)]
    again.close()
    assert sorted(found) == sorted(f"{w}-{i}".encode() for w in range(6) for i in range(40))


def test_what_is_not_accepted(tmp_path: Path) -> None:
    log = FileSessionLog(tmp_path)
    with pytest.raises(InvalidArgument):
        log.append(ONE, b"")
    log.drop(ONE)
    assert log.read(ONE) == []
    log.close()
    log.close()
    with pytest.raises(Unavailable):
        log.append(ONE, b"x")
