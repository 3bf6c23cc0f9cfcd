"""Fits the conflict decision's calibration for an embedding model from labelled pairs; same input, same file.

A softmax over the features of memsvc.memory.conflict.pairs, fitted by Newton's method with ridge in float64. Beside the
labelled pairs, statements of different rows are paired as distinct ones: in a store most of what is near is not the
same subject.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.conflict_score import load_rows, score
from memsvc.config import default_model_cache_dir
from memsvc.memory.conflict import Calibration, CosineRange, Relation
from memsvc.memory.conflict.claims import Claim, analyze_claim
from memsvc.memory.conflict.pairs import FEATURE_MAX, FEATURES, compare
from memsvc.model import MemoryType
from memsvc.retrieval.default_model import ensure_default_model
from memsvc.retrieval.embedder import Embedder

PAIRS = Path(__file__).with_name("conflict_pairs.jsonl")
RELATIONS = {
    "keep_both": Relation.DISTINCT,
    "duplicate": Relation.SAME,
    "supersede": Relation.INCOMPATIBLE,
    "reject_new": Relation.INCOMPATIBLE,
    "arbitrate": Relation.INCOMPATIBLE,
}
RIDGE = 1.0
DISTINCT_WEIGHT = 1.3  # losing a memory is the worst error
STRANGERS_WEIGHT = 0.5
STRANGERS_EACH = 6
SEED = 20250101

Vectors = dict[str, NDArray[np.float32]]


class Sample(msgspec.Struct, frozen=True):
    """A pair to learn from."""

    old: Claim
    new: Claim
    cosine: float
    relation: Relation
    weight: float


def read_samples(rows: Sequence[dict[str, Any]], vectors: Vectors) -> list[Sample]:
    """The labelled pairs, events left out (a rule decides those)."""
    samples = []
    for row in rows:
        old, new = row["old"], row["new"]
        if "event" in (old["type"], new["type"]):
            continue
        relation = RELATIONS[row["expect"]]
        samples.append(
            Sample(
                analyze_claim(old["content"], MemoryType[old["type"].upper()]),
                analyze_claim(new["content"], MemoryType[new["type"].upper()]),
                float(vectors[old["content"]] @ vectors[new["content"]]),
                relation,
                DISTINCT_WEIGHT if relation == Relation.DISTINCT else 1.0,
            )
        )
    return samples


def strangers(rows: Sequence[dict[str, Any]], vectors: Vectors) -> list[Sample]:
    """Pairs across rows, drawn by chance: distinct, at a low weight because some few are not."""
    rng = np.random.default_rng(SEED)
    samples = []
    for place, row in enumerate(rows):
        for other in rng.choice(len(rows), STRANGERS_EACH, replace=False):
            if other == place:
                continue
            old, new = rows[other]["old"], row["new"]
            samples.append(
                Sample(
                    analyze_claim(old["content"], MemoryType[old["type"].upper()]),
                    analyze_claim(new["content"], MemoryType[new["type"].upper()]),
                    float(vectors[old["content"]] @ vectors[new["content"]]),
                    Relation.DISTINCT,
                    STRANGERS_WEIGHT,
                )
            )
    return samples


def language_pair(old: Claim, new: Claim) -> str:
    """`cross`, `han` or `latin`."""
    if old.chinese != new.chinese:
        return "cross"
    return "han" if old.chinese else "latin"


def cosine_ranges(labelled: Sequence[Sample], unrelated: Sequence[Sample]) -> dict[str, CosineRange]:
    """Per language pair: the median cosine of strangers and of duplicates."""
    ranges = {}
    for name in ("han", "latin", "cross"):
        low = [s.cosine for s in unrelated if language_pair(s.old, s.new) == name]
        high = [s.cosine for s in labelled if s.relation == Relation.SAME and language_pair(s.old, s.new) == name]
        ranges[name] = CosineRange(round(float(np.median(low)), 4), round(float(np.median(high)), 4))
    return ranges


def fit_softmax(
    features: NDArray[np.float64], labels: NDArray[np.int64], weights: NDArray[np.float64], ridge: float = RIDGE
) -> NDArray[np.float64]:
    """Weights (features x 3) of a ridge softmax. Newton's method with a halving line search; no randomness."""
    columns = features.shape[1]
    targets = np.eye(3)[labels]
    theta = np.zeros((columns, 3))
    penalty = np.full(columns, ridge)
    penalty[0] = 1e-3

    def loss(at: NDArray[np.float64]) -> float:
        scores = features @ at
        top = scores.max(axis=1, keepdims=True)
        logs = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        return float(-(weights[:, None] * targets * logs).sum() + 0.5 * (penalty[:, None] * at**2).sum())

    current = loss(theta)
    for _ in range(60):
        scores = features @ theta
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        gradient = features.T @ (weights[:, None] * (chances - targets)) + penalty[:, None] * theta
        hessian = np.zeros((columns * 3, columns * 3))
        for i in range(3):
            for j in range(3):
                curve = weights * chances[:, i] * ((i == j) - chances[:, j])
                block = features.T @ (features * curve[:, None])
                if i == j:
                    block = block + np.diag(penalty)
                hessian[i * columns : (i + 1) * columns, j * columns : (j + 1) * columns] = block
        step = np.linalg.solve(hessian + 1e-9 * np.eye(columns * 3), gradient.T.reshape(-1)).reshape(3, columns).T
        size = 1.0
        while size > 1e-4 and loss(theta - size * step) > current:
            size /= 2
        theta = theta - size * step
        after = loss(theta)
        if current - after < 1e-7:
            break
        current = after
    return theta


def calibrate(rows: Sequence[dict[str, Any]], vectors: Vectors, model_id: str) -> Calibration:
    """The calibration of a model from labelled rows."""
    labelled, unrelated = read_samples(rows, vectors), strangers(rows, vectors)
    ranges = cosine_ranges(labelled, unrelated)
    blank = Calibration(
        model_id=model_id,
        features=FEATURES,
        weights=tuple((0.0, 0.0, 0.0) for _ in FEATURES),
        han=ranges["han"],
        latin=ranges["latin"],
        cross=ranges["cross"],
    )
    samples = [*labelled, *unrelated]
    features = np.minimum(
        [compare(s.old, s.new, blank.scale(s.cosine, s.old, s.new)).features for s in samples], FEATURE_MAX
    )
    theta = fit_softmax(features, np.array([int(s.relation) for s in samples]), np.array([s.weight for s in samples]))
    weights = tuple((round(a, 4), round(b, 4), round(c, 4)) for a, b, c in theta.tolist())
    return msgspec.structs.replace(blank, weights=weights)


def cross_validate(rows: Sequence[dict[str, Any]], vectors: Vectors, folds: int = 8) -> dict[str, Any]:
    """Scores every row by a calibration that did not see it."""
    order = np.random.default_rng(SEED).permutation(len(rows))
    misses, confusion = [], {}
    for fold in range(folds):
        held = {int(i) for i in order[fold::folds]}
        fitted = calibrate([row for i, row in enumerate(rows) if i not in held], vectors, "fold")
        result = score([rows[i] for i in sorted(held)], vectors, fitted)
        misses += result["misses"]
        for name, count in result["confusion"].items():
            confusion[name] = confusion.get(name, 0) + count
    kept = sum(n for name, n in confusion.items() if name.startswith("keep_both"))
    lost = sum(confusion.get(f"keep_both -> {o}", 0) for o in ("superseded", "merged", "rejected"))
    return {
        "accuracy": round(1 - len(misses) / len(rows), 4),
        "keep_both_lost": round(lost / kept, 4),
        "confusion": dict(sorted(confusion.items())),
        "misses": misses,
    }


def embed(rows: Sequence[dict[str, Any]], directory: str) -> tuple[Vectors, str]:
    """The passage vectors of all contents, and the model's id."""
    texts = sorted({row[side]["content"] for row in rows for side in ("old", "new")})
    embedder = Embedder(Path(directory) if directory else ensure_default_model(default_model_cache_dir()))
    vectors = np.asarray(embedder.embed_passages(texts))
    model_id = embedder.model_id
    embedder.close()
    return dict(zip(texts, vectors, strict=True)), model_id


def main() -> None:
    """Writes the calibration and prints how it does on pairs it did not see."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--model", default="", help="a model directory; empty: the default model")
    made.add_argument("--pairs", type=Path, default=PAIRS)
    made.add_argument("--out", type=Path, required=True, help="where the calibration goes, JSON keyed by model id")
    chosen = made.parse_args()
    rows = load_rows(chosen.pairs)
    vectors, model_id = embed(rows, chosen.model)
    known = msgspec.json.decode(chosen.out.read_bytes(), type=dict[str, Any]) if chosen.out.exists() else {}
    known[model_id] = msgspec.to_builtins(calibrate(rows, vectors, model_id))
    chosen.out.write_bytes(msgspec.json.encode(known) + b"\n")
    held_out = cross_validate(rows, vectors)
    del held_out["misses"]
    sys.stdout.write(msgspec.json.encode({"model": model_id, "pairs": len(rows), "held_out": held_out}).decode() + "\n")


if __name__ == "__main__":
    main()
