"""The block of memories for a prompt: its request, its result, and what stands in for it without a server.

Purpose: both clients and their sessions ask for blocks with the same options and fall back the same way: to the last
block of the same request (for a session, of that session), then to an empty one. No I/O.

Threading: thread-safe.

Rejected: a block made locally from the recent memories (the budget is counted with the server's tokenizer); cutting
what was forgotten out of a stored block's text (its form is the server's; such a block is not used at all).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from . import requests
from ._proto import context_pb2 as cpb
from ._proto import context_service_pb2 as csb
from ._proto import memory_pb2 as pb
from .core import Core
from .errors import CALLERS_FAULT, MemsvcClientError, cause_of
from .requests import enum_name
from .views import View

CONTEXT_NAMES = (
    *requests.FILTER_NAMES,
    "token_budget",
    "sections",
    "format",
    "order",
    "max_memories",
    "scopes",
    "min_score",
    "latency_budget_ms",
)
BUDGET_DEFAULT = 1024  # of the contract


class ContextLine(View[cpb.ContextLine]):
    """One line of a block."""

    __slots__ = ()
    NAMES = ("section", "text", "memory_id", "score")

    @property
    def section(self) -> str:
        """permanent, preferences, facts, skills, events or session."""
        return enum_name(cpb.ContextSection, "CONTEXT_SECTION", self._pb.section)

    @property
    def text(self) -> str:
        """The text as it stands in the block."""
        return self._pb.text

    @property
    def memory_id(self) -> str:
        """The memory that it cites; "" for a session's state."""
        return self._pb.memory_id

    @property
    def score(self) -> float:
        """Score of the recall; 0 for what was not recalled."""
        return self._pb.score


class Context(View[cpb.Context]):
    """A block ready for a prompt; `str(block)` is its text. `source` says where it is from: "server", "cache" or
    "none"; `degraded` what is missing, as in a Recall, and RECALL_DEGRADED when the server's recall left something out.
    """

    __slots__ = ("degraded", "latency_ms", "source")
    NAMES = (
        "text",
        "messages",
        "token_count",
        "lines",
        "left_out_count",
        "source",
        "degraded",
        "latency_ms",
    )

    def __init__(self, message: cpb.Context, source: str, degraded: Sequence[str], latency_ms: float) -> None:
        super().__init__(message)
        self.source = source
        self.degraded = [*degraded, *(["RECALL_DEGRADED"] if message.degraded else [])]
        self.latency_ms = latency_ms

    @property
    def text(self) -> str:
        """The block in the form that was asked for; "" when there is none."""
        return self._pb.text

    @property
    def messages(self) -> list[dict[str, str]]:
        """Chat messages (role, content); for format "messages" only."""
        return [{"role": message.role, "content": message.content} for message in self._pb.messages]

    @property
    def token_count(self) -> int:
        """Tokens of `text`, counted by the server's tokenizer."""
        return self._pb.token_count

    @property
    def lines(self) -> list[ContextLine]:
        """Its lines in order."""
        return [ContextLine(line) for line in self._pb.lines]

    @property
    def memory_ids(self) -> list[str]:
        """The memories that it cites, in order."""
        return [line.memory_id for line in self._pb.lines if line.memory_id]

    @property
    def left_out_count(self) -> int:
        """Memories that fitted the query and not the budget."""
        return self._pb.left_out_count

    def __str__(self) -> str:
        return self._pb.text

    def __repr__(self) -> str:
        return f"Context({self.token_count} tokens from {self.source}, degraded={self.degraded})"


class PreparedContext:
    """A block on its way: what is asked for, the key of what may stand in for it, and when it was asked."""

    __slots__ = ("key", "options", "query", "request", "started_s", "token_budget")

    def __init__(self, request: csb.AssembleContextRequest, key: bytes, started_s: float) -> None:
        self.request = request
        self.query = request.query
        self.options = request.options
        self.key = key
        self.started_s = started_s
        self.token_budget = request.options.token_budget or BUDGET_DEFAULT


class Contexts:
    """Requests for blocks, and the last answers; at most `entries` of them."""

    def __init__(self, core: Core, entries: int) -> None:
        self._core = core
        self._entries = entries
        self._lock = threading.Lock()
        self._blocks: OrderedDict[bytes, cpb.Context] = OrderedDict()

    def prepare(
        self, query: str, options: Mapping[str, Any], session: pb.Owners | None = None, call: str = "context"
    ) -> PreparedContext:
        """A block of the client's owners, or of a session. Raises TypeError and InvalidArgument."""
        requests.check_names(call, options, CONTEXT_NAMES)
        request: csb.AssembleContextRequest = requests.encodable(
            lambda: csb.AssembleContextRequest(
                owners=self._core.owners if session is None else session, query=query, options=context_options(options)
            ),
            "the context",
        )
        similar = csb.AssembleContextRequest()
        similar.CopyFrom(request)
        similar.options.ClearField("latency_budget")
        if session is not None:  # its last block will do, whatever it was asked about, if it fits the budget
            similar.ClearField("query")
            similar.options.ClearField("token_budget")
        key = requests.cache_key(similar)
        return PreparedContext(request, key, self._core.now_s())

    def answered(self, prepared: PreparedContext, block: cpb.Context, degraded: Sequence[str] = ()) -> Context:
        """The server's block."""
        self._core.breaker.succeeded()
        with self._lock:
            self._blocks[prepared.key] = block
            self._blocks.move_to_end(prepared.key)
            if len(self._blocks) > self._entries:
                self._blocks.popitem(last=False)
        return Context(block, "server", degraded, self._elapsed_ms(prepared))

    def not_answered(self, prepared: PreparedContext, error: MemsvcClientError) -> Context:
        """A fallback for the service's trouble; raises the caller's own faults."""
        if isinstance(error, CALLERS_FAULT):
            self._core.breaker.succeeded()
            raise error
        self._core.note_trouble(error)
        return self.fallback(prepared, cause_of(error))

    def fallback(self, prepared: PreparedContext, cause: str) -> Context:
        """The last block that may stand in, or an empty one. One that cites what was forgotten or replaced since is
        not used, nor is one that is larger than what is asked for.
        """
        with self._lock:
            block = self._blocks.get(prepared.key)
        if block is None or block.token_count > prepared.token_budget or self._is_outdated(block):
            return Context(cpb.Context(), "none", [cause], self._elapsed_ms(prepared))
        return Context(block, "cache", [cause, "STALE"], self._elapsed_ms(prepared))

    def _is_outdated(self, block: cpb.Context) -> bool:
        return any(line.memory_id and self._core.recent.is_gone(line.memory_id) for line in block.lines)

    def _elapsed_ms(self, prepared: PreparedContext) -> float:
        return (self._core.now_s() - prepared.started_s) * 1000


def context_options(options: Mapping[str, Any]) -> cpb.ContextOptions:
    """ContextOptions of keyword arguments."""
    built = cpb.ContextOptions(
        token_budget=options.get("token_budget") or 0,
        sections=[
            requests.enum_value(cpb.ContextSection, "CONTEXT_SECTION", name, "sections")  # type: ignore[misc]
            for name in requests.texts(options.get("sections"), "sections")
        ],
        max_memories=options.get("max_memories") or 0,
        scopes=requests.scopes(options.get("scopes")),
    )
    for name, kind, prefix in (
        ("format", cpb.ContextFormat, "CONTEXT_FORMAT"),
        ("order", cpb.ContextOrder, "CONTEXT_ORDER"),
    ):
        if options.get(name) is not None:
            setattr(built, name, requests.enum_value(kind, prefix, options[name], name))
    if any(options.get(name) is not None for name in requests.FILTER_NAMES):
        built.filter.SetInParent()
        requests.condition(options, built.filter)
    if options.get("min_score") is not None:
        built.min_score = options["min_score"]
    if options.get("latency_budget_ms") is not None:
        built.latency_budget.CopyFrom(requests.duration(options["latency_budget_ms"] / 1000))
    return built
