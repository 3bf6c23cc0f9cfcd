"""The decision of a write: every outcome, the order in time, ranks, and what is never lost."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

import memsvc.memory.conflict as conflict
from memsvc.config import default_model_cache_dir
from memsvc.memory.conflict import Calibration, Decision, Incoming, Standing, decide
from memsvc.memory.conflict.claims import analyze_claim
from memsvc.memory.conflict.decision import HOUR_US
from memsvc.memory.conflict.pairs import FEATURES
from memsvc.model import MemoryType, Outcome
from memsvc.retrieval.default_model import ensure_default_model
from memsvc.retrieval.embedder import Embedder

FACT, PREFERENCE, DECISION, EVENT, RULE = MemoryType
NOW = 1_750_000_000_000_000
MONTH = 30 * 24 * HOUR_US
CALIBRATIONS = Path(conflict.__file__).with_name("calibration.json")


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    known = msgspec.json.decode(CALIBRATIONS.read_bytes(), type=dict[str, Calibration])
    return next(iter(known.values()))


def incoming(text: str, type: MemoryType = FACT, at: int = NOW, subject: str = "") -> Incoming:
    claim = analyze_claim(text, type, subject)
    return Incoming(content=text, type=type, claim=claim, occur_time_us=at, subject=subject)


def standing(
    text: str,
    cosine: float,
    type: MemoryType = FACT,
    at: int = NOW - MONTH,
    subject: str = "",
    memory_id: str = "mem_1",
) -> Standing:
    claim = analyze_claim(text, type, subject)
    return Standing(
        memory_id=memory_id, content=text, type=type, claim=claim, occur_time_us=at, cosine=cosine, subject=subject
    )


PORT, OTHER_PORT = "The port of the cache is 6379", "The port of the cache is 6380"


def test_nothing_stands(calibration: Calibration) -> None:
    assert decide(incoming(PORT), [], calibration).outcome == Outcome.CREATED


def test_the_same_words_merge_whatever_their_case(calibration: Calibration) -> None:
    found = decide(incoming(PORT.upper() + "."), [standing(PORT, 0.99)], calibration)
    assert (found.outcome, found.memory_ids) == (Outcome.MERGED, ("mem_1",))


def test_a_newer_value_supersedes(calibration: Calibration) -> None:
    found = decide(incoming(OTHER_PORT), [standing(PORT, 0.98)], calibration)
    assert (found.outcome, found.memory_ids) == (Outcome.SUPERSEDED, ("mem_1",))
    assert found.evidence["old_only"] == ["#:6379"]
    assert "6379" in found.summary
    assert "6380" in found.summary


def test_an_older_value_never_overrides(calibration: Calibration) -> None:
    found = decide(incoming(OTHER_PORT, at=NOW - 2 * MONTH), [standing(PORT, 0.98)], calibration)
    assert (found.outcome, found.memory_ids) == (Outcome.REJECTED, ("mem_1",))


def test_nearly_the_same_time_is_contested_until_a_cue_decides(calibration: Calibration) -> None:
    old = standing(PORT, 0.98, at=NOW - HOUR_US)
    assert decide(incoming(OTHER_PORT), [old], calibration).outcome == Outcome.CONTESTED
    assert decide(incoming("Correction: " + OTHER_PORT), [old], calibration).outcome == Outcome.SUPERSEDED
    later = msgspec.structs.replace(calibration, contest_window_us=0)
    assert decide(incoming(OTHER_PORT), [old], later).outcome == Outcome.SUPERSEDED


@pytest.mark.parametrize("at", [NOW, NOW - 2 * MONTH])
def test_a_decision_outranks_a_fact_whatever_the_order(calibration: Calibration, at: int) -> None:
    fact, decision = "The backend is written in Python", "Decision: the backend is written in Go"
    lower = decide(incoming(fact, at=at), [standing(decision, 0.95, DECISION)], calibration)
    higher = decide(incoming(decision, DECISION, at=at), [standing(fact, 0.95)], calibration)
    assert (lower.outcome, higher.outcome) == (Outcome.REJECTED, Outcome.SUPERSEDED)


def test_a_guess_never_overrides(calibration: Calibration) -> None:
    guess = "I think the port of the cache is 6380"
    assert decide(incoming(guess), [standing(PORT, 0.95)], calibration).outcome == Outcome.REJECTED
    assert decide(incoming(PORT), [standing(guess, 0.95)], calibration).outcome == Outcome.SUPERSEDED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The port of the staging cache is 6379", "The port of the production cache is 6380"),
        ("测试环境的端口是 6379", "生产环境的端口是 6380"),
        ("Service A uses Python", "Service B uses Python"),
        ("小李负责测试", "小赵负责运维"),
        ("The cache timeout is 30 minutes", "The session timeout is 30 minutes"),
        ("用户喜欢喝茶", "用户喜欢喝咖啡"),
        ("Erik's desk is 14", "Erika's desk is 41"),
        ("The user prefers short answers", "Just this once the user wants a long answer"),
        ("去年营收是 300 万", "今年营收是 500 万"),
    ],
)
def test_other_things_stand_side_by_side(calibration: Calibration, old: str, new: str) -> None:
    assert decide(incoming(new), [standing(old, 0.96)], calibration).outcome == Outcome.CREATED


def test_events_are_always_created(calibration: Calibration) -> None:
    assert decide(incoming(PORT, EVENT), [standing(PORT, 1.0, EVENT)], calibration).outcome == Outcome.CREATED
    assert decide(incoming(PORT), [standing(PORT, 1.0, EVENT)], calibration).outcome == Outcome.CREATED


def test_another_subject_is_another_thing(calibration: Calibration) -> None:
    def outcome(old: str, new: str) -> Outcome:
        return decide(incoming(OTHER_PORT, subject=new), [standing(PORT, 0.98, subject=old)], calibration).outcome

    assert outcome("service/a", "service/b") == Outcome.CREATED
    assert outcome("service/a", "Service.A") == Outcome.SUPERSEDED
    assert outcome("service/a", "service/a/port") == Outcome.SUPERSEDED
    assert outcome("service/a", "service/ab") == Outcome.CREATED
    assert outcome("", "service/a") == Outcome.SUPERSEDED


def test_one_statement_supersedes_several(calibration: Calibration) -> None:
    old = [
        standing(PORT, 0.98, memory_id="mem_1"),
        standing("The cache's port is 6379", 0.97, memory_id="mem_2"),
        standing("The user lives in Paris", 0.75, memory_id="mem_3"),
    ]
    found = decide(incoming("The port of the cache is 6380 now"), old, calibration)
    assert found.outcome == Outcome.SUPERSEDED
    assert set(found.memory_ids) == {"mem_1", "mem_2"}


def test_the_order_of_what_stands_does_not_matter(calibration: Calibration) -> None:
    old = [standing(PORT, 0.98, memory_id="mem_1"), standing("The cache is Redis", 0.9, memory_id="mem_2")]
    assert decide(incoming(OTHER_PORT), old, calibration) == decide(incoming(OTHER_PORT), old[::-1], calibration)


def test_long_texts_are_never_merged_by_likeness(calibration: Calibration) -> None:
    transcript = "user: hello there. agent: hello, how can I help? " * 40
    found = decide(incoming(transcript + "one"), [standing(transcript + "two", 0.999)], calibration)
    assert found.outcome == Outcome.CREATED


def test_evidence_is_json_and_summaries_are_short(calibration: Calibration) -> None:
    found: Decision = decide(incoming(OTHER_PORT + " x" * 250), [standing(PORT, 0.98)], calibration)
    assert json.loads(json.dumps(found.evidence)) == found.evidence
    assert len(found.summary) < 600


def test_a_calibration_of_other_features_is_refused(calibration: Calibration) -> None:
    with pytest.raises(ValueError, match="calibrate_conflict"):
        msgspec.structs.replace(calibration, features=FEATURES[:-1])


def test_with_the_real_model() -> None:
    embedder = Embedder(ensure_default_model(default_model_cache_dir()))
    try:
        known = msgspec.json.decode(CALIBRATIONS.read_bytes(), type=dict[str, Calibration])
        calibration = known[embedder.model_id]
        cases = [
            ("The office is in Vienna", "The office has moved to Graz", Outcome.SUPERSEDED),
            ("用户的车停在二楼", "用户喜欢听古典音乐", Outcome.CREATED),
            ("Never store passwords in logs", "Passwords must not be stored in logs", Outcome.MERGED),
            ("Kafka runs in staging with 1 broker", "Kafka runs in production with 5 brokers", Outcome.CREATED),
        ]
        for old, new, expected in cases:
            first, second = np.asarray(embedder.embed_passages([old, new]))
            found = decide(incoming(new), [standing(old, float(first @ second))], calibration)
            assert found.outcome == expected, (old, new, found.evidence)
    finally:
        embedder.close()
