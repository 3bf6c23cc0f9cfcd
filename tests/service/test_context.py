"""Context blocks through a real server with the real model and tokenizer."""

from __future__ import annotations

import datetime as dt
import json
import random
import uuid

import grpc
import pytest

from memsvc.v1 import context_pb2 as cpb
from memsvc.v1 import context_service_pb2 as csb
from memsvc.v1 import context_service_pb2_grpc as rpc
from memsvc.v1 import event_service_pb2 as epb
from memsvc.v1 import event_service_pb2_grpc as event_rpc
from memsvc.v1 import fact_service_pb2 as fpb
from memsvc.v1 import fact_service_pb2_grpc as fact_rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import permanent_service_pb2 as ppb
from memsvc.v1 import permanent_service_pb2_grpc as permanent_rpc
from memsvc.v1 import session_service_pb2 as sessions
from memsvc.v1 import session_service_pb2_grpc as session_rpc

PREFERENCE, DECISION = pb.MEMORY_TYPE_PREFERENCE, pb.MEMORY_TYPE_DECISION
WORDS = (
    "用户 偏好 Go 实现 性能 服务 部署 上海 报告 每周 the user prefers reports as PDF because deployment in Frankfurt "
    "ORD-2025-0110 costs 42.50 EUR 端口 8080 naïve façade 😀 한국어 日本語テスト"
).split()


@pytest.fixture
def context(channel):
    stub = rpc.ContextServiceStub(channel)

    def assemble(owners, query="", **options):
        options = cpb.ContextOptions(**options)
        if not options.HasField("latency_budget"):
            options.latency_budget.FromSeconds(20)
        return stub.AssembleContext(csb.AssembleContextRequest(owners=owners, query=query, options=options)).context

    return assemble


@pytest.fixture
def taught(channel, owners, remember):
    remember(owners, "用户偏好用 Go 实现性能敏感模块", type=PREFERENCE)
    remember(owners, "We decided to deploy the billing service in Frankfurt because of GDPR", type=DECISION)
    fact_rpc.FactServiceStub(channel).Put(
        fpb.FactServicePutRequest(owners=owners, key="default_currency", value={"string_value": "CNY"})
    )
    event_rpc.EventServiceStub(channel).Record(
        epb.EventServiceRecordRequest(
            owners=owners,
            summary="billing deploy failed: disk full",
            event=pb.EventDetail(event_type="error", payload={"service": "billing"}),
        )
    )
    permanent_rpc.PermanentServiceStub(channel).Put(
        ppb.PermanentServicePutRequest(
            owners=owners, kind=ppb.PERMANENT_KIND_SAFETY, content="Never drop a production table", reason="test"
        )
    )
    return owners


def test_sections_in_order_with_citations(context, taught):
    block = context(taught, "where does billing run, in which default_currency, and which language?")
    sections = [line.section for line in block.lines]
    assert sections == sorted(sections)
    assert set(sections) == {
        cpb.CONTEXT_SECTION_PERMANENT,
        cpb.CONTEXT_SECTION_PREFERENCES,
        cpb.CONTEXT_SECTION_FACTS,
        cpb.CONTEXT_SECTION_EVENTS,
    }
    assert block.lines[0].text == "Never drop a production table"
    assert all(line.memory_id.startswith("mem_") for line in block.lines)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    assert any(line.text == f"{today}: billing deploy failed: disk full" for line in block.lines)
    assert block.text.startswith('<memory source="memsvc">\nAlways applies:\n- [1] Never drop')
    assert block.text.endswith("</memory>")
    assert not block.degraded


def test_only_the_sections_that_are_wanted(context, taught):
    block = context(taught, "billing", sections=[cpb.CONTEXT_SECTION_EVENTS])
    assert {line.section for line in block.lines} == {cpb.CONTEXT_SECTION_EVENTS}
    block = context(taught, "billing", sections=[cpb.CONTEXT_SECTION_PERMANENT])
    assert [line.text for line in block.lines] == ["Never drop a production table"]


def test_most_relevant_last_or_first(context, owners, remember):
    remember(owners, "The kitchen is painted green", type=PREFERENCE)
    remember(owners, "用户喜欢深色主题的编辑器", type=PREFERENCE)
    last = context(owners, "编辑器用什么主题")
    first = context(owners, "编辑器用什么主题", order=cpb.CONTEXT_ORDER_BEST_FIRST)
    assert [line.memory_id for line in last.lines] == [line.memory_id for line in first.lines][::-1]
    assert last.lines[-1].text == "用户喜欢深色主题的编辑器"
    assert last.lines[-1].score > last.lines[0].score


def test_at_most_eight_memories_unless_asked(context, owners, channel, stub):
    drafts = [spb.MemoryDraft(content=f"event number {i} of the trip", type=pb.MEMORY_TYPE_EVENT) for i in range(30)]
    stub.BatchWrite(spb.BatchWriteRequest(owners=owners, memories=drafts))
    assert len(context(owners, "trip").lines) == 8
    assert len(context(owners, "trip", max_memories=12).lines) == 12


def test_formats(context, taught):
    text = context(taught, "billing")
    as_json = context(taught, "billing", format=cpb.CONTEXT_FORMAT_JSON, token_budget=4096)
    body = json.loads(as_json.text.split("\n")[1])
    assert {entry["id"] for entry in body["memory"]} == {line.memory_id for line in text.lines}
    chat = context(taught, "billing", format=cpb.CONTEXT_FORMAT_MESSAGES)
    assert [(m.role, m.content) for m in chat.messages] == [("system", text.text)]
    assert json.loads(chat.text) == [{"role": "system", "content": text.text}]
    assert not text.messages


def test_an_open_session_is_part_of_it(context, channel, fresh_id, remember):
    owners = pb.Owners(user_id=fresh_id(), session_id="s1")
    stub = session_rpc.SessionServiceStub(channel)
    stub.Start(sessions.SessionServiceStartRequest(owners=owners, goal="ship the billing service"))
    turns = [
        spb.Message(speaker=spb.SPEAKER_USER, content="Which region do we deploy billing to?"),
        spb.Message(speaker=spb.SPEAKER_AGENT, content="Let me look at the decisions."),
    ]
    stub.AppendTurns(sessions.SessionServiceAppendTurnsRequest(owners=owners, turns=turns))
    remember(pb.Owners(user_id=owners.user_id), "Billing is deployed in Frankfurt", type=DECISION)
    options = cpb.ContextOptions()
    options.latency_budget.FromSeconds(20)
    block = stub.Assemble(sessions.SessionServiceAssembleRequest(owners=owners, options=options)).context
    texts = [line.text for line in block.lines]
    assert "Billing is deployed in Frankfurt" in texts  # the last user turn was the query
    goal = next(text for text in texts if text.startswith("Goal: "))
    assert texts.index(goal) < texts.index("user: Which region do we deploy billing to?")
    assert texts[-1] == "agent: Let me look at the decisions."
    with pytest.raises(grpc.RpcError) as error:
        stub.Assemble(
            sessions.SessionServiceAssembleRequest(owners=pb.Owners(user_id=owners.user_id, session_id="none"))
        )
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_owners_stay_apart(context, taught, fresh_id):
    block = context(pb.Owners(user_id=fresh_id()), "billing")
    assert (block.text, list(block.lines), block.token_count) == ("", [], 0)


@pytest.mark.parametrize("form", [1, 2, 3])
def test_never_past_its_token_budget(context, stub, service, fresh_id, form):
    """Random memories, zh, en and mixed, hostile ones among them, at random budgets."""
    chance = random.Random(form)
    owners = pb.Owners(user_id=fresh_id(), session_id=str(uuid.uuid4()))
    drafts = [
        spb.MemoryDraft(
            content=chance.choice(["", "\n", "<|im_start|>", '"\\"', "</memory>"])
            + chance.choice(["", " "]).join(chance.choices(WORDS, k=chance.randint(1, 60))),
            type=chance.randint(1, 5),
        )
        for _ in range(60)
    ]
    stub.BatchWrite(spb.BatchWriteRequest(owners=owners, memories=drafts))
    for _ in range(60):
        budget = chance.choice([32, 33, 40, 64, 100, 300, 2000])
        query = " ".join(chance.choices(WORDS, k=3))
        block = context(owners, query, token_budget=budget, format=form, max_memories=chance.randint(1, 40))
        counted = service.embedder.count_tokens(block.text)
        assert block.token_count == counted <= budget
    whole = context(owners, "用户", token_budget=100_000, max_memories=8)
    assert len(whole.lines) == 8
    assert whole.left_out_count == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"token_budget": 31}, "options.token_budget"),
        ({"token_budget": -1}, "options.token_budget"),
        ({"max_memories": 101}, "options.max_memories"),
        ({"sections": [0]}, "options.sections"),
        ({"sections": [99]}, "options.sections"),
        ({"format": 9}, "options.format"),
        ({"order": 9}, "options.order"),
    ],
)
def test_bad_options_name_their_field(context, owners, options, field):
    with pytest.raises(grpc.RpcError) as error:
        context(owners, "q", **options)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert field in error.value.details()
