"""Every row of the table of rules, need by need: who lacks one thing is refused by its name, who has exactly what is
needed gets through.

What a call needs is said here once more, by hand and from the contract, and knows nothing of the table.
"""

from __future__ import annotations

from itertools import count

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.model import Layer, Scope
from memsvc.service.auth.principal import Right
from memsvc.service.auth.tokens import Wanted
from memsvc.v1 import context_pb2 as cpb
from memsvc.v1 import memory_pb2 as pb

OK, DENIED, NOT_FOUND = grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND
SESSION, AGENT, USER, PROJECT, GLOBAL = Scope
STORED = (Layer.EPISODIC, Layer.SEMANTIC, Layer.PROCEDURAL)
TENANT = "rows"
IDS = {USER: "user_id", PROJECT: "project_id", AGENT: "agent_id", SESSION: "session_id"}  # order of an unset scope
EVERY = tuple(IDS)
SOME = ((USER,), (PROJECT,), (AGENT,), (PROJECT, AGENT), (USER, SESSION), EVERY)
SKILL = "name: {}\ndescription: Serves tea.\ntrigger: When somebody wants tea.\nsteps:\n  - boil water\n"
TURN = {"speaker": 1, "content": "I prefer green tea, always."}
EVENT = {"event_type": "tea"}
NUMBERS = count()


def owners(scopes, session="s"):
    """Owner ids of these scopes."""
    ids = {IDS[scope]: session if scope == SESSION else IDS[scope][0] for scope in scopes if scope != GLOBAL}
    return pb.Owners(tenant=TENANT, **ids)


def needs(text, scopes):
    """`read:episodic write:semantic` in scopes; without layers in all that memories have."""
    found = set()
    for word in text.split():
        right, _, layers = word.partition(":")
        where = [Layer[layer.upper()] for layer in layers.split(",")] if layers else STORED
        found |= {(Right(right), scope, layer) for scope in scopes for layer in where}
    return found


# -- shapes of requests: each yields requests with what they need --------------------------------------------------


def over(text, filtered=False, **fields):
    """Requests with `scopes`: one, several, or unset for all of the owners' and GLOBAL."""

    def cases(_world):
        for scopes in (*((scope,) for scope in Scope), (USER, GLOBAL)):
            yield {"owners": owners(EVERY), "scopes": scopes, **fields}, needs(text, scopes)
        for given in SOME:
            yield {"owners": owners(given), **fields}, needs(text, (*given, GLOBAL))
        yield {"owners": owners(()), "scopes": [GLOBAL], **fields}, needs(text, [GLOBAL])
        for layers in (STORED[:1], STORED[1:], (Layer.WORKING, Layer.PERMANENT)) if filtered else ():
            named = ",".join(layer.name.lower() for layer in layers)
            asked = {"owners": owners(EVERY), "scopes": [USER], "filter": {"layers": layers}, **fields}
            yield asked, needs(f"{text}:{named}", [USER])

    return cases


def into(text, **fields):
    """Requests with `scope`: named, or unset for the first of the owners'. `{}` in a text is a new number."""

    def cases(_world):
        for scope, given in (*((scope, EVERY) for scope in Scope), *((None, given) for given in SOME)):
            said = {k: v.format(next(NUMBERS)) if isinstance(v, str) else v for k, v in fields.items()}
            yield {"owners": owners(given), "scope": scope, **said}, needs(text, [scope or given[0]])

    return cases


def of_memory(rights, **fields):
    """Requests with the id of one memory."""

    def cases(world):
        for scope in Scope:
            for layer in STORED:
                asked = {"owners": owners(EVERY), "memory_id": world.memory(scope, layer), **fields}
                yield asked, at(rights, scope, layer)

    return cases


def approved(cases):
    """What is written at once needs approve as well where it is everybody's."""

    def more(world):
        for request, needed in cases(world):
            written = {(scope, layer) for right, scope, layer in needed if right == Right.WRITE and scope == GLOBAL}
            yield request, needed | {(Right.APPROVE, *place) for place in written}

    return more


def of_item(rights):
    """Requests with the id of one item of the review queue."""

    def cases(world):
        for request, needed in of_memory(rights)(world):
            yield {"owners": request["owners"], "item_id": request["memory_id"]}, needed

    return cases


def resolve(world):
    for request, needed in of_item("read approve")(world):
        yield {"owners": request["owners"], "decisions": [{"item_id": request["item_id"], "action": 1}]}, needed


def of_entry(text, call="Put", **fields):
    """Requests with the id of one entry of the permanent store, made by this call."""

    def cases(world):
        for scope in Scope:
            asked = {"owners": owners(EVERY), "memory_id": world.entry(scope, call), **fields}
            yield asked, needs(f"{text}:permanent", [scope])

    return cases


def at(rights, scope, layer):
    return {(Right(right), scope, layer) for right in rights.split()}


def drafts(field, many):
    """Write: a draft's layer is the one given, or follows from its type; what it supersedes is written too."""

    def cases(world):
        for scope, given in (*((scope, EVERY) for scope in Scope), *((None, given) for given in SOME)):
            home = scope or given[0]
            old = world.memory(home, Layer.EPISODIC) if given == EVERY else ""
            for layers, draft in (
                ([Layer.SEMANTIC], {}),
                ([Layer.EPISODIC], {"type": pb.MEMORY_TYPE_EVENT}),
                ([Layer.EPISODIC], {"event": EVENT}),
                ([Layer.PROCEDURAL], {"layer": pb.LAYER_PROCEDURAL}),
                *([([Layer.SEMANTIC, Layer.EPISODIC], {"supersedes": [old]})] if old else []),
            ):
                one = {"content": f"Tea number {next(NUMBERS)}.", "scope": scope, **draft}
                needed = {(Right.WRITE, home, layer) for layer in layers}
                if many and scope is not None:
                    other = {"content": f"Tea number {next(NUMBERS)}.", "scope": USER, "layer": pb.LAYER_PROCEDURAL}
                    yield {"owners": owners(given), field: [one, other]}, needed | at("write", USER, Layer.PROCEDURAL)
                else:
                    yield {"owners": owners(given), field: [one] if many else one}, needed

    return cases


def forget(world):
    """By id, or all that matches; unset scopes leave GLOBAL alone."""
    for request, needed in of_memory("write")(world):
        yield {"owners": request["owners"], "memory_ids": [request["memory_id"]]}, needed
    both = [world.memory(USER, Layer.SEMANTIC), world.memory(GLOBAL, Layer.EPISODIC)]
    needed = at("write", USER, Layer.SEMANTIC) | at("write", GLOBAL, Layer.EPISODIC)
    yield {"owners": owners(EVERY), "memory_ids": both}, needed
    for request, needed in over("write", filtered=True, all=True)(world):
        yield request, needed if "scopes" in request else {need for need in needed if need[1] != GLOBAL}


def review(world):
    for request, needed in of_memory("read approve")(world):
        yield {"owners": request["owners"], "decisions": [{"memory_id": request["memory_id"], "action": 1}]}, needed
    first, second = world.memory(USER, Layer.SEMANTIC), world.memory(PROJECT, Layer.EPISODIC)
    both = [{"memory_id": memory_id, "action": 1} for memory_id in (first, second)]
    needed = at("read approve", USER, Layer.SEMANTIC) | at("read approve", PROJECT, Layer.EPISODIC)
    yield {"owners": owners(EVERY), "decisions": both}, needed


def purge(world):
    """Everything of owners, a user's sessions too and of a session nothing else; or what has these ids."""
    dry = {"reason": "r", "dry_run": True}
    for given in SOME:
        gone = (SESSION,) if SESSION in given else (*given, SESSION) if USER in given else given
        yield {"owners": owners(given), **dry}, needs(f"erase:{EVERY_LAYER}", gone)
    for scope in EVERY:
        gone = (scope, SESSION) if scope == USER else (scope,)
        yield {"owners": owners(EVERY), "scopes": [scope], **dry}, needs(f"erase:{EVERY_LAYER}", gone)
    for request, needed in (*of_memory("erase")(world), *of_entry("erase")(world)):
        yield {"owners": request["owners"], "memory_ids": [request["memory_id"]], **dry}, needed


def run(world):
    """A run's event stands beside its skill; of a GLOBAL one in the narrowest scope of the caller's own, if any."""
    for request, needed in over("read:procedural", name="tea", outcome=1)(world):
        narrow = (AGENT, USER, PROJECT, SESSION)
        given = [*(scope for scope in narrow if request["owners"].HasField(IDS[scope])), GLOBAL]
        beside = {given[0] if scope == GLOBAL else scope for _, scope, _ in needed}
        yield request, needed | needs("write:episodic", beside)


def put(world):
    """A new entry, or one that is replaced."""
    yield from into("maintain:permanent", kind=1, content="Tea {}.", reason="r")(world)
    replaced = of_entry("maintain", kind=1, content="Replaced.", reason="r")
    for request, needed in replaced(world):
        yield {**request, "content": f"Replaced {next(NUMBERS)}."}, needed
    for request, needed in replaced(world):
        ((_, scope, _),) = needed
        yield {**request, "scope": scope, "content": f"Replaced {next(NUMBERS)}."}, needed


def propose(world):
    """A statement, or a memory's: beside it, or in the scope that is named."""
    yield from into("propose:permanent", kind=1, content="Tea {}.", reason="r")(world)
    for request, needed in of_memory("read", kind=1, reason="r")(world):
        ((_, scope, _),) = needed
        yield request, needed | needs("propose:permanent", [scope])
    for request, needed in of_memory("read", kind=1, reason="r", scope=AGENT)(world):
        yield request, needed | needs("propose:permanent", [AGENT])


def of_session(rights, opened=True, more=lambda session: [({}, set())], ended=False, **fields):
    """Requests about a session of its own."""

    def cases(world):
        for scopes in ((USER, AGENT, SESSION), (USER, AGENT, PROJECT, SESSION)):
            for extra, needed in more(scopes):
                whom = owners(scopes, f"s{next(NUMBERS)}")
                if opened:
                    world.wire.call("SessionService/Start", {"owners": whom})
                if ended:
                    world.wire.call("SessionService/End", {"owners": whom, "discard": True})
                yield {"owners": whom, **fields, **extra}, at(rights, SESSION, Layer.WORKING) | needed

    return cases


def end(scopes):
    """What is kept goes into one scope; what is dropped goes nowhere."""
    yield {"discard": True}, set()
    yield {}, needs("write", [USER])
    for scope in (*scopes, GLOBAL):
        yield {"scope": scope}, needs("write", [scope])


def block(scopes):
    """Options of a context: permanent memories are in it unless sections are named without them."""
    wide = (*scopes, GLOBAL)
    yield {}, needs("read read:permanent", wide)
    yield {"options": {"sections": [cpb.CONTEXT_SECTION_FACTS]}}, needs("read", wide)
    yield {"options": {"sections": [cpb.CONTEXT_SECTION_PERMANENT]}}, needs("read read:permanent", wide)
    yield {"options": {"filter": {"layers": [Layer.SEMANTIC]}}}, needs("read:semantic,permanent", wide)
    for scope in wide:
        yield {"options": {"scopes": [scope]}}, needs("read read:permanent", [scope])


def context(world):
    """With a session, its working memory is in the block."""
    yield from of_session("read", more=block, query="tea")(world)
    for given in SOME:
        if SESSION not in given:
            for extra, needed in block(given):
                yield {"owners": owners(given), "query": "tea", **extra}, needed


EVERY_LAYER = ",".join(layer.name.lower() for layer in Layer)
NEEDS = {
    "MemoryService/Write": drafts("memory", many=False),
    "MemoryService/BatchWrite": drafts("memories", many=True),
    "MemoryService/Recall": over("read", filtered=True, query="tea"),
    "MemoryService/Get": of_memory("read"),
    "MemoryService/List": over("read", filtered=True),
    "MemoryService/Update": approved(
        of_memory("read write", patch={"importance": 0.5}, update_mask={"paths": ["importance"]})
    ),
    "MemoryService/Forget": approved(forget),
    "MemoryService/History": of_memory("read"),
    "MemoryService/Watch": over("read"),
    "MemoryService/Ingest": into("write", messages=[TURN]),
    "MemoryService/Review": review,
    "MemoryService/ListConflicts": over("read"),
    "MemoryService/ResolveConflict": of_memory("read approve", resolution=1),
    "SessionService/Start": of_session("write", opened=False, goal="tea"),
    "SessionService/AppendTurns": of_session("write", turns=[TURN]),
    "SessionService/GetState": of_session("read"),
    "SessionService/UpdateState": of_session("read write", add_pending=["pour"]),
    "SessionService/RecordToolOutput": of_session("write", tool="kettle", content="boils"),
    "SessionService/Assemble": of_session("read", more=block, query="tea"),
    "SessionService/End": of_session("write", more=end),
    "SessionService/GetConsolidation": of_session("read", ended=True),
    "SessionService/List": of_session("read", opened=False),
    "ContextService/AssembleContext": context,
    "EventService/Record": into("write:episodic", summary="Tea {} was served.", event=EVENT),
    "EventService/Query": over("read:episodic"),
    "FactService/Put": approved(into("write:semantic", key="tea.kind", value={"string_value": "green"})),
    "FactService/Get": over("read:semantic", keys=["tea.kind"]),
    "FactService/List": over("read:semantic"),
    "FactService/History": into("read:semantic", key="tea.kind"),
    "FactService/Delete": approved(into("write:semantic", key="tea.kind")),
    "FactService/Match": over("read:semantic", query="tea"),
    "SkillService/Push": approved(into("write:procedural", source=SKILL)),
    "SkillService/Get": over("read:procedural", name="tea"),
    "SkillService/List": over("read:procedural"),
    "SkillService/Versions": over("read:procedural", name="tea"),
    "SkillService/Rollback": approved(over("read:procedural write:procedural", name="tea", version=1)),
    "SkillService/Match": over("read", query="tea"),
    "SkillService/RecordRun": run,
    "SkillService/Propose": into("read:episodic propose:procedural"),
    "SkillService/Decide": over("read:procedural approve:procedural", name="tea", approve=True),
    "ReviewService/List": over("read approve"),
    "ReviewService/Get": of_item("read approve"),
    "ReviewService/Resolve": resolve,
    "PermanentService/List": over("read:permanent"),
    "PermanentService/Propose": propose,
    "PermanentService/Decide": of_entry("maintain", call="Propose", accept=True, reason="r"),
    "PermanentService/Put": put,
    "PermanentService/Remove": of_entry("maintain", reason="r"),
    "PermanentService/History": of_entry("read"),
    "ErasureService/Purge": purge,
    "AuditService/Query": over(f"audit:{EVERY_LAYER}"),
    "AuditService/Verify": over(f"audit:{EVERY_LAYER}"),
    "AuditService/Why": of_memory("read"),
}
# How a call that may pass ends where the world has nothing for it to succeed with.
ENDS = {
    "MemoryService/ResolveConflict": grpc.StatusCode.FAILED_PRECONDITION,
    "ReviewService/Get": grpc.StatusCode.FAILED_PRECONDITION,
    "SkillService/Decide": grpc.StatusCode.FAILED_PRECONDITION,
    "AdminService/Backup": grpc.StatusCode.INVALID_ARGUMENT,  # no directory
    "AdminService/StartReindex": grpc.StatusCode.FAILED_PRECONDITION,  # no model
    "AdminService/GetToken": NOT_FOUND,
    "AdminService/RevokeToken": NOT_FOUND,
    "AdminService/GetReceipt": NOT_FOUND,
    "AdminService/CreateToken": grpc.StatusCode.INVALID_ARGUMENT,  # no such grant
}


# -- the world -----------------------------------------------------------------------------------------------------


class World:
    """A server with one tenant's owners, and tokens by the rights that they have."""

    def __init__(self, service, wire):
        self._service, self.wire = service, wire
        self._tokens = {}

    def stock(self):
        """The skill and the fact that calls name; other calls may have forgotten them."""
        for scope in Scope:
            whom = {"owners": owners(EVERY), "scope": scope}
            self.wire.call("SkillService/Push", {**whom, "source": SKILL.format("tea")})
            self.wire.call("FactService/Put", {**whom, "key": "tea.kind", "value": {"string_value": "green"}})

    def memory(self, scope, layer):
        """The id of a new memory, approved where it is everybody's."""
        draft = {"content": f"Tea number {next(NUMBERS)}.", "scope": scope, "layer": layer, "type": 2}
        memory_id = self.wire.call("MemoryService/Write", {"owners": owners(EVERY), "memory": draft}).result.memory_id
        if scope == GLOBAL:
            decisions = [{"item_id": memory_id, "action": 1}]
            self.wire.call("ReviewService/Resolve", {"owners": owners(EVERY), "decisions": decisions})
        return memory_id

    def entry(self, scope, call):
        """The id of a new entry of the permanent store."""
        asked = {"owners": owners(EVERY), "scope": scope, "kind": 1, "content": f"Tea {next(NUMBERS)}.", "reason": "r"}
        return self.wire.call(f"PermanentService/{call}", asked).memory.memory_id

    def token(self, rights):
        """Metadata of a call by somebody who has these rights and no others."""
        rights = frozenset(rights)
        if rights not in self._tokens:
            places = sorted({(scope, layer) for _, scope, layer in rights})
            grants = [
                f"{scope.name}:{layer.name}={','.join(r for r in Right if (r, scope, layer) in rights)}"
                for scope, layer in places
            ]
            silent = () if any(scope == GLOBAL for scope, _ in places) else ("global=none",)
            ids = {"agent_id": "a", "user_ids": ("u",), "project_ids": ("p",)}
            self._tokens[rights] = self.issue(grants=(*grants, *silent), **ids)
        return self._tokens[rights]

    def issue(self, **fields):
        secret, _ = self._service.tokens.issue(Wanted(**{"tenant": TENANT, **fields}), "local")
        return (("authorization", f"Bearer {secret}"),)


EVERYTHING = {(right, scope, layer) for right in Right for scope in Scope for layer in Layer}


def check_row(world, name):
    """Every request of the call, with one need taken away after the other, and with no more than the needs."""
    world.stock()
    for request, needed in NEEDS[name](world):
        assert needed
        for right, scope, layer in sorted(needed):
            _, error = world.wire.outcome(name, request, world.token(EVERYTHING - {(right, scope, layer)}))
            missing = {"right": right.value, "scope": scope.name, "layer": layer.name}
            assert told(error) == (DENIED, missing), (name, request, missing, error)
        _, error = world.wire.outcome(name, request, world.token(needed))
        assert told(error)[0] == ENDS.get(name, OK), (name, request, sorted(needed), error)


def told(error):
    """Code and metadata of an answer."""
    if error is None:
        return OK, {}
    info, status = error_details_pb2.ErrorInfo(), rpc_status.from_call(error)
    if status is not None:  # what nobody caught has none
        status.details[0].Unpack(info)
    return error.code(), dict(info.metadata)


# -- whose a session is, and who looks after the server --------------------------------------------------------------

ENDED = ["SessionService/Start", "SessionService/End", "ContextService/AssembleContext"]
OF_SESSION = [name for name in NEEDS if name.startswith(("SessionService/", "ContextService/"))]
PART = (USER, SESSION)


def asked_of(world, name, whom):
    """The fields of a request about this session."""
    request, _ = next(iter(NEEDS[name](world)))
    return {**request, "owners": whom}


def check_session(world, name):
    """Neither who leaves out its agent nor an agent that is left out reaches a session."""
    everything = {"grants": tuple(f"{scope.name}={','.join(Right)}" for scope in Scope)}
    user = world.issue(user_ids=("u",), **everything)
    agent = world.issue(user_ids=("u",), agent_id="b", **everything)
    for scopes in ((USER, AGENT, SESSION), (USER, PROJECT, SESSION)):
        session = f"s{next(NUMBERS)}"
        theirs, bare = owners(scopes, session), owners(PART, session)
        world.wire.call("SessionService/Start", {"owners": theirs})
        if name == "SessionService/GetConsolidation":  # the one that was ended is asked for, whoever has the id now
            world.wire.call("SessionService/End", {"owners": theirs, "discard": True})
            world.wire.call("SessionService/Start", {"owners": bare})
        _, error = world.wire.outcome(name, asked_of(world, name, bare), user)
        assert told(error)[0] == NOT_FOUND, (name, error)
        _, error = world.wire.outcome(name, asked_of(world, name, bare), agent)
        assert told(error) == (DENIED, {"owner": "agent_id"}), (name, error)


def check_ended(world, name):
    """A session that was ended stays its agent's."""
    theirs, bare = owners((USER, AGENT, SESSION), session := f"s{next(NUMBERS)}"), owners(PART, session)
    world.wire.call("SessionService/Start", {"owners": theirs})
    world.wire.call("SessionService/End", {"owners": theirs, "discard": True})
    user = world.issue(user_ids=("u",), grants=tuple(f"{scope.name}={','.join(Right)}" for scope in Scope))
    _, error = world.wire.outcome(name, asked_of(world, name, bare), user)
    assert told(error)[0] == NOT_FOUND, (name, error)


# Requests of AdminService by the tenant that they look after; "*" is the whole server.
OF_SERVER = [({}, "*")]
OF_TENANT = [({"tenant": TENANT}, TENANT), ({"tenant": "other"}, "other"), ({}, "default"), ({"tenant": "*"}, "*")]
OF_OWNERS = [
    ({}, "*"),
    ({"owners": pb.Owners(tenant=TENANT, user_id="u")}, TENANT),
    ({"owners": pb.Owners(tenant="other", user_id="u")}, "other"),
    ({"owners": pb.Owners(user_id="u")}, "default"),
]
ADMIN = {
    "AdminService/GetStats": OF_SERVER,
    "AdminService/Verify": OF_SERVER,
    "AdminService/Backup": OF_SERVER,
    "AdminService/StartReindex": [({"model_directory": "nowhere"}, "*")],
    "AdminService/GetReindex": OF_SERVER,
    "AdminService/PlanLifecycle": OF_OWNERS,
    "AdminService/RunLifecycle": OF_OWNERS,
    "AdminService/CreateToken": [({**fields, "grants": ["?"]}, tenant) for fields, tenant in OF_TENANT],
    "AdminService/GetToken": OF_TENANT,
    "AdminService/ListTokens": OF_TENANT,
    "AdminService/RevokeToken": OF_TENANT,
    "AdminService/RotateKeys": OF_SERVER,
    "AdminService/GetReceipt": OF_TENANT,
    "AdminService/ListReceipts": OF_TENANT,
}


def check_admin(world, name):
    """Everything but admin is not enough, admin alone is, and it ends with the tenant."""
    ids = {"agent_id": "*", "user_ids": ("*",), "project_ids": ("*",)}
    every = {"grants": tuple(f"{scope.name}={','.join(Right)}" for scope in Scope), **ids}
    none = {"grants": tuple(f"{scope.name}=none" for scope in Scope)}
    for fields, tenant in ADMIN[name]:
        own = TENANT if tenant == "*" else tenant
        for lacking in (every, {**every, "admin": True, "read_only": True}):
            _, error = world.wire.outcome(name, fields, world.issue(tenant=own, **lacking))
            assert told(error) == (DENIED, {"right": "admin"}), (name, fields, error)
        for holder, passes in ((own, tenant != "*"), ("*", True), ("third", False)):
            _, error = world.wire.outcome(name, fields, world.issue(tenant=holder, admin=True, **none))
            code, metadata = told(error)
            if passes:
                assert code == ENDS.get(name, OK), (name, fields, holder, error)
            else:
                assert (code, metadata.get("owner_id")) == (DENIED, tenant), (name, fields, holder, error)


@pytest.fixture(scope="module")
def world(tmp_path_factory, make_wire):
    """On a server of its own: the calls of AdminService are made for the whole of it."""
    running = Service(Settings(data_dir=tmp_path_factory.mktemp("rows"), listen="127.0.0.1:0"))
    try:
        address = running.start()
        with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
            yield World(running, make_wire(channel))
    finally:
        running.close()


def test_the_reference_names_every_call(make_wire):
    own_token = {"TokenService/Exchange"}  # touches no memory; test_exchange compares what it gives with what there was
    assert {*NEEDS, *ADMIN, *own_token} == set(make_wire.methods)


@pytest.mark.parametrize("name", NEEDS)
def test_a_call_needs_what_it_says_and_no_more(world, name):
    check_row(world, name)


@pytest.mark.parametrize("name", OF_SESSION)
def test_a_session_is_asked_for_by_its_agent_and_project(world, name):
    check_session(world, name)


@pytest.mark.parametrize("name", ENDED)
def test_an_ended_session_is_nobody_elses(world, name):
    check_ended(world, name)


@pytest.mark.parametrize("name", ADMIN)
def test_admin_is_of_a_tenant_or_of_the_server(world, name):
    check_admin(world, name)
