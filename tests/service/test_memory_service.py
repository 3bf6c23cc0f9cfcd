"""MemoryService over a real channel: what every language's client can rely on."""

from __future__ import annotations

import math
import threading
import uuid
from pathlib import Path

import grpc
import pytest
from google.protobuf import struct_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc

HOSTILE = [
    "a",
    "a/b",
    "a%2Fb",
    "%",
    "_",
    ".",
    "..",
    "a\n",
    "a\x00",
    "\x00",
    "😀",
    "é",
    "e\u0301",
    "A",
    "a ",
    "*",
    "a:b",
]
CODE = grpc.StatusCode


def refused(call, request) -> tuple[grpc.StatusCode, str, str, str]:
    """Code, reason, field and message of a refused call."""
    with pytest.raises(grpc.RpcError) as raised:
        call(request)
    status = rpc_status.from_call(raised.value)
    info, field = error_details_pb2.ErrorInfo(), ""
    status.details[0].Unpack(info)
    assert info.domain == "memsvc"
    for detail in status.details[1:]:
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad):
            field = bad.field_violations[0].field
    return raised.value.code(), info.reason, field, status.message


def draft_request(owners: pb.Owners, content: str = "x", **fields) -> spb.WriteRequest:
    return spb.WriteRequest(owners=owners, memory=spb.MemoryDraft(content=content, **fields))


def contents(response: spb.RecallResponse) -> list[str]:
    return [hit.memory.content for hit in response.hits]


def ids(response: spb.RecallResponse) -> list[str]:
    return [hit.memory.memory_id for hit in response.hits]


# -- isolation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["tenant", "user_id", "project_id", "agent_id", "session_id"])
def test_empty_owner_id_is_an_error_everywhere(stub, field):
    whom = pb.Owners(**{"user_id": "u", field: ""})
    for call, request in (
        (stub.Write, draft_request(whom)),
        (stub.Recall, spb.RecallRequest(owners=whom)),
        (stub.List, spb.ListRequest(owners=whom)),
        (stub.Get, spb.GetRequest(owners=whom, memory_id=f"mem_{uuid.uuid4()}")),
        (stub.Forget, spb.ForgetRequest(owners=whom, all=True)),
    ):
        assert refused(call, request)[:3] == (CODE.INVALID_ARGUMENT, "INVALID_ARGUMENT", f"owners.{field}")


def test_no_owner_is_an_error_never_all(stub):
    for call, request in (
        (stub.Write, draft_request(pb.Owners())),
        (stub.Recall, spb.RecallRequest(query="x")),
        (stub.List, spb.ListRequest()),
        (stub.Forget, spb.ForgetRequest(all=True)),
    ):
        assert refused(call, request)[0] == CODE.INVALID_ARGUMENT


def test_a_scope_without_its_owner_id_is_an_error(stub, owners):
    request = spb.RecallRequest(owners=owners, scopes=[pb.SCOPE_PROJECT])
    assert refused(stub.Recall, request)[2] == "owners.project_id"


def test_hostile_owner_ids_never_see_each_other(stub, remember, recall, fresh_id):
    prefix = fresh_id()
    for field in ("user_id", "session_id"):
        whom = [pb.Owners(**{field: prefix + one}) for one in HOSTILE]
        written = [remember(w, f"shared words number {i}").memory_id for i, w in enumerate(whom)]
        assert len(set(written)) == len(HOSTILE)
        for i, w in enumerate(whom):
            assert ids(recall(w, "shared words number", top_k=100)) == [written[i]]
            assert [m.memory_id for m in stub.List(spb.ListRequest(owners=w)).memories] == [written[i]]
            other = written[i - 1]
            assert refused(stub.Get, spb.GetRequest(owners=w, memory_id=other))[0] == CODE.NOT_FOUND


def test_user_and_session_ids_join_without_collision(remember, recall, fresh_id):
    base = fresh_id()
    pairs = [(f"{base}a/b", "c"), (f"{base}a", "b/c"), (f"{base}a%2Fb", "c"), (f"{base}a", "b%2Fc")]
    whom = [pb.Owners(user_id=user, session_id=session) for user, session in pairs]
    written = [remember(w, "in a session", scope=pb.SCOPE_SESSION).memory_id for w in whom]
    for i, w in enumerate(whom):
        assert ids(recall(w, "in a session")) == [written[i]]


def test_same_session_id_of_two_users_stays_separate(remember, recall, fresh_id):
    one, two = (pb.Owners(user_id=fresh_id(), session_id="1") for _ in range(2))
    remember(one, "the first user's secret plan", scope=pb.SCOPE_SESSION)
    assert contents(recall(two, "secret plan")) == []
    assert contents(recall(one, "secret plan")) == ["the first user's secret plan"]


def test_tenants_are_separate(remember, recall, fresh_id):
    user = fresh_id()
    remember(pb.Owners(tenant=fresh_id(), user_id=user), "tenant's own words")
    assert ids(recall(pb.Owners(tenant=fresh_id(), user_id=user), "tenant's own words")) == []


def test_metadata_cannot_change_identity(stub, remember, owners):
    metadata = struct_pb2.Struct()
    metadata.update({"user_id": "other", "memory_id": "mem_x", "tenant": "other", "namespace": {"owner": "other"}})
    written = remember(owners, "whose am I", metadata=metadata)
    memory = stub.Get(spb.GetRequest(owners=owners, memory_id=written.memory_id)).memory
    assert (memory.namespace.owner, memory.namespace.tenant) == (owners.user_id, "default")
    assert memory.metadata["user_id"] == "other"


def test_another_owner_can_neither_read_change_nor_forget(stub, remember, owners, fresh_id):
    written = remember(owners, "mine alone").memory_id
    other = pb.Owners(user_id=fresh_id())
    update = spb.UpdateRequest(owners=other, memory_id=written, patch=spb.MemoryPatch(content="stolen"))
    update.update_mask.paths.append("content")
    for call, request in (
        (stub.Get, spb.GetRequest(owners=other, memory_id=written)),
        (stub.Update, update),
        (stub.Forget, spb.ForgetRequest(owners=other, memory_ids=[written])),
        (stub.History, spb.HistoryRequest(owners=other, memory_id=written)),
    ):
        assert refused(call, request)[:2] == (CODE.NOT_FOUND, "NOT_FOUND")
    assert stub.Get(spb.GetRequest(owners=owners, memory_id=written)).memory.content == "mine alone"


def test_a_read_creates_nothing(service, stub, recall, fresh_id):
    whom = pb.Owners(user_id=fresh_id())
    recall(whom, "anything")
    stub.List(spb.ListRequest(owners=whom))
    with service.engine.read() as txn:
        assert whom.user_id not in {head.namespace.owner for head in txn.heads()}


# -- forget and update -------------------------------------------------------------------------------------------


def test_forgotten_is_gone_at_once_by_every_path_and_can_be_stored_again(stub, remember, recall, owners):
    text = "Invoice INV-20931 was paid by the cat food company"
    first = remember(owners, text).memory_id
    queries = ("INV-20931", "paid cat food", "who settled the pet nutrition bill", "")
    assert all(ids(recall(owners, query)) == [first] for query in queries)
    answer = stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[first], reason="asked to"))
    assert answer.forgotten_count == 1
    assert all(ids(recall(owners, query)) == [] for query in queries)
    again = stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[first]))
    assert (again.forgotten_count, list(again.already_forgotten_ids)) == (0, [first])
    second = remember(owners, text)
    assert second.outcome == spb.WRITE_OUTCOME_CREATED
    assert second.memory_id != first
    assert all(ids(recall(owners, query)) == [second.memory_id] for query in queries)


def test_forget_of_an_unknown_id_changes_nothing(stub, remember, owners):
    known = remember(owners, "stays").memory_id
    request = spb.ForgetRequest(owners=owners, memory_ids=[known, f"mem_{uuid.uuid4()}"])
    assert refused(stub.Forget, request)[0] == CODE.NOT_FOUND
    assert stub.Get(spb.GetRequest(owners=owners, memory_id=known)).memory.status == pb.STATUS_ACTIVE


def test_forget_all_counts_truly_and_leaves_others_alone(stub, recall, remember, owners, fresh_id):
    drafts = [spb.MemoryDraft(content=f"note {i}", tags=["odd"] if i % 2 else []) for i in range(701)]
    stub.BatchWrite(spb.BatchWriteRequest(owners=owners, memories=drafts))
    other = pb.Owners(user_id=fresh_id())
    remember(other, "note of another")
    odd = spb.ForgetRequest(owners=owners, all=True, filter=pb.Filter(tags_all=["odd"]))
    assert stub.Forget(odd).forgotten_count == 350
    assert stub.Forget(spb.ForgetRequest(owners=owners, all=True)).forgotten_count == 351
    assert stub.Forget(spb.ForgetRequest(owners=owners, all=True)).forgotten_count == 0
    assert ids(recall(owners, "note", top_k=100)) == []
    assert len(ids(recall(other, "note"))) == 1


def test_forget_all_replayed_spares_what_was_written_since(stub, recall, remember, owners):
    remember(owners, "one")
    again = spb.ForgetRequest(owners=owners, all=True, request_id=str(uuid.uuid4()))
    assert stub.Forget(again).forgotten_count == 1
    remember(owners, "two")
    assert stub.Forget(again).forgotten_count == 1
    other = spb.ForgetRequest(owners=owners, all=True, request_id=again.request_id, reason="another body")
    with pytest.raises(grpc.RpcError):
        stub.Forget(other)
    assert [hit.memory.content for hit in recall(owners, "two").hits] == ["two"]


def test_update_keeps_metadata_and_stamps_update_time(stub, remember, recall, owners):
    metadata = struct_pb2.Struct()
    metadata.update({"ticket": 7})
    written = remember(owners, "reports go out as PDF", metadata=metadata, tags=["t"], subject="s")
    before = stub.Get(spb.GetRequest(owners=owners, memory_id=written.memory_id)).memory
    request = spb.UpdateRequest(
        owners=owners, memory_id=written.memory_id, patch=spb.MemoryPatch(content="reports go out as HTML")
    )
    request.update_mask.paths.append("content")
    after = stub.Update(request).memory
    assert (after.version, after.metadata["ticket"], list(after.tags), after.subject) == (2, 7, ["t"], "s")
    assert after.update_time.ToNanoseconds() > before.update_time.ToNanoseconds()
    assert after.create_time == before.create_time
    assert after.etag != before.etag
    assert contents(recall(owners, "reports PDF HTML")) == ["reports go out as HTML"]


def test_etag_mismatch_is_aborted(stub, remember, owners):
    written = remember(owners, "one").memory_id
    etag = stub.Get(spb.GetRequest(owners=owners, memory_id=written)).memory.etag
    request = spb.UpdateRequest(owners=owners, memory_id=written, patch=spb.MemoryPatch(subject="a"), etag=etag)
    request.update_mask.paths.append("subject")
    stub.Update(request)
    assert refused(stub.Update, request)[:2] == (CODE.ABORTED, "ETAG_MISMATCH")
    forget = spb.ForgetRequest(owners=owners, memory_ids=[written], etag=etag)
    assert refused(stub.Forget, forget)[:2] == (CODE.ABORTED, "ETAG_MISMATCH")


@pytest.mark.parametrize("mask", [[], ["memory_id"], ["namespace.owner"], ["*"]])
def test_update_of_other_fields_is_refused(stub, remember, owners, mask):
    request = spb.UpdateRequest(owners=owners, memory_id=remember(owners, "fixed").memory_id)
    request.update_mask.paths.extend(mask)
    assert refused(stub.Update, request)[::2][:2] == (CODE.INVALID_ARGUMENT, "update_mask")


def test_update_of_a_forgotten_memory_is_refused(stub, remember, owners):
    written = remember(owners, "gone").memory_id
    stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[written]))
    request = spb.UpdateRequest(owners=owners, memory_id=written, patch=spb.MemoryPatch(subject="a"))
    request.update_mask.paths.append("subject")
    assert refused(stub.Update, request)[:2] == (CODE.FAILED_PRECONDITION, "NOT_ACTIVE")


# -- once --------------------------------------------------------------------------------------------------------


def test_the_same_request_id_stores_once_and_another_body_is_refused(stub, owners):
    request = draft_request(owners, "it happened", type=pb.MEMORY_TYPE_EVENT)
    request.request_id = str(uuid.uuid4())
    assert stub.Write(request) == stub.Write(request)
    assert len(stub.List(spb.ListRequest(owners=owners)).memories) == 1
    request.memory.content = "something else"
    assert refused(stub.Write, request)[:3] == (CODE.INVALID_ARGUMENT, "REQUEST_ID_REUSED", "request_id")


def test_parallel_retries_of_one_request_store_once(stub, owners):
    request = draft_request(owners, "raced", type=pb.MEMORY_TYPE_EVENT)
    request.request_id = str(uuid.uuid4())
    answers = [stub.Write.future(request) for _ in range(16)]
    assert len({answer.result().result.memory_id for answer in answers}) == 1
    assert len(stub.List(spb.ListRequest(owners=owners)).memories) == 1


def test_a_restarted_service_still_knows_the_request_id_and_every_memory(tmp_path: Path):
    settings = Settings(data_dir=tmp_path / "data", listen="127.0.0.1:0")
    request = draft_request(pb.Owners(user_id="u"), "it happened", type=pb.MEMORY_TYPE_EVENT)
    request.request_id = str(uuid.uuid4())
    answers = []
    for _ in range(2):
        service = Service(settings)
        try:
            with grpc.insecure_channel(service.start()) as channel:
                stub = rpc.MemoryServiceStub(channel)
                answers.append(stub.Write(request))
                listed = stub.List(spb.ListRequest(owners=request.owners)).memories
                assert [m.memory_id for m in listed] == [answers[0].result.memory_id]
        finally:
            service.close()
    assert answers[0] == answers[1]


def test_a_second_service_of_the_process_leaves_the_first_ones_watches_alone(stub, owners, tmp_path):
    other = Service(Settings(data_dir=tmp_path / "data", listen="127.0.0.1:0"))
    try:
        other.start()
    finally:
        other.close()
    call = stub.Watch(spb.WatchRequest(owners=owners))
    assert next(call).started_at
    call.cancel()


def test_the_same_statement_merges_and_the_same_event_twice_does_not(stub, remember, owners):
    first = remember(owners, "likes tea")
    second = remember(owners, "likes tea")
    assert (second.outcome, second.memory_id) == (spb.WRITE_OUTCOME_MERGED, first.memory_id)
    one, two = (remember(owners, "drank tea", type=pb.MEMORY_TYPE_EVENT) for _ in range(2))
    assert one.memory_id != two.memory_id


def test_supersede_stores_the_new_and_closes_the_old_together(stub, remember, recall, owners):
    old = remember(owners, "office in Berlin").memory_id
    new = remember(owners, "office in Lisbon", supersedes=[old])
    assert new.outcome == spb.WRITE_OUTCOME_SUPERSEDED
    assert ids(recall(owners, "office")) == [new.memory_id]
    closed = stub.Get(spb.GetRequest(owners=owners, memory_id=old)).memory
    assert (closed.status, closed.superseded_by) == (pb.STATUS_SUPERSEDED, new.memory_id)


def test_parallel_writes_lose_nothing(stub, owners):
    calls = [stub.Write.future(draft_request(owners, f"parallel {i}")) for i in range(64)]
    results = [call.result().result for call in calls]
    assert sorted(r.at.sequence for r in results) == list(range(1, 65))
    listed = stub.List(spb.ListRequest(owners=owners, page_size=1000)).memories
    assert {m.memory_id for m in listed} == {r.memory_id for r in results}


# -- refused input -----------------------------------------------------------------------------------------------


def test_unknown_fields_are_refused_at_every_depth(channel):
    write = channel.unary_unary("/memsvc.v1.MemoryService/Write", response_deserializer=spb.WriteResponse.FromString)
    extra = b"\xf8\x3f\x01"  # field 1023, varint 1
    request = draft_request(pb.Owners(user_id="u")).SerializeToString()
    assert refused(write, request + extra)[:3] == (CODE.INVALID_ARGUMENT, "UNKNOWN_FIELD", "WriteRequest.1023")
    assert refused(write, request + b"\x12\x03" + extra)[:3] == (
        CODE.INVALID_ARGUMENT,
        "UNKNOWN_FIELD",
        "memory.1023",
    )
    watch = channel.unary_stream("/memsvc.v1.MemoryService/Watch", response_deserializer=spb.WatchResponse.FromString)
    assert refused(lambda r: next(watch(r)), extra)[1] == "UNKNOWN_FIELD"


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"type": 99}, "memory.type", "INVALID_ARGUMENT"),
        ({"layer": 99}, "memory.layer", "INVALID_ARGUMENT"),
        ({"scope": 99}, "memory.scope", "INVALID_ARGUMENT"),
        ({"layer": pb.LAYER_PERMANENT}, "memory.layer", "LAYER_NOT_WRITABLE"),
        ({"importance": math.nan}, "memory.importance", "INVALID_ARGUMENT"),
        ({"confidence": 1.01}, "memory.confidence", "INVALID_ARGUMENT"),
        ({"importance": -math.inf}, "memory.importance", "INVALID_ARGUMENT"),
        ({"tags": ["t"] * 65}, "memory.tags", "LIMIT_EXCEEDED"),
        ({"tags": ["t"] * 10_000}, "memory.tags", "LIMIT_EXCEEDED"),
        ({"tags": ["t" * 129]}, "memory.tags", "LIMIT_EXCEEDED"),
        ({"tags": [""]}, "memory.tags", "INVALID_ARGUMENT"),
        ({"subject": "s" * 257}, "memory.subject", "LIMIT_EXCEEDED"),
        ({"content": "x" * 1_000_000}, "memory.content", "LIMIT_EXCEEDED"),
        ({"content": ""}, "memory.content", "INVALID_ARGUMENT"),
        ({"content": " \n\t\u3000"}, "memory.content", "INVALID_ARGUMENT"),
        ({"supersedes": ["mem_1"]}, "memory.supersedes", "INVALID_ARGUMENT"),
        ({"occur_time": {"seconds": 10**12}}, "memory.occur_time", "INVALID_ARGUMENT"),
        ({"occur_time": {"nanos": -1}}, "memory.occur_time.nanos", "INVALID_ARGUMENT"),
    ],
)
def test_bad_drafts_are_refused_naming_the_field(stub, owners, fields, field, reason):
    request = draft_request(owners, **fields)
    assert refused(stub.Write, request)[:3] == (CODE.INVALID_ARGUMENT, reason, field)
    assert not stub.List(spb.ListRequest(owners=owners)).memories


def test_metadata_limits(stub, owners):
    for value, reason in (
        ({"n": math.nan}, "INVALID_ARGUMENT"),
        ({"n": math.inf}, "INVALID_ARGUMENT"),
        ({"n": "x" * 20_000}, "LIMIT_EXCEEDED"),
    ):
        metadata = struct_pb2.Struct()
        metadata.update(value)
        request = draft_request(owners, metadata=metadata)
        assert refused(stub.Write, request)[1:3] == (reason, "memory.metadata")
    deep: dict = {}
    for _ in range(30):
        deep = {"d": deep}
    metadata = struct_pb2.Struct()
    metadata.update(deep)
    assert refused(stub.Write, draft_request(owners, metadata=metadata))[0] == CODE.INVALID_ARGUMENT


def test_a_batch_is_all_or_none_and_names_the_entry(stub, owners):
    drafts = [spb.MemoryDraft(content="fine"), spb.MemoryDraft(content="")]
    request = spb.BatchWriteRequest(owners=owners, memories=drafts)
    assert refused(stub.BatchWrite, request)[2] == "memories[1].content"
    assert not stub.List(spb.ListRequest(owners=owners)).memories
    assert refused(stub.BatchWrite, spb.BatchWriteRequest(owners=owners))[2] == "memories"


@pytest.mark.parametrize(
    ("request_fields", "field"),
    [
        ({"filter": pb.Filter(types=[99])}, "filter.types"),
        ({"filter": pb.Filter(types=[0])}, "filter.types"),
        ({"filter": pb.Filter(tags_all=[""])}, "filter.tags_all"),
        ({"filter": pb.Filter(min_importance=math.nan)}, "filter.min_importance"),
        ({"scopes": [99]}, "scopes"),
        ({"top_k": 101}, "top_k"),
        ({"top_k": -1}, "top_k"),
        ({"query": "q" * 8193}, "query"),
        ({"weights": spb.RecallWeights(vector=math.nan)}, "weights.vector"),
        ({"latency_budget": {"seconds": -1}}, "latency_budget"),
    ],
)
def test_bad_recalls_are_refused_naming_the_field(stub, owners, request_fields, field):
    request = spb.RecallRequest(owners=owners, **request_fields)
    assert refused(stub.Recall, request)[::2][:2] == (CODE.INVALID_ARGUMENT, field)


def test_bad_ids_tokens_and_request_ids_are_refused(stub, owners):
    for call, request, field in (
        (stub.Get, spb.GetRequest(owners=owners, memory_id="x"), "memory_id"),
        (stub.Get, spb.GetRequest(owners=owners), "memory_id"),
        (stub.List, spb.ListRequest(owners=owners, page_token="x"), "page_token"),
        (stub.List, spb.ListRequest(owners=owners, page_size=1001), "page_size"),
        (stub.Write, spb.WriteRequest(owners=owners, memory={"content": "c"}, request_id="1"), "request_id"),
    ):
        assert refused(call, request)[::2][:2] == (CODE.INVALID_ARGUMENT, field)


@pytest.mark.parametrize(
    "text",
    [
        "nul\x00inside",
        "😀👩‍👩‍👧‍👦",
        "\u202eright to left",
        "a|b`c\"d'e\\f/g",
        "x" * 65_536,
        "\ufeffbom",
        "あ" * 20_000,
        "\r\n.\r\n",
    ],
)
def test_odd_texts_come_back_as_they_were(stub, remember, recall, owners, text):
    written = remember(owners, text).memory_id
    assert stub.Get(spb.GetRequest(owners=owners, memory_id=written)).memory.content == text
    assert contents(recall(owners)) == [text]
    recall(owners, text[:8000])


# -- watch -------------------------------------------------------------------------------------------------------


def test_watch_resumes_without_gaps(stub, remember, owners):
    call = stub.Watch(spb.WatchRequest(owners=owners, recent_count=5))
    first = next(call)
    started = {at.namespace.scope: at.sequence for at in first.started_at}
    assert started[pb.SCOPE_USER] == 0
    remember(owners, "one")
    seen = [next(answer.change for answer in call if answer.HasField("change"))]
    call.cancel()
    assert seen[0].after.content == "one"
    for text in ("two", "three"):
        remember(owners, text)
    call = stub.Watch(spb.WatchRequest(owners=owners, after=[seen[0].at], recent_count=5))
    assert [m.content for m in next(call).recent][:3] == ["three", "two", "one"]
    writer = threading.Thread(target=remember, args=(owners, "four"))
    writer.start()
    changes = (answer.change for answer in call if answer.HasField("change"))
    seen += [next(changes) for _ in range(3)]
    writer.join()
    call.cancel()
    assert [c.at.sequence for c in seen] == [1, 2, 3, 4]
    assert [c.after.content for c in seen] == ["one", "two", "three", "four"]


def test_watch_refuses_positions_of_another_store_and_of_others(stub, remember, owners):
    at = remember(owners, "one").at
    at.sequence += 100
    request = spb.WatchRequest(owners=owners, after=[at])
    assert refused(lambda r: next(stub.Watch(r)), request)[2] == "after.sequence"
    at.namespace.owner += "other"
    request = spb.WatchRequest(owners=owners, after=[at])
    assert refused(lambda r: next(stub.Watch(r)), request)[2] == "after.namespace"


def test_min_sequences_reads_own_writes_and_errs_past_the_head(stub, remember, recall, owners):
    written = remember(owners, "just now")
    answer = recall(owners, "just now", min_sequences=[written.at])
    assert ids(answer) == [written.memory_id]
    assert written.at in answer.sequences
    ahead = pb.NamespaceSequence(namespace=written.at.namespace, sequence=written.at.sequence + 1)
    request = spb.RecallRequest(owners=owners, query="x", min_sequences=[ahead])
    request.latency_budget.FromMilliseconds(20)
    assert refused(stub.Recall, request)[:2] == (CODE.FAILED_PRECONDITION, "SEQUENCE_NOT_REACHED")


def test_admin_verify_finds_no_problem_and_stats_count(admin, stub, remember, owners):
    from memsvc.v1 import admin_service_pb2 as apb

    before = admin.GetStats(apb.GetStatsRequest())
    written = remember(owners, "counted").memory_id
    between = admin.GetStats(apb.GetStatsRequest())
    stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[written]))
    after = admin.GetStats(apb.GetStatsRequest())
    assert between.active_count == before.active_count + 1
    assert after.active_count == before.active_count
    assert not admin.Verify(apb.VerifyRequest()).problems
