"""Whose memories a call touches: nothing is a wildcard, nothing collides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.errors import InvalidArgument, LimitExceeded
from memsvc.memory.owners import Owners, check, namespace_for, namespaces_for
from memsvc.model import Namespace, Scope

ids = st.text(alphabet=st.sampled_from("ab/%2F_.\n\x00😀"), min_size=1, max_size=6)


@pytest.mark.parametrize("field", Owners.__struct_fields__)
def test_empty_and_too_long_ids_are_refused_by_name(field):
    for value, error in (("", InvalidArgument), ("x" * 129, LimitExceeded)):
        with pytest.raises(error) as raised:
            check(Owners(**{field: value}))
        assert raised.value.field == f"owners.{field}"
    check(Owners(**{field: "x" * 128}))


@given(st.none() | ids, ids, st.none() | ids, ids)
def test_session_namespaces_never_collide(user, session, other_user, other_session):
    one = namespace_for(Owners(user_id=user, session_id=session), Scope.SESSION)
    two = namespace_for(Owners(user_id=other_user, session_id=other_session), Scope.SESSION)
    assert (one == two) == ((user, session) == (other_user, other_session))


def test_unset_scope_takes_the_first_given_owner():
    everyone = Owners(user_id="u", project_id="p", agent_id="a", session_id="s")
    assert namespace_for(everyone, None) == Namespace("default", Scope.USER, "u")
    assert namespace_for(Owners(project_id="p", agent_id="a"), None).scope == Scope.PROJECT
    assert namespace_for(Owners(agent_id="a", session_id="s"), None).scope == Scope.AGENT
    assert namespace_for(Owners(session_id="s"), None).scope == Scope.SESSION


def test_nobody_named_is_an_error():
    for call in (lambda: namespace_for(Owners(), None), lambda: namespaces_for(Owners(tenant="t"), ())):
        with pytest.raises(InvalidArgument):
            call()


@pytest.mark.parametrize("scope", [Scope.SESSION, Scope.AGENT, Scope.USER, Scope.PROJECT])
def test_a_scope_needs_its_owner_id(scope):
    with pytest.raises(InvalidArgument) as raised:
        namespaces_for(Owners(tenant="t"), (scope,))
    assert raised.value.field == f"owners.{scope.name.lower()}_id"


def test_reads_look_in_given_owners_and_global_of_the_tenant_only():
    found = namespaces_for(Owners(tenant="t", user_id="u"), ())
    assert found == [Namespace("t", Scope.USER, "u"), Namespace("t", Scope.GLOBAL, "")]
    assert namespaces_for(Owners(user_id="u"), (Scope.USER, Scope.USER)) == [Namespace("default", Scope.USER, "u")]
