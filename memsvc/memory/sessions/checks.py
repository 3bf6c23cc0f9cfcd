"""What a session takes: limits of turns and of changes by hand.

Purpose: refuses, naming the place, before anything is journaled.

Threading: pure functions.

Rejected: cutting what is too long (a caller would believe that it was kept).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memsvc.errors import InvalidArgument, LimitExceeded
from memsvc.memory import drafts as rules
from memsvc.memory.funnel import Message
from memsvc.memory.sessions.state import (
    GOAL_MAX_CHARS,
    ITEM_MAX_CHARS,
    SLOT_KEY_MAX_CHARS,
    SLOT_VALUE_MAX_CHARS,
    StateChange,
)

TURNS_MAX = 200
CHANGES_MAX = 100


def check_turns(turns: Sequence[Message], content_max_bytes: int) -> None:
    """Raises InvalidArgument and LimitExceeded naming the place."""
    if not 1 <= len(turns) <= TURNS_MAX:
        raise InvalidArgument(f"turns has {len(turns)} entries; send 1 to {TURNS_MAX} a call", field="turns")
    for i, turn in enumerate(turns):
        if turn.content.strip():
            rules.check_content(turn.content, content_max_bytes, f"turns[{i}].content")
        elif not turn.tool_calls:
            raise InvalidArgument(f"turns[{i}].content is empty", field=f"turns[{i}].content")
        size = len(msgspec.json.encode(turn.tool_calls))
        if size > content_max_bytes:
            raise LimitExceeded(f"turns[{i}].tool_calls has {size} bytes", field=f"turns[{i}].tool_calls")
        rules.check_length(turn.message_id, rules.SOURCE_MAX_CHARS, f"turns[{i}].message_id")
        rules.check_time(turn.time_us, f"turns[{i}].time")


def check_change(change: StateChange) -> None:
    """Raises InvalidArgument and LimitExceeded naming the field."""
    if change.goal is not None:
        rules.check_length(change.goal, GOAL_MAX_CHARS, "goal")
    for name in ("add_constraints", "remove_constraints", "add_pending", "finish"):
        items = getattr(change, name)
        if len(items) > CHANGES_MAX:
            raise LimitExceeded(f"{name} has {len(items)} entries, the limit is {CHANGES_MAX}", field=name)
        for i, item in enumerate(items):
            if not item.strip():
                raise InvalidArgument(f"{name}[{i}] is empty", field=f"{name}[{i}]")
            rules.check_length(item, ITEM_MAX_CHARS, f"{name}[{i}]")
    if len(change.set_slots) > CHANGES_MAX:
        raise LimitExceeded(
            f"set_slots has {len(change.set_slots)} entries, the limit is {CHANGES_MAX}", field="set_slots"
        )
    for key, value in change.set_slots.items():
        if not key.strip():
            raise InvalidArgument("set_slots has an empty key", field="set_slots")
        rules.check_length(key, SLOT_KEY_MAX_CHARS, "set_slots")
        rules.check_length(value, SLOT_VALUE_MAX_CHARS, "set_slots")
