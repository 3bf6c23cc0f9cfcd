"""EventService over the wire: recording with causes, conditions, pages, questions and links."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memsvc.v1 import event_service_pb2 as epb
from memsvc.v1 import event_service_pb2_grpc as rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb

DAY_S = 86_400


@pytest.fixture(scope="module")
def events(channel: grpc.Channel) -> rpc.EventServiceStub:
    return rpc.EventServiceStub(channel)


@pytest.fixture(scope="module")
def record(events: rpc.EventServiceStub) -> Callable[..., str]:
    """Records one event; returns its id."""

    def call(whom: pb.Owners, summary: str, event_type: str = "note", second: int | None = None, **fields: Any) -> str:
        detail = {name: fields.pop(name) for name in ("payload", "participants", "caused_by") if name in fields}
        request = epb.EventServiceRecordRequest(owners=whom, summary=summary, **fields)
        request.event.CopyFrom(pb.EventDetail(event_type=event_type, **detail))
        if second is not None:
            request.occur_time.FromSeconds(second)
        return events.Record(request).result.memory_id

    return call


@pytest.fixture(scope="module")
def query(events: rpc.EventServiceStub) -> Callable[..., epb.EventServiceQueryResponse]:
    def call(whom: pb.Owners, **fields: Any) -> epb.EventServiceQueryResponse:
        return events.Query(epb.EventServiceQueryRequest(owners=whom, **fields))

    return call


def summaries(response: epb.EventServiceQueryResponse) -> list[str]:
    return [found.memory.content for found in response.events]


def is_(field: str, value: Any) -> epb.PayloadCondition:
    holder = struct_pb2.Struct()
    holder.update({"v": value})
    return epb.PayloadCondition(field=field, equals=holder.fields["v"])


def refused(call: Callable[[], object]) -> dict[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT, caught.value.details()
    for detail in rpc_status.from_call(caught.value).details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return {**info.metadata, "message": caught.value.details() or ""}
    raise AssertionError("no ErrorInfo")


def test_an_event_is_a_memory(stub, events, record, owners):
    payload = {"order": "ORD-1", "amount": 12.5, "deep": {"list": [1, True, None]}}
    memory_id = record(owners, "Paid", "payment", 1000, payload=payload, participants=["alice"], tags=["shop"])
    memory = stub.Get(spb.GetRequest(owners=owners, memory_id=memory_id)).memory
    assert (memory.layer, memory.type) == (pb.LAYER_EPISODIC, pb.MEMORY_TYPE_EVENT)
    assert (memory.occur_time.seconds, list(memory.tags)) == (1000, ["shop"])
    expected = pb.EventDetail(event_type="payment", participants=["alice"])
    expected.payload.update(payload)
    assert memory.event == expected


def test_what_is_refused_names_its_field(events, record, query, remember, owners, fresh_id):
    assert refused(lambda: record(owners, "x" * 101))["field"] == "summary"
    assert refused(lambda: record(owners, "  "))["field"] == "summary"
    assert refused(lambda: record(owners, "x", ""))["field"] == "event.event_type"
    assert refused(lambda: record(owners, "x", tags=[""]))["field"] == "tags"
    assert refused(lambda: events.Record(epb.EventServiceRecordRequest(owners=owners, summary="x")))["field"] == "event"
    assert refused(lambda: record(owners, "x", payload={"a": "b" * 16_384}))["field"] == "event.payload"
    elsewhere = record(pb.Owners(user_id=fresh_id()), "elsewhere")
    statement = remember(owners, "a statement").memory_id
    for cause in (elsewhere, statement, "mem_019af000-0000-7000-8000-000000000000"):
        info = refused(lambda cause=cause: record(owners, "x", caused_by=[cause]))
        assert info["field"] == "event.caused_by"
        assert cause in info["message"]
        told = pb.EventDetail(event_type="note", caused_by=[cause])
        info = refused(lambda told=told: remember(owners, "x", type=pb.MEMORY_TYPE_EVENT, event=told))
        assert info["field"] == "memory.event.caused_by"
    assert refused(lambda: record(owners, "x", caused_by=["nonsense"]))["field"] == "event.caused_by"
    assert refused(lambda: query(owners, page_token="?"))["field"] == "page_token"
    assert refused(lambda: query(owners, page_size=1001))["field"] == "page_size"
    assert refused(lambda: query(owners, query="q", page_size=101))["field"] == "page_size"
    assert refused(lambda: query(owners, query="q", newest_first=True))["field"] == "newest_first"
    assert refused(lambda: query(owners, payload=[epb.PayloadCondition(field="a")]))["field"] == "payload[0].equals"
    assert refused(lambda: query(owners, payload=[is_("", 1)]))["field"] == "payload.field"
    assert refused(lambda: query(owners, event_types=[""]))["field"] == "event_types"
    span = pb.TimeRange(start_time={"seconds": 2}, end_time={"seconds": 1})
    assert refused(lambda: query(owners, occur_time=span))["field"] == "occur_time"


def test_a_replay_returns_the_first_answer(record, query, owners):
    request_id = str(uuid.uuid4())
    assert record(owners, "once", request_id=request_id) == record(owners, "once", request_id=request_id)
    assert summaries(query(owners)) == ["once"]


def test_conditions(record, query, remember, owners):
    remember(owners, "the payment of ORD-7 is a statement, not an event")
    record(owners, "b", "error", 20, payload={"code": 503, "http": {"path": "/pay", "ok": False}}, participants=["Bob"])
    record(owners, "a", "error", 10, payload={"code": "503"}, participants=["alice", "bob"])
    record(owners, "c", "recovery", 30, payload={"code": True, "http": {"path": "/pay"}, "x.y": 1})
    assert summaries(query(owners)) == ["a", "b", "c"]
    assert summaries(query(owners, newest_first=True)) == ["c", "b", "a"]
    assert summaries(query(owners, event_types=["error"])) == ["a", "b"]
    assert summaries(query(owners, event_types=["error", "recovery", "none"])) == ["a", "b", "c"]
    assert summaries(query(owners, event_types=["none"])) == []
    assert summaries(query(owners, payload=[is_("code", 503)])) == ["b"]
    assert summaries(query(owners, payload=[is_("code", "503")])) == ["a"]
    assert summaries(query(owners, payload=[is_("code", 1)])) == []
    assert summaries(query(owners, payload=[is_("http.path", "/pay")])) == ["b", "c"]
    assert summaries(query(owners, payload=[is_("http.path", "/pay"), is_("http.ok", False)])) == ["b"]
    assert summaries(query(owners, payload=[is_("x.y", 1)])) == ["c"]
    assert summaries(query(owners, payload=[is_("http.none", None)])) == []
    assert summaries(query(owners, participant="BOB")) == ["a", "b"]
    span = pb.TimeRange(start_time={"seconds": 10}, end_time={"seconds": 20})
    assert summaries(query(owners, occur_time=span)) == ["a", "b"]
    assert summaries(query(owners, occur_time=span, event_types=["error"], participant="alice")) == ["a"]


def test_the_chain_of_an_order_in_order(record, query, owners):
    record(owners, "ORD-2025-0110 delivered", "note", 50)
    record(owners, "Order placed", "note", 10, payload={"order": "ord-2025-0110"})
    record(owners, "退款申请：ORD-2025-0110已提交", "note", 40)
    record(owners, "Paid", "note", 20, tags=["ＯＲＤ-2025-0110"])
    record(owners, "Asked about it", "note", 30, participants=["order:ORD-2025-0110"])
    record(owners, "ORD-2025-01101 placed", "note", 11)
    record(owners, "XORD-2025-0110 and ORD-2025-0110-2 and 2025 0110 ORD", "note", 12)
    chain = ["Order placed", "Paid", "Asked about it", "退款申请：ORD-2025-0110已提交", "ORD-2025-0110 delivered"]
    assert summaries(query(owners, mentions="ORD-2025-0110")) == chain
    assert summaries(query(owners, mentions="2025-0110")) == []
    assert summaries(query(owners, mentions="退款申请")) == ["退款申请：ORD-2025-0110已提交"]
    assert summaries(query(owners, mentions="款")) == ["退款申请：ORD-2025-0110已提交"]
    assert summaries(query(owners, mentions="and")) == ["XORD-2025-0110 and ORD-2025-0110-2 and 2025 0110 ORD"]


def test_pages_neither_skip_nor_repeat_while_events_are_recorded(record, query, fresh_id):
    both = pb.Owners(user_id=fresh_id(), project_id=fresh_id())
    for number in range(40):
        scope = pb.SCOPE_USER if number % 3 else pb.SCOPE_PROJECT
        record(both, f"event {number}", "note", 1000 + number // 8, scope=scope)
    for newest_first in (False, True):
        seen: list[str] = []
        token, more = "", 0
        while True:
            page = query(both, page_size=7, page_token=token, newest_first=newest_first)
            seen += [found.memory.memory_id for found in page.events]
            record(both, f"meanwhile {newest_first} {more}", "note", 999 if not newest_first else 2000 + more)
            more += 1
            token = page.next_page_token
            if not token:
                break
        first = [f.memory.memory_id for f in query(both, page_size=1000).events if f.memory.content.startswith("event")]
        assert len(set(seen)) == len(seen)
        assert [one for one in seen if one in first] == (first[::-1] if newest_first else first)
    assert refused(lambda: query(both, page_token=query(both, page_size=1).next_page_token, newest_first=True))


def test_parallel_records_are_all_there_in_order(record, query, owners):
    def many(name: int) -> None:
        for number in range(10):
            record(owners, f"{name}-{number}", "note", number)

    threads = [threading.Thread(target=many, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = query(owners, page_size=1000).events
    assert sorted(f.memory.content for f in found) == sorted(f"{a}-{b}" for a in range(4) for b in range(10))
    places = [(f.memory.occur_time.seconds, f.memory.memory_id) for f in found]
    assert places == sorted(places)


@pytest.fixture
def mended(record, owners) -> tuple[str, str]:
    """An error with its recovery, in words that no question about them has, among many other events."""
    for number in range(20):
        record(owners, f"Meeting {number} about the garden party", "note", 1_790_000_000 + number * DAY_S)
    record(owners, "Disk /var full on host-3", "error", 1_700_000_000)
    cause = record(owners, "Build 812 broke: libssl missing", "error", 1_792_000_000)
    cure = record(owners, "Pinned openssl 3.0.13 in the image", "recovery", 1_792_003_600, caused_by=[cause])
    return cause, cure


@pytest.mark.parametrize("question", ["上次那个报错是怎么解决的", "how was that error fixed last time"])
def test_a_question_finds_the_error_and_its_recovery(recall, query, owners, mended, question):
    cause, cure = mended
    plain = [hit.memory.memory_id for hit in recall(owners, question, top_k=3).hits]
    assert {cause, cure} <= set(plain)
    answer = query(owners, query=question, page_size=3)
    found = {f.memory.memory_id: f for f in answer.events}
    assert [m.memory_id for m in found[cause].consequences] == [cure]
    assert [m.memory_id for m in found[cure].causes] == [cause]
    assert all(f.score > 0 for f in answer.events)
    assert next(iter(found)) in (cause, cure), "the latest, not the old disk"


def test_a_question_with_conditions(query, owners, mended):
    cause, cure = mended
    answer = query(owners, query="garden party", event_types=["error"])
    assert [f.memory.content for f in answer.events][:2] == [
        "Build 812 broke: libssl missing",
        "Disk /var full on host-3",
    ]
    assert len(answer.events) == 2
    assert [f.memory.memory_id for f in query(owners, query="what broke", mentions="libssl").events] == [cause]
    span = pb.TimeRange(start_time={"seconds": 1_792_003_600}, end_time={"seconds": 1_792_003_600})
    assert [f.memory.memory_id for f in query(owners, query="what broke", occur_time=span).events] == [cure]


def test_forgotten_events_are_gone_also_from_links(stub, query, owners, mended):
    _cause, cure = mended
    stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[cure]))
    assert cure not in [f.memory.memory_id for f in query(owners).events]
    (found,) = query(owners, mentions="libssl").events
    assert not found.consequences


def test_nobody_meets_the_events_of_another(record, query, fresh_id):
    alice, bob = pb.Owners(user_id=fresh_id()), pb.Owners(user_id=fresh_id())
    record(alice, "Deployed ORD-9")
    assert not query(bob).events
    assert not query(bob, mentions="ORD-9").events
    assert not query(bob, query="Deployed ORD-9").events
