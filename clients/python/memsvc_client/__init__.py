"""Client of memsvc, the independent memory service for AI agents. See README.md beside this package."""

from .aio import AsyncMemoryClient
from .client import BackgroundRecall, MemoryClient
from .errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    ClientClosed,
    DataLoss,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    MemsvcClientError,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    StatusError,
    Timeout,
    TransportError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    Unknown,
)
from .results import Change, ForgetResult, Hit, Memory, Recall, WriteResult
from .verdicts import Conflict, IngestedMemory, IngestResult, Verdict

__version__ = "0.1.0"

__all__ = [
    "Aborted",
    "AlreadyExists",
    "AsyncMemoryClient",
    "BackgroundRecall",
    "Cancelled",
    "Change",
    "ClientClosed",
    "Conflict",
    "DataLoss",
    "FailedPrecondition",
    "ForgetResult",
    "Hit",
    "IngestResult",
    "IngestedMemory",
    "Internal",
    "InvalidArgument",
    "Memory",
    "MemoryClient",
    "MemsvcClientError",
    "NotFound",
    "OutOfRange",
    "PermissionDenied",
    "Recall",
    "ResourceExhausted",
    "StatusError",
    "Timeout",
    "TransportError",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Unknown",
    "Verdict",
    "WriteResult",
]
