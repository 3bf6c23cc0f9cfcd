"""Every input has a limit and an error that names it; the limits themselves are allowed."""

from __future__ import annotations

import math

import pytest

from memsvc.errors import InvalidArgument, LayerNotWritable, LimitExceeded
from memsvc.memory.drafts import Draft, check_draft
from memsvc.model import EARLIEST_TIME_US, LATEST_TIME_US, Layer, Source

LIMIT = 1000


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "é" * 500},
        {"tags": ("t" * 128,) * 64},
        {"tags": ("with, comma", " ")},
        {"subject": "s" * 256},
        {"importance": 0.0, "confidence": 1.0},
        {"occur_time_us": EARLIEST_TIME_US, "expire_time_us": LATEST_TIME_US},
        {"metadata": {"k": "x" * (16_384 - len('{"k": ""}'))}},
        {"source": Source("t" * 256, "s" * 256, "m" * 256)},
    ],
)
def test_the_limits_are_allowed(fields):
    check_draft(Draft(**{"content": "x", **fields}), LIMIT, "memory")


@pytest.mark.parametrize(
    ("fields", "field", "error"),
    [
        ({"content": "é" * 501}, "content", LimitExceeded),
        ({"content": "\u3000\n"}, "content", InvalidArgument),
        ({"tags": ("t",) * 65}, "tags", LimitExceeded),
        ({"tags": ("t" * 129,)}, "tags", LimitExceeded),
        ({"tags": ("",)}, "tags", InvalidArgument),
        ({"subject": "s" * 257}, "subject", LimitExceeded),
        ({"importance": math.nan}, "importance", InvalidArgument),
        ({"confidence": -0.01}, "confidence", InvalidArgument),
        ({"occur_time_us": LATEST_TIME_US + 1}, "occur_time", InvalidArgument),
        ({"expire_time_us": EARLIEST_TIME_US - 1}, "expire_time", InvalidArgument),
        ({"metadata": {"k": math.nan}}, "metadata", InvalidArgument),
        ({"metadata": {"k": "x" * 16_384}}, "metadata", LimitExceeded),
        ({"source": Source("t" * 257)}, "source.tool", LimitExceeded),
        ({"layer": Layer.WORKING}, "layer", LayerNotWritable),
        ({"layer": Layer.PERMANENT}, "layer", LayerNotWritable),
        ({"supersedes": ("mem_x",) * 17}, "supersedes", LimitExceeded),
        ({"supersedes": ("MEM_1",)}, "supersedes", InvalidArgument),
    ],
)
def test_past_the_limits_is_refused_by_name(fields, field, error):
    with pytest.raises(error) as raised:
        check_draft(Draft(**{"content": "x", **fields}), LIMIT, "memory")
    assert raised.value.field == f"memory.{field}"
    assert "x" * 20 not in raised.value.message
