"""The permanent store as a room: limits, one entry a statement, the list in RAM, and that nobody else touches it."""

from __future__ import annotations

import re
import threading
import uuid
from pathlib import Path

import pytest

import memsvc
from memsvc.errors import (
    InvalidArgument,
    LayerNotWritable,
    LimitExceeded,
    NotActive,
    NotFound,
    RequestIdReused,
    ResourceExhausted,
    SensitiveContent,
)
from memsvc.memory import permanent as module
from memsvc.memory.drafts import Draft
from memsvc.memory.owners import Owners
from memsvc.memory.permanent import Permanent, PermanentKind
from memsvc.memory.policies import Policies
from memsvc.memory.transactions import Mutation
from memsvc.model import IdMinter, Layer, Namespace, Scope, Status

ANYHOW = Mutation("", b"", "test")
PROFILE, SAFETY, IDENTITY = PermanentKind.PROFILE, PermanentKind.SAFETY, PermanentKind.IDENTITY
SECRET = "AKIA" + "Q3EGUTCZ7RZ5LNHK"


@pytest.fixture
def me(fresh_id) -> Owners:
    return Owners(user_id=fresh_id())


@pytest.fixture
def mine(me) -> Namespace:
    return Namespace("default", Scope.USER, me.user_id)


@pytest.fixture
def store(service) -> Permanent:
    return service.permanent


def put(store, me, mine, content, kind=PROFILE, mutation=ANYHOW):
    return store.put(me, mine, kind, content, "because", mutation)


def propose(store, me, mine, content, kind=PROFILE, mutation=ANYHOW):
    return store.propose(me, mine, kind, content, "because", mutation)


def contents(entries):
    return [entry.content for entry in entries]


def test_safety_comes_first_then_identity_then_profile_each_oldest_first(store, me, mine):
    put(store, me, mine, "The user is a surgeon", PROFILE)
    put(store, me, mine, "The agent is called Ada", IDENTITY)
    put(store, me, mine, "Never delete a backup", SAFETY)
    put(store, me, mine, "Never send money", SAFETY)
    want = ["Never delete a backup", "Never send money", "The agent is called Ada", "The user is a surgeon"]
    assert contents(store.active([mine])) == want
    assert contents(store.listed([mine], include_proposals=True)) == want


def test_namespaces_are_merged_in_that_order_and_apart_otherwise(store, me, mine, fresh_id):
    project = Namespace("default", Scope.PROJECT, fresh_id())
    put(store, me, mine, "The user is a surgeon")
    put(store, me, project, "Never push to main", SAFETY)
    assert contents(store.active([mine, project])) == ["Never push to main", "The user is a surgeon"]
    assert contents(store.active([mine])) == ["The user is a surgeon"]
    assert store.active([Namespace("other", Scope.USER, me.user_id)]) == []


def test_a_proposal_waits_until_it_is_accepted(store, me, mine):
    waiting = propose(store, me, mine, "The user is left-handed")
    assert (waiting.status, waiting.version) == (Status.PENDING, 1)
    assert store.active([mine]) == []
    assert contents(store.listed([mine], include_proposals=True)) == ["The user is left-handed"]
    accepted = store.decide(me, [mine], waiting.memory_id, True, "he said so", ANYHOW)
    assert (accepted.status, accepted.version, accepted.reason) == (Status.ACTIVE, 2, "he said so")
    assert store.active([mine]) == [accepted]
    with pytest.raises(NotActive):
        store.decide(me, [mine], waiting.memory_id, False, "again", ANYHOW)
    assert [v.version for v in store.history([mine], waiting.memory_id)] == [2, 1]


@pytest.mark.parametrize(
    "other",
    [
        "the  user is LEFT-handed.",
        "The user is left-handed",
        "Ｔｈｅ user is left-handed。",
        " The user is left-handed \n",
    ],
)
def test_the_same_statement_has_one_entry(store, me, mine, other):
    first = propose(store, me, mine, "The user is left-handed")
    assert propose(store, me, mine, other) == first
    assert put(store, me, mine, other).memory_id == first.memory_id
    assert len(store.active([mine])) == 1


@pytest.mark.parametrize(("one", "other"), [("x < 100", "x > 100"), ("Spend at most 1 000", "Spend at most 1000")])
def test_what_differs_in_a_sign_is_not_the_same(store, me, mine, one, other):
    assert put(store, me, mine, one).memory_id != put(store, me, mine, other).memory_id


def test_a_rejected_one_comes_back_for_a_caller_and_not_for_the_job(service, store, me, mine):
    memory_id = service.memories.write(me, [Draft(content="I never eat meat")], ANYHOW, path="m")[0].memory_id
    memory = service.memories.get([mine], memory_id, 0)
    waiting = store.propose_from_memory(memory, PROFILE, "often used", ANYHOW, by_job=True)
    assert (waiting.status, waiting.proposed_from) == (Status.PENDING, memory_id)
    assert store.propose_from_memory(memory, PROFILE, "often used", ANYHOW, by_job=True) == waiting
    rejected = store.decide(me, [mine], waiting.memory_id, False, "not for ever", ANYHOW)
    assert store.propose_from_memory(memory, PROFILE, "often used", ANYHOW, by_job=True) == rejected
    again = store.propose_from_memory(memory, PROFILE, "it is so", ANYHOW)
    assert (again.memory_id, again.status, again.version) == (waiting.memory_id, Status.PENDING, 3)


def test_a_memory_that_does_not_stand_is_not_proposed(service, store, me, mine):
    memory_id = service.memories.write(me, [Draft(content="I never eat fish")], ANYHOW, path="m")[0].memory_id
    service.forgetting.forget([mine], me, [memory_id], "", "", ANYHOW)
    with pytest.raises(NotActive):
        store.propose_memory(me, [mine], None, PROFILE, memory_id, "because", ANYHOW)
    with pytest.raises(NotFound):
        store.propose_memory(me, [mine], None, PROFILE, IdMinter(lambda: 1).mint(), "because", ANYHOW)


def test_replace_writes_a_version_and_remove_takes_it_out(store, me, mine):
    first = put(store, me, mine, "Spend at most 100 euro", SAFETY)
    other = put(store, me, mine, "Never gamble", SAFETY)
    second = store.replace(me, [mine], first.memory_id, SAFETY, "Spend at most 50 euro", "less money", ANYHOW)
    assert (second.version, second.create_time_us) == (2, first.create_time_us)
    assert contents(store.active([mine])) == ["Spend at most 50 euro", "Never gamble"]
    with pytest.raises(InvalidArgument, match="says the same"):
        store.replace(me, [mine], first.memory_id, SAFETY, other.content, "again", ANYHOW)
    gone = store.remove(me, [mine], first.memory_id, "no limit", ANYHOW)
    assert gone.status == Status.FORGOTTEN
    assert contents(store.active([mine])) == ["Never gamble"]
    for call in (
        lambda: store.remove(me, [mine], first.memory_id, "again", ANYHOW),
        lambda: store.replace(me, [mine], first.memory_id, SAFETY, "Spend nothing", "again", ANYHOW),
    ):
        with pytest.raises(NotActive):
            call()
    assert [v.content for v in store.history([mine], first.memory_id)][::-1][0] == "Spend at most 100 euro"
    back = put(store, me, mine, "Spend at most 50 euro", SAFETY)
    assert (back.memory_id, back.version, back.status) == (first.memory_id, 4, Status.ACTIVE)


def test_putting_what_stands_changes_nothing(store, me, mine):
    first = put(store, me, mine, "Never gamble", SAFETY)
    assert put(store, me, mine, "Never gamble", SAFETY) == first
    assert put(store, me, mine, "Never gamble", IDENTITY).version == 2


def test_a_replay_returns_the_first_answer(store, me, mine):
    mutation = Mutation(str(uuid.uuid4()), b"one", "test")
    first = put(store, me, mine, "Never gamble", mutation=mutation)
    store.remove(me, [mine], first.memory_id, "changed my mind", ANYHOW)
    assert put(store, me, mine, "Never gamble", mutation=mutation) == first
    assert store.active([mine]) == []
    with pytest.raises(RequestIdReused):
        put(store, me, mine, "Never smoke", mutation=Mutation(mutation.request_id, b"two", "test"))


def test_limits(store, me, mine, monkeypatch):
    monkeypatch.setattr(module, "ACTIVE_MAX", 2)
    monkeypatch.setattr(module, "PROPOSALS_MAX", 2)
    for i in range(2):
        put(store, me, mine, f"Rule {i}")
        waiting = propose(store, me, mine, f"Proposal {i}")
    for call in (
        lambda: put(store, me, mine, "Rule 3"),
        lambda: propose(store, me, mine, "Proposal 3"),
        lambda: store.decide(me, [mine], waiting.memory_id, True, "yes", ANYHOW),
    ):
        with pytest.raises(ResourceExhausted):
            call()
    assert put(store, me, mine, "rule 1").version == 2, "a new version of one that stands needs no room"
    store.decide(me, [mine], waiting.memory_id, False, "no", ANYHOW)
    propose(store, me, mine, "Proposal 3")


def test_versions_of_an_entry_are_bounded_and_removal_still_goes(store, me, mine, monkeypatch):
    monkeypatch.setattr(module, "VERSIONS_MAX", 3)
    first = put(store, me, mine, "a")
    for text in ("A", "a"):
        put(store, me, mine, text)
    with pytest.raises(LimitExceeded):
        put(store, me, mine, "A")
    assert store.remove(me, [mine], first.memory_id, "enough", ANYHOW).version == 4


@pytest.mark.parametrize(
    ("content", "reason", "error", "field"),
    [
        ("", "because", InvalidArgument, "content"),
        (" \n", "because", InvalidArgument, "content"),
        ("x" * 4097, "because", LimitExceeded, "content"),
        ("中" * 1366, "because", LimitExceeded, "content"),
        (f"the key is {SECRET}", "because", SensitiveContent, "content"),
        ("fine", "", InvalidArgument, "reason"),
        ("fine", "  ", InvalidArgument, "reason"),
        ("fine", "x" * 1025, LimitExceeded, "reason"),
    ],
)
def test_what_is_refused(store, me, mine, content, reason, error, field):
    for call in (store.put, store.propose):
        with pytest.raises(error) as caught:
            call(me, mine, PROFILE, content, reason, ANYHOW)
        assert caught.value.metadata["field"] == field
        assert SECRET not in str(caught.value)
    assert store.listed([mine], include_proposals=True) == []


def test_ids_are_checked_and_found_in_the_owners_namespaces_only(store, me, mine, fresh_id):
    entry = put(store, me, mine, "Never gamble")
    elsewhere = [Namespace("default", Scope.USER, fresh_id())]
    for memory_id, error in ((entry.memory_id, NotFound), ("mem_1", InvalidArgument), ("", InvalidArgument)):
        for call in (
            lambda memory_id: store.history(elsewhere, memory_id),
            lambda memory_id: store.remove(me, elsewhere, memory_id, "r", ANYHOW),
            lambda memory_id: store.decide(me, elsewhere, memory_id, True, "r", ANYHOW),
            lambda memory_id: store.replace(me, elsewhere, memory_id, PROFILE, "c", "r", ANYHOW),
        ):
            with pytest.raises(error):
                call(memory_id)


def test_readers_never_keep_an_old_list(store, me, mine):
    """Readers that race with writers may see the old list before the write is answered, never after."""
    stop, wrong = threading.Event(), []

    def read():
        while not stop.is_set():
            store.active([mine])

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for i in range(60):
            entry = put(store, me, mine, f"Rule {i}")
            if contents(store.active([mine])) != [entry.content]:
                wrong.append(i)
            store.remove(me, [mine], entry.memory_id, "next", ANYHOW)
            if store.active([mine]):
                wrong.append(i)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert wrong == []


def test_a_fresh_process_reads_the_same(service, store, me, mine):
    put(store, me, mine, "Never gamble", SAFETY)
    again = Permanent(service.transactions, Policies(), IdMinter(lambda: 1))
    assert again.active([mine]) == store.active([mine])
    assert list(service.engine.verify()) == []


def test_the_list_comes_from_memory(service, store, me, mine, monkeypatch):
    put(store, me, mine, "Never gamble", SAFETY)
    standing = store.active([mine])
    monkeypatch.setattr(service.engine, "read", None)  # a read of the store would now fail
    assert store.active([mine]) == standing


def test_ordinary_writes_stay_out(service, me):
    with pytest.raises(LayerNotWritable):
        service.memories.write(me, [Draft(content="x", layer=Layer.PERMANENT)], ANYHOW, path="memory")


def test_only_this_module_and_the_store_name_the_table():
    root = Path(memsvc.__file__).parent
    named = re.compile(r"RecordTable\s*(\.\s*PERMANENT|\[)|RecordTable\(|PERMANENT\s*=\s*RecordTable")
    naming = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if not path.name.endswith(("_pb2.py", "_pb2_grpc.py")) and named.search(path.read_text())
    }
    allowed = {"memory/permanent.py"}
    assert {path for path in naming if not path.startswith("storage/")} == allowed
