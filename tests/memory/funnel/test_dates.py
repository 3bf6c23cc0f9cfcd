"""Relative dates against a known Monday, and the things that only look like dates."""

from __future__ import annotations

import pytest

from memsvc.memory.funnel.dates import absolute, day_of, end_of_day_us
from memsvc.model import EARLIEST_TIME_US, LATEST_TIME_US

MONDAY_US = 1_741_600_000_000_000  # 2025-03-10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call me tomorrow", "call me tomorrow (2025-03-11)"),
        ("we fly next Friday", "we fly next Friday (2025-03-21)"),
        ("back on Wednesday", "back on Wednesday (2025-03-12)"),
        ("due in two weeks", "due in two weeks (2025-03-24)"),
        ("moved three days ago", "moved three days ago (2025-03-07)"),
        ("on 3 April", "on 3 April (2025-04-03)"),
        ("on January 5", "on January 5 (2026-01-05)"),
        ("the demo is on the 21st", "the demo is on the 21st (2025-03-21)"),
        ("since last month", "since last month (2025-02)"),
        ("下周三到周五出差", "下周三到周五（2025-03-19/2025-03-21）出差"),
        ("明天交", "明天（2025-03-11）交"),
        ("下个月3号发版", "下个月3号（2025-04-03）发版"),
        ("上周定的", "上周（2025-03-03/2025-03-09）定的"),
        ("11 月 3 号比赛", "11 月 3 号（2025-11-03）比赛"),
        ("两周后回来", "两周后（2025-03-24）回来"),
    ],
)
def test_relative_dates_get_their_day(text: str, expected: str) -> None:
    assert absolute(text, MONDAY_US, past=False, calendar=True).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "port 9077",
        "from now on",
        "every Friday",
        "Fridays are free",
        "每周三有课",
        "周一到周五上班",
        "以后天气都报昆明的",
        "每月 5 号交",
        "2 号线",
        "the 2nd floor",
        "version 3.12",
        "31 February",
        "I may 3 times",
    ],
)
def test_what_is_no_date_stays(text: str) -> None:
    assert absolute(text, MONDAY_US, past=False, calendar=True).text == text


@pytest.mark.parametrize(
    "text",
    [
        "每周三发布，周五不发版",
        "公司统一周三不开会",
        "长跑都放周日",
        "我每周一和周四去健身",
        "双周周五发版",
        "我们一般周二下午评审",
        "every Monday, Wednesday and Friday we run",
        "on Friday we never deploy",
        "No deploys on Friday",
        "never deploy on a Friday",
        "Invoices are always sent by Friday",
        "the last Friday of the month is demo day",
        "Standup moved to Friday",
        "open Tuesday to Sunday",
        "rent is due on the 5th every month",
    ],
)
def test_a_day_of_a_habit_is_no_date(text: str) -> None:
    dated = absolute(text, MONDAY_US, past=False, calendar=True)
    assert (dated.text, dated.has_habit) == (text, True)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("下周五之前必须交", "2025-03-21"),
        ("每周三发布，但下周五不发版", "2025-03-21"),
        ("我平时用 Mac，周五要去上海出差", "2025-03-14"),
        ("周五我们都去上海", "2025-03-14"),
        ("周五以后再联系", "2025-03-14"),
        ("on Friday we ship", "2025-03-14"),
        ("We usually meet in Berlin, but on Friday we meet in Paris", "2025-03-14"),
        ("I fly every Monday, but this Friday I drive", "2025-03-14"),
        ("don't merge until Friday", "2025-03-14"),
        ("I won't be in on Friday", "2025-03-14"),
    ],
)
def test_the_day_of_an_event_is_a_date_beside_habits(text: str, day: str) -> None:
    dated = absolute(text, MONDAY_US, past=False, calendar=True)
    assert dated.text.count("2025-") == 1
    assert day in dated.text


def test_what_happened_is_dated_whatever_stands_beside_it() -> None:
    text = "on Friday the always-on box failed"
    assert absolute(text, MONDAY_US, past=True, calendar=True).text.startswith("on Friday (2025-03-07)")


def test_a_standing_wish_dates_no_bare_weekday() -> None:
    dated = absolute("周一要专心写东西，下周一除外", MONDAY_US, past=False, calendar=False, standing=True)
    assert dated.text == "周一要专心写东西，下周一（2025-03-17）除外"
    assert absolute("before next Friday", MONDAY_US, past=False, calendar=False, standing=True).last_day


def test_a_standing_rule_keeps_its_bare_days() -> None:
    assert absolute("closed on Monday, paid on the 5th", MONDAY_US, past=False, calendar=False).last_day == 0


def test_an_event_lies_behind() -> None:
    assert absolute("flu shot on Friday", MONDAY_US, past=True, calendar=True).text == "flu shot on Friday (2025-03-07)"


def test_last_day_ends_at_midnight() -> None:
    dated = absolute("until tomorrow", MONDAY_US, past=False, calendar=True)
    assert end_of_day_us(dated.last_day) == 1_741_737_600_000_000 - 1


@pytest.mark.parametrize("time_us", [EARLIEST_TIME_US - 10, EARLIEST_TIME_US, LATEST_TIME_US, LATEST_TIME_US + 10])
def test_the_ends_of_time_are_no_crash(time_us: int) -> None:
    assert 1 <= day_of(time_us).year <= 9999
    assert absolute("next year, tomorrow", time_us, past=False, calendar=True).text == "next year, tomorrow"
