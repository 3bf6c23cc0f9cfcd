"""What a client knows by itself: recall results and the recent memories of its namespaces.

Purpose: answers when the server is slow or gone, and repeated questions without asking. A stored result may stand for
the server's only while a Watch stream is live and no change came since (`generation`); otherwise it is a fallback.

Threading: all methods take the lock; calls are microseconds.

Rejected: a disk cache (memories would lie around unprotected on every machine).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ._proto import memory_pb2 as pb
from ._proto import memory_service_pb2 as spb
from .requests import enum_value

_WORD = re.compile(r"[^\W\d_]+|\d+", re.UNICODE)
_IDENTIFIER = re.compile(r"[^\s\"'()<>{},;!?，。！？；、]*\d[^\s\"'()<>{},;!?，。！？；、]*", re.UNICODE)
_RUN = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
LOCAL_OPTIONS = frozenset(
    {"top_k", "types", "layers", "tags_all", "tags_any", "subjects", "scopes", "include_inactive"}
)
STANDING = (pb.STATUS_ACTIVE, pb.STATUS_CONTESTED)


def terms_of(text: str) -> set[str]:
    """Words, CJK bigrams and identifiers of a text, NFKC and case-folded. Every substring of two or more characters
    of a CJK run shares a bigram with it.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    terms = set(_IDENTIFIER.findall(folded))
    for match in _WORD.finditer(folded):
        word = match.group()
        runs = _RUN.findall(word)
        if not runs:
            terms.add(word)
        for run in runs:
            terms.update([run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)])
        rest = _RUN.sub(" ", word).split() if runs else []
        terms.update(rest)
    return terms


class RecallCache:
    """Bounded LRU of recall responses by request."""

    def __init__(self, entries: int, ttl_s: float, timer_s: Callable[[], float]) -> None:
        self._entries = entries
        self._ttl_s = ttl_s
        self._timer_s = timer_s
        self._lock = threading.Lock()
        self._map: OrderedDict[bytes, tuple[spb.RecallResponse, int, float]] = OrderedDict()

    def get(self, key: bytes) -> tuple[spb.RecallResponse, int, bool] | None:
        """Response, generation it was asked in, and whether it is younger than the TTL."""
        with self._lock:
            entry = self._map.get(key)
            if entry is None:
                return None
            self._map.move_to_end(key)
            response, generation, stored_s = entry
            return response, generation, self._timer_s() - stored_s <= self._ttl_s

    def put(self, key: bytes, response: spb.RecallResponse, generation: int) -> None:
        """Stores a full answer."""
        with self._lock:
            self._map[key] = (response, generation, self._timer_s())
            self._map.move_to_end(key)
            if len(self._map) > self._entries:
                self._map.popitem(last=False)

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._map.clear()


class RecentMemories:
    """The newest standing memories of the client's namespaces, and ids that stopped standing."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._memories: OrderedDict[str, pb.Memory] = OrderedDict()  # oldest first
        self._terms: dict[str, set[str]] = {}
        self._gone: OrderedDict[str, int] = OrderedDict()  # the version that stopped it

    def replace_all(self, memories: Iterable[pb.Memory]) -> None:
        """What a fresh Watch says, newest first."""
        with self._lock:
            self._memories.clear()
            self._terms.clear()
        for memory in reversed(list(memories)):
            self.apply(memory)

    def apply(self, memory: pb.Memory) -> None:
        """A new version: kept while it stands, dropped when it stopped."""
        key = memory.memory_id
        with self._lock:
            known = self._memories.get(key)
            if known is not None and known.version > memory.version:
                return
            if self._gone.get(key, 0) > memory.version:
                return
            self._memories.pop(key, None)
            self._terms.pop(key, None)
            if memory.status not in STANDING:
                self._note_gone(key, memory.version)
                return
            if self._count <= 0:
                return
            self._gone.pop(key, None)
            self._memories[key] = memory
            self._terms[key] = terms_of(" ".join((memory.content, memory.subject, *memory.tags)))
            if len(self._memories) > self._count:
                oldest, _ = self._memories.popitem(last=False)
                self._terms.pop(oldest, None)

    def replaced(self, memory_id: str) -> None:
        """Another memory took its place in a version that is not known here; a later version may stand again."""
        with self._lock:
            held = self._memories.pop(memory_id, None)
            self._terms.pop(memory_id, None)
            self._note_gone(memory_id, 1 if held is None else held.version + 1)

    def _note_gone(self, memory_id: str, version: int) -> None:
        self._gone[memory_id] = max(version, self._gone.get(memory_id, 0))
        if len(self._gone) > 4 * self._count + 256:
            self._gone.popitem(last=False)

    def is_gone(self, memory_id: str) -> bool:
        """Whether the memory is known to stand no more."""
        with self._lock:
            return memory_id in self._gone

    def newer_version(self, memory: pb.Memory) -> pb.Memory:
        """The held version if it is newer than this one."""
        with self._lock:
            held = self._memories.get(memory.memory_id)
        return held if held is not None and held.version > memory.version else memory

    def match(self, query: str, options: Mapping[str, Any], now_s: float) -> list[spb.Hit] | None:
        """Hits among the recent memories, best first; None when an option can't be judged here."""
        if not set(options) <= LOCAL_OPTIONS:
            return None
        wanted = terms_of(query)
        with self._lock:
            held = [(memory, self._terms[key]) for key, memory in self._memories.items()]
        hits: list[tuple[float, int, spb.Hit]] = []
        frequency = {term: sum(term in terms for _, terms in held) for term in wanted}
        for order, (memory, terms) in enumerate(held):
            if not _passes(memory, options, now_s):
                continue
            score = sum(1.0 / (1 + frequency[term]) for term in wanted & terms)
            if wanted and score == 0.0:
                continue
            path = spb.RECALL_PATH_LEXICAL if wanted else spb.RECALL_PATH_RECENT
            hit = spb.Hit(score=score, components=spb.ScoreComponents(lexical=score), paths=[path])
            hit.memory.CopyFrom(memory)
            hits.append((score, order, hit))
        hits.sort(key=lambda entry: (-entry[0], -entry[1]))
        return [hit for _, _, hit in hits]


def _passes(memory: pb.Memory, options: Mapping[str, Any], now_s: float) -> bool:
    """The filters that can be judged on the record alone."""
    if memory.HasField("expire_time") and memory.expire_time.seconds <= now_s:
        return False
    tags = set(memory.tags)
    for name, kind, prefix, value in (
        ("types", pb.MemoryType, "MEMORY_TYPE", memory.type),
        ("layers", pb.Layer, "LAYER", memory.layer),
        ("scopes", pb.Scope, "SCOPE", memory.namespace.scope),
    ):
        named: Sequence[str] = options.get(name) or ()
        if named and value not in {enum_value(kind, prefix, item, name) for item in named}:
            return False
    return (
        tags.issuperset(options.get("tags_all") or ())
        and (not options.get("tags_any") or not tags.isdisjoint(options["tags_any"]))
        and (not options.get("subjects") or memory.subject in options["subjects"])
    )
