"""One server process for a file of commands, and a user of each test's own with a patient client."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from memsvc.demo import ServerProcess
from memsvc_client import MemoryClient

PATIENT_S = 30.0


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ServerProcess(tmp_path_factory.mktemp("served") / "data", "--log-level", "WARNING") as server:
        yield server.address


@pytest.fixture
def user() -> str:
    return f"u-{uuid.uuid4().hex}"


@pytest.fixture
def client(address: str, user: str) -> Iterator[MemoryClient]:
    with MemoryClient(address, user_id=user, timeout_s=PATIENT_S, write_timeout_s=PATIENT_S) as opened:
        yield opened
