"""Random histories: every engine answers every read as the dict engine does."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from dict_engine import DictEngine
from engine_registry import ENGINES
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from samples import HOSTILE, audit_entry, memory, memory_id

from memsvc.model import EARLIEST_TIME_US, NEVER_US, ChangeKind, Namespace, Scope, Status, content_hash
from memsvc.storage.engine import StoredAnswer

texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8))
namespaces = st.builds(Namespace, st.sampled_from(["t", "t/", "t\x00", "用"]), st.sampled_from(Scope), texts)
times = st.one_of(st.integers(-3, 3), st.integers(EARLIEST_TIME_US, NEVER_US))
contents = st.sampled_from(["one", "two", "三", "four\x00", ""])
MODELS = {"model-a": 3, "model-b": 2}


class Fail(Exception):
    """Undoes a transaction."""


class EngineMachine(RuleBasedStateMachine):
    """Applies each step to a real engine and to the oracle; after each, compares what the step touched."""

    name = ""

    @initialize(spaces=st.lists(namespaces, min_size=2, max_size=4, unique=True))
    def start(self, spaces: list[Namespace]) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.engine = ENGINES[self.name](self.directory)
        self.oracle = DictEngine()
        self.spaces = spaces
        self.subjects: set[str] = {"s"}

    def both(self, operation: Any) -> None:
        results = []
        for engine in (self.engine, self.oracle):
            try:
                results.append(engine.write(operation))
            except Fail:
                results.append("failed")
        assert results[0] == results[1]

    @rule(
        space=st.integers(0, 3),
        numbers=st.lists(st.integers(1, 6), min_size=1, max_size=4),
        content=contents,
        subject=st.one_of(st.just(""), texts),
        status=st.sampled_from(Status),
        occur_time_us=times,
        fail=st.sampled_from([False, False, False, True]),
    )
    def put(self, space: int, numbers: list[int], fail: bool, subject: str, **fields: Any) -> None:
        namespace = self.spaces[space % len(self.spaces)]
        if subject:
            self.subjects.add(subject)

        def operation(txn: Any) -> Any:
            stored = [
                txn.put(
                    memory(number, namespace, subject=subject, **fields),
                    ChangeKind.UPDATED if txn.get(namespace, memory_id(number)) else ChangeKind.CREATED,
                    time_us=7,
                    actor="a",
                )
                for number in numbers
            ]
            if fail:
                raise Fail
            return stored

        self.both(operation)

    @rule(space=st.integers(0, 3), number=st.integers(1, 6))
    def forget(self, space: int, number: int) -> None:
        namespace = self.spaces[space % len(self.spaces)]

        def operation(txn: Any) -> Any:
            found = txn.get(namespace, memory_id(number))
            if found is None:
                return None
            gone = msgspec.structs.replace(found, status=Status.FORGOTTEN)
            return txn.put(gone, ChangeKind.FORGOTTEN, time_us=8, actor="b", reason="r", request_id="q")

        self.both(operation)

    @rule(space=st.integers(0, 3), model=st.sampled_from(sorted(MODELS)), content=contents, value=st.floats(-1, 1))
    def put_vector(self, space: int, model: str, content: str, value: float) -> None:
        vector = np.full(MODELS[model], value, np.float32)
        namespace = self.spaces[space % len(self.spaces)]
        self.both(lambda txn: txn.put_vector(namespace, model, content_hash(content), vector))

    @rule(model=st.sampled_from(sorted(MODELS)))
    def drop_vectors(self, model: str) -> None:
        self.both(lambda txn: txn.drop_vectors(model))

    @rule(tenant=texts, request_id=texts, body=st.binary(max_size=4), fail=st.booleans())
    def put_answer(self, tenant: str, request_id: str, body: bytes, fail: bool) -> None:
        def operation(txn: Any) -> Any:
            known = txn.answer(tenant, request_id)
            if known is None:
                txn.put_answer(tenant, request_id, StoredAnswer(body, body, len(body)))
            if fail:
                raise Fail
            return known

        self.both(operation)

    @rule(space=st.integers(0, 3), ids=st.lists(st.integers(1, 9), max_size=3), detail=texts, fail=st.booleans())
    def append_audit(self, space: int, ids: list[int], detail: str, fail: bool) -> None:
        namespace = self.spaces[space % len(self.spaces)]
        entry = audit_entry(memory_ids=tuple(map(memory_id, ids)), count=len(ids), detail=detail)

        def operation(txn: Any) -> Any:
            stored = [txn.append_audit(namespace, entry), txn.append_audit(namespace, entry), txn.audit_head(namespace)]
            if fail:
                raise Fail
            return stored

        self.both(operation)

    @rule(space=st.integers(0, 3), fail=st.booleans())
    def erase_namespace(self, space: int, fail: bool) -> None:
        namespace = self.spaces[space % len(self.spaces)]

        def operation(txn: Any) -> Any:
            counts = [txn.erase_namespace(namespace), txn.erase_namespace(namespace)]
            if fail:
                raise Fail
            return counts

        self.both(operation)

    @rule(space=st.integers(0, 3), numbers=st.lists(st.integers(1, 8), max_size=4), fail=st.booleans())
    def erase_memories(self, space: int, numbers: list[int], fail: bool) -> None:
        namespace, ids = self.spaces[space % len(self.spaces)], [memory_id(number) for number in numbers]

        def operation(txn: Any) -> Any:
            counts = txn.erase_memories(namespace, ids)
            if fail:
                raise Fail
            return counts, txn.erase_memories(namespace, ids)

        self.both(operation)

    @rule(tenant=texts, size=st.integers(0, 4))
    def erase_answers(self, tenant: str, size: int) -> None:
        self.both(lambda txn: txn.erase_answers(tenant, lambda answer: len(answer) > size))

    @rule()
    def rewrite(self) -> None:
        assert self.engine.rewrite() == self.engine.size_bytes()

    @rule(space=st.integers(0, 3), after=st.integers(0, 7))
    def compare_audits(self, space: int, after: int) -> None:
        ns = self.spaces[space % len(self.spaces)]
        with self.engine.read() as real, self.oracle.read() as wanted:
            assert real.audit(ns, after, 3) == wanted.audit(ns, after, 3)
            assert real.audit(ns, 0, 10_000) == wanted.audit(ns, 0, 10_000)
            assert real.audit_head(ns) == wanted.audit_head(ns)

    @rule()
    def open_again(self) -> None:
        self.engine.close()
        self.engine = ENGINES[self.name](self.directory)

    @invariant()
    def heads_agree(self) -> None:
        with self.engine.read() as real, self.oracle.read() as wanted:
            order = repr
            assert sorted(real.heads(), key=order) == sorted(wanted.heads(), key=order)

    @rule(space=st.integers(0, 3), after=st.integers(0, 7), reverse=st.booleans())
    def compare_memories(self, space: int, after: int, reverse: bool) -> None:
        ns = self.spaces[space % len(self.spaces)]
        after_id = memory_id(after) if after else ""
        with self.engine.read() as real, self.oracle.read() as wanted:
            assert list(real.scan(ns, after_id=after_id, reverse=reverse)) == list(
                wanted.scan(ns, after_id=after_id, reverse=reverse)
            )
            assert list(real.all_versions(ns)) == list(wanted.all_versions(ns))
            assert real.changes(ns, after, 3) == wanted.changes(ns, after, 3)
            assert real.changes(ns, 0, 10_000) == wanted.changes(ns, 0, 10_000)
            keys = [(memory_id(n), version) for n in range(1, 8) for version in range(4)]
            assert real.get_many(ns, keys) == wanted.get_many(ns, keys)
            for number in range(1, 8):
                assert real.versions(ns, memory_id(number)) == wanted.versions(ns, memory_id(number))

    @rule(space=st.integers(0, 3), start=times, end=times, reverse=st.booleans())
    def compare_indexes(self, space: int, start: int, end: int, reverse: bool) -> None:
        ns = self.spaces[space % len(self.spaces)]
        with self.engine.read() as real, self.oracle.read() as wanted:
            for subject in self.subjects:
                assert list(real.by_subject(ns, subject)) == list(wanted.by_subject(ns, subject))
            for content in ("one", "two", "三", "four\x00", "", "never"):
                key = content_hash(content)
                assert list(real.by_content_hash(ns, key)) == list(wanted.by_content_hash(ns, key))
            for low, high in ((start, end), (EARLIEST_TIME_US, NEVER_US)):
                found = real.by_occur_time(ns, low, high, reverse=reverse)
                assert list(found) == list(wanted.by_occur_time(ns, low, high, reverse=reverse))

    @rule(space=st.integers(0, 3), model=st.sampled_from(sorted(MODELS)))
    def compare_vectors(self, space: int, model: str) -> None:
        ns = self.spaces[space % len(self.spaces)]
        keys = [content_hash(content) for content in ("one", "two", "三", "four\x00", "", "never")]
        with self.engine.read() as real, self.oracle.read() as wanted:
            vectors, found = real.vectors(ns, model, keys, MODELS[model])
            for row, key in enumerate(keys):
                expected = wanted.vector(ns, model, key)
                assert found[row] == (expected is not None)
                assert np.array_equal(vectors[row], np.zeros(MODELS[model]) if expected is None else expected)

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        found = list(self.engine.verify())
        self.engine.close()
        shutil.rmtree(self.directory)
        assert found == []


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_random_histories(name: str) -> None:
    machine = type("Machine", (EngineMachine,), {"name": name})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
