"""Files of a store that is made anew: which is which, and what a crash leaves.

Purpose: LMDB leaves what was deleted in free pages, and in the gaps of those in use. A copy row by row has neither; it
takes the file's place, and the old file is wiped. Stages, and what the next open finds after a crash in each:

    copying       data.mdb, part of FRESH_FILE         -> FRESH_FILE is wiped, the store is as it was
    OLD_FILE made data.mdb == OLD_FILE, FRESH_FILE     -> the second name goes, FRESH_FILE is wiped
    swapped       data.mdb (fresh), OLD_FILE           -> OLD_FILE is wiped
    wiping        data.mdb (fresh), part of OLD_FILE   -> OLD_FILE is wiped

Threading: the caller owns the directory (its lock file), and has closed the environment for `swap`.

Rejected: zeroing free pages in place (LMDB's own free list would have to be read, and a crash in between corrupts);
LMDB's compact copy (it copies gaps with what was deleted there: a test found it).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memsvc.storage.wipe import wipe

DATA_FILE = "data.mdb"
FRESH_FILE = "data.mdb.fresh"
OLD_FILE = "data.mdb.old"
BLOCK_BYTES = 16 << 20  # of rows in a transaction: what LMDB keeps of it in memory


def copy_rows(env: Any, tables: Mapping[str, Any], fresh: Any) -> None:
    """Copies all rows of an `lmdb.Environment` into an empty one, and brings it to the disk. Raises lmdb.Error."""
    copies = {name: fresh.open_db(name.encode()) for name in tables}
    with env.begin() as txn:
        for name, table in tables.items():
            with txn.cursor(table) as cursor:
                rows = cursor.iternext()
                while block := list(_block(rows)):
                    with fresh.begin(write=True) as copy:
                        copy.cursor(copies[name]).putmulti(block, append=True)
    fresh.sync(True)


def _block(rows: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The next rows, about BLOCK_BYTES of them."""
    left = BLOCK_BYTES
    for row in rows:
        yield row
        left -= len(row[0]) + len(row[1])
        if left <= 0:
            return


def swap(directory: Path) -> None:
    """Puts FRESH_FILE in place of the store's; the old one is OLD_FILE then. Raises OSError."""
    data = directory / DATA_FILE
    os.link(data, directory / OLD_FILE)
    os.replace(directory / FRESH_FILE, data)
    sync_directory(directory)


def finish(directory: Path) -> None:
    """Wipes what a rewrite, whole or not, left beside the store. Raises OSError."""
    data, old = directory / DATA_FILE, directory / OLD_FILE
    wipe(directory / FRESH_FILE)
    if old.exists():
        if data.exists() and old.samefile(data):
            old.unlink()  # a crash before the swap: two names of the file that counts
        else:
            wipe(old)
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Brings the directory's entries to the disk. Raises OSError."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
