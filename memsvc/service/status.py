"""The one table from memsvc errors to gRPC: code, ErrorInfo and typed details.

Purpose: every failure leaves the server as google.rpc.Status with ErrorInfo{reason, domain "memsvc"}, plus BadRequest
with the field's path, QuotaFailure or RetryInfo where they fit. No other module names a gRPC code.

Threading: pure functions.

Rejected: codes on the exception classes (every room would depend on gRPC's vocabulary).
"""

from __future__ import annotations

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from memsvc import errors

DOMAIN = "memsvc"
RETRY_DELAY_S = 1

# The most derived class of an error that is in the table decides.
CODES: dict[type[errors.MemsvcError], int] = {
    errors.MemsvcError: code_pb2.INTERNAL,
    errors.InvalidArgument: code_pb2.INVALID_ARGUMENT,
    errors.NotFound: code_pb2.NOT_FOUND,
    errors.EtagMismatch: code_pb2.ABORTED,
    errors.NotActive: code_pb2.FAILED_PRECONDITION,
    errors.SequenceNotReached: code_pb2.FAILED_PRECONDITION,
    errors.SequenceTooOld: code_pb2.OUT_OF_RANGE,
    errors.ResourceExhausted: code_pb2.RESOURCE_EXHAUSTED,
    errors.Unauthenticated: code_pb2.UNAUTHENTICATED,
    errors.PermissionDenied: code_pb2.PERMISSION_DENIED,
    errors.StoreLocked: code_pb2.FAILED_PRECONDITION,
    errors.FormatVersionUnknown: code_pb2.FAILED_PRECONDITION,
    errors.StoreCorrupt: code_pb2.DATA_LOSS,
    errors.StorageFailure: code_pb2.INTERNAL,
    errors.ModelUnavailable: code_pb2.FAILED_PRECONDITION,
    errors.ModelMismatch: code_pb2.FAILED_PRECONDITION,
    errors.ModelCorrupt: code_pb2.DATA_LOSS,
    errors.Unavailable: code_pb2.UNAVAILABLE,
    errors.Cancelled: code_pb2.CANCELLED,
    errors.DeadlineExceeded: code_pb2.DEADLINE_EXCEEDED,
    errors.ConfigInvalid: code_pb2.FAILED_PRECONDITION,
}


def code_of(error: errors.MemsvcError) -> int:
    """The google.rpc.Code of an error."""
    return next(CODES[cls] for cls in type(error).__mro__ if cls in CODES)


def to_status(error: errors.MemsvcError) -> status_pb2.Status:
    """The error as google.rpc.Status with its details."""
    code = code_of(error)
    details = [
        error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.metadata),
    ]
    packed = [_pack(detail) for detail in details]
    if isinstance(error, errors.InvalidArgument) and error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
        packed.append(_pack(error_details_pb2.BadRequest(field_violations=[violation])))
    if isinstance(error, errors.ResourceExhausted):
        failure = error_details_pb2.QuotaFailure.Violation(subject=error.reason, description=error.message)
        packed.append(_pack(error_details_pb2.QuotaFailure(violations=[failure])))
        if error.retry_us:
            delay = duration_pb2.Duration()
            delay.FromMicroseconds(error.retry_us)
            packed.append(_pack(error_details_pb2.RetryInfo(retry_delay=delay)))
    if code == code_pb2.UNAVAILABLE:
        delay = duration_pb2.Duration(seconds=RETRY_DELAY_S)
        packed.append(_pack(error_details_pb2.RetryInfo(retry_delay=delay)))
    return status_pb2.Status(code=code, message=error.message, details=packed)


def _pack(message: object) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)  # type: ignore[arg-type]  # the stubs of googleapis don't derive from Message
    return packed


def abort(context: grpc.ServicerContext, error: errors.MemsvcError) -> None:
    """Ends the call with the error."""
    context.abort_with_status(rpc_status.to_status(to_status(error)))
