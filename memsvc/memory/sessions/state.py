"""What a conversation is about now: the state that a session carries, and how it is changed by hand.

Purpose: plain values with limits on everything; the oldest entry goes when a list is full.

Threading: immutable values, pure functions.

Rejected: a state per speaker (a task has one goal, whoever works on it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from memsvc.memory.one_line import shortened

GOAL_MAX_CHARS = 300
ITEM_MAX_CHARS = 200
CONSTRAINTS_MAX = 20
FINISHED_MAX = 30
PENDING_MAX = 30
SLOTS_MAX = 50
SLOT_KEY_MAX_CHARS = 64
SLOT_VALUE_MAX_CHARS = 256


class ToolOutput(msgspec.Struct, frozen=True, array_like=True):
    """What a tool returned, cut to its limit. `time_us` is UTC microseconds."""

    tool: str
    content: str
    truncated: bool
    time_us: int


class SessionState(msgspec.Struct, frozen=True, array_like=True):
    """See the module. `standing` are those of the constraints that outlive a change of the goal."""

    goal: str = ""
    constraints: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    slots: dict[str, str] = {}
    tool_outputs: tuple[ToolOutput, ...] = ()
    standing: tuple[str, ...] = ()


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change by hand; see UpdateState of the contract. `goal` None leaves it, empty clears it."""

    goal: str | None = None
    add_constraints: tuple[str, ...] = ()
    remove_constraints: tuple[str, ...] = ()
    add_pending: tuple[str, ...] = ()
    finish: tuple[str, ...] = ()
    set_slots: dict[str, str] = {}


def added(items: tuple[str, ...], new: Iterable[str], limit: int) -> tuple[str, ...]:
    """The items with new ones at the end, each once and shortened; the oldest go when there are too many."""
    joined = dict.fromkeys(items)
    for text in new:
        short = shortened(text, ITEM_MAX_CHARS)
        if short:
            joined.pop(short, None)
            joined[short] = None
    return tuple(joined)[-limit:]


def without(items: tuple[str, ...], gone: Iterable[str]) -> tuple[str, ...]:
    """The items that are not among `gone`."""
    names = {shortened(text, ITEM_MAX_CHARS) for text in gone}
    return tuple(item for item in items if item not in names)


def with_slots(slots: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """The slots with new values; an empty one removes its slot, the oldest go when there are too many."""
    joined = dict(slots)
    for key, value in new.items():
        name = shortened(key, SLOT_KEY_MAX_CHARS)
        joined.pop(name, None)
        if name and value:
            joined[name] = shortened(value, SLOT_VALUE_MAX_CHARS)
    return dict(list(joined.items())[-SLOTS_MAX:])


def changed(state: SessionState, change: StateChange) -> SessionState:
    """The state after a change by hand. A constraint set by hand stays until it is taken away by hand."""
    removed = change.remove_constraints
    new = [shortened(text, ITEM_MAX_CHARS) for text in change.add_constraints]
    return msgspec.structs.replace(
        state,
        goal=state.goal if change.goal is None else shortened(change.goal, GOAL_MAX_CHARS),
        constraints=added(without(state.constraints, removed), new, CONSTRAINTS_MAX),
        standing=added(without(state.standing, removed), new, CONSTRAINTS_MAX),
        pending=added(without(state.pending, change.finish), change.add_pending, PENDING_MAX),
        finished=added(state.finished, change.finish, FINISHED_MAX),
        slots=with_slots(state.slots, change.set_slots),
    )
