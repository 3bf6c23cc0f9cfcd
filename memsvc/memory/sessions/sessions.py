"""The open sessions of this process, in memory and in the journal.

Purpose: opens, appends, reads, changes, seals and drops sessions; every change is in the journal before it is answered,
so that a restart continues where kill -9 struck. Nothing of it is in a long-term layer.

Secrets: what a caller says passes the tenant's secrets filter, with `reject` read as `redact`: a turn that was said
can't be unsaid, and refusing a whole call would lose the turns around it; the secret itself never reaches the disk.
What the policy allows is kept.

Threading: any number of threads. Each session has a lock, held for its journal's append, so calls to one session come
one after the other and those to others don't wait. `_table_lock` guards the table and is never held while a session's
lock is taken. What is handed out is a value.

Rejected: one lock for all sessions (a slow disk would stop everybody); work of the summary inside AppendTurns (it costs
more than the call; it is made when somebody reads it, or for many turns at once).
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from memsvc.errors import (
    EtagMismatch,
    InvalidArgument,
    NotActive,
    NotFound,
    RequestIdReused,
    ResourceExhausted,
    StoreCorrupt,
)
from memsvc.memory import drafts as rules
from memsvc.memory import page_tokens
from memsvc.memory.funnel import Message
from memsvc.memory.one_line import shortened
from memsvc.memory.owners import DEFAULT_TENANT, Owners, check, is_anothers, namespace_for
from memsvc.memory.policies import Policies
from memsvc.memory.sensitive import Action, apply
from memsvc.memory.sessions import dialogue
from memsvc.memory.sessions import session as journal
from memsvc.memory.sessions.checks import check_change, check_turns
from memsvc.memory.sessions.condensing import TURNS_MAX, TURNS_MIN, Condenser, Material
from memsvc.memory.sessions.session import Answer, Session
from memsvc.memory.sessions.state import (
    GOAL_MAX_CHARS,
    StateChange,
    ToolOutput,
    changed,
)
from memsvc.memory.sessions.summary import Summary, extended, spoken
from memsvc.memory.transactions import Mutation
from memsvc.model import Namespace, Scope
from memsvc.storage.engine import SessionLog

__all__ = ["Session", "SessionSettings", "Sessions"]

LOG = logging.getLogger("memsvc.sessions")

SESSION_TURNS_MAX = 100_000
TTL_MAX_US = 30 * 86_400_000_000
WAITING_MAX = 16  # turns that left the window and wait for somebody who reads the summary
TOUCH_SHARE = 16  # a read is put down when this share of the time to live has passed since the last record
SWEEP_EVERY_S = 60.0
_SCANNED_BEYOND_CHARS = 8192  # of an output: a secret that begins before the cut is seen whole


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits; see the settings `session_*` of the server."""

    ttl_us: int = 86_400_000_000
    window_turns: int = 6
    summary_tokens: int = 200
    tool_outputs: int = 5
    tool_output_chars: int = 500
    sessions_max: int = 10_000
    content_max_bytes: int = 65_536


class _Entry:
    """A session's place in the table. `session` is replaced under `lock`; readers take the reference."""

    def __init__(self, session: Session) -> None:
        self.lock = threading.Lock()
        self.session = session
        self.answers: OrderedDict[str, Answer] = OrderedDict()
        self.material = Material(())  # of the next question to the chat endpoint
        self.is_dropped = False


class Sessions:
    """See the module. `count_tokens(text)` counts with the model's tokenizer; `make_id` gives ids of new sessions;
    `condenser` asks the chat endpoint, where one is configured.
    """

    def __init__(
        self,
        log: SessionLog,
        *,
        clock_us: Callable[[], int],
        count_tokens: Callable[[str], int],
        settings: SessionSettings,
        policies: Policies,
        make_id: Callable[[], str],
        condenser: Condenser | None = None,
    ) -> None:
        self._log = log
        self._clock_us = clock_us
        self._count_tokens = count_tokens
        self._settings = settings
        self._policies = policies
        self._make_id = make_id
        self._condenser = condenser
        self._table: dict[Namespace, _Entry] = {}
        self._table_lock = threading.Lock()
        self._closing = threading.Event()
        self._sweeper: threading.Thread | None = None
        self._restore()

    # -- calls ---------------------------------------------------------------------------------------------------

    def start(self, owners: Owners, *, tool: str = "", ttl_us: int = 0, goal: str = "") -> tuple[Session, bool]:
        """Opens a session, or finds the open one of that id; whether it was open. `ttl_us` 0: the setting; the one
        that is open keeps its own. A goal that is given replaces the open one's.

        Raises InvalidArgument, LimitExceeded, NotActive for one that has ended, ResourceExhausted when too many are
        open.
        """
        check(owners)
        rules.check_length(tool, rules.SOURCE_MAX_CHARS, "tool")
        rules.check_length(goal, GOAL_MAX_CHARS, "goal")
        if not 0 <= ttl_us <= TTL_MAX_US:
            raise InvalidArgument("ttl must be from 0 to 30 days", field="ttl")
        if owners.session_id is None:
            owners = msgspec.structs.replace(owners, session_id=self._make_id())
        namespace = namespace_for(owners, Scope.SESSION)
        tool, goal = self._clean(owners, (tool, shortened(goal, GOAL_MAX_CHARS)), "goal")
        started = journal.Started(owners, tool, ttl_us or self._settings.ttl_us, self._clock_us(), goal)
        while True:
            with self._table_lock:
                entry = self._table.get(namespace)
                if entry is None:
                    return self._opened(namespace, started), False
            resumed = self._resumed(entry, owners, goal)
            if resumed is not None:
                return resumed, True

    def _opened(self, namespace: Namespace, started: journal.Started) -> Session:
        """Under `_table_lock`."""
        if len(self._table) >= self._settings.sessions_max:
            raise ResourceExhausted(
                f"{len(self._table)} sessions are open, the limit is {self._settings.sessions_max} (setting "
                "sessions_max); end some"
            )
        self._log.append(namespace, journal.encode(started))
        session = self._fresh(namespace, started)
        self._table[namespace] = _Entry(session)
        return session

    def _resumed(self, entry: _Entry, owners: Owners, goal: str) -> Session | None:
        """The open session; None when it is gone and a new one may begin."""
        with entry.lock:
            if entry.is_dropped or self._expired(entry):
                self._forget(entry)
                return None
            self._check_open(entry, owners)
            if goal and goal != entry.session.state.goal:
                state = changed(entry.session.state, StateChange(goal=goal))
                self._put(entry, journal.Changed(_bare(state), self._clock_us()))
            return self._used(entry)

    def append_turns(self, owners: Owners, turns: Sequence[Message], mutation: Mutation) -> tuple[int, int]:
        """Appends turns in order and reads them into the state. Returns the number of the first (from 1) and how many
        turns the session has. A replayed request_id answers as it did first.

        Raises NotFound, NotActive, InvalidArgument, LimitExceeded, RequestIdReused and what the journal raises.
        """
        check_turns(turns, self._settings.content_max_bytes)
        clean = tuple(self._clean_turn(owners, turn, f"turns[{i}]") for i, turn in enumerate(turns))
        with self._locked(owners) as entry:
            first = _replayed(entry, mutation)
            if first is not None:
                return first.first_turn, first.turn_count
            session = entry.session
            if session.turn_count + len(clean) > SESSION_TURNS_MAX:
                raise ResourceExhausted(f"a session holds at most {SESSION_TURNS_MAX} turns; end it")
            if len(session.waiting) + len(clean) > WAITING_MAX:
                session = self._summarised(entry)
            answer = self._put(
                entry,
                journal.Appended(
                    clean,
                    self._clock_us(),
                    _bare(dialogue.tracked(session.state, clean)),
                    session.summary_lines,
                    session.turn_count - len(session.turns),
                    mutation.request_id,
                    mutation.fingerprint,
                ),
            )
            assert answer is not None
            return answer.first_turn, answer.turn_count

    def get(self, owners: Owners) -> Session:
        """The session with its state, window and whole summary. Raises NotFound, NotActive."""
        with self._locked(owners) as entry:
            return self._used(entry)

    def update_state(self, owners: Owners, change: StateChange, etag: str = "") -> Session:
        """Changes the state by hand. Raises EtagMismatch, NotFound, NotActive, InvalidArgument, LimitExceeded."""
        check_change(change)
        clean = StateChange(
            goal=self._clean(owners, change.goal, "goal"),
            add_constraints=self._clean(owners, change.add_constraints, "add_constraints"),
            remove_constraints=change.remove_constraints,
            add_pending=self._clean(owners, change.add_pending, "add_pending"),
            finish=self._clean(owners, change.finish, "finish"),
            set_slots=self._clean(owners, change.set_slots, "set_slots"),
        )
        with self._locked(owners) as entry:
            if etag and etag != entry.session.etag:
                raise EtagMismatch("the session changed since that etag; read its state again", etag=entry.session.etag)
            state = changed(entry.session.state, clean)
            self._put(entry, journal.Changed(_bare(state), self._clock_us()))
            return entry.session

    def record_tool_output(self, owners: Owners, tool: str, content: str, mutation: Mutation) -> bool:
        """Keeps what a tool returned; whether something was cut away. A replayed request_id answers as it did first.

        Raises NotFound, NotActive, InvalidArgument, RequestIdReused and what the journal raises.
        """
        if not tool:
            raise InvalidArgument("tool is empty", field="tool")
        rules.check_length(tool, rules.SOURCE_MAX_CHARS, "tool")
        limit = self._settings.tool_output_chars
        clean = self._clean(owners, content[: limit + _SCANNED_BEYOND_CHARS], "content")
        truncated = len(content) > limit + _SCANNED_BEYOND_CHARS or len(clean) > limit
        output = ToolOutput(self._clean(owners, tool, "tool"), clean[:limit], truncated, self._clock_us())
        with self._locked(owners) as entry:
            first = _replayed(entry, mutation)
            if first is not None:
                return first.truncated
            self._put(entry, journal.Recorded(output, mutation.request_id, mutation.fingerprint))
        return truncated

    # -- for the rooms beside --------------------------------------------------------------------------------------

    def open_session(self, namespace: Namespace) -> Session | None:
        """The session with its whole summary, sealed ones too; None when there is none. Does not count as a use."""
        entry = self._entry(namespace)
        if entry is None:
            return None
        with entry.lock:
            if entry.is_dropped or self._expired(entry):
                return None
            return self._summarised(entry)

    def owners_of(self, namespace: Namespace) -> Owners | None:
        """Whom a session belongs to, sealed ones too; None when there is none."""
        entry = self._entry(namespace)
        return None if entry is None or entry.is_dropped else entry.session.owners

    def turns(self, namespace: Namespace) -> list[Message]:
        """Every turn of a session, oldest first, from the journal. Raises StoreCorrupt, StorageFailure."""
        records = (journal.decode(raw) for raw in self._log.read(namespace))
        return [turn for record in records if isinstance(record, journal.Appended) for turn in record.turns]

    def seal(self, namespace: Namespace) -> Session:
        """Ends a session: no call changes it any more, its turns stay until `drop`. Idempotent. Raises NotFound."""
        entry = self._entry(namespace)
        if entry is None:
            raise NotFound("no open session of that id")
        with entry.lock:
            if entry.is_dropped:
                raise NotFound("no open session of that id")
            if not entry.session.sealed:
                self._put(entry, journal.Sealed(self._clock_us()))
            return entry.session

    def of(self, namespaces: Sequence[Namespace]) -> Sequence[Namespace]:
        """Every session, sealed ones too, that is one of the namespaces, or whose user, project or agent is."""
        wanted = set(namespaces)
        with self._table_lock:
            entries = list(self._table.items())
        return [name for name, entry in entries if name in wanted or wanted & _owning(entry.session.owners)]

    def drop(self, namespace: Namespace, *, is_wiped: bool = False) -> None:
        """Forgets a session, in memory and in the journal. Nothing happens for an unknown one. `is_wiped`: see
        `SessionLog.drop`.
        """
        entry = self._entry(namespace)
        if entry is not None:
            with entry.lock:
                self._forget(entry, is_wiped=is_wiped)

    def move(self, namespace: Namespace, to: Namespace) -> None:
        """Puts a sealed session with its turns under another namespace, which frees its own. What a crash left of an
        earlier try is replaced. Raises NotFound, and what the journal raises: then it is still where it was.
        """
        entry = self._entry(namespace)
        if entry is None:
            raise NotFound("no open session of that id")
        with entry.lock:
            if entry.is_dropped or not entry.session.sealed:
                raise NotFound("no ended session of that id")
            self._log.drop(to)
            for record in self._log.read(namespace):
                self._log.append(to, record)
            moved = self._restored(to)
            with self._table_lock:
                self._table[to] = moved
            self._forget(entry)

    def material(self, namespace: Namespace) -> Material | None:
        """See `condensing.Condensable`."""
        entry = self._entry(namespace)
        return None if entry is None or entry.is_dropped else entry.material

    def condensed(self, namespace: Namespace, material: Material, lines: Summary | None) -> None:
        """See `condensing.Condensable`. Turns that came into the summary meanwhile are added to the lines."""
        entry = self._entry(namespace)
        if entry is None:
            return
        with entry.lock:
            session, now = entry.session, entry.material
            since = now.turns[len(material.turns) :]
            is_same = now.base is material.base and now.turns[: len(material.turns)] == material.turns
            if entry.is_dropped or session.sealed or not is_same:
                return
            if lines is None:
                entry.material = Material(())
                return
            clean = tuple(
                msgspec.structs.replace(line, text=self._clean(session.owners, line.text, "summary")) for line in lines
            )
            summary = self._extended(clean, since)
            self._put(entry, journal.Summarised(summary, session.turn_count - len(session.turns)))
            entry.material = Material(clean if since else (), since)

    # -- life ----------------------------------------------------------------------------------------------------

    def start_sweeping(self) -> None:
        """Starts the thread that drops expired sessions, and the one that condenses summaries."""
        if self._condenser is not None:
            self._condenser.start(self)
        self._sweeper = threading.Thread(target=self._sweep_often, name="session-sweep", daemon=True)
        self._sweeper.start()

    def _sweep_often(self) -> None:
        while not self._closing.wait(SWEEP_EVERY_S):
            self.sweep()

    def sweep(self) -> int:
        """Drops the sessions whose time to live has passed; how many. A sealed one never expires."""
        with self._table_lock:
            entries = list(self._table.values())
        dropped = 0
        for entry in entries:
            if self._expired(entry):
                with entry.lock:
                    if self._expired(entry) and not entry.is_dropped:
                        self._forget(entry)
                        dropped += 1
        return dropped

    def close(self) -> None:
        """Stops the sweep and closes the journal."""
        self._closing.set()
        if self._condenser is not None:
            self._condenser.close()
        if self._sweeper is not None:
            self._sweeper.join()
        self._log.close()

    def _restore(self) -> None:
        """Fills the table from the journal. A session whose records can't be read is left out, and logged."""
        for namespace in list(self._log.open_sessions()):
            try:
                entry = self._restored(namespace)
            except StoreCorrupt as error:
                LOG.warning("a session can't be restored: %s", error.message)
                continue
            if self._expired(entry):
                self._log.drop(namespace)
            else:
                self._table[namespace] = entry

    def _restored(self, namespace: Namespace) -> _Entry:
        records = [journal.decode(raw) for raw in self._log.read(namespace)]
        if not records or not isinstance(records[0], journal.Started):
            raise StoreCorrupt("its journal does not begin with its start")
        entry = _Entry(self._fresh(namespace, records[0]))
        for record in records[1:]:
            self._apply(entry, record)
        return entry

    def _fresh(self, namespace: Namespace, started: journal.Started) -> Session:
        return journal.opened(namespace, started, self._settings.window_turns, self._settings.tool_outputs)

    # -- one session ---------------------------------------------------------------------------------------------

    def _entry(self, namespace: Namespace) -> _Entry | None:
        with self._table_lock:
            return self._table.get(namespace)

    @contextmanager
    def _locked(self, owners: Owners) -> Iterator[_Entry]:
        """The entry of an open session, locked. Raises NotFound, NotActive, InvalidArgument."""
        check(owners)
        entry = self._entry(namespace_for(owners, Scope.SESSION))
        if entry is None:
            raise _unknown(owners)
        with entry.lock:
            if entry.is_dropped:
                raise _unknown(owners)
            if self._expired(entry):
                self._forget(entry)
                raise _unknown(owners)
            self._check_open(entry, owners)
            yield entry

    def _check_open(self, entry: _Entry, owners: Owners) -> None:
        """A session is its owners': an id that was given to another project's or agent's is not found."""
        if is_anothers(entry.session.owners, owners):
            raise _unknown(owners)
        if entry.session.sealed:
            raise NotActive(f"session {owners.session_id} has ended", session_id=owners.session_id or "")

    def _expired(self, entry: _Entry) -> bool:
        session = entry.session
        return not session.sealed and session.expire_time_us <= self._clock_us()

    def _forget(self, entry: _Entry, *, is_wiped: bool = False) -> None:
        """Under the entry's lock."""
        if entry.is_dropped:
            return
        self._log.drop(entry.session.namespace, is_wiped=is_wiped)
        entry.is_dropped = True
        with self._table_lock:
            self._table.pop(entry.session.namespace, None)

    def _put(self, entry: _Entry, record: journal.Record) -> Answer | None:
        """Journals a record, then applies it."""
        self._log.append(entry.session.namespace, journal.encode(record))
        return self._apply(entry, record)

    def _apply(self, entry: _Entry, record: journal.Record) -> Answer | None:
        entry.session = journal.applied(entry.session, record)
        if not isinstance(record, journal.Appended | journal.Recorded):
            return None
        answer = journal.answer_of(entry.session, record)
        if record.request_id:
            entry.answers[record.request_id] = answer
            if len(entry.answers) > journal.ANSWERS_MAX:
                entry.answers.popitem(last=False)
        return answer

    def _used(self, entry: _Entry) -> Session:
        """The whole session, its time to live begun anew; put down now and then only, since a read must be cheap."""
        now_us = self._clock_us()
        if now_us - entry.session.logged_time_us > entry.session.ttl_us // TOUCH_SHARE:
            self._put(entry, journal.Touched(now_us))
        used_us = max(now_us, entry.session.update_time_us)
        entry.session = msgspec.structs.replace(entry.session, update_time_us=used_us)
        return self._summarised(entry)

    def _summarised(self, entry: _Entry) -> Session:
        """The session with every turn that left the window in its summary."""
        session = entry.session
        if not session.waiting:
            return session
        lines = self._extended(session.summary_lines, session.waiting)
        if self._condenser is not None:
            self._note_material(entry, self._condenser)
        entry.session = msgspec.structs.replace(session, summary_lines=lines, turns=session.window)
        return entry.session

    def _extended(self, lines: Summary, turns: Sequence[Message]) -> Summary:
        return extended(lines, turns, self._settings.summary_tokens, self._count_tokens)

    def _note_material(self, entry: _Entry, condenser: Condenser) -> None:
        """Adds the turns that go into the summary now to what the chat endpoint is asked about."""
        session, known = entry.session, entry.material
        if not known.turns or len(known.turns) + len(session.waiting) > TURNS_MAX:
            known = Material(session.summary_lines)
        said = (msgspec.structs.replace(turn, content=spoken(turn)) for turn in session.waiting)
        entry.material = Material(known.base, (*known.turns, *said))
        if len(entry.material.turns) >= TURNS_MIN:
            condenser.want(session.namespace)

    # -- checks --------------------------------------------------------------------------------------------------

    def _clean(self, owners: Owners, value: Any, path: str) -> Any:
        """The value without secrets; see the module."""
        policy = self._policies.of(owners.tenant or DEFAULT_TENANT)
        return apply(value, policy.refusing_by(Action.REDACT), path)

    def _clean_turn(self, owners: Owners, turn: Message, path: str) -> Message:
        said = (turn.content, turn.message_id, *turn.tool_calls)
        content, message_id, *tool_calls = self._clean(owners, said, path)
        return Message(turn.speaker, content, turn.time_us, tuple(tool_calls), message_id)

    # Last: in this class's annotations below it, `list` would be this method.
    def list(self, owners: Owners, size: int, page_token: str) -> tuple[list[Session], str]:
        """One page of the open sessions of exactly these owner ids, newest first, and the next token.

        Raises InvalidArgument.
        """
        check(owners)
        wanted = _whose(owners)
        with self._table_lock:
            entries = list(self._table.values())
        now_us = self._clock_us()
        found = [
            entry.session
            for entry in entries
            if _whose(entry.session.owners) == wanted
            and not entry.session.sealed
            and entry.session.expire_time_us > now_us
        ]
        return page_tokens.newest_first("sessions", found, _place, size, page_token, tuple[int, str])


def _replayed(entry: _Entry, mutation: Mutation) -> Answer | None:
    """The first answer under the request_id, if one is known. Raises RequestIdReused for another request's."""
    first = entry.answers.get(mutation.request_id) if mutation.request_id else None
    if first is not None and first.fingerprint != mutation.fingerprint:
        raise RequestIdReused("request_id came before with another request", field="request_id")
    return first


def _bare(state: Any) -> Any:
    """The state without tool outputs: they have records of their own."""
    return msgspec.structs.replace(state, tool_outputs=())


def _place(session: Session) -> tuple[int, str]:
    return session.start_time_us, session.session_id


def _whose(owners: Owners) -> tuple[str, str | None, str | None, str | None]:
    return owners.tenant or DEFAULT_TENANT, owners.user_id, owners.project_id, owners.agent_id


def _owning(owners: Owners) -> set[Namespace]:
    """Namespaces of those whom a session belongs to."""
    given = (Scope.USER, owners.user_id), (Scope.PROJECT, owners.project_id), (Scope.AGENT, owners.agent_id)
    return {namespace_for(owners, scope) for scope, owner in given if owner is not None}


def _unknown(owners: Owners) -> NotFound:
    return NotFound(f"no open session {owners.session_id}", session_id=owners.session_id or "")
