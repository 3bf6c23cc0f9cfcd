"""Numbers and identifiers that name a thing, against those that are its value."""

from __future__ import annotations

import pytest

from memsvc.memory.conflict.labels import identifiers, labels


@pytest.mark.parametrize(
    "text",
    [
        "note 5 about apples",
        "batched 12",
        "fact 3: the sky is blue",
        "第3条笔记",
        "记忆 7",
        "a small thing number 9",
        "weight 0.25",
    ],
)
def test_a_number_that_names(text: str) -> None:
    assert labels(text)


@pytest.mark.parametrize(
    "text",
    [
        "the server port is 8080",
        "port 8080",
        "timeout 30s",
        "refunds above 5000 need approval",
        "the free plan includes 3 projects",
        "最多重试 3 次",
        "会议在 15:30",
        "we run python 3.11",
        "orders over $750 need a signature",
        "a 20% discount",
        "no number at all",
    ],
)
def test_a_number_that_is_a_value(text: str) -> None:
    assert not labels(text)


def test_identifiers() -> None:
    assert identifiers("ticket t-000123 blocks ord-2025-0110, see #42") == {"t-000123", "ord-2025-0110", "#42"}
    assert not identifiers("a well-known word, 2025-01-01 and 10-20")
