"""Requests for work now are no memories; what is said for good beside them is."""

from __future__ import annotations

import numpy as np
import pytest

from memsvc.memory.funnel import Decision, Funnel, Judgement, Message, Stage, Unclear, Verdict, load_weights
from memsvc.memory.funnel.signals import THIS_TURN
from memsvc.memory.funnel.tasks import without_task


class Keeper:
    """Keeps everything, as a fact."""

    def judge(self, unclear: list[Unclear]) -> list[Judgement]:
        return [Judgement(0.9, (0.9, 0.025, 0.025, 0.025, 0.025))] * len(unclear)


def judged(text: str) -> Verdict:
    center = np.asarray(load_weights().center, np.float32)
    (verdict,) = Funnel(lambda texts: np.tile(center, (len(texts), 1)), Keeper()).judge([Message("user", text, 0)])
    return verdict


@pytest.mark.parametrize(
    "text",
    [
        "帮我把订单服务的导出接口改成流式的，必须兼容 Python 3.11",
        "算了，流式先不做了，我们先写导出接口的性能报告",
        "请帮我写这个版本的发布说明，只写用户能看到的变化",
        "帮我把支付模块重构成异步的。必须兼容旧接口",
        "把登录页的按钮改成蓝色，必须兼容 IE",
        "我要把订单服务迁移到 gRPC，必须保留 REST 接口",
        "Please make the export endpoint streaming, it must support Python 3.11",
        "Please make the export endpoint streaming. It must support Python 3.11.",
        "Never mind streaming, let's first write the performance report",
        "Now let's write the release notes, only user-visible changes",
        "Make the endpoint streaming, it must support 3.11",
        "I want to migrate the billing service to gRPC. It must keep the old endpoints.",
        "please rename all the variables to snake case",
    ],
)
def test_a_request_for_work_now_is_kept_nowhere(text: str) -> None:
    verdict = judged(text)
    assert (verdict.decision, verdict.stage, verdict.reason) == (Decision.DROPPED, Stage.SIGNAL, THIS_TURN)


def test_what_a_questions_work_must_be_like_goes_with_it() -> None:
    assert judged("Can you refactor the billing module? It must keep the old endpoints.").decision == Decision.DROPPED


@pytest.mark.parametrize(
    ("text", "held", "gone"),
    [
        ("帮我写周报，以后周报都用表格", "以后周报都用表格", "帮我"),
        ("Please write the report, and from now on send reports as PDF", "From now on send reports as PDF", "write"),
        ("帮我修一下导出。所有服务都必须输出 JSON 日志", "JSON", "帮我"),
        ("Please fix the export. All services must log in JSON.", "All services must log in JSON.", "fix"),
        ("帮我把导出改成 Parquet，以后都用这个格式", "Parquet", "\0"),
        ("Please always write tests first", "tests first", "\0"),
        ("请始终先写测试", "先写测试", "\0"),
        ("算了，直播不做了，因为没人看", "直播", "\0"),
        ("Forget streaming, we decided on batches because memory is tight", "batches", "\0"),
        ("我们先不上微服务，因为人手不够", "微服务", "\0"),
    ],
)
def test_what_lasts_beside_a_request_is_kept(text: str, held: str, gone: str) -> None:
    verdict = judged(text)
    assert verdict.decision == Decision.KEPT
    contents = "\n".join(candidate.content for candidate in verdict.candidates)
    assert held in contents
    assert gone not in contents


@pytest.mark.parametrize(
    "text",
    [
        "帮我记一下我对花生过敏",
        "帮我给女儿订蛋糕，她 5 月 3 日过生日",
        "帮我写推文不要带话题标签，我不喜欢",
        "我们先用 MySQL",
        "请用公制单位",
        "Please book a table, I'm vegetarian",
        "please write my son's name as Jakub, never Jacob",
        "let's do the former, the latter needs root on every box",
        "All parcels must go by freight, it must be signed",
        "Please don't use emojis",
    ],
)
def test_what_states_something_else_stays_whole(text: str) -> None:
    assert without_task(text) == text


def test_sarcasm_asks_for_nothing_for_ever() -> None:
    assert judged("Brilliant. It froze. Please always do that.").stage != Stage.SIGNAL
