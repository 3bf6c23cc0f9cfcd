"""Entries of the audit that are noted beside a call: who was shown what, and what was refused.

Purpose: `read` and `denied` only queue; a thread writes what came every second, and `close` once more, many entries a
commit. A kill loses the last second of them, never an entry of a change (those are in the change's own transaction).

Reads: `off`, `sampled` (one call of `sample`, which its entry says) or `full`; calls with a token that was exchanged
are always noted. Refusals: the first DENIED_MAX a minute of a principal and a call are entries of their own, the others
are counted in one, so that nobody fills the disk by asking. They stand in the chain of the namespace that was asked
for, if that is there, else in the tenant's; a namespace is never made by somebody who may not write it.

Threading: `read` and `denied` from any thread; one thread writes. The queue is bounded: what does not fit is counted,
and the count is an entry.

Rejected: writing in front of the answer (a commit a recall); a file beside the store (two chains, two backups).
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

import msgspec

from memsvc.memory import permanent
from memsvc.memory.audit import tenant_chain
from memsvc.memory.periodic import Periodic
from memsvc.model import AUDIT_IDS_MAX, AuditEntry, AuditKind, Namespace
from memsvc.storage.engine import Engine, ReadTxn, WriteTxn

LOG = logging.getLogger("memsvc.audit")
FLUSH_S = 1.0
QUEUE_MAX = 20_000
NOTES_PER_WRITE = 500
DENIED_MAX = 20
DENIED_WINDOW_US = 60_000_000
COUNTED = "COUNTED"  # outcome of an entry that stands for `count` refusals
DROPPED = "DROPPED"  # outcome of an entry that stands for `count` reads that did not fit

# Shown memories: with their namespace, or None where the answer has only the id.
Shown = Iterable[tuple[Namespace | None, str]]


class Reads(StrEnum):
    """Which reads are noted."""

    OFF = "off"
    SAMPLED = "sampled"
    FULL = "full"


class _Read(msgspec.Struct, frozen=True):
    actor: str
    call: str
    time_us: int
    shown: Callable[[], Shown]
    reach: Callable[[], Sequence[Namespace]]
    detail: str


class AuditBook:
    """See the module. `sample` is for SAMPLED."""

    def __init__(self, engine: Engine, *, reads: Reads, sample: int, clock_us: Callable[[], int]) -> None:
        self._engine = engine
        self._reads = reads
        self._sampled = f"sampled 1 of {sample}"
        self._sample = sample
        self._clock_us = clock_us
        self._count = itertools.count(1)
        self._queue: deque[_Read] = deque()
        self._lock = threading.Lock()
        self._denied: list[AuditEntry] = []
        self._denied_at: list[Sequence[Namespace]] = []
        self._windows: dict[tuple[str, str, str], list[int]] = {}
        self._dropped: dict[str, int] = {}
        self._flushing = threading.Lock()
        self._flusher = Periodic(
            "audit", self.flush, every_s=FLUSH_S, log=LOG, failure="could not write entries of the audit"
        )

    # -- noting --------------------------------------------------------------------------------------------------

    def read(
        self,
        actor: str,
        call: str,
        shown: Callable[[], Shown],
        reach: Callable[[], Sequence[Namespace]],
        *,
        always: bool,
    ) -> None:
        """Notes an answered call. `shown()` tells what it showed, `reach()` the namespaces that it named: both are
        asked when the entry is written, `reach` only where a namespace is missing. `always`: whatever the setting.
        """
        detail = ""
        if not always and self._reads is not Reads.FULL:
            if self._reads is Reads.OFF or next(self._count) % self._sample:
                return
            detail = self._sampled
        if len(self._queue) >= QUEUE_MAX:
            with self._lock:
                tenant = reach()[0].tenant
                self._dropped[tenant] = self._dropped.get(tenant, 0) + 1
            return
        self._queue.append(_Read(actor, call, self._clock_us(), shown, reach, detail))

    def denied(self, tenant: str, actor: str, call: str, missing: str, reach: Sequence[Namespace]) -> None:
        """Notes a refused call of a tenant's principal: what was missing, and which namespaces it named."""
        now_us = self._clock_us()
        with self._lock:
            window = self._windows.setdefault((tenant, actor, call), [now_us, 0])
            window[1] += 1
            if window[1] <= DENIED_MAX:
                entry = AuditEntry(
                    kind=AuditKind.DENIED,
                    time_us=now_us,
                    actor=actor,
                    call=call,
                    outcome="PERMISSION_DENIED",
                    count=1,
                    detail=missing,
                )
                self._denied.append(entry)
                self._denied_at.append([name for name in reach if name.tenant == tenant] + [tenant_chain(tenant)])

    # -- writing -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the thread that writes."""
        self._flusher.start()

    def close(self) -> None:
        """Stops the thread and writes what is left."""
        self._flusher.close()

    def flush(self) -> int:
        """Writes what was noted so far; returns how many entries. Raises what the store raises; what was not written by
        then is tried again, but for refusals and counts.
        """
        with self._flushing:
            written = self._write_all(self._taken_denials())
            while self._queue:
                part = [self._queue.popleft() for _ in range(min(len(self._queue), NOTES_PER_WRITE))]
                try:
                    written += self._write_all(self._entries(part))
                except BaseException:
                    self._queue.extendleft(reversed(part))
                    raise
            return written

    def _taken_denials(self) -> list[tuple[Sequence[Namespace], AuditEntry]]:
        now_us = self._clock_us()
        with self._lock:
            taken = list(zip(self._denied_at, self._denied, strict=True))
            self._denied, self._denied_at = [], []
            for (tenant, actor, call), (began_us, count) in list(self._windows.items()):
                if now_us - began_us < DENIED_WINDOW_US:
                    continue
                del self._windows[tenant, actor, call]
                if count > DENIED_MAX:
                    taken.append(_counted(tenant, AuditKind.DENIED, COUNTED, now_us, count - DENIED_MAX, actor, call))
            for tenant, count in self._dropped.items():
                taken.append(_counted(tenant, AuditKind.READ, DROPPED, now_us, count, "audit", "audit"))
            self._dropped = {}
        return taken

    def _entries(self, notes: Sequence[_Read]) -> list[tuple[Sequence[Namespace], AuditEntry]]:
        """An entry for each call and namespace."""
        entries: list[tuple[Sequence[Namespace], AuditEntry]] = []
        with self._engine.read() as txn:
            for note in notes:
                for namespace, ids in _by_namespace(txn, note).items():
                    entry = AuditEntry(
                        kind=AuditKind.READ,
                        time_us=note.time_us,
                        actor=note.actor,
                        call=note.call,
                        memory_ids=tuple(ids[:AUDIT_IDS_MAX]),
                        count=len(ids),
                        detail=note.detail,
                    )
                    entries.append(([namespace], entry))
        return entries

    def _write_all(self, entries: Sequence[tuple[Sequence[Namespace], AuditEntry]]) -> int:
        """Appends each entry to the first of its namespaces that is there; one that was purged meanwhile is not made
        anew, a tenant's chain is.
        """
        if not entries:
            return 0

        def write(txn: WriteTxn) -> int:
            count = 0
            for names, entry in entries:
                there = next((n for n in names if n == tenant_chain(n.tenant) or txn.head(n) is not None), None)
                if there is not None:
                    txn.append_audit(there, entry)
                    count += 1
            return count

        return self._engine.write(write)


def _counted(
    tenant: str, kind: AuditKind, outcome: str, now_us: int, count: int, actor: str, call: str
) -> tuple[Sequence[Namespace], AuditEntry]:
    entry = AuditEntry(kind=kind, time_us=now_us, actor=actor, call=call, outcome=outcome, count=count)
    return [tenant_chain(tenant)], entry


def _by_namespace(txn: ReadTxn, note: _Read) -> dict[Namespace, list[str]]:
    """What a call showed, by namespace, each memory once."""
    found: dict[Namespace, dict[str, None]] = {}
    for namespace, memory_id in note.shown():
        if namespace is None:
            namespace = next((name for name in note.reach() if permanent.is_there(txn, name, memory_id)), None)
        if namespace is not None:
            found.setdefault(namespace, {})[memory_id] = None
    return {namespace: list(ids) for namespace, ids in found.items()}
