"""What becomes of memories as they are forgotten: the plan, the run, and the rank of what fades.

Purpose: an ACTIVE memory whose retention falls below `fade_below` ranks lower, below `archive_below` it is ARCHIVED;
what is past its expire time becomes EXPIRED; what was used long and often is proposed for the permanent store.
CONTESTED, PENDING and STAGED memories have rules of their own, but for their expire time. Fading writes nothing: it is
a column of the loaded segments, computed when one is loaded and after each run.

A run works through pages and writes chunks of CHUNK memories, each judged again at the head of its namespace. Whatever
ends it half way, what it wrote stands and is counted, and the next run goes on.

Threading: any thread; runs come one at a time, plans any time.

Rejected: working from the segments (a run would load every namespace into memory), one transaction a namespace (it
would hold the writers up for seconds).
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

import msgspec
import numpy as np

from memsvc.errors import Cancelled, MemsvcError
from memsvc.memory.access import accesses, put_access, read_access
from memsvc.memory.lifecycle.policy import Policy
from memsvc.memory.lifecycle.retention import (
    DAY_US,
    NO_ACCESS,
    Columns,
    never_fades,
    rank_factor,
    retention,
    retentions,
)
from memsvc.memory.owners import Owners
from memsvc.memory.transactions import Committed, Mutation, Transactions
from memsvc.model import (
    EXPIRING,
    Access,
    ChangeKind,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Status,
    effective_status,
    id_to_bytes,
)
from memsvc.retrieval.segment import OPEN_SEQ, Segment
from memsvc.retrieval.segments import Applied, SegmentStore
from memsvc.storage.engine import ReadTxn, WriteTxn

LOG = logging.getLogger("memsvc.lifecycle")
PAGE = 1000
CHUNK = 200
ACTOR = "lifecycle"
META_LAST_RUN = "lifecycle_time_us"
PROFILE_SUBJECTS = ("profile", "user")  # a fact about one of these, or about "profile.name", is of the profile
FIRST_WAIT_S = 60.0


class Action(IntEnum):
    """What happens to a memory; numbers equal the contract's."""

    FADE = 1
    ARCHIVE = 2
    EXPIRE = 3
    PROPOSE = 4


class Step(msgspec.Struct, frozen=True):
    """One step of a plan."""

    memory_id: str
    namespace: Namespace
    action: Action
    retention: float
    reason: str


class Counts(msgspec.Struct):
    """Memories looked at, and what was (or would be) done. Faded ones are counted by every run that finds them so."""

    seen: int = 0
    faded: int = 0
    archived: int = 0
    expired: int = 0
    proposed: int = 0


_COUNT_OF = {
    Action.FADE: "faded",
    Action.ARCHIVE: "archived",
    Action.EXPIRE: "expired",
    Action.PROPOSE: "proposed",
}
_STATUS_OF = {Action.ARCHIVE: Status.ARCHIVED, Action.EXPIRE: Status.EXPIRED}


class Lifecycle:
    """See the module. `propose(memory, reason)` puts a memory up for the permanent store, once; None: nothing is
    proposed.
    """

    def __init__(
        self,
        transactions: Transactions,
        segments: SegmentStore,
        policy: Policy,
        *,
        propose: Callable[[Memory, str], None] | None = None,
    ) -> None:
        self._transactions = transactions
        self._engine = transactions.engine
        self._segments = segments
        self.policy = policy
        self._propose = propose
        self._running = threading.Lock()

    # -- judging -------------------------------------------------------------------------------------------------

    def remembered(self, memories: Sequence[Memory], now_us: int) -> list[tuple[Memory, float]]:
        """The memories with their uses as far as written, and how well each is remembered."""
        answer = []
        with self._engine.read() as txn:
            for memory in memories:
                access = read_access(txn, memory.namespace, memory.memory_id)
                shown = msgspec.structs.replace(
                    memory, access_count=access.count, last_access_time_us=access.last_time_us
                )
                answer.append((shown, retention(memory, access, now_us, self.policy)))
        return answer

    def _judge(self, memory: Memory, access: Access, at_us: int) -> Step | None:
        """What happens to a memory at a time, if anything."""
        if memory.status not in EXPIRING:
            return None
        value = retention(memory, access, at_us, self.policy)

        def step(action: Action, reason: str) -> Step:
            return Step(memory.memory_id, memory.namespace, action, value, reason)

        if effective_status(memory, at_us) == Status.EXPIRED:
            return step(Action.EXPIRE, "expire_time has passed")
        if memory.status != Status.ACTIVE:
            return None
        for action, limit in ((Action.ARCHIVE, self.policy.archive_below), (Action.FADE, self.policy.fade_below)):
            if value < limit:
                return step(action, f"retention {value:.2f} is below {limit:g}")
        if self._propose is not None and self._is_lasting(memory, access, at_us):
            return step(Action.PROPOSE, f"{access.count} uses on {access.day_count} days, said {memory.seen_count} x")
        return None

    def _is_lasting(self, memory: Memory, access: Access, at_us: int) -> bool:
        """Whether the memory is one for the permanent store that was not proposed yet."""
        when = self.policy.propose
        kind = memory.type in (MemoryType.PREFERENCE, MemoryType.RULE) or (
            memory.type == MemoryType.FACT and memory.subject.replace("/", ".").split(".")[0] in PROFILE_SUBJECTS
        )
        often = (access.count >= when.uses and access.day_count >= when.use_days) or memory.seen_count >= when.seen
        return (
            kind
            and often
            and memory.layer == Layer.SEMANTIC
            and not never_fades(memory)
            and not access.proposed_time_us
            and not memory.supersedes
            and memory.confidence >= when.confidence
            and at_us - memory.create_time_us >= when.age_days * DAY_US
        )

    # -- plan ----------------------------------------------------------------------------------------------------

    def plan(
        self,
        namespaces: Sequence[Namespace] | None,
        at_us: int,
        most: int,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> tuple[Counts, list[Step]]:
        """What a run at `at_us` would do to the namespaces (None: all), and the first `most` steps, least remembered
        first. Changes nothing. Raises Cancelled.
        """
        counts = Counts()

        def steps() -> Iterator[Step]:
            for namespace in self._named(namespaces):
                for page in self._pages(namespace, at_us, counts):
                    if not still_wanted():
                        raise Cancelled("the caller is gone")
                    for step in page:
                        _count(counts, step.action)
                        yield step

        return counts, heapq.nsmallest(most, steps(), key=lambda step: (step.retention, step.memory_id))

    def _named(self, namespaces: Sequence[Namespace] | None) -> list[Namespace]:
        if namespaces is not None:
            return list(namespaces)
        with self._engine.read() as txn:
            return [head.namespace for head in txn.heads()]

    def _pages(self, namespace: Namespace, at_us: int, counts: Counts) -> Iterator[list[Step]]:
        """The steps of a namespace, PAGE memories and one read transaction at a time."""
        after_id = ""
        while True:
            with self._engine.read() as txn:
                memories = list(itertools.islice(txn.scan(namespace, after_id=after_id), PAGE))
                judged = [self._judge(m, read_access(txn, namespace, m.memory_id), at_us) for m in memories]
            counts.seen += sum(memory.status in EXPIRING for memory in memories)
            yield [step for step in judged if step is not None]
            if len(memories) < PAGE:
                return
            after_id = memories[-1].memory_id

    # -- run -----------------------------------------------------------------------------------------------------

    def run(
        self, namespaces: Sequence[Namespace] | None = None, still_wanted: Callable[[], bool] = lambda: True
    ) -> Counts:
        """Does it, now. A failure half way is raised with the counts so far in its metadata; the next run goes on."""
        counts = Counts()
        named = self._named(namespaces)
        with self._running:
            at_us = self._transactions.clock_us()
            try:
                for namespace in named:
                    for page in self._pages(namespace, at_us, counts):
                        self._carry_out(namespace, page, at_us, counts, still_wanted)
            except MemsvcError as error:
                error.metadata |= {f"{name}_count": str(n) for name, n in msgspec.structs.asdict(counts).items()}
                error.message = f"{error.message}; {counts.archived} were archived, run again to go on"
                raise
            finally:
                for segment in self._segments.loaded(named):
                    self.refresh(segment)
            if namespaces is None:
                self._engine.write(lambda txn: txn.put_meta(META_LAST_RUN, str(at_us).encode()))
        return counts

    def _carry_out(
        self,
        namespace: Namespace,
        page: Sequence[Step],
        at_us: int,
        counts: Counts,
        still_wanted: Callable[[], bool],
    ) -> None:
        counts.faded += sum(step.action == Action.FADE for step in page)
        owners = Owners(tenant=namespace.tenant)
        due = [step.memory_id for step in page if step.action in _STATUS_OF]
        for at in range(0, len(due), CHUNK):
            if not still_wanted():
                raise Cancelled("the caller is gone")
            chunk = due[at : at + CHUNK]
            done = self._transactions.mutate(
                owners,
                _SILENT,
                list[Action],
                lambda txn, chunk=chunk: self._close(txn, namespace, chunk, at_us),  # type: ignore[misc]
            )
            for action in done:
                _count(counts, action)
        for step in page:
            if step.action == Action.PROPOSE:
                counts.proposed += self._put_up(step, at_us)

    def _close(self, txn: WriteTxn, namespace: Namespace, ids: Sequence[str], at_us: int) -> Committed[list[Action]]:
        """Archives and expires what is still due."""
        changes: list[Applied] = []
        actions: list[Action] = []
        for memory_id in ids:
            before = txn.get(namespace, memory_id)
            if before is None:
                continue  # purged meanwhile
            step = self._judge(before, read_access(txn, namespace, memory_id), at_us)
            if step is None or step.action not in _STATUS_OF:
                continue
            after = msgspec.structs.replace(before, status=_STATUS_OF[step.action], update_time_us=at_us)
            self._transactions.put(txn, after, None, ChangeKind.UPDATED, _SILENT, step.reason, changes, before)
            actions.append(step.action)
        return Committed(actions, changes)

    def _put_up(self, step: Step, at_us: int) -> bool:
        """Proposes a memory and notes that it did; whoever refuses it is asked again by the next run."""
        assert self._propose is not None
        namespace, memory_id = step.namespace, step.memory_id
        with self._engine.read() as txn:
            memory = txn.get(namespace, memory_id)
        if memory is None:
            return False  # purged meanwhile
        try:
            self._propose(memory, step.reason)
        except MemsvcError as error:
            LOG.warning("%s could not be proposed for the permanent store: %s", memory_id, error.reason)
            return False

        def mark(txn: WriteTxn) -> None:
            access = read_access(txn, namespace, memory_id)
            put_access(txn, memory, msgspec.structs.replace(access, proposed_time_us=at_us))

        self._engine.write(mark)
        return True

    # -- rank ----------------------------------------------------------------------------------------------------

    def refresh(self, segment: Segment) -> None:
        """Computes anew how far each current memory of a loaded segment has faded."""
        columns, rows = segment.columns, segment.rows
        active = (columns.end_seq[:rows] == OPEN_SEQ) & (columns.status[:rows] == Status.ACTIVE)
        standing = np.flatnonzero(active)
        touched = np.maximum(columns.update_us[:rows], columns.occur_us[:rows])
        stability = np.zeros(rows)
        with self._engine.read() as txn:
            known = _rows_of(segment, rows, txn)
        for row, access in known:
            touched[row] = max(int(touched[row]), access.last_time_us)
            stability[row] = access.stability_days
        values = retentions(
            Columns(
                layer=columns.layer[standing],
                type=columns.type[standing],
                importance=columns.importance[standing],
                confidence=columns.confidence[standing],
                touched_us=touched[standing],
                stability_days=stability[standing],
                exempt=columns.has_vector[standing] == 0,  # exact facts are the only memories without a vector
            ),
            self._transactions.clock_us(),
            self.policy,
        )
        segment.set_rank_factors(standing, rank_factor(values, self.policy))


def _rows_of(segment: Segment, rows: int, txn: ReadTxn) -> list[tuple[int, Access]]:
    found = []
    for memory_id, access in accesses(txn, segment.namespace).items():
        row = segment.row_of.get(id_to_bytes(memory_id) or b"", rows)
        if row < rows and access != NO_ACCESS:
            found.append((row, access))
    return found


def _count(counts: Counts, action: Action) -> None:
    name = _COUNT_OF[action]
    setattr(counts, name, getattr(counts, name) + 1)


_SILENT = Mutation("", b"", ACTOR, ACTOR)


class Schedule:
    """Runs the lifecycle of all namespaces every `interval_s`, also across restarts; a thread of its own."""

    def __init__(self, lifecycle: Lifecycle, transactions: Transactions, *, interval_s: float) -> None:
        self._lifecycle = lifecycle
        self._transactions = transactions
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread, unless the interval is 0."""
        if self._interval_s > 0:
            self._thread = threading.Thread(target=self._run, name="lifecycle", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the schedule; a run in its middle stops after its chunk."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        wait_s = max(FIRST_WAIT_S, self._left_s())
        while not self._stop.wait(wait_s):
            wait_s = self._interval_s
            try:
                counts = self._lifecycle.run(None, lambda: not self._stop.is_set())
                LOG.info("lifecycle: %s", msgspec.structs.asdict(counts))
            except Cancelled:
                return
            except MemsvcError as error:
                LOG.warning("lifecycle: %s (%s)", error.reason, error.metadata)

    def _left_s(self) -> float:
        """Seconds until the interval since the last run is over."""
        with self._transactions.engine.read() as txn:
            last = txn.meta(META_LAST_RUN)
        if last is None:
            return 0.0
        return self._interval_s - (self._transactions.clock_us() - int(last)) / 1e6
