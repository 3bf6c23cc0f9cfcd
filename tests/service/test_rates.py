"""Calls a minute of a token, over a real server: who is refused, with which details, and who is not."""

from __future__ import annotations

import time

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.service.auth.tokens import Wanted
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as arpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc

DEFAULT_WRITES = 3


@pytest.fixture(scope="module")
def limiting(tmp_path_factory):
    """A server on which a token that names no limit may write three times a minute."""
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("limiting"), listen="127.0.0.1:0", token_writes_per_minute=DEFAULT_WRITES
    )
    running = Service(settings)
    try:
        running.start()
        with grpc.insecure_channel(running.server.address, [("grpc.enable_http_proxy", 0)]) as channel:
            yield running, rpc.MemoryServiceStub(channel), arpc.AdminServiceStub(channel)
    finally:
        running.close()


@pytest.fixture
def issue(limiting, fresh_id):
    """Issues a token: issue(reads_per_minute=...) -> metadata of a call, user id."""

    def make(**fields):
        user = fresh_id()
        token, _ = limiting[0].tokens.issue(Wanted(user_ids=(user,), **fields), "local")
        return (("authorization", f"Bearer {token}"),), user

    return make


def details(error):
    """ErrorInfo, QuotaFailure and RetryInfo of a refused call."""
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error.details()
    found = []
    for kind in (error_details_pb2.ErrorInfo, error_details_pb2.QuotaFailure, error_details_pb2.RetryInfo):
        message = kind()
        assert any(detail.Unpack(message) for detail in rpc_status.from_call(error).details)
        found.append(message)
    return found


def list_all(stub, token, user):
    return stub.List(spb.ListRequest(owners=pb.Owners(user_id=user)), metadata=token)


def write(stub, token, user, content="Alice prefers tea."):
    request = spb.WriteRequest(owners=pb.Owners(user_id=user), memory=spb.MemoryDraft(content=content))
    return stub.Write(request, metadata=token)


def refusal(call):
    """The error of a call; None for one that is answered."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    return None


def refused_after(call, count):
    """The error of the call that follows `count` answered ones."""
    for _ in range(count):
        call()
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def test_reads_over_the_tokens_limit_are_refused_until_the_named_wait(limiting, issue):
    _, stub, _ = limiting
    token, user = issue(reads_per_minute=120)
    answered = 0
    while (error := refusal(lambda: list_all(stub, token, user))) is None:
        answered += 1
    assert answered >= 120
    info, quota, retry = details(error)
    assert (info.reason, dict(info.metadata)) == (
        "RATE_LIMITED",
        {"limit": "reads_per_minute", "per_minute": "120"},
    )
    assert "reads_per_minute" in quota.violations[0].description
    wait_us = retry.retry_delay.ToMicroseconds()
    assert 0 < wait_us <= 500_000
    write(stub, token, user)  # a bucket of its own
    time.sleep(wait_us / 1e6)
    list_all(stub, token, user)


def test_writes_have_the_servers_default_and_a_token_may_name_more(limiting, issue):
    _, stub, _ = limiting
    token, user = issue()
    info, _, retry = details(refused_after(lambda: write(stub, token, user), DEFAULT_WRITES))
    assert info.metadata["limit"] == "writes_per_minute"
    assert 0 < retry.retry_delay.ToMicroseconds() <= 60_000_000 // DEFAULT_WRITES
    assert len(list_all(stub, token, user).memories) == 1
    more, its_user = issue(writes_per_minute=1000)
    for _ in range(DEFAULT_WRITES + 1):
        write(stub, more, its_user)


def test_refused_calls_count_a_watch_is_a_read_and_the_local_caller_has_no_limit(limiting, issue):
    _, stub, _ = limiting
    token, user = issue(reads_per_minute=2)
    with pytest.raises(grpc.RpcError) as caught:
        list_all(stub, token, "somebody")
    assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
    watch = stub.Watch(spb.WatchRequest(owners=pb.Owners(user_id=user)), metadata=token)
    next(watch)
    watch.cancel()
    with pytest.raises(grpc.RpcError) as caught:
        next(stub.Watch(spb.WatchRequest(owners=pb.Owners(user_id=user)), metadata=token))
    assert details(caught.value)[0].reason == "RATE_LIMITED"
    for _ in range(DEFAULT_WRITES + 1):
        write(stub, None, user)


def test_limits_are_set_and_shown_by_admin_service(limiting):
    _, _, admin = limiting
    request = apb.CreateTokenRequest(name="n", user_ids=["u"], reads_per_minute=7, writes_per_minute=9)
    token = admin.CreateToken(request).token
    assert (token.reads_per_minute, token.writes_per_minute) == (7, 9)
    shown = admin.GetToken(apb.GetTokenRequest(token_id=token.token_id)).token
    assert (shown.reads_per_minute, shown.writes_per_minute) == (7, 9)
    with pytest.raises(grpc.RpcError) as caught:
        admin.CreateToken(apb.CreateTokenRequest(user_ids=["u"], reads_per_minute=-1))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
