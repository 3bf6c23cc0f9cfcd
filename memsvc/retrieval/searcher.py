"""One recall over the segments of several namespaces: gather, scale, fuse, merge.

Purpose: turns a `SearchQuery` into the best rows with every score component. Raw scores are normalised over all
segments of the recall together (a weak best hit of a small namespace must not look like a strong one), and words are
weighed by their frequency over all of them.

Threading: stateless; any number of threads. The heavy parts run in kernels without the GIL.

Rejected: one merged index for all namespaces (isolation would hang on a filter), normalising per namespace (see
above), reciprocal rank fusion (loses how much better a hit is; it was worse on LoCoMo and CMRC dev).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.model import NO_FILTER, RECALLABLE, Filter, Namespace, Status, id_from_bytes
from memsvc.retrieval import kernels as k
from memsvc.retrieval.lexical import EXACT_PREFIX, Analysis
from memsvc.retrieval.segment import NO_ROW, Scratch, Segment, View

VECTOR_CANDIDATES = 48
RECENT_CANDIDATES = 8
RECENT_WINDOW_ROWS = 64
EXACT_SCAN_ROWS = 20_000  # a filter that leaves fewer rows is scanned exactly; see bench.latency
ALL_ROWS = 1024  # a conversation up to this long is scored whole: its sessions and neighbours are complete
RACE_TRIES = 3
NEGLIGIBLE_SHARE = 0.01


class Weights(msgspec.Struct, frozen=True):
    """How much each component counts. Chosen on LoCoMo dev by coordinate descent, checked by leaving out one
    conversation at a time (bench.quality).
    """

    vector: float = 0.45
    lexical: float = 0.55
    exact: float = 4.0  # more than all other components together can reach: an identifier always wins
    time: float = 0.02
    importance: float = 0.02
    neighbour: float = 1.0


class ConversationWeights(msgspec.Struct, frozen=True):
    """Evidence for turns of a session, inside the neighbour component: base scores of the turns before and after
    (1, 2 and 3 away), of a question that the turn replies to, the mean of the session's best; priors for the named
    speaker, for turns that are not questions, and for length.
    """

    before: tuple[float, float, float] = (0.2, 0.2, 0.1)
    after: tuple[float, float, float] = (0.25, 0.2, 0.1)
    reply: float = 0.1
    session: float = 0.5
    speaker: float = 0.4
    statement: float = 0.1
    length: float = 0.1


CONVERSATION = ConversationWeights()
VECTOR_POWER = 3.0
LEXICAL_POWER = 1.3


class DecaySettings(msgspec.Struct, frozen=True):
    """Decay of the time component: rate per day for each layer number (index 0 unused)."""

    rates: tuple[float, ...] = (0.0, 1.0, 0.05, 0.005, 0.005, 0.0)
    half_life: bool = False


class SearchQuery(msgspec.Struct):
    """What to look for. `vector`: (dim,) float32 or None; `now_us` is the time that ages and expiry count from."""

    analysis: Analysis
    vector: NDArray[np.float32] | None
    top_k: int
    now_us: int
    condition: Filter = NO_FILTER
    statuses: tuple[Status, ...] = RECALLABLE
    min_score: float = -math.inf
    weights: Weights = Weights()
    decay: DecaySettings = DecaySettings()


class Found(msgspec.Struct):
    """One row found. `components` as the C_ columns of the kernels; `paths` a bit set of the P_ constants."""

    namespace: Namespace
    memory_id: str
    version: int
    components: list[float]
    cosine: float
    bm25: float
    paths: int
    occur_us: int
    row: int


class _Plan:
    """Where to look in one segment: its view, the filter's mask, and what the vector graph found.

    `raced`: a version was closed since the view was taken, so that the graph may lack what the view still shows; the
    whole recall is then planned again, since word weights and sequences belong to the views.
    """

    __slots__ = ("ann_rows", "mask", "raced", "scan_from", "vector", "view")

    def __init__(self, view: View, query: SearchQuery, at: int | None) -> None:
        self.view = view
        unfiltered = query.condition == NO_FILTER
        self.mask = _NO_MASK if unfiltered else view.segment.filter_mask(query.condition, view.row_count)
        self.vector, self.ann_rows, self.scan_from = _vector_rows(view, query, self.mask, at)
        self.raced = self.ann_rows.shape[0] > 0 and view.epoch != view.segment.epoch


class _Gathered:
    """Candidates of one segment between the two kernels."""

    __slots__ = ("count", "lowest", "scratch", "view")

    def __init__(self, view: View, scratch: Scratch, count: int, lowest: float) -> None:
        self.view = view
        self.scratch = scratch
        self.count = count
        self.lowest = lowest


def search(segments: list[tuple[Segment, int | None]], query: SearchQuery) -> tuple[list[Found], list[int]]:
    """The best `top_k` rows over the segments, best first, and the sequence seen in each segment.

    segments: with the sequence to look at, None for the newest. Agrees with an exact scan except where the vector
    graph of a large segment misses a neighbour.
    """
    terms = sorted(query.analysis.counts, key=_is_exact)
    for _ in range(RACE_TRIES):
        views = [View(segment, terms, sequence) for segment, sequence in segments]
        plans = [_Plan(view, query, at) for view, (_, at) in zip(views, segments, strict=True) if view.row_count]
        if not any(plan.raced for plan in plans):
            break
    idf = _idf(views)
    gathered = [_gather(plan, query, idf) for plan in plans]
    scale = _scale(gathered, query)
    found: list[Found] = []
    for part in gathered:
        found.extend(_fuse(part, query, scale))
    if len(gathered) > 1:
        found.sort(key=lambda f: (-f.components[k.C_SCORE], -f.occur_us, -f.row))
        del found[query.top_k :]
    return found, [view.row_count for view in views]


def _is_exact(term: str) -> bool:
    return term.startswith(EXACT_PREFIX)


def _idf(views: list[View]) -> dict[str, float]:
    """Inverse document frequency of each known term over all views together."""
    total = sum(view.document_count for view in views)
    frequency: dict[str, int] = {}
    for view in views:
        for term, count in zip(view.terms, view.frequency.tolist(), strict=True):
            frequency[term] = frequency.get(term, 0) + count
    return {term: math.log(1.0 + max(total - count + 0.5, 0.5) / (count + 0.5)) for term, count in frequency.items()}


def _gather(plan: _Plan, query: SearchQuery, idf: dict[str, float]) -> _Gathered:
    view, mask, vector, ann_rows, scan_from = plan.view, plan.mask, plan.vector, plan.ann_rows, plan.scan_from
    segment, columns, rows = view.segment, view.columns, view.row_count
    starts, lengths, weights, exact_from = _query_postings(view, query, idf)
    recent_all = vector.shape[0] == 0 or mask.shape[0] > 0
    with_links = query.weights.neighbour > 0.0 and bool(segment.sessions)
    scratch = segment.borrow_scratch(rows)
    limit = max(query.top_k * 2, VECTOR_CANDIDATES)
    if with_links and rows <= ALL_ROWS:
        limit = max(limit, rows)
    count, lowest = k.gather(
        rows,
        query.now_us,
        sum(1 << status for status in query.statuses),
        mask,
        columns.end_seq,
        columns.status,
        columns.expire_us,
        columns.occur_us,
        columns.has_vector,
        view.block,
        vector,
        scan_from,
        ann_rows,
        starts,
        lengths,
        weights,
        exact_from,
        view.post_rows,
        view.post_tfs,
        columns.doc_length,
        max(view.total_length / max(view.document_count, 1), 1.0),
        columns.prev_row,
        columns.next_row,
        limit,
        limit,
        max(query.top_k, RECENT_CANDIDATES) if recent_all else RECENT_CANDIDATES,
        0 if recent_all else max(0, rows - RECENT_WINDOW_ROWS),
        k.REACH if with_links else 0,
        scratch.acc,
        scratch.exact,
        scratch.touched,
        scratch.position,
        scratch.rows,
        scratch.paths,
        scratch.raw,
    )
    return _Gathered(view, scratch, count, lowest)


def _query_postings(
    view: View, query: SearchQuery, idf: dict[str, float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], int]:
    """Posting blocks and weights of the query's terms, words first, and where the identifiers begin.

    A word that is in nearly every memory weighs nearly nothing and costs the most: it is left out when a rarer term
    of the query outweighs it a hundred times (scores then differ by less than a percent).
    """
    counts = query.analysis.counts
    weights = np.array([idf[term] * counts[term] for term in view.terms], np.float32)
    exact_from = sum(1 for term in view.terms if not _is_exact(term))
    if weights.shape[0] > 1:
        kept = weights >= NEGLIGIBLE_SHARE * weights.max()
        kept[exact_from:] = True
        if not kept.all():
            return view.starts[kept], view.lengths[kept], weights[kept], int(np.count_nonzero(kept[:exact_from]))
    return view.starts, view.lengths, weights, exact_from


def _vector_rows(
    view: View, query: SearchQuery, mask: NDArray[np.uint8], at: int | None
) -> tuple[NDArray[np.float32], NDArray[np.int64], int]:
    """The query's vector (empty for none), rows from the graph, and the row from which on to scan exactly.

    The graph holds what is recallable now: anything else (other statuses, the past) is scanned. A filter that leaves
    few rows is scanned too; one that leaves many widens the graph's search, and if that finds too few, is scanned.
    """
    if query.vector is None or query.weights.vector == 0.0:
        return _NO_VECTOR, _NO_ROWS, view.row_count
    vectors = view.segment.vectors
    if not vectors.has_graph or at is not None or not set(query.statuses) <= set(RECALLABLE):
        return query.vector, _NO_ROWS, 0
    wanted = max(query.top_k * 2, VECTOR_CANDIDATES)
    if mask.shape[0]:
        passing = int(np.count_nonzero(mask))
        if passing <= EXACT_SCAN_ROWS:
            return query.vector, _NO_ROWS, 0
        widened = wanted * view.row_count * 3 // (passing * 2)
        rows, scan_from = vectors.nearest(query.vector, widened)
        if np.count_nonzero(mask[rows[rows < view.row_count]]) < min(wanted, passing):
            return query.vector, _NO_ROWS, 0
        return query.vector, rows, scan_from
    rows, scan_from = vectors.nearest(query.vector, wanted)
    return query.vector, rows, scan_from


def _scale(gathered: list[_Gathered], query: SearchQuery) -> NDArray[np.float64]:
    """Ranges over all candidates, and weights: the `scale` of `fuse`."""
    low, high, bm25 = math.inf, -math.inf, 0.0
    for part in gathered:
        low = min(low, part.lowest)
        if part.count:
            part_high, part_bm25 = k.ranges(part.count, part.scratch.raw)
            high, bm25 = max(high, part_high), max(bm25, part_bm25)
    weights, turns = query.weights, CONVERSATION
    return np.array(
        (
            low,
            high,
            bm25,
            weights.vector,
            weights.lexical,
            weights.exact,
            weights.time,
            weights.importance,
            weights.neighbour,
            *turns.before,
            *turns.after,
            turns.reply,
            turns.session,
            turns.speaker,
            turns.statement,
            turns.length,
            VECTOR_POWER,
            LEXICAL_POWER,
            query.min_score,
        )
    )


def _fuse(part: _Gathered, query: SearchQuery, scale: NDArray[np.float64]) -> list[Found]:
    view, scratch = part.view, part.scratch
    segment, columns = view.segment, view.columns
    index = np.empty(min(query.top_k, max(part.count, 1)), np.int32)
    components = np.empty((index.shape[0], k.COMPONENT_COLUMNS), np.float64)
    size = k.fuse(
        part.count,
        view.row_count,
        query.now_us,
        scratch.rows,
        scratch.paths,
        scratch.raw,
        scratch.position,
        columns.layer,
        columns.occur_us,
        columns.importance,
        columns.confidence,
        columns.speaker,
        segment.named_speaker(view.terms) if segment.speakers else NO_ROW,
        columns.session,
        columns.is_question,
        columns.doc_length,
        columns.prev_row,
        columns.next_row,
        scale,
        np.array(query.decay.rates),
        query.decay.half_life,
        index,
        components,
    )
    chosen = index[:size]
    rows = scratch.rows[chosen]
    raw = scratch.raw[chosen].tolist()
    paths = scratch.paths[chosen].tolist()
    ids = columns.ids[rows].tobytes()
    parts = components[:size].tolist()
    found = []
    for i, (row, version, occur_us) in enumerate(
        zip(rows.tolist(), columns.version[rows].tolist(), columns.occur_us[rows].tolist(), strict=True)
    ):
        cosine, bm25, _ = raw[i]
        found.append(
            Found(
                segment.namespace,
                id_from_bytes(ids[16 * i : 16 * i + 16]),
                version,
                parts[i],
                cosine if cosine > k.NO_COSINE else 0.0,
                bm25,
                paths[i],
                occur_us,
                row,
            )
        )
    segment.return_scratch(scratch)
    return found


_NO_MASK: NDArray[np.uint8] = np.empty(0, np.uint8)
_NO_ROWS: NDArray[np.int64] = np.empty(0, np.int64)
_NO_VECTOR: NDArray[np.float32] = np.empty(0, np.float32)
