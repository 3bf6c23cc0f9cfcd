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
from memsvc.memory.erasure import Erasure
from memsvc.memory.lifecycle.lifecycle import Counts, Lifecycle
from memsvc.memory.owners import check, namespaces_for
from memsvc.model import Namespace, Scope
from memsvc.service import convert
from memsvc.service.auth.tokens import Tokens
from memsvc.service.calls import answers, still_wanted
from memsvc.service.convert import at_message
from memsvc.service.receipt_calls import ReceiptCalls
from memsvc.service.token_calls import TokenCalls
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import memory_pb2 as pb

PROBLEMS_MAX = 1000
STEPS_DEFAULT = 100
STEPS_MAX = 10_000


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


class AdminServicer(ReceiptCalls, TokenCalls):
    """See the module; the calls about tokens and receipts come from files beside this one."""

    def __init__(
        self,
        *,
        stats: Callable[[], StoreStats],
        counters: Callable[[], Counters],
        verify: Callable[[], Iterator[VerifyProblem]],
        backup: Callable[[Path], int],
        reindex: ReindexJob,
        lifecycle: Lifecycle,
        tokens: Tokens,
        erasure: Erasure,
        clock_us: Callable[[], int],
    ) -> None:
        self._stats = stats
        self._counters = counters
        self._verify = verify
        self._backup = backup
        self._reindex = reindex
        self._lifecycle = lifecycle
        self._tokens = tokens
        self._erasure = erasure
        self._clock_us = clock_us

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

    @answers
    def PlanLifecycle(
        self, request: apb.PlanLifecycleRequest, context: grpc.ServicerContext
    ) -> apb.PlanLifecycleResponse:
        """What forgetting would change."""
        if not 0 <= request.max_steps <= STEPS_MAX:
            raise InvalidArgument(
                f"max_steps must be from 1 to {STEPS_MAX}, not {request.max_steps}", field="max_steps"
            )
        at_us = convert.time_us(request.at_time, "at_time") if request.HasField("at_time") else self._clock_us()
        counts, steps = self._lifecycle.plan(
            _of_owners(request), at_us, request.max_steps or STEPS_DEFAULT, still_wanted(context)
        )
        return apb.PlanLifecycleResponse(
            counts=_counts(counts),
            steps=[
                apb.LifecycleStep(
                    memory_id=step.memory_id,
                    namespace=convert.namespace_message(step.namespace),
                    action=int(step.action),  # type: ignore[arg-type]
                    retention=step.retention,
                    reason=step.reason,
                )
                for step in steps
            ],
        )

    @answers
    def RunLifecycle(self, request: apb.RunLifecycleRequest, context: grpc.ServicerContext) -> apb.RunLifecycleResponse:
        """Does it."""
        return apb.RunLifecycleResponse(counts=_counts(self._lifecycle.run(_of_owners(request), still_wanted(context))))


def _of_owners(request: apb.PlanLifecycleRequest | apb.RunLifecycleRequest) -> list[Namespace] | None:
    """The owners' own namespaces, None for all: nobody's lifecycle run touches what the whole tenant shares."""
    if not request.HasField("owners"):
        return None
    owner_ids = convert.owners(request.owners)
    check(owner_ids)
    return [name for name in namespaces_for(owner_ids, ()) if name.scope != Scope.GLOBAL]


def _counts(counts: Counts) -> apb.LifecycleCounts:
    return apb.LifecycleCounts(**{f"{name}_count": n for name, n in msgspec.structs.asdict(counts).items()})


def _reindex_status(status: ReindexStatus) -> apb.ReindexStatus:
    return apb.ReindexStatus(
        state=int(status.state),  # type: ignore[arg-type]
        target=pb.EmbeddingInfo(model=status.model_id, dim=status.dim),
        done_count=status.done_count,
        total_count=status.total_count,
        error=status.error,
    )
