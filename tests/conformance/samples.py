"""Memories, namespaces and hostile texts for the engine suite."""

from __future__ import annotations

from typing import Any

from memsvc.model import (
    AuditEntry,
    AuditKind,
    ChangeKind,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    content_hash,
    id_from_bytes,
)
from memsvc.storage.engine import WriteTxn

NS = Namespace("acme", Scope.USER, "alice")
OTHER = Namespace("acme", Scope.USER, "bob")
MODEL = "model-a"

HOSTILE = [
    "a",
    "a/b",
    "a:b",
    "a%",
    "a_",
    "a.b",
    "a\n",
    "a ",
    " a",
    "A",
    "%",
    "_",
    "*",
    "a\x00",
    "\x00",
    "a\x00b",
    "é",
    "e\u0301",
    "用户",
    "用户\n",
    "😀",
    "\u202eabc",
    "\x7f",
    "\U0010ffff",
    "x" * 3000,
    "x" * 3001,
]
SURROGATE = "a\ud800"


def memory_id(number: int) -> str:
    return id_from_bytes(number.to_bytes(16, "big"))


def memory(number: int = 1, namespace: Namespace = NS, **fields: Any) -> Memory:
    values: dict[str, Any] = {
        "memory_id": memory_id(number),
        "version": 0,
        "sequence": 0,
        "namespace": namespace,
        "layer": Layer.SEMANTIC,
        "type": MemoryType.FACT,
        "content": f"fact {number}",
        "create_time_us": 1_000,
        "update_time_us": 1_000,
        "occur_time_us": 1_000 + number % 1_000,
    }
    return Memory(**{**values, **fields})


def put(txn: WriteTxn, value: Memory, kind: ChangeKind = ChangeKind.CREATED) -> Memory:
    return txn.put(value, kind, time_us=5, actor="tester", reason="because", request_id="r")


def audit_entry(**fields: Any) -> AuditEntry:
    values: dict[str, Any] = {"kind": AuditKind.READ, "time_us": 7, "actor": "tester", "call": "S/Call"}
    return AuditEntry(**{**values, **fields})


def hash_of(value: Memory) -> bytes:
    return content_hash(value.content)
