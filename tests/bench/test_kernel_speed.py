"""pytest-benchmark figures of the kernels (`pytest tests/bench -m '' --benchmark-only`); asserts results, not time."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsvc.retrieval import kernels


def test_dot(benchmark: Any) -> None:
    a = np.random.default_rng(1).normal(size=384).astype(np.float32)
    assert np.isclose(benchmark(kernels.dot, a, a), float(a @ a), rtol=1e-4)


def test_score_postings(benchmark: Any) -> None:
    rows = 10_000
    post_rows = np.arange(rows, dtype=np.int32)
    post_tf = np.ones(rows, np.uint8)
    length = np.full(rows, 10, np.float32)
    acc, exact, touched = np.zeros(rows, np.float32), np.zeros(rows, np.uint8), np.zeros(rows + 1, np.int32)

    def score() -> int:
        acc[:] = 0
        starts, lengths = np.array([0]), np.array([rows])
        weights = np.ones(1, np.float32)
        return kernels.score_postings(
            rows, starts, lengths, weights, 1, post_rows, post_tf, length, 10.0, acc, exact, touched
        )

    assert benchmark(score) == rows
    assert np.allclose(acc, acc[0])
