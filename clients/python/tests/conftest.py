"""Fixtures of the tests that need a server: one real server for the session, and owners that never collide."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc_client import AsyncMemoryClient, MemoryClient

PATIENT_S = 20.0


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a server whose budget a busy machine can keep."""
    service = Service(
        Settings(data_dir=tmp_path_factory.mktemp("server"), listen="127.0.0.1:0", latency_budget_ms=20_000)
    )
    try:
        yield service.start()
    finally:
        service.close()


@pytest.fixture
def client(server: str) -> Iterator[MemoryClient]:
    with MemoryClient(server, user_id=uuid.uuid4().hex, timeout_s=PATIENT_S, write_timeout_s=PATIENT_S) as opened:
        yield opened


class Waiting:
    """An async client, or one of its resources, whose calls wait: one test then covers both clients."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not callable(attribute):
            return Waiting(attribute, self._loop)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = attribute(*args, **kwargs)
            return self._loop.run_until_complete(_all(result) if inspect.isasyncgen(result) else result)

        return call


async def _all(items: Any) -> list[Any]:
    return [item async for item in items]


@pytest.fixture(params=[MemoryClient, AsyncMemoryClient], ids=["sync", "async"])
def open_client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Opens clients of one kind: open_client(target, **arguments)."""
    loop = asyncio.new_event_loop()
    opened: list[Any] = []

    def make(target: str, **arguments: Any) -> Any:
        limits = {"timeout_s": PATIENT_S, "write_timeout_s": PATIENT_S}
        made = request.param(target, **{**limits, **arguments})
        opened.append(made if request.param is MemoryClient else Waiting(made, loop))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
    loop.close()


@pytest.fixture
def mem(server: str, open_client: Any) -> Any:
    """A client of each kind, for a user and a project of the test's own."""
    return open_client(server, user_id=uuid.uuid4().hex, project_id=uuid.uuid4().hex, tool="tests")
