"""The event that sums a session up: one short line with who, when and what for, and a payload inside its limits."""

from __future__ import annotations

import datetime as dt
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.memory.drafts import METADATA_MAX_BYTES, SUMMARY_MAX_CHARS, TAG_MAX_CHARS, check_draft
from memsvc.memory.owners import Owners
from memsvc.memory.sessions.episode import ITEM_MAX_CHARS, ITEMS_MAX, KEPT_IDS_MAX, Sitting, episode
from memsvc.model import EARLIEST_TIME_US, LATEST_TIME_US, Scope

NOON_US = 1_764_763_200_000_000
SITTING = Sitting(
    owners=Owners(user_id="ann", session_id="s-1"),
    scope=Scope.USER,
    tool="shell",
    turn_count=7,
    goal="ship the importer",
    finished=["wrote the parser", "added tests"],
    pending=["deploy"],
    start_time_us=NOON_US,
    end_time_us=NOON_US + 90_000_000,
    kept_ids=["mem_1", "mem_2"],
)


def sitting(**fields) -> Sitting:
    return msgspec.structs.replace(SITTING, **fields)


def as_is(text: str) -> str:
    return text


def line(**fields) -> str:
    return episode(sitting(**fields), as_is).content


def test_the_line_says_when_who_what_for_and_what_is_open():
    assert line() == "2025-12-03 ann shell: ship the importer; done: wrote the parser, added tests; open: deploy"
    assert line(finished=[], pending=[]) == "2025-12-03 ann shell: ship the importer"
    assert line(goal="", finished=[]) == "2025-12-03 ann shell: 7 turns; open: deploy"
    assert line(goal="写爬虫", finished=["解析器"], pending=[]) == "2025-12-03 ann shell: 写爬虫；完成：解析器"
    assert line(goal="", finished=[], pending=["部署"]) == "2025-12-03 ann shell: 7 轮对话；待办：部署"
    assert line(tool="", owners=Owners(agent_id="bot", session_id="s"), finished=[], pending=[]) == (
        "2025-12-03 bot: ship the importer"
    )


def test_the_draft_names_its_source_and_when_it_ended():
    draft = episode(sitting(), as_is)
    assert (draft.scope, draft.occur_time_us) == (Scope.USER, NOON_US + 90_000_000)
    assert (draft.source.tool, draft.source.session_id) == ("shell", "s-1")
    assert draft.event is not None
    assert (draft.event.event_type, draft.event.participants) == ("session_summary", ("ann", "shell"))
    assert draft.event.payload == {
        "tool": "shell",
        "turn_count": 7,
        "goal": "ship the importer",
        "finished": ["wrote the parser", "added tests"],
        "pending": ["deploy"],
        "started": "2025-12-03T12:00:00+00:00",
        "ended": "2025-12-03T12:01:30+00:00",
        "memory_ids": ["mem_1", "mem_2"],
    }


def test_of_long_lists_the_newest_that_is_done_and_the_next_that_is_open():
    many = [f"step {number}" for number in range(30)]
    payload = episode(sitting(finished=many, pending=many, kept_ids=many * 9), as_is).event.payload
    assert payload["finished"] == many[-ITEMS_MAX:]
    assert payload["pending"] == many[:ITEMS_MAX]
    assert payload["memory_ids"] == (many * 9)[:KEPT_IDS_MAX]


def test_what_the_policy_rejects_is_nowhere_in_it():
    def admitted(text: str) -> str:
        return "" if "hunter2" in text else text.replace("ann", "[name]")

    draft = episode(sitting(goal="use hunter2", finished=["tell ann", "hunter2"], pending=["hunter2 too"]), admitted)
    assert draft.event is not None
    assert "hunter2" not in draft.content + str(draft.event)
    assert draft.content == "2025-12-03 [name] shell: 7 turns; done: tell [name]"
    assert draft.event.payload["finished"] == ["tell [name]"]
    assert draft.event.payload["pending"] == []


@pytest.mark.parametrize("time_us", [EARLIEST_TIME_US, -1, 0, LATEST_TIME_US])
def test_any_time_of_the_contract_is_a_day(time_us):
    draft = episode(sitting(start_time_us=time_us, end_time_us=time_us), as_is)
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=time_us)
    assert draft.content.startswith(f"{moment.date().isoformat()} ann")
    assert draft.event.payload["started"] == moment.replace(microsecond=0).isoformat()


TEXTS = st.text(max_size=200) | st.sampled_from(
    ["x" * 4000, "很长的目标" * 500, "\x00\n" * 400, "🙂" * 300, '"\\' * 300]
)


@settings(max_examples=200, deadline=None)
@given(
    TEXTS,
    st.lists(TEXTS, max_size=14),
    st.lists(TEXTS, max_size=14),
    st.text(min_size=1, max_size=128),
    st.text(max_size=256),
    st.integers(1, 100_000),
    st.integers(EARLIEST_TIME_US, LATEST_TIME_US),
    st.integers(0, 200),
)
def test_any_session_gives_an_event_inside_its_limits(goal, finished, pending, user, tool, count, start_us, kept):
    whole = sitting(
        owners=Owners(user_id=user, agent_id=user[::-1], session_id="s"),
        goal=goal,
        finished=finished,
        pending=pending,
        tool=tool,
        turn_count=count,
        start_time_us=start_us,
        end_time_us=LATEST_TIME_US,
        kept_ids=[f"mem_{number:036d}" for number in range(kept)],
    )
    draft = episode(whole, as_is)
    check_draft(draft, 65_536, "episode")
    assert len(draft.content) <= SUMMARY_MAX_CHARS
    assert draft.content == " ".join(draft.content.split())
    assert draft.content.isprintable()
    payload = draft.event.payload
    assert len(json.dumps(payload, ensure_ascii=False).encode()) <= METADATA_MAX_BYTES
    assert all(0 < len(text) <= ITEM_MAX_CHARS for name in ("finished", "pending") for text in payload[name])
    assert all(0 < len(name) <= TAG_MAX_CHARS for name in draft.event.participants)
    rest = draft.content.partition(": ")[2]
    for text in (payload["goal"], *payload["finished"][:1], *payload["pending"][:1]):
        assert text[:4].rstrip("… ") in rest, "each part has its share of the line"
