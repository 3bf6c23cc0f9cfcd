"""What a session sends next, without a server: order, replays, losses, refusals, and what does not fit."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc_client import (
    Dropped,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Timeout,
    Unavailable,
    outbox,
)
from memsvc_client._proto import session_service_pb2 as spb
from memsvc_client.context import Contexts
from memsvc_client.core import Core
from memsvc_client.session_core import STATUS_ATTEMPTS, SessionCore


def core(**changed: Any) -> Core:
    options = {
        "owners": {"user_id": "u"},
        "token": None,
        "tls": False,
        "tool": "t",
        "timeout_s": 1.0,
        "write_timeout_s": 5.0,
        "cache_ttl_s": 60.0,
        "cache_entries": 8,
        "recent_count": 0,
        "timer_s": lambda: 0.0,
        "clock_s": lambda: 1_700_000_000.0,
        "random": lambda: 1.0,
    }
    return Core("127.0.0.1:1", **{**options, **changed})


def session(**changed: Any) -> SessionCore:
    shared = core()
    options = {"session_id": "s", "goal": "", "tool": "", "ttl_s": None, "consolidate": True}
    return SessionCore(shared, Contexts(shared, 8), clock_s=lambda: 1_700_000_000.0, **{**options, **changed})


def say(state: SessionCore, *texts: str, speaker: str = "user") -> None:
    for text in texts:
        for item in state.turns([{"speaker": speaker, "content": text}]):
            state.take(item)


class Model:
    """The server as the contract has it: sessions know their request_ids."""

    def __init__(self) -> None:
        self.turns: list[str] | None = None
        self.outputs: list[tuple[str, str]] = []
        self.known: set[str] = set()
        self.ended = False
        self.asked: list[str] = []

    def answer(self, step: Any) -> Any:
        self.asked.append(step.method)
        if step.method == "Start":
            resumed = self.turns is not None
            if not resumed:
                self.turns, self.outputs, self.known = [], [], set()
            return spb.SessionServiceStartResponse(resumed=resumed, session={"turn_count": len(self.turns or ())})
        if self.turns is None:
            raise NotFound("no open session", reason="NOT_FOUND")
        if step.method == "AppendTurns":
            if step.request.request_id not in self.known:
                self.known.add(step.request.request_id)
                self.turns.extend(turn.content for turn in step.request.turns)
            return spb.SessionServiceAppendTurnsResponse(turn_count=len(self.turns))
        if step.method == "RecordToolOutput":
            if step.request.request_id not in self.known:
                self.known.add(step.request.request_id)
                self.outputs.append((step.request.tool, step.request.content))
            return spb.SessionServiceRecordToolOutputResponse()
        self.ended = True
        return spb.SessionServiceEndResponse(consolidation={"session_id": "s", "total_turns": len(self.turns)})


def run(state: SessionCore, model: Model, fates: Any = ()) -> None:
    """Sends until nothing is left; a fate says what becomes of each request: arrives, lost before, or lost after."""
    fates = iter(fates)
    while (step := state.next_step()) is not None:
        fate = next(fates, "ok")
        if fate == "gone":
            state.failed(step, Unavailable("gone"))
            continue
        try:
            response = model.answer(step)
        except NotFound as error:
            state.failed(step, error)
            continue
        if fate == "unheard":
            state.failed(step, Timeout("no answer"))
        else:
            state.answered(step, response, 0.0)


@given(st.lists(st.sampled_from(["ok", "gone", "unheard"]), max_size=40), st.integers(1, 6))
def test_whatever_is_lost_on_the_way_all_arrives_in_order_and_once(fates, count):
    state, model = session(), Model()
    state.want()
    for i in range(count):
        say(state, f"turn {i}")
        state.take(state.tool_output("tool", f"output {i}"))
    state.end(None)
    run(state, model, fates)
    assert model.turns == [f"turn {i}" for i in range(count)]
    assert model.outputs == [("tool", f"output {i}") for i in range(count)]
    assert model.ended
    assert state.is_finished
    assert state.degraded == []
    assert state.buffered_count == 0


def test_a_request_comes_again_as_it_was():
    state = session()
    say(state, "one")
    state.answered(state.next_step(), spb.SessionServiceStartResponse(), 0.0)
    first = state.next_step()
    sent = first.request.SerializeToString()
    assert state.failed(first, Timeout("late")) > 0.0
    assert state.degraded == ["SERVER_TIMEOUT"]
    assert state.next_step().request.SerializeToString() == sent
    assert first.request.turns[0].time.seconds == 1_700_000_000


def test_equal_outputs_are_two_and_one_that_comes_again_is_one():
    state, model = session(), Model()
    for _ in range(2):
        state.take(state.tool_output("ls", "a b"))
    run(state, model, ["ok", "unheard", "gone", "unheard", "ok", "unheard", "ok"])
    assert model.outputs == [("ls", "a b")] * 2
    assert set(model.asked) == {"Start", "RecordToolOutput"}


def test_pauses_grow_to_a_second_and_the_servers_own_wish_counts():
    state = session()
    state.want()
    delays = [state.failed(state.next_step(), Unavailable("gone")) for _ in range(8)]
    assert delays == sorted(delays)
    assert (delays[0], delays[-1]) == (0.1, 1.0)
    assert state.failed(state.next_step(), Unavailable("stopping", retry_delay_s=7.0)) == 7.0


def test_an_unknown_session_is_opened_again_and_the_turn_that_met_it_goes_there():
    state, model = session(goal="ship it"), Model()
    state.want()
    assert state.next_step().request.goal == "ship it"
    say(state, "one")
    run(state, model)
    model.turns = None
    say(state, "two")
    run(state, model)
    assert model.turns == ["two"]
    assert model.asked == ["Start", "AppendTurns", "AppendTurns", "Start", "AppendTurns"]
    assert state.degraded == ["SESSION_RESTARTED"]
    assert state.next_step() is None


def test_a_restart_does_not_bring_an_old_goal_back():
    state, model = session(goal="old"), Model()
    state.want()
    run(state, model)
    say(state, "something else now")
    run(state, model)
    model.turns = None
    say(state, "two")
    step = state.next_step()
    state.failed(step, NotFound("no open session", reason="NOT_FOUND"))
    assert (state.next_step().method, state.next_step().request.goal) == ("Start", "")


def test_sessions_that_get_lost_again_and_again_are_opened_with_pauses():
    state = session()
    say(state, "one")
    delays = []
    for _ in range(4):
        state.answered(state.next_step(), spb.SessionServiceStartResponse(), 0.0)
        delays.append(state.failed(state.next_step(), NotFound("unknown")))
    assert delays[0] == 0.0
    assert 0.0 < delays[1] < delays[2] < delays[3]


def test_what_the_server_refuses_is_named_and_the_next_goes_out():
    state = session()
    say(state, "one", "two", "three")
    state.answered(state.next_step(), spb.SessionServiceStartResponse(), 0.0)
    assert state.failed(state.next_step(), InvalidArgument("too long", reason="LIMIT_EXCEEDED")) == 0.0
    assert state.dropped == [Dropped("turns", 1, 1, "LIMIT_EXCEEDED")]
    for _ in range(STATUS_ATTEMPTS):
        assert state.next_step().request.turns[0].content == "two"
        state.failed(state.next_step(), Internal("bug"))
    assert state.next_step().request.turns[0].content == "three"
    assert state.dropped[1:] == [Dropped("turns", 2, 1, "INTERNAL")]
    state.answered(state.next_step(), spb.SessionServiceAppendTurnsResponse(turn_count=1), 0.0)
    assert (state.degraded, state.dropped_count, state.turn_count) == (["DROPPED"], 2, 1)


def test_a_session_that_can_not_be_opened_says_so_and_sends_no_more():
    state = session()
    say(state, "one")
    state.failed(state.next_step(), PermissionDenied("no", reason="DENIED"))
    say(state, "two")
    assert state.next_step() is None
    assert state.degraded == ["SESSION_REFUSED", "DROPPED"]
    assert [(d.first, d.count, d.cause) for d in state.dropped] == [(1, 2, "DENIED")]
    state.end(None)
    assert state.is_finished
    assert state.end_result() is None


def test_an_id_whose_session_is_being_consolidated_is_waited_for():
    state, model = session(), Model()
    say(state, "one")
    ended = FailedPrecondition("has ended", reason="NOT_ACTIVE")
    assert state.failed(state.next_step(), ended) > 0.0
    assert state.degraded == ["SESSION_ENDING"]
    assert state.can_assemble(state.watermark)
    assert state.context_call(state.prepare_context("q", {})).rpc == "AssembleContext"
    assert state.failed(state.next_step(), ResourceExhausted("too many are open")) > 0.0
    assert state.degraded == ["SERVER_RESOURCE_EXHAUSTED"]
    run(state, model)
    assert (model.turns, state.degraded) == (["one"], [])


def test_a_full_buffer_drops_the_oldest_that_was_not_sent_and_names_it(caplog):
    state = session()
    say(state, "secret 0")
    state.answered(state.next_step(), spb.SessionServiceStartResponse(), 0.0)
    in_flight = state.next_step()
    with caplog.at_level(logging.WARNING, "memsvc_client"):
        say(state, *(f"secret {i}" for i in range(1, outbox.BUFFER_TURNS + 3)))
    assert state.dropped == [Dropped("turns", 2, 3, "BUFFER_FULL")]
    assert (state.dropped_count, state.buffered_count) == (3, outbox.BUFFER_TURNS)
    assert state.next_step() == in_flight
    assert [record.message for record in caplog.records] == [
        "a session drops turns from number 2 on: BUFFER_FULL",
    ]
    assert state.dropped[0].to_dict() == {"kind": "turns", "first": 2, "count": 3, "cause": "BUFFER_FULL"}


def test_the_buffer_is_bounded_in_bytes_too(monkeypatch):
    monkeypatch.setattr(outbox, "BUFFER_BYTES", 10_000)
    state = session()
    say(state, *("x" * 4000 for _ in range(4)))
    assert state.dropped == [Dropped("turns", 1, 2, "BUFFER_FULL")]
    say(state, "y" * 50_000)  # alone it is taken, whatever its size
    assert state.buffered_count == 1


def test_room_is_waited_for_while_the_server_is_well_and_not_in_trouble(monkeypatch):
    monkeypatch.setattr(outbox, "BUFFER_TURNS", 1)
    state = session()
    say(state, "one")
    (item,) = state.turns([{"speaker": "user", "content": "two"}])
    assert not state.has_room(item)
    state.failed(state.next_step(), Unavailable("gone"))
    assert state.has_room(item)


def test_discarding_takes_back_what_was_not_sent():
    state, model = session(consolidate=False), Model()
    say(state, "one")
    run(state, model)
    say(state, "two", "three")
    state.end(None)
    step = state.next_step()
    assert (step.method, step.request.discard) == ("End", True)
    run(state, model)
    assert (model.turns, state.degraded) == (["one"], [])
    unopened = session(consolidate=True)
    say(unopened, "one")
    unopened.end(False)
    run(unopened, Model())
    assert (unopened.degraded, unopened.end_result()) == ([], None)


def test_the_end_of_a_session_that_is_gone_and_of_one_that_nobody_opened():
    state, model = session(), Model()
    state.want()
    run(state, model)
    model.turns = None
    state.end(None)
    run(state, model)
    assert (state.end_result(), state.degraded) == (None, ["SESSION_LOST"])
    handle = session()
    handle.end(None)
    run(handle, Model())
    with pytest.raises(NotFound):
        handle.end_result()


def test_the_first_end_counts_and_nothing_follows_it():
    state, model = session(), Model()
    say(state, "one")
    state.end(True)
    state.end(False)
    run(state, model)
    assert model.asked == ["Start", "AppendTurns", "End"]
    assert state.end_result().total_turns == 1
    with pytest.raises(FailedPrecondition, match="has ended"):
        say(state, "two")
    with pytest.raises(FailedPrecondition, match="has ended"):
        state.prepare_context("x", {})


def test_two_calls_that_find_the_session_gone_open_it_once():
    state, model = session(), Model()
    state.want()
    run(state, model)
    model.turns = None
    before = state.loss_count
    gone = NotFound("no open session", reason="NOT_FOUND")
    assert state.forgotten(gone, before)
    run(state, model)
    assert state.forgotten(gone, before)  # the late one asks again; nothing is opened
    assert state.next_step() is None
    assert not state.forgotten(Unavailable("gone"), before)


def test_only_a_prompt_answer_closes_the_breaker():
    state = session()
    breaker = state.core.breaker
    for _ in range(3):
        breaker.failed()
    state.want()
    state.answered(state.next_step(), spb.SessionServiceStartResponse(), took_s=3.0)
    assert breaker.is_open
    say(state, "one")
    state.answered(state.next_step(), spb.SessionServiceAppendTurnsResponse(), took_s=0.5)
    assert not breaker.is_open


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([{"speaker": "user", "content": " "}], r"turns\[0\].content is empty"),
        ([{"speaker": "user", "content": "x"}, {"speaker": "nobody", "content": "x"}], r"turns\[1\].speaker"),
        ([{"speaker": "user", "contents": "x"}], "did you mean 'content'"),
        ("text", r"turns must be a list"),
    ],
)
def test_wrong_turns_are_refused_at_once(records, told):
    with pytest.raises(InvalidArgument, match=told):
        session().turns(records)


def test_wrong_outputs_and_ids_are_refused_at_once():
    for name, output in (("", "x"), ("t", {"a": 1}), ("t", "\ud800")):
        with pytest.raises(InvalidArgument):
            session().tool_output(name, output)
    for changed in ({"session_id": ""}, {"session_id": "\ud800"}, {"goal": "\ud800"}):
        with pytest.raises(InvalidArgument):
            session(**changed)


def test_400_turns_go_in_requests_of_200():
    items = session().turns({"role": "user", "content": f"turn {i}"} for i in range(401))
    assert [item.count for item in items] == [200, 200, 1]
    assert len({item.request.request_id for item in items}) == 3


def test_a_recall_starts_from_the_last_user_turn():
    state = session()
    records = [("user", "first"), ("user", "second " + "x" * 9000), ("agent", "answer")]
    (item,) = state.turns([{"speaker": speaker, "content": content} for speaker, content in records])
    assert state.take(item).startswith("second")
    assert len(state.context_call(state.prepare_context(None, {})).request.query) == 8192
    (item,) = state.turns([{"speaker": "agent", "content": "more"}])
    assert state.take(item) == ""


def test_ids_are_the_callers_the_clients_or_fresh():
    shared = core(owners={"user_id": "u", "session_id": "mine"})
    options = {"goal": "", "tool": "", "ttl_s": 2.5, "consolidate": True, "clock_s": lambda: 0.0}
    made = SessionCore(shared, Contexts(shared, 8), session_id=None, **options)
    made.want()
    start = made.next_step().request
    assert (made.session_id, start.owners.session_id, start.tool) == ("mine", "mine", "t")
    assert (start.ttl.seconds, start.ttl.nanos) == (2, 500_000_000)
    fresh = {session(session_id=None).session_id for _ in itertools.repeat(None, 3)}
    assert len(fresh) == 3
