"""Reading and checking the audit on a store of its own: pages, broken chains, and both sides of the comparison."""

from __future__ import annotations

import pytest

from memsvc.errors import Cancelled, InvalidArgument
from memsvc.memory import audit
from memsvc.memory.audit_reader import BLOCK_ENTRIES, AuditFilter, AuditReader
from memsvc.model import (
    AuditEntry,
    AuditKind,
    ChangeKind,
    IdMinter,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    TimeSpan,
)
from memsvc.storage.engine import AuditHead
from memsvc.storage.lmdb_engine import LmdbEngine

NS, OTHER = Namespace("t", Scope.USER, "u"), Namespace("t", Scope.PROJECT, "p")
CLOCK = iter(range(1, 1_000_000))
MINTER = IdMinter(lambda: 1_700_000_000_000_000)


@pytest.fixture
def engine(tmp_path):
    opened = LmdbEngine.open(tmp_path / "store")
    yield opened
    opened.close()


@pytest.fixture
def reader(engine):
    return AuditReader(engine)


def put(txn, namespace=NS, audited=True, actor="a", reason=""):
    """A new memory, with its entry."""
    fields = {"layer": Layer.SEMANTIC, "type": MemoryType.FACT, "content": "c", "update_time_us": next(CLOCK)}
    memory = Memory(memory_id=MINTER.mint(), version=0, sequence=0, namespace=namespace, **fields)
    stored = txn.put(memory, ChangeKind.CREATED, time_us=memory.update_time_us, actor=actor, reason=reason)
    if audited:
        audit.changed(txn, stored, ChangeKind.CREATED, actor, "Test/Put", reason)
    return stored


def put_many(engine, count, **fields):
    return engine.write(lambda txn: [put(txn, **fields) for _ in range(count)])


def pages(reader, namespaces, size, condition=None, newest_first=False):
    token, found = "", []
    while True:
        page, token = reader.query(
            namespaces, condition or AuditFilter(), newest_first=newest_first, size=size, page_token=token
        )
        assert len(page) <= size
        found.append(page)
        if not token:
            return [(name, entry.number) for page in found for name, entry in page]


@pytest.mark.parametrize("size", [1, 7, 300, 1000])
def test_pages_are_the_whole_once_in_both_directions(engine, reader, size):
    put_many(engine, BLOCK_ENTRIES + 3)
    put_many(engine, 5, namespace=OTHER)
    numbers = [(NS, n + 1) for n in range(BLOCK_ENTRIES + 3)], [(OTHER, n + 1) for n in range(5)]
    assert pages(reader, [NS, OTHER], size) == [*numbers[0], *numbers[1]]
    assert pages(reader, [NS, OTHER], size, newest_first=True) == [*numbers[0][::-1], *numbers[1][::-1]]


def test_conditions(engine, reader):
    first, second = put_many(engine, 1, actor="a")[0], put_many(engine, 1, actor="b")[0]
    engine.write(lambda txn: audit.token_changed(txn, "t", "tok", "a", "AdminService/CreateToken", next(CLOCK)))
    everywhere = [NS, Namespace("t", Scope.GLOBAL, "")]
    for condition, wanted in (
        ({"kinds": (AuditKind.ADMIN,)}, [(everywhere[1], 1)]),
        ({"kinds": (AuditKind.CHANGE,)}, [(NS, 1), (NS, 2)]),
        ({"actor": "b"}, [(NS, 2)]),
        ({"memory_id": first.memory_id}, [(NS, 1)]),
        ({"time": TimeSpan(second.update_time_us, second.update_time_us)}, [(NS, 2)]),
        ({"actor": "b", "memory_id": first.memory_id}, []),
    ):
        assert pages(reader, everywhere, 10, AuditFilter(**condition)) == wanted


def test_tokens_of_another_request_are_refused(engine, reader):
    put_many(engine, 3)
    _, token = reader.query([NS, NS], AuditFilter(), newest_first=False, size=4, page_token="")
    for bad in ("x", token):
        with pytest.raises(InvalidArgument):
            reader.query([NS], AuditFilter(), newest_first=False, size=1, page_token=bad)


def test_a_caller_that_is_gone_stops_both(engine, reader):
    put_many(engine, 3)
    gone = {"still_wanted": lambda: False}
    with pytest.raises(Cancelled):
        reader.query([NS], AuditFilter(), newest_first=False, size=1, page_token="", **gone)
    with pytest.raises(Cancelled):
        reader.verify([NS], **gone)


def test_a_good_chain(engine, reader):
    put_many(engine, BLOCK_ENTRIES * 2)
    (report,) = reader.verify([NS, OTHER])  # nothing is known of the other
    with engine.read() as txn:
        assert report.head == txn.audit_head(NS)
    assert report.whole
    assert report.head.number == BLOCK_ENTRIES * 2


def test_changes_without_an_entry_are_counted(engine, reader):
    put_many(engine, 2)
    put_many(engine, 3, audited=False)
    put_many(engine, 1)
    put_many(engine, 1, audited=False)
    (report,) = reader.verify([NS])
    assert (report.missing_count, report.first_missing_sequence, report.stray_count) == (4, 3, 0)
    assert not report.whole


def test_entries_without_their_change_are_counted(engine, reader):
    (stored,) = put_many(engine, 1)

    def write(txn):
        audit.changed(txn, stored, ChangeKind.CREATED, "a", "Test/Put", "")  # told twice
        made = put(txn, audited=False)
        audit.changed(txn, made, ChangeKind.CREATED, "somebody else", "Test/Put", "")
        last = put(txn)
        entry = AuditEntry(kind=AuditKind.CHANGE, time_us=1, actor="a", call="c", sequence=last.sequence + 1)
        txn.append_audit(NS, entry)

    engine.write(write)
    (report,) = reader.verify([NS])
    assert (report.stray_count, report.first_stray_number, report.missing_count) == (3, 2, 0)


def test_changes_that_are_older_than_the_audit_are_not_missing(engine, reader):
    put_many(engine, 3, audited=False)
    assert audit.begin(engine, 5) == 1
    assert audit.begin(engine, 6) == 0, "once in a store's life"
    put_many(engine, 2)
    (report,) = reader.verify([NS])
    assert report.whole
    assert report.baseline_sequence == 3
    put_many(engine, 1, audited=False)
    assert reader.verify([NS])[0].first_missing_sequence == 6


def test_a_later_beginning_excuses_nothing(engine, reader):
    assert audit.begin(engine, 1) == 0, "a new store has nothing older"
    put_many(engine, 1)
    put_many(engine, 2, audited=False)
    again = AuditEntry(kind=AuditKind.ADMIN, time_us=9, actor="audit", call="audit", outcome=audit.BEGINS, sequence=3)
    engine.write(lambda txn: txn.append_audit(NS, again))
    assert reader.verify([NS])[0].missing_count == 2


def test_an_expected_head(engine, reader):
    put_many(engine, 3)
    head = reader.verify([NS])[0].head
    put_many(engine, 2)
    assert reader.verify([NS], expect=head)[0].whole
    other = reader.verify([NS], expect=AuditHead(2, head.hash))[0]
    assert (other.broken_number, other.whole) == (2, False)
    cut = reader.verify([NS], expect=AuditHead(9, head.hash))[0]
    assert cut.broken_number == 9
    assert "ends at 5" in cut.problem
    assert reader.verify([OTHER], expect=AuditHead(1, head.hash))[0].broken_number == 1, "all of it was cut off"
    with pytest.raises(InvalidArgument):
        reader.verify([NS, OTHER], expect=head)
