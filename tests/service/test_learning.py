"""Ingest, staging, duplicates, conflicts, reviews and secrets through a real server with the real model."""

from __future__ import annotations

import datetime as dt
import threading
import uuid

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb

NOW = dt.datetime.now(dt.UTC)
FACT, DECISION = pb.MEMORY_TYPE_FACT, pb.MEMORY_TYPE_DECISION
ACTIVE, SUPERSEDED, CONTESTED = pb.STATUS_ACTIVE, pb.STATUS_SUPERSEDED, pb.STATUS_CONTESTED
AWS_KEY = "AKIA" + "Q3EGUTCZ7RZ5LNHK"


def ago(**span: float) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(NOW - dt.timedelta(**span))
    return stamp


def get(stub, owners, memory_id):
    return stub.Get(spb.GetRequest(owners=owners, memory_id=memory_id)).memory


def active(stub, owners):
    return sorted(m.content for m in stub.List(spb.ListRequest(owners=owners)).memories)


def ingest(stub, owners, *texts, session="s1", speaker=spb.SPEAKER_USER, **fields):
    messages = [spb.Message(speaker=speaker, content=text, time=ago(minutes=5)) for text in texts]
    request = spb.IngestRequest(owners=owners, messages=messages, session_id=session, **fields)
    return list(stub.Ingest(request).verdicts)


# -- conflicts ---------------------------------------------------------------------------------------------------


def test_the_newer_statement_supersedes_and_both_are_linked(stub, owners, remember, recall):
    old = remember(owners, "The production database is MySQL", type=FACT, occur_time=ago(days=30))
    new = remember(owners, "The production database is PostgreSQL now", type=FACT)
    assert new.outcome == spb.WRITE_OUTCOME_SUPERSEDED
    assert list(new.conflicting_ids) == [old.memory_id]
    assert new.evidence["reason"]
    was, stands = get(stub, owners, old.memory_id), get(stub, owners, new.memory_id)
    assert (was.status, was.superseded_by, was.content) == (
        SUPERSEDED,
        new.memory_id,
        "The production database is MySQL",
    )
    assert list(stands.supersedes) == [old.memory_id]
    assert active(stub, owners) == ["The production database is PostgreSQL now"]
    assert [h.memory.memory_id for h in recall(owners, "which production database").hits] == [new.memory_id]
    changes = stub.History(spb.HistoryRequest(owners=owners, memory_id=new.memory_id)).changes
    assert changes[0].evidence["reason"] == new.evidence["reason"]


def test_the_same_meaning_is_merged_and_reinforces(stub, owners, remember):
    source = pb.Source(tool="a", session_id="s1")
    first = remember(
        owners, "用户喜欢简洁的回答", type=pb.MEMORY_TYPE_PREFERENCE, source=source, occur_time=ago(days=3)
    )
    again = remember(
        owners, "用户喜欢简洁的回答", type=pb.MEMORY_TYPE_PREFERENCE, source=pb.Source(tool="b", session_id="s2")
    )
    assert (again.outcome, again.memory_id) == (spb.WRITE_OUTCOME_MERGED, first.memory_id)
    memory = get(stub, owners, first.memory_id)
    assert (memory.seen_count, [s.tool for s in memory.further_sources]) == (2, ["b"])
    assert memory.importance > 0.5
    assert memory.last_seen_time.ToDatetime(dt.UTC) > NOW - dt.timedelta(hours=1)
    assert len(active(stub, owners)) == 1


def test_a_client_that_retries_for_ever_changes_nothing(stub, owners, remember):
    first = remember(owners, "The office is in Lisbon")
    for _ in range(5):
        again = remember(owners, "The office is in Lisbon")
        assert again.outcome == spb.WRITE_OUTCOME_MERGED
    assert get(stub, owners, first.memory_id).version == 1


def test_a_decision_outranks_a_fact_whatever_the_order(stub, owners, remember):
    decided = remember(
        owners, "We decided to use PostgreSQL for the orders service", type=DECISION, occur_time=ago(days=30)
    )
    heard = remember(owners, "The orders service uses MySQL", type=FACT)
    assert heard.outcome == spb.WRITE_OUTCOME_REJECTED
    assert heard.memory_id == decided.memory_id
    assert get(stub, owners, decided.memory_id).status == ACTIVE
    kept = stub.List(spb.ListRequest(owners=owners, include_inactive=True)).memories
    assert sorted(m.status for m in kept) == [ACTIVE, SUPERSEDED]  # what was said is kept for audit
    assert remember(owners, "The orders service uses MySQL", type=FACT).outcome == spb.WRITE_OUTCOME_REJECTED
    assert len(stub.List(spb.ListRequest(owners=owners, include_inactive=True)).memories) == 2


def test_an_old_log_never_overrides_what_was_said_later(stub, owners, remember):
    later = remember(owners, "The user's manager is Amina", type=FACT, occur_time=ago(days=2))
    earlier = remember(owners, "The user's manager is Leo", type=FACT, occur_time=ago(days=300))
    assert (earlier.outcome, earlier.memory_id) == (spb.WRITE_OUTCOME_REJECTED, later.memory_id)
    assert active(stub, owners) == ["The user's manager is Amina"]


def test_other_owners_never_meet(stub, fresh_id, remember):
    first, second = pb.Owners(user_id=fresh_id()), pb.Owners(user_id=fresh_id())
    remember(first, "The production database is MySQL", occur_time=ago(days=9))
    assert remember(second, "The production database is PostgreSQL now").outcome == spb.WRITE_OUTCOME_CREATED
    assert active(stub, first) == ["The production database is MySQL"]


def test_events_are_never_merged(stub, owners, remember):
    for minutes in (20, 10):
        fields = {"type": pb.MEMORY_TYPE_EVENT, "occur_time": ago(minutes=minutes)}
        assert remember(owners, "Deployment of billing failed", **fields).outcome == spb.WRITE_OUTCOME_CREATED


@pytest.fixture
def contested(stub, owners, remember):
    """Two statements of one minute that can't both be right."""
    first = remember(owners, "Server port is 8080", type=FACT, occur_time=ago(minutes=10))
    second = remember(owners, "Server port is 9090", type=FACT, occur_time=ago(minutes=9))
    assert second.outcome == spb.WRITE_OUTCOME_CONTESTED
    return first.memory_id, second.memory_id


def resolve(stub, owners, memory_id, resolution):
    request = spb.ResolveConflictRequest(
        owners=owners, memory_id=memory_id, resolution=resolution, request_id=str(uuid.uuid4())
    )
    first = stub.ResolveConflict(request)
    assert stub.ResolveConflict(request) == first
    return first.memories


def test_a_contested_pair_waits_and_the_newer_is_recalled(stub, owners, contested, recall):
    hits = recall(owners, "server port").hits
    assert [(h.memory.memory_id, h.memory.status) for h in hits] == [(contested[1], CONTESTED)]
    (conflict,) = stub.ListConflicts(spb.ListConflictsRequest(owners=owners)).conflicts
    assert conflict.newer.memory_id == contested[1]
    assert [m.memory_id for m in conflict.older] == [contested[0]]
    assert "8080" in conflict.summary
    assert "9090" in conflict.summary
    assert conflict.evidence["reason"]


@pytest.mark.parametrize(
    ("resolution", "left"),
    [
        (spb.CONFLICT_RESOLUTION_KEEP_NEWER, ["Server port is 9090"]),
        (spb.CONFLICT_RESOLUTION_KEEP_OLDER, ["Server port is 8080"]),
        (spb.CONFLICT_RESOLUTION_KEEP_BOTH, ["Server port is 8080", "Server port is 9090"]),
    ],
)
def test_a_contested_pair_is_settled(stub, owners, contested, resolution, left):
    resolve(stub, owners, contested[1], resolution)
    assert active(stub, owners) == left
    assert not stub.ListConflicts(spb.ListConflictsRequest(owners=owners)).conflicts
    with pytest.raises(grpc.RpcError, match="not CONTESTED"):
        stub.ResolveConflict(spb.ResolveConflictRequest(owners=owners, memory_id=contested[1], resolution=resolution))


def test_conflicts_are_listed_page_by_page(stub, fresh_id, remember):
    owners = pb.Owners(user_id=fresh_id(), project_id=fresh_id())
    for scope in (pb.SCOPE_USER, pb.SCOPE_PROJECT):
        remember(owners, "Server port is 8080", scope=scope, occur_time=ago(minutes=10))
        remember(owners, "Server port is 9090", scope=scope, occur_time=ago(minutes=9))
    seen, token = [], ""
    while True:
        page = stub.ListConflicts(spb.ListConflictsRequest(owners=owners, page_size=1, page_token=token))
        seen += [conflict.newer.memory_id for conflict in page.conflicts]
        token = page.next_page_token
        if not token:
            break
    assert len(seen) == len(set(seen)) == 2


def test_two_writers_who_contradict_each_other_leave_one_active(stub, owners, remember):
    remember(owners, "The team standup is at 9:00", occur_time=ago(days=9))
    texts = [f"The team standup is now at {hour}:30" for hour in range(10, 16)]
    start = threading.Barrier(len(texts))

    def write(text: str) -> None:
        start.wait()
        remember(owners, text, occur_time=ago(minutes=1))

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(active(stub, owners)) == 1


def test_one_batch_contradicting_itself_leaves_one_active(stub, owners):
    drafts = [
        spb.MemoryDraft(content=f"The team standup is at {hour}:15", occur_time=ago(days=20 - hour))
        for hour in (9, 10, 11)
    ]
    results = stub.BatchWrite(spb.BatchWriteRequest(owners=owners, memories=drafts)).results
    assert [r.outcome for r in results[1:]] == [spb.WRITE_OUTCOME_SUPERSEDED] * 2
    assert active(stub, owners) == ["The team standup is at 11:15"]


def test_an_update_that_contradicts_supersedes(stub, owners, remember):
    other = remember(owners, "The production database is MySQL", occur_time=ago(days=30))
    mine = remember(owners, "The cache is Redis")
    stub.Update(
        spb.UpdateRequest(
            owners=owners,
            memory_id=mine.memory_id,
            patch=spb.MemoryPatch(content="The production database is PostgreSQL now"),
            update_mask={"paths": ["content"]},
        )
    )
    assert get(stub, owners, other.memory_id).superseded_by == mine.memory_id


# -- ingest and staging ------------------------------------------------------------------------------------------


def test_what_is_worth_keeping_is_kept_and_noise_is_not(stub, owners, recall):
    verdicts = ingest(stub, owners, "thanks!", "From now on keep your answers under five lines.", "ok 那先这样")
    decisions = [v.decision for v in verdicts]
    assert decisions == [spb.VERDICT_DECISION_DROPPED, spb.VERDICT_DECISION_KEPT, spb.VERDICT_DECISION_DROPPED]
    (made,) = verdicts[1].memories
    assert made.result.outcome == spb.WRITE_OUTCOME_CREATED
    memory = get(stub, owners, made.result.memory_id)
    assert (memory.type, memory.source.session_id) == (pb.MEMORY_TYPE_PREFERENCE, "s1")
    assert "five lines" in memory.content
    assert recall(owners, "how long should answers be").hits[0].memory.memory_id == memory.memory_id


def test_a_dry_run_stores_nothing(stub, owners):
    (verdict,) = ingest(stub, owners, "Always use tabs in Go files from now on.", dry_run=True)
    assert verdict.decision == spb.VERDICT_DECISION_KEPT
    assert not verdict.memories[0].HasField("result")
    assert not active(stub, owners)


def test_a_replayed_ingest_answers_as_the_first(stub, owners):
    request = spb.IngestRequest(
        owners=owners,
        messages=[spb.Message(speaker=spb.SPEAKER_USER, content="Please always answer in French from now on.")],
        session_id="s1",
        request_id=str(uuid.uuid4()),
    )
    first = stub.Ingest(request)
    assert first.verdicts[0].memories
    assert stub.Ingest(request) == first
    assert len(active(stub, owners)) == 1


def staged(service, owners, session, text):
    """Stages a statement as the funnel does with what it is not sure about."""
    from memsvc.memory.drafts import Draft
    from memsvc.memory.owners import Owners
    from memsvc.memory.transactions import Mutation
    from memsvc.model import Source

    drafts = [Draft(content=text, staged=True, source=Source("t", session))]
    whom = Owners(user_id=owners.user_id)
    return service.memories.write(whom, drafts, Mutation("", b"", "test"), path="x")[0]


def test_a_staged_memory_is_seen_by_its_own_session_only(service, stub, owners, recall):
    result = staged(service, owners, "s1", "The user may prefer dark roast coffee")
    mine = pb.Owners(user_id=owners.user_id, session_id="s1")
    other = pb.Owners(user_id=owners.user_id, session_id="s2")
    assert [h.memory.memory_id for h in recall(mine, "coffee").hits] == [result.memory_id]
    assert recall(mine, "coffee").hits[0].memory.status == pb.STATUS_STAGED
    assert not recall(other, "coffee").hits
    assert not recall(owners, "coffee").hits
    assert not active(stub, owners)


def test_a_staged_memory_becomes_active_in_its_second_session(service, stub, owners, recall):
    text = "The user may prefer dark roast coffee"
    first = staged(service, owners, "s1", text)
    staged(service, owners, "s1", text)
    assert not recall(owners, "coffee").hits
    again = staged(service, owners, "s2", text)
    assert again.memory_id == first.memory_id
    assert active(stub, owners) == [text]
    assert not get(stub, owners, first.memory_id).HasField("expire_time")


def test_a_staged_memory_never_replaces_an_active_one(service, stub, owners, remember):
    remember(owners, "The production database is MySQL", occur_time=ago(days=30))
    staged(service, owners, "s1", "The production database is PostgreSQL now")
    assert active(stub, owners) == ["The production database is MySQL"]


def test_messages_have_limits(stub, owners):
    def code(**fields):
        with pytest.raises(grpc.RpcError) as caught:
            stub.Ingest(spb.IngestRequest(owners=owners, **fields))
        return caught.value.code(), caught.value.details()

    assert code()[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert "messages[0].speaker" in code(messages=[spb.Message(content="x")])[1]
    many = [spb.Message(speaker=spb.SPEAKER_USER, content="x")] * 201
    assert "200" in code(messages=many)[1]
    huge = [spb.Message(speaker=spb.SPEAKER_USER, content="x" * 70_000)]
    assert "messages[0].content" in code(messages=huge)[1]


# -- secrets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"content": f"密钥是{AWS_KEY}，别外传"},
        {"content": "x", "tags": [AWS_KEY]},
        {"content": "x", "subject": AWS_KEY},
        {"content": "x", "metadata": {"deep": [{"key": AWS_KEY}]}},
    ],
)
def test_a_secret_is_refused_wherever_it_stands(stub, owners, fields):
    with pytest.raises(grpc.RpcError) as caught:
        stub.Write(spb.WriteRequest(owners=owners, memory=spb.MemoryDraft(**fields)))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert AWS_KEY not in caught.value.details()
    assert AWS_KEY.encode() not in dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    assert not active(stub, owners)


def test_a_secret_does_not_come_in_by_update_or_review(stub, owners, remember):
    memory_id = remember(owners, "The cache is Redis").memory_id
    patch = spb.MemoryPatch(content=f"The key is {AWS_KEY}")
    with pytest.raises(grpc.RpcError, match="api_key"):
        stub.Update(
            spb.UpdateRequest(owners=owners, memory_id=memory_id, patch=patch, update_mask={"paths": ["content"]})
        )
    correct = spb.ReviewDecision(memory_id=memory_id, action=spb.REVIEW_ACTION_CORRECT, content=f"Key {AWS_KEY}")
    with pytest.raises(grpc.RpcError, match="api_key"):
        stub.Review(spb.ReviewRequest(owners=owners, decisions=[correct]))
    assert active(stub, owners) == ["The cache is Redis"]


def test_a_message_with_a_secret_is_dropped_and_the_others_go_on(stub, owners):
    verdicts = ingest(stub, owners, f"remember my key {AWS_KEY}", "From now on always answer in German.")
    assert [v.decision for v in verdicts] == [spb.VERDICT_DECISION_DROPPED, spb.VERDICT_DECISION_KEPT]
    assert "api_key" in verdicts[0].reason
    assert AWS_KEY not in str(verdicts)


# -- reviews -----------------------------------------------------------------------------------------------------


def review(stub, owners, memory_id, action, **fields):
    decision = spb.ReviewDecision(memory_id=memory_id, action=action, **fields)
    return stub.Review(spb.ReviewRequest(owners=owners, decisions=[decision])).memories[0]


def test_a_review_confirms_corrects_and_forgets(service, stub, owners, remember, recall):
    sure = remember(owners, "The user has two cats", confidence=0.4).memory_id
    assert review(stub, owners, sure, spb.REVIEW_ACTION_CONFIRM).confidence == 1.0
    fixed = review(stub, owners, sure, spb.REVIEW_ACTION_CORRECT, content="The user has three dogs")
    assert fixed.version == 3
    assert recall(owners, "dogs").hits[0].memory.content == "The user has three dogs"
    waits = staged(service, owners, "s1", "The user may like jazz").memory_id
    assert review(stub, owners, waits, spb.REVIEW_ACTION_CONFIRM).status == ACTIVE
    assert review(stub, owners, waits, spb.REVIEW_ACTION_FORGET).status == pb.STATUS_FORGOTTEN
    with pytest.raises(grpc.RpcError, match="FORGOTTEN"):
        review(stub, owners, waits, spb.REVIEW_ACTION_CONFIRM)


def test_what_is_blocked_does_not_come_back(stub, owners, remember):
    blocked = remember(owners, "The user smokes").memory_id
    assert review(stub, owners, blocked, spb.REVIEW_ACTION_BLOCK).blocked
    again = remember(owners, "The user smokes")
    assert (again.outcome, again.memory_id) == (spb.WRITE_OUTCOME_REJECTED, blocked)
    assert remember(owners, "the user smokes.").outcome == spb.WRITE_OUTCOME_REJECTED
    assert not active(stub, owners)
    assert remember(owners, "The user's cat is called Smokey").outcome == spb.WRITE_OUTCOME_CREATED


def test_forgetting_alone_does_not_block(stub, owners, remember):
    memory_id = remember(owners, "The user smokes").memory_id
    review(stub, owners, memory_id, spb.REVIEW_ACTION_FORGET)
    assert remember(owners, "The user smokes").outcome == spb.WRITE_OUTCOME_CREATED


def test_a_review_is_all_or_nothing(stub, owners, fresh_id, remember):
    mine = remember(owners, "The user has two cats", confidence=0.4).memory_id
    foreign = remember(pb.Owners(user_id=fresh_id()), "The user has a parrot").memory_id
    decisions = [spb.ReviewDecision(memory_id=m, action=spb.REVIEW_ACTION_CONFIRM) for m in (mine, foreign)]
    with pytest.raises(grpc.RpcError) as caught:
        stub.Review(spb.ReviewRequest(owners=owners, decisions=decisions))
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert get(stub, owners, mine).confidence == 0.4
