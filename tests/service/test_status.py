"""The table from errors to statuses is complete, and details carry what programs react to."""

from __future__ import annotations

import inspect

import grpc
import pytest
from google.rpc import code_pb2, error_details_pb2

from memsvc import errors
from memsvc.service import status

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.MemsvcError)]


def unpacked(error: errors.MemsvcError, kind):
    for detail in status.to_status(error).details:
        message = kind()
        if detail.Unpack(message):
            return message
    return None


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_class_has_a_code_reason_and_domain(cls):
    error = cls("what and how to fix it", path="p")
    answer = status.to_status(error)
    info = unpacked(error, error_details_pb2.ErrorInfo)
    assert answer.code in {code.value[0] for code in grpc.StatusCode} - {code_pb2.OK}
    assert answer.message == "what and how to fix it"
    assert (info.reason, info.domain, dict(info.metadata)) == (cls.reason, "memsvc", {"path": "p"})
    named = cls in status.CODES or any(base in status.CODES for base in cls.__mro__[1:-3])
    assert named, "only the base class's INTERNAL would stand for it"


def test_reasons_are_unique_and_upper_snake():
    reasons = [c.reason for c in CLASSES]
    assert len(set(reasons)) == len(reasons)
    assert all(r == r.upper() and r.replace("_", "").isalpha() for r in reasons)


def test_invalid_argument_carries_the_field():
    bad = unpacked(errors.LimitExceeded("too long", field="memory.tags"), error_details_pb2.BadRequest)
    assert [(v.field, v.description) for v in bad.field_violations] == [("memory.tags", "too long")]
    assert unpacked(errors.InvalidArgument("no field"), error_details_pb2.BadRequest) is None


def test_quota_and_retry_details():
    full = unpacked(errors.StorageFull("disk is full"), error_details_pb2.QuotaFailure)
    assert full.violations[0].subject == "STORAGE_FULL"
    assert unpacked(errors.Unavailable("starting"), error_details_pb2.RetryInfo).retry_delay.seconds == 1
    limited = errors.RateLimited("too many", retry_us=1_500_001)
    assert unpacked(limited, error_details_pb2.RetryInfo).retry_delay.ToMicroseconds() == 1_500_001
    assert unpacked(errors.StorageFull("disk is full"), error_details_pb2.RetryInfo) is None
    assert unpacked(errors.NotFound("x"), error_details_pb2.RetryInfo) is None
