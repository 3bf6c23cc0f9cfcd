"""Writes the golden store of the present format: `python tests/golden/make_golden.py` from the repository's root.

Run it once when a format is new, and commit what it wrote; never again for the same format. `write_history` is the
history that the test compares with.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from memsvc.model import (
    LATEST_TIME_US,
    ChangeKind,
    Layer,
    Memory,
    MemoryType,
    Namespace,
    Scope,
    Source,
    Status,
    content_hash,
    id_from_bytes,
)
from memsvc.storage.engine import StoredAnswer, WriteTxn
from memsvc.storage.lmdb_engine import FORMAT_VERSION, LmdbEngine

GOLDEN = Path(__file__).parent
MODEL = "golden/模型"
START_US = 1_700_000_000_000_000
SPACES = [
    Namespace("acme", Scope.USER, "alice"),
    Namespace("acme", Scope.USER, "alice\n"),
    Namespace("acme/", Scope.AGENT, "%_*.\x00"),
    Namespace("公司", Scope.PROJECT, "项目 😀\u202e"),
    Namespace("acme", Scope.GLOBAL, ""),
]
CONTENTS = [
    "Alice prefers the report as a PDF.",
    "报告用中文写，每周一早上发送。",
    "NUL \x00, tab \t, quote \" ' `, emoji 😀, right-to-left \u202e mark",
    "ORD-2025-0110 was shipped on 2025-01-10; see https://example.org/a?b=c&d=%20",
    "",
]


def _memory(number: int, namespace: Namespace) -> Memory:
    return Memory(
        memory_id=id_from_bytes((0x018BCFE5_6800_7000_8000_000000000000 + number).to_bytes(16, "big")),
        version=0,
        sequence=0,
        namespace=namespace,
        layer=list(Layer)[number % 5],
        type=list(MemoryType)[number % 5],
        content=CONTENTS[number % 5],
        status=list(Status)[number % 8],
        subject=["", "report.format", "报告/语言", "a%b_c", "x" * 600][number % 5],
        tags=("tag,with comma", "标签", "")[: number % 4],
        metadata={"n": -(2**63), "u": 2**64 - 1, "f": 0.1, "nested": {"l": [1, None, True, "二"]}, "": "", "i": number},
        source=Source("cli", f"session {number}", ""),
        importance=number / 40,
        confidence=1 - number / 40,
        supersedes=("mem_x",) * (number % 2),
        create_time_us=START_US + number,
        update_time_us=START_US + number,
        occur_time_us=[START_US - number, -1, 0, LATEST_TIME_US, -62_135_596_800_000_000][number % 5],
        access_count=number,
        embedding_model=MODEL,
        embedding_dim=4,
    )


def write_history(txn: WriteTxn) -> None:
    """Memories in five namespaces, updates, forgets, vectors, answers and a meta value."""

    def put(value: Memory, kind: ChangeKind, reason: str) -> Memory:
        return txn.put(value, kind, time_us=value.update_time_us, actor="golden", reason=reason, request_id="r\n")

    stored = []
    for number in range(25):
        value = _memory(number, SPACES[number // 5])
        vector = np.array([number / 32, -1, 0.5, 0], np.float32)
        txn.put_vector(value.namespace, MODEL, content_hash(value.content), vector)
        stored.append(put(value, ChangeKind.CREATED, ""))
    txn.put_vector(SPACES[1], MODEL, content_hash("updated 更新"), np.array([1, 0, 0, 0.25], np.float32))
    updated = msgspec.structs.replace(stored[5], content="updated 更新", subject="s", status=Status.ACTIVE)
    put(msgspec.structs.replace(updated, update_time_us=START_US + 100), ChangeKind.UPDATED, "更正")
    put(msgspec.structs.replace(updated, status=Status.FORGOTTEN), ChangeKind.FORGOTTEN, "asked")
    gone = msgspec.structs.replace(stored[0], status=Status.SUPERSEDED, superseded_by=stored[1].memory_id)
    put(gone, ChangeKind.SUPERSEDED, "")
    txn.put_answer("acme", "r\n", StoredAnswer(b"\x00f", b"answer\xff", START_US))
    txn.put_answer("公司", "r%", StoredAnswer(b"", b"", -1))
    txn.put_meta("embedding_model", b"golden")


def contents_of(engine: LmdbEngine) -> dict[str, Any]:
    """Everything that the engine gives back, as JSON can hold it."""
    with engine.read() as txn:
        return {
            "heads": sorted((msgspec.to_builtins(head) for head in txn.heads()), key=repr),
            "versions": [[msgspec.to_builtins(m) for m in txn.all_versions(ns)] for ns in SPACES],
            "current": [[m.memory_id for m in txn.scan(ns)] for ns in SPACES],
            "by_time": [[m.memory_id for m in txn.by_occur_time(ns, -(2**63), 2**63 - 1)] for ns in SPACES],
            "by_subject": [[[m.memory_id for m in txn.by_subject(ns, s)] for s in ("s", "报告/语言")] for ns in SPACES],
            "changes": [[msgspec.to_builtins(c) for c in txn.changes(ns, 0, 1000)] for ns in SPACES],
            "vectors": [
                txn.vectors(ns, MODEL, [content_hash(c) for c in [*CONTENTS, "updated 更新"]], 4)[0].tolist()
                for ns in SPACES
            ],
            "answers": [msgspec.to_builtins(txn.answer(*key)) for key in (("acme", "r\n"), ("公司", "r%"))],
            "meta": msgspec.to_builtins(txn.meta("embedding_model")),
        }


def main() -> None:
    target = GOLDEN / f"lmdb_format_{FORMAT_VERSION}"
    if target.exists():
        sys.exit(f"{target} exists: a golden store is written once")
    work = Path(tempfile.mkdtemp())
    engine = LmdbEngine.open(work / "store")
    engine.write(write_history)
    engine.backup(target)
    (target / "contents.json").write_bytes(msgspec.json.format(msgspec.json.encode(contents_of(engine)), indent=1))
    engine.close()
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
