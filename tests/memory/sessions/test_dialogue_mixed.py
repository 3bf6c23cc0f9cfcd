"""What was once read wrongly: mixed languages, repeated words, adjectives, and constraints that were set by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.memory.funnel import Message
from memsvc.memory.funnel.cues import cues_of
from memsvc.memory.sessions import dialogue_cues as cues
from memsvc.memory.sessions.dialogue import tracked
from memsvc.memory.sessions.state import SessionState, StateChange, changed

MIXED = st.sampled_from("what if we must use should I maybe he said wish 数据库 订单 服务 如果 必须 8080 ? 。".split())


def after(*said: str, state: SessionState | None = None) -> SessionState:
    return tracked(state or SessionState(), [Message("user", text, 0) for text in said])


@pytest.mark.parametrize(
    "said",
    [
        "What if we must use Rust for the 数据库 and the port is 8080",
        "Should I only use the 订单 table",
        "He said you must use the 订单 table",
        "Maybe we should only use the 订单 table",
        "The weather is nice.",
        "the parser is broken",
    ],
)
def test_what_sets_nothing_in_a_mixed_sentence_and_in_a_plain_one(said):
    assert after(said) == SessionState()


@settings(max_examples=200, deadline=None)
@given(st.lists(MIXED, max_size=10).map(" ".join).map("we {}".format))
def test_mixed_sentences_have_the_cues_of_the_funnel(sentence):
    wanted = cues.NOT_STATED | cues.WORDS_ONLY | cues.Cue.LASTING | cues.Cue.REQUEST
    assert cues.some_cues(sentence) == cues_of(sentence) & wanted


@pytest.mark.parametrize(
    ("said", "goal", "constraints"),
    [
        ("帮我用Go写服务，用Go", "用Go写服务", ("用Go",)),
        ("帮我写只用标准库的爬虫，只用标准库", "写只用标准库的爬虫", ("只用标准库",)),
        ("Please write a crawler and don't use Docker", "write a crawler", ("don't use Docker",)),
    ],
)
def test_a_goal_ends_where_the_next_matter_begins(said, goal, constraints):
    state = after(said)
    assert (state.goal, state.constraints, state.slots) == (goal, constraints, {})


def test_a_capital_or_a_digit_makes_a_value():
    assert after("The region is Frankfurt", "the port is 8080").slots == {"region": "Frankfurt", "port": "8080"}


@pytest.mark.parametrize(
    ("by_hand", "said", "stays"),
    [("use HTTPS", "Actually, use Go instead", True), ("不要用框架", "现在可以用框架了", False)],
)
def test_what_stands_is_what_is_a_constraint(by_hand, said, stays):
    state = changed(SessionState(), StateChange(goal="write a crawler", add_constraints=(by_hand,)))
    state = after(said, state=state)
    assert state.constraints == state.standing == ((by_hand,) if stays else ())
