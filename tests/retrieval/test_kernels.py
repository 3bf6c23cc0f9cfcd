"""Kernels against slow Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.model import NEVER_US, Status
from memsvc.retrieval import graph_kernels, kernels
from memsvc.retrieval.columns import Postings
from memsvc.retrieval.lexical import Analysis
from memsvc.retrieval.vector import VectorIndex
from memsvc.retrieval.warm import warm_kernels


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), max_size=60), st.integers(1, 10))
def test_the_heap_keeps_the_best(scores, capacity):
    heap_scores, heap_rows, size = np.empty(capacity, np.float64), np.empty(capacity, np.int32), 0
    for row, score in enumerate(scores):
        size = kernels.heap_push(heap_scores, heap_rows, size, score, row)
    wanted = sorted(((score, row) for row, score in enumerate(scores)), reverse=True)[:capacity]
    assert sorted(zip(heap_scores[:size].tolist(), heap_rows[:size].tolist(), strict=True), reverse=True) == wanted


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 400), max_size=6), max_size=40))
def test_postings_hold_every_document(documents):
    postings = Postings()
    for row, counts in enumerate(documents):
        postings.add(row, Analysis(counts, sum(counts.values())))
    for term, number in postings.vocabulary.items():
        start, length = postings.starts[number], postings.lengths[number]
        rows = postings.rows[start : start + length].tolist()
        tfs = postings.tfs[start : start + length].tolist()
        wanted = [(row, min(c[term], 255)) for row, c in enumerate(documents) if term in c]
        assert list(zip(rows, tfs, strict=True)) == wanted


def test_decay():
    day = 86_400_000_000
    assert kernels.decay(0.0, 1.0, False) == 1.0
    assert kernels.decay(-5.0, 1.0, False) == 1.0
    assert kernels.decay(float(day), 0.0, False) == 1.0
    assert kernels.decay(2.0 * day, 0.5, False) == pytest.approx(1 / 2)
    assert kernels.decay(2.0 * day, 0.5, True) == pytest.approx(1 / 2)
    assert kernels.decay(6.0 * day, 0.5, True) == pytest.approx(1 / 8)


@pytest.mark.parametrize("status", list(Status))
def test_visibility(status):
    end, statuses, sessions = np.array([5]), np.array([status], np.uint8), np.array([7], np.int32)
    mask = 1 << status
    never, past = np.array([NEVER_US]), np.array([10])

    def seen(row_count, allowed, expire, own_session=-1):
        return kernels.visible(0, row_count, 100, allowed, own_session, end, statuses, expire, sessions)

    assert seen(4, mask, never)
    assert not seen(5, mask, never)
    assert not seen(4, 0, never)
    assert not seen(4, 0, never, own_session=6)
    assert seen(4, 0, never, own_session=7) == (status == Status.STAGED)
    expired = status in (Status.ACTIVE, Status.CONTESTED, Status.STAGED)
    assert seen(4, mask, past) != expired
    assert not seen(4, 0, past, own_session=7)
    assert seen(4, 1 << Status.EXPIRED, past) == (expired or status == Status.EXPIRED)


def test_session_scores_are_means_of_the_best():
    rng = np.random.default_rng(2)
    base = rng.uniform(size=(50, 2))
    rows = rng.permutation(60)[:50].astype(np.int32)
    session = rng.integers(-1, 6, 60).astype(np.int32)
    scores = kernels.session_scores(50, rows, session, base)
    sums = base.sum(axis=1)
    for i in range(50):
        own = session[rows[i]]
        same = sorted((sums[j] for j in range(50) if session[rows[j]] == own), reverse=True)[: kernels.SESSION_BEST]
        assert scores[i] == pytest.approx(np.mean(same) if own >= 0 else 0.0)


def test_base_scores_are_normalised_and_weighted():
    scale = np.zeros(kernels.SCALE_SIZE)
    scale[[kernels.S_COS_LOW, kernels.S_COS_HIGH, kernels.S_BM25_HIGH]] = 0.5, 0.9, 4.0
    scale[[kernels.S_VECTOR, kernels.S_LEXICAL, kernels.S_VECTOR_POWER, kernels.S_LEXICAL_POWER]] = 2.0, 3.0, 2.0, 1.0
    raw = np.array([[0.9, 4.0, 0], [0.7, 2.0, 0], [0.4, 0.0, 1], [kernels.NO_COSINE, 1.0, 0]], np.float32)
    wanted = [[2.0, 3.0], [0.5, 1.5], [0.0, 0.0], [0.0, 0.75]]
    assert kernels.base_scores(4, raw, scale) == pytest.approx(np.array(wanted), rel=1e-5)


@pytest.mark.parametrize("filtered", [False, True])
def test_a_scan_of_codes_finds_what_an_exact_scan_finds(filtered):
    rng = np.random.default_rng(4)
    rows, dim, limit = 600, 96, 40
    vectors = rng.normal(size=(rows, dim)).astype(np.float32)
    vectors[:10] = 0.0  # rows without a vector
    index = VectorIndex(dim)
    index.reserve(rows)
    index.put(0, vectors)
    end = np.where(rng.uniform(size=rows) < 0.2, 5, 10**6)
    status = np.full(rows, Status.ACTIVE, np.uint8)
    status[50:80] = Status.FORGOTTEN
    mask = (rng.uniform(size=rows) < 0.7).astype(np.uint8) if filtered else np.empty(0, np.uint8)
    never, has_vector = np.full(rows, NEVER_US), (np.arange(rows) >= 10).astype(np.uint8)
    sessions = np.full(rows, -1, np.int32)
    alive = (end > rows) & (status == Status.ACTIVE) & (has_vector != 0) & (mask != 0 if filtered else True)
    for _ in range(20):
        query = rng.normal(size=dim).astype(np.float32)
        found = kernels.scan_codes(
            *(rows, 0, 1 << Status.ACTIVE, -1, mask, end, status, never, sessions, has_vector),
            *(index.codes, index.code_scales, query, limit),
        )
        best = [row for row in np.argsort(-(vectors @ query)).tolist() if alive[row]]
        assert len(found) == limit
        assert alive[found].all()
        assert set(best[: limit // 2]) <= set(found.tolist())


def test_warming_compiles_everything():
    warm_kernels(16)
    warmed = (kernels.gather, kernels.fuse, kernels.scan_codes, graph_kernels.search, graph_kernels.insert)
    kinds = [len(kernel.signatures) for kernel in warmed]
    warm_kernels(16)
    assert [len(kernel.signatures) for kernel in warmed] == kinds
    assert min(kinds) > 0
