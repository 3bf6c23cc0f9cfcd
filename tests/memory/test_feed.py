"""Followers get every change once, in order, and can come back."""

from __future__ import annotations

import threading

import pytest

from memsvc.errors import InvalidArgument
from memsvc.memory.feed import BATCH_CHANGES
from memsvc.model import Namespace, Scope
from memsvc.v1 import memory_service_pb2 as spb

WAIT_S = 20.0


@pytest.fixture
def mine(owners) -> Namespace:
    return Namespace("default", Scope.USER, owners.user_id)


def drained(follower, count: int) -> list[int]:
    sequences: list[int] = []
    while len(sequences) < count:
        sequences += [event.change.sequence for event in follower.poll(WAIT_S)]
    return sequences


def test_more_changes_than_a_batch_come_once_and_in_order(service, stub, owners, mine):
    count = 2 * BATCH_CHANGES + 3
    follower = service.feed.follow([mine], {})
    drafts = [spb.MemoryDraft(content=f"change {i}") for i in range(count)]
    stub.BatchWrite(spb.BatchWriteRequest(owners=owners, memories=drafts))
    assert drained(follower, count) == list(range(1, count + 1))
    follower.close()
    again = service.feed.follow([mine], {mine: count - 2})
    assert drained(again, 2) == [count - 1, count]
    again.close()


def test_writers_in_parallel_leave_no_gap(service, remember, owners, mine):
    follower = service.feed.follow([mine], {})
    threads = [threading.Thread(target=remember, args=(owners, f"parallel {i}")) for i in range(16)]
    for thread in threads:
        thread.start()
    assert drained(follower, 16) == list(range(1, 17))
    for thread in threads:
        thread.join()
    follower.close()


def test_positions_outside_the_log_are_refused(service, mine):
    for position in (-1, 1):
        with pytest.raises(InvalidArgument) as raised:
            service.feed.follow([mine], {mine: position})
        assert raised.value.field == "after.sequence"


def test_recent_is_newest_first_and_recallable_only(service, stub, remember, owners, mine):
    ids = [remember(owners, f"entry {i}").memory_id for i in range(4)]
    remember(owners, "expired", expire_time={"seconds": 1})
    stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[ids[2]]))
    recent = service.feed.recent([mine], 2, 1_800_000_000_000_000)
    assert [m.memory_id for m in recent] == [ids[3], ids[1]]
