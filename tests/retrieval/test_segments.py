"""Segments in step with a real store: loading, saving, damage, catching up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memsvc.model import ChangeKind, IdMinter, Layer, Memory, MemoryType, Namespace, Scope, Source, Status
from memsvc.retrieval import segment_file
from memsvc.retrieval.lexical import analyze
from memsvc.retrieval.searcher import SearchQuery, search
from memsvc.retrieval.segments import Applied, SegmentStore, vector_hash
from memsvc.retrieval.vector import GRAPH_FROM_ROWS
from memsvc.storage.lmdb_engine import LmdbEngine

DIM = 8
NS = Namespace("default", Scope.USER, "u/%_\n")
MINTER = IdMinter(lambda: time.time_ns() // 1000)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LmdbEngine]:
    opened = LmdbEngine.open(tmp_path / "store")
    yield opened
    opened.close()


def vector(number: int) -> np.ndarray:
    made = np.random.default_rng(number).normal(size=DIM).astype(np.float32)
    return (made / np.linalg.norm(made)).astype(np.float16).astype(np.float32)


def write(engine: LmdbEngine, numbers: range, store: SegmentStore | None = None) -> list[Memory]:
    """Commits one memory a number, as the memory room does."""

    def put(txn) -> list[Applied]:
        changes = []
        for n in numbers:
            memory = Memory(
                memory_id=MINTER.mint(),
                version=0,
                sequence=0,
                namespace=NS,
                layer=Layer.EPISODIC,
                type=MemoryType.EVENT,
                content=f"note {n} about topic{n % 7}",
                tags=(f"t{n % 3}",),
                source=Source(session_id=f"s{n % 5}"),
                metadata={"speaker": f"p{n % 2}"},
                occur_time_us=n,
                embedding_model="m",
                embedding_dim=DIM,
            )
            txn.put_vector(NS, "m", vector_hash(memory), vector(n))
            changes.append(Applied(txn.put(memory, ChangeKind.CREATED, time_us=n, actor="t"), vector(n), None))
        return changes

    changes = engine.write(put, on_commit=None if store is None else store.applied)
    return [change.memory for change in changes]


def answers(segment) -> list[tuple[str, int, float]]:
    found, _ = search([(segment, None)], SearchQuery(analyze("note about topic3"), vector(3), 20, 10**6))
    return [(one.memory_id, one.version, round(one.components[-1], 5)) for one in found]


def test_load_follow_and_catch_up(engine):
    store = SegmentStore(engine, "m", DIM, None)
    assert store.get(NS) is None
    write(engine, range(40), store)
    segment = store.get(NS)
    assert segment is not None
    assert segment.sequence == 40
    write(engine, range(40, 50), store)
    assert segment.sequence == 50
    write(engine, range(50, 55))  # a commit that was not followed
    write(engine, range(55, 60), store)
    assert segment.sequence == 60
    fresh = SegmentStore(engine, "m", DIM, None).get(NS)
    assert answers(segment) == answers(fresh)


def test_saved_segment_is_completed_from_the_log(engine, tmp_path):
    directory = tmp_path / "segments"
    first = SegmentStore(engine, "m", DIM, directory)
    rows = segment_file.SAVE_FROM_ROWS
    memories = write(engine, range(rows))
    first.get(NS)
    first.close()
    assert list(directory.glob("*.seg"))
    write(engine, range(rows, rows + 20))

    def forget(txn) -> None:
        txn.put(
            Memory(
                **{f: getattr(memories[3], f) for f in memories[3].__struct_fields__} | {"status": Status.FORGOTTEN}
            ),
            ChangeKind.FORGOTTEN,
            time_us=1,
            actor="t",
        )

    engine.write(forget)
    saved = SegmentStore(engine, "m", DIM, directory).get(NS)
    rebuilt = SegmentStore(engine, "m", DIM, None).get(NS)
    assert saved.sequence == rebuilt.sequence == rows + 21
    assert answers(saved) == answers(rebuilt)
    assert saved.document_count == rebuilt.document_count


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "magic"])
def test_a_damaged_file_is_rebuilt(engine, tmp_path, damage):
    directory = tmp_path / "segments"
    write(engine, range(segment_file.SAVE_FROM_ROWS))
    store = SegmentStore(engine, "m", DIM, directory)
    whole = answers(store.get(NS))
    store.close()
    path = next(directory.glob("*.seg"))
    raw = bytearray(path.read_bytes())
    if damage == "flip":
        raw[len(raw) // 2] ^= 1
    elif damage == "cut":
        del raw[len(raw) // 2 :]
    elif damage == "empty":
        raw.clear()
    else:
        raw[0] ^= 1
    path.write_bytes(raw)
    assert segment_file.load(directory, NS, "m", DIM) is None
    assert answers(SegmentStore(engine, "m", DIM, directory).get(NS)) == whole


def test_another_model_is_not_loaded(engine, tmp_path):
    write(engine, range(segment_file.SAVE_FROM_ROWS))
    store = SegmentStore(engine, "m", DIM, tmp_path / "segments")
    store.get(NS)
    store.close()
    assert segment_file.load(tmp_path / "segments", NS, "other", DIM) is None
    assert segment_file.load(tmp_path / "segments", NS, "m", DIM) is not None


def test_graph_is_saved_and_loaded(engine, tmp_path):
    directory = tmp_path / "segments"
    rows = GRAPH_FROM_ROWS + 100
    for start in range(0, rows, 1000):
        write(engine, range(start, min(start + 1000, rows)))
    store = SegmentStore(engine, "m", DIM, directory)
    segment = store.get(NS)
    while segment.index_more():
        pass
    store.close()
    loaded = segment_file.load(directory, NS, "m", DIM)
    assert loaded is not None
    assert loaded.vectors.graph_rows == rows
    assert answers(loaded) == answers(segment)
    assert np.array_equal(loaded.vectors.links[:rows], segment.vectors.links[:rows])


def test_a_segment_ahead_of_the_store_is_rebuilt(engine, tmp_path):
    directory = tmp_path / "segments"
    write(engine, range(segment_file.SAVE_FROM_ROWS))
    store = SegmentStore(engine, "m", DIM, directory)
    store.get(NS)
    store.close()
    other = LmdbEngine.open(tmp_path / "older")
    write(other, range(10))
    assert SegmentStore(other, "m", DIM, directory).get(NS).sequence == 10
    other.close()
