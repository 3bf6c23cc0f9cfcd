"""Writing and reading memories: the rules of write, batch, update, forget, get, list and history.

Purpose: every mutation is checked, given its vector, and run in one transaction of the store: replay of a request_id,
exact duplicates, supersede links, versions, change log and stored answer belong together or not at all. After the
commit the segments and the feed follow, before the caller gets its answer.

Threading: any number of threads; the store runs the transactions one at a time.

Rejected: embedding inside the transaction (milliseconds under the writer's lock), a queue that embeds after the
answer (an acknowledged memory that can't be found by meaning yet).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import (
    Cancelled,
    EtagMismatch,
    InvalidArgument,
    MemsvcError,
    NotActive,
    NotFound,
    RequestIdReused,
    Unavailable,
)
from memsvc.memory import listing
from memsvc.memory.drafts import BATCH_MAX, Draft, check_draft
from memsvc.memory.feed import ChangeEvent, ChangeFeed
from memsvc.memory.owners import DEFAULT_TENANT, Owners, check, namespace_for
from memsvc.model import (
    NEVER_US,
    RECALLABLE,
    ChangeKind,
    Filter,
    IdMinter,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Outcome,
    Status,
    content_hash,
    effective_status,
    embedded_text,
    speaker_of,
)
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.segments import Applied, SegmentStore, vector_hash
from memsvc.storage.engine import Engine, ReadTxn, StoredAnswer, WriteTxn

T = TypeVar("T")

FORGET_CHUNK = 500
EXPIRED_ANSWERS_PER_WRITE = 64


class WriteResult(msgspec.Struct, frozen=True, array_like=True):
    """What became of one draft."""

    memory_id: str
    outcome: Outcome
    namespace: Namespace
    sequence: int
    version: int


class ForgetResult(msgspec.Struct, frozen=True, array_like=True):
    """What a forget did: how many, ids that were forgotten before, and the sequence reached per namespace."""

    forgotten_count: int
    already_forgotten_ids: list[str]
    at: list[tuple[Namespace, int]]


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """New values of some fields: `fields` maps names of `Memory` fields to checked values."""

    fields: dict[str, Any]


class _Committed(msgspec.Struct, Generic[T]):
    """Result of a transaction and the versions that it wrote."""

    result: T
    changes: list[Applied]


class Mutation(msgspec.Struct, frozen=True):
    """What makes a mutation repeatable: its request_id ("" for none) and a hash of what it asks for."""

    request_id: str
    fingerprint: bytes
    actor: str


def fingerprint(*parts: bytes) -> bytes:
    """16-byte hash of a request's parts, each behind its length."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


class Memories:
    """See the module."""

    def __init__(
        self,
        engine: Engine,
        embedder: Embedder,
        segments: SegmentStore,
        feed: ChangeFeed,
        *,
        clock_us: Callable[[], int],
        minter: IdMinter,
        content_max_bytes: int,
        answer_retention_us: int,
    ) -> None:
        self._engine = engine
        self.embedder = embedder
        self._segments = segments
        self._feed = feed
        self._clock_us = clock_us
        self._minter = minter
        self._content_max_bytes = content_max_bytes
        self._answer_retention_us = answer_retention_us

    # -- write ---------------------------------------------------------------------------------------------------

    def write(
        self,
        owners: Owners,
        drafts: Sequence[Draft],
        mutation: Mutation,
        *,
        path: str,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> list[WriteResult]:
        """Stores drafts in one transaction, all or none; one result each, in order.

        `path` names the drafts' field in errors; `still_wanted` is asked before the work that can't be undone.
        Raises InvalidArgument and its kin, NotFound or NotActive for `supersedes`, StorageFull, Cancelled.
        """
        check(owners)
        if not 1 <= len(drafts) <= BATCH_MAX:
            raise InvalidArgument(f"{path} has {len(drafts)} entries; send 1 to {BATCH_MAX}", field=path)
        namespaces = []
        for i, draft in enumerate(drafts):
            at = path if len(drafts) == 1 else f"{path}[{i}]"
            check_draft(draft, self._content_max_bytes, at)
            namespaces.append(namespace_for(owners, draft.scope))
        now_us = self._clock_us()
        model_id = self.embedder.model_id
        memories = [self._new_memory(d, ns, now_us) for d, ns in zip(drafts, namespaces, strict=True)]
        vectors = self.vectors_for(memories, still_wanted)

        def store(txn: WriteTxn) -> _Committed[list[WriteResult]]:
            changes: list[Applied] = []
            self._check_model(model_id)
            results = [
                self._store_one(txn, memory, vector, mutation, changes)
                for memory, vector in zip(memories, vectors, strict=True)
            ]
            return _Committed(results, changes)

        return self._mutate(owners, mutation, list[WriteResult], store)

    def _check_model(self, model_id: str) -> None:
        """Inside a transaction: raises Unavailable when the store moved to another model since vectors were made."""
        if self.embedder.model_id != model_id:
            raise Unavailable("the embedding model was switched meanwhile; try again with the same request_id")

    def _new_memory(self, draft: Draft, namespace: Namespace, now_us: int) -> Memory:
        kind = draft.type or MemoryType.FACT
        layer = draft.layer or (Layer.EPISODIC if kind == MemoryType.EVENT else Layer.SEMANTIC)
        return Memory(
            memory_id=self._minter.mint(),
            version=0,
            sequence=0,
            namespace=namespace,
            layer=layer,
            type=kind,
            content=draft.content,
            subject=draft.subject,
            tags=draft.tags,
            metadata=draft.metadata,
            source=draft.source,
            importance=0.5 if draft.importance is None else draft.importance,
            confidence=1.0 if draft.confidence is None else draft.confidence,
            supersedes=tuple(dict.fromkeys(draft.supersedes)),
            create_time_us=now_us,
            update_time_us=now_us,
            occur_time_us=now_us if draft.occur_time_us is None else draft.occur_time_us,
            expire_time_us=NEVER_US if draft.expire_time_us is None else draft.expire_time_us,
            embedding_model=self.embedder.model_id,
            embedding_dim=self.embedder.dim,
        )

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
        with self._engine.read() as txn:
            for namespace, indexes in by_namespace.items():
                hashes = [vector_hash(memories[i]) for i in indexes]
                vectors[indexes], found[indexes] = txn.vectors(namespace, model_id, hashes, dim)
        missing = np.flatnonzero(~found).tolist()
        if missing:
            texts = [embedded_text(memories[i]) for i in missing]
            fresh = self.embedder.embed_passages(texts, cancelled=lambda: not still_wanted())
            vectors[missing] = fresh.astype(np.float16)
        return vectors

    def _store_one(
        self, txn: WriteTxn, memory: Memory, vector: NDArray[np.float32], mutation: Mutation, changes: list[Applied]
    ) -> WriteResult:
        standing = self._duplicate(txn, memory)
        if standing is not None:
            return WriteResult(
                standing.memory_id, Outcome.MERGED, standing.namespace, standing.sequence, standing.version
            )
        replaced = [self._replaceable(txn, memory.namespace, memory_id) for memory_id in memory.supersedes]
        stored = self._put(txn, memory, vector, ChangeKind.CREATED, mutation, "", changes, before=None)
        for old in replaced:
            closed = msgspec.structs.replace(
                old,
                status=Status.SUPERSEDED,
                superseded_by=memory.memory_id,
                update_time_us=memory.update_time_us,
            )
            self._put(txn, closed, None, ChangeKind.SUPERSEDED, mutation, "", changes, before=old)
        head = changes[-1].memory.sequence
        outcome = Outcome.SUPERSEDED if replaced else Outcome.CREATED
        return WriteResult(stored.memory_id, outcome, stored.namespace, head, stored.version)

    def _duplicate(self, txn: WriteTxn, memory: Memory) -> Memory | None:
        """The recallable memory that says the very same: text, type, layer and subject; for events also the same
        moment and source message, since the same words said twice are two events.
        """
        if memory.supersedes:
            return None
        for other in txn.by_content_hash(memory.namespace, content_hash(memory.content)):
            if effective_status(other, memory.create_time_us) not in RECALLABLE:
                continue
            if (other.type, other.layer, other.subject, speaker_of(other)) != (
                memory.type,
                memory.layer,
                memory.subject,
                speaker_of(memory),
            ):
                continue
            if memory.layer != Layer.EPISODIC:
                return other
            if other.source == memory.source and other.occur_time_us == memory.occur_time_us:
                return other
        return None

    def _replaceable(self, txn: WriteTxn, namespace: Namespace, memory_id: str) -> Memory:
        old = txn.get(namespace, memory_id)
        if old is None:
            raise NotFound(f"supersedes: no memory {memory_id} in this namespace", memory_id=memory_id)
        if old.status not in RECALLABLE:
            raise NotActive(f"supersedes: {memory_id} is {old.status.name}", memory_id=memory_id)
        return old

    def _put(
        self,
        txn: WriteTxn,
        memory: Memory,
        vector: NDArray[np.float32] | None,
        kind: ChangeKind,
        mutation: Mutation,
        reason: str,
        changes: list[Applied],
        before: Memory | None,
    ) -> Memory:
        """Writes a version (with its vector, or the one that its text has already) and notes it for the segments."""
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
        )
        changes.append(Applied(stored, vector, before))
        return stored

    def _mutate(
        self, owners: Owners, mutation: Mutation, result_type: type[T], operation: Callable[[WriteTxn], _Committed[T]]
    ) -> T:
        """Runs a mutation once per request_id and lets segments and feed follow."""
        tenant = owners.tenant or DEFAULT_TENANT
        now_us = self._clock_us()

        def run(txn: WriteTxn) -> _Committed[T]:
            if not mutation.request_id:
                return operation(txn)
            first = self._first_answer(txn, tenant, mutation, result_type, now_us)
            if first is not None:
                return _Committed(first, [])
            committed = operation(txn)
            answer = msgspec.msgpack.encode(committed.result)
            txn.put_answer(tenant, mutation.request_id, StoredAnswer(mutation.fingerprint, answer, now_us))
            txn.drop_answers(now_us - self._answer_retention_us, EXPIRED_ANSWERS_PER_WRITE)
            return committed

        return self._engine.write(run, on_commit=self._follow).result

    def _first_answer(
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

    def _follow(self, committed: _Committed[Any]) -> None:
        self._segments.applied(committed.changes)
        self._feed.notify({change.memory.namespace for change in committed.changes})

    # -- update and forget ---------------------------------------------------------------------------------------

    def update(
        self,
        namespaces: Sequence[Namespace],
        owners: Owners,
        memory_id: str,
        patch: Patch,
        etag: str,
        reason: str,
        mutation: Mutation,
    ) -> Memory:
        """Writes a new version with the patch's fields. Raises NotFound, NotActive, EtagMismatch."""
        now_us = self._clock_us()
        current = self.get(namespaces, memory_id, 0)
        model_id, vector = self.embedder.model_id, None
        planned = msgspec.structs.replace(current, **patch.fields)
        if vector_hash(planned) != vector_hash(current):
            vector = self.vectors_for([planned])[0]

        def change(txn: WriteTxn) -> _Committed[Memory]:
            before = txn.get(current.namespace, memory_id)
            assert before is not None, "memories are never removed"
            _check_etag(before, etag)
            if before.status not in RECALLABLE:
                raise NotActive(f"{memory_id} is {before.status.name}: it can't be updated", memory_id=memory_id)
            updated = msgspec.structs.replace(
                before,
                **patch.fields,
                update_time_us=now_us,
                embedding_model=self.embedder.model_id,
                embedding_dim=self.embedder.dim,
            )
            changes: list[Applied] = []
            same_text = vector_hash(updated) == vector_hash(planned)
            self._check_model(model_id)
            fresh = vector if same_text else None
            stored = self._put(txn, updated, fresh, ChangeKind.UPDATED, mutation, reason, changes, before=before)
            return _Committed(stored, changes)

        return self._mutate(owners, mutation, Memory, change)

    def forget(
        self,
        namespaces: Sequence[Namespace],
        owners: Owners,
        memory_ids: Sequence[str],
        etag: str,
        reason: str,
        mutation: Mutation,
    ) -> ForgetResult:
        """Forgets memories by id, all or none. Raises NotFound naming an id that is not there, EtagMismatch."""
        wanted = list(dict.fromkeys(memory_ids))

        def change(txn: WriteTxn) -> _Committed[ForgetResult]:
            changes: list[Applied] = []
            already = []
            for memory_id in wanted:
                before = _find(txn.get, namespaces, memory_id, 0)
                _check_etag(before, etag)
                if before.status == Status.FORGOTTEN:
                    already.append(memory_id)
                else:
                    self._put_forgotten(txn, before, mutation, reason, changes)
            return _Committed(ForgetResult(len(changes), already, _heads(changes)), changes)

        return self._mutate(owners, mutation, ForgetResult, change)

    def _put_forgotten(
        self, txn: WriteTxn, before: Memory, mutation: Mutation, reason: str, changes: list[Applied]
    ) -> None:
        after = msgspec.structs.replace(before, status=Status.FORGOTTEN, update_time_us=self._clock_us())
        self._put(txn, after, None, ChangeKind.FORGOTTEN, mutation, reason, changes, before=before)

    def forget_all(
        self,
        namespaces: Sequence[Namespace],
        owners: Owners,
        condition: Filter,
        reason: str,
        mutation: Mutation,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> ForgetResult:
        """Forgets everything that stood at the start and matches, FORGET_CHUNK memories a transaction.

        A failure half way is raised with metadata `forgotten_count`; calling again goes on.
        """
        count = 0
        at: dict[Namespace, int] = {}
        with self._engine.read() as txn:
            tenant = owners.tenant or DEFAULT_TENANT
            first = self._first_answer(txn, tenant, mutation, ForgetResult, self._clock_us())
            if first is not None:
                return first  # a replay must not forget what was written since
            pending = [
                (namespace, memory.memory_id)
                for namespace in namespaces
                for memory in txn.scan(namespace)
                if _forgettable(memory, condition)
            ]
        chunks = [pending[i : i + FORGET_CHUNK] for i in range(0, len(pending), FORGET_CHUNK)]
        silent = Mutation("", b"", mutation.actor)
        try:
            for chunk in chunks:
                if not still_wanted():
                    raise Cancelled("the caller is gone")
                done = self._engine.write(
                    lambda txn, chunk=chunk: self._forget_chunk(txn, chunk, condition, silent, reason),  # type: ignore[misc]
                    on_commit=self._follow,
                ).result
                count += done.forgotten_count
                at.update(dict(done.at))
        except MemsvcError as error:
            error.metadata["forgotten_count"] = str(count)
            error.message = f"{error.message}; {count} of {len(pending)} were forgotten, call again to go on"
            raise
        final = ForgetResult(count, [], list(at.items()))
        return self._mutate(owners, mutation, ForgetResult, lambda txn: _Committed(final, []))

    def _forget_chunk(
        self, txn: WriteTxn, chunk: list[tuple[Namespace, str]], condition: Filter, mutation: Mutation, reason: str
    ) -> _Committed[ForgetResult]:
        changes: list[Applied] = []
        for namespace, memory_id in chunk:
            before = txn.get(namespace, memory_id)
            if before is not None and _forgettable(before, condition):
                self._put_forgotten(txn, before, mutation, reason, changes)
        return _Committed(ForgetResult(len(changes), [], _heads(changes)), changes)

    # -- read ----------------------------------------------------------------------------------------------------

    def get(self, namespaces: Sequence[Namespace], memory_id: str, version: int) -> Memory:
        """A version of a memory (0: the current one) in one of the namespaces. Raises NotFound."""
        with self._engine.read() as txn:
            return _find(txn.get, namespaces, memory_id, version)

    def list_page(
        self,
        namespaces: Sequence[Namespace],
        condition: Filter,
        include_inactive: bool,
        size: int,
        page_token: str,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> tuple[list[Memory], str]:
        """See `listing.list_memories`."""
        return listing.list_memories(
            self._engine, namespaces, condition, include_inactive, size, page_token, self._clock_us(), still_wanted
        )

    def history(
        self, namespaces: Sequence[Namespace], memory_id: str, size: int, page_token: str
    ) -> tuple[list[ChangeEvent], str]:
        """See `listing.history`."""
        return listing.history(self._engine, namespaces, memory_id, size, page_token)


def _find(
    get: Callable[[Namespace, str, int], Memory | None], namespaces: Sequence[Namespace], memory_id: str, version: int
) -> Memory:
    for namespace in namespaces:
        memory = get(namespace, memory_id, version)
        if memory is not None:
            return memory
    what = f"version {version} of {memory_id}" if version else memory_id
    raise NotFound(f"no memory {what} in the namespaces of the given owners", memory_id=memory_id)


def _check_etag(memory: Memory, etag: str) -> None:
    if etag and etag != memory.etag:
        raise EtagMismatch(
            f"{memory.memory_id} has changed since it was read; read it again", memory_id=memory.memory_id
        )


def _forgettable(memory: Memory, condition: Filter) -> bool:
    statuses = condition.statuses or tuple(Status)
    return memory.status != Status.FORGOTTEN and memory.status in statuses and condition.matches(memory)


def _heads(changes: Sequence[Applied]) -> list[tuple[Namespace, int]]:
    return list({change.memory.namespace: change.memory.sequence for change in changes}.items())
