"""The look-up of the arbiter against a slow loop: by the scan of codes, and by a recall as in large segments."""

from __future__ import annotations

import numpy as np
import pytest

from memsvc.memory import arbiter
from memsvc.model import IdMinter, Layer, Memory, MemoryType, Namespace, Scope, Status
from memsvc.retrieval.segment import Segment

NAMESPACE = Namespace("t", Scope.USER, "u")
NOW_US = 1_750_000_000_000_000
DIM, ROWS = 32, 400


@pytest.fixture(scope="module")
def rows() -> tuple[Segment, list[Memory], np.ndarray]:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(ROWS, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    minter = IdMinter(lambda: NOW_US)
    segment = Segment(NAMESPACE, "m", DIM)
    memories = []
    for i in range(ROWS):
        memory = Memory(
            memory_id=minter.mint(),
            version=1,
            sequence=i + 1,
            namespace=NAMESPACE,
            layer=(Layer.SEMANTIC, Layer.EPISODIC, Layer.PERMANENT, Layer.PROCEDURAL)[i % 4],
            type=MemoryType.FACT,
            content=f"statement {i}",
            subject="a/b" if i == 7 * 4 else "",
            status=Status.SUPERSEDED if i % 5 == 0 else Status.ACTIVE,
            create_time_us=NOW_US,
            update_time_us=NOW_US,
            occur_time_us=NOW_US,
        )
        segment.apply(memory, vectors[i], None)
        memories.append(memory)
    return segment, memories, vectors


@pytest.mark.parametrize("scanned_below", [ROWS + 1, 0])
def test_the_nearest_statements_are_those_of_a_slow_loop(rows, monkeypatch, scanned_below):
    segment, memories, vectors = rows
    monkeypatch.setattr(arbiter, "SCAN_CODES_ROWS", scanned_below)
    standing = [i for i, m in enumerate(memories) if m.layer in arbiter.CHECKED_LAYERS and m.status == Status.ACTIVE]
    look = arbiter._Look(segment, NOW_US)
    assert look.sequence == ROWS
    for vector in vectors[:40] + vectors[40:80] / 2:
        cosines = vectors @ vector
        expected = sorted(standing, key=lambda i: -cosines[i])[: arbiter.NEAREST]
        found = look.near("", vector)
        assert [row for row, _ in found] == expected
        assert [cosine for _, cosine in found] == pytest.approx(cosines[expected].tolist(), abs=1e-5)


def test_what_has_the_same_subject_is_met_however_far_it_is(rows):
    segment, _, vectors = rows
    far = -vectors[28]
    look = arbiter._Look(segment, NOW_US)
    assert 28 not in dict(look.near("", far))
    assert 28 in dict(look.near("a/b", far))
