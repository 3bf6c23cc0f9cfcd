"""Uses, plan, run, waking up and proposals, with a service whose memories are old."""

from __future__ import annotations

import datetime as dt

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from memsvc import app
from memsvc.app import Service
from memsvc.config import Settings
from memsvc.memory.access import read_access
from memsvc.model import Namespace, Scope
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as admin_rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc

OWNERS = pb.Owners(user_id="u1")
DAY_US = 86_400_000_000


class Clock:
    """A wall clock that can be set on."""

    def __init__(self, real) -> None:
        self._real = real
        self.ahead_us = 0

    def __call__(self) -> int:
        return self._real() + self.ahead_us


@pytest.fixture
def clock(monkeypatch):
    made = Clock(app.now_us)
    monkeypatch.setattr(app, "now_us", made)
    return made


@pytest.fixture
def old(clock, tmp_path):
    service = Service(Settings(data_dir=tmp_path, listen="127.0.0.1:0", lifecycle_interval_hours=0))
    try:
        service.start()
        with grpc.insecure_channel(service.server.address, [("grpc.enable_http_proxy", 0)]) as channel:
            yield service, rpc.MemoryServiceStub(channel), admin_rpc.AdminServiceStub(channel)
    finally:
        service.close()


def write(stub, content, owners=OWNERS, **fields):
    draft = spb.MemoryDraft(content=content, **fields)
    return stub.Write(spb.WriteRequest(owners=owners, memory=draft)).result


def recalled(stub, query, owners=OWNERS, **fields):
    request = spb.RecallRequest(owners=owners, query=query, **fields)
    request.latency_budget.FromSeconds(20)
    return [hit.memory.content for hit in stub.Recall(request).hits]


def get(stub, memory_id):
    return stub.Get(spb.GetRequest(owners=OWNERS, memory_id=memory_id)).memory


def test_uses_are_counted_off_the_path(old):
    service, stub, _ = old
    made = write(stub, "The office is in Lyon")
    for _ in range(3):
        assert recalled(stub, "where is the office") == ["The office is in Lyon"]
    service.access.flush()
    memory = get(stub, made.memory_id)
    assert (memory.access_count, memory.version, memory.HasField("last_access_time")) == (3, 1, True)
    assert memory.retention == pytest.approx(1.0, abs=1e-3)
    assert stub.List(spb.ListRequest(owners=OWNERS)).memories[0].access_count == 3


def test_what_is_planned_is_what_a_run_does(old, clock):
    service, stub, admin = old
    event = write(stub, "A pigeon sat on the window sill", type=pb.MEMORY_TYPE_EVENT, importance=0.1)
    rule = write(stub, "Reports are always PDF", type=pb.MEMORY_TYPE_RULE, importance=1.0)
    stamp = Timestamp()
    stamp.FromDatetime(dt.datetime.now(dt.UTC) + dt.timedelta(days=100))
    ending = write(stub, "The badge is valid", type=pb.MEMORY_TYPE_RULE, importance=1.0, expire_time=stamp)
    other = write(stub, "A pigeon sat on the roof", pb.Owners(user_id="u2"), type=pb.MEMORY_TYPE_EVENT, importance=0.1)
    nothing = admin.PlanLifecycle(apb.PlanLifecycleRequest(owners=OWNERS))
    assert (nothing.counts.seen_count, list(nothing.steps)) == (3, [])
    clock.ahead_us = 2500 * DAY_US
    plan = admin.PlanLifecycle(apb.PlanLifecycleRequest(owners=OWNERS))
    assert {(s.memory_id, s.action) for s in plan.steps} == {
        (event.memory_id, apb.LIFECYCLE_ACTION_ARCHIVE),
        (ending.memory_id, apb.LIFECYCLE_ACTION_EXPIRE),
    }
    assert get(stub, event.memory_id).status == pb.STATUS_ACTIVE, "a plan changes nothing"
    done = admin.RunLifecycle(apb.RunLifecycleRequest(owners=OWNERS)).counts
    assert done == plan.counts
    assert (done.archived_count, done.expired_count) == (1, 1)
    assert get(stub, event.memory_id).status == pb.STATUS_ARCHIVED
    assert get(stub, rule.memory_id).status == pb.STATUS_ACTIVE
    assert service.memories.get([Namespace("default", Scope.USER, "u2")], other.memory_id, 0).status == 1
    again = admin.RunLifecycle(apb.RunLifecycleRequest(owners=OWNERS)).counts
    assert (again.archived_count, again.expired_count, again.seen_count) == (0, 0, 1)
    assert "A pigeon sat on the window sill" not in recalled(stub, "pigeon window")
    assert "A pigeon sat on the window sill" in recalled(stub, "pigeon window", include_inactive=True)


@pytest.mark.parametrize("again", ["The user likes jasmine tea", "the user likes  jasmine tea!"])
def test_the_same_said_again_wakes_up(old, clock, again):
    _, stub, admin = old
    first = write(stub, "The user likes jasmine tea", type=pb.MEMORY_TYPE_PREFERENCE, importance=0.0)
    clock.ahead_us = 25_000 * DAY_US
    assert admin.RunLifecycle(apb.RunLifecycleRequest()).counts.archived_count == 1
    woken = write(stub, again, type=pb.MEMORY_TYPE_PREFERENCE)
    assert (woken.outcome, woken.memory_id) == (spb.WRITE_OUTCOME_MERGED, first.memory_id)
    memory = get(stub, first.memory_id)
    assert (memory.status, memory.seen_count, memory.content) == (
        pb.STATUS_ACTIVE,
        2,
        "The user likes jasmine tea",
    )
    assert recalled(stub, "jasmine tea") == ["The user likes jasmine tea"]


def test_what_fades_ranks_lower_until_it_is_used(old, clock):
    service, stub, admin = old
    write(stub, "The blue notebook lies in the drawer", type=pb.MEMORY_TYPE_EVENT)
    clock.ahead_us = 300 * DAY_US
    write(stub, "A notebook, blue, with squared paper, was bought", type=pb.MEMORY_TYPE_EVENT)
    query = "blue notebook in the drawer"
    before = recalled(stub, query)
    assert before[0] == "The blue notebook lies in the drawer"
    request = spb.RecallRequest(owners=OWNERS, query=query)
    request.latency_budget.FromSeconds(20)
    scores = {h.memory.content: h.score for h in stub.Recall(request).hits}
    counts = admin.RunLifecycle(apb.RunLifecycleRequest()).counts
    assert counts.faded_count == 1
    faded = {h.memory.content: h.score for h in stub.Recall(request).hits}
    assert faded["The blue notebook lies in the drawer"] < scores["The blue notebook lies in the drawer"]
    service.access.flush()  # the recalls above were uses
    admin.RunLifecycle(apb.RunLifecycleRequest())
    back = {h.memory.content: h.score for h in stub.Recall(request).hits}
    assert back["The blue notebook lies in the drawer"] > faded["The blue notebook lies in the drawer"]


def test_what_is_long_and_often_used_is_proposed_once(old, clock):
    service, stub, admin = old
    made = write(stub, "Always answer in Chinese", type=pb.MEMORY_TYPE_PREFERENCE, confidence=1.0)
    namespace = Namespace("default", Scope.USER, "u1")
    for day in range(12):
        clock.ahead_us = (3 * day + 1) * DAY_US
        service.access.note([(namespace, made.memory_id)], app.now_us())
    service.access.flush()
    with service.engine.read() as txn:
        access = read_access(txn, namespace, made.memory_id)
    assert (access.count, access.day_count) == (12, 12)
    assert admin.RunLifecycle(apb.RunLifecycleRequest()).counts.proposed_count == 1
    proposals = [m for m in service.permanent.listed([namespace], include_proposals=True) if m.status == 7]
    assert [(m.content, m.proposed_from) for m in proposals] == [("Always answer in Chinese", made.memory_id)]
    assert admin.RunLifecycle(apb.RunLifecycleRequest()).counts.proposed_count == 0


def test_a_bad_plan_is_refused(old):
    _, _, admin = old
    for request in (apb.PlanLifecycleRequest(max_steps=-1), apb.PlanLifecycleRequest(max_steps=10_001)):
        with pytest.raises(grpc.RpcError) as error:
            admin.PlanLifecycle(request)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
