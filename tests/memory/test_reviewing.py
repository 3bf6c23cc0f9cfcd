"""Writes into GLOBAL called as a room: they wait, touch nothing, and meet the arbiter when they are approved."""

from __future__ import annotations

import uuid

import pytest

from memsvc.errors import EtagMismatch, InvalidArgument, NotActive, NotFound, PermissionDenied
from memsvc.memory.drafts import Draft
from memsvc.memory.owners import Owners
from memsvc.memory.recall import RecallRequest
from memsvc.memory.reviewing import ItemAction, ItemDecision, ItemKind
from memsvc.memory.settling import ReviewAction, ReviewDecision
from memsvc.memory.transactions import Mutation
from memsvc.memory.waiting import Viewer, never_stood
from memsvc.model import Namespace, Outcome, Scope, Status

BY_A = Mutation("", b"", "a")
BY_B = Mutation("", b"", "b")


@pytest.fixture
def owners(fresh_id):
    return Owners(tenant=fresh_id())


@pytest.fixture
def everybody(owners):
    return [Namespace(owners.tenant, Scope.GLOBAL, "")]


def write(service, owners, content, mutation=BY_A, **fields):
    draft = Draft(content=content, scope=Scope.GLOBAL, **fields)
    return service.memories.write(owners, [draft], mutation, path="memory")[0]


def decide(service, owners, everybody, item_id, action, mutation=BY_B, **fields):
    return service.reviews.resolve(everybody, owners, ItemDecision(item_id, action, **fields), mutation)


def viewer(actor, *, approves=False):
    return Viewer(actor, lambda scope, layer: approves)


@pytest.mark.parametrize("staged", [False, True])
def test_a_write_waits_without_an_end(service, owners, everybody, staged):
    result = write(service, owners, "The office closes at six.", staged=staged)
    memory = service.memories.get(everybody, result.memory_id, 0)
    assert (result.outcome, memory.status) == (Outcome.PENDING, Status.PENDING)
    assert not service.recaller.recall(RecallRequest(namespaces=everybody, query="office", budget_s=20.0)).hits
    assert decide(service, owners, everybody, result.memory_id, ItemAction.APPROVE).outcome == Outcome.CREATED
    again = service.memories.get(everybody, result.memory_id, 0)
    assert (again.status, again.expire_time_us) == (Status.ACTIVE, memory.expire_time_us)


def test_who_is_shown_what_waits_and_what_was_rejected(service, owners, everybody):
    memory_id = write(service, owners, "Secret.").memory_id

    def is_shown(who):
        try:
            service.memories.get(everybody, memory_id, 0, who)
        except NotFound:
            return False
        return True

    for _ in range(2):
        assert is_shown(viewer("a"))
        assert is_shown(viewer("b", approves=True))
        assert not is_shown(viewer("b"))
        if service.memories.get(everybody, memory_id, 0).status == Status.PENDING:
            decide(service, owners, everybody, memory_id, ItemAction.REJECT)


def test_what_was_approved_and_forgotten_later_has_stood(service, owners, everybody):
    memory_id = write(service, owners, "The canteen opens at noon.").memory_id
    decide(service, owners, everybody, memory_id, ItemAction.APPROVE)
    service.forgetting.forget(everybody, owners, [memory_id], "", "", BY_B)
    with service.engine.read() as txn:
        versions = txn.versions(everybody[0], memory_id)
        assert [never_stood(txn, version) for version in versions] == [True, False, False]


def test_only_approvers_forget_what_stands(service, owners, everybody):
    memory_id = write(service, owners, "The lift is out of order.").memory_id
    decide(service, owners, everybody, memory_id, ItemAction.APPROVE)
    with pytest.raises(PermissionDenied):  # also for its writer, whom it was shown while it waited
        service.forgetting.forget(everybody, owners, [memory_id], "", "", BY_A, viewer=viewer("a"))


def test_the_blocklist_holds_at_the_write_and_at_the_approval(service, owners, everybody):
    first = write(service, owners, "The sky is green.").memory_id
    later = write(service, owners, "The sky is green.", BY_B).memory_id
    decide(service, owners, everybody, first, ItemAction.APPROVE)
    service.settling.review(everybody, owners, [ReviewDecision(first, ReviewAction.BLOCK)], BY_B)
    assert write(service, owners, "The sky is green.").outcome == Outcome.REJECTED
    with pytest.raises(InvalidArgument, match="blocklist"):
        decide(service, owners, everybody, later, ItemAction.APPROVE)
    assert service.memories.get(everybody, later, 0).status == Status.PENDING


def test_what_it_was_to_replace_may_be_gone(service, owners, everybody):
    old = write(service, owners, "Version 1 of the handbook counts.").memory_id
    decide(service, owners, everybody, old, ItemAction.APPROVE)
    one = write(service, owners, "Version 2 of the handbook counts.", supersedes=(old,)).memory_id
    two = write(service, owners, "Lunch is at noon.", supersedes=(old,)).memory_id
    assert write(service, owners, "Lunch is at noon.").memory_id != two  # what it is to replace is part of what it asks
    assert service.memories.get(everybody, old, 0).status == Status.ACTIVE
    assert decide(service, owners, everybody, one, ItemAction.APPROVE).outcome == Outcome.SUPERSEDED
    assert decide(service, owners, everybody, two, ItemAction.APPROVE).outcome == Outcome.CREATED
    assert service.memories.get(everybody, two, 0).supersedes == ()
    assert service.memories.get(everybody, old, 0).superseded_by == one


def test_a_replay_gives_the_first_answer(service, owners, everybody):
    memory_id = write(service, owners, "Doors close at nine.").memory_id
    once = Mutation(str(uuid.uuid4()), b"x", "b")
    first = decide(service, owners, everybody, memory_id, ItemAction.APPROVE, once)
    assert decide(service, owners, everybody, memory_id, ItemAction.APPROVE, once) == first
    with pytest.raises(NotActive):
        decide(service, owners, everybody, memory_id, ItemAction.APPROVE)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"action": ItemAction.APPROVE, "etag": "v2"}, EtagMismatch),
        ({"action": ItemAction.REJECT, "etag": "v2"}, EtagMismatch),
        ({"action": ItemAction.APPROVE, "content": "x"}, InvalidArgument),
        ({"action": ItemAction.EDIT}, InvalidArgument),
        ({"action": ItemAction.EDIT, "content": "My password is hunter2-Zq9!x"}, InvalidArgument),
        ({"action": ItemAction.KEEP_NEWER}, NotActive),
        ({"action": ItemAction.APPROVE, "reason": "x" * 1025}, InvalidArgument),
    ],
)
def test_a_refused_decision_changes_nothing(service, owners, everybody, fields, error):
    memory_id = write(service, owners, "Parking is free.").memory_id
    with pytest.raises(error):
        decide(service, owners, everybody, memory_id, **fields)
    (item,) = service.reviews.page(everybody, (), 10, "")[0]
    assert (item.item_id, item.kind, item.etag, item.actor) == (memory_id, ItemKind.PENDING_WRITE, "v1", "a")


@pytest.mark.parametrize("subject", ["", "deploy.window"])
def test_waiting_memories_do_not_crowd_out_what_stands(service, owners, everybody, subject):
    """The arbiter looks at the nearest few: those that wait must take no place among them."""
    stands = write(service, owners, "The deployment window is Tuesday at 10:00.", subject=subject).memory_id
    decide(service, owners, everybody, stands, ItemAction.APPROVE)
    days = ("Monday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    said = [f"The deployment window is {day} at {hour}:00." for day in days for hour in range(11, 15)]
    waits = [write(service, owners, text, BY_B, subject=subject).memory_id for text in said]
    assert decide(service, owners, everybody, waits[-1], ItemAction.APPROVE).memories[-1].memory_id == stands
