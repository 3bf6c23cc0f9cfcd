"""A register on a store of its own, a clock to set, and tokens on top."""

from __future__ import annotations

import itertools

import pytest

from memsvc.memory.token_register import TokenRegister
from memsvc.service.auth.keys import SigningKeys
from memsvc.service.auth.tokens import Tokens
from memsvc.storage.lmdb_engine import LmdbEngine

KEEP_US = 30 * 86_400_000_000  # of expired tokens' records


class Clock:
    def __init__(self) -> None:
        self.now_us = 1_750_000_000_000_000

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def engine(tmp_path):
    opened = LmdbEngine.open(tmp_path / "store")
    yield opened
    opened.close()


@pytest.fixture
def make_tokens(engine, tmp_path, clock):
    """Tokens as a process that starts on the data directory has them."""
    numbers = itertools.count(1)

    def make() -> Tokens:
        keys = SigningKeys(tmp_path / "keys", clock_us=clock)
        register = TokenRegister(engine, flush_s=3600, clock_us=clock, keep_expired_us=KEEP_US)
        return Tokens(keys, register, clock_us=clock, make_id=lambda: f"tok_{next(numbers):04}")

    return make


@pytest.fixture
def tokens(make_tokens):
    return make_tokens()
