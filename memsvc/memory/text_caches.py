"""Caches whose keys or values are texts of memories: what a purge must empty.

Purpose: one list, and a test that walks the code for caches that are not in it. Emptying is cheap (they fill again
within a few calls), so a purge empties all of them and asks no cache whose texts it has.

Threading: any number of threads; what is computed meanwhile is computed again.

Rejected: keys with a namespace in every cache (functions over plain text would have to know whose it is).
"""

from __future__ import annotations

from collections.abc import Callable

from memsvc.memory.conflict import reader, words
from memsvc.memory.sessions import dialogue
from memsvc.retrieval import lexical, mentions

CLEARING: tuple[Callable[[], None], ...] = (
    dialogue._matter.cache_clear,
    dialogue._terms.cache_clear,
    lexical.analyze_query.cache_clear,
    lexical.forget_stems,
    mentions._looked_up.cache_clear,
    reader._term.cache_clear,
    words.stem.cache_clear,
)


def empty() -> None:
    """Empties the caches of all modules; those of objects are emptied by their owners."""
    for clear in CLEARING:
        clear()
