"""The review queue: what waits for a person, and what becomes of it.

Purpose: an item is not stored a second time. A pending write is a PENDING memory, a conflict a CONTESTED one; the id of
that memory is the item's. What is approved meets the arbiter at the head of its namespace at that moment, as if it were
written then: it becomes ACTIVE, replaces, is contested, or is superseded by what says the same or stands against it.

Threading: as `transactions`. Of many reviewers of an item one wins: the others meet its new version.

Rejected: a table of items (a second truth that could disagree with the memories); deciding about conflicts when the
write came (what it met may be gone when somebody approves).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import Cancelled, InvalidArgument, NotActive
from memsvc.memory import drafts as rules
from memsvc.memory import page_tokens
from memsvc.memory.arbiter import Arbiter, Docket, Near
from memsvc.memory.listing import STOP_CHECK_ROWS
from memsvc.memory.memories import Memories, OneWrite
from memsvc.memory.owners import Owners
from memsvc.memory.policies import Policies
from memsvc.memory.sensitive import apply
from memsvc.memory.settling import Resolution, Settling, conflict_etag, conflict_of, position
from memsvc.memory.transactions import Committed, Mutation, Transactions, check_etag, find
from memsvc.model import RECALLABLE, ChangeKind, Memory, Namespace, Outcome, Status
from memsvc.retrieval.segments import Applied
from memsvc.storage.engine import ReadTxn, WriteTxn

_LISTED = "reviews"


class ItemKind(IntEnum):
    """Why something waits; numbers equal the contract's."""

    PENDING_WRITE = 1
    CONFLICT = 2


class ItemAction(IntEnum):
    """What a person decides; numbers equal the contract's. The first three are for writes, the others for conflicts."""

    APPROVE = 1
    REJECT = 2
    EDIT = 3
    KEEP_NEWER = 4
    KEEP_OLDER = 5
    KEEP_BOTH = 6


_RESOLUTIONS = {
    ItemAction.KEEP_NEWER: Resolution.KEEP_NEWER,
    ItemAction.KEEP_OLDER: Resolution.KEEP_OLDER,
    ItemAction.KEEP_BOTH: Resolution.KEEP_BOTH,
}


class Item(msgspec.Struct, frozen=True):
    """Something that waits. `memories`: the one that waits first, then what it contradicts; `actor` wrote it."""

    item_id: str
    kind: ItemKind
    etag: str
    memories: list[Memory]
    summary: str
    actor: str
    time_us: int


class ItemDecision(msgspec.Struct, frozen=True):
    """One decision; `content` is the right statement for EDIT, empty otherwise. `etag` "" is any."""

    item_id: str
    action: ItemAction
    content: str = ""
    etag: str = ""
    reason: str = ""


class Resolved(msgspec.Struct, frozen=True, array_like=True):
    """The memories that changed, as they are now, the item's own first. `outcome`: what approving did, or None."""

    memories: list[Memory]
    outcome: Outcome | None = None


class Reviews:
    """See the module."""

    def __init__(
        self,
        transactions: Transactions,
        arbiter: Arbiter,
        memories: Memories,
        settling: Settling,
        policies: Policies,
        *,
        content_max_bytes: int,
    ) -> None:
        self._transactions = transactions
        self._arbiter = arbiter
        self._memories = memories
        self._settling = settling
        self._policies = policies
        self._content_max_bytes = content_max_bytes

    # -- reading -------------------------------------------------------------------------------------------------

    def page(
        self,
        namespaces: Sequence[Namespace],
        kinds: Sequence[ItemKind],
        size: int,
        page_token: str,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> tuple[list[Item], str]:
        """One page of what waits, of these kinds (none: all), oldest first within each namespace, and the token of the
        next ("" on the last). Raises InvalidArgument for a bad token, Cancelled.
        """
        at, after_id = position(page_token, len(namespaces), _LISTED)
        found: list[Item] = []
        with self._transactions.engine.read() as txn:
            for index in range(at, len(namespaces)):
                scan = txn.scan(namespaces[index], after_id=after_id if index == at else "")
                for seen, memory in enumerate(scan):
                    if seen % STOP_CHECK_ROWS == STOP_CHECK_ROWS - 1 and not still_wanted():
                        raise Cancelled("the caller is gone")
                    kind = _kind(memory)
                    if kind is None or (kinds and kind not in kinds):
                        continue
                    if len(found) == size:
                        last = found[-1].memories[0]
                        token = page_tokens.encode(_LISTED, namespaces.index(last.namespace), last.memory_id)
                        return found, token
                    found.append(_item(txn, memory, kind))
        return found, ""

    def get(self, namespaces: Sequence[Namespace], item_id: str) -> Item:
        """One item. Raises NotFound, NotActive when nothing waits under this id any more."""
        rules.check_memory_id(item_id, "item_id")
        with self._transactions.engine.read() as txn:
            memory = find(txn.get, namespaces, item_id, 0)
            kind = _kind(memory)
            if kind is None:
                raise NotActive(f"{item_id} is {memory.status.name}: it waits for nobody", memory_id=item_id)
            return _item(txn, memory, kind)

    # -- deciding ------------------------------------------------------------------------------------------------

    def resolve(
        self, namespaces: Sequence[Namespace], owners: Owners, decision: ItemDecision, mutation: Mutation
    ) -> Resolved:
        """Carries one decision out. Raises InvalidArgument for one that makes no sense or approves what is on the
        blocklist, NotFound, NotActive when it is decided already, EtagMismatch, SensitiveContent.
        """
        self._check(decision)
        resolution = _RESOLUTIONS.get(decision.action)
        if resolution is not None:
            settled = self._settling.resolve(
                namespaces, owners, decision.item_id, resolution, decision.reason, mutation, decision.etag
            )
            return Resolved(settled)
        if decision.action == ItemAction.REJECT:
            return self._reject(namespaces, owners, decision, mutation)
        return self._approve(namespaces, owners, decision, mutation)

    def _check(self, decision: ItemDecision) -> None:
        rules.check_memory_id(decision.item_id, "item_id")
        rules.check_length(decision.reason, rules.REASON_MAX_CHARS, "reason")
        if decision.action == ItemAction.EDIT:
            rules.check_content(decision.content, self._content_max_bytes, "content")
        elif decision.content:
            raise InvalidArgument("content goes with EDIT only", field="content")

    def _reject(
        self, namespaces: Sequence[Namespace], owners: Owners, decision: ItemDecision, mutation: Mutation
    ) -> Resolved:
        now_us = self._transactions.clock_us()

        def change(txn: WriteTxn) -> Committed[Resolved]:
            before = _waiting(txn, namespaces, decision)
            after = msgspec.structs.replace(before, status=Status.FORGOTTEN, update_time_us=now_us)
            changes: list[Applied] = []
            reason = decision.reason or "review: reject"
            stored = self._transactions.put(txn, after, None, ChangeKind.FORGOTTEN, mutation, reason, changes, before)
            return Committed(Resolved([stored]), changes)

        return self._transactions.mutate(owners, mutation, Resolved, change)

    def _approve(
        self, namespaces: Sequence[Namespace], owners: Owners, decision: ItemDecision, mutation: Mutation
    ) -> Resolved:
        transactions, arbiter = self._transactions, self._arbiter
        now_us = transactions.clock_us()
        with transactions.engine.read() as reader:
            current = find(reader.get, namespaces, decision.item_id, 0)
        planned = self._planned(current, decision, now_us)
        model_id = transactions.embedder.model_id
        vectors = transactions.vectors_for([planned])
        nears = arbiter.prepare([planned], vectors, now_us)

        def change(txn: WriteTxn) -> Committed[Resolved]:
            transactions.check_model(model_id)
            before = _waiting(txn, namespaces, decision)  # as it was read: what waits never changes
            changes: list[Applied] = []
            reason = decision.reason or f"review: {decision.action.name.lower()}"
            docket = arbiter.docket(txn, model_id, nears, [planned])
            approval = _Approval(self._memories, txn, docket, mutation, changes, before, reason)
            outcome = approval.approve(planned, vectors[0], nears[0])
            now = {applied.memory.memory_id: applied.memory for applied in changes}
            own = now.pop(before.memory_id)
            return Committed(Resolved([own, *now.values()], outcome), changes)

        return transactions.mutate(owners, mutation, Resolved, change)

    def _planned(self, memory: Memory, decision: ItemDecision, now_us: int) -> Memory:
        """The memory as it would stand."""
        embedder = self._transactions.embedder
        content = memory.content
        if decision.action == ItemAction.EDIT:
            content = apply(decision.content, self._policies.of(memory.namespace.tenant), "content")
            if memory.event is not None:
                rules.check_length(content, rules.SUMMARY_MAX_CHARS, "content")
        return msgspec.structs.replace(
            memory,
            content=content,
            status=Status.ACTIVE,
            update_time_us=now_us,
            embedding_model=embedder.model_id,
            embedding_dim=embedder.dim,
        )


class _Approval(OneWrite):
    """The write of an approved memory: a new version of what waited, where a write would create a memory."""

    def __init__(
        self,
        owner: Memories,
        txn: WriteTxn,
        docket: Docket,
        mutation: Mutation,
        changes: list[Applied],
        pending: Memory,
        reason: str,
    ) -> None:
        super().__init__(owner, txn, docket, mutation, changes)
        self._pending = pending
        self._reason = reason
        self._is_written = False

    def approve(self, planned: Memory, vector: NDArray[np.float32], near: Near) -> Outcome:
        """What approving did. What it was to replace and is replaced already is left to the arbiter."""
        olds = ((memory_id, self._txn.get(planned.namespace, memory_id)) for memory_id in planned.supersedes)
        standing = tuple(memory_id for memory_id, old in olds if old is not None and old.status in RECALLABLE)
        planned = msgspec.structs.replace(planned, supersedes=standing)
        result = self.store(planned, vector, near)
        if self._is_written:
            return result.outcome
        instead = self._txn.get(planned.namespace, result.memory_id)
        if instead is not None and instead.blocked:
            raise InvalidArgument("the statement is on the blocklist of this namespace; reject it", field="action")
        closed = msgspec.structs.replace(planned, status=Status.SUPERSEDED, superseded_by=result.memory_id)
        self._put(closed, vector, ChangeKind.SUPERSEDED, self._pending, "", self._reason)
        return result.outcome

    def _put(
        self,
        memory: Memory,
        vector: NDArray[np.float32] | None,
        kind: ChangeKind,
        before: Memory | None,
        evidence: str,
        reason: str = "",
    ) -> Memory:
        if memory.memory_id == self._pending.memory_id and before is None:
            self._is_written = True
            kind, before, reason = ChangeKind.UPDATED, self._pending, self._reason
        return super()._put(memory, vector, kind, before, evidence, reason)


def _kind(memory: Memory) -> ItemKind | None:
    """Why the memory waits; a skill's draft has a service of its own."""
    if memory.status == Status.PENDING and not memory.skill:
        return ItemKind.PENDING_WRITE
    return ItemKind.CONFLICT if memory.status == Status.CONTESTED else None


def _item(txn: ReadTxn, memory: Memory, kind: ItemKind) -> Item:
    (change,) = txn.changes(memory.namespace, memory.sequence - 1, 1)
    if kind == ItemKind.CONFLICT:
        conflict = conflict_of(txn, memory)
        etag = conflict_etag(memory, conflict.older)
        found = [memory, *conflict.older]
        return Item(memory.memory_id, kind, etag, found, conflict.summary, change.actor, memory.update_time_us)
    summary = f"written for everybody of the tenant by {change.actor}"
    if memory.supersedes:
        summary += f", to replace {', '.join(memory.supersedes)}"
    return Item(memory.memory_id, kind, memory.etag, [memory], summary, change.actor, memory.create_time_us)


def _waiting(txn: ReadTxn, namespaces: Sequence[Namespace], decision: ItemDecision) -> Memory:
    """The memory of a pending write that is decided. Raises NotFound, EtagMismatch, NotActive."""
    memory = find(txn.get, namespaces, decision.item_id, 0)
    check_etag(memory, decision.etag)
    kind = _kind(memory)
    if kind == ItemKind.CONFLICT:
        raise NotActive(f"{memory.memory_id} is a conflict: KEEP_NEWER, KEEP_OLDER or KEEP_BOTH decides it")
    if kind is None:
        raise NotActive(f"{memory.memory_id} is {memory.status.name}: it waits for nobody", memory_id=memory.memory_id)
    return memory
