"""The ErasureService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own.

Threading: methods run on the server's threads; a purge holds its thread until it is done.

Rejected: a call of MemoryService beside Forget (one slip of the hand would be final).
"""

from __future__ import annotations

import grpc

from memsvc.memory.erasure import Erasure
from memsvc.memory.receipts import Receipt
from memsvc.model import Scope
from memsvc.service import convert
from memsvc.service.calls import answers, mutation
from memsvc.v1 import erasure_service_pb2 as epb
from memsvc.v1 import erasure_service_pb2_grpc as rpc


class ErasureServicer(rpc.ErasureServiceServicer):
    """See the module."""

    def __init__(self, erasure: Erasure) -> None:
        self._erasure = erasure

    @answers
    def Purge(self, request: epb.PurgeRequest, context: grpc.ServicerContext) -> epb.PurgeResponse:
        """Removes every trace."""
        receipt = self._erasure.purge(
            convert.owners(request.owners),
            convert.enums(Scope, request.scopes, "scopes"),
            request.memory_ids,
            request.reason,
            mutation(request),
            dry_run=request.dry_run,
        )
        return epb.PurgeResponse(receipt=receipt_message(receipt))


def receipt_message(receipt: Receipt) -> epb.PurgeReceipt:
    """A receipt."""
    message = epb.PurgeReceipt(
        receipt_id=receipt.receipt_id,
        state=int(receipt.state),  # type: ignore[arg-type]
        actor=receipt.actor,
        reason=receipt.reason,
        namespaces=[convert.namespace_message(name) for name in receipt.namespaces],
        memory_ids=receipt.memory_ids,
        start_time=convert.timestamp(receipt.start_time_us),
        memory_count=receipt.erased.memories,
        version_count=receipt.erased.versions,
        vector_count=receipt.erased.vectors,
        record_count=receipt.erased.records,
        session_count=receipt.session_count,
        answer_count=receipt.answer_count,
        hash=receipt.hash,
    )
    if receipt.end_time_us:
        message.end_time.CopyFrom(convert.timestamp(receipt.end_time_us))
    return message
