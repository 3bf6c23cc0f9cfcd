"""Facts and events of both clients against a real server."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc_client import Aborted, Fact, InvalidArgument, NotFound

NOON = dt.datetime(2025, 1, 10, 12, tzinfo=dt.timezone(dt.timedelta(hours=8)))
BIG = 2**53


# -- facts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "CNY",
        "",
        True,
        False,
        0,
        -7,
        BIG - 1,
        1.5,
        -1e300,
        None,
        [],
        {},
        [1, "a", None, [True]],
        {"a": {"b": [1.25, {"c": False}]}},
    ],
)
def test_a_value_comes_back_as_it_was_put(mem, value):
    put = mem.facts.put("key", value)
    assert (put.value, put.changed, put.version) == (value, True, 1)
    read = mem.facts.get("key").value
    assert (read, type(read)) == (value, type(value))
    assert not mem.facts.put("key", value).changed


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (NOON, "isoformat"),
        (NOON.date(), "isoformat"),
        (Decimal("1.10"), "str"),
        (b"x", "base64"),
        (BIG, "text"),
        (-BIG, "text"),
        (math.nan, "no number"),
        (-math.inf, "no number"),
        ({1: "x"}, "keys are texts"),
        ({"a": [object()]}, r"value\.a\[0\] is a object"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_value_that_would_come_back_otherwise_is_refused_before_it_is_sent(open_client, value, hint):
    nobody = open_client("127.0.0.1:1", user_id="u", write_timeout_s=0.2)
    with pytest.raises(InvalidArgument, match=hint):
        nobody.facts.put("key", value)


def test_a_list_that_holds_itself_is_refused(open_client):
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InvalidArgument, match="nested deeper"):
        open_client("127.0.0.1:1", user_id="u").facts.put("key", value)


def test_conditional_puts_raise_aborted_with_the_version_now(mem):
    assert mem.facts.put("k", 1, if_absent=True).version == 1
    with pytest.raises(Aborted) as lost:
        mem.facts.put("k", 2, if_absent=True)
    assert (lost.value.reason, lost.value.metadata["version"]) == ("ETAG_MISMATCH", "1")
    assert mem.facts.put("k", 2, if_version=1).version == 2
    with pytest.raises(Aborted):
        mem.facts.put("k", 3, if_version=1)
    with pytest.raises(Aborted):
        mem.facts.delete("k", if_version=1)
    with pytest.raises(InvalidArgument, match="give one"):
        mem.facts.put("k", 3, if_version=1, if_absent=True)
    assert mem.facts.get("k").value == 2
    assert mem.facts.delete("k", if_version=2) is True
    assert mem.facts.put("k", 3, if_absent=True).version == 4


def test_get_list_history_and_delete(mem):
    assert mem.facts.get("currency") is None
    mem.facts.put("currency", "CNY", reason="said so", session_id="s1", message_id="m1")
    mem.facts.put("currency", "EUR", scope="project")
    own = mem.facts.get("currency")
    assert (own.value, own.scope, own.deleted) == ("CNY", "user", False)
    assert own.source == {"tool": "tests", "session_id": "s1", "message_id": "m1"}
    assert own.update_time.tzinfo is dt.UTC
    assert mem.facts.get("currency", scopes=["project"]).value == "EUR"
    for i in range(5):
        mem.facts.put(f"port.{i}", 9000 + i)
    many = mem.facts.get_many(["port.3", "absent", "currency"])
    assert [(f.key, f.value) for f in many] == [("port.3", 9003), ("currency", "CNY"), ("currency", "EUR")]
    assert [f.key for f in mem.facts.list("port.", page_size=2)] == [f"port.{i}" for i in range(5)]
    assert mem.facts.delete("port.0") is True
    assert mem.facts.delete("port.0") is False
    assert [(f.deleted, f.version) for f in mem.facts.history("port.0")] == [(True, 2), (False, 1)]
    with pytest.raises(NotFound):
        mem.facts.history("never")
    with pytest.raises(InvalidArgument, match="list of texts"):
        mem.facts.get_many("currency")


def test_facts_are_found_by_mention_and_known_to_the_next_recall(mem):
    assert len(mem.recall("ship to default_city")) == 0
    put = mem.facts.put("default_city", "Lyon")
    assert [f.key for f in mem.facts.match(text="which DEFAULT_CITY is it?")] == ["default_city"]
    assert [f.value for f in mem.facts.match("a train to Lyon")] == ["Lyon"]
    hit = mem.recall("ship to default_city")[0]
    assert (hit.fact, hit.memory_id) == ({"key": "default_city", "value": "Lyon"}, put.memory_id)
    mem.facts.delete("default_city")
    assert len(mem.recall("ship to default_city")) == 0


def test_a_fact_is_json_ready(mem):
    fact = mem.facts.put("k", {"n": 1})
    shown = json.loads(json.dumps(fact.to_dict()))
    assert list(shown) == [*Fact.NAMES, "changed", "sequence"]
    assert (shown["value"], shown["update_time"]) == ({"n": 1}, fact.update_time.isoformat())
    assert "key='k'" in repr(fact)


# -- events ------------------------------------------------------------------------------------------------------


def record_incident(mem: Any) -> list[str]:
    """Ids of an error, its recovery and an unrelated task, in order of their times."""
    error = mem.events.record(
        "deploy of ORD-2025-0110 failed: port 9077 is taken",
        event_type="error",
        payload={"code": 98, "host": {"name": "web-1"}},
        participants=["ci"],
        occur_time=NOON,
        tags=["deploy"],
        importance=0.9,
    )
    recovery = mem.events.record(
        "killed the old process on web-1",
        event_type="recovery",
        caused_by=[error.memory_id],
        occur_time=NOON + dt.timedelta(minutes=5),
        session_id="s1",
    )
    task = mem.events.record(
        "wrote the weekly report",
        event_type="task_end",
        payload={"code": 0},
        occur_time=NOON + dt.timedelta(hours=1),
    )
    assert [one.outcome for one in (error, recovery, task)] == ["created"] * 3
    return [error.memory_id, recovery.memory_id, task.memory_id]


def test_events_by_conditions(mem):
    error, recovery, task = record_incident(mem)

    def found(*args: Any, **conditions: Any) -> list[str]:
        return [event.memory_id for event in mem.events.query(*args, **conditions)]

    assert found() == [error, recovery, task]
    assert found(newest_first=True, page_size=1) == [task, recovery, error]
    assert found(page_size=1, limit=2) == [error, recovery]
    assert found(top_k=2, newest_first=True) == [task, recovery]
    assert found(event_types=["recovery", "task_end"]) == [recovery, task]
    assert found(payload={"host.name": "web-1"}) == [error]
    assert found(payload={"code": 0}) == [task]
    assert found(participant="ci") == [error]
    assert found(occur_time=(NOON + dt.timedelta(seconds=1), None)) == [recovery, task]
    assert found(occur_time=(None, NOON)) == [error]
    assert found(scopes=["project"]) == []
    assert [event.memory_id for event in mem.events.chain("ORD-2025-0110")] == [error]


def test_a_question_finds_the_error_and_what_solved_it(mem):
    error, recovery, _ = record_incident(mem)
    best = list(mem.events.query(text="why did the deploy fail, port taken?", limit=1))
    assert [(event.memory_id, event.score > 0) for event in best] == [(error, True)]
    assert [event.memory_id for event in best[0].consequences] == [recovery]
    assert best[0].causes == []
    solved = next(event for event in mem.events.query("killed the old process") if event.memory_id == recovery)
    assert [event.summary for event in solved.causes] == ["deploy of ORD-2025-0110 failed: port 9077 is taken"]
    assert solved.caused_by == [error]


def test_an_event_is_a_memory_with_its_details(mem):
    error, recovery, _ = record_incident(mem)
    event = next(iter(mem.events.query(mentions="ORD-2025-0110")))
    assert (event.event_type, event.participants, event.tags) == ("error", ["ci"], ["deploy"])
    assert event.payload == {"code": 98, "host": {"name": "web-1"}}
    assert (event.layer, event.type, event.occur_time, event.importance) == ("episodic", "event", NOON, 0.9)
    assert event.source["tool"] == "tests"
    shown = json.loads(json.dumps(event.to_dict()))
    assert (shown["content"], shown["payload"]) == (event.summary, event.payload)
    assert [one["memory_id"] for one in shown["consequences"]] == [recovery]
    memory = mem.get(error)
    assert memory.event == {"event_type": "error", "payload": event.payload, "participants": ["ci"], "caused_by": []}
    assert memory.to_dict()["event"] == memory.event
    assert memory.retention == pytest.approx(1.0, abs=0.1)
    assert memory.skill_name == ""
    assert memory.fact is None
    assert [hit.memory_id for hit in mem.recall("port 9077")][:1] == [error]


def test_wrong_events_are_refused(mem, open_client):
    for call in (
        lambda m: m.events.record("x" * 101, event_type="error"),
        lambda m: m.events.record("x", event_type="error", caused_by=["mem_0190b3a4-0000-7000-8000-000000000000"]),
        lambda m: m.events.query("why?", newest_first=True),
    ):
        with pytest.raises(InvalidArgument) as refused:
            list(call(mem))
        assert refused.value.field_violations
    nobody = open_client("127.0.0.1:1", user_id="u", write_timeout_s=0.2)
    for call, hint in (
        (lambda: nobody.events.record("x", event_type="e", payload={"t": NOON}), r"payload\.t is a datetime"),
        (lambda: nobody.events.record("x", event_type="e", payload=["x"]), "must be a dict"),
        (lambda: nobody.events.record("x", event_type="e", caused_by="mem_1"), "list of texts"),
        (lambda: nobody.events.record("x", event_type="e", occur_time=dt.datetime(2025, 1, 1)), "no time zone"),
        (lambda: nobody.events.query(occur_time=(None, dt.datetime(2025, 1, 1))), "no time zone"),
        (lambda: nobody.events.query(payload={"a": Decimal(1)}), r"payload\.a is a Decimal"),
    ):
        with pytest.raises(InvalidArgument, match=hint):
            call()


def test_a_recorded_event_is_known_when_the_server_is_gone(tmp_path, open_client):
    service = Service(Settings(data_dir=tmp_path / "data", listen="127.0.0.1:0"))
    try:
        mem = open_client(service.start(), user_id="u")
        mem.events.record("the spare key was found", event_type="task_end", importance=0.7)
    finally:
        service.close()
    local = mem.recall("spare key", timeout_s=0.5)
    assert [hit.content for hit in local] == ["the spare key was found"]
    assert local[0].event["event_type"] == "task_end"
    assert "LOCAL_ONLY" in local.degraded
