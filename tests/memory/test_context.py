"""The block's budget and order: random permanent rules, hits and sessions, with the real tokenizer.

What a recall finds is given here: the tests are about what a block makes of it, whatever it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsvc.errors import InvalidArgument, LimitExceeded
from memsvc.memory.context import BUDGET_MAX, BUDGET_MIN, Block, ContextBuilder, ContextRequest, SessionView, section_of
from memsvc.memory.context_text import (
    CLOSE_MARKER,
    LONG_LINE_MAX_CHARS,
    OPEN_MARKER,
    Format,
    Section,
    neutral,
    same_key,
)
from memsvc.memory.one_line import ELLIPSIS
from memsvc.memory.recall import TOP_K_MAX, Hit, RecallRequest
from memsvc.memory.token_counts import TokenCounts
from memsvc.model import Layer, Memory, MemoryType, Namespace, Scope, Status
from memsvc.retrieval.kernels import C_SCORE

HERE = Namespace("acme", Scope.USER, "ann")
SESSION = Namespace("acme", Scope.SESSION, "ann")
START_US = 1_700_000_000_000_000


class Rule:
    def __init__(self, number: int, content: str) -> None:
        self.memory_id = f"mem_rule_{number}"
        self.content = content


class Given:
    """A recaller that finds what it is given, at most as many as it is asked for."""

    def __init__(self, memories: Sequence[Memory], degraded: Sequence[int] = ()) -> None:
        self.memories = memories
        self.degraded = degraded
        self.asked: list[RecallRequest] = []

    def recall(self, request: RecallRequest) -> Any:
        self.asked.append(request)
        count = len(self.memories)
        hits = [
            Hit(memory, SimpleNamespace(components={C_SCORE: (count - place) / count}))  # type: ignore[arg-type]
            for place, memory in enumerate(self.memories[: request.top_k])
        ]
        return SimpleNamespace(hits=hits, degraded=self.degraded)


class House:
    """A builder over given parts; `used` are the ids that it said went into blocks."""

    def __init__(
        self,
        counts: TokenCounts,
        memories: Sequence[Memory] = (),
        rules: Sequence[str] = (),
        view: SessionView | None = None,
        degraded: Sequence[int] = (),
    ) -> None:
        self.recaller = Given(memories, degraded)
        self.used: list[str] = []
        self.builder = ContextBuilder(
            self.recaller,  # type: ignore[arg-type]
            rules=lambda _: [Rule(number, text) for number, text in enumerate(rules)],
            session=lambda _: view,
            counts=counts,
            used=lambda uses: self.used.extend(memory_id for _, memory_id in uses),
        )

    def block(self, **options: Any) -> Block:
        options = {"namespaces": [HERE], "query": "q", "session": SESSION, **options}
        return self.builder.assemble(ContextRequest(**options))


def memory(number: int, content: str, kind: MemoryType = MemoryType.FACT, **fields: Any) -> Memory:
    return Memory(
        memory_id=f"mem_{number}",
        version=1,
        sequence=1,
        namespace=HERE,
        layer=fields.pop("layer", Layer.SEMANTIC),
        type=kind,
        content=content,
        occur_time_us=START_US,
        **fields,
    )


# -- texts that make trouble -----------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "用户偏好用 Go 实现性能敏感的模块",
        "報告は毎週 PDF で",
        "한국어 문장",
        "the user prefers reports as PDF",
        "deploy to eu-west-1 costs 42.50 EUR",
        "ORD-2025-0110",
        "<|im_start|>",
        "<|endoftext|>",
        "[INST]",
        "<<SYS>>",
        "</s>",
        "</memory>",
        '<memory source="memsvc">',
        "</mem\u200dory>",
        "Facts:",
        "- [1] ",
        "This session:",
        '"\\"',
        "\n\n",
        "\x00\x1b[31m",
        "😀👩\u200d💻🏳️\u200d🌈",
        "x" * 300,
        "永" * 300,
        "🙂" * 150,
        "a1" * 200,
        "́" * 40,
        "𝕬𝖇𝖈",
        "\ud83d",
        "نص عربي",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=60), min_size=1, max_size=5).map(" ".join)
LISTS = st.lists(TEXTS, max_size=4)
NAMED = st.lists(st.tuples(st.sampled_from(["user", "agent", "tool"]), TEXTS), max_size=5)
VIEWS = st.none() | st.builds(
    SessionView,
    goal=st.just("") | TEXTS,
    constraints=LISTS,
    pending=LISTS,
    finished=LISTS,
    slots=NAMED,
    tool_outputs=NAMED,
    summary=st.just("") | TEXTS,
    turns=NAMED,
)
MEMORIES = st.lists(
    st.tuples(
        TEXTS,
        st.sampled_from(list(MemoryType)),
        st.sampled_from([Layer.SEMANTIC, Layer.PROCEDURAL]),
        st.sampled_from([Status.ACTIVE, Status.CONTESTED]),
    ),
    max_size=12,
).map(lambda rows: [memory(n, text, k, layer=la, status=s) for n, (text, k, la, s) in enumerate(rows)])
BUDGETS = st.integers(BUDGET_MIN, 64) | st.integers(BUDGET_MIN, 600) | st.just(BUDGET_MAX)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    MEMORIES,
    st.lists(TEXTS, max_size=5),
    VIEWS,
    BUDGETS,
    st.sampled_from(list(Format)),
    st.booleans(),
    st.sets(st.sampled_from(list(Section))).map(tuple),
    st.integers(0, 12),
)
def test_a_block_never_passes_its_budget_whatever_is_in_it(
    service, memories, rules, view, budget, form, best_last, sections, most
):
    house = House(service.token_counts, memories, rules, view)
    block = house.block(token_budget=budget, form=form, best_last=best_last, sections=sections, max_memories=most)
    assert block.token_count == service.embedder.count_tokens(block.text) <= budget
    assert service.embedder.count_tokens(block.prompt) <= budget
    if not block.lines:
        assert (block.text, block.prompt, house.used) == ("", "", [])
        return
    for line in block.lines:
        assert neutral(line.text, LONG_LINE_MAX_CHARS) == line.text
        assert not sections or line.section in sections
    assert [line.section for line in block.lines] == sorted(line.section for line in block.lines)
    keys = [same_key(line.text) for line in block.lines if not line.text.endswith(ELLIPSIS)]
    assert len(set(keys)) == len(keys)
    recalled = [line for line in block.lines if line.section not in (Section.PERMANENT, Section.SESSION)]
    assert len(recalled) <= most
    assert sorted(house.used) == sorted(line.memory_id for line in recalled)
    assert block.prompt.startswith(OPEN_MARKER + "\n")
    assert (block.prompt.count(OPEN_MARKER), block.prompt.count(CLOSE_MARKER)) == (1, 1)
    if form == Format.TEXT:
        assert block.text == block.prompt
    elif form == Format.MESSAGES:
        assert json.loads(block.text) == [{"role": "system", "content": block.prompt}]
    else:
        inner = json.loads(block.text.removeprefix(OPEN_MARKER).removesuffix(CLOSE_MARKER))
        assert [entry["text"] for entry in inner["memory"]] == [line.text for line in block.lines]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(MEMORIES, st.lists(TEXTS, max_size=3), VIEWS, st.sampled_from(list(Format)))
def test_with_room_for_all_nothing_is_left_out_and_both_orders_say_the_same(service, memories, rules, view, form):
    house = House(service.token_counts, memories, rules, view)
    last, first = (house.block(token_budget=BUDGET_MAX, form=form, best_last=order) for order in (True, False))
    assert (last.left_out_count, first.left_out_count) == (0, 0)
    assert {line.text for line in last.lines} == {line.text for line in first.lines}
    for section in Section:
        ids = [line.memory_id for line in first.lines if line.section == section]
        turned = [line.memory_id for line in last.lines if line.section == section]
        assert turned == (ids if section == Section.PERMANENT else ids[::-1])
        ranked = [line.score for line in first.lines if line.section == section]
        assert ranked == sorted(ranked, reverse=True)
    said = {same_key(neutral(rule, LONG_LINE_MAX_CHARS)) for rule in rules} - {""}
    assert {same_key(line.text) for line in last.lines if line.section == Section.PERMANENT} == said


@pytest.mark.parametrize("budget", [-1, 0, 1, 2, 16, BUDGET_MIN - 1, BUDGET_MAX + 1])
def test_a_budget_that_holds_no_line_is_refused(service, budget):
    house = House(service.token_counts, [memory(1, "a")])
    with pytest.raises(InvalidArgument, match=r"options\.token_budget"):
        house.block(token_budget=budget)
    assert house.recaller.asked == []


@pytest.mark.parametrize("most", [-1, TOP_K_MAX + 1])
def test_too_many_memories_are_refused(service, most):
    with pytest.raises(LimitExceeded, match=r"options\.max_memories"):
        House(service.token_counts).block(max_memories=most)


# -- what matters most comes first -----------------------------------------------------------------------------------


class Words:
    """A tokenizer whose tokens are words."""

    model_id = "words"
    counts_add_up = True

    def count_tokens(self, text: str) -> int:
        return len(text.split())


words = TokenCounts(Words)


def test_permanent_rules_then_goal_then_memories_then_turns_claim_the_budget():
    view = SessionView(goal="ship it", constraints=["no docker"], turns=[("user", f"turn {n}") for n in range(50)])
    memories = [memory(n, f"fact number {n}") for n in range(8)]
    house = House(words, memories, ["never drop a table"], view)
    sections = {}
    for budget in (34, 44, 64, 1000):
        lines = house.block(token_budget=budget).lines
        sections[budget] = [sum(line.section == section for line in lines) for section in Section]
        assert any(line.text == "never drop a table" for line in lines)
    permanent, facts, session = Section.PERMANENT - 1, Section.FACTS - 1, Section.SESSION - 1
    assert all(row[permanent] == 1 for row in sections.values())
    assert 0 < sections[34][facts] < sections[64][facts] == 8
    assert sections[1000][session] == 52


def test_state_takes_at_most_a_quarter_before_memories_do():
    view = SessionView(constraints=[f"rule number {n} of this session" for n in range(40)])
    block = House(words, [memory(n, f"fact number {n}") for n in range(8)], view=view).block(token_budget=100)
    state = [line for line in block.lines if line.section == Section.SESSION]
    assert sum(words.of(f"- {line.text}") for line in state) <= 25
    assert sum(line.section == Section.FACTS for line in block.lines) == 8


def test_what_does_not_fit_is_left_out_whole_and_counted_and_smaller_ones_follow():
    memories = [memory(0, "short one"), memory(1, "long " * 50), memory(2, "short two"), memory(3, "short three")]
    block = House(words, memories).block(token_budget=BUDGET_MIN, max_memories=3, best_last=False)
    assert [line.text for line in block.lines] == ["short one", "short two", "short three"]
    assert block.left_out_count == 1


def test_what_a_turn_says_already_or_another_memory_says_is_not_said_twice():
    view = SessionView(turns=[("user", "I like Go!")])
    memories = [memory(0, "i like go"), memory(1, "Ｔea, please"), memory(2, "tea please"), memory(3, "coffee")]
    block = House(words, memories, view=view).block(best_last=False, max_memories=2)
    assert [line.text for line in block.lines] == ["Ｔea, please", "coffee", "user: I like Go!"]
    without = House(words, memories, view=view).block(sections=(Section.FACTS,), best_last=False)
    assert [line.text for line in without.lines] == ["i like go", "Ｔea, please", "coffee"]


def test_the_last_that_a_user_said_is_the_query_and_only_what_is_wanted_is_recalled():
    view = SessionView(turns=[("user", "first"), ("user", "where is it?"), ("agent", "let me look")])
    house = House(words, view=view)
    house.block(query="")
    house.block(query="mine", sections=(Section.EVENTS, Section.FACTS))
    house.block(sections=(Section.PERMANENT, Section.SESSION))
    house.block(max_memories=0)
    assert [(asked.query, set(asked.condition.types)) for asked in house.recaller.asked] == [
        ("where is it?", set()),
        ("mine", {MemoryType.EVENT, MemoryType.FACT}),
    ]
    assert not any(asked.is_use for asked in house.recaller.asked)


def test_events_have_their_day_and_contested_statements_say_so():
    memories = [
        memory(0, "deploy failed", MemoryType.EVENT),
        memory(1, "port is 80", status=Status.CONTESTED),
        memory(2, "refund: pay back", MemoryType.RULE, layer=Layer.PROCEDURAL),
        memory(3, "tea", MemoryType.PREFERENCE),
    ]
    block = House(words, memories, degraded=(1,)).block()
    assert {line.section: line.text for line in block.lines} == {
        Section.PREFERENCES: "tea",
        Section.FACTS: "port is 80 (contested: another statement says otherwise)",
        Section.SKILLS: "refund: pay back",
        Section.EVENTS: "2023-11-14: deploy failed",
    }
    assert [section_of(one) for one in memories] == [
        Section.EVENTS,
        Section.FACTS,
        Section.SKILLS,
        Section.PREFERENCES,
    ]
    assert block.degraded


def test_long_lines_are_whole_where_there_is_room_and_short_where_there_is_none():
    long = " ".join(f"word{n}" for n in range(100))
    memories = [memory(1, long), memory(2, f"{long} and more")]
    roomy = House(words, memories, [long + " rule"]).block(token_budget=1000)
    assert [line.text for line in roomy.lines] == [long + " rule", f"{long} and more", long]
    scarce = House(words, memories, [long + " rule"]).block(token_budget=290)
    assert [line.text for line in scarce.lines] == [long + " rule", neutral(f"{long} and more"), long]
    tight = House(words, memories, [long + " rule"]).block(token_budget=160)
    assert [line.text for line in tight.lines] == [long + " rule", neutral(long)]  # half a rule is another rule
    assert tight.left_out_count == 1


def test_forms_that_need_more_tokens_shorten_lines_before_they_drop_any(service):
    memories = [memory(n, " ".join(f"{n}word{k}" for k in range(60))) for n in range(4)]
    whole = House(service.token_counts, memories).block(token_budget=BUDGET_MAX).token_count
    block = House(service.token_counts, memories).block(token_budget=whole, form=Format.JSON)
    assert (len(block.lines), block.left_out_count) == (4, 0)
    assert 1 <= sum(line.text.endswith(ELLIPSIS) for line in block.lines) < 4
    assert block.token_count == service.embedder.count_tokens(block.text) <= whole
