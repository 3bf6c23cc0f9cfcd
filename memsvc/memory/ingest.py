"""Raw messages in, memories out: the funnel between the secrets filter and the store.

Purpose: every message passes the secrets filter, is judged by the funnel with what the session said before it, and what
is kept or staged is written like any other memory, in one transaction a call.

Threading: any number of threads; the tails of sessions are behind a lock and bounded.

Rejected: refusing a whole call for one message with a secret (a log of a day would be lost for one password); keeping
the tails in the store (they only serve to see repeats and what "the second one" means; a caller that must judge alike
after a crash gives the history itself).
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import InvalidArgument, SensitiveContent
from memsvc.memory import drafts as rules
from memsvc.memory.drafts import Draft
from memsvc.memory.funnel import (
    Candidate,
    Decision,
    Funnel,
    FunnelSettings,
    Judge,
    Judgement,
    LocalEvaluator,
    Message,
    Stage,
    Unclear,
    Verdict,
    load_weights,
)
from memsvc.memory.funnel.evaluator import CueModel
from memsvc.memory.funnel.values import FALLBACK, history_tail
from memsvc.memory.memories import Memories, WriteResult
from memsvc.memory.owners import DEFAULT_TENANT, Owners, check, namespace_for
from memsvc.memory.policies import Policies
from memsvc.memory.sensitive import Action, Kind, Policy, apply
from memsvc.memory.sensitive.text import PLACEHOLDER_OPEN
from memsvc.memory.transactions import Mutation, Transactions
from memsvc.model import NEVER_US, Layer, Namespace, Scope, Source

MESSAGES_MAX = 200
TAILS_MAX = 1024
_HOLE = re.compile(re.escape(PLACEHOLDER_OPEN) + r"(\w+)\]")
_STORED_LAYERS = (Layer.EPISODIC, Layer.SEMANTIC, Layer.PROCEDURAL)

MakeJudge = Callable[[Judge], Judge]


class Made(msgspec.Struct, frozen=True):
    """A memory that a message gives; `result` is None when nothing was stored."""

    draft: Draft
    stable: bool
    result: WriteResult | None = None


class Judged(msgspec.Struct, frozen=True):
    """The verdict on one message and what it gives."""

    verdict: Verdict
    made: list[Made]

    @property
    def fell_back(self) -> bool:
        """Whether the configured endpoint failed."""
        return self.verdict.judge == FALLBACK


class IngestCounts(msgspec.Struct):
    """Counts since the start."""

    messages: int = 0
    kept: int = 0
    fallbacks: int = 0


class _CueJudge:
    """Judges by the cues alone: for embedding models that the evaluator was not trained for."""

    def __init__(self, model: CueModel) -> None:
        self._model = model

    def judge(self, unclear: list[Unclear]) -> list[Judgement]:
        """Opinions, in order."""
        return [Judgement(self._model.keep(u.features), self._model.types(u.features), judge="cues") for u in unclear]


class Ingestor:
    """See the module. `make_judge` puts a configured endpoint in front of the local evaluator."""

    def __init__(
        self,
        transactions: Transactions,
        memories: Memories,
        policies: Policies,
        *,
        content_max_bytes: int,
        settings: FunnelSettings | None = None,
        make_judge: MakeJudge | None = None,
    ) -> None:
        self._transactions = transactions
        self._memories = memories
        self._policies = policies
        self._content_max_bytes = content_max_bytes
        self._make_judge = make_judge
        self._settings = settings or FunnelSettings()
        self._funnel: tuple[str, Funnel] | None = None
        self._tails: OrderedDict[tuple[Namespace, str], list[Message]] = OrderedDict()
        self._lock = threading.Lock()
        self.counts = IngestCounts()

    def ingest(
        self,
        owners: Owners,
        scope: Scope | None,
        messages: Sequence[Message],
        *,
        session_id: str,
        tool: str,
        dry_run: bool,
        mutation: Mutation,
        history: Sequence[Message] | None = None,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> list[Judged]:
        """Judges the messages, oldest first, and stores what is worth it; one answer a message, in order.

        `history`: what was said before them, oldest first. It gives context only, the last `history_messages` of it.
        None: what earlier calls said in this session, as far as this process remembers.
        Raises InvalidArgument and LimitExceeded naming the field, and what `Memories.write` raises.
        """
        check(owners)
        session_id = session_id or owners.session_id or ""
        namespace = namespace_for(owners, scope)
        self._check(messages, session_id, tool)
        policy = self._policies.of(owners.tenant or DEFAULT_TENANT)
        clean: list[Message] = []
        refused: dict[int, str] = {}
        for i, message in enumerate(messages):
            try:
                clean.append(_without_secrets(message, policy, f"messages[{i}]"))
            except SensitiveContent as error:
                refused[i] = f"holds what must not be stored: {error.metadata['kinds']}"
        first = self._first_answer(owners, mutation)
        if first is not None:
            return first
        tail_key = (namespace, session_id)
        before = self._tail(tail_key) if history is None else self._context(history, policy)
        verdicts = iter(self._current_funnel().judge(clean, before) if clean else [])
        judged = []
        for i, message in enumerate(messages):
            if i in refused:
                verdict = Verdict(decision=Decision.DROPPED, stage=Stage.RULE, reason=refused[i])
            else:
                verdict = next(verdicts)
            verdict = _without_holes(verdict, policy)
            judged.append(self._judged(verdict, message, session_id, tool, scope))
        if not dry_run:
            judged = self._stored(owners, judged, mutation, still_wanted)
            if history is None:
                self._remember(tail_key, [*before, *clean])
        self._count(judged)
        return judged

    def _first_answer(self, owners: Owners, mutation: Mutation) -> list[Judged] | None:
        """What a replayed call was answered: what it said meanwhile makes its messages look like repeats."""
        tenant = owners.tenant or DEFAULT_TENANT
        with self._transactions.engine.read() as txn:
            return self._transactions.first_answer(txn, tenant, mutation, list[Judged], self._transactions.clock_us())

    def _check(self, messages: Sequence[Message], session_id: str, tool: str) -> None:
        if not 1 <= len(messages) <= MESSAGES_MAX:
            raise InvalidArgument(
                f"messages has {len(messages)} entries; send 1 to {MESSAGES_MAX} a call", field="messages"
            )
        rules.check_length(session_id, rules.SOURCE_MAX_CHARS, "session_id")
        rules.check_length(tool, rules.SOURCE_MAX_CHARS, "tool")
        for i, message in enumerate(messages):
            if message.content.strip():
                rules.check_content(message.content, self._content_max_bytes, f"messages[{i}].content")
            rules.check_length(message.message_id, rules.SOURCE_MAX_CHARS, f"messages[{i}].message_id")
            rules.check_time(message.time_us, f"messages[{i}].time")

    def _current_funnel(self) -> Funnel:
        """The funnel of the store's embedding model; made anew after the model was switched."""
        embedder = self._transactions.embedder
        known = self._funnel
        if known is not None and known[0] == embedder.model_id:
            return known[1]
        weights = load_weights()

        def embed(texts: list[str]) -> NDArray[np.float32]:
            return embedder.embed_passages(texts)

        local: Judge = _CueJudge(CueModel(weights))
        if weights.model_id == embedder.model_id:
            local = LocalEvaluator(embed, weights)
        judge = local if self._make_judge is None else self._make_judge(local)
        funnel = Funnel(embed, judge, self._settings, weights)
        self._funnel = (embedder.model_id, funnel)
        return funnel

    def _judged(self, verdict: Verdict, message: Message, session_id: str, tool: str, scope: Scope | None) -> Judged:
        staged = verdict.decision == Decision.STAGED
        source = Source(tool, session_id, message.message_id)
        made = [
            Made(_draft(candidate, message, source, scope, staged), candidate.stable)
            for candidate in verdict.candidates
            if candidate.layer in _STORED_LAYERS
        ]
        return Judged(verdict, made)

    def _stored(
        self, owners: Owners, judged: list[Judged], mutation: Mutation, still_wanted: Callable[[], bool]
    ) -> list[Judged]:
        def answer(results: list[WriteResult]) -> list[Judged]:
            left = iter(results)
            return [
                Judged(one.verdict, [Made(made.draft, made.stable, next(left)) for made in one.made]) for one in judged
            ]

        drafts = [made.draft for one in judged for made in one.made]
        return self._memories.write_as(
            owners, drafts, mutation, list[Judged], answer, path="statements", still_wanted=still_wanted
        )

    def _tail(self, key: tuple[Namespace, str]) -> list[Message]:
        with self._lock:
            return list(self._tails.get(key, ()))

    def _context(self, history: Sequence[Message], policy: Policy) -> list[Message]:
        """The end of a caller's history without what must not be stored."""
        context = []
        for message in history_tail(history, self._settings.history_messages):
            try:
                context.append(_without_secrets(message, policy, "history"))
            except SensitiveContent:
                continue  # it was refused in its own call too
        return context

    def _remember(self, key: tuple[Namespace, str], messages: list[Message]) -> None:
        with self._lock:
            self._tails[key] = messages[-self._settings.history_messages :]
            self._tails.move_to_end(key)
            while len(self._tails) > TAILS_MAX:
                self._tails.popitem(last=False)

    def _count(self, judged: list[Judged]) -> None:
        with self._lock:
            self.counts.messages += len(judged)
            self.counts.kept += sum(one.verdict.decision == Decision.KEPT for one in judged)
            self.counts.fallbacks += sum(one.fell_back for one in judged)


def _without_secrets(message: Message, policy: Policy, path: str) -> Message:
    """The message as the tenant's policy lets it in. Raises SensitiveContent."""
    return msgspec.structs.replace(
        message,
        content=apply(message.content, policy, f"{path}.content"),
        tool_calls=apply(message.tool_calls, policy, f"{path}.tool_calls"),
    )


def _without_holes(verdict: Verdict, policy: Policy) -> Verdict:
    """The verdict without statements that tell of a secret which a session redacted and the policy rejects: what is
    left of "the password is [REDACTED:password]" is worth nothing.
    """
    rejected = {kind.value for kind in Kind if policy.action(kind) == Action.REJECT}
    kept = tuple(one for one in verdict.candidates if rejected.isdisjoint(_HOLE.findall(one.content)))
    if len(kept) == len(verdict.candidates):
        return verdict
    if kept:
        return msgspec.structs.replace(verdict, candidates=kept)
    return Verdict(decision=Decision.DROPPED, stage=Stage.RULE, reason="tells of a secret that was redacted")


def _draft(candidate: Candidate, message: Message, source: Source, scope: Scope | None, staged: bool) -> Draft:
    return Draft(
        content=candidate.content,
        type=candidate.type,
        layer=candidate.layer,
        scope=scope,
        subject=candidate.subject,
        source=source,
        importance=candidate.importance,
        confidence=candidate.confidence,
        occur_time_us=candidate.occur_time_us or message.time_us,
        expire_time_us=None if candidate.expire_time_us == NEVER_US else candidate.expire_time_us,
        staged=staged,
    )
