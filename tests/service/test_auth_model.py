"""Generated principals and calls against a small reference model of who may see and change what.

The model knows nothing of the table of rules. It looks at what a call showed and what it changed: all of it must be
allowed; and where a call was refused, what the refusal names must really be missing.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain

import grpc
import msgspec
import pytest
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memsvc.memory.owners import Owners, namespace_for
from memsvc.model import Layer, Scope
from memsvc.service.auth.principal import Right, parse_grants
from memsvc.service.auth.rules import RULES
from memsvc.service.auth.tokens import Wanted
from memsvc.storage.engine import RecordTable
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2

CALLS = 3000
CALLS_SOAK = 20_000
CALLS_PER_PRINCIPAL = 25
LEFT_OUT = 0.2  # share of fields that a request does not set
NEEDED = ("owners", "dry_run", "memory_id", "item_id", "entry_id", "reason", "update_mask")  # or no call gets far
OWN_TOKEN = {"TokenService/Exchange"}  # touches no memory; test_exchange compares what it gives with what there was
NEVER_PASS = {"MemoryService/ResolveConflict", "SkillService/Decide"}  # the world has no conflicts and no drafts
SKILL = "name: {}\ndescription: Serves tea.\ntrigger: When somebody wants tea.\nsteps:\n  - boil water\n"
# What a call needs where it answers with what it has just written itself.
WRITES = {
    **dict.fromkeys(("FactService/Put", "SkillService/Push", "SkillService/Rollback"), Right.WRITE),
    **dict.fromkeys(("SkillService/Propose", "PermanentService/Propose"), Right.PROPOSE),
    **dict.fromkeys(("MemoryService/Review", "MemoryService/ResolveConflict", "SkillService/Decide"), Right.APPROVE),
    "ReviewService/Resolve": Right.APPROVE,
    **dict.fromkeys(("PermanentService/Put", "PermanentService/Decide", "PermanentService/Remove"), Right.MAINTAIN),
}


# -- the reference model -----------------------------------------------------------------------------------------


def owns(who: Wanted, field: str, value: str) -> bool:
    ids = {"tenant": [who.tenant], "user_id": who.user_ids, "project_id": who.project_ids, "agent_id": [who.agent_id]}
    return value in ids[field] or "*" in ids[field]


def has(who: Wanted, right: Right, scope: Scope, layer: Layer) -> bool:
    grants = [g for g in parse_grants(who.grants) if g.scope == scope and g.layer in (None, layer)]
    return any(right in g.rights for g in grants) and (right == Right.READ or not who.read_only)


def may(who: Wanted, right: Right, tenant: str, scope: Scope, owner: str, layer: Layer) -> bool:
    field = {Scope.USER: "user_id", Scope.PROJECT: "project_id", Scope.AGENT: "agent_id"}.get(scope)
    if scope == Scope.SESSION:
        own = "*" in who.user_ids or ("/" in owner and owner.split("/")[0] in who.user_ids)
    else:
        own = field is None or owns(who, field, owner)
    return tenant == who.tenant and own and has(who, right, scope, layer)


def spread(space, layer):
    return space.tenant, space.scope, space.owner, layer


def trusted(who: Wanted) -> Wanted:
    """The same owners with every right."""
    return msgspec.structs.replace(who, grants=tuple(f"{scope.name}={','.join(Right)}" for scope in Scope))


# -- the world ---------------------------------------------------------------------------------------------------


class World:
    """A server with memories, facts, events, skills and permanent entries of owners in two tenants."""

    def __init__(self, service, wire, fresh_id, chance):
        self.service, self.wire, self.chance = service, wire, chance
        self.call = wire.call
        self.tenants = (fresh_id(), fresh_id())
        self.users, self.projects, self.agents = (["u0", "u1"], ["p0", "p1"], ["a0", "a1"])
        self.memory_ids, self.entry_ids = [], []
        self.owners = [
            *({"user_id": user} for user in self.users),
            *({"project_id": project} for project in self.projects),
            *({"agent_id": agent} for agent in self.agents),
            {"user_id": "u0", "session_id": "s"},
            {"session_id": "s"},
        ]
        for tenant in self.tenants:
            for ids in self.owners:
                self._fill(pb.Owners(tenant=tenant, **ids), pb.SCOPE_SESSION if "session_id" in ids else 0)
            self._fill(pb.Owners(tenant=tenant), pb.SCOPE_GLOBAL)
            self._approve(pb.Owners(tenant=tenant))
            self._fill_waiting(pb.Owners(tenant=tenant))
        self.open_sessions()

    def open_sessions(self):
        """Sessions of an agent and of a project; one that was ended is opened again."""
        for ids in ({"agent_id": "a0"}, {"project_id": "p1"}):
            whom = {"tenant": self.tenants[0], "user_id": "u0", "session_id": f"of-{next(iter(ids.values()))}", **ids}
            self.call("SessionService/Start", {"owners": whom, "goal": "tea"})

    def _fill(self, owners, scope):
        said = f"Tea of {owners} in {scope}."
        drafts = [{"content": f"{said} {layer}", "layer": layer, "scope": scope, "type": 2} for layer in (2, 3, 4)]
        answer = self.call("MemoryService/BatchWrite", {"owners": owners, "memories": drafts})
        self.memory_ids += [result.memory_id for result in answer.results]
        fact = {"owners": owners, "scope": scope, "key": "tea.kind", "value": {"string_value": "green"}}
        self.memory_ids.append(self.call("FactService/Put", fact).fact.memory_id)
        skill = {"owners": owners, "scope": scope, "source": SKILL.format("tea")}
        self.memory_ids.append(self.call("SkillService/Push", skill).skill.memory_id)
        event = {"owners": owners, "scope": scope, "summary": "Tea was served.", "event": {"event_type": "tea"}}
        self.memory_ids.append(self.call("EventService/Record", event).result.memory_id)
        for call in ("Put", "Propose"):
            entry = {"owners": owners, "scope": scope, "kind": 1, "content": f"{call} tea.", "reason": "r"}
            self.entry_ids.append(self.call(f"PermanentService/{call}", entry).memory.memory_id)

    def _approve(self, owners):
        """Approves what waits; what is written later waits."""
        listed = self.call("ReviewService/List", {"owners": owners, "scopes": [pb.SCOPE_GLOBAL]})
        decisions = [{"item_id": item.item_id, "action": 1} for item in listed.items]
        answer = self.call("ReviewService/Resolve", {"owners": owners, "decisions": decisions})
        assert len(answer.results) >= 4
        assert not any(result.error_reason for result in answer.results)

    def _fill_waiting(self, owners):
        """Writes for everybody that nobody has approved."""
        drafts = [{"content": f"Secret tea {n}.", "layer": 3, "scope": pb.SCOPE_GLOBAL} for n in range(40)]
        answer = self.call("MemoryService/BatchWrite", {"owners": owners, "memories": drafts})
        self.memory_ids += [result.memory_id for result in answer.results]

    def _namespaces(self):
        with self.service.engine.read() as txn:
            return [head.namespace for head in txn.heads() if head.namespace.tenant in self.tenants]

    def state(self):
        """Sequences of the namespaces, and the entries of their permanent store."""
        with self.service.engine.read() as txn:
            heads = {name: txn.head(name).sequence for name in self._namespaces()}
            entries = {(name, key): raw for name in heads for key, raw in txn.records(RecordTable.PERMANENT, name)}
        return heads, entries

    def written(self, before, after, actor):
        """Where memories changed between two states, and by whom."""
        with self.service.engine.read() as txn:
            for name, sequence in after[0].items():
                for change in txn.changes(name, before[0].get(name, 0), sequence):
                    assert change.actor == actor
                    yield name, txn.get(name, change.memory_id).layer

    def writer(self, memory_id):
        """The actor of a memory's first version."""
        with self.service.engine.read() as txn:
            name, _ = self.place(memory_id)
            return txn.changes(name, txn.versions(name, memory_id)[0].sequence - 1, 1)[0].actor

    def place(self, memory_id):
        """Namespace and layer of a memory, or of an entry of the permanent store."""
        with self.service.engine.read() as txn:
            for name in self._namespaces():
                memory = txn.get(name, memory_id)
                if memory is not None:
                    return name, memory.layer
                if txn.record(RecordTable.PERMANENT, name, memory_id) is not None:
                    return name, Layer.PERMANENT
        raise AssertionError(f"{memory_id} is nowhere")

    # -- principals and calls

    def principal(self):
        some = lambda ids: tuple(self.chance.sample([*ids, "*"], self.chance.randrange(3)))  # noqa: E731
        grants = []
        for _ in range(self.chance.choice([0, 0, 1, 2, 3, 5])):
            layer = self.chance.choice(["", "", *(f":{layer.name}" for layer in Layer)])
            rights = self.chance.sample([r.value for r in Right], self.chance.randrange(1, 5))
            scope = self.chance.choice([s.name for s in Scope])
            grants.append(f"{scope}{layer}={self.chance.choice([','.join(rights), 'none'])}")
        if self.chance.random() < 0.25:  # enough for the calls that need several rights at once
            grants = [f"{scope.name}={','.join(Right)}" for scope in Scope]
        return Wanted(
            tenant=self.tenants[0],
            agent_id=self.chance.choice(["", "a0", "a1", "*"]),
            user_ids=some(self.users),
            project_ids=some(self.projects),
            grants=tuple(grants),
            read_only=self.chance.random() < 0.15,
        )

    def request(self, name, who):
        request = self._filled(self.wire.methods[name].input_type, who, name)
        if name == "MemoryService/Forget":  # by id, or by conditions
            for field in ("memory_ids",) if request.all else ("scopes", "filter"):
                request.ClearField(field)
        return request

    def _filled(self, descriptor, who, name):
        message = descriptor._concrete_class()
        for field in descriptor.fields:
            value = self._value(field, who, name)
            if value is None or (field.name not in NEEDED and self.chance.random() < LEFT_OUT):
                continue
            if field.is_repeated:
                for one in value:
                    into = getattr(message, field.name)
                    into.add(**one) if isinstance(one, dict) else into.append(one)
            elif isinstance(value, Message):
                getattr(message, field.name).CopyFrom(value)
            else:
                setattr(message, field.name, value)
        return message

    def _value(self, field, who, name):
        chance = self.chance
        maker = {
            "owners": lambda: self._owners(who, 0.9 if "SessionService" in name else 0.25),
            "scope": lambda: chance.choice([0, 0, *Scope]),
            "scopes": lambda: chance.sample(list(Scope), chance.choice([0, 1, 1, 2])),
            "memory_id": lambda: self._memory_id(name, who),
            "item_id": lambda: self._id(self.memory_ids, who),
            "memory_ids": lambda: [self._id(self.memory_ids, who) for _ in range(chance.choice([0, 1, 1, 2]))],
            "decisions": lambda: [
                {"item_id" if "ReviewService" in name else "memory_id": self._id(self.memory_ids, who), "action": 1}
            ],
            "memory": lambda: self._draft(),
            "memories": lambda: [self._draft()],
            "filter": lambda: pb.Filter(layers=chance.sample([2, 3, 4, 1, 5], chance.choice([0, 1, 2]))),
            "options": lambda: self._options(field.message_type),
            "all": lambda: chance.random() < 0.1,
            "query": lambda: "tea",
            "content": lambda: f"Tea {chance.randrange(1000)}.",
            "reason": lambda: "r",
            "key": lambda: "tea.kind",
            "keys": lambda: ["tea.kind"],
            "name": lambda: "tea",
            "kind": lambda: chance.choice([1, 2, 3]),
            "version": lambda: chance.choice([0, 1]),
            "recent_count": lambda: 5,
            "include_proposals": lambda: True,
            "include_inactive": lambda: True,
            "discard": lambda: chance.random() < 0.5,
            "dry_run": lambda: "Erasure" in name or chance.random() < 0.5,  # the world must stay
            "outcome": lambda: 1,
            "resolution": lambda: 1,
            "accept": lambda: chance.random() < 0.5,
            "approve": lambda: chance.random() < 0.5,
            "summary": lambda: "Tea was served.",
            "goal": lambda: None,
            "tool": lambda: "kettle",
            "event": lambda: pb.EventDetail(event_type="tea"),
            "value": lambda: field.message_type._concrete_class(string_value=f"v{chance.randrange(9)}"),
            "messages": lambda: [{"speaker": 1, "content": "I prefer green tea, always."}],
            "turns": lambda: [{"speaker": 1, "content": "Tea, please."}],
            "tenant": lambda: chance.choice([*self.tenants, "*", ""]),
            "token_id": lambda: "tok_x",
        }
        if field.name == "source" and field.message_type is None:
            return SKILL.format(chance.choice(["tea", f"tea-{chance.randrange(9)}"]))
        if field.name == "update_mask":
            return field.message_type._concrete_class(paths=["importance"])
        if field.name == "latency_budget":
            return field.message_type._concrete_class(seconds=20)
        return maker[field.name]() if field.name in maker else None

    def _id(self, ids, who):
        """An id, mostly of a memory whose owner is the principal's."""
        some = self.chance.sample(ids, 30)
        own = [one for one in some if may(trusted(who), Right.READ, *spread(*self.place(one)))]
        return self.chance.choice(own or some)

    def _memory_id(self, name, who):
        """An entry of the permanent store for its calls, but an ordinary memory to propose; those that can make one
        get none half of the time."""
        if name in ("PermanentService/Propose", "PermanentService/Put") and self.chance.random() < 0.5:
            return None
        of_entries = "PermanentService" in name and not name.endswith("/Propose")
        return self._id(self.entry_ids if of_entries else self.memory_ids, who)

    def _options(self, kind):
        options = kind._concrete_class(filter=self._value_of_filter(), scopes=self.chance.sample(list(Scope), 1))
        options.latency_budget.FromSeconds(20)
        options.sections.extend(self.chance.sample(range(1, 7), self.chance.choice([0, 2])))
        return options

    def _value_of_filter(self):
        return pb.Filter(layers=self.chance.sample([2, 3, 4], self.chance.choice([0, 1])))

    def _owners(self, who, session_share):
        """Owner ids: mostly the principal's own."""
        chance, own = self.chance, self.chance.random() < 0.8
        owners = pb.Owners(tenant=who.tenant if own or chance.random() < 0.5 else self.tenants[1])
        for field, every, mine in (
            ("user_id", self.users, who.user_ids),
            ("project_id", self.projects, who.project_ids),
            ("agent_id", self.agents, (who.agent_id,) if who.agent_id else ()),
        ):
            ids = every if not own or "*" in mine else mine
            if ids and chance.random() < 0.6:
                setattr(owners, field, chance.choice(list(ids)))
        if chance.random() < session_share:
            owners.session_id = chance.choice(["s", "of-a0", "of-p1", "fresh"])
        if session_share > 0.5 and chance.random() < 0.3:
            owners.MergeFrom(pb.Owners(user_id="u0", agent_id="a0", session_id="of-a0"))
        return owners

    def _draft(self):
        chance = self.chance
        return memory_service_pb2.MemoryDraft(
            content=f"Tea number {chance.randrange(10_000)} is green.",
            scope=chance.choice([0, 0, *Scope]),
            layer=chance.choice([0, 2, 3, 4]),
            type=chance.choice([2, 3]),
            supersedes=chance.sample(self.memory_ids, chance.choice([0, 0, 0, 1])),
        )


# -- the comparison ----------------------------------------------------------------------------------------------

STRUCTURED = {"Memory", "Fact", "Skill", "PermanentMemory"}


def shown(message, world):
    """Namespace and layer of everything in an answer that tells of a memory."""
    name = message.DESCRIPTOR.name
    if name in STRUCTURED:
        at = message.namespace
        layer = {"Memory": getattr(message, "layer", 0), "Fact": 3, "Skill": 4, "PermanentMemory": 5}[name]
        yield at.tenant, Scope(at.scope), at.owner, Layer(layer)
        return
    if name in ("ContextLine", "ResolvedParameter") and message.memory_id:
        space, layer = world.place(message.memory_id)
        yield space.tenant, space.scope, space.owner, layer
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is not None and kind.full_name.startswith("memsvc.") and not kind.GetOptions().map_entry:
            yield from chain.from_iterable(shown(one, world) for one in (value if field.is_repeated else [value]))


def waiting(message):
    """The memories in an answer that wait for approval."""
    if message.DESCRIPTOR.name == "Memory" and message.status == pb.STATUS_PENDING:
        yield message
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.full_name.startswith("memsvc."):
            yield from chain.from_iterable(waiting(one) for one in (value if field.is_repeated else [value]))


def check_allowed(name, who, request, answer, before, after, world, actor):
    """What a call showed and changed, it was allowed to."""
    for told in (*getattr(answer, "entries", ()), *getattr(answer, "chains", ())):  # of an audit
        at = told.namespace
        for layer in Layer:
            assert may(who, Right.AUDIT, at.tenant, Scope(at.scope), at.owner, layer), (name, who, at)
    if name == "ErasureService/Purge":
        ids, names = answer.receipt.memory_ids, answer.receipt.namespaces
        whole = [((n.tenant, Scope(n.scope), n.owner), layer) for n in names for layer in Layer]
        found = [(spread(*world.place(one))[:3], world.place(one)[1]) for one in ids] if ids else whole
        assert all(may(who, Right.ERASE, *place, layer) for place, layer in found), (name, who, request)
    for memory in waiting(answer):
        space, layer = world.place(memory.memory_id)
        assert world.writer(memory.memory_id) == actor or may(who, Right.APPROVE, *spread(space, layer)), name
    for place in shown(answer, world):
        assert may(who, Right.READ, *place) or (name in WRITES and may(who, WRITES[name], *place)), (name, who, place)
    right = WRITES.get(name, Right.WRITE)
    for space, layer in world.written(before, after, actor):
        assert may(who, right, space.tenant, space.scope, space.owner, layer), (name, who, space, layer)
    for (space, key), raw in after[1].items():
        if before[1].get((space, key)) != raw:
            place = (space.tenant, space.scope, space.owner, Layer.PERMANENT)
            assert name.startswith("PermanentService/"), name
            assert may(who, WRITES[name], *place), (name, who, place)
    if name.startswith("SessionService/"):
        owners = Owners(**{f.name: value for f, value in request.owners.ListFields()})
        right = Right.READ if name.split("/")[1].startswith(("Get", "List", "Assemble")) else Right.WRITE
        if owners.session_id is not None:
            space = namespace_for(owners, Scope.SESSION)
            assert may(who, right, space.tenant, space.scope, space.owner, Layer.WORKING), (name, who, owners)
            kept = {"of-a0": ("agent_id", "a0"), "of-p1": ("project_id", "p1")}.get(owners.session_id)
            if kept is not None and owners.user_id == "u0":
                assert getattr(owners, kept[0]) == kept[1], (name, who, owners)


def check_refused(name, who, request, metadata):
    """What a refusal names is missing."""
    if metadata.get("right") == "admin":
        assert name.startswith("AdminService/")
    elif "right" in metadata:
        assert not has(who, Right(metadata["right"]), Scope[metadata["scope"]], Layer[metadata["layer"]]), (name, who)
    elif metadata.get("owner_id") == "*":
        assert name == "AuditService/Verify"
        assert request.all
        assert not owns(who, metadata["owner"], "*"), (name, who)
    elif "owner_id" in metadata:
        assert getattr(request.owners, metadata["owner"]) == metadata["owner_id"]
        assert not owns(who, metadata["owner"], metadata["owner_id"]), (name, who, metadata)
    else:
        assert not request.owners.HasField(metadata["owner"]), (name, metadata)


def compare(world, calls):
    """Makes calls and compares; how they ended, by name and code."""
    ended = Counter()
    for number in range(calls):
        if number % CALLS_PER_PRINCIPAL == 0:
            world.open_sessions()
            who = world.principal()
            token, record = world.service.tokens.issue(who, "local")
            metadata, actor = (("authorization", f"Bearer {token}"),), f"token:{record.token_id}"
        name = world.chance.choice(sorted(set(RULES) - OWN_TOKEN))
        request = world.request(name, who)
        before = world.state()
        answer, error = world.wire.outcome(name, request, metadata)
        if error is not None:
            ended[name, error.code().name] += 1
            assert error.code().name not in ("INTERNAL", "UNKNOWN", "UNAUTHENTICATED"), (name, request, error)
            assert world.state() == before, name
            if error.code() == grpc.StatusCode.PERMISSION_DENIED:
                info = error_details_pb2.ErrorInfo()
                rpc_status.from_call(error).details[0].Unpack(info)
                check_refused(name, who, request, info.metadata)
            continue
        ended[name, "OK"] += 1
        assert not name.startswith("AdminService/"), name
        if name == "SessionService/End":
            world.service.consolidator.wait(Owners(**{f.name: value for f, value in request.owners.ListFields()}), 30.0)
        check_allowed(name, who, request, answer, before, world.state(), world, actor)
    return ended


@pytest.fixture
def world(service, channel, make_wire, fresh_id):
    return World(service, make_wire(channel), fresh_id, random.Random(5))


def test_generated_calls_agree_with_the_model(world):
    ended = compare(world, CALLS)
    passed = {name for name, code in ended if code == "OK"}
    refused = {name for name, code in ended if code == "PERMISSION_DENIED"}
    assert len(passed) > 20, "too few calls pass to say anything"
    assert len(refused) > 40


@pytest.mark.soak
def test_many_generated_calls_agree_with_the_model(world):
    world.chance.seed(11)
    ended = compare(world, CALLS_SOAK)
    ordinary = {name for name in RULES if not name.startswith("AdminService/")} - OWN_TOKEN
    assert {name for name, code in ended if code == "OK"} >= ordinary - NEVER_PASS
    assert {name for name, code in ended if code == "PERMISSION_DENIED"} == set(RULES) - OWN_TOKEN
