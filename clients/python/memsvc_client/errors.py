"""The client's exception tree, and the mapping from gRPC statuses.

Purpose: as in httpx, one base class; below it what went wrong on the way (`TransportError`) and what the server
answered (`StatusError`). Every gRPC code has a class. Details are read from `grpc-status-details-bin` by a small
decoder of the wire format, so that the client needs no more packages than grpcio and protobuf.

Threading: plain values.

Rejected: passing grpc.RpcError through (callers would need grpc's vocabulary to catch a missing memory).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc


class MemsvcClientError(Exception):
    """Base of everything that this package raises.

    `partial` is what was acknowledged before the failure, of a call that is sent in parts: an `IngestResult` of
    `ingest`, the memories of `review`; None otherwise.
    """

    code = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        metadata: dict[str, str] | None = None,
        field_violations: list[tuple[str, str]] | None = None,
        retry_delay_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.metadata = metadata or {}
        self.field_violations = field_violations or []
        self.retry_delay_s = retry_delay_s
        self.partial: Any = None


class TransportError(MemsvcClientError):
    """The server could not be reached or did not answer in time."""


class Unavailable(TransportError):
    """No connection, or the server is stopping. A mutation may be tried again with its request_id."""

    code = "UNAVAILABLE"


class Timeout(TransportError):
    """No answer within the timeout."""

    code = "DEADLINE_EXCEEDED"


class Cancelled(TransportError):
    """The call was cancelled."""

    code = "CANCELLED"


class ClientClosed(TransportError):
    """The client was closed."""

    code = "CANCELLED"


class StatusError(MemsvcClientError):
    """The server answered with an error."""


class Unknown(StatusError):
    """An error without a better class."""

    code = "UNKNOWN"


class InvalidArgument(StatusError):
    """The request is wrong; `field_violations` name the fields."""

    code = "INVALID_ARGUMENT"


class NotFound(StatusError):
    """Nothing with that id in the caller's namespaces."""

    code = "NOT_FOUND"


class AlreadyExists(StatusError):
    """It is there already."""

    code = "ALREADY_EXISTS"


class PermissionDenied(StatusError):
    """The token does not grant it."""

    code = "PERMISSION_DENIED"


class Unauthenticated(StatusError):
    """No token, or a bad one."""

    code = "UNAUTHENTICATED"


class ResourceExhausted(StatusError):
    """A quota, the disk or a pool is full."""

    code = "RESOURCE_EXHAUSTED"


class FailedPrecondition(StatusError):
    """The state of the memory or the server does not allow it."""

    code = "FAILED_PRECONDITION"


class Aborted(StatusError):
    """A concurrent change won; with reason ETAG_MISMATCH read the memory again."""

    code = "ABORTED"


class OutOfRange(StatusError):
    """A position that is not kept any more."""

    code = "OUT_OF_RANGE"


class Unimplemented(StatusError):
    """The server does not know the call: it is older than this client."""

    code = "UNIMPLEMENTED"


class Internal(StatusError):
    """A fault of the server."""

    code = "INTERNAL"


class DataLoss(StatusError):
    """The server's store is damaged."""

    code = "DATA_LOSS"


BY_CODE: dict[grpc.StatusCode, type[MemsvcClientError]] = {
    grpc.StatusCode.CANCELLED: Cancelled,
    grpc.StatusCode.UNKNOWN: Unknown,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.DEADLINE_EXCEEDED: Timeout,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.ABORTED: Aborted,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRange,
    grpc.StatusCode.UNIMPLEMENTED: Unimplemented,
    grpc.StatusCode.INTERNAL: Internal,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DATA_LOSS: DataLoss,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
}

# What the caller did wrong or may not do: a recall raises these; everything else is the service's trouble.
CALLERS_FAULT = (
    InvalidArgument,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    Unauthenticated,
    FailedPrecondition,
    OutOfRange,
    Unimplemented,
)


def cause_of(error: MemsvcClientError) -> str:
    """What `degraded` calls the service's trouble."""
    if isinstance(error, Timeout):
        return "SERVER_TIMEOUT"
    return "SERVER_UNAVAILABLE" if isinstance(error, TransportError) else f"SERVER_{error.code}"


def from_rpc_error(error: grpc.RpcError) -> MemsvcClientError:
    """The typed error of a failed call (of grpc or grpc.aio)."""
    cls = BY_CODE.get(error.code(), Unknown)
    trailing: Any = error.trailing_metadata() or ()
    raw = next((v for k, v in trailing if k == "grpc-status-details-bin"), b"")
    details = _Details(raw if isinstance(raw, bytes) else b"")
    return cls(
        error.details() or cls.code,
        reason=details.reason,
        metadata=details.metadata,
        field_violations=details.field_violations,
        retry_delay_s=details.retry_delay_s,
    )


class _Details:
    """google.rpc.Status details that clients react to: ErrorInfo, BadRequest, RetryInfo."""

    def __init__(self, raw: bytes) -> None:
        self.reason = ""
        self.metadata: dict[str, str] = {}
        self.field_violations: list[tuple[str, str]] = []
        self.retry_delay_s: float | None = None
        try:
            for number, value in _fields(raw):
                if number == 3 and isinstance(value, bytes):
                    self._read_any(dict(_fields(value)))
        except ValueError:
            return  # a proxy's details are not ours: code and message still stand

    def _read_any(self, packed: dict[int, int | bytes]) -> None:
        kind, body = packed.get(1, b""), packed.get(2, b"")
        if not isinstance(kind, bytes) or not isinstance(body, bytes):
            return
        if kind.endswith(b"/google.rpc.ErrorInfo"):
            for number, value in _fields(body):
                if number == 1:
                    self.reason = _text(value)
                elif number == 3:
                    entry = dict(_fields(_raw(value)))
                    self.metadata[_text(entry.get(1, b""))] = _text(entry.get(2, b""))
        elif kind.endswith(b"/google.rpc.BadRequest"):
            for _, value in _fields(body):
                entry = dict(_fields(_raw(value)))
                self.field_violations.append((_text(entry.get(1, b"")), _text(entry.get(2, b""))))
        elif kind.endswith(b"/google.rpc.RetryInfo"):
            delay = dict(_fields(_raw(dict(_fields(body)).get(1, b""))))
            seconds, nanos = delay.get(1, 0), delay.get(2, 0)
            if isinstance(seconds, int) and isinstance(nanos, int):
                self.retry_delay_s = seconds + nanos / 1e9


def _raw(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("not a length-delimited field")
    return value


def _text(value: int | bytes) -> str:
    return _raw(value).decode("utf-8", "replace")


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protobuf message by number. Raises ValueError for anything that is not one."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(raw, at)
            yield tag >> 3, value
        elif kind == 2:
            size, at = _varint(raw, at)
            if at + size > len(raw):
                raise ValueError("truncated")
            yield tag >> 3, raw[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("unknown wire type")


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise ValueError("truncated")
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
