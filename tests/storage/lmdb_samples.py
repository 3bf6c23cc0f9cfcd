"""Small memories for the tests of the LMDB store and for the child processes that they start."""

from __future__ import annotations

from typing import Any

from memsvc.model import ChangeKind, Layer, Memory, MemoryType, Namespace, Scope, id_from_bytes
from memsvc.storage.engine import WriteTxn

NS = Namespace("acme", Scope.USER, "alice")
MODEL = "model-a"


def memory(number: int, namespace: Namespace = NS, **fields: Any) -> Memory:
    values: dict[str, Any] = {
        "memory_id": id_from_bytes(number.to_bytes(16, "big")),
        "version": 0,
        "sequence": 0,
        "namespace": namespace,
        "layer": Layer.SEMANTIC,
        "type": MemoryType.FACT,
        "content": f"fact {number}",
        "subject": f"s/{number % 7}",
        "occur_time_us": number,
    }
    return Memory(**{**values, **fields})


def put(txn: WriteTxn, value: Memory, kind: ChangeKind = ChangeKind.CREATED) -> Memory:
    return txn.put(value, kind, time_us=1, actor="tester")
