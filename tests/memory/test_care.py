"""A backup while sessions are consolidated: each turn is in the copied sessions or in the copied store."""

from __future__ import annotations

import threading

import pytest

from memsvc.app import SESSIONS_DIR, STORE_DIR
from memsvc.errors import InvalidArgument, StorageFull
from memsvc.memory import care
from memsvc.memory.funnel import Message
from memsvc.memory.owners import Owners, namespace_for
from memsvc.memory.permanent import PermanentKind
from memsvc.memory.sessions.consolidation import ConsolidationState
from memsvc.memory.sessions.session import Appended, decode
from memsvc.memory.transactions import Mutation
from memsvc.model import Scope
from memsvc.storage.lmdb_engine import LmdbEngine
from memsvc.storage.session_log import FileSessionLog

DAY_US = 86_400_000_000


@pytest.fixture
def me(fresh_id) -> Owners:
    return Owners(user_id=fresh_id(), session_id="one")


def talk(service, owners: Owners) -> None:
    service.sessions.start(owners)
    turn = Message("user", "We decided to use PostgreSQL for billing.", DAY_US)
    service.sessions.append_turns(owners, [turn], Mutation("", b"", "test"))


def test_a_session_that_ends_between_the_copies_is_in_one_of_them(service, me, tmp_path, monkeypatch):
    talk(service, me)
    copy_store = service.engine.backup
    ended = []

    def end_first(directory):
        service.consolidator.end(me, None, False, "test")
        ended.append(service.consolidator.wait(me, 0.5).state)
        return copy_store(directory)

    monkeypatch.setattr(service.engine, "backup", end_first)
    service.backup(tmp_path / "copy")
    assert ended[0] in (ConsolidationState.PENDING, ConsolidationState.RUNNING)
    assert service.consolidator.wait(me, 30.0).state == ConsolidationState.DONE
    log = FileSessionLog(tmp_path / "copy" / SESSIONS_DIR)
    records = [decode(raw) for raw in log.read(namespace_for(me, Scope.SESSION))]
    log.close()
    assert [len(record.turns) for record in records if isinstance(record, Appended)] == [1]
    store = LmdbEngine.open(tmp_path / "copy" / STORE_DIR)
    with store.read() as txn:
        assert list(txn.scan(namespace_for(me, None))) == []
    store.close()


def test_a_backup_waits_for_a_batch_that_runs(service, me, tmp_path, monkeypatch):
    talk(service, me)
    inside, leave, ingest = threading.Event(), threading.Event(), service.ingestor.ingest

    def slow(*arguments, **options):
        inside.set()
        leave.wait(30.0)
        return ingest(*arguments, **options)

    monkeypatch.setattr(service.ingestor, "ingest", slow)
    service.consolidator.end(me, None, False, "test")
    assert inside.wait(30.0)
    backing = threading.Thread(target=service.backup, args=(tmp_path / "copy",))
    backing.start()
    backing.join(0.2)
    assert not (tmp_path / "copy").exists()
    leave.set()
    backing.join(30.0)
    assert (tmp_path / "copy" / STORE_DIR).is_dir()
    assert service.consolidator.wait(me, 30.0).state == ConsolidationState.DONE


def test_a_backup_that_fails_leaves_nothing_and_one_in_use_is_refused(service, me, tmp_path, monkeypatch):
    talk(service, me)

    def full(directory):
        raise StorageFull("no room")

    with monkeypatch.context() as broken:
        broken.setattr(service.engine, "backup", full)
        with pytest.raises(StorageFull):
            service.backup(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / SESSIONS_DIR).mkdir()
    (tmp_path / SESSIONS_DIR / "a.log").write_bytes(b"somebody's")
    with pytest.raises(InvalidArgument, match="not an empty directory"):
        care.backup(service.engine, service.session_log, tmp_path / STORE_DIR, tmp_path / SESSIONS_DIR)
    assert (tmp_path / SESSIONS_DIR / "a.log").read_bytes() == b"somebody's"


def test_a_namespace_with_permanent_entries_alone_is_no_problem(service, fresh_id):
    owners = Owners(tenant=fresh_id(), user_id="u")
    namespace = namespace_for(owners, Scope.USER)
    service.permanent.propose(owners, namespace, PermanentKind.PROFILE, "Tea.", "r", Mutation("", b"", "test"))
    with service.engine.read() as txn:
        assert next(head for head in txn.heads() if head.namespace == namespace).sequence == 0
    assert not list(care.verify(service.engine, service.segments))
