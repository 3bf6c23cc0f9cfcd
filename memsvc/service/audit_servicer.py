"""The AuditService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own.

Threading: methods run on the server's threads.

Rejected: calls of AdminService for these (an auditor administers nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import grpc

from memsvc.errors import InvalidArgument
from memsvc.memory.audit_reader import AuditFilter, AuditHead, AuditReader, ChainReport
from memsvc.memory.drafts import check_memory_id
from memsvc.memory.listing import page_size
from memsvc.memory.owners import DEFAULT_TENANT, Owners
from memsvc.memory.waiting import Viewer
from memsvc.memory.why import Why
from memsvc.model import AuditEntry, AuditKind, Layer, Memory, Namespace
from memsvc.service import convert
from memsvc.service.auth.principal import CALLER, Right
from memsvc.service.calls import answers, named, reached, still_wanted, viewer
from memsvc.v1 import audit_service_pb2 as apb
from memsvc.v1 import audit_service_pb2_grpc as rpc

READS_SHOWN = 20
AskWhy = Callable[[Sequence[Namespace], str, Viewer], Why]
Remembered = Callable[[Sequence[Memory], int], list[tuple[Memory, float]]]


class AuditServicer(rpc.AuditServiceServicer):
    """See the module. `remembered(memories, now_us)` adds uses and retention."""

    def __init__(
        self, reader: AuditReader, why: AskWhy, remembered: Remembered, *, clock_us: Callable[[], int]
    ) -> None:
        self._reader = reader
        self._why = why
        self._remembered = remembered
        self._clock_us = clock_us

    @answers
    def Query(
        self, request: apb.AuditServiceQueryRequest, context: grpc.ServicerContext
    ) -> apb.AuditServiceQueryResponse:
        """Lists entries."""
        if request.memory_id:
            check_memory_id(request.memory_id, "memory_id")
        condition = AuditFilter(
            kinds=convert.enums(AuditKind, request.kinds, "kinds"),
            actor=request.actor,
            memory_id=request.memory_id,
            time=convert.span(request, "entry_time", "entry_time"),
        )
        page, token = self._reader.query(
            named(request),
            condition,
            newest_first=request.newest_first,
            size=page_size(request.page_size),
            page_token=request.page_token,
            still_wanted=still_wanted(context),
        )
        return apb.AuditServiceQueryResponse(
            entries=[entry_message(namespace, entry) for namespace, entry in page], next_page_token=token
        )

    @answers
    def Verify(
        self, request: apb.AuditServiceVerifyRequest, context: grpc.ServicerContext
    ) -> apb.AuditServiceVerifyResponse:
        """Checks chains."""
        expect = head_value(request.expect) if request.HasField("expect") else None
        names = self._all_of(request) if request.all else named(request)
        reports = self._reader.verify(names, expect=expect, still_wanted=still_wanted(context))
        return apb.AuditServiceVerifyResponse(chains=[chain_message(report) for report in reports])

    @answers
    def Why(self, request: apb.AuditServiceWhyRequest, context: grpc.ServicerContext) -> apb.AuditServiceWhyResponse:
        """Why a memory is as it is."""
        _, namespaces = reached(request)
        found = self._why(namespaces, request.memory_id, viewer())
        now_us = self._clock_us()
        ((memory, retention),) = self._remembered([found.memory], now_us)
        return apb.AuditServiceWhyResponse(
            memory=convert.memory_message(memory, now_us, retention),
            changes=[convert.change_message(event, now_us) for event in found.changes],
            related=[
                apb.RelatedMemory(
                    relation=int(one.relation),  # type: ignore[arg-type]
                    memory_id=one.memory_id,
                    status=int(one.status),  # type: ignore[arg-type]
                )
                for one in found.related
            ],
            reads=self._reads(memory, context),
        )

    def _reads(self, memory: Memory, context: grpc.ServicerContext) -> list[apb.AuditEntry]:
        """The newest reads of a memory that the audit has, for who may read the audit there."""
        caller, name = CALLER.get(), memory.namespace
        if not all(caller.may(Right.AUDIT, name.scope, layer) for layer in Layer):
            return []
        condition = AuditFilter(kinds=(AuditKind.READ,), memory_id=memory.memory_id)
        page, _ = self._reader.query(
            [name], condition, newest_first=True, size=READS_SHOWN, page_token="", still_wanted=still_wanted(context)
        )
        return [entry_message(name, entry) for _, entry in page]

    def _all_of(self, request: apb.AuditServiceVerifyRequest) -> list[Namespace]:
        owners = convert.owners(request.owners)
        if request.scopes or owners != Owners(tenant=owners.tenant):
            raise InvalidArgument("all is every namespace of the tenant: leave scopes and other ids unset", field="all")
        return self._reader.of_tenant(owners.tenant or DEFAULT_TENANT)


def head_value(message: apb.AuditHead) -> AuditHead:
    """A head that a request names. Raises InvalidArgument."""
    try:
        return AuditHead(message.number, bytes.fromhex(message.hash))
    except ValueError as error:
        raise InvalidArgument("expect.hash is not hexadecimal", field="expect.hash") from error


def entry_message(namespace: Namespace, entry: AuditEntry) -> apb.AuditEntry:
    """The contract's message."""
    return apb.AuditEntry(
        namespace=convert.namespace_message(namespace),
        number=entry.number,
        entry_time=convert.timestamp(entry.time_us),
        kind=int(entry.kind),  # type: ignore[arg-type]
        actor=entry.actor,
        call=entry.call,
        outcome=entry.outcome,
        memory_ids=entry.memory_ids,
        count=entry.count,
        sequence=entry.sequence,
        change=0 if entry.change is None else int(entry.change),  # type: ignore[arg-type]
        detail=entry.detail,
        reason_hash=entry.reason_hash.hex(),
        hash=entry.hash.hex(),
    )


def chain_message(report: ChainReport) -> apb.AuditChain:
    """The contract's message."""
    return apb.AuditChain(
        namespace=convert.namespace_message(report.namespace),
        head=apb.AuditHead(number=report.head.number, hash=report.head.hash.hex() if report.head.number else ""),
        broken_number=report.broken_number,
        problem=report.problem,
        baseline_sequence=report.baseline_sequence,
        missing_count=report.missing_count,
        first_missing_sequence=report.first_missing_sequence,
        stray_count=report.stray_count,
        first_stray_number=report.first_stray_number,
    )
