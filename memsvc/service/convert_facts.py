"""Between the contract's messages and the model's values, for exact facts.

Purpose: the part of `convert` that FactService needs.

Threading: pure functions.

Rejected: protobuf's json_format (see `convert`).
"""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2

from memsvc.errors import InvalidArgument, StoreCorrupt
from memsvc.memory.drafts import METADATA_MAX_DEPTH
from memsvc.model import Memory, Status
from memsvc.service import convert
from memsvc.v1 import fact_service_pb2 as fpb


def value(message: struct_pb2.Value, field: str) -> Any:
    """A JSON value. Raises InvalidArgument naming the field for one that is not set or nested too deeply."""
    if message.WhichOneof("kind") is None:
        raise InvalidArgument(f"{field} is not set; null is a value of its own", field=field)
    try:
        return convert.plain(message)
    except InvalidArgument as error:
        raise InvalidArgument(f"{field} is nested deeper than {METADATA_MAX_DEPTH} levels", field=field) from error


def fact_message(memory: Memory) -> fpb.Fact:
    """A version of a fact."""
    if memory.fact is None:
        raise StoreCorrupt(f"{memory.memory_id} is no fact; run `memsvc verify`")
    return fpb.Fact(
        key=memory.fact.key,
        value=convert.value_message(memory.fact.value),
        version=memory.version,
        namespace=convert.namespace_message(memory.namespace),
        memory_id=memory.memory_id,
        update_time=convert.timestamp(memory.update_time_us),
        deleted=memory.status == Status.FORGOTTEN,
        source=convert.source_message(memory.source),
    )
