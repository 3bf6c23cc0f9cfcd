"""`context` of both clients: what is asked for, what comes back, and what stands in for it without a server."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc_client import AsyncMemoryClient, Context, ContextLine, InvalidArgument, MemoryClient, Unavailable
from memsvc_client._proto import context_pb2 as cpb
from memsvc_client._proto import memory_pb2 as pb
from memsvc_client.context import CONTEXT_NAMES, Contexts, context_options

PATIENT_S = 20.0
OPTIONS = {"timeout_s": PATIENT_S, "write_timeout_s": PATIENT_S}


def test_a_block_in_every_form(client):
    rule = client.write("Reports are written in English", type="rule").memory_id
    fact = client.write("The staging port is 8080", type="fact").memory_id
    block = client.context("reports and ports", token_budget=200, max_memories=5)
    assert (block.source, block.degraded, block.left_out_count) == ("server", [], 0)
    assert str(block) == block.text
    assert 0 < block.token_count <= 200
    assert block.memory_ids == [rule, fact]
    assert [(line.section, line.memory_id) for line in block.lines] == [("preferences", rule), ("facts", fact)]
    assert block.lines[0].score > 0.0
    only = client.context("reports", sections=["facts"], order="best_first", types=["fact"])
    assert only.memory_ids == [fact]
    chat = client.context("reports", format="messages")
    assert [message["role"] for message in chat.messages] == ["system"]
    assert "Reports are written in English" in chat.messages[0]["content"]
    told = client.context("reports", format="json").to_dict()
    assert told["source"] == "server"
    assert json.loads(json.dumps(told)) == told


def test_options_become_the_contracts():
    built = context_options(
        {
            "token_budget": 64,
            "sections": ["permanent", "session"],
            "format": "json",
            "order": "best_first",
            "max_memories": 3,
            "types": ["fact"],
            "scopes": ["user"],
            "min_score": 0.0,
            "latency_budget_ms": 1500,
        }
    )
    assert built == cpb.ContextOptions(
        token_budget=64,
        sections=[cpb.CONTEXT_SECTION_PERMANENT, cpb.CONTEXT_SECTION_SESSION],
        format=cpb.CONTEXT_FORMAT_JSON,
        order=cpb.CONTEXT_ORDER_BEST_FIRST,
        max_memories=3,
        filter=pb.Filter(types=[pb.MEMORY_TYPE_FACT]),
        scopes=[pb.SCOPE_USER],
        min_score=0.0,
        latency_budget={"seconds": 1, "nanos": 500_000_000},
    )
    assert context_options({}) == cpb.ContextOptions()
    assert {field.name for field in cpb.ContextOptions.DESCRIPTOR.fields} - {"filter", "latency_budget"} <= set(
        CONTEXT_NAMES
    )


def test_the_callers_own_mistakes_raise(client):
    with pytest.raises(TypeError, match="did you mean 'sections'"):
        client.context("x", section=["facts"])
    for options in ({"token_budget": 1}, {"format": "xml"}, {"sections": "facts"}, {"max_memories": 1000}):
        with pytest.raises(InvalidArgument):
            client.context("x", **options)
    with pytest.raises(InvalidArgument):
        client.context("\ud800")
    assert client._core.breaker.allow()


def prepared(client: MemoryClient, query: str = "q", session: pb.Owners | None = None, **options: object):
    return client._contexts.prepare(query, options, session)


def block_of(text: str, token_count: int = 50, memory_id: str = "") -> cpb.Context:
    line = cpb.ContextLine(section=cpb.CONTEXT_SECTION_FACTS, text=text, memory_id=memory_id)
    return cpb.Context(text=text, token_count=token_count, lines=[line])


def test_the_last_block_of_the_same_request_stands_in_and_no_other():
    client = MemoryClient(user_id="u", cache_entries=2)
    contexts = client._contexts
    contexts.answered(prepared(client, "q"), block_of("old"))
    contexts.answered(prepared(client, "q", latency_budget_ms=50), block_of("new"))
    stale = contexts.not_answered(prepared(client, "q"), Unavailable("gone"))
    assert (stale.text, stale.source, stale.degraded) == ("new", "cache", ["SERVER_UNAVAILABLE", "STALE"])
    for query, options in (("other", {}), ("q", {"format": "json"}), ("q", {"token_budget": 2000})):
        none = contexts.fallback(prepared(client, query, **options), "CIRCUIT_OPEN")
        assert (none.text, none.source, none.degraded) == ("", "none", ["CIRCUIT_OPEN"])
    for i in range(2):
        contexts.answered(prepared(client, f"further {i}"), block_of("x"))
    assert contexts.fallback(prepared(client, "q"), "CIRCUIT_OPEN").source == "none"
    client.close()


def test_a_sessions_last_block_stands_in_for_any_query_that_it_fits():
    client = MemoryClient(user_id="u")
    contexts = client._contexts
    owners = pb.Owners(user_id="u", session_id="s")
    contexts.answered(prepared(client, "q", owners, token_budget=500), block_of("block", token_count=200))
    assert contexts.fallback(prepared(client, "other", owners), "SERVER_TIMEOUT").text == "block"
    assert contexts.fallback(prepared(client, "other", owners, token_budget=200), "SERVER_TIMEOUT").text == "block"
    for session, options in (
        (owners, {"token_budget": 199}),
        (owners, {"format": "json"}),
        (owners, {"sections": ["facts"]}),
        (pb.Owners(user_id="u", session_id="t"), {}),
        (None, {}),
    ):
        assert contexts.fallback(prepared(client, "q", session, **options), "SERVER_TIMEOUT").source == "none"
    client.close()


def test_a_block_that_cites_what_was_forgotten_is_not_used():
    client = MemoryClient(user_id="u")
    contexts = client._contexts
    contexts.answered(prepared(client), block_of("the code is 0000", memory_id="mem_1"))
    assert contexts.fallback(prepared(client), "SERVER_TIMEOUT").source == "cache"
    client._core.forgot(["mem_1"], [])
    assert contexts.fallback(prepared(client), "SERVER_TIMEOUT").text == ""
    client.close()


def test_a_degraded_recall_is_told():
    block = Context(cpb.Context(degraded=True), "server", ["SESSION_ENDING"], 1.0)
    assert block.degraded == ["SESSION_ENDING", "RECALL_DEGRADED"]
    assert repr(block) == "Context(0 tokens from server, degraded=['SESSION_ENDING', 'RECALL_DEGRADED'])"
    assert set(ContextLine.NAMES) == {field.name for field in cpb.ContextLine.DESCRIPTOR.fields}
    assert {field.name for field in cpb.Context.DESCRIPTOR.fields} <= set(Context.NAMES)
    assert Contexts  # the store of blocks is what the tests above look at


def test_a_server_that_stops_leaves_the_last_block_then_nothing(tmp_path):
    service = Service(Settings(data_dir=tmp_path / "data", listen="127.0.0.1:0", latency_budget_ms=20_000))
    try:
        client = MemoryClient(service.start(), user_id="u", timeout_s=PATIENT_S, write_timeout_s=PATIENT_S)
        client.write("the spare key is under the mat")
        assert client.context("spare key").source == "server"
    finally:
        service.close()
    with client:
        stale = client.context("spare key", timeout_s=1.0)
        assert (stale.source, "under the mat" in stale.text) == ("cache", True)
        assert stale.degraded[-1] == "STALE"
        for _ in range(4):
            nothing = client.context("something else", timeout_s=1.0)
            assert (nothing.source, nothing.text, nothing.lines) == ("none", "", [])
        assert nothing.degraded == ["CIRCUIT_OPEN"]


def test_the_async_client_does_the_same(server):
    async def main() -> None:
        async with AsyncMemoryClient(server, user_id=uuid.uuid4().hex, **OPTIONS) as client:
            rule = (await client.write("Reports are written in English", type="rule")).memory_id
            block = await client.context("reports", token_budget=100)
            assert (block.source, block.memory_ids) == ("server", [rule])
            with pytest.raises(TypeError, match="did you mean 'format'"):
                await client.context("x", formats="json")
            task = asyncio.get_running_loop().create_task(client.context("x"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        async with AsyncMemoryClient("127.0.0.1:1", user_id="u", timeout_s=1.0) as lost:
            answer = await lost.context("x")
            assert (answer.source, answer.text) == ("none", "")

    asyncio.run(main())
