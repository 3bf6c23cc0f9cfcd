"""Sessions of both clients against a real server in this process."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc_client import (
    Aborted,
    AsyncMemoryClient,
    AsyncSession,
    ClientClosed,
    Consolidation,
    DialogueState,
    FailedPrecondition,
    InvalidArgument,
    MemoryClient,
    NotFound,
    Session,
    SessionInfo,
    SessionState,
    ToolOutput,
)
from memsvc_client._proto import session_service_pb2 as spb

PATIENT_S = 20.0
OPTIONS = {"timeout_s": PATIENT_S, "write_timeout_s": PATIENT_S}


@pytest.fixture
def client(server: str) -> Iterator[MemoryClient]:
    with MemoryClient(server, user_id=uuid.uuid4().hex, tool="shell", **OPTIONS) as opened:
        yield opened


def wait_until(condition: Callable[[], bool], limit_s: float = PATIENT_S) -> None:
    """Polls a condition that another thread makes true."""
    tick = threading.Event()
    for _ in range(round(limit_s / 0.01)):
        if condition():
            return
        tick.wait(0.01)
    raise AssertionError("the condition did not come true")


def open_ids(client: MemoryClient) -> list[str]:
    return [info.session_id for info in client.sessions()]


def drop_on_the_server(client: MemoryClient, session_id: str) -> None:
    """Another process ends the session without consolidating: the server no longer knows it."""
    client.session(session_id).end(consolidate=False)


def test_a_session_from_start_to_consolidation(client):
    client.write("Hot paths are written in Go", type="decision")
    with client.session(goal="fix the login", ttl_s=3600) as s:
        assert [hit.content for hit in s.recalled()] == ["Hot paths are written in Go"]
        s.user("以后周报都用英文写", message_id="m1", time="2025-01-10T09:00:00+08:00")
        s.agent("OK, looking.", tool_calls=[{"name": "ls", "arguments": {"all": True}}])
        s.tool("ls", "login.go")
        block = s.context(token_budget=400)
        assert (block.source, block.degraded) == ("server", [])
        assert block.token_count <= 400
        for words in ("Hot paths are written in Go", "fix the login", "以后周报都用英文写", "login.go"):
            assert words in block.text
        assert len(s.recalled()) == 1
        state = s.state()
        assert [(turn.speaker, turn.content) for turn in state.window] == [
            ("user", "以后周报都用英文写"),
            ("agent", "OK, looking."),
        ]
        assert state.window[0].time.isoformat() == "2025-01-10T01:00:00+00:00"
        assert state.window[1].tool_calls == [{"name": "ls", "arguments": '{"all": true}'}]
        assert [(output.tool, output.content) for output in state.tool_outputs] == [("ls", "login.go")]
        info = state.session
        assert (info.tool, info.turn_count, info.session_id) == ("shell", 2, s.session_id)
        assert (info.expire_time - info.update_time).total_seconds() == 3600
        assert (s.resumed, s.turn_count, s.buffered_count, s.is_ended) == (False, 2, 0, False)
        assert open_ids(client) == [s.session_id]
    assert s.degraded == []
    assert open_ids(client) == []
    done = s.consolidation(wait_s=PATIENT_S)
    assert (done.state, done.is_final, done.done_turns, done.total_turns) == ("done", True, 2, 2)
    assert [result.outcome for result in done.results] == ["created"]
    assert done.to_dict()["results"][0]["outcome"] == "created"
    assert client.get(done.results[0].memory_id).source["message_id"] == "m1"
    assert client.get(done.episode_id).layer == "episodic"


def test_state_by_hand(client):
    with client.session(consolidate=False) as s:
        changed = s.update_state(
            goal="ship", add_constraints=["no Docker"], add_pending=["build", "test"], set_slots={"port": "80"}
        )
        assert (changed.goal, changed.constraints, changed.pending) == ("ship", ["no Docker"], ["build", "test"])
        changed = s.update_state(finish=["build"], remove_constraints=["no Docker"], set_slots={"port": ""})
        assert (changed.finished, changed.pending, changed.slots) == (["build"], ["test"], {})
        assert s.update_state(goal="", etag=changed.session.etag).goal == ""
        with pytest.raises(Aborted) as raised:
            s.update_state(goal="late", etag=changed.session.etag)
        assert raised.value.reason == "ETAG_MISMATCH"
        with pytest.raises(InvalidArgument, match="must be a list of texts"):
            s.update_state(add_pending="build")
        told = s.state().to_dict()
        assert (told["goal"], told["finished"], told["window"], told["session"]["tool"]) == ("", ["build"], [], "shell")


def test_an_open_session_is_resumed_and_read_without_opening_it(client, server):
    s = client.session("shared").start()
    s.user("the port is 8080")
    assert s.flush()
    with pytest.raises(NotFound):
        client.session("other").state()
    handle = client.session("shared")
    assert [turn.content for turn in handle.state().window] == ["the port is 8080"]
    assert "8080" in handle.context().text
    with pytest.raises(NotFound):
        handle.consolidation()
    with pytest.raises(NotFound):
        client.session("other").end()
    with client.session("shared") as again:
        assert (again.resumed, again.turn_count) == (True, 1)
        again.user("and the host is a.example")
    assert again.consolidation(PATIENT_S).total_turns == 2


def test_an_id_that_just_ended_can_be_opened_again_at_once(client):
    for i in range(3):
        with client.session("daily") as s:
            s.user(f"We decided to use version {i} of the parser")
            assert s.flush()
            assert s.turn_count == 1
        assert s.degraded == []


def test_sessions_page(client):
    opened = [client.session(f"s{i}").start() for i in range(5)]
    assert {*open_ids(client)} == {"s0", "s1", "s2", "s3", "s4"}
    assert [info.session_id for info in client.sessions(page_size=2)] == open_ids(client)
    for s in opened:
        assert s.end(consolidate=False).state == "discarded"
    assert open_ids(client) == []


def test_parallel_appends_lose_nothing_and_each_thread_keeps_its_order(client, monkeypatch):
    monkeypatch.setattr("memsvc_client.outbox.BUFFER_TURNS", 20)  # a healthy server is waited for
    with client.session() as s:

        def speak(name: str) -> None:
            for i in range(50):
                s.agent(f"{name} {i}")

        threads = [threading.Thread(target=speak, args=(name,)) for name in "abcdefgh"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert s.flush()
        assert (s.turn_count, s.degraded, s.dropped) == (400, [], [])
        s.append({"role": "assistant", "content": f"i {i}"} for i in range(401))
        assert s.state().session.turn_count == 801
        assert [turn.content for turn in s.state().window] == [f"i {i}" for i in range(395, 401)]


def test_each_thread_finds_its_turns_in_order(server, tmp_path):
    service = Service(
        Settings(data_dir=tmp_path / "data", listen="127.0.0.1:0", session_window_turns=100, latency_budget_ms=20_000)
    )
    try:
        with MemoryClient(service.start(), user_id="u", **OPTIONS) as client, client.session(consolidate=False) as s:
            threads = [
                threading.Thread(target=lambda name=name: [s.agent(f"{name} {i}") for i in range(20)])
                for name in "abcd"
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            said = [turn.content.split() for turn in s.state().window]
            assert len(said) == 80
            for name in "abcd":
                assert [int(number) for whose, number in said if whose == name] == list(range(20))
    finally:
        service.close()


@pytest.mark.parametrize("way", ["append", "context", "state", "update_state", "tool"])
def test_a_session_that_the_server_forgot_is_opened_again_by_the_next_call_and_says_so(client, way, caplog):
    with client.session(consolidate=False) as s:
        s.user("first words")
        assert s.flush()
        drop_on_the_server(client, s.session_id)
        assert open_ids(client) == []
        with caplog.at_level(logging.WARNING, "memsvc_client"):
            if way == "append":
                s.user("second words")
                assert s.flush()
                assert s.turn_count == 1
            elif way == "context":
                assert s.context("words").source == "server"
            elif way == "state":
                assert s.state().session.turn_count == 0
            elif way == "tool":
                s.tool("ls", "a.txt")
                assert [output.content for output in s.state().tool_outputs] == ["a.txt"]
            else:
                assert s.update_state(goal="new").goal == "new"
        assert open_ids(client) == [s.session_id]
        assert s.degraded == ["SESSION_RESTARTED"]
        assert "started again" in caplog.text
        assert "words" not in caplog.text


def test_a_session_whose_time_to_live_has_passed_is_started_again(client):
    with client.session(ttl_s=0.5, consolidate=False) as s:
        wait_until(lambda: open_ids(client) == [])
        s.user("late words")
        assert s.flush()
        assert s.degraded == ["SESSION_RESTARTED"]
        wait_until(lambda: open_ids(client) == [])
    assert "SESSION_LOST" not in s.degraded  # it was to be dropped anyway
    kept = client.session(ttl_s=0.5).start()
    wait_until(lambda: open_ids(client) == [])
    assert (kept.end(), kept.degraded) == (None, ["SESSION_LOST"])


def test_an_exception_in_the_body_goes_through_and_the_session_ends(client):
    s = client.session()

    def body() -> None:
        with s:
            s.user("We decided to use PostgreSQL for billing")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        body()
    assert open_ids(client) == []
    assert s.consolidation(PATIENT_S).done_turns == 1


def test_the_end_is_idempotent_and_final(client):
    with client.session() as s:
        s.user("I prefer short answers")
        first = s.end()
        assert (first.state, first.total_turns) == ("pending", 1)
        assert s.end(consolidate=False).to_dict() == first.to_dict()
        assert s.is_ended
        for call in (lambda: s.user("x"), lambda: s.tool("t", "x"), lambda: s.context("x"), s.start):
            with pytest.raises(FailedPrecondition, match="has ended"):
                call()
        with pytest.raises((NotFound, FailedPrecondition)):
            s.state()
    assert s.consolidation(PATIENT_S).state == "done"
    with client.session(consolidate=False) as s:
        s.user("I prefer long answers")
    assert s.consolidation().state == "discarded"


def test_the_callers_own_faults_raise(client):
    with pytest.raises(InvalidArgument), client.session("x" * 129):
        raise AssertionError("never gets here")
    with pytest.raises(InvalidArgument, match="session_id is empty"):
        client.session("")
    with pytest.raises(InvalidArgument, match="ttl"), client.session(ttl_s=-1.0):
        raise AssertionError("never gets here")
    wait_until(lambda: not client._sending)
    with client.session(consolidate=False) as s:
        with pytest.raises(TypeError, match="did you mean 'token_budget'"):
            s.context("x", token_budgets=3)
        with pytest.raises(InvalidArgument, match="token_budget"):
            s.context("x", token_budget=3)
        with pytest.raises(InvalidArgument, match="wait"):
            s.consolidation(61.0)
        with pytest.raises(InvalidArgument, match=r"turns\[0\].content is empty"):
            s.user("")
        with pytest.raises(InvalidArgument, match="no time zone"):
            s.user("x", time="2025-01-10T09:00:00")


def test_a_turn_that_the_server_refuses_is_named_and_the_others_arrive(client, caplog):
    with client.session(consolidate=False) as s, caplog.at_level(logging.WARNING, "memsvc_client"):
        s.append([{"role": "user", "content": "before"}])
        s.agent("secret " * 20_000)
        s.user("after")
        assert [turn.content for turn in s.state().window] == ["before", "after"]
        assert [dropped.to_dict() for dropped in s.dropped] == [
            {"kind": "turns", "first": 2, "count": 1, "cause": "LIMIT_EXCEEDED"}
        ]
        assert s.degraded == ["DROPPED"]
    assert "LIMIT_EXCEEDED" in caplog.text
    assert "secret" not in caplog.text


def test_before_anything_is_said_nothing_is_recalled(client):
    with client.session(consolidate=False) as s:
        assert (len(s.recalled()), s.recalled().source, s.recalled().degraded) == (0, "none", ["NOTHING_ASKED"])
        s.agent("hello")
        assert s.recalled().degraded == ["NOTHING_ASKED"]
        s.append([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}])
        assert s.recalled().source == "server"


def test_every_recall_that_a_newer_turn_replaces_is_collected(client):
    now_s = [100.0]
    with MemoryClient("127.0.0.1:1", user_id="u", timeout_s=5.0, write_timeout_s=0.1, timer_s=lambda: now_s[0]) as lost:
        s = lost.session()
        for _ in range(3):
            lost._core.breaker.failed()
        now_s[0] += 31.0
        s.user("this is the breaker's probe")
        s.user("and this replaces it")
        now_s[0] += 31.0
        assert lost._core.breaker.allow()


def test_closing_the_client_ends_the_sending_thread_and_names_what_was_not_sent(server):
    before = set(threading.enumerate())
    client = MemoryClient(server, user_id="u", **OPTIONS)
    s = client.session().start()
    s.user("hello")
    assert s.flush()
    client.close()
    wait_until(lambda: not [t for t in set(threading.enumerate()) - before if t.name.startswith("memsvc")])
    for call in (lambda: s.user("x"), lambda: s.context("x"), s.state, s.consolidation, s.start):
        with pytest.raises(ClientClosed):
            call()
    assert s.end() is None
    assert s.degraded == ["END_UNACKNOWLEDGED"]


def test_a_client_closed_inside_the_block_does_not_make_its_exit_raise(server):
    client = MemoryClient(server, user_id="u", **OPTIONS)
    s = client.session()

    def body() -> None:
        with s:
            client.close()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        body()
    assert s.degraded == ["END_UNACKNOWLEDGED"]


def test_the_async_client_does_the_same(server):
    async def failing(s: AsyncSession) -> None:
        async with s:
            await asyncio.gather(*(s.agent(f"turn {i}") for i in range(100)))
            raise KeyError("mine")

    async def main() -> None:
        async with AsyncMemoryClient(server, user_id=uuid.uuid4().hex, tool="shell", **OPTIONS) as client:
            await client.write("Hot paths are written in Go", type="decision")
            async with client.session(goal="fix the login") as s:
                assert [hit.content for hit in await s.recalled()] == ["Hot paths are written in Go"]
                await s.user("以后周报都用英文写")
                await s.agent("OK", tool_calls=[{"name": "ls", "arguments": "{}"}])
                await s.tool("ls", "login.go")
                block = await s.context()
                for words in ("Hot paths are written in Go", "fix the login", "以后周报都用英文写", "login.go"):
                    assert words in block.text
                assert (await s.state()).session.turn_count == 2
                assert (await s.update_state(set_slots={"port": "80"})).slots == {"port": "80"}
                assert [info.session_id async for info in client.sessions(page_size=1)] == [s.session_id]
                await client.session(s.session_id).end(consolidate=False)
                await s.user("second words")
                assert await s.flush()
                assert s.degraded == ["SESSION_RESTARTED"]
                await client.session(s.session_id).end(consolidate=False)
                assert (await s.context("words")).source == "server"
            done = await s.consolidation(PATIENT_S)
            assert (done.state, s.resumed) == ("done", False)
            assert (await s.end()).session_id == s.session_id
            with pytest.raises(FailedPrecondition, match="has ended"):
                await s.user("x")
            s = client.session()
            with pytest.raises(KeyError, match="mine"):
                await failing(s)
            assert (await s.consolidation(PATIENT_S)).total_turns == 100
            with pytest.raises(InvalidArgument):
                async with client.session("x" * 129):
                    raise AssertionError("never gets here")
            with pytest.raises(NotFound):
                await client.session("nobody's").state()
            left = await client.session().start()
        with pytest.raises(ClientClosed):
            await left.user("x")
        assert await left.end() is None
        assert left.degraded == ["END_UNACKNOWLEDGED"]

    asyncio.run(main())


def test_a_cancelled_context_leaves_the_breaker_as_it_was(server):
    async def main() -> None:
        async with AsyncMemoryClient(server, user_id="u", **OPTIONS) as client, client.session(consolidate=False) as s:
            assert await s.flush()
            task = asyncio.get_running_loop().create_task(s.context("x"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert client._core.breaker.allow()

    asyncio.run(main())


def test_both_sessions_have_the_same_calls_and_arguments():
    def public(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert public(Session) == public(AsyncSession)
    pairs = [(Session, AsyncSession, name) for name in public(Session) if callable(getattr(Session, name))]
    pairs += [(MemoryClient, AsyncMemoryClient, name) for name in ("context", "session", "sessions")]
    for sync, other, name in pairs:
        one, two = (inspect.signature(getattr(cls, name)) for cls in (sync, other))
        assert [(p.name, p.default) for p in one.parameters.values()] == [
            (p.name, p.default) for p in two.parameters.values()
        ], name


def test_results_show_every_field_of_their_message():
    for view, message in ((SessionInfo, spb.Session), (Consolidation, spb.Consolidation), (ToolOutput, spb.ToolOutput)):
        assert set(view.NAMES) == {field.name for field in message.DESCRIPTOR.fields}
    assert set(DialogueState.NAMES) == {"session", *(field.name for field in spb.DialogueState.DESCRIPTOR.fields)}
    response = spb.SessionServiceGetStateResponse.DESCRIPTOR.fields
    assert set(SessionState.NAMES) - set(DialogueState.NAMES) == {field.name for field in response} - {
        "session",
        "state",
    }
