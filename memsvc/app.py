"""The composition root: from settings to a running service.

Purpose: opens store, model and segments, builds policy and servers, and closes all of it in order. The only module
that knows every room.

Threading: `Service` is built, started and closed by one thread.

Rejected: a dependency-injection framework (twenty constructor calls say more).
"""

from __future__ import annotations

import gc
import logging
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memsvc.config import Settings, default_model_cache_dir
from memsvc.errors import ConfigInvalid
from memsvc.memory import care
from memsvc.memory.arbiter import Arbiter, calibration_for
from memsvc.memory.care import ReindexJob
from memsvc.memory.feed import ChangeFeed
from memsvc.memory.forgetting import Forgetting
from memsvc.memory.ingest import Ingestor, MakeJudge
from memsvc.memory.memories import Memories, Staging
from memsvc.memory.policies import Policies
from memsvc.memory.recall import Recaller
from memsvc.memory.reindex import check_model
from memsvc.memory.settling import Settling
from memsvc.memory.transactions import Transactions
from memsvc.model import IdMinter
from memsvc.retrieval.default_model import ensure_default_model
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.segments import SegmentStore
from memsvc.retrieval.warm import warm_kernels
from memsvc.service.admin_servicer import AdminServicer, Counters
from memsvc.service.memory_servicer import MemoryServicer
from memsvc.service.server import GrpcServer, Served, check_listen
from memsvc.storage.lmdb_engine import LmdbEngine
from memsvc.v1 import admin_service_pb2, admin_service_pb2_grpc

LOG = logging.getLogger("memsvc")
STORE_DIR = "store"
SEGMENTS_DIR = "segments"
_HOUR_US = 3_600_000_000


def now_us() -> int:
    """UTC microseconds: the process's wall clock."""
    return time.time_ns() // 1000


def open_engine(settings: Settings) -> LmdbEngine:
    """The store below the data directory. Raises StoreLocked, FormatVersionUnknown."""
    return LmdbEngine.open(settings.data_dir / STORE_DIR, max_map_size_bytes=settings.map_size_max_bytes)


def open_model(directory: str, progress: Callable[[str, int, int], None] | None = None) -> Embedder:
    """The embedder of a model directory, or of the default model, which is built when it is not there yet."""
    path = Path(directory) if directory else ensure_default_model(default_model_cache_dir(), progress)
    embedder = Embedder(path)
    embedder.warm()
    return embedder


class Service:
    """Everything that a serving process holds. `close` is safe after a failed start."""

    def __init__(self, settings: Settings, progress: Callable[[str, int, int], None] | None = None) -> None:
        check_listen(settings.listen)
        self.policies = Policies(settings.sensitive_policy)
        self.settings = settings
        self._started_s = time.monotonic()
        self.engine = open_engine(settings)
        try:
            self.embedder = open_model(settings.model, progress)
            check_model(self.engine, self.embedder, settings.model)
        except BaseException:
            self.engine.close()
            raise
        self.segments = SegmentStore(
            self.engine,
            self.embedder.model_id,
            self.embedder.dim,
            settings.data_dir / SEGMENTS_DIR,
            save_after_changes=settings.segment_save_rows,
        )
        self.feed = ChangeFeed(self.engine)
        self.transactions = Transactions(
            self.engine,
            self.embedder,
            self.segments,
            self.feed,
            clock_us=now_us,
            answer_retention_us=round(settings.answer_retention_hours * _HOUR_US),
        )
        self._build_learning(settings)
        self.recaller = Recaller(self.engine, self.embedder, self.segments, clock_us=now_us)
        self.reindex = ReindexJob(self.engine, open_model, self._switch_model)
        self.memory_servicer = MemoryServicer(
            self.memories,
            self.forgetting,
            self.ingestor,
            self.settling,
            self.recaller,
            self.feed,
            clock_us=now_us,
            latency_budget_s=settings.latency_budget_ms / 1000,
            content_max_bytes=settings.content_max_bytes,
            watch_streams_max=settings.watch_streams_max,
        )
        self.server = GrpcServer(
            self.memory_servicer,
            self._others(),
            worker_threads=settings.worker_threads,
            watch_streams_max=settings.watch_streams_max,
        )

    def _build_learning(self, settings: Settings) -> None:
        """Writing, and the funnel in front of it."""
        self.arbiter = Arbiter(self.engine, self.segments, calibration_for(self.embedder.model_id))
        self.memories = Memories(
            self.transactions,
            self.arbiter,
            self.policies,
            minter=IdMinter(now_us),
            content_max_bytes=settings.content_max_bytes,
            staging=Staging(round(settings.staging_days * 24 * _HOUR_US), settings.staging_sessions),
        )
        self.forgetting = Forgetting(self.transactions)
        self.settling = Settling(self.transactions, self.policies, settings.content_max_bytes)
        self.ingestor = Ingestor(
            self.transactions,
            self.memories,
            self.policies,
            content_max_bytes=settings.content_max_bytes,
            make_judge=_chat_judge(settings),
        )

    def _others(self) -> list[Served]:
        """The services beside MemoryService."""
        return [
            Served(self._admin(), admin_service_pb2_grpc.add_AdminServiceServicer_to_server, _name(admin_service_pb2)),
        ]

    def _admin(self) -> AdminServicer:
        return AdminServicer(
            stats=lambda: care.stats(self.engine),
            counters=self.counters,
            verify=lambda: care.verify(self.engine, self.segments),
            backup=self.backup,
            reindex=self.reindex,
        )

    def start(self) -> str:
        """Warms, loads the large segments, serves; returns HOST:PORT."""
        warm_kernels(self.embedder.dim)
        self.segments.start()
        with self.engine.read() as txn:
            heads = list(txn.heads())
        for head in heads:
            if head.sequence >= self.settings.preload_rows:
                self.segments.get(head.namespace)
        gc.collect()
        gc.freeze()  # what is loaded stays: the collector need not walk it again in the middle of a recall
        return self.server.start(self.settings.listen)

    def counters(self) -> Counters:
        """Counts since the start."""
        return Counters(
            self.recaller.recall_count,
            self.recaller.degraded_count,
            self.memory_servicer.write_count,
            int(time.monotonic() - self._started_s),
            resident_size_bytes(),
            self.embedder.model_id,
            self.embedder.dim,
            self.segments.unindexed_rows(),
            self.ingestor.counts.messages,
            self.ingestor.counts.kept,
            self.ingestor.counts.fallbacks,
        )

    def backup(self, directory: Path) -> int:
        """A hot copy in the layout of a data directory: `serve --data-dir` opens it."""
        return care.backup(self.engine, directory / STORE_DIR)

    def _switch_model(self, embedder: Embedder) -> None:
        """After a reindex: everything uses the new model from the next call on."""

        def switch() -> None:
            self.transactions.embedder = self.recaller.embedder = self.embedder = embedder
            self.arbiter.calibration = calibration_for(embedder.model_id)

        self.segments.switch_model(embedder.model_id, embedder.dim, switch)

    def close(self) -> None:
        """Stops serving, saves segments, closes the store."""
        self.server.stop()
        self.reindex.close()
        self.segments.close()
        self.embedder.close()
        self.engine.close()


def _name(module: Any) -> str:
    """Full name of the one service of a generated module."""
    (service,) = module.DESCRIPTOR.services_by_name.values()
    return str(service.full_name)


def _chat_judge(settings: Settings) -> MakeJudge | None:
    """The configured endpoint, or None. Raises ConfigInvalid when its settings are not whole."""
    if not settings.chat_url:
        return None
    if not settings.chat_model:
        raise ConfigInvalid("chat_url is set, chat_model is not: name the model to ask", setting="chat_model")
    from memsvc.memory.funnel.chat_judge import ChatJudge, ChatSettings, http_library

    http_library()  # what is missing is said at the start, not at the first ingest
    chat = ChatSettings(
        base_url=settings.chat_url,
        model=settings.chat_model,
        api_key=settings.chat_api_key.get_secret_value(),
        timeout_s=settings.chat_timeout_s,
    )
    return lambda local: ChatJudge(local, chat)


def resident_size_bytes() -> int:
    """Resident memory of this process; the peak where the system does not tell the present (not Linux)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()
