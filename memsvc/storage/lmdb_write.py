"""Writing the tables of the LMDB store.

Purpose: `LmdbWriteTxn` implements the write protocol of `storage.engine`: one `put` keeps versions, head, indexes, log
and counts in step.

Threading: a transaction belongs to the thread that runs the group commit; operations of a group run one after another.

Rejected: index entries written later by a background thread (a crash between leaves them apart, and a write that
checks for duplicates must see the one before it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import InvalidArgument, StoreCorrupt
from memsvc.model import RECALLABLE, AuditEntry, Change, ChangeKind, Memory, Namespace
from memsvc.storage import codec, lmdb_audit, lmdb_erase
from memsvc.storage.engine import ErasedCounts, RecordTable, StoredAnswer
from memsvc.storage.lmdb_tables import (
    META_FORMAT,
    STATE,
    VECTOR_DTYPE,
    LmdbReadTxn,
    checked_hash,
    index_keys,
    meta_key,
)

_FLOAT16_MAX = 65504.0


class LmdbWriteTxn(LmdbReadTxn):
    """A read-write transaction; see `storage.engine.WriteTxn`.

    Everything is checked and encoded before the first table is touched: whoever catches InvalidArgument inside an
    operation and goes on finds the transaction as it was.
    """

    def __init__(self, txn: Any, tables: dict[str, Any]) -> None:
        super().__init__(txn, tables, {})  # numbers of its own: the transaction may be undone
        self._states: dict[bytes, tuple[int, int, int]] = {}
        self.has_erased = False  # a namespace: its number is of no use any more

    def put(
        self,
        memory: Memory,
        kind: ChangeKind,
        *,
        time_us: int,
        actor: str,
        reason: str = "",
        request_id: str = "",
        evidence: str = "",
    ) -> Memory:
        """See the protocol."""
        raw_id = codec.id_bytes(memory.memory_id)
        number = self._number(memory.namespace)
        before = None if number is None else self._get(number + raw_id, 0)
        sequence, memories, active = (0, 0, 0) if number is None else self._known_state(number)
        version = 1 if before is None else before.version + 1
        _check_identity(before, memory)
        stored = msgspec.structs.replace(memory, version=version, sequence=sequence + 1)
        change = Change(
            sequence=sequence + 1,
            kind=kind,
            memory_id=memory.memory_id,
            version=version,
            time_us=time_us,
            actor=actor,
            reason=reason,
            request_id=request_id,
            evidence=evidence,
        )
        version_bytes, change_bytes = codec.encode_memory(stored), codec.encode_change(change)
        new, old = index_keys(stored), {} if before is None else index_keys(before)
        if number is None:
            number = self._add_namespace(memory.namespace)
        packed = codec.pack_u32(version)
        self._add("versions", number + raw_id + packed, version_bytes)
        self._txn.put(number + raw_id, packed, db=self._db["current"])
        self._reindex(number, raw_id, old, new)
        self._add("log", number + codec.pack_u64(sequence + 1), change_bytes)
        memories += before is None
        active += (stored.status in RECALLABLE) - (before is not None and before.status in RECALLABLE)
        self._set_state(number, (sequence + 1, memories, active))
        return stored

    def append_audit(self, namespace: Namespace, entry: AuditEntry) -> AuditEntry:
        """See the protocol."""
        codec.encode_names(namespace)  # raises before anything is written
        stored = lmdb_audit.chained(self.audit_head(namespace), namespace, entry)
        row = lmdb_audit.row(stored)
        number = self._number(namespace) or self._add_namespace(namespace)
        self._add(lmdb_audit.TABLE, number + codec.pack_u64(stored.number), row)
        return stored

    def _add(self, table: str, key: bytes, value: bytes) -> None:
        """Puts what must not be there yet."""
        if not self._txn.put(key, value, db=self._db[table], overwrite=False):
            raise StoreCorrupt(f"{table} holds an entry past its head; run `memsvc verify`")

    def _add_namespace(self, namespace: Namespace) -> bytes:
        """Gives a new namespace its number: one more than the largest that any had."""
        names = codec.encode_names(namespace)
        with self._txn.cursor(self._db["states"]) as cursor:
            last = codec.unpack_u64(cursor.key()) if cursor.last() else 0
        number = codec.pack_u64(max(last, self._erased_number()) + 1)
        self._add("namespaces", codec.namespace_key(namespace), number + names)
        self._set_state(number, (0, 0, 0))
        self._numbers[namespace] = number
        return number

    def _erased_number(self) -> int:
        """The largest number that an erased namespace had; 0 for none."""
        raw = self._txn.get(meta_key(lmdb_erase.META_NUMBERS), db=self._db["meta"])
        return codec.unpack_u64(raw) if raw is not None else 0

    def _keep_number(self, number: int) -> None:
        """Sees to it that no other namespace gets the number."""
        if number > self._erased_number():
            self._txn.put(meta_key(lmdb_erase.META_NUMBERS), codec.pack_u64(number), db=self._db["meta"])

    def _known_state(self, number: bytes) -> tuple[int, int, int]:
        state = self._states.get(number) or self._state(number)
        if state is None:
            raise StoreCorrupt("a namespace has no state; run `memsvc verify`")
        return state

    def _set_state(self, number: bytes, state: tuple[int, int, int]) -> None:
        self._txn.put(number, STATE.pack(*state), db=self._db["states"])
        self._states[number] = state

    def _reindex(self, number: bytes, raw_id: bytes, old: dict[str, bytes], new: dict[str, bytes]) -> None:
        for table, value in new.items():
            if old.get(table) != value:
                self._txn.put(number + value + raw_id, b"", db=self._db[table])
        for table, value in old.items():
            if new.get(table) != value:
                self._txn.delete(number + value + raw_id, db=self._db[table])

    def put_vector(self, namespace: Namespace, model_id: str, content_hash: bytes, vector: NDArray[np.float32]) -> None:
        """See the protocol."""
        checked_hash(content_hash)
        model = self._model(model_id)
        dim = vector.size if model is None else model.dim
        if vector.shape != (dim,) or not dim:
            raise InvalidArgument(f"a vector has the shape {vector.shape}, its model needs ({dim},)", field="vector")
        raw = _rounded(vector).tobytes()
        codec.encode_names(namespace)  # raises before anything is written
        model = model or self._add_model(model_id, dim)
        number = self._number(namespace) or self._add_namespace(namespace)
        self._txn.put(codec.pack_u32(model.number) + number + content_hash, raw, db=self._db["vectors"])

    def _add_model(self, model_id: str, dim: int) -> codec.ModelEntry:
        with self._txn.cursor(self._db["models"]) as cursor:
            numbers = [codec.decode_model(raw).number for raw in cursor.iternext(keys=False, values=True)]
        entry = codec.ModelEntry(max(numbers, default=0) + 1, dim, model_id)
        self._add("models", codec.digest(model_id), codec.encode_model(entry))
        return entry

    def drop_vectors(self, model_id: str) -> int:
        """See the protocol."""
        model = self._model(model_id)
        count = 0
        if model is None:
            return count
        prefix = codec.pack_u32(model.number)
        with self._txn.cursor(self._db["vectors"]) as cursor:
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                found = cursor.delete() and bool(cursor.key())
                count += 1
        self._txn.delete(codec.digest(model_id), db=self._db["models"])
        return count

    def put_answer(self, tenant: str, request_id: str, answer: StoredAnswer) -> None:
        """See the protocol."""
        key = codec.digest(tenant, request_id)
        old = self.answer(tenant, request_id)
        raw = codec.encode_answer(codec.NamedAnswer(tenant, request_id, answer))
        time = codec.pack_time(answer.time_us)
        if old is not None:
            self._txn.delete(codec.pack_time(old.time_us) + key, db=self._db["answer_times"])
        self._txn.put(key, raw, db=self._db["answers"])
        self._txn.put(time + key, b"", db=self._db["answer_times"])

    def drop_answers(self, before_us: int, limit: int) -> int:
        """See the protocol."""
        end = codec.pack_time(min(max(before_us, codec.MIN_TIME_US), codec.MAX_TIME_US))
        count = 0
        with self._txn.cursor(self._db["answer_times"]) as cursor:
            found = cursor.first()
            while found and count < limit and cursor.key() < end:
                self._txn.delete(cursor.key()[8:], db=self._db["answers"])
                found = cursor.delete() and bool(cursor.key())
                count += 1
        return count

    def put_record(self, table: RecordTable, namespace: Namespace, key: str, value: bytes) -> None:
        """See the protocol."""
        if not key:
            raise InvalidArgument("a record's key is empty", field="key")
        raw = codec.encode_record(key, value)
        codec.encode_names(namespace)  # raises before anything is written
        number = self._number(namespace) or self._add_namespace(namespace)
        self._txn.put(number + codec.digest(key), raw, db=self._db[table])

    def drop_record(self, table: RecordTable, namespace: Namespace, key: str) -> bool:
        """See the protocol."""
        number = self._number(namespace)
        return number is not None and bool(self._txn.delete(number + codec.digest(key), db=self._db[table]))

    def erase_namespace(self, namespace: Namespace) -> ErasedCounts:
        """See the protocol."""
        self.has_erased = True
        return lmdb_erase.namespace(self, namespace)

    def erase_memories(self, namespace: Namespace, memory_ids: Sequence[str]) -> ErasedCounts:
        """See the protocol."""
        return lmdb_erase.memories(self, namespace, memory_ids)

    def erase_answers(self, tenant: str, is_kept: Callable[[bytes], bool]) -> int:
        """See the protocol."""
        return lmdb_erase.answers(self, tenant, is_kept)

    def put_meta(self, key: str, value: bytes) -> None:
        """See the protocol."""
        if key in (META_FORMAT, lmdb_erase.META_NUMBERS):
            raise InvalidArgument(f"{key} belongs to the store", field="key")
        self._txn.put(meta_key(key), value, db=self._db["meta"])


def _check_identity(before: Memory | None, after: Memory) -> None:
    """Raises InvalidArgument when a version would change what makes the memory that memory."""
    if before is None:
        return
    if before.namespace != after.namespace or before.memory_id != after.memory_id:
        raise StoreCorrupt("a memory is stored below another one's key; run `memsvc verify`")
    if before.layer != after.layer:
        raise InvalidArgument("the layer of a memory never changes", field="layer")


def _rounded(vector: NDArray[np.float32]) -> NDArray[np.float16]:
    """As float16. Raises InvalidArgument for what has no finite float16."""
    if not float(vector @ vector) < _FLOAT16_MAX**2 and not bool((np.abs(vector) <= _FLOAT16_MAX).all()):
        raise InvalidArgument("a vector holds a value that is not finite in float16", field="vector")
    rounded: NDArray[np.float16] = vector.astype(VECTOR_DTYPE)
    return rounded
