"""Picks between options: "the second one, option 1 would starve the small customers" becomes what was picked.

Purpose: a decision that points at the message before it is worthless alone; here it gets the option's own text.

Threading: pure functions.

Rejected: storing both messages (a memory is one statement, and the options that were not taken are noise).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from memsvc.memory.funnel.values import Message

_MARK = re.compile(
    r"(?:^|(?<=[\s。.;；,，:：!！?？、]))(?:(?:option|plan|choice|variant|proposal|approach|version|no\.?|方案|选项|"
    r"计划|方法|版本|做法|路线|套餐)\s?(?P<key>[A-Da-d1-6一二三四])|第(?P<han>[一二三四1-4])(?:种|个|版|条|项)?|"
    r"(?:the )?(?P<ordinal>first|second|third|fourth)(?: one| option| is)?(?=[,:])|"
    r"[a-z]{3,12} (?P<noun>[1-6A-D])(?=[:：])|[\u4e00-\u9fff]{1,4}(?P<hannoun>[一二三四1-4A-D])(?=[:：])|"
    r"[(（]?(?P<bare>[A-D1-6]))(?:\s?[:：.)）、]|\s+(?:is|=)\s|[，,]\s?(?=\S)|是)\s*",
    re.I,
)
_ORDER = {"一": 1, "二": 2, "三": 3, "四": 4, "a": 1, "b": 2, "c": 3, "d": 4}
_WORDS = {
    "first": 1,
    "1st": 1,
    "former": 1,
    "second": 2,
    "2nd": 2,
    "third": 3,
    "3rd": 3,
    "fourth": 4,
    "前者": 1,
    "后者": -1,
    "latter": -1,
    "last": -1,
    "最后": -1,
}
_CHOICE = re.compile(
    r"\b(?:(?:option|plan|choice|variant|proposal|approach|version|number|no\.?|#)\s?(?P<key>[a-d]|[1-6])|(?:the |"
    r"go with |take |pick |choose |prefer )(?P<letter>[A-D])\b|(?:the )?(?P<word>first|second|third|fourth|1st|2nd|"
    r"3rd|former|latter|last)\b(?: one| option| plan)?)|第(?P<han>[一二三四1-4])(?:种|个|版|条|项|套)?|(?:方案|选项|"
    r"选|用|走|就|要|定|按|那就) ?(?P<hankey>[A-Da-d一二三四1-4])(?![a-zA-Z\d个条点次])|(?P<hanword>前者|后者|"
    r"最后(?:一个|一种)?)|^\W*(?P<lone>[A-D])\b(?!\w)",
    re.I,
)
_NEGATED = re.compile(
    r"(?:\bnot |\bthan |instead of |rather than |\bno to |don't (?:trust|like|want) )(?:the )?$|不(?:要|用|选|走)$|比$",
    re.I,
)
_YES = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|yup|ok(?:ay)?|sure|do (?:it|that)|agreed|go (?:ahead|for it)|right(?! now)|absolutely|"
    r"definitely|fine|let'?s do (?:it|that))(?![\w-])|(?:行|好|嗯|对)(?:的|啊|呀|吧|嘞|哒|嗯)*(?=\W|$)|可以|同意|"
    r"就这么|没问题|按你说的|照你说的)",
    re.I,
)
_EITHER = re.compile(
    r"\b(?:either |do|use|go with|choose|between) ?(?P<a>.{3,80}?)[,，]? or (?P<b>.{3,80}?)(?:[?.!]|$)|"
    r"^(?P<e>.{3,100}?),? or (?P<f>.{3,80}?)(?:[?.!]|$)|(?:可以|要么|是|用|选)(?P<c>.{2,40}?)[，,]?(?:也可以|要么|"
    r"还是|或者?)(?P<d>.{2,40}?)(?:[。？?！]|$)",
    re.I,
)
_THERE_IS = re.compile(r"\bthere(?:'s| is| are)\s+(?P<a>.{3,90}?),? and (?P<b>an? .{3,90}?)(?:[?.!]|$)", re.I)
_TAIL = re.compile(
    r"(?:[.。;；]\s*|…\s*|\.{3}\s*)?(?:\b(?:which|what|shall i|should i|do you)\b[^.]{0,60}\?|(?:您?(?:选|看|想要|"
    r"觉得)|要哪|哪个|选哪)[^。]{0,20}[?？])\s*$",
    re.I,
)


class Pick(msgspec.Struct, frozen=True):
    """What was picked, in the words of the previous message, and the options left out that the answer refers to."""

    chosen: str
    others: tuple[str, ...] = ()


def offer_of(message: Message, history: Sequence[Message]) -> str:
    """What the user's message may be an answer to: the message before it, if that is the agent's and asks or offers
    something; else empty. (That something was said before is true of nearly every message, and means nothing.)
    """
    if message.speaker != "user" or not history or history[-1].speaker != "agent":
        return ""
    previous = history[-1].content
    return previous if "?" in previous or "？" in previous or options_of(previous) else ""


def options_of(previous: str) -> list[str]:
    """The options that a message offers, in order; empty when it offers none."""
    text = _TAIL.sub("", previous.strip())
    marks = list(_MARK.finditer(text))
    if len(marks) >= 2:
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        return [text[mark.end() : end].strip(" \n\t.;；。,，、-*") for mark, end in zip(marks, ends, strict=True)]
    for pattern in (_EITHER, _THERE_IS):
        found = pattern.search(text)
        if found:
            return [part.strip(" ,，") for part in found.groups() if part]
    parts = re.split(r"[，,;；]\s*(?:and )?", text)
    return [part.strip() for part in parts] if len(parts) == 2 and all(len(part) > 5 for part in parts) else []


def resolve(text: str, previous: str) -> Pick | None:
    """The pick that a short answer makes between the options of the message before, or None when it makes none."""
    if not previous or len(text) > 300:
        return None
    options = options_of(previous)
    if options:
        chosen = -1
        others: list[str] = []
        for match in _CHOICE.finditer(text):
            index = _index(match, len(options))
            if index is None:
                continue
            if chosen < 0 and not _NEGATED.search(text[: match.start()]):
                chosen = index
            elif index != chosen and options[index] not in others:
                others.append(options[index])
        if chosen >= 0:
            return Pick(options[chosen], tuple(others))
    if _YES.search(text) and re.search(r"[?？]\s*$", previous) and len(previous) <= 300 and not options:
        return Pick(previous.strip())
    return None


def _index(match: re.Match[str], count: int) -> int | None:
    raw = next(group for group in match.groups() if group).lower()
    number = (
        next((value for key, value in _WORDS.items() if raw.startswith(key)), None)
        or _ORDER.get(raw)
        or (int(raw) if raw.isdigit() else None)
    )
    if number is None:
        return None
    index = count - 1 if number < 0 else number - 1
    return index if 0 <= index < count else None
