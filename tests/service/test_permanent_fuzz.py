"""Whatever an ordinary token asks, random or hostile, the permanent store keeps its bytes: only Propose adds to it.

Requests are built from the descriptors of the contract, with values that pass and values that should not, and with the
ids of permanent memories wherever an id goes.
"""

from __future__ import annotations

import random
from collections import Counter

import grpc
import msgspec
import pytest
from google.protobuf.descriptor import FieldDescriptor as F

from memsvc.memory.owners import Owners, namespace_for
from memsvc.memory.permanent import PermanentMemory
from memsvc.model import Scope, Status
from memsvc.service.auth.principal import Right
from memsvc.service.auth.tokens import Wanted
from memsvc.storage.engine import RecordTable
from memsvc.v1 import memory_pb2 as pb

CALLS = 3000
CALLS_SOAK = 30_000
HOSTILE = 0.08  # share of fields whose value is meant to hurt
LEFT_OUT = 0.3
DEPTH_MAX = 4
RIGHTS = [right for right in Right if right not in (Right.MAINTAIN, Right.ERASE)]  # no ordinary token has these
ALL = {"user_id": "u", "project_id": "p", "agent_id": "a", "session_id": "s"}
SKILL = "name: {}\ndescription: Serves tea.\ntrigger: When somebody wants tea.\nsteps:\n  - boil water\n"
STRINGS = [
    "",
    " ",
    "*",
    "\0",
    "permanent",
    "../../permanent",
    "'; DROP TABLE permanent; --",
    "\u202e\U0001f375",
    "x" * 70_000,
]
INTEGERS = [0, 1, -1, 2**31 - 1, -(2**31)]
LONGS = [0, 1, -1, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, 0.5, 1.0, -1.0, float("nan"), float("inf"), 1e308]
WIDE = (F.CPPTYPE_INT64, F.CPPTYPE_UINT64)
UNSIGNED = (F.CPPTYPE_UINT32, F.CPPTYPE_UINT64)


class Fuzzer:
    """Requests by descriptor. `ids` are of memories and of entries of the permanent store."""

    def __init__(self, tenant, ids, chance):
        self.tenant, self.ids, self.chance = tenant, ids, chance

    def request(self, descriptor):
        message = self._message(descriptor, 0)
        if self.chance.random() < 0.02:  # a field that nobody knows
            return type(message).FromString(message.SerializeToString() + b"\xfa\x7f\x03abc")
        return message

    def _message(self, descriptor, depth):
        message = descriptor._concrete_class()
        for field in descriptor.fields:
            needed = field.name in ("owners", "kind", "content", "reason", "memory_id")
            if depth >= DEPTH_MAX or self.chance.random() < (0.1 if needed else LEFT_OUT):
                continue
            if field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry:
                self._fill_map(getattr(message, field.name), field.message_type, depth)
            elif field.is_repeated:
                into = getattr(message, field.name)
                for _ in range(self.chance.choice([0, 1, 1, 2])):
                    into.append(self._value(field, depth))
            elif field.message_type is not None:
                getattr(message, field.name).CopyFrom(self._value(field, depth))
            else:
                setattr(message, field.name, self._value(field, depth))
        return message

    def _fill_map(self, into, entry, depth):
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        for _ in range(self.chance.choice([0, 1, 2])):
            if value.message_type is not None:
                into[self._value(key, depth)].CopyFrom(self._value(value, depth + 1))
            else:
                into[self._value(key, depth)] = self._value(value, depth)

    def _value(self, field, depth):
        chance = self.chance
        is_hostile = chance.random() < HOSTILE
        if field.name == "owners":
            return self._owners(is_hostile)
        if field.message_type is not None:
            return self._message(field.message_type, depth + 1)
        if field.enum_type is not None:
            numbers = [value.number for value in field.enum_type.values]
            return chance.choice([99, -1, 2**31 - 1]) if is_hostile else chance.choice(numbers)
        if field.cpp_type == F.CPPTYPE_STRING and field.type != F.TYPE_BYTES:
            return chance.choice([*STRINGS, *self.ids]) if is_hostile else self._text(field)
        if field.type == F.TYPE_BYTES:
            return chance.randbytes(9)
        if field.cpp_type == F.CPPTYPE_BOOL:
            return chance.random() < 0.5
        if field.cpp_type in (F.CPPTYPE_DOUBLE, F.CPPTYPE_FLOAT):
            return chance.choice(DOUBLES) if is_hostile else chance.random()
        values = LONGS if field.cpp_type in WIDE else INTEGERS
        value = chance.choice(values) if is_hostile else chance.choice([0, 1])
        return abs(value) if field.cpp_type in UNSIGNED else value

    def _text(self, field):
        """A text that the field may take."""
        if field.name.endswith(("memory_id", "memory_ids", "supersedes", "caused_by")):
            return self.chance.choice([*self.ids, ""])
        fixed = {"request_id": "", "page_token": "", "etag": "", "key": "tea.kind", "keys": "tea.kind", "name": "tea"}
        if field.name == "source":
            return SKILL.format("tea")
        return fixed.get(field.name, f"Tea {self.chance.randrange(40)}.")

    def _owners(self, is_hostile):
        owners = pb.Owners(tenant=self.tenant)
        for field, value in ALL.items():
            if self.chance.random() < 0.7:
                setattr(owners, field, self.chance.choice(STRINGS) if is_hostile else value)
        return owners


class Store:
    """The permanent store of a tenant, raw: (namespace, id) -> bytes."""

    def __init__(self, service, tenant):
        self._engine = service.engine
        owners = Owners(tenant=tenant, **ALL)
        self._known = {namespace_for(owners, scope) for scope in Scope}
        self._tenant = tenant

    def records(self):
        with self._engine.read() as txn:
            heads = {head.namespace for head in txn.heads() if head.namespace.tenant == self._tenant}
            names = heads | self._known
            return {(name, key): raw for name in names for key, raw in txn.records(RecordTable.PERMANENT, name)}


def check_only_a_proposal(before, after, actor):
    """One entry is new or has one version more, a proposal by this actor; all others keep their bytes."""
    assert before.keys() <= after.keys()
    changed = [place for place, raw in after.items() if before.get(place) != raw]
    assert len(changed) <= 1, changed
    for place in changed:
        versions = msgspec.msgpack.decode(after[place], type=list[PermanentMemory])
        earlier = msgspec.msgpack.decode(before[place], type=list[PermanentMemory]) if place in before else []
        assert versions[:-1] == earlier, place
        assert (versions[-1].status, versions[-1].actor) == (Status.PENDING, actor), place


@pytest.fixture
def world(channel, make_wire, fresh_id):
    """A tenant with entries that stand, wait and were removed in every scope: its wire, name and ids."""
    wire, tenant, ids = make_wire(channel), fresh_id(), []
    for scope in Scope:
        whom = {"owners": pb.Owners(tenant=tenant, **ALL), "scope": scope}
        for call in ("Put", "Propose", "Put"):
            entry = {**whom, "kind": 1, "content": f"Entry {len(ids)} of {scope.name}.", "reason": "r"}
            ids.append(wire.call(f"PermanentService/{call}", entry).memory.memory_id)
        wire.call("PermanentService/Remove", {"owners": whom["owners"], "memory_id": ids[-1], "reason": "r"})
        memory = {"content": f"Tea of {scope.name}.", "scope": scope}
        ids.append(wire.call("MemoryService/Write", {"owners": whom["owners"], "memory": memory}).result.memory_id)
    return wire, tenant, ids


def fuzz(service, world, calls, chance):
    """How the calls ended, by name and code."""
    wire, tenant, ids = world
    everything = tuple(f"{scope.name}={','.join(RIGHTS)}" for scope in Scope)
    every = {"agent_id": "*", "user_ids": ("*",), "project_ids": ("*",)}
    token, record = service.tokens.issue(Wanted(tenant=tenant, grants=everything, **every), "local")
    metadata, actor = (("authorization", f"Bearer {token}"),), f"token:{record.token_id}"
    store, fuzzer = Store(service, tenant), Fuzzer(tenant, ids, chance)
    names = sorted(name for name in wire.methods if not name.startswith("AdminService/"))
    ended, before = Counter(), store.records()
    for _ in range(calls):
        name = chance.choice(names)
        request = fuzzer.request(wire.methods[name].input_type)
        _, error = wire.outcome(name, request, metadata)
        code = grpc.StatusCode.OK if error is None else error.code()
        ended[name, code.name] += 1
        assert code.name not in ("INTERNAL", "UNKNOWN"), (name, request, error)
        after = store.records()
        if after != before:
            assert (name, code.name) == ("PermanentService/Propose", "OK"), (name, request)
            check_only_a_proposal(before, after, actor)
            before = after
    return ended


def check_reached(ended):
    """The calls came as far as they should, or the fuzz says nothing."""
    for name in ("Put", "Decide", "Remove"):
        codes = {code for call, code in ended if call == f"PermanentService/{name}"}
        assert "OK" not in codes, name
        assert "PERMISSION_DENIED" in codes, name
    passed = {name for name, code in ended if code == "OK"}
    assert passed >= {"PermanentService/Propose", "PermanentService/List", "MemoryService/Forget", "MemoryService/Get"}
    assert len(passed) > 25, sorted(passed)


def test_the_permanent_store_keeps_its_bytes(service, world):
    check_reached(fuzz(service, world, CALLS, random.Random(3)))


@pytest.mark.soak
def test_the_permanent_store_keeps_its_bytes_for_long(service, world):
    check_reached(fuzz(service, world, CALLS_SOAK, random.Random(8)))
