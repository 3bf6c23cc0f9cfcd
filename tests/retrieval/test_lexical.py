"""Text analysis: what is found by what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.retrieval.lexical import EXACT_PREFIX, analyze, analyze_query, name_terms


@pytest.mark.parametrize(
    "identifier",
    ["ORD-2025-0110", "user_id:1001", "/usr/local/lib/x.py", "a.b+c@example.org", "v1.2.3", "10.0.0.1", "abc12345"],
)
def test_identifiers_are_kept_whole(identifier):
    wanted = EXACT_PREFIX + identifier.casefold()
    for text in (identifier, f"see {identifier}.", f"（{identifier}）", f"订单{identifier}已发货"):
        assert wanted in analyze(text).counts, text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("用户偏好使用Go实现性能敏感模块", "性能"),
        ("東京タワーに行きました", "タワー"),
        ("서울에서 만나요", "에서"),
        ("ภาษาไทยสวย", "ไทย"),
        ("ＡＢＣ－１２３", "abc-123"),
        ("I painted a sunrise", "painting"),
    ],
)
def test_parts_are_found(text, part):
    wanted = analyze(part).counts
    assert wanted
    assert set(wanted) <= set(analyze(text).counts)


@pytest.mark.parametrize("text", ["", "   ", "the of and", "?!…", "，。", "\u200b", "\ud800"])
def test_nothing_to_look_for_has_no_terms(text):
    assert analyze(text).counts == {}
    assert analyze_query(text).length == 0


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_can_be_analysed(text):
    analysis = analyze(text)
    assert analysis.length >= 0
    assert all(count > 0 for count in analysis.counts.values())
    assert analyze(text) == analysis


def test_a_megabyte_is_analysed():
    assert analyze("word " * 200_000).counts == {"word": 200_000}


def test_names():
    assert name_terms("Caroline") == ("carolin",)
    assert set(name_terms("Caroline")) <= set(analyze("What did Caroline's mother say?").counts)
