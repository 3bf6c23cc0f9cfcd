"""The audit: who changed what, in the change's own transaction.

Purpose: makes the entries of changes. `changed` is called by `transactions.put`, which every version of a memory goes
through; the permanent store and the register of tokens call theirs. `audit_reader.py` reads and checks them.

What belongs to a tenant and to no owner goes into the chain of the tenant's GLOBAL namespace. The audit holds no
content, no query and no reason in words. Working memory of open sessions is not in it: it ends with its session.

Threading: pure functions over the transaction that is passed in.

Rejected: reading the entries from the change log later (an audit that is behind when the process is killed); the change
log as the audit (it holds reasons and evidence in words).
"""

from __future__ import annotations

import hashlib

from memsvc.model import AuditEntry, AuditKind, ChangeKind, Memory, Namespace, Scope, content_hash
from memsvc.storage.engine import Engine, WriteTxn

DETAIL_HASH_CHARS = 32
ACTOR = "audit"  # of entries about the audit itself
BEGINS = "BEGINS"  # outcome of the entry that says which changes are older than the audit
META_BEGUN = "audit_begun"


def begin(engine: Engine, now_us: int) -> int:
    """Once in a store's life: a namespace whose changes are older than the audit gets an entry that says up to which
    sequence. Every later change has an entry of its own. Returns how many namespaces that were.
    """
    with engine.read() as txn:
        if txn.meta(META_BEGUN) is not None:
            return 0

    def begin_all(txn: WriteTxn) -> int:
        older = [head for head in txn.heads() if head.sequence]
        for head in older:
            entry = AuditEntry(
                kind=AuditKind.ADMIN,
                time_us=now_us,
                actor=ACTOR,
                call=ACTOR,
                outcome=BEGINS,
                sequence=head.sequence,
            )
            txn.append_audit(head.namespace, entry)
        txn.put_meta(META_BEGUN, str(now_us).encode())
        return len(older)

    return engine.write(begin_all)


def tenant_chain(tenant: str) -> Namespace:
    """Whose chain takes what belongs to a tenant and to no owner."""
    return Namespace(tenant, Scope.GLOBAL, "")


def changed(txn: WriteTxn, stored: Memory, kind: ChangeKind, actor: str, call: str, reason: str) -> None:
    """The entry of a change that the change log has."""
    txn.append_audit(
        stored.namespace,
        AuditEntry(
            kind=AuditKind.CHANGE,
            time_us=stored.update_time_us,
            actor=actor,
            call=call,
            memory_ids=(stored.memory_id,),
            count=1,
            sequence=stored.sequence,
            change=kind,
            reason_hash=reason_hash(reason),
        ),
    )


def maintained(
    txn: WriteTxn,
    namespace: Namespace,
    memory_id: str,
    before: tuple[int, str],
    after: tuple[int, str],
    kind: ChangeKind,
    *,
    time_us: int,
    actor: str,
    call: str,
    reason: str,
) -> None:
    """The entry of a change of the permanent store, with version and content hash before and after: (0, "") for none.
    The content itself is in that store's own history.
    """
    told = [version_text(memory_id, *version) for version in (before, after)]
    txn.append_audit(
        namespace,
        AuditEntry(
            kind=AuditKind.CHANGE,
            time_us=time_us,
            actor=actor,
            call=call,
            memory_ids=(memory_id,),
            count=1,
            change=kind,
            detail=f"permanent before={told[0]} after={told[1]}",
            reason_hash=reason_hash(reason),
        ),
    )


def version_text(memory_id: str, version: int, content: str) -> str:
    """A version of the permanent store in an audit's detail: number and hash; the id in the hash keeps equal contents
    of two entries from looking equal.
    """
    if not version:
        return "none"
    digest = hashlib.sha256(f"{memory_id} {version} {content}".encode("utf-8", "surrogatepass"))
    return f"v{version}:{digest.hexdigest()[:DETAIL_HASH_CHARS]}"


def token_changed(txn: WriteTxn, tenant: str, token_id: str, actor: str, call: str, time_us: int) -> None:
    """The entry of a token that was issued or revoked."""
    entry = AuditEntry(kind=AuditKind.ADMIN, time_us=time_us, actor=actor, call=call, detail=f"token {token_id}")
    txn.append_audit(tenant_chain(tenant), entry)


def purged(
    txn: WriteTxn, tenant: str, receipt_id: str, receipt_hash: str, outcome: str, time_us: int, actor: str, call: str
) -> None:
    """The entries of a purge, at its beginning and at its end. They stand in the tenant's chain: that of a purged owner
    goes with the owner.
    """
    detail = f"receipt {receipt_id}" + (f" sha256={receipt_hash}" if receipt_hash else "")
    entry = AuditEntry(kind=AuditKind.ADMIN, time_us=time_us, actor=actor, call=call, outcome=outcome, detail=detail)
    txn.append_audit(tenant_chain(tenant), entry)


def reason_hash(reason: str) -> bytes:
    """What the audit keeps of a reason."""
    return content_hash(reason) if reason else b""
