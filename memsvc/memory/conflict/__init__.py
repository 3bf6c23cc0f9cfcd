"""Duplicates and conflicts: whether a new statement repeats, contradicts or merely joins what stands.

Purpose: the public names. `claims` reads what one statement says (`reader` over the tables of `lexicon`, `words` and
`cues`), `pairs` compares two, `decision` decides. `calibration.json` holds the thresholds by embedding model.

Threading: pure functions over frozen values.

Rejected: see `decision`.
"""

from memsvc.memory.conflict.claims import Claim, analyze_claim
from memsvc.memory.conflict.decision import (
    Calibration,
    CosineRange,
    Decision,
    Incoming,
    Relation,
    Standing,
    decide,
)

__all__ = [
    "Calibration",
    "Claim",
    "CosineRange",
    "Decision",
    "Incoming",
    "Relation",
    "Standing",
    "analyze_claim",
    "decide",
]
