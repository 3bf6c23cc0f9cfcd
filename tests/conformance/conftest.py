from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside this file, in pytest's importlib mode

from engine_registry import ENGINES, OpenEngine

from memsvc.storage.engine import Engine


@pytest.fixture(params=sorted(ENGINES))
def open_engine(request: pytest.FixtureRequest) -> OpenEngine:
    return ENGINES[request.param]


@pytest.fixture
def engine(open_engine: OpenEngine, tmp_path: Path) -> Iterator[Engine]:
    opened = open_engine(tmp_path)
    yield opened
    opened.close()
