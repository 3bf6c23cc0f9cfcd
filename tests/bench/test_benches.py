"""Every bench runs small and gives sane figures (never their time)."""

from __future__ import annotations

import base64
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


def test_sessions() -> None:
    result = run("bench.sessions")
    assert all(result[name]["p50_ms"] > 0 for name in ("echo", "append", "state_read", "append_then_read"))
    assert result["memory"]["resident_mb"] < 150
    assert result["restored"] == result["memory"]["sessions"] + 1


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


def test_policy(tmp_path: Path) -> None:
    said = {"type": "fact", "content": "The production database is MySQL", "age_days": 30}
    now = {"type": "fact", "content": "The production database is PostgreSQL now"}
    rows: dict[str, list[dict[str, Any]]] = {
        "funnel": [
            {"speaker": "user", "text": "thanks!", "keep": False, "memories": []},
            {
                "speaker": "user",
                "text": "From now on keep your answers under five lines.",
                "keep": True,
                "memories": [{"type": "preference", "layer": "semantic", "content_must_contain": ["five lines"]}],
            },
        ],
        "conflicts": [{"old": said, "new": now, "same_scope": True, "expect": "supersede"}],
        "sensitive": [
            {"text_b64": base64.b64encode(b"password: hunter2Kq9!").decode(), "sensitive": True, "kinds": ["password"]},
            {"text_b64": base64.b64encode(b"reset your password").decode(), "sensitive": False, "kinds": []},
        ],
    }
    for name, lines in rows.items():
        (tmp_path / f"{name}.dev.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    result = run("bench.policy", "--data", str(tmp_path))
    assert result["funnel"]["f1"] == 1.0
    assert result["conflicts"]["accuracy"] == 1.0
    assert (result["sensitive"]["recall"], result["sensitive"]["precision"]) == (1.0, 1.0)
    assert result["write"]["with_check"]["p50_ms"] > 0


def test_policy_says_what_is_missing() -> None:
    command = [sys.executable, "-m", "bench.policy", "--small", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "funnel.dev.jsonl" in done.stderr
