"""Warming: compiles every kernel (or loads it from numba's cache) before the first recall.

Purpose: the first recall after `ready` must not pay seconds of compilation.

Threading: called once at start.

Rejected: explicit signatures on the kernels (compiled at import even by tools that never recall).
"""

from __future__ import annotations

import numpy as np

from memsvc.model import Filter, Layer, Memory, MemoryType, Namespace, Scope, Source
from memsvc.retrieval.lexical import analyze
from memsvc.retrieval.searcher import SearchQuery, nearest_codes, search
from memsvc.retrieval.segment import Segment, View
from memsvc.retrieval.vector import GRAPH_FROM_ROWS, VectorIndex


def warm_kernels(dim: int) -> None:
    """Runs a recall with and without vector and filter over a throw-away segment of two memories."""
    namespace = Namespace("warm", Scope.USER, "warm")
    segment = Segment(namespace, "warm", dim)
    vector = np.zeros(dim, np.float32)
    vector[0] = 1.0
    vector.flags.writeable = False  # as the embedder's: to numba it is another type
    for sequence in (1, 2):
        segment.apply(
            Memory(
                memory_id=f"mem_00000000-0000-7000-8000-00000000000{sequence}",
                version=1,
                sequence=sequence,
                namespace=namespace,
                layer=Layer.SEMANTIC,
                type=MemoryType.FACT,
                content=f"warm memory ID-{sequence}",
                source=Source(session_id="warm"),
            ),
            vector,
            None,
        )
    for query_vector in (vector, None):
        for condition in (Filter(), Filter(layers=(Layer.SEMANTIC,))):
            search([(segment, None)], SearchQuery(analyze("warm ID-1"), query_vector, 1, 0, condition=condition))
    view = View(segment, ())
    query = SearchQuery(analyze(""), vector, 1, 0)
    graph = VectorIndex(dim, GRAPH_FROM_ROWS)
    graph.put(0, np.stack([vector, vector]))
    while graph.index_more(GRAPH_FROM_ROWS, lambda rows: rows < 2):
        pass
    for mask in (np.empty(0, np.uint8), np.ones(view.row_count, np.uint8)):
        nearest_codes(view, query, mask, vector, 1)
        graph.nearest(vector, 1, mask)
