"""The table of rules: every call of the contract, and what it needs.

Purpose: one row a call says which rights it needs, and where: in which scopes and layers, read from the request. The
guard has checked by then that the owner ids are the principal's own. A call without a row is answered to nobody; a test
walks the contract and fails for one.

Where a request names no scopes, it asks for all of its owners' and GLOBAL; where it names no layers, for all; so a
principal that may not reach one of them is told so, and names what it wants.

Threading: pure functions.

Rejected: options in the contract (a client would read rules that only the server must know); rights checked inside the
calls (seventy places to forget one).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from memsvc.memory.drafts import kind_and_layer
from memsvc.memory.owners import DEFAULT_TENANT, Owners, namespace_for, namespaces_for, reached_by
from memsvc.memory.places import Place, Places
from memsvc.memory.skills.skills import run_namespace
from memsvc.model import Layer, MemoryType, Namespace, Scope
from memsvc.service import convert
from memsvc.service.auth.principal import ANY, Right
from memsvc.v1 import context_pb2 as cpb

READ, WRITE, PROPOSE, APPROVE, MAINTAIN = Right.READ, Right.WRITE, Right.PROPOSE, Right.APPROVE, Right.MAINTAIN
AUDIT, ERASE = Right.AUDIT, Right.ERASE
STORED = (Layer.EPISODIC, Layer.SEMANTIC, Layer.PROCEDURAL)  # layers of memories that ordinary calls write
EPISODIC, SEMANTIC, PROCEDURAL = (Layer.EPISODIC,), (Layer.SEMANTIC,), (Layer.PROCEDURAL,)
PERMANENT = (Layer.PERMANENT,)

# Scopes and layers that a request touches. Raises InvalidArgument for what the call itself would refuse.
Reach = Callable[[Any, Owners, Places], Iterable[Place]]
Whose = Callable[[Places, Namespace], Owners | None]


class Need(NamedTuple):
    """A right, and where it is needed."""

    right: Right
    reach: Reach


class Rule(NamedTuple):
    """A row: all of the needs. `whose` says whom the session belongs to that the call is about, `everyone` whether a
    request asks for all owners of the tenant.
    """

    needs: tuple[Need, ...]
    whose: Whose | None = None
    everyone: Callable[[Any], bool] | None = None


class AdminRule(NamedTuple):
    """A row of AdminService: the tenant that a request looks after; ANY for the whole server."""

    tenant: Callable[[Any], str]


class OwnTokenRule(NamedTuple):
    """A row of a call about the token that it is made with: every principal may make it."""


class Kind(StrEnum):
    """What a call counts as where calls are counted."""

    READ = "read"
    WRITE = "write"


def kind_of(row: Rule | AdminRule | OwnTokenRule | None) -> Kind:
    """READ for a call that needs no other right; so a call of AdminService is a WRITE."""
    reads = isinstance(row, Rule) and all(need.right == Right.READ for need in row.needs)
    return Kind.READ if reads else Kind.WRITE


# -- where -------------------------------------------------------------------------------------------------------


def named_by(request: Any, owners: Owners) -> list[Namespace]:
    """Namespaces of a request with scopes; see `owners.namespaces_for`."""
    return namespaces_for(owners, convert.enums(Scope, request.scopes, "scopes"))


def _target(request: Any, owners: Owners) -> Namespace:
    return namespace_for(owners, convert.optional_enum(Scope, request.scope, "scope"))


def _across(namespaces: Iterable[Namespace], layers: Iterable[Layer]) -> list[Place]:
    return [(namespace.scope, layer) for namespace in namespaces for layer in layers]


def _filtered(holder: Any) -> tuple[Layer, ...]:
    """Layers of a message's filter; all that memories have, without one."""
    layers: tuple[Layer, ...] = convert.enums(Layer, holder.filter.layers, "filter.layers")
    return layers or STORED


def named(layers: tuple[Layer, ...]) -> Reach:
    """The named scopes, in these layers."""
    return lambda request, owners, _: _across(named_by(request, owners), layers)


def named_and_filtered(request: Any, owners: Owners, _: Places) -> list[Place]:
    """The named scopes, in the layers of the filter."""
    return _across(named_by(request, owners), _filtered(request))


def runs(request: Any, owners: Owners, _: Places) -> list[Place]:
    """Where the event of a run goes: beside the skill, of a GLOBAL one into a namespace of the owners'."""
    return _across((run_namespace(owners, name) for name in named_by(request, owners)), EPISODIC)


def target(layers: tuple[Layer, ...]) -> Reach:
    """The one scope that is written to, in these layers."""
    return lambda request, owners, _: _across([_target(request, owners)], layers)


def by_id(ids: Callable[[Any], Iterable[str]]) -> Reach:
    """Where the memories stand that are named by id."""
    return lambda request, owners, places: places.of_memories(reached_by(owners), ids(request))


def drafts(messages: Callable[[Any], Iterable[Any]]) -> Reach:
    """Where each draft goes, and where the memories stand that it supersedes."""

    def reach(request: Any, owners: Owners, places: Places) -> set[Place]:
        found: set[Place] = set()
        for draft in messages(request):
            _, layer = kind_and_layer(
                convert.optional_enum(MemoryType, draft.type, "memory.type"),
                convert.optional_enum(Layer, draft.layer, "memory.layer"),
                draft.HasField("event"),
            )
            into = _target(draft, owners)
            found.add((into.scope, layer))
            if draft.supersedes:
                found |= places.of_memories([into], draft.supersedes)
        return found

    return reach


def forgotten(request: Any, owners: Owners, places: Places) -> Iterable[Place]:
    """What Forget takes out: memories by id, or all that match, which without scopes leaves GLOBAL alone."""
    if not request.all:
        return places.of_memories(reached_by(owners), request.memory_ids)
    names = named_by(request, owners)
    if not request.scopes:
        names = [name for name in names if name.scope != Scope.GLOBAL]
    return _across(names, _filtered(request))


def in_global(reach: Reach) -> Reach:
    """What a reach has in GLOBAL: what stands for everybody changes by those who may approve."""
    return lambda request, owners, places: [
        place for place in reach(request, owners, places) if place[0] == Scope.GLOBAL
    ]


def forgotten_approved(request: Any, owners: Owners, places: Places) -> Iterable[Place]:
    """`forgotten`, but for memories by id that wait for approval: their writer may take them back."""
    if request.all:
        return forgotten(request, owners, places)
    return places.of_approved(reached_by(owners), request.memory_ids)


def reviewed(ids: Callable[[Any], Iterable[str]]) -> Reach:
    """Where the items of a review stand, and what they would replace."""
    return lambda request, owners, places: places.of_reviewed(reached_by(owners), ids(request))


def session(_request: Any, _owners: Owners, _places: Places) -> list[Place]:
    """The open session."""
    return [(Scope.SESSION, Layer.WORKING)]


def kept_of_session(request: Any, owners: Owners, _: Places) -> list[Place]:
    """Where an ended session's memories go; nowhere when it is dropped."""
    return [] if request.discard else _across([_target(request, owners)], STORED)


def context(request: Any, owners: Owners, _: Places) -> list[Place]:
    """What a block for a prompt is made of."""
    options = request.options
    scopes = convert.enums(Scope, options.scopes, "options.scopes")
    layers = _filtered(options)
    if not options.sections or cpb.CONTEXT_SECTION_PERMANENT in options.sections:
        layers = (*layers, Layer.PERMANENT)
    found = _across(namespaces_for(owners, scopes), layers)
    return found if owners.session_id is None else [*found, (Scope.SESSION, Layer.WORKING)]


def entry(request: Any, owners: Owners, places: Places) -> set[Place]:
    """Where an entry of the permanent store stands."""
    return places.of_permanent(reached_by(owners), request.memory_id)


def entry_or_target(request: Any, owners: Owners, places: Places) -> Iterable[Place]:
    """The entry that a put replaces, or where a new one goes."""
    if not request.memory_id:
        return _across([_target(request, owners)], PERMANENT)
    return places.of_permanent(_among(request, owners), request.memory_id)


def proposed(request: Any, owners: Owners, places: Places) -> Iterable[Place]:
    """Where a proposal goes: into the scope that is named, or beside the memory that it is made from."""
    if request.memory_id and not request.scope:
        found = places.of_memories(reached_by(owners), [request.memory_id])
        return {(scope, Layer.PERMANENT) for scope, _ in found}
    return _across([_target(request, owners)], PERMANENT)


def audited(request: Any, owners: Owners, _: Places) -> list[Place]:
    """Chains that are checked: of the named scopes, or of all."""
    scopes = Scope if request.all else (name.scope for name in named_by(request, owners))
    return [(scope, layer) for scope in scopes for layer in Layer]


def purged(request: Any, owners: Owners, places: Places) -> Iterable[Place]:
    """What a purge removes: memories and permanent entries by id, or all that owners have, a user's sessions too."""
    if request.memory_ids:
        names = reached_by(owners)
        entries = (place for memory_id in request.memory_ids for place in places.of_permanent(names, memory_id))
        return {*places.of_memories(names, request.memory_ids), *entries}
    names = [name for name in named_by(request, owners) if request.scopes or name.scope != Scope.GLOBAL]
    if not request.scopes and owners.session_id is not None:
        names = [name for name in names if name.scope == Scope.SESSION]
    scopes = {name.scope for name in names}
    if Scope.USER in scopes:
        scopes.add(Scope.SESSION)
    return [(scope, layer) for scope in scopes for layer in Layer]


def _among(request: Any, owners: Owners) -> list[Namespace]:
    return [_target(request, owners)] if request.scope else reached_by(owners)


def _memory_id(request: Any) -> list[str]:
    return [request.memory_id]


def _item_id(request: Any) -> list[str]:
    return [request.item_id]


def _resolved(request: Any) -> list[str]:
    return [decision.item_id for decision in request.decisions]


def _decided(request: Any) -> list[str]:
    return [decision.memory_id for decision in request.decisions]


# -- the table ---------------------------------------------------------------------------------------------------


def _server(_request: Any) -> str:
    return ANY


def _of_request(request: Any) -> str:
    return request.tenant or DEFAULT_TENANT


def _of_owners(request: Any) -> str:
    return (request.owners.tenant or DEFAULT_TENANT) if request.HasField("owners") else ANY


def _needs(*needs: tuple[Right, Reach]) -> Rule:
    return Rule(tuple(Need(*need) for need in needs))


def _of_session(*needs: tuple[Right, Reach]) -> Rule:
    return Rule(tuple(Need(*need) for need in needs), Places.owners_of_session)


RULES: dict[str, Rule | AdminRule | OwnTokenRule] = {
    "MemoryService/Write": _needs((WRITE, drafts(lambda r: [r.memory]))),
    "MemoryService/BatchWrite": _needs((WRITE, drafts(lambda r: r.memories))),
    "MemoryService/Recall": _needs((READ, named_and_filtered)),
    "MemoryService/Get": _needs((READ, by_id(_memory_id))),
    "MemoryService/List": _needs((READ, named_and_filtered)),
    "MemoryService/Update": _needs(
        (READ, by_id(_memory_id)), (WRITE, by_id(_memory_id)), (APPROVE, in_global(by_id(_memory_id)))
    ),
    "MemoryService/Forget": _needs((WRITE, forgotten), (APPROVE, in_global(forgotten_approved))),
    "MemoryService/History": _needs((READ, by_id(_memory_id))),
    "MemoryService/Watch": _needs((READ, named(STORED))),
    "MemoryService/Ingest": _needs((WRITE, target(STORED))),
    "MemoryService/Review": _needs((READ, by_id(_decided)), (APPROVE, by_id(_decided))),
    "MemoryService/ListConflicts": _needs((READ, named(STORED))),
    "MemoryService/ResolveConflict": _needs((READ, by_id(_memory_id)), (APPROVE, by_id(_memory_id))),
    "SessionService/Start": _of_session((WRITE, session)),
    "SessionService/AppendTurns": _of_session((WRITE, session)),
    "SessionService/GetState": _of_session((READ, session)),
    "SessionService/UpdateState": _of_session((READ, session), (WRITE, session)),
    "SessionService/RecordToolOutput": _of_session((WRITE, session)),
    "SessionService/Assemble": _of_session((READ, context)),
    "SessionService/End": _of_session((WRITE, session), (WRITE, kept_of_session)),
    "SessionService/GetConsolidation": Rule((Need(READ, session),), Places.owners_of_ended),
    "SessionService/List": _of_session((READ, session)),
    "ContextService/AssembleContext": _of_session((READ, context)),
    "EventService/Record": _needs((WRITE, target(EPISODIC))),
    "EventService/Query": _needs((READ, named(EPISODIC))),
    "FactService/Put": _needs((WRITE, target(SEMANTIC)), (APPROVE, in_global(target(SEMANTIC)))),
    "FactService/Get": _needs((READ, named(SEMANTIC))),
    "FactService/List": _needs((READ, named(SEMANTIC))),
    "FactService/History": _needs((READ, target(SEMANTIC))),
    "FactService/Delete": _needs((WRITE, target(SEMANTIC)), (APPROVE, in_global(target(SEMANTIC)))),
    "FactService/Match": _needs((READ, named(SEMANTIC))),
    "SkillService/Push": _needs((WRITE, target(PROCEDURAL)), (APPROVE, in_global(target(PROCEDURAL)))),
    "SkillService/Get": _needs((READ, named(PROCEDURAL))),
    "SkillService/List": _needs((READ, named(PROCEDURAL))),
    "SkillService/Versions": _needs((READ, named(PROCEDURAL))),
    "SkillService/Rollback": _needs(
        (READ, named(PROCEDURAL)), (WRITE, named(PROCEDURAL)), (APPROVE, in_global(named(PROCEDURAL)))
    ),
    "SkillService/Match": _needs((READ, named(STORED))),
    "SkillService/RecordRun": _needs((READ, named(PROCEDURAL)), (WRITE, runs)),
    "SkillService/Propose": _needs((READ, target(EPISODIC)), (PROPOSE, target(PROCEDURAL))),
    "SkillService/Decide": _needs((READ, named(PROCEDURAL)), (APPROVE, named(PROCEDURAL))),
    "PermanentService/List": _needs((READ, named(PERMANENT))),
    "PermanentService/Propose": _needs((READ, by_id(_memory_id)), (PROPOSE, proposed)),
    "PermanentService/Decide": _needs((MAINTAIN, entry)),
    "PermanentService/Put": _needs((MAINTAIN, entry_or_target)),
    "PermanentService/Remove": _needs((MAINTAIN, entry)),
    "PermanentService/History": _needs((READ, entry)),
    "AuditService/Query": _needs((AUDIT, named(tuple(Layer)))),
    "AuditService/Verify": Rule((Need(AUDIT, audited),), everyone=lambda request: bool(request.all)),
    "AuditService/Why": _needs((READ, by_id(_memory_id))),
    "ReviewService/List": _needs((READ, named(STORED)), (APPROVE, named(STORED))),
    "ReviewService/Get": _needs((READ, reviewed(_item_id)), (APPROVE, reviewed(_item_id))),
    "ReviewService/Resolve": _needs((READ, reviewed(_resolved)), (APPROVE, reviewed(_resolved))),
    "ErasureService/Purge": _needs((ERASE, purged)),
    "AdminService/GetStats": AdminRule(_server),
    "AdminService/Verify": AdminRule(_server),
    "AdminService/Backup": AdminRule(_server),
    "AdminService/StartReindex": AdminRule(_server),
    "AdminService/GetReindex": AdminRule(_server),
    "AdminService/PlanLifecycle": AdminRule(_of_owners),
    "AdminService/RunLifecycle": AdminRule(_of_owners),
    "AdminService/CreateToken": AdminRule(_of_request),
    "AdminService/GetToken": AdminRule(_of_request),
    "AdminService/ListTokens": AdminRule(_of_request),
    "AdminService/RevokeToken": AdminRule(_of_request),
    "AdminService/RotateKeys": AdminRule(_server),
    "AdminService/GetReceipt": AdminRule(_of_request),
    "AdminService/ListReceipts": AdminRule(_of_request),
    "TokenService/Exchange": OwnTokenRule(),
}
