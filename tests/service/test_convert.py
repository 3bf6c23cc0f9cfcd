"""Between messages and values: nothing lost, nothing guessed; enums of the model equal the contract's."""

from __future__ import annotations

import pytest
from google.protobuf import struct_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from memsvc.errors import InvalidArgument, UnknownField
from memsvc.memory.care import ReindexState
from memsvc.memory.recall import Degraded, Hit, RecallAnswer, Timings
from memsvc.model import (
    EARLIEST_TIME_US,
    LATEST_TIME_US,
    ChangeKind,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Outcome,
    Scope,
    Status,
)
from memsvc.retrieval.searcher import Found
from memsvc.service import convert
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb

PAIRS = [
    (Layer, pb.Layer, "LAYER"),
    (MemoryType, pb.MemoryType, "MEMORY_TYPE"),
    (Scope, pb.Scope, "SCOPE"),
    (Status, pb.Status, "STATUS"),
    (Outcome, spb.WriteOutcome, "WRITE_OUTCOME"),
    (ChangeKind, spb.ChangeKind, "CHANGE_KIND"),
    (Degraded, spb.Degraded, "DEGRADED"),
    (ReindexState, apb.ReindexState, "REINDEX_STATE"),
]


@pytest.mark.parametrize(("model", "proto", "prefix"), PAIRS, ids=[p[2] for p in PAIRS])
def test_enums_equal_the_contracts_numbers(model, proto, prefix):
    numbers = {name.removeprefix(f"{prefix}_"): number for name, number in proto.items() if number}
    assert {member.name: member.value for member in model} == numbers


@given(st.integers(EARLIEST_TIME_US, LATEST_TIME_US))
def test_times_round_trip(value_us):
    message = convert.timestamp(value_us)
    assert 0 <= message.nanos < 10**9
    assert convert.time_us(message, "t") == value_us


def test_nanos_out_of_range_are_refused():
    for nanos in (-1, 10**9):
        with pytest.raises(InvalidArgument) as raised:
            convert.time_us(timestamp_pb2.Timestamp(nanos=nanos), "memory.occur_time")
        assert raised.value.field == "memory.occur_time.nanos"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_metadata_round_trips(value):
    message = struct_pb2.Struct()
    message.update(value)
    assert convert.metadata(message) == value


def test_unset_and_empty_ids_differ():
    assert convert.owners(pb.Owners()).user_id is None
    assert convert.owners(pb.Owners(user_id="")).user_id == ""


def test_unknown_field_of_an_inner_message_is_named():
    request = spb.BatchWriteRequest.FromString(b"\x12\x03\xf8\x3f\x01")
    with pytest.raises(UnknownField) as raised:
        convert.refuse_unknown(request)
    assert raised.value.field == "memories.1023"


def test_a_range_that_ends_before_it_starts_is_refused():
    span = pb.TimeRange(start_time={"seconds": 2}, end_time={"seconds": 1})
    with pytest.raises(InvalidArgument) as raised:
        convert.condition(pb.Filter(occur_time=span))
    assert raised.value.field == "filter.occur_time"


def test_hits_are_encoded_as_the_messages_would_be():
    namespace = Namespace("default", Scope.USER, "u")
    memory = Memory(
        memory_id="mem_00000000-0000-7000-8000-000000000001",
        version=1,
        sequence=1,
        namespace=namespace,
        layer=Layer.SEMANTIC,
        type=MemoryType.FACT,
        content="长" * 300,
    )
    for paths in (0, 2, 62, 36):
        raw_id = bytes.fromhex(memory.memory_id[4:].replace("-", ""))
        found = Found(namespace, raw_id, 1, [0.1, 0.2, 0.0, -0.4, 0.5, 0.6, 1.0, 0.7, 0.8], paths, 0, 0)
        answer = RecallAnswer([Hit(memory, found)] * 2, [], [(namespace, 7)], Timings(total_us=3))
        response = convert.EncodedMemories().recall_response(answer, 0)
        parts = dict(zip("vector lexical exact time importance neighbour".split(), found.components, strict=False))
        hit = spb.Hit(
            memory=convert.memory_message(memory, 0),
            score=1.0,
            components=spb.ScoreComponents(**parts, cosine=0.7, bm25=0.8),
            paths=[path for path in range(1, 6) if paths >> path & 1],
        )
        assert list(response.hits) == [hit, hit]
        assert response.timings.total_us == 3
        assert response.sequences[0].sequence == 7


@pytest.mark.parametrize("seconds", [-(2**63), -62135596801, 253402300800, 2**63 - 1])
def test_a_time_outside_of_the_years_1_to_9999_is_refused(seconds):
    """Microseconds of it would not fit into 64 bits, or into a date."""
    with pytest.raises(InvalidArgument, match="years 1 to 9999"):
        convert.time_us(timestamp_pb2.Timestamp(seconds=seconds), "as_of")
