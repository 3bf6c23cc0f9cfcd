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
from .results import Memory, WriteResult
from .values import struct
from .views import View


class IngestedMemory(View[spb.IngestedMemory]):
    """A memory that a message gives. Times are aware UTC datetimes or None; enums are lower-case names."""

    __slots__ = ()
    NAMES = (
        "content",
        "type",
        "layer",
        "subject",
        "importance",
        "confidence",
        "stable",
        "occur_time",
        "expire_time",
        "result",
    )

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

    def __repr__(self) -> str:
        return f"IngestedMemory({self.type}, {self.content!r})"


class Verdict(View[spb.MessageVerdict]):
    """The verdict on one message."""

    __slots__ = ()
    NAMES = ("decision", "stage", "reason", "memories", "fell_back")

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


class Conflict(View[spb.Conflict]):
    """A contradiction that waits for a person; settle it with `resolve_conflict(conflict.memory_id, ...)`."""

    __slots__ = ()
    NAMES = ("memory_id", "newer", "older", "summary", "evidence")

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

    def __repr__(self) -> str:
        return f"Conflict({self.memory_id}: {self.summary})"
