"""Exact facts: keys and typed values of an owner, with versions, conditional puts and look-up by mention.

Purpose: a fact is a memory whose subject is its key and whose versions are the fact's: change log, history, forgetting
and isolation are those of any memory. It has no vector and no conflict check: a key has one value, the last one put.

Threading: any number of threads; a put reads and writes in one transaction, so that of many conditional puts one wins.

Rejected: a table of its own (a second history, a second audit, a second isolation), keys compared without case (`Path`
and `path` are two keys to a program; only mentions in text ignore case).
"""

from __future__ import annotations

import heapq
import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from memsvc.errors import EtagMismatch, InvalidArgument, NotFound
from memsvc.memory import page_tokens
from memsvc.memory.drafts import REASON_MAX_CHARS, check_json, check_length, check_source
from memsvc.memory.owners import DEFAULT_TENANT, Owners, check, namespace_for, narrowest_first
from memsvc.memory.policies import Policies
from memsvc.memory.recall import QUERY_MAX_CHARS
from memsvc.memory.sensitive import apply
from memsvc.memory.transactions import Committed, Mutation, Transactions
from memsvc.model import (
    RECALLABLE,
    ChangeKind,
    Fact,
    IdMinter,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    Source,
    Status,
    effective_status,
)
from memsvc.retrieval.segment import Segment
from memsvc.retrieval.segments import Applied, SegmentStore
from memsvc.storage.engine import ReadTxn, WriteTxn

KEY_MAX_CHARS = 256
VALUE_MAX_BYTES = 16_384
KEYS_MAX = 1000
HISTORY_MAX = 1000
MATCHES_MAX = 100
_STANDING = (*RECALLABLE, Status.ARCHIVED)  # an archived fact is out of recalls; its key still has its value


class Put(msgspec.Struct, frozen=True, array_like=True):
    """Answer of a put."""

    memory: Memory
    changed: bool


class Deleted(msgspec.Struct, frozen=True, array_like=True):
    """Answer of a delete: whether there was such a key, and the namespace's position."""

    deleted: bool
    namespace: Namespace
    sequence: int


class Facts:
    """See the module."""

    def __init__(
        self, transactions: Transactions, segments: SegmentStore, policies: Policies, *, minter: IdMinter
    ) -> None:
        self._transactions = transactions
        self._segments = segments
        self._policies = policies
        self._minter = minter

    # -- writing -------------------------------------------------------------------------------------------------

    def put(
        self,
        owners: Owners,
        scope: Scope | None,
        fact: Fact,
        if_version: int | None,
        source: Source,
        reason: str,
        mutation: Mutation,
    ) -> Put:
        """Sets a key; the same value again changes nothing. Raises InvalidArgument and its kin, and EtagMismatch unless
        the key has version `if_version` now (0: is not there).
        """
        check(owners)
        check_length(reason, REASON_MAX_CHARS, "reason")
        check_source(source, "source")
        namespace = namespace_for(owners, scope)
        clean = self._clean(owners, fact)

        def change(txn: WriteTxn) -> Committed[Put]:
            before = _held(txn, namespace, clean.key)
            _check_version(before, if_version)
            if before is not None and before.status == Status.ACTIVE and _same_fact(before, clean):
                return Committed(Put(before, False), [])
            memory = self._next(namespace, clean, before, source)
            kind = ChangeKind.CREATED if before is None else ChangeKind.UPDATED
            changes: list[Applied] = []
            stored = self._transactions.put(txn, memory, None, kind, mutation, reason, changes, before)
            return Committed(Put(stored, True), changes)

        return self._transactions.mutate(owners, mutation, Put, change)

    def _clean(self, owners: Owners, fact: Fact) -> Fact:
        """The fact with its key normalised, as the tenant's policy lets it in. The key says what the value is."""
        key = normal_key(fact.key)
        check_json(fact.value, VALUE_MAX_BYTES, "value")
        policy = self._policies.of(owners.tenant or DEFAULT_TENANT)
        ((key, value),) = apply({key: fact.value}, policy, "fact").items()
        return Fact(key, value)

    def _next(self, namespace: Namespace, fact: Fact, before: Memory | None, source: Source) -> Memory:
        now_us = self._transactions.clock_us()
        if before is None:
            before = Memory(
                memory_id=self._minter.mint(),
                version=0,
                sequence=0,
                namespace=namespace,
                layer=Layer.SEMANTIC,
                type=MemoryType.FACT,
                subject=fact.key,
                content="",
                create_time_us=now_us,
            )
        return msgspec.structs.replace(
            before,
            content=f"{fact.key} = {value_text(fact.value)}",
            fact=fact,
            status=Status.ACTIVE,
            superseded_by="",
            blocked=False,
            source=source,
            update_time_us=now_us,
            occur_time_us=now_us,
            last_seen_time_us=now_us,
        )

    def delete(
        self,
        owners: Owners,
        scope: Scope | None,
        key: str,
        if_version: int | None,
        reason: str,
        mutation: Mutation,
    ) -> Deleted:
        """Forgets a key. Raises EtagMismatch unless it has version `if_version` now, if that is given."""
        check(owners)
        check_length(reason, REASON_MAX_CHARS, "reason")
        namespace, key = namespace_for(owners, scope), normal_key(key)

        def change(txn: WriteTxn) -> Committed[Deleted]:
            before = _held(txn, namespace, key)
            _check_version(before, if_version)
            if before is None or before.status not in _STANDING:
                head = txn.head(namespace)
                return Committed(Deleted(False, namespace, head.sequence if head else 0), [])
            after = msgspec.structs.replace(
                before, status=Status.FORGOTTEN, update_time_us=self._transactions.clock_us()
            )
            changes: list[Applied] = []
            stored = self._transactions.put(txn, after, None, ChangeKind.FORGOTTEN, mutation, reason, changes, before)
            return Committed(Deleted(True, namespace, stored.sequence), changes)

        return self._transactions.mutate(owners, mutation, Deleted, change)

    # -- reading -------------------------------------------------------------------------------------------------

    def get(self, namespaces: Sequence[Namespace], keys: Sequence[str]) -> list[Memory]:
        """The facts that are there, in order of the keys, and for one key from the narrowest scope to GLOBAL."""
        if not 1 <= len(keys) <= KEYS_MAX:
            raise InvalidArgument(f"keys has {len(keys)} entries; send 1 to {KEYS_MAX}", field="keys")
        wanted = list(dict.fromkeys(normal_key(key, "keys") for key in keys))
        with self._transactions.engine.read() as txn:
            held = (_held(txn, namespace, key) for key in wanted for namespace in narrowest_first(namespaces))
            return [memory for memory in held if memory is not None and memory.status in _STANDING]

    def history(self, namespace: Namespace, key: str) -> list[Memory]:
        """All versions of a key, newest first, at most HISTORY_MAX. Raises NotFound for a key that was never put."""
        with self._transactions.engine.read() as txn:
            held = _held(txn, namespace, normal_key(key))
            if held is None:
                raise NotFound("no fact with this key was ever put in this namespace")
            return txn.versions(namespace, held.memory_id)[::-1][:HISTORY_MAX]

    def list_page(
        self, namespaces: Sequence[Namespace], prefix: str, size: int, page_token: str
    ) -> tuple[list[Memory], str]:
        """One page in order of (key, narrowest scope), and the token of the next ("" on the last)."""
        prefix = unicodedata.normalize("NFKC", prefix).lstrip()
        after = page_tokens.decode(page_token, "facts", tuple[str, int]) if page_token else ("", 0)
        page: list[Memory] = []
        with self._transactions.engine.read() as txn:
            keyed = heapq.merge(*(self._keys(namespace, prefix, after[0]) for namespace in namespaces))
            for key, scope, namespace in keyed:
                if (key, scope) <= after:
                    continue
                memory = _held(txn, namespace, key)
                if memory is None or memory.status not in _STANDING:
                    continue
                if len(page) == size:
                    last = page[-1]
                    return page, page_tokens.encode("facts", last.subject, int(last.namespace.scope))
                page.append(memory)
        return page, ""

    def _keys(self, namespace: Namespace, prefix: str, start: str) -> Iterator[tuple[str, int, Namespace]]:
        segment = self._segments.get(namespace)
        if segment is not None:
            for key in segment.mentions.keys_from(start, prefix):
                yield key, int(namespace.scope), namespace

    def match(self, namespaces: Sequence[Namespace], text: str) -> list[Memory]:
        """The facts that a text mentions by key or value, by first mention, at most MATCHES_MAX; see
        `retrieval.mentions` for what a mention is.
        """
        check_length(text, QUERY_MAX_CHARS, "query")
        places: dict[tuple[Namespace, str], tuple[int, int]] = {}
        for namespace in namespaces:
            segment = self._segments.get(namespace)
            for memory_id, position in _named(segment, text) if segment is not None else ():
                place = (position, int(namespace.scope))
                where = (namespace, memory_id)
                places[where] = min(place, places.get(where, place))
        now_us = self._transactions.clock_us()
        found: list[Memory] = []
        with self._transactions.engine.read() as txn:
            for namespace, memory_id in sorted(places, key=lambda where: (places[where], where[1])):
                memory = txn.get(namespace, memory_id)
                if memory is not None and effective_status(memory, now_us) in RECALLABLE and len(found) < MATCHES_MAX:
                    found.append(memory)
        return found


def _named(segment: Segment, text: str) -> Iterator[tuple[str, int]]:
    """(memory id, position) of facts that a text names; of very many with one value, the newest."""
    named = segment.mentions.named(text)
    with segment.lock:
        row_count, columns = segment.rows, segment.columns
    for position, term in named:
        rows = segment.rows_with((term,), row_count)
        for row in rows[columns.end_seq[rows] > row_count][-MATCHES_MAX:].tolist():
            yield segment.memory_id(row), position


def normal_key(key: str, field: str = "key") -> str:
    """The key in NFKC without space around it. Raises InvalidArgument when nothing is left, LimitExceeded."""
    key = unicodedata.normalize("NFKC", key).strip()
    if not key:
        raise InvalidArgument(f"{field} is empty; a fact needs a key", field=field)
    check_length(key, KEY_MAX_CHARS, field)
    return key


def value_text(value: Any) -> str:
    """The value as a fact's content shows it: JSON, texts without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def same_value(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 equals 1.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    return bool(one == other)


def _same_fact(memory: Memory, fact: Fact) -> bool:
    return memory.fact is not None and same_value(memory.fact.value, fact.value)


def _held(txn: ReadTxn, namespace: Namespace, key: str) -> Memory | None:
    """The memory that holds a key, whatever its status; there is at most one."""
    facts = (memory for memory in txn.by_subject(namespace, key) if memory.fact is not None)
    return next(facts, None)


def _check_version(held: Memory | None, if_version: int | None) -> None:
    present = held.version if held is not None and held.status in _STANDING else 0
    if if_version is not None and if_version != present:
        state = f"has version {present} now" if present else "is not there now"
        raise EtagMismatch(f"the key {state}, if_version is {if_version}; read it again", version=str(present))
