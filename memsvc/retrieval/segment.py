"""The segment: the derived, rebuildable, in-process index of one namespace.

Purpose: numpy columns, vectors, postings and keyword lists of every version of every memory. Row r holds the version
that change r + 1 of the namespace wrote, so that "the state at sequence s" is simply "the rows below s whose end_seq
is above s": one mechanism for consistent reads beside a writer and for `as_of`.

Threading: `apply` is called by one writer at a time, in sequence order. Readers take a `View` (a few references and
the row count) under the lock and compute outside of it; rows below the view's count never change except `end_seq`
(see kernels) and the session links, whose newer targets a view skips.

Rejected: one row per memory with the current values (time travel and consistent reads would need a second structure);
a row only per content change (filters and statuses need their own history anyway); deleting rows (they are the
history; a rebuild is where space comes back).
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from memsvc.model import (
    RECALLABLE,
    Filter,
    Memory,
    Namespace,
    Status,
    TimeSpan,
    id_from_bytes,
    id_to_bytes,
    speaker_of,
)
from memsvc.retrieval.columns import COLUMNS, NO_ROW, Columns, Postings, RowList, Scratch
from memsvc.retrieval.lexical import Analysis, name_terms
from memsvc.retrieval.mentions import Mentions
from memsvc.retrieval.texts import analysis_of, indexed_text
from memsvc.retrieval.vector import VectorIndex

OPEN_SEQ = 2**62  # end_seq of a version that still stands
QUESTION_MARKS = ("?", "？")
STAGED_ROWS_MAX = 256
SCRATCH_SLACK_ROWS = 1024
SCRATCH_KEPT = 16

KEY_TAG, KEY_SUBJECT, KEY_TOOL, KEY_SESSION, KEY_STAGED, KEY_BLOCKED = "t", "s", "o", "e", "g", "b"
KEY_EVENT, KEY_CAUSE = "v", "c"  # type of an event; id of a memory that led to it
KEY_ARCHIVED = "a"


class View:
    """What a reader captured: the segment as it is at sequence == row_count, and the query's terms in it.

    `terms` are those of the query that the vocabulary knows; starts, lengths, frequency: (len(terms),) int64, copies.
    """

    __slots__ = (
        "block",
        "code_scales",
        "codes",
        "columns",
        "document_count",
        "epoch",
        "frequency",
        "lengths",
        "post_rows",
        "post_tfs",
        "row_count",
        "segment",
        "starts",
        "terms",
        "total_length",
    )

    def __init__(self, segment: Segment, terms: Iterable[str], sequence: int | None = None) -> None:
        with segment.lock:
            self.segment = segment
            self.row_count = segment.rows if sequence is None else min(sequence, segment.rows)
            self.columns = segment.columns
            self.block = segment.vectors.block
            self.codes = segment.vectors.codes
            self.code_scales = segment.vectors.code_scales
            postings = segment.postings
            vocabulary = postings.vocabulary
            self.terms = [term for term in terms if term in vocabulary]
            ids = np.array([vocabulary[term] for term in self.terms], np.int64)
            self.starts = postings.starts[ids]
            self.lengths = postings.lengths[ids]
            self.frequency = postings.frequency[ids]
            self.post_rows = postings.rows
            self.post_tfs = postings.tfs
            self.document_count = segment.document_count
            self.total_length = segment.total_length
            self.epoch = segment.epoch


class Segment:
    """See the module. Build it by `apply` of all versions in order, or by `segment_file.load`."""

    def __init__(self, namespace: Namespace, model_id: str, dim: int) -> None:
        self.namespace = namespace
        self.model_id = model_id
        self.lock = threading.Lock()  # short: guards what a View captures
        self.apply_lock = threading.Lock()  # whoever applies changes holds it, so that they come in order
        self.rows = 0
        self.columns = Columns()
        self.vectors = VectorIndex(dim)
        self.postings = Postings()
        self.keywords: dict[tuple[str, str], RowList] = {}
        self.mentions = Mentions()
        self.row_of: dict[bytes, int] = {}
        self.sessions: dict[str, list[tuple[int, int]]] = {}
        self.session_numbers: dict[str, int] = {}
        self.speakers: dict[str, int] = {}
        self.speaker_terms: dict[str, set[int]] = {}
        self.document_count = 0
        self.total_length = 0.0
        self.epoch = 0  # grows when a version is closed: a reader that raced with it looks again
        self._scratch: list[Scratch] = []

    @property
    def sequence(self) -> int:
        """The last change that the segment holds."""
        return self.rows

    # -- writing -------------------------------------------------------------------------------------------------

    def apply(self, memory: Memory, vector: NDArray[np.float32] | None, before: Memory | None) -> None:
        """Adds the version that change `rows + 1` wrote and closes `before`, the version that it replaces.

        vector: (dim,) float32 or None. Raises ValueError when the version is not the next one (the caller catches up
        from the store).
        """
        if memory.sequence != self.rows + 1:
            raise ValueError(f"expected sequence {self.rows + 1}, got {memory.sequence}")
        analysis = analysis_of(memory)
        old_analysis = analysis
        if before is not None and (before.fact != memory.fact or indexed_text(before) != indexed_text(memory)):
            old_analysis = analysis_of(before)
        raw_id = id_to_bytes(memory.memory_id)
        assert raw_id is not None
        with self.lock:
            row = self.rows
            self._reserve(row + 1)
            old_row = self.row_of.get(raw_id, NO_ROW)
            self._fill(row, memory, raw_id, analysis, vector)
            if old_row != NO_ROW and before is not None and before.source.session_id:
                self._unlink(self.sessions[before.source.session_id], old_row)
            if memory.source.session_id:
                self._link(row, memory)
            terms = self.postings.add(row, analysis)
            if memory.status in RECALLABLE:
                self._count(terms, analysis.length, +1)
            for key in _keys(memory):
                self.keywords.setdefault(key, RowList()).add(row)
            if memory.fact is not None:
                self.mentions.add(analysis.counts)
            self.row_of[raw_id] = row
            if old_row != NO_ROW:
                self._close(old_row, memory.sequence, old_analysis)
            self.rows = row + 1
        if old_row != NO_ROW:
            self.vectors.close(old_row)

    def _reserve(self, rows: int) -> None:
        self.columns = self.columns.reserved(rows)
        self.vectors.reserve(rows)

    def _fill(
        self, row: int, memory: Memory, raw_id: bytes, analysis: Analysis, vector: NDArray[np.float32] | None
    ) -> None:
        columns = self.columns
        columns.end_seq[row] = OPEN_SEQ
        columns.create_us[row] = memory.create_time_us
        columns.update_us[row] = memory.update_time_us
        columns.occur_us[row] = memory.occur_time_us
        columns.expire_us[row] = memory.expire_time_us
        columns.version[row] = memory.version
        columns.layer[row] = memory.layer
        columns.type[row] = memory.type
        columns.status[row] = memory.status
        columns.importance[row] = memory.importance
        columns.confidence[row] = memory.confidence
        columns.doc_length[row] = analysis.length
        columns.speaker[row] = self.speaker_id(speaker_of(memory))
        columns.session[row] = self.session_id(memory.source.session_id)
        columns.is_question[row] = memory.content.rstrip().endswith(QUESTION_MARKS)
        columns.prev_row[row] = NO_ROW
        columns.next_row[row] = NO_ROW
        columns.rank_factor[row] = 1.0
        columns.ids[row] = np.frombuffer(raw_id, np.uint8)
        if vector is not None and memory.fact is None:  # another memory's text may equal a fact's
            self.vectors.put(row, vector[None])
            columns.has_vector[row] = 1

    def set_rank_factors(self, rows: NDArray[np.int64], factors: NDArray[np.float32]) -> None:
        """Sets what forgetting leaves of the scores of rows; (n,) each. Readers may see a mix of old and new."""
        with self.lock:  # the columns may just be moving to larger arrays
            self.columns.rank_factor[rows] = factors

    def session_id(self, name: str) -> int:
        """Number of a session, a new one if needed; NO_ROW for the empty name."""
        return self.session_numbers.setdefault(name, len(self.session_numbers)) if name else NO_ROW

    def speaker_id(self, name: str) -> int:
        """Number of a speaker's name, a new one if needed; NO_ROW for the empty name."""
        if not name:
            return NO_ROW
        known = self.speakers.get(name)
        if known is None:
            known = self.speakers[name] = len(self.speakers)
            for term in name_terms(name):
                self.speaker_terms.setdefault(term, set()).add(known)
        return known

    def _link(self, row: int, memory: Memory) -> None:
        """Puts the row into its session's order of (occur time, sequence)."""
        columns = self.columns
        session = self.sessions.setdefault(memory.source.session_id, [])
        entry = (memory.occur_time_us, row)
        at = bisect_left(session, entry)
        session.insert(at, entry)
        before = session[at - 1][1] if at > 0 else NO_ROW
        after = session[at + 1][1] if at + 1 < len(session) else NO_ROW
        columns.prev_row[row] = before
        columns.next_row[row] = after
        if before != NO_ROW:
            columns.next_row[before] = row
        if after != NO_ROW:
            columns.prev_row[after] = row

    def _unlink(self, session: list[tuple[int, int]], old_row: int) -> None:
        """Takes a replaced version out of its session, which the new one need not be in."""
        columns = self.columns
        before, after = int(columns.prev_row[old_row]), int(columns.next_row[old_row])
        session.remove((int(columns.occur_us[old_row]), old_row))
        if before != NO_ROW:
            columns.next_row[before] = after
        if after != NO_ROW:
            columns.prev_row[after] = before

    def _close(self, row: int, sequence: int, analysis: Analysis) -> None:
        """Ends the validity of a row at `sequence` and takes its words out of the counts."""
        columns = self.columns
        columns.end_seq[row] = sequence
        self.epoch += 1
        if Status(int(columns.status[row])) in RECALLABLE:
            self._count(self.postings.term_ids(analysis.counts), analysis.length, -1)

    def _count(self, terms: NDArray[np.int64], length: float, sign: int) -> None:
        self.postings.frequency[terms] += sign
        self.document_count += sign
        self.total_length += sign * length

    # -- reading -------------------------------------------------------------------------------------------------

    def borrow_scratch(self, row_count: int) -> Scratch:
        """Work arrays for at least `row_count` rows, clean; give them back with `return_scratch`."""
        try:
            scratch = self._scratch.pop()
        except IndexError:
            return Scratch(row_count + SCRATCH_SLACK_ROWS)
        return scratch if scratch.capacity >= row_count else Scratch(row_count * 5 // 4 + SCRATCH_SLACK_ROWS)

    def return_scratch(self, scratch: Scratch) -> None:
        """Takes clean work arrays back; keeps a few."""
        if len(self._scratch) < SCRATCH_KEPT:
            self._scratch.append(scratch)

    def sequence_at(self, time_us: int) -> int:
        """The last sequence before anything written after a time: the state that `as_of` means. A clock that stepped
        back does not bring a later write into an earlier state.
        """
        with self.lock:
            rows, update_us = self.rows, self.columns.update_us
        return int(np.searchsorted(np.maximum.accumulate(update_us[:rows]), time_us, side="right"))

    def filter_mask(self, condition: Filter, row_count: int) -> NDArray[np.uint8]:
        """(row_count,) uint8, 1 where the row passes; statuses are not part of it. Agrees with `Filter.matches`."""
        columns = self.columns
        mask = np.ones(row_count, np.bool_)
        for values, column in ((condition.types, columns.type), (condition.layers, columns.layer)):
            if values:
                wanted = np.zeros(256, np.bool_)  # a table look-up: a tenth of np.isin's time
                wanted[list(values)] = True
                mask &= wanted[column[:row_count]]
        for span, times in ((condition.create_time, columns.create_us), (condition.occur_time, columns.occur_us)):
            if span != TimeSpan():
                mask &= (times[:row_count] >= span.start_us) & (times[:row_count] <= span.end_us)
        for low, high, numbers in (
            (condition.min_importance, condition.max_importance, columns.importance),
            (condition.min_confidence, condition.max_confidence, columns.confidence),
        ):
            if low > 0.0 or high < 1.0:
                mask &= (numbers[:row_count] >= low) & (numbers[:row_count] <= high)
        for tag in condition.tags_all:
            mask &= self.any_keyword(KEY_TAG, (tag,), row_count)
        for kind, texts in (
            (KEY_TAG, condition.tags_any),
            (KEY_SUBJECT, condition.subjects),
            (KEY_TOOL, condition.source_tools),
            (KEY_SESSION, condition.source_session_ids),
        ):
            if texts:
                mask &= self.any_keyword(kind, texts, row_count)
        return mask.view(np.uint8)

    def any_keyword(self, kind: str, texts: tuple[str, ...], row_count: int) -> NDArray[np.bool_]:
        """(row_count,) mask of the rows in the keyword list of any of the texts."""
        mask = np.zeros(row_count, np.bool_)
        with self.lock:
            lists = [self.keywords[kind, text] for text in texts if (kind, text) in self.keywords]
            for rows in lists:
                mask[rows.below(row_count)] = True
        return mask

    def named_speaker(self, terms: Iterable[str]) -> int:
        """The one speaker whom the terms name, or NO_ROW for none or several."""
        named: set[int] = set()
        for term in terms:
            named |= self.speaker_terms.get(term, set())
        return named.pop() if len(named) == 1 else NO_ROW

    def standing_rows(self, kind: str, text: str, limit: int) -> NDArray[np.int64]:
        """The newest `limit` rows of a keyword list whose versions are the current ones."""
        with self.lock:
            rows = self.keywords.get((kind, text))
            if rows is None:
                return np.empty(0, np.int64)
            listed = rows.rows[: rows.count]
            standing: NDArray[np.int64] = listed[self.columns.end_seq[listed] == OPEN_SEQ][-limit:].astype(np.int64)
            return standing

    def rows_with(self, terms: Iterable[str], row_count: int) -> NDArray[np.int64]:
        """Rows below `row_count`, of any version, that hold every one of the terms (at least one), ascending."""
        with self.lock:
            postings = self.postings
            ids = [postings.vocabulary.get(term, -1) for term in terms]
            if -1 in ids:
                return np.empty(0, np.int64)
            blocks = [(int(postings.lengths[i]), int(postings.starts[i])) for i in ids]
            lists = [postings.rows[start : start + length] for length, start in sorted(blocks)]
        found = lists[0][: np.searchsorted(lists[0], row_count)]
        for other in lists[1:]:
            at = np.minimum(np.searchsorted(other, found), max(other.shape[0] - 1, 0))
            found = found[other[at] == found]
        return found.astype(np.int64)

    def staged_rows(self, session_id: str) -> NDArray[np.int64]:
        """Current rows of staged memories of a session; none for the empty name."""
        return self.standing_rows(KEY_STAGED, session_id, STAGED_ROWS_MAX) if session_id else np.empty(0, np.int64)

    def memory_id(self, row: int) -> str:
        """The id of the row's memory."""
        return id_from_bytes(self.columns.ids[row].tobytes())

    def index_more(self) -> bool:
        """Moves a chunk of rows into the vector graph; returns whether more are waiting."""
        return self.vectors.index_more(self.rows, self._in_graph)

    def _in_graph(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        columns = self.columns
        recallable = np.isin(columns.status[rows], np.array(RECALLABLE, np.uint8))
        wanted: NDArray[np.bool_] = (columns.end_seq[rows] == OPEN_SEQ) & (columns.has_vector[rows] != 0) & recallable
        return wanted

    def size_bytes(self) -> int:
        """Memory of the arrays, about; Python's dictionaries left out."""
        columns = sum(getattr(self.columns, name).nbytes for name in (*COLUMNS, "ids"))
        postings = self.postings.rows.nbytes + self.postings.tfs.nbytes + 4 * self.postings.starts.nbytes
        return int(columns + postings + self.vectors.size_bytes())


def _keys(memory: Memory) -> list[tuple[str, str]]:
    keys = [(KEY_TAG, tag) for tag in dict.fromkeys(memory.tags)]
    if memory.subject:
        keys.append((KEY_SUBJECT, memory.subject))
    if memory.source.tool:
        keys.append((KEY_TOOL, memory.source.tool))
    if memory.source.session_id:
        keys.append((KEY_SESSION, memory.source.session_id))
    if memory.status == Status.STAGED:
        keys.extend(dict.fromkeys(((KEY_STAGED, ""), (KEY_STAGED, memory.source.session_id))))
    if memory.status == Status.ARCHIVED:
        keys.append((KEY_ARCHIVED, ""))
    if memory.blocked:
        keys.append((KEY_BLOCKED, ""))
    if memory.event is not None:
        keys.append((KEY_EVENT, memory.event.event_type))
        keys += [(KEY_CAUSE, cause) for cause in dict.fromkeys(memory.event.caused_by)]
    return keys
