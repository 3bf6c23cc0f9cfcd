"""What every mutation shares: one transaction, once per request_id, followed by segments and watchers.

Purpose: replay of a request_id, vectors of new texts, putting a version with its vector, and what follows a commit. The
rules of each mutation live beside this file.

Threading: any number of threads; the store runs the transactions one at a time.

Rejected: embedding inside the transaction (milliseconds under the writer's lock), a queue that embeds after the answer
(an acknowledged memory that can't be found by meaning yet).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import EtagMismatch, NotFound, RequestIdReused, Unavailable
from memsvc.memory import audit
from memsvc.memory.feed import ChangeFeed
from memsvc.memory.owners import DEFAULT_TENANT, Owners
from memsvc.model import ChangeKind, Memory, Namespace, embedded_text
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.segments import Applied, SegmentStore, vector_hash
from memsvc.storage.engine import Engine, ReadTxn, StoredAnswer, WriteTxn

T = TypeVar("T")

EXPIRED_ANSWERS_PER_WRITE = 64


class Committed(msgspec.Struct, Generic[T]):
    """Result of a transaction and the versions that it wrote."""

    result: T
    changes: list[Applied]


class Mutation(msgspec.Struct, frozen=True):
    """What makes a mutation repeatable: its request_id ("" for none) and a hash of what it asks for. `actor` and `call`
    are for log and audit: who, and by which call of the contract or which job.
    """

    request_id: str
    fingerprint: bytes
    actor: str
    call: str = ""


def fingerprint(*parts: bytes) -> bytes:
    """16-byte hash of a request's parts, each behind its length."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


class Transactions:
    """See the module. `embedder` is replaced as a whole when the store moves to another model."""

    def __init__(
        self,
        engine: Engine,
        embedder: Embedder,
        segments: SegmentStore,
        feed: ChangeFeed,
        *,
        clock_us: Callable[[], int],
        answer_retention_us: int,
    ) -> None:
        self.engine = engine
        self.embedder = embedder
        self._segments = segments
        self._feed = feed
        self.clock_us = clock_us
        self._answer_retention_us = answer_retention_us

    def check_model(self, model_id: str) -> None:
        """Inside a transaction: raises Unavailable when the store moved to another model since vectors were made."""
        if self.embedder.model_id != model_id:
            raise Unavailable("the embedding model was switched meanwhile; try again with the same request_id")

    def vectors_for(
        self, memories: Sequence[Memory], still_wanted: Callable[[], bool] = lambda: True
    ) -> NDArray[np.float32]:
        """(n, dim) float32 vectors of the memories, rounded to float16 as the store keeps them: those that the
        namespace's store holds already are taken from it, the others are embedded.
        """
        dim, model_id = self.embedder.dim, self.embedder.model_id
        vectors = np.zeros((len(memories), dim), np.float32)
        found = np.zeros(len(memories), np.bool_)
        by_namespace: dict[Namespace, list[int]] = {}
        for i, memory in enumerate(memories):
            by_namespace.setdefault(memory.namespace, []).append(i)
        with self.engine.read() as txn:
            for namespace, indexes in by_namespace.items():
                hashes = [vector_hash(memories[i]) for i in indexes]
                vectors[indexes], found[indexes] = txn.vectors(namespace, model_id, hashes, dim)
        missing = np.flatnonzero(~found).tolist()
        if missing:
            texts = [embedded_text(memories[i]) for i in missing]
            fresh = self.embedder.embed_passages(texts, cancelled=lambda: not still_wanted())
            vectors[missing] = fresh.astype(np.float16)
        return vectors

    def put(
        self,
        txn: WriteTxn,
        memory: Memory,
        vector: NDArray[np.float32] | None,
        kind: ChangeKind,
        mutation: Mutation,
        reason: str,
        changes: list[Applied],
        before: Memory | None,
        evidence: str = "",
    ) -> Memory:
        """Writes a version (with its vector, or the one that its text has already), with its entry of the audit, and
        notes it for the segments.
        """
        if vector is None:
            vector = txn.vector(memory.namespace, self.embedder.model_id, vector_hash(memory))
        else:
            txn.put_vector(memory.namespace, self.embedder.model_id, vector_hash(memory), vector)
        stored = txn.put(
            memory,
            kind,
            time_us=memory.update_time_us,
            actor=mutation.actor,
            reason=reason,
            request_id=mutation.request_id,
            evidence=evidence,
        )
        audit.changed(txn, stored, kind, mutation.actor, mutation.call, reason)
        changes.append(Applied(stored, vector, before))
        return stored

    def mutate(
        self, owners: Owners, mutation: Mutation, result_type: type[T], operation: Callable[[WriteTxn], Committed[T]]
    ) -> T:
        """Runs a mutation once per request_id and lets segments and feed follow."""
        tenant = owners.tenant or DEFAULT_TENANT
        now_us = self.clock_us()

        def run(txn: WriteTxn) -> Committed[T]:
            if not mutation.request_id:
                return operation(txn)
            first = self.first_answer(txn, tenant, mutation, result_type, now_us)
            if first is not None:
                return Committed(first, [])
            committed = operation(txn)
            answer = msgspec.msgpack.encode(committed.result)
            txn.put_answer(tenant, mutation.request_id, StoredAnswer(mutation.fingerprint, answer, now_us))
            txn.drop_answers(now_us - self._answer_retention_us, EXPIRED_ANSWERS_PER_WRITE)
            return committed

        return self.engine.write(run, on_commit=self.follow).result

    def first_answer(
        self, txn: ReadTxn, tenant: str, mutation: Mutation, result_type: type[T], now_us: int
    ) -> T | None:
        """The stored answer of this request_id, if there is one. Raises RequestIdReused for another request's."""
        known = txn.answer(tenant, mutation.request_id) if mutation.request_id else None
        if known is None or known.time_us <= now_us - self._answer_retention_us:
            return None
        if known.fingerprint != mutation.fingerprint:
            raise RequestIdReused(
                "request_id was used for another request; make a fresh UUID for each mutation", field="request_id"
            )
        return msgspec.msgpack.decode(known.answer, type=result_type)

    def follow(self, committed: Committed[T]) -> None:
        """After a commit: segments and watchers catch up."""
        self._segments.applied(committed.changes)
        self._feed.notify({change.memory.namespace for change in committed.changes})


def find(
    get: Callable[[Namespace, str, int], Memory | None], namespaces: Sequence[Namespace], memory_id: str, version: int
) -> Memory:
    """A version of a memory (0: the current one) in one of the namespaces. Raises NotFound."""
    for namespace in namespaces:
        memory = get(namespace, memory_id, version)
        if memory is not None:
            return memory
    what = f"version {version} of {memory_id}" if version else memory_id
    raise NotFound(f"no memory {what} in the namespaces of the given owners", memory_id=memory_id)


def check_etag(memory: Memory, etag: str) -> None:
    """Raises EtagMismatch unless the etag is empty or the memory's own."""
    if etag and etag != memory.etag:
        raise EtagMismatch(
            f"{memory.memory_id} has changed since it was read; read it again", memory_id=memory.memory_id
        )


def heads(changes: Sequence[Applied]) -> list[tuple[Namespace, int]]:
    """The last sequence of each namespace that the changes touched."""
    return list({change.memory.namespace: change.memory.sequence for change in changes}.items())
