"""What a session still has to send: requests in order, in a bounded buffer.

Purpose: keeps the order, says what does not fit any more, and numbers turns so that what was dropped can be named.
The oldest goes first when it is full: the newest turns say what the conversation is about now. A request that was sent
once stays, since it may have arrived.

Threading: none of its own; `SessionCore` owns it.

Rejected: joining waiting requests into larger ones (a request that was sent once must come again as it was, or it is
stored twice); dropping the newest (an agent without a server would go on with the start of the conversation only).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from .session_results import Dropped

LOG = logging.getLogger("memsvc_client.session")

BUFFER_TURNS = 1000
BUFFER_BYTES = 16 * 1024 * 1024
DROPPED_MAX = 100
TURNS, TOOL_OUTPUTS, END = "turns", "tool_outputs", "end"


class Item:
    """One request. `count` is how many turns or outputs it holds; `number` counts the items of a session from 1."""

    __slots__ = ("attempts", "count", "first", "kind", "method", "number", "request", "sent", "size_bytes")

    def __init__(self, kind: str, method: str, request: Message, count: int = 0) -> None:
        self.kind = kind
        self.method = method
        self.request: Any = request
        self.count = count
        self.size_bytes = request.ByteSize()
        self.first = 0
        self.number = 0
        self.sent = False  # it may have arrived
        self.attempts = 0  # how often the server failed on it


class Outbox:
    """See the module."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._count = 0
        self._size_bytes = 0
        self._numbers = {TURNS: 0, TOOL_OUTPUTS: 0, END: 0}
        self._dropped: deque[Dropped] = deque(maxlen=DROPPED_MAX)
        self.added = 0
        self.dropped_count = 0

    @property
    def head(self) -> Item | None:
        """What goes out next."""
        return self._items[0] if self._items else None

    @property
    def count(self) -> int:
        """Turns and outputs that wait."""
        return self._count

    @property
    def dropped(self) -> Sequence[Dropped]:
        """What was dropped, oldest first; the newest DROPPED_MAX groups."""
        return self._dropped

    def has_room(self, item: Item) -> bool:
        """Whether the item fits without dropping another."""
        if not self._items:
            return True
        return self._count + item.count <= BUFFER_TURNS and self._size_bytes + item.size_bytes <= BUFFER_BYTES

    def add(self, item: Item) -> None:
        """Takes an item; drops the oldest that were not sent until it fits."""
        while item.count and not self.has_room(item):
            oldest = next((waiting for waiting in self._items if not waiting.sent and waiting.count), None)
            if oldest is None:
                break
            self._drop(oldest, "BUFFER_FULL")
        self.added += 1
        item.number = self.added
        item.first = self._numbers[item.kind] + 1
        self._numbers[item.kind] += item.count
        self._items.append(item)
        self._count += item.count
        self._size_bytes += item.size_bytes

    def is_settled(self, number: int) -> bool:
        """Whether no item up to this number waits any more."""
        return not self._items or self._items[0].number > number

    def done(self) -> None:
        """The head arrived."""
        self._remove(self._items[0])

    def refuse(self, cause: str) -> None:
        """The head will never be taken."""
        self._drop(self._items[0], cause)

    def drop_all(self, cause: str) -> None:
        """Nothing more will be sent."""
        for item in list(self._items):
            self._drop(item, cause)

    def clear_unsent(self) -> None:
        """Takes out what was not sent, without a word: the caller discards it."""
        for item in [item for item in self._items if not item.sent]:
            self._remove(item)

    def _remove(self, item: Item) -> None:
        self._items.remove(item)
        self._count -= item.count
        self._size_bytes -= item.size_bytes

    def _drop(self, item: Item, cause: str) -> None:
        self._remove(item)
        if not item.count:
            return
        self.dropped_count += item.count
        last = self._dropped[-1] if self._dropped else None
        if last is not None and (last.kind, last.cause, last.first + last.count) == (item.kind, cause, item.first):
            self._dropped[-1] = Dropped(last.kind, last.first, last.count + item.count, cause)
            return
        self._dropped.append(Dropped(item.kind, item.first, item.count, cause))
        LOG.warning("a session drops %s from number %d on: %s", item.kind.replace("_", " "), item.first, cause)
