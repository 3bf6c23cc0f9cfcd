"""Ingest, review and conflicts through the command line against a real server process."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsvc_client import MemoryClient

LIMIT_S = 120.0
COMMAND = [sys.executable, "-m", "memsvc"]
# Ctrl-C is heard also under a shell's background job, which ignores it. Not a preexec_fn: it forks a process that has
# gRPC's threads, whose fork handlers abort the child now and then.
HEARING = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
LASTING = {"role": "user", "content": "From now on always write the weekly report in English.", "id": "m1"}
NOISE = {"role": "user", "content": "ok, thanks!"}
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(address: str, user: str) -> dict[str, str]:
    return {**os.environ, "MEMSVC_SERVER": address, "MEMSVC_USER_ID": user, "COLUMNS": "200"}


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    def call(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments], capture_output=True, text=True, timeout=LIMIT_S, env=environment, **options
        )

    return call


def jsonl(*messages: Any) -> str:
    return "\n".join(m if isinstance(m, str) else json.dumps(m, ensure_ascii=False) for m in messages) + "\n"


# -- ingest ------------------------------------------------------------------------------------------------------


def test_ingest_keeps_what_lasts_and_reports_bad_lines(run, client, tmp_path):
    file = tmp_path / "chat.jsonl"
    file.write_text(jsonl(NOISE, '{"role": "user"', LASTING, {"role": "narrator", "content": "x"}))
    done = run("ingest", str(file), "--session-id", "s1", "--tool", "editor", "-o", "json")
    assert done.returncode == 1
    assert "line 2: not JSON" in done.stderr
    assert "line 4: " in done.stderr
    told = json.loads(done.stdout)
    assert [(v["line"], v["decision"]) for v in told["verdicts"]] == [(1, "dropped"), (3, "kept")]
    assert told["verdicts"][0]["stage"] == "rule"
    assert [one["line"] for one in told["bad_lines"]] == [2, 4]
    made = told["verdicts"][1]["memories"][0]
    assert made["result"]["outcome"] == "created"
    memory = client.get(made["result"]["memory_id"])
    assert (memory.content, memory.type, memory.scope) == (made["content"], made["type"], "user")
    assert memory.source == {"tool": "editor", "session_id": "s1", "message_id": "m1"}
    assert "English" in memory.content


def test_a_dry_run_stores_nothing_and_a_table_says_what_would_be(run, client):
    done = run("ingest", "-", "--dry-run", input=json.dumps([LASTING, NOISE]))
    assert done.returncode == 0, done.stderr
    assert "kept" in done.stdout
    assert "1 kept, 0 staged, 1 dropped" in done.stdout
    assert list(client.list(include_inactive=True)) == []


def test_a_secret_in_one_message_costs_only_that_message(run, client):
    secret = {"role": "user", "content": "Remember: my password is hunter2-Xk93pQ, always use it for staging."}
    done = run("ingest", "-", "-o", "json", input=jsonl(secret, LASTING))
    assert done.returncode == 0, done.stderr
    assert [v["decision"] for v in json.loads(done.stdout)["verdicts"]] == ["dropped", "kept"]
    assert "hunter2" not in done.stdout + done.stderr
    assert len(list(client.list())) == 1


def test_an_ingest_of_more_than_200_messages_joins_the_parts(run, client, tmp_path):
    file = tmp_path / "long.jsonl"
    file.write_text(jsonl(*[NOISE] * 200, LASTING))
    done = run("ingest", str(file), "-o", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["acknowledged_count"], told["verdicts"][200]["decision"]) == (201, "kept")
    assert len(list(client.list())) == 1


def test_an_ingest_through_the_client_is_stored_once_for_one_request_id(client):
    request_id = str(uuid.uuid4())
    one, two = (client.ingest([LASTING], session_id="s", request_id=request_id) for _ in range(2))
    assert one.to_dict() == two.to_dict()
    assert one.kept[0].memories[0].result.outcome == "created"
    assert [memory.seen_count for memory in client.list()] == [1]
    assert len(client.recall("which language for the weekly report?")) == 1


def test_ctrl_c_keeps_what_was_acknowledged_and_says_how_far_it_came(client, environment, tmp_path):
    file = tmp_path / "long.jsonl"
    texts = [f"From now on always name build number {i} after the river number {i * 7}." for i in range(20_000)]
    file.write_text(jsonl(*({"role": "user", "content": text} for text in texts)))
    process = subprocess.Popen(
        [sys.executable, "-c", HEARING, *COMMAND, "ingest", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    tick = threading.Event()
    while process.poll() is None and next(client.list(page_size=1), None) is None:
        tick.wait(0.05)
    process.send_signal(signal.SIGINT)
    told, problems = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, problems
    assert "of 20000 messages were judged and acknowledged" in problems
    assert "Traceback" not in problems
    assert "kept" in told


# -- outcomes and conflicts --------------------------------------------------------------------------------------


def test_remember_says_what_became_of_it(run):
    first = run("remember", "The report is exported as PDF", "--subject", "report.format")
    assert first.stdout.startswith("created mem_")
    memory_id = first.stdout.split()[1]
    again = run("remember", "The report is exported as PDF", "--subject", "report.format")
    assert again.stdout.splitlines()[0] == f"merged {memory_id}"
    assert "it was said before" in again.stdout


def contest(client: MemoryClient) -> tuple[str, str]:
    """(newer, older) of a contradiction that nothing decides."""
    older = client.write("The staging server listens on port 9077", subject="staging.port")
    newer = client.write("The staging server listens on port 9078", subject="staging.port")
    assert newer.outcome == "contested"
    assert newer.conflicting_ids == [older.memory_id]
    return newer.memory_id, older.memory_id


@pytest.mark.parametrize(
    ("resolution", "standing"),
    [("keep-newer", ["9078"]), ("keep-older", ["9077"]), ("keep-both", ["9078", "9077"])],
)
def test_conflicts_are_listed_and_resolved(run, client, resolution, standing):
    newer, older = contest(client)
    listed = json.loads(run("conflicts", "list", "-o", "json").stdout)
    assert [(c["memory_id"], [m["memory_id"] for m in c["older"]]) for c in listed] == [(newer, [older])]
    assert listed[0]["newer"]["status"] == "contested"
    assert listed[0]["summary"]
    table = run("conflicts", "list").stdout
    assert newer in table
    assert "9077" in table
    done = run("conflicts", "resolve", newer, resolution, "--reason", "asked", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["memory_id"] == newer
    assert [memory.content[-4:] for memory in client.list()] == standing
    assert {memory.status for memory in client.list()} == {"active"}
    assert json.loads(run("conflicts", "list", "-o", "json").stdout) == []
    assert next(client.history(newer)).reason == "asked"
    again = run("conflicts", "resolve", newer, resolution)
    assert again.returncode == 1
    assert "Traceback" not in again.stderr


# -- review ------------------------------------------------------------------------------------------------------


def fill(checklist: Path, answers: dict[str, dict[str, str]]) -> None:
    rows = list(csv.DictReader(io.StringIO(checklist.read_text("utf-8-sig"), newline="")))
    assert {row["memory_id"] for row in rows} == set(answers)
    with checklist.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, **answers[row["memory_id"]]} for row in rows)


def test_a_review_goes_out_and_comes_back(run, client, tmp_path):
    texts = ["报告用 PDF", "=SUM(A1) is the total", "The office closes at six", "Lunch is at noon", "Tea is served"]
    ids = [client.write(text, confidence=0.5).memory_id for text in texts]
    sure = client.write("The build runs on Mondays", confidence=0.95).memory_id
    file = tmp_path / "review.csv"
    done = run("review", "export", "--since", "1h", "--output", str(file))
    assert done.returncode == 0, done.stderr
    assert "'=SUM(A1)" in file.read_text("utf-8-sig")
    fill(
        file,
        {
            ids[0]: {"action": "confirm"},
            ids[1]: {"action": "correct", "new_content": "'=SUM(A2) is the total", "reason": "typo"},
            ids[2]: {"action": "forget"},
            ids[3]: {"action": "block"},
            ids[4]: {},
        },
    )
    assert run("review", "apply", str(file), "--dry-run").returncode == 0
    assert client.get(ids[2]).status == "active"
    done = run("review", "apply", str(file), "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "applied": True,
        "confirm": 1,
        "correct": 1,
        "forget": 1,
        "block": 1,
        "skipped": 1,
    }
    assert (client.get(ids[0]).confidence, client.get(ids[0]).status) == (1.0, "active")
    assert client.get(ids[1]).content == "=SUM(A2) is the total"
    assert next(client.history(ids[1])).reason == "typo"
    assert [(client.get(i).status, client.get(i).blocked) for i in ids[2:4]] == [
        ("forgotten", False),
        ("forgotten", True),
    ]
    assert client.get(ids[4]).version == 1
    assert client.get(sure).version == 1

    refused = client.write("Lunch is at noon")
    assert (refused.outcome, refused.memory_id) == ("rejected", ids[3])
    assert client.write("The office closes at six").outcome == "created"


def test_a_checklist_with_one_bad_line_changes_nothing(run, client, tmp_path):
    texts = ("the printer is on the third floor", "tea is served at noon")
    ids = [client.write(text, confidence=0.5).memory_id for text in texts]
    file = tmp_path / "review.jsonl"
    rows = [{"memory_id": ids[0], "action": "forget"}, {"memory_id": ids[1], "action": "approve"}]
    file.write_text(jsonl(*rows))
    done = run("review", "apply", str(file))
    assert done.returncode == 1
    assert "line 2: unknown action 'approve'" in done.stderr
    file.write_text(jsonl(rows[0], {"memory_id": f"mem_{uuid.UUID(int=7 << 76 | 2 << 62)}", "action": "forget"}))
    done = run("review", "apply", str(file))
    assert done.returncode == 1
    assert "not applied: from line 1 on (2 decisions)" in done.stderr
    assert {memory.memory_id for memory in client.list()} == set(ids)


def test_an_export_leaves_sure_and_old_memories_out(run, client):
    low = client.write("perhaps the printer is on the third floor", confidence=0.3).memory_id
    middle = client.write("the kitchen is on the second floor", confidence=0.7).memory_id
    client.write("the gym is on the first floor", confidence=0.9)

    def exported(*arguments: str) -> list[str]:
        done = run("review", "export", "--format", "jsonl", *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["memory_id"] for line in done.stdout.splitlines()]

    assert exported() == [middle, low]
    assert exported("--max-confidence", "0.5") == [low]
    assert exported("--since", "2100-01-01T00:00:00Z") == []
    bad = run("review", "export", "--since", "soon")
    assert bad.returncode == 2
    assert "7d" in bad.stderr
