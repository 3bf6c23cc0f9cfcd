"""How many tokens texts have, by the tokenizer of the model in use.

Purpose: a context block counts the same lines call after call, and a session's window is read more often than it
changes. Where the tokens of a model never cross white space, a joined text has the tokens of its parts: it is not
counted again.

Threading: any number of threads; a bounded cache whose races only cost a second count.

Rejected: a guess by characters (off by three between Chinese and English).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

CACHE_ENTRIES = 16_384
CACHED_TEXT_CHARS = 4096  # longer texts are not worth their room


class Tokenizer(Protocol):
    """What an embedder tells of its tokenizer."""

    @property
    def model_id(self) -> str:
        """The model whose tokenizer it is."""

    @property
    def counts_add_up(self) -> bool:
        """Whether the tokens of texts joined by white space are those of each."""

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, without prefix and special tokens."""


class TokenCounts:
    """See the module. `tokenizer()` is the one in use; it may become another model's."""

    def __init__(self, tokenizer: Callable[[], Tokenizer]) -> None:
        self._tokenizer = tokenizer
        self._cache: tuple[str, dict[str, int]] = ("", {})  # of one model; replaced whole, never cleared

    def of(self, text: str) -> int:
        """Tokens of a text."""
        tokenizer = self._tokenizer()
        model_id, counts = self._cache
        if model_id != tokenizer.model_id or len(counts) >= CACHE_ENTRIES:
            counts = {}
            self._cache = (tokenizer.model_id, counts)
        known = counts.get(text)
        if known is None:
            known = tokenizer.count_tokens(text)
            if len(text) <= CACHED_TEXT_CHARS:
                counts[text] = known
        return known

    def forget_texts(self) -> None:
        """Empties the cache."""
        self._cache = ("", {})

    def of_joined(self, parts: Iterable[str], joined: str) -> int:
        """Tokens of `joined`: the parts with white space between them."""
        tokenizer = self._tokenizer()
        return sum(map(self.of, parts)) if tokenizer.counts_add_up else self.uncached(joined)

    def uncached(self, text: str) -> int:
        """Tokens of a text that is not worth a place in the cache: it will hardly come again."""
        return self._tokenizer().count_tokens(text)
