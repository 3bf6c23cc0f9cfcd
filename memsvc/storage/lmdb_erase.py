"""Erasing rows of the LMDB store: a whole namespace, single memories, stored answers.

Purpose: the write side of `Purge`. A namespace goes with all of its rows, names included. A memory that is erased alone
leaves its frame (id, layer, type, versions, sequences, times, who), since the change log has no gaps: each version is
blank with status PURGED, and its entries of the log lose reason, evidence and request id.

The number of an erased namespace is never given to another one: snapshots of before may still know it.

The bytes stay in free pages until `lmdb_rewrite` has made the file anew.

Threading: as the transaction that is passed in.

Rejected: keeping the names of an erased owner (they are often a person's mail address); removing the log entries of a
single memory (every follower of the log counts on sequences without gaps).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from memsvc.model import RECALLABLE, Memory, Namespace, Status, content_hash, embedded_text
from memsvc.storage import codec, lmdb_audit
from memsvc.storage.engine import ErasedCounts, RecordTable
from memsvc.storage.erasing import blank
from memsvc.storage.lmdb_tables import index_keys

if TYPE_CHECKING:
    from memsvc.storage.lmdb_write import LmdbWriteTxn

META_NUMBERS = "namespace_numbers"  # the largest number that an erased namespace had
_TABLES = ("current", "log", "subjects", "contents", "times", lmdb_audit.TABLE, *RecordTable, "versions", "states")


def namespace(txn: LmdbWriteTxn, name: Namespace) -> ErasedCounts:
    """See `WriteTxn.erase_namespace`."""
    number = txn._number(name)
    if number is None:
        return ErasedCounts()
    _, memories, _ = txn._known_state(number)
    removed = {table: _drop_prefix(txn, table, number) for table in _TABLES}
    vectors = sum(_drop_prefix(txn, "vectors", prefix + number) for prefix in _model_prefixes(txn))
    txn._txn.delete(codec.namespace_key(name), db=txn._db["namespaces"])
    txn._numbers.pop(name, None)
    txn._states.pop(number, None)
    txn._keep_number(codec.unpack_u64(number))
    records = sum(removed[table] for table in RecordTable)
    return ErasedCounts(memories, removed["versions"], vectors, records)


def memories(txn: LmdbWriteTxn, name: Namespace, memory_ids: Iterable[str]) -> ErasedCounts:
    """See `WriteTxn.erase_memories`."""
    number = txn._number(name)
    counts = ErasedCounts()
    if number is None:
        return counts
    erased: set[str] = set()
    for memory_id in dict.fromkeys(memory_ids):
        versions = txn.versions(name, memory_id)
        if versions and versions[-1].status != Status.PURGED:
            erased.add(memory_id)
            counts += _erase_one(txn, number, versions)
    if erased:
        _blank_evidence(txn, number, erased)
    return counts


def _erase_one(txn: LmdbWriteTxn, number: bytes, versions: list[Memory]) -> ErasedCounts:
    last = versions[-1]
    raw_id = codec.id_bytes(last.memory_id)
    for version in versions:
        key = number + raw_id + codec.pack_u32(version.version)
        txn._txn.put(key, codec.encode_memory(blank(version)), db=txn._db["versions"])
        _blank_change(txn, number, version.sequence, is_own=True)
    txn._reindex(number, raw_id, index_keys(last), index_keys(blank(last)))
    if last.status in RECALLABLE:
        sequence, memory_count, active = txn._known_state(number)
        txn._set_state(number, (sequence, memory_count, active - 1))
    vectors = sum(_drop_vector(txn, number, version) for version in versions)
    access = txn.drop_record(RecordTable.ACCESS, last.namespace, last.memory_id)
    return ErasedCounts(1, len(versions), vectors, int(access))


def _drop_vector(txn: LmdbWriteTxn, number: bytes, version: Memory) -> int:
    """Removes the vector of a version's text unless another memory that stands says the same."""
    wanted = content_hash(embedded_text(version))
    others = txn.by_content_hash(version.namespace, content_hash(version.content))
    if any(content_hash(embedded_text(other)) == wanted for other in others):
        return 0
    keys = (prefix + number + wanted for prefix in _model_prefixes(txn))
    return sum(bool(txn._txn.delete(key, db=txn._db["vectors"])) for key in keys)


def _blank_change(txn: LmdbWriteTxn, number: bytes, sequence: int, *, is_own: bool) -> None:
    """Takes the words out of an entry of the log: the evidence, and of an erased memory's own the reason too."""
    key = number + codec.pack_u64(sequence)
    raw = txn._txn.get(key, db=txn._db["log"])
    if raw is None:
        return  # `verify` reports it
    change = codec.decode_change(raw)
    bare = msgspec.structs.replace(change, evidence="")
    if is_own:
        bare = msgspec.structs.replace(bare, reason="", request_id="")
    if bare != change:
        txn._txn.put(key, codec.encode_change(bare), db=txn._db["log"])


def _blank_evidence(txn: LmdbWriteTxn, number: bytes, erased: set[str]) -> None:
    """Evidence of what was decided between an erased memory and another one quotes both."""
    sequences = []
    for _, raw in txn._prefixed("log", number):
        change = codec.decode_change(raw)
        if not change.evidence:
            continue
        memory = txn._get(number + codec.id_bytes(change.memory_id), change.version)
        named = {memory.superseded_by, *memory.supersedes} if memory is not None else set()
        if named & erased or any(memory_id in change.evidence for memory_id in erased):
            sequences.append(change.sequence)
    for sequence in sequences:
        _blank_change(txn, number, sequence, is_own=False)


def answers(txn: LmdbWriteTxn, tenant: str, is_kept: Callable[[bytes], bool]) -> int:
    """See `WriteTxn.erase_answers`."""
    gone = []
    for key, raw in txn._prefixed("answers", b""):
        named = codec.decode_answer(raw)
        if named.tenant == tenant and not is_kept(named.answer.answer):
            gone.append((key, named.answer.time_us))
    for key, time_us in gone:
        txn._txn.delete(key, db=txn._db["answers"])
        txn._txn.delete(codec.pack_time(time_us) + key, db=txn._db["answer_times"])
    return len(gone)


def _model_prefixes(txn: LmdbWriteTxn) -> list[bytes]:
    return [codec.pack_u32(codec.decode_model(raw).number) for _, raw in txn._prefixed("models", b"")]


def _drop_prefix(txn: LmdbWriteTxn, table: str, prefix: bytes) -> int:
    """Deletes all entries of a prefix; returns how many."""
    count = 0
    with txn._txn.cursor(txn._db[table]) as cursor:
        found = cursor.set_range(prefix)
        while found and cursor.key().startswith(prefix):
            found = cursor.delete() and bool(cursor.key())
            count += 1
    return count
