"""The calls of AdminService about receipts of purges.

Purpose: who administers a tenant shows what was purged there, and when.

Threading: as the servicer that they belong to.

Rejected: these beside Purge (that one needs a right in places, these look after a tenant).
"""

from __future__ import annotations

import grpc

from memsvc.memory.erasure import Erasure
from memsvc.memory.listing import page_size
from memsvc.memory.owners import DEFAULT_TENANT
from memsvc.service.calls import answers
from memsvc.service.erasure_servicer import receipt_message
from memsvc.v1 import admin_service_pb2 as apb


class ReceiptCalls:
    """See the module."""

    _erasure: Erasure

    @answers
    def GetReceipt(  # noqa: N802
        self, request: apb.GetReceiptRequest, context: grpc.ServicerContext
    ) -> apb.GetReceiptResponse:
        """One receipt."""
        receipt = self._erasure.get(request.tenant or DEFAULT_TENANT, request.receipt_id)
        return apb.GetReceiptResponse(receipt=receipt_message(receipt))

    @answers
    def ListReceipts(  # noqa: N802
        self, request: apb.ListReceiptsRequest, context: grpc.ServicerContext
    ) -> apb.ListReceiptsResponse:
        """Receipts of a tenant."""
        tenant = request.tenant or DEFAULT_TENANT
        page, token = self._erasure.page(tenant, page_size(request.page_size), request.page_token)
        return apb.ListReceiptsResponse(receipts=[receipt_message(one) for one in page], next_page_token=token)
