"""The clients against a real server in this process, and against one that is gone."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc_client import (
    Aborted,
    AsyncMemoryClient,
    ClientClosed,
    InvalidArgument,
    MemoryClient,
    NotFound,
    Unavailable,
)

PATIENT_S = 20.0


def wait_until(condition: Callable[[], bool], limit_s: float = PATIENT_S) -> None:
    """Polls a condition that another thread makes true."""
    tick = threading.Event()
    for _ in range(round(limit_s / 0.01)):
        if condition():
            return
        tick.wait(0.01)
    raise AssertionError("the condition did not come true")


def nobody() -> str:
    """HOST:PORT where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_write_recall_get_list_update_history_forget(client):
    written = client.add(
        "prefers window seats", type="preference", tags=["travel"], metadata={"n": 1, "x": [1.5, None]}
    )
    assert (written.outcome, written.scope, written.version) == ("created", "user", 1)
    found = client.search("which seat?")
    assert (found.source, found.degraded) == ("server", [])
    assert found[0].memory_id == written.memory_id
    assert found[0].score == pytest.approx(sum(list(found[0].components.values())[:6]), abs=1e-5)
    updated = client.update(written.memory_id, content="prefers aisle seats", reason="said so")
    assert (updated.version, updated.metadata, updated.tags) == (2, {"n": 1, "x": [1.5, None]}, ["travel"])
    assert updated.update_time > updated.create_time
    assert updated.update_time.tzinfo is dt.UTC
    assert client.recall("seats")[0].content == "prefers aisle seats"
    assert client.get(written.memory_id, version=1).content == "prefers window seats"
    assert [m.content for m in client.list()] == ["prefers aisle seats"]
    assert [(c.kind, c.reason) for c in client.history(written.memory_id)] == [("updated", "said so"), ("created", "")]
    with pytest.raises(Aborted) as raised:
        client.update(written.memory_id, etag="stale", subject="s")
    assert raised.value.reason == "ETAG_MISMATCH"
    assert client.forget(written.memory_id).forgotten_count == 1
    assert len(client.recall("seats")) == 0
    assert client.forget(written.memory_id).already_forgotten_ids == [written.memory_id]


def test_list_pages_and_forget_all_counts(client):
    assert len(client.batch_write({"content": f"note {i}", "type": "event"} for i in range(1001))) == 1001
    assert len({m.memory_id for m in client.list(page_size=300)}) == 1001
    assert client.forget_all().forgotten_count == 1001
    assert list(client.list()) == []


def test_errors_are_typed_and_carry_the_field(client):
    with pytest.raises(NotFound) as missing:
        client.get(f"mem_{uuid.uuid4()}")
    assert missing.value.reason == "NOT_FOUND"
    with pytest.raises(InvalidArgument) as bad:
        client.write("x", tags=["t"] * 65)
    assert (bad.value.reason, bad.value.field_violations[0][0]) == ("LIMIT_EXCEEDED", "memory.tags")
    with pytest.raises(InvalidArgument):
        client.recall("x", top_k=1000)


def test_unknown_keywords_name_the_nearest(client):
    for call, hint in (
        (lambda: client.recall("x", topk=3), "top_k"),
        (lambda: client.write("x", tag=["a"]), "tags"),
        (lambda: client.update("mem_x", contents="a"), "content"),
        (lambda: client.recall("x", weights={"vectors": 1.0}), "vector"),
        (lambda: list(client.list(tag_all=["a"])), "tags_all"),
    ):
        with pytest.raises(TypeError, match=f"did you mean '{hint}'"):
            call()


def test_guessed_names_are_understood(client):
    for i in range(3):
        client.write(f"guess {i}", type="event")
    assert len(client.recall(text="guess", limit=2)) == 2
    with pytest.raises(TypeError, match="mean the same"):
        client.recall("guess", limit=2, top_k=2)
    with pytest.raises(TypeError, match="twice"):
        client.recall("guess", text="guess")


def test_naive_times_are_refused_and_aware_ones_kept(client):
    naive = dt.datetime(2024, 2, 29, 12)
    for call in (
        lambda: client.write("x", occur_time=naive),
        lambda: client.recall("x", as_of=naive),
        lambda: client.recall("x", occur_time=(naive, None)),
        lambda: client.update("mem_x", expire_time=naive),
    ):
        with pytest.raises(InvalidArgument, match="no time zone"):
            call()
    aware = naive.replace(tzinfo=dt.timezone(dt.timedelta(hours=8)))
    assert client.get(client.write("leap day", occur_time=aware).memory_id).occur_time == aware
    for edge in (dt.datetime.min, dt.datetime.max):
        edge = edge.replace(tzinfo=dt.UTC)
        assert client.get(client.write(f"edge {edge}", occur_time=edge).memory_id).occur_time == edge


def test_metadata_that_would_come_back_otherwise_is_refused(client):
    for value, hint in (
        (2**53, r"metadata\.a\[0\] is an int of 2\^53"),
        (dt.datetime.max, r"isoformat"),
        (b"", "base64"),
    ):
        with pytest.raises(InvalidArgument, match=hint):
            client.write("x", metadata={"a": [value]})
        with pytest.raises(InvalidArgument, match=hint):
            client.update("mem_x", metadata={"a": [value]})


def test_text_that_is_not_unicode_and_empty_ids_are_refused(client):
    for call in (lambda: client.write("\ud800"), lambda: client.recall("\ud800"), lambda: client.write("x", tags="ab")):
        with pytest.raises(InvalidArgument):
            call()
    with pytest.raises(InvalidArgument, match="user_id is empty"):
        MemoryClient(user_id="")
    with pytest.raises(InvalidArgument, match="token"):
        MemoryClient("example.org:1", user_id="u", token="t")


def test_recall_repeats_from_the_cache_only_while_it_is_coherent(client):
    client.write("the kettle is blue")
    wait_until(lambda: client.is_coherent)
    wait_until(lambda: client.recall("kettle").source == "cache")
    client.write("the kettle broke")
    again = client.recall("kettle")
    assert again.source == "server"
    assert len(again) == 2


def test_recall_in_background(client):
    client.write("background words")
    result = client.recall_in_background("background").result(PATIENT_S)
    assert [hit.content for hit in result] == ["background words"]


def test_a_recall_that_nobody_collects_closes_the_breaker(server, client):
    client.write("an answer for nobody")
    now_s = [100.0]
    options = {"user_id": client._core.owners.user_id, "timeout_s": PATIENT_S, "timer_s": lambda: now_s[0]}
    with MemoryClient(server, **options) as other:
        for _ in range(3):
            other._core.breaker.failed()
        now_s[0] += 31.0
        recall = other.recall_in_background("answer")
        wait_until(recall.done)
        wait_until(lambda: other._core.breaker.allow() and other._core.breaker.allow())  # no probe: it is closed
        assert [hit.content for hit in recall.result()] == ["an answer for nobody"]


def test_a_refusal_that_nobody_collects_closes_the_breaker_and_is_raised_to_who_asks(client):
    breaker = client._core.breaker
    for _ in range(3):
        breaker.failed()
    breaker._open_until_s = 0.0
    recall = client.recall_in_background("x", top_k=101)
    wait_until(lambda: breaker.allow() and breaker.allow())
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="top_k"):
            recall.result()


def test_a_watch_yields_changes_of_others(server, client):
    seen: list[str] = []
    started = threading.Event()

    def follow() -> None:
        started.set()
        for change in client.watch():
            seen.append(change.after.content)
            if change.after.content == "last":
                return

    thread = threading.Thread(target=follow)
    thread.start()
    started.wait()
    number = iter(range(10_000))

    def arrived() -> bool:
        client.write(f"ping {next(number)}", type="event")  # events never contradict each other
        return bool(seen)

    wait_until(arrived)
    client.write("last")
    thread.join(PATIENT_S)
    assert seen[-1] == "last"
    assert len(set(seen)) == len(seen)


def test_a_stopped_server_leaves_cache_then_nothing_and_never_raises(tmp_path: Path):
    service = Service(Settings(data_dir=tmp_path / "data", listen="127.0.0.1:0", latency_budget_ms=20_000))
    try:
        client = MemoryClient(service.start(), user_id="u", timeout_s=PATIENT_S, write_timeout_s=0.5)
        kept = client.write("the spare key is under the mat").memory_id
        gone = client.write("the spare code is 0000").memory_id
        assert len(client.recall("spare")) == 2
        client.forget(gone)
        wait_until(lambda: client.is_coherent)
    finally:
        service.close()
    wait_until(lambda: not client.is_coherent)
    with client:
        stale = client.recall("spare", timeout_s=1.0)
        assert [hit.memory_id for hit in stale] == [kept]
        assert stale.source == "cache"
        assert "STALE" in stale.degraded
        local = client.recall("where is the mat key", timeout_s=1.0)
        assert [hit.memory_id for hit in local] == [kept]
        assert "LOCAL_ONLY" in local.degraded
        nothing = client.recall("quantum chromodynamics", timeout_s=1.0)
        assert (nothing.source, len(nothing)) == ("none", 0)
        assert nothing.degraded[0] in ("SERVER_UNAVAILABLE", "SERVER_TIMEOUT", "CIRCUIT_OPEN")
        assert client.recall("more", timeout_s=1.0).degraded[0] == "CIRCUIT_OPEN"
        with pytest.raises(Unavailable):
            client.write("not stored")


def test_the_breaker_probes_again_when_the_clock_says_so():
    now_s = [100.0]
    with MemoryClient(nobody(), user_id="u", timeout_s=1.0, timer_s=lambda: now_s[0]) as client:
        for _ in range(3):
            assert client.recall("x").degraded[0] in ("SERVER_UNAVAILABLE", "SERVER_TIMEOUT")
        assert client.recall("x").degraded == ["CIRCUIT_OPEN"]
        now_s[0] += 31.0
        assert client.recall("x").degraded[0] in ("SERVER_UNAVAILABLE", "SERVER_TIMEOUT")
        assert client.recall("x").degraded == ["CIRCUIT_OPEN"]


def test_a_write_that_waits_for_the_server_stores_once(tmp_path: Path):
    target = nobody()
    with MemoryClient(target, user_id="u", timeout_s=PATIENT_S, write_timeout_s=PATIENT_S) as client:
        written: list[str] = []
        thread = threading.Thread(target=lambda: written.append(client.write("patience", type="event").memory_id))
        thread.start()
        service = Service(Settings(data_dir=tmp_path / "data", listen=target, latency_budget_ms=20_000))
        try:
            service.start()
            thread.join(2 * PATIENT_S)
            assert [m.memory_id for m in client.list()] == written
        finally:
            service.close()


def test_close_leaks_no_threads_and_refuses_further_calls(server):
    before = set(threading.enumerate())
    client = MemoryClient(server, user_id="u", timeout_s=PATIENT_S)
    client.recall("x")
    wait_until(lambda: client.is_coherent)
    client.close()
    client.close()
    wait_until(lambda: not [t for t in set(threading.enumerate()) - before if t.name.startswith("memsvc")])
    for call in (lambda: client.recall("x"), lambda: client.write("x"), lambda: client.get("mem_x")):
        with pytest.raises(ClientClosed):
            call()


def test_async_client(server):
    async def main() -> None:
        options = {"timeout_s": PATIENT_S, "write_timeout_s": PATIENT_S}
        async with AsyncMemoryClient(server, user_id=uuid.uuid4().hex, **options) as client:
            one = await client.add("async words")
            await client.batch_write(["second words", {"content": "third words", "type": "rule"}])
            assert len(await client.recall(text="words", limit=2)) == 2
            assert (await client.recall_in_background("async"))[0].memory_id == one.memory_id
            assert [m.content async for m in client.list(page_size=1)] == ["third words", "second words", "async words"]
            assert (await client.update(one.memory_id, subject="s")).subject == "s"
            assert [c.kind async for c in client.history(one.memory_id)] == ["updated", "created"]
            assert (await client.forget(one.memory_id)).forgotten_count == 1
            assert (await client.forget_all()).forgotten_count == 2
            with pytest.raises(NotFound):
                await client.get(f"mem_{uuid.uuid4()}")
            with pytest.raises(TypeError, match="top_k"):
                await client.recall("x", topk=1)
        with pytest.raises(ClientClosed):
            await client.recall("x")
        async with AsyncMemoryClient(nobody(), user_id="u", timeout_s=1.0) as lost:
            answer = await lost.recall("x")
            assert (answer.source, len(answer)) == ("none", 0)

    asyncio.run(main())
