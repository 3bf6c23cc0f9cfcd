"""Messages, reviews and conflicts: requests and results by themselves, and both clients against a service of stubs."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from memsvc_client import (
    AsyncMemoryClient,
    Conflict,
    IngestResult,
    InvalidArgument,
    Memory,
    MemoryClient,
    WriteResult,
    learning,
)
from memsvc_client._proto import memory_pb2 as pb
from memsvc_client._proto import memory_service_pb2 as spb
from memsvc_client._proto import memory_service_pb2_grpc as rpc
from memsvc_client.results import Change

PATIENT_S = 20.0
USER = pb.Namespace(tenant="default", scope=pb.SCOPE_USER, owner="u")


class Stubs(rpc.MemoryServiceServicer):
    """Answers by the contract alone and keeps what it was asked; `fail_at` counts the calls down to a refusal."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.fail_at = -1

    def _take(self, request: Any, context: grpc.ServicerContext) -> None:
        if len(self.asked) == self.fail_at:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "refused")
        self.asked.append(request)

    def Ingest(self, request, context):
        self._take(request, context)
        verdicts = []
        for i, message in enumerate(request.messages):
            verdict = spb.MessageVerdict(decision=spb.VERDICT_DECISION_DROPPED, stage=spb.FUNNEL_STAGE_RULE)
            if message.content.startswith("keep"):
                verdict = spb.MessageVerdict(decision=spb.VERDICT_DECISION_KEPT, stage=spb.FUNNEL_STAGE_SIGNAL)
                made = verdict.memories.add(memory=spb.MemoryDraft(content=message.content), stable=True)
                if not request.dry_run:
                    at = pb.NamespaceSequence(namespace=USER, sequence=i + 1)
                    made.result.CopyFrom(
                        spb.WriteResult(memory_id=f"mem_{i}", outcome=spb.WRITE_OUTCOME_CREATED, at=at, version=1)
                    )
            verdicts.append(verdict)
        return spb.IngestResponse(verdicts=verdicts)

    def Review(self, request, context):
        self._take(request, context)
        decided = [pb.Memory(memory_id=d.memory_id, version=2, namespace=USER) for d in request.decisions]
        return spb.ReviewResponse(memories=decided)

    def ListConflicts(self, request, context):
        self._take(request, context)
        number = int(request.page_token or 0)
        conflict = spb.Conflict(newer=pb.Memory(memory_id=f"mem_{number}"), summary=f"conflict {number}")
        return spb.ListConflictsResponse(conflicts=[conflict], next_page_token=str(number + 1) if number < 2 else "")

    def ResolveConflict(self, request, context):
        self._take(request, context)
        return spb.ResolveConflictResponse(memories=[pb.Memory(memory_id=request.memory_id, version=2)])

    def Watch(self, request, context):
        return iter(())


@pytest.fixture
def served() -> Iterator[tuple[Stubs, str]]:
    stubs = Stubs()
    server = grpc.server(ThreadPoolExecutor(4))
    rpc.add_MemoryServiceServicer_to_server(stubs, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield stubs, f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.fixture
def client(served) -> Iterator[MemoryClient]:
    with MemoryClient(served[1], user_id="u", tool="t", timeout_s=PATIENT_S, write_timeout_s=PATIENT_S) as opened:
        yield opened


def said(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"keep {i}" if i % 2 else f"noise {i}"} for i in range(count)]


# -- messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("user", spb.SPEAKER_USER),
        ("Human", spb.SPEAKER_USER),
        ("agent", spb.SPEAKER_AGENT),
        ("assistant", spb.SPEAKER_AGENT),
        ("tool", spb.SPEAKER_TOOL),
        ("function", spb.SPEAKER_TOOL),
        ("system", spb.SPEAKER_SYSTEM),
        ("developer", spb.SPEAKER_SYSTEM),
    ],
)
def test_speakers_go_by_the_names_of_logs(name, number):
    for key in ("speaker", "role"):
        assert learning.message({key: name, "content": "x"}, "m").speaker == number


def test_a_message_keeps_time_id_and_calls_in_both_shapes():
    aware = dt.datetime(2025, 1, 10, 9, tzinfo=dt.timezone(dt.timedelta(hours=8)))
    plain = {"name": "grep", "arguments": {"路径": 1}}
    openai = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"a": 1}'}}
    for time in (aware, "2025-01-10T09:00:00+08:00", "2025-01-10T01:00:00Z"):
        record = {"role": "assistant", "content": None, "time": time, "id": "m1", "tool_calls": [plain, openai]}
        built = learning.message(record, "m")
        assert built.time.ToDatetime(dt.UTC) == aware
        assert (built.message_id, built.content) == ("m1", "")
        assert [(c.name, c.arguments) for c in built.tool_calls] == [("grep", '{"路径": 1}'), ("ls", '{"a": 1}')]
    assert not learning.message({"role": "user", "content": "x"}, "m").HasField("time")


@pytest.mark.parametrize(
    ("record", "path", "told"),
    [
        ("text", "m", "must be an object"),
        ({"content": "x"}, "m.speaker", "is missing: user, agent, tool or system"),
        ({"role": "narrator", "content": "x"}, "m.speaker", "'narrator' is not one of user"),
        ({"role": 3, "content": "x"}, "m.speaker", "3 is not one of"),
        ({"role": "user"}, "m.content", "is missing"),
        ({"role": "user", "content": None}, "m.content", "is missing"),
        ({"role": "user", "content": ["x"]}, "m.content", "must be a text, not list"),
        ({"role": "user", "speaker": "tool", "content": "x"}, "m.role", "give one of them"),
        ({"role": "user", "content": "x", "times": 1}, "m.times", "did you mean 'time'?"),
        ({"role": "user", "content": "x", "zzz": 1}, "m.zzz", "it takes speaker, role"),
        ({"role": "user", "content": "x", "time": "2025-01-10T09:00"}, "m.time", "no time zone; add Z or +08:00"),
        ({"role": "user", "content": "x", "time": dt.datetime(2025, 1, 1)}, "m.time", "tzinfo=timezone.utc"),
        ({"role": "user", "content": "x", "time": "yesterday"}, "m.time", "not an ISO 8601 time"),
        ({"role": "user", "content": "x", "time": 1736499600}, "m.time", "with a zone, not int"),
        ({"role": "user", "content": "x", "id": 7}, "m.message_id", "must be a text, not int"),
        ({"role": "user", "content": "x", "tool_calls": {}}, "m.tool_calls", "must be a list, not dict"),
        ({"role": "user", "content": "x", "tool_calls": [{}]}, "m.tool_calls[0].name", "is missing"),
        ({"role": "user", "content": "x", "tool_calls": [{"nam": 1}]}, "m.tool_calls[0].nam", "did you mean 'name'?"),
    ],
)
def test_a_wrong_message_is_refused_naming_the_place_and_the_fix(record, path, told):
    with pytest.raises(InvalidArgument) as raised:
        learning.message(record, "m")
    assert told in raised.value.message
    assert raised.value.field_violations[0][0] == path


def test_text_that_is_not_unicode_is_refused_without_its_content():
    with pytest.raises(InvalidArgument, match="lone surrogate") as raised:
        learning.message({"role": "user", "content": "secret \ud800"}, "m")
    assert "secret" not in raised.value.message


def test_derived_request_ids_follow_from_the_first():
    given = str(uuid.uuid4())
    ids = learning.derived_request_ids(given, 3)
    assert ids == learning.derived_request_ids(given.upper(), 3)
    assert ids[0] == given
    assert len(set(ids)) == 3
    assert learning.derived_request_ids(None, 2) != learning.derived_request_ids(None, 2)
    for wrong in ("", "x", 5):
        with pytest.raises(InvalidArgument, match="not a UUID"):
            learning.derived_request_ids(wrong, 1)


# -- results -----------------------------------------------------------------------------------------------------


def test_verdicts_show_the_contract_in_plain_types():
    draft = spb.MemoryDraft(content="c", type=pb.MEMORY_TYPE_RULE, layer=pb.LAYER_SEMANTIC, subject="s", importance=0.7)
    draft.expire_time.FromSeconds(86_400)
    made = spb.IngestedMemory(memory=draft, stable=True)
    made.result.memory_id, made.result.outcome = "mem_1", spb.WRITE_OUTCOME_STAGED
    verdict = spb.MessageVerdict(
        decision=spb.VERDICT_DECISION_STAGED, stage=spb.FUNNEL_STAGE_MODEL, reason="unsure", fell_back=True
    )
    verdict.memories.extend([made, spb.IngestedMemory(memory=spb.MemoryDraft(content="d"))])
    kept = spb.MessageVerdict(decision=spb.VERDICT_DECISION_KEPT)
    result = IngestResult([verdict, kept])
    assert [v.decision for v in result.verdicts] == ["staged", "kept"]
    assert [v.decision for v in result.kept] == ["kept"]
    first = result.verdicts[0]
    assert (first.stage, first.reason, first.fell_back) == ("model", "unsure", True)
    one, two = first.memories
    assert (one.content, one.type, one.layer, one.subject) == ("c", "rule", "semantic", "s")
    assert (one.importance, one.confidence, one.stable) == (0.7, 1.0, True)
    assert one.expire_time == dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
    assert (one.result.memory_id, one.result.outcome) == ("mem_1", "staged")
    assert two.result is None
    assert two.expire_time is None
    told = result.to_dict()["verdicts"][0]
    assert told["memories"][0]["expire_time"] == "1970-01-02T00:00:00+00:00"
    assert told["memories"][0]["result"]["outcome"] == "staged"
    assert told["memories"][1]["result"] is None


def test_results_carry_conflicts_evidence_and_what_was_merged():
    message = spb.WriteResult(memory_id="mem_1", outcome=spb.WRITE_OUTCOME_REJECTED, conflicting_ids=["mem_1"])
    message.evidence.update({"reason": "outranked", "cosine": 0.5, "shared": ["a"]})
    result = WriteResult(message)
    assert result.conflicting_ids == ["mem_1"]
    assert result.evidence == {"reason": "outranked", "cosine": 0.5, "shared": ["a"]}
    assert result.to_dict()["evidence"]["reason"] == "outranked"

    record = pb.Memory(memory_id="mem_1", seen_count=3, blocked=True, last_seen_time={"seconds": 60})
    record.further_sources.add(tool="t", session_id="s", message_id="m")
    memory = Memory(record)
    assert (memory.seen_count, memory.blocked) == (3, True)
    assert memory.last_seen_time == dt.datetime(1970, 1, 1, 0, 1, tzinfo=dt.UTC)
    assert memory.further_sources == [{"tool": "t", "session_id": "s", "message_id": "m"}]
    told = memory.to_dict()
    assert (told["seen_count"], told["last_seen_time"], told["blocked"]) == (3, "1970-01-01T00:01:00+00:00", True)
    assert (Memory(pb.Memory()).seen_count, Memory(pb.Memory()).last_seen_time) == (1, None)

    change = spb.Change()
    change.evidence.update({"reason": "newer"})
    assert Change(change).evidence == {"reason": "newer"}

    conflict = spb.Conflict(newer=pb.Memory(memory_id="mem_2"), older=[record], summary="9077 or 9078")
    conflict.evidence.update({"cosine": 0.9})
    told = Conflict(conflict).to_dict()
    assert (told["memory_id"], told["summary"], told["evidence"]) == ("mem_2", "9077 or 9078", {"cosine": 0.9})
    assert [memory["memory_id"] for memory in told["older"]] == ["mem_1"]


# -- calls -------------------------------------------------------------------------------------------------------


def test_ingest_sends_parts_of_200_with_derived_ids_and_joins_the_verdicts(served, client):
    request_id = str(uuid.uuid4())
    result = client.ingest(said(401), session_id="s", scope="project", request_id=request_id)
    assert [len(r.messages) for r in served[0].asked] == [200, 200, 1]
    assert [r.request_id for r in served[0].asked] == learning.derived_request_ids(request_id, 3)
    assert {(r.session_id, r.tool, r.scope, r.dry_run) for r in served[0].asked} == {
        ("s", "t", pb.SCOPE_PROJECT, False)
    }
    assert [v.decision for v in result.verdicts] == [("dropped", "kept")[i % 2] for i in range(401)]
    assert len(result.kept) == 200
    assert result.kept[0].memories[0].result.memory_id == "mem_1"


def test_an_ingest_is_checked_as_a_whole_before_anything_is_sent(served, client):
    with pytest.raises(InvalidArgument, match=r"messages\[200\] has no key 'contents'"):
        client.ingest([*said(200), {"role": "user", "contents": "x"}])
    for wrong in ({"role": "user", "content": "x"}, "text"):
        with pytest.raises(InvalidArgument, match="messages must be a list"):
            client.ingest(wrong)
    with pytest.raises(InvalidArgument, match="session_id is empty"):
        client.ingest(said(1), session_id="")
    with pytest.raises(InvalidArgument, match="scope 'everyone' is not one of"):
        client.ingest(said(1), scope="everyone")
    assert client.ingest([]).verdicts == []
    assert served[0].asked == []


def test_a_dry_run_and_a_tool_of_its_own(served, client):
    result = client.ingest(iter(said(2)), tool="other", dry_run=True)
    assert (served[0].asked[0].tool, served[0].asked[0].dry_run) == ("other", True)
    assert result.kept[0].memories[0].result is None


def test_a_failure_in_a_later_part_carries_what_was_acknowledged(served, client):
    served[0].fail_at = 1
    with pytest.raises(InvalidArgument) as raised:
        client.ingest(said(250))
    assert len(raised.value.partial.verdicts) == 200
    served[0].fail_at = len(served[0].asked) + 1
    with pytest.raises(InvalidArgument) as raised:
        client.review({"id": f"mem_{i}", "action": "confirm"} for i in range(1001))
    assert len(raised.value.partial) == 1000


def test_review_sends_decisions_by_name_1000_to_a_transaction(served, client):
    decisions = [{"memory_id": f"mem_{i}", "action": "forget", "reason": "r"} for i in range(1000)]
    decisions.append({"id": "mem_last", "action": "correct", "content": "right"})
    memories = client.review(decisions)
    assert [len(r.decisions) for r in served[0].asked] == [1000, 1]
    assert served[0].asked[1].decisions[0] == spb.ReviewDecision(
        memory_id="mem_last", action=spb.REVIEW_ACTION_CORRECT, content="right"
    )
    assert [m.memory_id for m in memories] == [*(f"mem_{i}" for i in range(1000)), "mem_last"]


@pytest.mark.parametrize(
    ("decisions", "told"),
    [
        ([{"memory_id": "mem_1"}], r"decisions\[0\].action is missing"),
        ([{"action": "confirm"}], r"decisions\[0\].memory_id is missing"),
        ([{"id": "mem_1", "action": "approve"}], "not one of confirm, correct, forget, block"),
        ([{"id": "mem_1", "action": "confirm", "contents": "x"}], "did you mean 'content'?"),
        ([{"id": "mem_1", "action": "confirm"}] * 2, r"decisions\[1\].memory_id was decided about in decisions\[0\]"),
        ({"id": "mem_1", "action": "confirm"}, "decisions must be a list"),
    ],
)
def test_wrong_decisions_are_refused_before_anything_is_sent(served, client, decisions, told):
    with pytest.raises(InvalidArgument, match=told):
        client.review(decisions)
    assert served[0].asked == []


def test_conflicts_page_and_resolve_by_name(served, client):
    assert [c.memory_id for c in client.list_conflicts(scopes=["user"], page_size=1)] == ["mem_0", "mem_1", "mem_2"]
    assert list(served[0].asked[0].scopes) == [pb.SCOPE_USER]
    settled = client.resolve_conflict("mem_0", "keep_older", reason="asked")
    assert [m.memory_id for m in settled] == ["mem_0"]
    request = served[0].asked[-1]
    assert (request.resolution, request.reason) == (spb.CONFLICT_RESOLUTION_KEEP_OLDER, "asked")
    assert uuid.UUID(request.request_id)
    with pytest.raises(InvalidArgument, match="not one of keep_newer, keep_older, keep_both"):
        client.resolve_conflict("mem_0", "keep_all")


def test_the_async_client_does_the_same(served):
    stubs, address = served

    async def main() -> None:
        async with AsyncMemoryClient(address, user_id="u", write_timeout_s=PATIENT_S) as client:
            request_id = str(uuid.uuid4())
            result = await client.ingest(said(201), session_id="s", request_id=request_id)
            assert [r.request_id for r in stubs.asked] == learning.derived_request_ids(request_id, 2)
            assert len(result.verdicts) == 201
            assert [m.version for m in await client.review([{"id": "mem_1", "action": "block"}])] == [2]
            assert [c.summary async for c in client.list_conflicts()] == ["conflict 0", "conflict 1", "conflict 2"]
            assert (await client.resolve_conflict("mem_0", "keep_both"))[0].memory_id == "mem_0"
            stubs.fail_at = len(stubs.asked) + 1
            with pytest.raises(InvalidArgument) as raised:
                await client.ingest(said(201))
            assert len(raised.value.partial.verdicts) == 200

    asyncio.run(main())
