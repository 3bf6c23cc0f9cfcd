"""From owner ids and scopes to namespaces: the one place that decides whose memories a call touches.

Purpose: an id that is set must not be empty, a scope without its owner id is an error, nothing is a wildcard.

Threading: pure functions.

Rejected: falling back to "all owners" for a missing id (the leak that this service exists to prevent); plain session
ids as owners (two users' tools both call their session "1").
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

import msgspec

from memsvc.errors import InvalidArgument, LimitExceeded
from memsvc.model import Namespace, Scope

DEFAULT_TENANT = "default"
ID_MAX_CHARS = 128

# Order in which an unset scope of a write is chosen.
_SCOPE_ORDER = (Scope.USER, Scope.PROJECT, Scope.AGENT, Scope.SESSION)
_FIELDS = {
    Scope.USER: "user_id",
    Scope.PROJECT: "project_id",
    Scope.AGENT: "agent_id",
    Scope.SESSION: "session_id",
}


class Owners(msgspec.Struct, frozen=True):
    """Whom a call acts for; None means that the id is not given."""

    tenant: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None


def check(owners: Owners) -> None:
    """Raises InvalidArgument for an empty id and LimitExceeded for one that is too long."""
    for field in ("tenant", "user_id", "project_id", "agent_id", "session_id"):
        value = getattr(owners, field)
        if value is None:
            continue
        if not value:
            raise InvalidArgument(f"owners.{field} is empty; leave it unset or give an id", field=f"owners.{field}")
        if len(value) > ID_MAX_CHARS:
            raise LimitExceeded(
                f"owners.{field} has {len(value)} characters, the limit is {ID_MAX_CHARS}",
                field=f"owners.{field}",
                limit=str(ID_MAX_CHARS),
            )


def namespace_for(owners: Owners, scope: Scope | None) -> Namespace:
    """The namespace of a write. An unset scope is the first of USER, PROJECT, AGENT, SESSION whose id is given.

    Raises InvalidArgument naming the missing owner id.
    """
    tenant = owners.tenant or DEFAULT_TENANT
    if scope is None:
        scope = next((s for s in _SCOPE_ORDER if getattr(owners, _FIELDS[s]) is not None), None)
        if scope is None:
            raise InvalidArgument(
                "name whom the memory belongs to: owners.user_id, project_id, agent_id or session_id", field="owners"
            )
    if scope == Scope.GLOBAL:
        return Namespace(tenant, scope, "")
    owner = getattr(owners, _FIELDS[scope])
    if owner is None:
        field = f"owners.{_FIELDS[scope]}"
        raise InvalidArgument(f"scope {scope.name} needs {field}", field=field)
    if scope == Scope.SESSION:
        owner = _session_owner(owners)
    return Namespace(tenant, scope, owner)


def own_namespace(owners: Owners) -> Namespace:
    """The narrowest namespace of the caller's own that outlives a session; the session's, or GLOBAL, if no other id is
    given.
    """
    order = (Scope.AGENT, Scope.USER, Scope.PROJECT, Scope.SESSION)
    given = (scope for scope in order if getattr(owners, _FIELDS[scope]) is not None)
    return namespace_for(owners, next(given, Scope.GLOBAL))


def _session_owner(owners: Owners) -> str:
    """Percent-encoded session id, behind the user's where one is given: "/" is encoded in ids, so none collide."""
    session = quote(owners.session_id or "", safe="")
    return session if owners.user_id is None else f"{quote(owners.user_id, safe='')}/{session}"


def namespaces_for(owners: Owners, scopes: tuple[Scope, ...]) -> list[Namespace]:
    """The namespaces of a read: the named scopes, or all whose owner id is given and GLOBAL.

    Raises InvalidArgument when nothing is named, or a scope's owner id is missing.
    """
    if scopes:
        return [namespace_for(owners, scope) for scope in dict.fromkeys(scopes)]
    given = [scope for scope in _SCOPE_ORDER if getattr(owners, _FIELDS[scope]) is not None]
    if not given:
        raise InvalidArgument(
            "name whose memories to look at: owners.user_id, project_id, agent_id or session_id, or scope GLOBAL",
            field="owners",
        )
    return [namespace_for(owners, scope) for scope in (*given, Scope.GLOBAL)]


def reached_by(owners: Owners) -> list[Namespace]:
    """Every namespace that the ids name; GLOBAL alone if they name none."""
    any_named = any(getattr(owners, field) is not None for field in _FIELDS.values())
    return namespaces_for(owners, () if any_named else (Scope.GLOBAL,))


def is_anothers(theirs: Owners, owners: Owners) -> bool:
    """Whether a session of `theirs` is another agent's or project's than `owners` name; an id that is left out on
    either side says nothing.
    """
    pairs = ((theirs.agent_id, owners.agent_id), (theirs.project_id, owners.project_id))
    return any(kept is not None and given is not None and kept != given for kept, given in pairs)


def narrowest_first(namespaces: Iterable[Namespace]) -> list[Namespace]:
    """In order of scope: SESSION, AGENT, USER, PROJECT, GLOBAL."""
    return sorted(namespaces, key=lambda namespace: namespace.scope)
