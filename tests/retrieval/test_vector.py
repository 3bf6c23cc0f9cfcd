"""The graph against an exact scan, before and after rows are removed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from memsvc.retrieval.vector import GRAPH_FROM_ROWS, VectorIndex

DIM = 24
ROWS = GRAPH_FROM_ROWS + 500


def clustered(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(40, DIM))
    vectors = centres[rng.integers(0, 40, count)] + 0.4 * rng.normal(size=(count, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def built() -> tuple[VectorIndex, np.ndarray]:
    vectors = clustered(ROWS, 1)
    index = VectorIndex(DIM)
    index.reserve(ROWS)
    index.block[:ROWS] = vectors
    while index.index_more(ROWS, lambda rows: np.ones(len(rows), np.bool_)):
        pass
    return index, vectors


def recall_at_10(index: VectorIndex, vectors: np.ndarray, alive: np.ndarray) -> float:
    queries, hits = clustered(40, 2), 0
    for query in queries:
        exact = set(alive[np.argsort(-(vectors[alive] @ query))[:10]].tolist())
        rows, scan_from = index.nearest(query, 64)
        assert scan_from == ROWS
        best = rows[np.argsort(-(vectors[rows] @ query))[:10]]
        hits += len(exact & set(best.tolist()))
    return hits / 400


def test_recall_holds_when_half_is_removed():
    index, vectors = built()
    everything = np.arange(ROWS)
    assert recall_at_10(index, vectors, everything) >= 0.98
    dead = np.random.default_rng(3).permutation(ROWS)[: ROWS // 2]
    for row in dead.tolist():
        index.remove(row)
    alive = np.setdiff1d(everything, dead)
    assert recall_at_10(index, vectors, alive) >= 0.98
    rows, _ = index.nearest(vectors[dead[0]], 64)
    assert not set(rows.tolist()) & set(dead.tolist())
    index.remove(int(dead[0]))  # removing twice is no fault


def test_a_small_index_has_no_graph():
    index = VectorIndex(DIM)
    assert not index.index_more(GRAPH_FROM_ROWS - 1, lambda rows: np.ones(len(rows), np.bool_))
    rows, scan_from = index.nearest(clustered(1, 1)[0], 10)
    assert (rows.size, scan_from) == (0, 0)


def test_more_than_there_is_means_an_exact_scan():
    index, vectors = built()
    for row in range(ROWS - 5):
        index.remove(row)
    rows, scan_from = index.nearest(vectors[0], 64)
    assert scan_from == 0 or set(rows.tolist()) <= set(range(ROWS - 5, ROWS))


def test_a_saved_graph_answers_the_same(tmp_path: Path):
    index, vectors = built()
    assert index.save_graph(tmp_path / "g") == ROWS
    other = VectorIndex(DIM, ROWS)
    other.block[:ROWS] = vectors
    other.load_graph(tmp_path / "g", ROWS, ROWS + 10)
    query = clustered(1, 9)[0]
    assert set(index.nearest(query, 32)[0].tolist()) == set(other.nearest(query, 32)[0].tolist())
