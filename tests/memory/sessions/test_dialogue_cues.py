"""The patterns of dialogue-state tracking one by one: what each takes, and what it must leave alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.memory.funnel.cues import HAN, cues_of
from memsvc.memory.sessions import dialogue_cues as cues

ENGLISH = st.sampled_from(
    "what if we must should I use you said he told maybe perhaps I wish always from now on please can could "
    "translate the sentence don't never write fix deploy it Docker 8080 would suppose assume yeah right ? . , !".split()
)
CHINESE = st.sampled_from(
    "如果 必须 是不是 怎么 什么 要不要 可能 也许 希望 要是 就好了 他说 以后 都 请 帮我 翻译 "
    "这句话 一直 不要 用 呵呵 吗 ？ 。 ，".split()
)


@settings(max_examples=400, deadline=None)
@given(
    (st.lists(ENGLISH, max_size=10).map(" ".join) | st.lists(CHINESE, max_size=10).map("".join)).filter(
        re.compile(r"[a-z]{2}|[\u3400-\u9fff]").search  # the funnel looks at nothing else
    )
)
def test_the_cues_that_matter_are_those_of_the_funnel(sentence):
    wanted = cues.NOT_STATED | cues.WORDS_ONLY | cues.Cue.LASTING | cues.Cue.REQUEST
    assert cues.some_cues(sentence) == cues_of(sentence) & wanted


def test_case_and_curly_apostrophes_change_nothing():
    for sentence in ("I wish it didn't", "DON’T you think so?", "What If we use Go"):
        assert cues.some_cues(sentence) == cues.some_cues(sentence.lower().replace("’", "'"))


# -- one pattern after the other -------------------------------------------------------------------------------------

GOALS = [
    ("please write a crawler", "write a crawler"),
    ("could you help me to fix it", "fix it"),
    ("i'd like to deploy", "deploy"),
    ("let's go", "go"),
    ("our goal is to ship", "ship"),
    ("goal: ship", "ship"),
    ("帮我写爬虫", "写爬虫"),
    ("麻烦你帮忙看看", "看看"),
    ("我们打算做网站", "做网站"),
    ("目标：上线", "上线"),
    ("请写周报", "写周报"),
    ("please don't stop", None),
    ("please remember this", None),
    ("can you explain it", None),
    ("let's say it works", None),
    ("我要知道", None),
    ("请问在吗", None),
    ("请不要停", None),
    ("i think so", None),
]


@pytest.mark.parametrize(("said", "rest"), GOALS)
def test_a_goal_is_what_stands_behind_the_opener(said, rest):
    match = cues.WANT.match(said)
    assert (None if match is None else said[match.end() :]) == rest


TAKEN = [
    ("WANT_THING", ["i need a report", "we want our money", "i'd like the list"], ["i need to go", "i like a report"]),
    ("ALSO", ["also fix it", "and tests too", "另外写文档", "fix it as well."], ["tooling", "fix it"]),
    (
        "TURN",
        ["actually, let's stop", "wait let's see", "算了", "不对，改一下"],
        ["actual costs", "算了算账", "waiting"],
    ),
    (
        "CANCEL",
        ["forget that", "never mind", "let's not do the crawler", "不做爬虫了", "drop the report"],
        ["don't forget that", "forget the 5 constraint", "不做爬虫", "i never mind"],
    ),
    ("NEW", ["改成写脚本", "focus on tests", "work on the parser"], ["改成", "focusing"]),
    ("USE_CHANGE", ["let's use Go", "改成用 Go", "用 Go", "go with Rust"], ["useful", "改成写脚本"]),
    ("INSTEAD", ["use Go instead", "go, instead."], ["instead use Go", "instead of go"]),
    (
        "KEEP",
        ["same constraints", "其他要求不变", "keep the rules", "everything else stays"],
        ["new rules", "要求很多"],
    ),
    (
        "CONSTRAINT",
        ["it must be fast", "don't use Docker", "at most 5", "必须用 Go", "不要框架", "控制在 5 页以内", "别删"],
        ["i don't know", "不要紧", "类别", "a mustard", "别的", "the only problem"],
    ),
    ("RELAX", ["you can use it now", "no need to test", "可以用框架了", "不用测试了"], ["you can use it", "可以用"]),
    (
        "FINISHED",
        ["the parser is done", "i've just fixed the loop", "解析器搞定了", "tests: done", "已经部署测试环境"],
        ["the parser", "解析器"],
    ),
    ("NOT_FINISHED", ["not yet", "when it is done", "还没", "完成之后"], ["the parser is done", "搞定了"]),
    ("PENDING", ["next, add tests", "we still need to deploy", "接下来部署", "todo: docs"], ["nextcloud", "add tests"]),
    ("FIRST", ["first, read it", "首先读一下", "start with tests"], ["firsthand", "read it first"]),
    ("LIST_LINE", ["1. read", "- [x] done", "- [ ] open", "第一步：读", "step 2: write"], ["- read", "2026 is here"]),
    ("PLAN", ["here's the plan", "接下来", "我会这样做", "分三步"], ["the results", "结果"]),
]


@pytest.mark.parametrize(("name", "taken", "left"), TAKEN, ids=[name for name, _, _ in TAKEN])
def test_what_a_pattern_takes_and_leaves(name, taken, left):
    pattern = getattr(cues, name)
    anywhere = ("ALSO", "INSTEAD", "KEEP", "CONSTRAINT", "RELAX", "NOT_FINISHED", "PLAN")
    find = pattern.search if name in anywhere else pattern.match
    assert [said for said in taken if not find(said)] == []
    assert [said for said in left if find(said)] == []


SLOTS = [
    ("port = 8080", "port", "8080"),
    ("the region is eu-west-1", "region", "eu-west-1"),
    ("端口是8080", "端口", "8080"),
    ("把端口改成 9090", "端口", "9090"),
    ('name: "my shop"', "name", "my shop"),
    ("名字：`a b`", "名字", "a b"),
    ("set the time zone to UTC", "time zone", "UTC"),
    ("https://example.com", None, None),
    ("端口是多少", None, None),
]


@pytest.mark.parametrize(("said", "key", "value"), SLOTS)
def test_a_slot_is_a_name_and_a_value(said, key, value):
    match = cues.SLOT_SIGN.match(said) or cues.SLOT_IS.match(said)
    groups = match.groupdict() if match else {}
    assert next((text for name, text in groups.items() if name.startswith("key") and text), None) == key
    assert next((text for name, text in groups.items() if not name.startswith("key") and text), None) == value


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        ("ok, so please go", "please go"),
        ("好的，那么帮我写", "帮我写"),
        ("但是不要停", "不要停"),
        ("okra is green", "okra is green"),
        ("对了，明天", "明天"),
    ],
)
def test_what_leads_in_is_taken_off(said, rest):
    assert cues.LEAD.sub("", said) == rest


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("写爬虫，不要用 Docker；要快", ["写爬虫", "不要用 Docker", "要快"]),
        ("write it and don't use Docker", ["write it", "don't use Docker"]),
        ("salt and pepper", ["salt and pepper"]),
        ("写代码而且一定要快", ["写代码", "而且一定要快"]),
        ("写完而且要", ["写完而且要"]),
        ("a - b – c", ["a", "b", "c"]),
    ],
)
def test_a_sentence_is_cut_where_another_matter_begins(said, parts):
    assert cues.CLAUSE.split(said) == parts


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_text_has_cues_of_the_known_kinds_only(text):
    known = cues.NOT_STATED | cues.WORDS_ONLY | cues.Cue.LASTING | cues.Cue.REQUEST
    assert cues.some_cues(text) & ~known == 0
    assert not (text.isascii() and HAN.search(text))
