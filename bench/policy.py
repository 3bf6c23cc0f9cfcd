"""What is kept, refused, merged and superseded: the funnel, the conflict check and the secrets filter on labelled data,
and what they cost against floors of the same run.

The conflicts go through the API of a real server: the old statement is written at its age, then the new one.
"""

from __future__ import annotations

import base64
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray
from rich.table import Table

from bench import common, funnel_score
from bench.conflict_score import EXPECTED, load_rows
from memsvc.app import open_model
from memsvc.memory.funnel import Funnel
from memsvc.memory.sensitive import find
from memsvc.model import Outcome
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc

FILES = {"funnel": "funnel.dev.jsonl", "conflicts": "conflicts.dev.jsonl", "sensitive": "sensitive.dev.jsonl"}
LOST = ("superseded", "merged", "rejected")
BUDGET_ROUNDS = 5


def funnel(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Quality of the funnel, and its cost beside the embedding alone."""
    embedder = open_model("")

    def embed(texts: list[str]) -> NDArray[np.float32]:
        return embedder.embed_passages(texts)

    fresh = itertools.count()

    def uncached(texts: list[str]) -> NDArray[np.float32]:
        return embedder.embed_passages([f"{text} {next(fresh)}" for text in texts])

    result = funnel_score.score(rows, Funnel(embed))
    result["cost"] = funnel_score.cost(rows, Funnel(uncached), uncached)
    embedder.close()
    return result


def conflicts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Outcomes of writes through the API."""
    confusion: Counter[tuple[str, str]] = Counter()
    misses = []
    directory = tempfile.TemporaryDirectory(prefix="memsvc-bench-")
    with directory as data, common.server(Path(data)) as (stub, _, _):
        for i, row in enumerate(rows):
            outcome = _outcome(stub, i, row)
            confusion[row["expect"], outcome.name.lower()] += 1
            if outcome != EXPECTED[row["expect"]]:
                misses.append({"id": row.get("id", i), "expected": row["expect"], "outcome": outcome.name.lower()})
    kept = sum(n for (expected, _), n in confusion.items() if expected == "keep_both")
    lost = sum(n for (expected, got), n in confusion.items() if expected == "keep_both" and got in LOST)
    return {
        "pairs": len(rows),
        "accuracy": round(1 - len(misses) / max(len(rows), 1), 4),
        "keep_both_lost": round(lost / max(kept, 1), 4),
        "confusion": {f"{expected} -> {got}": n for (expected, got), n in sorted(confusion.items())},
        "misses": misses,
    }


def _outcome(stub: rpc.MemoryServiceStub, number: int, row: dict[str, Any]) -> Outcome:
    now_s = time.time()
    old_owners = pb.Owners(user_id=f"u{number}")
    new_owners = old_owners if row["same_scope"] else pb.Owners(user_id=f"other{number}")
    _write(stub, old_owners, row["old"], now_s - 86_400 * row["old"]["age_days"])
    return Outcome(_write(stub, new_owners, row["new"], now_s).outcome)


def _write(stub: rpc.MemoryServiceStub, owners: pb.Owners, said: dict[str, Any], time_s: float) -> spb.WriteResult:
    occur = Timestamp()
    occur.FromMicroseconds(round(time_s * 1e6))
    draft = spb.MemoryDraft(
        content=said["content"],
        type=pb.MemoryType.Value(f"MEMORY_TYPE_{said['type'].upper()}"),
        subject=said.get("subject", ""),
        occur_time=occur,
    )
    return stub.Write(spb.WriteRequest(owners=owners, memory=draft)).result


def sensitive(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Recall and precision of the secrets filter over texts, and microseconds a text."""
    texts = [base64.b64decode(row["text_b64"]).decode("utf-8", "surrogatepass") for row in rows]
    found = [find(text) for text in texts]
    began = time.perf_counter()
    for _ in range(BUDGET_ROUNDS):
        for text in texts:
            find(text)
    per_text_us = (time.perf_counter() - began) / (BUDGET_ROUNDS * max(len(texts), 1)) * 1e6
    hits = sum(bool(f) and row["sensitive"] for f, row in zip(found, rows, strict=True))
    positives, flagged = sum(row["sensitive"] for row in rows), sum(map(bool, found))
    kinds = Counter(
        f"{kind} -> {'+'.join(sorted({one.kind for one in f})) or 'nothing'}"
        for f, row in zip(found, rows, strict=True)
        for kind in (row.get("kinds") or ["nothing"])
    )
    return {
        "texts": len(rows),
        "recall": round(hits / max(positives, 1), 4),
        "precision": round(hits / max(flagged, 1), 4),
        "kinds": dict(sorted(kinds.items())),
        "per_text_us": round(per_text_us, 1),
    }


def write_cost(rows: int, count: int) -> dict[str, Any]:
    """A write with its conflict check (FACT) against one without (EVENT: the write of before), interleaved."""
    base, model_id = common.base_vectors(100)
    vectors = common.synthetic_vectors(rows + 3 * count + 100, base)
    with tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory:
        data = Path(directory)
        common.prepare_vectors(data, model_id, {"u": (0, vectors)})
        with common.server(data) as (stub, _, _):
            owners, fresh = pb.Owners(user_id="u"), iter(range(rows, len(vectors)))
            began = time.perf_counter()
            for at in range(0, rows, 1000):
                facts = [spb.MemoryDraft(content=common.sentence(i)) for i in range(at, min(at + 1000, rows))]
                stub.BatchWrite(spb.BatchWriteRequest(owners=owners, memories=facts))
            batch_per_s = rows / (time.perf_counter() - began)
            samples: dict[str, list[float]] = {"event": [], "fact": []}
            outcomes: Counter[str] = Counter()
            for i in range(2 * count):
                kind = "fact" if i % 2 else "event"
                draft = spb.MemoryDraft(
                    content=common.sentence(next(fresh)), type=pb.MemoryType.Value(f"MEMORY_TYPE_{kind.upper()}")
                )
                start = time.perf_counter()
                result = stub.Write(spb.WriteRequest(owners=owners, memory=draft)).result
                samples[kind].append(time.perf_counter() - start)
                outcomes[f"{kind} {Outcome(result.outcome).name.lower()}"] += 1
    event, fact = (common.percentiles(samples[kind]) for kind in ("event", "fact"))
    return {
        "rows": rows,
        "without_check": event,
        "with_check": fact,
        "ratio_p50": common.ratio(fact["p50_ms"], event["p50_ms"]),
        "batch_with_check_per_s": round(batch_per_s),
        "outcomes": dict(outcomes),
    }


def main() -> None:
    arguments = common.parser(__doc__ or "")
    arguments.add_argument("--data", type=Path, help="directory of the labelled files")
    given = arguments.parse_args()
    result: dict[str, Any] = {}
    for name, run in (("funnel", funnel), ("conflicts", conflicts), ("sensitive", sensitive)):
        path = None if given.data is None else given.data / FILES[name]
        if path is None or not path.exists():
            sys.stderr.write(f"{name}: no {FILES[name]} (give its directory by --data); left out\n")
            continue
        rows = load_rows(path)
        result[name] = run(rows[:20] if given.small else rows)
    result["write"] = write_cost(200 if given.small else 10_000, 20 if given.small else 300)
    table = Table("what", "figure")
    for name, figures in result.items():
        for key, value in figures.items():
            if key not in ("misses", "wrong"):
                table.add_row(f"{name} {key}", value if isinstance(value, str) else json.dumps(value))
    common.emit(result, [table], given.json)


if __name__ == "__main__":
    main()
