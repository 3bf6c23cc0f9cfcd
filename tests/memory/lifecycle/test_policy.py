"""The policy of the settings: what JSON lays over the defaults, what is refused, and where stability begins."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.errors import ConfigInvalid
from memsvc.memory.lifecycle.policy import Policy, Shape, policy_of
from memsvc.model import Layer, MemoryType

FADING = (Layer.WORKING, Layer.EPISODIC, Layer.SEMANTIC)


@pytest.mark.parametrize("text", ["", "  \n", "{}"])
def test_nothing_said_is_the_defaults(text):
    assert policy_of(text, 0.5, 0.2) == Policy(fade_below=0.5, archive_below=0.2)


def test_json_is_laid_over_the_defaults_name_by_name():
    policy = policy_of('{"stability_days": {"event": 60}, "rank_floor": 0, "propose": {"uses": 3}}', 0.5, 0.5)
    plain = Policy(fade_below=0.5, archive_below=0.5)
    assert (policy.stability_days.event, policy.rank_floor, policy.propose.uses) == (60.0, 0.0, 3)
    assert policy.stability_days.fact == plain.stability_days.fact
    assert policy.propose.use_days == plain.propose.use_days
    assert (policy.curve, policy.layer_factors, policy.importance_factor) == (
        plain.curve,
        plain.layer_factors,
        plain.importance_factor,
    )


@given(st.sampled_from(list(Layer)), st.sampled_from(list(MemoryType)), st.floats(0.01, 36_500), st.floats(0.01, 100))
def test_base_is_the_types_days_times_the_layers_factor(layer, kind, days, factor):
    said = {"stability_days": {kind.name.lower(): days}}
    if layer in FADING:
        said["layer_factors"] = {layer.name.lower(): factor}
    policy = policy_of(json.dumps(said), 0.6, 0.4)
    if layer in FADING:
        assert policy.base_days(layer, kind) == pytest.approx(days * factor)
        others = [(la, ki) for la in FADING for ki in MemoryType if (la, ki) != (layer, kind)]
        plain = policy_of("", 0.6, 0.4)
        changed = [(la, ki) for la, ki in others if policy.base_days(la, ki) != plain.base_days(la, ki)]
        assert all(la == layer or ki == kind for la, ki in changed)
    else:
        assert math.isinf(policy.base_days(layer, kind))


def test_an_event_starts_with_two_weeks_and_statements_outlive_it():
    policy = policy_of("", 0.6, 0.4)
    event = policy.base_days(Layer.EPISODIC, MemoryType.EVENT)
    assert event == 14.0
    assert policy.base_days(Layer.SEMANTIC, MemoryType.FACT) == 4 * event
    for kind in (MemoryType.PREFERENCE, MemoryType.DECISION, MemoryType.RULE):
        assert policy.base_days(Layer.SEMANTIC, kind) == 12 * event


LEAVES = [
    (path, low, high)
    for path, low, high in (
        ("stability_days.event", 0, 36_500),
        ("stability_days.fact", 0, 36_500),
        ("stability_days.preference", 0, 36_500),
        ("stability_days.decision", 0, 36_500),
        ("stability_days.rule", 0, 36_500),
        ("layer_factors.working", 0, 100),
        ("layer_factors.episodic", 0, 100),
        ("layer_factors.semantic", 0, 100),
        ("importance_factor", 0.99, 100),
        ("rank_floor", -0.01, 1),
        ("propose.age_days", 0, 36_500),
        ("propose.uses", 0, 1_000_000),
        ("propose.use_days", 0, 1_000_000),
        ("propose.seen", 0, 1_000_000),
        ("propose.confidence", -0.01, 1),
    )
]


def nested(path: str, value: object) -> str:
    for name in reversed(path.split(".")):
        value = {name: value}
    return json.dumps(value)


@pytest.mark.parametrize(("path", "too_low", "highest"), LEAVES)
def test_a_number_that_makes_no_sense_is_refused_and_named(path, too_low, highest):
    policy_of(nested(path, highest), 0.6, 0.4)
    for bad in (too_low, -1, highest + 1, "3", None, True):
        with pytest.raises(ConfigInvalid, match=rf"lifecycle_policy.*\$\.{path}"):
            policy_of(nested(path, bad), 0.6, 0.4)


def test_every_number_of_the_policy_is_tried_above():
    names = set()
    for field in msgspec.structs.fields(Shape):
        inner = field.type if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct) else None
        names |= {f"{field.name}.{one.name}" for one in msgspec.structs.fields(inner)} if inner else {field.name}
    assert names - {"curve"} == {path for path, _, _ in LEAVES}


@pytest.mark.parametrize(
    "text", ['{"fade_below": 0.5}', '{"archive_below": 0.1}', '{"propose": {"used": 3}}', "null", "1e999"]
)
def test_thresholds_and_unknown_names_are_no_part_of_it(text):
    with pytest.raises(ConfigInvalid) as caught:
        policy_of(text, 0.6, 0.4)
    assert "lifecycle_policy" in caught.value.message


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_is_archived_has_faded(fade_below, archive_below):
    if archive_below <= fade_below:
        assert policy_of("", fade_below, archive_below).archive_below == archive_below
    else:
        with pytest.raises(ConfigInvalid, match="archive_below"):
            policy_of("", fade_below, archive_below)
