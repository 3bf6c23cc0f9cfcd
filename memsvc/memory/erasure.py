"""Purge: removes every trace of owners or of single memories, and leaves a receipt.

Purpose: what was committed before a purge is gone when it answers: rows of the store, its free pages, saved segments,
journals of sessions, what the process holds in RAM. What is written while it runs is new, and stays.

Stages; a crash in any leaves the STARTED receipt, which the next start carries out from the beginning (each stage may
be repeated):

    asked       the receipt is durable, state STARTED, with its entry in the audit of the tenant
    sessions    open sessions of the owners are dropped, their journals wiped
    erased      rows are erased in one transaction, with the counts in the receipt
    segments    saved segments are wiped
    rewritten   the store's file is made anew, the old one wiped
    done        the receipt is DONE, with its hash in the audit

Threading: any number of threads; purges take turns. Nothing moves from sessions to long-term layers meanwhile.

Rejected: a mark that hides until a nightly job erases (the promise would be the job's); refusing writes meanwhile (a
rewrite may take a minute, and what is said then was not asked to be erased).
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from urllib.parse import quote

import msgspec

from memsvc.errors import InvalidArgument, LimitExceeded, NotFound, RequestIdReused
from memsvc.memory import audit, page_tokens, permanent, receipts
from memsvc.memory.drafts import REASON_MAX_CHARS, check_length, check_memory_id
from memsvc.memory.feed import ChangeFeed
from memsvc.memory.owners import DEFAULT_TENANT, Owners, check, namespace_for, reached_by
from memsvc.memory.periodic import Periodic
from memsvc.memory.receipts import PurgeState, Receipt, hashed
from memsvc.memory.sessions.sessions import Sessions
from memsvc.memory.transactions import Committed, Mutation, Transactions
from memsvc.model import ChangeKind, Namespace, Scope, Status
from memsvc.retrieval.segments import Applied, SegmentStore
from memsvc.storage.engine import ErasedCounts, ReadTxn, RecordTable, WriteTxn

LOG = logging.getLogger("memsvc.erasure")
IDS_MAX = 1000
RETRY_EVERY_S = 30.0
STARTED = "STARTED"  # outcome of the audit's entry at the beginning
_OWNED = (Scope.USER, Scope.PROJECT, Scope.AGENT, Scope.SESSION)
_ID = re.compile(rb"mem_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Erasure:
    """See the module. `paused()` keeps sessions from being consolidated; `forget(namespaces)` drops what the process
    holds of texts.
    """

    def __init__(
        self,
        transactions: Transactions,
        segments: SegmentStore,
        feed: ChangeFeed,
        sessions: Sessions,
        *,
        paused: Callable[[], AbstractContextManager[None]],
        forget: Callable[[Sequence[Namespace]], None],
        make_id: Callable[[], str],
    ) -> None:
        self._transactions = transactions
        self._engine = transactions.engine
        self._segments = segments
        self._feed = feed
        self._sessions = sessions
        self._paused = paused
        self._forget = forget
        self._make_id = make_id
        self._clock_us = transactions.clock_us
        self._turn = threading.Lock()
        self._retrying = Periodic(
            "erasure", self.resume, every_s=RETRY_EVERY_S, log=LOG, failure="a purge is not done yet and is tried again"
        )

    # -- calls ---------------------------------------------------------------------------------------------------

    def purge(
        self,
        owners: Owners,
        scopes: Sequence[Scope],
        memory_ids: Sequence[str],
        reason: str,
        mutation: Mutation,
        *,
        dry_run: bool = False,
    ) -> Receipt:
        """Erases; returns when nothing is left. A replayed request_id returns its first receipt. `dry_run` erases
        nothing, and counts what there is.

        Raises InvalidArgument and its kin, NotFound when nothing of it is there, RequestIdReused, and what the store
        raises: the purge is then carried out later by itself.
        """
        check(owners)
        if not reason.strip():
            raise InvalidArgument("reason is empty; say why, it is kept in the receipt", field="reason")
        check_length(reason, REASON_MAX_CHARS, "reason")
        with self._turn:
            known = None if dry_run else self._known(owners.tenant or DEFAULT_TENANT, mutation)
            if known is not None:
                return known if known.state == PurgeState.DONE else self._carry_out(known)
            wanted = self._wanted(owners, scopes, memory_ids, reason, mutation)
            if dry_run:
                return self._counted(wanted)
            self._engine.write(lambda txn: self._begin(txn, wanted))
            return self._carry_out(wanted)

    def get(self, tenant: str, receipt_id: str) -> Receipt:
        """A receipt. Raises NotFound."""
        with self._engine.read() as txn:
            found = receipts.get(txn, tenant, receipt_id)
        if found is None:
            raise NotFound(f"no receipt {receipt_id}", receipt_id=receipt_id)
        return found

    def page(self, tenant: str, size: int, page_token: str) -> tuple[list[Receipt], str]:
        """Receipts of a tenant, newest first, and the next token. Raises InvalidArgument."""
        with self._engine.read() as txn:
            found = list(receipts.of_tenant(txn, tenant))
        return page_tokens.newest_first("receipts", found, lambda r: (r.receipt_id,), size, page_token, tuple[str])

    # -- behind the calls ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Carries out what a crash left, and begins to try again now and then what could not be done."""
        self.resume()
        self._retrying.start()

    def close(self) -> None:
        """Stops trying."""
        self._retrying.close()

    def resume(self) -> int:
        """Carries out every purge that is not done; returns how many. Raises what the store raises."""
        with self._turn:
            with self._engine.read() as txn:
                left = [receipt for receipt in receipts.every(txn) if receipt.state == PurgeState.STARTED]
            for receipt in left:
                LOG.info("purge %s goes on", receipt.receipt_id)
                self._carry_out(receipt)
            return len(left)

    # -- what is wanted --------------------------------------------------------------------------------------------

    def _known(self, tenant: str, mutation: Mutation) -> Receipt | None:
        if not mutation.request_id:
            return None
        with self._engine.read() as txn:
            first = next((r for r in receipts.of_tenant(txn, tenant) if r.request_id == mutation.request_id), None)
        if first is not None and first.fingerprint != mutation.fingerprint:
            raise RequestIdReused(
                "request_id was used for another request; make a fresh UUID for each mutation", field="request_id"
            )
        return first

    def _wanted(
        self, owners: Owners, scopes: Sequence[Scope], memory_ids: Sequence[str], reason: str, mutation: Mutation
    ) -> Receipt:
        with self._engine.read() as txn:
            if memory_ids:
                namespaces = self._of_ids(txn, owners, scopes, memory_ids)
            else:
                namespaces = self._of_owners(txn, owners, scopes)
        return Receipt(
            receipt_id=self._make_id(),
            tenant=owners.tenant or DEFAULT_TENANT,
            actor=mutation.actor,
            call=mutation.call,
            reason=reason,
            namespaces=tuple(namespaces),
            memory_ids=tuple(dict.fromkeys(memory_ids)),
            request_id=mutation.request_id,
            fingerprint=mutation.fingerprint,
            start_time_us=self._clock_us(),
        )

    def _of_ids(
        self, txn: ReadTxn, owners: Owners, scopes: Sequence[Scope], memory_ids: Sequence[str]
    ) -> list[Namespace]:
        """Where the memories are. Raises NotFound for an id that is nowhere."""
        if scopes:
            raise InvalidArgument("give memory_ids or scopes, not both", field="scopes")
        if len(memory_ids) > IDS_MAX:
            raise LimitExceeded(
                f"memory_ids has {len(memory_ids)} entries, the limit is {IDS_MAX}",
                field="memory_ids",
                limit=str(IDS_MAX),
            )
        found: dict[Namespace, None] = {}
        for i, memory_id in enumerate(memory_ids):
            check_memory_id(memory_id, f"memory_ids[{i}]")
            holding = [name for name in reached_by(owners) if permanent.is_there(txn, name, memory_id)]
            if not holding:
                raise NotFound(f"no memory {memory_id} in the namespaces of the given owners", memory_id=memory_id)
            found.update(dict.fromkeys(holding))
        return list(found)

    def _of_owners(self, txn: ReadTxn, owners: Owners, scopes: Sequence[Scope]) -> list[Namespace]:
        """The owners' namespaces, a user's sessions among them."""
        if Scope.GLOBAL in scopes:
            raise InvalidArgument("scope GLOBAL is purged by memory_ids only", field="scopes")
        named = [scope for scope in _OWNED if getattr(owners, f"{scope.name.lower()}_id") is not None]
        if not (scopes or named):
            raise InvalidArgument(
                "name whom to purge: owners.user_id, project_id, agent_id or session_id", field="owners"
            )
        if not scopes and owners.session_id is not None:
            named = [Scope.SESSION]  # a session's owners are named to say whose it is
        namespaces = dict.fromkeys(namespace_for(owners, scope) for scope in scopes or named)
        for namespace in list(namespaces):
            if namespace.scope == Scope.USER:
                prefix = quote(namespace.owner, safe="") + "/"
                namespaces.update(
                    (head.namespace, None)
                    for head in txn.heads()
                    if (head.namespace.tenant, head.namespace.scope) == (namespace.tenant, Scope.SESSION)
                    and head.namespace.owner.startswith(prefix)
                )
        return list(namespaces)

    def _counted(self, wanted: Receipt) -> Receipt:
        """The receipt with what there is now; its id is empty."""
        counts = ErasedCounts()
        with self._engine.read() as txn:
            for namespace in wanted.namespaces:
                head = txn.head(namespace)
                if wanted.memory_ids:
                    versions = [n for i in wanted.memory_ids if (n := len(txn.versions(namespace, i)))]
                    counts += ErasedCounts(len(versions), sum(versions))
                elif head is not None:
                    records = sum(1 for table in RecordTable for _ in txn.records(table, namespace))
                    counts += ErasedCounts(head.memory_count, head.sequence, 0, records)
        sessions = [] if wanted.memory_ids else self._sessions.of(wanted.namespaces)
        return msgspec.structs.replace(wanted, receipt_id="", erased=counts, session_count=len(sessions))

    # -- carrying out ----------------------------------------------------------------------------------------------

    def _begin(self, txn: WriteTxn, wanted: Receipt) -> None:
        receipts.put(txn, wanted)
        audit.purged(txn, wanted.tenant, wanted.receipt_id, "", STARTED, self._clock_us(), wanted.actor, wanted.call)

    def _carry_out(self, receipt: Receipt) -> Receipt:
        """All stages. The caller holds `_turn`."""
        namespaces = receipt.namespaces
        with self._paused():
            if not receipt.memory_ids:
                receipt = self._drop_sessions(receipt)
            with self._segments.erasing():
                self._engine.write(lambda txn: self._erase(txn, receipt), on_commit=self._follow)
            for namespace in namespaces:
                self._segments.wipe(namespace)
            self._engine.rewrite()
        self._forget(namespaces)  # again: snapshots of before are closed now
        return self._engine.write(lambda txn: self._end(txn, receipt))

    def _drop_sessions(self, receipt: Receipt) -> Receipt:
        gone = self._sessions.of(receipt.namespaces)
        for namespace in gone:
            self._sessions.drop(namespace, is_wiped=True)
        return msgspec.structs.replace(receipt, session_count=receipt.session_count + len(gone))

    def _erase(self, txn: WriteTxn, receipt: Receipt) -> Committed[Receipt]:
        counts = ErasedCounts()
        changes: list[Applied] = []
        ids = {raw.encode() for raw in receipt.memory_ids}
        owners = (
            [] if receipt.memory_ids else [name.owner.encode("utf-8", "surrogatepass") for name in receipt.namespaces]
        )
        for namespace in receipt.namespaces:
            if receipt.memory_ids:
                counts += self._erase_ids(txn, namespace, receipt, changes)
            else:
                ids.update(memory.memory_id.encode() for memory in txn.scan(namespace))
                counts += txn.erase_namespace(namespace)

        def is_kept(answer: bytes) -> bool:
            named = set(_ID.findall(answer))
            return bool(named) and not named & ids and not any(owner in answer for owner in owners)

        answers = txn.erase_answers(receipt.tenant, is_kept)
        stored = msgspec.structs.replace(
            receipt, erased=receipt.erased + counts, answer_count=receipt.answer_count + answers
        )
        receipts.put(txn, stored)
        return Committed(stored, changes)

    def _erase_ids(self, txn: WriteTxn, namespace: Namespace, receipt: Receipt, changes: list[Applied]) -> ErasedCounts:
        """Blanks the memories, and tells of each in log and audit."""
        mutation = Mutation("", b"", receipt.actor, receipt.call)
        standing = [i for i in receipt.memory_ids if (m := txn.get(namespace, i)) and m.status != Status.PURGED]
        counts = txn.erase_memories(namespace, standing)
        entries = permanent.erase(txn, namespace, receipt.memory_ids)
        for memory_id in standing:
            before = txn.get(namespace, memory_id)
            assert before is not None
            told = msgspec.structs.replace(before, update_time_us=self._clock_us())
            self._transactions.put(txn, told, None, ChangeKind.PURGED, mutation, "", changes, before)
        return counts + ErasedCounts(records=entries)

    def _follow(self, committed: Committed[Receipt]) -> None:
        """After the commit: nobody finds it any more, watchers hear of it."""
        receipt = committed.result
        self._segments.forget(receipt.namespaces)
        self._forget(receipt.namespaces)
        if receipt.memory_ids:
            self._feed.notify(receipt.namespaces)
        else:
            self._feed.end(receipt.namespaces)

    def _end(self, txn: WriteTxn, receipt: Receipt) -> Receipt:
        stored = receipts.get(txn, receipt.tenant, receipt.receipt_id)
        assert stored is not None, "a receipt is never removed"
        done = hashed(msgspec.structs.replace(stored, state=PurgeState.DONE, end_time_us=self._clock_us()))
        receipts.put(txn, done)
        audit.purged(txn, done.tenant, done.receipt_id, done.hash, "", done.end_time_us, done.actor, done.call)
        return done
