"""The event that sums up an ended session: one line that a person can read, and a payload that a program can.

Purpose: who, when, what for, what was finished and what stays open, inside the limits of an event. What the tenant's
policy rejects is left out, so that a password in a goal does not cost the whole event.

Threading: pure functions.

Rejected: a summary written by a language model (the line must be there without one, and the same after a crash).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from memsvc.memory.drafts import SUMMARY_MAX_CHARS, TAG_MAX_CHARS, Draft
from memsvc.memory.one_line import shortened
from memsvc.memory.owners import Owners
from memsvc.model import Event, Scope, Source

EVENT_TYPE = "session_summary"
GOAL_MAX_CHARS = 300
ITEMS_MAX = 10
ITEM_MAX_CHARS = 120
KEPT_IDS_MAX = 64
_WHO_MAX_CHARS = 16
_SHARES = (0.4, 0.3, 0.3)  # of the room in the line: goal, finished, pending
_HAN = re.compile(r"[\u4e00-\u9fff]")
_MICROS = 1_000_000


class Sitting(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session at its end. Times are UTC microseconds; `kept_ids` are the memories that it gave."""

    owners: Owners
    scope: Scope
    tool: str
    turn_count: int
    goal: str
    finished: Sequence[str]
    pending: Sequence[str]
    start_time_us: int
    end_time_us: int
    kept_ids: Sequence[str]


def episode(sitting: Sitting, admitted: Callable[[str], str]) -> Draft:
    """The event as a draft. `admitted(text)` is the text as the policy lets it in, or empty."""

    def clean(texts: Sequence[str], limit: int) -> list[str]:
        return [shortened(text, limit) for text in (admitted(_one_line(text)) for text in texts) if text]

    goal = "".join(clean([sitting.goal], GOAL_MAX_CHARS))
    finished = clean(sitting.finished[-ITEMS_MAX:], ITEM_MAX_CHARS)
    pending = clean(sitting.pending[:ITEMS_MAX], ITEM_MAX_CHARS)
    owners = sitting.owners
    who = (owners.user_id or "", owners.agent_id or "", sitting.tool)
    participants = list(dict.fromkeys(clean(who, TAG_MAX_CHARS)))
    payload: dict[str, Any] = {
        "tool": admitted(sitting.tool),
        "turn_count": sitting.turn_count,
        "goal": goal,
        "finished": finished,
        "pending": pending,
        "started": _moment(sitting.start_time_us).isoformat(),
        "ended": _moment(sitting.end_time_us).isoformat(),
        "memory_ids": list(sitting.kept_ids)[:KEPT_IDS_MAX],
    }
    return Draft(
        content=_line(sitting, participants, goal, finished, pending),
        scope=sitting.scope,
        source=Source(sitting.tool, owners.session_id or ""),
        occur_time_us=sitting.end_time_us,
        event=Event(EVENT_TYPE, payload, tuple(participants)),
    )


def _line(sitting: Sitting, who: Sequence[str], goal: str, finished: Sequence[str], pending: Sequence[str]) -> str:
    """At most SUMMARY_MAX_CHARS characters, in Chinese when what it tells of is."""
    chinese = bool(_HAN.search(" ".join((goal, *finished, *pending))))
    goal = goal or f"{sitting.turn_count} {'轮对话' if chinese else 'turns'}"
    words = ("完成：", "待办：", "；", "；") if chinese else ("done: ", "open: ", "; ", ", ")
    done_word, open_word, between, comma = words
    day = _moment(sitting.start_time_us).date().isoformat()
    head = " ".join((day, *(shortened(name, _WHO_MAX_CHARS) for name in who[:2]))) + ": "
    parts = [goal]
    parts += [done_word + comma.join(finished)] if finished else []
    parts += [open_word + comma.join(pending)] if pending else []
    room = SUMMARY_MAX_CHARS - len(head) - len(between) * (len(parts) - 1)
    return head + between.join(_fit(parts, room))


def _fit(parts: Sequence[str], room: int) -> list[str]:
    """Each part gets its share of the room, and what shorter ones leave."""
    left = room
    fitted = []
    for i, part in enumerate(parts):
        rest = sum(
            min(len(other), int(room * share)) for other, share in zip(parts[i + 1 :], _SHARES[1:], strict=False)
        )
        fitted.append(shortened(part, left - rest))
        left -= len(fitted[-1])
    return fitted


def _one_line(text: str) -> str:
    """On one line, without what can't be shown (in JSON a control character takes six)."""
    return " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())


def _moment(time_us: int) -> datetime:
    return datetime.fromtimestamp(time_us // _MICROS, UTC)
