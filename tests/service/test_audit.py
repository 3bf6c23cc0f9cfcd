"""The audit over a real server: one entry a change, no content, rights, and why a memory is as it is."""

from __future__ import annotations

import re
import uuid
from collections import Counter

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp

from memsvc import app
from memsvc.app import Service
from memsvc.config import Settings
from memsvc.model import Namespace, Scope
from memsvc.service.auth.principal import Delegation
from memsvc.service.auth.tokens import Wanted
from memsvc.v1 import admin_service_pb2 as adb
from memsvc.v1 import admin_service_pb2_grpc as admin_rpc
from memsvc.v1 import audit_service_pb2 as apb
from memsvc.v1 import audit_service_pb2_grpc as arpc
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
from memsvc.v1 import skill_service_pb2 as skb
from memsvc.v1 import skill_service_pb2_grpc as skrpc

MARK = "Zyxomarker"
SKILL = f"name: tea\ndescription: {MARK} tea.\ntrigger: When somebody wants tea.\nsteps:\n  - boil water\n"
YEARS_US = 3 * 366 * 86_400_000_000
USER_SCOPE = [pb.SCOPE_USER]


@pytest.fixture(scope="module")
def auditor(channel):
    return arpc.AuditServiceStub(channel)


def entries(stub, owners, scopes=USER_SCOPE, metadata=None, **fields):
    """All entries, over pages of two."""
    request = apb.AuditServiceQueryRequest(owners=owners, scopes=scopes, page_size=2, **fields)
    found = []
    while True:
        answer = stub.Query(request, metadata=metadata)
        found += answer.entries
        request.page_token = answer.next_page_token
        if not request.page_token:
            return found


def whole(chain):
    return not (chain.problem or chain.missing_count or chain.stray_count)


def verify(stub, owners, **fields):
    fields.setdefault("scopes", USER_SCOPE)
    return stub.Verify(apb.AuditServiceVerifyRequest(owners=owners, **fields)).chains


class Steps:
    """Each kind of change, by a name; every one changes one memory, or entry of the permanent store, once."""

    def __init__(self, channel, owners):
        self.owners = owners
        self.memories = rpc.MemoryServiceStub(channel)
        self.channel = channel
        self.memory_id = self.other_id = ""

    def write(self):
        draft = spb.MemoryDraft(content=f"{MARK} likes tea.", tags=[MARK])
        self.memory_id = self.memories.Write(spb.WriteRequest(owners=self.owners, memory=draft)).result.memory_id

    def write_that_expires(self):
        draft = spb.MemoryDraft(content=f"The {MARK} fair is on.", expire_time=self.soon)
        self.other_id = self.memories.Write(spb.WriteRequest(owners=self.owners, memory=draft)).result.memory_id

    @property
    def soon(self):
        soon = Timestamp()
        soon.GetCurrentTime()
        soon.seconds += 86_400
        return soon

    def update(self):
        request = spb.UpdateRequest(owners=self.owners, memory_id=self.memory_id, reason=f"{MARK} said so")
        request.patch.importance = 0.9
        request.update_mask.CopyFrom(FieldMask(paths=["importance"]))
        self.memories.Update(request)

    def review(self):
        correct = spb.REVIEW_ACTION_CORRECT
        decision = spb.ReviewDecision(
            memory_id=self.memory_id, action=correct, content=f"{MARK} likes mate.", reason=MARK
        )
        self.memories.Review(spb.ReviewRequest(owners=self.owners, decisions=[decision]))

    def forget(self):
        self.memories.Forget(spb.ForgetRequest(owners=self.owners, memory_ids=[self.memory_id], reason=MARK))

    def fact(self):
        request = fpb.FactServicePutRequest(owners=self.owners, key=f"{MARK}.tea", value=Value(string_value=MARK))
        frpc.FactServiceStub(self.channel).Put(request)

    def event(self):
        detail = pb.EventDetail(event_type=MARK.lower(), participants=[MARK])
        request = epb.EventServiceRecordRequest(owners=self.owners, summary=f"{MARK} came.", event=detail)
        erpc.EventServiceStub(self.channel).Record(request)

    def skill(self):
        skrpc.SkillServiceStub(self.channel).Push(skb.SkillServicePushRequest(owners=self.owners, source=SKILL))

    def permanent(self):
        request = ppb.PermanentServicePutRequest(
            owners=self.owners, scope=pb.SCOPE_USER, kind=1, content=f"{MARK} is called Z.", reason=MARK
        )
        prpc.PermanentServiceStub(self.channel).Put(request)


CALLS = {
    "write": "MemoryService/Write",
    "write_that_expires": "MemoryService/Write",
    "update": "MemoryService/Update",
    "review": "MemoryService/Review",
    "fact": "FactService/Put",
    "event": "EventService/Record",
    "skill": "SkillService/Push",
    "permanent": "PermanentService/Put",
    "forget": "MemoryService/Forget",
}


def test_each_change_leaves_one_entry_of_its_own_without_content(monkeypatch, tmp_path):
    real, ahead = app.now_us, Counter()
    monkeypatch.setattr(app, "now_us", lambda: real() + ahead["us"])
    service, owners = Service(Settings(data_dir=tmp_path, listen="127.0.0.1:0")), pb.Owners(user_id="u")
    try:
        service.start()
        with grpc.insecure_channel(service.server.address, [("grpc.enable_http_proxy", 0)]) as channel:
            stub, steps = arpc.AuditServiceStub(channel), Steps(channel, owners)
            for count, (name, call) in enumerate(CALLS.items(), 1):
                getattr(steps, name)()
                found = entries(stub, owners)
                assert [entry.number for entry in found] == list(range(1, count + 1)), name
                assert (found[-1].call, found[-1].actor, found[-1].kind) == (call, "local", apb.AUDIT_KIND_CHANGE)
                assert len(found[-1].memory_ids) == 1
                assert bool(found[-1].sequence) == (name != "permanent")
            assert bool(found[-1].reason_hash)
            ahead["us"] = YEARS_US
            admin_rpc.AdminServiceStub(channel).RunLifecycle(adb.RunLifecycleRequest(owners=owners))
            after = entries(stub, owners)
            told = [entry for entry in after[len(CALLS) :] if entry.memory_ids[0] == steps.other_id]
            assert [entry.call for entry in told] == ["lifecycle"]
            assert not re.search(MARK, "".join(str(entry) for entry in after), re.IGNORECASE)
            chains = verify(stub, owners, scopes=[])
            assert all(map(whole, chains))
            assert chains[0].head.number == len(after)
            with service.engine.read() as txn:
                changes = txn.changes(Namespace("default", Scope.USER, "u"), 0, 1000)
            told = Counter(entry.sequence for entry in after if entry.sequence)
            assert told == Counter(change.sequence for change in changes)
    finally:
        service.close()


def test_newest_first_and_conditions(auditor, remember, owners):
    said = (
        "Alice drinks tea.",
        "The office is in Lyon.",
        "Bob owns a kayak.",
        "Rent is due on Monday.",
        "用户喜欢登山",
    )
    ids = [remember(owners, content).memory_id for content in said]
    assert [e.memory_ids[0] for e in entries(auditor, owners)] == ids
    assert [e.memory_ids[0] for e in entries(auditor, owners, newest_first=True)] == ids[::-1]
    assert [e.number for e in entries(auditor, owners, memory_id=ids[2])] == [3]
    assert not entries(auditor, owners, kinds=[apb.AUDIT_KIND_ADMIN])
    middle = entries(auditor, owners)[2].entry_time
    assert [e.number for e in entries(auditor, owners, entry_time=pb.TimeRange(start_time=middle))] == [3, 4, 5]
    for bad in ({"memory_id": "x"}, {"kinds": [9]}, {"page_token": "x"}):
        with pytest.raises(grpc.RpcError) as caught:
            auditor.Query(apb.AuditServiceQueryRequest(owners=owners, **bad))
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_verify_takes_a_head_that_was_noted(auditor, remember, owners):
    remember(owners, "The first of two.")
    (chain,) = verify(auditor, owners)
    remember(owners, "The second, which is other.")
    assert whole(verify(auditor, owners, expect=chain.head)[0])
    cut = verify(auditor, owners, expect=apb.AuditHead(number=7, hash=chain.head.hash))[0]
    assert (cut.broken_number, whole(cut)) == (7, False)
    for bad in ({"expect": apb.AuditHead(number=1, hash="no hex")}, {"all": True}):
        with pytest.raises(grpc.RpcError) as caught:
            verify(auditor, owners, **bad)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_change_past_the_audit_shows(service, auditor, remember, owners):
    made = remember(owners, "Who wrote this one?")
    namespace = Namespace("default", Scope.USER, owners.user_id)

    def past(txn):
        memory = txn.get(namespace, made.memory_id)
        txn.put(memory, 2, time_us=memory.update_time_us, actor="intruder")

    service.engine.write(past)
    (chain,) = verify(auditor, owners)
    assert (chain.missing_count, chain.first_missing_sequence, chain.problem) == (1, 2, "")


def test_all_of_a_tenant(auditor, remember, fresh_id):
    tenant = fresh_id()
    for ids in ({"user_id": "u"}, {"user_id": "v"}, {"project_id": "p"}):
        remember(pb.Owners(tenant=tenant, **ids), "Something of the tenant.")
    chains = verify(auditor, pb.Owners(tenant=tenant), scopes=[], all=True)
    assert sorted(chain.namespace.owner for chain in chains) == ["p", "u", "v"]
    assert all(chain.namespace.tenant == tenant and whole(chain) for chain in chains)


def test_tokens_are_in_the_chain_of_the_tenant(service, auditor, fresh_id):
    tenant = fresh_id()
    _, record = service.tokens.issue(Wanted(tenant=tenant, user_ids=("u",)), "local")
    handed_on = Wanted(tenant=tenant, user_ids=("u",), act=(Delegation("helper", record.token_id),))
    _, child = service.tokens.issue(handed_on, f"token:{record.token_id}")
    service.tokens.revoke(record.token_id)
    found = entries(auditor, pb.Owners(tenant=tenant), [pb.SCOPE_GLOBAL])
    assert [(e.call, e.detail, e.kind) for e in found] == [
        ("AdminService/CreateToken", f"token {record.token_id}", apb.AUDIT_KIND_ADMIN),
        ("TokenService/Exchange", f"token {child.token_id}", apb.AUDIT_KIND_ADMIN),
        ("AdminService/RevokeToken", f"token {record.token_id}", apb.AUDIT_KIND_ADMIN),
    ]


def test_a_decision_of_the_review_queue_names_its_call(auditor, channel, remember, fresh_id):
    owners = pb.Owners(tenant=fresh_id())
    waits = remember(owners, "The office is closed on Friday.", scope=pb.SCOPE_GLOBAL).memory_id
    decision = vpb.ReviewItemDecision(item_id=waits, action=vpb.REVIEW_ITEM_ACTION_APPROVE)
    request = vpb.ReviewServiceResolveRequest(owners=owners, decisions=[decision], request_id=str(uuid.uuid4()))
    (result,) = vrpc.ReviewServiceStub(channel).Resolve(request).results
    assert not result.error_reason
    found = entries(auditor, owners, [pb.SCOPE_GLOBAL])
    assert [entry.call for entry in found] == ["MemoryService/Write", "ReviewService/Resolve"]


# -- rights ------------------------------------------------------------------------------------------------------


def denied(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_rights(auditor, remember, issue, owners):
    made, user = remember(owners, "Seen by few."), owners.user_id
    ordinary = issue(user_ids=(user,))
    of_one_layer = issue(user_ids=(user,), grants=("user:semantic=audit",))
    named = issue(user_ids=(user,), grants=("user=audit",))
    every_scope = tuple(f"{scope.name.lower()}=audit" for scope in Scope)
    of_one_user = issue(user_ids=(user,), grants=every_scope)
    of_no_project = issue(user_ids=("*",), agent_id="*", grants=every_scope)
    everyone = issue(user_ids=("*",), project_ids=("*",), agent_id="*", grants=every_scope)
    query = apb.AuditServiceQueryRequest(owners=owners, scopes=USER_SCOPE)
    check = apb.AuditServiceVerifyRequest(owners=owners, scopes=USER_SCOPE)
    why = apb.AuditServiceWhyRequest(owners=owners, memory_id=made.memory_id)
    tenant = apb.AuditServiceVerifyRequest(all=True)
    for token in (ordinary, of_one_layer):
        assert denied(lambda token=token: auditor.Query(query, metadata=token))
        assert denied(lambda token=token: auditor.Verify(check, metadata=token))
    for token in (named, of_one_user, everyone):
        assert auditor.Query(query, metadata=token).entries
        assert auditor.Verify(check, metadata=token).chains
        assert denied(lambda token=token: auditor.Why(why, metadata=token)), "to audit is not to read"
    assert auditor.Why(why, metadata=ordinary).memory.memory_id == made.memory_id
    for token in (ordinary, named, of_one_user, of_no_project):
        assert denied(lambda token=token: auditor.Verify(tenant, metadata=token))
    assert auditor.Verify(tenant, metadata=everyone).chains
    other = apb.AuditServiceQueryRequest(owners=pb.Owners(user_id="somebody"), scopes=USER_SCOPE)
    assert denied(lambda: auditor.Query(other, metadata=named))


# -- why ---------------------------------------------------------------------------------------------------------


def test_why(auditor, service, stub, remember, recall, owners):
    old = remember(owners, "The user prefers dark mode.", type=pb.MEMORY_TYPE_PREFERENCE, subject="ui.theme")
    source = pb.Source(tool="editor", session_id="s7", message_id="m3")
    new = remember(
        owners,
        "The user prefers light mode.",
        type=pb.MEMORY_TYPE_PREFERENCE,
        subject="ui.theme",
        source=source,
        supersedes=[old.memory_id],
    )
    decision = spb.ReviewDecision(memory_id=new.memory_id, action=spb.REVIEW_ACTION_CONFIRM, reason="asked the user")
    stub.Review(spb.ReviewRequest(owners=owners, decisions=[decision]))
    assert recall(owners, "light or dark mode?").hits
    service.access.flush()
    answer = auditor.Why(apb.AuditServiceWhyRequest(owners=owners, memory_id=new.memory_id))
    assert answer.memory.source == source
    assert answer.memory.access_count == 1
    assert answer.memory.HasField("last_access_time")
    assert answer.changes[0].kind == spb.CHANGE_KIND_CREATED
    assert answer.changes[-1].reason == "asked the user"
    assert [change.at.sequence for change in answer.changes] == sorted(c.at.sequence for c in answer.changes)
    (related,) = answer.related
    assert (related.memory_id, related.relation) == (old.memory_id, apb.MEMORY_RELATION_SUPERSEDED)
    assert related.status == pb.STATUS_SUPERSEDED
    (back,) = auditor.Why(apb.AuditServiceWhyRequest(owners=owners, memory_id=old.memory_id)).related
    assert (back.memory_id, back.relation) == (new.memory_id, apb.MEMORY_RELATION_SUPERSEDED_BY)
    with pytest.raises(grpc.RpcError) as caught:
        auditor.Why(apb.AuditServiceWhyRequest(owners=pb.Owners(user_id="nobody"), memory_id=new.memory_id))
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
