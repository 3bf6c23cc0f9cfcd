"""Moving a store to another model: while serving, resumably, and refused at start when it was not done."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from memsvc.app import Service, open_engine
from memsvc.config import Settings, default_model_cache_dir
from memsvc.errors import InvalidArgument, ModelMismatch
from memsvc.memory.care import ReindexState
from memsvc.memory.drafts import Draft
from memsvc.memory.owners import Owners
from memsvc.memory.reindex import ModelRecord, Reindexer, stored_model
from memsvc.memory.transactions import Mutation
from memsvc.retrieval.default_model import ensure_default_model
from memsvc.retrieval.embedder import Embedder
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as admin_rpc
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc

ME = Owners(user_id="u")
ANYHOW = Mutation("", b"", "test")


@pytest.fixture(scope="module")
def renamed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default model under another id: another space as far as the store can know."""
    original = ensure_default_model(default_model_cache_dir())
    directory = tmp_path_factory.mktemp("renamed")
    for path in original.iterdir():
        (directory / path.name).symlink_to(path)
    manifest = json.loads((original / "memsvc.json").read_text("utf-8"))
    (directory / "memsvc.json").unlink()
    (directory / "memsvc.json").write_text(json.dumps({**manifest, "id": "renamed"}), "utf-8")
    return directory


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", listen="127.0.0.1:0")


@pytest.fixture
def running(settings: Settings) -> Iterator[Service]:
    service = Service(settings)
    service.start()
    yield service
    service.close()


def write(service: Service, *texts: str) -> None:
    service.memories.write(ME, [Draft(content=text) for text in texts], ANYHOW, path="memories")


def finished(ask) -> apb.ReindexStatus:
    tick = threading.Event()
    for _ in range(3000):
        status = ask()
        if status.state != ReindexState.RUNNING:
            return status
        tick.wait(0.01)
    raise AssertionError("the reindex did not end")


def test_a_running_server_reindexes_and_uses_the_new_model(running: Service, renamed_model: Path):
    write(running, *(f"the garden gate number {i} squeaks" for i in range(150)))
    with grpc.insecure_channel(running.server.address) as channel:
        admin, stub = admin_rpc.AdminServiceStub(channel), rpc.MemoryServiceStub(channel)
        started = admin.StartReindex(apb.StartReindexRequest(model_directory=str(renamed_model)))
        assert started.status.target.model == "renamed"
        write(running, "written in the middle of it")
        done = finished(lambda: admin.GetReindex(apb.GetReindexRequest()).status)
        assert (done.state, done.error) == (ReindexState.DONE, "")
        assert done.done_count >= 151
        request = spb.RecallRequest(owners={"user_id": "u"}, query="noisy entrance", weights={"lexical": 0.0})
        request.latency_budget.FromSeconds(20)
        answer = stub.Recall(request)
        assert len(answer.hits) == 8
        assert all(spb.RECALL_PATH_VECTOR in hit.paths for hit in answer.hits)
        write(running, "written after it")
        assert admin.GetStats(apb.GetStatsRequest()).embedding.model == "renamed"
        assert not admin.Verify(apb.VerifyRequest()).problems
    assert stored_model(running.engine) == ModelRecord("renamed", running.embedder.dim)


def test_a_store_of_another_model_is_refused_naming_the_fix(settings: Settings, renamed_model: Path):
    service = Service(settings)
    write(service, "one")
    service.close()
    with pytest.raises(ModelMismatch, match=f"memsvc reindex --model {renamed_model}"):
        Service(settings.model_copy(update={"model": str(renamed_model)}))
    Service(settings).close()  # the refusal left the store free and as it was


def test_a_cancelled_reindex_resumes(settings: Settings, renamed_model: Path):
    service = Service(settings)
    write(service, *(f"memory {i}" for i in range(130)))
    service.close()
    engine = open_engine(settings)
    embedder = Embedder(renamed_model)
    try:
        passed: list[int] = []
        stopped = Reindexer(engine, embedder, lambda done, total: passed.append(done), lambda: bool(passed))
        assert stopped.run() is False
        assert passed == [64]
        assert stored_model(engine).model_id != "renamed"
        switched: list[bool] = []
        resumed = Reindexer(engine, embedder, lambda done, total: None)
        assert resumed.run(lambda: switched.append(True)) is True
        assert switched == [True]
        assert (resumed.done_count, stored_model(engine).model_id) == (130, "renamed")
    finally:
        embedder.close()
        engine.close()
    moved = Service(settings.model_copy(update={"model": str(renamed_model)}))
    moved.close()


def test_a_second_reindex_and_a_bad_directory_are_refused(running: Service, renamed_model: Path, tmp_path: Path):
    from memsvc.errors import MemsvcError

    with pytest.raises(MemsvcError):
        running.reindex.start(str(tmp_path / "nothing"))
    assert running.reindex.status.state == ReindexState.IDLE
    write(running, *(f"memory {i} {'long ' * 40}" for i in range(200)))
    running.reindex.start(str(renamed_model))
    with pytest.raises(InvalidArgument, match="is running"):
        running.reindex.start(str(renamed_model))
    assert finished(lambda: running.reindex.status).state == ReindexState.DONE
