"""Reads that a purge overtakes: between its commit and the end of its segments, and before their own transaction."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from memsvc.errors import StoreCorrupt
from memsvc.memory import care
from memsvc.memory.drafts import Draft
from memsvc.memory.events import EventQuery
from memsvc.memory.owners import Owners, namespace_for
from memsvc.memory.recall import RecallRequest
from memsvc.memory.transactions import Mutation
from memsvc.model import Event

MUTATION = Mutation("", b"", "test")


@pytest.fixture
def me(fresh_id) -> Owners:
    return Owners(user_id=fresh_id())


def note(service, owners: Owners, content: str) -> None:
    service.memories.write(owners, [Draft(content=content)], MUTATION, path="memory")


def recalled(service, namespace):
    return service.recaller.recall(RecallRequest(namespaces=[namespace], query="tea", budget_s=20)).hits


def events(service, namespace):
    return service.events.page([namespace], EventQuery(), 10, "", True)[0]


@pytest.mark.parametrize(("look", "is_purge"), [(recalled, True), (recalled, False), (events, True)])
def test_a_row_without_a_record_is_damage_unless_a_purge_runs(service, me, look, is_purge):
    namespace = namespace_for(me, None)
    note(service, me, "I like tea.")
    service.events.record(me, Draft(content="We had tea", event=Event("note", {})), MUTATION)
    assert look(service, namespace)
    service.recaller.forget_records()
    with service.segments.erasing() if is_purge else nullcontext():
        service.engine.write(lambda txn: txn.erase_namespace(namespace))  # as committed, its segment still there
        if is_purge:
            assert look(service, namespace) == []
        else:
            with pytest.raises(StoreCorrupt):
                look(service, namespace)
        service.segments.forget([namespace])
    assert look(service, namespace) == []


def test_a_purge_before_the_segment_is_asked_for_is_told_apart(service, me, monkeypatch):
    """The segment of before and the count of after: the order that once made a purge look like damage."""
    namespace = namespace_for(me, None)
    note(service, me, "I like tea.")
    assert recalled(service, namespace)
    get = service.segments.get

    def purged_behind(name):
        found = get(name)
        monkeypatch.setattr(service.segments, "get", get)
        service.erasure.purge(me, [], [], "test", MUTATION)
        return found

    monkeypatch.setattr(service.segments, "get", purged_behind)
    assert recalled(service, namespace) == []


def test_a_page_of_events_does_not_see_what_came_after_its_transaction(service, me, monkeypatch):
    namespace = namespace_for(me, None)
    service.events.record(me, Draft(content="We had tea", event=Event("note", {})), MUTATION)
    assert len(events(service, namespace)) == 1
    get = service.segments.get

    def written_behind(name):
        monkeypatch.setattr(service.segments, "get", get)
        service.events.record(me, Draft(content="We had coffee", event=Event("note", {})), MUTATION)
        return get(name)

    monkeypatch.setattr(service.segments, "get", written_behind)
    assert len(events(service, namespace)) == 1
    assert len(events(service, namespace)) == 2


def test_verify_looks_again_at_what_a_purge_changed_beside_it(service, me, monkeypatch):
    note(service, me, "I like tea.")
    get = service.segments.get

    def purged_before(name):
        if name == namespace_for(me, None):
            monkeypatch.setattr(service.segments, "get", get)
            service.erasure.purge(me, [], [], "test", MUTATION)
        return get(name)

    monkeypatch.setattr(service.segments, "get", purged_before)
    assert list(care.verify(service.engine, service.segments)) == []
