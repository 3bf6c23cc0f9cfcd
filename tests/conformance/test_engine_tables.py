"""What every engine stores and gives back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from samples import HOSTILE, MODEL, NS, OTHER, SURROGATE, hash_of, memory, memory_id, put

from memsvc.errors import InvalidArgument, MemsvcError
from memsvc.model import (
    EARLIEST_TIME_US,
    LATEST_TIME_US,
    NEVER_US,
    Change,
    ChangeKind,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    Source,
    Status,
)
from memsvc.storage.engine import Engine, NamespaceHead, RecordTable, StoredAnswer, WriteTxn


def problems(engine: Engine) -> list[str]:
    return [f"{p.where}: {p.what}" for p in engine.verify()]


def test_an_empty_store_has_nothing_and_reads_create_nothing(engine: Engine) -> None:
    with engine.read() as txn:
        assert txn.head(NS) is None
        assert list(txn.heads()) == []
        assert txn.get(NS, memory_id(1)) is None
        assert txn.get_many(NS, [(memory_id(1), 0), (memory_id(1), 3)]) == [None, None]
        assert txn.versions(NS, memory_id(1)) == []
        assert list(txn.scan(NS)) == list(txn.scan(NS, reverse=True)) == list(txn.all_versions(NS)) == []
        assert list(txn.by_subject(NS, "s")) == list(txn.by_content_hash(NS, b"\0" * 16)) == []
        assert list(txn.by_occur_time(NS, EARLIEST_TIME_US, NEVER_US)) == []
        assert txn.changes(NS, 0, 10) == []
        assert txn.vector(NS, MODEL, b"\0" * 16) is None
        vectors, found = txn.vectors(NS, MODEL, [b"\0" * 16], 3)
        assert vectors.shape == (1, 3)
        assert not found.any()
        assert txn.answer("t", "r") is None
        assert txn.meta("k") is None
        for table in RecordTable:
            assert txn.record(table, NS, "k") is None
            assert list(txn.records(table, NS)) == list(txn.all_records(table)) == []
    with engine.read() as txn:
        assert list(txn.heads()) == []
    assert problems(engine) == []


def test_put_sets_version_and_sequence_and_keeps_every_field(engine: Engine) -> None:
    full = Memory(
        memory_id=memory_id(7),
        version=99,
        sequence=99,
        namespace=NS,
        layer=Layer.PROCEDURAL,
        type=MemoryType.RULE,
        content="内容 with\x00NUL, 😀 and \u202e",
        status=Status.CONTESTED,
        subject="service/billing/language",
        tags=("a,b", "", "标签"),
        metadata={"n": -(2**63), "big": 2**64 - 1, "f": 1.5, "nested": {"l": [1, None, True, "x"]}, "": ""},
        source=Source("cli", "s\n", "m%"),
        importance=0.123456789,
        confidence=0.0,
        superseded_by=memory_id(8),
        supersedes=(memory_id(1), memory_id(2)),
        create_time_us=EARLIEST_TIME_US,
        update_time_us=LATEST_TIME_US,
        occur_time_us=-1,
        expire_time_us=LATEST_TIME_US,
        last_access_time_us=3,
        access_count=4,
        embedding_model=MODEL,
        embedding_dim=0,
    )
    stored = engine.write(lambda txn: put(txn, full))
    assert stored == msgspec.structs.replace(full, version=1, sequence=1)
    with engine.read() as txn:
        assert txn.get(NS, full.memory_id) == stored
        assert txn.get(NS, full.memory_id, 1) == stored


def test_versions_log_and_counts(engine: Engine) -> None:
    first = engine.write(lambda txn: put(txn, memory(1)))
    other = engine.write(lambda txn: put(txn, memory(2)))
    changed = msgspec.structs.replace(first, content="changed", subject="s")
    second = engine.write(lambda txn: put(txn, changed, ChangeKind.UPDATED))
    gone = msgspec.structs.replace(second, status=Status.FORGOTTEN)
    third = engine.write(lambda txn: put(txn, gone, ChangeKind.FORGOTTEN))
    assert [(m.version, m.sequence) for m in (first, other, second, third)] == [(1, 1), (1, 2), (2, 3), (3, 4)]
    with engine.read() as txn:
        assert txn.head(NS) == NamespaceHead(NS, 4, 2, 1)
        assert txn.versions(NS, first.memory_id) == [first, second, third]
        assert txn.get(NS, first.memory_id) == third
        assert [txn.get(NS, first.memory_id, v) for v in (1, 2, 3, 4, -1, 2**40)] == [first, second, third] + [None] * 3
        assert list(txn.all_versions(NS)) == [first, other, second, third]
        assert list(txn.scan(NS)) == [third, other]
        assert txn.changes(NS, 2, 1) == [
            Change(
                sequence=3,
                kind=ChangeKind.UPDATED,
                memory_id=first.memory_id,
                version=2,
                time_us=5,
                actor="tester",
                reason="because",
                request_id="r",
            )
        ]
        assert [c.sequence for c in txn.changes(NS, 0, 99)] == [1, 2, 3, 4]
        assert [c.sequence for c in txn.changes(NS, -5, 2)] == [1, 2]
        assert txn.changes(NS, 4, 99) == txn.changes(NS, 2**70, 99) == txn.changes(NS, 0, 0) == []
    assert problems(engine) == []


def test_counts_follow_every_status(engine: Engine) -> None:
    for number, status in enumerate(Status):
        engine.write(lambda txn, n=number, s=status: put(txn, memory(n, status=s)))
    with engine.read() as txn:
        assert txn.head(NS) == NamespaceHead(NS, len(Status), len(Status), 2)


def test_a_write_sees_itself(engine: Engine) -> None:
    def operation(txn: object) -> None:
        stored = put(txn, memory(1, subject="s"))  # type: ignore[arg-type]
        assert txn.get(NS, stored.memory_id) == stored  # type: ignore[attr-defined]
        assert list(txn.by_subject(NS, "s")) == [stored]  # type: ignore[attr-defined]
        assert txn.head(NS).sequence == 1  # type: ignore[attr-defined]
        again = put(txn, stored, ChangeKind.UPDATED)  # type: ignore[arg-type]
        assert (again.version, again.sequence) == (2, 2)
        assert list(txn.all_versions(NS)) == [stored, again]  # type: ignore[attr-defined]

    engine.write(operation)
    assert problems(engine) == []


def test_the_same_id_in_two_namespaces_is_two_memories(engine: Engine) -> None:
    mine = engine.write(lambda txn: put(txn, memory(1, NS, content="mine", subject="s")))
    theirs = engine.write(lambda txn: put(txn, memory(1, OTHER, content="theirs", subject="s")))
    assert (theirs.version, theirs.sequence) == (1, 1)
    with engine.read() as txn:
        for namespace, value in ((NS, mine), (OTHER, theirs)):
            assert txn.versions(namespace, memory_id(1)) == [value]
            assert list(txn.scan(namespace)) == list(txn.by_subject(namespace, "s")) == [value]
            assert list(txn.by_content_hash(namespace, hash_of(value))) == [value]
        assert list(txn.by_content_hash(NS, hash_of(theirs))) == []


@pytest.mark.parametrize("field", ["tenant", "owner"])
def test_hostile_names_never_collide(engine: Engine, field: str) -> None:
    spaces = [Namespace(t, Scope.USER, "x") if field == "tenant" else Namespace("x", Scope.USER, t) for t in HOSTILE]
    spaces += [Namespace("x", Scope.AGENT, "a"), Namespace("xa", Scope.USER, ""), Namespace("", Scope.USER, "xa")]
    for number, namespace in enumerate(spaces):
        assert engine.write(lambda txn, n=number, ns=namespace: put(txn, memory(n, ns))).sequence == 1
    with engine.read() as txn:
        assert {head.namespace for head in txn.heads()} == set(spaces)
        for number, namespace in enumerate(spaces):
            assert [m.memory_id for m in txn.scan(namespace)] == [memory_id(number)]
            assert [m.memory_id for m in txn.by_occur_time(namespace, 0, NEVER_US)] == [memory_id(number)]
    assert problems(engine) == []


def test_hostile_subjects_requests_models_and_meta_keys_never_collide(engine: Engine) -> None:
    def operation(txn: object) -> None:
        for number, text in enumerate(HOSTILE):
            put(txn, memory(number, subject=text))  # type: ignore[arg-type]
            txn.put_answer(text, "r", StoredAnswer(b"f", b"t%d" % number, 1))  # type: ignore[attr-defined]
            txn.put_answer("t", text, StoredAnswer(b"f", b"r%d" % number, 1))  # type: ignore[attr-defined]
            txn.put_vector(NS, text, b"\1" * 16, np.full(2, number, np.float32))  # type: ignore[attr-defined]
            if len(text) < 500:
                txn.put_meta(text, b"%d" % number)  # type: ignore[attr-defined]

    engine.write(operation)
    with engine.read() as txn:
        for number, text in enumerate(HOSTILE):
            assert [m.memory_id for m in txn.by_subject(NS, text)] == [memory_id(number)]
            assert txn.answer(text, "r") == StoredAnswer(b"f", b"t%d" % number, 1)
            assert txn.answer("t", text) == StoredAnswer(b"f", b"r%d" % number, 1)
            assert txn.vector(NS, text, b"\1" * 16).tolist() == [number, number]  # type: ignore[union-attr]
            assert len(text) >= 500 or txn.meta(text) == b"%d" % number
    assert problems(engine) == []


def test_lone_surrogates_are_refused_when_written_and_not_found_when_read(engine: Engine) -> None:
    bad = Namespace("acme", Scope.USER, SURROGATE)
    for value in (memory(1, bad), memory(1, content=SURROGATE), memory(1, metadata={SURROGATE: 1})):
        with pytest.raises(InvalidArgument):
            engine.write(lambda txn, v=value: put(txn, v))
    with pytest.raises(InvalidArgument):
        engine.write(lambda txn: txn.put_vector(NS, SURROGATE, b"\0" * 16, np.ones(2, np.float32)))
    with pytest.raises(InvalidArgument):
        engine.write(lambda txn: txn.put_answer(SURROGATE, "r", StoredAnswer(b"", b"", 1)))
    with engine.read() as txn:
        assert txn.head(bad) is None
        assert list(txn.heads()) == list(txn.by_subject(NS, SURROGATE)) == []
        assert txn.answer(SURROGATE, "r") is None


def test_what_is_malformed_is_refused_and_never_a_wildcard(engine: Engine) -> None:
    engine.write(lambda txn: put(txn, memory(1, subject="s")))
    with engine.read() as txn:
        for bad in (
            "",
            "mem_",
            "mem_%",
            memory_id(1).upper(),
            memory_id(1)[:-1],
            memory_id(1) + "0",
            memory_id(1) + "\n",
        ):
            with pytest.raises(InvalidArgument):
                txn.get(NS, bad)
            with pytest.raises(InvalidArgument):
                txn.get_many(NS, [(bad, 1)])
        for bad_hash in (b"", b"\0", hash_of(memory(1))[:8], b"\0" * 17):
            with pytest.raises(InvalidArgument):
                list(txn.by_content_hash(NS, bad_hash))
        with pytest.raises(InvalidArgument):
            list(txn.by_subject(NS, ""))
        assert list(txn.by_subject(NS, "%")) == []
    one = np.ones(2, np.float32)
    for bad_put in (
        lambda txn: put(txn, memory(1, memory_id="mem_1")),
        lambda txn: put(txn, memory(2, metadata={"n": 2**64})),
        lambda txn: put(txn, memory(2, metadata={"o": object()})),
        lambda txn: put(txn, memory(2, occur_time_us=2**63)),
        lambda txn: put(txn, memory(1, layer=Layer.PERMANENT), ChangeKind.UPDATED),
        lambda txn: txn.put_vector(NS, MODEL, b"short", one),
        lambda txn: txn.put_vector(NS, MODEL, b"\0" * 16, np.ones((2, 2), np.float32)),
        lambda txn: txn.put_vector(NS, MODEL, b"\0" * 16, np.array([1, np.nan], np.float32)),
        lambda txn: txn.put_vector(NS, MODEL, b"\0" * 16, np.array([1, 1e6], np.float32)),
        lambda txn: txn.put_meta("", b""),
        lambda txn: txn.put_meta("x" * 501, b""),
        lambda txn: txn.put_meta("format_version", b"9"),
    ):
        with pytest.raises(InvalidArgument):
            engine.write(bad_put)
    with engine.read() as txn:
        assert txn.head(NS) == NamespaceHead(NS, 1, 1, 1)
    assert problems(engine) == []


def test_scans_start_after_an_id_in_both_directions(engine: Engine) -> None:
    numbers = [2, 3, 5, 2**100]
    engine.write(lambda txn: [put(txn, memory(n)) for n in reversed(numbers)])
    engine.write(lambda txn: [put(txn, memory(n, OTHER)) for n in (1, 4, 2**127)])
    ids = [memory_id(n) for n in numbers]
    with engine.read() as txn:
        assert [m.memory_id for m in txn.scan(NS)] == ids
        assert [m.memory_id for m in txn.scan(NS, reverse=True)] == ids[::-1]
        assert [m.memory_id for m in txn.scan(NS, after_id=ids[1])] == ids[2:]
        assert [m.memory_id for m in txn.scan(NS, after_id=memory_id(4))] == ids[2:]
        assert [m.memory_id for m in txn.scan(NS, after_id=ids[2], reverse=True)] == [ids[1], ids[0]]
        assert [m.memory_id for m in txn.scan(NS, after_id=memory_id(4), reverse=True)] == [ids[1], ids[0]]
        assert list(txn.scan(NS, after_id=ids[-1])) == list(txn.scan(NS, after_id=ids[0], reverse=True)) == []
        assert [m.memory_id for m in txn.scan(NS, after_id=memory_id(2**128 - 1), reverse=True)] == ids[::-1]


def test_indexes_follow_updates(engine: Engine) -> None:
    first = engine.write(lambda txn: put(txn, memory(1, subject="old", content="old", occur_time_us=10)))
    changed = msgspec.structs.replace(first, subject="new", content="new", occur_time_us=20)
    second = engine.write(lambda txn: put(txn, changed, ChangeKind.UPDATED))
    with engine.read() as txn:
        assert list(txn.by_subject(NS, "old")) == list(txn.by_content_hash(NS, hash_of(first))) == []
        assert list(txn.by_occur_time(NS, 10, 19)) == []
        assert list(txn.by_subject(NS, "new")) == list(txn.by_content_hash(NS, hash_of(second))) == [second]
        assert list(txn.by_occur_time(NS, 20, 20)) == [second]
    bare = engine.write(lambda txn: put(txn, msgspec.structs.replace(second, subject=""), ChangeKind.UPDATED))
    back = engine.write(lambda txn: put(txn, msgspec.structs.replace(bare, status=Status.FORGOTTEN)))
    with engine.read() as txn:
        assert list(txn.by_subject(NS, "new")) == []
        assert list(txn.by_content_hash(NS, hash_of(second))) == [back], "every status is indexed"
    assert problems(engine) == []


def test_occur_times_sort_as_numbers_and_both_bounds_count(engine: Engine) -> None:
    times = [EARLIEST_TIME_US, -(2**40), -1, 0, 1, 2**40, LATEST_TIME_US]
    engine.write(lambda txn: [put(txn, memory(n, occur_time_us=t)) for n, t in enumerate(times)])
    engine.write(lambda txn: [put(txn, memory(n, OTHER, occur_time_us=t)) for n, t in enumerate(times)])
    engine.write(lambda txn: put(txn, memory(2**128 - 1, occur_time_us=0)))
    with engine.read() as txn:
        found = [m.occur_time_us for m in txn.by_occur_time(NS, -(2**63), 2**63 - 1)]
        assert found == sorted([*times, 0])
        assert [m.occur_time_us for m in txn.by_occur_time(NS, -(2**90), 2**90, reverse=True)] == found[::-1]
        assert [m.occur_time_us for m in txn.by_occur_time(NS, -1, 1)] == [-1, 0, 0, 1]
        down = [m.memory_id for m in txn.by_occur_time(NS, 0, 0, reverse=True)]
        assert down == [memory_id(2**128 - 1), memory_id(3)]
        assert list(txn.by_occur_time(NS, 2, 3)) == list(txn.by_occur_time(NS, 1, 0)) == []
        assert [m.occur_time_us for m in txn.by_occur_time(NS, -(2**63), EARLIEST_TIME_US, reverse=True)] == times[:1]


def test_vectors_are_float16_per_model_and_namespace(engine: Engine) -> None:
    keys = [bytes([n]) * 16 for n in range(5)]
    values = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)

    def operation(txn: object) -> None:
        for key, value in zip(keys[:4], values, strict=False):
            txn.put_vector(NS, MODEL, key, value)  # type: ignore[attr-defined]
        txn.put_vector(NS, MODEL, keys[0], values[4])  # type: ignore[attr-defined]
        txn.put_vector(NS, "model-b", keys[0], np.ones(7, np.float32))  # type: ignore[attr-defined]
        txn.put_vector(OTHER, MODEL, keys[4], values[4])  # type: ignore[attr-defined]

    engine.write(operation)
    rounded = values.astype(np.float16).astype(np.float32)
    with engine.read() as txn:
        vectors, found = txn.vectors(NS, MODEL, [keys[2], keys[4], keys[0], keys[2]], 3)
        assert vectors.dtype == np.float32
        assert found.tolist() == [True, False, True, True]
        assert np.array_equal(vectors, [rounded[2], [0, 0, 0], rounded[4], rounded[2]])
        one = txn.vector(NS, MODEL, keys[1])
        assert one is not None
        assert one.dtype == np.float32
        assert np.array_equal(one, rounded[1])
        assert txn.vectors(NS, MODEL, [], 3)[0].shape == (0, 3)
        with pytest.raises(InvalidArgument):
            txn.vectors(NS, MODEL, keys, 4)
    with pytest.raises(InvalidArgument):
        engine.write(lambda txn: txn.put_vector(OTHER, MODEL, keys[0], np.ones(4, np.float32)))
    assert engine.write(lambda txn: txn.drop_vectors("unknown")) == 0
    assert engine.write(lambda txn: txn.drop_vectors(MODEL)) == 5
    with engine.read() as txn:
        assert not txn.vectors(NS, MODEL, keys, 3)[1].any()
        assert txn.vectors(NS, "model-b", keys, 7)[1].tolist() == [True] + [False] * 4
    engine.write(lambda txn: txn.put_vector(NS, MODEL, keys[0], np.ones(9, np.float32)))
    assert problems(engine) == []


def test_more_vectors_than_one_chunk(engine: Engine) -> None:
    keys = [n.to_bytes(16, "big") for n in range(5000)]
    values = np.arange(5000, dtype=np.float32).reshape(5000, 1) / 8192

    def operation(txn: object) -> None:
        for key, value in zip(keys, values, strict=True):
            txn.put_vector(NS, MODEL, key, value)  # type: ignore[attr-defined]

    engine.write(operation)
    with engine.read() as txn:
        vectors, found = txn.vectors(NS, MODEL, [*keys, b"\xff" * 16], 1)
    assert found.tolist() == [True] * 5000 + [False]
    assert np.array_equal(vectors[:-1], values.astype(np.float16).astype(np.float32))


def test_answers_are_replaced_and_dropped_oldest_first(engine: Engine) -> None:
    def operation(txn: object) -> None:
        for number in range(6):
            txn.put_answer("t", f"r{number}", StoredAnswer(b"f", b"a", 100 + number))  # type: ignore[attr-defined]
        txn.put_answer("t", "r0", StoredAnswer(b"f2", b"a2", 999))  # type: ignore[attr-defined]

    engine.write(operation)
    with engine.read() as txn:
        assert txn.answer("t", "r0") == StoredAnswer(b"f2", b"a2", 999)
        assert txn.answer("u", "r0") is None
    assert engine.write(lambda txn: txn.drop_answers(104, 2)) == 2
    assert engine.write(lambda txn: txn.drop_answers(104, 99)) == 1
    with engine.read() as txn:
        assert [txn.answer("t", f"r{n}") is not None for n in range(6)] == [True, False, False, False, True, True]
    assert engine.write(lambda txn: txn.drop_answers(2**80, 99)) == 3
    assert engine.write(lambda txn: txn.drop_answers(-(2**80), 99)) == 0
    assert problems(engine) == []


def test_records_stay_in_their_table_and_namespace(engine: Engine) -> None:
    keys = ["k", "K", "k\n", "k\x00", "%_*", "钥匙 😀", "k" * 5000, *HOSTILE]

    def fill(txn: WriteTxn) -> None:
        for i, key in enumerate(dict.fromkeys(keys)):
            txn.put_record(RecordTable.JOB, NS, key, f"first {i}".encode())
            txn.put_record(RecordTable.JOB, NS, key, str(i).encode())
        txn.put_record(RecordTable.JOB, OTHER, "k", b"")
        txn.put_record(RecordTable.ACCESS, NS, "k", b"a")

    engine.write(fill)
    with engine.read() as txn:
        assert dict(txn.records(RecordTable.JOB, NS)) == {k: str(i).encode() for i, k in enumerate(dict.fromkeys(keys))}
        assert list(txn.records(RecordTable.JOB, OTHER)) == [("k", b"")]
        assert txn.record(RecordTable.ACCESS, NS, "k") == b"a"
        assert txn.record(RecordTable.PERMANENT, NS, "k") is None
        assert txn.record(RecordTable.TOKEN, NS, "k") is None
        assert {(n, k) for n, k, _ in txn.all_records(RecordTable.ACCESS)} == {(NS, "k")}
        head = txn.head(NS)
    assert head == NamespaceHead(NS, 0, 0, 0)
    assert engine.write(lambda txn: txn.drop_record(RecordTable.JOB, NS, "k")) is True
    assert engine.write(lambda txn: txn.drop_record(RecordTable.JOB, NS, "k")) is False
    with engine.read() as txn:
        assert txn.record(RecordTable.JOB, NS, "k") is None
        assert txn.record(RecordTable.JOB, NS, "K") == b"1"
        assert txn.record(RecordTable.JOB, OTHER, "k") == b""
    for key in ("", SURROGATE):
        with pytest.raises(InvalidArgument):
            engine.write(lambda txn, key=key: txn.put_record(RecordTable.JOB, NS, key, b"x"))  # type: ignore[misc]
    assert problems(engine) == []


def test_meta(engine: Engine) -> None:
    engine.write(lambda txn: txn.put_meta("k", b"1"))
    engine.write(lambda txn: txn.put_meta("k", b""))
    with engine.read() as txn:
        assert txn.meta("k") == b""
        assert txn.meta("other") is None


def test_verify_asks_for_vectors_of_what_can_be_recalled(engine: Engine) -> None:
    wants = memory(1, embedding_model=MODEL, embedding_dim=2)
    engine.write(lambda txn: put(txn, wants))
    assert any("no vector" in text for text in problems(engine))
    engine.write(lambda txn: txn.put_vector(NS, MODEL, hash_of(wants), np.ones(2, np.float32)))
    assert problems(engine) == []


def test_verify_is_content_with_the_vectors_of_a_later_model(engine: Engine) -> None:
    wants = memory(1, embedding_model=MODEL, embedding_dim=2)
    engine.write(lambda txn: txn.put_vector(NS, MODEL, hash_of(wants), np.ones(2, np.float32)))
    engine.write(lambda txn: put(txn, wants))
    engine.write(lambda txn: txn.put_vector(NS, "model-b", hash_of(wants), np.ones(5, np.float32)))
    engine.write(lambda txn: txn.drop_vectors(MODEL))
    assert problems(engine) == []


def test_everything_is_there_after_opening_again(open_engine, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    first = open_engine(tmp_path)
    stored = first.write(lambda txn: [put(txn, memory(n, subject="s")) for n in range(50)])
    first.close()
    second = open_engine(tmp_path)
    with second.read() as txn:
        assert list(txn.all_versions(NS)) == stored
        assert txn.head(NS) == NamespaceHead(NS, 50, 50, 50)
    second.write(lambda txn: put(txn, memory(100, OTHER)))
    assert problems(second) == []
    second.close()


def test_a_backup_opens_and_equals(open_engine, engine: Engine, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    stored = engine.write(lambda txn: [put(txn, memory(n, ns)) for n in range(20) for ns in (NS, OTHER)])
    engine.write(lambda txn: txn.put_meta("k", b"v"))
    copy_of = tmp_path / "copy" / "store"
    assert engine.backup(copy_of) > 0
    engine.write(lambda txn: put(txn, memory(99)))
    with pytest.raises(InvalidArgument):
        engine.backup(copy_of)
    copied = open_engine(tmp_path / "copy")
    with copied.read() as txn:
        assert list(txn.all_versions(NS)) == [m for m in stored if m.namespace == NS]
        assert txn.meta("k") == b"v"
    assert problems(copied) == []
    assert copied.write(lambda txn: put(txn, memory(98))).sequence == 21
    copied.close()
    assert engine.size_bytes() > 0


def test_errors_are_of_the_house(engine: Engine) -> None:
    engine.close()
    engine.close()
    for call in (
        lambda: engine.read().__enter__(),
        lambda: engine.write(lambda txn: None),
        lambda: list(engine.verify()),
    ):
        with pytest.raises(MemsvcError) as caught:
            call()
        assert caught.value.reason == "UNAVAILABLE"
