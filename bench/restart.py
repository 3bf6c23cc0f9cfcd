"""Time from start to ready: with saved segments, after deleting them, after kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from bench import common
from bench.latency import wait_for_graph
from memsvc.app import SEGMENTS_DIR, open_model
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as arpc


def start(data: Path, kill: bool = False) -> tuple[float, int]:
    """Seconds to ready, and how many memories it says it has; then stops it, by SIGKILL if asked."""
    began = time.perf_counter()
    with common.server(data) as (_, process, channel):
        seconds = time.perf_counter() - began
        count = arpc.AdminServiceStub(channel).GetStats(apb.GetStatsRequest()).memory_count
        if kill:
            os.kill(process.pid, signal.SIGKILL)
    return round(seconds, 2), count


def model_load_s() -> float:
    """Seconds to import and load the model in this process: part of every start."""
    began = time.perf_counter()
    open_model("").close()
    return round(time.perf_counter() - began, 2)


def measure(rows: int, small: bool) -> dict[str, Any]:
    base, model_id = common.base_vectors(100 if small else 400)
    with tempfile.TemporaryDirectory(prefix="memsvc-bench-") as directory:
        empty = Path(directory) / "empty"
        data = Path(directory) / "data"
        start(empty)
        result: dict[str, Any] = {"rows": rows, "model_load_s": model_load_s(), "empty_store_s": start(empty)[0]}
        common.prepare_vectors(data, model_id, {"u": (0, common.synthetic_vectors(rows, base))})
        with common.server(data) as (stub, _, channel):
            common.write_all(stub, "u", 0, rows)
            if not small:
                wait_for_graph(channel, stub, "u")
        result["saved_s"], result["memories"] = start(data, kill=True)
        result["after_kill_s"], after_kill = start(data)
        result["lost"] = rows - after_kill
        shutil.rmtree(data / SEGMENTS_DIR, ignore_errors=True)
        result["rebuilt_s"], _ = start(data)
    return result


def main() -> None:
    arguments = common.parser(__doc__ or "")
    arguments.add_argument("--rows", default="10000,100000")
    given = arguments.parse_args()
    sizes = [300] if given.small else [int(rows) for rows in given.rows.split(",")]
    results = [measure(rows, given.small) for rows in sizes]
    table = Table(*results[0])
    for result in results:
        table.add_row(*(str(value) for value in result.values()))
    common.emit({"sizes": results}, [table], given.json)


if __name__ == "__main__":
    main()
