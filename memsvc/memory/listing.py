"""Listing memories and their history, page by page.

Purpose: stable pages while writes go on. Memories are listed in the order of their ids, which are ordered by creation
and never change, so that a page token (the last id) neither skips nor repeats.

Threading: pure functions over a read transaction each.

Rejected: offsets (a write between two pages shifts them), ordering by update time (an update would move a memory to a
page that was read already).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from memsvc.errors import Cancelled, InvalidArgument, NotFound
from memsvc.memory import page_tokens
from memsvc.memory.drafts import check_memory_id
from memsvc.memory.feed import ChangeEvent, change_events
from memsvc.memory.waiting import SEES_ALL, Viewer, check_shown, is_shown, shown_event
from memsvc.model import APPROVED, RECALLABLE, Filter, Memory, Namespace, effective_status
from memsvc.storage.engine import Engine

PAGE_SIZE_DEFAULT = 50
PAGE_SIZE_MAX = 1000
STOP_CHECK_ROWS = 1024


def page_size(asked: int) -> int:
    """The page size to use. Raises InvalidArgument for a negative one or one past the limit."""
    if not 0 <= asked <= PAGE_SIZE_MAX:
        raise InvalidArgument(f"page_size must be from 1 to {PAGE_SIZE_MAX}, not {asked}", field="page_size")
    return asked or PAGE_SIZE_DEFAULT


def _after(page_token: str, kind: str) -> tuple[str, int]:
    """Memory id and version of a token; of none, where a list begins."""
    if not page_token:
        return "", 0
    memory_id, version = page_tokens.decode(page_token, kind, tuple[str, int])
    check_memory_id(memory_id, "page_token")
    return memory_id, version


def list_memories(
    engine: Engine,
    namespaces: Sequence[Namespace],
    condition: Filter,
    include_inactive: bool,
    size: int,
    page_token: str,
    now_us: int,
    still_wanted: Callable[[], bool] = lambda: True,
    *,
    viewer: Viewer = SEES_ALL,
) -> tuple[list[Memory], str]:
    """One page, newest first by creation, and the token of the next ("" on the last). PENDING memories only where the
    condition names that status. Raises InvalidArgument.
    """
    after_id, _ = _after(page_token, "list")
    page: list[Memory] = []
    with engine.read() as txn:
        scans = [txn.scan(namespace, after_id=after_id, reverse=True) for namespace in namespaces]
        for seen, memory in enumerate(heapq.merge(*scans, key=lambda m: m.memory_id, reverse=True)):
            if seen % STOP_CHECK_ROWS == STOP_CHECK_ROWS - 1 and not still_wanted():
                raise Cancelled("the caller is gone")
            if not _wanted(memory, condition, include_inactive, now_us) or not is_shown(txn, memory, viewer):
                continue
            if len(page) == size:
                return page, page_tokens.encode("list", page[-1].memory_id, 0)
            page.append(memory)
    return page, ""


def _wanted(memory: Memory, condition: Filter, include_inactive: bool, now_us: int) -> bool:
    statuses = condition.statuses or (APPROVED if include_inactive else RECALLABLE)
    if effective_status(memory, now_us) not in statuses:
        return False
    return condition.matches(memory)


def history(
    engine: Engine,
    namespaces: Sequence[Namespace],
    memory_id: str,
    size: int,
    page_token: str,
    *,
    viewer: Viewer = SEES_ALL,
) -> tuple[list[ChangeEvent], str]:
    """One page of a memory's changes, newest first, and the next token. Raises NotFound, InvalidArgument. Versions that
    are not for the viewer are left out, so that a page may be short.
    """
    check_memory_id(memory_id, "memory_id")
    _, below = _after(page_token, "history")
    with engine.read() as txn:
        for namespace in namespaces:
            versions = [m for m in txn.versions(namespace, memory_id) if not below or m.version < below]
            if not versions:
                continue
            newest = versions[::-1][:size]
            if not below:
                check_shown(txn, newest[0], viewer)
            found: list[ChangeEvent] = []
            for memory in newest:
                found += change_events(txn, namespace, txn.changes(namespace, memory.sequence - 1, 1))
            events = [event for event in (shown_event(txn, one, viewer) for one in found) if event is not None]
            more = newest[-1].version > 1
            return events, page_tokens.encode("history", memory_id, newest[-1].version) if more else ""
    raise NotFound(f"no memory {memory_id} in the namespaces of the given owners", memory_id=memory_id)
