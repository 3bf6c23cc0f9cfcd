"""The floor of Match on Chinese and English skills: what has nothing to do with any skill must find none."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from memsvc.memory.skills.fitting import fits, floor_for

_SPEC = importlib.util.spec_from_file_location("skill_samples", Path(__file__).with_name("samples.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
samples = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(samples)


def test_the_floor_separates_the_samples(service):
    floor = floor_for(service.embedder.model_id)
    assert floor is not None
    texts = [f"{name}: {description} {trigger}" for name, description, trigger in samples.SKILLS]
    vectors = service.embedder.embed_passages(texts, cancelled=lambda: False)
    missed, asked = [], 0
    for query, wanted in samples.QUERIES:
        cosines = vectors @ service.embedder.submit_query(query).result()
        found = {
            skill[0]
            for skill, text, cosine in zip(samples.SKILLS, texts, cosines.tolist(), strict=True)
            if fits(query, text, cosine, floor)
        }
        if not wanted:
            assert not found, query
        else:
            asked += 1
            if not found & wanted:
                missed.append(query)
    assert len(missed) <= asked // 5, missed


def test_without_a_calibration_words_decide():
    assert floor_for("another") is None
    assert fits("deploy the service", "deploy-service: Rolls it out.", 0.0, None)
    assert not fits("tell me a joke", "deploy-service: Rolls it out.", 0.99, None)
    assert not fits("", "anything", 0.99, None)
