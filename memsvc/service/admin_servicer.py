"""The AdminService of the contract: what the operator asks of a running store.

Purpose: reads requests, calls the memory room's care, writes answers.

Threading: methods run on the server's threads; a verify or backup holds one of them while it runs.

Rejected: opening the store beside the server for these (it is locked, rightly).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import msgspec

from memsvc import __version__
from memsvc.errors import InvalidArgument
from memsvc.memory.care import ReindexJob, ReindexStatus, StoreStats, VerifyProblem
from memsvc.service.calls import answers
from memsvc.service.convert import at_message
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as rpc
from memsvc.v1 import memory_pb2 as pb

PROBLEMS_MAX = 1000


class Counters(msgspec.Struct, frozen=True):
    """Counts of the process since its start; `resident_size_bytes` is now."""

    recall_count: int
    degraded_recall_count: int
    write_count: int
    uptime_s: int
    resident_size_bytes: int
    model_id: str
    dim: int
    unindexed_row_count: int
    ingested_message_count: int
    kept_message_count: int
    evaluator_fallback_count: int


class AdminServicer(rpc.AdminServiceServicer):
    """See the module."""

    def __init__(
        self,
        *,
        stats: Callable[[], StoreStats],
        counters: Callable[[], Counters],
        verify: Callable[[], Iterator[VerifyProblem]],
        backup: Callable[[Path], int],
        reindex: ReindexJob,
    ) -> None:
        self._stats = stats
        self._counters = counters
        self._verify = verify
        self._backup = backup
        self._reindex = reindex

    @answers
    def GetStats(self, request: apb.GetStatsRequest, context: grpc.ServicerContext) -> apb.GetStatsResponse:
        """Counts, sizes and versions."""
        stats, counters = self._stats(), self._counters()
        return apb.GetStatsResponse(
            server_version=__version__,
            embedding=pb.EmbeddingInfo(model=counters.model_id, dim=counters.dim),
            memory_count=stats.memory_count,
            active_count=stats.active_count,
            namespace_count=stats.namespace_count,
            namespaces=[
                apb.NamespaceStats(
                    at=at_message(head.namespace, head.sequence),
                    memory_count=head.memory_count,
                    active_count=head.active_count,
                )
                for head in stats.heads
            ],
            disk_size_bytes=stats.disk_size_bytes,
            resident_size_bytes=counters.resident_size_bytes,
            recall_count=counters.recall_count,
            degraded_recall_count=counters.degraded_recall_count,
            write_count=counters.write_count,
            uptime_s=counters.uptime_s,
            unindexed_row_count=counters.unindexed_row_count,
            ingested_message_count=counters.ingested_message_count,
            kept_message_count=counters.kept_message_count,
            evaluator_fallback_count=counters.evaluator_fallback_count,
        )

    @answers
    def Verify(self, request: apb.VerifyRequest, context: grpc.ServicerContext) -> apb.VerifyResponse:
        """Checks the store."""
        problems = itertools.islice(self._verify(), PROBLEMS_MAX)
        return apb.VerifyResponse(
            problems=[apb.VerifyProblem(where=p.where, what=p.what) for p in problems],
            memory_count=self._stats().memory_count,
        )

    @answers
    def Backup(self, request: apb.BackupRequest, context: grpc.ServicerContext) -> apb.BackupResponse:
        """A hot copy."""
        if not request.directory:
            raise InvalidArgument("directory is empty", field="directory")
        directory = Path(request.directory)
        if not directory.is_absolute():
            raise InvalidArgument("directory must be absolute: it is on the server's machine", field="directory")
        return apb.BackupResponse(size_bytes=self._backup(directory))

    @answers
    def StartReindex(self, request: apb.StartReindexRequest, context: grpc.ServicerContext) -> apb.StartReindexResponse:
        """Starts re-embedding."""
        return apb.StartReindexResponse(status=_reindex_status(self._reindex.start(request.model_directory)))

    @answers
    def GetReindex(self, request: apb.GetReindexRequest, context: grpc.ServicerContext) -> apb.GetReindexResponse:
        """How far it is."""
        return apb.GetReindexResponse(status=_reindex_status(self._reindex.status))


def _reindex_status(status: ReindexStatus) -> apb.ReindexStatus:
    return apb.ReindexStatus(
        state=int(status.state),  # type: ignore[arg-type]
        target=pb.EmbeddingInfo(model=status.model_id, dim=status.dim),
        done_count=status.done_count,
        total_count=status.total_count,
        error=status.error,
    )
