"""The tables of the LMDB store, and reading them.

Purpose: `LmdbReadTxn` implements the read protocol of `storage.engine` on named databases (`lmdb_write` the other
one); every key of user data begins with the 8-byte number of its namespace.

    namespaces  digest(names)                -> number + names
    states      namespace                    -> sequence, memory count, active count
    current     namespace, id                -> version
    versions    namespace, id, version       -> Memory
    log         namespace, sequence          -> Change
    subjects    namespace, digest, id        -> (empty)
    contents    namespace, content hash, id  -> (empty)
    times       namespace, occur time, id    -> (empty)
    vectors     model, namespace, hash       -> float16 vector
    answers     digest(tenant, request id)   -> tenant, request id, StoredAnswer
    answer_times  time, digest               -> (empty)
    models      digest(model id)             -> number, dimension, model id
    meta        name                         -> value
    audit       namespace, number            -> entry (see `lmdb_audit`)
    accesses, jobs, permanent, tokens   namespace, digest(key)  -> key, record

Where a key holds a digest, the text itself is in the value and compared.

Types: an `lmdb.Transaction` is Any here; its stubs say "bytes or memoryview" where this store always has bytes.

Threading: a transaction belongs to the thread that opened it. Read transactions of an engine share a dict of namespace
numbers, which never change; a number that a snapshot is too old for shows as a missing state.

Rejected: DUPSORT tables for the indexes (511-byte values and a second ordering rule for no gain).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsvc.errors import InvalidArgument, StoreCorrupt
from memsvc.model import AuditEntry, Change, Memory, Namespace, content_hash
from memsvc.storage import codec, lmdb_audit
from memsvc.storage.engine import AuditHead, NamespaceHead, RecordTable, StoredAnswer

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
    lmdb_audit.TABLE,
    *RecordTable,
)
LATER_TABLES = frozenset({lmdb_audit.TABLE, *RecordTable})  # what a store of an older memsvc lacks
META_FORMAT = "format_version"
STATE = struct.Struct(">QQQ")
NS = codec.NAMESPACE_BYTES
MODEL_BYTES = 4
VECTOR_DTYPE = np.dtype("<f2")
NUMBERS_MAX = 100_000  # namespaces whose number is remembered
META_KEY_MAX_BYTES = 500
_VECTOR_CHUNK = 4096


class LmdbReadTxn:
    """A snapshot; see `storage.engine.ReadTxn`."""

    def __init__(self, txn: Any, tables: dict[str, Any], numbers: dict[Namespace, bytes]) -> None:
        self._txn = txn
        self._db = tables
        self._numbers = numbers

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
        number: bytes = raw[:NS]
        if len(self._numbers) >= NUMBERS_MAX:
            self._numbers.clear()
        self._numbers[namespace] = number
        return number

    def _state(self, number: bytes) -> tuple[int, int, int] | None:
        raw = self._txn.get(number, db=self._db["states"])
        if raw is None:
            return None
        if len(raw) != STATE.size:
            raise StoreCorrupt("a namespace's state is damaged; run `memsvc verify`")
        sequence, memories, active = STATE.unpack(raw)
        return sequence, memories, active

    def head(self, namespace: Namespace) -> NamespaceHead | None:
        """See the protocol."""
        number = self._number(namespace)
        state = None if number is None else self._state(number)
        if state is not None:
            return NamespaceHead(namespace, *state)
        if number is not None and self._txn.get(codec.namespace_key(namespace), db=self._db["namespaces"]):
            raise StoreCorrupt("a namespace has no state; run `memsvc verify`")
        return None

    def heads(self) -> Iterator[NamespaceHead]:
        """See the protocol."""
        with self._txn.cursor(self._db["namespaces"]) as cursor:
            for raw in cursor.iternext(keys=False, values=True):
                state = self._state(raw[:NS])
                if state is None:
                    raise StoreCorrupt("a namespace has no state; run `memsvc verify`")
                yield NamespaceHead(codec.decode_names(raw[NS:]), *state)

    # -- memories

    def get(self, namespace: Namespace, memory_id: str, version: int = 0) -> Memory | None:
        """See the protocol."""
        number = self._number(namespace)
        return None if number is None else self._get(number + codec.id_bytes(memory_id), version)

    def _get(self, key: bytes, version: int) -> Memory | None:
        if not version:
            packed = self._txn.get(key, db=self._db["current"])
        else:
            packed = codec.pack_u32(version) if 0 < version <= codec.MAX_U32 else None
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
        get, table, id_bytes, decode = self._txn.get, self._db["versions"], codec.id_bytes, codec.decode_memory
        found: list[Memory | None] = []
        for memory_id, version in keys:
            key = number + id_bytes(memory_id)
            if 0 < version <= codec.MAX_U32:  # what a recall asks for: `_get` without its calls
                raw = get(key + version.to_bytes(4, "big"), None, table)
                found.append(None if raw is None else decode(raw))
            else:
                found.append(self._get(key, version))
        return found

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
        if not subject:
            raise InvalidArgument("an empty subject is not indexed", field="subject")
        return (m for m in self._indexed(namespace, "subjects", codec.digest(subject)) if m.subject == subject)

    def by_content_hash(self, namespace: Namespace, content_hash: bytes) -> Iterator[Memory]:
        """See the protocol."""
        return self._indexed(namespace, "contents", checked_hash(content_hash))

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
        low = number + codec.pack_time(min(max(start_us, codec.MIN_TIME_US), codec.MAX_TIME_US))
        high = number + codec.pack_time(min(max(end_us, codec.MIN_TIME_US), codec.MAX_TIME_US))
        high += b"\xff" * codec.ID_BYTES
        with self._txn.cursor(self._db["times"]) as cursor:
            if reverse:
                past = cursor.set_range(high)
                found = (cursor.key() == high or cursor.prev()) if past else cursor.last()
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
        if number is None or limit <= 0 or after_sequence >= codec.MAX_U64:
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

    def audit(self, namespace: Namespace, after_number: int, limit: int) -> list[AuditEntry]:
        """See the protocol."""
        return lmdb_audit.entries(self, namespace, after_number, limit)

    def audit_head(self, namespace: Namespace) -> AuditHead | None:
        """See the protocol."""
        return lmdb_audit.head(self, namespace)

    def _model(self, model_id: str) -> codec.ModelEntry | None:
        raw = self._txn.get(codec.digest(model_id), db=self._db["models"])
        if raw is None:
            return None
        entry = codec.decode_model(raw)
        if entry.model_id != model_id:
            raise StoreCorrupt("two models share a digest; run `memsvc verify`")
        return entry

    def _vector_prefix(self, namespace: Namespace, model_id: str) -> tuple[bytes, int] | None:
        """Key prefix and dimension of a model's vectors in a namespace."""
        number, model = self._number(namespace), self._model(model_id)
        if number is None or model is None:
            return None
        return codec.pack_u32(model.number) + number, model.dim

    def vector(self, namespace: Namespace, model_id: str, content_hash: bytes) -> NDArray[np.float32] | None:
        """See the protocol."""
        prefix = self._vector_prefix(namespace, model_id)
        raw = None if prefix is None else self._txn.get(prefix[0] + content_hash, db=self._db["vectors"])
        if prefix is None or raw is None:
            return None
        _check_length(raw, prefix[1])
        return np.frombuffer(raw, VECTOR_DTYPE).astype(np.float32)

    def vectors(
        self, namespace: Namespace, model_id: str, content_hashes: Sequence[bytes], dim: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """See the protocol."""
        vectors = np.zeros((len(content_hashes), dim), np.float32)
        found = np.zeros(len(content_hashes), np.bool_)
        prefix = self._vector_prefix(namespace, model_id)
        if prefix is None:
            return vectors, found
        if prefix[1] != dim:
            raise InvalidArgument(f"the vectors of this model have {prefix[1]} dimensions, not {dim}", field="dim")
        get, table = self._txn.get, self._db["vectors"]
        for start in range(0, len(content_hashes), _VECTOR_CHUNK):
            hashes = content_hashes[start : start + _VECTOR_CHUNK]
            raws = [get(prefix[0] + key, db=table) for key in hashes]
            here = [raw for raw in raws if raw is not None]
            for raw in here:
                if len(raw) != dim * VECTOR_DTYPE.itemsize:
                    _check_length(raw, dim)
            block = np.frombuffer(b"".join(here), VECTOR_DTYPE).reshape(len(here), dim)
            present = np.fromiter((raw is not None for raw in raws), np.bool_, len(raws))
            found[start : start + len(raws)] = present
            vectors[start : start + len(raws)][present] = block
        return vectors, found

    def answer(self, tenant: str, request_id: str) -> StoredAnswer | None:
        """See the protocol."""
        raw = self._txn.get(codec.digest(tenant, request_id), db=self._db["answers"])
        if raw is None:
            return None
        named = codec.decode_answer(raw)
        if (named.tenant, named.request_id) != (tenant, request_id):
            raise StoreCorrupt("two requests share a digest; run `memsvc verify`")
        return named.answer

    def record(self, table: RecordTable, namespace: Namespace, key: str) -> bytes | None:
        """See the protocol."""
        number = self._number(namespace)
        raw = None if number is None else self._txn.get(number + codec.digest(key), db=self._db[table])
        if raw is None:
            return None
        stored_key, value = codec.decode_record(raw)
        if stored_key != key:
            raise StoreCorrupt(f"two keys of {table} share a digest; run `memsvc verify`")
        return value

    def records(self, table: RecordTable, namespace: Namespace) -> Iterator[tuple[str, bytes]]:
        """See the protocol."""
        number = self._number(namespace)
        if number is None:
            return
        for _, raw in self._prefixed(table, number):
            yield codec.decode_record(raw)

    def all_records(self, table: RecordTable) -> Iterator[tuple[Namespace, str, bytes]]:
        """See the protocol."""
        for head in self.heads():
            for key, value in self.records(table, head.namespace):
                yield head.namespace, key, value

    def meta(self, key: str) -> bytes | None:
        """See the protocol."""
        raw: bytes | None = self._txn.get(meta_key(key), db=self._db["meta"])
        return raw


def index_keys(memory: Memory) -> dict[str, bytes]:
    """What the indexes hold for a current version, by table: the part of the key between namespace and id. Raises
    InvalidArgument for a time that does not fit.
    """
    keys = {"contents": content_hash(memory.content), "times": codec.pack_time(memory.occur_time_us)}
    if memory.subject:
        keys["subjects"] = codec.digest(memory.subject)
    return keys


def checked_hash(content_hash: bytes) -> bytes:
    """The hash. Raises InvalidArgument unless it is a whole hash (a shorter one would match as a prefix)."""
    if len(content_hash) != codec.HASH_BYTES:
        raise InvalidArgument(f"a content hash has {codec.HASH_BYTES} bytes", field="content_hash")
    return content_hash


def _check_length(raw: bytes, dim: int) -> None:
    if len(raw) != dim * VECTOR_DTYPE.itemsize:
        raise StoreCorrupt(f"a vector has {len(raw)} bytes instead of {dim} dimensions; run `memsvc verify`")


def meta_key(key: str) -> bytes:
    """Key of a store-wide value. Raises InvalidArgument for one that is empty or too long."""
    raw = key.encode("utf-8", "surrogatepass")
    if not 1 <= len(raw) <= META_KEY_MAX_BYTES:
        raise InvalidArgument(f"a meta key has 1 to {META_KEY_MAX_BYTES} bytes", field="key")
    return raw


def _following(prefix: bytes) -> bytes:
    """The first key after all that begin with the prefix (a namespace number: never all 0xff)."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
