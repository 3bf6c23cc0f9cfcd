"""Listing and history, page by page."""

from __future__ import annotations

import pytest

from memsvc.errors import InvalidArgument, NotFound
from memsvc.memory import listing
from memsvc.model import NO_FILTER, Namespace, Scope
from memsvc.v1 import memory_service_pb2 as spb


def test_pages_neither_skip_nor_repeat_while_writes_and_forgets_go_on(stub, remember, owners):
    written = [remember(owners, f"memory {i}").memory_id for i in range(25)]
    seen, token = [], ""
    while True:
        page = stub.List(spb.ListRequest(owners=owners, page_size=4, page_token=token))
        seen += [m.memory_id for m in page.memories]
        token = page.next_page_token
        if not token:
            break
        remember(owners, f"written between the pages after {len(seen)}")
        stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[seen[-1]]))
    assert seen == written[::-1]


def test_an_exactly_full_last_page_has_no_token(stub, remember, owners):
    for i in range(4):
        remember(owners, f"memory {i}")
    assert not stub.List(spb.ListRequest(owners=owners, page_size=4)).next_page_token


def test_history_is_newest_first_with_before_and_after_page_by_page(stub, remember, owners):
    written = remember(owners, "version 1").memory_id
    for i in (2, 3):
        request = spb.UpdateRequest(
            owners=owners, memory_id=written, patch=spb.MemoryPatch(content=f"version {i}"), reason=f"why {i}"
        )
        request.update_mask.paths.append("content")
        stub.Update(request)
    stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[written], reason="done"))
    changes, token = [], ""
    while True:
        page = stub.History(spb.HistoryRequest(owners=owners, memory_id=written, page_size=3, page_token=token))
        changes += page.changes
        token = page.next_page_token
        if not token:
            break
    assert [c.kind for c in changes] == [
        spb.CHANGE_KIND_FORGOTTEN,
        spb.CHANGE_KIND_UPDATED,
        spb.CHANGE_KIND_UPDATED,
        spb.CHANGE_KIND_CREATED,
    ]
    assert [c.after.content for c in changes] == ["version 3", "version 3", "version 2", "version 1"]
    assert [c.before.content for c in changes[:3]] == ["version 3", "version 2", "version 1"]
    assert not changes[3].HasField("before")
    assert [c.reason for c in changes] == ["done", "why 3", "why 2", ""]


def test_tokens_of_other_calls_are_refused(service, stub, remember, owners):
    for text in ("a", "b"):
        remember(owners, text)
    token = stub.List(spb.ListRequest(owners=owners, page_size=1)).next_page_token
    namespace = Namespace("default", Scope.USER, owners.user_id)
    with pytest.raises(InvalidArgument):
        listing.history(service.engine, [namespace], f"mem_{'0' * 8}-0000-7000-8000-{'0' * 12}", 1, token)
    for bad in ("x", "AAAA", "gA==", token[:-4], "é"):
        with pytest.raises(InvalidArgument) as raised:
            listing.list_memories(service.engine, [namespace], NO_FILTER, False, 1, bad, 0)
        assert raised.value.field == "page_token"


def test_history_of_an_unknown_memory_is_not_found(service, owners):
    namespace = Namespace("default", Scope.USER, owners.user_id)
    with pytest.raises(NotFound):
        listing.history(service.engine, [namespace], "mem_00000000-0000-7000-8000-000000000000", 1, "")
