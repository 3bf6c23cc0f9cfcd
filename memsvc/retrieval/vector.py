"""Vectors of one segment: a contiguous float32 block, one-byte codes of it, and an HNSW graph beside a large one.

Purpose: nearest rows by inner product of L2-normalised vectors. The block is the truth of the segment and the oracle.
The codes are a quarter of its size: up to GRAPH_FROM_ROWS a scan of them that the block then rescores is faster than
the graph, whose jumps miss the caches, and misses next to nothing. The graph is filled behind the writers by
`index_more`, so that a write never pays for it: rows not yet in it are scanned.

Threading: one writer appends (under the segment's lock), any number of readers search. hnswlib allows parallel
searches and parallel inserts but not both at once, so a `SharedLock` separates them; inserts come in small chunks to
keep a search's wait short.

Rejected: adding to the graph inside the write (0.3 ms each at 10k rows, half of a write's budget); one lock for all
(searches release the GIL and should use both cores); ids as labels (rows are dense and need no map).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import hnswlib
import numpy as np
from numpy.typing import NDArray

from memsvc.locks import SharedLock
from memsvc.retrieval import kernels

SCAN_CODES_FROM_ROWS = 4096  # below, the exact scan is fast enough
GRAPH_FROM_ROWS = 12_288  # the scan of codes is faster below; measured by bench.latency --crossover
GRAPH_M = 24  # links per node; recall@10 against exact >= 0.98 at 100k rows with EF_SEARCH (bench.latency)
EF_CONSTRUCTION = 160
EF_SEARCH = 80  # at GRAPH_FROM_ROWS; each doubling of the rows adds EF_PER_DOUBLING (bench.latency holds 0.98)
EF_PER_DOUBLING = 20
INSERT_CHUNK_ROWS = 2  # about a millisecond: what a search may have to wait


def ef_search(rows: int) -> int:
    """Candidates that a search of a graph of `rows` keeps: the recall of a fixed number falls as the graph grows."""
    return EF_SEARCH + round(EF_PER_DOUBLING * math.log2(max(rows, GRAPH_FROM_ROWS) / GRAPH_FROM_ROWS))


class VectorIndex:
    """Block and graph. Row numbers are the segment's; a row without a vector holds zeros and is never in the graph."""

    def __init__(self, dim: int, capacity: int = 64) -> None:
        self.dim = dim
        self.block: NDArray[np.float32] = np.zeros((max(capacity, 1), dim), np.float32)
        self.codes: NDArray[np.int8] = np.zeros(self.block.shape, np.int8)
        self.code_scales: NDArray[np.float32] = np.zeros(len(self.block), np.float32)
        self.graph_rows = 0  # rows below this are in the graph if they should be
        self._graph: hnswlib.Index | None = None
        self._lock = SharedLock()

    @property
    def search_waits(self) -> int:
        """How often a search had to wait for an insert."""
        return self._lock.waits

    @property
    def has_graph(self) -> bool:
        """Whether searches use the graph."""
        return self._graph is not None

    def reserve(self, rows: int) -> None:
        """Makes room for `rows`; readers keep the block that they captured."""
        if rows > self.block.shape[0]:
            capacity = max(rows, self.block.shape[0] * 3 // 2)
            for name in ("block", "codes", "code_scales"):
                old = getattr(self, name)
                grown = np.zeros((capacity, *old.shape[1:]), old.dtype)  # pages that nobody writes cost nothing
                grown[: len(old)] = old
                setattr(self, name, grown)

    def put(self, start: int, vectors: NDArray[np.float32]) -> None:
        """Stores (n, dim) vectors from row `start` on, and their codes."""
        rows = slice(start, start + len(vectors))
        self.block[rows] = vectors
        kernels.encode(self.block[rows], self.codes[rows], self.code_scales[rows])

    def index_more(self, row_count: int, wanted: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> bool:
        """Adds one chunk of rows below `row_count` to the graph; returns whether more are left.

        `wanted(rows)` tells which of the rows belong in it (they have a vector and can be recalled); it is called with
        searches held off, so a row that is closed later is removed by `remove` and never slips in.
        """
        if self._graph is None:
            if row_count < GRAPH_FROM_ROWS:
                return False
            self._graph = self._new_graph(row_count)
        end = min(row_count, self.graph_rows + INSERT_CHUNK_ROWS)
        rows = np.arange(self.graph_rows, end, dtype=np.int64)
        with self._lock.exclusive:
            if end > self._graph.get_max_elements():
                self._graph.resize_index(max(end, self._graph.get_max_elements() * 3 // 2))
            keep = rows[wanted(rows)]
            if keep.size:
                self._graph.add_items(self.block[keep], keep, num_threads=1)
            self.graph_rows = end
        return end < row_count

    def _new_graph(self, rows: int) -> hnswlib.Index:
        graph = hnswlib.Index(space="ip", dim=self.dim)
        graph.init_index(max_elements=rows * 5 // 4, M=GRAPH_M, ef_construction=EF_CONSTRUCTION, random_seed=7)
        return graph

    def remove(self, row: int) -> None:
        """Takes a closed row out of the graph's answers, if it is in there."""
        if self._graph is None:
            return
        with self._lock.exclusive:
            if row < self.graph_rows:
                self._mark_deleted(row)

    def _mark_deleted(self, row: int) -> None:
        assert self._graph is not None
        try:
            self._graph.mark_deleted(row)
        except RuntimeError as error:
            if "not found" not in str(error) and "already deleted" not in str(error):
                raise

    def nearest(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], int]:
        """Rows of about the k best in the graph (unordered use; the kernel rescores), and the row from which on an
        exact scan must go: (n,) int64, scan_from. Without a graph: no rows and 0.
        """
        graph = self._graph
        if graph is None:
            return _NO_ROWS, 0
        with self._lock.shared:
            scan_from = self.graph_rows
            available = graph.get_current_count()
            if available == 0:
                return _NO_ROWS, scan_from
            graph.set_ef(max(ef_search(scan_from), k))
            try:
                labels, _ = graph.knn_query(query, k=min(k, available), num_threads=1)
            except RuntimeError as error:
                # hnswlib raises when fewer than k live rows can be reached: the caller scans exactly instead
                if "contiguous" not in str(error):
                    raise
                return _NO_ROWS, 0
        return labels[0].astype(np.int64), scan_from

    def save_graph(self, path: Path) -> int:
        """Writes the graph to a file; returns how many rows it covers, 0 if there is no graph (no file then)."""
        graph = self._graph
        if graph is None:
            return 0
        with self._lock.shared:
            graph.save_index(str(path))
            return self.graph_rows

    def load_graph(self, path: Path, graph_rows: int, capacity: int) -> None:
        """Loads a graph written by `save_graph`. Raises RuntimeError if hnswlib can't read it."""
        graph = hnswlib.Index(space="ip", dim=self.dim)
        graph.load_index(str(path), max_elements=max(capacity, graph_rows))
        self._graph = graph
        self.graph_rows = graph_rows

    def size_bytes(self) -> int:
        """Memory of block and graph, about."""
        graph = 0
        if self._graph is not None:
            graph = self._graph.get_max_elements() * (self.dim * 4 + GRAPH_M * 8 + 24)
        return int(self.block.nbytes + self.codes.nbytes + self.code_scales.nbytes) + graph


_NO_ROWS: NDArray[np.int64] = np.empty(0, np.int64)
