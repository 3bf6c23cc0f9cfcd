"""Consolidation with a real store, model and funnel: what a session leaves behind, and that a crash changes nothing."""

from __future__ import annotations

import threading
import uuid
from types import SimpleNamespace

import msgspec
import pytest

from memsvc.errors import InvalidArgument, NotFound, StorageFailure, Unavailable
from memsvc.memory.drafts import METADATA_MAX_BYTES, SUMMARY_MAX_CHARS, check_draft
from memsvc.memory.funnel import Message
from memsvc.memory.owners import Owners, namespace_for
from memsvc.memory.sessions.consolidation import BATCH_TURNS, ConsolidationState, Consolidator
from memsvc.memory.sessions.episode import Sitting, episode
from memsvc.model import NO_FILTER, Layer, MemoryType, Outcome, Scope, Status
from memsvc.storage.engine import RecordTable

NOON_US = 1_764_763_200_000_000
DAY_US = 86_400_000_000
STATE = ConsolidationState


class Killed(BaseException):
    """A crash at this point: nothing after it runs."""


class KeptSessions:
    """The part of `Sessions` that consolidation needs."""

    def __init__(self):
        self.open = {}
        self.said = {}

    def begin(self, owners, contents, tool="shell", **state):
        namespace = namespace_for(owners, Scope.SESSION)
        self.said[namespace] = [
            Message("user" if i % 2 == 0 else "agent", text, NOON_US + i * 1_000_000) for i, text in enumerate(contents)
        ]
        goal = SimpleNamespace(**{"goal": "", "finished": [], "pending": [], **state})
        self.open[namespace] = SimpleNamespace(
            owners=owners, tool=tool, state=goal, turn_count=len(contents), sealed=False
        )
        return namespace

    def open_session(self, namespace):
        return self.open.get(namespace)

    def seal(self, namespace):
        self.open[namespace].sealed = True
        return self.open[namespace]

    def turns(self, namespace):
        return list(self.said[namespace])

    def drop(self, namespace):
        del self.open[namespace], self.said[namespace]


TALK = [
    "Please always write the weekly report as PDF.",
    "Understood, PDF it is.",
    "We decided to use PostgreSQL for the billing service.",
    "Noted.",
    "ok",
    "What is the weather today?",
]


@pytest.fixture
def me(fresh_id) -> Owners:
    return Owners(user_id=fresh_id(), session_id="s-1")


@pytest.fixture
def sessions() -> KeptSessions:
    return KeptSessions()


def consolidator(service, sessions, **options) -> Consolidator:
    parts = {name: options.pop(name, getattr(service, name)) for name in ("engine", "ingestor", "memories", "policies")}
    options = {"clock_us": service.transactions.clock_us, "retry_waits_s": (0.0, 0.0), **options}
    return Consolidator(parts["engine"], sessions, parts["ingestor"], parts["memories"], parts["policies"], **options)


@pytest.fixture
def running(service, sessions):
    made = consolidator(service, sessions)
    made.start()
    yield made
    made.close()


def ended(made: Consolidator, owners: Owners, **options):
    made.end(owners, options.get("scope"), options.get("discard", False), "test")
    return made.wait(owners, 30.0)


def kept(service, owners: Owners, scope=None) -> list:
    namespace = namespace_for(owners, scope)
    page, _ = service.memories.list_page([namespace], NO_FILTER, True, 1000, "")
    return page


def told(service, owners: Owners) -> set:
    return {(m.content, m.type, m.layer, m.status, m.source, m.seen_count) for m in kept(service, owners)}


def test_a_session_leaves_its_memories_with_sources_and_one_event(service, running, sessions, me):
    namespace = sessions.begin(me, TALK, goal="set up the report", finished=["schema"], pending=["deploy"])
    view = ended(running, me)
    assert (view.state, view.done_turns, view.total_turns, view.error) == (STATE.DONE, 6, 6, "")
    memories = {m.memory_id: m for m in kept(service, me)}
    report = next(m for m in memories.values() if "PDF" in m.content and m.type != MemoryType.EVENT)
    assert (report.source.tool, report.source.session_id, report.source.message_id) == ("shell", "s-1", "s-1#1")
    assert {r.memory_id for r in view.results} | {view.episode_id} == set(memories)
    event = memories[view.episode_id]
    assert (event.layer, event.type, event.status) == (Layer.EPISODIC, MemoryType.EVENT, Status.ACTIVE)
    assert event.event.event_type == "session_summary"
    assert all(word in event.content for word in ("2025-12-03", "shell", "set up the report", "schema", "deploy"))
    assert event.event.payload["turn_count"] == 6
    assert event.event.payload["pending"] == ["deploy"]
    assert set(event.event.payload["memory_ids"]) == {r.memory_id for r in view.results if r.outcome != Outcome.STAGED}
    assert event.event.participants == (me.user_id, "shell")
    running.close()
    assert sessions.open_session(namespace) is None


def test_end_again_answers_the_same_and_an_unknown_session_is_not_found(running, sessions, me):
    with pytest.raises(NotFound):
        running.end(me, None, False, "test")
    with pytest.raises(NotFound):
        running.status(me)
    with pytest.raises(InvalidArgument):
        running.end(Owners(user_id=me.user_id), None, False, "test")
    sessions.begin(me, TALK)
    first = ended(running, me)
    assert running.end(me, None, True, "test") == first
    sessions.begin(me, ["Our staging cluster is in Frankfurt."])
    second = ended(running, me)
    assert second.total_turns == 1
    assert second.episode_id not in ("", first.episode_id)


def test_end_answers_before_anything_is_judged(service, sessions, me):
    idle = consolidator(service, sessions)
    namespace = sessions.begin(me, TALK)
    view = idle.end(me, None, False, "test")
    assert (view.state, view.total_turns, view.done_turns) == (STATE.PENDING, 6, 0)
    assert sessions.open_session(namespace).sealed
    assert idle.end(me, None, False, "test").create_time_us == view.create_time_us
    assert kept(service, me) == []


def test_nothing_said_leaves_nothing_and_discard_drops_all(service, running, sessions, me, fresh_id):
    sessions.begin(me, [])
    view = ended(running, me)
    assert (view.state, view.episode_id, view.results) == (STATE.DONE, "", ())
    other = msgspec.structs.replace(me, session_id=fresh_id())
    namespace = sessions.begin(other, TALK)
    assert running.end(other, None, True, "test").state == STATE.DISCARDED
    assert sessions.open_session(namespace) is None
    assert kept(service, me) == []


def test_scope_is_the_callers_or_the_first_that_is_given(service, running, sessions, fresh_id):
    both = Owners(project_id=fresh_id(), agent_id=fresh_id(), session_id=fresh_id())
    sessions.begin(both, TALK)
    ended(running, both)
    assert kept(service, both, Scope.PROJECT)
    alone = Owners(session_id=fresh_id())
    sessions.begin(alone, TALK)
    ended(running, alone)
    assert kept(service, alone, Scope.SESSION)
    sessions.begin(alone, TALK)
    with pytest.raises(InvalidArgument):
        running.end(alone, Scope.USER, False, "test")


def test_staged_memories_count_the_sessions(service, running, sessions, me, fresh_id):
    staged = []
    for number in range(2):
        whom = msgspec.structs.replace(me, session_id=f"s-{number}")
        sessions.begin(whom, ["I had noodles for lunch near the office.", "The meeting room on floor 3 has a screen."])
        ended(running, whom)
        staged.append({m.content: m.status for m in kept(service, me) if m.type != MemoryType.EVENT})
    waited = [text for text, status in staged[0].items() if status == Status.STAGED]
    assert all(staged[1][text] == Status.ACTIVE for text in waited)


LONG = [
    f"We decided to use database number {i} for service {uuid.uuid5(uuid.NAMESPACE_URL, str(i))}." for i in range(60)
]
STEPS = 9


def killing(service, sessions, at: int):
    """A consolidator whose process ends before its `at`-th step: each write of a record, batch, event and drop."""
    counter = iter(range(1000))

    def step():
        if next(counter) == at:
            raise Killed

    class Before:
        def __init__(self, inner, *names):
            self._inner, self._names = inner, names

        def __getattr__(self, name):
            found = getattr(self._inner, name)
            if name not in self._names:
                return found

            def called(*arguments, **options):
                step()
                return found(*arguments, **options)

            return called

    return consolidator(
        service,
        Before(sessions, "seal", "drop"),
        engine=Before(service.engine, "write"),
        ingestor=Before(service.ingestor, "ingest"),
        memories=Before(service.memories, "write"),
    )


def test_a_crash_before_any_step_ends_the_same(service, sessions, fresh_id):
    contents = LONG[: BATCH_TURNS + 3]
    outcomes, steps = [], 0
    for at in (999, *range(20)):
        me = Owners(tenant=fresh_id(), user_id="ann", session_id="long")
        namespace = sessions.begin(me, contents, goal="choose databases")
        made, killed = killing(service, sessions, at), 0
        for _ in range(4):
            try:
                made.end(me, None, False, "test")
                made.run(namespace)
                break
            except Killed:
                killed += 1
                made = consolidator(service, sessions)
        view = made.status(me)
        assert view.state == STATE.DONE
        made.run(namespace)
        assert sessions.open_session(namespace) is None
        outcomes.append((told(service, me), view.done_turns, len(view.results)))
        steps += killed
        if at != 999 and not killed:
            break
    assert steps >= STEPS
    assert all(outcome == outcomes[0] for outcome in outcomes[1:])
    assert outcomes[0][2] > BATCH_TURNS // 2


def test_a_start_takes_up_what_a_crash_left(service, sessions, me):
    namespace = sessions.begin(me, TALK)
    consolidator(service, sessions).end(me, None, False, "test")
    later = consolidator(service, sessions)
    later.start()
    try:
        assert later.wait(me, 30.0).state == STATE.DONE
    finally:
        later.close()
    assert sessions.open_session(namespace) is None


class Failing:
    """An ingestor that fails `times` times."""

    def __init__(self, inner, error, times):
        self._inner, self._error, self._left = inner, error, times

    def ingest(self, *arguments, **options):
        self._left -= 1
        if self._left >= 0:
            raise self._error
        return self._inner.ingest(*arguments, **options)


def test_transient_failures_are_tried_again(service, sessions, me):
    made = consolidator(service, sessions, ingestor=Failing(service.ingestor, StorageFailure("disk"), 2))
    sessions.begin(me, TALK)
    made.start()
    try:
        assert ended(made, me).state == STATE.DONE
    finally:
        made.close()


@pytest.mark.parametrize(
    ("error", "times"), [(Unavailable("gone"), 3), (InvalidArgument("no"), 1), (ZeroDivisionError("secret words"), 1)]
)
def test_a_failure_keeps_the_turns_and_end_starts_again(service, sessions, me, error, times):
    made = consolidator(service, sessions, ingestor=Failing(service.ingestor, error, times))
    namespace = sessions.begin(me, TALK)
    made.start()
    try:
        failed = ended(made, me)
        assert (failed.state, sessions.turns(namespace)[0].content) == (STATE.FAILED, TALK[0])
        assert failed.error
        assert "secret words" not in failed.error
        assert ended(made, me).state == STATE.DONE
    finally:
        made.close()
    assert kept(service, me)


def test_closing_leaves_the_job_to_the_next_start(service, sessions, me):
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        def ingest(self, *arguments, **options):
            entered.set()
            leave.wait(30.0)
            return service.ingestor.ingest(*arguments, **options)

    made = consolidator(service, sessions, ingestor=Slow())
    sessions.begin(me, TALK)
    made.start()
    made.end(me, None, False, "test")
    assert entered.wait(30.0)
    closing = threading.Thread(target=made.close)
    closing.start()
    while not made._stopping:
        closing.join(0.01)
    leave.set()
    closing.join(30.0)
    assert made.status(me).state == STATE.RUNNING
    assert kept(service, me) == []
    later = consolidator(service, sessions)
    later.start()
    try:
        assert later.wait(me, 30.0).state == STATE.DONE
    finally:
        later.close()


def test_final_records_go_after_their_retention_and_others_stay(service, sessions, me, fresh_id):
    made = consolidator(service, sessions)
    namespace = sessions.begin(me, [])
    made.end(me, None, False, "test")
    made.run(namespace)
    waiting = msgspec.structs.replace(me, session_id=fresh_id())
    sessions.begin(waiting, TALK)
    made.end(waiting, None, False, "test")
    made.sweep()
    assert made.status(me).state == STATE.DONE
    later_us = service.transactions.clock_us() + 2 * DAY_US
    consolidator(service, sessions, clock_us=lambda: later_us, retention_us=DAY_US).sweep()
    with pytest.raises(NotFound):
        made.status(me)
    assert made.status(waiting).state == STATE.PENDING
    with service.engine.read() as txn:
        assert list(txn.records(RecordTable.JOB, namespace)) == []


def test_a_secret_in_the_state_does_not_reach_the_event(service, running, sessions, me):
    secret = "the password is hunter2-Xy9!"
    sessions.begin(me, ["password: hunter2-Xy9!", "ok"], goal=secret, finished=[secret, "made the backup"])
    view = ended(running, me)
    assert (view.state, view.error) == (STATE.DONE, "")
    event = next(m for m in kept(service, me) if m.memory_id == view.episode_id)
    assert "hunter2" not in event.content + str(event.event)
    assert event.event.payload["finished"] == ["made the backup"]


@pytest.mark.parametrize("text", ["x" * 4000, "很长的目标" * 900, "\x00\n" * 900, "🙂" * 900, '"' * 900, ""])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_an_episode_always_fits_its_limits(text, count):
    sitting = Sitting(
        owners=Owners(user_id="u" * 128, agent_id="a" * 128, session_id="s"),
        scope=Scope.USER,
        tool="t" * 256,
        turn_count=3,
        goal=text,
        finished=[text] * count,
        pending=[text] * count,
        start_time_us=NOON_US,
        end_time_us=NOON_US,
        kept_ids=[f"mem_{uuid.UUID(int=i)}" for i in range(500)],
    )
    draft = episode(sitting, lambda given: given)
    check_draft(draft, 65_536, "episode")
    assert len(draft.content) <= SUMMARY_MAX_CHARS
    assert len(str(draft.event.payload)) < METADATA_MAX_BYTES
