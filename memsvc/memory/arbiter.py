"""What a new statement meets in the store: finds what stands near it and asks `conflict.decide`.

Purpose: the look-up of a write has two halves. `Arbiter.prepare` searches the segment before the transaction, in the
caller's thread, where it holds nobody up. `Docket`, made inside of the transaction, adds what was written since, drops
what changed, and decides at the namespace's head: so two writers who contradict each other can't both miss the other.

Threading: `Arbiter` is shared, its cache is bounded and its races only cost a second analysis; a `Docket` is of one
transaction.

Rejected: searching inside of the transaction (a scan under the writer's lock for every write); deciding before it (the
second of two racing writers would not see the first).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import StoreCorrupt
from memsvc.memory.conflict import Calibration, Decision, Incoming, Standing, decide
from memsvc.memory.conflict.claims import Claim, analyze_claim
from memsvc.model import RECALLABLE, Filter, Layer, Memory, MemoryType, Namespace, Outcome, Status, effective_status
from memsvc.retrieval import kernels
from memsvc.retrieval.lexical import analyze
from memsvc.retrieval.searcher import SCAN_CODES_ROWS, SearchQuery, Weights, nearest_codes, search
from memsvc.retrieval.segment import KEY_ARCHIVED, KEY_BLOCKED, KEY_STAGED, KEY_SUBJECT, Segment, View
from memsvc.retrieval.segments import SegmentStore, vector_hash
from memsvc.storage.engine import Engine, ReadTxn

CALIBRATION_FILE = Path(__file__).with_name("conflict") / "calibration.json"
NEAREST = 10
RESCORED = 48  # rows whose one-byte codes are nearest: codes err by less than a thousandth
BY_SUBJECT = 8
STAGED_MAX = 64
BLOCKED_MAX = 256
ARCHIVED_MAX = 2048
CLAIMS_KEPT = 16_384  # some 2 kB each
CHANGES_READ = 1024
CHECKED_LAYERS = (Layer.SEMANTIC, Layer.PERMANENT)
_STANDING = (*RECALLABLE, Status.STAGED)
_CONDITION = Filter(layers=CHECKED_LAYERS)
_WEIGHTS = Weights(vector=1.0, lexical=0.0, time=0.0, importance=0.0, neighbour=0.0)
_NO_WORDS = analyze("")


class Near(msgspec.Struct, frozen=True):
    """What the segment showed near one memory: (memory, cosine) pairs, and the sequence that it was at."""

    found: list[tuple[Memory, float]]
    sequence: int


class Ruling(msgspec.Struct, frozen=True):
    """The decision on one memory, and the current versions of the memories that it is about."""

    decision: Decision
    about: list[Memory]
    blocked: bool = False


def is_checked(memory: Memory) -> bool:
    """Whether duplicates and conflicts of the memory are looked for: statements are, events never."""
    is_statement = memory.type != MemoryType.EVENT and memory.fact is None
    return memory.layer in CHECKED_LAYERS and is_statement


def calibration_for(model_id: str) -> Calibration | None:
    """The thresholds of an embedding model, or None where nobody calibrated it (bench/calibrate_conflict.py)."""
    return msgspec.json.decode(CALIBRATION_FILE.read_bytes(), type=dict[str, Calibration]).get(model_id)


class Arbiter:
    """See the module. Without a calibration of the embedding model only the very same words are one statement."""

    def __init__(self, engine: Engine, segments: SegmentStore, calibration: Calibration | None) -> None:
        self._engine = engine
        self._segments = segments
        self.calibration = calibration
        self._claim = lru_cache(maxsize=CLAIMS_KEPT)(analyze_claim)

    def claim(self, memory: Memory) -> Claim:
        """What the memory's content says, from the cache or analysed."""
        return self._claim(memory.content, memory.type, memory.subject)

    def forget_texts(self) -> None:
        """Empties the cache of claims."""
        self._claim.cache_clear()

    def prepare(self, memories: Sequence[Memory], vectors: NDArray[np.float32], now_us: int) -> list[Near]:
        """What stands near each of the memories now; vectors: (n, dim) float32."""
        erasures = self._segments.erasures
        looks: dict[Namespace, _Look | None] = {}
        rows: list[tuple[int, _Look, list[tuple[int, float]]]] = []
        nears = [Near([], 0)] * len(memories)
        for at, (memory, vector) in enumerate(zip(memories, vectors, strict=True)):
            if self.calibration is None or not is_checked(memory):
                continue
            if memory.namespace not in looks:
                segment = self._segments.get(memory.namespace)
                looks[memory.namespace] = None if segment is None else _Look(segment, now_us)
            look = looks[memory.namespace]
            if look is not None:
                rows.append((at, look, look.near(memory.subject, vector)))
        if rows:
            with self._engine.read() as txn:
                for at, look, found in rows:
                    nears[at] = Near(self._records(txn, look.segment, found, erasures), look.sequence)
        return nears

    def _records(
        self, txn: ReadTxn, segment: Segment, rows: list[tuple[int, float]], erasures: int
    ) -> list[tuple[Memory, float]]:
        """The memories of the rows with their cosines, without what was purged since `erasures` was read."""
        versions = segment.columns.version
        keys = [(segment.memory_id(row), int(versions[row])) for row, _ in rows]
        found = []
        for (_, cosine), memory in zip(rows, txn.get_many(segment.namespace, keys), strict=True):
            if memory is None and not self._segments.purged_since(erasures):
                raise StoreCorrupt("a memory is indexed, not stored; run `memsvc verify`")
            if memory is not None and memory.status != Status.PURGED:
                found.append((memory, cosine))
        return found

    def docket(self, txn: ReadTxn, model_id: str, nears: Sequence[Near], memories: Sequence[Memory]) -> Docket:
        """For the transaction that writes the memories which `prepare` was asked about."""
        start: dict[Namespace, int] = {}
        for near, memory in zip(nears, memories, strict=True):
            if is_checked(memory):
                start[memory.namespace] = min(near.sequence, start.get(memory.namespace, near.sequence))
        return Docket(self, txn, model_id, start)


class _Look:
    """One segment as it was before the transaction, for all memories of a write; rows come with their cosines."""

    def __init__(self, segment: Segment, now_us: int) -> None:
        self.segment = segment
        self._now_us = now_us
        self._view = View(segment, ())
        self.sequence = self._view.row_count
        layers = self._view.columns.layer[: self.sequence]
        self._mask = ((layers == Layer.SEMANTIC.value) | (layers == Layer.PERMANENT.value)).view(np.uint8)

    def near(self, subject: str, vector: NDArray[np.float32]) -> list[tuple[int, float]]:
        """The nearest by meaning, and those of the same subject, staged, blocked and archived ones; vector: (dim,)
        float32.
        """
        rows = self._nearest(vector)
        for listed in (
            self.segment.standing_rows(KEY_STAGED, "", STAGED_MAX),
            self.segment.standing_rows(KEY_BLOCKED, "", BLOCKED_MAX),
            self._about(subject),
        ):
            if listed.size:
                cosines = self.segment.vectors.block[listed] @ vector
                rows.update(zip(listed.tolist(), cosines.tolist(), strict=True))
        archived = self.segment.standing_rows(KEY_ARCHIVED, "", ARCHIVED_MAX)
        if archived.size:
            rows.update(_best(archived, self.segment.vectors.block[archived] @ vector))
        return list(rows.items())

    def _about(self, subject: str) -> NDArray[np.int64]:
        """The newest rows of a subject; what waits for approval takes no place among them."""
        if not subject:
            return np.empty(0, np.int64)
        listed = self.segment.standing_rows(KEY_SUBJECT, subject, self.sequence)
        approved: NDArray[np.int64] = listed[self.segment.columns.status[listed] != Status.PENDING][-BY_SUBJECT:]
        return approved

    def _nearest(self, vector: NDArray[np.float32]) -> dict[int, float]:
        """The NEAREST rows, best first. A recall would also gather and rank recent rows, for as long again."""
        query = SearchQuery(_NO_WORDS, vector, NEAREST, self._now_us, condition=_CONDITION, weights=_WEIGHTS)
        if self.sequence >= SCAN_CODES_ROWS:  # from here on a recall's graph is faster than the scan
            found, _ = search([(self.segment, None)], query)
            return {one.row: one.components[kernels.C_COSINE] for one in found}
        rows = nearest_codes(self._view, query, self._mask, vector, RESCORED)
        return _best(rows, self._view.block[rows] @ vector)


def _best(rows: NDArray[np.int64], cosines: NDArray[np.float32]) -> dict[int, float]:
    """The NEAREST of rows with their cosines, best first."""
    best = np.argsort(-cosines)[:NEAREST]
    return dict(zip(rows[best].tolist(), cosines[best].tolist(), strict=True))


class _Window:
    """What one namespace got since the segment was looked at: current versions with their vectors."""

    def __init__(self, namespace: Namespace, sequence: int) -> None:
        self.namespace = namespace
        self.sequence = sequence
        self.memories: dict[str, Memory] = {}
        self.slots: dict[str, int] = {}
        self._vectors: NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def advance(self, txn: ReadTxn, model_id: str) -> None:
        """Reads the changes up to the head, also those of this very transaction."""
        while True:
            changes = txn.changes(self.namespace, self.sequence, CHANGES_READ)
            for memory_id in dict.fromkeys(change.memory_id for change in changes):
                memory = txn.get(self.namespace, memory_id)
                if memory is not None:
                    self._add(txn, model_id, memory)
            if changes:
                self.sequence = changes[-1].sequence
            if len(changes) < CHANGES_READ:
                return

    def _add(self, txn: ReadTxn, model_id: str, memory: Memory) -> None:
        self.memories[memory.memory_id] = memory
        counts = is_checked(memory) and memory.status != Status.PENDING
        vector = txn.vector(self.namespace, model_id, vector_hash(memory)) if counts else None
        if vector is None:
            return
        slot = self.slots.setdefault(memory.memory_id, len(self.slots))
        if slot >= len(self._vectors):
            grown = np.zeros((max(16, 2 * len(self._vectors)), len(vector)), np.float32)
            if len(self._vectors):
                grown[: len(self._vectors)] = self._vectors
            self._vectors = grown
        self._vectors[slot] = vector

    def nearest(self, vector: NDArray[np.float32]) -> list[tuple[Memory, float]]:
        """The nearest few of them, with cosines."""
        if not self.slots:
            return []
        cosines = self._vectors[: len(self.slots)] @ vector
        best = np.argsort(-cosines)[:NEAREST].tolist()
        names = list(self.slots)
        return [(self.memories[names[slot]], float(cosines[slot])) for slot in best]


class Docket:
    """The decisions of one write transaction; see the module."""

    def __init__(self, arbiter: Arbiter, txn: ReadTxn, model_id: str, start: dict[Namespace, int]) -> None:
        self._arbiter = arbiter
        self._txn = txn
        self._model_id = model_id
        self._windows = {namespace: _Window(namespace, sequence) for namespace, sequence in start.items()}

    def rule(
        self, memory: Memory, vector: NDArray[np.float32], near: Near, now_us: int, *, apart: bool = False
    ) -> Ruling:
        """Decides about one memory at the head of its namespace; `apart`: as if it were not there itself."""
        calibration = self._arbiter.calibration
        if calibration is None or not is_checked(memory):
            return Ruling(Decision(outcome=Outcome.CREATED), [])
        window = self._windows[memory.namespace]
        window.advance(self._txn, self._model_id)
        met = [(old, cosine) for old, cosine in near.found if old.memory_id not in window.memories]
        met.extend(window.nearest(vector))
        if apart:
            met = [(old, cosine) for old, cosine in met if old.memory_id != memory.memory_id]
        incoming = Incoming(
            content=memory.content,
            type=memory.type,
            claim=self._arbiter.claim(memory),
            occur_time_us=memory.occur_time_us,
            subject=memory.subject,
        )
        barred = [(old, cosine) for old, cosine in met if old.blocked]
        if barred:
            blocked = self._about(incoming, barred, calibration)
            if blocked.decision.outcome == Outcome.MERGED:
                return Ruling(blocked.decision, blocked.about, blocked=True)
        checked = [(old, c) for old, c in met if is_checked(old)]
        standing = [(old, c) for old, c in checked if effective_status(old, now_us) in _STANDING]
        ruling = self._about(incoming, standing, calibration)
        asleep = [(old, c) for old, c in checked if old.status == Status.ARCHIVED]
        if not asleep or ruling.decision.outcome != Outcome.CREATED:
            return ruling
        # What nobody can recall may wake up or be replaced; it never refuses or contests what is said now.
        woken = self._about(incoming, asleep, calibration)
        return woken if woken.decision.outcome in (Outcome.MERGED, Outcome.SUPERSEDED) else ruling

    def _about(self, incoming: Incoming, met: Iterable[tuple[Memory, float]], calibration: Calibration) -> Ruling:
        by_id = {old.memory_id: (old, cosine) for old, cosine in met}
        decision = decide(incoming, [self._standing(old, c) for old, c in by_id.values()], calibration)
        return Ruling(decision, [by_id[memory_id][0] for memory_id in decision.memory_ids])

    def _standing(self, memory: Memory, cosine: float) -> Standing:
        return Standing(
            memory_id=memory.memory_id,
            content=memory.content,
            type=memory.type,
            claim=self._arbiter.claim(memory),
            occur_time_us=memory.occur_time_us,
            cosine=cosine,
            subject=memory.subject,
            importance=memory.importance,
            confidence=memory.confidence,
        )
