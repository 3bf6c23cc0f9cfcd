"""Tokens that are handed on: they narrow, say through whose hands they came, and end with their parents."""

from __future__ import annotations

import functools
import itertools

import grpc
import pytest
from refusals import UNAUTHENTICATED, header, refused

from memsvc.errors import PermissionDenied
from memsvc.model import Layer, Scope
from memsvc.service.auth.exchange import DEPTH_MAX, narrowed
from memsvc.service.auth.principal import Right
from memsvc.service.auth.rules import Kind
from memsvc.service.auth.tokens import Wanted
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import token_service_pb2 as tpb
from memsvc.v1 import token_service_pb2_grpc as trpc


@pytest.fixture(scope="module")
def issue(service):
    """Issues a token: issue(user_ids=..., grants=...) -> the token."""
    return lambda **fields: service.tokens.issue(Wanted(**fields), "local")[0]


@pytest.fixture(scope="module")
def exchange(channel):
    """exchange(token, **fields of the request) -> the answer."""
    stub = trpc.TokenServiceStub(channel)

    def ask(token, ttl_s=0, **fields):
        request = tpb.TokenServiceExchangeRequest(**fields)
        if ttl_s:
            request.ttl.FromSeconds(ttl_s)
        return stub.Exchange(request, metadata=header(token) if token else None)

    return ask


def write(stub, token, user, **fields):
    request = spb.WriteRequest(owners=pb.Owners(user_id=user), memory=spb.MemoryDraft(content="Alice likes tea."))
    return stub.Write(request, metadata=header(token))


def read(stub, token, user):
    return stub.List(spb.ListRequest(owners=pb.Owners(user_id=user), scopes=[pb.SCOPE_USER]), metadata=header(token))


def test_without_fields_it_is_the_same_for_an_hour(stub, issue, exchange, user):
    parent = issue(agent_id="a", user_ids=(user,), name="parent")
    answer = exchange(parent, name="child")
    token = answer.token
    assert (token.agent_id, list(token.user_ids), token.name) == ("a", [user], "child")
    assert token.expire_time.seconds - token.issue_time.seconds == 3600
    write(stub, answer.secret, user)
    assert len(read(stub, answer.secret, user).memories) == 1


def test_it_has_what_was_asked_for_and_no_more(stub, issue, exchange, user):
    parent = issue(user_ids=(user, "v"), project_ids=("p",))
    child = exchange(parent, user_ids=[user], grants=["user:semantic=read"], ttl_s=60).secret
    semantic = spb.ListRequest(owners=pb.Owners(user_id=user), scopes=[pb.SCOPE_USER])
    semantic.filter.layers.append(pb.LAYER_SEMANTIC)
    stub.List(semantic, metadata=header(child))
    assert refused(lambda: read(stub, child, user))[1]["layer"] == "EPISODIC"
    assert refused(lambda: write(stub, child, user))[1]["right"] == "write"
    assert refused(lambda: read(stub, child, "v"))[1] == {"owner": "user_id", "owner_id": "v"}


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        ({"user_ids": ["w"]}, {"owner": "user_id", "owner_id": "w"}),
        ({"user_ids": ["*"]}, {"owner": "user_id", "owner_id": "*"}),
        ({"project_ids": ["q"]}, {"owner": "project_id", "owner_id": "q"}),
        ({"grants": ["user=approve"]}, {"right": "approve", "scope": "USER", "layer": "WORKING"}),
        ({"grants": ["user=read,write"]}, {"right": "write", "scope": "USER", "layer": "WORKING"}),
        ({"grants": ["user:permanent=maintain"]}, {"right": "maintain", "scope": "USER", "layer": "PERMANENT"}),
        ({"grants": ["project=read"]}, {"right": "read", "scope": "PROJECT", "layer": "WORKING"}),
        ({"grants": ["global=read"]}, {"right": "read", "scope": "GLOBAL", "layer": "WORKING"}),
        ({"ttl_s": 3600}, {"right": "ttl"}),
        ({"reads_per_minute": 31}, {"right": "reads_per_minute"}),
        ({"writes_per_minute": 21}, {"right": "writes_per_minute"}),
    ],
)
def test_wider_is_refused_by_name(issue, exchange, asked, missing):
    grants = ("user=read", "user:semantic=write", "global=none")
    parent = issue(
        user_ids=("v",),
        project_ids=("p",),
        grants=grants,
        ttl_us=600_000_000,
        reads_per_minute=30,
        writes_per_minute=20,
    )
    reason, metadata = refused(lambda: exchange(parent, **asked))
    assert (reason, metadata) == ("GRANT_MISSING", missing)


def test_a_read_only_parents_child_only_reads(stub, issue, exchange, user):
    parent = issue(user_ids=(user,), read_only=True)
    answer = exchange(parent)
    assert answer.token.read_only
    read(stub, answer.secret, user)
    refused(lambda: write(stub, answer.secret, user))
    assert refused(lambda: exchange(parent, grants=["user=write"]))[1]["right"] == "write"


def test_global_stays_closed_when_the_parent_may_not_read_it(service, issue, exchange):
    """Grants that say nothing of GLOBAL would open it."""
    parent = issue(user_ids=("v",), grants=("user=read", "global=none"))
    for child in (exchange(parent), exchange(parent, grants=["user=read"])):
        caller = service.tokens.check(child.secret).caller
        caller.check_right(Right.READ, Scope.USER, Layer.SEMANTIC)
        with pytest.raises(Exception, match="does not grant read in scope GLOBAL"):
            caller.check_right(Right.READ, Scope.GLOBAL, Layer.SEMANTIC)


def test_admin_is_never_handed_on(issue, exchange):
    assert not exchange(issue(admin=True)).token.admin


def test_the_local_caller_has_nothing_to_exchange(exchange):
    assert refused(lambda: exchange(""), UNAUTHENTICATED)[0] == "TOKEN_MISSING"


def test_calls_count_against_every_token_of_the_chain(stub, issue, exchange, user):
    parent = issue(user_ids=(user,), reads_per_minute=5)
    child = exchange(parent, reads_per_minute=3)
    assert child.token.reads_per_minute == 3
    assert exchange(child.secret).token.reads_per_minute == 3
    for _ in range(3):
        read(stub, child.secret, user)
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused(lambda: read(stub, child.secret, user), exhausted)[0] == "RATE_LIMITED"
    other = exchange(parent).secret
    for _ in range(2):
        read(stub, other, user)
    for secret in (other, parent):
        assert refused(lambda secret=secret: read(stub, secret, user), exhausted)[0] == "RATE_LIMITED"


def test_the_chain_is_in_token_and_actor_and_has_an_end(service, stub, issue, exchange, user):
    secret = issue(agent_id="a", user_ids=(user,))
    ids = [service.tokens.check(secret).token_id]
    for step in range(DEPTH_MAX):
        answer = exchange(secret, actor_agent_id=f"helper-{step}")
        secret = answer.secret
        ids.insert(0, answer.token.token_id)
        assert answer.token.agent_id == "a", "it acts for the first agent still"
        chain = [(one.actor_agent_id, one.parent_token_id) for one in answer.token.delegations]
        assert chain == [(f"helper-{step - at}", ids[at + 1]) for at in range(step + 1)]
    assert refused(lambda: exchange(secret), grpc.StatusCode.INVALID_ARGUMENT)[0] == "LIMIT_EXCEEDED"
    memory_id = write(stub, secret, user).result.memory_id
    request = spb.HistoryRequest(owners=pb.Owners(user_id=user), memory_id=memory_id)
    assert [one.actor for one in stub.History(request).changes] == ["<".join(f"token:{one}" for one in ids)]


@pytest.mark.parametrize("at", range(3))
def test_revoking_any_of_the_chain_ends_what_was_made_from_it(service, stub, admin, issue, exchange, user, at):
    secrets = [issue(user_ids=(user,))]
    for _ in range(2):
        secrets.append(exchange(secrets[-1]).secret)
    for secret in secrets:
        read(stub, secret, user)  # all are in the cache of checked tokens
    revoked = service.tokens.check(secrets[at]).token_id
    admin.RevokeToken(apb.RevokeTokenRequest(token_id=revoked))
    for secret in secrets[:at]:
        read(stub, secret, user)
    for secret in secrets[at:]:
        assert refused(lambda secret=secret: read(stub, secret, user), UNAUTHENTICATED) == (
            "TOKEN_REVOKED",
            {"token_id": revoked},
        )
        refused(lambda secret=secret: exchange(secret), UNAUTHENTICATED)


def test_an_open_watch_ends_with_the_parent(service, stub, admin, issue, exchange, user):
    parent = issue(user_ids=(user,))
    child = exchange(parent).secret
    request = spb.WatchRequest(owners=pb.Owners(user_id=user), scopes=[pb.SCOPE_USER])
    stream = stub.Watch(request, metadata=header(child), timeout=30)
    assert next(stream).started_at
    admin.RevokeToken(apb.RevokeTokenRequest(token_id=service.tokens.check(parent).token_id))
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert caught.value.code() == UNAUTHENTICATED


def test_a_child_is_never_wider_whatever_is_asked_for(service, issue):
    grants = ("session=read", "user=read,write", "user:semantic=approve", "project:procedural=write", "global=none")
    parent = service.tokens.check(issue(user_ids=("v",), grants=grants)).caller
    made = 0
    for scope, layer, right in itertools.product(Scope, (None, *Layer), Right):
        where = scope.name.lower() + ("" if layer is None else f":{layer.name.lower()}")
        within = all((right, scope, one) in parent._allowed for one in (Layer if layer is None else (layer,)))
        asked = functools.partial(
            narrowed,
            *(parent, dict.fromkeys(Kind, 0), 10**9),
            name="",
            actor_agent_id="",
            user_ids=(),
            project_ids=(),
            grants=[f"{where}={right}"],
            read_only=False,
            per_minute=dict.fromkeys(Kind, 0),
            ttl_us=None,
        )
        if not within:
            with pytest.raises(PermissionDenied):
                asked()
            continue
        made += 1
        child = service.tokens.check(service.tokens.issue(asked(), "local")[0]).caller
        assert child._allowed
        assert child._allowed <= parent._allowed
    assert made > 10
