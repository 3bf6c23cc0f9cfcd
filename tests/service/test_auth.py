"""Tokens over a real server: who gets in, what they may do, and what a hostile token gets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import threading
import uuid

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from refusals import DENIED, UNAUTHENTICATED, header, refused

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.service.auth.tokens import Wanted
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as arpc
from memsvc.v1 import context_service_pb2 as csb
from memsvc.v1 import context_service_pb2_grpc as crpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc
from memsvc.v1 import permanent_service_pb2 as ppb
from memsvc.v1 import permanent_service_pb2_grpc as prpc
from memsvc.v1 import session_service_pb2 as sesb
from memsvc.v1 import session_service_pb2_grpc as serpc
from memsvc.v1 import skill_service_pb2 as skb
from memsvc.v1 import skill_service_pb2_grpc as skrpc

HOSTILE_TOKENS = 10_000


def write(stub, token, content="Alice prefers tea.", **owners):
    draft = spb.MemoryDraft(content=content, scope=owners.pop("scope", 0), layer=owners.pop("layer", 0))
    request = spb.WriteRequest(owners=pb.Owners(**owners), memory=draft)
    return stub.Write(request, metadata=token).result.memory_id


def recall(stub, token, scopes=(), layers=(), **owners):
    request = spb.RecallRequest(owners=pb.Owners(**owners), scopes=scopes, query="tea")
    request.filter.layers.extend(layers)
    request.latency_budget.FromSeconds(20)
    return stub.Recall(request, metadata=token)


def contents(stub, user):
    return [m.content for m in stub.List(spb.ListRequest(owners=pb.Owners(user_id=user))).memories]


# -- who gets in -------------------------------------------------------------------------------------------------


def test_without_a_token_loopback_is_the_local_caller(stub, user):
    assert write(stub, None, user_id=user)


def test_a_token_is_its_principal_on_loopback_too(stub, issue, user):
    token = issue(user_ids=(user,))
    write(stub, token, user_id=user)
    assert refused(lambda: write(stub, token, user_id="somebody")) == (
        "GRANT_MISSING",
        {"owner": "user_id", "owner_id": "somebody"},
    )


@pytest.mark.parametrize(
    "metadata",
    [
        (("authorization", "Bearer x"),),
        (("authorization", "Bearer "),),
        (("authorization", ""),),
        (("authorization", "Basic dTpw"),),
        (("authorization", "x"),),
        (("authorization", "Bearer a"), ("authorization", "Bearer b")),
    ],
)
def test_a_bad_header_is_never_the_local_caller(stub, user, metadata):
    assert refused(lambda: write(stub, metadata, user_id=user), UNAUTHENTICATED) == ("TOKEN_INVALID", {})


def test_a_server_that_requires_tokens(tmp_path):
    running = Service(Settings(data_dir=tmp_path, listen="127.0.0.1:0", require_token=True))
    try:
        address = running.start()
        token, _ = running.tokens.issue(Wanted(user_ids=("u",)), "local")
        with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
            stub = rpc.MemoryServiceStub(channel)
            assert refused(lambda: write(stub, None, user_id="u"), UNAUTHENTICATED)[0] == "TOKEN_MISSING"
            watch = stub.Watch(spb.WatchRequest(owners=pb.Owners(user_id="u")))
            assert refused(lambda: next(watch), UNAUTHENTICATED)[0] == "TOKEN_MISSING"
            admin = arpc.AdminServiceStub(channel)
            assert refused(lambda: admin.GetStats(apb.GetStatsRequest()), UNAUTHENTICATED)[0] == "TOKEN_MISSING"
            write(stub, header(token), user_id="u")
            health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
            assert health.status == health_pb2.HealthCheckResponse.SERVING
    finally:
        running.close()


def test_hostile_tokens_get_nothing_and_the_server_lives(service, stub, issue, user):
    good = issue(user_ids=(user,))
    write(stub, good, user_id=user)
    before = contents(stub, user)
    reasons = set()
    for token in hostile(service, good[0][1].removeprefix("Bearer "), random.Random(7)):
        with pytest.raises(grpc.RpcError) as caught:
            write(stub, header(token), user_id=user)
        code = caught.value.code()
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED:  # gRPC's own limit of a header
            continue
        info = error_details_pb2.ErrorInfo()
        rpc_status.from_call(caught.value).details[0].Unpack(info)
        reasons.add((code, info.reason))
        assert token[-40:] not in caught.value.details() or len(token) < 5
    assert reasons == {
        (UNAUTHENTICATED, "TOKEN_INVALID"),
        (UNAUTHENTICATED, "TOKEN_EXPIRED"),
        (UNAUTHENTICATED, "TOKEN_REVOKED"),
        (DENIED, "GRANT_MISSING"),
    }
    assert contents(stub, user) == before
    write(stub, good, "The server still answers.", user_id=user)


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def hostile(service, good, chance):
    """Tokens that must not get in, of every kind, HOSTILE_TOKENS in all."""
    kid, key = service.tokens._keys.signer()
    claims = jwt.decode(good, options={"verify_signature": False})
    head, body, signature = good.split(".")
    public = key.public_key()
    secrets = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.Raw, PublicFormat.Raw),
    ]
    strangers = [Ed25519PrivateKey.generate() for _ in range(4)]
    other_tenant, _ = service.tokens.issue(Wanted(tenant="elsewhere", user_ids=tuple(claims["users"])), "local")
    revoked, record = service.tokens.issue(Wanted(user_ids=tuple(claims["users"])), "local")
    service.tokens.revoke(record.token_id)

    def signed(**changed):
        return jwt.encode({**claims, **changed}, key, "EdDSA", {"kid": kid})

    def hs256():
        said = encoded(json.dumps({"alg": "HS256", "typ": "JWT", "kid": kid}).encode()) + "." + body
        return f"{said}.{encoded(hmac.new(chance.choice(secrets), said.encode(), hashlib.sha256).digest())}"

    def flipped():
        at = chance.randrange(len(good) - 3)
        return good[:at] + chance.choice("ABCDEFGHabcdefgh0123456789-_.") + good[at + 1 :]

    kinds = [
        lambda: jwt.encode(claims, chance.choice(strangers), "EdDSA", {"kid": kid}),
        lambda: jwt.encode(claims, chance.choice(strangers), "EdDSA", {"kid": chance.randbytes(8).hex()}),
        lambda: (
            encoded(json.dumps({"alg": chance.choice(["none", "None", "NONE", ""]), "kid": kid}).encode())
            + f".{body}."
            + chance.choice(["", signature])
        ),
        hs256,
        lambda: good[: chance.randrange(len(good) - 1)],
        flipped,
        lambda: other_tenant,
        lambda: revoked,
        lambda: signed(exp=claims["iat"] - chance.randrange(10**6), nbf=0),
        lambda: signed(nbf=claims["exp"] - 1),
        lambda: signed(jti=f"tok_{uuid.UUID(int=chance.getrandbits(128))}"),
        lambda: signed(iss="other") if chance.random() < 0.5 else signed(aud="other"),
        lambda: good + "A" * (20_000 if chance.random() < 0.02 else 100),  # gRPC takes 0.2 s to refuse a long header
        lambda: chance.randbytes(chance.randrange(1, 60)).decode("latin-1").encode("ascii", "replace").decode(),
        lambda: f"{encoded(chance.randbytes(60))}.{body}.{signature}",
        lambda: f"{head}.{encoded(json.dumps({**claims, 'users': ['*'], 'admin': True}).encode())}.{signature}",
    ]
    for number in range(HOSTILE_TOKENS):
        token = kinds[number % len(kinds)]()
        token = "".join(c if " " < c <= "~" else "?" for c in token)  # what a header can hold
        if token != good:
            yield token


# -- revocation --------------------------------------------------------------------------------------------------


def test_after_revoke_returned_no_call_succeeds(service, stub, admin, issue, user):
    """Callers race with the revocation: whatever began after its answer is refused."""
    for _ in range(10):
        secret = admin.CreateToken(apb.CreateTokenRequest(user_ids=[user]))
        token, revoked, late, codes = header(secret.secret), threading.Event(), [], []
        began = threading.Barrier(5)

        def call(token=token, revoked=revoked, late=late, codes=codes, began=began):
            request = spb.ListRequest(owners=pb.Owners(user_id=user))
            stub.List(request, metadata=token)
            began.wait()
            while True:
                after = revoked.is_set()
                try:
                    stub.List(request, metadata=token)
                except grpc.RpcError as error:
                    codes.append(error.code())
                    return
                if after:
                    late.append(token)
                    return

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        began.wait()
        admin.RevokeToken(apb.RevokeTokenRequest(token_id=secret.token.token_id))
        revoked.set()
        for thread in threads:
            thread.join()
        assert (late, codes) == ([], [UNAUTHENTICATED] * 4)


def test_an_open_watch_ends_with_its_token(stub, admin, user):
    made = admin.CreateToken(apb.CreateTokenRequest(user_ids=[user]))
    watch = stub.Watch(spb.WatchRequest(owners=pb.Owners(user_id=user)), metadata=header(made.secret))
    assert next(watch).started_at
    write(stub, None, user_id=user)
    assert next(answer for answer in watch if answer.HasField("change")).change.after.content
    admin.RevokeToken(apb.RevokeTokenRequest(token_id=made.token.token_id))
    write(stub, None, "Never shown.", user_id=user)
    shown = []
    with pytest.raises(grpc.RpcError) as caught:
        shown.extend(watch)
    assert caught.value.code() == UNAUTHENTICATED
    assert not any(answer.HasField("change") for answer in shown)


# -- what they may do --------------------------------------------------------------------------------------------


def test_rights_by_scope_and_layer(stub, issue, user):
    token = issue(user_ids=(user,), grants=("user:semantic=read,write",))
    mine = write(stub, token, user_id=user)
    assert refused(lambda: write(stub, token, user_id=user, layer=pb.LAYER_EPISODIC)) == (
        "GRANT_MISSING",
        {"right": "write", "scope": "USER", "layer": "EPISODIC"},
    )
    assert refused(lambda: recall(stub, token, user_id=user))[1]["layer"] == "EPISODIC"
    hits = recall(stub, token, scopes=[pb.SCOPE_USER], layers=[pb.LAYER_SEMANTIC], user_id=user).hits
    assert [hit.memory.memory_id for hit in hits] == [mine]
    event = write(stub, None, "There was tea.", user_id=user, layer=pb.LAYER_EPISODIC)
    owners = pb.Owners(user_id=user)
    assert stub.Get(spb.GetRequest(owners=owners, memory_id=mine), metadata=token).memory.content
    for call, request in (
        (stub.Get, spb.GetRequest(owners=owners, memory_id=event)),
        (stub.History, spb.HistoryRequest(owners=owners, memory_id=event)),
        (stub.Forget, spb.ForgetRequest(owners=owners, memory_ids=[mine, event])),
        (stub.Forget, spb.ForgetRequest(owners=owners, all=True)),
        (
            stub.Update,
            spb.UpdateRequest(
                owners=owners, memory_id=event, patch=spb.MemoryPatch(content="x"), update_mask={"paths": ["content"]}
            ),
        ),
        (
            stub.Write,
            spb.WriteRequest(owners=owners, memory=spb.MemoryDraft(content="No tea.", supersedes=[event])),
        ),
    ):
        assert refused(lambda call=call, request=request: call(request, metadata=token))[1]["layer"] == "EPISODIC"
    assert stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[mine]), metadata=token).forgotten_count == 1


def test_global_is_read_unless_a_grant_says_otherwise(stub, issue, user):
    reader, closed = issue(user_ids=(user,)), issue(user_ids=(user,), grants=("user=read", "global=none"))
    recall(stub, reader, user_id=user)
    assert refused(lambda: recall(stub, closed, user_id=user))[1] == {
        "right": "read",
        "scope": "GLOBAL",
        "layer": "EPISODIC",
    }
    recall(stub, closed, scopes=[pb.SCOPE_USER], user_id=user)
    assert refused(lambda: write(stub, reader, user_id=user, scope=pb.SCOPE_GLOBAL))[1]["scope"] == "GLOBAL"


def test_agents_keep_their_own_memories_and_sessions(service, channel, stub, issue, user):
    a, b = issue(agent_id="a", user_ids=(user,)), issue(agent_id="b", user_ids=(user,))
    write(stub, a, agent_id="a", scope=pb.SCOPE_AGENT)
    assert refused(lambda: recall(stub, b, agent_id="a"))[1] == {"owner": "agent_id", "owner_id": "a"}
    sessions = serpc.SessionServiceStub(channel)
    theirs = pb.Owners(user_id=user, agent_id="a", session_id="s")
    sessions.Start(sesb.SessionServiceStartRequest(owners=theirs, goal="tea"), metadata=a)
    for owners, code in (
        (pb.Owners(user_id=user, agent_id="b", session_id="s"), grpc.StatusCode.NOT_FOUND),
        (pb.Owners(user_id=user, session_id="s"), DENIED),
        (pb.Owners(agent_id="b", session_id="s"), DENIED),
        (theirs, DENIED),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            sessions.GetState(sesb.SessionServiceGetStateRequest(owners=owners), metadata=b)
        assert caught.value.code() == code
    assert sessions.GetState(sesb.SessionServiceGetStateRequest(owners=theirs), metadata=a).state.goal == "tea"
    other, unnamed = pb.Owners(user_id=user, agent_id="b", session_id="s"), pb.Owners(user_id=user, session_id="s")
    assemble = crpc.ContextServiceStub(channel).AssembleContext
    for call, request, code in (
        (assemble, csb.AssembleContextRequest(owners=other, query="tea"), grpc.StatusCode.NOT_FOUND),
        (assemble, csb.AssembleContextRequest(owners=unnamed, query="tea"), DENIED),
        (sessions.End, sesb.SessionServiceEndRequest(owners=other, discard=True), grpc.StatusCode.NOT_FOUND),
        (sessions.GetConsolidation, sesb.SessionServiceGetConsolidationRequest(owners=unnamed), DENIED),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            call(request, metadata=b)
        assert caught.value.code() == code
    assert "tea" in assemble(csb.AssembleContextRequest(owners=theirs, query="tea"), metadata=a).context.text
    sessions.End(sesb.SessionServiceEndRequest(owners=theirs, discard=True), metadata=a)
    with pytest.raises(grpc.RpcError) as caught:
        sessions.GetConsolidation(sesb.SessionServiceGetConsolidationRequest(owners=other), metadata=b)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_the_permanent_store_is_written_by_maintainers_only(channel, issue, user):
    permanent = prpc.PermanentServiceStub(channel)
    ordinary, maintainer = issue(user_ids=(user,)), issue(user_ids=(user,), grants=("user=read,maintain",))
    owners = pb.Owners(user_id=user)
    put = ppb.PermanentServicePutRequest(
        owners=owners, kind=ppb.PERMANENT_KIND_SAFETY, content="Never delete.", reason="r"
    )
    assert refused(lambda: permanent.Put(put, metadata=ordinary))[1] == {
        "right": "maintain",
        "scope": "USER",
        "layer": "PERMANENT",
    }
    stands = permanent.Put(put, metadata=maintainer).memory
    assert stands.actor.startswith("token:tok_")
    waiting = permanent.Propose(
        ppb.PermanentServiceProposeRequest(
            owners=owners, kind=ppb.PERMANENT_KIND_PROFILE, content="Likes tea.", reason="r"
        ),
        metadata=ordinary,
    ).memory
    for call, request in (
        (permanent.Put, ppb.PermanentServicePutRequest(owners=owners, memory_id=stands.memory_id, content="x")),
        (permanent.Remove, ppb.PermanentServiceRemoveRequest(owners=owners, memory_id=stands.memory_id, reason="r")),
        (
            permanent.Decide,
            ppb.PermanentServiceDecideRequest(owners=owners, memory_id=waiting.memory_id, accept=True, reason="r"),
        ),
    ):
        assert refused(lambda call=call, request=request: call(request, metadata=ordinary))[1]["right"] == "maintain"
    listed = permanent.List(ppb.PermanentServiceListRequest(owners=owners), metadata=ordinary).memories
    assert [memory.memory_id for memory in listed] == [stands.memory_id]
    history = ppb.PermanentServiceHistoryRequest(owners=owners, memory_id=stands.memory_id)
    assert len(permanent.History(history, metadata=ordinary).versions) == 1
    assert permanent.Decide(
        ppb.PermanentServiceDecideRequest(owners=owners, memory_id=waiting.memory_id, accept=True, reason="r"),
        metadata=maintainer,
    ).memory


def test_decisions_need_approve(channel, stub, issue, user):
    token = issue(user_ids=(user,))
    mine = write(stub, token, user_id=user)
    owners = pb.Owners(user_id=user)
    review = spb.ReviewRequest(owners=owners, decisions=[{"memory_id": mine, "action": spb.REVIEW_ACTION_CONFIRM}])
    assert refused(lambda: stub.Review(review, metadata=token))[1]["right"] == "approve"
    skills = skrpc.SkillServiceStub(channel)
    decide = skb.SkillServiceDecideRequest(owners=owners, scopes=[pb.SCOPE_USER], name="x", approve=True)
    assert refused(lambda: skills.Decide(decide, metadata=token))[1]["right"] == "approve"
    approver = issue(user_ids=(user,), grants=("user=read,approve",))
    assert len(stub.Review(review, metadata=approver).memories) == 1


def test_a_change_carries_the_token_as_its_actor(stub, issue, user):
    token = issue(user_ids=(user,))
    mine = write(stub, token, user_id=user)
    history = stub.History(spb.HistoryRequest(owners=pb.Owners(user_id=user), memory_id=mine))
    claims = jwt.decode(token[0][1].removeprefix("Bearer "), options={"verify_signature": False})
    assert [change.actor for change in history.changes] == [f"token:{claims['jti']}"]
    local = write(stub, None, "Bob prefers coffee.", user_id=user)
    history = stub.History(spb.HistoryRequest(owners=pb.Owners(user_id=user), memory_id=local))
    assert [change.actor for change in history.changes] == ["local"]


# -- AdminService ------------------------------------------------------------------------------------------------


def test_admin_is_asked_for_by_name(admin, issue, user):
    ordinary, tenants, servers = issue(user_ids=(user,)), issue(admin=True), issue(tenant="*", admin=True)
    assert refused(lambda: admin.GetStats(apb.GetStatsRequest(), metadata=ordinary)) == (
        "GRANT_MISSING",
        {"right": "admin"},
    )
    assert refused(lambda: admin.GetStats(apb.GetStatsRequest(), metadata=tenants))[1]["owner_id"] == "*"
    admin.GetStats(apb.GetStatsRequest(), metadata=servers)
    plan = apb.PlanLifecycleRequest(owners=pb.Owners(user_id=user))
    admin.PlanLifecycle(plan, metadata=tenants)
    assert refused(lambda: admin.PlanLifecycle(apb.PlanLifecycleRequest(), metadata=tenants))


def test_token_calls(admin, stub, user):
    made = admin.CreateToken(apb.CreateTokenRequest(name="n", user_ids=[user], ttl={"seconds": 3600}))
    token = made.token
    assert (token.name, token.tenant, list(token.user_ids), token.issuer) == ("n", "default", [user], "local")
    assert token.expire_time.seconds - token.issue_time.seconds == 3600
    assert "user=read,write,propose" in token.grants
    assert not token.HasField("last_use_time")
    write(stub, header(made.secret), user_id=user)
    shown = admin.GetToken(apb.GetTokenRequest(token_id=token.token_id)).token
    assert shown.HasField("last_use_time")
    assert not shown.HasField("revoke_time")
    assert made.secret not in str(admin.ListTokens(apb.ListTokensRequest(page_size=1000)))
    revoked = admin.RevokeToken(apb.RevokeTokenRequest(token_id=token.token_id)).token
    assert revoked.HasField("revoke_time")
    reason, metadata = refused(lambda: write(stub, header(made.secret), user_id=user), UNAUTHENTICATED)
    assert (reason, metadata) == ("TOKEN_REVOKED", {"token_id": token.token_id})
    for request in (
        apb.CreateTokenRequest(ttl={"seconds": 2**62}),
        apb.CreateTokenRequest(ttl={"seconds": 1}),
        apb.CreateTokenRequest(grants=["all"]),
        apb.CreateTokenRequest(tenant="*"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            admin.CreateToken(request)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_tenants_admin_stays_in_its_tenant(admin, issue, fresh_id):
    tenant = fresh_id()
    ours, theirs = issue(tenant=tenant, admin=True), admin.CreateToken(apb.CreateTokenRequest(name="theirs")).token
    made = admin.CreateToken(apb.CreateTokenRequest(tenant=tenant, name="x"), metadata=ours)
    assert made.token.issuer.startswith("token:tok_")
    listed = admin.ListTokens(apb.ListTokensRequest(tenant=tenant), metadata=ours).tokens
    assert [token.name for token in listed] == ["x", ""]
    for call, request in (
        (admin.CreateToken, apb.CreateTokenRequest()),
        (admin.CreateToken, apb.CreateTokenRequest(tenant="*", admin=True)),
        (admin.ListTokens, apb.ListTokensRequest()),
        (admin.ListTokens, apb.ListTokensRequest(tenant="*")),
        (admin.GetToken, apb.GetTokenRequest(token_id=theirs.token_id)),
        (admin.RevokeToken, apb.RevokeTokenRequest(tenant="*", token_id=theirs.token_id)),
        (admin.RotateKeys, apb.RotateKeysRequest()),
    ):
        assert refused(lambda call=call, request=request: call(request, metadata=ours))[1]["right"] == "admin"
    for call, kind in ((admin.RevokeToken, apb.RevokeTokenRequest), (admin.GetToken, apb.GetTokenRequest)):
        with pytest.raises(grpc.RpcError) as caught:
            call(kind(tenant=tenant, token_id=theirs.token_id), metadata=ours)
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert not admin.GetToken(apb.GetTokenRequest(token_id=theirs.token_id)).token.HasField("revoke_time")


def test_keys_rotate_while_serving(admin, stub, issue, user):
    old = issue(user_ids=(user,))
    answer = admin.RotateKeys(apb.RotateKeysRequest())
    assert answer.key_id
    write(stub, old, user_id=user)
    write(stub, issue(user_ids=(user,)), "Bob prefers coffee.", user_id=user)
