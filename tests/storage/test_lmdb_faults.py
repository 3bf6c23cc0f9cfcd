"""Kills, full disks and second processes, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lmdb_samples import NS, memory, put

from memsvc.errors import StoreLocked
from memsvc.storage.lmdb_engine import LmdbEngine

CHILD = Path(__file__).parent / "lmdb_child.py"
ROOT = Path(__file__).parents[2]
WAIT_S = 120


@contextmanager
def child(command: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    arguments = [sys.executable, str(CHILD), command, str(directory)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def output(command: str, directory: Path) -> str:
    with child(command, directory) as process:
        said, _ = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0, said
        return said


def test_a_second_process_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store")
    said = output("try_open", tmp_path / "store")
    assert said.startswith(f"STORE_LOCKED {os.getpid()} ")
    assert str(tmp_path / "store") in said
    engine.close()
    assert output("try_open", tmp_path / "store") == ""


def test_a_killed_process_gives_the_store_free(tmp_path: Path) -> None:
    with child("hold", tmp_path / "store") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(StoreLocked) as caught:
            LmdbEngine.open(tmp_path / "store")
        assert caught.value.metadata["pid"] == str(process.pid)
        process.kill()
        process.wait(WAIT_S)
        LmdbEngine.open(tmp_path / "store").close()


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged: set[int] = set()
    for acks in (1, 40, 150, 400, 90):
        with child("write_until_killed", tmp_path / "store") as process:
            assert process.stdout is not None
            for _ in range(acks):
                acknowledged.add(int(process.stdout.readline().split()[1]))
            process.kill()
            acknowledged.update(int(line.split()[1]) for line in process.stdout if line.endswith("\n"))
            process.wait(WAIT_S)
        engine = LmdbEngine.open(tmp_path / "store")
        assert list(engine.verify()) == []
        with engine.read() as txn:
            numbers = {int(m.content.split()[1]) for m in txn.scan(NS)}
        assert acknowledged <= numbers
        assert all((n ^ 1) in numbers for n in numbers), "each pair is there whole or not at all"
        engine.write(lambda txn, n=acks: put(txn, memory(n * 2)))
        engine.write(lambda txn, n=acks: put(txn, memory(n * 2 + 1)))
        engine.close()


def test_a_full_disk_refuses_writes_and_recovers(tmp_path: Path) -> None:
    said = output("disk_full", tmp_path / "store")
    assert said.endswith("done\n")
    assert said.count("the disk is full") == 4


def test_a_map_that_cannot_grow_refuses_writes_and_recovers(tmp_path: Path) -> None:
    said = output("address_space_full", tmp_path / "store")
    assert said.endswith("done\n")
    assert said.count("full") == 1


def test_it_opens_with_a_smaller_map_where_address_space_is_short(tmp_path: Path) -> None:
    assert output("little_address_space", tmp_path / "store") == "done\n"
