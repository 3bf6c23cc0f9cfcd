"""What holds for any conversation: turns are read one after the other, and nobody sets what is not his to set."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.memory.funnel import Message
from memsvc.memory.sessions import state as limits
from memsvc.memory.sessions.dialogue import tracked
from memsvc.memory.sessions.state import SessionState, StateChange, changed

SAID = st.sampled_from(
    [
        "Please write a crawler. Don't use Docker.",
        "帮我写爬虫，不要用 Docker",
        "算了，改成写监控脚本",
        "Actually, let's build a dashboard instead",
        "Never mind.",
        "以后都用中文回复",
        "It must use Go. At most 5 files.",
        "at most 3 files",
        "端口是8080，name = shop",
        "Should I use Docker?",
        "现在可以用 Docker 了",
        "The plan:\n1. Read the pages\n2. Store them\n3. Add tests",
        "I've finished the pages.",
        "- [x] read the logs\n- [ ] fix the loop",
        "接下来部署到测试环境",
        "Add retries",
        "Same constraints.",
        "ok",
    ]
)
TEXTS = st.lists(SAID | st.text(max_size=80), min_size=1, max_size=3).map(" ".join)
TURNS = st.lists(st.builds(Message, st.sampled_from(["user", "agent"]), TEXTS, st.just(0)), max_size=8)
LAW = settings(max_examples=100, deadline=None)


@LAW
@given(TURNS, st.integers(0, 8))
def test_turn_by_turn_gives_the_same_as_all_at_once(turns, at):
    assert tracked(tracked(SessionState(), turns[:at]), turns[at:]) == tracked(SessionState(), turns)


@LAW
@given(TURNS, st.lists(st.tuples(st.integers(0, 8), st.sampled_from(["tool", "system"]), TEXTS), max_size=4))
def test_tools_and_systems_between_the_turns_change_nothing(turns, others):
    mixed = list(turns)
    for at, speaker, text in others:
        mixed.insert(at, Message(speaker, text, 0))
    assert tracked(SessionState(), mixed) == tracked(SessionState(), turns)


@LAW
@given(TURNS, TEXTS)
def test_an_agent_sets_neither_goal_nor_constraints_nor_slots(turns, text):
    before = tracked(SessionState(), turns)
    after = tracked(before, [Message("agent", text, 0)])
    for name in ("goal", "constraints", "slots", "standing", "tool_outputs"):
        assert getattr(after, name) == getattr(before, name)


@LAW
@given(TURNS, TEXTS.filter(lambda text: "`" not in text), st.sampled_from(["user", "agent"]))
def test_code_and_quoted_lines_say_nothing(turns, text, speaker):
    before = tracked(SessionState(), turns)
    quoted = "\n".join(f"> {line}" for line in text.splitlines())
    for hidden in (f"```\n{text}\n```", f"```\n{text}", quoted):
        assert tracked(before, [Message(speaker, hidden, 0)]) == before


@LAW
@given(TURNS, TEXTS)
def test_what_an_injected_block_says_is_not_the_users(turns, text):
    before = tracked(SessionState(), turns)
    block = f'<memory source="memsvc">\n- {text.replace("<", "(").replace(">", ")")}\n</memory>'
    assert tracked(before, [Message("user", block, 0)]) == before


@LAW
@given(TURNS)
def test_what_is_finished_and_what_was_agreed_on_stays(turns):
    state = SessionState()
    for turn in turns:
        after = tracked(state, [turn])
        assert len(after.finished) == limits.FINISHED_MAX or set(state.finished) <= set(after.finished)
        assert set(state.slots) <= set(after.slots)
        state = after


@LAW
@given(TURNS, st.sampled_from(["reply in French", "使用 HTTPS"]))
def test_a_constraint_set_by_hand_outlives_every_change_of_the_goal(turns, text):
    state = changed(SessionState(), StateChange(goal="first", add_constraints=(text,)))
    after = tracked(state, [*turns, Message("user", "Forget that, let's fix the login bug.", 0)])
    assert text in after.constraints
    assert set(after.constraints) == set(after.standing)


def test_only_the_beginning_of_a_long_turn_is_read():
    text = "lorem ipsum, " * 400 + ". Please write a crawler."
    assert tracked(SessionState(), [Message("user", text, 0)]).goal == ""
