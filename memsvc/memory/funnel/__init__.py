"""What is worth keeping: the funnel that messages go through before anything becomes a memory.

Purpose: the package's public names. `Funnel.judge` takes messages and gives one verdict each; `Judge` is the protocol
behind which stage 3 sits.

Threading: everything here is immutable after construction.

Rejected: letting the funnel store what it keeps (who writes decides about secrets, duplicates and conflicts).
"""

from memsvc.memory.funnel.evaluator import LocalEvaluator, Weights, load_weights
from memsvc.memory.funnel.funnel import Funnel
from memsvc.memory.funnel.values import (
    Candidate,
    Decision,
    Embed,
    FunnelSettings,
    Judge,
    Judgement,
    Message,
    Stage,
    StageReport,
    Unclear,
    Verdict,
)

__all__ = [
    "Candidate",
    "Decision",
    "Embed",
    "Funnel",
    "FunnelSettings",
    "Judge",
    "Judgement",
    "LocalEvaluator",
    "Message",
    "Stage",
    "StageReport",
    "Unclear",
    "Verdict",
    "Weights",
    "load_weights",
]
