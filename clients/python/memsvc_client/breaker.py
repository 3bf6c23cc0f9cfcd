"""A circuit breaker: after repeated failures, stop paying the timeout again and again.

Purpose: CLOSED lets calls through; after `threshold` failures in a row it is OPEN for a cool-down that doubles with
each further failure up to a cap, with jitter; then one call at a time is let through as a probe. A probe that says
nothing for as long as the cap (its caller was interrupted, nobody collected it) no longer holds the others back.
A server that answers "not before" is not failing: calls are held back exactly as long as it says.

Threading: thread-safe.

Rejected: a failure rate over a window (needs traffic to be meaningful; an agent asks once a minute).
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class CircuitBreaker:
    """See the module. `timer_s` is a monotonic clock, `random` gives 0..1."""

    def __init__(
        self,
        timer_s: Callable[[], float],
        random: Callable[[], float],
        *,
        threshold: int = 3,
        cool_down_s: float = 1.0,
        cool_down_max_s: float = 30.0,
    ) -> None:
        self._timer_s = timer_s
        self._random = random
        self._threshold = threshold
        self._first_s = cool_down_s
        self._max_s = cool_down_max_s
        self._lock = threading.Lock()
        self._failures = 0
        self._open_until_s = 0.0
        self._probe_until_s = 0.0  # until then a probe is out
        self._held_until_s = 0.0

    def allow(self) -> bool:
        """Whether a call may go out now; a True in the open state is the probe."""
        with self._lock:
            if self._is_held():
                return False
            if self._failures < self._threshold:
                return True
            now_s = self._timer_s()
            if now_s < self._probe_until_s or now_s < self._open_until_s:
                return False
            self._probe_until_s = now_s + self._max_s
            return True

    def succeeded(self) -> None:
        """The call was answered: closed again."""
        with self._lock:
            self._failures = 0
            self._probe_until_s = 0.0

    def failed(self) -> None:
        """The call was not answered."""
        with self._lock:
            self._failures += 1
            self._probe_until_s = 0.0
            excess = self._failures - self._threshold
            if excess >= 0:
                wait_s = min(self._first_s * 2.0 ** min(excess, 16), self._max_s)
                self._open_until_s = self._timer_s() + wait_s * (0.5 + 0.5 * self._random())

    def refused(self, delay_s: float) -> None:
        """The server takes no such call before a delay has passed: closed, and calls are held back until then."""
        with self._lock:
            self._failures = 0
            self._probe_until_s = 0.0
            if delay_s > 0:
                self._held_until_s = max(self._held_until_s, self._timer_s() + delay_s)

    def abandoned(self) -> None:
        """The call ended without saying anything about the server (the caller's fault, cancelled)."""
        with self._lock:
            self._probe_until_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are held back now after failures."""
        with self._lock:
            return self._failures >= self._threshold and self._timer_s() < self._open_until_s

    @property
    def is_held(self) -> bool:
        """Whether calls are held back because the server asked for it."""
        with self._lock:
            return self._is_held()

    def _is_held(self) -> bool:
        return self._held_until_s > 0 and self._timer_s() < self._held_until_s
