"""The audit table of the LMDB store.

Purpose: entries by (namespace, number), appended with their hash, read in order, checked by `memsvc verify`. The hash
of the entry before is not stored twice: it is that entry's.

    audit       namespace, number            -> entry with its hash

Threading: as the transaction that is passed in.

Rejected: a row for the head (a second truth; the last key is found by one seek).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from memsvc.errors import InvalidArgument, MemsvcError, StoreCorrupt
from memsvc.model import AUDIT_IDS_MAX, AuditEntry, AuditKind, ChangeKind, Namespace
from memsvc.storage import codec
from memsvc.storage.audit_chain import ChainCheck, entry_hash, first_hash
from memsvc.storage.engine import AuditHead, VerifyProblem

if TYPE_CHECKING:
    from memsvc.storage.lmdb_tables import LmdbReadTxn

TABLE = "audit"
KEY_BYTES = codec.NAMESPACE_BYTES + 8
_NEWEST = codec.pack_u64(codec.MAX_U64)


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """An entry as it is stored: its number is in the key, its ids are 16 bytes each. New fields go at the end."""

    kind: AuditKind
    time_us: int
    actor: str
    call: str
    outcome: str
    ids: bytes
    count: int
    sequence: int
    change: ChangeKind | None
    detail: str
    reason_hash: bytes
    hash: bytes


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Row)


def entries(txn: LmdbReadTxn, namespace: Namespace, after: int, limit: int) -> list[AuditEntry]:
    """See `ReadTxn.audit`."""
    number = txn._number(namespace)
    found: list[AuditEntry] = []
    if number is None or limit <= 0 or after >= codec.MAX_U64:
        return found
    with txn._txn.cursor(txn._db[TABLE]) as cursor:
        if cursor.set_range(number + codec.pack_u64(max(after, 0) + 1)):
            for key, raw in cursor.iternext():
                if not key.startswith(number):
                    break
                found.append(_decoded(key, raw))
                if len(found) == limit:
                    break
    return found


def head(txn: LmdbReadTxn, namespace: Namespace) -> AuditHead | None:
    """See `ReadTxn.audit_head`."""
    number = txn._number(namespace)
    return None if number is None else _head(txn, number)


def _head(txn: LmdbReadTxn, number: bytes) -> AuditHead | None:
    with txn._txn.cursor(txn._db[TABLE]) as cursor:
        found = cursor.set_range(number + _NEWEST)
        if not (cursor.prev() if found else cursor.last()) or not cursor.key().startswith(number):
            return None
        entry = _decoded(cursor.key(), cursor.value())
    return AuditHead(entry.number, entry.hash)


def chained(before: AuditHead | None, namespace: Namespace, entry: AuditEntry) -> AuditEntry:
    """The entry with its number and hash. Raises InvalidArgument for one that no store takes."""
    if len(entry.memory_ids) > AUDIT_IDS_MAX:
        raise InvalidArgument(f"an audit entry holds at most {AUDIT_IDS_MAX} ids", field="memory_ids")
    number, previous = (0, first_hash(namespace)) if before is None else (before.number, before.hash)
    numbered = msgspec.structs.replace(entry, number=number + 1)
    return msgspec.structs.replace(numbered, hash=entry_hash(previous, numbered))


def row(entry: AuditEntry) -> bytes:
    """The entry as it is stored. Raises InvalidArgument for an id that is none and a number that does not fit."""
    ids = b"".join([codec.id_bytes(memory_id) for memory_id in entry.memory_ids])
    e = entry
    stored = _Row(
        *(e.kind, e.time_us, e.actor, e.call, e.outcome, ids, e.count, e.sequence),
        *(e.change, e.detail, e.reason_hash, e.hash),
    )
    try:
        return _encode(stored)
    except OverflowError as error:
        raise InvalidArgument("an integer does not fit into 64 bits") from error


def _decoded(key: bytes, raw: bytes) -> AuditEntry:
    try:
        kept = _decoder.decode(raw)
        if len(key) != KEY_BYTES or len(kept.ids) % codec.ID_BYTES:
            raise StoreCorrupt("an audit entry is damaged; run `memsvc verify`")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreCorrupt("an audit entry can't be decoded; run `memsvc verify`") from error
    ids, size = kept.ids, codec.ID_BYTES
    return AuditEntry(
        kind=kept.kind,
        time_us=kept.time_us,
        actor=kept.actor,
        call=kept.call,
        outcome=kept.outcome,
        memory_ids=tuple(codec.id_text(ids[at : at + size]) for at in range(0, len(ids), size)),
        count=kept.count,
        sequence=kept.sequence,
        change=kept.change,
        detail=kept.detail,
        reason_hash=kept.reason_hash,
        number=codec.unpack_u64(key[codec.NAMESPACE_BYTES :]),
        hash=kept.hash,
    )


def verify(txn: LmdbReadTxn, number: bytes, namespace: Namespace) -> Iterator[VerifyProblem]:
    """The first entry of a namespace's chain that is broken."""
    check = ChainCheck(namespace)
    for key, raw in txn._prefixed(TABLE, number):
        try:
            problem = check.problem(_decoded(key, raw))
        except MemsvcError as error:
            problem = error.message
        if problem:
            yield VerifyProblem(f"{TABLE} {key.hex()}", problem)
            return
