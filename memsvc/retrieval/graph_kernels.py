"""The kernels of the vector graph: search and insertion over one-byte codes; numba, nogil, arrays only.

Purpose: a navigable graph as the lowest layer of HNSW, whose searches start from anchors: rows evenly spread over the
graph, the nearest of which are found by a scan. A search visits thousands of vectors at random places and what it
waits for is memory: a code has a quarter of the bytes of a float32 vector, and its lines are fetched ahead. Codes err
by less than a hundredth of a cosine's range; the caller scores what is found with the exact vectors.

Threading: all release the GIL. One thread inserts, any number search meanwhile without a lock: a row's own links stand
before any other row links to it, and a list that is just being rewritten shows old, new or no links, each of them a
row of the graph; such a search may miss a neighbour and nothing else.

Rejected: hnswlib (each vector a second time in float32, 1.5 to 2 times the time of a search with cold caches, no
search while a row is inserted, a C++ compiler to install); upper layers as the way in (memories come topic by topic,
and links into a new topic are soon crowded out: recall@10 0.80 where anchors keep 0.98, see tests); functions of
`kernels` (numba's disk cache looks at the stamp of a function's own file only).

Source: Malkov & Yashunin 2018, algorithms 1, 2 and 4 in layer 0 (neighbours chosen by the heuristic, not extended).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

QUERY_CODE_MAX = 1023  # times 127 times 4,096 dimensions fits 32 bits
CANDIDATES_PER_RESULT = 64  # room for candidates; where most of a graph is passed over, the farthest are left out
CACHE_LINE_BYTES = 64
ROWS_PER_ANCHOR = 64  # a topic of so many memories in a row has one
ANCHORS_MIN, ANCHORS_MAX = 64, 2048  # the scan of them takes about 15 ns each
ANCHORS_AHEAD = 8  # rows whose codes are fetched while one is scored
ENTRIES = 4  # the nearest anchors, from which a search starts
NO_ROW = -1

jit = numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@intrinsic
def _prefetch(_context: Any, array: Any, offset: Any) -> Any:
    """Asks for the cache line `offset` bytes into a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(builder.bitcast(data, byte_pointer), [arguments[1]])
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [place, word(0), word(3), word(1)])  # to read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@jit
def code_query(vector: NDArray[np.float32], coded: NDArray[np.int16]) -> float:
    """Codes a (dim,) vector in 11 bits into `coded`; returns what a code stands for. Sums of products with one-byte
    codes fit 32 bits.
    """
    largest = np.float32(1e-12)
    for i in range(vector.shape[0]):
        largest = max(largest, abs(vector[i]))
    for i in range(vector.shape[0]):
        coded[i] = np.int16(round(vector[i] * np.float32(QUERY_CODE_MAX) / largest))
    return largest / np.float32(QUERY_CODE_MAX)


@jit
def _product(code: NDArray[np.int8], query: NDArray[np.int16]) -> int:
    """Inner product of two codes. Only because it ends in 32 bits the compiler multiplies 16 numbers an instruction;
    numba's sum of products has 64, which takes four times as long.
    """
    total = np.int32(0)
    for i in range(query.shape[0]):
        total += np.int32(np.int16(code[i])) * np.int32(query[i])
    return np.int32(total)


@jit
def _pair_product(a: NDArray[np.int8], b: NDArray[np.int8]) -> int:
    total = np.int32(0)
    for i in range(b.shape[0]):
        total += np.int32(np.int16(a[i])) * np.int32(np.int16(b[i]))
    return np.int32(total)


@jit
def _push(keys: NDArray[np.float32], rows: NDArray[np.int32], size: int, key: float, row: int) -> int:
    """Adds to a heap with the least key on top; returns the new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if keys[parent] <= key:
            break
        keys[i] = keys[parent]
        rows[i] = rows[parent]
        i = parent
    keys[i] = key
    rows[i] = row
    return size + 1


@jit
def _pop(keys: NDArray[np.float32], rows: NDArray[np.int32], size: int) -> int:
    """Takes the top off a heap; returns the new size."""
    size -= 1
    key, row = keys[size], rows[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i] = keys[child]
        rows[i] = rows[child]
        i = child
    keys[i] = key
    rows[i] = row
    return size


@jit
def _fetch_code(codes: NDArray[np.int8], row: int) -> None:
    dim = codes.shape[1]
    for offset in range(0, dim, CACHE_LINE_BYTES):
        _prefetch(codes, np.intp(row) * dim + offset)


@jit
def _entries(
    first: int,
    row_count: int,
    query: NDArray[np.int16],
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    links: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> int:
    """The nearest of the anchors into `entries`, and row `first` where they leave room; returns how many."""
    anchors = min(row_count, max(ANCHORS_MIN, min(row_count // ROWS_PER_ANCHOR, ANCHORS_MAX)))
    scores = np.empty(entries.shape[0], np.float32)
    count = 0
    for i in range(anchors):
        _fetch_code(codes, min(i + ANCHORS_AHEAD, anchors - 1) * row_count // anchors)
        row = i * row_count // anchors
        if links[row, 0] < 0 and row != first:
            continue  # not in the graph: it has no vector, or was closed before its turn
        score = np.float32(_product(codes[row], query)) * scales[row]
        if count < entries.shape[0]:
            count += 1
        elif score <= scores[count - 1]:
            continue
        at = count - 1
        while at > 0 and scores[at - 1] < score:
            scores[at] = scores[at - 1]
            entries[at] = entries[at - 1]
            at -= 1
        scores[at] = score
        entries[at] = row
    if count == 0:
        entries[0] = first
        count = 1
    return count


@jit
def _beam(
    first: int,
    row_count: int,
    query: NDArray[np.int16],
    closed: NDArray[np.uint8],
    mask: NDArray[np.uint8],
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    links: NDArray[np.int32],
    scores: NDArray[np.float32],
    rows: NDArray[np.int32],
) -> int:
    """The nearest rows into `scores` and `rows` (a heap, the worst on top), as many as they have room for; returns how
    many. Rows that are `closed` or fail the mask lead on and are not taken; length 0 means none.
    """
    room = scores.shape[0]
    met = np.zeros((codes.shape[0] >> 3) + 1, np.uint8)
    ahead_keys = np.empty(CANDIDATES_PER_RESULT * room, np.float32)
    ahead_rows = np.empty(CANDIDATES_PER_RESULT * room, np.int32)
    fresh = np.empty(max(links.shape[1], ENTRIES), np.int32)
    fresh_count = _entries(first, row_count, query, codes, scales, links, fresh[:ENTRIES])
    for j in range(fresh_count):
        met[fresh[j] >> 3] |= np.uint8(1 << (fresh[j] & 7))
    ahead, size = 0, 0
    while True:
        for j in range(fresh_count):
            row = fresh[j]
            score = np.float32(_product(codes[row], query)) * scales[row]
            if size == room and score <= scores[0]:
                continue
            if ahead < ahead_keys.shape[0]:
                ahead = _push(ahead_keys, ahead_rows, ahead, -score, row)
                _prefetch(links, np.intp(row) * links.shape[1] * 4)
            if closed.shape[0] > 0 and closed[row] != 0:
                continue
            if mask.shape[0] > 0 and (row >= mask.shape[0] or mask[row] == 0):
                continue
            if size == room:
                size = _pop(scores, rows, size)
            size = _push(scores, rows, size, score, row)
        if ahead == 0 or (size == room and -ahead_keys[0] < scores[0]):
            return size
        near = links[ahead_rows[0]]
        ahead = _pop(ahead_keys, ahead_rows, ahead)
        fresh_count = 0
        for j in range(near.shape[0]):
            row = near[j]
            if row < 0:
                break
            bit = np.uint8(1 << (row & 7))
            if met[row >> 3] & bit:
                continue
            met[row >> 3] |= bit
            fresh[fresh_count] = row
            fresh_count += 1
            _fetch_code(codes, row)


@jit
def search(
    vector: NDArray[np.float32],
    width: int,
    first: int,
    row_count: int,
    closed: NDArray[np.uint8],
    mask: NDArray[np.uint8],
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    links: NDArray[np.int32],
) -> NDArray[np.int64]:
    """At most `width` rows of the graph near a (dim,) vector, unordered.

    `first` is the row that came first into the graph, rows below `row_count` had their turn. Rows with `closed` (uint8
    a row) not 0 are no answer, nor are rows that fail the mask or lie beyond it; a mask of length 0 stands for "all".
    """
    query = np.empty(vector.shape[0], np.int16)
    code_query(vector, query)
    scores = np.empty(width, np.float32)
    rows = np.empty(width, np.int32)
    size = _beam(first, row_count, query, closed, mask, codes, scales, links, scores, rows)
    return rows[:size].astype(np.int64)


@jit
def _choose(
    scores: NDArray[np.float32],
    rows: NDArray[np.int32],
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    chosen: NDArray[np.int32],
) -> int:
    """The heuristic: of rows by falling score, each that is nearer to the base than to all chosen before it; fills
    `chosen` and returns how many.
    """
    count = 0
    for i in np.argsort(-scores):
        row = rows[i]
        apart = True
        for j in range(count):
            other = chosen[j]
            if np.float32(_pair_product(codes[row], codes[other])) * scales[row] * scales[other] > scores[i]:
                apart = False
                break
        if apart:
            chosen[count] = row
            count += 1
            if count == chosen.shape[0]:
                break
    return count


@jit
def _link_back(
    near: NDArray[np.int32], base: int, row: int, codes: NDArray[np.int8], scales: NDArray[np.float32]
) -> None:
    """Adds `row` to the list of `base`; a full list is chosen anew."""
    room = near.shape[0]
    count = 0
    while count < room and near[count] >= 0:
        count += 1
    if count < room:
        near[count] = row
        return
    rows = np.empty(room + 1, np.int32)
    scores = np.empty(room + 1, np.float32)
    rows[:room] = near
    rows[room] = row
    for j in range(room + 1):
        scores[j] = np.float32(_pair_product(codes[base], codes[rows[j]])) * scales[base] * scales[rows[j]]
    chosen = np.empty(room, np.int32)
    count = _choose(scores, rows, codes, scales, chosen)
    near[:count] = chosen[:count]
    near[count:] = NO_ROW


@jit
def insert(
    row: int,
    vector: NDArray[np.float32],
    width: int,
    first: int,
    row_count: int,
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    links: NDArray[np.int32],
) -> None:
    """Puts a row of (dim,) `vector` into a graph that holds `first` already; rows below `row_count` had their turn.

    links: (rows, 2 M) int32; a row gets at most M of its own, chosen from the `width` nearest, and as many from others
    as there is room for. A list ends at its first NO_ROW; lists of rows not in the graph hold nothing else.
    """
    query = np.empty(vector.shape[0], np.int16)
    unit = np.float32(code_query(vector, query))
    everything = np.empty(0, np.uint8)
    scores = np.empty(width, np.float32)
    rows = np.empty(width, np.int32)
    chosen = np.empty(links.shape[1] // 2, np.int32)
    size = _beam(first, row_count, query, everything, everything, codes, scales, links, scores, rows)
    count = _choose(scores[:size] * unit, rows[:size], codes, scales, chosen)
    links[row, :count] = chosen[:count]
    for j in range(count):
        _link_back(links[chosen[j]], chosen[j], row, codes, scales)
