"""What people decide about what was learnt: reviews of memories, and contradictions that wait for somebody.

Purpose: confirm, correct, forget and block; list and settle conflicts. A conflict is not stored a second time: it is a
CONTESTED memory, the memories that it names in `supersedes`, and the evidence in the change that wrote it.

Threading: as `transactions`.

Rejected: a table of conflicts (a second truth that could disagree with the memories).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any

import msgspec

from memsvc.errors import EtagMismatch, InvalidArgument, NotActive
from memsvc.memory import drafts as rules
from memsvc.memory import page_tokens
from memsvc.memory.owners import Owners
from memsvc.memory.policies import Policies
from memsvc.memory.sensitive import apply
from memsvc.memory.transactions import Committed, Mutation, Transactions, find
from memsvc.model import NEVER_US, RECALLABLE, ChangeKind, Memory, Namespace, Status, id_to_bytes
from memsvc.retrieval.segments import Applied, vector_hash
from memsvc.storage.engine import ReadTxn, WriteTxn

DECISIONS_MAX = 1000
_REVIEWABLE = (*RECALLABLE, Status.STAGED, Status.EXPIRED)


class ReviewAction(IntEnum):
    """What a person decided; numbers equal the contract's."""

    CONFIRM = 1
    CORRECT = 2
    FORGET = 3
    BLOCK = 4


class ReviewDecision(msgspec.Struct, frozen=True):
    """One decision; `content` is the right statement for CORRECT, empty otherwise."""

    memory_id: str
    action: ReviewAction
    content: str = ""
    reason: str = ""


class Resolution(IntEnum):
    """How a contradiction is settled; numbers equal the contract's."""

    KEEP_NEWER = 1
    KEEP_OLDER = 2
    KEEP_BOTH = 3


class Conflict(msgspec.Struct, frozen=True):
    """A contradiction that waits: the newer memory (CONTESTED), what stood before, and why they contradict."""

    newer: Memory
    older: list[Memory]
    summary: str
    evidence: dict[str, Any]


class Settling:
    """See the module."""

    def __init__(self, transactions: Transactions, policies: Policies, content_max_bytes: int) -> None:
        self._transactions = transactions
        self._policies = policies
        self._content_max_bytes = content_max_bytes

    # -- reviews -------------------------------------------------------------------------------------------------

    def review(
        self, namespaces: Sequence[Namespace], owners: Owners, decisions: Sequence[ReviewDecision], mutation: Mutation
    ) -> list[Memory]:
        """Carries the decisions out, all or none; the memories as they are now, in order.

        Raises InvalidArgument for a decision that makes no sense, NotFound, NotActive for a memory that was replaced or
        forgotten meanwhile, SensitiveContent.
        """
        self._check(decisions)
        transactions = self._transactions
        now_us = transactions.clock_us()
        with transactions.engine.read() as txn:
            current = [find(txn.get, namespaces, decision.memory_id, 0) for decision in decisions]
        planned = [self._planned(d, m, now_us, i) for i, (d, m) in enumerate(zip(decisions, current, strict=True))]
        restated = [i for i, memory in enumerate(planned) if vector_hash(memory) != vector_hash(current[i])]
        model_id = transactions.embedder.model_id
        made = transactions.vectors_for([planned[i] for i in restated])
        vectors = dict(zip(restated, made, strict=True))

        def change(txn: WriteTxn) -> Committed[list[Memory]]:
            transactions.check_model(model_id)
            changes: list[Applied] = []
            results = []
            for i, (decision, after) in enumerate(zip(decisions, planned, strict=True)):
                before = find(txn.get, [after.namespace], after.memory_id, 0)  # it may have been purged meanwhile
                if before.version != current[i].version:
                    raise NotActive(f"{before.memory_id} changed while it was reviewed; review it again")
                forgets = after.status == Status.FORGOTTEN
                kind = ChangeKind.FORGOTTEN if forgets and before.status != Status.FORGOTTEN else ChangeKind.UPDATED
                reason = decision.reason or f"review: {decision.action.name.lower()}"
                results.append(
                    transactions.put(txn, after, vectors.get(i), kind, mutation, reason, changes, before=before)
                )
            return Committed(results, changes)

        return transactions.mutate(owners, mutation, list[Memory], change)

    def _check(self, decisions: Sequence[ReviewDecision]) -> None:
        if not 1 <= len(decisions) <= DECISIONS_MAX:
            raise InvalidArgument(
                f"decisions has {len(decisions)} entries; send 1 to {DECISIONS_MAX}", field="decisions"
            )
        if len({decision.memory_id for decision in decisions}) < len(decisions):
            raise InvalidArgument("decisions names a memory twice", field="decisions")
        for i, decision in enumerate(decisions):
            path = f"decisions[{i}]"
            rules.check_memory_id(decision.memory_id, f"{path}.memory_id")
            rules.check_length(decision.reason, rules.REASON_MAX_CHARS, f"{path}.reason")
            if decision.action == ReviewAction.CORRECT:
                rules.check_content(decision.content, self._content_max_bytes, f"{path}.content")
            elif decision.content:
                raise InvalidArgument(f"{path}.content goes with CORRECT only", field=f"{path}.content")

    def _planned(self, decision: ReviewDecision, memory: Memory, now_us: int, index: int) -> Memory:
        """The memory after the decision."""
        blocks = decision.action == ReviewAction.BLOCK
        if memory.status not in _REVIEWABLE and not (blocks and memory.status == Status.FORGOTTEN):
            raise NotActive(f"{memory.memory_id} is {memory.status.name}: it can't be reviewed any more")
        if decision.action in (ReviewAction.FORGET, ReviewAction.BLOCK):
            return msgspec.structs.replace(
                memory, status=Status.FORGOTTEN, blocked=memory.blocked or blocks, update_time_us=now_us
            )
        staged = memory.status == Status.STAGED
        kept = msgspec.structs.replace(
            memory,
            confidence=1.0,
            status=Status.ACTIVE if staged else memory.status,
            expire_time_us=NEVER_US if staged else memory.expire_time_us,
            update_time_us=now_us,
        )
        if decision.action == ReviewAction.CONFIRM:
            return kept
        policy = self._policies.of(memory.namespace.tenant)
        content = apply(decision.content, policy, f"decisions[{index}].content")
        embedder = self._transactions.embedder
        return msgspec.structs.replace(
            kept, content=content, embedding_model=embedder.model_id, embedding_dim=embedder.dim
        )

    # -- conflicts -----------------------------------------------------------------------------------------------

    def conflicts(self, namespaces: Sequence[Namespace], size: int, page_token: str) -> tuple[list[Conflict], str]:
        """One page of what waits, newest first within each namespace; raises InvalidArgument for a bad token."""
        at, before = position(page_token, len(namespaces), "conflicts")
        found: list[Conflict] = []
        with self._transactions.engine.read() as txn:
            for index in range(at, len(namespaces)):
                for newer in _contested(txn, namespaces[index], before if index == at else ""):
                    if len(found) == size:
                        last = found[-1].newer
                        return found, page_tokens.encode("conflicts", namespaces.index(last.namespace), last.memory_id)
                    found.append(conflict_of(txn, newer))
        return found, ""

    def resolve(
        self,
        namespaces: Sequence[Namespace],
        owners: Owners,
        memory_id: str,
        resolution: Resolution,
        reason: str,
        mutation: Mutation,
        etag: str = "",
    ) -> list[Memory]:
        """Settles one; the memories as they are now, the newer first. Raises NotFound, NotActive if nothing waits,
        EtagMismatch unless `etag` is empty or that of the conflict.
        """
        transactions = self._transactions
        now_us = transactions.clock_us()

        def change(txn: WriteTxn) -> Committed[list[Memory]]:
            newer = find(txn.get, namespaces, memory_id, 0)
            if newer.status != Status.CONTESTED:
                raise NotActive(f"{memory_id} is {newer.status.name}, not CONTESTED: nothing waits for a decision")
            older = _older(txn, newer)
            if etag and etag != conflict_etag(newer, older):
                raise EtagMismatch(f"the conflict of {memory_id} has changed since it was read; read it again")
            changes: list[Applied] = []
            results = []
            for before, after in _resolved(newer, older, resolution, now_us):
                kind = ChangeKind.SUPERSEDED if after.status == Status.SUPERSEDED else ChangeKind.UPDATED
                results.append(transactions.put(txn, after, None, kind, mutation, reason, changes, before=before))
            return Committed(results, changes)

        return transactions.mutate(owners, mutation, list[Memory], change)


def conflict_etag(newer: Memory, older: Sequence[Memory]) -> str:
    """Opaque to callers: changes with every version of what contradicts each other."""
    return "-".join(memory.etag for memory in (newer, *older))


def _older(txn: ReadTxn, newer: Memory) -> list[Memory]:
    """What the newer memory stands in for and nobody has restored or forgotten since."""
    found = [txn.get(newer.namespace, memory_id) for memory_id in newer.supersedes]
    return [old for old in found if old is not None and old.superseded_by == newer.memory_id]


def _resolved(
    newer: Memory, older: list[Memory], resolution: Resolution, now_us: int
) -> Iterator[tuple[Memory, Memory]]:
    """(before, after) of each memory that changes, the newer first."""
    replace = msgspec.structs.replace
    if resolution == Resolution.KEEP_NEWER:
        yield newer, replace(newer, status=Status.ACTIVE, update_time_us=now_us)
        return
    if not older:
        raise NotActive(f"what {newer.memory_id} contradicts was forgotten meanwhile; keep the newer, or forget it too")
    both = resolution == Resolution.KEEP_BOTH
    yield (
        newer,
        replace(
            newer,
            status=Status.ACTIVE if both else Status.SUPERSEDED,
            superseded_by="" if both else older[0].memory_id,
            supersedes=(),
            update_time_us=now_us,
        ),
    )
    for old in older:
        yield old, replace(old, status=Status.ACTIVE, superseded_by="", update_time_us=now_us)


def _contested(txn: ReadTxn, namespace: Namespace, before_id: str) -> Iterator[Memory]:
    for memory in txn.scan(namespace, after_id=before_id, reverse=True):
        if memory.status == Status.CONTESTED:
            yield memory


def conflict_of(txn: ReadTxn, newer: Memory) -> Conflict:
    """With the evidence of the change that made the memory contested."""
    evidence: dict[str, Any] = {}
    for version in txn.versions(newer.namespace, newer.memory_id):
        change = txn.changes(newer.namespace, version.sequence - 1, 1)[0]
        if version.status == Status.CONTESTED and change.evidence:
            evidence = json.loads(change.evidence)
            break
    summary = str(evidence.pop("summary", ""))
    return Conflict(newer, _older(txn, newer), summary, evidence)


def position(page_token: str, namespaces: int, listed: str) -> tuple[int, str]:
    """Index of the namespace and memory id where the next page of a list begins. Raises InvalidArgument."""
    if not page_token:
        return 0, ""
    at, memory_id = page_tokens.decode(page_token, listed, tuple[int, str])
    if not 0 <= at < namespaces or id_to_bytes(memory_id) is None:
        raise InvalidArgument("page_token is of another request", field="page_token")
    return at, memory_id
