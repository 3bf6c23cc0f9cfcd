"""Who sees what waits for approval.

Purpose: what is written into GLOBAL is everybody's only after somebody said so. Until then its text is shown to its
writer and to those who may approve it; what was rejected stays so. A version that nobody approved is hidden even when a
later one stands: an approver may have edited out what must not be read.

Threading: pure functions over a read transaction each.

Rejected: a field of the memory that names its writer (the change log has it already).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from memsvc.errors import NotFound, PermissionDenied
from memsvc.memory.feed import ChangeEvent
from memsvc.model import Layer, Memory, Scope, Status
from memsvc.storage.engine import ReadTxn

_NEVER_STOOD = (Status.PENDING, Status.FORGOTTEN)


class Viewer(msgspec.Struct, frozen=True):
    """Who asks: the actor of its changes, and whether it may approve in a scope and layer."""

    actor: str
    approves: Callable[[Scope, Layer], bool]


SEES_ALL = Viewer("", lambda scope, layer: True)


def never_stood(txn: ReadTxn, memory: Memory) -> bool:
    """Whether the version waits for approval, or was forgotten in GLOBAL before anybody approved it."""
    if memory.status == Status.PENDING:
        return True
    if memory.status != Status.FORGOTTEN or memory.namespace.scope != Scope.GLOBAL:
        return False
    versions = txn.versions(memory.namespace, memory.memory_id)
    return versions[0].status == Status.PENDING and all(
        version.status in _NEVER_STOOD for version in versions if version.version <= memory.version
    )


def is_shown(txn: ReadTxn, memory: Memory, viewer: Viewer) -> bool:
    """Whether the viewer may read the version."""
    if not never_stood(txn, memory) or viewer.approves(memory.namespace.scope, memory.layer):
        return True
    first = txn.versions(memory.namespace, memory.memory_id)[0]
    (change,) = txn.changes(memory.namespace, first.sequence - 1, 1)
    return change.actor == viewer.actor


def check_shown(txn: ReadTxn, memory: Memory, viewer: Viewer) -> None:
    """Raises NotFound for a version that the viewer may not read: as for one that is not there."""
    if not is_shown(txn, memory, viewer):
        raise NotFound(
            f"no memory {memory.memory_id} in the namespaces of the given owners", memory_id=memory.memory_id
        )


def check_changeable(txn: ReadTxn, memory: Memory, viewer: Viewer) -> None:
    """What stands for everybody is changed by those who may approve; what waits, its writer may take back. Raises
    NotFound, PermissionDenied.
    """
    check_shown(txn, memory, viewer)
    scope, layer = memory.namespace.scope, memory.layer
    if scope == Scope.GLOBAL and memory.status != Status.PENDING and not viewer.approves(scope, layer):
        raise PermissionDenied(
            f"the token does not grant approve in scope {scope.name}, layer {layer.name}",
            right="approve",
            scope=scope.name,
            layer=layer.name,
        )


def shown_event(txn: ReadTxn, event: ChangeEvent, viewer: Viewer) -> ChangeEvent | None:
    """The change with the images that the viewer may read; None if not even what it wrote is for them."""
    if not is_shown(txn, event.after, viewer):
        return None
    if event.before is not None and not is_shown(txn, event.before, viewer):
        return msgspec.structs.replace(event, before=None)
    return event
