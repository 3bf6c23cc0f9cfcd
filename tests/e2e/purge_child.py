"""A server process that is killed at a stage of a purge: `python purge_child.py STAGE DATA_DIR USER`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.memory.erasure import Erasure
from memsvc.memory.owners import Owners
from memsvc.memory.transactions import Mutation


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(call: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> None:
        call(*args, **kwargs)
        die()

    return called


STAGES: dict[str, Callable[[Service], None]] = {
    "asked": lambda service: setattr(Erasure, "_drop_sessions", die),
    "sessions": lambda service: setattr(Erasure, "_erase", die),
    "erased": lambda service: setattr(service.segments, "wipe", die),
    "segments": lambda service: setattr(service.engine, "rewrite", die),
    "rewritten": lambda service: setattr(service.engine, "rewrite", after(service.engine.rewrite)),
}

if __name__ == "__main__":
    stage, data_dir, user = sys.argv[1:]
    service = Service(Settings(data_dir=Path(data_dir), listen="127.0.0.1:0"))
    service.start()
    STAGES[stage](service)
    service.erasure.purge(Owners(user_id=user), (), (), "asked for", Mutation("", b"", "local", "test"))
