"""Recall of a whole service: filters, times, budgets, odd queries."""

from __future__ import annotations

import time

import pytest

from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb


def contents(response: spb.RecallResponse) -> list[str]:
    return [hit.memory.content for hit in response.hits]


def test_filters_apply_before_top_k(stub, recall, owners):
    drafts = [spb.MemoryDraft(content=f"the weekly report number {i}") for i in range(300)]
    for i in range(0, 300, 30):
        drafts[i] = spb.MemoryDraft(content=f"lunch {i}", tags=["rare, with comma"])
    stub.BatchWrite(spb.BatchWriteRequest(owners=owners, memories=drafts))
    for query in ("weekly report number", ""):
        rare = recall(owners, query, top_k=10, filter=pb.Filter(tags_all=["rare, with comma"]))
        assert len(rare.hits) == 10
        assert all(text.startswith("lunch") for text in contents(rare))
    assert not recall(owners, "lunch", filter=pb.Filter(tags_all=["rare"])).hits


def test_both_bounds_of_a_time_range_count(remember, recall, owners):
    for second in (9, 10, 15, 20, 21):
        remember(owners, f"at {second}", occur_time={"seconds": second}, type=pb.MEMORY_TYPE_EVENT)
    span = pb.TimeRange(start_time={"seconds": 10}, end_time={"seconds": 20})
    for query in ("", "at"):
        found = contents(recall(owners, query, filter=pb.Filter(occur_time=span)))
        assert sorted(found) == ["at 10", "at 15", "at 20"]


def test_both_bounds_of_importance_count(remember, recall, owners):
    for value in (0.1, 0.25, 0.5, 0.75, 0.9):
        remember(owners, f"weight {value}", importance=value)
    found = recall(owners, "weight", filter=pb.Filter(min_importance=0.25, max_importance=0.75))
    assert sorted(contents(found)) == ["weight 0.25", "weight 0.5", "weight 0.75"]


@pytest.mark.parametrize("query", ["", "   ", "the of and", "的 了 是", "?!…。，", "\x00", "\u200b", "%", "'; --"])
def test_queries_without_words_have_a_defined_answer(remember, recall, owners, query):
    remember(owners, "the only memory")
    assert contents(recall(owners, query)) in ([], ["the only memory"])


def test_an_empty_query_gives_the_most_recent_first(remember, recall, owners):
    for i in range(5):
        remember(owners, f"entry {i}", occur_time={"seconds": 1_700_000_000 + i})
    assert contents(recall(owners, "", top_k=3)) == ["entry 4", "entry 3", "entry 2"]


def test_a_budget_of_a_microsecond_skips_the_vector_and_finds_the_words(remember, recall, owners):
    remember(owners, "The zeppelin hangar opens at nine")
    cold = recall(owners, "zeppelin", latency_budget={"nanos": 1000})
    assert cold.hits or spb.DEGRADED_NAMESPACES_SKIPPED in cold.degraded, "never silently empty"
    recall(owners, "anything")  # loads the namespace
    answer = recall(owners, f"zeppelin {owners.user_id}", latency_budget={"nanos": 1000})
    assert spb.DEGRADED_VECTOR_SKIPPED in answer.degraded
    assert contents(answer) == ["The zeppelin hangar opens at nine"]
    assert spb.RECALL_PATH_LEXICAL in answer.hits[0].paths


def test_expired_is_not_recalled_unless_asked_for(remember, recall, owners):
    remember(owners, "old offer", expire_time={"seconds": 1})
    remember(owners, "standing offer")
    for query in ("offer", ""):
        assert contents(recall(owners, query)) == ["standing offer"]
    both = recall(owners, "offer", include_inactive=True)
    assert sorted(contents(both)) == ["old offer", "standing offer"]
    assert {hit.memory.status for hit in both.hits} == {pb.STATUS_ACTIVE, pb.STATUS_EXPIRED}


def test_as_of_sees_the_old_content(stub, remember, recall, owners):
    written = remember(owners, "the server listens on port 9077").memory_id
    then_us = time.time_ns() // 1000
    request = spb.UpdateRequest(owners=owners, memory_id=written, patch=spb.MemoryPatch(content="port is now 8080"))
    request.update_mask.paths.append("content")
    stub.Update(request)
    for query in ("port", ""):
        old = recall(owners, query, as_of={"seconds": then_us // 10**6, "nanos": then_us % 10**6 * 1000})
        assert contents(old) == ["the server listens on port 9077"]
        assert contents(recall(owners, query)) == ["port is now 8080"]
    assert contents(recall(owners, "port", as_of={"seconds": 1})) == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("会议改到星期五下午三点", "星期五"),
        ("東京の桜は四月に咲く", "四月"),
        ("ประชุมวันศุกร์บ่าย", "วันศุกร์"),
        ("ＡＢＣ１２３を注文", "ABC123"),
    ],
)
def test_words_inside_a_run_are_found_without_a_vector(remember, recall, owners, text, query):
    remember(owners, text)
    answer = recall(owners, query, weights=spb.RecallWeights(vector=0.0))
    assert contents(answer) == [text]
    assert {spb.RECALL_PATH_LEXICAL, spb.RECALL_PATH_EXACT} & set(answer.hits[0].paths)


def test_components_add_up_and_order_the_hits(remember, recall, owners):
    for text in ("cats purr", "dogs bark", "a cat and a dog"):
        remember(owners, text)
    answer = recall(owners, "cat")
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    for hit in answer.hits:
        c = hit.components
        parts = c.vector + c.lexical + c.exact + c.time + c.importance + c.neighbour
        assert hit.score == pytest.approx(parts, abs=1e-5)
