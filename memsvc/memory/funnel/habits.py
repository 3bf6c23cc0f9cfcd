"""Weekdays of a habit: "every Monday and Friday" and "周五不发版" name no day of the calendar.

Purpose: tell a weekday that comes back from the one day that something happens on. A date that is wrong is worse than
none, so a weekday that may be either is left as it was said.

Threading: pure functions.

Rejected: one look at the whole message (a habit and an appointment often stand side by side).
"""

from __future__ import annotations

import re

_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:周|星期|礼拜)[一二三四五六日天])"
_EDGE = re.compile(r"[，；。！？,;.!?\n]|\b(?:but|except)\b|但是?|不过|除了")
_OFTEN = re.compile(
    r"\b(?:(?:every|each|any)(?: other| second| single)? (?:day|week|month|quarter|year|sprint|morning|evening|night|"
    rf"afternoon|{_DAY})|always|usually|normally|generally|typically|whenever|(?:bi-?)?weekly|fortnightly|monthly|"
    r"as a rule|by default|from now on|going forward|stand-?ups?|retros?|on-?call)\b"
    r"|每(?:天|周|月|年|晚|早|季|逢|隔|到|个?星期|个礼拜|个月|两周)|逢|[单双隔]周|总是|始终|永远|一律|统一|从不|从来|"
    r"绝不|通常|一般|平时|习惯|固定|默认|凡是|从现在起|今后|往后|例会|周会|站会|歇业|休业|公休|营业|"
    r"(?<![一二三四五六日天周月年])以后",
    re.I,
)
_GOVERNED = re.compile(
    rf"(?:\b(?:every|each|any|most|an?|alternate)(?: other| second| first| third| last)?|每个?|逢|隔)"
    rf"\s*(?:{_DAY}(?:\s*(?:,|、|，|和|及|与|\band\b|\bor\b|&|/)\s*)+)*$",
    re.I,
)
_DENIES = re.compile(r"\b(?:never|nobody|no one|don'?t|do not)\b", re.I)
_DENIED = re.compile(r"\bno \w+(?: \w+)? (?:on )?$|(?:都|只)(?:放|排|安排)?在?$|都(?:放|排)$", re.I)
_BEHIND = re.compile(
    r"\s?(?:都(?!要?来了)|不(?!小心|幸|久|到)|别|必|总|只(?:能|可)|从不|例行|(?:休|放假)(?=$|[，。；,;\s])"
    r"|(?:of|in) (?:the|each|every) (?:month|quarter|sprint|week)\b)",
    re.I,
)
_RANGE = re.compile(rf"(?<!from ){_DAY} ?(?:to|through|-|–) ?$", re.I)
_RANGE_BEHIND = re.compile(rf" ?(?:to|through|-|–) ?{_DAY}\b", re.I)
_WEEKLY = re.compile(
    rf"\b(?:every|each)(?: other| second)? {_DAY}|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days\b"
    r"|[每逢隔]个?(?:周|星期|礼拜)[一二三四五六日天]",
    re.I,
)


def is_habitual(text: str, start: int, end: int, *, past: bool, is_limit: bool = False) -> bool:
    """Whether the day at text[start:end] comes back. `past`: the text reports what happened, so only a word that
    governs the day itself ("every", "每") makes it a habit. `is_limit`: the day ends or begins something ("by Friday"),
    so "don't ... until Friday" is no habit.
    """
    before, behind = text[:start], text[end:]
    if _GOVERNED.search(before):
        return True
    if past:
        return False
    opened = max((edge.end() for edge in _EDGE.finditer(before)), default=0)
    closed = _EDGE.search(behind)
    clause = text[opened : end + closed.start()] if closed else text[opened:]
    if _OFTEN.search(clause) is not None or _BEHIND.match(behind) is not None:
        return True
    alone = (_DENIES.search(clause), _DENIED.search(before), _RANGE.search(before), _RANGE_BEHIND.match(behind))
    return not is_limit and any(alone)


def is_weekly(text: str) -> bool:
    """Whether a text names a weekday that comes back in so many words."""
    return _WEEKLY.search(text) is not None
