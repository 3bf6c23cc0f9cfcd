"""The running summary against a slow choice, and with the tokenizer that counts it in the service."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.memory.funnel import Message
from memsvc.memory.sessions.summary import SENTENCE_MAX_CHARS, SENTENCES_MAX, Summary, extended

SAID = st.sampled_from(
    [
        "We decided to keep the old table until March.",
        "we decided to keep the OLD table, until March",
        "我们决定用 PostgreSQL，因为 MySQL 太慢。",
        "The migration is done, 48 rows were skipped.",
        "You must never deploy on Friday.",
        "部署必须在周五之前完成。",
        "Remember that the port is 8080.",
        "Please send the report to Ann.",
        "ok, thanks!",
        "哈哈好的",
        "I prefer dark mode because it is easier on the eyes.",
        "```\nwe decided to use tabs\n```",
        "The build failed with exit code 137 since the disk was full.",
    ]
)
TURNS = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "agent", "tool", "system"]),
        st.lists(SAID | st.text(max_size=40), min_size=1, max_size=4).map(" ".join),
        st.just(0),
    ),
    max_size=10,
)


def words(text: str) -> int:
    return len(text.split())


def chosen(lines: Summary, limit: int) -> Summary:
    """The lines without the weakest, one at a time, the older of equals first, until the rest fits."""
    order = sorted(range(len(lines)), key=lambda place: (lines[place].score, place))
    for gone in range(len(lines) + 1):
        kept = [line for place, line in enumerate(lines) if place not in order[:gone]]
        if sum(line.token_count for line in kept) <= limit:
            return tuple(kept)
    raise AssertionError("no lines have no tokens")


@settings(max_examples=150, deadline=None)
@given(TURNS, st.integers(0, 80))
def test_the_weakest_go_the_older_first_and_the_rest_stays_in_order(turns, limit):
    everything = extended((), turns, 10**6, words)
    assert extended((), turns, limit, words) == chosen(everything, limit)


@settings(max_examples=150, deadline=None)
@given(TURNS, st.integers(0, 80))
def test_a_line_is_a_speakers_sentence_once_and_counts_its_tokens(turns, limit):
    lines = extended((), turns, limit, words)
    said = {turn.speaker for turn in turns}
    bare = ["".join(char for char in line.text.partition(": ")[2].lower() if char.isalnum()) for line in lines]
    assert len(set(bare)) == len(bare)
    for line in lines:
        speaker, _, sentence = line.text.partition(": ")
        assert speaker in said - {"system"}
        assert 0 < len(sentence) <= SENTENCE_MAX_CHARS
        assert line.token_count == words(line.text) + 1
        assert "tabs" not in sentence


@settings(max_examples=100, deadline=None)
@given(TURNS, TURNS, st.integers(0, 80))
def test_going_on_never_brings_back_what_went(first, then, limit):
    before = extended((), first, limit, words)
    after = extended(before, then, limit, words)
    new = extended((), then, 10**6, words)
    assert {line.text for line in after} <= {line.text for line in (*before, *new)}
    assert extended(before, [], limit, words) == before


@pytest.mark.parametrize("limit", [0, 5, 30, 100, 400])
def test_with_the_real_tokenizer_the_whole_text_stays_within_the_limit(service, limit):
    turns = [
        Message(
            ("user", "agent")[number % 2],
            f"We decided to use 端口 {8000 + number} for 服务 {number}。 It must not fail.",
            0,
        )
        for number in range(60)
    ]
    lines = extended((), turns, limit, service.token_counts.of)
    assert service.token_counts.of("\n".join(line.text for line in lines)) <= limit
    assert bool(lines) == (limit >= 30)


def test_of_a_long_turn_the_first_sentences_count():
    content = " ".join(f"We decided to use server {number}." for number in range(40))
    lines = extended((), [Message("user", content, 0)], 10**6, words)
    assert len(lines) == SENTENCES_MAX
    assert lines[0].text == "user: We decided to use server 0."


def test_what_a_tool_returns_counts_only_as_a_result_and_the_users_words_more_than_the_agents():
    def scores(speaker: str, text: str) -> list[float]:
        return [line.score for line in extended((), [Message(speaker, text, 0)], 10**6, words)]

    assert scores("tool", "You must always use port 8080.") == []
    assert scores("tool", "The migration failed because the disk was full.") != []
    (user,), (agent,) = (scores(who, "We decided to use PostgreSQL.") for who in ("user", "agent"))
    assert user > agent
