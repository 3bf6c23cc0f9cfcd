"""What an answer shows of memories: for the audit, which is written behind the answer.

Purpose: one walk over an answer's messages that finds every memory, fact, skill, permanent entry and line of a context.
NOTED are the calls whose answers are walked; a test compares it with the contract, so that a call that shows memories
can't be left out. Calls that show what they have just changed are not in it: their change is in the audit.

Working memory of open sessions is not in the audit: it ends with its session.

Threading: pure functions over messages that nobody changes any more.

Rejected: a line in each call (one would be forgotten); the ids while the answer is made (a tenth of a recall).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import Message

from memsvc.errors import MemsvcError
from memsvc.memory.owners import check, reached_by
from memsvc.model import Namespace, Scope
from memsvc.service import convert

PLACED = frozenset({"Memory", "Fact", "Skill", "PermanentMemory"})  # messages with a namespace and a memory_id
UNPLACED = frozenset({"ContextLine", "ResolvedParameter"})  # messages with the id alone
SHOWING = PLACED | UNPLACED
NOTED = frozenset(
    {
        "MemoryService/Recall",
        "MemoryService/Get",
        "MemoryService/List",
        "MemoryService/History",
        "MemoryService/Watch",
        "MemoryService/ListConflicts",
        "SessionService/Assemble",
        "ContextService/AssembleContext",
        "EventService/Query",
        "FactService/Get",
        "FactService/List",
        "FactService/History",
        "FactService/Match",
        "SkillService/Get",
        "SkillService/List",
        "SkillService/Versions",
        "SkillService/Match",
        "PermanentService/List",
        "PermanentService/History",
        "ReviewService/List",
        "ReviewService/Get",
        "AuditService/Why",
    }
)


def shown(message: Message) -> Iterator[tuple[Namespace | None, str]]:
    """Every memory that an answer tells of, with its namespace where the answer has it."""
    name = message.DESCRIPTOR.name
    one: Any = message
    if name in PLACED:
        at = one.namespace
        yield Namespace(at.tenant, Scope(at.scope), at.owner), one.memory_id
        return
    if name in UNPLACED and one.memory_id:
        yield None, one.memory_id
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is None or not kind.full_name.startswith("memsvc.") or kind.GetOptions().map_entry:
            continue
        for inner in value if field.is_repeated else (value,):
            yield from shown(inner)


def named(request: Any) -> Sequence[Namespace]:
    """Every namespace that a request's owners name; none where they can't be read."""
    try:
        owners = convert.owners(request.owners)
        check(owners)
        return reached_by(owners)
    except MemsvcError:
        return ()
