"""Episodic events: recording them, and finding them by time, type, payload, mention, cause or a question.

Purpose: an event is a memory of layer EPISODIC and type EVENT, written through the door of all memories. Queries are
answered from the segment's columns and lists, newest versions only; what a condition needs of the text is looked up in
the postings first and then checked on the record itself.

Threading: any number of threads. A page reads the versions that its segment held when the page began.

Rejected: a scan of the store by time (each record that does not fit is read and decoded), an index per payload field
(its values are words of the postings already), offsets as page tokens (a write between two pages shifts them).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import Cancelled, InvalidArgument, StoreCorrupt
from memsvc.memory import page_tokens
from memsvc.memory.drafts import Draft, check_length
from memsvc.memory.facts import same_value
from memsvc.memory.memories import Memories, WriteResult
from memsvc.memory.owners import Owners
from memsvc.memory.recall import TOP_K_MAX, Recaller, RecallRequest, Weights
from memsvc.memory.transactions import Mutation, Transactions
from memsvc.model import (
    RECALLABLE,
    Filter,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Status,
    TimeSpan,
    effective_status,
)
from memsvc.retrieval import kernels
from memsvc.retrieval.lexical import required_terms
from memsvc.retrieval.mentions import folded, whole_at
from memsvc.retrieval.searcher import DecaySettings
from memsvc.retrieval.segment import KEY_CAUSE, KEY_EVENT, Segment
from memsvc.retrieval.segments import SegmentStore
from memsvc.retrieval.texts import event_texts
from memsvc.storage.engine import ReadTxn

READ_CHUNK = 64
CONDITIONS_MAX = 16
TEXT_MAX_CHARS = 256
LINKS_MAX = 16
_PATH = "draft"

# Questions about events mean the last one: the time component halves in five days, against twenty in an ordinary
# recall, and counts five times as much. Neighbours in a session are no evidence; causes are, and come along.
EVENT_WEIGHTS = Weights(time=0.1, neighbour=0.0)
EVENT_DECAY = DecaySettings(rates=(0.0, 1.0, 0.2, 0.005, 0.005, 0.0))


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that all must hold; empty ones don't restrict. `payload`: (field, value) pairs, dots go into nested
    objects.
    """

    occur_time: TimeSpan = TimeSpan()
    event_types: tuple[str, ...] = ()
    payload: tuple[tuple[str, Any], ...] = ()
    participant: str = ""
    mentions: str = ""


class FoundEvent(msgspec.Struct, frozen=True):
    """An event with those that led to it and that it led to, each oldest first; `score` is 0 without a question."""

    memory: Memory
    causes: tuple[Memory, ...]
    consequences: tuple[Memory, ...]
    score: float = 0.0


class Events:
    """See the module."""

    def __init__(
        self,
        transactions: Transactions,
        memories: Memories,
        segments: SegmentStore,
        recaller: Recaller,
    ) -> None:
        self._transactions = transactions
        self._memories = memories
        self._segments = segments
        self._recaller = recaller

    def record(
        self, owners: Owners, draft: Draft, mutation: Mutation, still_wanted: Callable[[], bool] = lambda: True
    ) -> WriteResult:
        """Stores one event. Raises InvalidArgument naming a cause that is not an event of its namespace, and what
        `Memories.write` raises.
        """
        assert draft.event is not None
        try:
            (result,) = self._memories.write(owners, [draft], mutation, path=_PATH, still_wanted=still_wanted)
        except InvalidArgument as error:
            _rename(error)
            raise
        return result

    # -- conditions ----------------------------------------------------------------------------------------------

    def page(
        self,
        namespaces: Sequence[Namespace],
        query: EventQuery,
        size: int,
        page_token: str,
        newest_first: bool,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> tuple[list[FoundEvent], str]:
        """One page in order of (occur time, id), and the token of the next ("" on the last). Raises InvalidArgument,
        Cancelled.
        """
        _check(query)
        after = _after(page_token, newest_first)
        erasures = self._segments.erasures
        with self._transactions.engine.read() as txn:
            streams = [
                self._matching(txn, namespace, query, after, newest_first, still_wanted, erasures)
                for namespace in namespaces
            ]
            found: list[Memory] = []
            for memory in heapq.merge(*streams, key=_place, reverse=newest_first):
                if len(found) == size:
                    token = page_tokens.encode(_list_of(newest_first), *_place(found[-1]))
                    return self._linked(txn, found, erasures), token
                found.append(memory)
            return self._linked(txn, found, erasures), ""

    def _matching(
        self,
        txn: ReadTxn,
        namespace: Namespace,
        query: EventQuery,
        after: tuple[int, str] | None,
        newest_first: bool,
        still_wanted: Callable[[], bool],
        erasures: int,
    ) -> Iterator[Memory]:
        """The events of a namespace that match, in order, behind `after`."""
        segment = self._segments.get(namespace)
        if segment is None:
            return
        row_count = _rows_of(txn, segment)
        keys = _candidates(segment, row_count, query, self._transactions.clock_us(), after, newest_first)
        test = _Test(query)
        for start in range(0, len(keys), READ_CHUNK):
            if not still_wanted():
                raise Cancelled("the caller is gone")
            for memory in self._read(txn, namespace, keys[start : start + READ_CHUNK], erasures):
                place = _place(memory)
                if after is not None and (place >= after if newest_first else place <= after):
                    continue
                if test.matches(memory):
                    yield memory

    # -- a question ----------------------------------------------------------------------------------------------

    def answer(
        self,
        namespaces: Sequence[Namespace],
        question: str,
        query: EventQuery,
        size: int,
        budget_s: float,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> list[FoundEvent]:
        """The at most `size` (up to TOP_K_MAX) best events for a question that match, with what they are linked to.

        Where conditions leave too few of the best, what else matches them follows, newest first and with score 0.
        """
        _check(query)
        erasures = self._segments.erasures
        narrowed = query != EventQuery(occur_time=query.occur_time)
        answer = self._recaller.recall(
            RecallRequest(
                namespaces=namespaces,
                query=question,
                top_k=TOP_K_MAX if narrowed else size,
                condition=Filter(types=(MemoryType.EVENT,), layers=(Layer.EPISODIC,), occur_time=query.occur_time),
                weights=EVENT_WEIGHTS,
                budget_s=budget_s,
            ),
            EVENT_DECAY,
        )
        test = _Test(query)
        scores = {hit.memory.memory_id: hit.found.components[kernels.C_SCORE] for hit in answer.hits}
        best = [hit.memory for hit in answer.hits if test.matches(hit.memory)][:size]
        if narrowed and len(best) < size:
            known = {memory.memory_id for memory in best}
            rest, _ = self.page(namespaces, query, size, "", True, still_wanted)
            best += [found.memory for found in rest if found.memory.memory_id not in known][: size - len(best)]
        with self._transactions.engine.read() as txn:
            return [
                msgspec.structs.replace(found, score=scores.get(found.memory.memory_id, 0.0))
                for found in self._linked(txn, best, erasures)
            ]

    # -- links ---------------------------------------------------------------------------------------------------

    def _linked(self, txn: ReadTxn, memories: Sequence[Memory], erasures: int) -> list[FoundEvent]:
        return [
            FoundEvent(memory, self._causes(txn, memory), self._consequences(txn, memory, erasures))
            for memory in memories
        ]

    def _causes(self, txn: ReadTxn, memory: Memory) -> tuple[Memory, ...]:
        ids = memory.event.caused_by if memory.event is not None else ()
        causes = txn.get_many(memory.namespace, [(cause, 0) for cause in dict.fromkeys(ids)])
        return self._in_order(cause for cause in causes if cause is not None)

    def _consequences(self, txn: ReadTxn, memory: Memory, erasures: int) -> tuple[Memory, ...]:
        segment = self._segments.get(memory.namespace)
        if segment is None:
            return ()
        rows = segment.standing_rows(KEY_CAUSE, memory.memory_id, LINKS_MAX)
        rows = rows[rows < _rows_of(txn, segment)]
        return self._in_order(self._read(txn, memory.namespace, _keys(segment, rows), erasures))

    def _read(
        self, txn: ReadTxn, namespace: Namespace, keys: Sequence[tuple[str, int]], erasures: int
    ) -> Iterator[Memory]:
        """The memories of the keys, without what was purged since `erasures` was read."""
        for (memory_id, _), memory in zip(keys, txn.get_many(namespace, keys), strict=True):
            if memory is None and not self._segments.purged_since(erasures):
                raise StoreCorrupt(f"{memory_id} is indexed, not stored; run `memsvc verify`")
            if memory is not None and memory.status != Status.PURGED:
                yield memory

    def _in_order(self, memories: Any) -> tuple[Memory, ...]:
        now_us = self._transactions.clock_us()
        standing = (memory for memory in memories if effective_status(memory, now_us) in RECALLABLE)
        return tuple(sorted(standing, key=_place))


def _rename(error: InvalidArgument) -> None:
    """Gives the fields in a draft's error the names that an event's have."""
    for old, new in ((f"{_PATH}.content", "summary"), (f"{_PATH}.", "")):
        error.message = error.message.replace(old, new)
        error.field = error.field.replace(old, new)
        error.metadata = {key: value.replace(old, new) for key, value in error.metadata.items()}


def _place(memory: Memory) -> tuple[int, str]:
    return memory.occur_time_us, memory.memory_id


def _check(query: EventQuery) -> None:
    for name in ("participant", "mentions"):
        check_length(getattr(query, name), TEXT_MAX_CHARS, name)
    for name in ("event_types", "payload"):
        if len(getattr(query, name)) > CONDITIONS_MAX:
            raise InvalidArgument(f"{name} has more than {CONDITIONS_MAX} entries", field=name)
    if "" in query.event_types:
        raise InvalidArgument("event_types holds an empty text", field="event_types")
    if any(not field for field, _ in query.payload):
        raise InvalidArgument("payload: a condition names no field", field="payload.field")


def _rows_of(txn: ReadTxn, segment: Segment) -> int:
    """Rows that the transaction sees: the segment may have got more since it began."""
    head = txn.head(segment.namespace)
    return 0 if head is None else min(segment.rows, head.sequence)


def _candidates(
    segment: Segment,
    row_count: int,
    query: EventQuery,
    now_us: int,
    after: tuple[int, str] | None,
    newest_first: bool,
) -> list[tuple[str, int]]:
    """(id, version) of the events that may match and stood at `row_count`, in order of (occur time, id), from the place
    `after` on.
    """
    texts = [query.mentions, query.participant, *(value for _, value in query.payload if isinstance(value, str))]
    terms = list(dict.fromkeys(term for text in texts for term in required_terms(text)))
    with segment.lock:
        columns = segment.columns
    rows = segment.rows_with(terms, row_count) if terms else np.arange(row_count)
    if query.event_types:
        rows = rows[segment.any_keyword(KEY_EVENT, query.event_types, row_count)[rows]]
    occur_us = columns.occur_us[rows]
    start_us, end_us = query.occur_time.start_us, query.occur_time.end_us
    if after is not None:
        start_us, end_us = (start_us, min(end_us, after[0])) if newest_first else (max(start_us, after[0]), end_us)
    wanted = (
        (columns.type[rows] == MemoryType.EVENT)
        & (columns.layer[rows] == Layer.EPISODIC)
        & (columns.end_seq[rows] > row_count)
        & np.isin(columns.status[rows], np.array(RECALLABLE, np.uint8))
        & (columns.expire_us[rows] > now_us)
        & (occur_us >= start_us)
        & (occur_us <= end_us)
    )
    return _keys(segment, _sorted(segment, rows[wanted], newest_first))


def _sorted(segment: Segment, rows: NDArray[np.int64], newest_first: bool) -> NDArray[np.int64]:
    """The rows by (occur time, id)."""
    columns = segment.columns
    halves = columns.ids[rows].view(">u8")
    order = np.lexsort((halves[:, 1], halves[:, 0], columns.occur_us[rows])) if rows.size else np.empty(0, np.int64)
    return rows[order[::-1] if newest_first else order]


def _keys(segment: Segment, rows: NDArray[np.int64]) -> list[tuple[str, int]]:
    versions = segment.columns.version
    return [(segment.memory_id(row), int(versions[row])) for row in rows.tolist()]


class _Test:
    """Whether a record meets the conditions: the postings know words, the record knows what stands where."""

    def __init__(self, query: EventQuery) -> None:
        self._query = query
        self._mentions = folded(query.mentions)
        self._participant = folded(query.participant)

    def matches(self, memory: Memory) -> bool:
        query, event = self._query, memory.event
        if not query.occur_time.start_us <= memory.occur_time_us <= query.occur_time.end_us:
            return False
        if query.event_types and (event is None or event.event_type not in query.event_types):
            return False
        if query.participant and (
            event is None or self._participant not in (folded(name) for name in event.participants)
        ):
            return False
        if query.payload and (event is None or not all(_holds(event.payload, *one) for one in query.payload)):
            return False
        return not query.mentions or self._is_mentioned(memory)

    def _is_mentioned(self, memory: Memory) -> bool:
        texts = [memory.content, *memory.tags, *(event_texts(memory.event) if memory.event is not None else ())]
        return any(whole_at(folded(text), self._mentions) >= 0 for text in texts)


def _holds(payload: dict[str, Any], field: str, value: Any) -> bool:
    """Whether a field is there and has the value; a name with dots as it is, or else a path."""
    if field in payload:
        return same_value(payload[field], value)
    found: Any = payload
    for name in field.split("."):
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return same_value(found, value)


def _after(page_token: str, newest_first: bool) -> tuple[int, str] | None:
    """The place of a token; None for none. The order belongs to the list: another one is another list."""
    if not page_token:
        return None
    return page_tokens.decode(page_token, _list_of(newest_first), tuple[int, str])


def _list_of(newest_first: bool) -> str:
    return "events, newest first" if newest_first else "events"
