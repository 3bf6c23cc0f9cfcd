"""Every bench runs small and gives sane figures (never their time)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", *arguments, "--small", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_latency() -> None:
    result = run("bench.latency")
    size = result["sizes"][0]
    assert size["rows"] == 200
    assert all(size[name]["p50_ms"] > 0 for name in ("echo", "recall_cached", "recall_uncached", "write"))
    assert result["graph"]["recall_at_10"] > 0.9


def test_load() -> None:
    result = run("bench.load")
    assert result["recall_per_s"] > 0
    assert result["mixed_per_s"] > 0


def test_restart() -> None:
    size = run("bench.restart")["sizes"][0]
    assert size["memories"] == size["rows"]
    assert size["lost"] == 0


def test_quality(tmp_path: Path) -> None:
    docs = [{"id": f"d{i}", "text": f"文档{i}讲的是{topic}"} for i, topic in enumerate(("下雨", "数据库", "绘画"))]
    questions = [{"question": "哪个文档讲数据库？", "evidence": ["d1"]}]
    (tmp_path / "cmrc.dev.json").write_text(json.dumps({"docs": docs, "questions": questions}), "utf-8")
    result = run("bench.quality", "--dataset", "cmrc", "--data", str(tmp_path))
    assert result["modes"]["hybrid"]["recall@1"] == 1.0


def test_quality_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.quality", "--dataset", "locomo", "--data", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is missing" in done.stderr
