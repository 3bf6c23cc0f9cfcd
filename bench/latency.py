"""Latency of recall and write against floors measured in the same run: echo, embedding, hnswlib, LMDB commit."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import hnswlib
import lmdb
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from bench import common
from bench.echo import EchoProcess
from memsvc.app import open_model, resident_size_bytes
from memsvc.model import NEVER_US, Status
from memsvc.retrieval import kernels
from memsvc.retrieval.vector import EF_CONSTRUCTION, EF_SEARCH, GRAPH_FROM_ROWS, GRAPH_M, VectorIndex
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as arpc
from memsvc.v1 import context_service_pb2 as csb
from memsvc.v1 import context_service_pb2_grpc as crpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb

QUERY = "which database does the billing service use in Berlin?"


def floor_embed(count: int) -> dict[str, float]:
    embedder = open_model("")
    figures = common.timed(lambda i: embedder.embed_query(f"{QUERY} {time.perf_counter_ns()}"), count, 10)
    embedder.close()
    return figures


def floor_lmdb(directory: Path, count: int) -> dict[str, float]:
    environment = lmdb.open(str(directory / "floor"), map_size=2**30)

    def put(i: int) -> None:
        with environment.begin(write=True) as txn:
            txn.put(b"%020d" % time.perf_counter_ns(), b"v" * 1500)

    figures = common.timed(put, count, 10)
    environment.close()
    return figures


def floor_hnsw(vectors: NDArray[np.float32], count: int) -> dict[str, float]:
    index = built_graph(vectors)
    return common.timed(lambda i: index.knn_query(vectors[i % 100], k=64, num_threads=1), count)


def built_graph(vectors: NDArray[np.float32]) -> hnswlib.Index:
    """A plain hnswlib graph with the settings of ours."""
    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(len(vectors), M=GRAPH_M, ef_construction=EF_CONSTRUCTION)
    index.add_items(vectors, num_threads=1)
    index.set_ef(EF_SEARCH)
    return index


def recall_quality(vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> dict[str, float]:
    """Recall@10 of the graph against an exact scan, before and after half of the rows are deleted."""
    index = VectorIndex(vectors.shape[1], len(vectors))
    index.put(0, vectors)
    while index.index_more(len(vectors), lambda rows: np.ones(len(rows), np.bool_)):
        pass
    full = _recall_at_10(index, vectors, queries, np.arange(len(vectors)))
    dead = np.random.default_rng(5).permutation(len(vectors))[: len(vectors) // 2]
    for row in dead.tolist():
        index.close(row)
    left = np.setdiff1d(np.arange(len(vectors)), dead)
    return {"recall_at_10": full, "recall_at_10_half_deleted": _recall_at_10(index, vectors, queries, left)}


def _recall_at_10(index: VectorIndex, vectors: Any, queries: Any, alive: Any) -> float:
    found = 0
    for query in queries:
        exact = alive[np.argsort(-(vectors[alive] @ query))[:10]]
        rows, _ = index.nearest(query, 64)
        best = rows[np.argsort(-(vectors[rows] @ query))[:10]]
        found += len(set(exact.tolist()) & set(best.tolist()))
    return round(found / (10 * len(queries)), 4)


def wait_for_graph(channel: grpc.Channel, stub: Any, user: str) -> None:
    """Loads the namespace and waits until no row waits for its place in the graph."""
    stub.Recall(spb.RecallRequest(owners=pb.Owners(user_id=user), query=QUERY, latency_budget={"seconds": 60}))
    admin = arpc.AdminServiceStub(channel)
    deadline = time.monotonic() + 600
    while admin.GetStats(apb.GetStatsRequest()).unindexed_row_count:
        if time.monotonic() > deadline:
            raise TimeoutError("the graph is not complete after 600 s")
        time.sleep(0.2)


def at_size(rows: int, base: NDArray[np.float32], model_id: str, echo: Any, count: int) -> dict[str, Any]:
    """Recall and write in one namespace of `rows` memories."""
    vectors = common.synthetic_vectors(rows + count + 200, base)
    with tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory:
        data = Path(directory)
        common.prepare_vectors(data, model_id, {"u": (0, vectors)})
        with common.server(data) as (stub, _, channel):
            seconds = common.write_all(stub, "u", 0, rows)
            if rows >= GRAPH_FROM_ROWS:
                wait_for_graph(channel, stub, "u")
            owners = pb.Owners(user_id="u")
            request = spb.RecallRequest(owners=owners, query=QUERY)
            cold = iter(range(10**9))
            figures: dict[str, Any] = {"rows": rows, "batch_write_per_s": round(rows / seconds)}
            figures["echo"] = common.timed(echo, count)
            figures["recall_cached"] = common.timed(lambda _: stub.Recall(request), count)
            builder = crpc.ContextServiceStub(channel)
            asked = csb.AssembleContextRequest(owners=owners, query=QUERY)
            figures["assemble"] = common.timed(lambda _: builder.AssembleContext(asked), count)
            token = arpc.AdminServiceStub(channel).CreateToken(apb.CreateTokenRequest(user_ids=["u"])).secret
            metadata = (("authorization", f"Bearer {token}"),)
            figures["recall_token"], figures["recall_local"] = in_turns(
                (lambda: stub.Recall(request, metadata=metadata), lambda: stub.Recall(request)), count
            )
            figures["recall_again"] = common.timed(lambda _: stub.Recall(request), count)
            figures["echo_after"] = common.timed(echo, count)
            figures["recall_uncached"] = common.timed(
                lambda _: stub.Recall(spb.RecallRequest(owners=owners, query=f"{QUERY} {next(cold)}")), count // 4, 10
            )
            fresh = iter(range(rows, rows + count + 200))
            figures["write"] = common.timed(
                lambda _: stub.Write(
                    spb.WriteRequest(
                        owners=owners, memory=spb.MemoryDraft(content=common.sentence(next(fresh)), type=common.EVENT)
                    )
                ),
                count // 2,
                20,
            )
            stats = arpc.AdminServiceStub(channel).GetStats(apb.GetStatsRequest())
            figures["resident_mb"] = round(stats.resident_size_bytes / 2**20)
    return figures


def in_turns(calls: tuple[Callable[[], Any], ...], count: int) -> list[dict[str, float]]:
    """Percentiles of calls that take turns: what the machine does meanwhile meets all of them alike."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(count):
        for call, taken in zip(calls, samples, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [common.percentiles(taken) for taken in samples]


def many_namespaces(base: NDArray[np.float32], model_id: str, namespaces: int, rows: int, count: int) -> dict[str, Any]:
    vectors = common.synthetic_vectors(rows, base)
    with tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory:
        data = Path(directory)
        common.prepare_vectors(data, model_id, {f"u{n}": (0, vectors) for n in range(namespaces)})
        with common.server(data) as (stub, _, _):
            for n in range(namespaces):
                common.write_all(stub, f"u{n}", 0, rows)
            requests = [spb.RecallRequest(owners=pb.Owners(user_id=f"u{n}"), query=QUERY) for n in range(namespaces)]
            return common.timed(lambda i: stub.Recall(requests[i % namespaces]), count, namespaces)


def crossover(base: NDArray[np.float32]) -> list[tuple[int, float, float, float]]:
    """Exact scan, scan of codes and graph by number of rows, in microseconds: where SCAN_CODES_FROM_ROWS and
    GRAPH_FROM_ROWS come from. Caches are cold in a server: in front of each call as many other bytes are read.
    """
    found = []
    everything, other = np.empty(0, np.uint8), np.zeros(2**22, np.int64)
    for rows in (2000, 4000, 8000, 16000, 32000):
        vectors = common.synthetic_vectors(rows, base)
        index = VectorIndex(vectors.shape[1], rows)
        index.put(0, vectors)
        long, byte = np.full(rows, NEVER_US), np.ones(rows, np.uint8)
        sessions = np.full(rows, -1, np.int32)
        while index.index_more(rows, lambda rows: np.ones(len(rows), np.bool_), from_rows=0):
            pass

        def codes(
            i: int,
            index: VectorIndex = index,
            long: Any = long,
            byte: Any = byte,
            sessions: Any = sessions,
            v: Any = vectors,
        ) -> None:
            kernels.scan_codes(
                *(len(v), 0, 1 << Status.ACTIVE, -1, everything, long, byte, long, sessions, byte),
                *(index.codes, index.code_scales, v[i % 100], 96),
            )

        kinds = (
            lambda i, v=vectors: np.argpartition(-(v @ v[i % 100]), 64),
            codes,
            lambda i, g=index, v=vectors: g.nearest(v[i % 100], 64),
        )
        times = []
        for kind in kinds:
            samples = []
            for i in range(60):
                other.sum()
                start = time.perf_counter()
                kind(i)
                samples.append(time.perf_counter() - start)
            times.append(common.percentiles(samples)["p50_ms"] * 1000)
        found.append((rows, *times))
    return found


def measure(sizes: list[int], count: int, small: bool) -> dict[str, Any]:
    base, model_id = common.base_vectors(100 if small else 400)
    result: dict[str, Any] = {"floors": {"embed": floor_embed(count // 4)}, "sizes": []}
    with tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory:
        result["floors"]["lmdb_commit"] = floor_lmdb(Path(directory), count)
    hnsw_rows = 1000 if small else 10_000
    result["floors"]["hnsw_10k"] = floor_hnsw(common.synthetic_vectors(hnsw_rows, base), count)
    with EchoProcess() as process, grpc.insecure_channel(process.address) as channel:
        echo = process.call(channel)
        for rows in sizes:
            result["sizes"].append(at_size(rows, base, model_id, echo, count))
    result["many"] = many_namespaces(base, model_id, *((5, 50, 50) if small else (200, 500, count)))
    vectors = common.synthetic_vectors(max(*sizes, GRAPH_FROM_ROWS), base)
    result["graph"] = recall_quality(vectors, common.synthetic_vectors(50, base, seed=9))
    result["bench_resident_mb"] = round(resident_size_bytes() / 2**20)
    return result


def tables(result: dict[str, Any]) -> list[Table]:
    floors = Table("floor", "p50 ms", "p95 ms", "p99 ms", title="Floors")
    for name, figures in result["floors"].items():
        floors.add_row(name, *(f"{figures[p]:.3f}" for p in ("p50_ms", "p95_ms", "p99_ms")))
    table = Table(
        "memories", "what", "p50 ms", "p95 ms", "p99 ms", "ratio p50", "ratio p99", "against", title="Service"
    )
    embed, commit = result["floors"]["embed"]["p50_ms"], result["floors"]["lmdb_commit"]["p50_ms"]
    for size in result["sizes"]:
        echo50 = (size["echo"]["p50_ms"] + size["echo_after"]["p50_ms"]) / 2
        echo99 = (size["echo"]["p99_ms"] + size["echo_after"]["p99_ms"]) / 2
        recall50 = (size["recall_cached"]["p50_ms"] + size["recall_again"]["p50_ms"]) / 2
        for name, floor, against in (
            ("echo", echo50, "echo"),
            ("recall_cached", echo50, "echo"),
            ("recall_uncached", embed + echo50, "embed + echo"),
            ("assemble", recall50, "recall_cached"),
            ("recall_token", size["recall_local"]["p50_ms"], "no token"),
            ("write", echo50 + commit, "echo + commit"),
        ):
            figures = size[name]
            p99 = common.ratio(figures["p99_ms"], echo99) if against == "echo" else ""
            cells = (f"{figures[p]:.3f}" for p in ("p50_ms", "p95_ms", "p99_ms"))
            table.add_row(
                str(size["rows"]), name, *cells, str(common.ratio(figures["p50_ms"], floor)), str(p99), against
            )
        table.add_row(
            str(size["rows"]), f"batch write {size['batch_write_per_s']}/s, resident {size['resident_mb']} MB"
        )
    many = result["many"]
    table.add_row("many namespaces", "recall_cached", *(f"{many[p]:.3f}" for p in ("p50_ms", "p95_ms", "p99_ms")))
    table.add_row("graph", str(result["graph"]))
    return [floors, table]


def main() -> None:
    arguments = common.parser(__doc__ or "")
    arguments.add_argument("--sizes", default="1000,10000,100000", help="memories in one namespace")
    arguments.add_argument("--crossover", action="store_true", help="only exact scan against graph, by rows")
    given = arguments.parse_args()
    if given.crossover:
        rows = crossover(common.base_vectors()[0])
        table = Table("rows", "exact scan us", "scan of codes us", "graph us")
        for row in rows:
            table.add_row(*(f"{x:.0f}" for x in row))
        common.emit({"crossover": rows}, [table], given.json)
        return
    sizes = [200] if given.small else [int(size) for size in given.sizes.split(",")]
    result = measure(sizes, 40 if given.small else 2000, given.small)
    common.emit(result, tables(result), given.json)


if __name__ == "__main__":
    main()
