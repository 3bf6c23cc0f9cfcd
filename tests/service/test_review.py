"""Writes for everybody wait for approval, over a real server: nobody recalls them, reviewers decide them."""

from __future__ import annotations

import threading
import uuid

import grpc
import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.memory.owners import Owners
from memsvc.service.auth.tokens import Wanted
from memsvc.v1 import audit_service_pb2 as apb
from memsvc.v1 import audit_service_pb2_grpc as arpc
from memsvc.v1 import context_service_pb2 as csb
from memsvc.v1 import context_service_pb2_grpc as crpc
from memsvc.v1 import event_service_pb2 as epb
from memsvc.v1 import event_service_pb2_grpc as erpc
from memsvc.v1 import fact_service_pb2 as fpb
from memsvc.v1 import fact_service_pb2_grpc as frpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc
from memsvc.v1 import permanent_service_pb2 as ppb
from memsvc.v1 import permanent_service_pb2_grpc as prpc
from memsvc.v1 import review_service_pb2 as vpb
from memsvc.v1 import review_service_pb2_grpc as vrpc
from memsvc.v1 import session_service_pb2 as sesb
from memsvc.v1 import session_service_pb2_grpc as serpc
from memsvc.v1 import skill_service_pb2 as kpb
from memsvc.v1 import skill_service_pb2_grpc as krpc

SECRET = "Alice's salary is 91,000 euros."
GLOBAL = [pb.SCOPE_GLOBAL]
APPROVE, REJECT, EDIT = (
    vpb.REVIEW_ITEM_ACTION_APPROVE,
    vpb.REVIEW_ITEM_ACTION_REJECT,
    vpb.REVIEW_ITEM_ACTION_EDIT,
)
KEEP_NEWER, KEEP_OLDER, KEEP_BOTH = (
    vpb.REVIEW_ITEM_ACTION_KEEP_NEWER,
    vpb.REVIEW_ITEM_ACTION_KEEP_OLDER,
    vpb.REVIEW_ITEM_ACTION_KEEP_BOTH,
)
PENDING, CREATED = spb.WRITE_OUTCOME_PENDING, spb.WRITE_OUTCOME_CREATED


@pytest.fixture
def tenant(fresh_id):
    return fresh_id()


@pytest.fixture
def everybody(tenant):
    return pb.Owners(tenant=tenant)


@pytest.fixture
def issue(service, tenant):
    """Issues a token of the tenant: issue("global=read") -> metadata of a call."""

    def make(*grants, **fields):
        token, _ = service.tokens.issue(Wanted(tenant=tenant, grants=grants, **fields), "local")
        return (("authorization", f"Bearer {token}"),)

    return make


@pytest.fixture(scope="module")
def reviews(channel):
    return vrpc.ReviewServiceStub(channel)


@pytest.fixture
def write(stub, everybody):
    """Writes into GLOBAL: the result."""

    def make(content=SECRET, token=None, **fields):
        draft = spb.MemoryDraft(content=content, scope=pb.SCOPE_GLOBAL, **fields)
        return stub.Write(spb.WriteRequest(owners=everybody, memory=draft), metadata=token).result

    return make


@pytest.fixture
def resolve(reviews, everybody):
    """Decides one item: its result."""

    def make(item_id, action, token=None, request_id="", **fields):
        decision = vpb.ReviewItemDecision(item_id=item_id, action=action, **fields)
        request = vpb.ReviewServiceResolveRequest(owners=everybody, decisions=[decision], request_id=request_id)
        (result,) = reviews.Resolve(request, metadata=token).results
        return result

    return make


@pytest.fixture
def stands(write, resolve):
    """Writes into GLOBAL and approves: the id."""

    def make(content, **fields):
        result = resolve(write(content, **fields).memory_id, APPROVE)
        assert result.outcome == CREATED, result
        return result.item_id

    return make


def code(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code().name


def recalled(stub, owners, token=None, **fields):
    request = spb.RecallRequest(owners=owners, scopes=GLOBAL, query="salary of Alice", top_k=100, **fields)
    request.latency_budget.FromSeconds(20)
    return [hit.memory.content for hit in stub.Recall(request, metadata=token).hits]


def listed(stub, owners, token=None, statuses=(), *, include_inactive=True):
    request = spb.ListRequest(owners=owners, scopes=GLOBAL, include_inactive=include_inactive)
    request.filter.statuses.extend(statuses)
    return [memory.content for memory in stub.List(request, metadata=token).memories]


def items(reviews, owners, token=None, **fields):
    request = vpb.ReviewServiceListRequest(owners=owners, scopes=GLOBAL, **fields)
    return list(reviews.List(request, metadata=token).items)


def get(stub, owners, memory_id, token=None, version=0):
    return stub.Get(spb.GetRequest(owners=owners, memory_id=memory_id, version=version), metadata=token).memory


# -- what waits is recalled by nobody ------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", [None, ("global=read,write",), ("global=read,write,approve",)])
def test_what_is_written_for_everybody_is_recalled_by_nobody(channel, stub, everybody, issue, write, writer):
    token = None if writer is None else issue(*writer)
    wrote = write(token=token)
    assert wrote.outcome == PENDING
    for reader in (None, token, issue("global=read"), issue("global=read,write,approve")):
        assert recalled(stub, everybody, reader) == []
        assert recalled(stub, everybody, reader, include_inactive=True) == []
        assert listed(stub, everybody, reader) == []
        assert listed(stub, everybody, reader, include_inactive=False) == []
        asked = csb.AssembleContextRequest(owners=everybody, query="salary of Alice")
        asked.options.scopes.extend(GLOBAL)
        asked.options.sections.extend([2, 3, 4])
        asked.options.latency_budget.FromSeconds(20)
        assert "salary" not in crpc.ContextServiceStub(channel).AssembleContext(asked, metadata=reader).context.text
    assert code(lambda: recalled(stub, everybody, filter=pb.Filter(statuses=[pb.STATUS_PENDING]))) == "INVALID_ARGUMENT"


def test_who_sees_what_waits(channel, stub, everybody, issue, write):
    writer, reader, approver = issue("global=read,write"), issue("global=read,write"), issue("global=read,approve")
    waits = write(token=writer).memory_id
    for token in (None, writer, approver):
        assert get(stub, everybody, waits, token).status == pb.STATUS_PENDING
        assert listed(stub, everybody, token, [pb.STATUS_PENDING]) == [SECRET]
        assert len(stub.History(spb.HistoryRequest(owners=everybody, memory_id=waits), metadata=token).changes) == 1
    assert code(lambda: get(stub, everybody, waits, reader)) == "NOT_FOUND"
    assert code(lambda: get(stub, everybody, waits, reader, version=1)) == "NOT_FOUND"
    assert listed(stub, everybody, reader, [pb.STATUS_PENDING]) == []
    history = spb.HistoryRequest(owners=everybody, memory_id=waits)
    assert code(lambda: stub.History(history, metadata=reader)) == "NOT_FOUND"
    why = apb.AuditServiceWhyRequest(owners=everybody, memory_id=waits)
    assert code(lambda: arpc.AuditServiceStub(channel).Why(why, metadata=reader)) == "NOT_FOUND"
    assert arpc.AuditServiceStub(channel).Why(why, metadata=writer).memory.content == SECRET
    forget = spb.ForgetRequest(owners=everybody, memory_ids=[waits])
    assert code(lambda: stub.Forget(forget, metadata=reader)) == "NOT_FOUND"
    proposal = ppb.PermanentServiceProposeRequest(owners=everybody, memory_id=waits, kind=1, reason="r")
    assert code(lambda: prpc.PermanentServiceStub(channel).Propose(proposal)) == "FAILED_PRECONDITION"
    assert stub.Forget(forget, metadata=writer).forgotten_count == 1


def test_a_watch_tells_readers_nothing_of_what_waits(stub, everybody, issue, write, resolve):
    reader = issue("global=read")
    watch = stub.Watch(spb.WatchRequest(owners=everybody, scopes=GLOBAL, recent_count=10), metadata=reader)
    assert not next(watch).recent
    rejected, edited = write().memory_id, write("Alice earns 91,000 euros.").memory_id
    resolve(rejected, REJECT)
    resolve(edited, EDIT, content="Alice works in sales.")
    change = next(answer.change for answer in watch if answer.HasField("change"))
    watch.cancel()
    assert change.after.content == "Alice works in sales."
    assert not change.HasField("before")


def test_batches_events_ingest_and_consolidation_wait_too(service, channel, stub, everybody, reviews):
    drafts = [spb.MemoryDraft(content=f"Rule {n}.", scope=pb.SCOPE_GLOBAL, layer=n) for n in (2, 3, 4)]
    batch = stub.BatchWrite(spb.BatchWriteRequest(owners=everybody, memories=drafts)).results
    assert [result.outcome for result in batch] == [PENDING] * 3
    events = erpc.EventServiceStub(channel)
    record = epb.EventServiceRecordRequest(
        owners=everybody, scope=pb.SCOPE_GLOBAL, summary="Pay day.", event=pb.EventDetail(event_type="pay")
    )
    assert events.Record(record).result.outcome == PENDING
    assert not events.Query(epb.EventServiceQueryRequest(owners=everybody, scopes=GLOBAL)).events
    said = [spb.Message(speaker=spb.SPEAKER_USER, content="We decided: all reports go out as PDF, always.")]
    ingested = stub.Ingest(spb.IngestRequest(owners=everybody, scope=pb.SCOPE_GLOBAL, messages=said))
    made = [memory.result.outcome for verdict in ingested.verdicts for memory in verdict.memories]
    assert made
    assert set(made) == {PENDING}
    sessions = serpc.SessionServiceStub(channel)
    whom = pb.Owners(tenant=everybody.tenant, user_id="u", session_id="s")
    turns = [spb.Message(speaker=spb.SPEAKER_USER, content="Remember: the office closes at six, always.")]
    sessions.Start(sesb.SessionServiceStartRequest(owners=whom))
    sessions.AppendTurns(sesb.SessionServiceAppendTurnsRequest(owners=whom, turns=turns))
    sessions.End(sesb.SessionServiceEndRequest(owners=whom, scope=pb.SCOPE_GLOBAL))
    service.consolidator.wait(Owners(tenant=everybody.tenant, user_id="u", session_id="s"), 60.0)
    assert len(items(reviews, everybody)) > 4 + len(made)
    assert listed(stub, everybody) == []


# -- deciding ------------------------------------------------------------------------------------------------------


def test_approving_stores_it_for_everybody(stub, everybody, issue, reviews, write, resolve):
    reader, approver = issue("global=read"), issue("global=read,approve")
    waits = write(token=issue("global=read,write")).memory_id
    (item,) = items(reviews, everybody, approver)
    assert (item.item_id, item.kind, item.memories[0].content) == (waits, vpb.REVIEW_ITEM_KIND_PENDING_WRITE, SECRET)
    assert item.actor.startswith("token:")
    assert item.HasField("create_time")
    one = reviews.Get(vpb.ReviewServiceGetRequest(owners=everybody, item_id=waits), metadata=approver).item
    assert one == item
    done = resolve(waits, APPROVE, approver, etag=item.etag, reason="fine")
    assert (done.outcome, done.memories[0].status, done.memories[0].version) == (CREATED, pb.STATUS_ACTIVE, 2)
    assert recalled(stub, everybody, reader) == [SECRET]
    assert items(reviews, everybody) == []
    history = stub.History(spb.HistoryRequest(owners=everybody, memory_id=waits), metadata=reader).changes
    assert [(change.reason, change.HasField("before")) for change in history] == [("fine", False)]
    assert len(stub.History(spb.HistoryRequest(owners=everybody, memory_id=waits), metadata=approver).changes) == 2


def test_what_was_rejected_is_read_by_nobody_else(stub, everybody, issue, write, resolve):
    writer, reader = issue("global=read,write"), issue("global=read,write")
    waits = write(token=writer).memory_id
    assert resolve(waits, REJECT, reason="not for everybody").memories[0].status == pb.STATUS_FORGOTTEN
    for token in (None, reader):
        assert recalled(stub, everybody, token, include_inactive=True) == []
        assert recalled(stub, everybody, token, filter=pb.Filter(statuses=[pb.STATUS_FORGOTTEN])) == []
    assert listed(stub, everybody, reader) == []
    assert code(lambda: get(stub, everybody, waits, reader)) == "NOT_FOUND"
    assert get(stub, everybody, waits, writer).status == pb.STATUS_FORGOTTEN
    assert resolve(waits, APPROVE).error_reason == "NOT_ACTIVE"


def test_editing_keeps_the_first_words_from_readers(channel, stub, everybody, issue, write, resolve):
    reader = issue("global=read")
    waits = write().memory_id
    assert resolve(waits, EDIT, content="Alice works in sales.").memories[0].content == "Alice works in sales."
    assert recalled(stub, everybody, reader, include_inactive=True) == ["Alice works in sales."]
    assert get(stub, everybody, waits, reader).content == "Alice works in sales."
    assert code(lambda: get(stub, everybody, waits, reader, version=1)) == "NOT_FOUND"
    assert SECRET not in str(stub.History(spb.HistoryRequest(owners=everybody, memory_id=waits), metadata=reader))
    why = apb.AuditServiceWhyRequest(owners=everybody, memory_id=waits)
    assert SECRET not in str(arpc.AuditServiceStub(channel).Why(why, metadata=reader))


def test_a_pending_write_touches_nothing_until_it_is_approved(stub, everybody, stands, write, resolve):
    old = stands("Reports go out as PDF.", subject="report.format")
    before = get(stub, everybody, old)
    before.ClearField("retention")
    again, other = write("Reports go out as PDF.", subject="report.format"), write("Old.", supersedes=[old])
    assert (again.outcome, other.outcome) == (PENDING, PENDING)
    now = get(stub, everybody, old)
    now.ClearField("retention")
    assert now == before
    assert resolve(again.memory_id, APPROVE).outcome == spb.WRITE_OUTCOME_MERGED
    assert get(stub, everybody, again.memory_id).superseded_by == old
    assert resolve(other.memory_id, APPROVE).outcome == spb.WRITE_OUTCOME_SUPERSEDED
    assert get(stub, everybody, old).superseded_by == other.memory_id


def test_said_again_by_the_same_writer_it_waits_once(everybody, reviews, issue, write):
    mine, theirs = issue("global=read,write"), issue("global=read,write")
    assert write(token=mine).memory_id == write(token=mine).memory_id
    assert write(token=theirs).memory_id != write(token=mine).memory_id
    assert len(items(reviews, everybody)) == 2


def test_approval_meets_what_stands_by_then(stub, everybody, reviews, write, resolve):
    first = write("The deployment window is Tuesday at 10:00.", subject="deploy.window", type=3).memory_id
    second = write("The deployment window is Friday at 16:00.", subject="deploy.window", type=3).memory_id
    assert resolve(first, APPROVE).outcome == CREATED
    done = resolve(second, APPROVE)
    assert done.outcome in (spb.WRITE_OUTCOME_SUPERSEDED, spb.WRITE_OUTCOME_CONTESTED)
    assert [memory.memory_id for memory in done.memories] == [second, first]
    assert get(stub, everybody, first).superseded_by == second


def contested(resolve, write):
    """Two statements of one fact of which nobody knows which holds; (newer, older)."""
    older = write(
        "Office guest wifi password rotation happens every 30 days.", subject="wifi", confidence=0.9
    ).memory_id
    resolve(older, APPROVE)
    newer = write(
        "Office guest wifi password rotation happens every 90 days.", subject="wifi", confidence=0.4
    ).memory_id
    return newer, older, resolve(newer, APPROVE)


@pytest.mark.parametrize(
    ("action", "newer_stands", "older_stands"), [(4, True, False), (5, False, True), (6, True, True)]
)
def test_conflicts_are_decided_here_too(stub, everybody, reviews, write, resolve, action, newer_stands, older_stands):
    newer, older, done = contested(resolve, write)
    assert done.outcome == spb.WRITE_OUTCOME_CONTESTED
    (item,) = items(reviews, everybody, kinds=[vpb.REVIEW_ITEM_KIND_CONFLICT])
    assert [memory.memory_id for memory in item.memories] == [newer, older]
    assert item.summary
    assert items(reviews, everybody, kinds=[vpb.REVIEW_ITEM_KIND_PENDING_WRITE]) == []
    assert resolve(newer, APPROVE).error_reason == "NOT_ACTIVE"
    assert resolve(newer, action, etag="v9").error_reason == "ETAG_MISMATCH"
    assert resolve(newer, action, etag=item.etag).error_reason == ""
    for memory_id, expected in ((newer, newer_stands), (older, older_stands)):
        assert (get(stub, everybody, memory_id).status == pb.STATUS_ACTIVE) == expected


def test_each_decision_has_its_own_result(reviews, everybody, write):
    good, stale = write("One.").memory_id, write("Two.").memory_id
    request = vpb.ReviewServiceResolveRequest(
        owners=everybody,
        decisions=[
            vpb.ReviewItemDecision(item_id=stale, action=APPROVE, etag="v7"),
            vpb.ReviewItemDecision(item_id=f"mem_{uuid.uuid4()}", action=APPROVE),
            vpb.ReviewItemDecision(item_id=good, action=APPROVE),
        ],
        request_id=str(uuid.uuid4()),
    )
    first = reviews.Resolve(request)
    assert [result.error_reason for result in first.results] == ["ETAG_MISMATCH", "NOT_FOUND", ""]
    assert reviews.Resolve(request) == first
    assert [item.item_id for item in items(reviews, everybody)] == [stale]


def test_the_list_comes_in_pages(reviews, everybody, write):
    ids = [write(f"Statement {n}.").memory_id for n in range(5)]
    found, token = [], ""
    while True:
        page = reviews.List(
            vpb.ReviewServiceListRequest(owners=everybody, scopes=GLOBAL, page_size=2, page_token=token)
        )
        found += [item.item_id for item in page.items]
        token = page.next_page_token
        if not token:
            break
    assert found == ids


# -- rights --------------------------------------------------------------------------------------------------------


def test_what_stands_for_everybody_changes_by_approvers_only(channel, stub, everybody, issue, stands, reviews):
    writer, approver = issue("global=read,write"), issue("global=read,write,approve")
    memory = stands("The office closes at six.")
    facts, skills = frpc.FactServiceStub(channel), krpc.SkillServiceStub(channel)
    put = fpb.FactServicePutRequest(owners=everybody, scope=pb.SCOPE_GLOBAL, key="k")
    put.value.string_value = "v"
    text = "name: tea\ndescription: Serves tea.\ntrigger: When somebody wants tea.\nsteps:\n  - boil water\n"
    update = spb.UpdateRequest(owners=everybody, memory_id=memory, patch=spb.MemoryPatch(importance=0.9))
    update.update_mask.paths.append("importance")
    calls = [
        (reviews.List, vpb.ReviewServiceListRequest(owners=everybody, scopes=GLOBAL)),
        (stub.Update, update),
        (facts.Put, put),
        (facts.Delete, fpb.FactServiceDeleteRequest(owners=everybody, scope=pb.SCOPE_GLOBAL, key="k")),
        (skills.Push, kpb.SkillServicePushRequest(owners=everybody, scope=pb.SCOPE_GLOBAL, source=text)),
        (skills.Rollback, kpb.SkillServiceRollbackRequest(owners=everybody, scopes=GLOBAL, name="tea", version=1)),
        (stub.Forget, spb.ForgetRequest(owners=everybody, memory_ids=[memory])),
        (stub.Forget, spb.ForgetRequest(owners=everybody, all=True, scopes=GLOBAL)),
    ]
    for call, request in calls:
        assert code(lambda call=call, request=request: call(request, metadata=writer)) == "PERMISSION_DENIED"
    for call, request in calls:
        call(request, metadata=approver)


def test_resolving_needs_the_right_to_approve(reviews, everybody, issue, write, resolve):
    writer = issue("global=read,write")
    waits = write(token=writer).memory_id
    assert code(lambda: resolve(waits, APPROVE, writer)) == "PERMISSION_DENIED"
    request = vpb.ReviewServiceGetRequest(owners=everybody, item_id=waits)
    assert code(lambda: reviews.Get(request, metadata=writer)) == "PERMISSION_DENIED"
    other = issue("global:episodic=read,approve")
    assert code(lambda: resolve(waits, APPROVE, other)) == "PERMISSION_DENIED"


# -- races and restarts --------------------------------------------------------------------------------------------


def test_of_many_reviewers_one_wins(everybody, reviews, stub, write, resolve):
    ids = [write(f"Racing statement number {n} about topic {n}.").memory_id for n in range(6)]
    won: list[tuple[str, int]] = []
    lost: list[str] = []
    start = threading.Barrier(8)

    def review(number):
        start.wait()
        for memory_id in ids:
            action = (APPROVE, REJECT, EDIT)[number % 3]
            content = f"Edited by {number}." if action == EDIT else ""
            result = resolve(memory_id, action, etag="v1", content=content)
            if result.error_reason:
                lost.append(result.error_reason)
            else:
                won.append((memory_id, action))

    threads = [threading.Thread(target=review, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(memory_id for memory_id, _ in won) == sorted(ids)
    assert len(lost) == 7 * len(ids)
    assert set(lost) <= {"ETAG_MISMATCH", "NOT_ACTIVE"}
    for memory_id, action in won:
        assert (get(stub, everybody, memory_id).status == pb.STATUS_FORGOTTEN) == (action == REJECT)


def test_what_waits_outlives_a_restart(tmp_path):
    owners = pb.Owners(tenant="t")
    waits = ""
    for run in range(2):
        running = Service(Settings(data_dir=tmp_path, listen="127.0.0.1:0"))
        try:
            with grpc.insecure_channel(running.start(), [("grpc.enable_http_proxy", 0)]) as channel:
                stub, reviews = rpc.MemoryServiceStub(channel), vrpc.ReviewServiceStub(channel)
                if run == 0:
                    draft = spb.MemoryDraft(content=SECRET, scope=pb.SCOPE_GLOBAL)
                    waits = stub.Write(spb.WriteRequest(owners=owners, memory=draft)).result.memory_id
                assert recalled(stub, owners, include_inactive=True) == []
                assert [item.item_id for item in items(reviews, owners)] == [waits]
                if run == 1:
                    decision = vpb.ReviewItemDecision(item_id=waits, action=APPROVE)
                    reviews.Resolve(vpb.ReviewServiceResolveRequest(owners=owners, decisions=[decision]))
                    assert recalled(stub, owners) == [SECRET]
        finally:
            running.close()
