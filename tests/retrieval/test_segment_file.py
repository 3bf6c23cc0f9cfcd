"""Saved segments come back whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsvc.model import Layer, Memory, MemoryType, Namespace, Scope, Source, Status, id_from_bytes
from memsvc.retrieval import segment_file
from memsvc.retrieval.columns import COLUMNS
from memsvc.retrieval.lexical import analyze
from memsvc.retrieval.searcher import SearchQuery, search
from memsvc.retrieval.segment import Segment
from memsvc.retrieval.vector import GRAPH_FROM_ROWS

DIM = 8
NS = Namespace("acme", Scope.USER, "alice/../%\n")
MODEL = "model-a"
NOW_US = 10**12
same_directory = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def unit(seed: int) -> np.ndarray:
    """Exact in the store's half precision, as the vectors of the store are."""
    made = np.random.default_rng(seed).normal(size=DIM).astype(np.float32)
    return (made / np.linalg.norm(made)).astype(np.float16).astype(np.float32)


def grow(segment: Segment, known: dict[int, Memory], numbers: list[int]) -> None:
    """One version a number; a number that is known is updated."""
    for number in numbers:
        before = known.get(number)
        sequence = segment.sequence + 1
        memory = Memory(
            memory_id=id_from_bytes(number.to_bytes(16, "big")),
            version=before.version + 1 if before else 1,
            sequence=sequence,
            namespace=NS,
            layer=Layer.EPISODIC,
            type=MemoryType.EVENT,
            content=f"note {number} 话题{number % 5} about ORD-{number % 9:04}",
            status=Status.FORGOTTEN if before and number % 3 == 0 else Status.ACTIVE,
            subject=f"s{number % 3}",
            tags=(f"t{number % 4}",),
            metadata={"speaker": f"p{number % 2}"},
            source=Source("tool", f"session{number % 6}" if number % 7 else ""),
            update_time_us=sequence,
            occur_time_us=number * 37 % 101,
        )
        segment.apply(memory, unit(number) if number % 11 else None, before)
        known[number] = memory


def answers(segment: Segment) -> list[object]:
    """Every field of what a few recalls find, as they must be before and after."""
    found: list[object] = []
    for text in ("note about 话题3", "what did p1 say of ORD-0004?", ""):
        for vector in (unit(5), None):
            for at in (None, segment.sequence // 2):
                query = SearchQuery(analyze(text), vector, 20, NOW_US)
                found.append(search([(segment, at)], query)[0])
    return found


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Segment, dict[int, Memory], Path]:
    segment, known = Segment(NS, MODEL, DIM), {}
    grow(segment, known, [*range(200), *range(0, 200, 4)])
    assert segment_file.save(tmp_path, segment) == 250
    return segment, known, tmp_path


@pytest.fixture(scope="module")
def with_graph(tmp_path_factory: pytest.TempPathFactory) -> tuple[Segment, Path]:
    segment, directory = Segment(NS, MODEL, DIM), tmp_path_factory.mktemp("graph")
    grow(segment, {}, [*range(GRAPH_FROM_ROWS), *range(0, 400, 2)])
    while segment.index_more():
        pass
    segment_file.save(directory, segment)
    return segment, directory


def load(directory: Path) -> Segment | None:
    return segment_file.load(directory, NS, MODEL, DIM)


def test_a_loaded_segment_answers_and_grows_as_the_saved_one(saved: tuple[Segment, dict[int, Memory], Path]) -> None:
    segment, known, directory = saved
    loaded = load(directory)
    assert loaded is not None
    assert answers(loaded) == answers(segment)
    assert (loaded.sequence, loaded.document_count, loaded.total_length) == (
        segment.sequence,
        segment.document_count,
        segment.total_length,
    )
    for each, memories in ((segment, known), (loaded, dict(known))):
        grow(each, memories, [*range(100, 420), 3, 3])
    rows = segment.rows
    for name in (*COLUMNS, "ids"):
        assert np.array_equal(getattr(loaded.columns, name)[:rows], getattr(segment.columns, name)[:rows]), name
    assert loaded.sessions == segment.sessions
    assert answers(loaded) == answers(segment)


def test_an_empty_segment_can_be_saved(tmp_path: Path) -> None:
    assert segment_file.save(tmp_path / "new", Segment(NS, MODEL, DIM)) == 0
    loaded = load(tmp_path / "new")
    assert loaded is not None
    grow(loaded, {}, [1, 2, 3])
    assert loaded.document_count == 3


def test_saving_again_replaces_the_file_and_leaves_nothing_behind(
    saved: tuple[Segment, dict[int, Memory], Path],
) -> None:
    segment, known, directory = saved
    grow(segment, known, [500])
    assert segment_file.save(directory, segment) == 251
    assert [path.suffix for path in directory.iterdir()] == [".seg"]
    loaded = load(directory)
    assert loaded is not None
    assert loaded.sequence == 251


@same_directory
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(saved: tuple[Segment, dict[int, Memory], Path], position: float, bit: int) -> None:
    path = next(saved[2].glob("*.seg"))
    whole = path.read_bytes()
    raw = bytearray(whole)
    raw[int(position * len(raw))] ^= 1 << bit
    path.write_bytes(raw)
    assert load(saved[2]) is None
    path.write_bytes(whole)
    assert load(saved[2]) is not None


@same_directory
@given(length=st.integers(0, 64) | st.floats(0, 1, exclude_max=True))
def test_any_truncation_is_noticed(saved: tuple[Segment, dict[int, Memory], Path], length: float) -> None:
    path = next(saved[2].glob("*.seg"))
    whole = path.read_bytes()
    path.write_bytes(whole[: length if isinstance(length, int) else int(length * len(whole))])
    assert load(saved[2]) is None
    path.write_bytes(whole)


@same_directory
@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: segment_file.MAGIC + tail))
def test_any_other_content_is_noticed(saved: tuple[Segment, dict[int, Memory], Path], content: bytes) -> None:
    path = next(saved[2].glob("*.seg"))
    whole = path.read_bytes()
    path.write_bytes(content)
    assert load(saved[2]) is None
    path.write_bytes(whole)


def test_another_model_dimension_or_namespace_is_not_loaded(saved: tuple[Segment, dict[int, Memory], Path]) -> None:
    directory = saved[2]
    other = Namespace("acme", Scope.USER, "bob")
    assert segment_file.load(directory, NS, "model-b", DIM) is None
    assert segment_file.load(directory, NS, MODEL, DIM + 1) is None
    assert segment_file.load(directory, other, MODEL, DIM) is None
    path = next(directory.glob("*.seg"))
    segment_file.save(directory / "other", Segment(other, MODEL, DIM))
    next((directory / "other").glob("*.seg")).write_bytes(path.read_bytes())  # a file under a wrong name
    assert segment_file.load(directory / "other", other, MODEL, DIM) is None


def test_a_directory_in_the_files_place_and_no_file_at_all(saved: tuple[Segment, dict[int, Memory], Path]) -> None:
    path = next(saved[2].glob("*.seg"))
    path.unlink()
    assert load(saved[2]) is None
    path.mkdir()
    assert load(saved[2]) is None
    assert load(saved[2] / "nowhere") is None


def test_the_graph_comes_back_without_what_was_closed(with_graph: tuple[Segment, Path]) -> None:
    segment, directory = with_graph
    loaded = load(directory)
    assert loaded is not None
    assert loaded.vectors.graph_rows == segment.rows
    assert answers(loaded) == answers(segment)
    closed = set(range(0, 400, 2))
    for number in range(2, 40, 2):
        rows, _ = loaded.vectors.nearest(unit(number), 64)
        assert not closed & set(rows.tolist())
