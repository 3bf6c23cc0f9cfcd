"""What tests with tokens share: the header of a call, and what a refusal says."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

DENIED, UNAUTHENTICATED = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED


def header(token: str) -> tuple[tuple[str, str], ...]:
    """The metadata of a call with a token."""
    return (("authorization", f"Bearer {token}"),)


def refused(call: Callable[[], object], code: grpc.StatusCode = DENIED) -> tuple[str, dict[str, str]]:
    """The ErrorInfo of a call that must fail: its reason and metadata."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert caught.value.code() == code, caught.value.details()
    info = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(caught.value).details[0].Unpack(info)
    assert info.domain == "memsvc"
    return info.reason, dict(info.metadata)
