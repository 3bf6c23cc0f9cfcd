"""Consolidation: what mattered in an ended session moves to the long-term layers, behind the answer of End.

Purpose: `end` stores one job beside the session and seals it; a worker then sends the turns through the funnel, writes
the event that sums the session up, and drops the session. Where that failed for good and the id is opened again, the
failed session and its job go under an id of their own. Every step has a request_id that follows from the job's id,
and progress is stored after each batch: after a crash the job goes on where it was, and nothing happens twice.

Threading: any number of callers; one worker runs the jobs, one after the other. `_lock` orders ends, drops and the
start of a job; `_changed` guards the queue and wakes the worker and those who wait. Neither is held while a batch runs:
`_moving` is, from its first record to its progress, which is where a backup must not look.

Rejected: consolidating inside End (seconds of embedding before the answer); a queue in memory (lost by a crash); one
transaction for a whole session (it would hold up every other writer); taking a failed session up again when its id is
opened (what made it fail would fail the new turns, too).
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from memsvc.errors import (
    Cancelled,
    MemsvcError,
    NotActive,
    NotFound,
    ResourceExhausted,
    SensitiveContent,
    StorageFailure,
    Unavailable,
)
from memsvc.memory.funnel import FunnelSettings, Message
from memsvc.memory.ingest import Ingestor
from memsvc.memory.memories import Memories, WriteResult
from memsvc.memory.owners import DEFAULT_TENANT, Owners, check, namespace_for
from memsvc.memory.policies import Policies
from memsvc.memory.sensitive import apply
from memsvc.memory.sessions.episode import Sitting, episode
from memsvc.memory.transactions import Mutation
from memsvc.model import Namespace, Outcome, Scope
from memsvc.storage.engine import Engine, RecordTable, WriteTxn

if TYPE_CHECKING:
    from memsvc.memory.sessions.sessions import Session, Sessions

LOG = logging.getLogger("memsvc.consolidation")

JOB_KEY = "consolidation"
BATCH_TURNS = 50
HISTORY_TURNS = FunnelSettings().history_messages
RETRY_WAITS_S = (1.0, 5.0, 30.0, 120.0)
SWEEP_EVERY_S = 3600.0
RETENTION_US = 7 * 86_400_000_000
WAITERS_MAX = 8  # of the server's threads; one more is answered at once
_POLL_S = 0.5  # how soon a waiting call notices that its caller is gone
_TRANSIENT = (Unavailable, StorageFailure, ResourceExhausted)
_KEPT = (Outcome.CREATED, Outcome.MERGED, Outcome.SUPERSEDED, Outcome.CONTESTED)


class ConsolidationState(IntEnum):
    """Where a consolidation is; numbers equal the contract's."""

    PENDING = 1
    RUNNING = 2
    DONE = 3
    FAILED = 4
    DISCARDED = 5


FINAL = (ConsolidationState.DONE, ConsolidationState.FAILED, ConsolidationState.DISCARDED)


class Consolidation(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is and what it stored. Times are UTC microseconds; `episode_id` is empty when nothing was said."""

    session_id: str
    state: ConsolidationState
    create_time_us: int
    update_time_us: int
    done_turns: int = 0
    total_turns: int = 0
    results: tuple[WriteResult, ...] = ()
    episode_id: str = ""
    error: str = ""
    set_aside_id: str = ""


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """The record: what was asked for, and how far it is. All request_ids of the job follow from `job_id`. `owners` name
    the session as its caller did, with the agent and project that it belongs to; `view.session_id` is where it is now.
    """

    job_id: str
    owners: Owners
    scope: Scope
    discard: bool
    actor: str
    view: Consolidation

    def moved(self, **fields: object) -> _Job:
        """With fields of the view changed."""
        return msgspec.structs.replace(self, view=msgspec.structs.replace(self.view, **fields))

    def step(self, name: str) -> Mutation:
        """The replay identity of one step."""
        step_id = uuid.uuid5(uuid.UUID(self.job_id), name)
        return Mutation(str(step_id), step_id.bytes, self.actor)


class Consolidator:
    """See the module. Works once `start` was called; `close` leaves a running job to the next start."""

    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        ingestor: Ingestor,
        memories: Memories,
        policies: Policies,
        *,
        clock_us: Callable[[], int],
        monotonic_s: Callable[[], float] = time.monotonic,
        new_uuid: Callable[[], uuid.UUID] = uuid.uuid4,
        retention_us: int = RETENTION_US,
        retry_waits_s: Sequence[float] = RETRY_WAITS_S,
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._ingestor = ingestor
        self._memories = memories
        self._policies = policies
        self._clock_us = clock_us
        self._monotonic_s = monotonic_s
        self._new_uuid = new_uuid
        self._retention_us = retention_us
        self._retry_waits_s = tuple(retry_waits_s)
        self._lock = threading.Lock()
        self._moving = threading.Lock()
        self._changed = threading.Condition()
        self._due_s: dict[Namespace, float] = {}
        self._failures: dict[Namespace, int] = {}
        self._waiters = threading.BoundedSemaphore(WAITERS_MAX)
        self._stopping = False
        self._swept_s = float("-inf")
        self._thread: threading.Thread | None = None

    # -- calls ---------------------------------------------------------------------------------------------------

    def open(self, owners: Owners, *, tool: str = "", ttl_us: int = 0, goal: str = "") -> tuple[Session, bool]:
        """`Sessions.start`, also where the consolidation of the last session of that id failed for good: that one is
        set aside, and `set_aside_id` tells where it is.
        """
        try:
            return self._sessions.start(owners, tool=tool, ttl_us=ttl_us, goal=goal)
        except NotActive:
            if not self._set_aside(owners):
                raise
        return self._sessions.start(owners, tool=tool, ttl_us=ttl_us, goal=goal)

    def _set_aside(self, owners: Owners) -> bool:
        """Whether the id is free for a new session now. The jobs' records go first: a crash leaves the turns where the
        next try finds them.
        """
        namespace = namespace_for(owners, Scope.SESSION)
        with self._lock:
            job, session = self._load(namespace), self._sessions.open_session(namespace)
            if session is None or not session.sealed:
                return True
            if job is None:  # a crash came while it was swept
                self._drop_overdue(namespace)
                return True
            if job.view.state != ConsolidationState.FAILED:
                return False
            aside_id = f"failed-{job.job_id}"
            aside = _session_namespace(owners, aside_id)
            if job.view.set_aside_id != aside_id:
                self._put_both(namespace, job, aside, aside_id)
            self._sessions.move(namespace, aside)
            return True

    def _put_both(self, namespace: Namespace, job: _Job, aside: Namespace, aside_id: str) -> None:
        kept = msgspec.msgpack.encode(job.moved(session_id=aside_id))
        left = msgspec.msgpack.encode(job.moved(set_aside_id=aside_id))

        def put(txn: WriteTxn) -> None:
            txn.put_record(RecordTable.JOB, aside, JOB_KEY, kept)
            txn.put_record(RecordTable.JOB, namespace, JOB_KEY, left)

        self._engine.write(put)

    def _earlier_aside(self, owners: Owners, last: _Job | None) -> str:
        """The id under which an earlier session waits, as long as it does."""
        if last is None or not last.view.set_aside_id:
            return ""
        job = self._load(_session_namespace(owners, last.view.set_aside_id))
        waits = job is not None and job.view.state not in (ConsolidationState.DONE, ConsolidationState.DISCARDED)
        return last.view.set_aside_id if waits else ""

    def end(self, owners: Owners, scope: Scope | None, discard: bool, actor: str) -> Consolidation:
        """Ends a session; answers before anything is consolidated. Again, it answers how far that is, and starts a
        failed one once more. An id that was opened again since then is ended again.

        Raises InvalidArgument without a session_id or the scope's owner id, NotFound for a session that is not open.
        """
        check(owners)
        namespace = namespace_for(owners, Scope.SESSION)
        scope = namespace_for(owners, scope).scope
        with self._lock:
            job = self._load(namespace)
            session = self._sessions.open_session(namespace)
            is_new = session is not None and not session.sealed
            if job is not None and job.view.state not in FINAL:
                pass  # asked again, or a crash came before the session was sealed
            elif job is not None and not is_new and (session is None or job.view.state != ConsolidationState.FAILED):
                return job.view
            elif session is None:
                raise NotFound(f"no open session {owners.session_id}", session_id=owners.session_id or "")
            elif job is not None and not is_new:
                again = msgspec.structs.replace(job, discard=discard)
                job = self._put(namespace, again.moved(state=ConsolidationState.PENDING, error=""))
            else:
                job = self._put(namespace, self._new_job(owners, scope, discard, actor, session, job))
            if job.discard:
                return self._discard(namespace, job).view
            if session is not None:
                total = self._sessions.seal(namespace).turn_count
                job = job.moved(total_turns=total)
        self._enqueue(namespace, 0.0)
        return job.view

    def owners_of(self, namespace: Namespace) -> Owners | None:
        """Whom the session belonged to that was ended last; None when none was."""
        job = self._load(namespace)
        return None if job is None else job.owners

    def status(self, owners: Owners) -> Consolidation:
        """How far it is. Raises NotFound for a session that was not ended, or whose record's time has passed."""
        check(owners)
        job = self._load(namespace_for(owners, Scope.SESSION))
        if job is None:
            raise NotFound(f"session {owners.session_id} was not ended", session_id=owners.session_id or "")
        return job.view

    def wait(self, owners: Owners, timeout_s: float, still_wanted: Callable[[], bool] = lambda: True) -> Consolidation:
        """`status`, waiting up to `timeout_s` for it to be done or failed; at once when WAITERS_MAX wait already."""
        if timeout_s <= 0 or not self._waiters.acquire(blocking=False):
            return self.status(owners)
        try:
            until_s = self._monotonic_s() + timeout_s
            with self._changed:
                while True:
                    view = self.status(owners)
                    left_s = until_s - self._monotonic_s()
                    if view.state in FINAL or left_s <= 0 or self._stopping or not still_wanted():
                        return view
                    self._changed.wait(min(left_s, _POLL_S))
        finally:
            self._waiters.release()

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the worker; what an earlier process left unfinished is queued."""
        with self._engine.read() as txn:
            left = [ns for ns, key, _ in txn.all_records(RecordTable.JOB) if key == JOB_KEY]
        for namespace in left:
            self._enqueue(namespace, 0.0)
        self._thread = threading.Thread(target=self._work, name="consolidation", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops before the next batch is stored and waits for that. Safe without `start`."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing moves from sessions to long-term layers meanwhile: whoever copies the sessions first, then the store,
        has each turn in one of them. Waits for a batch that runs.
        """
        with self._moving:
            yield

    def _enqueue(self, namespace: Namespace, wait_s: float) -> None:
        with self._changed:
            self._due_s[namespace] = self._monotonic_s() + wait_s
            self._changed.notify_all()

    def _work(self) -> None:
        while not self._stopping:
            if self._monotonic_s() - self._swept_s >= SWEEP_EVERY_S:
                self._guarded(self.sweep, None)
                self._swept_s = self._monotonic_s()
            namespace = self._next()
            if namespace is not None:
                self._guarded(lambda ns=namespace: self.run(ns), namespace)  # type: ignore[misc]

    def _next(self) -> Namespace | None:
        """The job that is due first, waiting for it; None to look at other duties."""
        with self._changed:
            if self._stopping:
                return None
            now_s = self._monotonic_s()
            namespace = min(self._due_s, key=self._due_s.__getitem__, default=None)
            if namespace is not None and self._due_s[namespace] <= now_s:
                del self._due_s[namespace]
                return namespace
            self._changed.wait(SWEEP_EVERY_S if namespace is None else self._due_s[namespace] - now_s)
            return None

    def _guarded(self, duty: Callable[[], None], namespace: Namespace | None) -> None:
        """Runs a duty of the worker; a failure ends that job or has it tried again, never the worker."""
        try:
            duty()
        except Cancelled:
            LOG.info("consolidation stopped; the next start goes on with it")
        except MemsvcError as error:
            self._failed(namespace, f"{error.reason}: {error.message}", isinstance(error, _TRANSIENT))
        except Exception as error:  # the edge of the process: a bug in one job must not stop all others
            LOG.exception("consolidation failed")
            self._failed(namespace, f"internal error: {type(error).__name__}; see the log", False)

    def _failed(self, namespace: Namespace | None, why: str, is_transient: bool) -> None:
        LOG.warning("consolidation: %s", why)
        if namespace is None:
            return
        failures = self._failures.get(namespace, 0)
        if is_transient and failures < len(self._retry_waits_s):
            self._failures[namespace] = failures + 1
            self._enqueue(namespace, self._retry_waits_s[failures])
            return
        self._failures.pop(namespace, None)
        try:
            job = self._load(namespace)
            if job is not None and job.view.state not in FINAL:
                self._put(namespace, job.moved(state=ConsolidationState.FAILED, error=why))
        except MemsvcError as error:
            LOG.warning("consolidation: its failure can't be stored either: %s", error.reason)
            self._enqueue(namespace, self._retry_waits_s[-1])

    # -- the job -------------------------------------------------------------------------------------------------

    def run(self, namespace: Namespace) -> None:
        """Carries a session's job to its end, from wherever it is. Nothing to do for one that is final: only a sealed
        session that a crash left behind is dropped.

        Raises Cancelled when the consolidator is closed meanwhile, and whatever the store and ingest raise.
        """
        with self._lock:
            job = self._load(namespace)
            if job is None or job.view.state == ConsolidationState.FAILED:
                return
            session = self._sessions.open_session(namespace)
            if job.view.state in FINAL:
                if session is not None and session.sealed:
                    self._sessions.drop(namespace)
                return
            if job.discard:
                self._discard(namespace, job)
                return
            if session is None:
                raise NotFound("the session's turns are gone")
            session = self._sessions.seal(namespace)
        turns = self._sessions.turns(namespace)
        job = self._put(namespace, job.moved(state=ConsolidationState.RUNNING, total_turns=len(turns)))
        for first in range(job.view.done_turns, len(turns), BATCH_TURNS):
            with self._moving:
                job = self._put(namespace, self._ingested(job, session.tool, turns, first))
        with self._moving:
            episode_id = self._episode(job, session, turns) if turns else ""
            self._put(namespace, job.moved(state=ConsolidationState.DONE, episode_id=episode_id))
            self._sessions.drop(namespace)
        self._failures.pop(namespace, None)

    def _ingested(self, job: _Job, tool: str, turns: Sequence[Message], first: int) -> _Job:
        """One batch through the funnel; the job with its progress."""
        session_id = job.owners.session_id or ""
        batch = [_named(turn, session_id, n) for n, turn in enumerate(turns[first : first + BATCH_TURNS], first + 1)]
        before = turns[max(0, first - HISTORY_TURNS) : first]  # from the journal: a restart judges as if there was none
        judged = self._ingestor.ingest(
            job.owners,
            job.scope,
            batch,
            session_id=session_id,
            tool=tool,
            dry_run=False,
            mutation=job.step(f"turns from {first + 1}"),
            history=before,
            still_wanted=lambda: not self._stopping,
        )
        results = (made.result for one in judged for made in one.made if made.result is not None)
        return job.moved(done_turns=first + len(batch), results=(*job.view.results, *results))

    def _episode(self, job: _Job, session: Session, turns: Sequence[Message]) -> str:
        """Writes the event that sums the session up; its id, or "" where it is on the blocklist."""
        policy = self._policies.of(job.owners.tenant or DEFAULT_TENANT)

        def admitted(text: str) -> str:
            try:
                return str(apply(text, policy, "session"))
            except SensitiveContent:
                return ""

        kept = dict.fromkeys(result.memory_id for result in job.view.results if result.outcome in _KEPT)
        sitting = Sitting(
            owners=job.owners,
            scope=job.scope,
            tool=session.tool,
            turn_count=len(turns),
            goal=session.state.goal,
            finished=session.state.finished,
            pending=session.state.pending,
            start_time_us=turns[0].time_us,
            end_time_us=turns[-1].time_us,
            kept_ids=tuple(kept),
        )
        draft = episode(sitting, admitted)
        (result,) = self._memories.write(
            job.owners, [draft], job.step("episode"), path="episode", still_wanted=lambda: not self._stopping
        )
        return "" if result.outcome == Outcome.REJECTED else result.memory_id

    def _discard(self, namespace: Namespace, job: _Job) -> _Job:
        if self._sessions.open_session(namespace) is not None:
            self._sessions.drop(namespace)
        return self._put(namespace, job.moved(state=ConsolidationState.DISCARDED))

    def sweep(self) -> None:
        """Drops the records that have been final for longer than the retention, and the turns of failed ones."""
        before_us = self._clock_us() - self._retention_us
        with self._engine.read() as txn:
            records = [(ns, value) for ns, key, value in txn.all_records(RecordTable.JOB) if key == JOB_KEY]
        for namespace, value in records:
            view = _decode(value).view
            if view.state not in FINAL or view.update_time_us > before_us:
                continue
            with self._lock:
                session = self._sessions.open_session(namespace)
                if self._engine.write(_dropping(namespace, value)) and session is not None and session.sealed:
                    self._drop_overdue(namespace)

    def _drop_overdue(self, namespace: Namespace) -> None:
        LOG.warning("the turns of a session whose consolidation failed are dropped after their retention")
        self._sessions.drop(namespace)

    # -- the record ----------------------------------------------------------------------------------------------

    def _new_job(
        self, owners: Owners, scope: Scope, discard: bool, actor: str, session: Session, last: _Job | None
    ) -> _Job:
        view = Consolidation(
            session_id=owners.session_id or "",
            state=ConsolidationState.PENDING,
            create_time_us=self._clock_us(),
            update_time_us=0,
            total_turns=session.turn_count,
            set_aside_id=self._earlier_aside(owners, last),
        )
        whose = msgspec.structs.replace(
            owners,
            project_id=owners.project_id or session.owners.project_id,
            agent_id=owners.agent_id or session.owners.agent_id,
        )
        return _Job(job_id=str(self._new_uuid()), owners=whose, scope=scope, discard=discard, actor=actor, view=view)

    def _load(self, namespace: Namespace) -> _Job | None:
        with self._engine.read() as txn:
            value = txn.record(RecordTable.JOB, namespace, JOB_KEY)
        return None if value is None else _decode(value)

    def _put(self, namespace: Namespace, job: _Job) -> _Job:
        job = job.moved(update_time_us=self._clock_us())
        value = msgspec.msgpack.encode(job)
        self._engine.write(lambda txn: txn.put_record(RecordTable.JOB, namespace, JOB_KEY, value))
        with self._changed:
            self._changed.notify_all()
        return job


def _session_namespace(owners: Owners, session_id: str) -> Namespace:
    return namespace_for(msgspec.structs.replace(owners, session_id=session_id), Scope.SESSION)


def _decode(value: bytes) -> _Job:
    return msgspec.msgpack.decode(value, type=_Job)


def _dropping(namespace: Namespace, value: bytes) -> Callable[[WriteTxn], bool]:
    """Drops the record unless it has changed."""

    def drop(txn: WriteTxn) -> bool:
        if txn.record(RecordTable.JOB, namespace, JOB_KEY) != value:
            return False
        return txn.drop_record(RecordTable.JOB, namespace, JOB_KEY)

    return drop


def _named(turn: Message, session_id: str, number: int) -> Message:
    """The turn with an id: its own, or one from session and number (from 1), so that what it gives names its source."""
    return turn if turn.message_id else msgspec.structs.replace(turn, message_id=f"{session_id}#{number}")
