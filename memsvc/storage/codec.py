"""Bytes of keys and values.

Purpose: one place that knows how records and keys look on disk. Values are msgpack arrays behind a format byte; keys
sort as their meaning does. Ids may hold any character: they are hashed or length-prefixed, never joined, and the full
text is kept in the value and compared. A lone surrogate can be looked up (and is not found) but not stored.

Threading: pure functions.

Rejected: JSON (five times the bytes and time), keys that join ids with a delimiter (an id may hold it).
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import msgspec

from memsvc.errors import InvalidArgument, StoreCorrupt
from memsvc.model import Change, Memory, Namespace, id_from_bytes, id_to_bytes
from memsvc.storage.engine import StoredAnswer

VALUE_FORMAT = 1
NAMESPACE_BYTES = 8
ID_BYTES = 16
HASH_BYTES = 16
_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")
_TIME_BIAS = 1 << 63
MIN_TIME_US = -(1 << 63)
MAX_TIME_US = (1 << 63) - 1
_COPY_BELOW_BYTES = 4096  # a view costs more than a copy of this
MAX_U32 = (1 << 32) - 1
MAX_U64 = (1 << 64) - 1


class NamedAnswer(msgspec.Struct, frozen=True, array_like=True):
    """A stored answer with the names that its key is a digest of."""

    tenant: str
    request_id: str
    answer: StoredAnswer


class ModelEntry(msgspec.Struct, frozen=True, array_like=True):
    """A row of the models table: the number that stands for the model in vector keys, its dimension and id."""

    number: int
    dim: int
    model_id: str


_encoder = msgspec.msgpack.Encoder()
_memory_decoder = msgspec.msgpack.Decoder(Memory)
_change_decoder = msgspec.msgpack.Decoder(Change)
_answer_decoder = msgspec.msgpack.Decoder(NamedAnswer)
_names_decoder = msgspec.msgpack.Decoder(Namespace)
_model_decoder = msgspec.msgpack.Decoder(ModelEntry)
_record_decoder = msgspec.msgpack.Decoder(tuple[str, bytes])
_PREFIX = bytes([VALUE_FORMAT])


def _encode(value: Any) -> bytes:
    try:
        return _PREFIX + _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidArgument("a text holds a lone surrogate; send valid Unicode") from error
    except OverflowError as error:
        raise InvalidArgument("an integer does not fit into 64 bits") from error
    except (TypeError, NotImplementedError, RecursionError) as error:
        raise InvalidArgument(f"a value can't be stored: {error}") from error


def _decode(decoder: msgspec.msgpack.Decoder[Any], raw: bytes, what: str) -> Any:
    if not raw or raw[0] != VALUE_FORMAT:
        found = str(raw[0]) if raw else "none"
        raise StoreCorrupt(f"a {what} has an unknown format ({found}); run `memsvc verify`")
    try:
        return decoder.decode(raw[1:] if len(raw) < _COPY_BELOW_BYTES else memoryview(raw)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StoreCorrupt(f"a {what} can't be decoded; run `memsvc verify`") from error


def encode_memory(memory: Memory) -> bytes:
    """A version. Raises InvalidArgument for what msgpack can't hold: lone surrogates, integers past 64 bits."""
    return _encode(memory)


def decode_memory(raw: bytes) -> Memory:
    """Inverse of `encode_memory`. Raises StoreCorrupt."""
    memory: Memory = _decode(_memory_decoder, raw, "memory version")
    return memory


def encode_change(change: Change) -> bytes:
    """A log entry. Raises InvalidArgument as `encode_memory` does."""
    return _encode(change)


def decode_change(raw: bytes) -> Change:
    """Inverse of `encode_change`. Raises StoreCorrupt."""
    change: Change = _decode(_change_decoder, raw, "change")
    return change


def encode_answer(named: NamedAnswer) -> bytes:
    """A stored answer. Raises InvalidArgument as `encode_memory` does."""
    return _encode(named)


def decode_answer(raw: bytes) -> NamedAnswer:
    """Inverse of `encode_answer`. Raises StoreCorrupt."""
    named: NamedAnswer = _decode(_answer_decoder, raw, "stored answer")
    return named


def encode_names(namespace: Namespace) -> bytes:
    """The full names of a namespace: kept beside its number and compared on every look-up. Raises InvalidArgument."""
    return _encode(namespace)


def decode_names(raw: bytes) -> Namespace:
    """Inverse of `encode_names`. Raises StoreCorrupt."""
    names: Namespace = _decode(_names_decoder, raw, "namespace")
    return names


def encode_model(entry: ModelEntry) -> bytes:
    """A row of the models table. Raises InvalidArgument."""
    return _encode(entry)


def decode_model(raw: bytes) -> ModelEntry:
    """Inverse of `encode_model`. Raises StoreCorrupt."""
    entry: ModelEntry = _decode(_model_decoder, raw, "model")
    return entry


def encode_record(key: str, value: bytes) -> bytes:
    """A record behind its key. Raises InvalidArgument."""
    return _encode((key, value))


def decode_record(raw: bytes) -> tuple[str, bytes]:
    """Inverse of `encode_record`. Raises StoreCorrupt."""
    record: tuple[str, bytes] = _decode(_record_decoder, raw, "record")
    return record


def digest(*parts: bytes | str) -> bytes:
    """16-byte BLAKE2b over length-prefixed parts: an injective key for texts of any content and length."""
    state = hashlib.blake2b(digest_size=HASH_BYTES)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(_U64.pack(len(raw)))
        state.update(raw)
    return state.digest()


def namespace_key(namespace: Namespace) -> bytes:
    """Look-up key of a namespace."""
    return digest(namespace.tenant, bytes([namespace.scope]), namespace.owner)


def pack_u32(value: int) -> bytes:
    """Big-endian, so that keys sort. `value` is in 0..MAX_U32."""
    return _U32.pack(value)


def unpack_u32(raw: bytes) -> int:
    """Inverse of `pack_u32`. Raises StoreCorrupt for another length."""
    if len(raw) != _U32.size:
        raise StoreCorrupt("a 32-bit number has another length; run `memsvc verify`")
    value: int = _U32.unpack(raw)[0]
    return value


def pack_u64(value: int) -> bytes:
    """Big-endian, so that keys sort. `value` is in 0..MAX_U64."""
    return _U64.pack(value)


def unpack_u64(raw: bytes) -> int:
    """Inverse of `pack_u64`. Raises StoreCorrupt for another length."""
    if len(raw) != _U64.size:
        raise StoreCorrupt("a 64-bit number has another length; run `memsvc verify`")
    value: int = _U64.unpack(raw)[0]
    return value


def pack_time(time_us: int) -> bytes:
    """A signed 64-bit time whose bytes sort as the times do. Raises InvalidArgument for one that does not fit."""
    try:
        return _U64.pack(time_us + _TIME_BIAS)
    except struct.error as error:
        raise InvalidArgument("a time does not fit into 64 bits of microseconds") from error


def unpack_time(raw: bytes) -> int:
    """Inverse of `pack_time`. Raises StoreCorrupt for another length."""
    return unpack_u64(raw) - _TIME_BIAS


def id_bytes(memory_id: str) -> bytes:
    """Key bytes of a memory id. Raises InvalidArgument for anything else."""
    raw = id_to_bytes(memory_id)
    if raw is None:
        raise InvalidArgument("not a memory id", field="memory_id")
    return raw


def id_text(raw: bytes) -> str:
    """Inverse of `id_bytes`."""
    return id_from_bytes(raw)
