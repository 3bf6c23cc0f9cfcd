"""The tables of the LMDB store and the transactions over them.

Purpose: `LmdbReadTxn` and `LmdbWriteTxn` implement the protocols of `storage.engine` on named databases; every key of
user data begins with the 8-byte number of its namespace.

    namespaces  digest(names)                -> number + names
    states      namespace                    -> sequence, memory count, active count
    current     namespace, id                -> version
    versions    namespace, id, version       -> Memory
    log         namespace, sequence          -> Change
    subjects    namespace, digest, id        -> (empty)
    contents    namespace, content hash, id  -> (empty)
    times       namespace, occur time, id    -> (empty)
    vectors     model, namespace, hash       -> float16 vector
    answers     digest(tenant, request id)   -> StoredAnswer
    answer_times  time, digest               -> (empty)
    models      digest(model id)             -> model number + model id
    meta        name                         -> value

Threading: a transaction belongs to the thread that opened it.

Rejected: DUPSORT tables for the indexes (511-byte values and a second ordering rule for no gain).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import lmdb
import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import InvalidArgument, StoreCorrupt
from memsvc.model import RECALLABLE, Change, ChangeKind, Memory, Namespace, content_hash
from memsvc.storage import codec
from memsvc.storage.engine import NamespaceHead, StoredAnswer

TABLES = (
    "namespaces",
    "states",
    "current",
    "versions",
    "log",
    "subjects",
    "contents",
    "times",
    "vectors",
    "answers",
    "answer_times",
    "models",
    "meta",
)
_STATE = struct.Struct(">QQQ")
NS = codec.NAMESPACE_BYTES
VECTOR_DTYPE = np.dtype("<f2")


class LmdbReadTxn:
    """A snapshot; see `storage.engine.ReadTxn`."""

    def __init__(self, txn: lmdb.Transaction, tables: dict[str, Any]) -> None:
        self._txn = txn
        self._db = tables
        self._numbers: dict[Namespace, bytes] = {}

    # -- namespaces

    def _number(self, namespace: Namespace) -> bytes | None:
        """The namespace's key prefix, or None if it was never written."""
        known = self._numbers.get(namespace)
        if known is not None:
            return known
        raw = self._txn.get(codec.namespace_key(namespace), db=self._db["namespaces"])
        if raw is None:
            return None
        if codec.decode_names(raw[NS:]) != namespace:
            raise StoreCorrupt("two namespaces share a digest; run `memsvc verify`")
        self._numbers[namespace] = raw[:NS]
        return self._numbers[namespace]

    def _state(self, number: bytes) -> tuple[int, int, int]:
        raw = self._txn.get(number, db=self._db["states"])
        if raw is None:
            raise StoreCorrupt("a namespace has no state; run `memsvc verify`")
        sequence, memories, active = _STATE.unpack(raw)
        return sequence, memories, active

    def head(self, namespace: Namespace) -> NamespaceHead | None:
        """See the protocol."""
        number = self._number(namespace)
        return None if number is None else NamespaceHead(namespace, *self._state(number))

    def heads(self) -> Iterator[NamespaceHead]:
        """See the protocol."""
        with self._txn.cursor(self._db["namespaces"]) as cursor:
            for raw in cursor.iternext(keys=False, values=True):
                yield NamespaceHead(codec.decode_names(raw[NS:]), *self._state(raw[:NS]))

    # -- memories

    def get(self, namespace: Namespace, memory_id: str, version: int = 0) -> Memory | None:
        """See the protocol."""
        number = self._number(namespace)
        return None if number is None else self._get(number + codec.id_bytes(memory_id), version)

    def _get(self, key: bytes, version: int) -> Memory | None:
        packed = codec.pack_u32(version) if version else self._txn.get(key, db=self._db["current"])
        if packed is None:
            return None
        raw = self._txn.get(key + packed, db=self._db["versions"])
        if raw is None:
            if version:
                return None
            raise StoreCorrupt("a memory's current version is missing; run `memsvc verify`")
        return codec.decode_memory(raw)

    def get_many(self, namespace: Namespace, keys: Sequence[tuple[str, int]]) -> list[Memory | None]:
        """See the protocol."""
        number = self._number(namespace)
        if number is None:
            return [None] * len(keys)
        return [self._get(number + codec.id_bytes(memory_id), version) for memory_id, version in keys]

    def versions(self, namespace: Namespace, memory_id: str) -> list[Memory]:
        """See the protocol."""
        number = self._number(namespace)
        if number is None:
            return []
        prefix = number + codec.id_bytes(memory_id)
        return [codec.decode_memory(value) for _, value in self._prefixed("versions", prefix)]

    def scan(self, namespace: Namespace, *, after_id: str = "", reverse: bool = False) -> Iterator[Memory]:
        """See the protocol."""
        number = self._number(namespace)
        if number is None:
            return
        after = number + codec.id_bytes(after_id) if after_id else None
        for key, packed in self._ranged("current", number, after, reverse):
            raw = self._txn.get(key + packed, db=self._db["versions"])
            if raw is None:
                raise StoreCorrupt("a memory's current version is missing; run `memsvc verify`")
            yield codec.decode_memory(raw)

    def all_versions(self, namespace: Namespace) -> Iterator[Memory]:
        """See the protocol."""
        number = self._number(namespace)
        if number is None:
            return
        for _, raw in self._prefixed("log", number):
            change = codec.decode_change(raw)
            memory = self._get(number + codec.id_bytes(change.memory_id), change.version)
            if memory is None:
                raise StoreCorrupt("a change names a version that is missing; run `memsvc verify`")
            yield memory

    # -- indexes

    def by_subject(self, namespace: Namespace, subject: str) -> Iterator[Memory]:
        """See the protocol."""
        for memory in self._indexed(namespace, "subjects", codec.digest(subject)):
            if memory.subject == subject:
                yield memory

    def by_content_hash(self, namespace: Namespace, content_hash: bytes) -> Iterator[Memory]:
        """See the protocol."""
        return self._indexed(namespace, "contents", content_hash)

    def _indexed(self, namespace: Namespace, table: str, value: bytes) -> Iterator[Memory]:
        number = self._number(namespace)
        if number is None:
            return
        for key, _ in self._prefixed(table, number + value):
            memory = self._get(number + key[-codec.ID_BYTES :], 0)
            if memory is None:
                raise StoreCorrupt(f"an entry of {table} names no memory; run `memsvc verify`")
            yield memory

    def by_occur_time(
        self, namespace: Namespace, start_us: int, end_us: int, *, reverse: bool = False
    ) -> Iterator[Memory]:
        """See the protocol."""
        number = self._number(namespace)
        if number is None or start_us > end_us:
            return
        low, high = number + codec.pack_time(start_us), number + codec.pack_time(end_us) + b"\xff" * codec.ID_BYTES
        with self._txn.cursor(self._db["times"]) as cursor:
            if reverse:
                if cursor.set_range(high):
                    found = cursor.key() == high or cursor.prev()
                else:
                    found = cursor.last()
                steps = cursor.iterprev(keys=True, values=False)
            else:
                found = cursor.set_range(low)
                steps = cursor.iternext(keys=True, values=False)
            if not found:
                return
            for key in steps:
                if not low <= key <= high:
                    return
                memory = self._get(number + key[-codec.ID_BYTES :], 0)
                if memory is None:
                    raise StoreCorrupt("an entry of times names no memory; run `memsvc verify`")
                yield memory

    def _prefixed(self, table: str, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries whose key begins with the prefix, ascending."""
        with self._txn.cursor(self._db[table]) as cursor:
            if not cursor.set_range(prefix):
                return
            for key, value in cursor.iternext():
                if not key.startswith(prefix):
                    return
                yield key, value

    def _ranged(self, table: str, prefix: bytes, after: bytes | None, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        """Entries of a prefix after a key, exclusively, in either direction."""
        with self._txn.cursor(self._db[table]) as cursor:
            if not reverse:
                found = cursor.set_range(after or prefix)
                if found and after is not None and cursor.key() == after:
                    found = cursor.next()
                steps = cursor.iternext()
            else:
                found = cursor.set_range(after if after is not None else _following(prefix))
                found = cursor.prev() if found else cursor.last()
                steps = cursor.iterprev()
            if not found:
                return
            for key, value in steps:
                if not key.startswith(prefix):
                    return
                yield key, value

    # -- log, vectors, answers, meta

    def changes(self, namespace: Namespace, after_sequence: int, limit: int) -> list[Change]:
        """See the protocol."""
        number = self._number(namespace)
        found: list[Change] = []
        if number is None or limit <= 0:
            return found
        with self._txn.cursor(self._db["log"]) as cursor:
            if cursor.set_range(number + codec.pack_u64(max(after_sequence, 0) + 1)):
                for key, value in cursor.iternext():
                    if not key.startswith(number):
                        break
                    found.append(codec.decode_change(value))
                    if len(found) == limit:
                        break
        return found

    def _model(self, model_id: str) -> bytes | None:
        raw = self._txn.get(codec.digest(model_id), db=self._db["models"])
        return None if raw is None else raw[:4]

    def vector(self, namespace: Namespace, model_id: str, content_hash: bytes) -> NDArray[np.float32] | None:
        """See the protocol."""
        number, model = self._number(namespace), self._model(model_id)
        if number is None or model is None:
            return None
        raw = self._txn.get(model + number + content_hash, db=self._db["vectors"])
        return None if raw is None else np.frombuffer(raw, VECTOR_DTYPE).astype(np.float32)

    def vectors(
        self, namespace: Namespace, model_id: str, content_hashes: Sequence[bytes], dim: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """See the protocol."""
        vectors = np.zeros((len(content_hashes), dim), np.float32)
        found = np.zeros(len(content_hashes), np.bool_)
        number, model = self._number(namespace), self._model(model_id)
        if number is None or model is None:
            return vectors, found
        get, table, prefix = self._txn.get, self._db["vectors"], model + number
        for i, key in enumerate(content_hashes):
            raw = get(prefix + key, db=table)
            if raw is not None:
                vectors[i] = np.frombuffer(raw, VECTOR_DTYPE)
                found[i] = True
        return vectors, found

    def answer(self, tenant: str, request_id: str) -> StoredAnswer | None:
        """See the protocol."""
        raw = self._txn.get(codec.digest(tenant, request_id), db=self._db["answers"])
        return None if raw is None else codec.decode_answer(raw)

    def meta(self, key: str) -> bytes | None:
        """See the protocol."""
        raw: bytes | None = self._txn.get(key.encode(), db=self._db["meta"])
        return raw


class LmdbWriteTxn(LmdbReadTxn):
    """A read-write transaction; see `storage.engine.WriteTxn`."""

    def put(
        self, memory: Memory, kind: ChangeKind, *, time_us: int, actor: str, reason: str = "", request_id: str = ""
    ) -> Memory:
        """See the protocol. Raises InvalidArgument when identity would change or text is not Unicode."""
        number = self._number_for_write(memory.namespace)
        key = number + codec.id_bytes(memory.memory_id)
        before = self._get(key, 0)
        sequence, memories, active = self._state(number)
        sequence += 1
        version = 1 if before is None else before.version + 1
        if before is not None and before.layer != memory.layer:
            raise InvalidArgument("the layer of a memory never changes", field="layer")
        stored = msgspec.structs.replace(memory, version=version, sequence=sequence)
        packed = codec.pack_u32(version)
        self._txn.put(key + packed, codec.encode_memory(stored), db=self._db["versions"], overwrite=False)
        self._txn.put(key, packed, db=self._db["current"])
        self._reindex(number, key[NS:], before, stored)
        change = Change(
            sequence=sequence,
            kind=kind,
            memory_id=memory.memory_id,
            version=version,
            time_us=time_us,
            actor=actor,
            reason=reason,
            request_id=request_id,
        )
        self._txn.put(number + codec.pack_u64(sequence), codec.encode_change(change), db=self._db["log"], append=False)
        memories += before is None
        active += (stored.status in RECALLABLE) - (before is not None and before.status in RECALLABLE)
        self._txn.put(number, _STATE.pack(sequence, memories, active), db=self._db["states"])
        return stored

    def _number_for_write(self, namespace: Namespace) -> bytes:
        number = self._number(namespace)
        if number is not None:
            return number
        number = codec.pack_u64(self._txn.stat(self._db["namespaces"])["entries"] + 1)
        names = codec.encode_names(namespace)
        self._txn.put(codec.namespace_key(namespace), number + names, db=self._db["namespaces"])
        self._txn.put(number, _STATE.pack(0, 0, 0), db=self._db["states"])
        self._numbers[namespace] = number
        return number

    def _reindex(self, number: bytes, raw_id: bytes, before: Memory | None, after: Memory) -> None:
        new = index_keys(after)
        old = {} if before is None else index_keys(before)
        for table, value in new.items():
            if old.get(table) == value:
                continue
            self._txn.put(number + value + raw_id, b"", db=self._db[table])
        for table, value in old.items():
            if new.get(table) != value:
                self._txn.delete(number + value + raw_id, db=self._db[table])

    def put_vector(
        self, namespace: Namespace, model_id: str, content_hash: bytes, vector: NDArray[np.float32]
    ) -> None:
        """See the protocol."""
        number = self._number_for_write(namespace)
        model = self._model(model_id)
        if model is None:
            model = codec.pack_u32(self._txn.stat(self._db["models"])["entries"] + 1)
            self._txn.put(codec.digest(model_id), model + model_id.encode(), db=self._db["models"])
        self._txn.put(model + number + content_hash, vector.astype(VECTOR_DTYPE).tobytes(), db=self._db["vectors"])

    def drop_vectors(self, model_id: str) -> int:
        """See the protocol."""
        model = self._model(model_id)
        count = 0
        if model is None:
            return count
        with self._txn.cursor(self._db["vectors"]) as cursor:
            found = cursor.set_range(model)
            while found and cursor.key().startswith(model):
                found = cursor.delete() and bool(cursor.key())
                count += 1
        return count

    def put_answer(self, tenant: str, request_id: str, answer: StoredAnswer) -> None:
        """See the protocol."""
        key = codec.digest(tenant, request_id)
        old = self.answer(tenant, request_id)
        if old is not None:
            self._txn.delete(codec.pack_time(old.time_us) + key, db=self._db["answer_times"])
        self._txn.put(key, codec.encode_answer(answer), db=self._db["answers"])
        self._txn.put(codec.pack_time(answer.time_us) + key, b"", db=self._db["answer_times"])

    def drop_answers(self, before_us: int, limit: int) -> int:
        """See the protocol."""
        end = codec.pack_time(before_us)
        count = 0
        with self._txn.cursor(self._db["answer_times"]) as cursor:
            found = cursor.first()
            while found and count < limit and cursor.key() < end:
                self._txn.delete(cursor.key()[8:], db=self._db["answers"])
                found = cursor.delete() and bool(cursor.key())
                count += 1
        return count

    def put_meta(self, key: str, value: bytes) -> None:
        """See the protocol."""
        self._txn.put(key.encode(), value, db=self._db["meta"])


def index_keys(memory: Memory) -> dict[str, bytes]:
    """What the indexes hold for a current version, by table: the part of the key between namespace and id."""
    keys = {"contents": content_hash(memory.content), "times": codec.pack_time(memory.occur_time_us)}
    if memory.subject:
        keys["subjects"] = codec.digest(memory.subject)
    return keys


def _following(prefix: bytes) -> bytes:
    """The first key after all that begin with the prefix (a namespace number: never all 0xff)."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
