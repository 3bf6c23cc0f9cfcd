"""What all resources share: retries with one request_id, limits of time, names, signatures, and how a client closes."""

from __future__ import annotations

import inspect
import socket
import typing
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

import memsvc_client
from memsvc_client import ClientClosed, InvalidArgument, MemoryClient, Timeout, Unavailable, events, facts, skills
from memsvc_client._proto import admin_service_pb2 as apb
from memsvc_client._proto import admin_service_pb2_grpc as admin_rpc
from memsvc_client._proto import event_service_pb2 as epb
from memsvc_client._proto import fact_service_pb2 as fpb
from memsvc_client._proto import fact_service_pb2_grpc as fact_rpc
from memsvc_client._proto import memory_pb2 as pb
from memsvc_client._proto import memory_service_pb2 as spb
from memsvc_client._proto import skill_service_pb2 as kpb
from memsvc_client.operations import AsyncResource, Call, Pages, Resource

NAMES = ("Facts", "Events", "Skills", "Permanent", "Lifecycle")
CALLS = {
    "Facts": {"put", "get", "get_many", "list", "history", "delete", "match"},
    "Events": {"record", "query", "chain"},
    "Skills": {
        "push",
        "get",
        "list",
        "versions",
        "history",
        "rollback",
        "match",
        "record_run",
        "propose",
        "decide",
    },
    "Permanent": {"list", "propose", "decide", "put", "remove", "history"},
    "Lifecycle": {"plan", "run"},
}


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


# -- both kinds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_both_kinds_have_the_same_calls_arguments_and_results(name):
    one, two = getattr(memsvc_client, name), getattr(memsvc_client, f"Async{name}")
    assert issubclass(one, Resource)
    assert issubclass(two, AsyncResource)
    assert public(one) == public(two) == CALLS[name]
    for call in CALLS[name]:
        ours, theirs = getattr(one, call), getattr(two, call)
        assert inspect.getdoc(ours)
        assert inspect.getdoc(ours) == inspect.getdoc(theirs)
        signature = inspect.signature(ours)
        assert next(iter(signature.parameters)) == "self"
        assert signature.parameters == inspect.signature(theirs).parameters
        assert call in (ours.__name__, "history")
        returns = typing.get_type_hints(ours)["return"]
        assert returns == signature.return_annotation
        if typing.get_origin(returns) is Iterator:
            assert typing.get_type_hints(theirs)["return"] == AsyncIterator[typing.get_args(returns)[0]]
            assert not inspect.iscoroutinefunction(theirs)
        else:
            assert typing.get_type_hints(theirs)["return"] == returns
            assert inspect.iscoroutinefunction(theirs)


def test_names_are_checked_at_the_call_and_the_nearest_is_named(open_client):
    nobody = open_client("127.0.0.1:1", user_id="u", write_timeout_s=0.2)
    for call, hint in (
        (lambda: nobody.events.query("x", topk=1), "query.. has no argument 'topk'; did you mean 'top_k'"),
        (lambda: nobody.skills.match("x", topk=1), "did you mean 'top_k'"),
        (lambda: nobody.facts.match(querry="x"), "did you mean 'query'"),
        (lambda: nobody.facts.match("x", limit=1), "has no argument 'top_k'"),
        (lambda: nobody.facts.match("x", text="y"), "'text' and 'query', which mean the same"),
        (lambda: nobody.skills.match("x", top_k=1, limit=2), "'limit' and 'top_k', which mean the same"),
        (lambda: nobody.facts.put("k", 1, if_versoin=1), "if_versoin"),
        (lambda: nobody.skills.decide("x", True), "positional"),
    ):
        with pytest.raises(TypeError, match=hint):
            call()
    for call in (
        lambda: nobody.facts.put("k", 1, scope="team"),
        lambda: nobody.facts.list(scopes=["users"]),
        lambda: nobody.facts.list(scopes="user"),
        lambda: nobody.facts.list("\ud800"),
        lambda: nobody.events.query("\ud800"),
        lambda: nobody.events.record("x" * 3, event_type="\ud800"),
        lambda: nobody.skills.get("\ud800"),
        lambda: nobody.skills.push("a\n\ud800"),
        lambda: nobody.permanent.put("\ud800", kind="safety", reason="r"),
        lambda: nobody.facts.get(7),
        lambda: nobody.facts.put("k", 1, if_version="1"),
    ):
        with pytest.raises(InvalidArgument):
            call()


# -- retries and limits ------------------------------------------------------------------------------------------


class Failing(fact_rpc.FactServiceServicer, admin_rpc.AdminServiceServicer):
    """Is unavailable until it was asked `failures` times; keeps what it was asked."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked: list[Any] = []

    def _take(self, request: Any, context: grpc.ServicerContext) -> None:
        self.asked.append(request)
        if len(self.asked) <= self.failures:
            context.abort(grpc.StatusCode.UNAVAILABLE, "restarting")

    def Put(self, request, context):
        self._take(request, context)
        return fpb.FactServicePutResponse(fact=fpb.Fact(key=request.key, version=1))

    def List(self, request, context):
        self._take(request, context)
        return fpb.FactServiceListResponse()

    def RunLifecycle(self, request, context):
        self._take(request, context)
        return apb.RunLifecycleResponse()


@pytest.fixture
def failing() -> Iterator[tuple[Failing, str]]:
    servicer = Failing(2)
    server = grpc.server(ThreadPoolExecutor(4))
    fact_rpc.add_FactServiceServicer_to_server(servicer, server)
    admin_rpc.add_AdminServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield servicer, f"127.0.0.1:{port}"
    server.stop(None).wait()


def test_a_mutation_is_retried_with_its_request_id(failing, open_client):
    servicer, target = failing
    assert open_client(target, user_id="u").facts.put("k", 1).version == 1
    assert len(servicer.asked) == 3
    assert len({request.request_id for request in servicer.asked}) == 1
    assert servicer.asked[0].request_id


def test_reads_and_a_lifecycle_run_are_tried_once(failing, open_client):
    servicer, target = failing
    mem = open_client(target, user_id="u")
    with pytest.raises(Unavailable):
        list(mem.facts.list())
    with pytest.raises(Unavailable):
        mem.lifecycle.run()
    assert len(servicer.asked) == 2
    mem.lifecycle.run(all_owners=True)
    assert not servicer.asked[2].HasField("owners")


def test_timeout_s_bounds_a_read_of_a_frozen_server(open_client):
    with socket.socket() as frozen:
        frozen.bind(("127.0.0.1", 0))
        frozen.listen()
        mem = open_client(f"127.0.0.1:{frozen.getsockname()[1]}", user_id="u")
        for call in (
            lambda: mem.facts.get("k", timeout_s=0.05),
            lambda: list(mem.facts.list(timeout_s=0.05)),
            lambda: list(mem.events.query("x", timeout_s=0.05)),
            lambda: mem.skills.match("x", timeout_s=0.05),
            lambda: mem.permanent.list(timeout_s=0.05),
            lambda: mem.lifecycle.plan(timeout_s=0.05),
        ):
            with pytest.raises(Timeout):
                call()


def test_a_closed_client_refuses(server, open_client):
    mem = open_client(server, user_id="u")
    assert mem.facts.get("k") is None
    mem.close()
    for call in (
        lambda: mem.facts.get("k"),
        lambda: mem.facts.put("k", 1),
        lambda: list(mem.skills.list()),
        lambda: mem.permanent.list(),
    ):
        with pytest.raises(ClientClosed):
            call()


# -- pages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "expected", "asked"),
    [(None, [0, 1, 2, 3, 4], 3), (5, [0, 1, 2, 3, 4], 3), (4, [0, 1, 2, 3], 2), (3, [0, 1, 2], 2), (1, [0], 1)],
)
def test_pages_are_asked_for_until_the_limit(limit, expected, asked):
    rows = [[0, 1], [2, 3], [4]]
    request = fpb.FactServiceListRequest()
    pages: Pages[int] = Pages(Call(object, "List", request, lambda page: page), limit)
    seen: list[int] = []
    count = 0
    while pages.next is not None:
        at = int(pages.next.request.page_token or 0)
        count += 1
        seen += pages.take((rows[at], str(at + 1) if at + 1 < len(rows) else ""))
    assert (seen, count) == (expected, asked)


# -- after a mutation --------------------------------------------------------------------------------------------


def test_what_was_stored_is_demanded_of_the_next_recall():
    at = pb.NamespaceSequence(namespace=pb.Namespace(scope=pb.SCOPE_USER, owner="u"), sequence=7)
    made = spb.WriteResult(memory_id="mem_1", outcome=spb.WRITE_OUTCOME_CREATED, at=at, version=1)
    for build, response in (
        (lambda core: facts.put(core, "k", 1), fpb.FactServicePutResponse(at=at)),
        (lambda core: facts.delete(core, "k"), fpb.FactServiceDeleteResponse(at=at)),
        (lambda core: events.record(core, "words", event_type="error"), epb.EventServiceRecordResponse(result=made)),
        (lambda core: skills.record_run(core, "x", "success"), kpb.SkillServiceRecordRunResponse(result=made)),
    ):
        with MemoryClient("127.0.0.1:1", user_id="u") as client:
            core = client._core
            call = build(core)
            assert not core.fence(core.prepare("x", {})).min_sequences
            call.read(response)
            assert list(core.fence(core.prepare("x", {})).min_sequences) == [at]
            known = [hit.memory.event.event_type for hit in core.recent.match("words", {}, 0.0)]
            assert known == (["error"] if call.rpc == "Record" else [])
