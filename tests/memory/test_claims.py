"""What a statement says: terms, numbers, names, denials and cues in both languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.memory.conflict.claims import TEXT_MAX_CHARS, Claim, Group, Zone, analyze_claim, normal_subject
from memsvc.memory.conflict.cues import Cue, cues_of
from memsvc.model import MemoryType


def read(text: str) -> Claim:
    return analyze_claim(text, MemoryType.FACT)


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("The database is PostgreSQL", "数据库是 PostgreSQL"),
        ("The user lives in Berlin", "用户住在柏林"),
        ("No releases on Fridays", "周五不发布"),
        ("Backups are kept for 30 days", "备份保留 30 天"),
    ],
)
def test_both_languages_give_the_same_concepts(english: str, chinese: str) -> None:
    assert read(english).content == read(chinese).content


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("at 2 pm", "at 14:00"),
        ("下午两点", "at 2 pm"),
        ("八点半", "8:30"),
        ("八点四十", "8:40"),
        ("1.2 万元", "12000 yuan"),
        ("三百件", "300 pieces"),
        ("two weeks", "14 days"),
        ("24 hours", "一天"),
        ("May 3", "5 月 3 日"),
        ("the 4th of July", "July 4"),
        ("30k", "30,000"),
    ],
)
def test_numbers_meet_in_one_form(first: str, second: str) -> None:
    def numbers(text: str) -> set[str]:
        return {concept for concept, term in read(text).terms.items() if term.group == Group.NUMBER}

    assert numbers(first)
    assert numbers(first) == numbers(second)


def test_topic_and_value_part_at_the_verb() -> None:
    terms = read("The port of the test service is 5432").terms
    assert terms["port"].zone == Zone.TOPIC
    assert terms["#:5432"].zone == Zone.VALUE
    terms = read("测试环境的端口是 5432").terms
    assert (terms["testenv"].group, terms["testenv"].zone) == (Group.QUALIFIER, Zone.TOPIC)
    assert terms["#:5432"].zone == Zone.VALUE


def test_what_is_given_up_is_denied() -> None:
    assert read("We use Go instead of Python").terms["python"].denied
    assert not read("We use Go instead of Python").terms["golang"].denied
    assert read("The app moved from Berlin to Paris").terms["berlin"].denied
    assert not read("The user suffers from asthma").terms["asthma"].denied
    assert read("不要再用表格").terms["table"].denied
    assert read("Nina left; Omar leads the team").terms["nina"].denied


def test_two_denials_are_none() -> None:
    assert not read("用户喜欢开会").odd
    assert read("用户不喜欢开会").odd
    assert read("用户讨厌开会").odd
    assert not read("用户不讨厌开会").odd


def test_names_and_marks_are_their_own_groups() -> None:
    assert read("小李负责测试").terms["小李"].group == Group.NAME
    assert read("The manager is Amina").terms["amina"].group == Group.NAME
    assert read("Room B204 is free").terms["b204"].group == Group.MARK
    assert read("Server A is down").terms["'a"].group == Group.MARK
    assert "'a" not in read("A server is down").terms
    assert "monday" not in read("每周一次").terms


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("the port moved to 5433", Cue.UPDATE),
        ("端口改成 5433 了", Cue.UPDATE),
        ("correction: the port is 5433", Cue.CORRECTION),
        ("不是5432，是5433", Cue.CORRECTION),
        ("i think the port is 5433", Cue.HEDGE),
        ("听说端口是 5433", Cue.HEDGE),
        ("just this once, use 5433", Cue.ONE_OFF),
        ("这次用 5433", Cue.ONE_OFF),
        ("the user also likes tea", Cue.ADDED),
    ],
)
def test_cues(text: str, cue: Cue) -> None:
    assert cues_of(text) & cue
    assert not cues_of("the port is 5433")
    assert not cues_of("端口是 5433")


def test_subjects_are_normalised() -> None:
    assert normal_subject("Report.Format") == normal_subject("report/format/") == "report/format"
    assert normal_subject("") == ""


def test_long_text_is_marked_and_only_its_head_is_read() -> None:
    claim = read("word " * TEXT_MAX_CHARS + "PostgreSQL")
    assert claim.long
    assert "postgresql" not in claim.terms
    assert not read("short").long


@given(st.text(max_size=80))
def test_any_text_is_accepted(text: str) -> None:
    claim = read(text)
    assert claim.content <= claim.terms.keys()
    assert claim == read(text)


def test_a_paragraph_is_more_than_one_statement() -> None:
    text = "坡鹿有三个亚种。泰国坡鹿濒危。在海南只有三百头。"
    assert analyze_claim(text, MemoryType.FACT).long
    assert analyze_claim("One. Two. Three.", MemoryType.FACT).long
    assert analyze_claim("word " * 40, MemoryType.FACT).long
    assert not analyze_claim("The port is 8080. It was 9090 before.", MemoryType.FACT).long
    assert not analyze_claim("退款超过 5000 元需要主管审批。", MemoryType.FACT).long
