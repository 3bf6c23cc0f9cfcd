"""Context assembly: one block ready for a prompt, inside its token budget.

Purpose: permanent rules, what a recall finds, and the session's state become short lines in sections. What matters most
claims the budget first: permanent rules, the session's goal and constraints, memories by score, then the rest of the
session from its newest turn back. What does not fit is left out whole and counted. Lines claim in short; what room is
left at the end makes long ones whole again.

Threading: any number of threads; stateless.

Rejected: a recall per section (five times the work for the same ranking), cutting lines to fit (half a rule is another
rule).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from memsvc.errors import InvalidArgument, LimitExceeded
from memsvc.memory.context_text import (
    CLOSE_MARKER,
    LINE_MAX_CHARS,
    LONG_LINE_MAX_CHARS,
    OPEN_MARKER,
    TITLES,
    Format,
    Line,
    Section,
    neutral,
    rendered,
    row_parts,
    same_key,
)
from memsvc.memory.recall import TOP_K_MAX, Hit, Recaller, RecallRequest
from memsvc.memory.token_counts import TokenCounts
from memsvc.model import NO_FILTER, Filter, Layer, Memory, MemoryType, Namespace, Status
from memsvc.retrieval.kernels import C_SCORE

BUDGET_DEFAULT, BUDGET_MIN, BUDGET_MAX = 1024, 32, 131_072
MEMORIES_DEFAULT = 8
STATE_SHARE = 4  # goal, constraints and steps claim at most a quarter of the budget before memories do
SPARE_HITS = 8  # hits beyond those wanted, for what is dropped as said already
_CITATION_TOKENS_TEXT = "- [88]"  # a citation of two digits; counted for every line that has one
_OLDEST_FIRST = (Section.SESSION,)  # its rows claim from the newest back
_SECTION_OF_TYPE = {
    MemoryType.PREFERENCE: Section.PREFERENCES,
    MemoryType.DECISION: Section.PREFERENCES,
    MemoryType.RULE: Section.PREFERENCES,
    MemoryType.FACT: Section.FACTS,
    MemoryType.EVENT: Section.EVENTS,
}


class SessionView(msgspec.Struct, frozen=True):
    """What a block takes of an open session; `turns` are (speaker, text), oldest first, the last ones only."""

    goal: str = ""
    constraints: Sequence[str] = ()
    pending: Sequence[str] = ()
    finished: Sequence[str] = ()
    slots: Sequence[tuple[str, str]] = ()
    tool_outputs: Sequence[tuple[str, str]] = ()
    summary: str = ""
    turns: Sequence[tuple[str, str]] = ()


class Rule(Protocol):
    """A permanent memory."""

    @property
    def memory_id(self) -> str:
        """Its id."""

    @property
    def content(self) -> str:
        """Its statement."""


class ContextRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to assemble; see the contract. `sections` empty: all. `session`: the namespace of the session, if named."""

    namespaces: Sequence[Namespace]
    query: str
    session: Namespace | None = None
    session_id: str = ""
    token_budget: int = BUDGET_DEFAULT
    sections: tuple[Section, ...] = ()
    form: Format = Format.TEXT
    best_last: bool = True
    max_memories: int = MEMORIES_DEFAULT
    condition: Filter = NO_FILTER
    min_score: float = float("-inf")
    budget_s: float = 0.05


class Block(msgspec.Struct, frozen=True):
    """A block ready for a prompt. `text` is in the form that was asked for; `prompt` is the text form."""

    text: str
    prompt: str
    token_count: int
    lines: list[Line]
    left_out_count: int
    degraded: bool


class ContextBuilder:
    """See the module. `rules` gives the permanent memories of namespaces, `session` the open session of a namespace,
    `used` hears which memories went into a block.
    """

    def __init__(
        self,
        recaller: Recaller,
        *,
        rules: Callable[[Sequence[Namespace]], Sequence[Rule]],
        session: Callable[[Namespace], SessionView | None],
        counts: TokenCounts,
        used: Callable[[list[tuple[Namespace, str]]], None],
    ) -> None:
        self._recaller = recaller
        self._used = used
        self._rules = rules
        self._session = session
        self._counts = counts

    def assemble(self, request: ContextRequest) -> Block:
        """The block. Raises InvalidArgument and LimitExceeded naming the field, and what a recall raises."""
        _check(request)
        wanted = set(request.sections or Section)
        view = self._session(request.session) if request.session is not None else None
        query = request.query or (_last_said(view) if view is not None else "")
        hits, degraded = self._recalled(request, query, wanted)
        draft = _Draft(self._counts.of, request.token_budget)
        if Section.PERMANENT in wanted:
            for rule in self._rules(request.namespaces):
                draft.claim(Line(Section.PERMANENT, neutral(rule.content), rule.memory_id), whole=rule.content)
            draft.lengthen()
        if view is not None and Section.SESSION in wanted:
            draft.claim_rows(_state_rows(view), limit=request.token_budget // STATE_SHARE)
        _claim_memories(draft, hits, request.max_memories, _spoken(view) if Section.SESSION in wanted else set())
        if view is not None and Section.SESSION in wanted:
            draft.claim_rows(_further_rows(view), limit=request.token_budget)
        draft.lengthen()
        return self._fitted(draft, request, hits, degraded)

    def _recalled(self, request: ContextRequest, query: str, wanted: set[Section]) -> tuple[list[Hit], bool]:
        """Hits of the wanted sections, best first, and whether the recall was degraded."""
        if not wanted - {Section.PERMANENT, Section.SESSION} or not request.max_memories:
            return [], False
        answer = self._recaller.recall(
            RecallRequest(
                namespaces=request.namespaces,
                query=query,
                top_k=min(request.max_memories + SPARE_HITS, TOP_K_MAX),
                condition=_narrowed(request.condition, wanted),
                min_score=request.min_score,
                budget_s=request.budget_s,
                session_id=request.session_id,
                is_use=False,  # what goes into the block is used
            )
        )
        return [hit for hit in answer.hits if section_of(hit.memory) in wanted], bool(answer.degraded)

    def _note(self, hits: Sequence[Hit], lines: Sequence[Line]) -> None:
        """Says which memories are used by a block."""
        cited = {line.memory_id for line in lines}
        self._used([(hit.memory.namespace, hit.memory.memory_id) for hit in hits if hit.memory.memory_id in cited])

    def _fitted(self, draft: _Draft, request: ContextRequest, hits: Sequence[Hit], degraded: bool) -> Block:
        """The block in its form; for forms that need more tokens than text, long lines get short again and then
        the last that claimed leave first.
        """
        while True:
            lines = draft.ordered(best_last=request.best_last)
            text = rendered(lines, request.form)
            count = self._tokens(lines, text, request.form)
            if count <= request.token_budget:
                self._note(hits, lines)
                prompt = text if request.form == Format.TEXT else rendered(lines, Format.TEXT)
                return Block(text, prompt, count, lines, draft.left_out_count, degraded)
            draft.give_back()

    def _tokens(self, lines: Sequence[Line], text: str, form: Format) -> int:
        """Tokens of a rendered block; a text block's rows were counted when they claimed their place."""
        if form != Format.TEXT:
            return self._counts.uncached(text)
        return self._counts.of_joined((part for row in row_parts(lines) for part in row), text)


class _Claim(msgspec.Struct):
    """A line that has its tokens. `whole`: what it may still be made of; `short`: what it was before."""

    line: Line
    place: int
    whole: str
    short: Line | None = None


class _Draft:
    """Lines in the order in which they claimed their tokens."""

    def __init__(self, tokens: Callable[[str], int], budget: int) -> None:
        self._tokens = tokens
        self._left = budget - tokens(OPEN_MARKER) - tokens(CLOSE_MARKER)
        self._claimed: list[_Claim] = []
        self._sections: set[Section] = set()
        self._keys: set[str] = set()
        self.left_out_count = 0

    def claim(self, line: Line, place: int = 0, limit: int = BUDGET_MAX, whole: str = "") -> int:
        """Takes the line if it is new and fits into `limit` tokens; returns its tokens, 0 if not. Lines with a larger
        `place` stand further down in their section. `whole`: the text that the line was cut from.
        """
        key = same_key(whole or line.text)
        if not key or key in self._keys:
            return 0
        cost = self._tokens(_CITATION_TOKENS_TEXT if line.memory_id else "-") + self._tokens(line.text)
        if line.section not in self._sections:
            cost += self._tokens(TITLES[line.section])
        if cost > min(limit, self._left):
            self.left_out_count += bool(line.memory_id)
            return 0
        self._left -= cost
        self._keys.add(key)
        self._sections.add(line.section)
        self._claimed.append(_Claim(line, place, whole if len(whole) > LINE_MAX_CHARS else ""))
        return cost

    def claim_rows(self, rows: Iterable[_Row], limit: int) -> None:
        """Claims each row of the session; all together at most `limit` tokens."""
        for row in rows:
            limit -= self.claim(Line(Section.SESSION, neutral(row.text)), row.place, limit, row.text)

    def lengthen(self) -> None:
        """Makes long lines whole while tokens are left, in the order in which they claimed."""
        for claim in self._claimed:
            if claim.whole:
                text = neutral(claim.whole, LONG_LINE_MAX_CHARS)
                more = self._tokens(text) - self._tokens(claim.line.text)
                claim.whole = ""
                if 0 < more <= self._left:
                    self._left -= more
                    claim.short = claim.line
                    claim.line = msgspec.structs.replace(claim.line, text=text)

    def give_back(self) -> None:
        """Makes the last long line short again; where there is none, takes the line that claimed last out."""
        for claim in reversed(self._claimed):
            if claim.short is not None:
                claim.line, claim.short = claim.short, None
                return
        self.left_out_count += bool(self._claimed.pop().line.memory_id)

    def ordered(self, *, best_last: bool) -> list[Line]:
        """The lines in block order: in a section of recalled memories the best last, or first; rows of the session by
        place, the newest of a place last.
        """
        lines: list[Line] = []
        for section in Section:
            members = [claim for claim in self._claimed if claim.line.section == section]
            if section in _OLDEST_FIRST or (best_last and section != Section.PERMANENT):
                members.reverse()
            members.sort(key=lambda claim: claim.place)
            lines += [claim.line for claim in members]
        return lines


def section_of(memory: Memory) -> Section:
    """Where a memory stands in a block."""
    if memory.layer == Layer.PROCEDURAL:
        return Section.SKILLS
    return _SECTION_OF_TYPE[memory.type]


def _narrowed(condition: Filter, wanted: set[Section]) -> Filter:
    """The filter, with the types of the wanted sections where it names none: what is not wanted takes no place."""
    if condition.types or Section.SKILLS in wanted:  # skills have the type of a rule
        return condition
    types = tuple(kind for kind, section in _SECTION_OF_TYPE.items() if section in wanted)
    return msgspec.structs.replace(condition, types=types) if len(types) < len(_SECTION_OF_TYPE) else condition


def _claim_memories(draft: _Draft, hits: Sequence[Hit], most: int, spoken: set[str]) -> None:
    """Memories best first; what a turn of the session says already is not said twice."""
    count = 0
    for hit in hits:
        if count == most:
            return
        memory = hit.memory
        if spoken and same_key(memory.content) in spoken:
            continue
        whole = _memory_text(memory)
        line = Line(section_of(memory), neutral(whole), memory.memory_id, hit.found.components[C_SCORE])
        count += draft.claim(line, whole=whole) > 0


def _memory_text(memory: Memory) -> str:
    text = memory.content
    if memory.type == MemoryType.EVENT:
        text = f"{_day(memory.occur_time_us)}: {text}"
    if memory.status == Status.CONTESTED:
        text += " (contested: another statement says otherwise)"
    return text


def _day(time_us: int) -> str:
    """The UTC date; datetime's range is that of a protobuf Timestamp."""
    return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=time_us)).date().isoformat()


class _Row(msgspec.Struct, frozen=True):
    """A line of the session and its place there: turns come last, next to the question."""

    place: int
    text: str


_BEFORE, _GOAL, _CONSTRAINT, _VALUE, _DONE, _TODO, _TOOL, _TURN = range(8)


def _state_rows(view: SessionView) -> list[_Row]:
    """Goal first, then what binds it, then what is left to do."""
    rows = [_Row(_GOAL, f"Goal: {view.goal}")] if view.goal else []
    rows += [_Row(_CONSTRAINT, f"Constraint: {text}") for text in view.constraints]
    rows += [_Row(_TODO, f"To do: {text}") for text in view.pending]
    rows += [_Row(_VALUE, f"Agreed: {name} = {value}") for name, value in view.slots]
    return rows


def _further_rows(view: SessionView) -> list[_Row]:
    """The newest turn first, then what came before, what is done, and what tools returned."""
    rows = [_Row(_TURN, f"{speaker}: {text}") for speaker, text in reversed(view.turns)]
    if view.summary:
        rows.append(_Row(_BEFORE, f"Before: {view.summary}"))
    rows += [_Row(_DONE, f"Done: {text}") for text in reversed(view.finished)]
    rows += [_Row(_TOOL, f"Output of {tool}: {text}") for tool, text in reversed(view.tool_outputs)]
    return rows


def _last_said(view: SessionView) -> str:
    return next((text for speaker, text in reversed(view.turns) if speaker == "user"), "")


def _spoken(view: SessionView | None) -> set[str]:
    return set() if view is None else {same_key(text) for _, text in view.turns}


def _check(request: ContextRequest) -> None:
    if not BUDGET_MIN <= request.token_budget <= BUDGET_MAX:
        raise InvalidArgument(
            f"options.token_budget must be from {BUDGET_MIN} to {BUDGET_MAX}, not {request.token_budget}",
            field="options.token_budget",
        )
    if not 0 <= request.max_memories <= TOP_K_MAX:
        raise LimitExceeded(
            f"options.max_memories must be from 1 to {TOP_K_MAX}, not {request.max_memories}",
            field="options.max_memories",
            limit=str(TOP_K_MAX),
        )
