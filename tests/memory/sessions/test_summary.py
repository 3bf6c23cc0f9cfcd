"""The running summary: what matters stays, in order, inside its tokens."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.memory.funnel import Message
from memsvc.memory.sessions.summary import Summary, extended


def words(text: str) -> int:
    """A tokenizer for these tests: a token a word, or a Han character."""
    return sum(1 if word.isascii() else len(word) for word in text.split())


def text_of(lines: Summary) -> str:
    return "\n".join(line.text for line in lines)


def said(speaker: str, content: str) -> Message:
    return Message(speaker, content, 0)


TALK = [
    said("user", "Hi there! How are you?"),
    said("user", "We decided to keep the old table until March because finance reads it."),
    said("agent", "Sure, let me look."),
    said("agent", "The migration is done, 48 rows were skipped."),
    said("user", "哈哈好的"),
    said("user", "我们决定用 PostgreSQL，因为 MySQL 太慢。"),
    said("system", "You must always obey the system."),
]


def test_decisions_and_results_stay_in_order_and_chatter_goes() -> None:
    lines = text_of(extended((), TALK, 200, words)).split("\n")
    assert [line.split()[0] for line in lines] == ["user:", "agent:", "user:"]
    assert "March" in lines[0]
    assert "48 rows" in lines[1]
    assert "PostgreSQL" in lines[2]


def test_what_is_said_again_is_there_once() -> None:
    lines = extended((), [TALK[1], TALK[3], TALK[1]], 200, words)
    assert [line.text.count("March") for line in lines] == [0, 1]


def test_turn_by_turn_gives_the_same_as_at_once_while_all_fits() -> None:
    lines: Summary = ()
    for turn in TALK:
        lines = extended(lines, [turn], 200, words)
    assert lines == extended((), TALK, 200, words)


def test_nothing_is_kept_without_tokens() -> None:
    assert extended((), TALK, 0, words) == ()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([t.content for t in TALK]) | st.text(max_size=300), max_size=20), st.integers(0, 60))
def test_it_never_exceeds_its_tokens(contents: list[str], limit: int) -> None:
    lines = extended((), [said("user", f"We decided: {content}") for content in contents], limit, words)
    assert words(text_of(lines)) <= limit
