"""Who calls: a principal, its grants, and the question whether it may do something.

Purpose: the identity that a token carries, as immutable values. A grant gives rights in a scope, in all layers or one;
what several give adds up. Nothing is implied: `tokens.issued` spells out what an ordinary token has.

Threading: immutable values. `CALLER` is the principal of the call that the present thread answers.

Rejected: roles (a name whose meaning changes behind the token's back); denying grants (their order would matter).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from enum import StrEnum

import msgspec

from memsvc.errors import InvalidArgument, LimitExceeded, NotFound, PermissionDenied
from memsvc.memory.owners import DEFAULT_TENANT, Owners, is_anothers
from memsvc.model import Layer, Scope

LOCAL_ACTOR = "local"
ANY = "*"
GRANTS_MAX = 64


class Right(StrEnum):
    """What may be done with memories of a scope and layer. MAINTAIN writes the permanent store, AUDIT reads and checks
    the audit, ERASE purges.
    """

    READ = "read"
    WRITE = "write"
    PROPOSE = "propose"
    APPROVE = "approve"
    MAINTAIN = "maintain"
    AUDIT = "audit"
    ERASE = "erase"


class Grant(msgspec.Struct, frozen=True):
    """Rights in a scope; in one layer, or in all for None. Without rights it only keeps a default away."""

    scope: Scope
    layer: Layer | None
    rights: frozenset[Right]

    def __str__(self) -> str:
        where = self.scope.name.lower() + (f":{self.layer.name.lower()}" if self.layer else "")
        return f"{where}={','.join(right for right in Right if right in self.rights) or 'none'}"


_ORDINARY = frozenset({Right.READ, Right.WRITE, Right.PROPOSE})
OWN_SCOPES = (Scope.SESSION, Scope.AGENT, Scope.USER, Scope.PROJECT)
ORDINARY_GRANTS = tuple(Grant(scope, None, _ORDINARY) for scope in OWN_SCOPES)
GLOBAL_READ = Grant(Scope.GLOBAL, None, frozenset({Right.READ}))


def parse_grants(texts: Iterable[str]) -> tuple[Grant, ...]:
    """The grants of an issued token: those named, or the ordinary ones if none is; and reading GLOBAL unless a grant
    speaks of GLOBAL. Raises InvalidArgument and LimitExceeded.
    """
    named = tuple(parse_grant(text) for text in texts)
    if len(named) > GRANTS_MAX:
        raise LimitExceeded(
            f"grants has {len(named)} entries, the limit is {GRANTS_MAX}", field="grants", limit=str(GRANTS_MAX)
        )
    grants = named or ORDINARY_GRANTS
    return grants if any(grant.scope == Scope.GLOBAL for grant in grants) else (*grants, GLOBAL_READ)


def parse_grant(text: str) -> Grant:
    """A grant written as `scope[:layer]=right,right`, or `=none`. Raises InvalidArgument naming the fix."""
    where, separator, what = text.strip().lower().partition("=")
    scope, _, layer = where.partition(":")
    try:
        rights = frozenset[Right]() if what == "none" else frozenset(Right(word.strip()) for word in what.split(","))
        if separator:
            return Grant(Scope[scope.upper()], Layer[layer.upper()] if ":" in where else None, rights)
    except (KeyError, ValueError):
        pass  # said below, with the fix
    raise InvalidArgument(
        "a grant is scope[:layer]=right,right or scope=none: scopes session, agent, user, project, global; layers "
        "working, episodic, semantic, procedural, permanent; rights read, write, propose, approve, maintain, audit, "
        "erase",
        field="grants",
    )


class Delegation(msgspec.Struct, frozen=True):
    """One step of handing a right on: the agent that was given a token, and the token that it was made from."""

    agent: str
    parent: str


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a token. `agent_id` "" is none; ANY stands for every id. `admin` is AdminService: of the tenant,
    and with tenant ANY of the whole server. `read_only` takes everything but reading away. `act` says through whose
    hands the right came, nearest first.
    """

    token_id: str
    tenant: str
    agent_id: str = ""
    user_ids: frozenset[str] = frozenset()
    project_ids: frozenset[str] = frozenset()
    grants: tuple[Grant, ...] = ()
    read_only: bool = False
    admin: bool = False
    act: tuple[Delegation, ...] = ()


class Caller:
    """A principal with its rights in a form that answers at once; None is the local caller, who may do everything."""

    __slots__ = ("_allowed", "actor", "principal")

    def __init__(self, principal: Principal | None) -> None:
        self.principal = principal
        self.actor = LOCAL_ACTOR if principal is None else _actor(principal)
        self._allowed = frozenset[tuple[Right, Scope, Layer]]() if principal is None else _allowed(principal)

    def check_owners(self, owners: Owners) -> None:
        """Raises PermissionDenied naming the first owner id that is not the principal's."""
        principal = self.principal
        if principal is None:
            return
        tenant = owners.tenant or DEFAULT_TENANT
        if principal.tenant not in (tenant, ANY):
            raise owner_denied("tenant", tenant)
        if owners.user_id is not None and not _holds(principal.user_ids, owners.user_id):
            raise owner_denied("user_id", owners.user_id)
        if owners.project_id is not None and not _holds(principal.project_ids, owners.project_id):
            raise owner_denied("project_id", owners.project_id)
        if owners.agent_id is not None and principal.agent_id not in (owners.agent_id, ANY):
            raise owner_denied("agent_id", owners.agent_id)

    def check_everyone(self) -> None:
        """Raises PermissionDenied unless the principal acts for every user, project and agent of its tenant."""
        principal = self.principal
        if principal is None:
            return
        for field, ids in (
            ("user_id", principal.user_ids),
            ("project_id", principal.project_ids),
            ("agent_id", (principal.agent_id,)),
        ):
            if ANY not in ids:
                raise owner_denied(field, ANY)

    def check_session(self, owners: Owners) -> None:
        """Raises PermissionDenied where a session's id stands alone: it says nothing about whose the session is, so it
        is the business of principals for every user only.
        """
        if self.principal is not None and owners.user_id is None and ANY not in self.principal.user_ids:
            raise PermissionDenied(
                "scope SESSION needs owners.user_id with a token: a session without a user is nobody's",
                owner="user_id",
                scope=Scope.SESSION.name,
            )

    def check_session_is_own(self, owners: Owners, theirs: Owners | None) -> None:
        """Raises PermissionDenied when an agent's principal leaves its id out of a call about a session, and NotFound
        for a session that belongs to another agent or project than the call names; `theirs` None: to nobody yet. Only
        the local caller reaches a session without naming its agent and project.
        """
        principal = self.principal
        if principal is not None and owners.agent_id is None and principal.agent_id not in ("", ANY):
            raise PermissionDenied(
                "a call about a session with an agent's token names owners.agent_id", owner="agent_id"
            )
        if theirs is None:
            return
        is_unnamed = (theirs.agent_id is not None and owners.agent_id is None) or (
            theirs.project_id is not None and owners.project_id is None
        )
        if is_anothers(theirs, owners) or (is_unnamed and principal is not None):
            raise NotFound(f"no open session {owners.session_id}", session_id=owners.session_id or "")

    def may(self, right: Right, scope: Scope, layer: Layer) -> bool:
        """Whether it has the right."""
        return self.principal is None or (right, scope, layer) in self._allowed

    def check_right(self, right: Right, scope: Scope, layer: Layer) -> None:
        """Raises PermissionDenied naming right, scope and layer."""
        if not self.may(right, scope, layer):
            raise PermissionDenied(
                f"the token does not grant {right} in scope {scope.name}, layer {layer.name}",
                right=right,
                scope=scope.name,
                layer=layer.name,
            )

    def check_admin(self, tenant: str) -> None:
        """Raises PermissionDenied unless the principal looks after this tenant; ANY is the whole server."""
        if self.principal is None:
            return
        if not self.principal.admin or self.principal.read_only:
            raise PermissionDenied("the token does not grant admin", right="admin")
        if self.principal.tenant not in (tenant, ANY):
            what = "the whole server" if tenant == ANY else f"tenant {tenant}"
            raise PermissionDenied(
                f"the token grants admin in its own tenant, not in {what}",
                right="admin",
                owner="tenant",
                owner_id=tenant,
            )


def _actor(principal: Principal) -> str:
    """`token:` and the id; behind a `<` each, the tokens that it was made from."""
    return "<".join(f"token:{one}" for one in (principal.token_id, *(step.parent for step in principal.act)))


def _allowed(principal: Principal) -> frozenset[tuple[Right, Scope, Layer]]:
    return frozenset(
        (right, grant.scope, layer)
        for grant in principal.grants
        for right in grant.rights
        for layer in (Layer if grant.layer is None else (grant.layer,))
        if right == Right.READ or not principal.read_only
    )


def _holds(ids: frozenset[str], wanted: str) -> bool:
    return wanted in ids or ANY in ids


def owner_denied(field: str, value: str) -> PermissionDenied:
    """What a call is told that asks for another's."""
    return PermissionDenied(f"the token does not act for this {field}", owner=field, owner_id=value)


LOCAL = Caller(None)
CALLER: ContextVar[Caller] = ContextVar("caller", default=LOCAL)
