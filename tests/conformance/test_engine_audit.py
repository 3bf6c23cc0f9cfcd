"""The audit of a namespace: appended in the change's own transaction, gap-free, never changed, hashed in a chain."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from engine_registry import OpenEngine
from samples import HOSTILE, NS, OTHER, SURROGATE, audit_entry, memory, memory_id, put

from memsvc.errors import InvalidArgument
from memsvc.model import AUDIT_IDS_MAX, LATEST_TIME_US, AuditKind, ChangeKind, Namespace, Scope
from memsvc.storage.audit_chain import ChainCheck
from memsvc.storage.engine import Engine, WriteTxn


def append(engine: Engine, namespace: Namespace = NS, **fields: object) -> None:
    engine.write(lambda txn: txn.append_audit(namespace, audit_entry(**fields)))


def problems(engine: Engine, namespace: Namespace = NS) -> list[str]:
    check = ChainCheck(namespace)
    with engine.read() as txn:
        return [problem for entry in txn.audit(namespace, 0, 100_000) if (problem := check.problem(entry))]


def test_an_unknown_namespace_has_no_audit_and_a_read_creates_none(engine: Engine) -> None:
    with engine.read() as txn:
        assert txn.audit(NS, 0, 10) == []
        assert txn.audit_head(NS) is None
        assert list(txn.heads()) == []


def test_entries_come_back_as_they_were_appended(engine: Engine) -> None:
    full = audit_entry(
        kind=AuditKind.CHANGE,
        time_us=LATEST_TIME_US,
        outcome="OUTCOME",
        memory_ids=tuple(memory_id(n) for n in range(AUDIT_IDS_MAX)),
        count=2**63 - 1,
        sequence=2**64 - 1,
        change=ChangeKind.SUPERSEDED,
        detail="\x00详情" * 50,
        reason_hash=b"\xff" * 16,
    )
    stored = engine.write(lambda txn: [txn.append_audit(NS, full), txn.append_audit(NS, audit_entry(time_us=-5))])
    assert [entry.number for entry in stored] == [1, 2]
    assert msgspec.structs.replace(stored[0], number=0, hash=b"") == full
    with engine.read() as txn:
        assert txn.audit(NS, 0, 10) == stored
        assert txn.audit(NS, 1, 10) == txn.audit(NS, 1, 1) == stored[1:]
        assert txn.audit(NS, -7, 1) == stored[:1]
        assert txn.audit(NS, 2, 10) == txn.audit(NS, 2**64, 10) == txn.audit(NS, 0, 0) == txn.audit(NS, 0, -1) == []
        head = txn.audit_head(NS)
    assert head is not None
    assert (head.number, head.hash) == (2, stored[1].hash)
    assert problems(engine) == []


def test_each_namespace_has_a_chain_of_its_own(engine: Engine) -> None:
    spaces = [Namespace(tenant, scope, owner) for tenant in ("t", "t/") for scope in Scope for owner in HOSTILE[:12]]
    for namespace in spaces * 2:
        append(engine, namespace)
    hashes = set()
    with engine.read() as txn:
        for namespace in spaces:
            assert [entry.number for entry in txn.audit(namespace, 0, 10)] == [1, 2]
            hashes.add(txn.audit(namespace, 0, 1)[0].hash)
    assert len(hashes) == len(spaces)
    assert all(problems(engine, namespace) == [] for namespace in spaces)
    assert list(engine.verify()) == []


def test_an_append_shares_the_fate_of_its_transaction(engine: Engine) -> None:
    def fails(txn: WriteTxn) -> None:
        put(txn, memory())
        txn.append_audit(NS, audit_entry())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        engine.write(fails)
    with engine.read() as txn:
        assert txn.audit(NS, 0, 10) == []
        assert txn.head(NS) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"actor": SURROGATE},
        {"call": SURROGATE},
        {"detail": SURROGATE},
        {"outcome": SURROGATE},
        {"memory_ids": ("mem_x",)},
        {"memory_ids": tuple(memory_id(n) for n in range(AUDIT_IDS_MAX + 1))},
        {"count": 2**64},
        {"time_us": 2**64},
    ],
)
def test_what_no_store_takes_leaves_the_transaction_as_it_was(engine: Engine, fields: dict[str, object]) -> None:
    def tries(txn: WriteTxn) -> None:
        with pytest.raises(InvalidArgument):
            txn.append_audit(OTHER, audit_entry(**fields))
        with pytest.raises(InvalidArgument):
            txn.append_audit(Namespace("t", Scope.USER, SURROGATE), audit_entry())
        txn.append_audit(NS, audit_entry())

    engine.write(tries)
    with engine.read() as txn:
        assert [head.namespace for head in txn.heads()] == [NS]
    assert problems(engine) == []


def test_threads_append_without_gaps(engine: Engine) -> None:
    threads = [threading.Thread(target=lambda: [append(engine) for _ in range(25)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.read() as txn:
        assert [entry.number for entry in txn.audit(NS, 0, 1000)] == list(range(1, 201))
    assert problems(engine) == []


def test_a_backup_has_the_audit(engine: Engine, open_engine: OpenEngine, tmp_path: Path) -> None:
    append(engine)
    engine.backup(tmp_path / "copy" / "store")
    copy = open_engine(tmp_path / "copy")
    append(copy, detail="goes on")
    with copy.read() as txn, engine.read() as original:
        assert txn.audit(NS, 0, 1) == original.audit(NS, 0, 10)
    assert problems(copy) == []
    copy.close()
