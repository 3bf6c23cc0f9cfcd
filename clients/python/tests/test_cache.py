"""What a client knows by itself, and its circuit breaker, on clocks of the test's own."""

from __future__ import annotations

import pytest

from memsvc_client import MemoryClient
from memsvc_client._proto import memory_pb2 as pb
from memsvc_client._proto import memory_service_pb2 as spb
from memsvc_client.breaker import CircuitBreaker
from memsvc_client.cache import RecallCache, RecentMemories, terms_of


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def memory(number: int, content: str, version: int = 1, status: int = pb.STATUS_ACTIVE, **fields) -> pb.Memory:
    return pb.Memory(memory_id=f"mem_{number}", content=content, version=version, status=status, **fields)


def found(recent: RecentMemories, query: str, now_s: float = 0.0, **options) -> list[str]:
    return [hit.memory.content for hit in recent.match(query, options, now_s) or []]


def test_a_refusal_with_a_wait_is_no_failure_and_holds_back_exactly_as_long():
    clock = Clock()
    breaker = CircuitBreaker(clock, lambda: 1.0, threshold=3)
    for _ in range(2):
        breaker.failed()
    breaker.refused(7.0)
    assert (breaker.is_held, breaker.is_open, breaker.allow()) == (True, False, False)
    breaker.refused(1.0)
    clock.now_s += 6.5
    assert not breaker.allow(), "a shorter wait of another call does not end the longer one"
    clock.now_s += 0.5
    assert (breaker.is_held, breaker.allow(), breaker.allow()) == (False, True, True)
    breaker.refused(0.0)
    for _ in range(2):
        breaker.failed()
    assert breaker.allow(), "the refusal was an answer: failures count anew"


def test_breaker_opens_cools_down_probes_and_closes():
    clock = Clock()
    breaker = CircuitBreaker(clock, lambda: 1.0, threshold=3, cool_down_s=1.0, cool_down_max_s=4.0)
    for _ in range(3):
        assert breaker.allow()
        breaker.failed()
    assert breaker.is_open
    assert not breaker.allow()
    for wait_s in (1.0, 2.0, 4.0, 4.0):  # doubles up to the cap
        clock.now_s += wait_s - 0.01
        assert not breaker.allow()
        clock.now_s += 0.01
        assert breaker.allow()
        assert not breaker.allow(), "one probe at a time"
        breaker.failed()
    clock.now_s += 4.0
    assert breaker.allow()
    breaker.abandoned()
    assert breaker.allow(), "an abandoned probe makes room for the next"
    clock.now_s += 3.9
    assert not breaker.allow()
    clock.now_s += 0.2
    assert breaker.allow(), "a probe that says nothing holds the others back no longer than the cap"
    assert not breaker.allow()
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.allow()
    assert breaker.allow()


def test_cache_is_bounded_lru_and_knows_the_age():
    clock = Clock()
    cache = RecallCache(2, 60.0, clock)
    for key in (b"a", b"b"):
        cache.put(key, spb.RecallResponse(), 1)
    assert cache.get(b"a") is not None
    cache.put(b"c", spb.RecallResponse(), 2)
    assert cache.get(b"b") is None
    clock.now_s += 61
    assert cache.get(b"a") == (spb.RecallResponse(), 1, False)
    assert cache.get(b"c") == (spb.RecallResponse(), 2, False)
    cache.clear()
    assert cache.get(b"c") is None


def test_recent_memories_match_words_in_both_languages():
    recent = RecentMemories(8)
    recent.replace_all([memory(3, "会议改到星期五下午"), memory(2, "order A-4711 shipped"), memory(1, "likes tea")])
    assert found(recent, "星期五") == ["会议改到星期五下午"]
    assert found(recent, "where is a-4711?") == ["order A-4711 shipped"]
    assert found(recent, "ＴＥＡ") == ["likes tea"]
    assert found(recent, "nothing of it") == []
    assert found(recent, "") == ["会议改到星期五下午", "order A-4711 shipped", "likes tea"]


def test_recent_memories_follow_versions_and_drop_what_stopped_standing():
    recent = RecentMemories(2)
    recent.apply(memory(1, "old words", version=2))
    recent.apply(memory(1, "older words", version=1))
    assert found(recent, "words") == ["old words"]
    recent.apply(memory(1, "new words", version=3))
    assert recent.newer_version(memory(1, "old words", version=2)).content == "new words"
    recent.apply(memory(1, "new words", version=4, status=pb.STATUS_FORGOTTEN))
    assert recent.is_gone("mem_1")
    assert found(recent, "words") == []
    for i in range(2, 6):
        recent.apply(memory(i, f"words {i}"))
    assert sorted(found(recent, "words")) == ["words 4", "words 5"]


def test_a_version_from_before_a_forget_does_not_come_back():
    recent = RecentMemories(4)
    recent.apply(memory(1, "secret", version=2, status=pb.STATUS_FORGOTTEN))
    recent.apply(memory(1, "secret", version=1))
    assert found(recent, "secret") == []


def test_what_was_replaced_stops_standing_until_a_later_version_stands_again():
    recent = RecentMemories(4)
    recent.apply(memory(1, "port 9077", version=3))
    recent.replaced("mem_1")
    recent.replaced("mem_2")
    recent.apply(memory(1, "port 9077", version=3))  # a change that was on its way
    assert found(recent, "port") == []
    assert recent.is_gone("mem_1")
    assert recent.is_gone("mem_2")
    recent.apply(memory(1, "port 9077", version=5))
    recent.apply(memory(2, "port 9078", version=3))
    assert sorted(found(recent, "port")) == ["port 9077", "port 9078"]
    assert not recent.is_gone("mem_1")


@pytest.mark.parametrize(
    ("outcome", "standing"),
    [
        (spb.WRITE_OUTCOME_CREATED, ["new words", "old words"]),
        (spb.WRITE_OUTCOME_SUPERSEDED, ["new words"]),
        (spb.WRITE_OUTCOME_CONTESTED, ["new words"]),
        (spb.WRITE_OUTCOME_MERGED, ["old words"]),
        (spb.WRITE_OUTCOME_REJECTED, ["old words"]),
        (spb.WRITE_OUTCOME_STAGED, ["old words"]),
    ],
)
def test_the_outcome_of_a_write_says_what_stands(outcome, standing):
    with MemoryClient("127.0.0.1:1", user_id="u") as client:
        core = client._core
        core.recent.apply(memory(1, "old words"))
        at = pb.NamespaceSequence(namespace=pb.Namespace(scope=pb.SCOPE_USER, owner="u"), sequence=2)
        new_id = "mem_1" if outcome in (spb.WRITE_OUTCOME_MERGED, spb.WRITE_OUTCOME_REJECTED) else "mem_2"
        result = spb.WriteResult(memory_id=new_id, outcome=outcome, at=at, version=1, conflicting_ids=["mem_1"])
        core.wrote([spb.MemoryDraft(content="new words")], [result])
        assert sorted(found(core.recent, "words")) == standing


def test_local_filters():
    recent = RecentMemories(8)
    recent.apply(memory(1, "tagged", tags=["a", "b"], type=pb.MEMORY_TYPE_RULE, subject="s"))
    recent.apply(memory(2, "expired", expire_time={"seconds": 10}))
    assert found(recent, "", now_s=11.0) == ["tagged"]
    assert found(recent, "", tags_all=["a", "b"], types=["rule"], subjects=["s"]) == ["tagged"]
    assert found(recent, "", tags_any=["c"]) == []
    assert recent.match("", {"min_importance": 0.5}, 0.0) is None, "not judged here"


@pytest.mark.parametrize("text", ["", " ", "?!", "\x00", "😀"])
def test_texts_without_words_have_no_terms(text):
    assert terms_of(text) == set()


def test_every_part_of_a_run_shares_a_term_with_it():
    run = "会议改到星期五"
    for start in range(len(run) - 1):
        for end in range(start + 2, len(run) + 1):
            assert terms_of(run[start:end]) & terms_of(run)
