"""What the calls about learning return: verdicts on messages, and contradictions that wait.

Purpose: as `results`, thin views over the answer's messages.

Threading: values; a view never changes.

Rejected: one flat list of memories for an ingest (which message gave what, and why the others gave nothing, is what a
caller wants to know).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from ._proto import memory_pb2 as pb
from ._proto import memory_service_pb2 as spb
from .requests import datetime_of, enum_name
from .results import Memory, WriteResult, struct


class IngestedMemory:
    """A memory that a message gives. Times are aware UTC datetimes or None; enums are lower-case names."""

    __slots__ = ("_pb",)

    def __init__(self, message: spb.IngestedMemory) -> None:
        self._pb = message

    @property
    def content(self) -> str:
        """The statement, which stands alone."""
        return self._pb.memory.content

    @property
    def type(self) -> str:
        """fact, preference, decision, event or rule."""
        return enum_name(pb.MemoryType, "MEMORY_TYPE", self._pb.memory.type)

    @property
    def layer(self) -> str:
        """episodic, semantic or procedural."""
        return enum_name(pb.Layer, "LAYER", self._pb.memory.layer)

    @property
    def subject(self) -> str:
        """Key of what it is about."""
        return self._pb.memory.subject

    @property
    def importance(self) -> float:
        """0..1."""
        return self._pb.memory.importance if self._pb.memory.HasField("importance") else 0.5

    @property
    def confidence(self) -> float:
        """0..1."""
        return self._pb.memory.confidence if self._pb.memory.HasField("confidence") else 1.0

    @property
    def stable(self) -> bool:
        """Whether it is expected to hold for long."""
        return self._pb.stable

    def _time(self, name: str) -> dt.datetime | None:
        draft = self._pb.memory
        return datetime_of(getattr(draft, name)) if draft.HasField(name) else None

    @property
    def occur_time(self) -> dt.datetime | None:
        """When it happened or was said."""
        return self._time("occur_time")

    @property
    def expire_time(self) -> dt.datetime | None:
        """When it stops being recalled; None for never."""
        return self._time("expire_time")

    @property
    def result(self) -> WriteResult | None:
        """What became of it, with `memory_id` and `outcome`; None for a dry run."""
        return WriteResult(self._pb.result) if self._pb.HasField("result") else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: times as ISO 8601."""
        names = ("content", "type", "layer", "subject", "importance", "confidence", "stable")
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        for name in ("occur_time", "expire_time"):
            time = self._time(name)
            values[name] = None if time is None else time.isoformat()
        result = self.result
        return {**values, "result": None if result is None else result.to_dict()}

    def __repr__(self) -> str:
        return f"IngestedMemory({self.type}, {self.content!r})"


class Verdict:
    """The verdict on one message."""

    __slots__ = ("_pb",)

    def __init__(self, message: spb.MessageVerdict) -> None:
        self._pb = message

    @property
    def decision(self) -> str:
        """kept, dropped or staged."""
        return enum_name(spb.VerdictDecision, "VERDICT_DECISION", self._pb.decision)

    @property
    def stage(self) -> str:
        """Which stage decided: rule, signal or model."""
        return enum_name(spb.FunnelStage, "FUNNEL_STAGE", self._pb.stage)

    @property
    def reason(self) -> str:
        """Why, in a few words."""
        return self._pb.reason

    @property
    def memories(self) -> list[IngestedMemory]:
        """What the message gives; empty when dropped."""
        return [IngestedMemory(memory) for memory in self._pb.memories]

    @property
    def fell_back(self) -> bool:
        """Whether the configured endpoint failed and the local evaluator stood in for it."""
        return self._pb.fell_back

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "decision": self.decision,
            "stage": self.stage,
            "reason": self.reason,
            "memories": [memory.to_dict() for memory in self.memories],
            "fell_back": self.fell_back,
        }

    def __repr__(self) -> str:
        return f"Verdict({self.decision} by {self.stage}: {self.reason})"


class IngestResult:
    """Verdicts on the messages of one ingest."""

    __slots__ = ("_verdicts",)

    def __init__(self, verdicts: Iterable[spb.MessageVerdict]) -> None:
        self._verdicts = list(verdicts)

    @property
    def verdicts(self) -> list[Verdict]:
        """One a message, in order."""
        return [Verdict(verdict) for verdict in self._verdicts]

    @property
    def kept(self) -> list[Verdict]:
        """The verdicts on the messages that were worth keeping."""
        return [verdict for verdict in self.verdicts if verdict.decision == "kept"]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"verdicts": [verdict.to_dict() for verdict in self.verdicts]}

    def __repr__(self) -> str:
        return f"IngestResult({len(self._verdicts)} messages, {len(self.kept)} kept)"


class Conflict:
    """A contradiction that waits for a person; settle it with `resolve_conflict(conflict.memory_id, ...)`."""

    __slots__ = ("_pb",)

    def __init__(self, message: spb.Conflict) -> None:
        self._pb = message

    @property
    def memory_id(self) -> str:
        """Id of the newer memory, which names the conflict."""
        return self._pb.newer.memory_id

    id = memory_id

    @property
    def newer(self) -> Memory:
        """The newer statement; contested."""
        return Memory(self._pb.newer)

    @property
    def older(self) -> list[Memory]:
        """What stood before; superseded while nobody has decided."""
        return [Memory(memory) for memory in self._pb.older]

    @property
    def summary(self) -> str:
        """One line that says what differs."""
        return self._pb.summary

    @property
    def evidence(self) -> dict[str, Any]:
        """The numbers and words behind the decision."""
        return struct(self._pb.evidence)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "memory_id": self.memory_id,
            "newer": self.newer.to_dict(),
            "older": [memory.to_dict() for memory in self.older],
            "summary": self.summary,
            "evidence": self.evidence,
        }

    def __repr__(self) -> str:
        return f"Conflict({self.memory_id}: {self.summary})"
