"""The arrays of a segment: columns, postings, lists of rows, and the work arrays of a recall.

Purpose: they grow without moving what a reader captured: a larger copy takes the place of the old array, which stays
as it is for whoever holds it.

Threading: the owner's lock; see `segment`.

Rejected: structured arrays (a kernel then strides over fields that it does not read), one array a term (a hundred
thousand small objects to load and to save).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsvc.retrieval import kernels
from memsvc.retrieval.lexical import Analysis

NO_ROW = -1
CANDIDATE_LIMIT = 4096  # 3 lists of at most 300, each with up to 4 neighbours, fit

COLUMNS: dict[str, Any] = {
    "end_seq": np.int64,
    "create_us": np.int64,
    "update_us": np.int64,
    "occur_us": np.int64,
    "expire_us": np.int64,
    "version": np.int32,
    "layer": np.uint8,
    "type": np.uint8,
    "status": np.uint8,
    "has_vector": np.uint8,
    "importance": np.float64,
    "confidence": np.float64,
    "doc_length": np.float32,
    "speaker": np.int32,
    "session": np.int32,
    "is_question": np.uint8,
    "prev_row": np.int32,
    "next_row": np.int32,
    "rank_factor": np.float32,
}


class Columns:
    """Parallel arrays, one entry a row."""

    end_seq: NDArray[np.int64]
    create_us: NDArray[np.int64]
    update_us: NDArray[np.int64]
    occur_us: NDArray[np.int64]
    expire_us: NDArray[np.int64]
    version: NDArray[np.int32]
    layer: NDArray[np.uint8]
    type: NDArray[np.uint8]
    status: NDArray[np.uint8]
    has_vector: NDArray[np.uint8]
    importance: NDArray[np.float64]
    confidence: NDArray[np.float64]
    doc_length: NDArray[np.float32]
    speaker: NDArray[np.int32]
    session: NDArray[np.int32]
    is_question: NDArray[np.uint8]
    prev_row: NDArray[np.int32]
    next_row: NDArray[np.int32]
    rank_factor: NDArray[np.float32]  # what forgetting leaves of a score, 1 to 0
    ids: NDArray[np.uint8]  # (rows, 16)

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        for name, dtype in COLUMNS.items():
            setattr(self, name, np.zeros(capacity, dtype))
        self.ids = np.zeros((capacity, 16), np.uint8)

    def reserved(self, rows: int) -> Columns:
        """Itself if `rows` fit, else a larger copy: whoever captured the old one keeps a consistent object."""
        if rows <= self.capacity:
            return self
        grown = Columns(max(rows, self.capacity * 3 // 2))
        for name in (*COLUMNS, "ids"):
            getattr(grown, name)[: self.capacity] = getattr(self, name)
        return grown


class Postings:
    """Inverted lists of (row, term frequency) in two pooled arrays; a term's list is a block of the pool."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}
        self.starts = np.zeros(256, np.int64)
        self.lengths = np.zeros(256, np.int64)
        self.capacities = np.zeros(256, np.int64)
        self.frequency = np.zeros(256, np.int64)  # recallable documents that hold the term
        self.rows = np.zeros(1024, np.int32)
        self.tfs = np.zeros(1024, np.uint8)
        self.free = 0

    def term_ids(self, counts: dict[str, int]) -> NDArray[np.int64]:
        """Ids of the terms, making new ones."""
        vocabulary = self.vocabulary
        ids = np.array([vocabulary.setdefault(term, len(vocabulary)) for term in counts], np.int64)
        while len(vocabulary) > self.starts.shape[0]:
            for name in ("starts", "lengths", "capacities", "frequency"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        return ids

    def add(self, row: int, analysis: Analysis) -> NDArray[np.int64]:
        """Appends a document; returns its term ids."""
        terms = self.term_ids(analysis.counts)
        tfs = np.minimum(np.fromiter(analysis.counts.values(), np.int64, len(terms)), 255).astype(np.uint8)
        while True:
            free = kernels.append_postings(
                terms, tfs, row, self.starts, self.lengths, self.capacities, self.rows, self.tfs, self.free
            )
            if free >= 0:
                self.free = free
                return terms
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
            self.tfs = np.concatenate([self.tfs, np.zeros_like(self.tfs)])


class RowList:
    """A growable int32 list of rows in ascending order."""

    __slots__ = ("count", "rows")

    def __init__(self, rows: NDArray[np.int32] | None = None) -> None:
        self.rows: NDArray[np.int32] = np.zeros(2, np.int32) if rows is None else rows
        self.count = 0 if rows is None else rows.shape[0]

    def add(self, row: int) -> None:
        """Appends a row."""
        if self.count == self.rows.shape[0]:
            self.rows = np.concatenate([self.rows, np.zeros(max(2, self.count), np.int32)])
        self.rows[self.count] = row
        self.count += 1

    def below(self, row_count: int) -> NDArray[np.int32]:
        """The rows below `row_count`."""
        rows = self.rows[: self.count]
        return rows[: np.searchsorted(rows, row_count)]


class Scratch:
    """Work arrays of one recall in one segment: acc, exact, touched, position by row, and the candidates.

    `touched` has one entry more than rows: see `kernels.score_postings`.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.acc = np.zeros(capacity, np.float32)
        self.exact = np.zeros(capacity, np.uint8)
        self.touched = np.zeros(capacity + 1, np.int32)
        self.position = np.full(capacity, NO_ROW, np.int32)
        self.rows = np.zeros(CANDIDATE_LIMIT, np.int32)
        self.paths = np.zeros(CANDIDATE_LIMIT, np.int32)
        self.raw = np.zeros((CANDIDATE_LIMIT, kernels.RAW_COLUMNS), np.float32)
