"""Dialogue-state tracking: what the user wants now, read from the turns by rule.

Purpose: goal, constraints, slots, finished and pending steps follow from what was said, newest last. What a user would
expect decides:

- The goal is what the user asked for last. A bare instruction while there is a goal is a step of it, not a new goal.
- Turning away ("actually, let's ... instead", "算了，改成…", "forget that") ends the old goal, its pending steps and
  its constraints. A constraint stays that was said to hold for good ("always", "以后都"), or when the user says that
  the constraints stay. What is finished and the slots stay: they are facts.
- A new request about something else, without a word in common with goal, pending steps or constraints, does the same.
- "Use Go instead" changes how, not what: the goal stays and says so.
- A new constraint on the same matter replaces the older one. What is to hold from now on is a constraint, not a goal.
- Questions, hypotheticals, quotations and code set nothing. Only the user sets goal, constraints and slots; the agent
  reports what is finished and plans what is pending; tools and systems set nothing.

Threading: pure functions.

Rejected: a language model (seconds on the path of a turn); slots by a schema (a memory service knows no domain).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from memsvc.memory.funnel import Message
from memsvc.memory.funnel.cues import HAN, Cue
from memsvc.memory.funnel.rules import strip_blocks
from memsvc.memory.funnel.segments import split_sentences
from memsvc.memory.one_line import shortened
from memsvc.memory.sessions import dialogue_cues as cues
from memsvc.memory.sessions.state import (
    CONSTRAINTS_MAX,
    FINISHED_MAX,
    GOAL_MAX_CHARS,
    ITEM_MAX_CHARS,
    PENDING_MAX,
    SessionState,
    added,
    with_slots,
)
from memsvc.retrieval.lexical import analyze

TURN_MAX_CHARS = 4000  # of a longer turn, its beginning: state is said in short sentences
SENTENCES_MAX = 40
_SENTENCE_MAX_CHARS = 400
_CODE = re.compile(r"```.*?(?:```|\Z)|^>.*$", re.S | re.M)
_QUOTED = re.compile(r"“[^”]{12,}”|「[^」]{6,}」|\"[^\"\n]{12,}\"|《[^》]+》")
_CHANGED = re.compile(r"(?: \(changed: .*\)|（改为：.*）)$")
_MATCH_SHARE = 0.6
_HOW_MAX_CHARS = 150
_CACHED_TEXTS = 4096  # a state's texts are compared with every turn
_DIGITS = re.compile(r"[\d一二三四五六七八九十百千万两.]+")
_CHECKED = re.compile(r"不(?=要|能|许|准|得|可)|别|必须|务必|一定要?|只能|可以|允许|要|能|再|请|都|使用|用|了")
_PLAIN_WORDS = frozenset(
    "must not never only use don't dont mustn't please should be no avoid without keep can".split()
)


def tracked(state: SessionState, turns: Sequence[Message]) -> SessionState:
    """The state after the turns."""
    for turn in turns:
        if turn.speaker in ("user", "agent"):
            spoken = _CODE.sub(" ", strip_blocks(turn.content[:TURN_MAX_CHARS]))
            if spoken.strip():
                state = _user(state, spoken) if turn.speaker == "user" else _agent(state, spoken)
    return state


# -- the agent ---------------------------------------------------------------------------------------------------------


def _agent(state: SessionState, spoken: str) -> SessionState:
    """What the agent reports as finished, and what it plans."""
    reader = _Reader(state)
    planned, prose = _listed(reader, spoken)
    for sentence in split_sentences(prose)[:SENTENCES_MAX]:
        for clause in _clauses(_QUOTED.sub(" ", sentence)):
            if not reader.finished(clause, sentence):
                reader.pending_step(clause, sentence)
    if planned:
        reader.change(pending=added((), planned, PENDING_MAX))
    return reader.state


def _listed(reader: _Reader, spoken: str) -> tuple[list[str], str]:
    """The steps of a plan, and the text without its list. Ticked lines are finished. Two lines make a list."""
    lines = spoken.split("\n")
    matches = [cues.LIST_LINE.match(line) for line in lines]
    found = [match for match in matches if match is not None]
    rest = "\n".join(line for line, match in zip(lines, matches, strict=True) if match is None)
    is_plan = any(match["box"] is not None for match in found) or cues.PLAN.search(rest) is not None
    if len(found) < 2 or not is_plan:
        return [], spoken
    reader.finish([match["text"] for match in found if match["box"] not in (None, " ")])
    return [match["text"] for match in found if match["box"] in (None, " ")], rest


# -- the user ----------------------------------------------------------------------------------------------------------


def _user(state: SessionState, spoken: str) -> SessionState:
    """What the user wants, rules out, names and reports."""
    reader = _Reader(state, keeps=cues.KEEP.search(spoken) is not None)
    planned, prose = _listed(reader, spoken)
    sentences = [_QUOTED.sub(" … ", one)[:_SENTENCE_MAX_CHARS] for one in split_sentences(prose)[:SENTENCES_MAX]]
    for place, sentence in enumerate(sentences):
        seen = cues.some_cues(sentence)
        if place == 0 and seen & cues.WORDS_ONLY and not seen & Cue.LASTING:
            if seen & Cue.WORDING and seen & Cue.REQUEST:
                reader.want(re.split(r"[:：\n…]", sentence)[0].strip(), turned=False)
            return reader.state
        reader.user_sentence(sentence, seen)
    if reader.turned and not reader.has_new_goal:
        reader.turn_away("")
    if planned:
        reader.change(pending=added(reader.state.pending, planned, PENDING_MAX))
    return reader.state


def _clauses(sentence: str) -> list[str]:
    parts = (cues.LEAD.sub("", part.strip(" \t,，;；。.!！")) for part in cues.CLAUSE.split(sentence))
    return [part for part in parts if part]


class _Reader:
    """One turn being read. `turned`: the user turned away from the goal and has not named a new one yet."""

    def __init__(self, state: SessionState, keeps: bool = False) -> None:
        self.state = state
        self.keeps = keeps
        self.turned = False
        self.maybe_turned = False
        self.has_new_goal = False
        self._goal_clauses = 0

    def change(self, **fields: object) -> None:
        """Replaces fields of the state."""
        self.state = msgspec.structs.replace(self.state, **fields)

    def user_sentence(self, sentence: str, seen: int) -> None:
        """Reads one sentence of the user, with its cues."""
        text = cues.LEAD.sub("", sentence.strip())
        text = self._turning(text)
        want = cues.WANT.match(text) or cues.WANT_THING.match(text)
        asks = seen & (cues.NOT_STATED & ~Cue.UNDECIDED if want else cues.NOT_STATED)
        if asks & ~Cue.QUESTION or (asks and want is None):
            return
        clauses = _clauses(text)
        clauses = self._standing(clauses) if cues.STANDING.match(text) else self._without_goal(text, clauses, seen)
        for clause in clauses:
            self._clause(clause, sentence, seen)

    def _standing(self, clauses: list[str]) -> list[str]:
        """Notes the clause that holds from now on; the clauses behind it."""
        at = 0 if cues.STANDING.sub("", clauses[0]).strip() else 1  # "from now on" may stand alone
        if at < len(clauses) and not self._relaxed(clauses[at]):
            self._constrain(clauses[at].rstrip("?？"), True)
        return clauses[at + 1 :]

    def _without_goal(self, text: str, clauses: list[str], seen: int) -> list[str]:
        """Reads the goal, if the sentence names one; the other clauses. Who turns away may first say from what."""
        for at, clause in enumerate(clauses if self.maybe_turned else clauses[:1]):
            if at and not (cues.WANT.match(clause) or cues.NEW.match(clause)):
                continue
            if self._goal(text[text.find(clause) :] if at else text, clauses[at:], seen):
                return clauses[:at] + clauses[at + self._goal_clauses :]
        return clauses

    def _turning(self, text: str) -> str:
        """Takes "actually," and "forget that," off the front; what is left may be the new goal."""
        while True:
            cancel = cues.CANCEL.match(text)
            turn = None if cancel else cues.TURN.match(text)
            found = cancel or turn
            if found is None:
                return text
            self.turned = self.turned or cancel is not None
            self.maybe_turned = True
            text = cues.LEAD.sub("", text[found.end() :].strip(" ,，.;；:：!！。"))

    def _goal(self, text: str, clauses: list[str], seen: int) -> bool:
        """Reads a goal from the front of the sentence; `_goal_clauses` says how many clauses it took."""
        first = clauses[0]
        turning = self.maybe_turned or cues.INSTEAD.search(text) is not None
        use = cues.USE_CHANGE.match(first)
        if use is not None and self.state.goal and (turning or first.startswith(("改", "换"))):
            self._amend(first)
            self._goal_clauses = 1
            return True
        want = cues.WANT.match(first) or cues.WANT_THING.match(first)
        new = cues.NEW.match(first) if turning or first.startswith(("改", "换", "转")) else None
        is_task = want is None and new is None and bool(seen & Cue.REQUEST) and not self._is_other(first)
        if want is None and new is None and not is_task and not (self.turned and first):
            return False
        opener = want or new
        self._goal_clauses = self._length(clauses)
        goal = _joined(text, clauses, self._goal_clauses, opener.end() if opener else 0)
        goal = cues.INSTEAD.sub("", goal)
        if len(goal) < 2:
            return False
        also = cues.ALSO.search(text) is not None
        if self.state.goal and not turning and not self.turned and (also or is_task):
            self.change(pending=added(self.state.pending, [goal], PENDING_MAX))
        else:
            self.want(goal, turned=turning or self.turned or new is not None)
        return True

    def _length(self, clauses: list[str]) -> int:
        """How many clauses a goal takes: up to the first that says something of another kind."""
        return next((place for place, clause in enumerate(clauses[1:], 1) if self._is_other(clause)), len(clauses))

    def _is_other(self, clause: str) -> bool:
        """Whether the clause says something else than a goal."""
        kinds = (cues.CONSTRAINT, cues.STANDING, cues.SLOT_SIGN, cues.SLOT_IS, cues.PENDING)
        return any(pattern.search(clause) for pattern in kinds) or (self.keeps and bool(cues.KEEP.search(clause)))

    def want(self, goal: str, *, turned: bool) -> None:
        """A new goal. The old one's constraints and steps go if the user turned away, or speaks of something else."""
        if turned or not self._is_related(goal):
            self.turn_away(goal)
        else:
            self.change(goal=shortened(goal, GOAL_MAX_CHARS))
        self.has_new_goal = True
        self.turned = self.maybe_turned = False

    def turn_away(self, goal: str) -> None:
        """Drops what belonged to the old goal."""
        standing = self.state.standing
        kept = self.state.constraints if self.keeps else tuple(c for c in self.state.constraints if c in standing)
        self.change(goal=shortened(goal, GOAL_MAX_CHARS), constraints=kept, pending=())

    def _amend(self, clause: str) -> None:
        """Another way to the same goal: older constraints on what to use give way."""
        how = cues.INSTEAD.sub("", re.sub(r"^(?:改成|改为|改|换成|换|let'?s )", "", clause, flags=re.I))
        bare = _CHANGED.sub("", self.state.goal)
        note = f"（改为：{how[:_HOW_MAX_CHARS]}）" if HAN.search(bare) else f" (changed: {how[:_HOW_MAX_CHARS]})"
        standing = self.state.standing
        kept = tuple(c for c in self.state.constraints if c in standing or not cues.USE_CHANGE.match(c))
        self.change(goal=shortened(bare, GOAL_MAX_CHARS - len(note)) + note, constraints=kept)
        self.has_new_goal = True
        self.turned = self.maybe_turned = False

    def _is_related(self, goal: str) -> bool:
        if not self.state.goal:
            return True
        known = _terms(" ".join((self.state.goal, *self.state.pending, *self.state.constraints)))
        return bool(known & _terms(goal))

    def _clause(self, clause: str, sentence: str, seen: int) -> None:
        if self.keeps and cues.KEEP.search(clause):
            return
        if self._relaxed(clause) or self.finished(clause, sentence) or self.pending_step(clause, sentence):
            return
        is_standing = cues.STANDING.match(clause) is not None
        if not is_standing and self._slot(clause):
            return
        if is_standing or cues.CONSTRAINT.search(clause):
            self._constrain(clause, is_standing or bool(seen & Cue.LASTING))

    def _relaxed(self, clause: str) -> bool:
        """Whether the clause lifts a constraint."""
        match = cues.RELAX.search(clause)
        if match is None:
            return False
        about = _matter(next(group for group in match.groups() if group))
        gone = [c for c in self.state.constraints if about and about <= _matter(c)]
        constraints, standing = (
            tuple(c for c in texts if c not in gone) for texts in (self.state.constraints, self.state.standing)
        )
        self.change(constraints=constraints, standing=standing)
        return bool(gone)

    def _constrain(self, clause: str, standing: bool) -> None:
        text = shortened(clause, ITEM_MAX_CHARS)
        matter = _matter(text)
        kept = tuple(c for c in self.state.constraints if not matter or _matter(c) != matter)
        constraints = added(kept, [text], CONSTRAINTS_MAX)
        stays = tuple(c for c in self.state.standing if c in constraints)
        self.change(constraints=constraints, standing=(*stays, text) if standing and text not in stays else stays)

    def _slot(self, clause: str) -> bool:
        match = cues.SLOT_SIGN.match(clause) or cues.SLOT_IS.match(clause)
        if match is None:
            return False
        groups = match.groupdict()
        key = next(groups[name] for name in ("key", "key2", "key3") if groups.get(name)).strip()
        value = next(text for name, text in groups.items() if not name.startswith("key") and text).strip()
        words = key.lower().split()
        if key.lower() in cues.NO_SLOT or words[0] in cues.NO_SLOT or cues.CONSTRAINT.search(key):
            return False
        if cues.NO_NAME.search(key):
            return False
        self.change(slots=with_slots(self.state.slots, {key.lower(): value}))
        return True

    # -- steps -----------------------------------------------------------------------------------------------------

    def finished(self, clause: str, sentence: str) -> bool:
        """Whether the clause reports something done; it is noted."""
        match = cues.FINISHED.match(clause)
        if match is None or cues.NOT_FINISHED.search(clause) or sentence.rstrip().endswith(("?", "？", "吗", "吗。")):
            return False
        what = next((group for group in match.groups() if group), "").strip(" :,，：")
        if not what:
            if self.state.pending:
                self.finish([self.state.pending[0]])
            return True
        self.finish([what], clause)
        return True

    def finish(self, items: Iterable[str], said: str = "") -> None:
        """Notes finished items, as they were said; a pending step that an item speaks of moves."""
        for item in items:
            step = _spoken_of(item, self.state.pending)
            self.change(
                finished=added(self.state.finished, [step or said or item], FINISHED_MAX),
                pending=tuple(p for p in self.state.pending if p != step),
            )

    def pending_step(self, clause: str, sentence: str) -> bool:
        """Whether the clause names a step still to do; it is noted."""
        match = cues.PENDING.match(clause) or (
            cues.FIRST.match(clause) if cues.PENDING.search(_after(sentence, clause)) else None
        )
        if match is None or sentence.rstrip().endswith(("?", "？")):
            return False
        what = next(group for group in match.groups() if group).strip()
        if not any(_terms(what) <= _terms(step) for step in self.state.pending):  # else it is planned already
            self.change(pending=added(self.state.pending, [what], PENDING_MAX))
        return True


def _after(sentence: str, clause: str) -> str:
    """What follows the clause in its sentence."""
    return sentence.partition(clause)[2].lstrip(" ,，;；")


def _joined(text: str, clauses: list[str], count: int, skip: int) -> str:
    """The first clauses as they stand in the text, without the opener."""
    end = len(text)
    if count < len(clauses):
        end = 0
        for clause in clauses[:count]:
            end = text.find(clause, end) + len(clause)
    return text[skip:end].strip(" \t,，;；。.!！?？:：…吗吧")


@lru_cache(_CACHED_TEXTS)
def _terms(text: str) -> frozenset[str]:
    return frozenset(analyze(text).counts)


@lru_cache(_CACHED_TEXTS)
def _matter(constraint: str) -> frozenset[str]:
    """What a constraint is about: its words without numbers and without the words that make it one."""
    bare = _CHECKED.sub(" ", _DIGITS.sub(" ", constraint))
    words = [word for word in re.split(r"[\s,，]+", bare.lower()) if word and word not in _PLAIN_WORDS]
    return _terms(" ".join(words))


def _spoken_of(item: str, pending: Sequence[str]) -> str | None:
    """The pending step that shares most words with the item, if it shares enough of the shorter one's."""
    own = _terms(item)
    best, best_share = None, _MATCH_SHARE
    for step in pending:
        terms = _terms(step)
        share = len(own & terms) / max(1, min(len(own), len(terms)))
        if share >= best_share and (best is None or share > best_share):
            best, best_share = step, share
    return best
