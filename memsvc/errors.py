"""The one exception tree of memsvc.

Purpose: every failure that a caller can meet is one of these classes; `service/status.py` is the only place that
maps them to gRPC codes, clients map those back. A class has a stable `reason` (UPPER_SNAKE, part of the contract)
and an instance carries `metadata` (strings that help a program react: field, limit, id) beside its message.
Messages name the fix and never hold memory content or secrets.

Threading: instances are plain values.

Rejected: error codes as integers (nobody greps for 17), and one class with a code attribute (callers would compare
strings instead of catching classes).
"""

from __future__ import annotations


class MemsvcError(Exception):
    """Base of all memsvc failures. `reason` is stable; `metadata` maps short keys to strings."""

    reason = "INTERNAL"

    def __init__(self, message: str, **metadata: str) -> None:
        super().__init__(message)
        self.message = message
        self.metadata = metadata


class InvalidArgument(MemsvcError):
    """A request is malformed whatever the state of the store. `field` is the path of the offending field."""

    reason = "INVALID_ARGUMENT"

    def __init__(self, message: str, *, field: str = "", **metadata: str) -> None:
        if field:
            metadata["field"] = field
        super().__init__(message, **metadata)
        self.field = field


class LimitExceeded(InvalidArgument):
    """An input is larger than its limit; metadata holds `limit` and the message names the setting."""

    reason = "LIMIT_EXCEEDED"


class UnknownField(InvalidArgument):
    """A request holds a field, filter or operator that this version does not know; nothing is dropped silently."""

    reason = "UNKNOWN_FIELD"


class RequestIdReused(InvalidArgument):
    """A request_id came back with another body: it names one mutation and can't be used for a second."""

    reason = "REQUEST_ID_REUSED"


class LayerNotWritable(InvalidArgument):
    """An ordinary write named a layer that only another path may write."""

    reason = "LAYER_NOT_WRITABLE"


class SensitiveContent(InvalidArgument):
    """The content holds secrets that the tenant's policy rejects; metadata names kinds and positions, never values."""

    reason = "SENSITIVE_CONTENT"


class NotFound(MemsvcError):
    """Nothing with that id in the namespaces that the caller named."""

    reason = "NOT_FOUND"


class EtagMismatch(MemsvcError):
    """The record changed since the caller read it; read it again and retry."""

    reason = "ETAG_MISMATCH"


class NotActive(MemsvcError):
    """The memory's status does not allow the change (for example updating a forgotten one)."""

    reason = "NOT_ACTIVE"


class SequenceNotReached(MemsvcError):
    """A read demanded a sequence that this node has not seen within the budget."""

    reason = "SEQUENCE_NOT_REACHED"


class SequenceTooOld(MemsvcError):
    """A watch or time-travel read asks for changes that are not kept any more."""

    reason = "SEQUENCE_TOO_OLD"


class ResourceExhausted(MemsvcError):
    """A quota or a pool is used up; the message names it. `retry_us`: microseconds after which the same call may work,
    0 where time alone does not help.
    """

    reason = "RESOURCE_EXHAUSTED"

    def __init__(self, message: str, *, retry_us: int = 0, **metadata: str) -> None:
        super().__init__(message, **metadata)
        self.retry_us = retry_us


class StorageFull(ResourceExhausted):
    """The disk or the map can't take the write. Nothing of it was stored; reads go on."""

    reason = "STORAGE_FULL"


class RateLimited(ResourceExhausted):
    """The token made its calls of the minute; metadata holds `limit` and `per_minute`."""

    reason = "RATE_LIMITED"


class Overloaded(ResourceExhausted):
    """Too many calls wait for the server; nothing of this one was done."""

    reason = "OVERLOADED"


class Unauthenticated(MemsvcError):
    """The call's token can't be trusted; the message never says what about it was wrong."""

    reason = "TOKEN_INVALID"


class TokenMissing(Unauthenticated):
    """The server takes calls with a token only, and this one has none."""

    reason = "TOKEN_MISSING"


class TokenExpired(Unauthenticated):
    """The token's time is over, or has not begun."""

    reason = "TOKEN_EXPIRED"


class TokenRevoked(Unauthenticated):
    """The token was revoked."""

    reason = "TOKEN_REVOKED"


class PermissionDenied(MemsvcError):
    """The token lacks a grant; metadata names it: `right`, `scope` and `layer`, or `owner` and `owner_id`."""

    reason = "GRANT_MISSING"


class StoreLocked(MemsvcError):
    """Another process has the data directory open."""

    reason = "STORE_LOCKED"


class FormatVersionUnknown(MemsvcError):
    """The data directory was written by another format version; the message names the upgrade command."""

    reason = "FORMAT_VERSION_UNKNOWN"


class StoreCorrupt(MemsvcError):
    """A stored value can't be decoded or a checksum fails; the message names `memsvc verify`."""

    reason = "STORE_CORRUPT"


class StorageFailure(MemsvcError):
    """The storage backend failed (I/O error); whether the write is stored is decided by its request_id on retry."""

    reason = "STORAGE_FAILURE"


class ModelUnavailable(MemsvcError):
    """No embedding model can be had; the message names the ways to get one."""

    reason = "MODEL_UNAVAILABLE"


class ModelMismatch(MemsvcError):
    """The data was embedded by another model or dimension; the message names `memsvc reindex`."""

    reason = "MODEL_MISMATCH"


class ModelCorrupt(MemsvcError):
    """A model file does not match its recorded checksum."""

    reason = "MODEL_CORRUPT"


class Unavailable(MemsvcError):
    """The service is starting, stopping or lost a part that it needs; retrying later may work."""

    reason = "UNAVAILABLE"


class Cancelled(MemsvcError):
    """The caller is gone or asked to stop; nothing of the operation was stored."""

    reason = "CANCELLED"


class DeadlineExceeded(MemsvcError):
    """The caller's deadline passed before the work was done."""

    reason = "DEADLINE_EXCEEDED"


class ConfigInvalid(MemsvcError):
    """A setting can't be used; the message names it and the fix."""

    reason = "CONFIG_INVALID"
