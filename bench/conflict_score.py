"""Scores the conflict decision on labelled pairs: accuracy, confusion by class, and what was lost.

Rows have the form of conflicts.dev.jsonl: old{type, content, age_days}, new{type, content}, same_scope, expect.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsvc.memory.conflict import Calibration, Incoming, Standing, decide
from memsvc.memory.conflict.claims import analyze_claim
from memsvc.model import MemoryType, Outcome

EXPECTED = {
    "supersede": Outcome.SUPERSEDED,
    "duplicate": Outcome.MERGED,
    "keep_both": Outcome.CREATED,
    "reject_new": Outcome.REJECTED,
    "arbitrate": Outcome.CONTESTED,
}
_DAY_US = 86_400_000_000
_NOW_US = 1_750_000_000_000_000
_OLD_ID = "mem_01970000-0000-7000-8000-000000000001"


def load_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def outcome_of(row: dict[str, Any], cosine: float, calibration: Calibration) -> tuple[Outcome, dict[str, Any]]:
    """The outcome of a row and its evidence. Another scope is another namespace: the two never meet."""
    if not row["same_scope"]:
        return Outcome.CREATED, {"reason": "another owner"}
    old, new = row["old"], row["new"]
    old_type, new_type = MemoryType[old["type"].upper()], MemoryType[new["type"].upper()]
    standing = Standing(
        memory_id=_OLD_ID,
        content=old["content"],
        type=old_type,
        claim=analyze_claim(old["content"], old_type, old.get("subject", "")),
        occur_time_us=_NOW_US - round(old["age_days"] * _DAY_US),
        cosine=cosine,
    )
    incoming = Incoming(
        content=new["content"],
        type=new_type,
        claim=analyze_claim(new["content"], new_type, new.get("subject", "")),
        occur_time_us=_NOW_US,
    )
    decision = decide(incoming, [standing], calibration)
    return decision.outcome, decision.evidence


def score(
    rows: Sequence[dict[str, Any]], vectors: dict[str, NDArray[np.float32]], calibration: Calibration
) -> dict[str, Any]:
    """Accuracy, confusion (`expected -> outcome`), keep_both lost (superseded, merged or rejected) and the misses.

    `vectors` maps every content to its unit passage vector.
    """
    confusion: Counter[tuple[str, str]] = Counter()
    misses: list[dict[str, Any]] = []
    for row in rows:
        cosine = float(vectors[row["old"]["content"]] @ vectors[row["new"]["content"]])
        outcome, evidence = outcome_of(row, cosine, calibration)
        confusion[row["expect"], outcome.name.lower()] += 1
        if outcome != EXPECTED[row["expect"]]:
            misses.append({"row": row, "outcome": outcome.name.lower(), "evidence": evidence})
    kept = sum(n for (expect, _), n in confusion.items() if expect == "keep_both")
    lost = sum(n for (e, o), n in confusion.items() if e == "keep_both" and o in ("superseded", "merged", "rejected"))
    return {
        "pairs": len(rows),
        "accuracy": round(1 - len(misses) / len(rows), 4) if rows else 0.0,
        "keep_both_lost": round(lost / kept, 4) if kept else 0.0,
        "confusion": {f"{expect} -> {outcome}": n for (expect, outcome), n in sorted(confusion.items())},
        "misses": misses,
    }
