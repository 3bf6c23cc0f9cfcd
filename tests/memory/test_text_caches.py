"""Every cache of texts is emptied by a purge: a walk over the code finds those that are not listed."""

from __future__ import annotations

import functools
import importlib
import pkgutil

import memsvc
from memsvc.memory import text_caches
from memsvc.retrieval import lexical

# Module-level caches whose keys and values are no texts of memories.
NO_TEXTS = {
    "re._compiled": "patterns",
    "urllib.parse.urlsplit": "addresses of chat endpoints",
    "memsvc.memory.sensitive.filter._refusing": "policies",
    "memsvc.memory.sensitive.numbers._phone_functions": "functions of a library",
    "memsvc.retrieval.searcher._fixed_scale": "weights",
    "memsvc.retrieval.searcher._rates": "rates of decay",
}


def caches():
    """Module-level caches of functions, by the name of their first module."""
    found = {}
    for module in pkgutil.walk_packages(memsvc.__path__, "memsvc."):
        if module.name.endswith("__main__") or ".v1" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, functools._lru_cache_wrapper):
                found.setdefault(id(value), (f"{value.__wrapped__.__module__}.{name}", value))
    return found.values()


def test_every_cache_is_listed_or_holds_no_texts():
    listed = {clear.__self__ for clear in text_caches.CLEARING if hasattr(clear, "__self__")}
    known = {name: cache in listed for name, cache in caches()}
    assert {name for name, is_listed in known.items() if not is_listed} == set(NO_TEXTS)
    assert sum(known.values()) == len(listed)


def test_emptying_empties():
    lexical.analyze_query("a zebrafish swims")
    assert lexical.analyze_query.cache_info().currsize
    assert any("zebrafish".startswith(stem) for stem in lexical._STEMMING._cache)
    text_caches.empty()
    assert not lexical.analyze_query.cache_info().currsize
    assert not lexical._STEMMING._cache
