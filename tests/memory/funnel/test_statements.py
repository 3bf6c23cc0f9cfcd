"""Cutting, cleaning, picking: what a statement is made of."""

from __future__ import annotations

import numpy as np
import pytest

from memsvc.memory.funnel import Candidate, Decision, Funnel, Judgement, Message, Unclear, load_weights
from memsvc.memory.funnel.picks import offer_of, options_of, resolve
from memsvc.memory.funnel.segments import split_clauses, split_sentences
from memsvc.model import Layer, MemoryType

NOW_US = 1_741_600_000_000_000  # Monday 2025-03-10


class Keeper:
    """Keeps everything, as a fact."""

    def judge(self, unclear: list[Unclear]) -> list[Judgement]:
        return [Judgement(0.9, (0.9, 0.025, 0.025, 0.025, 0.025))] * len(unclear)


def candidates(text: str, previous: str = "") -> tuple[Candidate, ...]:
    center = np.asarray(load_weights().center, np.float32)
    funnel = Funnel(lambda texts: np.tile(center, (len(texts), 1)), Keeper())
    history = [Message("agent", previous, NOW_US)] if previous else []
    (verdict,) = funnel.judge([Message("user", text, NOW_US)], history)
    assert verdict.decision == Decision.KEPT
    return verdict.candidates


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two at 3.5 GB! Three?", ["One.", "Two at 3.5 GB!", "Three?"]),
        ("一句。两句！三句", ["一句。", "两句！", "三句"]),
        ("Use e.g. tea. Dr. May agrees.", ["Use e.g. tea.", "Dr. May agrees."]),
        ("Do it so:\n```py\nx = 1. \ny = 2\n```", ["Do it so:\n```py\nx = 1. \ny = 2\n```"]),
        ("他说：“先走。后回。”我们照办", ["他说：“先走。后回。”我们照办"]),
        ("- a thing\n- b thing", ["- a thing", "- b thing"]),
        ("...", []),
        ("We moved to gRPC. It works.", ["We moved to gRPC.", "It works."]),
        ("We run on AWS. Deploys need approval.", ["We run on AWS.", "Deploys need approval."]),
        ("改用 gRPC.然后部署", ["改用 gRPC.", "然后部署"]),
        ("J. Smith owns the U.S. market.", ["J. Smith owns the U.S. market."]),
        ("Ask J. R. R. Tolkien or J. I. Smith.", ["Ask J. R. R. Tolkien or J. I. Smith."]),
        ("Ph.D. students of Washington D.C. schools", ["Ph.D. students of Washington D.C. schools"]),
        ("We sell in the U.S. The EU follows.", ["We sell in the U.S.", "The EU follows."]),
        ("Take plan B. We ship on Friday.", ["Take plan B.", "We ship on Friday."]),
        ("选方案 B. 我们下周上线", ["选方案 B.", "我们下周上线"]),
        ("A. The red door\nB. The blue door", ["A. The red door", "B. The blue door"]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_clauses_lose_no_words() -> None:
    assert split_clauses("I'm deaf, so use captions") == ["I'm deaf", "so use captions"]
    assert split_clauses("我吃素，点餐别放肉") == ["我吃素", "点餐别放肉"]


@pytest.mark.parametrize(
    ("answer", "offer", "chosen"),
    [
        ("the second one", "Option 1: tea in bags. Option 2: loose tea.", "loose tea"),
        ("B it is", "A) by rail B) by road", "by road"),
        ("选第一个", "第一个：早班。第二个：晚班。", "早班"),
        ("后者", "可以坐船，也可以坐飞机。", "坐飞机"),
        ("not the first, the second", "1. red door 2. blue door", "blue door"),
        ("yes, do that", "Shall I repaint the fence?", "Shall I repaint the fence?"),
    ],
)
def test_picks(answer: str, offer: str, chosen: str) -> None:
    pick = resolve(answer, offer)
    assert pick is not None
    assert pick.chosen == chosen


def test_no_pick_without_an_offer() -> None:
    assert options_of("It rained.") == []
    assert resolve("the second one", "It rained.") is None
    assert resolve("the second one", "") is None


def test_a_pick_holds_option_and_reason() -> None:
    (made,) = candidates(
        "let's take the second one, bags taste of paper", "Option 1: tea in bags. Option 2: loose tea."
    )
    assert made.type == MemoryType.DECISION
    assert "loose tea" in made.content
    assert "taste of paper" in made.content


def test_a_fact_and_the_wish_that_follows() -> None:
    fact, wish = candidates("I'm hard of hearing, so always turn captions on for me")
    assert (fact.type, wish.type) == (MemoryType.FACT, MemoryType.PREFERENCE)
    assert "captions" not in fact.content
    assert "captions" in wish.content
    assert "hard of hearing" in wish.content


def test_lead_ins_go_and_the_first_person_gets_its_name() -> None:
    assert candidates("By the way, I'm allergic to kiwis.")[0].content == "The user is allergic to kiwis."
    assert candidates("对了，我对猕猴桃过敏")[0].content == "用户对猕猴桃过敏"


def test_a_ramble_gives_only_its_fact() -> None:
    text = (
        "What a morning, honestly. The bus broke down and a man sang at me for half an hour. "
        "Then it rained on my bread. "
        "The thing you should know is that our account number changed to 7716-K in May. "
        "Anyway, the singing was quite good. "
        "I might even miss it. Ha."
    )
    (made,) = candidates(text)
    assert "7716-K" in made.content
    assert "bread" not in made.content


def test_an_appointment_is_episodic_and_dated() -> None:
    (made,) = candidates("Remember that my dentist appointment is on Thursday at 3")
    assert made.layer == Layer.EPISODIC
    assert not made.stable
    assert "(2025-03-13)" in made.content
    assert made.occur_time_us == NOW_US


@pytest.mark.parametrize(
    ("text", "layer", "undated"),
    [
        ("Remember that no parcels leave on a Friday", Layer.SEMANTIC, True),
        ("记住，店里周一歇业", Layer.SEMANTIC, True),
        ("Remember that the demo is on Friday", Layer.EPISODIC, False),
        ("记住，周五飞罗马", Layer.EPISODIC, False),
    ],
)
def test_a_day_that_comes_back_binds_a_fact_to_no_date(text: str, layer: Layer, undated: bool) -> None:
    (made,) = candidates(text)
    assert made.layer == layer
    assert ("2025-" not in made.content) == undated


@pytest.mark.parametrize(
    ("text", "previous"),
    [
        ("部署脚本的负责人是王芳", "辛苦了，要不要先休息一下？"),
        ("好的，部署脚本的负责人是王芳", "辛苦了，要不要先休息一下？"),
        ("对账脚本的负责人是王芳", "要不要先休息一下？"),
        ("We use Postgres", "Shall we take a break?"),
        ("Okay, the gateway owner is Wang", "Shall we take a break?"),
    ],
)
def test_a_statement_of_its_own_gets_no_question(text: str, previous: str) -> None:
    (made,) = candidates(text, previous)
    assert "?" not in made.content
    assert "？" not in made.content


def test_an_answer_that_cannot_stand_alone_gets_its_question() -> None:
    (made,) = candidates("总是 PDF", "报告要什么格式？")
    assert made.content == "报告要什么格式？ 总是 PDF"


def test_remembering_weighs_more() -> None:
    asked = candidates("Remember that the spare key hangs behind the shed")[0]
    told = candidates("The spare key hangs behind the shed")[0]
    assert asked.importance > told.importance


def test_only_an_agents_offer_is_answered() -> None:
    offer = "Option 1: tea in bags. Option 2: loose tea."
    answer = Message("user", "the second one", NOW_US)
    assert offer_of(answer, [Message("agent", offer, NOW_US)]) == offer
    assert offer_of(answer, [Message("user", offer, NOW_US)]) == ""
    assert offer_of(answer, [Message("agent", "It is done.", NOW_US)]) == ""
    assert offer_of(answer, []) == ""
