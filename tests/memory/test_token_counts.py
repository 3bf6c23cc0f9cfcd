"""Counts of tokens: those of the tokenizer in use, whatever was counted before, and whole texts as their parts."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsvc.memory import token_counts
from memsvc.memory.context_text import CLOSE_MARKER, Format, Line, Section, neutral, rendered, row_parts
from memsvc.memory.token_counts import TokenCounts


class Counting:
    """A tokenizer whose tokens are as many characters as it says, and which counts its calls."""

    def __init__(self, model_id: str, width: int, adds_up: bool = False) -> None:
        self.model_id, self.width, self.counts_add_up = model_id, width, adds_up
        self.calls = 0

    def count_tokens(self, text: str) -> int:
        self.calls += 1
        return -(-len(text) // self.width)


def test_a_text_is_counted_once_until_the_model_changes():
    now = Counting("a", 1)
    counts = TokenCounts(lambda: now)
    assert (counts.of("four"), counts.of("four"), now.calls) == (4, 4, 1)
    now = Counting("b", 2)
    assert (counts.of("four"), counts.of("four"), now.calls) == (2, 2, 1)


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(token_counts, "CACHE_ENTRIES", 8)
    tokenizer = Counting("a", 1)
    counts = TokenCounts(lambda: tokenizer)
    for number in range(100):
        assert counts.of(f"{number:03}") == 3
        assert len(counts._cache[1]) <= 8
    long = "x" * (token_counts.CACHED_TEXT_CHARS + 1)
    assert (counts.of(long), counts.of(long), tokenizer.calls) == (len(long), len(long), 102)


def test_a_joined_text_is_counted_whole_where_tokens_may_cross_white_space():
    assert TokenCounts(lambda: Counting("a", 3)).of_joined(("aaaa", "b"), "aaaa b") == 2
    assert TokenCounts(lambda: Counting("a", 3, adds_up=True)).of_joined(("aaaa", "b"), "aaaa b") == 3


ODD = "aZ 中文报告 éñ \u0301\u0308 ¨´ ﷺ ｱﾞ 한글 ① ㌔ ½ ﬁ 👩‍👩‍👧 🇩🇪 \u200c\u200d\u3000\u00a0 ्क \u200b ▁_-[]<>/|"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.text(max_size=20), st.text(ODD, max_size=20)), min_size=1, max_size=6))
def test_the_default_models_blocks_have_the_tokens_of_their_parts(service, texts):
    assert service.embedder.counts_add_up
    lines = [Line(Section.FACTS, text, f"mem_{i}" * (i % 2)) for i, text in enumerate(map(neutral, texts)) if text]
    text = rendered(lines, Format.TEXT)
    parts = [part for row in row_parts(lines) for part in row]
    assert service.token_counts.of_joined(parts, text) == service.embedder.count_tokens(text)
    assert not lines or text.endswith(CLOSE_MARKER)
