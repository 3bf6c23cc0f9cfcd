"""Reading the audit: pages of entries, and the check of chains against themselves and the change log.

Purpose: what AuditService and `memsvc audit` answer. A chain that is good shows that no entry was altered, removed,
moved or put in; the comparison shows a change that was written past the audit, and an entry that was written past the
log; a head that was noted elsewhere shows that a tail was cut off.

Threading: pure functions over a read transaction each.

Rejected: entries of all namespaces merged by time (each chain has an order of its own, which is what is checked);
comparing with a set of all sequences (both sides come in order, so that a walk beside each other needs no memory).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from memsvc.errors import Cancelled, InvalidArgument, StoreCorrupt
from memsvc.memory import page_tokens
from memsvc.memory.audit import BEGINS
from memsvc.model import AuditEntry, AuditKind, Change, Namespace, TimeSpan
from memsvc.storage.audit_chain import ChainCheck
from memsvc.storage.engine import AuditHead as AuditHead
from memsvc.storage.engine import Engine, ReadTxn

BLOCK_ENTRIES = 256
_LIST = "audit"


def _always() -> bool:
    return True


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries; what is empty does not restrict."""

    kinds: tuple[AuditKind, ...] = ()
    actor: str = ""
    memory_id: str = ""
    time: TimeSpan = TimeSpan()

    def matches(self, entry: AuditEntry) -> bool:
        """Whether the entry is asked for."""
        return (
            (not self.kinds or entry.kind in self.kinds)
            and self.actor in ("", entry.actor)
            and (not self.memory_id or self.memory_id in entry.memory_ids)
            and self.time.start_us <= entry.time_us <= self.time.end_us
        )


class ChainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the check of a chain found. `head` is the last good entry. `broken_number` and `problem`: the first entry
    that is not; 0 and "" for none. `missing_*`: changes past `baseline_sequence` without an entry, `stray_*`: entries
    without their change; both only for a chain that is not broken.
    """

    namespace: Namespace
    head: AuditHead
    broken_number: int = 0
    problem: str = ""
    baseline_sequence: int = 0
    missing_count: int = 0
    first_missing_sequence: int = 0
    stray_count: int = 0
    first_stray_number: int = 0

    @property
    def whole(self) -> bool:
        """Whether nothing was found."""
        return not (self.problem or self.missing_count or self.stray_count)


class AuditReader:
    """See the module."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def query(
        self,
        namespaces: Sequence[Namespace],
        condition: AuditFilter,
        *,
        newest_first: bool,
        size: int,
        page_token: str,
        still_wanted: Callable[[], bool] = _always,
    ) -> tuple[list[tuple[Namespace, AuditEntry]], str]:
        """One page, namespace by namespace, and the token of the next ("" on the last). Raises InvalidArgument,
        Cancelled, and StoreCorrupt for an entry that can't be read.
        """
        at, number = page_tokens.decode(page_token, _LIST, tuple[int, int]) if page_token else (0, 0)
        if not 0 <= at < len(namespaces) or number < 0:
            raise InvalidArgument("page_token is of another request", field="page_token")
        walk = _newest if newest_first else _oldest
        page: list[tuple[Namespace, AuditEntry]] = []
        with self._engine.read() as txn:
            for index in range(at, len(namespaces)):
                for block in walk(txn, namespaces[index], number if index == at else 0):
                    if not still_wanted():
                        raise Cancelled("the caller is gone")
                    for entry in filter(condition.matches, block):
                        if len(page) == size:
                            return page, page_tokens.encode(_LIST, at, number)
                        page.append((namespaces[index], entry))
                        at, number = index, entry.number
        return page, ""

    def verify(
        self,
        namespaces: Sequence[Namespace],
        *,
        expect: AuditHead | None = None,
        still_wanted: Callable[[], bool] = _always,
    ) -> list[ChainReport]:
        """Checks the chains of these namespaces, as far as they have changes or entries. `expect`: what the chain of
        the one namespace must hold. Raises InvalidArgument, Cancelled, and StoreCorrupt for a change log that can't be
        read.
        """
        if expect is not None and (len(namespaces) != 1 or expect.number < 1):
            raise InvalidArgument("expect is a number from 1 and a hash, for one namespace", field="expect")
        with self._engine.read() as txn:
            return [
                _checked(txn, name, expect, still_wanted)
                for name in namespaces
                if expect is not None or txn.head(name) is not None
            ]

    def of_tenant(self, tenant: str) -> list[Namespace]:
        """Every namespace of a tenant, in a stable order."""
        with self._engine.read() as txn:
            return [head.namespace for head in txn.heads() if head.namespace.tenant == tenant]


# -- pages -------------------------------------------------------------------------------------------------------


def _oldest(txn: ReadTxn, namespace: Namespace, after: int) -> Iterator[list[AuditEntry]]:
    """Blocks of entries past a number, oldest first."""
    while block := txn.audit(namespace, after, BLOCK_ENTRIES):
        yield block
        after = block[-1].number


def _newest(txn: ReadTxn, namespace: Namespace, below: int) -> Iterator[list[AuditEntry]]:
    """Blocks of entries below a number (0: all), newest first."""
    if not below:
        head = txn.audit_head(namespace)
        below = 1 if head is None else head.number + 1
    while below > 1:
        after = max(below - 1 - BLOCK_ENTRIES, 0)
        yield [entry for entry in reversed(txn.audit(namespace, after, BLOCK_ENTRIES)) if entry.number < below]
        below = after + 1


# -- checking ----------------------------------------------------------------------------------------------------


def _checked(
    txn: ReadTxn, namespace: Namespace, expect: AuditHead | None, still_wanted: Callable[[], bool]
) -> ChainReport:
    check, changes = ChainCheck(namespace), _Changes(txn, namespace)

    def broken(number: int, problem: str) -> ChainReport:
        return ChainReport(
            namespace=namespace, head=AuditHead(check.number, check.hash), broken_number=number, problem=problem
        )

    size = BLOCK_ENTRIES
    while True:
        if not still_wanted():
            raise Cancelled("the caller is gone")
        try:
            block = txn.audit(namespace, check.number, size)
        except StoreCorrupt as error:
            if size == 1:
                return broken(check.number + 1, error.message)
            size = 1  # up to the one that can't be read
            continue
        for entry in block:
            problem = check.problem(entry)
            if problem:
                return broken(check.number + 1, problem)
            if expect is not None and entry.number == expect.number and entry.hash != expect.hash:
                return broken(entry.number, "it has another hash than expected: the chain was written anew")
            changes.take(entry)
        if len(block) < size:
            break
    if expect is not None and expect.number > check.number:
        return broken(expect.number, f"the chain ends at {check.number}: its tail was cut off")
    return changes.report(AuditHead(check.number, check.hash))


class _Changes:
    """The change log beside a chain's entries of changes, which come in the log's order."""

    def __init__(self, txn: ReadTxn, namespace: Namespace) -> None:
        self._txn = txn
        self._namespace = namespace
        head = txn.head(namespace)
        self._end = 0 if head is None else head.sequence
        self._baseline = 0
        self._last = 0  # sequence up to which entries were taken
        self._block: list[Change] = []
        self._missing = self._first_missing = self._stray = self._first_stray = 0

    def take(self, entry: AuditEntry) -> None:
        """Compares the chain's next entry."""
        if entry.outcome == BEGINS and not self._last:
            self._baseline = self._last = min(entry.sequence, self._end)
        if entry.kind != AuditKind.CHANGE or not entry.sequence:
            return
        if not self._last < entry.sequence <= self._end:
            self._found_stray(entry)
            return
        self._skip_to(entry.sequence - 1)
        self._last = entry.sequence
        change = self._change(entry.sequence)
        told = (entry.memory_ids, entry.change, entry.actor)
        if change is None or told != ((change.memory_id,), change.kind, change.actor):
            self._found_stray(entry)

    def report(self, head: AuditHead) -> ChainReport:
        """What was found, at the end of the chain."""
        self._skip_to(self._end)
        return ChainReport(
            namespace=self._namespace,
            head=head,
            baseline_sequence=self._baseline,
            missing_count=self._missing,
            first_missing_sequence=self._first_missing,
            stray_count=self._stray,
            first_stray_number=self._first_stray,
        )

    def _skip_to(self, sequence: int) -> None:
        if sequence > self._last:
            self._first_missing = self._first_missing or self._last + 1
            self._missing += sequence - self._last

    def _found_stray(self, entry: AuditEntry) -> None:
        self._stray += 1
        self._first_stray = self._first_stray or entry.number

    def _change(self, sequence: int) -> Change | None:
        if not self._block or not self._block[0].sequence <= sequence <= self._block[-1].sequence:
            self._block = self._txn.changes(self._namespace, sequence - 1, BLOCK_ENTRIES)
        return next((change for change in self._block if change.sequence == sequence), None)
