"""What of a memory can be found by words, against a plain walk over what it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.model import Event, Fact, Layer, Memory, MemoryType, Namespace, Scope
from memsvc.retrieval.lexical import EXACT_PREFIX, analyze
from memsvc.retrieval.mentions import key_term, value_term
from memsvc.retrieval.texts import TYPE_WORDS, analysis_of, event_texts, indexed_text


def memory(content: str = "a statement", **fields: Any) -> Memory:
    return Memory(
        memory_id="mem_018bcfe5-6800-7000-8000-000000000001",
        version=1,
        sequence=1,
        namespace=Namespace("default", Scope.USER, "u"),
        layer=Layer.SEMANTIC,
        type=MemoryType.FACT,
        content=content,
        **fields,
    )


TEXTS = st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-99, 9999) | st.floats(-9, 9) | TEXTS
PAYLOADS = st.dictionaries(
    TEXTS,
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)),
    max_size=4,
)


def said_in(value: Any) -> list[str]:
    """The texts and numbers of a JSON value, read from its JSON one leaf after the other."""
    leaves: list[str] = []

    def pairs(entries: list[tuple[str, Any]]) -> tuple[Any, ...]:
        return tuple(entry for _, entry in entries)

    left = [json.loads(json.dumps(value), object_pairs_hook=pairs)]
    while left:
        first = left.pop(0)
        if isinstance(first, list | tuple):
            left = [*first, *left]
        elif isinstance(first, str):
            leaves.append(first)
        elif type(first) in (int, float):
            leaves.append(str(first))
    return leaves


@given(PAYLOADS, st.lists(TEXTS, max_size=3).map(tuple))
def test_an_event_is_found_by_participants_and_values_not_by_names_of_fields(payload, participants):
    event = Event("deploy", payload, participants)
    assert event_texts(event) == [*participants, *said_in(payload)]


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=3).map(tuple), PAYLOADS)
def test_all_that_is_said_is_indexed_in_order_with_a_line_each(content, subject, tags, payload):
    event = Event("error", payload, ("ann",))
    it = memory(content, subject=subject, tags=tags, event=event)
    parts = [content, subject, *tags, "error", TYPE_WORDS["error"], "ann", *said_in(payload)]
    assert indexed_text(it) == "\n".join(part for part in parts if part)
    assert indexed_text(memory(content, subject=subject)) == "\n".join(part for part in (content, subject) if part)


def test_the_speaker_comes_first():
    assert indexed_text(memory("I like Go", metadata={"speaker": "Caroline"})) == "Caroline\nI like Go"
    assert indexed_text(memory("I like Go", metadata={"mood": "fine"})) == "I like Go"


@pytest.mark.parametrize(
    ("kind", "asked"),
    [("error", "failure"), ("error", "报错"), ("recovery", "修复"), ("task_end", "finished"), ("task_start", "begin")],
)
def test_a_type_is_found_by_the_words_that_people_use(kind, asked):
    found = analysis_of(memory("disk full on db-7", event=Event(kind))).counts
    assert analyze(asked).counts.keys() <= found.keys()
    assert (
        not analyze(asked).counts.keys()
        <= analysis_of(memory("disk full on db-7", event=Event("deploy"))).counts.keys()
    )


@given(st.text(min_size=1, max_size=12), SCALARS | st.lists(SCALARS, max_size=2))
def test_a_fact_has_the_terms_of_its_key_and_value_once_and_the_words_of_its_text(key, value):
    plain = analysis_of(memory("default currency: CNY"))
    it = analysis_of(memory("default currency: CNY", fact=Fact(key, value)))
    terms = {key_term(key), value_term(value)} - {""}
    assert it.counts == {**plain.counts, **dict.fromkeys(terms, 1)}
    assert it.length == plain.length
    assert all(term.startswith(EXACT_PREFIX) for term in terms)


def test_words_alone_never_give_the_term_of_a_fact():
    for text in ("default_currency", "CNY", key_term("default_currency"), value_term("CNY")):
        assert not {key_term("default_currency"), value_term("CNY")} & analysis_of(memory(text)).counts.keys()


@given(st.text(max_size=200), PAYLOADS)
def test_a_version_can_be_taken_out_again(content, payload):
    """Counts depend on the version alone: a second reading is the same, and other versions change nothing of it."""
    it = memory(content, event=Event("task_end", payload), tags=("x",))
    first = analysis_of(it)
    analysis_of(memory(content + "!", subject="other"))
    assert analysis_of(it) == first
    assert first.length == sum(count for term, count in first.counts.items() if not term.startswith(EXACT_PREFIX))
