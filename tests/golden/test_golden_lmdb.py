"""Stores that older versions wrote are read, value for value, and go on being written."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from memsvc.model import Change, ChangeKind, Memory
from memsvc.storage.lmdb_engine import FORMAT_VERSION, LmdbEngine

GOLDEN = Path(__file__).parent
STORES = sorted(GOLDEN.glob("lmdb_format_*"))


def load_maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_golden", GOLDEN / "make_golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def golden_contents(store: Path) -> dict[str, Any]:
    """What the store held, with the defaults of fields that came later (new fields go at the end of a record)."""
    contents = json.loads((store / "contents.json").read_text())
    for table, kind in (("versions", Memory), ("changes", Change)):
        contents[table] = [[_completed(row, kind) for row in rows] for rows in contents[table]]
    return contents


def _completed(row: list[Any], kind: type[msgspec.Struct]) -> list[Any]:
    missing = len(kind.__struct_fields__) - len(row)
    later = kind.__struct_defaults__[len(kind.__struct_defaults__) - missing :]
    return [*row, *json.loads(msgspec.json.encode(later))]


def test_the_present_format_has_a_golden_store() -> None:
    assert GOLDEN / f"lmdb_format_{FORMAT_VERSION}" in STORES


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_golden_store_reads_as_it_was_written(store: Path, tmp_path: Path) -> None:
    maker = load_maker()
    shutil.copytree(store, tmp_path / "store")
    engine = LmdbEngine.open(tmp_path / "store")
    found = json.loads(msgspec.json.encode(maker.contents_of(engine)))
    assert found == golden_contents(store)
    assert list(engine.verify()) == []
    value = maker._memory(100, maker.SPACES[0])
    with engine.read() as txn:
        head = txn.head(maker.SPACES[0])
    assert head is not None
    stored = engine.write(lambda txn: txn.put(value, ChangeKind.CREATED, time_us=1, actor="a"))
    assert stored.sequence == head.sequence + 1
    engine.close()


def test_the_history_written_today_equals_the_golden_one(tmp_path: Path) -> None:
    maker = load_maker()
    engine = LmdbEngine.open(tmp_path / "store")
    engine.write(maker.write_history)
    found = json.loads(msgspec.json.encode(maker.contents_of(engine)))
    assert found == golden_contents(GOLDEN / f"lmdb_format_{FORMAT_VERSION}")
    engine.close()
