"""One session as a value, its journal's records, and what a record does to it.

Purpose: a call makes a record, appends it to the journal and applies it; a restart applies the same records again. So
there is one account of what a session is. Turns carry the state and the summary after them, so that a restart need not
read them again and a later version's rules don't change what was agreed on. Only the window and the turns that still
wait for the summary are held in memory; the others are in the journal.

Threading: immutable values, pure functions.

Rejected: a mutable session behind getters (a reader would need its lock, and see half of a call).
"""

from __future__ import annotations

import msgspec

from memsvc.errors import StoreCorrupt
from memsvc.memory.funnel import Message
from memsvc.memory.owners import Owners
from memsvc.memory.sessions.state import SessionState, ToolOutput
from memsvc.memory.sessions.summary import Summary
from memsvc.model import Namespace

ANSWERS_MAX = 128  # a retry comes within seconds; a request_id older than this many calls is not known any more


class Answer(msgspec.Struct, frozen=True):
    """The first answer under a request_id, and a hash of that request. The numbers are AppendTurns', `truncated` is
    RecordToolOutput's.
    """

    fingerprint: bytes
    first_turn: int = 0
    turn_count: int = 0
    truncated: bool = False


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session at one moment. Times are UTC microseconds; `turns` are those in memory: what waits for the summary,
    then the window.
    """

    namespace: Namespace
    owners: Owners
    tool: str
    ttl_us: int
    start_time_us: int
    update_time_us: int
    logged_time_us: int
    window_turns: int
    tool_outputs_max: int
    state: SessionState
    turn_count: int = 0
    change_count: int = 1
    turns: tuple[Message, ...] = ()
    summary_lines: Summary = ()
    sealed: bool = False

    @property
    def session_id(self) -> str:
        """The id that the callers know it by."""
        return self.owners.session_id or ""

    @property
    def expire_time_us(self) -> int:
        """When it ends by itself."""
        return self.update_time_us + self.ttl_us

    @property
    def etag(self) -> str:
        """Counts changes."""
        return str(self.change_count)

    @property
    def window(self) -> tuple[Message, ...]:
        """The last turns, oldest first."""
        return self.turns[-self.window_turns :]

    @property
    def waiting(self) -> tuple[Message, ...]:
        """Turns that left the window and are not in the summary yet."""
        return self.turns[: -self.window_turns]

    @property
    def summary(self) -> str:
        """What was said before the window; complete once `Sessions` handed the session out."""
        return "\n".join(line.text for line in self.summary_lines)


class Started(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """It was opened."""

    owners: Owners
    tool: str
    ttl_us: int
    time_us: int
    goal: str


class Appended(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Turns came. `state` has no tool outputs; `summarised` counts the turns that `summary` speaks for."""

    turns: tuple[Message, ...]
    time_us: int
    state: SessionState
    summary: Summary
    summarised: int
    request_id: str
    fingerprint: bytes


class Changed(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The state was changed by hand. `state` has no tool outputs."""

    state: SessionState
    time_us: int


class Recorded(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """A tool returned."""

    output: ToolOutput
    request_id: str = ""  # a journal from before RecordToolOutput had one lacks both
    fingerprint: bytes = b""


class Touched(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """It was used without a change."""

    time_us: int


class Sealed(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """It ended; its turns stay until it is dropped."""

    time_us: int


class Summarised(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The chat endpoint condensed the summary, which speaks for the first `summarised` turns."""

    summary: Summary
    summarised: int


Record = Started | Appended | Changed | Recorded | Touched | Sealed | Summarised
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """A record's bytes."""
    return _encoder.encode(record)


def decode(raw: bytes) -> Record:
    """Inverse of `encode`. Raises StoreCorrupt."""
    try:
        record: Record = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreCorrupt("a record of a session can't be decoded") from error
    return record


def opened(namespace: Namespace, record: Started, window_turns: int, tool_outputs_max: int) -> Session:
    """A new session."""
    return Session(
        namespace=namespace,
        owners=record.owners,
        tool=record.tool,
        ttl_us=record.ttl_us,
        start_time_us=record.time_us,
        update_time_us=record.time_us,
        logged_time_us=record.time_us,
        window_turns=window_turns,
        tool_outputs_max=tool_outputs_max,
        state=SessionState(goal=record.goal),
    )


def applied(session: Session, record: Record) -> Session:
    """The session after a record. Raises StoreCorrupt for a second Started."""
    replace = msgspec.structs.replace
    if isinstance(record, Sealed):
        return replace(session, sealed=True, change_count=session.change_count + 1)
    if isinstance(record, Summarised):
        return replace(
            session, summary_lines=record.summary, turns=_kept(session.turns, session.turn_count - record.summarised)
        )
    time_us = record.output.time_us if isinstance(record, Recorded) else getattr(record, "time_us", 0)
    used = replace(session, update_time_us=max(session.update_time_us, time_us), logged_time_us=time_us)
    if isinstance(record, Touched):
        return used
    used = replace(used, change_count=session.change_count + 1)
    if isinstance(record, Changed):
        return replace(used, state=replace(record.state, tool_outputs=session.state.tool_outputs))
    if isinstance(record, Recorded):
        outputs = (*session.state.tool_outputs, record.output)
        kept = outputs[-session.tool_outputs_max :] if session.tool_outputs_max else ()
        return replace(used, state=replace(session.state, tool_outputs=kept))
    if isinstance(record, Appended):
        count = session.turn_count + len(record.turns)
        return replace(
            used,
            turn_count=count,
            turns=_kept((*session.turns, *record.turns), count - record.summarised),
            summary_lines=record.summary,
            state=replace(record.state, tool_outputs=session.state.tool_outputs),
        )
    raise StoreCorrupt("a session was started twice")


def _kept(turns: tuple[Message, ...], count: int) -> tuple[Message, ...]:
    """The last turns: those that a summary does not speak for, and one at least."""
    return turns[-max(count, 1) :]


def answer_of(session: Session, record: Appended | Recorded) -> Answer:
    """What the call that made the record answers, from the session after the record."""
    if isinstance(record, Recorded):
        return Answer(record.fingerprint, truncated=record.output.truncated)
    return Answer(record.fingerprint, session.turn_count - len(record.turns) + 1, session.turn_count)
