"""The engines that the suite runs against: a name and a way to open each in a directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memsvc.storage.engine import Engine
from memsvc.storage.lmdb_engine import LmdbEngine

OpenEngine = Callable[[Path], Engine]

ENGINES: dict[str, OpenEngine] = {
    "lmdb": lambda directory: LmdbEngine.open(directory / "store"),
}
