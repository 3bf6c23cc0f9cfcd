"""The regrouped patterns match exactly where the written ones do."""

from __future__ import annotations

import random
import re

import pytest

from memsvc.memory.funnel import cues, cues_en
from memsvc.memory.funnel.cue import Cue
from memsvc.memory.funnel.patterns import branches, factored


def test_branches_are_cut_at_the_top_only() -> None:
    assert branches(r"a|b(?:c|d)|[|]e|\|f") == ["a", "b(?:c|d)", "[|]e", r"\|f"]


def test_words_are_grouped_by_first_letter() -> None:
    assert factored(r"\b(?:at|an|be|a?x|car|cat)\b") == r"\b(?:a(?:t|n)|be|c(?:ar|at)|a?x)\b"


NAMES = {value: name for name, value in vars(Cue).items() if isinstance(value, int)}


@pytest.mark.parametrize("cue", list(cues_en.ENGLISH), ids=NAMES.__getitem__)
def test_a_cue_matches_as_written(cue: int) -> None:
    plain = re.compile(cues_en.ENGLISH[cue])
    words = re.findall(r"[a-z']+", cues_en.ENGLISH[cue])
    draw = random.Random(7)
    outcomes = set()
    for _ in range(800):
        text = " ".join(draw.choices(words, k=5)) + draw.choice(["", "?", "."])
        outcomes.add(plain.search(text) is not None)
        assert (plain.search(text) is not None) == bool(cues.english_cues(text) & cue), text
    assert True in outcomes
