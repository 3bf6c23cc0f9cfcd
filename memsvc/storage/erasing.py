"""What is left of a memory that was erased: one truth for every engine.

Purpose: `blank`. The frame stays, because the change log has no gaps and names each version; what was said does not.

Threading: pure functions.

Rejected: a list of fields to clear in each engine (a new field of the record would be forgotten in one of them).
"""

from __future__ import annotations

from memsvc.model import Memory, Status


def blank(memory: Memory) -> Memory:
    """The version with its frame alone, status PURGED: every field that is not named here has its default."""
    return Memory(
        memory_id=memory.memory_id,
        version=memory.version,
        sequence=memory.sequence,
        namespace=memory.namespace,
        layer=memory.layer,
        type=memory.type,
        content="",
        status=Status.PURGED,
        create_time_us=memory.create_time_us,
        update_time_us=memory.update_time_us,
        occur_time_us=memory.create_time_us,
    )
