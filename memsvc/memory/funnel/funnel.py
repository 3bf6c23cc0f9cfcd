"""The funnel: messages in, verdicts out.

Purpose: run the three stages in order, embed only what the first two leave open (one batch a call), and write the
statements of what is kept.

Threading: a Funnel is immutable; `judge` may run in many threads if the embedder and the judge may.

Rejected: embedding every message (the rules and signals settle most of them in a tenth of a millisecond); a judge per
message (a batch costs less per text).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from memsvc.errors import InvalidArgument
from memsvc.memory.funnel import picks, rules, signals, statements
from memsvc.memory.funnel.cues import Cue
from memsvc.memory.funnel.evaluator import CueModel, LocalEvaluator, Weights, load_weights
from memsvc.memory.funnel.values import (
    SPEAKERS,
    Candidate,
    Decision,
    Embed,
    FunnelSettings,
    Judge,
    Judgement,
    Message,
    Stage,
    StageReport,
    Unclear,
    Verdict,
    history_tail,
)

STANDING_WISH = 0.9  # what a wish is worth that says in so many words that it is for good
MOOD = "passing mood"
GENERAL = "general knowledge, courtesy or a plan"
NOTHING = "nothing lasting is stated"
UNSURE = "not sure enough"
DEFAULT_SETTINGS = FunnelSettings()
_STRONG = (
    Cue.REMEMBER
    | Cue.DECIDED
    | Cue.CORRECTION
    | Cue.LASTING
    | Cue.OBLIGE
    | Cue.OUTCOME
    | Cue.PROHIBIT
    | Cue.PREFER
    | Cue.TRAIT
)
_KEPT_REASONS = (
    (Cue.REMEMBER, "explicit request to remember"),
    (Cue.DECIDED, "decision"),
    (Cue.CORRECTION, "correction of an earlier fact"),
    (Cue.OBLIGE | Cue.PROHIBIT | Cue.RULE_WORD, "rule or limit"),
    (Cue.LASTING | Cue.RECURRING, "lasting wish"),
    (Cue.PREFER | Cue.FEEDBACK, "preference"),
    (Cue.OUTCOME, "outcome"),
    (Cue.TRAIT | Cue.CHANGED | Cue.SELF | Cue.GROUP, "fact about the user or their world"),
)


class _Open(msgspec.Struct, frozen=True):
    """A message on its way: what was read of it, and a verdict, what the judge is asked, or
    (`kept`) what the signals say of a message that is surely worth keeping.
    """

    message: Message
    previous: str
    reading: signals.Reading | None
    verdict: Verdict | None
    unclear: Unclear | None
    kept: Judgement | None = None


class Funnel:
    """Decides what is worth keeping.

    `embed` gives unit vectors (float32, shape (n, dim)) of passages. `evaluator` replaces the local one for the
    unclear messages. InvalidArgument when a speaker is unknown or the weights don't fit the embedder.
    """

    def __init__(
        self,
        embed: Embed,
        evaluator: Judge | None = None,
        settings: FunnelSettings = DEFAULT_SETTINGS,
        weights: Weights | None = None,
    ) -> None:
        self.weights = weights or load_weights()
        self.settings = settings
        self._judge = evaluator or LocalEvaluator(embed, self.weights)
        self._cue_model = CueModel(self.weights)
        self._keep_threshold = _first(settings.keep_threshold, self.weights.keep_threshold)
        self._stage_threshold = _first(settings.stage_threshold, self.weights.stage_threshold)

    def judge(self, messages: Sequence[Message], history: Sequence[Message] = ()) -> list[Verdict]:
        """One verdict for each message, in order. A message sees the history and those before it."""
        opened = self._open_all(messages, history)
        unclear = [item.unclear for item in opened if item.unclear is not None]
        judgements = iter(self._judge.judge(unclear) if unclear else [])
        return [
            item.verdict
            or (self._kept_by_signal(item) if item.unclear is None else self._judged(item, next(judgements)))
            for item in opened
        ]

    def stages(self, messages: Sequence[Message], history: Sequence[Message] = ()) -> StageReport:
        """Rules and signals alone: how many messages each stage decides, and how many would reach the judge."""
        opened = self._open_all(messages, history)
        by_rule = sum(item.verdict is not None and item.verdict.stage == Stage.RULE for item in opened)
        unclear = sum(item.unclear is not None for item in opened)
        return StageReport(by_rule, len(opened) - by_rule - unclear, unclear)

    def _open_all(self, messages: Sequence[Message], history: Sequence[Message]) -> list[_Open]:
        seen = history_tail(history, self.settings.history_messages)
        opened = []
        for message in messages:
            opened.append(self._open(message, seen))
            seen.append(message)
            if len(seen) > self.settings.history_messages:
                del seen[0]
        return opened

    def _open(self, message: Message, seen: Sequence[Message]) -> _Open:
        """Stages 1 and 2."""
        if message.speaker not in SPEAKERS:
            raise InvalidArgument(f"speaker must be one of {', '.join(SPEAKERS)}", field="speaker")
        message = self._shortened(message)
        previous = picks.offer_of(message, seen)
        own = rules.strip_blocks(message.content)
        noise = rules.noise(message, own, seen)
        if noise is not None:
            return _Open(message, previous, None, _dropped(Stage.RULE, noise, 0.0), None)
        if own != message.content:
            message = msgspec.structs.replace(message, content=own)
        reading = signals.read(own)
        if reading.dropped_by or not reading.sentences:
            reason = signals.REASONS.get(reading.dropped_by, NOTHING)
            return _Open(message, previous, reading, _dropped(Stage.SIGNAL, reason, 0.02), None)
        if message.speaker == "agent" and not signals.reports(reading):
            return _Open(message, previous, reading, _dropped(Stage.SIGNAL, GENERAL, 0.05), None)
        row = signals.features(reading, message.speaker, previous)
        keep = self._cue_model.keep(row)
        if message.speaker == "user" and signals.asks_for_ever(reading):
            keep = max(keep, STANDING_WISH)
            return _Open(message, previous, reading, None, None, Judgement(keep, self._cue_model.types(row)))
        if keep < self.weights.cue_drop_below:
            return _Open(message, previous, reading, _dropped(Stage.SIGNAL, _drop_reason(reading, message), keep), None)
        if keep > self.weights.cue_keep_above and reading.cues & _STRONG:
            types = self._cue_model.types(row)
            if max(types) > 0.9:
                return _Open(message, previous, reading, None, None, Judgement(keep, types))
        return _Open(message, previous, reading, None, Unclear(message, previous, row))

    def _shortened(self, message: Message) -> Message:
        """A message past the limit is judged by its beginning and its end."""
        limit = self.settings.content_max_chars
        if len(message.content) <= limit:
            return message
        half = limit // 2
        return msgspec.structs.replace(message, content=message.content[:half] + "\n" + message.content[-half:])

    def _kept_by_signal(self, item: _Open) -> Verdict:
        """Stage 2's verdict; the statements are made here, so that `stages` costs what stages 1 and 2 cost."""
        assert item.reading is not None
        assert item.kept is not None
        kept = item.kept
        return self._kept(item.message, item.previous, item.reading, kept.types, kept.keep, Stage.SIGNAL)

    def _judged(self, item: _Open, judgement: Judgement) -> Verdict:
        """Stage 3's opinion as a verdict."""
        assert item.reading is not None
        keep = judgement.keep
        if keep < self._stage_threshold:
            return _dropped(Stage.MODEL, _drop_reason(item.reading, item.message), keep, judgement.judge)
        types = judgement.types or self._cue_model.types(np.asarray(item.unclear.features if item.unclear else ()))
        verdict = self._kept(item.message, item.previous, item.reading, types, keep, Stage.MODEL, judgement.candidates)
        verdict = msgspec.structs.replace(verdict, judge=judgement.judge)
        if keep >= self._keep_threshold:
            return verdict
        return msgspec.structs.replace(verdict, decision=Decision.STAGED, reason=UNSURE)

    def _kept(
        self,
        message: Message,
        previous: str,
        reading: signals.Reading,
        types: tuple[float, ...],
        keep: float,
        stage: Stage,
        given: tuple[Candidate, ...] | None = None,
    ) -> Verdict:
        candidates = (
            given
            if given is not None
            else statements.make(
                reading,
                message,
                previous,
                types,
                self._cue_model,
                keep=keep,
                by_signal=stage == Stage.SIGNAL,
                limit=self.settings.candidates_max,
            )
        )
        reason = next((text for bits, text in _KEPT_REASONS if reading.cues & bits), "states something lasting")
        return Verdict(decision=Decision.KEPT, stage=stage, reason=reason, candidates=candidates, score=round(keep, 4))


def _first(setting: float | None, trained: float) -> float:
    return trained if setting is None else setting


def _dropped(stage: Stage, reason: str, score: float, judge: str = "") -> Verdict:
    return Verdict(decision=Decision.DROPPED, stage=stage, reason=reason, score=round(score, 4), judge=judge)


def _drop_reason(reading: signals.Reading, message: Message) -> str:
    if message.speaker != "user":
        return GENERAL
    if reading.cues & (Cue.ONE_OFF | Cue.REQUEST):
        return signals.THIS_TURN
    if reading.cues & (Cue.MOOD):
        return MOOD
    return rules.PHATIC if reading.cues & (Cue.PHATIC) else NOTHING
