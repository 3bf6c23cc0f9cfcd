"""The audit and purges through both clients, against a real server."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc_client import AsyncMemoryClient, InvalidArgument, MemoryClient, NotFound


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    made = Service(Settings(data_dir=tmp_path_factory.mktemp("audit"), listen="127.0.0.1:0", audit_reads="full"))
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def mem(running):
    options = {"user_id": f"u-{uuid.uuid4().hex}", "timeout_s": 20, "write_timeout_s": 20, "recent_count": 0}
    with MemoryClient(running.server.address, **options) as client:
        yield client


def test_the_audit_tells_who_read_and_changed(running, mem):
    memory_id = mem.write("I like tea", type="preference").memory_id
    mem.update(memory_id, content="I like green tea", reason="more exact")
    assert mem.get(memory_id).content == "I like green tea"
    running.audit_book.flush()
    newest = next(iter(mem.audit.list(scopes=["user"])))
    read = next(entry for entry in mem.audit.list(kinds=["read"], scopes=["user"]) if entry.call == "MemoryService/Get")
    assert (read.kind, read.actor, read.memory_ids) == ("read", "local", [memory_id])
    changes = list(mem.audit.list(kinds=["change"], scopes=["user"], newest_first=False))
    assert [(entry.change, entry.sequence) for entry in changes] == [("created", 1), ("updated", 2)]
    assert len(list(mem.audit.list(memory_id=memory_id, scopes=["user"], limit=2))) == 2
    (chain,) = mem.audit.verify(scopes=["user"])
    assert (chain.whole, chain.head_number, chain.head_hash) == (True, newest.number, newest.hash)
    with pytest.raises(InvalidArgument, match="kinds"):
        mem.audit.list(kinds=["looked"])


def test_why_tells_of_changes_and_reads(running, mem):
    memory_id = mem.write("I like tea", type="preference").memory_id
    mem.get(memory_id)
    running.audit_book.flush()
    found = mem.audit.why(memory_id)
    assert found.memory.content == "I like tea"
    assert [change.kind for change in found.changes] == ["created"]
    assert "MemoryService/Get" in {read.call for read in found.reads}  # beside the client's own Watch
    assert found.related == []
    assert found.to_dict()["reads"][0]["actor"] == "local"
    with pytest.raises(NotFound):
        mem.audit.why("mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f")


def test_a_purge_leaves_a_receipt(mem):
    mem.write("I like tea", type="preference")
    assert mem.erasure.purge(reason="asked for", dry_run=True).memory_count == 1
    receipt = mem.erasure.purge(reason="asked for")
    assert (receipt.state, receipt.memory_count, receipt.reason) == ("done", 1, "asked for")
    assert mem.erasure.receipt(receipt.id).to_dict() == receipt.to_dict()
    assert next(iter(mem.erasure.receipts(limit=1))).hash == receipt.hash
    assert list(mem.list(include_inactive=True)) == []


def test_the_async_client_has_the_same_calls(running):
    async def work():
        options = {"user_id": f"u-{uuid.uuid4().hex}", "timeout_s": 20, "write_timeout_s": 20, "recent_count": 0}
        async with AsyncMemoryClient(running.server.address, **options) as mem:
            memory_id = (await mem.write("I like tea", type="preference")).memory_id
            assert (await mem.audit.why(memory_id)).memory.content == "I like tea"
            assert [entry.change async for entry in mem.audit.list(kinds=["change"], scopes=["user"])] == ["created"]
            assert all(chain.whole for chain in await mem.audit.verify(scopes=["user"]))
            receipt = await mem.erasure.purge([memory_id], reason="slip")
            assert (await mem.erasure.receipt(receipt.id)).memory_ids == [memory_id]
            assert [one.id async for one in mem.erasure.receipts(limit=1)] == [receipt.id]
            assert (await mem.get(memory_id)).status == "purged"

    asyncio.run(work())
