"""Forgetting: by id, or everything that matches. Logical: text and history stay for audit.

Purpose: the rules of forget. A forgotten memory leaves every recall at once.

Threading: as `transactions`.

Rejected: one transaction for a whole namespace (it would hold the writers up for seconds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from memsvc.errors import Cancelled, MemsvcError
from memsvc.memory.owners import DEFAULT_TENANT, Owners
from memsvc.memory.transactions import Committed, Mutation, Transactions, check_etag, find, heads
from memsvc.memory.waiting import SEES_ALL, Viewer, check_changeable
from memsvc.model import ChangeKind, Filter, Memory, Namespace, Status
from memsvc.retrieval.segments import Applied
from memsvc.storage.engine import WriteTxn

FORGET_CHUNK = 500


class ForgetResult(msgspec.Struct, frozen=True, array_like=True):
    """What a forget did: how many, ids that were forgotten before, and the sequence reached per namespace."""

    forgotten_count: int
    already_forgotten_ids: list[str]
    at: list[tuple[Namespace, int]]


class Forgetting:
    """See the module."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def forget(
        self,
        namespaces: Sequence[Namespace],
        owners: Owners,
        memory_ids: Sequence[str],
        etag: str,
        reason: str,
        mutation: Mutation,
        *,
        viewer: Viewer = SEES_ALL,
    ) -> ForgetResult:
        """Forgets memories by id, all or none. Raises NotFound naming an id that is not there, EtagMismatch."""
        wanted = list(dict.fromkeys(memory_ids))

        def change(txn: WriteTxn) -> Committed[ForgetResult]:
            changes: list[Applied] = []
            already = []
            for memory_id in wanted:
                before = find(txn.get, namespaces, memory_id, 0)
                check_changeable(txn, before, viewer)
                check_etag(before, etag)
                if before.status == Status.FORGOTTEN:
                    already.append(memory_id)
                else:
                    self._put_forgotten(txn, before, mutation, reason, changes)
            return Committed(ForgetResult(len(changes), already, heads(changes)), changes)

        return self._transactions.mutate(owners, mutation, ForgetResult, change)

    def _put_forgotten(
        self, txn: WriteTxn, before: Memory, mutation: Mutation, reason: str, changes: list[Applied]
    ) -> None:
        after = msgspec.structs.replace(before, status=Status.FORGOTTEN, update_time_us=self._transactions.clock_us())
        self._transactions.put(txn, after, None, ChangeKind.FORGOTTEN, mutation, reason, changes, before=before)

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
        with self._transactions.engine.read() as txn:
            tenant = owners.tenant or DEFAULT_TENANT
            first = self._transactions.first_answer(txn, tenant, mutation, ForgetResult, self._transactions.clock_us())
            if first is not None:
                return first  # a replay must not forget what was written since
            pending = [
                (namespace, memory.memory_id)
                for namespace in namespaces
                for memory in txn.scan(namespace)
                if _forgettable(memory, condition)
            ]
        chunks = [pending[i : i + FORGET_CHUNK] for i in range(0, len(pending), FORGET_CHUNK)]
        silent = Mutation("", b"", mutation.actor, mutation.call)
        try:
            for chunk in chunks:
                if not still_wanted():
                    raise Cancelled("the caller is gone")
                done = self._transactions.engine.write(
                    lambda txn, chunk=chunk: self._forget_chunk(txn, chunk, condition, silent, reason),  # type: ignore[misc]
                    on_commit=self._transactions.follow,
                ).result
                count += done.forgotten_count
                at.update(dict(done.at))
        except MemsvcError as error:
            error.metadata["forgotten_count"] = str(count)
            error.message = f"{error.message}; {count} of {len(pending)} were forgotten, call again to go on"
            raise
        final = ForgetResult(count, [], list(at.items()))
        return self._transactions.mutate(owners, mutation, ForgetResult, lambda txn: Committed(final, []))

    def _forget_chunk(
        self, txn: WriteTxn, chunk: list[tuple[Namespace, str]], condition: Filter, mutation: Mutation, reason: str
    ) -> Committed[ForgetResult]:
        changes: list[Applied] = []
        for namespace, memory_id in chunk:
            before = txn.get(namespace, memory_id)
            if before is not None and _forgettable(before, condition):
                self._put_forgotten(txn, before, mutation, reason, changes)
        return Committed(ForgetResult(len(changes), [], heads(changes)), changes)


def _forgettable(memory: Memory, condition: Filter) -> bool:
    statuses = condition.statuses or tuple(Status)
    return memory.status != Status.FORGOTTEN and memory.status in statuses and condition.matches(memory)
