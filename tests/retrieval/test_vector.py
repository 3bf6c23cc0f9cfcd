"""The graph against an exact scan: rows removed, masked, come topic by topic, and searched while it grows."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from memsvc.retrieval.graph_kernels import NO_ROW
from memsvc.retrieval.vector import GRAPH_FROM_ROWS, GRAPH_M, INSERT_CHUNK_ROWS, VectorIndex

DIM = 24
ROWS = GRAPH_FROM_ROWS + 500


def everything(rows: np.ndarray) -> np.ndarray:
    return np.ones(len(rows), np.bool_)


def clustered(count: int, seed: int, centres: int = 40, spread: float = 0.4, dim: int = DIM) -> np.ndarray:
    """Unit vectors around some centres, in the order of their centres."""
    rng = np.random.default_rng(seed)
    middle = np.random.default_rng(0).normal(size=(centres, dim))
    vectors = middle[np.sort(rng.integers(0, centres, count))] + spread * rng.normal(size=(count, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def filled(vectors: np.ndarray) -> VectorIndex:
    index = VectorIndex(vectors.shape[1])
    index.reserve(len(vectors))
    index.put(0, vectors)
    return index


def indexed(index: VectorIndex, rows: int) -> VectorIndex:
    while index.index_more(rows, everything):
        pass
    return index


@pytest.fixture(scope="module")
def built() -> tuple[VectorIndex, np.ndarray]:
    vectors = np.random.default_rng(4).permutation(clustered(ROWS, 1))
    return indexed(filled(vectors), ROWS), vectors


def recall_at_10(
    index: VectorIndex, vectors: np.ndarray, alive: np.ndarray, queries: np.ndarray, mask: np.ndarray | None = None
) -> float:
    hits = 0
    for query in queries:
        exact = set(alive[np.argsort(-(vectors[alive] @ query))[:10]].tolist())
        rows, scan_from = index.nearest(query, 64) if mask is None else index.nearest(query, 64, mask)
        assert scan_from == len(vectors)
        assert set(rows.tolist()) <= set(alive.tolist())
        best = rows[np.argsort(-(vectors[rows] @ query))[:10]]
        hits += len(exact & set(best.tolist()))
    return hits / (10 * len(queries))


def test_recall_holds_with_a_mask_and_when_half_is_closed(built):
    index, vectors = built
    queries, rows = clustered(40, 2), np.arange(ROWS)
    assert recall_at_10(index, vectors, rows, queries) >= 0.98
    mask = (np.random.default_rng(3).uniform(size=ROWS) < 0.2).astype(np.uint8)
    assert recall_at_10(index, vectors, np.flatnonzero(mask), queries, mask) >= 0.98
    short = np.ones(ROWS // 2, np.uint8)  # of a reader that began before the rest was written
    assert recall_at_10(index, vectors, rows[: ROWS // 2], queries, short) >= 0.98
    other = filled(vectors)
    other.load_graph(index.links, index.first_row)
    dead = np.random.default_rng(3).permutation(ROWS)[: ROWS // 2]
    for row in dead.tolist():
        other.close(row)
    assert recall_at_10(other, vectors, np.setdiff1d(rows, dead), queries) >= 0.98


def test_topics_that_came_one_after_another_are_all_found():
    """Links into a new topic are crowded out of the old ones: hnswlib finds eight of ten here."""
    vectors = clustered(ROWS, 1, centres=120, spread=0.1, dim=64)
    index = indexed(filled(vectors), ROWS)
    queries = clustered(120, 2, centres=120, spread=0.1, dim=64)
    assert recall_at_10(index, vectors, np.arange(ROWS), queries) >= 0.97


def test_a_small_index_has_no_graph():
    index = VectorIndex(DIM)
    assert not index.index_more(GRAPH_FROM_ROWS - 1, everything)
    rows, scan_from = index.nearest(clustered(1, 1)[0], 10)
    assert (rows.size, scan_from) == (0, 0)


def test_rows_that_do_not_belong_in_the_graph_stay_out():
    vectors = clustered(GRAPH_FROM_ROWS, 1)
    index = filled(vectors)
    while index.index_more(GRAPH_FROM_ROWS, lambda rows: rows % 500 == 250):
        pass
    found = {row for query in vectors[::1000] for row in index.nearest(query, 64)[0].tolist()}
    assert found == set(range(250, GRAPH_FROM_ROWS, 500))


def test_nothing_but_closed_rows_is_no_answer(built):
    index, vectors = built
    other = filled(vectors)
    other.load_graph(index.links, index.first_row)
    for row in range(ROWS - 5):
        other.close(row)
    for query in vectors[:20]:
        assert set(other.nearest(query, 64)[0].tolist()) <= set(range(ROWS - 5, ROWS))


def test_links_lead_to_other_rows_once_each(built):
    links = built[0].links[:ROWS]
    assert links.shape == (ROWS, 2 * GRAPH_M)
    assert links.max() < ROWS
    for row in range(0, ROWS, 97):
        own = links[row].tolist()
        used = [other for other in own if other != NO_ROW]
        assert own == used + [NO_ROW] * (len(own) - len(used))
        assert len(set(used)) == len(used) > 0
        assert row not in used


def test_a_graph_that_was_saved_answers_the_same_and_grows(built):
    index, vectors = built
    other = filled(vectors)
    other.load_graph(index.links[: ROWS - 300].copy(), index.first_row)
    query = clustered(1, 9)[0]
    assert other.nearest(query, 32)[1] == ROWS - 300
    indexed(other, ROWS)
    assert recall_at_10(other, vectors, np.arange(ROWS), clustered(20, 2)) >= 0.98


def test_searches_go_on_while_the_graph_grows(built):
    vectors = built[1]
    index = filled(vectors)
    failures: list[str] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            for query in vectors[::997]:
                rows, _ = index.nearest(query, 64)
                begun = index.graph_rows + INSERT_CHUNK_ROWS
                if not set(rows.tolist()) <= set(range(begun)) or len(set(rows.tolist())) < rows.size:
                    failures.append(f"{rows} of {begun}")

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        while index.index_more(ROWS, everything):
            if index.graph_rows % 1024 == 0:
                index.reserve(len(index.block) + 1)  # the arrays move
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert recall_at_10(index, vectors, np.arange(ROWS), clustered(20, 2)) >= 0.98
