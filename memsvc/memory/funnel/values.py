"""The funnel's words as plain values: what goes in, what comes out, and the protocol of whoever judges what is unclear.

Purpose: one place for the types that the rules, the signals, the evaluators and the callers share.

Threading: frozen structs and pure protocols; share them freely.

Rejected: one struct for message and turn of a log (imports have formats of their own, `Message` is what the funnel
needs and no more).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.model import NEVER_US, Layer, MemoryType

Embed = Callable[[list[str]], NDArray[np.float32]]
"""Texts to unit vectors: float32 of shape (n, dim), rows in the order of the texts."""

SPEAKERS = ("user", "agent", "tool", "system")

FALLBACK = "local-fallback"  # the judge of what the configured endpoint failed to judge


class Decision(IntEnum):
    """What becomes of a message."""

    KEPT = 1
    DROPPED = 2
    STAGED = 3


class Stage(IntEnum):
    """Which stage of the funnel decided."""

    RULE = 1
    SIGNAL = 2
    MODEL = 3


class Message(msgspec.Struct, frozen=True):
    """One message as it was said. `time_us` is UTC microseconds; `speaker` is one of SPEAKERS."""

    speaker: str
    content: str
    time_us: int
    tool_calls: tuple[Any, ...] = ()
    message_id: str = ""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that could become a memory. It stands alone and is in the message's own language.

    `subject` is a normalised key such as `report.format`, or empty when unsure; importance and confidence are 0 to 1;
    times are UTC microseconds; `stable` is False for what is bound to a date.
    """

    content: str
    type: MemoryType
    layer: Layer
    subject: str = ""
    importance: float = 0.5
    confidence: float = 0.5
    expire_time_us: int = NEVER_US
    stable: bool = True
    occur_time_us: int = 0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The funnel's answer for one message.

    `reason` is a fixed English phrase, never content; `score` is the estimated probability (0 to 1) that the message
    holds something worth keeping. DROPPED has no candidates.
    """

    decision: Decision
    stage: Stage
    reason: str
    candidates: tuple[Candidate, ...] = ()
    score: float = 0.0
    judge: str = ""


class Unclear(msgspec.Struct, frozen=True):
    """A message that rules and signals left open, with what a judge may need: the message before it and the cues.

    `features` has the length `signals.FEATURE_COUNT` (float32).
    """

    message: Message
    previous: str
    features: Any


class Judgement(msgspec.Struct, frozen=True):
    """A judge's opinion: probability of "keep" (0 to 1) and of each type, in the order of MemoryType (sums to 1).

    With `candidates` a judge brings its own statements; they replace those that the funnel would write. `judge` names
    who answered ("local", or a fallback's name), for the verdict and for metrics.
    """

    keep: float
    types: tuple[float, ...] = ()
    candidates: tuple[Candidate, ...] | None = None
    judge: str = "local"


class Judge(Protocol):
    """Decides the unclear messages of one call. Answers come in order, one for each; failures raise."""

    def judge(self, unclear: list[Unclear]) -> list[Judgement]:
        """Opinions, in the order of `unclear`."""
        ...


class FunnelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and thresholds. Thresholds of the evaluator that are None come with the trained evaluator.

    `history_messages`: how many earlier messages are looked at for repeats and references; `content_max_chars`: a
    longer message is judged by its beginning and end; `candidates_max`: at most so many memories from one message.
    """

    keep_threshold: float | None = None
    stage_threshold: float | None = None
    history_messages: int = 20
    content_max_chars: int = 8000
    candidates_max: int = 8


class StageReport(msgspec.Struct, frozen=True):
    """What the stages did with a call's messages: counts by the stage that decided, for benches and metrics."""

    by_rule: int
    by_signal: int
    unclear: int

    @property
    def total(self) -> int:
        """All messages of the call."""
        return self.by_rule + self.by_signal + self.unclear


def history_tail(history: Sequence[Message], limit: int) -> list[Message]:
    """The last `limit` messages of the history."""
    return list(history[-limit:]) if limit > 0 else []
