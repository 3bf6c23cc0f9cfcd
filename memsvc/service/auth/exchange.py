"""Handing a right on: a narrower token out of a token. RFC 8693 in spirit.

Purpose: checks that a wanted token asks for nothing that its parent lacks, and names what it does. The agent that it
acts for stays the parent's: who uses it is in the chain, so that what one agent may see never becomes another's.

Threading: pure functions.

Rejected: narrowing in silence (the agent finds out by missing memories); a child that outlives its parent.
"""

from __future__ import annotations

from collections.abc import Iterable

from memsvc.errors import InvalidArgument, LimitExceeded, PermissionDenied
from memsvc.memory.drafts import check_length
from memsvc.memory.owners import ID_MAX_CHARS
from memsvc.model import Layer, Scope
from memsvc.service.auth.principal import ANY, Caller, Delegation, Grant, Principal, owner_denied, parse_grant
from memsvc.service.auth.rules import Kind
from memsvc.service.auth.tokens import TTL_MIN_US, Wanted

DEPTH_MAX = 4
TTL_DEFAULT_US = 3_600_000_000


def narrowed(
    parent: Caller,
    parents_per_minute: dict[Kind, int],
    left_us: int,
    *,
    name: str,
    actor_agent_id: str,
    user_ids: Iterable[str],
    project_ids: Iterable[str],
    grants: Iterable[str],
    read_only: bool,
    per_minute: dict[Kind, int],
    ttl_us: int | None,
) -> Wanted:
    """The token to issue. `parent` is a principal whose token may make that many calls a minute (0: the server's
    default) and is good for `left_us`.

    Raises PermissionDenied naming what the parent lacks, LimitExceeded for a chain of more than DEPTH_MAX, and
    InvalidArgument.
    """
    principal = parent.principal
    assert principal is not None, "the local caller has no token"
    if len(principal.act) >= DEPTH_MAX:
        raise LimitExceeded(
            f"a token is handed on at most {DEPTH_MAX} times", field="authorization", limit=str(DEPTH_MAX)
        )
    check_length(actor_agent_id, ID_MAX_CHARS, "actor_agent_id")
    return Wanted(
        name=name,
        tenant=principal.tenant,
        agent_id=principal.agent_id,
        user_ids=_fewer(principal.user_ids, user_ids, "user_id"),
        project_ids=_fewer(principal.project_ids, project_ids, "project_id"),
        grants=_grants(parent, principal, tuple(grants)),
        read_only=read_only or principal.read_only,
        reads_per_minute=_rate(Kind.READ, per_minute, parents_per_minute),
        writes_per_minute=_rate(Kind.WRITE, per_minute, parents_per_minute),
        ttl_us=_ttl_us(ttl_us, left_us),
        act=(Delegation(actor_agent_id, principal.token_id), *principal.act),
    )


def _fewer(held: frozenset[str], asked: Iterable[str], field: str) -> tuple[str, ...]:
    wanted = tuple(asked) or tuple(held)
    for one in wanted:
        if one not in held and ANY not in held:
            raise owner_denied(field, one)
    return wanted


def _grants(parent: Caller, principal: Principal, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The grants as texts; every right of each must be the parent's."""
    grants = tuple(parse_grant(text) for text in texts) or principal.grants
    for grant in grants if texts else ():
        for layer in Layer if grant.layer is None else (grant.layer,):
            for right in grant.rights:
                parent.check_right(right, grant.scope, layer)
    if not any(grant.scope == Scope.GLOBAL for grant in grants):
        grants = (*grants, Grant(Scope.GLOBAL, None, frozenset()))  # else a token may read it without being told so
    return tuple(str(grant) for grant in grants)


def _rate(kind: Kind, asked: dict[Kind, int], held: dict[Kind, int]) -> int:
    if held[kind] and asked[kind] > held[kind]:
        raise PermissionDenied(f"the token may make {held[kind]} {kind} calls a minute", right=f"{kind}s_per_minute")
    return asked[kind] or held[kind]


def _ttl_us(asked_us: int | None, left_us: int) -> int:
    if left_us < TTL_MIN_US:
        raise InvalidArgument("the token expires within a minute; ask for a new one", field="authorization")
    if asked_us is None:
        return min(TTL_DEFAULT_US, left_us)
    if asked_us > left_us:
        raise PermissionDenied(f"the token is good for {left_us // 1_000_000} s, the ttl is longer", right="ttl")
    return asked_us
