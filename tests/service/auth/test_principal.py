"""Grants and what a principal may do."""

from __future__ import annotations

import pytest

from memsvc.errors import InvalidArgument, LimitExceeded, NotFound, PermissionDenied
from memsvc.memory.owners import Owners
from memsvc.model import Layer, Scope
from memsvc.service.auth.principal import LOCAL, Caller, Grant, Principal, Right, parse_grant, parse_grants


def caller(*grants: str, **fields) -> Caller:
    return Caller(Principal(token_id="tok_1", grants=parse_grants(grants), **{"tenant": "t", **fields}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user=read", Grant(Scope.USER, None, frozenset({Right.READ}))),
        (" Project:Semantic=read, write ", Grant(Scope.PROJECT, Layer.SEMANTIC, frozenset({Right.READ, Right.WRITE}))),
        ("global=none", Grant(Scope.GLOBAL, None, frozenset())),
        ("user:permanent=maintain", Grant(Scope.USER, Layer.PERMANENT, frozenset({Right.MAINTAIN}))),
    ],
)
def test_a_grant_is_read_and_written(text, expected):
    grant = parse_grant(text)
    assert grant == expected
    assert parse_grant(str(grant)) == grant


@pytest.mark.parametrize(
    "text",
    ["", "user", "user=", "=read", "user:=read", "users=read", "user:x=read", "user=reed", "*=read", "user=admin"],
)
def test_a_bad_grant_names_the_fix(text):
    with pytest.raises(InvalidArgument, match="scope\\[:layer\\]=right") as caught:
        parse_grant(text)
    assert caught.value.field == "grants"


def test_what_an_ordinary_token_has():
    ordinary = caller()
    for scope in (Scope.SESSION, Scope.AGENT, Scope.USER, Scope.PROJECT):
        for layer in Layer:
            for right in (Right.READ, Right.WRITE, Right.PROPOSE):
                ordinary.check_right(right, scope, layer)
    ordinary.check_right(Right.READ, Scope.GLOBAL, Layer.SEMANTIC)
    for right, scope in [
        (Right.WRITE, Scope.GLOBAL),
        *((r, s) for r in (Right.MAINTAIN, Right.APPROVE) for s in Scope),
    ]:
        with pytest.raises(PermissionDenied):
            ordinary.check_right(right, scope, Layer.PERMANENT)
    with pytest.raises(PermissionDenied):
        ordinary.check_admin("t")


def test_named_grants_stand_alone_but_for_reading_global():
    narrow = caller("user:semantic=read")
    narrow.check_right(Right.READ, Scope.USER, Layer.SEMANTIC)
    narrow.check_right(Right.READ, Scope.GLOBAL, Layer.EPISODIC)
    with pytest.raises(PermissionDenied) as caught:
        narrow.check_right(Right.READ, Scope.USER, Layer.EPISODIC)
    assert caught.value.metadata == {"right": "read", "scope": "USER", "layer": "EPISODIC"}
    with pytest.raises(PermissionDenied):
        caller("user=read", "global=none").check_right(Right.READ, Scope.GLOBAL, Layer.SEMANTIC)
    with pytest.raises(LimitExceeded):
        parse_grants(["user=read"] * 65)


def test_read_only_takes_all_else_away():
    reader = caller("user=read,write,propose,approve,maintain", read_only=True, admin=True)
    reader.check_right(Right.READ, Scope.USER, Layer.PERMANENT)
    for right in set(Right) - {Right.READ}:
        with pytest.raises(PermissionDenied):
            reader.check_right(right, Scope.USER, Layer.PERMANENT)
    with pytest.raises(PermissionDenied):
        reader.check_admin("t")


@pytest.mark.parametrize(
    ("owners", "field"),
    [
        (Owners("t", "u", "p", "a"), None),
        (Owners("t"), None),
        (Owners("other", "u"), "tenant"),
        (Owners(None, "u"), "tenant"),  # unset is `default`, and nothing is filled in from the token
        (Owners("t", "v"), "user_id"),
        (Owners("t", "*"), "user_id"),
        (Owners("t", "u", "q"), "project_id"),
        (Owners("t", "u", "p", "b"), "agent_id"),
        (Owners("t", "u", "p", ""), "agent_id"),
    ],
)
def test_owner_ids_are_the_principals_own(owners, field):
    one = caller(user_ids=frozenset("u"), project_ids=frozenset("p"), agent_id="a")
    if field is None:
        one.check_owners(owners)
        return
    with pytest.raises(PermissionDenied) as caught:
        one.check_owners(owners)
    assert caught.value.metadata["owner"] == field


def test_an_agentless_principal_acts_for_no_agent_and_any_for_all():
    with pytest.raises(PermissionDenied):
        caller().check_owners(Owners("t", agent_id="a"))
    every = caller(tenant="*", user_ids=frozenset("*"), project_ids=frozenset("*"), agent_id="*")
    every.check_owners(Owners("x", "u", "p", "a"))


def test_sessions_need_their_user():
    one = caller(user_ids=frozenset("u"), agent_id="a")
    one.check_session(Owners("t", "u", session_id="s"))
    with pytest.raises(PermissionDenied):
        one.check_session(Owners("t", session_id="s"))
    caller(user_ids=frozenset("*")).check_session(Owners("t", session_id="s"))


def test_a_session_is_its_agents_and_projects():
    one = caller(user_ids=frozenset("u"), project_ids=frozenset("p"), agent_id="a")
    mine = Owners("t", "u", "p", "a", "s")
    one.check_session_is_own(mine, None)
    one.check_session_is_own(mine, mine)
    one.check_session_is_own(mine, Owners("t", "u", session_id="s"))
    for theirs in (Owners("t", "u", "p", "b", "s"), Owners("t", "u", "q", "a", "s")):
        for each in (one, LOCAL):
            with pytest.raises(NotFound):
                each.check_session_is_own(mine, theirs)
    with pytest.raises(PermissionDenied):
        one.check_session_is_own(Owners("t", "u", session_id="s"), None)
    with pytest.raises(NotFound):
        caller().check_session_is_own(Owners("t", "u", session_id="s"), mine)
    LOCAL.check_session_is_own(Owners("t", "u", session_id="s"), mine)


def test_admin_is_of_a_tenant_or_of_the_server():
    caller(admin=True).check_admin("t")
    for tenant in ("other", "*"):
        with pytest.raises(PermissionDenied):
            caller(admin=True).check_admin(tenant)
    for tenant in ("other", "*", "t"):
        caller(tenant="*", admin=True).check_admin(tenant)


def test_the_local_caller_may_do_everything():
    LOCAL.check_owners(Owners("x", "u", "p", "a"))
    LOCAL.check_session(Owners(session_id="s"))
    LOCAL.check_admin("*")
    LOCAL.check_right(Right.MAINTAIN, Scope.GLOBAL, Layer.PERMANENT)
    assert LOCAL.actor == "local"
    assert caller().actor == "token:tok_1"
