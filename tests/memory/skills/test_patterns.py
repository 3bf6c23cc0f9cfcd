"""Drafts from events: which events are a run, which runs are one pattern, and that a draft says what was done."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.memory.drafts import Draft
from memsvc.memory.owners import Owners
from memsvc.memory.skills.document import PLACEHOLDER, Document, parse
from memsvc.memory.skills.patterns import PATTERN_KEY, Proposals, _Run, _source, _step
from memsvc.memory.skills.skills import Skill
from memsvc.memory.transactions import Mutation
from memsvc.model import Event, Layer, Memory, MemoryType, Namespace, Scope, Source, Status

ANYHOW = Mutation("", b"", "test")


@pytest.fixture
def me(fresh_id) -> Owners:
    return Owners(user_id=fresh_id())


@pytest.fixture
def record(service, me):
    """Records an event and returns its id: record(type, summary, **payload), `session`, `tool` and `causes` beside."""

    def write(kind: str, summary: str, *, session: str = "", tool: str = "shop", causes=(), **payload: Any) -> str:
        draft = Draft(
            content=summary, source=Source(tool, session), event=Event(kind, payload, caused_by=tuple(causes))
        )
        return service.events.record(me, draft, ANYHOW).memory_id

    return write


@pytest.fixture
def proposed(service, me):
    return lambda: Proposals(service.skills).propose(me, None, "test")


def in_session(record, *steps: str, outcome: str = "success", task: str = "Refund an order", **fields: Any) -> str:
    """One run in a session of its own; returns the id of its start."""
    session = uuid.uuid4().hex
    start = record("task_start", task, session=session, **fields)
    for step in steps:
        record("step", step, session=session, **fields)
    record("task_end", "done", session=session, outcome=outcome, **fields)
    return start


def along_causes(record, *steps: str, outcome: str = "success", task: str = "Refund an order") -> str:
    """One run without a session: each event names the one before."""
    start = last = record("task_start", task)
    for step in steps:
        last = record("step", step, causes=[last])
    record("task_end", "done", causes=[last], outcome=outcome)
    return start


def steps_of(skills: list[Skill]) -> list[tuple[str, ...]]:
    return [skill.document.steps for skill in skills]


# -- what a run is ---------------------------------------------------------------------------------------------------


def test_a_run_follows_caused_by_without_a_session(record, proposed):
    starts = [along_causes(record, f"check stock of {n}", f"pay back {n}") for n in (11, 12, 13)]
    (draft,) = proposed()
    assert draft.document.steps == ("check stock of {value_1}", "pay back {value_1}")
    assert draft.memory.metadata["proposed_from"] == starts
    assert draft.memory.status == Status.PENDING


def test_runs_along_causes_and_in_sessions_are_one_pattern_and_may_run_side_by_side(record, proposed):
    in_session(record, "check stock", "pay back")
    in_session(record, "check stock", "pay back", tool="till")
    one = record("task_start", "Refund an order")
    other = record("task_start", "Something else")
    for step in ("check stock", "pay back"):
        one = record("step", step, causes=[one])
        other = record("step", f"not {step}", causes=[other])
    record("task_end", "done", causes=[other], outcome="success")
    assert proposed() == []
    record("task_end", "done", causes=[one], outcome="success")
    assert steps_of(proposed()) == [("check stock", "pay back")]


def test_an_event_whose_cause_belongs_to_a_finished_run_is_a_step_of_the_run_that_is_open(record, proposed):
    before = ""
    for _ in range(3):
        session = uuid.uuid4().hex
        record("task_start", "Refund an order", session=session)
        record("step", "check stock", session=session, causes=[before] if before else [])
        before = record("step", "pay back", session=session)
        record("task_end", "done", session=session, causes=[before], outcome="success")
    assert steps_of(proposed()) == [("check stock", "pay back")]


def test_a_run_that_another_session_ended_takes_nothing_more(record, proposed):
    for _ in range(3):
        session = uuid.uuid4().hex
        start = record("task_start", "Refund an order", session=session)
        record("step", "check stock", session=session)
        record("task_end", "done", session="elsewhere", causes=[start], outcome="success")
        record("step", "go home", session=session)
    assert steps_of(proposed()) == [("check stock",)]


def test_what_is_no_run_gives_nothing(record, proposed):
    for _ in range(3):
        record("step", "check stock", session="only-steps")
        record("task_end", "done", session="only-steps", outcome="success")
        record("task_start", "Refund an order")  # neither session nor cause
        record("step", "check stock")
        record("task_end", "done", outcome="success")
        session = uuid.uuid4().hex
        record("task_start", "Refund an order", session=session, tool="one")
        record("step", "check stock", session=session, tool="other")  # another tool's session of the same name
        record("task_end", "done", session=session, tool="one", outcome="success")
        for outcome in ("", 1, None):
            in_session(record, "no outcome", outcome=outcome)
        in_session(record)
    assert proposed() == []


def test_feedback_and_runs_of_skills_are_no_steps_and_types_are_read_in_any_case(record, proposed):
    for kind in ("step", "STEP", "Step"):
        session = uuid.uuid4().hex
        record("Task_Start", "Refund an order", session=session)
        record("feedback", f"well done {kind}", session=session)
        record(kind, "Check Stock" if kind == "STEP" else "check stock", session=session)
        record("skill_run", "skill x: success", session=session, outcome="failure")
        record("TASK_END", "done", session=session, outcome="Succeeded")
    assert steps_of(proposed()) == [("check stock",)]


# -- what makes runs one pattern -------------------------------------------------------------------------------------


def with_tools(record, *steps: tuple[str, dict[str, Any]]) -> None:
    session = uuid.uuid4().hex
    record("task_start", "Deploy a service", session=session)
    for summary, payload in steps:
        record("step", summary, session=session, **payload)
    record("task_end", "done", session=session, outcome="ok")


def test_steps_with_tool_and_action_are_compared_by_them_and_worded_as_last_said(record, proposed):
    with_tools(record, ("build image 7", {"action": "build"}), ("all is well", {"action": "check"}))
    with_tools(record, ("image 8 is built", {"action": "Build"}), ("smoke test is green", {"action": "check"}))
    with_tools(record, ("built it", {"action": "push"}), ("all is well", {"action": "check"}))  # another pattern
    with_tools(record, ("build image 9", {"action": "build"}), ("looks good", {"action": "check"}))
    (draft,) = proposed()
    assert draft.document.steps == ("build image {value_1}", "looks good")
    assert [parameter.description for parameter in draft.document.parameters] == ["Such as 9."]


def test_the_same_words_with_other_tools_are_other_steps(record, proposed):
    for action in ("plan", "apply", "destroy"):
        with_tools(record, ("ran it", {"action": action}))
    assert proposed() == []
    for _ in range(2):
        with_tools(record, ("ran it", {"action": "plan"}))
    assert steps_of(proposed()) == [("ran it",)]


def test_numbers_in_the_name_of_a_tool_do_not_part_runs(record, proposed):
    for number in (1, 2, 3):
        with_tools(record, (f"asked worker {number}", {"action": f"ask worker-{number}"}))
    assert steps_of(proposed()) == [("asked worker {value_1}",)]


# -- proposed once ---------------------------------------------------------------------------------------------------


def test_a_pattern_is_not_proposed_again_after_its_draft_was_approved_and_rewritten(service, me, record, proposed):
    for number in range(3):
        in_session(record, f"check stock of {number}")
    (draft,) = proposed()
    name = draft.document.name
    namespaces = [draft.memory.namespace]
    service.skills.decide(me, namespaces, name, True, "fine", ANYHOW)
    service.skills.push(me, None, draft.memory.skill.replace("check stock", "look into the stock"), ANYHOW)
    in_session(record, "check stock of 9")
    assert proposed() == []
    assert service.skills.get(namespaces, name, 0).memory.metadata[PATTERN_KEY] == draft.memory.metadata[PATTERN_KEY]


def test_patterns_with_the_same_task_get_names_of_their_own(record, proposed):
    for _ in range(3):
        in_session(record, "check stock")
        in_session(record, "ask the boss")
    names = [skill.document.name for skill in proposed()]
    assert names[0] == "refund-an-order"
    assert re.fullmatch(r"refund-an-order-[0-9a-f]{8}", names[1])


def test_the_longest_summaries_fit_into_a_draft(record, proposed):
    for number in range(3):
        in_session(record, f"check stock of {number}", "x" * 100, task="y " * 50)
    (draft,) = proposed()
    assert len(draft.document.name) <= 64
    assert draft.document.steps[1] == "x" * 100


# -- the text of a draft ---------------------------------------------------------------------------------------------


def run_of(*texts: str) -> _Run:
    def event(text: str) -> Memory:
        return Memory(
            memory_id="mem_018bcfe5-6800-7000-8000-000000000001",
            version=1,
            sequence=1,
            namespace=Namespace("default", Scope.USER, "u"),
            layer=Layer.EPISODIC,
            type=MemoryType.EVENT,
            content=text,
            event=Event("step", {"action": "act"}),
        )

    return _Run(event("do it"), [_step(event(text), "step") for text in texts], "success")


def drafted(*runs: _Run) -> Document:
    return parse(_source("name", runs))


@pytest.mark.parametrize(
    ("said", "step"),
    [
        (["call {order_5}"] * 3, "call {{order_5}}"),
        (["get https://shop/{id}"] * 3, "get https://shop/{{id}}"),
        (["use {name}"] * 3, "use {{name}}"),
        (['post {"id": 5}', 'post {"id": 6}', 'post {"id": 7}'], 'post {"id": {value_1} }'),
        (["call {order_5}", "call {order_6}", "call {order_7}"], "call {order_{value_1} }"),
        (["pay $5 now", "pay $6 now", "pay $6 now"], "pay $ {value_1} now"),
        (["{5}", "{6}", "{7}"], "{ {value_1} }"),
        (["from 5 to 5", "from 6 to 6", "from 7 to 7"], "from {value_1} to {value_1}"),
        (["from 5 to 5", "from 6 to 6", "from 7 to 8"], "from {value_1} to {value_2}"),
        (["from 5 to 9", "from 6 to 9", "from 7 to 9"], "from {value_1} to 9"),
        (["wait 5", "waited for 5", "wait 5"], "wait {value_1}"),
    ],
)
def test_what_differs_becomes_a_parameter_and_all_else_stays(said, step):
    document = drafted(*(run_of(text) for text in said))
    assert document.steps == (step,)
    assert PLACEHOLDER.sub("", step).count("{value_") == 0
    assert set(PLACEHOLDER.findall(step)) == {parameter.name for parameter in document.parameters}


def test_values_of_steps_that_other_runs_said_in_other_words_are_not_taken_for_the_same():
    runs = [
        run_of("open 5", "close 5"),
        run_of("open 5", "shut it"),
        run_of("opened", "close 5"),
        run_of("open 5", "close 5"),
    ]
    document = drafted(*runs)
    assert document.steps == ("open {value_1}", "close {value_2}")


WORDS = st.sampled_from(
    ["order", "查", "$", "{", "}", "{a}", "{{b}}", "${c}", ": ", "# ", "'", '"', "- ", " ", "-", "."]
)
VALUES = st.sampled_from(["5", "ORD-2025-01", "v1.2.3", "a@b.co", "https://x/{y}?z=1", "0042", "deadbeef1"])
TEMPLATES = st.lists(st.tuples(WORDS, VALUES | st.none()), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(TEMPLATES, min_size=2, max_size=2), min_size=3, max_size=4))
def test_a_draft_with_its_last_values_says_what_the_last_run_did(runs):
    texts = [["do " + "".join(word + (value or "") for word, value in step) + " end" for step in run] for run in runs]
    document = drafted(*(run_of(*run) for run in texts))
    such_as = {
        parameter.name: parameter.description.removeprefix("Such as ").removesuffix(".")
        for parameter in document.parameters
    }
    used: set[str] = set()
    for step, said in zip(document.steps, texts[-1], strict=True):
        used |= set(PLACEHOLDER.findall(step))
        filled = PLACEHOLDER.sub(lambda match: such_as[match.group(1)], step)
        assert bare(filled) == bare(said)
    assert used == such_as.keys()


def bare(text: str) -> str:
    """Without what escaping may add: spaces, and braces that are doubled."""
    return re.sub(r"[\s{}]", "", text)
