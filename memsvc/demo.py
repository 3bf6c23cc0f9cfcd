"""The demo: one tool teaches a fresh server, a second tool with nothing in common but the address recalls.

Purpose: `make demo` and `memsvc demo`: the main job in a minute, with a real server process on a free port and a
temporary data directory.

Threading: one thread and the server's process.

Rejected: running the server in this process (the demo should show what a user runs).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memsvc.errors import Unavailable
from memsvc_client import MemoryClient

# What the first tool learns: content, type, subject.
LESSONS = (
    ("用户偏好使用 Go 实现性能敏感的模块", "preference", "language.hot_path"),
    ("The report is exported as PDF, never as Word", "preference", "report.format"),
    ("决定：支付服务改用 PostgreSQL，因为需要行级锁", "decision", "service/payment/database"),
    ("We decided to keep the mobile app on React Native because the team knows it", "decision", "app/mobile/framework"),
    ("订单 ORD-2025-0110 因为地址错误被退回，已改寄上海", "event", ""),
    ("The staging server listens on port 9077 and restarts every Sunday at 03:00 UTC", "fact", "staging.port"),
    ("代码提交前必须运行 make test，失败不允许合并", "rule", "commit.rule"),
    ("Never send e-mail to customers from the test environment", "rule", "mail.rule"),
    ("用户的女儿叫小雨，今年上小学一年级", "fact", "family.daughter"),
    ("The user is allergic to peanuts and vegetarian on weekdays", "fact", "diet"),
    ("周报每周五下午四点发送给张经理", "fact", "weekly_report.time"),
    ("Docs are written in English, comments in code too", "preference", "docs.language"),
)

QUESTIONS = (
    "which language should I use for the hot path?",
    "报告要用什么格式？",
    "what happened to ORD-2025-0110?",
    "支付服务用的是哪个数据库，为什么？",
    "which port does staging use?",
    "what can the user not eat?",
    "我女儿叫什么名字？",
    "may I merge when the tests are red?",
)


class ServerProcess:
    """A `memsvc serve` child on a free port with a data directory of its own; a context manager."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "memsvc", "serve", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)  # noqa: S603
        self.address = ""
        self.pid = self._process.pid

    def __enter__(self) -> ServerProcess:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("ready grpc="):
            self._process.wait()
            raise Unavailable("the server did not start; its messages are above")
        self.address = line.split()[1].removeprefix("grpc=")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def run_demo(console: Console) -> None:
    """Teaches and recalls; prints questions, hits, components and timings. Raises Unavailable if no server starts."""
    with tempfile.TemporaryDirectory(prefix="memsvc-demo-") as directory:
        console.print("Starting a server (the first start builds the embedding model and compiles the kernels) ...")
        with ServerProcess(Path(directory)) as server:
            console.print(f"Server on {server.address}\n", highlight=False)
            _teach(console, server.address)
            _ask(console, server.address)


def _teach(console: Console, address: str) -> None:
    console.rule("tool A teaches")
    with MemoryClient(address, user_id="demo", tool="tool-a") as client:
        client.batch_write([{"content": c, "type": t, "subject": s} for c, t, s in LESSONS])
    for content, kind, _ in LESSONS:
        console.print(f"  {kind:<10} {escape(content)}", highlight=False)


def _ask(console: Console, address: str) -> None:
    console.rule("tool B recalls")
    with MemoryClient(address, user_id="demo", tool="tool-b", timeout_s=2.0) as client:
        for question in QUESTIONS:
            hits = client.recall(question, top_k=2)
            table = Table(title=escape(question), title_justify="left", title_style="bold", expand=False)
            for name in ("score", "content", "vector", "lexical", "exact", "time", "found by"):
                table.add_column(name)
            for hit in hits:
                parts = hit.components
                numbers = [f"{parts[name]:.3f}" for name in ("vector", "lexical", "exact", "time")]
                table.add_row(f"{hit.score:.3f}", escape(hit.content), *numbers, ", ".join(hit.paths))
            console.print(table)
            timings = hits.timings
            console.print(
                f"  {hits.latency_ms:.1f} ms, of it in the server {timings['total_us'] / 1000:.1f} ms "
                f"(embedding {timings['embed_us'] / 1000:.1f}, search {timings['search_us'] / 1000:.2f})\n",
                highlight=False,
            )
