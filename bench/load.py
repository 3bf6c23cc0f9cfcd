"""Throughput: concurrent clients' recalls against echoes on the same cores, and a mix of reads and writes."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import grpc
from rich.table import Table

from bench import common
from bench.echo import EchoProcess
from bench.latency import QUERY, wait_for_graph
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc


def client(kind: str, address: str, threads: int, seconds: float, results: Any, start: int) -> None:
    """One client process: `threads` threads call as fast as they can."""
    from concurrent.futures import ThreadPoolExecutor

    def run(thread: int) -> int:
        with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            stub, echo = rpc.MemoryServiceStub(channel), EchoProcess.call(channel)
            owners = pb.Owners(user_id="u")
            recall = spb.RecallRequest(owners=owners, query=QUERY)
            count = 0
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                if kind == "echo":
                    echo(0)
                elif kind == "mixed" and count % 10 == 9:
                    text = common.sentence(start + thread * 100_000 + count)
                    stub.Write(spb.WriteRequest(owners=owners, memory=spb.MemoryDraft(content=text, type=common.EVENT)))
                else:
                    stub.Recall(recall)
                count += 1
            return count

    with ThreadPoolExecutor(threads) as pool:
        results.put(sum(pool.map(run, range(threads))))


def throughput(kind: str, address: str, clients: int, seconds: float) -> float:
    """Calls per second of `clients` clients in two processes."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=client, args=(kind, address, clients // 2, seconds, results, 10**6 * (1 + n)))
        for n in range(2)
    ]
    for process in processes:
        process.start()
    total = sum(results.get() for _ in processes)
    for process in processes:
        process.join()
    return round(total / seconds)


def measure(rows: int, clients: int, seconds: float, small: bool) -> dict[str, Any]:
    base, model_id = common.base_vectors(100 if small else 400)
    vectors = common.synthetic_vectors(rows, base)
    with tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory:
        data = Path(directory)
        common.prepare_vectors(data, model_id, {"u": (0, vectors)})
        with common.server(data) as (stub, process, channel), EchoProcess() as echo:
            common.write_all(stub, "u", 0, rows)
            if not small:
                wait_for_graph(channel, stub, "u")
            stub.Recall(spb.RecallRequest(owners=pb.Owners(user_id="u"), query=QUERY, latency_budget={"seconds": 5}))
            figures = [
                (
                    throughput("echo", echo.address, clients, seconds),
                    throughput("recall", process.address, clients, seconds),
                )
                for _ in range(1 if small else 3)
            ]
            mixed = throughput("mixed", process.address, clients, seconds)
    echo_per_s = sorted(f[0] for f in figures)[len(figures) // 2]
    recall_per_s = sorted(f[1] for f in figures)[len(figures) // 2]
    return {
        "rows": rows,
        "clients": clients,
        "echo_per_s": echo_per_s,
        "recall_per_s": recall_per_s,
        "ratio": common.ratio(recall_per_s, echo_per_s),
        "mixed_per_s": mixed,
    }


def main() -> None:
    arguments = common.parser(__doc__ or "")
    arguments.add_argument("--clients", type=int, default=8)
    arguments.add_argument("--rows", type=int, default=10_000)
    given = arguments.parse_args()
    small = given.small
    result = measure(200 if small else given.rows, 2 if small else given.clients, 0.3 if small else 4.0, small)
    table = Table(*result)
    table.add_row(*(str(value) for value in result.values()))
    common.emit(result, [table], given.json)


if __name__ == "__main__":
    main()
