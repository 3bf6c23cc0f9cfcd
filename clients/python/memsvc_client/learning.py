"""Requests about what is learnt: messages to be judged, reviews, and contradictions.

Purpose: message records as logs hold them (`role` or `speaker`, OpenAI's tool calls, ISO times) become the contract's
messages; a record that can't is refused naming its place and the fix. All records are checked before one is sent.

Threading: pure functions.

Rejected: dropping unknown keys (a misspelt `time` would date a whole log today); TypeError for them, as for keyword
arguments (a record is data, not code).
"""

from __future__ import annotations

import datetime as dt
import difflib
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import requests
from ._proto import memory_pb2 as pb
from ._proto import memory_service_pb2 as spb
from ._proto import memory_service_pb2_grpc as rpc
from .core import Core
from .errors import InvalidArgument
from .operations import Call, Pages, page_of
from .results import Memory
from .verdicts import Conflict

MESSAGES_MAX = 200
DECISIONS_MAX = 1000
MESSAGE_KEYS = ("speaker", "role", "content", "time", "tool_calls", "message_id", "id")
DECISION_KEYS = ("memory_id", "id", "action", "content", "reason")
SPEAKERS = {
    "user": spb.SPEAKER_USER,
    "human": spb.SPEAKER_USER,
    "agent": spb.SPEAKER_AGENT,
    "assistant": spb.SPEAKER_AGENT,
    "ai": spb.SPEAKER_AGENT,
    "model": spb.SPEAKER_AGENT,
    "tool": spb.SPEAKER_TOOL,
    "function": spb.SPEAKER_TOOL,
    "system": spb.SPEAKER_SYSTEM,
    "developer": spb.SPEAKER_SYSTEM,
}
_SHOWN_CHARS = 40
_ZULU = re.compile(r"(?<=\d)[zZ]$")


def message(record: Any, where: str) -> spb.Message:
    """A Message of a record (see `MemoryClient.ingest`). Raises InvalidArgument naming the place below `where`."""
    _check_keys(record, MESSAGE_KEYS, where)
    built: spb.Message = requests.encodable(lambda: _message(record, where), where)
    return built


def _message(record: Mapping[str, Any], where: str) -> spb.Message:
    calls = _listed(record.get("tool_calls"), f"{where}.tool_calls")
    content = record.get("content")
    if content is None and calls:
        content = ""  # an agent's turn that only calls tools
    built = spb.Message(
        speaker=_speaker(_either(record, "speaker", "role", where), f"{where}.speaker"),
        content=_text(content, f"{where}.content"),
        tool_calls=[_tool_call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(calls)],
        message_id=_text(_either(record, "message_id", "id", where) or "", f"{where}.message_id"),
    )
    if record.get("time") is not None:
        built.time.CopyFrom(requests.timestamp(_time(record["time"], f"{where}.time"), f"{where}.time"))
    return built


def _speaker(value: Any, where: str) -> spb.Speaker:
    if value is None:
        raise _wrong(where, "is missing: user, agent, tool or system")
    number = SPEAKERS.get(value.strip().lower()) if isinstance(value, str) else None
    if number is None:
        raise _wrong(where, f"{_shown(value)} is not one of {', '.join(SPEAKERS)}")
    return number


def _time(value: Any, where: str) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value
    if not isinstance(value, str):
        raise _wrong(where, f"must be an aware datetime or ISO 8601 text with a zone, not {type(value).__name__}")
    try:
        time = dt.datetime.fromisoformat(_ZULU.sub("+00:00", value.strip()))  # Python 3.10 does not read a Z
    except ValueError as error:
        raise _wrong(where, f"{_shown(value)} is not an ISO 8601 time, e.g. 2025-01-10T09:00:00Z") from error
    if time.tzinfo is None:
        raise _wrong(where, f"{_shown(value)} has no time zone; add Z or +08:00")
    return time


def _tool_call(call: Any, where: str) -> spb.ToolCall:
    """A call as {name, arguments}, or as OpenAI writes it: {id, type, function: {name, arguments}}."""
    _check_keys(call, ("name", "arguments", "id", "type", "function"), where)
    if call.get("function") is not None:
        call, where = call["function"], f"{where}.function"
        _check_keys(call, ("name", "arguments"), where)
    arguments = call.get("arguments")
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return spb.ToolCall(name=_text(call.get("name"), f"{where}.name"), arguments=arguments)


def ingest_requests(
    core: Core,
    messages: Iterable[Mapping[str, Any]],
    *,
    session_id: str | None,
    tool: str,
    scope: str | None,
    dry_run: bool,
    request_id: str | None,
) -> list[spb.IngestRequest]:
    """Requests of at most MESSAGES_MAX messages; the first has `request_id`, the others ids derived from it."""
    if session_id == "":
        raise _wrong("session_id", "is empty; leave it out or give an id")
    built = [message(record, f"messages[{i}]") for i, record in enumerate(_listed(messages, "messages"))]
    chunks = [built[i : i + MESSAGES_MAX] for i in range(0, len(built), MESSAGES_MAX)]
    ids = derived_request_ids(request_id, len(chunks))
    number = requests.scope(scope)
    made: list[spb.IngestRequest] = requests.encodable(
        lambda: [
            spb.IngestRequest(
                owners=core.owners,
                scope=number,
                messages=chunk,
                session_id=session_id or "",
                tool=tool or core.tool,
                dry_run=dry_run,
                request_id=ids[i],
            )
            for i, chunk in enumerate(chunks)
        ],
        "session_id or tool",
    )
    return made


def derived_request_ids(request_id: str | None, count: int) -> list[str]:
    """`count` ids: `request_id` (a fresh one if None) and UUIDs that follow from it, so that a repeated call repeats
    all of them. Raises InvalidArgument unless it is a UUID.
    """
    try:
        first = uuid.UUID(requests.fresh_request_id() if request_id is None else request_id)
    except (ValueError, AttributeError, TypeError) as error:
        raise _wrong("request_id", "is not a UUID; str(uuid.uuid4()) makes one") from error
    return [str(first if i == 0 else uuid.uuid5(first, f"chunk {i}")) for i in range(count)]


def review_requests(core: Core, decisions: Iterable[Mapping[str, Any]]) -> list[spb.ReviewRequest]:
    """Requests of at most DECISIONS_MAX decisions, each with a fresh request_id. Raises InvalidArgument naming the
    place, also for a memory that is named twice.
    """
    built = [decision(record, f"decisions[{i}]") for i, record in enumerate(_listed(decisions, "decisions"))]
    named: dict[str, int] = {}
    for i, one in enumerate(built):
        first = named.setdefault(one.memory_id, i)
        if first != i:
            raise _wrong(f"decisions[{i}].memory_id", f"was decided about in decisions[{first}] already")
    return [
        spb.ReviewRequest(
            owners=core.owners, decisions=built[i : i + DECISIONS_MAX], request_id=requests.fresh_request_id()
        )
        for i in range(0, len(built), DECISIONS_MAX)
    ]


def decision(record: Any, where: str) -> spb.ReviewDecision:
    """A ReviewDecision of a record (see `MemoryClient.review`). Raises InvalidArgument naming the place."""
    _check_keys(record, DECISION_KEYS, where)
    action = _text(record.get("action"), f"{where}.action")
    built: spb.ReviewDecision = requests.encodable(
        lambda: spb.ReviewDecision(
            memory_id=_text(_either(record, "memory_id", "id", where), f"{where}.memory_id"),
            action=requests.enum_value(spb.ReviewAction, "REVIEW_ACTION", action, f"{where}.action"),  # type: ignore[arg-type]
            content=_text(record.get("content") or "", f"{where}.content"),
            reason=_text(record.get("reason") or "", f"{where}.reason"),
        ),
        where,
    )
    return built


def conflict_pages(core: Core, scopes: Iterable[str] | None, page_size: int) -> Pages[Conflict]:
    """The pages of a ListConflicts."""
    request = spb.ListConflictsRequest(owners=core.owners, scopes=requests.scopes(scopes), page_size=page_size)
    return Pages(Call(rpc.MemoryServiceStub, "ListConflicts", request, page_of("conflicts", Conflict)))


def resolve_request(core: Core, memory_id: str, resolution: str, reason: str) -> spb.ResolveConflictRequest:
    """A ResolveConflictRequest with a fresh request_id."""
    number = requests.enum_value(spb.ConflictResolution, "CONFLICT_RESOLUTION", resolution, "resolution")
    request: spb.ResolveConflictRequest = requests.encodable(
        lambda: spb.ResolveConflictRequest(
            owners=core.owners,
            memory_id=memory_id,
            resolution=number,  # type: ignore[arg-type]
            reason=reason,
            request_id=requests.fresh_request_id(),
        ),
        "the resolution",
    )
    return request


def settled(core: Core, messages: Iterable[pb.Memory]) -> list[Memory]:
    """Memories that a review or a resolution changed: the cache follows at once."""
    memories = []
    for changed in messages:
        core.updated(changed)
        memories.append(Memory(changed))
    return memories


def _check_keys(record: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(record, Mapping):
        raise _wrong(where, f"must be an object with {', '.join(known)}, not {type(record).__name__}")
    for key in record:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
            raise InvalidArgument(
                f"{where} has no key {_shown(key)}; {hint}", field_violations=[(f"{where}.{key}", "unknown")]
            )


def _either(record: Mapping[str, Any], name: str, alias: str, where: str) -> Any:
    """The value of a key that goes by two names; None when neither is there."""
    value, other = record.get(name), record.get(alias)
    if value is not None and other is not None and value != other:
        raise _wrong(f"{where}.{alias}", f"says something else than {name!r}, which means the same; give one of them")
    return other if value is None else value


def _listed(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise _wrong(where, f"must be a list, not {type(value).__name__}")
    return list(value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(where, "is missing" if value is None else f"must be a text, not {type(value).__name__}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _wrong(where: str, what: str) -> InvalidArgument:
    return InvalidArgument(f"{where} {what}", field_violations=[(where, what)])
