"""What LMDB and the system say, in the words of `memsvc.errors`.

Purpose: one place that tells a full disk from a failing one and a damaged file from a wrong call.

Threading: pure functions.

Rejected: letting `lmdb.Error` out of the room (callers may not import lmdb, so they could only catch everything).
"""

from __future__ import annotations

import errno
import os

import lmdb

from memsvc.errors import MemsvcError, ResourceExhausted, StorageFailure, StorageFull, StoreCorrupt

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_TEXTS = tuple(os.strerror(number) for number in _FULL)
DAMAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError)
# Failures of one operation: its child transaction can be undone and the group goes on.
OF_ONE_OPERATION = (
    lmdb.BadValsizeError,
    lmdb.CorruptedError,
    lmdb.CursorFullError,
    lmdb.PageNotFoundError,
    lmdb.TxnFullError,
)


def storage_error(error: Exception, what: str) -> MemsvcError:
    """The memsvc error for an `lmdb.Error` or OSError met while doing `what` (an infinitive: "commit", "open").

    py-lmdb keeps the text of the errno and not its number, so that the text decides.
    """
    text = str(error)
    code = error.errno if isinstance(error, OSError) else None
    if code in _FULL or any(full in text for full in _FULL_TEXTS):
        return StorageFull(f"the disk is full: {what} stored nothing; free space and try again")
    if isinstance(error, DAMAGE):
        return StoreCorrupt(f"the store is damaged ({text}); run `memsvc verify`, or restore a backup")
    if isinstance(error, lmdb.TxnFullError):
        return ResourceExhausted("too many changes for one transaction; send smaller batches")
    if isinstance(error, lmdb.ReadersFullError):
        return ResourceExhausted("too many snapshots are open at once; close some and try again")
    return StorageFailure(f"the store failed to {what}: {text}")
