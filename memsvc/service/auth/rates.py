"""How many calls a token may make a minute: token buckets by token id.

Purpose: each token has a bucket for reads and one for writes. A bucket starts full, holds one minute's calls (so that
they may come at once) and refills evenly. What is taken from a full bucket comes back within a minute, so that
forgetting full ones forgets nothing.

Threading: any number of threads; one lock, held for a few integer operations, and for a sweep over all buckets once
in as many new ones as the last sweep left.

Rejected: windows of a minute (twice the rate passes around their edge); floats (the named wait would be off by a
rounding, and the retry refused); buckets beside the remembered tokens (one token has several spellings, each with a
bucket of its own then).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from memsvc.errors import RateLimited
from memsvc.service.auth.rules import Kind

MINUTE_US = 60_000_000
PER_MINUTE_MAX = 1_000_000_000
SWEEP_MIN = 1024


class Bucket:
    """Admits at most `per_minute * time + per_minute` calls. Not thread-safe. `level` is in calls times MINUTE_US."""

    __slots__ = ("level", "time_us")

    def __init__(self, per_minute: int, now_us: int) -> None:
        self.level = per_minute * MINUTE_US
        self.time_us = now_us

    def take(self, per_minute: int, now_us: int) -> int:
        """0 when the call is admitted; else the microseconds after which the next one would be."""
        self.level = self._level_at(per_minute, now_us)
        self.time_us = max(self.time_us, now_us)
        if self.level >= MINUTE_US:
            self.level -= MINUTE_US
            return 0
        return -((self.level - MINUTE_US) // per_minute)

    def is_full(self, per_minute: int, now_us: int) -> bool:
        """Whether a new bucket would be the same."""
        return self._level_at(per_minute, now_us) == per_minute * MINUTE_US

    def _level_at(self, per_minute: int, now_us: int) -> int:
        return min(self.level + max(now_us - self.time_us, 0) * per_minute, per_minute * MINUTE_US)


class Rates:
    """See the module. `defaults` are calls a minute of tokens that name none, 0 for unlimited; `timer_us` is a
    monotonic clock in microseconds.
    """

    def __init__(self, defaults: dict[Kind, int], *, timer_us: Callable[[], int]) -> None:
        self._defaults = defaults
        self._timer_us = timer_us
        self._lock = threading.Lock()
        self._buckets: dict[tuple[str, Kind], tuple[int, Bucket]] = {}
        self._sweep_at = SWEEP_MIN

    def __len__(self) -> int:
        """How many buckets are kept."""
        return len(self._buckets)

    def take(self, token_id: str, kind: Kind, own_per_minute: int) -> None:
        """Counts a call of a token; `own_per_minute` 0 is the default. Raises RateLimited with the exact wait."""
        per_minute = own_per_minute or self._defaults[kind]
        if not per_minute:
            return
        with self._lock:
            now_us = self._timer_us()
            kept = self._buckets.get((token_id, kind))
            if kept is None:
                self._sweep(now_us)
                kept = self._buckets[token_id, kind] = (per_minute, Bucket(per_minute, now_us))
            wait_us = kept[1].take(per_minute, now_us)
        if wait_us:
            limit = f"{kind}s_per_minute"
            raise RateLimited(
                f"the token may make {per_minute} {kind} calls a minute ({limit}); the next in {wait_us / 1e6:.3f} s",
                retry_us=wait_us,
                limit=limit,
                per_minute=str(per_minute),
            )

    def _sweep(self, now_us: int) -> None:
        if len(self._buckets) < self._sweep_at:
            return
        self._buckets = {key: kept for key, kept in self._buckets.items() if not kept[1].is_full(kept[0], now_us)}
        self._sweep_at = max(SWEEP_MIN, 2 * len(self._buckets))
