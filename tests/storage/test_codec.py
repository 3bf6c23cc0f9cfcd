"""Keys sort as their meaning does and never collide; values come back as they were."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.errors import InvalidArgument, StoreCorrupt
from memsvc.model import (
    NEVER_US,
    Change,
    ChangeKind,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    Source,
    Status,
    id_from_bytes,
    id_to_bytes,
)
from memsvc.storage import codec
from memsvc.storage.engine import StoredAnswer

any_text = st.text(st.characters(exclude_categories=[]))
text = st.text(st.characters(exclude_categories=["Cs"]))
int64 = st.integers(-(2**63), 2**63 - 1)
ids = st.binary(min_size=16, max_size=16).map(id_from_bytes)
unit = st.floats(0, 1)
namespaces = st.builds(Namespace, text, st.sampled_from(Scope), text)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
memories = st.builds(
    Memory,
    memory_id=ids,
    version=st.integers(1, 2**32 - 1),
    sequence=st.integers(1, 2**63),
    namespace=namespaces,
    layer=st.sampled_from(Layer),
    type=st.sampled_from(MemoryType),
    content=text,
    status=st.sampled_from(Status),
    subject=text,
    tags=st.lists(text, max_size=3).map(tuple),
    metadata=st.dictionaries(text, json_values, max_size=3),
    source=st.builds(Source, text, text, text),
    importance=unit,
    confidence=unit,
    superseded_by=text,
    supersedes=st.lists(ids, max_size=2).map(tuple),
    create_time_us=int64,
    update_time_us=int64,
    occur_time_us=int64,
    expire_time_us=st.just(NEVER_US) | int64,
    last_access_time_us=int64,
    access_count=st.integers(0, 2**63),
    embedding_model=text,
    embedding_dim=st.integers(0, 2**16),
)
changes = st.builds(
    Change,
    sequence=st.integers(1, 2**63),
    kind=st.sampled_from(ChangeKind),
    memory_id=ids,
    version=st.integers(1, 2**32 - 1),
    time_us=int64,
    actor=text,
    reason=text,
    request_id=text,
)
answers = st.builds(codec.NamedAnswer, text, text, st.builds(StoredAnswer, st.binary(), st.binary(), int64))
models = st.builds(codec.ModelEntry, st.integers(1, 2**32 - 1), st.integers(1, 2**16), text)

CODECS: list[tuple[Any, Any, Any]] = [
    (memories, codec.encode_memory, codec.decode_memory),
    (changes, codec.encode_change, codec.decode_change),
    (answers, codec.encode_answer, codec.decode_answer),
    (namespaces, codec.encode_names, codec.decode_names),
    (models, codec.encode_model, codec.decode_model),
]


@given(st.one_of(*[st.tuples(values, st.just(e), st.just(d)) for values, e, d in CODECS]))
def test_values_come_back(case: tuple[Any, Any, Any]) -> None:
    value, encode, decode = case
    raw = encode(value)
    assert raw[0] == codec.VALUE_FORMAT
    assert decode(raw) == value


def test_a_large_value_comes_back() -> None:
    names = Namespace("x" * 100_000, Scope.USER, "用" * 100_000)
    assert codec.decode_names(codec.encode_names(names)) == names


@given(st.binary(max_size=40), st.sampled_from([c[2] for c in CODECS]))
def test_any_bytes_are_a_value_or_corrupt(raw: bytes, decode: Any) -> None:
    for candidate in (raw, bytes([codec.VALUE_FORMAT]) + raw):
        try:
            decode(candidate)
        except StoreCorrupt as error:
            message = error.message
        else:
            continue
        assert "memsvc verify" in message


@given(memories, st.data())
def test_a_cut_value_is_corrupt(memory: Memory, data: st.DataObject) -> None:
    raw = codec.encode_memory(memory)
    with pytest.raises(StoreCorrupt):
        codec.decode_memory(raw[: data.draw(st.integers(0, len(raw) - 1))])


def test_another_format_byte_is_corrupt_and_named() -> None:
    raw = codec.encode_names(Namespace("t", Scope.USER, "o"))
    with pytest.raises(StoreCorrupt, match=r"\(9\).*memsvc verify"):
        codec.decode_names(bytes([9]) + raw[1:])


def test_a_value_with_more_fields_than_this_version_knows_is_read() -> None:
    """New fields go at the end; a record of a later minor version loses nothing that this one needs."""
    raw = codec.encode_names(Namespace("t", Scope.USER, "o"))
    longer = bytes([codec.VALUE_FORMAT]) + msgspec.msgpack.encode([*msgspec.msgpack.decode(raw[1:]), "new"])
    assert codec.decode_names(longer) == Namespace("t", Scope.USER, "o")


@pytest.mark.parametrize(
    "fields",
    [{"content": "\ud800"}, {"tags": ("\udfff",)}, {"metadata": {"n": 2**64}}, {"metadata": {"o": object()}}],
)
def test_what_msgpack_cannot_hold_is_refused(fields: dict[str, Any]) -> None:
    memory = Memory(
        memory_id=id_from_bytes(b"\0" * 16),
        version=1,
        sequence=1,
        namespace=Namespace("t", Scope.USER, "o"),
        layer=Layer.SEMANTIC,
        type=MemoryType.FACT,
        content="c",
    )
    with pytest.raises(InvalidArgument):
        codec.encode_memory(msgspec.structs.replace(memory, **fields))


def test_a_bottomless_value_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(InvalidArgument):
        codec.encode_names(loop)  # type: ignore[arg-type]


parts = st.lists(any_text | st.binary(), max_size=4).map(tuple)


def as_bytes(values: tuple[Any, ...]) -> tuple[bytes, ...]:
    return tuple(v.encode("utf-8", "surrogatepass") if isinstance(v, str) else v for v in values)


@given(parts, parts)
def test_digests_are_equal_only_for_equal_parts(one: tuple[Any, ...], two: tuple[Any, ...]) -> None:
    assert (codec.digest(*one) == codec.digest(*two)) == (as_bytes(one) == as_bytes(two))
    assert len(codec.digest(*one)) == codec.HASH_BYTES


@given(any_text, any_text)
def test_moving_the_border_between_parts_changes_the_digest(one: str, two: str) -> None:
    assert codec.digest(one + "x", two) != codec.digest(one, "x" + two)
    assert codec.digest(one, two) != codec.digest(one + two)


wild = st.builds(Namespace, any_text, st.sampled_from(Scope), any_text)


@given(wild, wild)
def test_namespace_keys_are_equal_only_for_equal_namespaces(one: Namespace, two: Namespace) -> None:
    assert (codec.namespace_key(one) == codec.namespace_key(two)) == (one == two)


@given(int64, int64)
def test_times_sort_as_their_bytes(one: int, two: int) -> None:
    assert (one < two) == (codec.pack_time(one) < codec.pack_time(two))
    assert codec.unpack_time(codec.pack_time(one)) == one


@pytest.mark.parametrize("time_us", [2**63, -(2**63) - 1, 10**30])
def test_times_that_do_not_fit_are_refused(time_us: int) -> None:
    with pytest.raises(InvalidArgument):
        codec.pack_time(time_us)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_numbers_sort_as_their_bytes(one: int, two: int) -> None:
    assert (one < two) == (codec.pack_u64(one) < codec.pack_u64(two))
    assert codec.unpack_u64(codec.pack_u64(one)) == one
    small = one & codec.MAX_U32
    assert codec.unpack_u32(codec.pack_u32(small)) == small


@pytest.mark.parametrize("unpack", [codec.unpack_u32, codec.unpack_u64, codec.unpack_time])
def test_numbers_of_another_length_are_corrupt(unpack: Any) -> None:
    with pytest.raises(StoreCorrupt):
        unpack(b"\0" * 7)


@given(ids)
def test_ids_come_back(memory_id: str) -> None:
    assert codec.id_text(codec.id_bytes(memory_id)) == memory_id


ID_FORM = re.compile(r"mem_([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})")

near_ids = st.tuples(ids, st.integers(0, 39), st.sampled_from("-_ \n\tgGaAF0٣１mem\x00"), st.booleans()).map(
    lambda t: t[0][: t[1]] + t[2] + t[0][t[1] + t[3] :]
)


@given(st.one_of(near_ids, ids.map(str.upper), any_text, st.text("mem_-0123456789abcdefABCDEF \t", max_size=44)))
def test_an_id_is_one_exactly_when_its_form_says_so(candidate: str) -> None:
    match = ID_FORM.fullmatch(candidate)
    expected = bytes.fromhex("".join(match.groups())) if match else None
    assert id_to_bytes(candidate) == expected
    if expected is None:
        with pytest.raises(InvalidArgument):
            codec.id_bytes(candidate)
    else:
        assert codec.id_bytes(candidate) == expected
