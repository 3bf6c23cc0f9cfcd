"""SkillService through a real server with the real model: versions, matching, runs, drafts."""

from __future__ import annotations

import uuid

import grpc
import pytest

from memsvc.v1 import event_service_pb2 as epb
from memsvc.v1 import event_service_pb2_grpc as event_rpc
from memsvc.v1 import fact_service_pb2 as fpb
from memsvc.v1 import fact_service_pb2_grpc as fact_rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import skill_service_pb2 as kpb
from memsvc.v1 import skill_service_pb2_grpc as rpc

SUCCESS, FAILURE = kpb.RUN_OUTCOME_SUCCESS, kpb.RUN_OUTCOME_FAILURE
ACTIVE, PENDING, FORGOTTEN = pb.STATUS_ACTIVE, pb.STATUS_PENDING, pb.STATUS_FORGOTTEN


def text(name="deploy-service", description="Rolls a service out to an environment.", more="", version="1.0.0"):
    return (
        f"name: {name}\ndescription: {description}\ntrigger: When somebody asks to deploy a service.\n"
        f"version: {version}\n{more}steps:\n  - Look at the dashboards.\n"
    )


@pytest.fixture(scope="module")
def skills(channel) -> rpc.SkillServiceStub:
    return rpc.SkillServiceStub(channel)


@pytest.fixture(scope="module")
def events(channel) -> event_rpc.EventServiceStub:
    return event_rpc.EventServiceStub(channel)


@pytest.fixture(scope="module")
def facts(channel) -> fact_rpc.FactServiceStub:
    return fact_rpc.FactServiceStub(channel)


def push(skills, owners, source, **fields):
    return skills.Push(kpb.SkillServicePushRequest(owners=owners, source=source, **fields))


def get(skills, owners, name="deploy-service", **fields):
    return skills.Get(kpb.SkillServiceGetRequest(owners=owners, name=name, **fields)).skill


def match(skills, owners, query="deploy the billing service", **fields):
    return list(skills.Match(kpb.SkillServiceMatchRequest(owners=owners, query=query, **fields)).matches)


def run(skills, owners, name, outcome, **fields):
    return skills.RecordRun(kpb.SkillServiceRecordRunRequest(owners=owners, name=name, outcome=outcome, **fields))


def listed(skills, owners, **fields):
    return skills.List(kpb.SkillServiceListRequest(owners=owners, scopes=[pb.SCOPE_USER], **fields))


def refused(call, code, reason):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert caught.value.code() == code
    assert reason in str(caught.value.trailing_metadata())
    return caught.value.details()


# -- versions ----------------------------------------------------------------------------------------------------


def test_pushed_versions_are_kept_and_one_is_rolled_back_to(skills, owners):
    first = push(skills, owners, text())
    assert (first.changed, first.skill.version, first.skill.label) == (True, 1, "1.0.0")
    again = push(skills, owners, text())
    assert (again.changed, again.skill.version) == (False, 1)
    second = push(skills, owners, text(version="2.0.0"))
    assert (second.skill.version, second.skill.memory_id) == (2, first.skill.memory_id)
    assert get(skills, owners).label == "2.0.0"
    assert get(skills, owners, version=1) == first.skill
    request = kpb.SkillServiceRollbackRequest(owners=owners, name="deploy-service", version=1, reason="2 is broken")
    assert skills.Rollback(request).skill.version == 3
    versions = skills.Versions(kpb.SkillServiceVersionsRequest(owners=owners, name="deploy-service")).skills
    assert [(v.version, v.label) for v in versions] == [(3, "1.0.0"), (2, "2.0.0"), (1, "1.0.0")]
    refused(lambda: get(skills, owners, version=9), grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


def test_a_dry_run_stores_nothing(skills, owners):
    answer = push(skills, owners, text(), dry_run=True)
    assert (answer.changed, answer.skill.name, answer.skill.version) == (True, "deploy-service", 1)
    refused(lambda: get(skills, owners), grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    push(skills, owners, text())
    assert not push(skills, owners, text(), dry_run=True).changed


def test_a_replay_answers_the_same(skills, owners):
    request_id = str(uuid.uuid4())
    first = push(skills, owners, text(), request_id=request_id)
    push(skills, owners, text(version="2"))
    assert push(skills, owners, text(), request_id=request_id) == first
    refused(lambda: push(skills, owners, text(version="3"), request_id=request_id),
            grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_ID_REUSED")  # fmt: skip


def test_every_problem_comes_back_with_its_line(skills, owners):
    bad = text(more="parametrs: []\n").replace("Look at", "Look at {env} and")
    details = refused(lambda: push(skills, owners, bad), grpc.StatusCode.INVALID_ARGUMENT, "source")
    assert details.splitlines() == [
        "line 5, column 1: skill.yaml has no key parametrs; did you mean parameters?",
        "line 7, column 5: steps[0] uses {env}, which is not a parameter; write {{...}} for braces that stay",
    ]


def test_secrets_are_refused(skills, owners):
    secret = "AKIA" + "Q3EGUTCZ7RZ5LNHK"
    call = lambda: push(skills, owners, text(description=f"Uses {secret}"))  # noqa: E731
    details = refused(call, grpc.StatusCode.INVALID_ARGUMENT, "SENSITIVE_CONTENT")
    assert secret not in details


def test_the_narrowest_scope_answers(skills, fresh_id):
    owners = pb.Owners(user_id=fresh_id(), project_id=fresh_id())
    push(skills, owners, text(version="project"), scope=pb.SCOPE_PROJECT)
    assert get(skills, owners).label == "project"
    push(skills, owners, text(version="user"))
    assert get(skills, owners).label == "user"
    assert get(skills, owners, scopes=[pb.SCOPE_PROJECT]).label == "project"
    assert [m.skill.label for m in match(skills, owners)] == ["user"]


def test_pages_are_in_order_of_names(skills, owners, fresh_id):
    names = [f"skill-{letter}" for letter in "cabed"]
    for name in names:
        push(skills, owners, text(name))
    found, token = [], ""
    while True:
        page = listed(skills, owners, page_size=2, page_token=token)
        found += [skill.name for skill in page.skills]
        token = page.next_page_token
        if not token:
            break
    assert found == sorted(names)
    assert not listed(skills, pb.Owners(user_id=fresh_id())).skills


def test_other_services_neither_update_nor_hide_a_skill(skills, stub, owners):
    memory_id = push(skills, owners, text()).skill.memory_id
    update = spb.UpdateRequest(owners=owners, memory_id=memory_id, patch={"content": "x"})
    update.update_mask.paths.append("content")
    refused(lambda: stub.Update(update), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
    stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[memory_id]))
    refused(lambda: get(skills, owners), grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert match(skills, owners) == []
    back = push(skills, owners, text()).skill
    assert (back.memory_id, back.version, back.status) == (memory_id, 3, ACTIVE)


# -- matching ----------------------------------------------------------------------------------------------------


def test_parameters_come_from_facts_memories_queries_and_defaults(skills, facts, owners, remember):
    more = (
        "parameters:\n  - {name: currency, required: true}\n  - {name: env, required: true, default: staging}\n"
        "  - {name: format, required: true}\n  - {name: region, required: true}\n  - {name: note}\n"
        "memory_refs:\n  - {parameter: currency, subject: default_currency}\n"
        "  - {parameter: format, query: which format do reports have, type: preference}\n"
        "  - {parameter: region, query: which colour is the moon}\n"
    )
    push(skills, owners, text(more=more))
    fact = facts.Put(fpb.FactServicePutRequest(owners=owners, key="default_currency", value={"string_value": "CNY"}))
    kept = remember(owners, "The user wants the format of reports to be PDF", type=pb.MEMORY_TYPE_PREFERENCE)
    (found,) = match(skills, owners)
    values = {p.name: (p.value.string_value, p.memory_id) for p in found.parameters}
    assert values == {
        "currency": ("CNY", fact.fact.memory_id),
        "env": ("staging", ""),
        "format": ("The user wants the format of reports to be PDF", kept.memory_id),
        "region": ("", ""),
        "note": ("", ""),
    }
    assert list(found.missing) == ["region"]


def test_what_does_not_fit_does_not_come_back(skills, owners, remember):
    push(skills, owners, text())
    remember(owners, "How to cook noodles: boil water", layer=pb.LAYER_PROCEDURAL, type=pb.MEMORY_TYPE_RULE)
    assert [m.skill.name for m in match(skills, owners)] == ["deploy-service"]
    for query in ("how do I cook noodles", "what is the weather in Paris", "今天天气怎么样"):
        assert match(skills, owners, query) == []


def test_failures_sink_a_skill_below_its_equal(skills, stub, owners):
    push(skills, owners, text("deploy-service-a"))
    push(skills, owners, text("deploy-service-b"))
    for worse, better in (("deploy-service-a", "deploy-service-b"), ("deploy-service-b", "deploy-service-a")):
        for _ in range(3):
            run(skills, owners, worse, FAILURE, note="timed out")
        for _ in range(4 if worse.endswith("b") else 0):
            run(skills, owners, better, SUCCESS)
        assert [m.skill.name for m in match(skills, owners)] == [better, worse]
    counted = get(skills, owners, "deploy-service-b")
    assert (counted.success_count, counted.failure_count) == (0, 3)
    one = run(skills, owners, "deploy-service-b", FAILURE)
    assert get(skills, owners, "deploy-service-b").failure_count == 4
    stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[one.result.memory_id]))
    assert get(skills, owners, "deploy-service-b").failure_count == 3


def test_a_run_is_an_event(skills, stub, owners):
    push(skills, owners, text())
    result = run(skills, owners, "deploy-service", SUCCESS, note="x" * 500, source=pb.Source(tool="t")).result
    event = stub.Get(spb.GetRequest(owners=owners, memory_id=result.memory_id)).memory
    assert (event.event.event_type, event.layer, event.source.tool) == ("skill_run", pb.LAYER_EPISODIC, "t")
    skill_id = get(skills, owners, "deploy-service").memory_id
    assert dict(event.event.payload) == {
        "skill": "deploy-service",
        "memory_id": skill_id,
        "version": 1.0,
        "outcome": "success",
        "note": "x" * 500,
    }


@pytest.fixture
def tenant(fresh_id) -> str:
    """A tenant of the test's own: what is GLOBAL there is nobody else's."""
    return fresh_id()


@pytest.fixture
def shared_name(skills, tenant) -> str:
    """The name of a GLOBAL skill."""
    name = f"deploy-{uuid.uuid4().hex[:12]}"
    push(skills, pb.Owners(tenant=tenant), text(name), scope=pb.SCOPE_GLOBAL)
    return name


def counts(skill: kpb.Skill) -> tuple[int, int]:
    return skill.success_count, skill.failure_count


def test_runs_of_a_global_skill_are_their_callers_own(skills, stub, tenant, shared_name, fresh_id):
    ann = pb.Owners(tenant=tenant, user_id=fresh_id(), project_id=fresh_id(), session_id=fresh_id())
    bob = pb.Owners(tenant=tenant, user_id=fresh_id(), project_id=ann.project_id)
    kept = run(skills, ann, shared_name, SUCCESS, note="Ann's own host").result
    run(skills, ann, shared_name, FAILURE)
    run(skills, bob, shared_name, FAILURE)
    assert kept.at.namespace == pb.Namespace(tenant=kept.at.namespace.tenant, scope=pb.SCOPE_USER, owner=ann.user_id)
    everybody = stub.List(
        spb.ListRequest(owners=pb.Owners(tenant=tenant), scopes=[pb.SCOPE_GLOBAL], include_inactive=True)
    )
    assert [m for m in everybody.memories if m.subject == f"skill/{shared_name}"] == []
    assert counts(get(skills, ann, shared_name)) == (1, 1)
    assert counts(get(skills, pb.Owners(tenant=tenant, user_id=ann.user_id), shared_name)) == (1, 1)
    assert counts(get(skills, bob, shared_name)) == (0, 1)
    assert counts(get(skills, bob, shared_name, scopes=[pb.SCOPE_GLOBAL])) == (0, 0)
    everything = skills.List(kpb.SkillServiceListRequest(owners=ann, page_size=1000)).skills
    (found,) = [one for one in everything if one.name == shared_name]
    assert counts(found) == (1, 1)
    pushed = push(skills, ann, text(shared_name), scope=pb.SCOPE_GLOBAL)
    assert (pushed.changed, counts(pushed.skill)) == (False, (1, 1))


@pytest.mark.parametrize(
    ("ids", "scope"),
    [
        (("user_id", "agent_id", "session_id"), pb.SCOPE_AGENT),
        (("project_id", "session_id"), pb.SCOPE_PROJECT),
        (("session_id",), pb.SCOPE_SESSION),
        ((), pb.SCOPE_GLOBAL),
    ],
)
def test_where_a_run_of_a_global_skill_goes(skills, tenant, shared_name, fresh_id, ids, scope):
    owners = pb.Owners(tenant=tenant, **{name: fresh_id() for name in ids})
    scopes = [] if ids else [pb.SCOPE_GLOBAL]
    assert run(skills, owners, shared_name, SUCCESS, scopes=scopes).result.at.namespace.scope == scope
    counted = (0, 0) if scope == pb.SCOPE_GLOBAL else (1, 0)  # in GLOBAL the event waits for approval
    assert counts(get(skills, owners, shared_name, scopes=scopes)) == counted


def test_runs_of_an_own_skill_and_of_a_global_one_of_that_name_are_told_apart(skills, tenant, shared_name, fresh_id):
    owners = pb.Owners(tenant=tenant, user_id=fresh_id())
    run(skills, owners, shared_name, FAILURE)
    push(skills, owners, text(shared_name))
    assert counts(get(skills, owners, shared_name)) == (0, 0)
    run(skills, owners, shared_name, SUCCESS)
    assert counts(get(skills, owners, shared_name)) == (1, 0)
    everything = skills.List(kpb.SkillServiceListRequest(owners=owners, page_size=1000)).skills
    both = {one.namespace.scope: counts(one) for one in everything if one.name == shared_name}
    assert both == {pb.SCOPE_USER: (1, 0), pb.SCOPE_GLOBAL: (0, 1)}


def test_runs_from_before_they_named_their_skill_count_beside_it(skills, stub, tenant, shared_name, fresh_id):
    owners = pb.Owners(tenant=tenant, user_id=fresh_id())
    push(skills, owners, text())
    detail = pb.EventDetail(event_type="skill_run")
    detail.payload.update({"skill": "deploy-service", "version": 1, "outcome": "success", "note": ""})
    for name in ("deploy-service", shared_name):
        draft = spb.MemoryDraft(
            content=f"skill {name}: success", type=pb.MEMORY_TYPE_EVENT, subject=f"skill/{name}", event=detail
        )
        stub.Write(spb.WriteRequest(owners=owners, memory=draft))
    assert counts(get(skills, owners, "deploy-service")) == (1, 0)
    assert counts(get(skills, owners, shared_name)) == (0, 0)


def test_bad_requests_are_refused(skills, owners):
    push(skills, owners, text())
    for call in (
        lambda: push(skills, owners, ""),
        lambda: push(skills, owners, "#" * 65_537),
        lambda: get(skills, owners, ""),
        lambda: get(skills, owners, version=-1),
        lambda: match(skills, owners, " "),
        lambda: match(skills, owners, "x" * 8193),
        lambda: match(skills, owners, top_k=21),
        lambda: run(skills, owners, "deploy-service", 0),
        lambda: run(skills, owners, "deploy-service", SUCCESS, note="x" * 1025),
        lambda: listed(skills, owners, page_token="x"),
        lambda: skills.Rollback(kpb.SkillServiceRollbackRequest(owners=owners, name="deploy-service")),
    ):
        refused(call, grpc.StatusCode.INVALID_ARGUMENT, "field")
    refused(lambda: run(skills, owners, "nothing", SUCCESS), grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


# -- drafts ------------------------------------------------------------------------------------------------------


def work(events, owners, order, outcome="success", steps=("check stock of {}", "pay back order {}"), task="Refund {}"):
    """One run of a task in a session of its own."""
    session = uuid.uuid4().hex
    lines = [
        ("task_start", task, {}),
        *(("step", step, {}) for step in steps),
        ("task_end", "done", {"outcome": outcome}),
    ]
    for kind, summary, payload in lines:
        detail = pb.EventDetail(event_type=kind)
        detail.payload.update(payload)
        events.Record(
            epb.EventServiceRecordRequest(
                owners=owners,
                summary=summary.format(order),
                event=detail,
                source=pb.Source(tool="shop", session_id=session),
            )
        )


def propose(skills, owners):
    return list(skills.Propose(kpb.SkillServiceProposeRequest(owners=owners)).drafts)


def decide(skills, owners, name, approve):
    return skills.Decide(kpb.SkillServiceDecideRequest(owners=owners, name=name, approve=approve, reason="r")).skill


def test_steps_that_worked_three_times_become_a_draft_once(skills, events, owners):
    for i in range(2):
        work(events, owners, f"ORD-2025-000{i}")
    assert propose(skills, owners) == []
    work(events, owners, "ORD-2025-0110")
    (draft,) = propose(skills, owners)
    assert (draft.name, draft.status, draft.version) == ("refund", PENDING, 1)
    assert list(draft.steps) == ["check stock of {value_1}", "pay back order {value_1}"]
    assert [(p.name, p.required) for p in draft.parameters] == [("value_1", True)]
    assert propose(skills, owners) == []
    assert match(skills, owners, "refund an order") == []
    assert not listed(skills, owners).skills
    assert [s.name for s in listed(skills, owners, include_drafts=True).skills] == ["refund"]
    refused(lambda: run(skills, owners, "refund", SUCCESS), grpc.StatusCode.FAILED_PRECONDITION, "NOT_ACTIVE")
    assert decide(skills, owners, "refund", True).status == ACTIVE
    assert [m.skill.name for m in match(skills, owners, "refund an order")] == ["refund"]
    refused(lambda: decide(skills, owners, "refund", True), grpc.StatusCode.FAILED_PRECONDITION, "NOT_ACTIVE")


def test_a_rejected_draft_is_not_proposed_again(skills, events, owners):
    for i in range(3):
        work(events, owners, i)
    (draft,) = propose(skills, owners)
    assert decide(skills, owners, draft.name, False).status == FORGOTTEN
    for i in range(3):
        work(events, owners, i + 10)
    assert propose(skills, owners) == []
    refused(lambda: get(skills, owners, draft.name), grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


def test_a_pattern_that_fails_more_often_than_it_works_is_no_skill(skills, events, owners):
    for i in range(3):
        work(events, owners, i)
    for i in range(4):
        work(events, owners, i, outcome="failure")
    assert propose(skills, owners) == []
    work(events, owners, 9)
    assert len(propose(skills, owners)) == 1


def test_order_matters_and_chinese_tasks_get_a_name(skills, events, owners):
    for i in range(2):
        work(events, owners, i, steps=("查库存 {}", "退款 {}"), task="处理退单 {}")
    work(events, owners, 3, steps=("退款 {}", "查库存 {}"), task="处理退单 {}")
    assert propose(skills, owners) == []
    work(events, owners, 4, steps=("查库存 {}", "退款 {}"), task="处理退单 {}")
    (draft,) = propose(skills, owners)
    assert draft.name.startswith("steps-")
    assert list(draft.steps) == ["查库存 {value_1}", "退款 {value_1}"]


def test_a_draft_never_replaces_what_was_pushed(skills, events, owners):
    push(skills, owners, text("refund"))
    for i in range(3):
        work(events, owners, i)
    (draft,) = propose(skills, owners)
    assert draft.name.startswith("refund-")
    assert get(skills, owners, "refund").source == text("refund")
