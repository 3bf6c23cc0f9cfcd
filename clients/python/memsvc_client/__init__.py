"""Client of memsvc, the independent memory service for AI agents. See README.md beside this package."""

import logging

from .aio import AsyncMemoryClient
from .aio_session import AsyncSession
from .audit import AsyncAudit, Audit, AuditChain, AuditEntry, Why
from .background import BackgroundRecall
from .client import MemoryClient
from .context import Context, ContextLine
from .erasure import AsyncErasure, Erasure, PurgeReceipt
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
from .events import AsyncEvents, Event, Events
from .facts import AsyncFacts, Fact, Facts, FactWrite
from .lifecycle import AsyncLifecycle, Lifecycle, LifecycleCounts, LifecyclePlan, LifecycleStep
from .permanent import AsyncPermanent, Permanent, PermanentMemory
from .results import Change, ForgetResult, Hit, Memory, Recall, WriteResult
from .session import Session
from .session_results import Consolidation, DialogueState, Dropped, SessionInfo, SessionState, ToolOutput, Turn
from .skills import AsyncSkills, MatchedSkill, Skill, Skills, SkillWrite
from .verdicts import Conflict, IngestedMemory, IngestResult, Verdict

logging.getLogger(__name__).addHandler(logging.NullHandler())  # an application that sets up no logging hears nothing

__version__ = "0.1.0"

__all__ = [
    "Aborted",
    "AlreadyExists",
    "AsyncAudit",
    "AsyncErasure",
    "AsyncEvents",
    "AsyncFacts",
    "AsyncLifecycle",
    "AsyncMemoryClient",
    "AsyncPermanent",
    "AsyncSession",
    "AsyncSkills",
    "Audit",
    "AuditChain",
    "AuditEntry",
    "BackgroundRecall",
    "Cancelled",
    "Change",
    "ClientClosed",
    "Conflict",
    "Consolidation",
    "Context",
    "ContextLine",
    "DataLoss",
    "DialogueState",
    "Dropped",
    "Erasure",
    "Event",
    "Events",
    "Fact",
    "FactWrite",
    "Facts",
    "FailedPrecondition",
    "ForgetResult",
    "Hit",
    "IngestResult",
    "IngestedMemory",
    "Internal",
    "InvalidArgument",
    "Lifecycle",
    "LifecycleCounts",
    "LifecyclePlan",
    "LifecycleStep",
    "MatchedSkill",
    "Memory",
    "MemoryClient",
    "MemsvcClientError",
    "NotFound",
    "OutOfRange",
    "Permanent",
    "PermanentMemory",
    "PermissionDenied",
    "PurgeReceipt",
    "Recall",
    "ResourceExhausted",
    "Session",
    "SessionInfo",
    "SessionState",
    "Skill",
    "SkillWrite",
    "Skills",
    "StatusError",
    "Timeout",
    "ToolOutput",
    "TransportError",
    "Turn",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Unknown",
    "Verdict",
    "Why",
    "WriteResult",
]
