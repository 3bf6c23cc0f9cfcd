"""An engine of plain dicts: what the real ones are compared with. Slow, obvious, not durable."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from memsvc.model import (
    RECALLABLE,
    AuditEntry,
    Change,
    ChangeKind,
    Memory,
    Namespace,
    Status,
    content_hash,
    embedded_text,
)
from memsvc.storage.audit_chain import entry_hash, first_hash
from memsvc.storage.engine import AuditHead, ErasedCounts, NamespaceHead, RecordTable, StoredAnswer
from memsvc.storage.erasing import blank


class DictTxn:
    def __init__(self) -> None:
        self.memories: dict[Namespace, dict[str, list[Memory]]] = {}
        self.log: dict[Namespace, list[Change]] = {}
        self.stored_vectors: dict[tuple[str, Namespace, bytes], np.ndarray] = {}
        self.answers: dict[tuple[str, str], StoredAnswer] = {}
        self.metas: dict[str, bytes] = {}
        self.audits: dict[Namespace, list[AuditEntry]] = {}
        self.side: dict[tuple[RecordTable, Namespace], dict[str, bytes]] = {}

    def head(self, namespace: Namespace) -> NamespaceHead | None:
        if namespace not in self.memories:
            return None
        newest = [versions[-1] for versions in self.memories[namespace].values()]
        active = sum(memory.status in RECALLABLE for memory in newest)
        return NamespaceHead(namespace, len(self.log[namespace]), len(newest), active)

    def heads(self) -> Iterator[NamespaceHead]:
        return (head for head in map(self.head, self.memories) if head is not None)

    def get(self, namespace: Namespace, memory_id: str, version: int = 0) -> Memory | None:
        versions = self.memories.get(namespace, {}).get(memory_id, [])
        if version < 0 or version > len(versions) or not versions:
            return None
        return versions[version - 1]

    def get_many(self, namespace: Namespace, keys: Sequence[tuple[str, int]]) -> list[Memory | None]:
        return [self.get(namespace, memory_id, version) for memory_id, version in keys]

    def versions(self, namespace: Namespace, memory_id: str) -> list[Memory]:
        return list(self.memories.get(namespace, {}).get(memory_id, []))

    def scan(self, namespace: Namespace, *, after_id: str = "", reverse: bool = False) -> Iterator[Memory]:
        newest = [v[-1] for _, v in sorted(self.memories.get(namespace, {}).items(), reverse=reverse)]
        if not after_id:
            return iter(newest)
        return iter([m for m in newest if (m.memory_id < after_id if reverse else m.memory_id > after_id)])

    def all_versions(self, namespace: Namespace) -> Iterator[Memory]:
        every = [m for versions in self.memories.get(namespace, {}).values() for m in versions]
        return iter(sorted(every, key=lambda m: m.sequence))

    def by_subject(self, namespace: Namespace, subject: str) -> Iterator[Memory]:
        return (m for m in self.scan(namespace) if m.subject == subject)

    def by_content_hash(self, namespace: Namespace, hashed: bytes) -> Iterator[Memory]:
        return (m for m in self.scan(namespace) if content_hash(m.content) == hashed)

    def by_occur_time(self, namespace: Namespace, start_us: int, end_us: int, *, reverse: bool = False) -> list[Memory]:
        found = [m for m in self.scan(namespace) if start_us <= m.occur_time_us <= end_us]
        return sorted(found, key=lambda m: (m.occur_time_us, m.memory_id), reverse=reverse)

    def changes(self, namespace: Namespace, after_sequence: int, limit: int) -> list[Change]:
        return [c for c in self.log.get(namespace, []) if c.sequence > after_sequence][: max(limit, 0)]

    def audit(self, namespace: Namespace, after_number: int, limit: int) -> list[AuditEntry]:
        return [e for e in self.audits.get(namespace, []) if e.number > after_number][: max(limit, 0)]

    def audit_head(self, namespace: Namespace) -> AuditHead | None:
        last = self.audits.get(namespace, [])[-1:]
        return AuditHead(last[0].number, last[0].hash) if last else None

    def append_audit(self, namespace: Namespace, entry: AuditEntry) -> AuditEntry:
        self.memories.setdefault(namespace, {})
        self.log.setdefault(namespace, [])
        entries = self.audits.setdefault(namespace, [])
        previous = entries[-1].hash if entries else first_hash(namespace)
        numbered = msgspec.structs.replace(entry, number=len(entries) + 1)
        entries.append(msgspec.structs.replace(numbered, hash=entry_hash(previous, numbered)))
        return entries[-1]

    def vector(self, namespace: Namespace, model_id: str, hashed: bytes) -> np.ndarray | None:
        return self.stored_vectors.get((model_id, namespace, hashed))

    def answer(self, tenant: str, request_id: str) -> StoredAnswer | None:
        return self.answers.get((tenant, request_id))

    def record(self, table: RecordTable, namespace: Namespace, key: str) -> bytes | None:
        return self.side.get((table, namespace), {}).get(key)

    def records(self, table: RecordTable, namespace: Namespace) -> Iterator[tuple[str, bytes]]:
        return iter(list(self.side.get((table, namespace), {}).items()))

    def all_records(self, table: RecordTable) -> Iterator[tuple[Namespace, str, bytes]]:
        return ((n, k, v) for (t, n), entries in list(self.side.items()) if t == table for k, v in entries.items())

    def meta(self, key: str) -> bytes | None:
        return self.metas.get(key)

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
        versions = self.memories.setdefault(memory.namespace, {}).setdefault(memory.memory_id, [])
        log = self.log.setdefault(memory.namespace, [])
        stored = msgspec.structs.replace(memory, version=len(versions) + 1, sequence=len(log) + 1)
        versions.append(stored)
        log.append(
            Change(
                sequence=stored.sequence,
                kind=kind,
                memory_id=memory.memory_id,
                version=stored.version,
                time_us=time_us,
                actor=actor,
                reason=reason,
                request_id=request_id,
                evidence=evidence,
            )
        )
        return stored

    def put_vector(self, namespace: Namespace, model_id: str, hashed: bytes, vector: np.ndarray) -> None:
        self.memories.setdefault(namespace, {})
        self.log.setdefault(namespace, [])
        self.stored_vectors[model_id, namespace, hashed] = vector.astype(np.float16).astype(np.float32)

    def drop_vectors(self, model_id: str) -> int:
        gone = [key for key in self.stored_vectors if key[0] == model_id]
        for key in gone:
            del self.stored_vectors[key]
        return len(gone)

    def put_answer(self, tenant: str, request_id: str, answer: StoredAnswer) -> None:
        self.answers[tenant, request_id] = answer

    def put_record(self, table: RecordTable, namespace: Namespace, key: str, value: bytes) -> None:
        self.memories.setdefault(namespace, {})
        self.log.setdefault(namespace, [])
        self.side.setdefault((table, namespace), {})[key] = value

    def drop_record(self, table: RecordTable, namespace: Namespace, key: str) -> bool:
        return self.side.get((table, namespace), {}).pop(key, None) is not None

    def erase_namespace(self, namespace: Namespace) -> ErasedCounts:
        if namespace not in self.memories:
            return ErasedCounts()
        memories = self.memories.pop(namespace)
        self.log.pop(namespace)
        self.audits.pop(namespace, None)
        vectors = [key for key in self.stored_vectors if key[1] == namespace]
        for key in vectors:
            del self.stored_vectors[key]
        records = [self.side.pop(key) for key in list(self.side) if key[1] == namespace]
        versions = sum(map(len, memories.values()))
        return ErasedCounts(len(memories), versions, len(vectors), sum(map(len, records)))

    def erase_memories(self, namespace: Namespace, memory_ids: Sequence[str]) -> ErasedCounts:
        counts, erased = ErasedCounts(), []
        for memory_id in memory_ids:
            versions = self.versions(namespace, memory_id)
            if not versions or versions[-1].status == Status.PURGED:
                continue
            erased.append(memory_id)
            self.memories[namespace][memory_id] = [blank(v) for v in versions]
            for v in versions:
                change = self.log[namespace][v.sequence - 1]
                bare = msgspec.structs.replace(change, reason="", evidence="", request_id="")
                self.log[namespace][v.sequence - 1] = bare
            texts = {embedded_text(m) for m in self.scan(namespace)}
            gone = {content_hash(t) for t in {embedded_text(v) for v in versions} - texts}
            vectors = [k for k in self.stored_vectors if k[1] == namespace and k[2] in gone]
            for key in vectors:
                del self.stored_vectors[key]
            used = self.drop_record(RecordTable.ACCESS, namespace, memory_id)
            counts += ErasedCounts(1, len(versions), len(vectors), used)
        for at, change in enumerate(self.log.get(namespace, [])):
            memory = self.get(namespace, change.memory_id, change.version)
            if {memory.superseded_by, *memory.supersedes} & set(erased) or any(i in change.evidence for i in erased):
                self.log[namespace][at] = msgspec.structs.replace(change, evidence="")
        return counts

    def erase_answers(self, tenant: str, is_kept: Callable[[bytes], bool]) -> int:
        gone = [key for key, kept in self.answers.items() if key[0] == tenant and not is_kept(kept.answer)]
        for key in gone:
            del self.answers[key]
        return len(gone)

    def put_meta(self, key: str, value: bytes) -> None:
        self.metas[key] = value


class DictEngine:
    def __init__(self) -> None:
        self._state = DictTxn()

    @contextmanager
    def read(self) -> Iterator[DictTxn]:
        yield self._state

    def write(self, operation: Callable[[Any], Any], *, on_commit: Callable[[Any], None] | None = None) -> Any:
        txn = copy.deepcopy(self._state)
        result = operation(txn)
        self._state = txn
        if on_commit is not None:
            on_commit(result)
        return result
