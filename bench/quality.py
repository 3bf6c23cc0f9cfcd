"""Quality of recall: raw turns or documents through the API, then the fraction of gold evidence that comes back."""

from __future__ import annotations

import datetime as dt
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from bench import common
from memsvc_client import MemoryClient

FILES = {
    "locomo": ("locomo.dev.json",),
    "cmrc": ("cmrc.dev.json",),
    "memorybank": ("memorybank_cn.dev.json", "memorybank_en.dev.json"),
}
MODES: dict[str, dict[str, float]] = {
    "hybrid": {},
    "vector": {"lexical": 0.0, "neighbour": 0.0, "time": 0.0, "importance": 0.0},
    "lexical": {"vector": 0.0, "neighbour": 0.0, "time": 0.0, "importance": 0.0},
}
DEPTHS = (1, 5, 8, 10, 20)
EPOCH = dt.datetime(2023, 1, 1, tzinfo=dt.UTC)


class Case:
    """One namespace: memories to write, by evidence key, and questions with their evidence keys and category."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.memories: list[tuple[Any, dict[str, Any]]] = []
        self.questions: list[tuple[str, list[Any], str]] = []


def locomo(data: Any) -> Iterator[Case]:
    for conversation in data:
        case = Case(conversation["sample_id"])
        talk = conversation["conversation"]
        numbers = sorted(int(m.group(1)) for key in talk if (m := re.fullmatch(r"session_(\d+)", key)))
        for number in numbers:
            for i, turn in enumerate(talk[f"session_{number}"]):
                fields = {
                    "content": turn["text"],
                    "type": "event",
                    "session_id": f"s{number}",
                    "occur_time": EPOCH + dt.timedelta(days=number, seconds=i),
                    "metadata": {"speaker": turn["speaker"]},
                }
                case.memories.append((turn["dia_id"], fields))
        for qa in conversation["qa"]:
            if qa["category"] != 5 and qa.get("evidence"):
                case.questions.append((qa["question"], qa["evidence"], str(qa["category"])))
        yield case


def cmrc(data: Any) -> Iterator[Case]:
    case = Case("cmrc")
    case.memories = [(doc["id"], {"content": doc["text"]}) for doc in data["docs"]]
    case.questions = [(q["question"], q["evidence"], "all") for q in data["questions"]]
    yield case


def memorybank(data: Any) -> Iterator[Case]:
    for user in sorted({turn["user"] for turn in data["turns"]}):
        case = Case(user)
        for turn in data["turns"]:
            if turn["user"] == user:
                time = dt.datetime.fromisoformat(turn["date"]).replace(tzinfo=dt.UTC)
                fields = {
                    "content": f"{turn['query']}\n{turn['response']}",
                    "type": "event",
                    "session_id": turn["date"],
                    "occur_time": time + dt.timedelta(seconds=turn["turn"]),
                }
                case.memories.append(((turn["date"], turn["turn"]), fields))
        for q in data["questions"]:
            if q["user"] == user:
                case.questions.append((q["question"], [(e["date"], e["turn"]) for e in q["evidence"]], "all"))
        yield case


READERS = {"locomo": locomo, "cmrc": cmrc, "memorybank": memorybank}


def run_case(address: str, case: Case, prefix: str) -> dict[str, list[tuple[str, list[Any], list[Any]]]]:
    """Writes and asks; by mode: (category, evidence, ranked keys)."""
    keys: dict[str, Any] = {}
    answers: dict[str, list[tuple[str, list[Any], list[Any]]]] = {mode: [] for mode in MODES}
    with MemoryClient(
        address, user_id=f"{prefix}{case.owner}", timeout_s=60, write_timeout_s=600, cache_entries=1
    ) as client:
        for at in range(0, len(case.memories), 100):
            part = case.memories[at : at + 100]
            for (key, _), result in zip(part, client.batch_write([f for _, f in part]), strict=True):
                keys[result.memory_id] = key
        for question, evidence, category in case.questions:
            for mode, weights in MODES.items():
                hits = client.recall(question, top_k=max(DEPTHS), weights=weights, latency_budget_ms=30_000)
                if hits.degraded:
                    raise RuntimeError(f"degraded: {hits.degraded}")
                answers[mode].append((category, evidence, [keys[hit.memory_id] for hit in hits]))
    return answers


def score(answers: list[tuple[str, list[Any], list[Any]]]) -> dict[str, float]:
    """Recall at each depth (fraction of gold evidence), any hit at 10, MRR."""
    figures: dict[str, float] = {"questions": len(answers)}
    for depth in DEPTHS:
        shares = [len(set(evidence) & set(ranked[:depth])) / len(evidence) for _, evidence, ranked in answers]
        figures[f"recall@{depth}"] = round(float(np.mean(shares)), 4)
    figures["any@10"] = round(float(np.mean([bool(set(e) & set(r[:10])) for _, e, r in answers])), 4)
    reciprocal = [max((1 / (r.index(e) + 1) for e in evidence if e in r), default=0.0) for _, evidence, r in answers]
    figures["MRR"] = round(float(np.mean(reciprocal)), 4)
    return figures


def measure(dataset: str, data: Path, questions: int) -> dict[str, Any]:
    """Scores of each mode, and of the hybrid per category."""
    everything: dict[str, list[Any]] = {mode: [] for mode in MODES}
    with (
        tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory,
        common.server(Path(directory)) as (_, process, _),
    ):
        for name in FILES[dataset]:
            path = common.data_file(data, name)
            for case in READERS[dataset](json.loads(path.read_text("utf-8"))):
                if questions:
                    case.questions, case.memories = case.questions[:questions], case.memories[:200]
                for mode, answers in run_case(process.address, case, name).items():
                    everything[mode].extend(answers)
                if questions:
                    break
    result: dict[str, Any] = {"dataset": dataset, "modes": {mode: score(a) for mode, a in everything.items()}}
    categories = sorted({answer[0] for answer in everything["hybrid"]})
    result["categories"] = {c: score([a for a in everything["hybrid"] if a[0] == c]) for c in categories}
    return result


def main() -> None:
    arguments = common.parser(__doc__ or "")
    arguments.add_argument("--dataset", choices=sorted(FILES), required=True)
    arguments.add_argument("--data", type=Path, required=True, help="directory of the evaluation data")
    given = arguments.parse_args()
    result = measure(given.dataset, given.data, 3 if given.small else 0)
    table = Table("mode", *result["modes"]["hybrid"], title=given.dataset)
    for mode, figures in result["modes"].items():
        table.add_row(mode, *(str(value) for value in figures.values()))
    for category, figures in result["categories"].items():
        table.add_row(f"hybrid, category {category}", *(str(value) for value in figures.values()))
    common.emit(result, [table], given.json)


if __name__ == "__main__":
    main()
