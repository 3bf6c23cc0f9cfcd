"""Skill drafts from what worked: the same steps, done successfully several times.

Purpose: events between a task_start and its task_end, in one session of one tool or along caused_by, are a run. Runs
with the same steps (type, and tool and action or the summary with its numbers and ids masked) are one pattern. One with
at least RUNS_MIN successes and no more failures than successes becomes a draft that waits for a person. What differs
between its runs becomes a parameter, what is the same in all stays as it is. The hash of the pattern is kept in the
draft's metadata, whatever is decided about it, so that nothing is proposed twice.

Threading: proposals of a process take turns, since two of the same namespace would make the same draft.

Rejected: similar steps by embedding (a draft must be explainable by the events that made it), patterns inside of longer
runs (many more candidates, nearly all of them noise).
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterable, Sequence

import msgspec
import yaml

from memsvc.errors import InvalidArgument
from memsvc.memory.owners import Owners, check, namespace_for
from memsvc.memory.skills.document import (
    NAME_MAX_CHARS,
    PARAMETERS_MAX,
    PLACEHOLDER,
    STEP_MAX_CHARS,
    STEPS_MAX,
    TEXT_MAX_CHARS,
)
from memsvc.memory.skills.skills import RUN_EVENT, Skill, Skills
from memsvc.memory.transactions import Mutation
from memsvc.model import RECALLABLE, Layer, Memory, Namespace, Scope, Status

RUNS_MIN = 3
EVENTS_MAX = 20_000
LOOK_BACK_US = 180 * 86_400_000_000
PATTERN_KEY = "pattern"
EVIDENCE_MAX = 16
_START, _END = "task_start", "task_end"
_NO_STEPS = ("feedback", RUN_EVENT)
_SUCCESSES = ("success", "succeeded", "ok")
_VARIABLE = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.]+"  # e-mail
    r"|https?://[^\s,;，。；)）]+"
    r"|\b(?=[\w-]*\d)[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)+\b"  # ORD-2025-0110, UUIDs
    r"|\bv?\d+(?:\.\d+)+\b"
    r"|\b(?=[a-z]*\d)[0-9a-f]{7,64}\b"
    r"|\d+",
    re.ASCII,
)
_SLUG = re.compile(r"[a-z0-9]+")


class _Step(msgspec.Struct, frozen=True):
    """A step of a run: what it is compared by, its summary in fixed pieces, and the values between them."""

    key: str
    pieces: tuple[str, ...]
    values: tuple[str, ...]


class _Run(msgspec.Struct):
    """A run as it is read."""

    start: Memory
    steps: list[_Step]
    outcome: str = ""


class Proposals:
    """See the module."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills
        self._lock = threading.Lock()

    def propose(self, owners: Owners, scope: Scope | None, actor: str) -> list[Skill]:
        """Drafts for the patterns of a namespace that were never proposed. Raises InvalidArgument."""
        check(owners)
        namespace = namespace_for(owners, scope)
        with self._lock:
            return self._propose(owners, namespace, Mutation("", b"", actor, "SkillService/Propose"))

    def _propose(self, owners: Owners, namespace: Namespace, mutation: Mutation) -> list[Skill]:
        known = self._skills.all_of(namespace)
        proposed = {memory.metadata.get(PATTERN_KEY) for memory in known}
        names = {memory.subject for memory in known}
        drafts = []
        for pattern, runs in _patterns(self._events(namespace)).items():
            successes = [run for run in runs if run.outcome in _SUCCESSES]
            if pattern in proposed or len(successes) < RUNS_MIN or len(runs) > 2 * len(successes):
                continue
            name = _name(successes[-1].start.content, pattern, names)
            draft = self._draft(owners, namespace, name, pattern, successes, mutation)
            if draft is not None:
                drafts.append(draft)
                names.add(name)
        return drafts

    def _events(self, namespace: Namespace) -> list[Memory]:
        """Events of the last LOOK_BACK_US, the newest EVENTS_MAX of them, oldest first."""
        now_us = self._skills.transactions.clock_us()
        found: list[Memory] = []
        with self._skills.transactions.engine.read() as txn:
            for memory in txn.by_occur_time(namespace, now_us - LOOK_BACK_US, now_us, reverse=True):
                if memory.layer == Layer.EPISODIC and memory.event is not None and memory.status in RECALLABLE:
                    found.append(memory)
                    if len(found) == EVENTS_MAX:
                        break
        return found[::-1]

    def _draft(
        self,
        owners: Owners,
        namespace: Namespace,
        name: str,
        pattern: str,
        successes: Sequence[_Run],
        mutation: Mutation,
    ) -> Skill | None:
        """Stores the draft; None when a limit or a secret stands in its way: the pattern can't be a skill."""
        try:
            document, planned = self._skills.planned(namespace, _source(name, successes))
        except InvalidArgument:
            return None
        evidence = [run.start.memory_id for run in successes[-EVIDENCE_MAX:]]
        planned = msgspec.structs.replace(
            planned, status=Status.PENDING, metadata={PATTERN_KEY: pattern, "proposed_from": evidence}
        )
        reason = f"the same steps succeeded {len(successes)} times"
        stored = self._skills.store(owners, planned, mutation, reason=reason)
        return Skill(document, stored.memory) if stored.changed else None


# -- from events to patterns ---------------------------------------------------------------------------------------


def _patterns(events: Iterable[Memory]) -> dict[str, list[_Run]]:
    """Finished runs by the hash of their steps, in order of time."""
    runs_of: dict[str, _Run] = {}  # by the id of each event of a run
    open_runs: dict[tuple[str, str], _Run] = {}
    finished: dict[str, list[_Run]] = {}
    for memory in events:
        event = memory.event
        assert event is not None, "the caller keeps events only"
        session = (memory.source.tool, memory.source.session_id)
        kind = event.event_type.casefold()
        if kind == _START:
            runs_of[memory.memory_id] = run = _Run(memory, [])
            if session[1]:
                open_runs[session] = run
            continue
        candidates = (*(runs_of.get(cause) for cause in event.caused_by), open_runs.get(session))
        found = next((run for run in candidates if run is not None and not run.outcome), None)
        if found is None:
            continue
        runs_of[memory.memory_id] = found
        if kind != _END:
            if kind not in _NO_STEPS:
                found.steps.append(_step(memory, kind))
            continue
        outcome = event.payload.get("outcome")
        found.outcome = outcome.casefold() if isinstance(outcome, str) and outcome else "unknown"
        if open_runs.get(session) is found:
            del open_runs[session]
        if found.steps and found.outcome != "unknown":
            finished.setdefault(_hash(found.steps), []).append(found)
    return finished


def _step(memory: Memory, kind: str) -> _Step:
    assert memory.event is not None, "steps are events"
    pieces, values = _masked(memory.content)
    words = [memory.event.payload.get(key) for key in ("tool", "action")]
    named = " ".join(word.casefold() for word in words if isinstance(word, str) and word)
    what = "\x00".join(_masked(named)[0]) if named else "\x00".join(pieces).casefold()
    return _Step(f"{kind}\x01{what}", pieces, values)


def _masked(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The text's fixed pieces, and the numbers and ids between them (one fewer)."""
    return tuple(_VARIABLE.split(text)), tuple(_VARIABLE.findall(text))


def _hash(steps: Sequence[_Step]) -> str:
    return hashlib.blake2b("\x02".join(step.key for step in steps).encode(), digest_size=16).hexdigest()


# -- from a pattern to a skill -------------------------------------------------------------------------------------


def _source(name: str, runs: Sequence[_Run]) -> str:
    """skill.yaml of a pattern, in the words of its last successful run."""
    last = runs[-1]
    found: dict[tuple[str, ...], str] = {}  # a parameter is known by its value in each of the runs
    steps = []
    for i, step in enumerate(last.steps[: STEPS_MAX + 1]):
        unknown = ("",) * len(step.values)  # of a run that said it in other words: no value is known to be the same
        said = (run.steps[i] for run in runs)
        rows = [other.values if other.pieces == step.pieces else unknown for other in said]
        steps.append(_worded(step, zip(*rows, strict=True), found)[:STEP_MAX_CHARS])
    task = _escaped(last.start.content)[: TEXT_MAX_CHARS // 2]
    document = {
        "name": name,
        "description": f"Steps that worked {len(runs)} times for: {task}",
        "trigger": task,
        "version": "0.1.0",
        "parameters": [
            {"name": parameter, "description": f"Such as {values[-1]}.", "required": True}
            for values, parameter in list(found.items())[: PARAMETERS_MAX + 1]
        ],
        "steps": steps,
    }
    if not found:
        del document["parameters"]
    text: str = yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=120)
    return text


def _worded(step: _Step, columns: Iterable[tuple[str, ...]], found: dict[tuple[str, ...], str]) -> str:
    """The step's text; a value that differs between runs is a parameter, one that does not stays."""
    fixed = [step.pieces[0]]  # the words before, between and behind the parameters
    parameters = []
    for values, piece in zip(columns, step.pieces[1:], strict=True):
        if len(set(values)) > 1:
            parameters.append(found.setdefault(values, f"value_{len(found) + 1}"))
            fixed.append(piece)
        else:
            fixed[-1] += values[-1] + piece
    text = _escaped(fixed[0])
    for parameter, words in zip(parameters, fixed[1:], strict=True):
        before = " " if text.endswith(("{", "$")) else ""  # `${value_1}` and `{value_1}}` would not be parameters
        behind = " " if words.startswith("}") else ""
        text += f"{before}{{{parameter}}}{behind}{_escaped(words)}"
    return text


def _escaped(text: str) -> str:
    """Braces that would be read as a parameter are doubled."""
    return PLACEHOLDER.sub(lambda match: f"{{{match.group()}}}", text)


def _name(task: str, pattern: str, taken: set[str]) -> str:
    """A name from the task's words; with a piece of the hash where there are none or the name is taken."""
    words = _SLUG.findall("".join(_masked(task)[0]).lower())
    name = "-".join(words)[:NAME_MAX_CHARS].strip("-")
    if name and name not in taken:
        return name
    return f"{name[: NAME_MAX_CHARS - 9] or 'steps'}-{pattern[:8]}".replace("--", "-")
