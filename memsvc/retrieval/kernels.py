"""The numeric kernels of a recall: numba, nogil, arrays and scalars only.

Purpose: everything that touches every row, posting or candidate. A recall makes two calls per segment:
`gather` scores words, scans or takes vectors, and collects candidates with all their raw scores; `fuse` normalises,
adds neighbour, time and prior evidence and selects the top k. In between, Python only takes minima and maxima over
the segments of one recall. The other kernels keep the postings.

Threading: the long kernels release the GIL; all touch only their arguments. Columns and postings are append-only below
the row count and block lengths that the caller captured, so that a writer may append meanwhile; the one column that
changes in place (`end_seq`) is compared with the reader's own row count, which is its sequence: the change is
invisible to it.
Scratch arrays belong to one call at a time (see `columns.Scratch`).

Rejected: numpy expressions (a dozen temporaries and passes over all rows per recall); numba's parallel mode (two cores
are better used by two recalls); float16 vectors in the kernel (numba has no half type on CPUs); several files (numba's
disk cache looks at the stamp of a function's own file: a change of what it calls elsewhere would go unseen).

Compiled once per machine and cached on disk by numba; `warm` compiles all of it before the first recall.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from memsvc.model import Status

BM25_K1 = 0.9  # best in trials on LoCoMo and CMRC
BM25_B = 0.4

ACTIVE, EXPIRED, CONTESTED = int(Status.ACTIVE), int(Status.EXPIRED), int(Status.CONTESTED)
STAGED = int(Status.STAGED)

# Columns of the candidate matrix that `gather` fills and `fuse` reads.
COSINE, BM25, EXACT = 0, 1, 2
RAW_COLUMNS = 3
SAMPLE_ROWS = 64

# Columns of the component matrix that `fuse` fills; the first six add up to the score, the last two are raw.
C_VECTOR, C_LEXICAL, C_EXACT, C_TIME, C_IMPORTANCE, C_NEIGHBOUR, C_SCORE, C_COSINE, C_BM25 = range(9)
COMPONENT_COLUMNS = 9
# Columns of the matrix of whole numbers that `fuse` fills.
F_ROW, F_VERSION, F_PATHS, F_OCCUR = range(4)
FOUND_COLUMNS = 4

# How a candidate was found, bit by bit; equals 1 << RecallPath of the contract.
P_VECTOR, P_LEXICAL, P_EXACT, P_RECENT, P_NEIGHBOUR = 2, 4, 8, 16, 32

CODE_MAX = 127
CODE_BLOCK_ROWS = 256
QUERY_CODE_MAX = 1023  # times 127 times 4,096 dimensions fits 32 bits
NO_COSINE = np.float32(-2.0)  # below every cosine: the row has no vector, or none was asked for

_FASTMATH = {"contract", "reassoc", "nsz", "arcp"}
jit = numba.njit(cache=True, nogil=True, fastmath=_FASTMATH, error_model="numpy")
# For kernels of a few microseconds: giving the GIL away and waiting for it again would cost more than they do.
jit_short = numba.njit(cache=True, nogil=False, fastmath=_FASTMATH, error_model="numpy")


@jit
def dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Inner product of two float32 vectors of one length."""
    total = np.float32(0.0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@jit
def visible(
    row: int,
    row_count: int,
    now_us: int,
    status_mask: int,
    own_session: int,
    end_seq: NDArray[np.int64],
    status: NDArray[np.uint8],
    expire_us: NDArray[np.int64],
    session: NDArray[np.int32],
) -> bool:
    """Whether the version of a row < `row_count` stands at sequence `row_count` (row r was written by change r + 1)
    and its status is allowed; as `model.effective_status`, a standing or staged one past its time counts as EXPIRED.
    A staged row of session number `own_session` (-1 for none) is allowed whatever the mask says.
    """
    if end_seq[row] <= row_count:
        return False
    effective = status[row]
    if expire_us[row] <= now_us and (effective == ACTIVE or effective == CONTESTED or effective == STAGED):
        effective = EXPIRED
    if effective == STAGED and own_session >= 0 and session[row] == own_session:
        return True
    return (status_mask >> effective) & 1 == 1


@jit
def heap_push(scores: NDArray[np.float64], rows: NDArray[np.int32], size: int, score: float, row: int) -> int:
    """Keeps the best `len(rows)` rows in a min-heap ordered by (score, lower row loses ties to newer); returns the
    heap's size.
    """
    capacity = rows.shape[0]
    if size < capacity:
        i = size
        size += 1
    else:
        if capacity == 0 or score < scores[0] or (score == scores[0] and row < rows[0]):
            return size
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            other = child + 1
            if other < size and (
                scores[other] < scores[child] or (scores[other] == scores[child] and rows[other] < rows[child])
            ):
                child = other
            if scores[child] > score or (scores[child] == score and rows[child] >= row):
                break
            scores[i] = scores[child]
            rows[i] = rows[child]
            i = child
        scores[i] = score
        rows[i] = row
        return size
    while i > 0:
        parent = (i - 1) // 2
        if scores[parent] < score or (scores[parent] == score and rows[parent] <= row):
            break
        scores[i] = scores[parent]
        rows[i] = rows[parent]
        i = parent
    scores[i] = score
    rows[i] = row
    return size


@jit
def score_postings(
    row_count: int,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    weights: NDArray[np.float32],
    exact_from: int,
    post_rows: NDArray[np.int32],
    post_tf: NDArray[np.uint8],
    doc_length: NDArray[np.float32],
    mean_length: float,
    acc: NDArray[np.float32],
    exact: NDArray[np.uint8],
    touched: NDArray[np.int32],
) -> int:
    """Adds BM25 of every query term to `acc` and counts exact identifiers in `exact`; lists touched rows.

    Terms from index `exact_from` on are identifiers. acc and exact must be zero; returns the number of touched rows.
    Weights are above zero. `touched` must have one entry more than there can be rows: a row is written first and
    counted only if it is new, which saves a branch that no processor can predict.
    BM25 as in Robertson & Zaragoza 2009, idf with + 1 inside the logarithm (never negative).
    """
    count = 0
    flat = np.float32(BM25_K1 * (1.0 - BM25_B))
    per_term = np.float32(BM25_K1 * BM25_B / mean_length)
    below = np.uint32(row_count)
    for t in range(starts.shape[0]):
        weight = weights[t] * np.float32(BM25_K1 + 1.0)
        rows = post_rows[starts[t] : starts[t] + lengths[t]]
        tfs = post_tf[starts[t] : starts[t] + lengths[t]]
        is_exact = t >= exact_from
        for p in range(rows.shape[0]):
            row = np.uint32(rows[p])  # unsigned: numba then leaves out the check for indexes from the end
            if row >= below:
                break  # a term's rows ascend
            known = acc[row]
            touched[count] = row
            count += known == np.float32(0.0)  # every weight is above zero, so that a touched row's score is
            tf = np.float32(tfs[p])
            acc[row] = known + weight * tf / (tf + flat + per_term * doc_length[row])
            if is_exact and exact[row] < 255:
                exact[row] += 1
    return count


@jit
def _add_candidate(row: int, path: int, position: Any, cand_rows: Any, cand_paths: Any, count: int) -> int:
    """Adds a row to the candidates, or only the path if it is there already; returns the new count."""
    at = position[row]
    if at < 0:
        if count >= cand_rows.shape[0]:
            return count
        position[row] = count
        cand_rows[count] = row
        cand_paths[count] = path
        return count + 1
    cand_paths[at] |= path
    return count


@jit_short
def encode(vectors: NDArray[np.float32], codes: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
    """Codes (n, dim) and scales (n,) of (n, dim) vectors: a row's largest magnitude becomes CODE_MAX; zeros stay 0."""
    for row in range(vectors.shape[0]):
        largest = np.float32(0.0)
        for i in range(vectors.shape[1]):
            largest = max(largest, abs(vectors[row, i]))
        scale = largest / np.float32(CODE_MAX) if largest > np.float32(0.0) else np.float32(1.0)
        scales[row] = scale
        for i in range(vectors.shape[1]):
            codes[row, i] = np.int8(np.rint(vectors[row, i] / scale))


@jit
def code_products(codes: NDArray[np.int8], query: NDArray[np.int16], products: NDArray[np.int32]) -> None:
    """Inner products of (n, dim) codes with a coded query into products[:n].

    A loop of its own whose sums end in 32 bits: only then the compiler makes it multiply 16 numbers an instruction.
    """
    for row in range(codes.shape[0]):
        total = np.int32(0)
        for i in range(query.shape[0]):
            total += np.int32(np.int16(codes[row, i])) * np.int32(query[i])
        products[row] = total


@jit
def scan_codes(
    row_count: int,
    now_us: int,
    status_mask: int,
    own_session: int,
    mask: NDArray[np.uint8],
    end_seq: NDArray[np.int64],
    status: NDArray[np.uint8],
    expire_us: NDArray[np.int64],
    session: NDArray[np.int32],
    has_vector: NDArray[np.uint8],
    codes: NDArray[np.int8],
    code_scales: NDArray[np.float32],
    query: NDArray[np.float32],
    limit: int,
) -> NDArray[np.int64]:
    """The at most `limit` visible rows that pass the mask and have the greatest inner products with the query, by the
    rows' one-byte codes (see `vector.VectorIndex`); unordered, for `gather` to rescore.

    The query is coded in 11 bits, so that sums of its products with codes fit 32 bits.
    """
    largest = np.float32(1e-12)
    for i in range(query.shape[0]):
        largest = max(largest, abs(query[i]))
    coded = np.empty(query.shape[0], np.int16)
    for i in range(query.shape[0]):
        coded[i] = np.int16(round(query[i] * np.float32(QUERY_CODE_MAX) / largest))
    scores = np.empty(limit, np.float64)
    rows = np.empty(limit, np.int32)
    size = 0
    filtered = mask.shape[0] > 0
    products = np.empty(CODE_BLOCK_ROWS, np.int32)
    for start in range(0, row_count, CODE_BLOCK_ROWS):
        end = min(start + CODE_BLOCK_ROWS, row_count)
        code_products(codes[start:end], coded, products)
        for row in range(start, end):
            score = np.float64(np.float32(products[row - start]) * code_scales[row])
            if (size == limit and score < scores[0]) or has_vector[row] == 0 or (filtered and mask[row] == 0):
                continue
            if visible(row, row_count, now_us, status_mask, own_session, end_seq, status, expire_us, session):
                size = heap_push(scores, rows, size, score, row)
    return rows[:size].astype(np.int64)


@jit
def gather(
    row_count: int,
    now_us: int,
    status_mask: int,
    own_session: int,
    mask: NDArray[np.uint8],
    end_seq: NDArray[np.int64],
    status: NDArray[np.uint8],
    expire_us: NDArray[np.int64],
    session: NDArray[np.int32],
    occur_us: NDArray[np.int64],
    has_vector: NDArray[np.uint8],
    block: NDArray[np.float32],
    query: NDArray[np.float32],
    scan_from: int,
    vector_rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    weights: NDArray[np.float32],
    exact_from: int,
    post_rows: NDArray[np.int32],
    post_tf: NDArray[np.uint8],
    doc_length: NDArray[np.float32],
    mean_length: float,
    prev_row: NDArray[np.int32],
    next_row: NDArray[np.int32],
    vector_limit: int,
    lexical_limit: int,
    recent_limit: int,
    recent_from: int,
    reach: int,
    acc: NDArray[np.float32],
    exact: NDArray[np.uint8],
    touched: NDArray[np.int32],
    position: NDArray[np.int32],
    cand_rows: NDArray[np.int32],
    cand_paths: NDArray[np.int32],
    cand_raw: NDArray[np.float32],
) -> tuple[int, float, float, float]:
    """Collects the candidates of one segment with all raw scores. Returns how many; the lowest cosine met (over all
    rows scanned, or a sample of rows beside the graph's): the zero of the vector score; their greatest cosine (-inf
    where there is none) and BM25.

    `mask` (uint8 per row, or length 0 for "all") is the filter. `query` of length 0 means no vector path; otherwise
    rows >= `scan_from` are scanned exactly and `vector_rows` (from the graph or `scan_codes`) are taken for the rest.
    `position` must be -1 everywhere and is left filled for `fuse`, which clears it. acc, exact must be 0 and are
    cleared here. cand_rows/paths: (capacity,), cand_raw: (capacity, RAW_COLUMNS). `reach` > 0 also takes that many
    neighbours of each candidate on each side in its session. The `recent_limit` latest rows by occur_us, of those from
    `recent_from` on, are candidates whatever the query.
    """
    touched_count = score_postings(
        row_count,
        starts,
        lengths,
        weights,
        exact_from,
        post_rows,
        post_tf,
        doc_length,
        mean_length,
        acc,
        exact,
        touched,
    )
    filtered = mask.shape[0] > 0
    count = 0
    heap_scores = np.empty(lexical_limit, np.float64)
    heap_rows = np.empty(lexical_limit, np.int32)
    size = 0
    for i in range(touched_count - 1, -1, -1):
        row = touched[i]
        boosted = acc[row] + np.float32(1000.0) * exact[row]  # an exact identifier is never crowded out
        if size == lexical_limit and (boosted < heap_scores[0] or (boosted == heap_scores[0] and row < heap_rows[0])):
            continue  # most rows end here, before their columns are looked at
        if filtered and mask[row] == 0:
            continue
        if visible(row, row_count, now_us, status_mask, own_session, end_seq, status, expire_us, session):
            size = heap_push(heap_scores, heap_rows, size, boosted, row)
    for i in range(size):
        row = heap_rows[i]
        path = P_LEXICAL
        if exact[row] > 0:
            path |= P_EXACT
        count = _add_candidate(row, path, position, cand_rows, cand_paths, count)

    with_vector = query.shape[0] > 0
    lowest = np.inf
    if with_vector:
        for i in range(SAMPLE_ROWS if scan_from > 0 else 0):
            row = i * scan_from // SAMPLE_ROWS
            if has_vector[row] != 0:
                lowest = min(lowest, np.float64(dot(block[row], query)))
        best_scores = np.empty(vector_limit, np.float64)
        best_rows = np.empty(vector_limit, np.int32)
        size = 0
        for i in range(vector_rows.shape[0]):
            row = vector_rows[i]
            if row >= row_count or row >= scan_from or (filtered and mask[row] == 0):
                continue
            if visible(row, row_count, now_us, status_mask, own_session, end_seq, status, expire_us, session):
                size = heap_push(best_scores, best_rows, size, dot(block[row], query), row)
        for row in range(scan_from, row_count):
            if has_vector[row] == 0 or (filtered and mask[row] == 0):
                continue
            if visible(row, row_count, now_us, status_mask, own_session, end_seq, status, expire_us, session):
                cosine = np.float64(dot(block[row], query))
                lowest = min(lowest, cosine)
                size = heap_push(best_scores, best_rows, size, cosine, row)
        for i in range(size):
            count = _add_candidate(best_rows[i], P_VECTOR, position, cand_rows, cand_paths, count)

    if recent_limit > 0:
        recent_scores = np.empty(recent_limit, np.float64)
        recent_rows = np.empty(recent_limit, np.int32)
        size = 0
        for row in range(recent_from, row_count):
            if (not filtered or mask[row] != 0) and visible(
                row, row_count, now_us, status_mask, own_session, end_seq, status, expire_us, session
            ):
                size = heap_push(recent_scores, recent_rows, size, np.float64(occur_us[row]), row)
        for i in range(size):
            count = _add_candidate(recent_rows[i], P_RECENT, position, cand_rows, cand_paths, count)

    primary = count
    for i in range(primary if reach > 0 else 0):
        for direction in range(2):
            row = cand_rows[i]
            for _ in range(reach):
                row = prev_row[row] if direction == 0 else next_row[row]
                if row < 0 or row >= row_count:
                    break
                if filtered and mask[row] == 0:
                    continue
                if visible(row, row_count, now_us, status_mask, own_session, end_seq, status, expire_us, session):
                    count = _add_candidate(row, P_NEIGHBOUR, position, cand_rows, cand_paths, count)

    highest, bm25 = -np.inf, 0.0
    for i in range(count):
        row = cand_rows[i]
        cand_raw[i, COSINE] = NO_COSINE
        if with_vector and has_vector[row] != 0:
            cand_raw[i, COSINE] = dot(block[row], query)
            highest = max(highest, np.float64(cand_raw[i, COSINE]))
        cand_raw[i, BM25] = acc[row]
        bm25 = max(bm25, np.float64(acc[row]))
        cand_raw[i, EXACT] = np.float32(exact[row])
    for i in range(touched_count):
        acc[touched[i]] = 0.0
        exact[touched[i]] = 0
    return count, lowest, highest, bm25


@jit
def decay(age_us: float, rate: float, half_life: bool) -> float:
    """Weight of age: 1 / (1 + age_days * rate), or 2 ** (-age_days * rate) if `half_life`; 1 for the future."""
    if rate <= 0.0 or age_us <= 0.0:
        return 1.0
    aged = age_us / 86_400_000_000.0 * rate
    return 2.0**-aged if half_life else 1.0 / (1.0 + aged)


# Entries of `scale`: ranges over the whole recall, then weights, then shapes of the conversation evidence.
(
    S_COS_LOW,
    S_COS_HIGH,
    S_BM25_HIGH,
    S_VECTOR,
    S_LEXICAL,
    S_EXACT,
    S_TIME,
    S_IMPORTANCE,
    S_NEIGHBOUR,
    S_BEFORE_1,
    S_BEFORE_2,
    S_BEFORE_3,
    S_AFTER_1,
    S_AFTER_2,
    S_AFTER_3,
    S_REPLY,
    S_SESSION,
    S_SPEAKER,
    S_QUESTION,
    S_LENGTH,
    S_VECTOR_POWER,
    S_LEXICAL_POWER,
    S_MIN_SCORE,
) = range(23)
SCALE_SIZE = 23
REACH = 3
SESSION_BEST = 3
FULL_LENGTH = 20.0  # terms; longer turns get no more of the length prior


@jit
def base_scores(count: int, cand_raw: NDArray[np.float32], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """(count, 2) weighted vector and lexical parts: each normalised to 0..1 over the recall, raised to its power
    (which favours few strong matches over many middling ones), times its weight.
    """
    base = np.zeros((count, 2), np.float64)
    span = scale[S_COS_HIGH] - scale[S_COS_LOW]
    for i in range(count):
        if cand_raw[i, COSINE] > NO_COSINE:
            share = min(1.0, max(0.0, (cand_raw[i, COSINE] - scale[S_COS_LOW]) / span)) if span > 0.0 else 1.0
            base[i, 0] = scale[S_VECTOR] * share ** scale[S_VECTOR_POWER]
        if scale[S_BM25_HIGH] > 0.0:
            base[i, 1] = scale[S_LEXICAL] * (cand_raw[i, BM25] / scale[S_BM25_HIGH]) ** scale[S_LEXICAL_POWER]
    return base


@jit
def session_scores(
    count: int, cand_rows: NDArray[np.int32], session: NDArray[np.int32], base: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(count,) mean of the SESSION_BEST best base scores among the candidates of each candidate's session; 0 outside
    of sessions. An open-addressing table maps session numbers to slots.
    """
    size = 2
    while size < 2 * count + 2:
        size *= 2
    keys = np.full(size, -1, np.int32)
    best = np.zeros((size, SESSION_BEST), np.float64)
    members = np.zeros(size, np.int32)
    slots = np.full(count, -1, np.int32)
    for i in range(count):
        key = session[cand_rows[i]]
        if key < 0:
            continue
        slot = (key * 40503) % size
        while keys[slot] != -1 and keys[slot] != key:
            slot = (slot + 1) % size
        keys[slot] = key
        slots[i] = slot
        members[slot] += 1
        score = base[i, 0] + base[i, 1]
        for j in range(SESSION_BEST):
            if score > best[slot, j]:
                score, best[slot, j] = best[slot, j], score
    scores = np.zeros(count, np.float64)
    for i in range(count):
        if slots[i] >= 0:
            scores[i] = best[slots[i]].sum() / min(members[slots[i]], SESSION_BEST)
    return scores


@jit
def beside_scores(
    row: int,
    row_count: int,
    position: NDArray[np.int32],
    prev_row: NDArray[np.int32],
    next_row: NDArray[np.int32],
    is_question: NDArray[np.uint8],
    base: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> float:
    """Evidence of the up to REACH turns before and after a row, each times its weight; a reply to a question counts
    its question once more.
    """
    total = 0.0
    for direction in range(2):
        other = row
        for step in range(REACH):
            other = prev_row[other] if direction == 0 else next_row[other]
            if other < 0 or other >= row_count:
                break
            at = position[other]
            if at < 0:
                continue
            score = base[at, 0] + base[at, 1]
            total += score * scale[(S_BEFORE_1 if direction == 0 else S_AFTER_1) + step]
            if direction == 0 and step == 0 and is_question[other] != 0:
                total += score * scale[S_REPLY]
    return total


@jit_short
def fuse(
    count: int,
    row_count: int,
    now_us: int,
    cand_rows: NDArray[np.int32],
    cand_paths: NDArray[np.int32],
    cand_raw: NDArray[np.float32],
    position: NDArray[np.int32],
    ids: NDArray[np.uint8],
    version: NDArray[np.int32],
    layer: NDArray[np.uint8],
    occur_us: NDArray[np.int64],
    importance: NDArray[np.float64],
    confidence: NDArray[np.float64],
    rank_factor: NDArray[np.float32],
    speaker: NDArray[np.int32],
    named_speaker: int,
    session: NDArray[np.int32],
    is_question: NDArray[np.uint8],
    doc_length: NDArray[np.float32],
    prev_row: NDArray[np.int32],
    next_row: NDArray[np.int32],
    scale: NDArray[np.float64],
    rates: NDArray[np.float64],
    half_life: bool,
    out_ids: NDArray[np.uint8],
    out_numbers: NDArray[np.int64],
    out_components: NDArray[np.float64],
) -> int:
    """Scores all candidates and selects the best `len(out_ids)`; returns how many, best first.

    out_ids: (n, 16), out_numbers: (n, FOUND_COLUMNS), out_components: (n, COMPONENT_COLUMNS). Order: score, then the
    later occur time, then the later row. Clears `position`. `rates`: decay rate per day, by layer number. A row's score
    is the sum of its components, times its rank factor but for the exact one: an identifier brings back what has faded.
    """
    top_k = out_ids.shape[0]
    out_index = np.empty(top_k, np.int32)
    components = np.empty((count, COMPONENT_COLUMNS), np.float64)
    base = base_scores(count, cand_raw, scale)
    conversation = scale[S_NEIGHBOUR] > 0.0
    sessions = session_scores(count, cand_rows, session, base) if conversation else base[:, 0]
    for i in range(count):
        row = cand_rows[i]
        exact = scale[S_EXACT] * cand_raw[i, EXACT]
        time = scale[S_TIME] * decay(np.float64(now_us - occur_us[row]), rates[layer[row]], half_life)
        prior = scale[S_IMPORTANCE] * importance[row] * confidence[row]
        beside = 0.0
        if conversation and session[row] >= 0:
            beside = beside_scores(row, row_count, position, prev_row, next_row, is_question, base, scale)
            beside += scale[S_SESSION] * sessions[i]
            beside += scale[S_LENGTH] * min(doc_length[row], FULL_LENGTH) / FULL_LENGTH
            if is_question[row] == 0:
                beside += scale[S_QUESTION]
        if conversation and named_speaker >= 0 and speaker[row] == named_speaker:
            beside += scale[S_SPEAKER]
        beside *= scale[S_NEIGHBOUR]
        components[i, C_VECTOR] = base[i, 0]
        components[i, C_LEXICAL] = base[i, 1]
        components[i, C_EXACT] = exact
        components[i, C_TIME] = time
        components[i, C_IMPORTANCE] = prior
        components[i, C_NEIGHBOUR] = beside
        rest = base[i, 0] + base[i, 1] + time + prior + beside
        components[i, C_SCORE] = exact + rest * rank_factor[row]
        components[i, C_COSINE] = cand_raw[i, COSINE] if cand_raw[i, COSINE] > NO_COSINE else np.float32(0.0)
        components[i, C_BM25] = cand_raw[i, BM25]
    size = 0
    for i in range(count):
        if components[i, C_SCORE] < scale[S_MIN_SCORE]:
            continue
        at = size
        if size == top_k:
            if top_k == 0 or not _better(i, out_index[size - 1], components, occur_us, cand_rows):
                continue
            at = size - 1
        else:
            size += 1
        while at > 0 and _better(i, out_index[at - 1], components, occur_us, cand_rows):
            out_index[at] = out_index[at - 1]
            at -= 1
        out_index[at] = i
    for i in range(size):
        at = out_index[i]
        row = cand_rows[at]
        for j in range(COMPONENT_COLUMNS):
            out_components[i, j] = components[at, j]
        for j in range(ids.shape[1]):
            out_ids[i, j] = ids[row, j]
        out_numbers[i, F_ROW] = row
        out_numbers[i, F_VERSION] = version[row]
        out_numbers[i, F_PATHS] = cand_paths[at]
        out_numbers[i, F_OCCUR] = occur_us[row]
    for i in range(count):
        position[cand_rows[i]] = -1
    return size


@jit
def _better(a: int, b: int, components: Any, occur_us: Any, cand_rows: Any) -> bool:
    """Whether candidate a ranks before candidate b."""
    if components[a, C_SCORE] != components[b, C_SCORE]:
        return components[a, C_SCORE] > components[b, C_SCORE]
    if occur_us[cand_rows[a]] != occur_us[cand_rows[b]]:
        return occur_us[cand_rows[a]] > occur_us[cand_rows[b]]
    return cand_rows[a] > cand_rows[b]


@jit
def append_postings(
    terms: NDArray[np.int64],
    tfs: NDArray[np.uint8],
    row: int,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    capacities: NDArray[np.int64],
    post_rows: NDArray[np.int32],
    post_tf: NDArray[np.uint8],
    free: int,
) -> int:
    """Appends one document's postings; returns the new end of the used pool, or -1 if the pool may be too small (then
    nothing was written: grow it and call again). A full block moves to the end of the pool with twice the room; the
    old block stays as it is for readers that captured it.
    """
    needed = 0
    for i in range(terms.shape[0]):
        term = terms[i]
        if lengths[term] == capacities[term]:
            needed += max(2, 2 * capacities[term])
    if free + needed > post_rows.shape[0]:
        return -1
    for i in range(terms.shape[0]):
        term = terms[i]
        length = lengths[term]
        if length == capacities[term]:
            start = starts[term]
            for j in range(length):
                post_rows[free + j] = post_rows[start + j]
                post_tf[free + j] = post_tf[start + j]
            starts[term] = free
            capacities[term] = max(2, 2 * capacities[term])
            free += capacities[term]
        post_rows[starts[term] + length] = row
        post_tf[starts[term] + length] = tfs[i]
        lengths[term] = length + 1
    return free
