"""Between the contract's messages and the model's values, for what is learnt: messages, verdicts, reviews, conflicts.

Purpose: the other half of `convert`, for the calls Ingest, Review, ListConflicts and ResolveConflict.

Threading: pure functions.

Rejected: protobuf's json_format (see `convert`).
"""

from __future__ import annotations

from memsvc.errors import InvalidArgument
from memsvc.memory.drafts import Draft
from memsvc.memory.funnel import Message
from memsvc.memory.ingest import Judged, Made
from memsvc.memory.settling import Conflict, Resolution, ReviewAction, ReviewDecision
from memsvc.model import NEVER_US
from memsvc.service import convert
from memsvc.v1 import memory_service_pb2 as spb

SPEAKERS = {
    spb.SPEAKER_USER: "user",
    spb.SPEAKER_AGENT: "agent",
    spb.SPEAKER_TOOL: "tool",
    spb.SPEAKER_SYSTEM: "system",
}


def said(message: spb.Message, path: str, now_us: int) -> Message:
    """A message of a conversation. Raises InvalidArgument naming the field below `path`."""
    if message.speaker not in SPEAKERS:
        raise InvalidArgument(f"{path}.speaker must be USER, AGENT, TOOL or SYSTEM", field=f"{path}.speaker")
    return Message(
        SPEAKERS[message.speaker],
        message.content,
        convert.time_us(message.time, f"{path}.time") if message.HasField("time") else now_us,
        tuple({"name": call.name, "arguments": call.arguments} for call in message.tool_calls),
        message.message_id,
    )


def verdict(judged: Judged) -> spb.MessageVerdict:
    """The verdict on a message."""
    return spb.MessageVerdict(
        decision=int(judged.verdict.decision),  # type: ignore[arg-type]
        stage=int(judged.verdict.stage),  # type: ignore[arg-type]
        reason=judged.verdict.reason,
        memories=[_made(made) for made in judged.made],
        fell_back=judged.fell_back,
    )


def _made(made: Made) -> spb.IngestedMemory:
    message = spb.IngestedMemory(memory=_draft_message(made.draft), stable=made.stable)
    if made.result is not None:
        message.result.CopyFrom(convert.write_result(made.result))
    return message


def _draft_message(draft: Draft) -> spb.MemoryDraft:
    message = spb.MemoryDraft(
        content=draft.content,
        type=int(draft.type or 0),  # type: ignore[arg-type]
        layer=int(draft.layer or 0),  # type: ignore[arg-type]
        scope=int(draft.scope or 0),  # type: ignore[arg-type]
        subject=draft.subject,
        source=convert.source_message(draft.source),
        importance=draft.importance,
        confidence=draft.confidence,
    )
    if draft.occur_time_us is not None:
        message.occur_time.CopyFrom(convert.timestamp(draft.occur_time_us))
    if draft.expire_time_us is not None and draft.expire_time_us != NEVER_US:
        message.expire_time.CopyFrom(convert.timestamp(draft.expire_time_us))
    return message


def decision(message: spb.ReviewDecision, path: str) -> ReviewDecision:
    """A decision of a review. Raises InvalidArgument naming the field below `path`."""
    action = convert.optional_enum(ReviewAction, message.action, f"{path}.action")
    if action is None:
        raise InvalidArgument(f"{path}.action is not set: CONFIRM, CORRECT, FORGET or BLOCK", field=f"{path}.action")
    return ReviewDecision(message.memory_id, action, message.content, message.reason)


def resolution(value: int) -> Resolution:
    """How a conflict is settled. Raises InvalidArgument."""
    found: Resolution | None = convert.optional_enum(Resolution, value, "resolution")
    if found is None:
        raise InvalidArgument("resolution is not set: KEEP_NEWER, KEEP_OLDER or KEEP_BOTH", field="resolution")
    return found


def conflict_message(conflict: Conflict, now_us: int) -> spb.Conflict:
    """A conflict that waits."""
    return spb.Conflict(
        newer=convert.memory_message(conflict.newer, now_us),
        older=[convert.memory_message(memory, now_us) for memory in conflict.older],
        summary=conflict.summary,
        evidence=convert.struct_message(conflict.evidence),
    )
