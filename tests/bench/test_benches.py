"""Every bench runs small and gives sane figures (never their time)."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


def conversation(name: str, topics: tuple[str, ...]) -> dict[str, Any]:
    """A LoCoMo conversation of two sessions; one question, which the first turn answers."""
    turns = [{"speaker": "Ann", "dia_id": f"D1:{i}", "text": f"I went to the {t}."} for i, t in enumerate(topics, 1)]
    later = [{"speaker": "Bob", "dia_id": "D2:1", "text": "Haha, see you!"}]
    talk = {
        "session_1": turns,
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2": later,
        "session_2_date_time": "9:10 am on 2 June, 2023",
    }
    question = {"question": f"Who went to the {topics[0]}?", "answer": "Ann", "evidence": ["D1:1"], "category": 4}
    return {"sample_id": name, "conversation": talk, "qa": [question]}


def write_locomo(directory: Path) -> None:
    talks = [conversation("one", ("harbour", "bakery", "library")), conversation("two", ("museum", "lake", "station"))]
    (directory / "locomo.dev.json").write_text(json.dumps(talks), "utf-8")


def test_token_saving(tmp_path: Path) -> None:
    write_locomo(tmp_path)
    found = run("bench.token_saving", "--dataset", "locomo", "--data", str(tmp_path))["files"]["locomo.dev.json"]
    assert found["questions"] == 1
    for row in found["rows"]:
        assert row["block_tokens"] <= row["token_budget"]
        assert row["evidence_recall"] == row["whole"] == 1.0
        assert row["memories"] == 4
        assert row["saved"] == pytest.approx(1 - row["block_tokens"] / row["history_tokens"], abs=1e-3)


def test_token_saving_in_two_languages(tmp_path: Path) -> None:
    said = {
        "cn": ("我昨天去爬山了。", "听起来很好！" * 400, "昨天我去哪里了？"),
        "en": ("I climbed.", "Oh.", "Did I climb?"),
    }
    for name, (query, response, question) in said.items():
        turn = {"user": "u", "date": "2023-05-01", "turn": 0, "query": query, "response": response}
        asked = {"user": "u", "question": question, "evidence": [{"date": "2023-05-01", "turn": 0}]}
        data = {"turns": [turn], "questions": [asked]}
        (tmp_path / f"memorybank_{name}.dev.json").write_text(json.dumps(data), "utf-8")
    files = run("bench.token_saving", "--dataset", "memorybank", "--data", str(tmp_path))["files"]
    kept = {name: [r for r in one["rows"] if r["max_memories"] == 8][-1] for name, one in files.items()}
    assert all(row["evidence_recall"] == 1.0 for row in kept.values())
    assert kept["memorybank_cn.dev.json"]["whole"] == 0.0, "its line was cut"
    assert kept["memorybank_en.dev.json"]["whole"] == 1.0
    floor = files["memorybank_cn.dev.json"]["rows"][0]
    assert (floor["token_budget"], floor["max_memories"]) == (256, "newest turns")
    assert (floor["memories"], floor["evidence_recall"]) == (0, 0.0), "the turn has more tokens"


def test_forgetting(tmp_path: Path) -> None:
    write_locomo(tmp_path)
    result = run("bench.forgetting", "--data", str(tmp_path))
    assert (result["chosen_on"], result["held_out"]) == (["one"], ["two"])
    for mode in ("funnel's importance", "no importance"):
        rows = result[mode]["fading"]["held_out"] + result[mode]["archiving"] + result[mode]["defaults"]
        assert all(0 <= row["noise_archived"] <= row["noise_forgotten"] <= 1 for row in rows)
        assert all(row["noise_archived"] == row["evidence_archived"] == 0 for row in result[mode]["fading"]["held_out"])
    aged = {row["days"]: row for row in result["no importance"]["defaults"]}
    assert (aged[0]["noise_forgotten"], aged[365]["noise_forgotten"], aged[365]["points"]) == (0.0, 1.0, 0.0)
    harshest = result["no importance"]["archiving"][-1]
    assert (harshest["evidence_archived"], harshest["points"]) == (1.0, -100.0), "what is archived is not recalled"


@pytest.mark.parametrize("bench", [("token_saving", "--dataset", "locomo"), ("forgetting",)])
def test_missing_data_is_named(tmp_path: Path, bench: tuple[str, ...]) -> None:
    name, *arguments = bench
    command = [sys.executable, "-m", f"bench.{name}", *arguments, "--data", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "locomo.dev.json is missing" in done.stderr


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
