"""Who may be inside the LMDB map, and when it may move.

Purpose: LMDB can only resize its map while this process has no transaction open. Readers pass the gate in and out;
the writer, who has closed its own transaction by then, asks for the gate to itself.

Threading: any thread. A reader never waits longer than `HOLD_S` at a time: if the readers inside don't leave within
that, the others are let in again and the writer tries later. So a long export can delay the growth of the map, but
neither it nor the growth can stop all reads, and a thread that opens a snapshot inside a snapshot can't lock up.

Rejected: a lock that is fair to writers (one that waits keeps new readers out while the slowest reader runs; it
also costs a reader 1.2 us instead of 0.6).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

HOLD_S = 0.05


class MapGate:
    """See the module. `enter` and `leave` pair up; `alone` runs something with nobody inside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside = 0
        self._held = False
        self._watched = False

    def enter(self) -> None:
        """Goes inside; waits at most about `HOLD_S` while the map moves."""
        with self._lock:
            while self._held:
                self._changed.wait()
            self._inside += 1

    def leave(self) -> None:
        """Goes out again."""
        with self._lock:
            self._inside -= 1
            if self._watched and not self._inside:
                self._changed.notify_all()

    def inside_count(self) -> int:
        """How many are inside."""
        return self._inside

    def alone(self, action: Callable[[], None], *, patience_s: float) -> bool:
        """Runs `action` while nobody is inside; False if that moment did not come within `patience_s` (0: only if it
        is now). One thread at a time may ask.
        """
        with self._lock:
            if not self._inside:
                action()
                return True
            self._watched = True
            try:
                for _ in range(round(patience_s / (2 * HOLD_S))):
                    if self._wait_until_empty(hold=True) or self._wait_until_empty(hold=False):
                        action()
                        return True
            finally:
                self._watched = False
        return False

    def _wait_until_empty(self, *, hold: bool) -> bool:
        """Waits `HOLD_S` for the last one to leave, keeping new ones out or not."""
        self._held = hold
        try:
            return self._changed.wait_for(lambda: not self._inside, timeout=HOLD_S)
        finally:
            self._held = False
            self._changed.notify_all()
