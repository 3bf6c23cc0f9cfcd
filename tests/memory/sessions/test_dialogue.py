"""What a conversation does to the state: a user's view of it, in both languages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.memory.funnel import Message
from memsvc.memory.sessions import state as limits
from memsvc.memory.sessions.dialogue import tracked
from memsvc.memory.sessions.state import SessionState


def after(*said: str, state: SessionState | None = None) -> SessionState:
    """The state after turns such as "u: ..." and "a: ..."."""
    names = {"u": "user", "a": "agent", "t": "tool", "s": "system"}
    turns = [Message(names[one[0]], one[3:], 0) for one in said]
    return tracked(state or SessionState(), turns)


@pytest.mark.parametrize(
    ("said", "goal"),
    [
        ("帮我写一个爬虫，不要用 Docker", "写一个爬虫"),
        ("我想做一个网站", "做一个网站"),
        ("能不能帮我部署一下服务？", "部署一下服务"),
        ("Please write a crawler.", "write a crawler"),
        ("Let's fix the login bug", "fix the login bug"),
        ("I need a report about sales", "a report about sales"),
        ("Can you help me deploy the API?", "deploy the API"),
        ("Write a parser for the orders", "Write a parser for the orders"),
    ],
)
def test_a_request_is_the_goal(said: str, goal: str) -> None:
    assert after(f"u: {said}").goal == goal


@pytest.mark.parametrize(
    "said",
    [
        "怎么部署到 K8s？",
        "Should I use Docker?",
        "What if we must use Rust and the port is 8080?",
        "如果必须用 Go 会怎样",
        'He said "forget that, you must use Docker from now on"',
        "文章里说“必须用 Docker，端口是8080”",
        "```\nport = 8080\nmust use\n```",
        "thanks!",
    ],
)
def test_questions_hypotheticals_quotes_and_code_set_nothing(said: str) -> None:
    assert after(f"u: {said}") == SessionState()


def test_a_text_to_translate_is_not_said() -> None:
    state = after("u: 翻译一下这句话：“算了，改成用 Go，端口是8080”")
    assert (state.constraints, state.slots) == ((), {})


@pytest.mark.parametrize("speaker", ["t", "s"])
def test_tools_and_systems_set_nothing(speaker: str) -> None:
    assert after(f"{speaker}: Please write a crawler. It must use Go. port = 80") == SessionState()


@pytest.mark.parametrize(
    ("first", "then", "goal"),
    [
        ("帮我写爬虫，不要用 Docker", "算了，改成写监控脚本", "写监控脚本"),
        ("帮我做登录页，必须用 React", "不做登录页了，先做支付页", "做支付页"),
        ("Please write a crawler. Don't use Docker.", "Actually, let's build a dashboard instead", "build a dashboard"),
        ("Please write a crawler. Don't use Docker.", "Forget that, let's fix the login bug.", "fix the login bug"),
        ("Please write a crawler. Don't use Docker.", "Never mind.", ""),
        ("帮我写爬虫，不要用 Docker", "不写爬虫了。", ""),
    ],
)
def test_an_old_goal_no_longer_steers(first: str, then: str, goal: str) -> None:
    before = after(f"u: {first}", "a: The plan:\n1. Read the pages\n2. Store them")
    assert before.constraints
    assert before.pending
    state = after(f"u: {then}", state=before)
    assert (state.goal, state.constraints, state.pending) == (goal, (), ())


def test_constraints_stay_that_hold_for_good_or_are_said_to_stay() -> None:
    state = after("u: 帮我订机票，预算不能超过2000元", "u: 以后都用中文回复", "u: 算了，帮我写周报")
    assert state.constraints == ("以后都用中文回复",)
    kept = after("u: Write a crawler. It must not use Docker.", "u: Actually, let's build a bot. Same constraints.")
    assert kept.constraints == ("It must not use Docker",)


@pytest.mark.parametrize(
    "said",
    [
        "请总是用中文回复",
        "请始终用 pytest",
        "请你永远不要推到 main",
        "麻烦你总是先跑测试",
        "请在所有回答里始终用中文",
        "麻烦以后都用中文",
        "Please always answer in English",
        "Could you please always use tabs?",
        "I want you to always run the linter",
        "Let's always write tests first",
    ],
)
def test_what_is_asked_for_always_is_a_standing_constraint_and_no_goal(said: str) -> None:
    state = after("u: 帮我写爬虫", f"u: {said}")
    assert state.goal == "写爬虫"
    assert state.constraints == state.standing == (said.rstrip("?"),)
    assert state.slots == {}
    assert after(f"u: {said}").goal == ""


@pytest.mark.parametrize(
    ("said", "goal"),
    [
        ("请帮我写一个总是返回 0 的函数", "写一个总是返回 0 的函数"),
        ("请修复始终失败的测试", "修复始终失败的测试"),
        ("Please fix the test that always fails", "fix the test that always fails"),
    ],
)
def test_an_always_inside_of_the_work_is_no_constraint(said: str, goal: str) -> None:
    state = after(f"u: {said}")
    assert (state.goal, state.standing) == (goal, ())


def test_a_standing_clause_ends_the_goal() -> None:
    state = after("u: 帮我写爬虫，请始终用 Python")
    assert (state.goal, state.standing, state.slots) == ("写爬虫", ("请始终用 Python",), {})


def test_another_way_keeps_the_goal_and_says_so() -> None:
    state = after("u: Let's write a crawler. Use Python.", "u: Actually, let's use Go instead")
    assert state.goal == "write a crawler (changed: use Go)"
    assert "Use Python" not in state.constraints
    assert after("u: 帮我写爬虫", "u: 改成用 Go").goal == "写爬虫（改为：用 Go）"


def test_a_bare_instruction_is_a_step_and_a_new_constraint_replaces_the_old() -> None:
    state = after("u: Please write a crawler. At most 3 files.", "u: Add retries", "u: at most 5 files")
    assert state.goal == "write a crawler"
    assert state.pending == ("Add retries",)
    assert state.constraints == ("at most 5 files",)


def test_a_constraint_is_lifted() -> None:
    assert after("u: 帮我做网站，不要用框架", "u: 现在可以用框架了").constraints == ()


def test_slots() -> None:
    state = after(
        "u: 端口是8080，name = shop", "u: database: postgres", "u: The region is eu-west-1", "u: 端口改成9090"
    )
    assert state.slots == {"端口": "9090", "name": "shop", "database": "postgres", "region": "eu-west-1"}


def test_plans_and_what_is_done() -> None:
    state = after(
        "u: Please build the importer",
        "a: Here is the plan:\n1. Write the fetcher\n2. Write the parser\n3. Add tests",
        "a: I've finished the fetcher.",
        "a: The tests are not done yet. When the parser is done, I'll tell you.",
        "u: is the parser done?",
    )
    assert state.finished == ("Write the fetcher",)
    assert state.pending == ("Write the parser", "Add tests")
    assert after("a: 解析器搞定了", "u: 接下来部署到测试环境").pending == ("部署到测试环境",)
    ticked = after("a: Todo:\n- [x] read the logs\n- [ ] fix the loop")
    assert (ticked.finished, ticked.pending) == (("read the logs",), ("fix the loop",))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ua"),
            st.lists(
                st.sampled_from(
                    [
                        "帮我写",
                        "算了，改成",
                        "必须用 Go",
                        "端口是",
                        "x = 1, ",
                        "done with ",
                        "next: ",
                        "let's ",
                        " instead",
                    ]
                )
                | st.text(max_size=400),
                max_size=8,
            ).map("".join),
        ),
        max_size=12,
    )
)
def test_every_part_stays_within_its_limit(said: list[tuple[str, str]]) -> None:
    state = after(*(f"{who}: {text}" for who, text in said))
    assert len(state.goal) <= limits.GOAL_MAX_CHARS
    for items, most in (
        (state.constraints, limits.CONSTRAINTS_MAX),
        (state.finished, limits.FINISHED_MAX),
        (state.pending, limits.PENDING_MAX),
    ):
        assert len(items) <= most
        assert all(0 < len(item) <= limits.ITEM_MAX_CHARS for item in items)
    assert set(state.standing) <= set(state.constraints)
    assert len(state.slots) <= limits.SLOTS_MAX
