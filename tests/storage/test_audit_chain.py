"""Any change of a chain shows: of a bit, of the order, of what is there."""

from __future__ import annotations

import hashlib

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from memsvc.model import AuditEntry, AuditKind, ChangeKind, Namespace, Scope, id_from_bytes
from memsvc.storage.audit_chain import ChainCheck, entry_hash, first_hash

NS = Namespace("acme", Scope.USER, "alice")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(0, 2**63)
entries = st.builds(
    AuditEntry,
    kind=st.sampled_from(AuditKind),
    time_us=st.integers(-(2**62), 2**62),
    actor=texts,
    call=texts,
    outcome=texts,
    memory_ids=st.lists(st.binary(min_size=16, max_size=16).map(id_from_bytes), max_size=3).map(tuple),
    count=numbers,
    sequence=numbers,
    change=st.one_of(st.none(), st.sampled_from(ChangeKind)),
    detail=texts,
    reason_hash=st.one_of(st.just(b""), st.binary(min_size=16, max_size=16)),
)
chains = st.lists(entries, min_size=2, max_size=6)


def chained(made: list[AuditEntry], namespace: Namespace = NS) -> list[AuditEntry]:
    previous, chain = first_hash(namespace), []
    for number, entry in enumerate(made, 1):
        numbered = msgspec.structs.replace(entry, number=number)
        previous = entry_hash(previous, numbered)
        chain.append(msgspec.structs.replace(numbered, hash=previous))
    return chain


def holds(chain: list[AuditEntry], namespace: Namespace = NS) -> bool:
    check = ChainCheck(namespace)
    return not any(check.problem(entry) for entry in chain)


@given(chains)
def test_a_chain_as_it_was_written_holds(made: list[AuditEntry]) -> None:
    assert holds(chained(made))


@given(chains, entries, st.data())
def test_an_entry_with_another_value_shows(made: list[AuditEntry], other: AuditEntry, data: st.DataObject) -> None:
    chain = chained(made)
    at = data.draw(st.integers(0, len(chain) - 1))
    field = data.draw(st.sampled_from([f for f in AuditEntry.__struct_fields__ if f not in ("number", "hash")]))
    assume(getattr(other, field) != getattr(chain[at], field))
    chain[at] = msgspec.structs.replace(chain[at], **{field: getattr(other, field)})
    assert not holds(chain)


@given(chains, st.data())
def test_one_changed_bit_of_a_hash_shows(made: list[AuditEntry], data: st.DataObject) -> None:
    chain = chained(made)
    at, bit = data.draw(st.integers(0, len(chain) - 1)), data.draw(st.integers(0, 255))
    flipped = int.from_bytes(chain[at].hash, "big") ^ 1 << bit
    chain[at] = msgspec.structs.replace(chain[at], hash=flipped.to_bytes(32, "big"))
    assert not holds(chain)


@given(chains, st.data())
def test_a_removed_a_doubled_and_two_swapped_entries_show(made: list[AuditEntry], data: st.DataObject) -> None:
    chain = chained(made)
    at = data.draw(st.integers(0, len(chain) - 2))
    assert not holds(chain[:at] + chain[at + 1 :])
    assert not holds(chain[: at + 1] + chain[at:])
    assert not holds([*chain[:at], chain[at + 1], chain[at], *chain[at + 2 :]])


@given(chains, st.data())
def test_entries_that_are_numbered_anew_after_a_removal_show(made: list[AuditEntry], data: st.DataObject) -> None:
    chain = chained(made)
    at = data.draw(st.integers(0, len(chain) - 2))
    left = chain[:at] + chain[at + 1 :]
    assert not holds([msgspec.structs.replace(entry, number=n) for n, entry in enumerate(left, 1)])


@given(chains)
def test_a_chain_is_no_other_namespaces(made: list[AuditEntry]) -> None:
    for other in (Namespace("acme", Scope.USER, "alic"), Namespace("acmea", Scope.USER, "lice")):
        assert not holds(chained(made), other)
    assert not holds(chained(made), Namespace("acme", Scope.AGENT, "alice"))


def test_the_documented_form_gives_the_hash() -> None:
    entry = AuditEntry(
        kind=AuditKind.CHANGE,
        time_us=5,
        actor="local",
        call="MemoryService/Write",
        memory_ids=(id_from_bytes(bytes(16)), id_from_bytes(bytes(15) + b"\1")),
        count=2,
        sequence=3,
        change=ChangeKind.CREATED,
        detail="ü",
        reason_hash=b"\1\2",
        number=1,
    )
    first = hashlib.sha256(b"14:memsvc-audit-1,4:acme,4:USER,5:alice,").digest()
    ids = b"mem_00000000-0000-0000-0000-000000000000,mem_00000000-0000-0000-0000-000000000001"
    hashed = (
        b"14:memsvc-audit-1,64:" + first.hex().encode() + b",1:1,1:5,6:CHANGE,5:local,19:MemoryService/Write,0:,"
        b"81:" + ids + b",1:2,1:3,7:CREATED,2:\xc3\xbc,4:0102,"
    )
    assert first_hash(NS) == first
    assert entry_hash(first, entry) == hashlib.sha256(hashed).digest()
