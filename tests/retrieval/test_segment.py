"""The segment's history, counts and links against plain Python; recalls over several segments and without vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.model import (
    RECALLABLE,
    Filter,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    Source,
    Status,
    TimeSpan,
    id_from_bytes,
    id_to_bytes,
)
from memsvc.retrieval import kernels
from memsvc.retrieval.columns import NO_ROW
from memsvc.retrieval.lexical import analyze
from memsvc.retrieval.searcher import SearchQuery, Weights, search
from memsvc.retrieval.segment import OPEN_SEQ, Segment, View
from memsvc.retrieval.texts import indexed_text

DIM = 8
NS = Namespace("acme", Scope.USER, "alice")
OTHER_NS = Namespace("acme", Scope.PROJECT, "memsvc")
NOW_US = 10**15
ALL_STATUSES = tuple(Status)
PLAIN = Weights(neighbour=0.0)


def id_of(number: int) -> str:
    return id_from_bytes(number.to_bytes(16, "big"))


def unit(seed: int) -> np.ndarray:
    vector = np.random.default_rng(seed).normal(size=DIM).astype(np.float32)
    return vector / np.linalg.norm(vector)


class History:
    """A segment and, beside it, every version that it was given."""

    def __init__(self, namespace: Namespace = NS) -> None:
        self.segment = Segment(namespace, "m", DIM)
        self.versions: list[Memory] = []

    def newest(self, sequence: int | None = None) -> dict[str, Memory]:
        """The versions that stand at a sequence, by id."""
        return {m.memory_id: m for m in self.versions[:sequence]}

    def put(self, number: int, content: str, with_vector: bool = True, **fields: Any) -> Memory:
        before = self.newest().get(id_of(number))
        sequence = len(self.versions) + 1
        values: dict[str, Any] = {
            "layer": Layer.SEMANTIC,
            "type": MemoryType.FACT,
            "create_time_us": sequence,
            "update_time_us": sequence * 10,
            "occur_time_us": sequence,
        }
        memory = Memory(
            memory_id=id_of(number),
            version=before.version + 1 if before else 1,
            sequence=sequence,
            namespace=self.segment.namespace,
            content=content,
            **{**values, **fields},
        )
        self.segment.apply(memory, unit(number) if with_vector else None, before)
        self.versions.append(memory)
        return memory

    def row(self, number: int) -> int:
        raw = id_to_bytes(id_of(number))
        assert raw is not None
        return self.segment.row_of[raw]

    def recall(self, text: str, vector: np.ndarray | None = None, at: int | None = None, **fields: Any) -> list[Any]:
        return recall([(self.segment, at)], text, vector, **fields)


def recall(segments: list[Any], text: str, vector: np.ndarray | None = None, top_k: int = 50, **fields: Any) -> list:
    return search(segments, SearchQuery(analyze(text), vector, top_k, NOW_US, **fields))[0]


words = st.sampled_from(["red", "green", "blue apple", "apple apple", "ORD-2025-0110", ""])
writes = st.lists(st.tuples(st.integers(0, 5), words, st.sampled_from(Status)), min_size=1, max_size=25)


@settings(max_examples=80, deadline=None)
@given(writes, st.data())
def test_every_sequence_shows_the_versions_that_stood_then(written: list[tuple[int, str, Status]], data: Any) -> None:
    history = History()
    for number, text, status in written:
        history.put(number, text, status=status)
    at = data.draw(st.integers(1, len(written)))
    for statuses in (ALL_STATUSES, RECALLABLE):
        wanted = {(m.memory_id, m.version) for m in history.newest(at).values() if m.status in statuses}
        for vector in (None, unit(99)):
            found = history.recall("red apple", vector, at, statuses=statuses)
            assert {(one.memory_id, one.version) for one in found} == wanted


@settings(max_examples=80, deadline=None)
@given(writes)
def test_counts_are_those_of_the_standing_recallable_versions(written: list[tuple[int, str, Status]]) -> None:
    history = History()
    for number, text, status in written:
        history.put(number, text, status=status)
    standing = [analyze(indexed_text(m)) for m in history.newest().values() if m.status in RECALLABLE]
    view = View(history.segment, list(history.segment.postings.vocabulary))
    assert view.document_count == len(standing)
    assert view.total_length == sum(a.length for a in standing)
    for term, frequency in zip(view.terms, view.frequency.tolist(), strict=True):
        assert frequency == sum(term in a.counts for a in standing), term


def test_a_view_is_not_changed_by_later_writes() -> None:
    history = History()
    history.put(1, "red")
    view = View(history.segment, ["red"])
    for number in range(2, 400):  # columns, block and the posting list all move
        history.put(number, "red")
    history.put(1, "blue")
    assert (view.row_count, view.document_count, view.frequency.tolist()) == (1, 1, [1])
    assert view.post_rows[view.starts[0] : view.starts[0] + view.lengths[0]].tolist() == [0]
    assert view.columns.end_seq[0] > view.row_count
    assert view.block[0] == pytest.approx(unit(1))


def test_a_closed_row_ends_where_its_successor_begins() -> None:
    history = History()
    history.put(1, "red")
    history.put(2, "green")
    history.put(1, "blue")
    assert history.segment.columns.end_seq[:3].tolist() == [3, OPEN_SEQ, OPEN_SEQ]
    assert history.segment.epoch == 1


def test_as_of_is_the_last_sequence_at_or_before_the_time() -> None:
    history = History()
    for number, time_us in enumerate((100, 200, 200, 300)):
        history.put(number, "x", update_time_us=time_us)
    moments = {99: 0, 100: 1, 199: 1, 200: 3, 299: 3, 300: 4, NOW_US: 4}
    assert {time_us: history.segment.sequence_at(time_us) for time_us in moments} == moments
    assert history.recall("x", at=0) == []


@pytest.mark.parametrize("sequence", [0, 1, 2, 4, 2**40])
def test_a_wrong_sequence_is_refused_and_changes_nothing(sequence: int) -> None:
    history = History()
    history.put(1, "red")
    history.put(2, "red")
    values = {name: getattr(history.versions[0], name) for name in Memory.__struct_fields__}
    wrong = Memory(**{**values, "sequence": sequence})
    with pytest.raises(ValueError, match=f"expected sequence 3, got {sequence}"):
        history.segment.apply(wrong, None, None)
    assert history.segment.sequence == 2
    assert len(history.recall("red")) == 2
    history.put(3, "red")
    assert len(history.recall("red")) == 3


turns = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9), st.sampled_from(["", "s0", "s1"])), min_size=1)


@settings(max_examples=100, deadline=None)
@given(turns)
def test_links_follow_occur_time_after_any_inserts_and_updates(written: list[tuple[int, int, str]]) -> None:
    history = History()
    for number, time_us, session in written:  # a fact's next version may come from another session
        history.put(number, "turn", source=Source(session_id=session), occur_time_us=time_us)
    columns = history.segment.columns
    for session in ("s0", "s1"):
        mine = [m for m in history.newest().values() if m.source.session_id == session]
        wanted = [m.sequence - 1 for m in sorted(mine, key=lambda m: (m.occur_time_us, m.sequence))]
        for row, before, after in zip(wanted, [NO_ROW, *wanted], [*wanted[1:], NO_ROW], strict=False):
            assert (columns.prev_row[row], columns.next_row[row]) == (before, after)


def test_memories_without_a_session_have_no_links() -> None:
    history = History()
    history.put(1, "a")
    history.put(2, "b", source=Source(session_id="s"))
    history.put(3, "c")
    assert history.segment.columns.prev_row[:3].tolist() == [NO_ROW] * 3
    assert history.segment.columns.next_row[:3].tolist() == [NO_ROW] * 3


few = st.sampled_from(["", "a", "b", "a.b", "ä%_"])
names = st.lists(few.filter(bool), max_size=2).map(tuple)
some_names = st.lists(few.filter(bool), min_size=1, max_size=2).map(tuple)
unit_floats = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1)
small_times = st.integers(-3, 3)
fields = st.fixed_dictionaries(
    {
        "layer": st.sampled_from(Layer),
        "type": st.sampled_from(MemoryType),
        "tags": names,
        "subject": few,
        "source": st.builds(Source, few, few),
        "create_time_us": small_times,
        "occur_time_us": small_times,
        "importance": unit_floats,
        "confidence": unit_floats,
    }
)
CONDITIONS: dict[str, Any] = {
    "types": st.lists(st.sampled_from(MemoryType), min_size=1, max_size=2).map(tuple),
    "layers": st.lists(st.sampled_from(Layer), min_size=1, max_size=2).map(tuple),
    **dict.fromkeys(("tags_all", "tags_any", "subjects", "source_tools", "source_session_ids"), some_names),
    **dict.fromkeys(("create_time", "occur_time"), st.builds(TimeSpan, small_times, small_times)),
    **dict.fromkeys(("min_importance", "max_importance", "min_confidence", "max_confidence"), unit_floats),
}
filters = st.fixed_dictionaries({}, optional=CONDITIONS).map(lambda chosen: Filter(**chosen))


def test_every_condition_is_tested() -> None:
    assert set(CONDITIONS) == set(Filter.__struct_fields__) - {"statuses"}


@pytest.mark.parametrize("name", [*CONDITIONS, ""])
@settings(max_examples=50, deadline=None)
@given(rows=st.lists(fields, min_size=1, max_size=12), data=st.data())
def test_the_mask_agrees_with_each_condition_and_with_all(rows: list[dict], data: Any, name: str) -> None:
    condition = Filter(**{name: data.draw(CONDITIONS[name])}) if name else data.draw(filters)
    history = History()
    for number, values in enumerate(rows):
        history.put(number, "x", **values)
    count = data.draw(st.integers(0, len(rows)))
    mask = history.segment.filter_mask(condition, count)
    assert mask.tolist() == [int(condition.matches(m)) for m in history.versions[:count]]


def test_two_segments_rank_as_one_would() -> None:
    """Without turns the components depend only on ranges, frequencies and lengths, which are taken over all."""
    joint, first, second = History(), History(), History(OTHER_NS)
    texts = ["red apple", "green apple tart", "red red wine", "plum", "apple of ORD-2025-0110", "blue"]
    for number in range(30):
        text = texts[number % len(texts)]
        joint.put(number, text, occur_time_us=number)
        (first if number % 2 else second).put(number, text, occur_time_us=number)
    parts = [(first.segment, None), (second.segment, None)]
    for text, vector in (("", unit(77)), ("", None), ("red apple ORD-2025-0110", unit(77))):
        weights = PLAIN if not text else Weights(lexical=0.0, neighbour=0.0)  # lengths: each segment has its own mean
        wanted = joint.recall(text, vector, top_k=12, weights=weights)
        found = recall(parts, text, vector, top_k=12, weights=weights)
        assert [one.memory_id for one in found] == [one.memory_id for one in wanted]
        for one, other in zip(found, wanted, strict=True):
            scores, wanted_scores = one.components[: kernels.C_BM25], other.components[: kernels.C_BM25]
            assert scores == pytest.approx(wanted_scores, abs=1e-6)


def test_degraded_recall_finds_by_words_and_mixes_with_missing_vectors() -> None:
    history = History()
    for number in range(20):
        history.put(number, "filler", with_vector=number % 2 == 0)
    history.put(50, "the violet umbrella", with_vector=False)
    for vector in (None, unit(3)):
        best = history.recall("violet umbrella", vector, weights=PLAIN)[0]
        assert best.memory_id == id_of(50)
        assert best.paths & kernels.P_LEXICAL
        assert best.components[kernels.C_COSINE] == 0.0


def test_a_named_speaker_is_the_only_one_named() -> None:
    history = History()
    for number, speaker in enumerate(["Ann Lee", "Bob", "王小明", ""]):
        history.put(number, "hello", metadata={"speaker": speaker}, source=Source(session_id="s"))
    segment = history.segment

    def named(text: str) -> int:
        return segment.named_speaker(analyze(text).counts)

    assert named("what did Ann say?") == segment.speakers["Ann Lee"]
    assert named("BOB's car") == segment.speakers["Bob"]
    assert named("王小明说了什么") == segment.speakers["王小明"]
    assert named("Ann and Bob") == NO_ROW
    assert named("nobody") == NO_ROW
    assert segment.columns.speaker[history.row(3)] == NO_ROW
    found = history.recall("what did Bob say: hello", None)
    beside = {one.memory_id: one.components[kernels.C_NEIGHBOUR] for one in found}
    assert max(beside, key=lambda key: beside[key]) == id_of(1)
