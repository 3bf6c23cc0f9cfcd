"""Queries for events against a list comprehension over the same events."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsvc.app import Service
from memsvc.memory.drafts import Draft
from memsvc.memory.events import EventQuery
from memsvc.memory.facts import same_value
from memsvc.memory.owners import Owners, namespace_for
from memsvc.memory.transactions import Mutation
from memsvc.model import Event, Memory, MemoryType, TimeSpan
from memsvc.retrieval.lexical import analyze
from memsvc.retrieval.mentions import folded, whole_at
from memsvc.retrieval.texts import TYPE_WORDS, event_texts, indexed_text

TYPES = ["error", "recovery", "note"]
NAMES = ["alice", "Bob", "王五"]
ORDERS = ["ORD-1", "ORD-11", "A/B.txt", "订单一", "of", "x"]
PAYLOADS = st.fixed_dictionaries(
    {}, optional={"order": st.sampled_from(ORDERS), "n": st.sampled_from([1, 1.0, True, "1", None, 0.5])}
)
EVENTS = st.lists(
    st.builds(
        lambda kind, order, payload, names, second: Draft(
            content=f"about {order} it was",
            occur_time_us=second * 10**6,
            event=Event(kind, payload, tuple(names)),
        ),
        st.sampled_from(TYPES),
        st.sampled_from(ORDERS),
        PAYLOADS,
        st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        st.integers(0, 5),
    ),
    max_size=12,
)
QUERIES = st.builds(
    lambda start, length, types, payload, participant, mentions: EventQuery(
        occur_time=TimeSpan(start * 10**6, (start + length) * 10**6),
        event_types=tuple(types),
        payload=tuple(payload),
        participant=participant,
        mentions=mentions,
    ),
    st.integers(0, 3),
    st.integers(0, 5),
    st.lists(st.sampled_from(TYPES), max_size=2, unique=True),
    st.lists(
        st.tuples(st.just("order"), st.sampled_from(ORDERS)) | st.tuples(st.just("n"), st.sampled_from([1, True, "1"])),
        max_size=1,
    ),
    st.sampled_from(["", "", "ALICE", "王五"]),
    st.sampled_from(["", "", *ORDERS, "ord-1", "单"]),
)


def wanted(memory: Memory, query: EventQuery) -> bool:
    event = memory.event
    assert event is not None
    texts = [memory.content, *event_texts(event)]
    return (
        query.occur_time.start_us <= memory.occur_time_us <= query.occur_time.end_us
        and (not query.event_types or event.event_type in query.event_types)
        and all(name in event.payload and same_value(event.payload[name], value) for name, value in query.payload)
        and (not query.participant or query.participant.casefold() in [n.casefold() for n in event.participants])
        and (not query.mentions or any(whole_at(folded(t), folded(query.mentions)) >= 0 for t in texts))
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EVENTS, st.lists(QUERIES, min_size=1, max_size=5), st.integers(1, 4), st.booleans())
def test_a_query_is_a_list_comprehension(service: Service, drafts, queries, size, newest_first):
    owners = Owners(user_id=f"o-{uuid.uuid4().hex}")
    namespace = namespace_for(owners, None)
    mutation = Mutation("", b"", "test")
    results = [service.events.record(owners, draft, mutation) for draft in drafts]
    ids = {result.memory_id for result in results}
    memories = sorted(
        (service.memories.get([namespace], memory_id, 0) for memory_id in ids),
        key=lambda m: (m.occur_time_us, m.memory_id),
        reverse=newest_first,
    )
    for query in queries:
        seen: list[Memory] = []
        token = ""
        while True:
            page, token = service.events.page([namespace], query, size, token, newest_first)
            seen += [found.memory for found in page]
            if not token:
                break
            assert len(page) == size
        assert [m.memory_id for m in seen] == [m.memory_id for m in memories if wanted(m, query)]


def event(kind: str, payload: dict[str, Any], **fields: Any) -> Memory:
    namespace = namespace_for(Owners(user_id="a"), None)
    return Memory(
        memory_id="mem_019af000-0000-7000-8000-000000000000",
        version=1,
        sequence=1,
        namespace=namespace,
        layer=fields.pop("layer", 2),
        type=MemoryType.EVENT,
        content="It rained",
        event=Event(kind, payload, ("Carol",)),
        **fields,
    )


def test_the_indexed_text_holds_what_an_event_holds():
    payload = {"order": "ORD-1", "deep": [{"code": 503, "ok": True, "none": None}, "end"], "ratio": 0.5}
    text = indexed_text(event("error", payload))
    assert event_texts(Event("x", payload, ("Carol",))) == ["Carol", "ORD-1", "503", "end", "0.5"]
    assert all(part in text.split("\n") for part in ("Carol", "ORD-1", "503", "end", "0.5", "error"))
    assert "True" not in text
    assert "None" not in text


@pytest.mark.parametrize("kind", TYPE_WORDS)
def test_types_have_words_in_both_languages(kind):
    terms = analyze(indexed_text(event(kind, {}))).counts
    assert any(term.isascii() for term in terms)
    assert any(not term.isascii() for term in terms)
    assert all(term in terms for term in analyze(TYPE_WORDS[kind]).counts)
