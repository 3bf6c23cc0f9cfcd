"""What the benches share: a real server process, synthetic stores, percentiles, output."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from memsvc.app import STORE_DIR, open_model
from memsvc.demo import ServerProcess
from memsvc.model import Namespace, Scope, content_hash
from memsvc.storage.lmdb_engine import LmdbEngine
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc

EVENT = pb.MEMORY_TYPE_EVENT
OPTIONS = (("grpc.max_send_message_length", 2**25), ("grpc.max_receive_message_length", 2**25))
SUBJECTS = "billing search login report export mobile payment staging backup index cache theme mail invoice".split()
VERBS = "uses prefers needs rejects deploys monitors archives tests documents replaces".split()
OBJECTS = "PostgreSQL Redis Go Python PDF Markdown Kafka gRPC Docker YAML TypeScript LMDB 报告 缓存 周报 数据库".split()
PLACES = (
    "in Berlin|on Fridays|after review|before release|for large customers|在上海|每周一|夜间|在生产环境|without TLS"
).split("|")


def parser(description: str) -> argparse.ArgumentParser:
    """Arguments that every bench has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_argument("--small", action="store_true", help="a run of seconds, to see that it works")
    return made


def emit(result: dict[str, Any], tables: list[Table], as_json: bool) -> None:
    """Prints a result."""
    if as_json:
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
        return
    console = Console(width=120)
    for table in tables:
        console.print(table)


def table(title: str, rows: list[dict[str, Any]]) -> Table:
    """A table of rows that have the same names."""
    made = Table(*(name.replace("_", " ") for name in rows[0]), title=title)
    for row in rows:
        made.add_row(*(str(value) for value in row.values()))
    return made


def data_file(directory: Path, name: str) -> Path:
    """A file of the evaluation data; ends the bench where it is missing."""
    path = directory / name
    if not path.exists():
        sys.exit(f"{path} is missing: give the directory of the evaluation data with --data")
    return path


def percentiles(samples_s: list[float]) -> dict[str, float]:
    """p50, p95 and p99 in milliseconds."""
    p50, p95, p99 = (np.percentile(samples_s, q) * 1000 for q in (50, 95, 99))
    return {"p50_ms": round(float(p50), 4), "p95_ms": round(float(p95), 4), "p99_ms": round(float(p99), 4)}


def timed(call: Callable[[int], Any], count: int, warm: int = 50) -> dict[str, float]:
    """Percentiles of `count` calls after `warm` unmeasured ones."""
    for i in range(warm):
        call(i)
    samples = []
    for i in range(count):
        start = time.perf_counter()
        call(i)
        samples.append(time.perf_counter() - start)
    return percentiles(samples)


def sentence(i: int) -> str:
    """A distinct synthetic statement, a third of them with Chinese words."""
    a, b, c, d = SUBJECTS[i % 14], VERBS[i // 14 % 10], OBJECTS[i // 140 % 16], PLACES[i // 2240 % 10]
    return f"The {a} service {b} {c} {d}, ticket T-{i:06d}"


def synthetic_vectors(count: int, base: NDArray[np.float32], seed: int = 1) -> NDArray[np.float32]:
    """(count, dim) unit vectors that lie as embeddings do: mixtures of two real ones with a little noise."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, len(base), (2, count))
    share = rng.uniform(0.2, 0.8, (count, 1)).astype(np.float32)
    noise = rng.normal(0, 0.02, (count, base.shape[1])).astype(np.float32)
    vectors = share * base[first] + (1 - share) * base[second] + noise
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def base_vectors(texts: int = 400) -> tuple[NDArray[np.float32], str]:
    """Real embeddings of synthetic statements, and the model's id."""
    embedder = open_model("")
    vectors = embedder.embed_passages([sentence(i * 37) for i in range(texts)])
    model_id = embedder.model_id
    embedder.close()
    return vectors, model_id


def prepare_vectors(data_dir: Path, model_id: str, owners: dict[str, tuple[int, NDArray[np.float32]]]) -> None:
    """Puts vectors of `sentence(start + i)` into a new store, by user id: the server then finds them known."""
    engine = LmdbEngine.open(data_dir / STORE_DIR)
    for user, (start, vectors) in owners.items():
        namespace = Namespace("default", Scope.USER, user)
        for at in range(0, len(vectors), 2000):

            def put(txn: Any, at: int = at, start: int = start, vectors: Any = vectors, ns: Any = namespace) -> None:
                for i in range(at, min(at + 2000, len(vectors))):
                    txn.put_vector(ns, model_id, content_hash(sentence(start + i)), vectors[i])

            engine.write(put)
    engine.close()


@contextmanager
def server(data_dir: Path, *arguments: str) -> Iterator[tuple[rpc.MemoryServiceStub, ServerProcess, grpc.Channel]]:
    """A server process on a data directory, and a stub."""
    with ServerProcess(data_dir, *arguments) as process, grpc.insecure_channel(process.address, OPTIONS) as channel:
        yield rpc.MemoryServiceStub(channel), process, channel


def write_all(stub: rpc.MemoryServiceStub, user: str, start: int, count: int, batch: int = 1000) -> float:
    """Writes `sentence`s through the API; returns seconds. As events: they are stored as they come, without the check
    for duplicates and conflicts that statements go through (bench.policy measures that).
    """
    began = time.perf_counter()
    for at in range(start, start + count, batch):
        drafts = [spb.MemoryDraft(content=sentence(i), type=EVENT) for i in range(at, min(at + batch, start + count))]
        stub.BatchWrite(spb.BatchWriteRequest(owners=pb.Owners(user_id=user), memories=drafts))
    return time.perf_counter() - began


def ratio(a: float, b: float) -> float:
    """a / b to two digits."""
    return round(a / b, 2)
