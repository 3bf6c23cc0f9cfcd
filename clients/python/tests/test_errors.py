"""Every gRPC code has a class; the details decoder agrees with googleapis'."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

import memsvc_client
from memsvc_client.errors import BY_CODE, MemsvcClientError, from_rpc_error


class Failed(grpc.RpcError):
    """A failed call as grpc hands it out."""

    def __init__(self, code: grpc.StatusCode, details: str, raw: Any = None) -> None:
        super().__init__()
        self._answer = (code, details, raw)

    def code(self) -> grpc.StatusCode:
        return self._answer[0]

    def details(self) -> str:
        return self._answer[1]

    def trailing_metadata(self) -> Any:
        return () if self._answer[2] is None else (("other", "x"), ("grpc-status-details-bin", self._answer[2]))


def status_bytes(*messages: Any) -> bytes:
    packed = []
    for message in messages:
        one = any_pb2.Any()
        one.Pack(message)
        packed.append(one)
    return status_pb2.Status(code=3, message="m", details=packed).SerializeToString()


@pytest.mark.parametrize("code", [c for c in grpc.StatusCode if c is not grpc.StatusCode.OK])
def test_every_code_is_mapped_to_its_own_exported_class(code):
    error = from_rpc_error(Failed(code, "what happened"))
    assert error.code == code.name
    assert error.message == str(error) == "what happened"
    assert type(error) is getattr(memsvc_client, type(error).__name__)


def test_sixteen_codes():
    assert len(BY_CODE) == len(set(BY_CODE.values())) == 16


@given(
    st.text(),
    st.dictionaries(st.text(), st.text(), max_size=4),
    st.lists(st.tuples(st.text(), st.text()), max_size=4),
    st.integers(0, 2**40),
    st.integers(0, 999_999_999),
)
def test_decoder_agrees_with_googleapis(reason, metadata, fields, seconds, nanos):
    bad = error_details_pb2.BadRequest()
    for field, description in fields:
        bad.field_violations.add(field=field, description=description)
    retry = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=seconds, nanos=nanos))
    info = error_details_pb2.ErrorInfo(reason=reason, domain="memsvc", metadata=metadata)
    other = error_details_pb2.Help(links=[error_details_pb2.Help.Link(url="u")])
    raw = status_bytes(info, other, bad, retry)
    error = from_rpc_error(Failed(grpc.StatusCode.INVALID_ARGUMENT, "m", raw))
    assert (error.reason, error.metadata, error.field_violations) == (reason, metadata, fields)
    assert error.retry_delay_s == pytest.approx(seconds + nanos / 1e9)


@given(st.binary(max_size=60))
def test_bytes_of_anything_never_break_it(raw):
    assert isinstance(from_rpc_error(Failed(grpc.StatusCode.INTERNAL, "", raw)), MemsvcClientError)


@given(st.binary(max_size=30), st.sampled_from(["ErrorInfo", "BadRequest", "RetryInfo"]))
def test_damaged_details_never_break_it(body, kind):
    packed = any_pb2.Any(type_url=f"type.googleapis.com/google.rpc.{kind}", value=body)
    raw = status_pb2.Status(details=[packed]).SerializeToString()
    assert isinstance(from_rpc_error(Failed(grpc.StatusCode.INTERNAL, "", raw)), MemsvcClientError)
