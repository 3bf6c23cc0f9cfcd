"""Skills: stored as memories, matched by a question, ranked by how their runs went.

Purpose: a skill is a memory of layer PROCEDURAL whose subject is its name and whose versions are the skill's. A name
has one memory per namespace. A run is an event whose subject is `skill/<name>`: counts are derived from these events,
which are the only truth about runs, and remembered until a change of the namespace touches one. It stands beside its
skill; a run of a GLOBAL skill is its caller's own and stands in a namespace of theirs (GLOBAL is everybody's, and takes
nothing unapproved), so what a GLOBAL skill's counts say depends on the namespaces that the reader names.

A match's score is its recall score times the mean of the posterior Beta(2 + successes, 1 + failures): a uniform prior
and one assumed success (Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.4), so that an untried skill has 2/3,
between one that works and one that does not.

Threading: any number of threads; a bounded cache of counts whose races only cost a second count.

Rejected: counters beside the events (a second truth, wrong as soon as an event is forgotten); a version of the skill
per run (its history would be runs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np

from memsvc.errors import DeadlineExceeded, InvalidArgument, NotActive, NotFound
from memsvc.memory import page_tokens
from memsvc.memory.drafts import REASON_MAX_CHARS, SUMMARY_MAX_CHARS, Draft, check_length, check_subject
from memsvc.memory.memories import Memories, WriteResult
from memsvc.memory.owners import Owners, check, namespace_for, narrowest_first, own_namespace
from memsvc.memory.policies import Policies
from memsvc.memory.recall import TOP_K_MAX, Degraded, Hit, Recaller, RecallRequest
from memsvc.memory.sensitive import Action, apply
from memsvc.memory.skills.document import FIELD, Document, MemoryRef, parse
from memsvc.memory.skills.fitting import Floor, fits, floor_for
from memsvc.memory.transactions import Committed, Mutation, Transactions
from memsvc.model import (
    NEVER_US,
    RECALLABLE,
    ChangeKind,
    Event,
    Filter,
    IdMinter,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    Source,
    Status,
    effective_status,
)
from memsvc.retrieval.kernels import C_COSINE, C_SCORE
from memsvc.retrieval.segment import OPEN_SEQ, View
from memsvc.retrieval.segments import Applied, SegmentStore
from memsvc.storage.engine import ReadTxn, WriteTxn

RUN_EVENT = "skill_run"
MATCH_DEFAULT, MATCH_MAX = 3, 20
CHANGES_READ = 1024
TALLIES_MAX = 4096
PRIOR_SUCCESSES, PRIOR_FAILURES = 2, 1
_LIVE = (*RECALLABLE, Status.ARCHIVED)
_SHOWN = (*_LIVE, Status.PENDING)
_NO_RUN = (Status.FORGOTTEN, Status.PENDING)
_PROCEDURAL = Filter(layers=(Layer.PROCEDURAL,), types=(MemoryType.RULE,))
_REMEMBERED = (Layer.EPISODIC, Layer.SEMANTIC)


class RunOutcome(StrEnum):
    """How a run went."""

    SUCCESS = "success"
    FAILURE = "failure"


class Skill(msgspec.Struct, frozen=True):
    """A skill at one version, and its runs so far."""

    document: Document
    memory: Memory
    success_count: int = 0
    failure_count: int = 0


class Pushed(msgspec.Struct, frozen=True, array_like=True):
    """Answer of a push."""

    memory: Memory
    changed: bool


class Resolved(msgspec.Struct, frozen=True):
    """A parameter's value for the caller (None: there is none) and the memory that gave it."""

    name: str
    value: Any = None
    memory_id: str = ""


class Match(msgspec.Struct, frozen=True):
    """A skill that fits."""

    skill: Skill
    score: float
    parameters: list[Resolved]
    missing: list[str]


class _Tally(msgspec.Struct, frozen=True):
    """Runs of one skill as of a sequence of its namespace."""

    sequence: int
    successes: int
    failures: int


class Skills:
    """See the module."""

    def __init__(
        self,
        transactions: Transactions,
        memories: Memories,
        segments: SegmentStore,
        recaller: Recaller,
        policies: Policies,
        *,
        minter: IdMinter,
    ) -> None:
        self.transactions = transactions
        self._memories = memories
        self._segments = segments
        self._recaller = recaller
        self._policies = policies
        self._minter = minter
        self._tallies: dict[tuple[Namespace, str], _Tally] = {}
        self._floors: dict[str, Floor | None] = {}

    # -- writing -------------------------------------------------------------------------------------------------

    def push(
        self, owners: Owners, scope: Scope | None, source: str, mutation: Mutation, *, dry_run: bool = False
    ) -> tuple[Skill, bool]:
        """Stores the text as the newest version of the skill that it names; whether that changed anything. A dry run
        only says what would be. Raises InvalidArgument and its kin with field "source".
        """
        check(owners)
        namespace = namespace_for(owners, scope)
        reach = (namespace, run_namespace(owners, namespace))
        document, planned = self.planned(namespace, source)
        if dry_run:
            with self.transactions.engine.read() as txn:
                stands = named_skill(txn, namespace, document.name)
            if stands is not None and stands.status == Status.ACTIVE and stands.skill == source:
                return self._view(stands, reach), False
            version = 1 if stands is None else stands.version + 1
            return Skill(document, msgspec.structs.replace(planned, memory_id="", version=version)), True
        pushed = self.store(owners, planned, mutation, reason="")
        return self._view(pushed.memory, reach), pushed.changed

    def planned(self, namespace: Namespace, source: str) -> tuple[Document, Memory]:
        """The checked text and the memory that would hold it. Secrets are refused even where a policy redacts: a
        redacted text is another program.
        """
        apply(source, self._policies.of(namespace.tenant).refusing_by(Action.REJECT), FIELD)
        document = parse(source)
        now_us = self.transactions.clock_us()
        embedder = self.transactions.embedder
        return document, Memory(
            memory_id=self._minter.mint(),
            version=0,
            sequence=0,
            namespace=namespace,
            layer=Layer.PROCEDURAL,
            type=MemoryType.RULE,
            content=f"{document.name}: {document.description} {document.trigger}",
            subject=document.name,
            skill=source,
            create_time_us=now_us,
            update_time_us=now_us,
            occur_time_us=now_us,
            last_seen_time_us=now_us,
            embedding_model=embedder.model_id,
            embedding_dim=embedder.dim,
        )

    def store(self, owners: Owners, planned: Memory, mutation: Mutation, *, reason: str) -> Pushed:
        """Writes the planned memory as a new skill, or its text as a new version of the skill of that name."""
        vectors = self.transactions.vectors_for([planned])
        model_id = self.transactions.embedder.model_id

        def change(txn: WriteTxn) -> Committed[Pushed]:
            self.transactions.check_model(model_id)
            before = named_skill(txn, planned.namespace, planned.subject)
            after = planned
            if before is not None:
                same = (before.skill, before.status) == (planned.skill, planned.status)
                if same or planned.status == Status.PENDING:  # a draft never takes the place of what a person pushed
                    return Committed(Pushed(before, False), [])
                after = msgspec.structs.replace(
                    before,
                    content=planned.content,
                    skill=planned.skill,
                    status=planned.status,
                    update_time_us=planned.update_time_us,
                    expire_time_us=NEVER_US,
                    blocked=False,
                    embedding_model=planned.embedding_model,
                    embedding_dim=planned.embedding_dim,
                )
            changes: list[Applied] = []
            kind = ChangeKind.CREATED if before is None else ChangeKind.UPDATED
            stored = self.transactions.put(txn, after, vectors[0], kind, mutation, reason, changes, before)
            return Committed(Pushed(stored, True), changes)

        return self.transactions.mutate(owners, mutation, Pushed, change)

    def rollback(
        self, owners: Owners, namespaces: Sequence[Namespace], name: str, version: int, reason: str, mutation: Mutation
    ) -> Skill:
        """Writes an older version's text as the newest version. Raises NotFound, NotActive for a draft."""
        check_length(reason, REASON_MAX_CHARS, "reason")
        if version < 1:
            raise InvalidArgument("version must be from 1", field="version")
        old = self._found(namespaces, name, version)
        current = self._found(namespaces, name, 0)
        if current.status == Status.PENDING:
            raise NotActive(f"skill {name} is a draft; decide it first", name=name)
        _, planned = self.planned(old.namespace, old.skill)
        why = reason or f"rollback to version {version}"
        return self._view(self.store(owners, planned, mutation, reason=why).memory, namespaces)

    def decide(
        self, owners: Owners, namespaces: Sequence[Namespace], name: str, approve: bool, reason: str, mutation: Mutation
    ) -> Skill:
        """Approves or rejects a draft. Raises NotFound; NotActive when the skill waits for nothing."""
        check_length(reason, REASON_MAX_CHARS, "reason")
        _check_name(name)
        status = Status.ACTIVE if approve else Status.FORGOTTEN

        def change(txn: WriteTxn) -> Committed[Memory]:
            found = [m for n in narrowest_first(namespaces) if (m := named_skill(txn, n, name)) is not None]
            draft = next((memory for memory in found if memory.status == Status.PENDING), None)
            if draft is None and found:
                raise NotActive(f"skill {name} is {found[0].status.name}: no draft that waits", name=name)
            if draft is None:
                raise _absent(name)
            after = msgspec.structs.replace(draft, status=status, update_time_us=self.transactions.clock_us())
            kind = ChangeKind.UPDATED if approve else ChangeKind.FORGOTTEN
            changes: list[Applied] = []
            return Committed(
                self.transactions.put(txn, after, None, kind, mutation, reason, changes, before=draft), changes
            )

        return self._view(self.transactions.mutate(owners, mutation, Memory, change), namespaces)

    def record_run(
        self,
        owners: Owners,
        namespaces: Sequence[Namespace],
        name: str,
        outcome: RunOutcome,
        note: str,
        source: Source,
        mutation: Mutation,
    ) -> WriteResult:
        """Writes the event of a run, beside its skill or (of a GLOBAL one) into a namespace of the owners'. Raises
        NotFound, NotActive for a draft, SensitiveContent.
        """
        check_length(note, REASON_MAX_CHARS, "note")
        memory = self._found(namespaces, name, 0)
        if memory.status == Status.PENDING:
            raise NotActive(f"skill {name} is a draft; approve it first", name=name)
        summary = f"skill {name}: {outcome.value}" + (f", {note}" if note else "")
        payload = {
            "skill": name,
            "memory_id": memory.memory_id,
            "version": memory.version,
            "outcome": outcome.value,
            "note": note,
        }
        draft = Draft(
            content=summary if len(summary) <= SUMMARY_MAX_CHARS else summary[: SUMMARY_MAX_CHARS - 3] + "...",
            scope=run_namespace(owners, memory.namespace).scope,
            subject=_run_subject(name),
            source=source,
            event=Event(RUN_EVENT, payload),
        )
        return self._memories.write(owners, [draft], mutation, path="note")[0]

    # -- reading -------------------------------------------------------------------------------------------------

    def get(self, namespaces: Sequence[Namespace], name: str, version: int) -> Skill:
        """A version of a skill (0: the newest) of the narrowest scope that has it. Raises NotFound."""
        return self._view(self._found(namespaces, name, version), namespaces)

    def versions(self, namespaces: Sequence[Namespace], name: str) -> list[Skill]:
        """All versions, newest first. Raises NotFound."""
        memory = self._found(namespaces, name, 0)
        with self.transactions.engine.read() as txn:
            versions = txn.versions(memory.namespace, memory.memory_id)
        return [self._view(version, namespaces) for version in versions[::-1]]

    def list_page(
        self, namespaces: Sequence[Namespace], include_drafts: bool, size: int, page_token: str
    ) -> tuple[list[Skill], str]:
        """One page in order of (name, scope), and the token of the next ("" on the last). Raises InvalidArgument."""
        after = page_tokens.decode(page_token, "skills", tuple[str, int]) if page_token else ("", 0)
        wanted = _SHOWN if include_drafts else _LIVE
        found = [m for n in namespaces for m in self.all_of(n) if m.status in wanted and _place(m) > after]
        found.sort(key=_place)
        token = page_tokens.encode("skills", *_place(found[size - 1])) if len(found) > size else ""
        return [self._view(memory, namespaces) for memory in found[:size]], token

    def all_of(self, namespace: Namespace) -> list[Memory]:
        """The current versions of a namespace's skills, of any status."""
        segment = self._segments.get(namespace)
        if segment is None:
            return []
        view = View(segment, ())
        standing = view.columns.end_seq[: view.row_count] == OPEN_SEQ
        rows = np.flatnonzero(standing & segment.filter_mask(_PROCEDURAL, view.row_count).view(np.bool_))
        with self.transactions.engine.read() as txn:
            found = [txn.get(namespace, segment.memory_id(row)) for row in rows.tolist()]
        return [memory for memory in found if memory is not None and memory.skill]

    def _found(self, namespaces: Sequence[Namespace], name: str, version: int) -> Memory:
        """A version of the skill; one that stands is found before a draft. Raises NotFound."""
        _check_name(name)
        if version < 0:
            raise InvalidArgument("version must not be negative", field="version")
        with self.transactions.engine.read() as txn:
            found = [m for n in narrowest_first(namespaces) if (m := named_skill(txn, n, name)) is not None]
            for statuses in (_LIVE, (Status.PENDING,)):
                for memory in found:
                    if memory.status not in statuses:
                        continue
                    at = txn.get(memory.namespace, memory.memory_id, version) if version else memory
                    if at is None:
                        raise NotFound(f"skill {name} has no version {version}", name=name)
                    return at
        raise _absent(name)

    def _view(self, memory: Memory, namespaces: Sequence[Namespace]) -> Skill:
        """The skill with its runs, those of a GLOBAL one in the namespaces that the caller named."""
        counted = set(namespaces) if memory.namespace.scope == Scope.GLOBAL else {memory.namespace}
        tallies = [self._tally(namespace, memory) for namespace in counted]
        successes, failures = sum(tally.successes for tally in tallies), sum(tally.failures for tally in tallies)
        return Skill(parse(memory.skill), memory, successes, failures)

    # -- runs ----------------------------------------------------------------------------------------------------

    def _tally(self, namespace: Namespace, skill: Memory) -> _Tally:
        """The runs of a skill in a namespace, counted again only when a change since the last count touched one."""
        known = self._tallies.get((namespace, skill.memory_id))
        subject = _run_subject(skill.subject)
        with self.transactions.engine.read() as txn:
            head = txn.head(namespace)
            sequence = 0 if head is None else head.sequence
            if known is not None and (known.sequence == sequence or not _touched(txn, namespace, subject, known)):
                tally = msgspec.structs.replace(known, sequence=sequence)
            else:
                outcomes = [_outcome(memory, skill) for memory in txn.by_subject(namespace, subject)]
                tally = _Tally(sequence, outcomes.count(RunOutcome.SUCCESS), outcomes.count(RunOutcome.FAILURE))
        if len(self._tallies) >= TALLIES_MAX:
            self._tallies = {}
        self._tallies[namespace, skill.memory_id] = tally
        return tally

    # -- matching ------------------------------------------------------------------------------------------------

    def match(
        self, namespaces: Sequence[Namespace], query: str, top_k: int, left_s: Callable[[], float]
    ) -> list[Match]:
        """The skills that fit, best first; of two with the same name the one of the narrower scope. `left_s`: seconds
        that are left. Raises InvalidArgument, DeadlineExceeded when the time does not suffice.
        """
        if not query.strip():
            raise InvalidArgument("query is empty; say what is to be done", field="query")
        if not 0 <= top_k <= MATCH_MAX:
            raise InvalidArgument(f"top_k must be from 1 to {MATCH_MAX}, not {top_k}", field="top_k")
        ranked: dict[str, tuple[float, Skill]] = {}
        for hit in self._recalled(namespaces, query, _PROCEDURAL, TOP_K_MAX, left_s):
            if not hit.memory.skill:
                continue
            skill = self._view(hit.memory, namespaces)
            rate = (PRIOR_SUCCESSES + skill.success_count) / (
                PRIOR_SUCCESSES + PRIOR_FAILURES + skill.success_count + skill.failure_count
            )
            score = hit.found.components[C_SCORE] * rate
            other = ranked.get(hit.memory.subject)
            if other is None or hit.memory.namespace.scope < other[1].memory.namespace.scope:
                ranked[hit.memory.subject] = (score, skill)
        best = sorted(ranked.values(), key=lambda one: (-one[0], one[1].memory.subject))[: top_k or MATCH_DEFAULT]
        return [self._resolved(skill, score, namespaces, left_s) for score, skill in best]

    def _recalled(
        self, namespaces: Sequence[Namespace], query: str, condition: Filter, top_k: int, left_s: Callable[[], float]
    ) -> Iterator[Hit]:
        """What is found and fits. A degraded answer could leave out the one that fits, so it is refused."""
        request = RecallRequest(namespaces=namespaces, query=query, top_k=top_k, condition=condition, budget_s=left_s())
        answer = self._recaller.recall(request)
        if answer.degraded:
            what = ", ".join(Degraded(one).name for one in answer.degraded)
            raise DeadlineExceeded(f"the time did not suffice ({what}); try again with a later deadline")
        model_id = self._recaller.embedder.model_id
        if model_id not in self._floors:
            self._floors[model_id] = floor_for(model_id)
        floor = self._floors[model_id]
        for hit in answer.hits:
            if fits(query, hit.memory.content, hit.found.components[C_COSINE], floor):
                yield hit

    def _resolved(
        self, skill: Skill, score: float, namespaces: Sequence[Namespace], left_s: Callable[[], float]
    ) -> Match:
        refs = {ref.parameter: ref for ref in skill.document.memory_refs}
        parameters, missing = [], []
        for parameter in skill.document.parameters:
            ref = refs.get(parameter.name)
            memory = None if ref is None else self._referred(ref, namespaces, left_s)
            value = parameter.default if memory is None else memory.content
            if memory is not None and memory.fact is not None:
                value = memory.fact.value
            parameters.append(Resolved(parameter.name, value, "" if memory is None else memory.memory_id))
            if parameter.required and value is None:
                missing.append(parameter.name)
        return Match(skill, score, parameters, missing)

    def _referred(self, ref: MemoryRef, namespaces: Sequence[Namespace], left_s: Callable[[], float]) -> Memory | None:
        """The fact or memory of the reference's subject, the narrowest scope's newest; else what its query finds."""
        now_us = self.transactions.clock_us()
        if ref.subject:
            with self.transactions.engine.read() as txn:
                for namespace in narrowest_first(namespaces):
                    about = [
                        memory
                        for memory in txn.by_subject(namespace, ref.subject)
                        if effective_status(memory, now_us) in RECALLABLE
                        and not memory.skill
                        and ref.type in (None, memory.type)
                    ]
                    if about:
                        return max(about, key=lambda memory: (memory.fact is not None, memory.memory_id))
        if not ref.query:
            return None
        condition = Filter(types=() if ref.type is None else (ref.type,), layers=_REMEMBERED)
        hit = next(self._recalled(namespaces, ref.query, condition, 1, left_s), None)
        return None if hit is None else hit.memory


def named_skill(txn: ReadTxn, namespace: Namespace, name: str) -> Memory | None:
    """The memory that holds the skill of this name, of any status."""
    return next((memory for memory in txn.by_subject(namespace, name) if memory.skill), None)


def _run_subject(name: str) -> str:
    return f"skill/{name}"


def run_namespace(owners: Owners, skill: Namespace) -> Namespace:
    """Where the runs of a skill of this namespace go."""
    return own_namespace(owners) if skill.scope == Scope.GLOBAL else skill


def _outcome(memory: Memory, skill: Memory) -> str | None:
    """How the run of an event went; None for what is no run of the skill, was forgotten, or waits for
    approval.
    """
    if memory.event is None or memory.event.event_type != RUN_EVENT or memory.status in _NO_RUN:
        return None
    ran = memory.event.payload.get("memory_id")
    if ran != skill.memory_id and (ran is not None or memory.namespace != skill.namespace):  # older ones have no id
        return None
    outcome = memory.event.payload.get("outcome")
    return outcome if isinstance(outcome, str) else None


def _touched(txn: ReadTxn, namespace: Namespace, subject: str, known: _Tally) -> bool:
    """Whether a change since the count wrote an event of this subject; also when there are too many to look."""
    changes = txn.changes(namespace, known.sequence, CHANGES_READ)
    if len(changes) == CHANGES_READ:
        return True
    memories = txn.get_many(namespace, [(change.memory_id, change.version) for change in changes])
    return any(memory is not None and memory.subject == subject for memory in memories)


def _check_name(name: str) -> None:
    if not name:
        raise InvalidArgument("name is empty", field="name")
    check_subject(name, "name")


def _absent(name: str) -> NotFound:
    return NotFound(f"no skill {name} in the namespaces of the given owners", name=name)


def _place(memory: Memory) -> tuple[str, int]:
    return memory.subject, int(memory.namespace.scope)
