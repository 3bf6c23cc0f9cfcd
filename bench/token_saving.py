"""Tokens that a context block saves against stuffing the whole history into the prompt, and the evidence that it keeps.

Raw turns go through the API as in bench.quality. Each question is then asked of AssembleContext with every token budget
and memory limit. The whole history is counted as the text of its turns alone, without names and dates: the cheapest way
to stuff it. The server's model counts both. Evidence recall is the share of the gold turns that a line of the block
cites; `whole` of those whose line was not cut. The floor is what costs no memory service: the newest turns that fit.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import msgspec
import numpy as np
from google.protobuf.duration_pb2 import Duration

from bench import common
from bench.quality import FILES, READERS, Case
from memsvc.app import open_model
from memsvc.memory.one_line import ELLIPSIS
from memsvc.v1 import context_pb2 as cpb
from memsvc.v1 import context_service_pb2 as csb
from memsvc.v1 import context_service_pb2_grpc as context_rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc_client import MemoryClient

BUDGETS = (256, 512, 1024, 2048, 4096)
MEMORIES = (8, 16, 32, 64)
FLOOR = "newest turns"
LATENCY_BUDGET = Duration(seconds=30)


class Answer(msgspec.Struct, frozen=True):
    """What one question got: shares of its evidence, tokens of the block and of the history, memories in the block."""

    recall: float
    whole: float
    tokens: int
    history_tokens: int
    memories: int


Answers = dict[tuple[int, int | str], list[Answer]]


class History:
    """The turns of a case, oldest first, and their tokens."""

    def __init__(self, case: Case, count_tokens: Callable[[str], int]) -> None:
        turns = sorted(case.memories, key=lambda turn: turn[1]["occur_time"])
        self.turns = [(key, count_tokens(fields["content"])) for key, fields in turns]
        self.tokens = sum(tokens for _, tokens in self.turns)

    def newest(self, token_budget: int) -> tuple[set[Any], int]:
        """Keys and tokens of the newest turns that fit."""
        keys, used = set(), 0
        for key, tokens in reversed(self.turns):
            if used + tokens > token_budget:
                break
            keys.add(key)
            used += tokens
        return keys, used


def ask_case(address: str, channel: grpc.Channel, case: Case, user: str, history: History) -> Answers:
    """Writes the turns of a case and asks its questions with every option."""
    with MemoryClient(address, user_id=user, write_timeout_s=600) as client:
        results = client.batch_write([fields for _, fields in case.memories])
    keys = {result.memory_id: key for result, (key, _) in zip(results, case.memories, strict=True)}
    stub = context_rpc.ContextServiceStub(channel)
    answers: Answers = {}
    for question, evidence, _ in case.questions:
        for budget in BUDGETS:
            newest, used = history.newest(budget)
            share = len(newest & set(evidence)) / len(evidence)
            floor = Answer(share, share, used, history.tokens, len(newest))
            answers.setdefault((budget, FLOOR), []).append(floor)
            for most in MEMORIES:
                block = assemble(stub, user, question, budget, most)
                answers.setdefault((budget, most), []).append(judged(block, keys, evidence, history.tokens))
    return answers


def assemble(stub: context_rpc.ContextServiceStub, user: str, question: str, budget: int, most: int) -> cpb.Context:
    options = cpb.ContextOptions(token_budget=budget, max_memories=most, latency_budget=LATENCY_BUDGET)
    request = csb.AssembleContextRequest(owners=pb.Owners(user_id=user), query=question, options=options)
    block = stub.AssembleContext(request).context
    if block.degraded:
        raise RuntimeError("degraded: the server was too slow for its budget of 30 s")
    return block


def judged(block: cpb.Context, keys: dict[str, Any], evidence: list[Any], history_tokens: int) -> Answer:
    cited = {keys[line.memory_id]: not line.text.endswith(ELLIPSIS) for line in block.lines}
    wanted = set(evidence)
    return Answer(
        recall=len(wanted & cited.keys()) / len(evidence),
        whole=sum(cited.get(key, False) for key in wanted) / len(evidence),
        tokens=block.token_count,
        history_tokens=history_tokens,
        memories=len(block.lines),
    )


def figures(answers: list[Answer]) -> dict[str, float]:
    """Means over the questions; `saved` is the share of the history's tokens that the blocks do without."""
    recall, whole, tokens, history, memories = np.mean([msgspec.structs.astuple(answer) for answer in answers], axis=0)
    return {
        "evidence_recall": round(float(recall), 4),
        "whole": round(float(whole), 4),
        "memories": round(float(memories), 1),
        "block_tokens": round(float(tokens)),
        "history_tokens": round(float(history)),
        "saved": round(1 - float(tokens / history), 4),
    }


def measure(paths: list[Path], dataset: str, *, small: bool) -> dict[str, Any]:
    """Figures by file, token budget and memory limit."""
    model = open_model("")
    result: dict[str, Any] = {"dataset": dataset, "files": {}}
    with (
        tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory,
        common.server(Path(directory)) as (_, process, channel),
    ):
        for path in paths:
            everything: Answers = {}
            for case in cases(path, dataset, small=small):
                sys.stderr.write(f"{case.owner}: {len(case.memories)} turns, {len(case.questions)} questions\n")
                history = History(case, model.count_tokens)
                for key, answers in ask_case(process.address, channel, case, path.stem + case.owner, history).items():
                    everything.setdefault(key, []).extend(answers)
            rows = [{"token_budget": b, "max_memories": most, **figures(a)} for (b, most), a in everything.items()]
            count = len(next(iter(everything.values())))
            result["files"][path.name] = {"questions": count, "rows": rows}
    model.close()
    return result


def cases(path: Path, dataset: str, *, small: bool) -> Iterator[Case]:
    for case in READERS[dataset](json.loads(path.read_text("utf-8"))):
        if small:
            case.questions, case.memories = case.questions[:3], case.memories[:200]
        if case.questions:
            yield case
        if small:
            return


def main() -> None:
    arguments = common.parser(__doc__ or "")
    arguments.add_argument("--dataset", choices=("locomo", "memorybank"), required=True)
    arguments.add_argument("--data", type=Path, required=True, help="directory of the evaluation data")
    given = arguments.parse_args()
    paths = [common.data_file(given.data, name) for name in FILES[given.dataset]]
    result = measure(paths, given.dataset, small=given.small)
    tables = [
        common.table(f"{name}: {found['questions']} questions; means", found["rows"])
        for name, found in result["files"].items()
    ]
    common.emit(result, tables, given.json)


if __name__ == "__main__":
    main()
