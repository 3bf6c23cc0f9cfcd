"""Relative dates become absolute: "tomorrow" said on 9 March 2025 is 2025-03-10.

Purpose: a memory is read long after it was said. The absolute date is put in brackets behind the words, which stay, so
that nothing that was said is lost. All dates are UTC days of the message's time.

Threading: pure functions.

Rejected: dateparser and its kin (slow, and they read "port 9077" and "may" as dates); replacing the words (the reader
can't see then that a date was derived).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import msgspec

from memsvc.memory.funnel import habits
from memsvc.model import EARLIEST_TIME_US, LATEST_TIME_US

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = tuple("january february march april may june july august september october november december".split())
_HAN_DAY = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6, "末": 5}
_COUNTS = {
    "a": 1, (
        "an"
    ): 1, (
        "one"
    ): 1, (
        "two"
    ): 2, (
        "three"
    ): 3, (
        "four"
    ): 4, (
        "five"
    ): 5, (
        "six"
    ): 6, (
        "seven"
    ): 7, (
        "eight"
    ): 8, (
        "nine"
    ): 9, (
        "ten"
    ): 10,
    "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "半": 0,
}  # fmt: skip
_DAY_NAME = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH_NAME = "|".join(_MONTHS) + "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_PATTERN = re.compile(
    r"(?P<day>\b(?:the day after tomorrow|tomorrow|tonight|yesterday|last night|today)\b|大后天|(?<!以)后天|明天|明早|"
    r"明晚|明日|昨天|昨晚|昨日|前天|今天|今晚|今早)"
    r"|(?P<week>\b(?:next|last|this) (?:week(?! ?end)|month|quarter|year)\b|"
    r"(?<![一二三四五六七八九十\d])(?:上上|下下|上|下|本)(?:个)?(?:周|星期|礼拜)(?![一二三四五六日天末])|"
    r"上个?月(?!\d)|下个?月(?! ?\d)|这个月|本月|去年|明年|今年)"
    rf"|(?P<weekday>\b(?:(?P<which>next|last|this|on|by|until|till|from|is|came|since|past)\s+)?(?P<name>{_DAY_NAME})\b(?!s))"
    r"|(?P<hanweek>(?<![每逢隔至到])(?P<hanwhich>上上|下下|上|下|本|这)?(?:个)?(?:周|星期|"
    r"礼拜)(?P<hanname>[一二三四五六日天末])(?:(?P<hanto>[到至])(?:周|星期|"
    r"礼拜)?(?P<hanend>[一二三四五六日天]))?)"
    r"|(?P<ago>\b(?P<n>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten) (?P<unit>day|week|month|"
    r"year)s? ago\b|"
    r"\bin (?P<n2>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten) (?P<unit2>day|week|month|"
    r"year)s?\b(?! or| of)|"
    r"(?P<n3>\d{1,3}|[一两二三四五六七八九十]) ?(?:个)?(?P<unit3>天|周|星期|月|年)(?P<side>之?前|之?后|"
    r"以后)(?!不|没|未))"
    r"|(?P<hanmonth>(?P<hanmonthwhich>下|这|本|上)个?月 ?(?P<hanmday>\d{1,2}|[一二三四五六七八九十]+) ?[号日])"
    rf"|(?P<month>\b(?:(?P<m1>{_MONTH_NAME})\.? (?P<d1>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"|(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m2>{_MONTH_NAME}))\b"
    r"(?!,? \d{4}|:| (?:times|people|days|hours|items))"
    r"|(?<![\d年 ])(?P<m3>\d{1,2}) ?月 ?(?P<d3>\d{1,2}) ?[号日])"
    r"|(?P<dom>\bthe (?P<d4>\d{1,2})(?:st|nd|rd|th)\b(?! floor| time| try| grade| century| of| row| line|"
    r" generation)|(?<![\d月每个 .])(?P<d5>\d{1,2}) ?号(?![线楼店机门库前院桌房])(?!\w{0,4}[线楼]))",
    re.I,
)


class Dated(msgspec.Struct, frozen=True):
    """A text with its absolute dates, the last day it names (ordinal) or 0, and whether it names days of a habit."""

    text: str
    last_day: int
    has_habit: bool = False


def day_of(time_us: int) -> dt.date:
    """The UTC day of a time in microseconds; times outside of the years 1 to 9999 are moved to the nearest one."""
    return (_EPOCH + dt.timedelta(microseconds=min(max(time_us, EARLIEST_TIME_US), LATEST_TIME_US))).date()


def end_of_day_us(ordinal: int) -> int:
    """UTC microseconds of the end of a day given by its ordinal."""
    return (ordinal + 1 - _EPOCH.date().toordinal()) * 86_400_000_000 - 1


def absolute(text: str, time_us: int, *, past: bool, calendar: bool, standing: bool = False) -> Dated:
    """The text with ISO dates in brackets behind its relative dates.

    `past`: a bare weekday or day of a month is the last one rather than the next. `calendar`: days of a month and
    month-day pairs are dates too (not so in a standing rule: "due on the 5th"), and so are bare weekdays in English.
    `standing`: no bare weekday is a date. A day of a habit never is.
    """
    today = day_of(time_us)
    if not 2 <= today.year <= 9990:
        return Dated(text, 0)
    last = 0
    has_habit = False

    def replace(match: re.Match[str]) -> str:
        nonlocal last, has_habit
        if _is_bare(match):
            is_limit = (match.group("which") or "").lower() in _LIMITS
            habitual = habits.is_habitual(text, match.start(), match.end(), past=past, is_limit=is_limit)
            has_habit = has_habit or habitual
            if habitual or (standing and match.group("dom") is None):
                return match.group()
        found = _resolve(match, today, past, calendar)
        if found is None:
            return match.group()
        label, day = found
        last = max(last, day.toordinal())
        return f"{match.group()} ({label})" if match.group().isascii() else f"{match.group()}（{label}）"

    return Dated(_PATTERN.sub(replace, text), last, has_habit)


def _is_bare(match: re.Match[str]) -> bool:
    """Whether the words may name a day of any week or month; "next Friday", "since Friday" and "下周五" name one."""
    if match.group("weekday"):
        which = (match.group("which") or "on").lower()
        return (
            which in ("on", "is")
            or which in _LIMITS
            or (which == "last" and match.string.startswith(" of ", match.end()))
        )
    if match.group("hanweek"):
        return not match.group("hanwhich") and not match.group("hanend")
    return match.group("dom") is not None


def _resolve(match: re.Match[str], today: dt.date, past: bool, calendar: bool) -> tuple[str, dt.date] | None:
    """Label and last day of a match, or None when it is no date here."""
    kind = match.lastgroup
    for name, resolver in _RESOLVERS.items():
        if match.group(name):
            kind = name
            if name in _CALENDAR_ONLY and not calendar and (match.group("which") or "").lower() != "next":
                return None
            return resolver(match, today, past)
    raise AssertionError(kind)


def _day(match: re.Match[str], today: dt.date, past: bool) -> tuple[str, dt.date] | None:
    word = match.group("day").lower()
    shift = {
        "the day after tomorrow": 2, (
            "tomorrow"
        ): 1, (
            "tonight"
        ): 0, (
            "yesterday"
        ): -1, (
            "last night"
        ): -1, (
            "today"
        ): 0, (
            "大后天"
        ): 3, (
            "后天"
        ): 2,
        "明天": 1, (
            "明早"
        ): 1, (
            "明晚"
        ): 1, (
            "明日"
        ): 1, (
            "昨天"
        ): -1, (
            "昨晚"
        ): -1, (
            "昨日"
        ): -1, (
            "前天"
        ): -2, (
            "今天"
        ): 0, (
            "今晚"
        ): 0, (
            "今早"
        ): 0,
    }[word]  # fmt: skip
    return _iso(today + dt.timedelta(days=shift))


def _week(match: re.Match[str], today: dt.date, past: bool) -> tuple[str, dt.date] | None:
    word = match.group("week").lower()
    shift = -1 if word.startswith(("last", "上", "去")) else 1 if word.startswith(("next", "下", "明")) else 0
    if word.startswith(("上上", "下下")):
        shift *= 2
    if "month" in word or "月" in word:
        day = _add_months(today.replace(day=1), shift)
        return day.strftime("%Y-%m"), _add_months(day, 1) - dt.timedelta(days=1)
    if "quarter" in word:
        month = (today.month - 1) // 3 * 3 + 1
        day = _add_months(today.replace(month=month, day=1), 3 * shift)
        return f"{day.year}-Q{(day.month + 2) // 3}", _add_months(day, 3) - dt.timedelta(days=1)
    if "year" in word or "年" in word:
        return str(today.year + shift), dt.date(today.year + shift, 12, 31)
    monday = today - dt.timedelta(days=today.weekday()) + dt.timedelta(weeks=shift)
    sunday = monday + dt.timedelta(days=6)
    return f"{monday.isoformat()}/{sunday.isoformat()}", sunday


def _weekday(match: re.Match[str], today: dt.date, past: bool) -> tuple[str, dt.date] | None:
    index = _DAYS.index(match.group("name").lower())
    which = (match.group("which") or "").lower()
    if which == "next":
        return _iso(_in_week(today, 1, index))
    if which in ("last", "past", "since") or (past and which != "this"):
        return _iso(today - dt.timedelta(days=(today.weekday() - index) % 7 or 7))
    return _iso(today + dt.timedelta(days=(index - today.weekday()) % 7))


def _hanweek(match: re.Match[str], today: dt.date, past: bool) -> tuple[str, dt.date] | None:
    index = _HAN_DAY[match.group("hanname")]
    which = match.group("hanwhich")
    if match.group("hanend") and not which:
        return None  # "Monday to Friday" is a habit
    if which:
        shift = {"上": -1, "上上": -2, "下": 1, "下下": 2, "本": 0, "这": 0}[which]
        day = _in_week(today, shift, index)
    elif past:
        day = today - dt.timedelta(days=(today.weekday() - index) % 7)
    else:
        day = today + dt.timedelta(days=(index - today.weekday()) % 7)
    if match.group("hanend"):
        end = day + dt.timedelta(days=(_HAN_DAY[match.group("hanend")] - day.weekday()) % 7)
        return f"{day.isoformat()}/{end.isoformat()}", end
    return _iso(day)


def _ago(match: re.Match[str], today: dt.date, past: bool) -> tuple[str, dt.date] | None:
    raw = (match.group("n") or match.group("n2") or match.group("n3")).lower()
    count = int(raw) if raw.isdigit() else _COUNTS[raw]
    unit = (match.group("unit") or match.group("unit2") or match.group("unit3")).lower()
    side = match.group("side") or ""
    sign = -1 if match.group("n") or "前" in side else 1
    if unit in ("day", "天"):
        return _iso(today + dt.timedelta(days=sign * count))
    if unit in ("week", "周", "星期"):
        return _iso(today + dt.timedelta(weeks=sign * count))
    day = _add_months(today.replace(day=1), sign * count * (12 if unit in ("year", "年") else 1))
    return (str(day.year) if unit in ("year", "年") else day.strftime("%Y-%m")), day


def _hanmonth(match: re.Match[str], today: dt.date, past: bool) -> tuple[str, dt.date] | None:
    number = _han_number(match.group("hanmday"))
    shift = {"下": 1, "上": -1, "这": 0, "本": 0}[match.group("hanmonthwhich")]
    return _valid(_add_months(today.replace(day=1), shift), number)


def _month(match: re.Match[str], today: dt.date, past: bool) -> tuple[str, dt.date] | None:
    name = match.group("m1") or match.group("m2")
    month = (
        int(match.group("m3"))
        if match.group("m3")
        else next(i for i, full in enumerate(_MONTHS, 1) if full.startswith(name.lower()[:3]))
    )
    number = int(match.group("d1") or match.group("d2") or match.group("d3"))
    if not 1 <= month <= 12:
        return None
    found = _valid(today.replace(month=month, day=1), number)
    if found is None:
        return None
    if not past and found[1] < today:
        return _valid(dt.date(today.year + 1, month, 1), number)
    return _valid(dt.date(today.year - 1, month, 1), number) if past and found[1] > today else found


def _dom(match: re.Match[str], today: dt.date, past: bool) -> tuple[str, dt.date] | None:
    number = int(match.group("d4") or match.group("d5"))
    found = _valid(today.replace(day=1), number)
    if found and not past and found[1] < today:
        return _valid(_add_months(today.replace(day=1), 1), number)
    return _valid(_add_months(today.replace(day=1), -1), number) if found and past and found[1] > today else found


_RESOLVERS: dict[str, Callable[[re.Match[str], dt.date, bool], tuple[str, dt.date] | None]] = {
    "day": _day, (
        "week"
    ): _week, (
        "weekday"
    ): _weekday, (
        "hanweek"
    ): _hanweek, (
        "ago"
    ): _ago, (
        "hanmonth"
    ): _hanmonth, (
        "month"
    ): _month, (
        "dom"
    ): _dom,
}  # fmt: skip
_LIMITS = ("by", "until", "till", "from")
_CALENDAR_ONLY = frozenset({"weekday", "month", "dom"})


def _iso(day: dt.date) -> tuple[str, dt.date]:
    return day.isoformat(), day


def _valid(first: dt.date, number: int) -> tuple[str, dt.date] | None:
    """The day `number` of the month of `first`, or None when the month has no such day."""
    if not 1 <= number <= (_add_months(first, 1) - dt.timedelta(days=1)).day:
        return None
    return _iso(first.replace(day=number))


def _in_week(today: dt.date, shift: int, index: int) -> dt.date:
    return today - dt.timedelta(days=today.weekday()) + dt.timedelta(weeks=shift, days=index)


def _add_months(first: dt.date, months: int) -> dt.date:
    """The first day of the month `months` after that of `first`."""
    number = first.year * 12 + first.month - 1 + months
    return dt.date(number // 12, number % 12 + 1, 1)


def _han_number(text: str) -> int:
    if text.isdigit():
        return int(text)
    tens, _, ones = text.rpartition("十") if "十" in text else ("", "", text)
    return (_COUNTS.get(tens, 1) * 10 if "十" in text else 0) + (_COUNTS.get(ones, 0) if ones else 0)
