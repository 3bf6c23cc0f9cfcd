"""Rules of mutations, called as a room: replay, failures half way, cancelled callers."""

from __future__ import annotations

import uuid

import pytest

from memsvc.errors import Cancelled, EtagMismatch, MemsvcError, NotActive, NotFound, RequestIdReused
from memsvc.memory.drafts import Draft
from memsvc.memory.forgetting import FORGET_CHUNK
from memsvc.memory.memories import Patch
from memsvc.memory.owners import Owners
from memsvc.memory.transactions import Mutation, fingerprint
from memsvc.model import NO_FILTER, MemoryType, Namespace, Outcome, Scope, Status

ANYHOW = Mutation("", b"", "test")


@pytest.fixture
def me(fresh_id) -> Owners:
    return Owners(user_id=fresh_id())


@pytest.fixture
def mine(me) -> list[Namespace]:
    return [Namespace("default", Scope.USER, me.user_id)]


def write(service, me, *texts, mutation=ANYHOW, **fields):
    return service.memories.write(me, [Draft(content=t, **fields) for t in texts], mutation, path="memories")


def listed(service, mine, **options) -> list[str]:
    page, _ = service.memories.list_page(mine, NO_FILTER, options.get("include_inactive", False), 1000, "")
    return [m.content for m in page]


def test_fingerprints_depend_on_where_parts_end():
    assert fingerprint(b"a", b"bc") != fingerprint(b"ab", b"c")
    assert fingerprint(b"a", b"bc") == fingerprint(b"a", b"bc")


def test_replay_gives_the_first_answer_and_another_body_is_refused(service, me, mine):
    mutation = Mutation(str(uuid.uuid4()), b"one", "test")
    first = write(service, me, "once", mutation=mutation, type=MemoryType.EVENT)
    assert write(service, me, "once", mutation=mutation, type=MemoryType.EVENT) == first
    with pytest.raises(RequestIdReused):
        write(service, me, "twice", mutation=Mutation(mutation.request_id, b"two", "test"))
    assert listed(service, mine) == ["once"]


def test_a_replayed_update_and_forget_happen_once(service, me, mine):
    memory_id = write(service, me, "base")[0].memory_id
    update = Mutation(str(uuid.uuid4()), b"u", "test")
    patch = Patch(fields={"content": "changed"})
    versions = [service.memories.update(mine, me, memory_id, patch, "", "", update).version for _ in range(2)]
    assert versions == [2, 2]
    forget = Mutation(str(uuid.uuid4()), b"f", "test")
    counts = [service.forgetting.forget(mine, me, [memory_id], "", "", forget).forgotten_count for _ in range(2)]
    assert counts == [1, 1]


def test_a_caller_that_is_gone_stores_nothing(service, me, mine, fresh_id):
    with pytest.raises(Cancelled):
        service.memories.write(
            me, [Draft(content=f"unseen {fresh_id()}")], ANYHOW, path="memory", still_wanted=lambda: False
        )
    assert listed(service, mine) == []


def test_forget_all_half_way_says_what_was_done_and_goes_on(service, me, mine):
    write(service, me, *(f"note {i}" for i in range(FORGET_CHUNK + 20)))
    answers = iter([True, False])
    with pytest.raises(MemsvcError) as raised:
        service.forgetting.forget_all(mine, me, NO_FILTER, "", ANYHOW, lambda: next(answers))
    assert raised.value.metadata["forgotten_count"] == str(FORGET_CHUNK)
    assert f"{FORGET_CHUNK} of {FORGET_CHUNK + 20}" in raised.value.message
    assert len(listed(service, mine)) == 20
    assert service.forgetting.forget_all(mine, me, NO_FILTER, "", ANYHOW).forgotten_count == 20
    assert len(listed(service, mine, include_inactive=True)) == FORGET_CHUNK + 20


def test_superseding_what_is_missing_or_gone_stores_nothing(service, me, mine):
    with pytest.raises(NotFound):
        write(service, me, "new", supersedes=(f"mem_{uuid.uuid4()}",))
    old = write(service, me, "old")[0].memory_id
    assert write(service, me, "new", supersedes=(old,))[0].outcome == Outcome.SUPERSEDED
    with pytest.raises(NotActive):
        write(service, me, "newer", supersedes=(old,))
    assert listed(service, mine) == ["new"]


def test_superseding_in_another_namespace_is_not_found(service, me, fresh_id):
    theirs = write(service, Owners(user_id=fresh_id()), "theirs")[0].memory_id
    with pytest.raises(NotFound):
        write(service, me, "mine", supersedes=(theirs,))


def test_duplicates_merge_inside_a_batch_and_differ_by_type_and_subject(service, me):
    outcomes = [r.outcome for r in write(service, me, "same", "same", "other")]
    assert outcomes == [Outcome.CREATED, Outcome.MERGED, Outcome.CREATED]
    assert write(service, me, "same", type=MemoryType.RULE)[0].outcome == Outcome.CREATED
    assert write(service, me, "same", subject="s")[0].outcome == Outcome.CREATED


def test_etags_guard_update_and_forget(service, me, mine):
    memory_id = write(service, me, "guarded")[0].memory_id
    etag = service.memories.get(mine, memory_id, 0).etag
    service.memories.update(mine, me, memory_id, Patch(fields={"subject": "s"}), etag, "", ANYHOW)
    with pytest.raises(EtagMismatch):
        service.forgetting.forget(mine, me, [memory_id], etag, "", ANYHOW)
    assert service.memories.get(mine, memory_id, 0).status == Status.ACTIVE
    assert service.memories.get(mine, memory_id, 1).subject == ""
