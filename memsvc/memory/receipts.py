"""Receipts of purges: the durable intent while one runs, the proof when it is done.

Purpose: one record a purge, in the tenant's GLOBAL namespace, which no purge of an owner removes. A record that is
STARTED is an order: whoever finds it, after a crash too, carries it out. A receipt names owners, ids and the reason in
the words of who asked; it holds no content.

Threading: functions over the transaction that is passed in.

Rejected: a file beside the store (two truths after a crash); owners as hashes (who must prove an erasure has to show
whose it was).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import IntEnum

import msgspec

from memsvc.errors import StoreCorrupt
from memsvc.memory.audit import tenant_chain
from memsvc.model import Namespace
from memsvc.storage.engine import ErasedCounts, ReadTxn, RecordTable, WriteTxn


class PurgeState(IntEnum):
    """Where a purge is; numbers equal the contract's."""

    STARTED = 1
    DONE = 2


class Receipt(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """See the module. Times are UTC microseconds, 0 for not yet; `hash` is that of all other fields. New fields go at
    the end.
    """

    receipt_id: str
    tenant: str
    actor: str
    call: str
    reason: str
    namespaces: tuple[Namespace, ...]
    memory_ids: tuple[str, ...] = ()
    request_id: str = ""
    fingerprint: bytes = b""
    state: PurgeState = PurgeState.STARTED
    start_time_us: int = 0
    end_time_us: int = 0
    erased: ErasedCounts = ErasedCounts()
    session_count: int = 0
    answer_count: int = 0
    hash: str = ""


_DECODER = msgspec.msgpack.Decoder(Receipt)


def hashed(receipt: Receipt) -> Receipt:
    """The receipt with its hash: SHA-256 of its msgpack form without one."""
    bare = msgspec.structs.replace(receipt, hash="")
    return msgspec.structs.replace(bare, hash=hashlib.sha256(msgspec.msgpack.encode(bare)).hexdigest())


def put(txn: WriteTxn, receipt: Receipt) -> None:
    """Writes a receipt."""
    raw = msgspec.msgpack.encode(receipt)
    txn.put_record(RecordTable.ERASURE, tenant_chain(receipt.tenant), receipt.receipt_id, raw)


def get(txn: ReadTxn, tenant: str, receipt_id: str) -> Receipt | None:
    """A receipt, or None. Raises StoreCorrupt."""
    raw = txn.record(RecordTable.ERASURE, tenant_chain(tenant), receipt_id) if receipt_id else None
    return None if raw is None else _decoded(receipt_id, raw)


def of_tenant(txn: ReadTxn, tenant: str) -> Iterator[Receipt]:
    """Every receipt of a tenant, in no particular order. Raises StoreCorrupt."""
    return (_decoded(key, raw) for key, raw in txn.records(RecordTable.ERASURE, tenant_chain(tenant)))


def every(txn: ReadTxn) -> Iterator[Receipt]:
    """Every receipt. Raises StoreCorrupt."""
    return (_decoded(key, raw) for _, key, raw in txn.all_records(RecordTable.ERASURE))


def _decoded(key: str, raw: bytes) -> Receipt:
    try:
        return _DECODER.decode(raw)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"receipt {key} can't be read; run `memsvc verify`") from error
