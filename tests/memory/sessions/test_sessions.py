"""Open sessions: order, replay, time to live, restart, secrets, limits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memsvc.errors import (
    EtagMismatch,
    InvalidArgument,
    LimitExceeded,
    NotActive,
    NotFound,
    RequestIdReused,
    ResourceExhausted,
)
from memsvc.memory.funnel import Message
from memsvc.memory.owners import Owners
from memsvc.memory.policies import Policies
from memsvc.memory.sessions.sessions import Session, Sessions, SessionSettings
from memsvc.memory.sessions.state import StateChange
from memsvc.memory.transactions import Mutation
from memsvc.storage.session_log import FileSessionLog

HOUR_US = 3_600_000_000
ONE = Owners(user_id="u", session_id="one")
ONCE = Mutation("", b"", "local")


def words(text: str) -> int:
    return len(text.split())


class House:
    """Sessions on a journal that can be opened again, with a clock of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now_us = HOUR_US * 1000
        self.settings = SessionSettings(ttl_us=HOUR_US, summary_tokens=60, sessions_max=50)
        self.policies = Policies("")
        self.ids = iter(range(1000))
        self.opened: list[Sessions] = []

    def open(self) -> Sessions:
        self.opened.append(
            Sessions(
                FileSessionLog(self.directory),
                clock_us=lambda: self.now_us,
                count_tokens=words,
                settings=self.settings,
                policies=self.policies,
                make_id=lambda: f"made-{next(self.ids)}",
            )
        )
        return self.opened[-1]

    def again(self) -> Sessions:
        """A new process on the same journal."""
        self.opened[-1].close()
        return self.open()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    for sessions in made.opened:
        sessions.close()


def said(*contents: str, speaker: str = "user") -> list[Message]:
    return [Message(speaker, content, i) for i, content in enumerate(contents)]


def test_a_session_is_opened_once_and_named_when_it_has_no_id(house: House) -> None:
    sessions = house.open()
    first, resumed = sessions.start(ONE, tool="shell", goal="ship it")
    assert (first.tool, first.state.goal, first.session_id, resumed) == ("shell", "ship it", "one", False)
    again, resumed = sessions.start(ONE, tool="other")
    assert (again.tool, resumed) == ("shell", True)
    named, _ = sessions.start(Owners(user_id="u"))
    assert named.session_id == "made-0"


def test_numbers_window_summary_and_all_turns(house: House) -> None:
    sessions = house.open()
    sessions.start(ONE)
    assert sessions.append_turns(ONE, said("We decided to keep table A"), ONCE) == (1, 1)
    assert sessions.append_turns(ONE, said(*(f"number {i}" for i in range(9))), ONCE) == (2, 10)
    session = sessions.get(ONE)
    assert [turn.content for turn in session.window] == [f"number {i}" for i in range(3, 9)]
    assert "keep table A" in session.summary
    assert len(sessions.turns(session.namespace)) == 10


@pytest.mark.parametrize("read_first", [True, False])
def test_a_restart_changes_nothing(house: House, read_first: bool) -> None:
    sessions = house.open()
    sessions.start(ONE, tool="shell")
    for i in range(40):
        turns = said(f"We decided that part {i} uses port 80{i}, because it must.")
        sessions.append_turns(ONE, turns, Mutation(f"r{i}", b"f", "local"))
        if read_first and i % 7 == 0:
            sessions.get(ONE)
    sessions.record_tool_output(ONE, "ls", "a b c", Mutation("o", b"f", "local"))
    sessions.update_state(ONE, StateChange(goal="by hand", set_slots={"k": "v"}))
    before = sessions.get(ONE)
    restored = house.again()
    assert restored.get(ONE) == before
    assert restored.append_turns(ONE, said("We decided that"), Mutation("r39", b"f", "local")) == (40, 40)
    assert not restored.record_tool_output(ONE, "ls", "a b c", Mutation("o", b"f", "local"))
    assert restored.get(ONE) == before


def test_a_replayed_call_appends_nothing(house: House) -> None:
    sessions = house.open()
    sessions.start(ONE)
    call = Mutation("r", b"one", "local")
    assert sessions.append_turns(ONE, said("a", "b"), call) == (1, 2)
    sessions.append_turns(ONE, said("c"), ONCE)
    assert sessions.append_turns(ONE, said("a", "b"), call) == (1, 2)
    with pytest.raises(RequestIdReused):
        sessions.append_turns(ONE, said("x"), Mutation("r", b"two", "local"))
    assert sessions.get(ONE).turn_count == 3


@pytest.mark.parametrize("restarts", [False, True])
def test_a_replayed_output_is_kept_once_and_answers_as_it_did(house: House, restarts: bool) -> None:
    sessions = house.open()
    sessions.start(ONE)
    call = Mutation("r", b"one", "local")
    assert sessions.record_tool_output(ONE, "ls", "y" * 501, call)
    if restarts:
        sessions = house.again()
    assert sessions.record_tool_output(ONE, "ls", "y" * 501, call)
    assert not sessions.record_tool_output(ONE, "ls", "y", ONCE)
    assert not sessions.record_tool_output(ONE, "ls", "y", ONCE)
    with pytest.raises(RequestIdReused):
        sessions.record_tool_output(ONE, "ls", "z", Mutation("r", b"two", "local"))
    with pytest.raises(RequestIdReused):
        sessions.append_turns(ONE, said("x"), Mutation("r", b"of another method", "local"))
    assert [len(output.content) for output in sessions.get(ONE).state.tool_outputs] == [500, 1, 1]


def test_a_journal_from_before_outputs_had_request_ids_is_read(house: House) -> None:
    sessions = house.open()
    session, _ = sessions.start(ONE)
    sessions.close()
    # ["ls", "a b", false, 3600000000001] behind tag 4, as the first journals had it
    old = bytes.fromhex("920494a26c73a3612062c2cf0000034630b8a001")
    log = FileSessionLog(house.directory)
    log.append(session.namespace, old)
    log.close()
    restored = house.open()
    assert [(o.tool, o.content, o.truncated, o.time_us) for o in restored.get(ONE).state.tool_outputs] == [
        ("ls", "a b", False, 3_600_000_000_001)
    ]
    assert not restored.record_tool_output(ONE, "ls", "c", ONCE)


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads take turns every few microseconds, so that a missing lock shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("many_switches")
def test_parallel_appends_lose_nothing_and_keep_each_calls_order(house: House) -> None:
    sessions = house.open()
    session, _ = sessions.start(ONE)
    answers: list[tuple[int, int]] = []

    def work(worker: int) -> None:
        for i in range(20):
            answers.append(sessions.append_turns(ONE, said(*(f"{worker}.{i}.{k}" for k in range(3))), ONCE))

    threads = [threading.Thread(target=work, args=(w,)) for w in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    turns = [turn.content for turn in sessions.turns(session.namespace)]
    assert sorted(first for first, _ in answers) == list(range(1, 480, 3))
    assert len(set(turns)) == len(turns) == 480
    for at in range(0, 480, 3):
        assert [turn.rpartition(".")[0] for turn in turns[at : at + 3]] == [turns[at].rpartition(".")[0]] * 3
    for worker in range(8):
        own = [turn for turn in turns if turn.startswith(f"{worker}.")]
        assert own == [f"{worker}.{i}.{k}" for i in range(20) for k in range(3)]


def test_time_to_live(house: House) -> None:
    sessions = house.open()
    sessions.start(ONE)
    house.now_us += HOUR_US - 1
    assert sessions.get(ONE).expire_time_us == house.now_us + HOUR_US
    restored = house.again()
    house.now_us += HOUR_US - 1
    restored.get(ONE)
    house.now_us += HOUR_US
    assert restored.sweep() == 1
    with pytest.raises(NotFound):
        restored.get(ONE)
    assert not list(house.directory.glob("*.log"))
    _, resumed = restored.start(ONE)
    assert not resumed


def test_an_expired_session_is_gone_without_a_sweep(house: House) -> None:
    sessions = house.open()
    sessions.start(ONE, ttl_us=10)
    house.now_us += 10
    with pytest.raises(NotFound):
        sessions.append_turns(ONE, said("late"), ONCE)
    sessions.start(ONE, ttl_us=10)
    house.now_us += 10
    with pytest.raises(NotFound):
        house.again().get(ONE)


def refuses_all_but_reading_its_turns(sessions: Sessions, session: Session) -> None:
    for call in (
        lambda: sessions.append_turns(ONE, said("late"), ONCE),
        lambda: sessions.get(ONE),
        lambda: sessions.start(ONE),
        lambda: sessions.record_tool_output(ONE, "ls", "x", ONCE),
        lambda: sessions.update_state(ONE, StateChange(goal="x")),
    ):
        with pytest.raises(NotActive, match="has ended"):
            call()
    assert sessions.sweep() == 0
    assert sessions.list(Owners(user_id="u"), 50, "") == ([], "")
    assert sessions.seal(session.namespace).turn_count == 1
    assert [turn.content for turn in sessions.turns(session.namespace)] == ["kept"]


def test_a_sealed_session_keeps_its_turns_until_it_is_dropped(house: House) -> None:
    sessions = house.open()
    session, _ = sessions.start(ONE)
    sessions.append_turns(ONE, said("kept"), ONCE)
    assert sessions.seal(session.namespace).sealed
    house.now_us += 100 * HOUR_US
    refuses_all_but_reading_its_turns(sessions, session)
    sessions = house.again()
    refuses_all_but_reading_its_turns(sessions, session)
    sessions.drop(session.namespace)
    assert sessions.open_session(session.namespace) is None
    assert sessions.turns(session.namespace) == []
    with pytest.raises(NotFound):
        sessions.seal(session.namespace)
    assert house.again().open_session(session.namespace) is None


def test_a_secret_never_reaches_the_disk(house: House) -> None:
    sessions = house.open()
    secret = "hunter2Kq9!zz"
    session, _ = sessions.start(ONE, goal=f"password: {secret}")
    sessions.append_turns(ONE, [Message("user", f"password: {secret}", 0, ({"name": "x", "password": secret},))], ONCE)
    sessions.record_tool_output(ONE, "env", "x" * 490 + f" password: {secret}", ONCE)
    sessions.update_state(
        ONE,
        StateChange(
            add_constraints=(f"password: {secret}",),
            add_pending=(f"password={secret}",),
            finish=(f"password={secret}",),
            set_slots={"password": secret},
        ),
    )
    assert sessions.get(ONE).window[0].content.startswith("password: ")
    assert secret not in repr(sessions.get(ONE))
    assert secret not in repr(sessions.turns(session.namespace))
    for path in house.directory.iterdir():
        assert secret.encode() not in path.read_bytes()


def test_what_the_policy_allows_stays(house: House) -> None:
    house.policies = Policies('{"*": {"phone": "allow"}}')
    sessions = house.open()
    sessions.start(ONE)
    sessions.append_turns(ONE, said("我的手机号是13812345678"), ONCE)
    assert "13812345678" in sessions.get(ONE).window[0].content


def test_tool_outputs_are_cut_and_only_the_last_stay(house: House) -> None:
    sessions = house.open()
    sessions.start(ONE)
    assert sessions.record_tool_output(ONE, "t", "y" * 501, ONCE)
    assert not sessions.record_tool_output(ONE, "t", "y" * 500, ONCE)
    for i in range(4):
        sessions.record_tool_output(ONE, f"t{i}", str(i), ONCE)
    outputs = sessions.get(ONE).state.tool_outputs
    assert [(o.tool, len(o.content), o.truncated) for o in outputs] == [
        ("t", 500, False),
        *((f"t{i}", 1, False) for i in range(4)),
    ]


def test_state_by_hand_and_lost_updates(house: House) -> None:
    sessions = house.open()
    session, _ = sessions.start(ONE)
    one = sessions.update_state(ONE, StateChange(add_pending=("a", "b"), add_constraints=("c",)), session.etag)
    with pytest.raises(EtagMismatch):
        sessions.update_state(ONE, StateChange(goal="lost"), session.etag)
    two = sessions.update_state(ONE, StateChange(finish=("a",), remove_constraints=("c",)), one.etag)
    assert (two.state.pending, two.state.finished, two.state.constraints) == (("b",), ("a",), ())
    sessions.update_state(ONE, StateChange(goal="x", set_slots={"k": "v"}))
    assert sessions.update_state(ONE, StateChange(goal="", set_slots={"k": ""})).state.slots == {}
    sessions.update_state(ONE, StateChange(add_constraints=("stays",)))
    sessions.append_turns(ONE, said("Please fix the bug", "Forget that, let's write a poem"), ONCE)
    assert sessions.get(ONE).state.constraints == ("stays",)


def test_list_is_paged_newest_first_and_of_exactly_these_owners(house: House) -> None:
    sessions = house.open()
    for i in range(7):
        sessions.start(Owners(user_id="u", session_id=f"s{i}"))
        house.now_us += 1
    sessions.start(Owners(user_id="u", project_id="p", session_id="other"))
    sessions.start(Owners(user_id="v", session_id="s0"))
    found, token = sessions.list(Owners(user_id="u", session_id="ignored"), 3, "")
    sessions.start(Owners(user_id="u", session_id="new"))
    while token:
        page, token = sessions.list(Owners(user_id="u"), 3, token)
        found += page
    assert [s.session_id for s in found] == [f"s{i}" for i in range(6, -1, -1)]
    with pytest.raises(InvalidArgument):
        sessions.list(Owners(user_id="u"), 3, "nonsense")


def test_sessions_of_others_are_not_found(house: House) -> None:
    sessions = house.open()
    sessions.start(Owners(project_id="p", session_id="one"))
    with pytest.raises(NotFound):
        sessions.get(Owners(project_id="q", session_id="one"))
    with pytest.raises(NotFound):
        sessions.start(Owners(project_id="q", session_id="one"))
    with pytest.raises(NotFound):
        sessions.get(Owners(user_id="u", session_id="one"))
    with pytest.raises(NotFound):
        sessions.get(Owners(tenant="t", project_id="p", session_id="one"))


CALLS: list[Callable[[Sessions], object]] = [
    lambda s: s.start(Owners(user_id="", session_id="one")),
    lambda s: s.get(Owners(user_id="u")),
    lambda s: s.get(Owners(user_id="u", session_id="")),
    lambda s: s.start(ONE, tool="x" * 257),
    lambda s: s.start(ONE, goal="x" * 301),
    lambda s: s.start(ONE, ttl_us=31 * 24 * HOUR_US),
    lambda s: s.append_turns(ONE, [], ONCE),
    lambda s: s.append_turns(ONE, said(*"x" * 201), ONCE),
    lambda s: s.append_turns(ONE, said("   "), ONCE),
    lambda s: s.append_turns(ONE, said("x" * 65_537), ONCE),
    lambda s: s.record_tool_output(ONE, "", "x", ONCE),
    lambda s: s.update_state(ONE, StateChange(add_pending=("",))),
    lambda s: s.update_state(ONE, StateChange(add_pending=("x" * 201,))),
    lambda s: s.update_state(ONE, StateChange(add_pending=("x",) * 101)),
    lambda s: s.update_state(ONE, StateChange(set_slots={"": "x"})),
    lambda s: s.update_state(ONE, StateChange(set_slots={"k": "x" * 257})),
]


@pytest.mark.parametrize("call", CALLS)
def test_what_is_refused_changes_nothing(house: House, call: Callable[[Sessions], object]) -> None:
    sessions = house.open()
    before, _ = sessions.start(ONE)
    with pytest.raises((InvalidArgument, LimitExceeded)):
        call(sessions)
    assert sessions.get(ONE).etag == before.etag


def test_no_more_than_the_limit_are_open(house: House) -> None:
    house.settings = SessionSettings(sessions_max=2)
    sessions = house.open()
    for i in range(2):
        sessions.start(Owners(user_id="u", session_id=f"{i}"))
    with pytest.raises(ResourceExhausted, match="sessions_max"):
        sessions.start(ONE)
    assert sessions.start(Owners(user_id="u", session_id="0"))[1]
