"""The chain of hashes over a namespace's audit: how an entry is hashed, and how a chain is checked.

Purpose: one definition that the store, `memsvc audit verify` and whoever checks an export share. An entry's hash is

    SHA-256( netstring(f1) + netstring(f2) + ... )        netstring(x) = decimal length of x in bytes ":" x ","

over the UTF-8 texts of these fields, in this order:

    "memsvc-audit-1", previous hash, number, time, kind, actor, call, outcome, memory ids joined by ",", count,
    sequence, change, detail, reason hash

Hashes are lower-case hex, numbers decimal, the time is UTC microseconds since 1970, kind and change are the names of
their enums (change is "" where there is none). The hash before entry 1 names whose chain it is: SHA-256 of the
netstrings of "memsvc-audit-1", tenant, name of the scope, owner. What changes any of this gets another first field.

A chain shows every entry that was altered, removed, moved or put in. It can't show that its tail was cut off, or that
all of it was written anew: for that, keep a head (number and hash) elsewhere and compare.

Threading: pure functions; a `ChainCheck` belongs to one thread.

Rejected: JSON or msgpack as the hashed form (spellings of the same value differ between libraries); a Merkle tree (an
audit is read from one end to the other).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from memsvc.errors import InvalidArgument
from memsvc.model import AuditEntry, Namespace

FORM = "memsvc-audit-1"
HASH_BYTES = 32


def _netstrings(texts: Iterable[str]) -> bytes:
    raws = [text.encode("utf-8") for text in texts]
    return b"".join([b"%d:%b," % (len(raw), raw) for raw in raws])


def first_hash(namespace: Namespace) -> bytes:
    """The hash before a chain's first entry."""
    names = (FORM, namespace.tenant, namespace.scope.name, namespace.owner)
    return hashlib.sha256(_netstrings(names)).digest()


def entry_hash(previous: bytes, entry: AuditEntry) -> bytes:
    """The hash of an entry behind another one. Raises InvalidArgument for a text that is not Unicode."""
    texts = (
        FORM,
        previous.hex(),
        str(entry.number),
        str(entry.time_us),
        entry.kind.name,
        entry.actor,
        entry.call,
        entry.outcome,
        ",".join(entry.memory_ids),
        str(entry.count),
        str(entry.sequence),
        "" if entry.change is None else entry.change.name,
        entry.detail,
        entry.reason_hash.hex(),
    )
    try:
        return hashlib.sha256(_netstrings(texts)).digest()
    except UnicodeEncodeError as error:
        raise InvalidArgument("a text of the audit holds a lone surrogate") from error


class ChainCheck:
    """Checks a chain entry by entry, from its first on. `number` and `hash` are the last good entry's."""

    def __init__(self, namespace: Namespace) -> None:
        self.number = 0
        self.hash = first_hash(namespace)

    def problem(self, entry: AuditEntry) -> str:
        """What is wrong with the next entry; "" for nothing. After a problem the check is of no use."""
        if entry.number != self.number + 1:
            return f"number {entry.number} follows {self.number}"
        if entry.hash != entry_hash(self.hash, entry):
            return "its hash does not follow from it and the entry before"
        self.number, self.hash = entry.number, entry.hash
        return ""
