"""A process that erases and rewrites a store and is killed at a stage: `python rewrite_child.py STAGE DIRECTORY`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmdb_samples import NS

from memsvc.storage import lmdb_rewrite, wipe
from memsvc.storage.lmdb_engine import LmdbEngine


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(call: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        if call(*args, **kwargs) is not False:  # of `wipe`: there was no file
            die()

    return called


def torn_write(fd: int, raw: bytes) -> int:
    os.pwrite(fd, raw[: len(raw) // 2], 0)
    die()
    return 0


def arm(stage: str) -> None:
    """Puts the end of the process in the way of a stage."""
    if stage == "copied":
        LmdbEngine._swap = die  # type: ignore[method-assign]
    elif stage == "linked":
        lmdb_rewrite.os.replace = die  # type: ignore[attr-defined]
    elif stage == "swapped":
        lmdb_rewrite.os.replace = after(os.replace)  # type: ignore[attr-defined]
    elif stage == "wiping":
        wipe.os.write = torn_write  # type: ignore[attr-defined]
    elif stage == "wiped":
        lmdb_rewrite.wipe = after(wipe.wipe)  # type: ignore[attr-defined]


if __name__ == "__main__":
    engine = LmdbEngine.open(Path(sys.argv[2]))
    engine.write(lambda txn: txn.erase_namespace(NS))
    arm(sys.argv[1])
    engine.rewrite()
