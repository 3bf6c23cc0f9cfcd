"""Why a memory is as it is: its changes, and the memories that its state comes from.

Purpose: one answer to "why does the agent believe this?", from the change log alone.

Threading: a pure function over read transactions.

Rejected: the content of the related memories (the right to read one memory is none to read another).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

import msgspec

from memsvc.memory.drafts import check_memory_id
from memsvc.memory.feed import ChangeEvent
from memsvc.memory.listing import PAGE_SIZE_MAX, history
from memsvc.memory.transactions import find
from memsvc.memory.waiting import Viewer, check_shown
from memsvc.model import Memory, Namespace, Status
from memsvc.storage.engine import Engine, ReadTxn


class Relation(IntEnum):
    """How another memory belongs to one; numbers equal the contract's."""

    SUPERSEDED = 1
    SUPERSEDED_BY = 2
    CONTESTED = 3


class Related(msgspec.Struct, frozen=True):
    """Another memory of the same namespace."""

    relation: Relation
    memory_id: str
    status: Status


class Why(msgspec.Struct, frozen=True):
    """A memory, its newest PAGE_SIZE_MAX changes, oldest first, and what they name."""

    memory: Memory
    changes: list[ChangeEvent]
    related: list[Related]


def why(engine: Engine, namespaces: Sequence[Namespace], memory_id: str, viewer: Viewer) -> Why:
    """The answer, with what the viewer may read of it. Raises NotFound, InvalidArgument."""
    check_memory_id(memory_id, "memory_id")
    with engine.read() as txn:
        memory = find(txn.get, namespaces, memory_id, 0)
        check_shown(txn, memory, viewer)
        related = list(_related(txn, memory))
    events, _ = history(engine, [memory.namespace], memory_id, PAGE_SIZE_MAX, "", viewer=viewer)
    return Why(memory, events[::-1], related)


def _related(txn: ReadTxn, memory: Memory) -> Iterator[Related]:
    """Of all versions: a settled conflict no longer stands in the current one."""
    versions = txn.versions(memory.namespace, memory.memory_id)
    older = dict.fromkeys(one for version in versions for one in version.supersedes)
    newer = dict.fromkeys(version.superseded_by for version in versions if version.superseded_by)
    for ids, relation in ((older, Relation.SUPERSEDED), (newer, Relation.SUPERSEDED_BY)):
        for memory_id in ids:
            other = txn.get(memory.namespace, memory_id)
            if other is None:
                continue
            later = memory if relation == Relation.SUPERSEDED else other
            waits = later.status == Status.CONTESTED
            yield Related(Relation.CONTESTED if waits else relation, memory_id, other.status)
