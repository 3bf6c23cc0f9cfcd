"""The permanent store: profile, safety limits and agent identity, with proposals that a person decides.

Purpose: the only module that names the permanent table. A record holds all versions of one entry, so that history needs
nothing beside it; a statement has one entry per namespace, whatever was decided about it before. What stands is kept
in RAM by namespace, since every context asks for it.

Threading: any number of threads. A writer drops a namespace's list after its commit and before it answers; a reader
that began before the commit sees by the counter that its list is old, and does not keep it.

Rejected: permanent memories as memories of a layer (every write, update, review and forget would need a guard of its
own); limits that cut (a safety limit cut in half says something else).
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any

import msgspec

from memsvc.errors import InvalidArgument, LimitExceeded, NotActive, NotFound, ResourceExhausted, StoreCorrupt
from memsvc.memory import audit
from memsvc.memory.drafts import REASON_MAX_CHARS, check_content, check_length, check_memory_id
from memsvc.memory.owners import Owners
from memsvc.memory.policies import Policies
from memsvc.memory.sensitive import apply
from memsvc.memory.transactions import Committed, Mutation, Transactions, find
from memsvc.model import RECALLABLE, ChangeKind, IdMinter, Memory, Namespace, Status, effective_status
from memsvc.storage.engine import ReadTxn, RecordTable, WriteTxn

ACTIVE_MAX = 200  # per namespace: all of them go into every context
PROPOSALS_MAX = 200  # per namespace that wait: proposing is open to everyone
ENTRIES_MAX = 5000  # per namespace, rejected and removed ones included
VERSIONS_MAX = 200  # of one entry that proposals and puts may write; decisions and removals always go through
CONTENT_MAX_BYTES = 4096
CACHED_NAMESPACES_MAX = 4096


class PermanentKind(IntEnum):
    """What a permanent memory is; numbers equal the contract's."""

    PROFILE = 1
    SAFETY = 2
    IDENTITY = 3


_ORDER = {PermanentKind.SAFETY: 0, PermanentKind.IDENTITY: 1, PermanentKind.PROFILE: 2}


class PermanentMemory(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One version of a permanent memory or proposal; times are UTC microseconds. `status`: ACTIVE, PENDING for a
    proposal, FORGOTTEN when removed or rejected. New fields go at the end.
    """

    memory_id: str
    version: int
    namespace: Namespace
    kind: PermanentKind
    content: str
    status: Status
    proposed_from: str = ""
    actor: str = ""
    reason: str = ""
    create_time_us: int = 0
    update_time_us: int = 0


_DECODER = msgspec.msgpack.Decoder(list[PermanentMemory])


class Permanent:
    """See the module."""

    def __init__(self, transactions: Transactions, policies: Policies, minter: IdMinter) -> None:
        self._transactions = transactions
        self._policies = policies
        self._minter = minter
        self._lock = threading.Lock()
        self._commits = 0
        self._active: dict[Namespace, tuple[PermanentMemory, ...]] = {}

    # -- reading -------------------------------------------------------------------------------------------------

    def active(self, namespaces: Sequence[Namespace]) -> list[PermanentMemory]:
        """What stands in the namespaces: safety limits first, then identity, then profile, each oldest first. From RAM
        after the first time.
        """
        found: list[PermanentMemory] = []
        filled = 0
        for namespace in namespaces:
            known = self._active.get(namespace)
            if known is None:
                known = self._load(namespace)
            if known:
                found.extend(known)
                filled += 1
        return _sorted(found) if filled > 1 else found

    def _load(self, namespace: Namespace) -> tuple[PermanentMemory, ...]:
        commits = self._commits
        with self._transactions.engine.read() as txn:
            standing = tuple(_sorted(e for e in _current(txn, namespace) if e.status == Status.ACTIVE))
        with self._lock:
            if commits == self._commits:
                if len(self._active) >= CACHED_NAMESPACES_MAX:
                    self._active.clear()
                self._active[namespace] = standing
        return standing

    def listed(self, namespaces: Sequence[Namespace], *, include_proposals: bool) -> list[PermanentMemory]:
        """What stands, and what waits for a person when asked for, in the order of `active`."""
        if not include_proposals:
            return self.active(namespaces)
        wanted = (Status.ACTIVE, Status.PENDING)
        with self._transactions.engine.read() as txn:
            return _sorted(e for n in namespaces for e in _current(txn, n) if e.status in wanted)

    def history(self, namespaces: Sequence[Namespace], memory_id: str) -> list[PermanentMemory]:
        """All versions of an entry, newest first. Raises InvalidArgument, NotFound."""
        check_memory_id(memory_id, "memory_id")
        with self._transactions.engine.read() as txn:
            return _entry(txn, namespaces, memory_id)[::-1]

    def holding(self, namespaces: Sequence[Namespace], memory_id: str) -> list[Namespace]:
        """The first of the namespaces that has the entry, as a list of one; of none, an empty list."""
        with self._transactions.engine.read() as txn:
            for namespace in namespaces:
                if memory_id and txn.record(RecordTable.PERMANENT, namespace, memory_id) is not None:
                    return [namespace]
        return []

    # -- proposals -----------------------------------------------------------------------------------------------

    def propose(
        self, owners: Owners, namespace: Namespace, kind: PermanentKind, content: str, reason: str, mutation: Mutation
    ) -> PermanentMemory:
        """A proposal, or the entry that says the same already. Raises InvalidArgument and its kin, ResourceExhausted
        when too many wait.
        """
        return self._propose(owners, namespace, kind, content, reason, "", mutation, again=True)

    def propose_memory(
        self,
        owners: Owners,
        namespaces: Sequence[Namespace],
        namespace: Namespace | None,
        kind: PermanentKind,
        memory_id: str,
        reason: str,
        mutation: Mutation,
    ) -> PermanentMemory:
        """`propose_from_memory` for the memory with this id in one of the namespaces; the proposal goes into
        `namespace`, the memory's own if None. Raises NotFound, NotActive.
        """
        check_memory_id(memory_id, "memory_id")
        with self._transactions.engine.read() as txn:
            memory = find(txn.get, namespaces, memory_id, 0)
        self._check_standing(memory)
        into = namespace or memory.namespace
        return self._propose(owners, into, kind, memory.content, reason, memory_id, mutation, again=True)

    def propose_from_memory(
        self, memory: Memory, kind: PermanentKind, reason: str, mutation: Mutation, *, by_job: bool = False
    ) -> PermanentMemory:
        """Proposes an ordinary memory's statement in its own namespace; or the entry that says the same already. What
        was rejected or removed is proposed again for a caller, never for a job: it then comes back FORGOTTEN.

        Raises NotActive, LimitExceeded for a statement that is too long, SensitiveContent, ResourceExhausted.
        """
        self._check_standing(memory)
        owners = Owners(tenant=memory.namespace.tenant)
        return self._propose(
            owners, memory.namespace, kind, memory.content, reason, memory.memory_id, mutation, again=not by_job
        )

    def _check_standing(self, memory: Memory) -> None:
        status = effective_status(memory, self._transactions.clock_us())
        if status not in RECALLABLE:
            raise NotActive(f"{memory.memory_id} is {status.name}: it can't be proposed", memory_id=memory.memory_id)

    def _propose(
        self,
        owners: Owners,
        namespace: Namespace,
        kind: PermanentKind,
        content: str,
        reason: str,
        proposed_from: str,
        mutation: Mutation,
        *,
        again: bool,
    ) -> PermanentMemory:
        content = self._checked(namespace, content, reason)

        def change(txn: WriteTxn) -> Committed[PermanentMemory]:
            entries = list(_entries(txn, namespace))
            same = _saying(entries, content)
            if same and (same[-1].status != Status.FORGOTTEN or not again):
                return Committed(same[-1], [])
            _check_room(entries, Status.PENDING, PROPOSALS_MAX)
            versions = same or [self._blank(entries, namespace)]
            fields = {"kind": kind, "content": content, "status": Status.PENDING, "proposed_from": proposed_from}
            return self._next(txn, versions, mutation, reason, fields)

        return self._mutate(owners, mutation, change, [namespace])

    def decide(
        self,
        owners: Owners,
        namespaces: Sequence[Namespace],
        memory_id: str,
        accept: bool,
        reason: str,
        mutation: Mutation,
    ) -> PermanentMemory:
        """Accepts or rejects a proposal. Raises NotFound, NotActive for what is none, ResourceExhausted."""
        check_memory_id(memory_id, "memory_id")
        _check_reason(reason)

        def change(txn: WriteTxn) -> Committed[PermanentMemory]:
            versions = _entry(txn, namespaces, memory_id)
            last = versions[-1]
            if last.status != Status.PENDING:
                raise NotActive(f"{memory_id} is {last.status.name}: no proposal that waits", memory_id=memory_id)
            if accept:
                _check_room(list(_entries(txn, last.namespace)), Status.ACTIVE, ACTIVE_MAX)
            status = Status.ACTIVE if accept else Status.FORGOTTEN
            return self._next(txn, versions, mutation, reason, {"status": status})

        return self._mutate(owners, mutation, change, namespaces)

    # -- maintenance ---------------------------------------------------------------------------------------------

    def put(
        self, owners: Owners, namespace: Namespace, kind: PermanentKind, content: str, reason: str, mutation: Mutation
    ) -> PermanentMemory:
        """Writes a permanent memory. The entry that says the same, if there is one, gets the new version; one that
        stands so already is left as it is. Raises InvalidArgument and its kin, ResourceExhausted.
        """
        content = self._checked(namespace, content, reason)

        def change(txn: WriteTxn) -> Committed[PermanentMemory]:
            entries = list(_entries(txn, namespace))
            same = _saying(entries, content)
            if not same or same[-1].status != Status.ACTIVE:
                _check_room(entries, Status.ACTIVE, ACTIVE_MAX)
            elif (same[-1].kind, same[-1].content) == (kind, content):
                return Committed(same[-1], [])
            versions = same or [self._blank(entries, namespace)]
            fields = {"kind": kind, "content": content, "status": Status.ACTIVE}
            return self._next(txn, versions, mutation, reason, fields)

        return self._mutate(owners, mutation, change, [namespace])

    def replace(
        self,
        owners: Owners,
        namespaces: Sequence[Namespace],
        memory_id: str,
        kind: PermanentKind,
        content: str,
        reason: str,
        mutation: Mutation,
    ) -> PermanentMemory:
        """Another wording or kind of a permanent memory that stands. Raises NotFound, NotActive, InvalidArgument when
        another entry says the same.
        """
        check_memory_id(memory_id, "memory_id")
        with self._transactions.engine.read() as txn:
            namespace = _entry(txn, namespaces, memory_id)[-1].namespace
        content = self._checked(namespace, content, reason)

        def change(txn: WriteTxn) -> Committed[PermanentMemory]:
            versions = _entry(txn, [namespace], memory_id)
            last = versions[-1]
            if last.status != Status.ACTIVE:
                raise NotActive(f"{memory_id} is {last.status.name}: put it without memory_id", memory_id=memory_id)
            if (last.kind, last.content) == (kind, content):
                return Committed(last, [])
            same = _saying(_entries(txn, namespace), content)
            if same and same[-1].memory_id != memory_id and same[-1].status != Status.FORGOTTEN:
                raise InvalidArgument(f"{same[-1].memory_id} says the same already", field="content")
            return self._next(txn, versions, mutation, reason, {"kind": kind, "content": content})

        return self._mutate(owners, mutation, change, [namespace])

    def remove(
        self, owners: Owners, namespaces: Sequence[Namespace], memory_id: str, reason: str, mutation: Mutation
    ) -> PermanentMemory:
        """Takes out what stands; its versions are kept. Raises NotFound, NotActive."""
        check_memory_id(memory_id, "memory_id")
        _check_reason(reason)

        def change(txn: WriteTxn) -> Committed[PermanentMemory]:
            versions = _entry(txn, namespaces, memory_id)
            last = versions[-1]
            if last.status != Status.ACTIVE:
                raise NotActive(f"{memory_id} is {last.status.name}: it can't be removed", memory_id=memory_id)
            return self._next(txn, versions, mutation, reason, {"status": Status.FORGOTTEN})

        return self._mutate(owners, mutation, change, namespaces)

    # -- shared --------------------------------------------------------------------------------------------------

    def _checked(self, namespace: Namespace, content: str, reason: str) -> str:
        """The statement as the tenant's policy lets it in, without white space around it."""
        _check_reason(reason)
        content = content.strip()
        check_content(content, CONTENT_MAX_BYTES, "content")
        clean: str = apply(content, self._policies.of(namespace.tenant), "content")
        return clean

    def _mutate(
        self,
        owners: Owners,
        mutation: Mutation,
        change: Callable[[WriteTxn], Committed[PermanentMemory]],
        namespaces: Iterable[Namespace],
    ) -> PermanentMemory:
        try:
            return self._transactions.mutate(owners, mutation, PermanentMemory, change)
        finally:  # after a failed commit too: what is stored then is not known
            self.forget(namespaces)

    def forget(self, namespaces: Iterable[Namespace]) -> None:
        """Drops what is kept in RAM of namespaces that changed."""
        with self._lock:
            self._commits += 1
            for namespace in namespaces:
                self._active.pop(namespace, None)

    def _blank(self, entries: Sequence[list[PermanentMemory]], namespace: Namespace) -> PermanentMemory:
        """What the first version of a new entry is made from; never stored itself."""
        if len(entries) >= ENTRIES_MAX:
            raise ResourceExhausted(
                f"the namespace has {len(entries)} entries, the limit is {ENTRIES_MAX}", limit=str(ENTRIES_MAX)
            )
        return PermanentMemory(
            memory_id=self._minter.mint(),
            version=0,
            namespace=namespace,
            kind=PermanentKind.PROFILE,
            content="",
            status=Status.PENDING,
            create_time_us=self._transactions.clock_us(),
        )

    def _next(
        self,
        txn: WriteTxn,
        versions: list[PermanentMemory],
        mutation: Mutation,
        reason: str,
        fields: dict[str, Any],
    ) -> Committed[PermanentMemory]:
        """Appends a version: the last one's values but for `fields`."""
        last = versions[-1]
        if "content" in fields and last.version >= VERSIONS_MAX:
            raise LimitExceeded(
                f"{last.memory_id} has {last.version} versions, the limit is {VERSIONS_MAX}; use another wording",
                field="memory_id",
                limit=str(VERSIONS_MAX),
            )
        stored = msgspec.structs.replace(
            last,
            version=last.version + 1,
            actor=mutation.actor,
            reason=reason,
            update_time_us=self._transactions.clock_us(),
            **fields,
        )
        kept = [version for version in versions if version.version] + [stored]
        txn.put_record(RecordTable.PERMANENT, last.namespace, stored.memory_id, msgspec.msgpack.encode(kept))
        audit.maintained(
            txn,
            stored.namespace,
            stored.memory_id,
            (last.version, last.content),
            (stored.version, stored.content),
            _change_kind(stored),
            time_us=stored.update_time_us,
            actor=mutation.actor,
            call=mutation.call,
            reason=reason,
        )
        return Committed(stored, [])


def _change_kind(stored: PermanentMemory) -> ChangeKind:
    if stored.version == 1:
        return ChangeKind.CREATED
    return ChangeKind.FORGOTTEN if stored.status == Status.FORGOTTEN else ChangeKind.UPDATED


def is_there(txn: ReadTxn, namespace: Namespace, memory_id: str) -> bool:
    """Whether the namespace has a memory, or an entry of the permanent store, of this id."""
    if txn.get(namespace, memory_id) is not None:
        return True
    return txn.record(RecordTable.PERMANENT, namespace, memory_id) is not None


def erase(txn: WriteTxn, namespace: Namespace, memory_ids: Iterable[str]) -> int:
    """Removes these entries, and those that were proposed from these memories, with all of their versions; returns how
    many. The caller calls `Permanent.forget` after the commit.
    """
    gone = set(memory_ids)
    entries = list(_entries(txn, namespace))
    named = [v[-1].memory_id for v in entries if v[-1].memory_id in gone or any(p.proposed_from in gone for p in v)]
    return sum(txn.drop_record(RecordTable.PERMANENT, namespace, memory_id) for memory_id in named)


def _entries(txn: ReadTxn, namespace: Namespace) -> Iterable[list[PermanentMemory]]:
    """All entries of a namespace, each with its versions, oldest first."""
    for key, raw in txn.records(RecordTable.PERMANENT, namespace):
        yield _decoded(key, raw)


def _current(txn: ReadTxn, namespace: Namespace) -> Iterable[PermanentMemory]:
    for versions in _entries(txn, namespace):
        yield versions[-1]


def _entry(txn: ReadTxn, namespaces: Sequence[Namespace], memory_id: str) -> list[PermanentMemory]:
    for namespace in namespaces:
        raw = txn.record(RecordTable.PERMANENT, namespace, memory_id)
        if raw is not None:
            return _decoded(memory_id, raw)
    raise NotFound(f"no permanent memory {memory_id} in the namespaces of the given owners", memory_id=memory_id)


def _decoded(key: str, raw: bytes) -> list[PermanentMemory]:
    try:
        versions = _DECODER.decode(raw)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"permanent memory {key} can't be read; run `memsvc verify`") from error
    if not versions:
        raise StoreCorrupt(f"permanent memory {key} has no version; run `memsvc verify`")
    return versions


def _saying(entries: Iterable[list[PermanentMemory]], content: str) -> list[PermanentMemory]:
    """The versions of the entry that says the same, or none; one that stands or waits before one that is gone."""
    wanted = _same_statement(content)
    found = [versions for versions in entries if _same_statement(versions[-1].content) == wanted]
    return min(found, key=lambda v: (v[-1].status == Status.FORGOTTEN, v[-1].memory_id), default=[])


def _same_statement(text: str) -> str:
    """What two wordings share that differ in case, width, spaces and the full stop alone."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".。!；; ")


def _check_room(entries: list[list[PermanentMemory]], status: Status, limit: int) -> None:
    count = sum(versions[-1].status == status for versions in entries)
    if count >= limit:
        what = "permanent memories" if status == Status.ACTIVE else "proposals that wait"
        fix = "remove one" if status == Status.ACTIVE else "decide some"
        raise ResourceExhausted(f"the namespace has {count} {what}, the limit is {limit}; {fix}", limit=str(limit))


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise InvalidArgument("reason is empty; say why, it is kept for audit", field="reason")
    check_length(reason, REASON_MAX_CHARS, "reason")


def _sorted(entries: Iterable[PermanentMemory]) -> list[PermanentMemory]:
    return sorted(entries, key=lambda e: (_ORDER[e.kind], e.create_time_us, e.memory_id))
