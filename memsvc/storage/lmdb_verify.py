"""Checks that the tables of an LMDB store agree with each other.

Purpose: `memsvc verify`. Every version, index entry, log entry, count and vector is looked at from both sides; a
problem names table and key, never content.

Threading: works in the one read transaction that it is given.

Rejected: repairing here (a repair that guesses hides the fault; derived indexes are rebuilt, the rest is restored).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memsvc.errors import StoreCorrupt
from memsvc.model import RECALLABLE, Memory, Namespace, content_hash, embedded_text, speaker_of
from memsvc.storage import codec
from memsvc.storage.engine import VerifyProblem
from memsvc.storage.lmdb_tables import NS, VECTOR_DTYPE, LmdbReadTxn, index_keys

INDEXES = ("subjects", "contents", "times")


def verify(txn: LmdbReadTxn) -> Iterator[VerifyProblem]:
    """Yields every disagreement in the snapshot."""
    raw, tables = txn._txn, txn._db
    try:
        heads = list(txn.heads())
    except StoreCorrupt as error:
        yield VerifyProblem("namespaces", error.message)
        return
    known = set()
    for head in heads:
        number = txn._number(head.namespace)
        assert number is not None
        known.add(number)
        yield from _verify_namespace(txn, head.namespace, number, head.sequence, head.memory_count, head.active_count)
    for table in ("states", "current", "versions", "log", *INDEXES):
        yield from _orphans(raw, tables[table], table, known)
    yield from _verify_answers(raw, tables)


def _orphans(raw: Any, table: Any, name: str, known: set[bytes]) -> Iterator[VerifyProblem]:
    with raw.cursor(table) as cursor:
        for key in cursor.iternext(keys=True, values=False):
            if key[:NS] not in known:
                yield VerifyProblem(f"{name} {key.hex()}", "belongs to no namespace")


def _verify_namespace(
    txn: LmdbReadTxn, namespace: Namespace, number: bytes, sequence: int, memory_count: int, active_count: int
) -> Iterator[VerifyProblem]:
    where = f"namespace {codec.unpack_u64(number)}"
    current: dict[bytes, Memory] = {}
    written: dict[int, tuple[bytes, int]] = {}
    for problem, key, memory in _versions(txn, number, where):
        if problem is not None:
            yield problem
        if memory is not None:
            if memory.namespace != namespace:
                yield VerifyProblem(f"versions {key.hex()}", "holds another namespace")
            current[key[NS : NS + codec.ID_BYTES]] = memory
            written[memory.sequence] = (key[NS : NS + codec.ID_BYTES], memory.version)
    yield from _verify_log(txn, number, where, sequence, written)
    yield from _verify_current(txn, number, where, current)
    if len(current) != memory_count:
        yield VerifyProblem(where, f"counts {memory_count} memories, has {len(current)}")
    active = sum(memory.status in RECALLABLE for memory in current.values())
    if active != active_count:
        yield VerifyProblem(where, f"counts {active_count} recallable memories, has {active}")
    for table in INDEXES:
        yield from _verify_index(txn, number, table, current)
    yield from _verify_vectors(txn, number, where, current)


def _versions(
    txn: LmdbReadTxn, number: bytes, where: str
) -> Iterator[tuple[VerifyProblem | None, bytes, Memory | None]]:
    """Each version, with a problem when it can't be decoded or does not follow the one before."""
    last_id, last_version = b"", 0
    for key, value in txn._prefixed("versions", number):
        raw_id, version = key[NS : NS + codec.ID_BYTES], codec.unpack_u32(key[-4:])
        at = f"versions {key.hex()}"
        try:
            memory = codec.decode_memory(value)
        except StoreCorrupt as error:
            yield VerifyProblem(at, error.message), key, None
            continue
        problem = None
        if version != (last_version + 1 if raw_id == last_id else 1):
            problem = VerifyProblem(at, "a version before it is missing")
        elif memory.version != version or codec.id_bytes(memory.memory_id) != raw_id:
            problem = VerifyProblem(at, "holds another version than its key says")
        last_id, last_version = raw_id, version
        yield problem, key, memory


def _verify_log(
    txn: LmdbReadTxn, number: bytes, where: str, sequence: int, written: dict[int, tuple[bytes, int]]
) -> Iterator[VerifyProblem]:
    expected = 1
    for key, value in txn._prefixed("log", number):
        at = f"log {key.hex()}"
        found = codec.unpack_u64(key[NS:])
        if found != expected:
            yield VerifyProblem(at, f"change {expected} is missing before it")
        expected = found + 1
        try:
            change = codec.decode_change(value)
        except StoreCorrupt as error:
            yield VerifyProblem(at, error.message)
            continue
        wanted = written.pop(found, None)
        if wanted != (codec.id_bytes(change.memory_id), change.version) or change.sequence != found:
            yield VerifyProblem(at, "names a version that was not written by it")
    if expected - 1 != sequence:
        yield VerifyProblem(where, f"its head is {sequence}, its log ends at {expected - 1}")
    for missing in written:
        yield VerifyProblem(where, f"version of change {missing} is not in the log")


def _verify_current(
    txn: LmdbReadTxn, number: bytes, where: str, current: dict[bytes, Memory]
) -> Iterator[VerifyProblem]:
    seen = set()
    for key, value in txn._prefixed("current", number):
        raw_id = key[NS:]
        seen.add(raw_id)
        memory = current.get(raw_id)
        if memory is None or memory.version != codec.unpack_u32(value):
            yield VerifyProblem(f"current {key.hex()}", "does not name the newest version")
    if seen != set(current):
        yield VerifyProblem(where, f"{len(set(current) - seen)} memories have no current version")


def _verify_index(
    txn: LmdbReadTxn, number: bytes, table: str, current: dict[bytes, Memory]
) -> Iterator[VerifyProblem]:
    wanted = set()
    for raw_id, memory in current.items():
        value = index_keys(memory).get(table)
        if value is not None:
            wanted.add(number + value + raw_id)
    found = {key for key, _ in txn._prefixed(table, number)}
    for key in wanted - found:
        yield VerifyProblem(f"{table} {key.hex()}", "is missing")
    for key in found - wanted:
        yield VerifyProblem(f"{table} {key.hex()}", "names no current value")


def _verify_vectors(
    txn: LmdbReadTxn, number: bytes, where: str, current: dict[bytes, Memory]
) -> Iterator[VerifyProblem]:
    for raw_id, memory in current.items():
        if not memory.embedding_dim or memory.status not in RECALLABLE:
            continue
        model = txn._model(memory.embedding_model)
        key = content_hash(embedded_text(memory.content, speaker_of(memory)))
        value = None if model is None else txn._txn.get(model + number + key, db=txn._db["vectors"])
        if value is None:
            yield VerifyProblem(f"{where}, memory {raw_id.hex()}", "has no vector")
        elif len(value) != memory.embedding_dim * VECTOR_DTYPE.itemsize:
            yield VerifyProblem(f"{where}, memory {raw_id.hex()}", "has a vector of another dimension")


def _verify_answers(raw: Any, tables: dict[str, Any]) -> Iterator[VerifyProblem]:
    """Answers and their times name each other."""
    times = set()
    with raw.cursor(tables["answer_times"]) as cursor:
        for key in cursor.iternext(keys=True, values=False):
            times.add(key)
    with raw.cursor(tables["answers"]) as cursor:
        for key, value in cursor.iternext():
            try:
                entry = codec.pack_time(codec.decode_answer(value).time_us) + key
            except StoreCorrupt as error:
                yield VerifyProblem(f"answers {key.hex()}", error.message)
                continue
            if entry not in times:
                yield VerifyProblem(f"answers {key.hex()}", "has no entry in answer_times")
            times.discard(entry)
    for key in times:
        yield VerifyProblem(f"answer_times {key.hex()}", "names no answer")
