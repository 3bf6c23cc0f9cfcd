"""Checks that the tables of an LMDB store agree with each other.

Purpose: `memsvc verify`. Every version, index entry, log entry, count and vector is looked at from both sides; a
problem names table and key, never content. Works through the tables in key order with constant memory.

Threading: works in the one read transaction that it is given.

Rejected: repairing here (a repair that guesses hides the fault; derived indexes are rebuilt, the rest is restored);
collecting a namespace in memory to compare sets (a million memories are gigabytes).
"""

from __future__ import annotations

from collections.abc import Iterator

from memsvc.errors import InvalidArgument, StoreCorrupt
from memsvc.model import RECALLABLE, Memory, Namespace, content_hash, embedded_text
from memsvc.storage import codec, lmdb_audit
from memsvc.storage.engine import RecordTable, VerifyProblem
from memsvc.storage.lmdb_errors import DAMAGE
from memsvc.storage.lmdb_tables import MODEL_BYTES, NS, STATE, VECTOR_DTYPE, LmdbReadTxn, index_keys

KEY_BYTES: dict[str, int] = {
    "current": NS + codec.ID_BYTES,
    "versions": NS + codec.ID_BYTES + 4,
    "log": NS + 8,
    "subjects": NS + codec.HASH_BYTES + codec.ID_BYTES,
    "contents": NS + codec.HASH_BYTES + codec.ID_BYTES,
    "times": NS + 8 + codec.ID_BYTES,
    "vectors": MODEL_BYTES + NS + codec.HASH_BYTES,
    "states": NS,
    lmdb_audit.TABLE: lmdb_audit.KEY_BYTES,
    **dict.fromkeys(RecordTable, NS + codec.HASH_BYTES),
}
INDEXES = ("subjects", "contents", "times")

Problems = Iterator[VerifyProblem]


def verify(txn: LmdbReadTxn) -> Problems:
    """Yields every disagreement in the snapshot. A page that LMDB can't read ends the checks: the transaction is of
    no use after it.
    """
    try:
        yield from _checks(txn)
    except DAMAGE as error:
        yield VerifyProblem("pages", f"the file can't be read on, and what comes next was not checked: {error}")


def _checks(txn: LmdbReadTxn) -> Problems:
    namespaces: dict[bytes, Namespace] = {}
    models: dict[bytes, codec.ModelEntry] = {}
    yield from _verify_names(txn, namespaces)
    yield from _verify_models(txn, models)
    for table in KEY_BYTES:
        yield from _verify_keys(txn, table, namespaces)
    for number, namespace in namespaces.items():
        check = _Namespace(txn, number, namespace, models)
        yield from check.versions()
        yield from check.log()
        yield from check.current()
        for index in INDEXES:
            yield from check.index(index)
        yield from check.counts()
        yield from lmdb_audit.verify(txn, number, namespace)
    yield from _verify_vectors(txn, models)
    yield from _verify_answers(txn)
    yield from _verify_answer_times(txn)
    for record_table in RecordTable:
        yield from _verify_records(txn, record_table)


def _at(table: str, key: bytes) -> str:
    return f"{table} {key.hex()}"


def _verify_names(txn: LmdbReadTxn, namespaces: dict[bytes, Namespace]) -> Problems:
    """Fills `namespaces` with what can be read."""
    for key, raw in txn._prefixed("namespaces", b""):
        try:
            names = codec.decode_names(raw[NS:])
        except StoreCorrupt as error:
            yield VerifyProblem(_at("namespaces", key), error.message)
            continue
        if codec.namespace_key(names) != key:
            yield VerifyProblem(_at("namespaces", key), "is not the digest of its names")
        if raw[:NS] in namespaces:
            yield VerifyProblem(_at("namespaces", key), "shares its number with another one")
        namespaces[raw[:NS]] = names


def _verify_models(txn: LmdbReadTxn, models: dict[bytes, codec.ModelEntry]) -> Problems:
    """Fills `models`, by the prefix of their vectors' keys."""
    for key, raw in txn._prefixed("models", b""):
        try:
            entry = codec.decode_model(raw)
        except StoreCorrupt as error:
            yield VerifyProblem(_at("models", key), error.message)
            continue
        prefix = codec.pack_u32(entry.number)
        if codec.digest(entry.model_id) != key:
            yield VerifyProblem(_at("models", key), "is not the digest of its model id")
        if prefix in models:
            yield VerifyProblem(_at("models", key), "shares its number with another one")
        models[prefix] = entry


def _verify_keys(txn: LmdbReadTxn, table: str, namespaces: dict[bytes, Namespace]) -> Problems:
    """Keys have their length and belong to a namespace."""
    start = MODEL_BYTES if table == "vectors" else 0
    for key, _ in txn._prefixed(table, b""):
        if len(key) != KEY_BYTES[table]:
            yield VerifyProblem(_at(table, key), f"has {len(key)} bytes instead of {KEY_BYTES[table]}")
        elif key[start : start + NS] not in namespaces:
            yield VerifyProblem(_at(table, key), "belongs to no namespace")


class _Namespace:
    """The checks of one namespace; `versions` counts what `counts` compares."""

    def __init__(
        self, txn: LmdbReadTxn, number: bytes, namespace: Namespace, models: dict[bytes, codec.ModelEntry]
    ) -> None:
        self._txn = txn
        self._number = number
        self._namespace = namespace
        self._models = models
        self._where = f"namespace {int.from_bytes(number, 'big')}"
        self._memory_count = 0
        self._active_count = 0
        self._log_end = 0

    def _get(self, table: str, key: bytes) -> bytes | None:
        raw: bytes | None = self._txn._txn.get(key, db=self._txn._db[table])
        return raw

    def _entries(self, table: str) -> Iterator[tuple[bytes, bytes]]:
        return (e for e in self._txn._prefixed(table, self._number) if len(e[0]) == KEY_BYTES[table])

    def versions(self) -> Problems:
        """Versions are contiguous, say what their keys say and stand in the log; the last one is indexed."""
        last_id, last_version = b"", 0
        newest: Memory | None = None
        for key, raw in self._entries("versions"):
            raw_id, version = key[NS : NS + codec.ID_BYTES], codec.unpack_u32(key[-4:])
            if raw_id != last_id:
                yield from self._newest(last_id, last_version, newest)
                self._memory_count += 1
                last_version = 0
            if version != last_version + 1:
                yield VerifyProblem(_at("versions", key), "a version before it is missing")
            last_id, last_version = raw_id, version
            try:
                newest = codec.decode_memory(raw)
            except StoreCorrupt as error:
                newest = None
                yield VerifyProblem(_at("versions", key), error.message)
                continue
            yield from self._version(key, raw_id, version, newest)
        yield from self._newest(last_id, last_version, newest)

    def _version(self, key: bytes, raw_id: bytes, version: int, memory: Memory) -> Problems:
        at = _at("versions", key)
        if memory.namespace != self._namespace:
            yield VerifyProblem(at, "holds another namespace")
        if memory.version != version or memory.memory_id != codec.id_text(raw_id):
            yield VerifyProblem(at, "holds another version than its key says")
        sequence = memory.sequence if 0 <= memory.sequence <= codec.MAX_U64 else 0
        raw = self._get("log", self._number + codec.pack_u64(sequence))
        if raw is None:
            yield VerifyProblem(at, "its change is not in the log")

    def _newest(self, raw_id: bytes, version: int, memory: Memory | None) -> Problems:
        """What must be there for the last version of a memory."""
        if not raw_id:
            return
        key = self._number + raw_id
        if self._get("current", key) != codec.pack_u32(version):
            yield VerifyProblem(_at("current", key), "does not name the newest version")
        if memory is None:
            return
        self._active_count += memory.status in RECALLABLE
        for table, value in index_keys(memory).items():
            if self._get(table, self._number + value + raw_id) is None:
                yield VerifyProblem(_at(table, self._number + value + raw_id), "is missing")
        if memory.embedding_dim and memory.status in RECALLABLE and not self._has_vector(memory):
            yield VerifyProblem(f"{self._where}, memory {raw_id.hex()}", "has no vector")

    def _has_vector(self, memory: Memory) -> bool:
        """Under any model: after a reindex the version still names the one that it was written with."""
        key = self._number + content_hash(embedded_text(memory))
        return any(self._get("vectors", prefix + key) is not None for prefix in self._models)

    def log(self) -> Problems:
        """The log has no gaps and each change names the version that carries its sequence."""
        expected = 1
        for key, raw in self._entries("log"):
            found = codec.unpack_u64(key[NS:])
            if found != expected:
                yield VerifyProblem(_at("log", key), f"change {expected} is missing before it")
            expected = found + 1
            try:
                change = codec.decode_change(raw)
                packed = codec.id_bytes(change.memory_id) + codec.pack_u32(change.version & codec.MAX_U32)
                version = self._get("versions", self._number + packed)
                sequence = None if version is None else codec.decode_memory(version).sequence
            except (StoreCorrupt, InvalidArgument) as error:
                yield VerifyProblem(_at("log", key), error.message)
                continue
            if change.sequence != found or sequence != found:
                yield VerifyProblem(_at("log", key), "names a version that was not written by it")
        self._log_end = expected - 1

    def current(self) -> Problems:
        """Each memory's current version exists; that it is the newest is seen from the versions."""
        for key, packed in self._entries("current"):
            if len(packed) != 4 or self._get("versions", key + packed) is None:
                yield VerifyProblem(_at("current", key), "names no version")

    def index(self, table: str) -> Problems:
        """Each entry stands for a current version that has its value."""
        for key, _ in self._entries(table):
            raw_id = key[-codec.ID_BYTES :]
            packed = self._get("current", self._number + raw_id)
            raw = None if packed is None else self._get("versions", self._number + raw_id + packed)
            try:
                value = None if raw is None else index_keys(codec.decode_memory(raw)).get(table)
            except StoreCorrupt:
                continue  # reported with the version
            if value != key[NS : -codec.ID_BYTES]:
                yield VerifyProblem(_at(table, key), "names no current value")

    def counts(self) -> Problems:
        """The head's numbers are those that were counted. Call it last."""
        raw = self._get("states", self._number)
        if raw is None or len(raw) != STATE.size:
            yield VerifyProblem(self._where, "has no state")
            return
        sequence, memory_count, active_count = STATE.unpack(raw)
        if sequence != self._log_end:
            yield VerifyProblem(self._where, f"its head is {sequence}, its log ends at {self._log_end}")
        if memory_count != self._memory_count:
            yield VerifyProblem(self._where, f"counts {memory_count} memories, has {self._memory_count}")
        if active_count != self._active_count:
            yield VerifyProblem(self._where, f"counts {active_count} recallable memories, has {self._active_count}")


def _verify_vectors(txn: LmdbReadTxn, models: dict[bytes, codec.ModelEntry]) -> Problems:
    """Each vector is of a known model and has its dimension."""
    for key, raw in txn._prefixed("vectors", b""):
        model = models.get(key[:MODEL_BYTES])
        if model is None:
            yield VerifyProblem(_at("vectors", key), "belongs to no model")
        elif len(raw) != model.dim * VECTOR_DTYPE.itemsize:
            yield VerifyProblem(_at("vectors", key), f"has {len(raw)} bytes instead of {model.dim} dimensions")


def _verify_answers(txn: LmdbReadTxn) -> Problems:
    """Each answer has its key and stands in the time index."""
    for key, raw in txn._prefixed("answers", b""):
        try:
            named = codec.decode_answer(raw)
            entry = codec.pack_time(named.answer.time_us) + key
        except (StoreCorrupt, InvalidArgument) as error:
            yield VerifyProblem(_at("answers", key), error.message)
            continue
        if codec.digest(named.tenant, named.request_id) != key:
            yield VerifyProblem(_at("answers", key), "is not the digest of its request")
        if txn._txn.get(entry, db=txn._db["answer_times"]) is None:
            yield VerifyProblem(_at("answers", key), "has no entry in answer_times")


def _verify_answer_times(txn: LmdbReadTxn) -> Problems:
    """Each entry of the time index names an answer of that time."""
    for key, _ in txn._prefixed("answer_times", b""):
        raw = txn._txn.get(key[8:], db=txn._db["answers"]) if len(key) == 8 + codec.HASH_BYTES else None
        try:
            right = raw is not None and codec.pack_time(codec.decode_answer(raw).answer.time_us) == key[:8]
        except (StoreCorrupt, InvalidArgument):
            continue  # reported with the answer
        if not right:
            yield VerifyProblem(_at("answer_times", key), "names no answer")


def _verify_records(txn: LmdbReadTxn, table: RecordTable) -> Problems:
    """Each record can be read and stands below its key's digest."""
    for key, raw in txn._prefixed(table, b""):
        try:
            name, _ = codec.decode_record(raw)
        except StoreCorrupt as error:
            yield VerifyProblem(_at(table, key), error.message)
            continue
        if codec.digest(name) != key[NS:]:
            yield VerifyProblem(_at(table, key), "is not the digest of its key")
