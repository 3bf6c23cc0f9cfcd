"""Where memories stand that a call names by id alone, and whose a session is.

Purpose: the scope and layer that a right is asked for. Both never change, so that what is found here still holds when
the call comes to the memory itself; whether a memory waits for approval may change, so `waiting.check_changeable` asks
again inside of the transaction.

Threading: any number of threads; one read transaction a question.

Rejected: asking inside of each call (a call that forgets to ask would be a hole).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memsvc.memory.owners import Owners
from memsvc.memory.permanent import Permanent
from memsvc.memory.sessions.consolidation import Consolidator
from memsvc.memory.sessions.sessions import Sessions
from memsvc.memory.transactions import Transactions
from memsvc.model import Layer, Memory, Namespace, Scope, Status, id_to_bytes

Place = tuple[Scope, Layer]


class Places:
    """See the module. An id that is none, or is not in the namespaces, has no place."""

    def __init__(
        self, transactions: Transactions, permanent: Permanent, sessions: Sessions, consolidator: Consolidator
    ) -> None:
        self._engine = transactions.engine
        self._permanent = permanent
        self._sessions = sessions
        self._consolidator = consolidator

    def of_memories(self, namespaces: Sequence[Namespace], memory_ids: Iterable[str]) -> set[Place]:
        """Places of these memories; of an id, the first namespace that has it."""
        return {_place(memory) for memory in self._found(namespaces, memory_ids)}

    def of_approved(self, namespaces: Sequence[Namespace], memory_ids: Iterable[str]) -> set[Place]:
        """Places of those of these memories that don't wait for approval."""
        return {_place(memory) for memory in self._found(namespaces, memory_ids) if memory.status != Status.PENDING}

    def of_reviewed(self, namespaces: Sequence[Namespace], memory_ids: Iterable[str]) -> set[Place]:
        """Places of these memories and of those that they would replace."""
        found = self._found(namespaces, memory_ids)
        replaced = [old for memory in found for old in self._found([memory.namespace], memory.supersedes)]
        return {_place(memory) for memory in (*found, *replaced)}

    def _found(self, namespaces: Sequence[Namespace], memory_ids: Iterable[str]) -> list[Memory]:
        found = []
        with self._engine.read() as txn:
            for memory_id in memory_ids:
                if id_to_bytes(memory_id) is None:
                    continue
                memory = next((m for m in (txn.get(name, memory_id) for name in namespaces) if m is not None), None)
                if memory is not None:
                    found.append(memory)
        return found

    def of_permanent(self, namespaces: Sequence[Namespace], memory_id: str) -> set[Place]:
        """The place of an entry of the permanent store."""
        return {(name.scope, Layer.PERMANENT) for name in self._permanent.holding(namespaces, memory_id)}

    def owners_of_session(self, namespace: Namespace) -> Owners | None:
        """Whom the open session belongs to, or else the one that was ended last; None for an id that nobody used."""
        return self._sessions.owners_of(namespace) or self._consolidator.owners_of(namespace)

    def owners_of_ended(self, namespace: Namespace) -> Owners | None:
        """Whom the session belonged to that was ended last."""
        return self._consolidator.owners_of(namespace)


def _place(memory: Memory) -> Place:
    return memory.namespace.scope, memory.layer
