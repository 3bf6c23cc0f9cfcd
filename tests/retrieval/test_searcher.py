"""Recalls over segments against slow oracles, and the promises of filters, statuses and identifiers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.model import RECALLABLE, Filter, Layer, Memory, MemoryType, Namespace, Scope, Source, Status, TimeSpan
from memsvc.retrieval import kernels, searcher
from memsvc.retrieval.lexical import analyze
from memsvc.retrieval.searcher import SearchQuery, Weights, search
from memsvc.retrieval.segment import Segment, View
from memsvc.retrieval.vector import GRAPH_FROM_ROWS, SCAN_CODES_FROM_ROWS, VectorIndex

DIM = 16
NS = Namespace("default", Scope.USER, "u")
NOW_US = 10**15


def memory_id(number: int) -> str:
    return f"mem_00000000-0000-7000-8000-{number:012x}"


def unit(seed: int) -> np.ndarray:
    vector = np.random.default_rng(seed).normal(size=DIM).astype(np.float32)
    return vector / np.linalg.norm(vector)


class Builder:
    """Applies versions in order, as the store would hand them out."""

    def __init__(self, namespace: Namespace = NS) -> None:
        self.segment = Segment(namespace, "m", DIM)
        self.current: dict[str, Memory] = {}
        self.all: list[Memory] = []

    def put(self, number: int, content: str, **fields) -> Memory:
        before = self.current.get(memory_id(number))
        sequence = self.segment.sequence + 1
        values = {
            "layer": Layer.SEMANTIC,
            "type": MemoryType.FACT,
            "create_time_us": sequence,
            "update_time_us": sequence,
            "occur_time_us": sequence,
        } | fields
        memory = Memory(
            memory_id=memory_id(number),
            version=1 if before is None else before.version + 1,
            sequence=sequence,
            namespace=self.segment.namespace,
            content=content,
            **values,
        )
        self.segment.apply(memory, unit(number), before)
        self.current[memory.memory_id] = memory
        self.all.append(memory)
        return memory

    def recall(self, text: str = "", vector=None, at=None, **fields):
        query = SearchQuery(analyze(text), vector, fields.pop("top_k", 10), fields.pop("now_us", NOW_US), **fields)
        return search([(self.segment, at)], query)[0]


def said_by(speaker: str) -> dict:
    return {"source": Source(session_id="s"), "metadata": {"speaker": speaker}}


def found_ids(found) -> list[str]:
    return [one.memory_id for one in found]


def test_vector_only_agrees_with_an_exact_scan():
    built = Builder()
    for n in range(300):
        built.put(n, f"statement {n}")
    query = unit(10_001)
    cosines = np.array([unit(n) @ query for n in range(300)])
    wanted = [memory_id(n) for n in np.argsort(-cosines)[:10]]
    weights = Weights(vector=1.0, lexical=0.0, time=0.0, importance=0.0, neighbour=0.0)
    assert found_ids(built.recall("", query, weights=weights)) == wanted


def test_words_alone_agree_with_a_slow_bm25():
    built = Builder()
    texts = [
        "red apple pie",
        "green apple",
        "apple apple tart with a long list of words",
        "plum cake",
        "red wine",
    ]
    for n, text in enumerate(texts):
        built.put(n, text)
    documents = [analyze(text) for text in texts]
    mean = sum(d.length for d in documents) / len(documents)

    def score(d) -> float:
        total = 0.0
        for term in analyze("red apple").counts:
            df = sum(term in other.counts for other in documents)
            idf = np.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            tf = d.counts.get(term, 0)
            norm = kernels.BM25_K1 * (1 - kernels.BM25_B + kernels.BM25_B * d.length / mean)
            total += idf * tf * (kernels.BM25_K1 + 1) / (tf + norm)
        return total

    for one in built.recall("red apple", weights=Weights(time=0.0, importance=0.0)):
        assert one.components[kernels.C_BM25] == pytest.approx(score(documents[int(one.memory_id[-4:], 16)]), rel=1e-5)


def test_components_add_up_to_the_score_and_order_it():
    built = Builder()
    for n in range(40):
        built.put(
            n, f"turn {n} about apples", source=Source(session_id="s"), metadata={"speaker": "Ann" if n % 2 else "Bob"}
        )
    found = built.recall("what did Ann say about apples", unit(3))
    for one in found:
        assert sum(one.components[: kernels.C_SCORE]) == pytest.approx(one.components[kernels.C_SCORE])
    scores = [one.components[kernels.C_SCORE] for one in found]
    assert scores == sorted(scores, reverse=True)


def test_filters_apply_before_top_k():
    built = Builder()
    for n in range(3000):
        built.put(n, f"note {n}", tags=("rare",) if n % 300 == 7 else ("common",))
    for vector in (unit(5), None):
        found = built.recall("note", vector, condition=Filter(tags_all=("rare",)))
        assert sorted(found_ids(found)) == sorted(memory_id(n) for n in range(3000) if n % 300 == 7)


@pytest.mark.parametrize(
    "status", [Status.SUPERSEDED, Status.FORGOTTEN, Status.ARCHIVED, Status.PENDING, Status.STAGED]
)
def test_inactive_memories_come_back_only_when_asked_for(status):
    built = Builder()
    built.put(1, "the secret plan ID-4711")
    built.put(1, "the secret plan ID-4711", status=status)
    built.put(2, "something else")
    assert memory_id(1) not in found_ids(built.recall("secret plan ID-4711", unit(1)))
    assert found_ids(built.recall("secret plan ID-4711", unit(1), statuses=(status,))) == [memory_id(1)]


def test_expired_memories_count_as_expired():
    built = Builder()
    built.put(1, "short lived", expire_time_us=NOW_US - 1)
    built.put(2, "long lived", expire_time_us=NOW_US + 1)
    assert found_ids(built.recall("lived", unit(1))) == [memory_id(2)]
    assert found_ids(built.recall("lived", unit(1), statuses=(Status.EXPIRED,))) == [memory_id(1)]


def test_an_exact_identifier_beats_every_fuzzy_hit():
    built = Builder()
    for n in range(60):
        built.put(
            n, f"order status shipping order order {n}", source=Source(session_id="s"), metadata={"speaker": "Ann"}
        )
    built.put(77, "ORD-2025-0110 went back")
    found = built.recall("Ann, what is the order status shipping of ORD-2025-0110?", unit(3))
    assert found[0].memory_id == memory_id(77)
    assert found[0].paths & kernels.P_EXACT


def test_an_older_sequence_shows_the_older_version():
    built = Builder()
    built.put(1, "the colour is red")
    built.put(1, "the colour is blue")
    built.put(1, "the colour is blue", status=Status.FORGOTTEN)
    assert [one.version for one in built.recall("colour", at=1)] == [1]
    assert [one.version for one in built.recall("colour", at=2)] == [2]
    assert built.recall("colour") == []
    assert built.segment.sequence_at(2) == 2


def test_an_empty_query_gives_the_latest():
    built = Builder()
    for n in range(30):
        built.put(n, f"event {n}", occur_time_us=NOW_US - 86_400_000_000 * (n * 7 % 30))
    days = [n * 7 % 30 for n in range(30)]
    assert found_ids(built.recall("", top_k=5)) == [memory_id(days.index(day)) for day in range(5)]


def test_two_segments_are_ranked_together():
    first, second = Builder(), Builder(Namespace("default", Scope.PROJECT, "p"))
    first.put(1, "apples and pears")
    second.put(2, "apples apples")
    query = SearchQuery(analyze("apples"), None, 5, NOW_US)
    found, seen = search([(first.segment, None), (second.segment, None)], query)
    assert {one.namespace.scope for one in found} == {Scope.USER, Scope.PROJECT}
    assert seen == [1, 1]
    scores = [one.components[kernels.C_SCORE] for one in found]
    assert scores == sorted(scores, reverse=True)


def test_a_clock_that_steps_back_keeps_later_writes_out():
    built = Builder()
    for number, time in ((1, 300), (2, 100), (3, 200)):
        built.put(number, f"note {number}", update_time_us=time)
    assert [built.segment.sequence_at(time) for time in (100, 299, 300)] == [0, 0, 3]


def test_an_update_during_the_graph_search_is_seen_whole(monkeypatch):
    built = Builder()
    for n in range(GRAPH_FROM_ROWS):
        built.put(n, f"note {n}")
    while built.segment.index_more():
        pass
    nearest, updates = VectorIndex.nearest, iter([1])

    def interrupted(self, query, k, mask):
        for _ in updates:
            built.put(5, "zebra crossing")
        return nearest(self, query, k, mask)

    monkeypatch.setattr(VectorIndex, "nearest", interrupted)
    query = SearchQuery(analyze("zebra note"), unit(5), 3, NOW_US)
    found, seen = search([(built.segment, None)], query)
    assert (found[0].memory_id, found[0].version) == (memory_id(5), 2)
    assert seen == [GRAPH_FROM_ROWS + 1]


def test_a_large_segment_answers_as_an_exact_scan_would(monkeypatch):
    built = Builder()
    for n in range(SCAN_CODES_FROM_ROWS + 300):
        built.put(n, f"note {n}")
    for n in range(0, 600, 3):
        built.put(n, f"note {n}", status=Status.FORGOTTEN)
    asked = [SearchQuery(analyze("note"), unit(n), 12, NOW_US) for n in (3, 500, 4321)]
    asked.append(SearchQuery(analyze(""), unit(9), 12, NOW_US, condition=Filter(types=(MemoryType.FACT,))))
    asked.append(SearchQuery(analyze(""), unit(9), 12, NOW_US, statuses=(Status.FORGOTTEN,)))
    found = [search([(built.segment, at)], query)[0] for query in asked for at in (None, 4200)]
    monkeypatch.setattr(searcher, "SCAN_CODES_FROM_ROWS", 10**9)
    exact = [search([(built.segment, at)], query)[0] for query in asked for at in (None, 4200)]
    assert [[one.memory_id for one in hits] for hits in found] == [[one.memory_id for one in hits] for hits in exact]


def test_counts_leave_closed_versions_out():
    built = Builder()
    built.put(1, "apples")
    built.put(2, "apples")
    built.put(1, "pears")
    built.put(2, "apples", status=Status.FORGOTTEN)
    view = View(built.segment, analyze("apples pears").counts)
    assert dict(zip(view.terms, view.frequency.tolist(), strict=True)) == {"appl": 0, "pear": 1}
    assert built.segment.document_count == 1


def test_session_links_follow_time_whatever_the_order_of_writes():
    built = Builder()
    for number, time in ((1, 30), (2, 10), (3, 20), (4, 40)):
        built.put(number, f"turn {number}", source=Source(session_id="s"), occur_time_us=time)
    built.put(3, "turn 3 again", source=Source(session_id="s"), occur_time_us=20)
    row, order = built.segment.row_of[bytes.fromhex(memory_id(2)[4:].replace("-", ""))], []
    while row >= 0:
        order.append(built.segment.memory_id(row))
        row = int(built.segment.columns.next_row[row])
    assert order == [memory_id(n) for n in (2, 3, 1, 4)]


def test_a_version_out_of_order_is_refused():
    built = Builder()
    memory = built.put(1, "one")
    with pytest.raises(ValueError, match="expected sequence 2"):
        built.segment.apply(memory, None, None)


TAGS = st.lists(st.sampled_from(["a", "b", "a,b", "%", ""]).filter(bool), max_size=3).map(tuple)


TYPES = st.sampled_from(MemoryType)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            TAGS, st.sampled_from(MemoryType), st.sampled_from(["", "x", "x.y"]), st.floats(0, 1), st.integers(0, 9)
        ),
        min_size=1,
        max_size=12,
    ),
    tags_all=TAGS,
    tags_any=TAGS,
    types=st.lists(st.sampled_from(MemoryType), max_size=2).map(tuple),
    subjects=st.sampled_from([(), ("x",), ("x", "x.y")]),
    low=st.floats(0, 1),
    span=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_the_mask_agrees_with_the_filter(rows, tags_all, tags_any, types, subjects, low, span):
    built = Builder()
    for n, (tags, kind, subject, importance, time) in enumerate(rows):
        built.put(n, "x", tags=tags, type=kind, subject=subject, importance=importance, occur_time_us=time)
    condition = Filter(
        tags_all=tags_all,
        tags_any=tags_any,
        types=types,
        subjects=subjects,
        min_importance=low,
        occur_time=TimeSpan(*span),
    )
    mask = built.segment.filter_mask(condition, len(rows))
    assert mask.tolist() == [int(condition.matches(memory)) for memory in built.all]
    assert set(RECALLABLE) == {Status.ACTIVE, Status.CONTESTED}
