"""PermanentService through a real server."""

from __future__ import annotations

import uuid

import grpc
import pytest

from memsvc.memory.permanent import PermanentKind
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import permanent_service_pb2 as ppb
from memsvc.v1 import permanent_service_pb2_grpc as rpc

PROFILE, SAFETY = ppb.PERMANENT_KIND_PROFILE, ppb.PERMANENT_KIND_SAFETY


@pytest.fixture(scope="module")
def permanent(channel) -> rpc.PermanentServiceStub:
    return rpc.PermanentServiceStub(channel)


def put(permanent, owners, content, kind=SAFETY, **fields):
    request = ppb.PermanentServicePutRequest(owners=owners, kind=kind, content=content, reason="asked for", **fields)
    return permanent.Put(request).memory


def propose(permanent, owners, content="", kind=PROFILE, **fields):
    request = ppb.PermanentServiceProposeRequest(
        owners=owners, kind=kind, content=content, reason="asked for", **fields
    )
    return permanent.Propose(request).memory


def listed(permanent, owners, **fields):
    return list(permanent.List(ppb.PermanentServiceListRequest(owners=owners, **fields)).memories)


def refused(call, code, reason):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert caught.value.code() == code
    assert reason in str(caught.value.trailing_metadata())


def test_kinds_equal_the_contracts():
    assert {kind.name: kind.value for kind in PermanentKind} == {
        name.removeprefix("PERMANENT_KIND_"): number for name, number in ppb.PermanentKind.items() if number
    }


def test_the_life_of_a_permanent_memory(permanent, owners):
    limit = put(permanent, owners, "Never delete a backup")
    assert (limit.version, limit.status, limit.actor, limit.reason) == (1, pb.STATUS_ACTIVE, "local", "asked for")
    assert limit.namespace == pb.Namespace(tenant="default", scope=pb.SCOPE_USER, owner=owners.user_id)
    second = put(permanent, owners, "Never delete a snapshot", memory_id=limit.memory_id)
    assert (second.memory_id, second.version, second.create_time) == (limit.memory_id, 2, limit.create_time)
    assert [m.content for m in listed(permanent, owners)] == ["Never delete a snapshot"]
    request = ppb.PermanentServiceRemoveRequest(owners=owners, memory_id=limit.memory_id, reason="obsolete")
    assert permanent.Remove(request).memory.status == pb.STATUS_FORGOTTEN
    assert listed(permanent, owners) == []
    history = permanent.History(ppb.PermanentServiceHistoryRequest(owners=owners, memory_id=limit.memory_id)).versions
    assert [(v.version, v.content) for v in history] == [
        (3, "Never delete a snapshot"),
        (2, "Never delete a snapshot"),
        (1, "Never delete a backup"),
    ]


def test_a_memory_is_proposed_and_accepted(permanent, owners, remember):
    memory_id = remember(owners, "I am allergic to nuts").memory_id
    waiting = propose(permanent, owners, memory_id=memory_id)
    assert (waiting.content, waiting.proposed_from) == ("I am allergic to nuts", memory_id)
    assert listed(permanent, owners) == []
    assert listed(permanent, owners, include_proposals=True) == [waiting]
    request = ppb.PermanentServiceDecideRequest(owners=owners, memory_id=waiting.memory_id, accept=True, reason="true")
    assert permanent.Decide(request).memory.status == pb.STATUS_ACTIVE
    assert [m.memory_id for m in listed(permanent, owners)] == [waiting.memory_id]


def test_a_private_memory_is_proposed_where_it_belongs(permanent, fresh_id, remember):
    owners = pb.Owners(user_id=fresh_id(), agent_id=fresh_id())
    memory_id = remember(owners, "I check twice", scope=pb.SCOPE_AGENT).memory_id
    assert propose(permanent, owners, memory_id=memory_id).namespace.scope == pb.SCOPE_AGENT
    asked = propose(permanent, owners, memory_id=memory_id, scope=pb.SCOPE_USER)
    assert asked.namespace.scope == pb.SCOPE_USER


def test_a_replay_answers_the_same(permanent, owners):
    request_id = str(uuid.uuid4())
    assert put(permanent, owners, "Never gamble", request_id=request_id) == put(
        permanent, owners, "Never gamble", request_id=request_id
    )
    refused(
        lambda: put(permanent, owners, "Never smoke", request_id=request_id),
        grpc.StatusCode.INVALID_ARGUMENT,
        "REQUEST_ID_REUSED",
    )


def test_nobody_else_sees_or_changes_it(permanent, owners, fresh_id):
    entry = put(permanent, owners, "Never gamble")
    other = pb.Owners(user_id=fresh_id())
    assert entry not in listed(permanent, other)
    request = ppb.PermanentServiceRemoveRequest(owners=other, memory_id=entry.memory_id, reason="mine now")
    refused(lambda: permanent.Remove(request), grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


def test_bad_requests_name_the_field(permanent, owners):
    for call in (
        lambda: put(permanent, owners, ""),
        lambda: put(permanent, owners, "x", kind=0),
        lambda: put(permanent, owners, "x", kind=9),
        lambda: put(permanent, pb.Owners(), "x"),
        lambda: propose(permanent, owners, "x", memory_id="mem_1"),
        lambda: propose(permanent, owners, memory_id="mem_1"),
        lambda: put(permanent, owners, "x", request_id="1"),
        lambda: permanent.Put(ppb.PermanentServicePutRequest(owners=owners, kind=SAFETY, content="x")),
    ):
        refused(call, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
