"""Trains the funnel's local evaluator: bench/funnel_train.jsonl to memsvc/memory/funnel/evaluator.json.

Deterministic: the same file and model give the same weights. Thresholds are read off cross-validated scores.
Run it again whenever a cue, a feature or the embedding model changes: `python -m bench.train_funnel`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.memory.funnel import picks, rules, signals
from memsvc.memory.funnel.evaluator import WEIGHTS_FILE, Weights, embedded
from memsvc.memory.funnel.values import Message, Unclear
from memsvc.model import MemoryType

TRAINING = Path(__file__).with_name("funnel_train.jsonl")
EMBED_SCALE = 12.0
CUE_SCALE = 0.6
KEEP_L2 = 1.0
TYPE_L2 = 1.5
FOLDS = 8
BATCH = 32
Array = NDArray[np.float64]


def history_of(row: dict[str, Any], time_us: int = 0) -> list[Message]:
    """The message before: what the user said if an agent answers, else an agent's."""
    if not row.get("context"):
        return []
    return [Message("user" if row["speaker"] == "agent" else "agent", row["context"], time_us)]


def examples(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Array, list[str]]:
    """Rows that stages 1 and 2 leave open, their features (n, FEATURE_COUNT) and the texts to embed."""
    left, features, texts = [], [], []
    for row in rows:
        message = Message(row["speaker"], row["text"], 0)
        own = rules.strip_blocks(message.content)
        if rules.noise(message, own, history_of(row)) is not None:
            continue
        reading = signals.read(own)
        if reading.dropped_by or (message.speaker == "agent" and not signals.reports(reading)):
            continue
        vector = signals.features(reading, message.speaker, picks.offer_of(message, history_of(row)))
        left.append(row)
        features.append(vector)
        texts.append(embedded(Unclear(msgspec.structs.replace(message, content=own), "", vector)))
    return left, np.stack(features).astype(np.float64), texts


def fit_binary(x: Array, y: NDArray[np.bool_], l2: float) -> Array:
    """Ridge-penalised logistic regression by Newton's method; weights with the bias last."""
    rows = np.hstack([x, np.ones((len(x), 1))])
    penalty = np.full(rows.shape[1], l2)
    penalty[-1] = 1e-6
    weights = np.zeros(rows.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-rows @ weights))
        gradient = rows.T @ (p - y) + penalty * weights
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def fit_softmax(x: Array, y: NDArray[np.int64], classes: int, l2: float) -> Array:
    """One against the rest for each class (the argmax decides), shape (classes, features + 1)."""
    return np.stack([fit_binary(x, y == c, l2) for c in range(classes)])


def apply(weights: Array, x: Array) -> Array:
    return x @ weights[..., :-1].T + weights[..., -1]


def cross_validated(x: Array, y: NDArray[np.bool_], folds: NDArray[np.int64]) -> Array:
    scores = np.zeros(len(y))
    for fold in range(FOLDS):
        held = folds == fold
        scores[held] = 1 / (1 + np.exp(-apply(fit_binary(x[~held], y[~held], KEEP_L2), x[held])))
    return scores


def cross_validated_types(x: Array, y: NDArray[np.int64], folds: NDArray[np.int64]) -> float:
    right = 0
    for fold in range(FOLDS):
        held = folds == fold
        right += int((apply(fit_softmax(x[~held], y[~held], 5, TYPE_L2), x[held]).argmax(1) == y[held]).sum())
    return right / len(y)


def fold_of(text: str) -> int:
    """By the text's hash: adding rows moves no other row."""
    return hashlib.blake2b(text.encode(), digest_size=2).digest()[0] % FOLDS


def f1(y: NDArray[np.bool_], guess: NDArray[np.bool_]) -> float:
    return float(2 * (y & guess).sum() / max(1, y.sum() + guess.sum()))


def cue_thresholds(scores: Array, y: NDArray[np.bool_]) -> tuple[float, float]:
    """Below and above which the cues alone decide: at most one wrong in a hundred of all on that side."""
    drop, keep = 0.02, 0.98
    for bar in np.arange(0.02, 0.06, 0.01):
        if y[scores < bar].sum() <= 0.01 * max(1, (scores < bar).sum()):
            drop = float(bar)
    for bar in np.arange(0.99, 0.85, -0.01):
        if (~y[scores > bar]).sum() <= 0.01 * max(1, (scores > bar).sum()):
            keep = float(bar)
    return round(drop, 2), round(keep, 2)


def short(values: Array) -> list[float]:
    """Five digits are more than the training determines."""
    return [round(float(value), 5) for value in values]


def train(rows: list[dict[str, Any]], vectors: Any, model_id: str) -> tuple[Weights, dict[str, float]]:
    """Weights, and what cross-validation says of them. `vectors(texts)` embeds."""
    left, cues, texts = examples(rows)
    y = np.array([row["keep"] for row in left])
    raw = np.asarray(vectors(texts), np.float64)
    center = raw.mean(0)
    x = np.hstack([(raw - center) * EMBED_SCALE, cues * CUE_SCALE])
    folds = np.array([fold_of(row["text"]) for row in left])
    scores, cue_scores = cross_validated(x, y, folds), cross_validated(cues, y, folds)
    user = y & np.array([row["speaker"] == "user" for row in left])
    kinds = np.array(
        [MemoryType[row["memories"][0]["type"].upper()] - 1 for row, u in zip(left, user, strict=True) if u]
    )
    report = {
        "examples": float(len(left)),
        "keep_f1": f1(y, scores > 0.5),
        "cue_keep_f1": f1(y, cue_scores > 0.5),
        "types": cross_validated_types(x[user], kinds, folds[user]),
        "cue_types": cross_validated_types(cues[user], kinds, folds[user]),
    }
    drop, keep = cue_thresholds(cue_scores, y)
    full, cue = fit_binary(x, y, KEEP_L2), fit_binary(cues, y, KEEP_L2)
    types, cue_types = fit_softmax(x[user], kinds, 5, TYPE_L2), fit_softmax(cues[user], kinds, 5, TYPE_L2)
    full[raw.shape[1] : -1] *= CUE_SCALE
    types[:, raw.shape[1] : -1] *= CUE_SCALE
    weights = Weights(
        model_id=model_id,
        dim=raw.shape[1],
        center=short(center),
        scale=EMBED_SCALE,
        keep=short(full[:-1]),
        keep_bias=round(float(full[-1]), 5),
        types=[short(row[:-1]) for row in types],
        type_bias=short(types[:, -1]),
        cue_keep=short(cue[:-1]),
        cue_keep_bias=round(float(cue[-1]), 5),
        cue_types=[short(row[:-1]) for row in cue_types],
        cue_type_bias=short(cue_types[:, -1]),
        keep_threshold=0.5,
        stage_threshold=0.25,
        cue_drop_below=drop,
        cue_keep_above=keep,
    )
    return weights, report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=TRAINING)
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--model", default="", help="directory of the embedding model; empty: the default one")
    arguments = parser.parse_args()
    from memsvc.app import open_model

    model = open_model(arguments.model)

    def vectors(texts: list[str]) -> NDArray[np.float32]:
        parts = [model.embed_passages(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
        return np.vstack(parts)

    with arguments.data.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    weights, report = train(rows, vectors, model.model_id)
    arguments.out.write_bytes(msgspec.json.format(msgspec.json.encode(weights), indent=0) + b"\n")
    print(json.dumps(report | {"drop_below": weights.cue_drop_below, "keep_above": weights.cue_keep_above}))


if __name__ == "__main__":
    main()
