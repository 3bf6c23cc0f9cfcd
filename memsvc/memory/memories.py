"""Writing and reading memories: the rules of write, batch, update, get, list and history.

Purpose: every draft is checked for limits and secrets, given its vector, and judged and stored in one transaction:
exact duplicates, what says the same, what contradicts, supersede links, versions, change log and answer belong together
or not at all. The decision about meaning is `conflict.decide`'s; this file says what each outcome does to the store.

Threading: any number of threads; see `transactions`.

Rejected: storing nothing of what is rejected by what stands (an audit could not tell that it was ever said); merging
texts (the wording that stands is what the user confirmed).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import InvalidArgument, NotActive, NotFound
from memsvc.memory import listing
from memsvc.memory.arbiter import Arbiter, Docket, Near, Ruling
from memsvc.memory.conflict import Decision
from memsvc.memory.drafts import BATCH_MAX, Draft, check_causes, check_draft, kind_and_layer
from memsvc.memory.feed import ChangeEvent
from memsvc.memory.owners import DEFAULT_TENANT, Owners, check, namespace_for
from memsvc.memory.policies import Policies
from memsvc.memory.sensitive import apply
from memsvc.memory.transactions import Committed, Mutation, Transactions, check_etag, find
from memsvc.memory.waiting import SEES_ALL, Viewer, check_shown, shown_event
from memsvc.model import (
    NEVER_US,
    RECALLABLE,
    ChangeKind,
    Filter,
    IdMinter,
    Layer,
    Memory,
    Namespace,
    Outcome,
    Scope,
    Source,
    Status,
    content_hash,
    effective_status,
    speaker_of,
)
from memsvc.retrieval.segments import Applied, vector_hash
from memsvc.storage.engine import ReadTxn, WriteTxn

T = TypeVar("T")

REINFORCE_SHARE = 0.1  # how far a repetition moves importance towards 1
REINFORCE_AFTER_US = 3_600_000_000  # the same source saying the same sooner is a retry, not a confirmation
FURTHER_SOURCES_MAX = 8


class WriteResult(msgspec.Struct, frozen=True, array_like=True):
    """What became of one draft."""

    memory_id: str
    outcome: Outcome
    namespace: Namespace
    sequence: int
    version: int
    conflicting_ids: tuple[str, ...] = ()
    evidence: dict[str, Any] = {}


class Staging(msgspec.Struct, frozen=True):
    """How long a staged memory waits, and in how many sessions the same must be met to make it long-term."""

    ttl_us: int = 14 * 86_400_000_000
    sessions: int = 2


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """New values of some fields: `fields` maps names of `Memory` fields to checked values."""

    fields: dict[str, Any]


class Memories:
    """See the module."""

    def __init__(
        self,
        transactions: Transactions,
        arbiter: Arbiter,
        policies: Policies,
        *,
        minter: IdMinter,
        content_max_bytes: int,
        staging: Staging,
    ) -> None:
        self._transactions = transactions
        self._arbiter = arbiter
        self._policies = policies
        self._minter = minter
        self._content_max_bytes = content_max_bytes
        self._staging = staging
        self._clock_us = transactions.clock_us

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
        if not drafts:
            raise InvalidArgument(f"{path} is empty; send 1 to {BATCH_MAX}", field=path)
        return self.write_as(owners, drafts, mutation, list[WriteResult], list, path=path, still_wanted=still_wanted)

    def write_as(
        self,
        owners: Owners,
        drafts: Sequence[Draft],
        mutation: Mutation,
        answer_type: type[T],
        answer: Callable[[list[WriteResult]], T],
        *,
        path: str,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> T:
        """`write`, for a mutation with an answer of its own, which is what a replay returns. May store nothing."""
        check(owners)
        if len(drafts) > BATCH_MAX:
            raise InvalidArgument(f"{path} has {len(drafts)} entries; send 1 to {BATCH_MAX}", field=path)
        now_us = self._clock_us()
        memories = []
        for i, draft in enumerate(drafts):
            at = path if len(drafts) == 1 else f"{path}[{i}]"
            check_draft(draft, self._content_max_bytes, at)
            if draft.event is not None and draft.event.caused_by:
                with self._transactions.engine.read() as reader:
                    check_causes(reader, namespace_for(owners, draft.scope), draft, at)
            clean = self._without_secrets(owners.tenant or DEFAULT_TENANT, draft, at)
            memories.append(self._new_memory(clean, namespace_for(owners, draft.scope), now_us))
        transactions, arbiter = self._transactions, self._arbiter
        model_id = transactions.embedder.model_id
        vectors = transactions.vectors_for(memories, still_wanted)
        nears = arbiter.prepare(memories, vectors, now_us)

        def store(txn: WriteTxn) -> Committed[T]:
            changes: list[Applied] = []
            transactions.check_model(model_id)
            docket = arbiter.docket(txn, model_id, nears, memories)
            one = OneWrite(self, txn, docket, mutation, changes)
            results = [one.store(m, v, near) for m, v, near in zip(memories, vectors, nears, strict=True)]
            return Committed(answer(results), changes)

        return transactions.mutate(owners, mutation, answer_type, store)

    def _without_secrets(self, tenant: str, draft: Draft, path: str) -> Draft:
        """The draft as the tenant's policy lets it in. Raises SensitiveContent. Source ids are the caller's keys."""
        policy = self._policies.of(tenant)
        clean = {
            name: apply(getattr(draft, name), policy, f"{path}.{name}")
            for name in ("content", "subject", "tags", "metadata")
            if getattr(draft, name)
        }
        if draft.event is not None:
            clean["event"] = msgspec.structs.replace(
                draft.event,
                event_type=apply(draft.event.event_type, policy, f"{path}.event.event_type"),
                payload=apply(draft.event.payload, policy, f"{path}.event.payload"),
                participants=apply(draft.event.participants, policy, f"{path}.event.participants"),
            )
        return msgspec.structs.replace(draft, **clean)

    def _new_memory(self, draft: Draft, namespace: Namespace, now_us: int) -> Memory:
        kind, layer = kind_and_layer(draft.type, draft.layer, draft.event is not None)
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
            status=_first_status(draft, namespace),
            last_seen_time_us=now_us if draft.occur_time_us is None else draft.occur_time_us,
            supersedes=tuple(dict.fromkeys(draft.supersedes)),
            create_time_us=now_us,
            update_time_us=now_us,
            occur_time_us=now_us if draft.occur_time_us is None else draft.occur_time_us,
            expire_time_us=self._expiry(draft, namespace, now_us),
            embedding_model=self._transactions.embedder.model_id,
            embedding_dim=self._transactions.embedder.dim,
            event=draft.event,
        )

    def _expiry(self, draft: Draft, namespace: Namespace, now_us: int) -> int:
        given = NEVER_US if draft.expire_time_us is None else draft.expire_time_us
        staged = _first_status(draft, namespace) == Status.STAGED
        return min(given, now_us + self._staging.ttl_us) if staged else given

    # -- update --------------------------------------------------------------------------------------------------

    def update(
        self,
        namespaces: Sequence[Namespace],
        owners: Owners,
        memory_id: str,
        patch: Patch,
        etag: str,
        reason: str,
        mutation: Mutation,
        *,
        viewer: Viewer = SEES_ALL,
    ) -> Memory:
        """Writes a new version with the patch's fields. Raises NotFound, NotActive, EtagMismatch."""
        now_us = self._clock_us()
        transactions, arbiter = self._transactions, self._arbiter
        current = self.get(namespaces, memory_id, 0)
        policy = self._policies.of(current.namespace.tenant)
        fields = {name: _clean(value, policy, f"patch.{name}") for name, value in patch.fields.items()}
        model_id = transactions.embedder.model_id
        planned = msgspec.structs.replace(current, **fields)
        restated = vector_hash(planned) != vector_hash(current)
        vectors = transactions.vectors_for([planned]) if restated else None
        nears = arbiter.prepare([planned], vectors, now_us) if vectors is not None else []

        def change(txn: WriteTxn) -> Committed[Memory]:
            before = find(txn.get, [current.namespace], memory_id, 0)  # it may have been purged meanwhile
            check_shown(txn, before, viewer)
            check_etag(before, etag)
            if before.status not in RECALLABLE:
                raise NotActive(f"{memory_id} is {before.status.name}: it can't be updated", memory_id=memory_id)
            _check_updatable(before)
            updated = msgspec.structs.replace(
                before,
                **fields,
                update_time_us=now_us,
                embedding_model=transactions.embedder.model_id,
                embedding_dim=transactions.embedder.dim,
            )
            changes: list[Applied] = []
            transactions.check_model(model_id)
            fresh = vectors[0] if vectors is not None and vector_hash(updated) == vector_hash(planned) else None
            ruling = None
            if fresh is not None:
                ruling = arbiter.docket(txn, model_id, nears, [updated]).rule(
                    updated, fresh, nears[0], now_us, apart=True
                )
            one = OneWrite(self, txn, None, mutation, changes)
            return Committed(one.restate(updated, before, fresh, ruling, reason), changes)

        return transactions.mutate(owners, mutation, Memory, change)

    # -- read ----------------------------------------------------------------------------------------------------

    def get(self, namespaces: Sequence[Namespace], memory_id: str, version: int, viewer: Viewer = SEES_ALL) -> Memory:
        """A version of a memory (0: the current one) in one of the namespaces. Raises NotFound."""
        with self._transactions.engine.read() as txn:
            memory = find(txn.get, namespaces, memory_id, version)
            check_shown(txn, memory, viewer)
            return memory

    def list_page(
        self,
        namespaces: Sequence[Namespace],
        condition: Filter,
        include_inactive: bool,
        size: int,
        page_token: str,
        still_wanted: Callable[[], bool] = lambda: True,
        *,
        viewer: Viewer = SEES_ALL,
    ) -> tuple[list[Memory], str]:
        """See `listing.list_memories`."""
        return listing.list_memories(
            self._transactions.engine,
            namespaces,
            condition,
            include_inactive,
            size,
            page_token,
            self._clock_us(),
            still_wanted,
            viewer=viewer,
        )

    def history(
        self, namespaces: Sequence[Namespace], memory_id: str, size: int, page_token: str, viewer: Viewer = SEES_ALL
    ) -> tuple[list[ChangeEvent], str]:
        """See `listing.history`."""
        return listing.history(self._transactions.engine, namespaces, memory_id, size, page_token, viewer=viewer)

    def shown(self, events: Sequence[ChangeEvent], viewer: Viewer) -> list[ChangeEvent]:
        """What of these changes the viewer may read."""
        with self._transactions.engine.read() as txn:
            found = (shown_event(txn, event, viewer) for event in events)
            return [event for event in found if event is not None]


def _check_updatable(memory: Memory) -> None:
    """Raises InvalidArgument for what another service keeps in step with its content."""
    service = "FactService" if memory.fact is not None else "SkillService" if memory.skill else ""
    if service:
        raise InvalidArgument(f"{memory.memory_id} is written by {service} only", field="memory_id")


def _clean(value: Any, policy: Any, path: str) -> Any:
    """Text and structures as the policy lets them in; numbers, enums and times of a memory's own fields as they are."""
    return apply(value, policy, path) if isinstance(value, str | tuple | dict) else value


class OneWrite:
    """Stores the memories of one transaction, one after the other."""

    def __init__(
        self, owner: Memories, txn: WriteTxn, docket: Docket | None, mutation: Mutation, changes: list[Applied]
    ) -> None:
        self._transactions = owner._transactions
        self._staging = owner._staging
        self._txn = txn
        self._docket = docket
        self._mutation = mutation
        self._changes = changes

    def store(self, memory: Memory, vector: NDArray[np.float32], near: Near) -> WriteResult:
        """What becomes of a new memory."""
        if memory.status == Status.PENDING:
            return self._await_approval(memory, vector)
        if memory.supersedes:  # the caller has decided
            replaced = [_replaceable(self._txn, memory.namespace, memory_id) for memory_id in memory.supersedes]
            return self._create(memory, vector, replaced, Outcome.SUPERSEDED, Decision(outcome=Outcome.SUPERSEDED))
        said = list(self._txn.by_content_hash(memory.namespace, content_hash(memory.content)))
        blocking = next((other for other in said if other.blocked), None)
        if blocking is not None:
            return _result(blocking, Outcome.REJECTED, _BLOCKED, ())
        standing = _duplicate(said, memory)
        if standing is not None and standing.status != Status.ARCHIVED:
            return self._merge(standing, memory, _SAME_WORDS)
        assert self._docket is not None
        ruling = self._docket.rule(memory, vector, near, memory.update_time_us)
        decision, about = ruling.decision, ruling.about
        if ruling.blocked:
            return _result(about[0], Outcome.REJECTED, _BLOCKED, ())
        if decision.outcome == Outcome.MERGED:
            return self._merge(about[0], memory, decision)
        if standing is not None and decision.outcome == Outcome.CREATED:  # archived, and nothing speaks against it
            return self._merge(standing, memory, _SAME_WORDS)
        if decision.outcome == Outcome.REJECTED:
            return self._reject(memory, vector, about[0], decision)
        if memory.status == Status.STAGED:  # not important enough to replace anything
            return self._create(memory, vector, [], Outcome.STAGED, decision)
        if decision.outcome == Outcome.CONTESTED:
            memory = msgspec.structs.replace(memory, status=Status.CONTESTED)
        return self._create(memory, vector, about, decision.outcome, decision)

    def _await_approval(self, memory: Memory, vector: NDArray[np.float32]) -> WriteResult:
        """Stores what waits; it touches nothing that stands. Said again by the same actor, it waits once."""
        for memory_id in memory.supersedes:
            _replaceable(self._txn, memory.namespace, memory_id)
        said = list(self._txn.by_content_hash(memory.namespace, content_hash(memory.content)))
        blocking = next((other for other in said if other.blocked), None)
        if blocking is not None:
            return _result(blocking, Outcome.REJECTED, _BLOCKED, ())
        decision = Decision(outcome=Outcome.PENDING)
        for other in said:
            waits = other.status == Status.PENDING and other.supersedes == memory.supersedes
            if waits and _says_the_same(other, memory) and self._is_own(other):
                return _result(other, Outcome.PENDING, decision, ())
        stored = self._put(memory, vector, ChangeKind.CREATED, None, "")
        return _result(stored, Outcome.PENDING, decision, ())

    def _is_own(self, memory: Memory) -> bool:
        (change,) = self._txn.changes(memory.namespace, memory.sequence - 1, 1)
        return change.actor == self._mutation.actor

    def _create(
        self,
        memory: Memory,
        vector: NDArray[np.float32],
        replaced: Sequence[Memory],
        outcome: Outcome,
        decision: Decision,
    ) -> WriteResult:
        ids = tuple(old.memory_id for old in replaced)
        evidence = _evidence(decision) if replaced else ""
        memory = msgspec.structs.replace(memory, supersedes=ids)
        stored = self._put(memory, vector, ChangeKind.CREATED, None, evidence)
        for old in replaced:
            self._supersede(old, memory, evidence)
        return _result(stored, outcome, decision, ids, sequence=self._changes[-1].memory.sequence)

    def _supersede(self, old: Memory, by: Memory, evidence: str) -> None:
        closed = msgspec.structs.replace(
            old, status=Status.SUPERSEDED, superseded_by=by.memory_id, update_time_us=by.update_time_us
        )
        self._put(closed, None, ChangeKind.SUPERSEDED, old, evidence)

    def _reject(self, memory: Memory, vector: NDArray[np.float32], stands: Memory, decision: Decision) -> WriteResult:
        """Keeps what was said for audit, superseded from the start; said again, it is not kept again."""
        said = self._txn.by_content_hash(memory.namespace, content_hash(memory.content))
        if not any(other.superseded_by == stands.memory_id for other in said):
            kept = msgspec.structs.replace(memory, status=Status.SUPERSEDED, superseded_by=stands.memory_id)
            self._put(kept, vector, ChangeKind.CREATED, None, _evidence(decision))
        head = self._changes[-1].memory.sequence if self._changes else stands.sequence
        return _result(stands, Outcome.REJECTED, decision, (stands.memory_id,), sequence=head)

    def _merge(self, standing: Memory, memory: Memory, decision: Decision) -> WriteResult:
        """Reinforces what stands. A staged one becomes active when the write is explicit, or when it was met in
        enough sessions; an archived one always does, with the expiry of what was said now. The same source soon again
        changes nothing.
        """
        seen_us = max(standing.last_seen_time_us, memory.occur_time_us)
        sources = (standing.source, *standing.further_sources)
        retry = memory.source in sources and seen_us - standing.last_seen_time_us < REINFORCE_AFTER_US
        sessions = {source.session_id for source in (*sources, memory.source)}
        promoted = standing.status == Status.STAGED and (
            memory.status != Status.STAGED or len(sessions) >= self._staging.sessions
        )
        woken = standing.status == Status.ARCHIVED
        if retry and not (promoted or woken):
            return _result(standing, Outcome.MERGED, decision, (standing.memory_id,))
        further = standing.further_sources
        if memory.source not in sources and memory.source != Source():
            further = (*further, memory.source)[-FURTHER_SOURCES_MAX:]
        reinforced = msgspec.structs.replace(
            standing,
            importance=standing.importance + (1.0 - standing.importance) * REINFORCE_SHARE,
            seen_count=standing.seen_count + 1,
            last_seen_time_us=seen_us,
            further_sources=further,
            update_time_us=memory.update_time_us,
            status=Status.ACTIVE if promoted or woken else standing.status,
            expire_time_us=_expiry_after(standing, memory, promoted),
        )
        stored = self._put(reinforced, None, ChangeKind.UPDATED, standing, _evidence(decision))
        return _result(stored, Outcome.MERGED, decision, (standing.memory_id,))

    def restate(
        self,
        updated: Memory,
        before: Memory,
        vector: NDArray[np.float32] | None,
        ruling: Ruling | None,
        reason: str,
    ) -> Memory:
        """Writes an update's version. Whatever it contradicts is superseded: an update is a correction by hand."""
        if ruling is not None and ruling.blocked:
            raise InvalidArgument("the new content is on the blocklist of this namespace", field="patch.content")
        replaced: list[Memory] = []
        if ruling is not None and ruling.decision.outcome in _CONTRADICTIONS:
            replaced = ruling.about
        evidence = _evidence(ruling.decision) if ruling is not None and replaced else ""
        updated = msgspec.structs.replace(
            updated, supersedes=tuple(dict.fromkeys((*updated.supersedes, *(old.memory_id for old in replaced))))
        )
        stored = self._put(updated, vector, ChangeKind.UPDATED, before, evidence, reason)
        for old in replaced:
            self._supersede(old, updated, evidence)
        return stored

    def _put(
        self,
        memory: Memory,
        vector: NDArray[np.float32] | None,
        kind: ChangeKind,
        before: Memory | None,
        evidence: str,
        reason: str = "",
    ) -> Memory:
        return self._transactions.put(
            self._txn, memory, vector, kind, self._mutation, reason, self._changes, before, evidence
        )


def _expiry_after(standing: Memory, memory: Memory, promoted: bool) -> int:
    """When a memory expires that was said again: a staged statement's own expiry is only its waiting time."""
    if standing.status == Status.ARCHIVED:
        return NEVER_US if memory.status == Status.STAGED else memory.expire_time_us
    return NEVER_US if promoted else standing.expire_time_us


_SAME_WORDS = Decision(outcome=Outcome.MERGED, evidence={"reason": "same words"})
_BLOCKED = Decision(outcome=Outcome.REJECTED, evidence={"reason": "the statement is on the blocklist"})
_CONTRADICTIONS = (Outcome.SUPERSEDED, Outcome.CONTESTED, Outcome.REJECTED)


def _result(
    memory: Memory,
    outcome: Outcome,
    decision: Decision,
    conflicting_ids: tuple[str, ...],
    sequence: int = 0,
) -> WriteResult:
    return WriteResult(
        memory.memory_id,
        outcome,
        memory.namespace,
        sequence or memory.sequence,
        memory.version,
        conflicting_ids,
        decision.evidence,
    )


def _evidence(decision: Decision) -> str:
    """The JSON of the change log."""
    return json.dumps({**decision.evidence, "summary": decision.summary}, ensure_ascii=False)


def _duplicate(said: Sequence[Memory], memory: Memory) -> Memory | None:
    """The recallable, staged or else archived memory that says the very same: text, type, layer and subject; for
    events also the same moment and source message, since the same words said twice are two events. `said`: all with
    these words.
    """
    for other in sorted(said, key=lambda other: other.status == Status.ARCHIVED):
        if effective_status(other, memory.update_time_us) not in (*RECALLABLE, Status.STAGED, Status.ARCHIVED):
            continue
        if _says_the_same(other, memory):
            return other
    return None


def _says_the_same(other: Memory, memory: Memory) -> bool:
    """Whether two memories with the same words are one; see `_duplicate`."""
    if other.fact is not None or other.event != memory.event:
        return False
    if (other.type, other.layer, other.subject, speaker_of(other)) != (
        memory.type,
        memory.layer,
        memory.subject,
        speaker_of(memory),
    ):
        return False
    if memory.layer != Layer.EPISODIC:
        return True
    return other.source == memory.source and other.occur_time_us == memory.occur_time_us


def _first_status(draft: Draft, namespace: Namespace) -> Status:
    """What is everybody's waits for approval, whoever writes it."""
    if namespace.scope == Scope.GLOBAL:
        return Status.PENDING
    return Status.STAGED if draft.staged else Status.ACTIVE


def _replaceable(txn: ReadTxn, namespace: Namespace, memory_id: str) -> Memory:
    old = txn.get(namespace, memory_id)
    if old is None:
        raise NotFound(f"supersedes: no memory {memory_id} in this namespace", memory_id=memory_id)
    if old.status not in RECALLABLE:
        raise NotActive(f"supersedes: {memory_id} is {old.status.name}", memory_id=memory_id)
    return old
