"""Erasure: what was erased is nowhere, what was not is as it was."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from samples import MODEL, NS, OTHER, audit_entry, hash_of, memory, memory_id, put

from memsvc.model import ChangeKind, Namespace, Scope, Status
from memsvc.storage.engine import Engine, ErasedCounts, RecordTable, StoredAnswer

VECTOR = np.array([1.0, 0.5], np.float32)


def fill(engine: Engine, namespace: Namespace) -> None:
    def write(txn):
        for number in (1, 2):
            put(txn, memory(number, namespace, subject="s"))
            txn.put_vector(namespace, MODEL, hash_of(memory(number)), VECTOR)
        put(txn, memory(1, namespace, content="said anew"), ChangeKind.UPDATED)
        txn.put_vector(namespace, MODEL, hash_of(memory(1, content="said anew")), VECTOR)
        txn.append_audit(namespace, audit_entry())
        for table in RecordTable:
            txn.put_record(table, namespace, memory_id(1), b"record")

    engine.write(write)


def test_an_erased_namespace_is_as_if_it_had_never_been(engine: Engine) -> None:
    fill(engine, NS)
    fill(engine, OTHER)
    counts = engine.write(lambda txn: txn.erase_namespace(NS))
    assert counts == ErasedCounts(2, 3, 3, len(RecordTable))
    with engine.read() as txn:
        assert txn.head(NS) is None
        assert [head.namespace for head in txn.heads()] == [OTHER]
        assert txn.get(NS, memory_id(1)) is None
        assert list(txn.scan(NS)) == list(txn.by_subject(NS, "s")) == txn.changes(NS, 0, 9) == txn.audit(NS, 0, 9) == []
        assert all(txn.record(table, NS, memory_id(1)) is None for table in RecordTable)
        assert txn.vector(NS, MODEL, hash_of(memory(1))) is None
        assert txn.vector(OTHER, MODEL, hash_of(memory(1))) is not None
        assert len(txn.changes(OTHER, 0, 9)) == 3
    assert list(engine.verify()) == []


def test_an_erased_namespace_begins_anew(engine: Engine) -> None:
    fill(engine, NS)
    with engine.read() as before:
        assert before.head(NS) is not None
        engine.write(lambda txn: txn.erase_namespace(NS))
        stranger = Namespace("acme", Scope.USER, "stranger")
        engine.write(lambda txn: put(txn, memory(9, stranger)))
        assert before.get(NS, memory_id(9)) is None
        assert len(before.changes(NS, 0, 9)) == 3  # a snapshot of before
    with engine.read() as txn:
        assert txn.head(NS) is None
        assert txn.get(NS, memory_id(9)) is None
    engine.write(lambda txn: put(txn, memory(3, NS)))
    with engine.read() as txn:
        assert [change.sequence for change in txn.changes(NS, 0, 9)] == [1]
        assert [m.memory_id for m in txn.scan(NS)] == [memory_id(3)]
        assert [m.memory_id for m in txn.scan(stranger)] == [memory_id(9)]


def test_erased_memories_keep_their_frame_and_nothing_else(engine: Engine) -> None:
    fill(engine, NS)
    counts = engine.write(lambda txn: txn.erase_memories(NS, [memory_id(1), memory_id(7), memory_id(1)]))
    assert counts == ErasedCounts(1, 2, 2, 1)
    with engine.read() as txn:
        versions = txn.versions(NS, memory_id(1))
        assert [(v.version, v.sequence, v.status, v.content, v.subject) for v in versions] == [
            (1, 1, Status.PURGED, "", ""),
            (2, 3, Status.PURGED, "", ""),
        ]
        assert [(c.sequence, c.reason, c.request_id) for c in txn.changes(NS, 0, 9)] == [
            (1, "", ""),
            (2, "because", "r"),
            (3, "", ""),
        ]
        assert [m.memory_id for m in txn.by_subject(NS, "s")] == [memory_id(2)]
        assert txn.vector(NS, MODEL, hash_of(memory(1))) is None
        assert txn.vector(NS, MODEL, hash_of(memory(2))) is not None
        head = txn.head(NS)
        assert head is not None
        assert (head.memory_count, head.active_count) == (2, 1)
    assert engine.write(lambda txn: txn.erase_memories(NS, [memory_id(1)])) == ErasedCounts()
    assert list(engine.verify()) == []


def test_a_vector_stays_that_another_memory_needs(engine: Engine) -> None:
    def write(txn):
        for number in (1, 2):
            put(txn, memory(number, content="the same"))
        txn.put_vector(NS, MODEL, hash_of(memory(content="the same")), VECTOR)

    engine.write(write)
    assert engine.write(lambda txn: txn.erase_memories(NS, [memory_id(1)])).vectors == 0
    assert list(engine.verify()) == []
    assert engine.write(lambda txn: txn.erase_memories(NS, [memory_id(2)])).vectors == 1


def test_evidence_that_quotes_an_erased_memory_goes(engine: Engine) -> None:
    def write(txn):
        put(txn, memory(1))
        newer = memory(2, supersedes=(memory_id(1),))
        txn.put(newer, ChangeKind.CREATED, time_us=5, actor="a", reason="kept", evidence='{"old": "secret"}')
        txn.put(memory(3), ChangeKind.CREATED, time_us=5, actor="a", evidence='{"other": "stays"}')

    engine.write(write)
    engine.write(lambda txn: txn.erase_memories(NS, [memory_id(1)]))
    with engine.read() as txn:
        assert [(c.reason, c.evidence) for c in txn.changes(NS, 0, 9)][1:] == [("kept", ""), ("", '{"other": "stays"}')]


def test_answers_go_by_tenant_and_content(engine: Engine) -> None:
    def write(txn):
        for tenant in ("t", "u"):
            for name in ("keep", "drop"):
                txn.put_answer(tenant, name, StoredAnswer(b"f", name.encode(), 7))

    engine.write(write)
    assert engine.write(lambda txn: txn.erase_answers("t", lambda answer: answer == b"keep")) == 1
    with engine.read() as txn:
        assert [txn.answer(t, n) is None for t in ("t", "u") for n in ("keep", "drop")] == [False, True, False, False]
    assert list(engine.verify()) == []


def test_a_failure_undoes_an_erasure(engine: Engine) -> None:
    fill(engine, NS)

    def failing(txn):
        txn.erase_namespace(NS)
        put(txn, msgspec.structs.replace(memory(1), content="new"))
        raise KeyError

    with pytest.raises(KeyError):
        engine.write(failing)
    with engine.read() as txn:
        assert len(txn.changes(NS, 0, 9)) == 3
    assert list(engine.verify()) == []


def test_a_rewritten_store_holds_what_it_held(engine: Engine) -> None:
    fill(engine, NS)
    with engine.read() as txn:
        before = (list(txn.all_versions(NS)), txn.changes(NS, 0, 9), txn.audit(NS, 0, 9))
    assert engine.rewrite() == engine.size_bytes()
    with engine.read() as txn:
        assert (list(txn.all_versions(NS)), txn.changes(NS, 0, 9), txn.audit(NS, 0, 9)) == before
    put_again = engine.write(lambda txn: put(txn, memory(5)))
    assert put_again.sequence == 4
    assert list(engine.verify()) == []
