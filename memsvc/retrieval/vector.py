"""Vectors of one segment: a contiguous float32 block, one-byte codes of it, and a graph over the codes of a large one.

Purpose: nearest rows by inner product of L2-normalised vectors. The block is the truth of the segment and the oracle.
The codes are a quarter of its size: up to GRAPH_FROM_ROWS a scan of them that the block then rescores is faster than
the graph, whose jumps miss the caches, and misses next to nothing. The graph is filled behind the writers by
`index_more`, so that a write never pays for it: rows not yet in it are scanned.

Threading: one writer appends and closes rows (under the segment's apply lock), one thread calls `index_more` and
`save_graph`, any number of readers search; nobody waits. A reader takes the links before the codes: the links never
have room for more rows than the codes have.

Rejected: adding to the graph inside the write (0.3 ms each at 10k rows, half of a write's budget); ids as labels (rows
are dense and need no map); for others see `graph_kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from memsvc.retrieval import graph_kernels, kernels

SCAN_CODES_FROM_ROWS = 4096  # below, the exact scan is fast enough
GRAPH_FROM_ROWS = 6_144  # the scan of codes is faster below; measured by bench.latency --crossover
GRAPH_M = 24  # links per node; recall@10 against exact >= 0.98 at 100k rows with EF_SEARCH (bench.latency)
EF_CONSTRUCTION = 160
EF_SEARCH = 60  # at GRAPH_FROM_ROWS; each doubling of the rows adds EF_PER_DOUBLING (bench.latency holds 0.98)
EF_PER_DOUBLING = 20
INSERT_CHUNK_ROWS = 32  # about ten milliseconds: how often a stop is looked for

NO_ROW = graph_kernels.NO_ROW
_NO_ROWS: NDArray[np.int64] = np.empty(0, np.int64)
_NO_LINKS: NDArray[np.int32] = np.empty((0, 2 * GRAPH_M), np.int32)
_EVERYTHING: NDArray[np.uint8] = np.empty(0, np.uint8)


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
        self.closed: NDArray[np.uint8] = np.zeros(len(self.block), np.uint8)
        self.links: NDArray[np.int32] = _NO_LINKS
        self.graph_rows = 0  # rows below this are in the graph if they should be
        self.first_row = NO_ROW  # the row that came first into the graph

    @property
    def has_graph(self) -> bool:
        """Whether searches use the graph."""
        return self.first_row != NO_ROW

    def reserve(self, rows: int) -> None:
        """Makes room for `rows`; readers keep the block that they captured."""
        if rows > self.block.shape[0]:
            capacity = max(rows, self.block.shape[0] * 3 // 2)
            for name in ("block", "codes", "code_scales", "closed"):
                old = getattr(self, name)
                grown = np.zeros((capacity, *old.shape[1:]), old.dtype)  # pages that nobody writes cost nothing
                grown[: len(old)] = old
                setattr(self, name, grown)

    def put(self, start: int, vectors: NDArray[np.float32]) -> None:
        """Stores (n, dim) vectors from row `start` on, and their codes."""
        rows = slice(start, start + len(vectors))
        self.block[rows] = vectors
        kernels.encode(self.block[rows], self.codes[rows], self.code_scales[rows])

    def index_more(
        self,
        row_count: int,
        wanted: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
        from_rows: int = GRAPH_FROM_ROWS,
    ) -> bool:
        """Adds one chunk of rows below `row_count` to the graph; returns whether more are left. With fewer rows than
        `from_rows` there is none.

        `wanted(rows)` tells which of the rows belong in it (they have a vector and can be recalled). One that is closed
        meanwhile goes in as well and is no answer.
        """
        if not self.has_graph and row_count < from_rows:
            return False
        end = min(row_count, self.graph_rows + INSERT_CHUNK_ROWS)
        self._reserve_links()
        rows = np.arange(self.graph_rows, end, dtype=np.int64)
        for row in rows[wanted(rows)].tolist():
            if self.has_graph:
                graph_kernels.insert(
                    row,
                    self.block[row],
                    EF_CONSTRUCTION,
                    self.first_row,
                    row,
                    self.codes,
                    self.code_scales,
                    self.links,
                )
            else:
                self.first_row = row
        self.graph_rows = end
        return end < row_count

    def _reserve_links(self) -> None:
        """Room for as many rows as the block has; readers keep the links that they captured."""
        rows = self.block.shape[0]
        if rows > self.links.shape[0]:
            grown = np.full((rows, 2 * GRAPH_M), graph_kernels.NO_ROW, np.int32)
            grown[: self.links.shape[0]] = self.links
            self.links = grown

    def close(self, row: int) -> None:
        """A row that was replaced leads searches on and is no answer of theirs."""
        self.closed[row] = 1

    def nearest(
        self, query: NDArray[np.float32], k: int, mask: NDArray[np.uint8] = _EVERYTHING
    ) -> tuple[NDArray[np.int64], int]:
        """Rows of the graph near to a (dim,) query, unordered, at least `k` where there are as many: (n,) int64; and
        the row from which on a scan must go. Rows that fail the mask (uint8 a row; length 0 stands for "all") are left
        out. Without a graph: no rows and 0.

        More than k are found since codes err: the caller scores them with the block.
        """
        if not self.has_graph:
            return _NO_ROWS, 0
        scan_from, links = self.graph_rows, self.links
        width = max(ef_search(scan_from), k)
        rows: NDArray[np.int64] = graph_kernels.search(
            query, width, self.first_row, scan_from, self.closed, mask, self.codes, self.code_scales, links
        )
        return rows, scan_from

    def load_graph(self, links: NDArray[np.int32], first_row: int) -> None:
        """Takes over (rows, 2 GRAPH_M) links that were saved."""
        self._reserve_links()
        self.links[: len(links)] = links
        self.graph_rows, self.first_row = len(links), first_row

    def size_bytes(self) -> int:
        """Memory of the arrays."""
        arrays = (self.block, self.codes, self.code_scales, self.closed, self.links)
        return sum(array.nbytes for array in arrays)
