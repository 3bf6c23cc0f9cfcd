"""Issuing, checking, expiry, revocation, rotation; and what is no token."""

from __future__ import annotations

import base64
import json

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memsvc.errors import (
    InvalidArgument,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    TokenExpired,
    TokenRevoked,
    Unauthenticated,
)
from memsvc.memory.owners import Owners
from memsvc.model import Namespace, Scope
from memsvc.service.auth.tokens import CACHE_ENTRIES, TOKEN_MAX_CHARS, TTL_MIN_US, Wanted, identity

WANTED = Wanted(name="n", tenant="t", agent_id="a", user_ids=("v", "u", "u"), project_ids=("p",))


def claims_of(token):
    return jwt.decode(token, options={"verify_signature": False})


def resigned(tokens, token, **changed):
    """The token with other claims, signed with the server's own key."""
    kid, key = tokens._keys.signer()
    claims = {name: value for name, value in {**claims_of(token), **changed}.items() if value is not None}
    return jwt.encode(claims, key, "EdDSA", {"kid": kid})


def test_a_token_is_its_principal(tokens):
    token, record = tokens.issue(WANTED, "local")
    checked = tokens.check(token)
    principal = checked.caller.principal
    assert (principal.token_id, principal.tenant, principal.agent_id) == (record.token_id, "t", "a")
    assert (principal.user_ids, principal.project_ids) == ({"u", "v"}, {"p"})
    assert checked.caller.actor == f"token:{record.token_id}"
    assert (principal.read_only, principal.admin) == (False, False)
    checked.caller.check_owners(Owners("t", "u", "p", "a"))
    with pytest.raises(PermissionDenied):
        checked.caller.check_owners(Owners("t", "w"))
    assert identity(record).users == ("u", "v")
    assert jwt.get_unverified_header(token) == {"alg": "EdDSA", "typ": "JWT", "kid": record.kid}


def test_the_token_itself_is_stored_nowhere(tokens, engine, tmp_path):
    token, record = tokens.issue(WANTED, "local")
    tokens.check(token)
    engine.backup(tmp_path / "copy")
    signature = token.rpartition(".")[2]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert signature.encode() not in path.read_bytes(), path
    assert record.token_id.encode() in (tmp_path / "copy" / "data.mdb").read_bytes()
    assert not any(token.encode() in key for key in tokens._cache)


def test_it_expires_on_the_clock_even_when_it_is_remembered(tokens, clock):
    token, record = tokens.issue(Wanted(tenant="t", ttl_us=TTL_MIN_US), "local")
    tokens.check(token)
    clock.now_us = record.expire_time_us - 1
    tokens.check(token)
    clock.now_us = record.expire_time_us
    with pytest.raises(TokenExpired):
        tokens.check(token)
    clock.now_us = record.issue_time_us - 1_000_000
    with pytest.raises(TokenExpired, match="not valid yet"):
        tokens.check(token)


def test_a_revoked_token_is_refused_at_once_and_after_a_restart(tokens, make_tokens, clock):
    token, record = tokens.issue(WANTED, "local")
    other, _ = tokens.issue(WANTED, "local")
    tokens.check(token)
    revoked = tokens.revoke(record.token_id)
    assert revoked.revoke_time_us == clock.now_us
    clock.now_us += 1
    assert tokens.revoke(record.token_id).revoke_time_us == clock.now_us - 1, "it stays as it was"
    for having in (tokens, make_tokens()):
        with pytest.raises(TokenRevoked):
            having.check(token)
        having.check(other)
    with pytest.raises(NotFound):
        tokens.revoke("tok_none")


def test_a_token_that_is_not_registered_is_refused(tokens):
    token, _ = tokens.issue(WANTED, "local")
    with pytest.raises(Unauthenticated):
        tokens.check(resigned(tokens, token, jti="tok_9999"))


def test_rotation_overlaps_and_can_cut(tokens, make_tokens, clock):
    old, record = tokens.issue(Wanted(tenant="t", ttl_us=TTL_MIN_US), "local")
    kid, dropped = tokens.rotate_keys(drop_old=False)
    assert dropped == []
    new, renewed = tokens.issue(WANTED, "local")
    assert renewed.kid == kid != record.kid
    for having in (tokens, make_tokens()):
        having.check(old)
        having.check(new)
    clock.now_us = record.expire_time_us
    assert tokens.rotate_keys(drop_old=False)[1] == [record.kid]
    checked = tokens.check(new)
    tokens.rotate_keys(drop_old=True)
    with pytest.raises(Unauthenticated):
        tokens.check_now(checked)
    for having in (tokens, make_tokens()):
        with pytest.raises(Unauthenticated):
            having.check(new)


def test_last_use_is_shown_at_once_and_written_later(tokens, make_tokens, clock):
    token, record = tokens.issue(WANTED, "local")
    assert tokens.get(record.token_id).last_use_time_us == 0
    clock.now_us += 5
    tokens.check(token)
    assert tokens.get(record.token_id).last_use_time_us == clock.now_us
    assert make_tokens().get(record.token_id).last_use_time_us == 0
    assert tokens.register.flush() == 1
    assert tokens.register.flush() == 0
    assert make_tokens().get(record.token_id).last_use_time_us == clock.now_us
    tokens.revoke(record.token_id)
    clock.now_us += 5
    with pytest.raises(TokenRevoked):
        tokens.check(token)
    assert tokens.get(record.token_id).last_use_time_us == clock.now_us - 5, "a refused call is no use"
    tokens.register.flush()
    assert make_tokens().get(record.token_id).revoke_time_us, "writing a use keeps the revocation"


def test_the_register_lists_by_tenant_page_by_page(tokens):
    for number in range(5):
        tokens.issue(Wanted(name=str(number), tenant="t"), "local")
    tokens.issue(Wanted(tenant="other"), "local")
    first, place = tokens.register.page("t", 3, "")
    second, end = tokens.register.page("t", 3, place)
    assert [record.name for record in (*first, *second)] == ["4", "3", "2", "1", "0"]
    assert end == ""
    assert len(tokens.register.page(None, 50, "")[0]) == 6
    with pytest.raises(InvalidArgument):
        tokens.register.page("t", 3, "x")


def test_records_go_some_time_after_their_tokens_expired(tokens, make_tokens, clock):
    day_us = 86_400_000_000
    short, _ = tokens.issue(Wanted(ttl_us=day_us), "local")
    long, kept = tokens.issue(Wanted(ttl_us=90 * day_us), "local")
    revoked, _ = tokens.issue(Wanted(ttl_us=90 * day_us), "local")
    tokens.check(short)
    tokens.revoke(claims_of(revoked)["jti"])
    clock.now_us += 31 * day_us - 1
    assert tokens.register.prune() == 0
    with pytest.raises(TokenExpired):
        tokens.check(short)
    clock.now_us += 1
    assert tokens.register.prune() == 1
    assert tokens.register.prune() == 0
    assert tokens.register.flush() == 0, "nothing brings it back"
    for present in (tokens, make_tokens()):
        with pytest.raises(Unauthenticated):
            present.check(short)
        with pytest.raises(NotFound):
            present.get(claims_of(short)["jti"])
        assert present.check(long).token_id == kept.token_id
        with pytest.raises(TokenRevoked):
            present.check(revoked)


def test_the_store_holds_the_register_and_verifies(tokens, engine, make_tokens):
    tokens.issue(WANTED, "local")
    assert list(engine.verify()) == []
    with engine.read() as txn:
        assert txn.head(Namespace("t", Scope.GLOBAL, "")).sequence == 0
    assert make_tokens().get("tok_0001").name == "n"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tenant": ""}, "tenant"),
        ({"tenant": "*"}, "tenant"),
        ({"user_ids": ("",)}, "user_ids"),
        ({"user_ids": tuple(f"u{i}" for i in range(65))}, "user_ids"),
        ({"project_ids": ("p" * 129,)}, "project_ids"),
        ({"agent_id": "a" * 129}, "agent_id"),
        ({"name": "n" * 129}, "name"),
        ({"grants": ("user=all",)}, "grants"),
        ({"ttl_us": TTL_MIN_US - 1}, "ttl"),
        ({"ttl_us": 10**18}, "ttl"),
    ],
)
def test_what_can_not_be_issued_names_its_field(tokens, fields, field):
    with pytest.raises((InvalidArgument, LimitExceeded)) as caught:
        tokens.issue(Wanted(**fields), "local")
    assert caught.value.field == field
    assert tokens.register.page(None, 50, "") == ([], "")


def encoded(part):
    return (
        base64.urlsafe_b64encode(part if isinstance(part, bytes) else json.dumps(part).encode()).rstrip(b"=").decode()
    )


def test_no_token_passes_that_the_server_did_not_sign(tokens):
    token, record = tokens.issue(WANTED, "local")
    claims, (kid, key) = claims_of(token), tokens._keys.signer()
    stranger = Ed25519PrivateKey.generate()
    encoding, form = serialization.Encoding, serialization.PublicFormat
    raw = key.public_key().public_bytes(encoding.Raw, form.Raw)
    pem = key.public_key().public_bytes(encoding.PEM, form.SubjectPublicKeyInfo)
    header, body, signature = token.split(".")
    bad = [
        "",
        ".",
        "..",
        "Bearer",
        "\u00e9" * 40,
        "a" * (TOKEN_MAX_CHARS + 1),
        token[:-1] + ("A" if token[-2] != "A" else "B") * 2,
        token + "." + signature,
        token[:-20],
        f"{header}.{body}.",
        f"{header}.{body}",
        f"{encoded({'alg': 'none', 'kid': kid})}.{body}.",
        f"{encoded({'alg': 'none', 'kid': kid})}.{body}.{signature}",
        f"{encoded({'alg': 'EdDSA'})}.{body}.{signature}",
        f"{encoded({'alg': 'EdDSA', 'kid': kid, 'jwk': {}})}.{body}.{signature}",
        f"{encoded({'alg': 'EdDSA', 'kid': kid, 'crit': ['x']})}.{body}.{signature}",
        f"{encoded({'alg': 'EdDSA', 'kid': ['x']})}.{body}.{signature}",
        f"{encoded({'alg': 'EdDSA', 'kid': '../../etc/passwd'})}.{body}.{signature}",
        f"{encoded(b'[' * 5000)}.{body}.{signature}",
        f"{encoded(b'{' + b'%s:{' % b'1' * 3000)}.{body}.{signature}",
        f"{encoded(bytes(range(256)))}.{body}.{signature}",
        f"{header}.{encoded({**claims, 'users': ['*']})}.{signature}",
        jwt.encode(claims, stranger, "EdDSA", {"kid": kid}),
        jwt.encode(claims, stranger, "EdDSA", {"kid": "other"}),
        jwt.encode(claims, raw, "HS256", {"kid": kid}),
        jwt.encode(claims, None, "none", {"kid": kid}),
        resigned(tokens, token, iss="other"),
        resigned(tokens, token, aud="other"),
        resigned(tokens, token, exp=None),
        resigned(tokens, token, nbf=None),
        resigned(tokens, token, jti=None),
        resigned(tokens, token, exp="9"),
        resigned(tokens, token, grants=["user=everything"]),
        resigned(tokens, token, root=True),
        resigned(tokens, token, tenant=None),
    ]
    bad.append(hs256(claims, kid, pem))
    messages = set()
    for one in bad:
        with pytest.raises(Unauthenticated) as caught:
            tokens.check(one)
        messages.add(str(caught.value))
    assert messages == {"the token is not valid here"}
    assert tokens.check(token).token_id == record.token_id


def hs256(claims, kid, secret):
    """HS256 with the public key's PEM as the secret; PyJWT refuses to make one."""
    import hashlib
    import hmac

    signed = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': kid})}.{encoded(claims)}"
    return f"{signed}.{encoded(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


def test_the_cache_is_bounded(tokens, monkeypatch):
    token, _ = tokens.issue(WANTED, "local")
    tokens._cache.update({bytes([i % 256, i // 256]): None for i in range(CACHE_ENTRIES)})
    tokens.check(token)
    assert len(tokens._cache) == 1


def test_a_token_from_before_limits_has_the_servers_defaults(tokens):
    token, _ = tokens.issue(WANTED, "local")
    older = resigned(tokens, token, reads_per_minute=None, writes_per_minute=None)
    assert tokens.check(older).per_minute == {"read": 0, "write": 0}
