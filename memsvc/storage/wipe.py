"""Files that must leave nothing behind: overwritten with zeros, synced, then removed.

Purpose: what `Purge` removes is not to be read from the disk's free blocks by whoever opens the file system next. A
file system that copies on write, a snapshot of the volume and a flash drive's spare cells keep what they keep: only the
volume's own encryption helps there.

Threading: pure functions over paths that nobody else writes.

Rejected: several passes of patterns (they answered drives of the nineties), `shred` (not everywhere, and a process).
"""

from __future__ import annotations

import os
from pathlib import Path

_ZEROS = bytes(1 << 20)


def wipe(path: Path) -> bool:
    """Overwrites a file with zeros, syncs it and removes it; False where there is none. Another name of the same file
    would be zeroed with it: the caller sees to that. Raises OSError.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        left = os.fstat(fd).st_size
        while left > 0:
            left -= os.write(fd, _ZEROS[: min(left, len(_ZEROS))])
        os.fsync(fd)
    finally:
        os.close(fd)
    path.unlink()
    return True
