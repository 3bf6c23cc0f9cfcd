"""The forgetting policy: curve, stabilities and thresholds, read once at start.

Purpose: the setting `lifecycle_policy` is JSON laid over the defaults below; a name that is not known or a value that
makes no sense refuses the start and says where.

Where the defaults come from. Stability is the time in days after which retention is 0.9 (FSRS's definition). An event
starts with 14 days: FSRS-4.5's initial stability of what was easy to learn is 13.8206. Statements outlive events by
choice: a fact that nobody asks for is kept four times, a preference, decision or rule twelve times as long.

`fade_below` and `rank_floor` are the mildest with which bench.forgetting, on some conversations, ranked 30 % of noise
lower for at most half a point of evidence recall; on the others it was 27 % for at most 0.9 points in a year without a
use. `archive_below` is a choice: what is archived is gone from recall, and no threshold told noise from evidence well
enough to do that early. With the default curve, retention falls below 0.45 after 17 stabilities and below 0.1 after
422: an event of middling importance and full confidence that is never used fades after 8 months and is archived after
16 years, one of importance 0 after 2 months and 4 years; a fact of middling importance fades after 2.6 years.

Threading: immutable.

Rejected: one setting per number (twenty of them), a policy in the store (it would have to be versioned with it).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from memsvc.errors import ConfigInvalid
from memsvc.model import Layer, MemoryType

Days = Annotated[float, msgspec.Meta(gt=0.0, le=36_500.0)]
Factor = Annotated[float, msgspec.Meta(gt=0.0, le=100.0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class StabilityDays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base stability of a semantic memory by its type, in days."""

    event: Days = 28.0
    fact: Days = 56.0
    preference: Days = 168.0
    decision: Days = 168.0
    rule: Days = 168.0


class LayerFactors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a layer makes of it. PROCEDURAL and PERMANENT memories never fade."""

    working: Factor = 0.1
    episodic: Factor = 0.5
    semantic: Factor = 1.0


class ProposeWhen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a memory must be to be proposed for the permanent store: this old, used this often on this many days or
    said this often, and this sure.
    """

    age_days: Days = 30.0
    uses: Count = 10
    use_days: Count = 5
    seen: Count = 10
    confidence: Share = 0.8


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the JSON may hold. `importance_factor`: how much longer the most important memory keeps than one of
    importance 0.5, and how much shorter the least important one. `rank_floor`: what is left of the score of a memory
    that is all but forgotten.
    """

    curve: Literal["power", "exponential"] = "power"
    stability_days: StabilityDays = StabilityDays()
    layer_factors: LayerFactors = LayerFactors()
    importance_factor: Annotated[float, msgspec.Meta(ge=1.0, le=100.0)] = 4.0
    rank_floor: Share = 0.85
    propose: ProposeWhen = ProposeWhen()


class Policy(Shape, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The shape, and the retentions below which a memory ranks lower and is archived."""

    fade_below: float
    archive_below: float

    def base_days(self, layer: Layer, kind: MemoryType) -> float:
        """Base stability of a layer and type; infinite for layers that never fade."""
        factor = getattr(self.layer_factors, layer.name.lower(), None)
        return float("inf") if factor is None else factor * getattr(self.stability_days, kind.name.lower())


def policy_of(text: str, fade_below: float, archive_below: float) -> Policy:
    """The policy of the settings; empty text: the defaults. Raises ConfigInvalid naming setting and field."""
    try:
        shape = msgspec.json.decode(text.encode(), type=Shape) if text.strip() else Shape()
    except msgspec.ValidationError as error:
        raise ConfigInvalid(f"lifecycle_policy: {error}", setting="lifecycle_policy") from error
    except msgspec.DecodeError as error:
        raise ConfigInvalid(
            'lifecycle_policy is not JSON; write one such as {"stability_days": {"event": 60}}',
            setting="lifecycle_policy",
        ) from error
    if archive_below > fade_below:
        raise ConfigInvalid(
            f"archive_below ({archive_below:g}) is above fade_below ({fade_below:g}): memories fade before they are "
            "archived",
            setting="archive_below",
        )
    return Policy(**msgspec.structs.asdict(shape), fade_below=fade_below, archive_below=archive_below)
