"""One recall over the segments of several namespaces: gather, scale, fuse, merge.

Purpose: turns a `SearchQuery` into the best rows with every score component. Raw scores are normalised over all
segments of the recall together (a weak best hit of a small namespace must not look like a strong one), and words are
weighed by their frequency over all of them.

Threading: stateless; any number of threads. The heavy parts run in kernels without the GIL.

Rejected: one merged index for all namespaces (isolation would hang on a filter), normalising per namespace (see
above), reciprocal rank fusion (loses how much better a hit is; it was worse on LoCoMo and CMRC dev).
"""

from __future__ import annotations

import functools
import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.model import NO_FILTER, RECALLABLE, Filter, Namespace, Status, id_from_bytes
from memsvc.retrieval import kernels as k
from memsvc.retrieval.columns import NO_ROW, Scratch
from memsvc.retrieval.lexical import EXACT_PREFIX, Analysis
from memsvc.retrieval.segment import Segment, View
from memsvc.retrieval.vector import SCAN_CODES_FROM_ROWS

VECTOR_CANDIDATES = 48
RECENT_CANDIDATES = 8
RECENT_WINDOW_ROWS = 64
SCAN_CODES_ROWS = 20_000  # a filter that leaves fewer rows is answered by a scan; see bench.latency
CODE_OVERSAMPLING = 2  # candidates of a scan of codes for each that is wanted: codes err by less than a thousandth
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
    """What to look for. `vector`: (dim,) float32 or None; `now_us` is the time that ages and expiry count from. Staged
    memories of `session_id` are found as if they were active. `text` is where mentions of exact facts are looked for.
    """

    analysis: Analysis
    vector: NDArray[np.float32] | None
    top_k: int
    now_us: int
    condition: Filter = NO_FILTER
    statuses: tuple[Status, ...] = RECALLABLE
    session_id: str = ""
    min_score: float = -math.inf
    weights: Weights = Weights()
    decay: DecaySettings = DecaySettings()
    text: str = ""


class Found(msgspec.Struct):
    """One row found. `components` as the C_ columns of the kernels; `paths` a bit set of the P_ constants."""

    namespace: Namespace
    raw_id: bytes
    version: int
    components: list[float]
    paths: int
    occur_us: int
    row: int

    @property
    def memory_id(self) -> str:
        """The id as text; made when asked for, a recall that finds its records in memory never does."""
        return id_from_bytes(self.raw_id)


class _Plan:
    """Where to look in one segment: its view, the filter's mask, and how the vector path goes.

    `vector` is the query's, empty for none; `vector_rows` what the graph or the scan of codes found, and from row
    `scan_from` on the kernel scans exactly. `raced`: a version was closed since the view was taken, so that the graph
    may lack what the view still shows; the whole recall is then planned again, since word weights and sequences
    belong to the views.
    """

    __slots__ = ("mask", "raced", "scan_from", "vector", "vector_rows", "view")

    def __init__(self, view: View, query: SearchQuery, at: int | None) -> None:
        self.view = view
        unfiltered = query.condition == NO_FILTER
        self.mask = _NO_MASK if unfiltered else view.segment.filter_mask(query.condition, view.row_count)
        self.vector = _NO_VECTOR
        self.vector_rows = _NO_ROWS
        self.scan_from = view.row_count
        self.raced = False
        if query.vector is None or query.weights.vector == 0.0:
            return
        self.vector = query.vector
        passing = view.row_count if unfiltered else int(np.count_nonzero(self.mask))
        wanted = max(query.top_k * 2, VECTOR_CANDIDATES)
        if passing < SCAN_CODES_FROM_ROWS:
            self.scan_from = 0
        elif at is not None or not set(query.statuses) <= _RECALLABLE or not self._graph_search(query, passing, wanted):
            self.vector_rows = nearest_codes(view, query, self.mask, self.vector, wanted * CODE_OVERSAMPLING)

    def _graph_search(self, query: SearchQuery, passing: int, wanted: int) -> bool:
        """Asks the graph; False where it can't help: there is none, too many rows wait for their place in it, or a
        filter leaves so few rows that a search wide enough to find them costs more than a scan.

        The graph holds what is recallable now: the caller keeps other statuses and the past away from it. Staged
        memories of the query's own session are few and join what it finds.
        """
        view, vectors = self.view, self.view.segment.vectors
        if not vectors.has_graph or view.row_count - vectors.graph_rows >= SCAN_CODES_FROM_ROWS:
            return False
        if passing < min(view.row_count, SCAN_CODES_ROWS):
            return False
        rows, scan_from = vectors.nearest(self.vector, wanted, self.mask)
        if scan_from == 0 or rows.shape[0] < min(wanted, passing):
            return False
        staged = view.segment.staged_rows(query.session_id)
        self.vector_rows = np.concatenate([rows, staged]) if staged.size else rows
        self.scan_from = scan_from
        self.raced = rows.shape[0] > 0 and view.epoch != view.segment.epoch
        return True


def nearest_codes(
    view: View, query: SearchQuery, mask: NDArray[np.uint8], vector: NDArray[np.float32], limit: int
) -> NDArray[np.int64]:
    """About the `limit` rows of a view nearest to a (dim,) vector, unordered; see `kernels.scan_codes`."""
    columns, own_session = view.columns, view.segment.session_numbers.get(query.session_id, NO_ROW)
    rows: NDArray[np.int64] = k.scan_codes(
        view.row_count,
        query.now_us,
        _status_mask(query),
        own_session,
        mask,
        columns.end_seq,
        columns.status,
        columns.expire_us,
        columns.session,
        columns.has_vector,
        view.codes,
        view.code_scales,
        vector,
        limit,
    )
    return rows


def _status_mask(query: SearchQuery) -> int:
    return sum(1 << status for status in query.statuses)


class _Gathered:
    """Candidates of one segment between the two kernels, and their ranges."""

    __slots__ = ("bm25", "count", "highest", "lowest", "scratch", "view")

    def __init__(self, view: View, scratch: Scratch, answer: tuple[int, float, float, float]) -> None:
        self.view = view
        self.scratch = scratch
        self.count, self.lowest, self.highest, self.bm25 = answer


def search(segments: list[tuple[Segment, int | None]], query: SearchQuery) -> tuple[list[Found], list[int]]:
    """The best `top_k` rows over the segments, best first, and the sequence seen in each segment.

    segments: with the sequence to look at, None for the newest. Agrees with an exact scan except where the vector
    graph of a large segment misses a neighbour.
    """
    counts = query.analysis.counts
    if query.text and any(segment.mentions.count for segment, _ in segments):
        counts = counts | {one.term: 1 for segment, _ in segments for one in segment.mentions.named(query.text)}
    terms = sorted(counts, key=_is_exact)
    for _ in range(RACE_TRIES):
        views = [View(segment, terms, sequence) for segment, sequence in segments]
        plans = [_Plan(view, query, at) for view, (_, at) in zip(views, segments, strict=True) if view.row_count]
        if not any(plan.raced for plan in plans):
            break
    weights = _term_weights(views, counts)
    gathered = [_gather(plan, query, weights) for plan in plans]
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


def _term_weights(views: list[View], counts: dict[str, int]) -> dict[str, float]:
    """Weight of each known term: its inverse document frequency over all views together, times its count in the
    query.
    """
    total = sum(view.document_count for view in views)
    frequency: dict[str, int] = {}
    for view in views:
        for term, count in zip(view.terms, view.frequency.tolist(), strict=True):
            frequency[term] = frequency.get(term, 0) + count
    return {
        term: counts[term] * math.log(1.0 + max(total - count + 0.5, 0.5) / (count + 0.5))
        for term, count in frequency.items()
    }


def _gather(plan: _Plan, query: SearchQuery, term_weights: dict[str, float]) -> _Gathered:
    view, mask, vector = plan.view, plan.mask, plan.vector
    segment, columns, rows = view.segment, view.columns, view.row_count
    starts, lengths, weights, exact_from = _query_postings(view, term_weights)
    recent_all = vector.shape[0] == 0 or mask.shape[0] > 0
    with_links = query.weights.neighbour > 0.0 and bool(segment.sessions)
    own_session = segment.session_numbers.get(query.session_id, NO_ROW)
    scratch = segment.borrow_scratch(rows)
    limit = max(query.top_k * 2, VECTOR_CANDIDATES)
    if with_links and rows <= ALL_ROWS:
        limit = max(limit, rows)
    answer = k.gather(
        rows,
        query.now_us,
        _status_mask(query),
        own_session,
        mask,
        columns.end_seq,
        columns.status,
        columns.expire_us,
        columns.session,
        columns.occur_us,
        columns.has_vector,
        view.block,
        vector,
        plan.scan_from,
        plan.vector_rows,
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
    return _Gathered(view, scratch, answer)


def _query_postings(
    view: View, term_weights: dict[str, float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], int]:
    """Posting blocks and weights of the query's terms, words first, and where the identifiers begin.

    A word that is in nearly every memory weighs nearly nothing and costs the most: it is left out when a rarer term
    of the query outweighs it a hundred times (scores then differ by less than a percent).
    """
    terms = view.terms
    weights = [term_weights[term] for term in terms]
    if not weights:
        return view.starts, view.lengths, _NO_WEIGHTS, 0
    least = NEGLIGIBLE_SHARE * max(weights)
    kept = [i for i, weight in enumerate(weights) if weight >= least or _is_exact(terms[i])]
    exact_from = sum(1 for i in kept if not _is_exact(terms[i]))
    if len(kept) == len(weights):
        return view.starts, view.lengths, np.array(weights, np.float32), exact_from
    return view.starts[kept], view.lengths[kept], np.array([weights[i] for i in kept], np.float32), exact_from


def _scale(gathered: list[_Gathered], query: SearchQuery) -> NDArray[np.float64]:
    """Ranges over all candidates, and weights: the `scale` of `fuse`."""
    scale = _fixed_scale(query.weights).copy()
    scale[k.S_COS_LOW] = min((part.lowest for part in gathered), default=math.inf)
    scale[k.S_COS_HIGH] = max((part.highest for part in gathered), default=-math.inf)
    scale[k.S_BM25_HIGH] = max((part.bm25 for part in gathered), default=0.0)
    scale[k.S_MIN_SCORE] = query.min_score
    return scale


@functools.lru_cache(maxsize=256)
def _fixed_scale(weights: Weights) -> NDArray[np.float64]:
    """The part of the scale that hangs on the weights alone; copy it, it is shared."""
    turns = CONVERSATION
    scale = np.zeros(k.SCALE_SIZE)
    scale[k.S_VECTOR : k.S_MIN_SCORE] = (
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
    )
    return scale


@functools.lru_cache(maxsize=16)
def _rates(decay: DecaySettings) -> NDArray[np.float64]:
    return np.array(decay.rates)


def _fuse(part: _Gathered, query: SearchQuery, scale: NDArray[np.float64]) -> list[Found]:
    view, scratch = part.view, part.scratch
    segment, columns = view.segment, view.columns
    room = min(query.top_k, part.count)
    ids = np.empty((room, 16), np.uint8)
    numbers = np.empty((room, k.FOUND_COLUMNS), np.int64)
    components = np.empty((room, k.COMPONENT_COLUMNS), np.float64)
    size = k.fuse(
        part.count,
        view.row_count,
        query.now_us,
        scratch.rows,
        scratch.paths,
        scratch.raw,
        scratch.position,
        columns.ids,
        columns.version,
        columns.layer,
        columns.occur_us,
        columns.importance,
        columns.confidence,
        columns.rank_factor,
        columns.speaker,
        segment.named_speaker(view.terms) if segment.speakers else NO_ROW,
        columns.session,
        columns.is_question,
        columns.doc_length,
        columns.prev_row,
        columns.next_row,
        scale,
        _rates(query.decay),
        query.decay.half_life,
        ids,
        numbers,
        components,
    )
    segment.return_scratch(scratch)
    raw_ids = ids.tobytes()
    return [
        Found(segment.namespace, raw_ids[16 * i : 16 * i + 16], version, scores, paths, occur_us, row)
        for i, ((row, version, paths, occur_us), scores) in enumerate(
            zip(numbers[:size].tolist(), components[:size].tolist(), strict=True)
        )
    ]


_RECALLABLE = frozenset(RECALLABLE)
_NO_MASK: NDArray[np.uint8] = np.empty(0, np.uint8)
_NO_WEIGHTS: NDArray[np.float32] = np.empty(0, np.float32)
_NO_ROWS: NDArray[np.int64] = np.empty(0, np.int64)
_NO_VECTOR: NDArray[np.float32] = np.empty(0, np.float32)
