"""Which short answers need the question before them, and which statements only stand behind one."""

from __future__ import annotations

import pytest

from memsvc.memory.funnel.ellipsis import is_heard_only, needs

REST, BREAK = "辛苦了，要不要先休息一下？", "Shall we take a break?"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("PDF", "Which format do you want?"),
        ("the second one", "Which format do you want?"),
        ("Use PDF", "Which format do you want?"),
        ("It is PDF", "Which format do you want?"),
        ("on Fridays", "When do we ship?"),
        ("I do", "Do you use tabs?"),
        ("The port is 8080", "Which port does the staging database use?"),
        ("每周三", "我们多久发一次版？"),
        ("每周三发布", "我们多久发一次版？"),
        ("周五不发版", "哪天不发版？"),
        ("用 PDF", "报告要什么格式？"),
        ("是王芳", "谁负责部署？"),
        ("现在是 8080", "端口多少？"),
        ("它是 PDF", "报告要什么格式？"),
        ("端口是 8080", "测试库的端口是多少？"),
        ("我选红色", "要红色还是蓝色？"),
    ],
)
def test_what_cannot_stand_alone_needs_its_question(text: str, question: str) -> None:
    assert needs(text, question)
    assert not needs(text, question.rstrip("?？") + ".")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("We use Docker", BREAK),
        ("Wang owns deploys", BREAK),
        ("The port is 8080", BREAK),
        ("No deploys on Fridays", BREAK),
        ("I speak French", BREAK),
        ("The reports that we send to the office must be signed", "Which format do you want?"),
        ("部署脚本的负责人是王芳", REST),
        ("王芳负责部署脚本", REST),
        ("测试库跑在法兰克福", REST),
        ("对账脚本每天凌晨跑", REST),
        ("我不吃辣", REST),
        ("周五不发版", REST),
        ("对了，我住在杭州", REST),
    ],
)
def test_a_statement_stands_alone(text: str, question: str) -> None:
    assert not needs(text, question)


def test_an_ok_before_a_statement_about_something_else_answers_nothing() -> None:
    assert is_heard_only("好的，部署脚本的负责人是王芳", REST)
    assert is_heard_only("ok, we use Docker", BREAK)
    assert not is_heard_only("好的，休息时间是十分钟", REST)
    assert not is_heard_only("yes, we use Docker", BREAK)
    assert not is_heard_only("ok, do that", BREAK)
