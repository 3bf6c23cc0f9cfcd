"""Forgetting on LoCoMo: what a lifecycle run archives or ranks lower, and what that costs in evidence recall.

Each conversation is written turn by turn at the time of its session, as events. Their importance is what the funnel
gives the turn in a dry run of Ingest, 0 where it drops it; a second time all have the importance of a write that names
none, so that age alone decides. Then some days pass in which nothing is used, and the lifecycle runs. Noise are the
turns that are evidence of no question; `points` are those of recall@10, against no forgetting at the same time.

Thresholds are chosen on every other conversation and reported on the rest: the mildest that, when the last session
ends, rank NOISE_WANTED of the noise lower, and that cost at most MARGIN_POINTS then and up to HORIZON_DAYS later.
The clock is set, hence the rooms in this process instead of a server.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench import common
from bench.quality import locomo
from memsvc.app import STORE_DIR, open_model
from memsvc.config import Settings
from memsvc.memory.arbiter import Arbiter, calibration_for
from memsvc.memory.drafts import Draft
from memsvc.memory.feed import ChangeFeed
from memsvc.memory.funnel import Message
from memsvc.memory.ingest import Ingestor
from memsvc.memory.lifecycle.lifecycle import Lifecycle
from memsvc.memory.lifecycle.policy import policy_of
from memsvc.memory.memories import Memories, Staging
from memsvc.memory.owners import Owners
from memsvc.memory.policies import Policies
from memsvc.memory.recall import Recaller, RecallRequest
from memsvc.memory.transactions import Mutation, Transactions
from memsvc.model import IdMinter, MemoryType, Namespace, Scope, Source, Status
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.segments import SegmentStore
from memsvc.storage.lmdb_engine import LmdbEngine

FILE = "locomo.dev.json"
DEPTH = 10
DAY_US = 86_400_000_000
CONTENT_MAX_BYTES = 65_536
NOISE_WANTED = 0.3
MARGIN_POINTS = 0.5
HORIZON_DAYS = 365
NO_MUTATION = Mutation("", b"", "bench")
SETTINGS = Settings.model_construct()  # the defaults, whatever the environment says
DEFAULTS = policy_of("", SETTINGS.fade_below, SETTINGS.archive_below)
TIMES_DAYS = (0, 30, 90, 180, 365, 730)  # after the last turn
FADES = (0.35, 0.4, 0.45, 0.5, 0.6)
FLOORS = (0.85, 0.7, 0.5)
ARCHIVES = (0.1, 0.15, 0.2, 0.3, 0.4)
MODES = {"funnel's importance": True, "no importance": False}


class Turn(msgspec.Struct, frozen=True):
    """One turn of a conversation."""

    dia_id: str
    speaker: str
    text: str
    time_us: int


class Conversation(msgspec.Struct, frozen=True):
    """Turns in order by session id, and questions with the turns that answer them."""

    name: str
    sessions: dict[str, list[Turn]]
    questions: list[tuple[str, frozenset[str]]]

    @property
    def evidence(self) -> frozenset[str]:
        """Turns that answer some question; a few ids of the data match none."""
        named = frozenset().union(*(evidence for _, evidence in self.questions))
        return named & {turn.dia_id for turns in self.sessions.values() for turn in turns}


class Key(NamedTuple):
    """Where a point lies."""

    days: int
    fade_below: float
    archive_below: float
    rank_floor: float


class Point(msgspec.Struct, frozen=True):
    """Counts of turns, and by question the share of its evidence among the first DEPTH hits."""

    noise: int
    noise_archived: int
    noise_faded: int
    evidence: int
    evidence_archived: int
    evidence_faded: int
    recall: list[float]


Points = dict[Key, Point]


def conversations(path: Path, *, small: bool) -> Iterator[Conversation]:
    """Reads LoCoMo; a turn's time is its session's, and a second more than the turn before."""
    data = json.loads(path.read_text("utf-8"))
    for entry, case in zip(data, locomo(data), strict=True):
        sessions = {}
        for session_id, group in itertools.groupby(case.memories, key=lambda memory: memory[1]["session_id"]):
            said = entry["conversation"][f"session_{session_id[1:]}_date_time"]
            start = dt.datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=dt.UTC)
            sessions[session_id] = [
                Turn(key, fields["metadata"]["speaker"], fields["content"], round((start.timestamp() + i) * 1e6))
                for i, (key, fields) in enumerate(group)
            ]
        questions = [(question, frozenset(evidence)) for question, evidence, _ in case.questions]
        if small:
            sessions, questions = dict(itertools.islice(sessions.items(), 3)), questions[:5]
        yield Conversation(case.owner, sessions, questions)


class Clock:
    """A wall clock that is set."""

    now_us = 0

    def __call__(self) -> int:
        return self.now_us


class House:
    """A store with one conversation in it, in rooms that share a set clock."""

    def __init__(self, directory: Path, embedder: Embedder, conversation: Conversation) -> None:
        self.conversation = conversation
        self.clock = Clock()
        self.engine = LmdbEngine.open(directory / STORE_DIR)
        segments = SegmentStore(self.engine, embedder.model_id, embedder.dim, None)
        transactions = Transactions(
            self.engine,
            embedder,
            segments,
            ChangeFeed(self.engine),
            clock_us=self.clock,
            answer_retention_us=DAY_US,
        )
        policies = Policies()
        self.memories = Memories(
            transactions,
            Arbiter(self.engine, segments, calibration_for(embedder.model_id)),
            policies,
            minter=IdMinter(self.clock),
            content_max_bytes=CONTENT_MAX_BYTES,
            staging=Staging(),
        )
        self.ingestor = Ingestor(transactions, self.memories, policies, content_max_bytes=CONTENT_MAX_BYTES)
        self.recaller = Recaller(self.engine, embedder, segments, clock_us=self.clock)
        self.lifecycle = Lifecycle(transactions, segments, DEFAULTS)
        segments.on_load = self.lifecycle.refresh
        self.owners = Owners(user_id=conversation.name)
        self.namespace = Namespace("default", Scope.USER, conversation.name)
        self.key_of: dict[str, str] = {}

    def fill(self, *, is_scored: bool) -> None:
        """Writes the turns, each session at its time."""
        for session_id, turns in self.conversation.sessions.items():
            self.clock.now_us = turns[0].time_us
            scores = self._scores(session_id, turns) if is_scored else [None] * len(turns)
            drafts = [
                Draft(
                    content=turn.text,
                    type=MemoryType.EVENT,
                    importance=score,
                    metadata={"speaker": turn.speaker},
                    source=Source("", session_id, turn.dia_id),
                    occur_time_us=turn.time_us,
                )
                for turn, score in zip(turns, scores, strict=True)
            ]
            results = self.memories.write(self.owners, drafts, NO_MUTATION, path="memories")
            self.key_of |= {r.memory_id: turn.dia_id for r, turn in zip(results, turns, strict=True)}

    def _scores(self, session_id: str, turns: list[Turn]) -> list[float]:
        """The importance that the funnel gives each turn of a session; both speakers are people."""
        judged = self.ingestor.ingest(
            self.owners,
            None,
            [Message("user", turn.text, turn.time_us) for turn in turns],
            session_id=session_id,
            tool="",
            dry_run=True,
            mutation=NO_MUTATION,
        )
        return [max((made.draft.importance or 0.0 for made in one.made), default=0.0) for one in judged]

    def recall(self) -> list[float]:
        """Share of the evidence among the first DEPTH hits, by question."""
        shares = []
        for question, evidence in self.conversation.questions:
            request = RecallRequest(namespaces=[self.namespace], query=question, top_k=DEPTH, budget_s=30.0)
            answer = self.recaller.recall(request)
            if answer.degraded:
                raise RuntimeError(f"degraded: {answer.degraded}")
            found = {self.key_of[hit.memory.memory_id] for hit in answer.hits}
            shares.append(len(found & evidence) / len(evidence))
        return shares

    def run(self) -> tuple[set[str], set[str]]:
        """Runs the lifecycle; turns that are archived now, and those that rank lower."""
        self.lifecycle.run([self.namespace])
        _, steps = self.lifecycle.plan([self.namespace], self.clock(), len(self.key_of))
        with self.engine.read() as txn:
            archived = {self.key_of[m.memory_id] for m in txn.scan(self.namespace) if m.status == Status.ARCHIVED}
        return archived, {self.key_of[step.memory_id] for step in steps}

    def point(self, key: Key) -> Point:
        """Sets clock and policy, runs and asks. What was archived once stays so: keys come mildest first."""
        last = next(reversed(self.conversation.sessions.values()))[-1]
        self.clock.now_us = last.time_us + key.days * DAY_US
        self.lifecycle.policy = msgspec.structs.replace(
            DEFAULTS, fade_below=key.fade_below, archive_below=key.archive_below, rank_floor=key.rank_floor
        )
        archived, faded = self.run()
        evidence = self.conversation.evidence
        noise = set(self.key_of.values()) - evidence
        return Point(
            noise=len(noise),
            noise_archived=len(noise & archived),
            noise_faded=len(noise & faded),
            evidence=len(evidence),
            evidence_archived=len(evidence & archived),
            evidence_faded=len(evidence & faded),
            recall=self.recall(),
        )


def without(days: int) -> Key:
    """No forgetting."""
    return Key(days, 0.0, 0.0, 1.0)


def fading(days: int) -> list[Key]:
    """Nothing is archived; mildest first."""
    return [Key(days, fade, 0.0, floor) for fade in FADES for floor in FLOORS]


def archiving() -> list[Key]:
    """What fades by default and is not archived only ranks lower."""
    return [Key(HORIZON_DAYS, max(a, DEFAULTS.fade_below), a, DEFAULTS.rank_floor) for a in ARCHIVES]


def by_default() -> list[Key]:
    return [Key(days, DEFAULTS.fade_below, DEFAULTS.archive_below, DEFAULTS.rank_floor) for days in TIMES_DAYS]


def points_of(embedder: Embedder, conversation: Conversation, *, is_scored: bool) -> Points:
    """All points of a conversation. Archiving grows with time and with its threshold, hence one store for each."""
    grid = [key for days in TIMES_DAYS for key in (without(days), *fading(days))]
    points: Points = {}
    for keys in ([*grid, *by_default()], archiving()):
        with house_of(embedder, conversation) as house:
            house.fill(is_scored=is_scored)
            points |= {key: house.point(key) for key in keys}
    return points


@contextmanager
def house_of(embedder: Embedder, conversation: Conversation) -> Iterator[House]:
    """A house in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory:
        house = House(Path(directory), embedder, conversation)
        try:
            yield house
        finally:
            house.engine.close()


def figures(key: Key, half: Sequence[Points]) -> dict[str, Any]:
    """Figures of a key over some conversations; shares of turns, and points of recall@10."""
    points, before = [one[key] for one in half], [one[without(key.days)] for one in half]
    recall = _mean_recall(points)

    def share(names: Sequence[str], of: str) -> float:
        counted = sum(getattr(point, name) for point in points for name in names)
        return round(counted / max(sum(getattr(point, of) for point in points), 1), 4)

    return {
        **key._asdict(),
        "recall@10": round(recall, 4),
        "points": round(100 * (recall - _mean_recall(before)), 2),
        "noise_forgotten": share(("noise_archived", "noise_faded"), "noise"),
        "noise_archived": share(("noise_archived",), "noise"),
        "evidence_forgotten": share(("evidence_archived", "evidence_faded"), "evidence"),
        "evidence_archived": share(("evidence_archived",), "evidence"),
    }


def _mean_recall(points: Iterable[Point]) -> float:
    return float(np.mean([share for point in points for share in point.recall]))


def choice(half: Sequence[Points]) -> dict[str, float]:
    """The mildest thresholds of the grid that forget enough noise cheaply enough; empty where none do."""
    for key in fading(0):
        rows = [figures(key._replace(days=days), half) for days in TIMES_DAYS if days <= HORIZON_DAYS]
        if rows[0]["noise_forgotten"] >= NOISE_WANTED and all(row["points"] >= -MARGIN_POINTS for row in rows):
            return {"fade_below": key.fade_below, "rank_floor": key.rank_floor}
    return {}


def measure(path: Path, *, small: bool) -> dict[str, Any]:
    """By kind of importance: the curves of both halves, and the defaults over time."""
    embedder = open_model("")
    given = list(conversations(path, small=small))
    if len(given) < 2:
        sys.exit(f"{path} has {len(given)} conversation: choosing on some and reporting on others takes two")
    halves = {"chosen_on": given[0::2], "held_out": given[1::2]}
    result: dict[str, Any] = {name: [one.name for one in half] for name, half in halves.items()}
    for mode, is_scored in MODES.items():
        points = {}
        for name, half in halves.items():
            sys.stderr.write(f"{mode}, {name}: {', '.join(result[name])}\n")
            points[name] = [points_of(embedder, one, is_scored=is_scored) for one in half]
        result[mode] = {
            "choice": choice(points["chosen_on"]),
            "fading": {
                name: [figures(key, half) for days in TIMES_DAYS for key in fading(days)]
                for name, half in points.items()
            },
            "archiving": [figures(key, points["held_out"]) for key in archiving()],
            "defaults": [figures(key, points["held_out"]) for key in by_default()],
        }
    embedder.close()
    return result


def by_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each pair of thresholds and a column for each time: points, % of noise, % of evidence."""
    shown: dict[tuple[float, float], dict[str, Any]] = {}
    for row in rows:
        names = ("fade_below", "rank_floor")
        line = shown.setdefault((row["fade_below"], row["rank_floor"]), {name: row[name] for name in names})
        shares = f"{100 * row['noise_forgotten']:.0f}/{100 * row['evidence_forgotten']:.0f}"
        line[f"{row['days']} days"] = f"{row['points']:+.2f}/{shares}"
    return list(shown.values())


def main() -> None:
    arguments = common.parser(__doc__ or "")
    arguments.add_argument("--data", type=Path, required=True, help="directory of the evaluation data")
    given = arguments.parse_args()
    result = measure(common.data_file(given.data, FILE), small=given.small)
    tables = []
    for mode in MODES:
        found = result[mode]
        for name, rows in found["fading"].items():
            title = f"{mode}, {name}: points of recall@10 / % of noise / % of evidence that rank lower"
            tables.append(common.table(title, by_time(rows)))
        tables.append(common.table(f"{mode}, held_out: archiving", found["archiving"]))
        tables.append(common.table(f"{mode}, held_out: the defaults (chosen: {found['choice']})", found["defaults"]))
    common.emit(result, tables, given.json)


if __name__ == "__main__":
    main()
