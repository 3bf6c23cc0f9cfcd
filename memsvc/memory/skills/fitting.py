"""Whether a text fits a question at all: the floor below which Match would rather return nothing.

Purpose: cosines of small models lie close together and differ by language, so that the floor is the model's own and
the share of the question's words that the text holds counts beside it. The figures of calibration.json separate the
samples of tests/memory/skills/samples.py, which also tests them.

Threading: pure functions.

Rejected: the score of a recall (it is relative to what else was found, so that the best of nothing looks good).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from memsvc.retrieval.lexical import analyze, analyze_query, is_run_char

CALIBRATION_FILE = Path(__file__).with_name("calibration.json")
OVERLAP_FLOOR = 0.25  # for a model without a calibration: a quarter of the question's words


class Floor(msgspec.Struct, frozen=True):
    """Of one embedding model: least cosine by the languages of question and text (`cross`: they differ), and how much a
    full overlap of words adds to a cosine.
    """

    han: float
    latin: float
    cross: float
    overlap: float


def floor_for(model_id: str) -> Floor | None:
    """The floor of an embedding model, or None where nobody calibrated it."""
    return msgspec.json.decode(CALIBRATION_FILE.read_bytes(), type=dict[str, Floor]).get(model_id)


def fits(question: str, text: str, cosine: float, floor: Floor | None) -> bool:
    """Whether the text, at this cosine from the question, answers it."""
    asked = analyze_query(question).counts.keys()
    overlap = len(asked & analyze(text).counts.keys()) / len(asked) if asked else 0.0
    if floor is None:
        return overlap >= OVERLAP_FLOOR
    chinese = any(map(is_run_char, question)), any(map(is_run_char, text))
    least = floor.cross if chinese[0] != chinese[1] else floor.han if chinese[0] else floor.latin
    return cosine + floor.overlap * overlap >= least
