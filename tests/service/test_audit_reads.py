"""What the audit notes of reads and refusals, and that no call which shows memories is left out."""

from __future__ import annotations

import grpc
import pytest
from refusals import header, refused

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.service.auth.tokens import Wanted
from memsvc.service.shown import NOTED, SHOWING
from memsvc.v1 import audit_service_pb2 as apb
from memsvc.v1 import memory_pb2 as pb

# Calls that show what they have just changed, which has its entry of the change.
CHANGING = {
    "MemoryService/Update",
    "MemoryService/Review",
    "MemoryService/ResolveConflict",
    "FactService/Put",
    "SkillService/Push",
    "SkillService/Rollback",
    "SkillService/Propose",
    "SkillService/Decide",
    "PermanentService/Put",
    "PermanentService/Propose",
    "PermanentService/Decide",
    "PermanentService/Remove",
    "ReviewService/Resolve",
}
READ, DENIED = apb.AUDIT_KIND_READ, apb.AUDIT_KIND_DENIED


def reaches(descriptor, seen=frozenset()):
    """Names of all messages that a message can hold."""
    if descriptor.full_name in seen or not descriptor.full_name.startswith("memsvc."):
        return set()
    inner = (field.message_type for field in descriptor.fields if field.message_type is not None)
    return {descriptor.name}.union(*(reaches(kind, seen | {descriptor.full_name}) for kind in inner))


def test_every_call_that_shows_memories_is_noted_or_a_change(make_wire):
    showing = {name for name, method in make_wire.methods.items() if reaches(method.output_type) & SHOWING}
    assert showing == NOTED | CHANGING
    assert not NOTED & CHANGING


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server that notes every read."""
    made = Service(Settings(data_dir=tmp_path_factory.mktemp("reads"), listen="127.0.0.1:0", audit_reads="full"))
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def wire(running, make_wire):
    with grpc.insecure_channel(running.server.address, [("grpc.enable_http_proxy", 0)]) as channel:
        yield make_wire(channel)


def write(wire, user, content):
    asked = {"owners": pb.Owners(user_id=user), "memory": {"content": content, "type": 2}}
    return wire.call("MemoryService/Write", asked).result.memory_id


def entries(running, wire, kind, **owners):
    running.audit_book.flush()
    scopes = [pb.SCOPE_USER] if owners else [pb.SCOPE_GLOBAL]
    asked = {"owners": pb.Owners(**owners), "scopes": scopes, "kinds": [kind]}
    return list(wire.call("AuditService/Query", asked).entries)


def token(running, **fields):
    secret, record = running.tokens.issue(Wanted(**fields), "local")
    return header(secret), f"token:{record.token_id}"


def test_reads_are_noted_with_who_and_what(running, wire, user):
    ids = [write(wire, user, f"Tea number {n}.") for n in range(3)]
    whom = {"owners": pb.Owners(user_id=user)}
    metadata, actor = token(running, user_ids=(user,))
    wire.call("MemoryService/Get", {**whom, "memory_id": ids[0]}, metadata)
    wire.call("MemoryService/List", whom)
    wire.call("MemoryService/Recall", {**whom, "query": "tea", "latency_budget": {"seconds": 20}}, metadata)
    wire.call("ContextService/AssembleContext", {**whom, "query": "tea"}, metadata)
    found = entries(running, wire, READ, user_id=user)
    assert [(e.call, e.actor, e.count) for e in found] == [
        ("MemoryService/Get", actor, 1),
        ("MemoryService/List", "local", 3),
        ("MemoryService/Recall", actor, 3),
        ("ContextService/AssembleContext", actor, 3),
    ]
    assert list(found[0].memory_ids) == [ids[0]]
    assert all(set(e.memory_ids) == set(ids) and not e.detail for e in found[1:])
    (chain,) = wire.call("AuditService/Verify", {**whom, "scopes": [pb.SCOPE_USER]}).chains
    assert not chain.problem
    assert not chain.stray_count


def test_an_answer_that_shows_nothing_leaves_nothing(running, wire, user):
    write(wire, user, "I like tea.")
    wire.call("MemoryService/List", {"owners": pb.Owners(user_id=user), "filter": pb.Filter(tags_all=["none"])})
    wire.call("MemoryService/List", {"owners": pb.Owners(user_id=f"{user}-unknown")})
    assert entries(running, wire, READ, user_id=user) == []
    with running.engine.read() as txn:
        assert all(head.namespace.owner != f"{user}-unknown" for head in txn.heads())


def test_refusals_are_noted_twenty_a_minute_then_counted(running, wire, user):
    write(wire, user, "The salary is 9000.")
    metadata, actor = token(running, user_ids=(user,), grants=("project=read",))
    asked = {"owners": pb.Owners(user_id=user), "scopes": [pb.SCOPE_USER], "query": "salary"}
    for _ in range(30):
        refused(lambda: wire.call("MemoryService/Recall", asked, metadata))
    found = entries(running, wire, DENIED, user_id=user)
    assert len(found) == 20
    assert {(e.call, e.actor, e.outcome, e.detail) for e in found} == {
        ("MemoryService/Recall", actor, "PERMISSION_DENIED", "right=read scope=USER layer=EPISODIC")
    }
    clock_us = running.audit_book._clock_us
    try:
        running.audit_book._clock_us = lambda: clock_us() + 61_000_000
        (counted,) = [e for e in entries(running, wire, DENIED) if e.actor == actor]
    finally:
        running.audit_book._clock_us = clock_us
    assert (counted.outcome, counted.count) == ("COUNTED", 10)


def test_a_refusal_makes_no_namespace(running, wire, user):
    metadata, actor = token(running, user_ids=(user,))
    asked = {"owners": pb.Owners(user_id=f"{user}-other"), "query": "tea"}
    refused(lambda: wire.call("MemoryService/Recall", asked, metadata))
    assert [e.detail for e in entries(running, wire, DENIED) if e.actor == actor] == ["owner=user_id"]
    with running.engine.read() as txn:
        assert all(head.namespace.owner != f"{user}-other" for head in txn.heads())


def test_a_purged_owner_is_not_made_anew_by_what_was_noted(running, wire, user):
    write(wire, user, "I like tea.")
    whom = {"owners": pb.Owners(user_id=user)}
    running.audit_book._flushing.acquire()  # nothing is written until the purge is done
    try:
        wire.call("MemoryService/List", whom)
        wire.call("ErasureService/Purge", {**whom, "reason": "r"})
    finally:
        running.audit_book._flushing.release()
    running.audit_book.flush()
    with running.engine.read() as txn:
        assert all(head.namespace.owner != user for head in txn.heads())


@pytest.mark.parametrize(("reads", "sample", "noted"), [("off", 1, 0), ("sampled", 4, 3), ("full", 4, 12)])
def test_the_setting_says_which_reads_are_noted(tmp_path, make_wire, reads, sample, noted):
    settings = Settings(data_dir=tmp_path, listen="127.0.0.1:0", audit_reads=reads, audit_sample=sample)
    made = Service(settings)
    try:
        with grpc.insecure_channel(made.start(), [("grpc.enable_http_proxy", 0)]) as channel:
            wire = make_wire(channel)
            write(wire, "u", "I like tea.")
            for _ in range(12):
                wire.call("MemoryService/List", {"owners": pb.Owners(user_id="u")})
            found = entries(made, wire, READ, user_id="u")
            assert len(found) == noted
            assert {e.detail for e in found} <= {"" if reads == "full" else "sampled 1 of 4"}
            parent, _ = token(made, user_ids=("u",))
            narrow = wire.call("TokenService/Exchange", {"name": "n", "actor_agent_id": "helper"}, parent)
            wire.call("MemoryService/List", {"owners": pb.Owners(user_id="u")}, header(narrow.secret))
            (last,) = entries(made, wire, READ, user_id="u")[noted:]
            assert last.actor.startswith("token:")
            assert "<token:" in last.actor
            assert last.detail == ""
    finally:
        made.close()
