"""Purge over the wire: what is refused, replays, whose it is, what watchers hear."""

from __future__ import annotations

import threading
import uuid

import grpc
import pytest
from refusals import refused

from memsvc.v1 import memory_pb2 as pb

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND


@pytest.fixture
def wire(channel, make_wire):
    return make_wire(channel)


def write(wire, content, **owners):
    draft = {"content": content, "type": 2}
    return wire.call("MemoryService/Write", {"owners": pb.Owners(**owners), "memory": draft}).result.memory_id


def purge(wire, metadata=None, **fields):
    return wire.call("ErasureService/Purge", {"reason": "r", **fields}, metadata).receipt


def contents(wire, **owners):
    asked = {"owners": pb.Owners(**owners), "include_inactive": True}
    return [memory.content for memory in wire.call("MemoryService/List", asked).memories]


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"owners": {"user_id": "u"}, "reason": " "}, INVALID, "reason"),
        ({"owners": {"user_id": "u"}, "reason": "x" * 1025}, INVALID, "reason"),
        ({"owners": {}}, INVALID, "owners"),
        ({"owners": {"user_id": "u"}, "scopes": [pb.SCOPE_GLOBAL]}, INVALID, "scopes"),
        ({"owners": {"user_id": "u"}, "scopes": [pb.SCOPE_PROJECT]}, INVALID, "owners.project_id"),
        ({"owners": {"user_id": "u"}, "scopes": [pb.SCOPE_USER], "memory_ids": ["mem_x"]}, INVALID, "scopes"),
        ({"owners": {"user_id": "u"}, "memory_ids": ["mem_x"]}, INVALID, "memory_ids[0]"),
        ({"owners": {"user_id": "u"}, "memory_ids": ["mem_x"] * 1001}, INVALID, "memory_ids"),
        ({"owners": {"user_id": "u"}, "request_id": "no uuid"}, INVALID, "request_id"),
    ],
)
def test_what_is_wrong_is_named(wire, fields, code, field):
    fields = {"reason": "r", **fields, "owners": pb.Owners(**fields["owners"])}
    _, metadata = refused(lambda: wire.call("ErasureService/Purge", fields), code)
    assert metadata["field"] == field


def test_a_replay_returns_the_first_receipt_and_erases_nothing_more(wire, user):
    write(wire, "I like tea.", user_id=user)
    asked = {"owners": pb.Owners(user_id=user), "request_id": str(uuid.uuid4())}
    first = purge(wire, **asked)
    write(wire, "I like coffee.", user_id=user)
    assert purge(wire, **asked) == first
    assert contents(wire, user_id=user) == ["I like coffee."]
    reason, _ = refused(lambda: purge(wire, **{**asked, "reason": "another"}), INVALID)
    assert reason == "REQUEST_ID_REUSED"


def test_only_what_is_named_goes(wire, user):
    for ids in ({"user_id": user}, {"project_id": user}, {"agent_id": user}, {"user_id": user, "session_id": "s"}):
        write(wire, f"Tea of {sorted(ids)}.", **ids)
    session = {"owners": pb.Owners(user_id=user, session_id="s"), "scopes": [pb.SCOPE_SESSION]}
    wire.call("SessionService/Start", {"owners": session["owners"], "goal": "tea"})
    assert purge(wire, owners=pb.Owners(user_id=user, session_id="s")).session_count == 1
    assert contents(wire, user_id=user) == ["Tea of ['user_id']."] or len(contents(wire, user_id=user)) == 2
    purge(wire, owners=pb.Owners(project_id=user))
    assert contents(wire, project_id=user) == []
    assert len(contents(wire, agent_id=user)) == 1
    purge(wire, owners=pb.Owners(user_id=user, agent_id=user), scopes=[pb.SCOPE_AGENT])
    assert contents(wire, agent_id=user) == []
    assert contents(wire, user_id=user)


def test_an_ordinary_token_cannot_purge(wire, issue, user):
    write(wire, "I like tea.", user_id=user)
    asked = {"owners": pb.Owners(user_id=user), "scopes": [pb.SCOPE_USER]}
    _, metadata = refused(lambda: purge(wire, issue(user_ids=(user,)), **asked))
    assert metadata["right"] == "erase"
    allowed = issue(user_ids=(user,), grants=("user=erase", "session=erase"))
    assert purge(wire, allowed, **asked).memory_count == 1


def test_a_memory_that_is_purged_again_or_changed_is_refused(wire, user):
    memory_id = write(wire, "I like tea.", user_id=user)
    whom = pb.Owners(user_id=user)
    assert purge(wire, owners=whom, memory_ids=[memory_id]).memory_count == 1
    assert purge(wire, owners=whom, memory_ids=[memory_id]).memory_count == 0
    change = {"owners": whom, "memory_id": memory_id, "patch": {"content": "x"}, "update_mask": {"paths": ["content"]}}
    reason, _ = refused(lambda: wire.call("MemoryService/Update", change), grpc.StatusCode.FAILED_PRECONDITION)
    assert reason == "NOT_ACTIVE"
    found = wire.call("MemoryService/Recall", {"owners": whom, "query": "tea", "include_inactive": True})
    assert list(found.hits) == []
    statuses = {"owners": whom, "query": "tea", "filter": pb.Filter(statuses=[pb.STATUS_PURGED])}
    refused(lambda: wire.call("MemoryService/Recall", statuses), INVALID)


def test_receipts_are_paged_and_found_by_id(wire, user):
    tenant = f"t-{user}"
    made = []
    for number in range(3):
        write(wire, f"Tea {number}.", tenant=tenant, user_id=user)
        made.append(purge(wire, owners=pb.Owners(tenant=tenant, user_id=user)))
    first = wire.call("AdminService/ListReceipts", {"tenant": tenant, "page_size": 2})
    rest = wire.call("AdminService/ListReceipts", {"tenant": tenant, "page_token": first.next_page_token})
    assert [*first.receipts, *rest.receipts] == made[::-1]
    assert not rest.next_page_token
    one = wire.call("AdminService/GetReceipt", {"tenant": tenant, "receipt_id": made[0].receipt_id})
    assert one.receipt == made[0]
    refused(lambda: wire.call("AdminService/GetReceipt", {"receipt_id": made[0].receipt_id}), NOT_FOUND)


def test_recalls_and_writes_go_on_beside_purges(wire, user):
    whom = pb.Owners(user_id=user)
    stop, failures = threading.Event(), []

    def work(number, name, request):
        while not stop.is_set():
            number += 1
            _, error = wire.outcome(name, request(number))
            if error is not None:
                failures.append((name, error.code(), error.details()))

    draft = lambda n: {"owners": whom, "memory": {"content": f"Tea number {n}.", "type": 3}}  # noqa: E731
    recall = lambda n: {"owners": whom, "query": "tea", "latency_budget": {"seconds": 20}}  # noqa: E731
    workers = [
        threading.Thread(target=work, args=(0, "MemoryService/Write", draft)),
        threading.Thread(target=work, args=(0, "MemoryService/Recall", recall)),
        threading.Thread(target=work, args=(0, "MemoryService/List", lambda n: {"owners": whom})),
    ]
    for worker in workers:
        worker.start()
    for _ in range(6):
        purge(wire, owners=whom)
        for memory in wire.call("MemoryService/List", {"owners": whom}).memories[:1]:
            wire.outcome("ErasureService/Purge", {"owners": whom, "memory_ids": [memory.memory_id], "reason": "r"})
    stop.set()
    for worker in workers:
        worker.join()
    assert failures == []
