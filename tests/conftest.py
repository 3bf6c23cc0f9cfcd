"""Fixtures of the tests that need a whole service: one real server for the session, and owners that never collide."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the double beside this file, in pytest's importlib mode
from chat_double import Endpoint

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.v1 import admin_service_pb2_grpc as admin_rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A started service on a free port, closed at the end."""
    # Without sampled reads: tests that share the server compare whole chains.
    settings = Settings(data_dir=tmp_path_factory.mktemp("service"), listen="127.0.0.1:0", audit_reads="off")
    running = Service(settings)
    try:
        running.start()
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def channel(service: Service) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(service.server.address, [("grpc.enable_http_proxy", 0)]) as opened:
        yield opened


@pytest.fixture(scope="session")
def stub(channel: grpc.Channel) -> rpc.MemoryServiceStub:
    return rpc.MemoryServiceStub(channel)


@pytest.fixture(scope="session")
def admin(channel: grpc.Channel) -> admin_rpc.AdminServiceStub:
    return admin_rpc.AdminServiceStub(channel)


@pytest.fixture(scope="session")
def fresh_id() -> Callable[[], str]:
    """Makes owner ids that no other test has."""
    return lambda: f"o-{uuid.uuid4().hex}"


@pytest.fixture
def owners(fresh_id: Callable[[], str]) -> pb.Owners:
    """A user of the test's own."""
    return pb.Owners(user_id=fresh_id())


@pytest.fixture(scope="session")
def remember(stub: rpc.MemoryServiceStub) -> Callable[..., spb.WriteResult]:
    """Writes one memory: remember(owners, content, **fields of MemoryDraft)."""

    def write(whom: pb.Owners, content: str, request_id: str = "", **fields: Any) -> spb.WriteResult:
        draft = spb.MemoryDraft(content=content, **fields)
        return stub.Write(spb.WriteRequest(owners=whom, memory=draft, request_id=request_id)).result

    return write


@pytest.fixture(scope="session")
def recall(stub: rpc.MemoryServiceStub) -> Callable[..., spb.RecallResponse]:
    """Recalls with a budget that a busy machine can keep: recall(owners, query, **fields of RecallRequest)."""

    def ask(whom: pb.Owners, query: str = "", **fields: Any) -> spb.RecallResponse:
        request = spb.RecallRequest(owners=whom, query=query, **fields)
        if not request.HasField("latency_budget"):
            request.latency_budget.FromSeconds(20)
        return stub.Recall(request)

    return ask


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A chat endpoint, reached without the machine's proxy."""
    monkeypatch.setenv("NO_PROXY", "*")
    made = Endpoint()
    yield made
    made.close()
