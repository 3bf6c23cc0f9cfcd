"""Bytes of keys and values.

Purpose: one place that knows how records and keys look on disk. Values are msgpack arrays behind a format byte; keys
sort as their meaning does. Ids may hold any character: they are hashed or length-prefixed, never joined.

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

_encoder = msgspec.msgpack.Encoder()
_memory_decoder = msgspec.msgpack.Decoder(Memory)
_change_decoder = msgspec.msgpack.Decoder(Change)
_answer_decoder = msgspec.msgpack.Decoder(StoredAnswer)
_PREFIX = bytes([VALUE_FORMAT])


def _encode(value: Any) -> bytes:
    try:
        return _PREFIX + _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidArgument("a text holds a lone surrogate; send valid Unicode") from error


def _decode(decoder: msgspec.msgpack.Decoder[Any], raw: bytes, what: str) -> Any:
    if not raw or raw[0] != VALUE_FORMAT:
        raise StoreCorrupt(f"a {what} has an unknown format; run `memsvc verify`")
    try:
        return decoder.decode(memoryview(raw)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreCorrupt(f"a {what} can't be decoded; run `memsvc verify`") from error


def encode_memory(memory: Memory) -> bytes:
    """A version. Raises InvalidArgument for text that is not Unicode."""
    return _encode(memory)


def decode_memory(raw: bytes) -> Memory:
    """A version. Raises StoreCorrupt."""
    memory: Memory = _decode(_memory_decoder, raw, "memory version")
    return memory


def encode_change(change: Change) -> bytes:
    """A log entry."""
    return _encode(change)


def decode_change(raw: bytes) -> Change:
    """A log entry. Raises StoreCorrupt."""
    change: Change = _decode(_change_decoder, raw, "change")
    return change


def encode_answer(answer: StoredAnswer) -> bytes:
    """A stored answer."""
    return _encode(answer)


def decode_answer(raw: bytes) -> StoredAnswer:
    """A stored answer. Raises StoreCorrupt."""
    answer: StoredAnswer = _decode(_answer_decoder, raw, "stored answer")
    return answer


def encode_names(namespace: Namespace) -> bytes:
    """The full names of a namespace: kept beside its number and compared on every look-up."""
    return _encode(namespace)


def decode_names(raw: bytes) -> Namespace:
    """Inverse of `encode_names`. Raises StoreCorrupt."""
    names: Namespace = _decode(msgspec.msgpack.Decoder(Namespace), raw, "namespace")
    return names


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
    """Big-endian, so that keys sort."""
    return _U32.pack(value)


def unpack_u32(raw: bytes) -> int:
    """Inverse of `pack_u32`."""
    value: int = _U32.unpack(raw)[0]
    return value


def pack_u64(value: int) -> bytes:
    """Big-endian, so that keys sort."""
    return _U64.pack(value)


def unpack_u64(raw: bytes) -> int:
    """Inverse of `pack_u64`."""
    value: int = _U64.unpack(raw)[0]
    return value


def pack_time(time_us: int) -> bytes:
    """A signed 64-bit time whose bytes sort as the times do."""
    return _U64.pack(time_us + _TIME_BIAS)


def unpack_time(raw: bytes) -> int:
    """Inverse of `pack_time`."""
    value: int = _U64.unpack(raw)[0] - _TIME_BIAS
    return value


def id_bytes(memory_id: str) -> bytes:
    """Key bytes of a memory id. Raises InvalidArgument for anything else."""
    raw = id_to_bytes(memory_id)
    if raw is None:
        raise InvalidArgument("not a memory id", field="memory_id")
    return raw


def id_text(raw: bytes) -> str:
    """Inverse of `id_bytes`."""
    return id_from_bytes(raw)
