"""Stage 3: the local evaluator, a linear model over the embedding and the cues.

Purpose: decide what rules and signals leave open, without an LLM. Its weights come from bench/train_funnel.py, are kept
beside this file (evaluator.json) and name the embedding model that they were made for.

Threading: immutable after construction; `judge` may run in parallel if the embedder may.

Rejected: prototypes per class (the model's cosines lie in a narrow band, EMBEDDING.md; a trained direction uses what a
mean throws away); trees over the embedding (384 dense numbers, a thousand examples).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import InvalidArgument
from memsvc.memory.funnel.signals import FEATURE_COUNT
from memsvc.memory.funnel.values import Embed, Judgement, Unclear

WEIGHTS_FILE = Path(__file__).with_name("evaluator.json")
TYPE_COUNT = 5


class Weights(msgspec.Struct, frozen=True):
    """What the training script writes. Vectors are over [scaled embedding, features]; types in order of MemoryType.

    `center` (dim) is taken from an embedding and the rest multiplied by `scale`. The `cue_` weights are over the
    features alone: stage 2 uses them.
    """

    model_id: str
    dim: int
    center: list[float]
    scale: float
    keep: list[float]
    keep_bias: float
    types: list[list[float]]
    type_bias: list[float]
    cue_keep: list[float]
    cue_keep_bias: float
    cue_types: list[list[float]]
    cue_type_bias: list[float]
    keep_threshold: float
    stage_threshold: float
    cue_drop_below: float
    cue_keep_above: float


def load_weights(path: Path = WEIGHTS_FILE) -> Weights:
    """The trained weights; msgspec.DecodeError or InvalidArgument when the file doesn't fit this code."""
    weights = msgspec.json.decode(path.read_bytes(), type=Weights)
    if len(weights.keep) != weights.dim + FEATURE_COUNT or len(weights.cue_keep) != FEATURE_COUNT:
        raise InvalidArgument("evaluator.json does not fit the funnel's features; run bench/train_funnel.py")
    return weights


class CueModel:
    """The part of the weights that needs no embedding."""

    def __init__(self, weights: Weights) -> None:
        self._keep = np.asarray(weights.cue_keep, np.float32)
        self._bias = weights.cue_keep_bias
        self._types = np.asarray(weights.cue_types, np.float32)
        self._type_bias = np.asarray(weights.cue_type_bias, np.float32)

    def keep(self, row: NDArray[np.float32]) -> float:
        """Probability of keep for features of shape (FEATURE_COUNT,)."""
        return float(1.0 / (1.0 + np.exp(-(self._keep @ row + self._bias))))

    def types(self, row: NDArray[np.float32]) -> tuple[float, ...]:
        """Probability of each type, in the order of MemoryType."""
        return _softmax(self._types @ row + self._type_bias)


class LocalEvaluator:
    """The default `Judge`: one batch of embeddings a call, then two small products."""

    def __init__(self, embed: Embed, weights: Weights) -> None:
        self._embed = embed
        self._dim = weights.dim
        self._center = np.asarray(weights.center, np.float32)
        self._scale = np.float32(weights.scale)
        self._keep = np.asarray(weights.keep, np.float32)
        self._keep_bias = weights.keep_bias
        self._types = np.asarray(weights.types, np.float32)
        self._type_bias = np.asarray(weights.type_bias, np.float32)

    def judge(self, unclear: list[Unclear]) -> list[Judgement]:
        """Opinions in order. InvalidArgument when the embedder's dimension isn't the one the weights were made for."""
        if not unclear:
            return []
        vectors = self._embed([embedded(item) for item in unclear])
        if vectors.shape != (len(unclear), self._dim):
            raise InvalidArgument(
                f"the funnel's evaluator needs vectors of {self._dim} numbers, not {vectors.shape[-1]}; "
                "run bench/train_funnel.py for this model"
            )
        features = np.stack([item.features for item in unclear])
        rows = np.hstack([(vectors - self._center) * self._scale, features])
        keep = 1.0 / (1.0 + np.exp(-(rows @ self._keep + self._keep_bias)))
        types = rows @ self._types.T + self._type_bias
        return [Judgement(float(p), _softmax(row)) for p, row in zip(keep, types, strict=True)]


def embedded(item: Unclear) -> str:
    """What is embedded of a message: its words only, at most 600 characters (a judgement needs no more)."""
    return item.message.content[:600]


def _softmax(logits: NDArray[np.float32]) -> tuple[float, ...]:
    exps = np.exp(logits - logits.max())
    return tuple((exps / exps.sum()).tolist())
