"""From a read message to statements that stand alone.

Purpose: choose the sentences that say something lasting, take chatter and lead-ins off, resolve what points at the
message before, split a fact from the wish that follows from it, and make dates absolute. What was said stays verbatim:
numbers, names, units, code. Only a first person at the start becomes "The user" / "用户".

Threading: pure functions over immutable weights.

Rejected: rewriting whole sentences by rule (agreement and quotations break, and a wrong statement is worse than a
clumsy one); cutting every message to its best clause (the reason is part of the statement).
"""

from __future__ import annotations

import re

import msgspec

from memsvc.memory.funnel import dates, ellipsis, habits, picks
from memsvc.memory.funnel.cues import HAN, Cue, cues_of
from memsvc.memory.funnel.evaluator import CueModel
from memsvc.memory.funnel.kinds import confidence_of, importance_of, is_dated, layer_of, subject_of, type_of
from memsvc.memory.funnel.segments import split_clauses
from memsvc.memory.funnel.signals import VALUE, Reading, Sentence, features
from memsvc.memory.funnel.values import Candidate, Message
from memsvc.model import NEVER_US, Layer, MemoryType

_LONG_CHARS = 260
_LONG_SENTENCES = 4
_LEAD_EN = re.compile(
    r"^(?:(?:hi|hey|hello|morning|good (?:morning|afternoon|evening)|ok(?:ay)?|oh|so|well|right|anyway|yeah|"
    r"yes|btw|by the way|fyi|just so you know|please note(?: that)?|"
    r"note(?: for later| to self)?|for (?:the record|context|your info(?:rmation)?|future reference)|pls|"
    r"please|can you please|could you please|lol|haha|ugh+|look|listen|honestly|"
    r"to be honest|tbh|quick (?:note|one)|heads up|also|(?:please |pls )?(?:remember|keep in mind|bear in mind|"
    r"don'?t forget|make a note|take note)(?: that)?|boring but true|"
    r"the thing (?:you should know|i wanted to (?:say|tell you)) is(?: that)?|(?:anyway,? )?i (?:was going|"
    r"wanted) to (?:tell you|say)(?: that)?|all right|alright|sorry|thanks)"
    r"(?:\s*[,:;!.—–-]+\s*|\s+(?=(?:that|the|my|our|i|we|i'm|we're|always|never|remember|please|from|keep|"
    r"call)\b))(?:there|all|everyone|team)?[,!. ]*)+",
    re.I,
)
_LEAD_ZH = re.compile(
    r"^(?:(?:你好|您好|嗨|哈喽|早|对了|那个|嗯+|哦+|好的?|哈+|说实话|老实说|讲真|话说|另外|顺便(?:说一?下|"
    r"提一?下|一提)|顺带(?:说|提)?一?(?:句|下)?|补充一?(?:下|点)|跟你说(?:一?[声下]|个事)?|"
    r"请?(?:你)?(?:帮我)?(?:记住|记得|记一下|记下|记着|记好)(?:了|一下|一点|哈|啊)?|麻烦(?:你)?(?:记一下|"
    r"记住)?|注意|备注一?下?|先说明一下|说明一下|提醒一下|主要想说的是|唉|哎|其实|反正|总之|知会一声|"
    r"同步(?:一下|个事)?|"
    r"不好意思|抱歉|谢谢)[，,。.！!：:、\s~～…]+)+|^(?:主要)?想说的是|^(?:请)?(?:帮我)?(?:记住|记一下|"
    r"记着)(?=我|我们|他|她|公司|老|家)",
)
_FIRST = re.compile(
    r"^(i'm|i’m|i am|i have|i've|i’ve|my|i (?:prefer|like|want|hate|use|live|work|drive|speak|own|need|report|"
    r"study|teach|drink|eat|take|love|usually|always|never|only|just|no longer))\b",
    re.I,
)
_FIRST_WORDS = {
    "i'm": (
        "The user is"
    ), (
        "i’m"
    ): (
        "The user is"
    ), (
        "i am"
    ): (
        "The user is"
    ), (
        "i have"
    ): (
        "The user has"
    ), (
        "i've"
    ): (
        "The user has"
    ), (
        "i’ve"
    ): (
        "The user has"
    ),
    "my": "The user's", "i study": "The user studies", "i teach": "The user teaches",
}  # fmt: skip
_FIRST_HAN = re.compile(
    r"^我(?=[是在对有叫住不只从比更一习喜偏用姓的现已也吃喝搬刚]|女|儿|老|妈|爸|家|孩)(?!们|在想|不是说|不是嫌|"
    r"不管|家里人都说|的意思)"
)
_ANAPHOR = re.compile(
    r"^\W*(?:they|it|that|this|these|those|he|she|so|because|but|and|otherwise|which|them|there|only|then|"
    r"since|also)\b|^(?:它|他|她|这|那|所以|因为|但|不过|而且|否则|不然|就|都|才|也|原因)",
    re.I,
)
_REFERS = re.compile(
    r"^(?:that|this|it|these|those|same) (?:goes|is|applies|holds|counts|are|should)\b|^(?:这|那)(?:条|个|"
    r"样)?(?:对|适用|都)",
    re.I,
)
_WISH = Cue.REQUEST | Cue.PREFER | Cue.LASTING | Cue.FEEDBACK | Cue.ADDRESSED | Cue.PROHIBIT
_FACT = Cue.TRAIT | Cue.CHANGED | Cue.SELF | Cue.GROUP | Cue.RECURRING | Cue.ORG | Cue.DATED
_IMPERATIVE_EN = re.compile(
    r"^(?:so |and |then |please |which means |hence |therefore |that's why |just |only )*(?:(?:always|never|"
    r"only|please|don'?t|do not|no|skip|avoid|use|keep|leave|put|show|give|send|block|plan|schedule|book|make|"
    r"filter|round|write|treat|quote|count|assume|call|text|stick|stay|hide|add|include|set|pick|choose|"
    r"suggest|recommend|speak|talk|explain|remind|check|mark|convert|work|go|order|i (?:want|need|prefer|"
    r"'?d like)|i'd (?:like|rather)|calls only|nothing|anything|everything|long \w+ stay|order|meetings|"
    r"schedule)\b|in \w+ (?:you|that you|for me)|when you|if you|for (?:charts|reports|recipes|me)|"
    r"(?:in|with|for) .{3,40}(?:put|use|avoid|show|give|keep|leave|don't|no|skip|only)\b|\w+ (?:only|stay|stays)\b)",
    re.I,
)
_IMPERATIVE_ZH = re.compile(
    r"^(?:所以|因此|那个时间段|这段时间|以后|今后|往后|都|就|请|麻烦|记得|您?|你|给|凡是|.{0,10}(?=别|不要|"
    r"避开|按|用|给|少|多|都|放|标))(?:以后|都|就|请)?.{0,8}?(?:别|不要|避开|按|给我|给她|给他|用|少|多|要|都|"
    r"标|帮我|订|点|推荐|放|调|说|发|安排|点餐|报|展示|提醒)"
)


class Draft(msgspec.Struct, frozen=True):
    """A statement before dates and scores."""

    text: str
    cues: int
    type: MemoryType
    is_dated: bool


def make(
    reading: Reading,
    message: Message,
    previous: str,
    types: tuple[float, ...],
    cue_model: CueModel,
    *,
    keep: float,
    by_signal: bool,
    limit: int,
) -> tuple[Candidate, ...]:
    """The candidates of a message that is worth keeping (or staging), at most `limit`, at least one."""
    drafts = _drafts(reading, message, previous, types, cue_model)
    unique: dict[str, Candidate] = {}
    for draft in drafts[:limit]:
        candidate = _finish(draft, reading, message, keep, by_signal)
        unique.setdefault(f"{candidate.content}\0{candidate.type}", candidate)
    return tuple(unique.values())


def _drafts(
    reading: Reading, message: Message, previous: str, types: tuple[float, ...], cue_model: CueModel
) -> list[Draft]:
    chosen = _choose(reading, message.speaker, cue_model)
    text = _join([sentence.text for sentence in chosen])
    cues = 0
    for sentence in chosen:
        cues |= sentence.cues
    dated = is_dated([sentence.cues for sentence in chosen])
    if message.speaker == "user":
        pick = None if ellipsis.is_heard_only(text, previous) else picks.resolve(text, previous)
        if pick is not None:
            return [Draft(_picked(pick, text, reading.is_chinese), cues, MemoryType.DECISION, False)]
        if ellipsis.needs(text, previous):
            question = previous.strip()[-200:]
            return [Draft(f"{question} {text}", cues, type_of(types, text, message.speaker), dated)]
        split = _fact_and_wish(chosen)
        if split is not None:
            return list(split)
    return [Draft(text, cues, type_of(types, text, message.speaker), dated)]


def _choose(reading: Reading, speaker: str, cue_model: CueModel) -> list[Sentence]:
    """The sentences that go into the statement. A short message keeps all that states something."""
    live = reading.live or list(reading.sentences)
    size = sum(len(sentence.text) for sentence in live) * (2 if reading.is_chinese else 1)
    if size <= _LONG_CHARS and len(live) <= _LONG_SENTENCES:
        solid = [s for s in live if not _is_chatter(s)] or live
        place = next(i for i, sentence in enumerate(reading.sentences) if sentence is solid[0])
        if place and _REFERS.search(solid[0].text):
            solid = [reading.sentences[place - 1], *solid]
        return solid
    scores = [cue_model.keep(features(Reading((s,), s.cues, 0, reading.is_chinese), speaker, "")) for s in live]
    bar = max(0.5, max(scores) * 0.6)
    chosen = {place for place, score in enumerate(scores) if score >= bar and not _is_chatter(live[place])}
    if not chosen:
        chosen = {scores.index(max(scores))}
    for place in sorted(chosen):
        if place and _ANAPHOR.search(live[place].text) and not _is_chatter(live[place - 1]):
            chosen.add(place - 1)
    return [live[place] for place in sorted(chosen)]


def _is_chatter(sentence: Sentence) -> bool:
    """Greetings, and one-off requests without a lasting marker."""
    cues = sentence.cues
    if cues & (Cue.PHATIC) and (cues & VALUE & ~(Cue.SELF)).bit_count() == 0:
        return True
    lasting = Cue.LASTING | Cue.PREFER | Cue.OBLIGE | Cue.DECIDED | Cue.REMEMBER | Cue.PROHIBIT
    return bool(cues & (Cue.ONE_OFF) and cues & (Cue.REQUEST) and not cues & lasting)


def _fact_and_wish(chosen: list[Sentence]) -> tuple[Draft, Draft] | None:
    """A fact and the wish that it leads to: the fact alone, and the whole as the wish (it needs its ground)."""
    if len(chosen) > 3:
        return None
    clauses = [clause for sentence in chosen for clause in split_clauses(sentence.text)]
    if not 2 <= len(clauses) <= 8:
        return None
    cues = [cues_of(clause) for clause in clauses]
    for place in range(1, len(clauses)):
        before = 0
        for bits in cues[:place]:
            before |= bits
        if _is_wish(clauses[place], cues[place], before):
            if not _is_fact(clauses[:place], before):
                return None
            han = HAN.search(clauses[0]) is not None
            fact = ("，" if han else ", ").join(clause.rstrip("，,。.") for clause in clauses[:place])
            whole = 0
            for bits in cues:
                whole |= bits
            return (
                Draft(fact, before, MemoryType.FACT, is_dated(cues[:place])),
                Draft(_join([sentence.text for sentence in chosen]), whole, MemoryType.PREFERENCE, False),
            )
    return None


def _is_wish(clause: str, cues: int, before: int) -> bool:
    stripped = clause.strip(" ,，")
    if HAN.search(stripped):
        if _WISH_ZH.search(stripped):
            return True
        return (
            bool(cues & (Cue.PREFER | Cue.LASTING | Cue.FEEDBACK | Cue.ADDRESSED | Cue.REQUEST))
            and bool(_IMPERATIVE_ZH.search(stripped))
            and not stripped.startswith(("我是", "我对", "我有"))
        )
    if _THEREFORE.search(stripped) and (cues & _WISH or before & (Cue.TRAIT) or _IMPERATIVE_EN.search(stripped)):
        return True
    return bool(_IMPERATIVE_EN.search(stripped)) and bool(cues & _WISH)


_THEREFORE = re.compile(
    r"^(?:so(?! (?:far|that|am|do|are|we|i|my|is|it|he|she|they)\b)|which (?:means|is why)|hence|therefore|"
    r"that's why)\b",
    re.I,
)
_WISH_ZH = re.compile(
    r"按.{1,10}(?:来|走|算|办|写|报|排|给|说|显示)|只(?:推荐|要|选|给|看|订|买)|都(?:换|开|用|放|别|要|按|给|订|调|"
    r"走|选|点|写|"
    r"避)"
)


_PERSONAL = re.compile(
    r"^(?:i|i'm|i’m|i am|i've|i’ve|my|we|we're|we've|our|remember that my|remember that i|half|the \w+ (?:is|"
    r"are)|thesis|exam)\b|\bmy \w+(?: \w+)? (?:is|are|has)\b|^[\w ]{2,30} (?:is|are) (?:due |on )?(?:january|"
    r"february|march|april|may|june|july|august|september|october|november|december|\d)",
    re.I,
)
_PERSONAL_HAN = re.compile(
    r"我(?!觉得|想|希望|喜欢|习惯|要|更|宁)|老婆|老公|孩子|女儿|儿子|宝宝|爸|妈|家里|我们|半马|考试|\d ?月"
)


def _is_fact(clauses: list[str], cues: int) -> bool:
    if cues & (Cue.DECIDED | Cue.OBLIGE) and not cues & (Cue.TRAIT | Cue.CHANGED):
        return False
    if cues & (Cue.PREFER | Cue.FEEDBACK) and not cues & (Cue.TRAIT | Cue.CHANGED | Cue.REMEMBER | Cue.RECURRING):
        return False
    first = clauses[0].strip()
    if HAN.search(first):
        return bool(_PERSONAL_HAN.search("，".join(clauses))) and bool(cues & _FACT)
    return bool(_PERSONAL.search(_LEAD_EN.sub("", first))) and bool(cues & _FACT)


def _picked(pick: picks.Pick, text: str, is_chinese: bool) -> str:
    others = "".join(f"；未选：{other}" if is_chinese else f"; not: {other}" for other in pick.others)
    return (
        f"已选定：{pick.chosen}{others}。理由/原话：{text}"
        if is_chinese
        else f"Chosen: {pick.chosen}{others}. In the user's words: {text}"
    )


def _join(parts: list[str]) -> str:
    text = parts[0] if parts else ""
    for part in parts[1:]:
        text += ("" if HAN.search(text[-4:]) or text[-1] in "。！？；，…" else " ") + part
    return text


def _finish(draft: Draft, reading: Reading, message: Message, keep: float, by_signal: bool) -> Candidate:
    text = draft.text if "```" in draft.text[:4] else _clean(draft.text, message.speaker)
    layer = layer_of(draft.type, draft.is_dated)
    past = draft.type == MemoryType.EVENT
    standing = draft.type in (MemoryType.RULE, MemoryType.PREFERENCE)
    standing = standing or (draft.type == MemoryType.DECISION and habits.is_weekly(text))
    result = dates.absolute(text, message.time_us, past=past, calendar=layer == Layer.EPISODIC, standing=standing)
    if draft.type == MemoryType.FACT and result.has_habit and not result.last_day:
        layer = layer_of(draft.type, False)  # a day that comes back binds a fact to no date
    bounded = (
        layer == Layer.EPISODIC
        and draft.type == MemoryType.FACT
        and result.last_day > 0
        and _BOUNDED.search(text) is not None
    )
    return Candidate(
        content=result.text,
        type=draft.type,
        layer=layer,
        subject=subject_of(result.text, draft.type),
        importance=importance_of(draft.type, layer, draft.cues),
        confidence=confidence_of(keep, by_signal),
        expire_time_us=dates.end_of_day_us(result.last_day) if bounded else NEVER_US,
        stable=layer != Layer.EPISODIC,
        occur_time_us=message.time_us,
    )


_BOUNDED = re.compile(
    r"\b(?:until|till|through|to the|back on|from the)\b|直到|请.{0,4}假到|到.{1,4}(?:回来|结束)|回来|[到至]周|出差",
    re.I,
)


def _clean(text: str, speaker: str) -> str:
    """Without lead-ins and trailing chatter; a first person at the start gets its name."""
    stripped = text.strip()
    pattern = _LEAD_ZH if HAN.search(stripped) else _LEAD_EN
    shorter = pattern.sub("", stripped, count=1).strip()
    if len(shorter) >= 2:
        stripped = shorter
    if speaker == "user":
        stripped = _FIRST_HAN.sub("用户", stripped, count=1)
        stripped = _FIRST.sub(_name_first, stripped, count=1)
    return (
        stripped[0].upper() + stripped[1:]
        if stripped[0].isascii() and stripped.split(None, 1)[0].isalpha()
        else stripped
    )


def _name_first(match: re.Match[str]) -> str:
    said = match.group().lower()
    if said in _FIRST_WORDS:
        return _FIRST_WORDS[said]
    word = match.group()[2:]
    if said[2:] in ("usually", "always", "never", "only", "just"):
        return match.group()
    return "The user " + word if word == "no longer" else f"The user {word}s"
