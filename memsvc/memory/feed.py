"""The change feed: followers of namespaces get every change once, in order, from the change log.

Purpose: Watch. The log is the truth; commits only wake the followers, so that nothing is lost when one is slow, and a
follower that comes back resumes from the sequence it saw.

Threading: `notify` is called on the store's writer thread and only sets flags. Each follower is used by one thread.

Rejected: pushing changes into per-follower queues (unbounded memory for a slow one, and a second truth).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

import msgspec

from memsvc.errors import InvalidArgument, Unavailable
from memsvc.model import RECALLABLE, Change, Memory, Namespace, effective_status
from memsvc.storage.engine import Engine, ReadTxn

BATCH_CHANGES = 256


class ChangeEvent(msgspec.Struct, frozen=True):
    """A change with the versions after and before it."""

    namespace: Namespace
    change: Change
    after: Memory
    before: Memory | None


class Follower:
    """Positions of one watcher. Iterate `events`; call `close` when done."""

    def __init__(self, feed: ChangeFeed, positions: dict[Namespace, int]) -> None:
        self._feed = feed
        self.positions = positions
        self._woken = threading.Event()
        self._woken.set()
        self.is_ended = False

    def wake(self) -> None:
        """Makes `poll` look again."""
        self._woken.set()

    def poll(self, timeout_s: float) -> list[ChangeEvent]:
        """The next changes, waiting up to `timeout_s` for one; empty when none came. Raises Unavailable when what is
        followed was purged: its log begins anew.
        """
        if not self._woken.wait(timeout_s):
            return []
        self._woken.clear()
        if self.is_ended:
            raise Unavailable("a namespace that is watched was purged; watch it anew, without `after`")
        events: list[ChangeEvent] = []
        for namespace, position in self.positions.items():
            batch = self._feed.read(namespace, position, BATCH_CHANGES)
            if batch:
                self.positions[namespace] = batch[-1].change.sequence
                events.extend(batch)
            if len(batch) == BATCH_CHANGES:
                self._woken.set()
        return events

    def close(self) -> None:
        """Unsubscribes."""
        self._feed.forget(self)


class ChangeFeed:
    """See the module."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._followers: dict[Namespace, set[Follower]] = {}

    def follow(self, namespaces: Iterable[Namespace], after: dict[Namespace, int]) -> Follower:
        """A follower of the namespaces, each after its sequence in `after`, or from its head on.

        Raises InvalidArgument for a position past the head (it belongs to another store).
        """
        follower = Follower(self, {})
        namespaces = list(namespaces)
        with self._lock:
            for namespace in namespaces:
                self._followers.setdefault(namespace, set()).add(follower)
        try:
            with self._engine.read() as txn:
                for namespace in namespaces:
                    head = txn.head(namespace)
                    sequence = head.sequence if head is not None else 0
                    position = after.get(namespace, sequence)
                    if not 0 <= position <= sequence:
                        raise InvalidArgument(
                            f"after.sequence {position} is not in the log, which ends at {sequence}; watch from now",
                            field="after.sequence",
                            head=str(sequence),
                        )
                    follower.positions[namespace] = position
        except BaseException:
            self.forget(follower)
            raise
        return follower

    def forget(self, follower: Follower) -> None:
        """Removes a follower."""
        with self._lock:
            for namespace in follower.positions or list(self._followers):
                followers = self._followers.get(namespace)
                if followers is not None:
                    followers.discard(follower)
                    if not followers:
                        del self._followers[namespace]

    def notify(self, namespaces: Iterable[Namespace]) -> None:
        """Wakes the followers of these namespaces."""
        with self._lock:
            woken = {f for namespace in namespaces for f in self._followers.get(namespace, ())}
        for follower in woken:
            follower.wake()

    def end(self, namespaces: Iterable[Namespace]) -> None:
        """Ends the followers of namespaces that were purged."""
        with self._lock:
            ended = {f for namespace in namespaces for f in self._followers.get(namespace, ())}
        for follower in ended:
            follower.is_ended = True
            follower.wake()

    def wake_all(self) -> None:
        """Wakes everybody (at shutdown)."""
        with self._lock:
            woken = {f for followers in self._followers.values() for f in followers}
        for follower in woken:
            follower.wake()

    def read(self, namespace: Namespace, after: int, limit: int) -> list[ChangeEvent]:
        """Up to `limit` changes after a sequence, with their images."""
        with self._engine.read() as txn:
            return change_events(txn, namespace, txn.changes(namespace, after, limit))

    def recent(self, namespaces: Iterable[Namespace], count: int, now_us: int) -> list[Memory]:
        """The newest recallable memories over all namespaces, newest first."""
        newest: list[Memory] = []
        with self._engine.read() as txn:
            for namespace in namespaces:
                newest.extend(_first(txn.scan(namespace, reverse=True), count, lambda m: is_recallable(m, now_us)))
        newest.sort(key=lambda m: m.memory_id, reverse=True)
        return newest[:count]


def is_recallable(memory: Memory, now_us: int) -> bool:
    """Whether everyday recall may return the version now."""
    return effective_status(memory, now_us) in RECALLABLE


def _first(memories: Iterator[Memory], count: int, keep: Callable[[Memory], bool]) -> list[Memory]:
    kept: list[Memory] = []
    for memory in memories:
        if len(kept) >= count:
            break
        if keep(memory):
            kept.append(memory)
    return kept


def change_events(txn: ReadTxn, namespace: Namespace, changes: list[Change]) -> list[ChangeEvent]:
    """The changes with their after- and before-images."""
    afters = txn.get_many(namespace, [(c.memory_id, c.version) for c in changes])
    befores = txn.get_many(namespace, [(c.memory_id, c.before_version) for c in changes if c.before_version])
    before = iter(befores)
    events = []
    for change, after in zip(changes, afters, strict=True):
        assert after is not None, "a change names a version that is not there; run `memsvc verify`"
        events.append(ChangeEvent(namespace, change, after, next(before) if change.before_version else None))
    return events
