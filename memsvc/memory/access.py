"""Which memories were used: noted on a recall's path, written to the store in batches.

Purpose: `note` appends to a queue and returns; a thread empties it every few seconds, and `close` once more. What was
noted since the last flush is lost by a crash: at most `flush_s` of uses, never a memory. A use shows after at most
`flush_s`.

Threading: `note` from any thread, without a lock (a deque's append is atomic); flushes come one at a time. The queue is
bounded: when the store can't keep up, further uses are dropped and counted.

Rejected: a counter in the memory (a use would write a version), a write per recall (a commit in front of each answer).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from memsvc.memory.periodic import Periodic
from memsvc.model import Access, Memory, Namespace, Status, id_from_bytes
from memsvc.storage.engine import Engine, ReadTxn, RecordTable, WriteTxn

LOG = logging.getLogger("memsvc.access")
QUEUE_MAX = 16_384  # recalls, with up to 100 ids each: about 1 kB for a recall of eight
MEMORIES_PER_WRITE = 500

Strengthen = Callable[[Access, Memory, int], Access]
Use = tuple[Namespace, bytes] | tuple[Namespace, str]


class AccessBook:
    """See the module. `strengthen(access, memory, used_us)` is what one use makes of a memory's access."""

    def __init__(self, engine: Engine, strengthen: Strengthen, *, flush_s: float) -> None:
        self._engine = engine
        self._strengthen = strengthen
        self._queue: deque[tuple[Sequence[Use], int]] = deque()
        self._flushing = threading.Lock()
        self._flusher = Periodic(
            "access", self.flush, every_s=flush_s, log=LOG, failure="could not write access statistics"
        )
        self.dropped_count = 0

    # -- noting --------------------------------------------------------------------------------------------------

    def note(self, uses: Sequence[Use], now_us: int) -> None:
        """Notes that memories (ids as text or 16 bytes) were used; keeps the sequence, which must not change
        afterwards.
        """
        if len(self._queue) >= QUEUE_MAX:
            self.dropped_count += len(uses)
        elif uses:
            self._queue.append((uses, now_us))

    # -- writing -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the thread that flushes."""
        self._flusher.start()

    def close(self) -> None:
        """Stops the thread and writes what is left."""
        self._flusher.close()

    def flush(self) -> int:
        """Writes what was noted so far, MEMORIES_PER_WRITE memories a transaction; returns how many memories.

        Raises what the store raises; the uses that were not written by then are lost and counted as dropped.
        """
        with self._flushing:
            taken = [self._queue.popleft() for _ in range(len(self._queue))]
            times: dict[tuple[Namespace, str], list[int]] = {}
            for uses, now_us in taken:
                for namespace, memory_id in uses:
                    text = memory_id if isinstance(memory_id, str) else id_from_bytes(memory_id)
                    times.setdefault((namespace, text), []).append(now_us)
            entries = list(times.items())
            written = 0
            try:
                for at in range(0, len(entries), MEMORIES_PER_WRITE):
                    part = entries[at : at + MEMORIES_PER_WRITE]
                    self._engine.write(lambda txn, part=part: self._write(txn, part))  # type: ignore[misc]
                    written += len(part)
            finally:
                self.dropped_count += sum(len(used) for _, used in entries[written:])
            return written

    def _write(self, txn: WriteTxn, entries: Sequence[tuple[tuple[Namespace, str], list[int]]]) -> None:
        for (namespace, memory_id), times in entries:
            memory = txn.get(namespace, memory_id)
            if memory is None or memory.status == Status.PURGED:
                continue
            access = read_access(txn, namespace, memory_id)
            for used_us in sorted(times):
                access = self._strengthen(access, memory, used_us)
            put_access(txn, memory, access)


def read_access(txn: ReadTxn, namespace: Namespace, memory_id: str) -> Access:
    """What is written of a memory's uses; nothing for one that was never used."""
    raw = txn.record(RecordTable.ACCESS, namespace, memory_id)
    return Access() if raw is None else msgspec.msgpack.decode(raw, type=Access)


def put_access(txn: WriteTxn, memory: Memory, access: Access) -> None:
    """Writes a memory's access."""
    txn.put_record(RecordTable.ACCESS, memory.namespace, memory.memory_id, msgspec.msgpack.encode(access))


def accesses(txn: ReadTxn, namespace: Namespace) -> dict[str, Access]:
    """All that is written of a namespace, by memory id."""
    decode = msgspec.msgpack.Decoder(Access).decode
    return {key: decode(raw) for key, raw in txn.records(RecordTable.ACCESS, namespace)}
