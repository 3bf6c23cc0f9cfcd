"""The MemoryService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own.

Threading: methods run on the server's threads; Watch has a pool of its own, so that followers never starve calls.

Rejected: one servicer method per file (they are ten lines each and share their imports).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import grpc
import msgspec

from memsvc.errors import InvalidArgument, MemsvcError, ResourceExhausted, Unavailable
from memsvc.memory import drafts as rules
from memsvc.memory.feed import ChangeFeed
from memsvc.memory.forgetting import Forgetting
from memsvc.memory.ingest import Ingestor
from memsvc.memory.listing import page_size
from memsvc.memory.memories import Memories, Patch
from memsvc.memory.owners import check, namespaces_for
from memsvc.memory.recall import TOP_K_DEFAULT, Recaller, RecallRequest, Weights
from memsvc.memory.settling import Settling
from memsvc.memory.transactions import Mutation
from memsvc.memory.waiting import Viewer
from memsvc.model import NEVER_US, NO_FILTER, Memory, MemoryType, Scope
from memsvc.service import convert, status
from memsvc.service.auth.guard import Gate, caller_of
from memsvc.service.calls import answers, budget_s, mutation, named, reached, still_wanted, viewer, viewer_of
from memsvc.service.learning_servicer import LearningCalls
from memsvc.v1 import memory_service_pb2 as spb

KEEP_ALIVE_S = 15.0
FORGET_MAX_IDS = 1000
RECENT_MAX = 100


class MemoryServicer(LearningCalls):
    """See the module. `remembered(memories, now_us)` gives them with their uses, and how well each is remembered."""

    gate: Gate  # set by the server

    def __init__(
        self,
        memories: Memories,
        forgetting: Forgetting,
        ingestor: Ingestor,
        settling: Settling,
        recaller: Recaller,
        feed: ChangeFeed,
        *,
        remembered: Callable[[Sequence[Memory], int], list[tuple[Memory, float]]],
        clock_us: Callable[[], int],
        latency_budget_s: float,
        content_max_bytes: int,
        watch_streams_max: int,
    ) -> None:
        self._memories = memories
        self._forgetting = forgetting
        self._ingestor = ingestor
        self._settling = settling
        self._recaller = recaller
        self._feed = feed
        self._remembered = remembered
        self._clock_us = clock_us
        self._latency_budget_s = latency_budget_s
        self._content_max_bytes = content_max_bytes
        self._watch_streams_max = watch_streams_max
        self._watching = 0
        self._watch_lock = threading.Lock()
        self._stopping = threading.Event()
        self._encoded = convert.EncodedMemories()
        self.write_count = 0

    def stop(self) -> None:
        """Ends the watch streams."""
        self._stopping.set()
        self._feed.wake_all()

    def forget_encoded(self) -> None:
        """Empties the cache of encoded memories."""
        self._encoded.forget()

    # -- mutations -----------------------------------------------------------------------------------------------

    def _mutation(self, request: Any) -> Mutation:
        """See `calls.mutation`; counts the mutation."""
        read = mutation(request)
        self.write_count += 1
        return read

    @answers
    def Write(self, request: spb.WriteRequest, context: grpc.ServicerContext) -> spb.WriteResponse:
        """Stores one memory."""
        drafts = [convert.draft(request.memory, "memory")]
        mutation = self._mutation(request)
        owner_ids = convert.owners(request.owners)
        results = self._memories.write(owner_ids, drafts, mutation, path="memory", still_wanted=still_wanted(context))
        return spb.WriteResponse(result=convert.write_result(results[0]))

    @answers
    def BatchWrite(self, request: spb.BatchWriteRequest, context: grpc.ServicerContext) -> spb.BatchWriteResponse:
        """Stores many memories in one transaction."""
        drafts = [convert.draft(m, f"memories[{i}]") for i, m in enumerate(request.memories)]
        mutation = self._mutation(request)
        owner_ids = convert.owners(request.owners)
        results = self._memories.write(owner_ids, drafts, mutation, path="memories", still_wanted=still_wanted(context))
        return spb.BatchWriteResponse(results=[convert.write_result(result) for result in results])

    @answers
    def Update(self, request: spb.UpdateRequest, context: grpc.ServicerContext) -> spb.UpdateResponse:
        """Writes a new version with the fields of the mask."""
        rules.check_memory_id(request.memory_id, "memory_id")
        rules.check_length(request.reason, rules.REASON_MAX_CHARS, "reason")
        owner_ids, namespaces = reached(request)
        memory = self._memories.update(
            namespaces,
            owner_ids,
            request.memory_id,
            self._patch(request),
            request.etag,
            request.reason,
            self._mutation(request),
            viewer=viewer(),
        )
        return spb.UpdateResponse(memory=convert.memory_message(memory, self._clock_us()))

    def _patch(self, request: spb.UpdateRequest) -> Patch:
        """Checked values of the masked fields. Raises InvalidArgument for an empty mask and other fields."""
        readers = self._patch_readers(request.patch)
        if not request.update_mask.paths:
            raise InvalidArgument(f"update_mask is empty; name some of: {', '.join(readers)}", field="update_mask")
        fields: dict[str, Any] = {}
        for path in request.update_mask.paths:
            if path not in readers:
                raise InvalidArgument(
                    f"update_mask: {path!r} can't be updated; these can: {', '.join(readers)}", field="update_mask"
                )
            fields.update(readers[path]())
        for field, _ in request.patch.ListFields():
            if field.name not in request.update_mask.paths:
                raise InvalidArgument(f"patch.{field.name} is set but not in update_mask", field=f"patch.{field.name}")
        return Patch(fields=fields)

    def _patch_readers(self, patch: spb.MemoryPatch) -> dict[str, Callable[[], dict[str, Any]]]:
        def content() -> dict[str, Any]:
            rules.check_content(patch.content, self._content_max_bytes, "patch.content")
            return {"content": patch.content}

        def kind() -> dict[str, Any]:
            value = convert.optional_enum(MemoryType, patch.type, "patch.type")
            if value is None:
                raise InvalidArgument("patch.type is not set", field="patch.type")
            return {"type": value}

        def subject() -> dict[str, Any]:
            rules.check_subject(patch.subject, "patch.subject")
            return {"subject": patch.subject}

        def tags() -> dict[str, Any]:
            rules.check_tags(tuple(patch.tags), "patch.tags")
            return {"tags": tuple(patch.tags)}

        def metadata() -> dict[str, Any]:
            value = convert.metadata(patch.metadata)
            rules.check_metadata(value, "patch.metadata")
            return {"metadata": value}

        def unit(name: str) -> Callable[[], dict[str, Any]]:
            def read() -> dict[str, Any]:
                rules.check_unit(getattr(patch, name), f"patch.{name}")
                return {name: getattr(patch, name)}

            return read

        def occur_time() -> dict[str, Any]:
            if not patch.HasField("occur_time"):
                raise InvalidArgument("patch.occur_time is not set", field="patch.occur_time")
            value = convert.time_us(patch.occur_time, "patch.occur_time")
            rules.check_time(value, "patch.occur_time")
            return {"occur_time_us": value}

        def expire_time() -> dict[str, Any]:
            if not patch.HasField("expire_time"):
                return {"expire_time_us": NEVER_US}
            value = convert.time_us(patch.expire_time, "patch.expire_time")
            rules.check_time(value, "patch.expire_time")
            return {"expire_time_us": value}

        return {
            "content": content,
            "type": kind,
            "subject": subject,
            "tags": tags,
            "metadata": metadata,
            "importance": unit("importance"),
            "confidence": unit("confidence"),
            "occur_time": occur_time,
            "expire_time": expire_time,
        }

    @answers
    def Forget(self, request: spb.ForgetRequest, context: grpc.ServicerContext) -> spb.ForgetResponse:
        """Forgets by id, or everything that matches."""
        rules.check_length(request.reason, rules.REASON_MAX_CHARS, "reason")
        result = self._forget_all(request, context) if request.all else self._forget_ids(request)
        return spb.ForgetResponse(
            forgotten_count=result.forgotten_count,
            already_forgotten_ids=result.already_forgotten_ids,
            at=[convert.at_message(name, sequence) for name, sequence in result.at],
        )

    def _forget_ids(self, request: spb.ForgetRequest) -> Any:
        if not request.memory_ids:
            raise InvalidArgument("name memory_ids, or set `all`", field="memory_ids")
        if len(request.memory_ids) > FORGET_MAX_IDS:
            raise InvalidArgument(f"memory_ids has more than {FORGET_MAX_IDS} entries", field="memory_ids")
        if request.HasField("filter") or request.scopes:
            raise InvalidArgument("scopes and filter go with `all`, not with memory_ids", field="filter")
        if request.etag and len(request.memory_ids) != 1:
            raise InvalidArgument("etag goes with exactly one id", field="etag")
        for memory_id in request.memory_ids:
            rules.check_memory_id(memory_id, "memory_ids")
        owner_ids, namespaces = reached(request)
        return self._forgetting.forget(
            namespaces,
            owner_ids,
            list(request.memory_ids),
            request.etag,
            request.reason,
            self._mutation(request),
            viewer=viewer(),
        )

    def _forget_all(self, request: spb.ForgetRequest, context: grpc.ServicerContext) -> Any:
        if request.memory_ids or request.etag:
            raise InvalidArgument("`all` goes with scopes and filter, not with memory_ids or etag", field="memory_ids")
        owner_ids = convert.owners(request.owners)
        check(owner_ids)
        scopes = convert.enums(Scope, request.scopes, "scopes")
        namespaces = namespaces_for(owner_ids, scopes)
        if not scopes:
            namespaces = [name for name in namespaces if name.scope != Scope.GLOBAL]
        return self._forgetting.forget_all(
            namespaces,
            owner_ids,
            convert.condition(request.filter),
            request.reason,
            self._mutation(request),
            still_wanted(context),
        )

    # -- reads ---------------------------------------------------------------------------------------------------

    @answers
    def Recall(self, request: spb.RecallRequest, context: grpc.ServicerContext) -> spb.RecallResponse:
        """Finds what matters for a query."""
        answer = self._recaller.recall(
            RecallRequest(
                namespaces=named(request),
                query=request.query,
                top_k=request.top_k or TOP_K_DEFAULT,
                condition=convert.condition(request.filter) if request.HasField("filter") else NO_FILTER,
                weights=_weights(request.weights) if request.HasField("weights") else _DEFAULT_WEIGHTS,
                include_inactive=request.include_inactive,
                as_of_us=convert.time_us(request.as_of, "as_of") if request.HasField("as_of") else None,
                min_sequences={
                    convert.namespace(m.namespace, "min_sequences.namespace"): m.sequence for m in request.min_sequences
                },
                budget_s=budget_s(context, request, "latency_budget", self._latency_budget_s),
                session_id=request.owners.session_id,
                min_score=request.min_score if request.HasField("min_score") else float("-inf"),
            )
        )
        return self._encoded.recall_response(answer, self._clock_us())

    @answers
    def Get(self, request: spb.GetRequest, context: grpc.ServicerContext) -> spb.GetResponse:
        """Reads one memory."""
        rules.check_memory_id(request.memory_id, "memory_id")
        if request.version < 0:
            raise InvalidArgument("version counts from 1", field="version")
        _, namespaces = reached(request)
        memory = self._memories.get(namespaces, request.memory_id, request.version, viewer())
        now_us = self._clock_us()
        ((memory, retention),) = self._remembered([memory], now_us)
        return spb.GetResponse(memory=convert.memory_message(memory, now_us, retention))

    @answers
    def List(self, request: spb.ListRequest, context: grpc.ServicerContext) -> spb.ListResponse:
        """Lists memories."""
        now_us = self._clock_us()
        page, token = self._memories.list_page(
            named(request),
            convert.condition(request.filter),
            request.include_inactive,
            page_size(request.page_size),
            request.page_token,
            still_wanted(context),
            viewer=viewer(),
        )
        return spb.ListResponse(
            memories=[convert.memory_message(m, now_us, retention) for m, retention in self._remembered(page, now_us)],
            next_page_token=token,
        )

    @answers
    def History(self, request: spb.HistoryRequest, context: grpc.ServicerContext) -> spb.HistoryResponse:
        """All versions of one memory."""
        _, namespaces = reached(request)
        size = page_size(request.page_size)
        events, token = self._memories.history(namespaces, request.memory_id, size, request.page_token, viewer())
        now_us = self._clock_us()
        return spb.HistoryResponse(
            changes=[convert.change_message(event, now_us) for event in events], next_page_token=token
        )

    # -- watch ---------------------------------------------------------------------------------------------------

    def Watch(self, request: spb.WatchRequest, context: grpc.ServicerContext) -> Iterator[spb.WatchResponse]:
        """Streams changes; see the contract."""
        try:
            checked = self.gate.enter("Watch", request, context)
            caller = caller_of(checked)
            with closing(self._watch(request, context, viewer_of(caller))) as answers_of_watch:
                for answer in answers_of_watch:
                    self.gate.check_still(checked)  # a revoked token gets nothing more
                    self.gate.note("Watch", request, answer, caller)
                    yield answer
        except MemsvcError as error:
            status.abort(context, error)

    def _watch(
        self, request: spb.WatchRequest, context: grpc.ServicerContext, who: Viewer
    ) -> Generator[spb.WatchResponse, None, None]:
        if not 0 <= request.recent_count <= RECENT_MAX:
            raise InvalidArgument(f"recent_count must be from 0 to {RECENT_MAX}", field="recent_count")
        namespaces = named(request)
        after = {convert.namespace(a.namespace, "after.namespace"): a.sequence for a in request.after}
        for name in after:
            if name not in namespaces:
                raise InvalidArgument("after names a namespace that the owners don't", field="after.namespace")
        with self._watch_lock:
            if self._watching >= self._watch_streams_max:
                raise ResourceExhausted(
                    f"{self._watch_streams_max} watch streams are open (setting watch_streams_max)",
                    limit=str(self._watch_streams_max),
                )
            self._watching += 1
        try:
            follower = self._feed.follow(namespaces, after)
            context.add_callback(follower.wake)
            try:
                now_us = self._clock_us()
                started = [convert.at_message(name, sequence) for name, sequence in follower.positions.items()]
                recent = self._feed.recent(namespaces, request.recent_count, now_us) if request.recent_count else []
                yield spb.WatchResponse(started_at=started, recent=[convert.memory_message(m, now_us) for m in recent])
                while context.is_active() and not self._stopping.is_set():
                    events = follower.poll(KEEP_ALIVE_S)
                    now_us = self._clock_us()
                    for event in self._memories.shown(events, who):
                        yield spb.WatchResponse(change=convert.change_message(event, now_us))
                    if not events:
                        yield spb.WatchResponse()
                if self._stopping.is_set():
                    raise Unavailable("the server is stopping; resume the watch elsewhere or later")
            finally:
                follower.close()
        finally:
            with self._watch_lock:
                self._watching -= 1


_DEFAULT_WEIGHTS = Weights()
WEIGHT_MAX = 100.0


def _weights(message: spb.RecallWeights) -> Weights:
    given = {}
    for name in ("vector", "lexical", "time", "importance", "neighbour"):
        if message.HasField(name):
            given[name] = getattr(message, name)
            if not 0.0 <= given[name] <= WEIGHT_MAX:
                raise InvalidArgument(f"weights.{name} must be from 0 to {WEIGHT_MAX:g}", field=f"weights.{name}")
    return msgspec.structs.replace(_DEFAULT_WEIGHTS, **given)
