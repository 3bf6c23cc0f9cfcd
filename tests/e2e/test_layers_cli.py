"""Facts, events, skills, sessions, context, permanent store and lifecycle through the command line against a real
server process, in Chinese and English.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memsvc.cli import common, main

LIMIT_S = 120.0
NOWHERE = "127.0.0.1:1"
ZH_SKILL = """\ufeff# 部署
name: deploy-service
description: 发布服务到指定环境
trigger: 有人要求发布或部署服务 👨‍👩‍👧
version: 1.2.0
parameters: [{name: env, default: staging, required: true}]
memory_refs: [{parameter: env, subject: deploy.environment}]
steps: ["检查 {env} 是否健康", "发布到 {env}"]
""".replace("\n", "\r\n")
EN_SKILL = """name: write-report
description: Writes the weekly report.
trigger: When somebody asks for the weekly report
parameters:
  - name: format
memory_refs:
  - parameter: format
    subject: report.format
steps:
  - Export it as {format}."""


class Done(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, address: str, user: str) -> None:
    monkeypatch.setenv("MEMSVC_SERVER", address)
    monkeypatch.setenv("MEMSVC_USER_ID", user)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, environment: None) -> Run:
    """Runs a command in this process: starting a Python for each of two hundred would take most of the time."""

    def call(*arguments: str, columns: int = 200, input: str = "") -> Done:
        monkeypatch.setattr(sys, "argv", ["memsvc", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(input))
        for console in (common.out, common.err):
            monkeypatch.setattr(console, "_width", columns)
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            try:
                main()
            except SystemExit as stop:
                code = stop.code
        assert isinstance(code, int)
        return Done(code, stdout.getvalue(), stderr.getvalue())

    return call


@pytest.fixture
def ok(run: Run) -> Callable[..., str]:
    """Standard output of a command that must succeed."""

    def call(*arguments: str, **options: Any) -> str:
        done = run(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture
def told(ok: Callable[..., str]) -> Callable[..., Any]:
    """The JSON value of a command that must succeed."""
    return lambda *arguments, **options: json.loads(ok(*arguments, "-o", "json", **options))


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """Standard error of a command that must fail, with nothing printed."""

    def call(*arguments: str, code: int = 1) -> str:
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    return call


def skill_at(directory: Path, source: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "skill.yaml").write_bytes(source.encode())
    return directory


# -- facts -------------------------------------------------------------------------------------------------------


def test_facts_are_set_typed_read_and_kept(ok, told, client):
    assert ok("facts", "set", "默认货币", "人民币") == "set 默认货币 = 人民币 (text, version 1, user)\n"
    assert ok("facts", "set", "默认货币", "人民币").startswith("unchanged ")
    ok("facts", "set", "staging.port", "9077")
    ok("facts", "set", "api.version", "1.10")
    ok("facts", "set", "limits", "-", input='{"daily": [3, null, true]}\n')
    assert ok("facts", "get", "默认货币") == "人民币\n"
    assert ok("facts", "get", "staging.port", "api.version") == "staging.port = 9077\napi.version = 1.10\n"
    values = {fact["key"]: fact["value"] for fact in told("facts", "list")}
    assert values == {
        "默认货币": "人民币",
        "staging.port": 9077,
        "api.version": "1.10",
        "limits": {"daily": [3, None, True]},
    }
    assert [fact["key"] for fact in told("facts", "list", "--prefix", "sta")] == ["staging.port"]
    assert "number" in ok("facts", "list")
    ok("facts", "set", "staging.port", "9078", "--if-version", "1", "--reason", "moved")
    assert ok("facts", "delete", "staging.port") == "deleted staging.port\n"
    assert told("facts", "delete", "staging.port") == {"key": "staging.port", "deleted": False}
    versions = told("facts", "history", "staging.port")
    assert [(fact["version"], fact["deleted"]) for fact in versions] == [(3, True), (2, False), (1, False)]
    assert "removed" in ok("facts", "history", "staging.port")
    assert client.facts.get("staging.port") is None


def test_a_fact_that_changed_or_is_missing_is_refused_naming_what_to_do(run, ok, refused):
    ok("facts", "set", "port", "1", "--if-absent")
    assert "port has version 1 now; `memsvc facts history port`" in refused("facts", "set", "port", "2", "--if-absent")
    assert "port has version 1 now" in refused("facts", "set", "port", "2", "--if-version", "7")
    assert "port has version 1 now" in refused("facts", "delete", "port", "--if-version", "7")
    assert "none has no value" in refused("facts", "set", "none", "2", "--if-version", "7")
    done = run("facts", "get", "port", "没有")
    assert (done.returncode, done.stdout) == (1, "port = 1\n")
    assert "no fact 没有; `memsvc facts list`" in done.stderr
    assert "exclude each other" in refused("facts", "set", "k", "v", "--if-absent", "--if-version", "1", code=2)


# -- events ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "recovery", "question", "who"),
    [
        ("部署计费服务报错：连接超时", "改大连接池后恢复", "上次那个报错是怎么解决的", "张经理"),
        ("Deploy of billing failed: timeout", "Recovered by a larger pool", "how was the last error solved?", "Ann"),
    ],
)
def test_events_are_recorded_linked_and_found(ok, told, error, recovery, question, who):
    payload = json.dumps({"order": {"id": "ORD-2025-0110"}, "try": 2})
    result = told("events", "record", error, "-t", "error", "--payload", payload, "--participant", who)
    ok("events", "record", recovery, "-t", "recovery", "--caused-by", result["memory_id"])
    ok("events", "record", "ORD-2025-0110 shipped", "-t", "note", "--occur-time", "2025-01-10T09:00:00Z")

    def summaries(*arguments: str) -> list[str]:
        return [event["content"] for event in told("events", "list", *arguments)]

    assert summaries() == ["ORD-2025-0110 shipped", error, recovery]
    assert summaries("--newest-first", "-n", "1") == [recovery]
    assert summaries("--chain", "ORD-2025-0110") == ["ORD-2025-0110 shipped", error]
    assert summaries("--field", "order.id=ORD-2025-0110", "--field", "try=2") == [error]
    assert summaries("--field", "try=2.5") == []
    assert summaries("--involving", who) == [error]
    assert summaries("--type", "recovery", "--since", "1h") == [recovery]
    assert summaries("--until", "2025-01-11T00:00:00Z") == ["ORD-2025-0110 shipped"]
    found = told("events", "list", question, "--type", "error")
    assert [consequence["content"] for consequence in found[0]["consequences"]] == [recovery]
    table = ok("events", "list", columns=80)
    for part in (f"with {who}", "led to: ", "after: ", result["memory_id"]):
        assert part in table


# -- skills ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "source", "query", "subject", "value"),
    [
        ("deploy-service", ZH_SKILL, "请把计费服务发布到线上", "deploy.environment", "生产环境"),
        ("write-report", EN_SKILL, "write the weekly report for Ann", "report.format", "PDF"),
    ],
)
def test_a_skill_goes_out_comes_back_byte_for_byte_and_is_matched(
    ok, told, tmp_path, monkeypatch, name, source, query, subject, value
):
    monkeypatch.chdir(tmp_path)
    directory = skill_at(tmp_path / "mine", source)
    assert ok("skills", "push", str(directory), "--dry-run") == f"would push {name} version 1\n"
    assert told("skills", "list") == []
    assert ok("skills", "push", str(directory)) == f"pushed {name} version 1\n"
    assert ok("skills", "push", str(directory)) == f"unchanged {name} version 1\n"
    ok("skills", "pull", name)
    assert (tmp_path / name / "skill.yaml").read_bytes() == source.encode()
    ok("facts", "set", subject, value)
    (match,) = told("skills", "match", query)
    assert (match["name"], list(match["arguments"].values())) == (name, [value])
    assert f"= {value}" in ok("skills", "match", query)
    assert ok("skills", "run", name, "--outcome", "failure", "--note", "超时").startswith(f"recorded failure of {name}")
    assert told("skills", "show", name)["failure_count"] == 1
    assert "0 succeeded, 1 failed" in ok("skills", "show", name)


def test_versions_of_a_skill_are_compared_and_rolled_back(ok, told, refused, tmp_path):
    directory = skill_at(tmp_path / "s", EN_SKILL)
    ok("skills", "push", str(directory))
    assert "+name: write-report" in ok("skills", "diff", "write-report")
    skill_at(directory, EN_SKILL.replace("Export it", "检查之后导出"))
    ok("skills", "push", str(directory))
    lines = ok("skills", "diff", "write-report").splitlines()
    assert lines[0] == "--- write-report/skill.yaml (version 1)"
    assert lines[-4:] == [
        "-  - Export it as {format}.",
        "\\ No newline at end of file",
        "+  - 检查之后导出 as {format}.",
        "\\ No newline at end of file",
    ]
    assert told("skills", "diff", "write-report", "2", "1")["from_version"] == 2
    assert "say the same" in ok("skills", "diff", "write-report", "1", "1")
    assert "has no version 9" in refused("skills", "diff", "write-report", "9")
    assert "is now version 3" in ok("skills", "rollback", "write-report", "1", "--reason", "oops")
    assert [skill["version"] for skill in told("skills", "history", "write-report")] == [3, 2, 1]
    ok("skills", "pull", "write-report", str(tmp_path / "old"), "--version", "1")
    assert (tmp_path / "old" / "skill.yaml").read_text() == EN_SKILL
    assert "--force overwrites" in refused("skills", "pull", "write-report", str(directory))
    ok("skills", "pull", "write-report", str(directory), "--force")
    assert (directory / "skill.yaml").read_text() == EN_SKILL


def test_a_bad_skill_is_told_by_file_and_line_and_not_sent(told, refused, tmp_path):
    file = skill_at(tmp_path / "bad", "name: ok\ndescription: 说明\ntrigger: t\nsteps: ['use {env}']\n") / "skill.yaml"
    told_text = refused("skills", "push", str(file.parent), "--server", NOWHERE)
    assert f"{file}: line 4, column 9: " in told_text
    assert f"nothing was pushed; mend {file}" in told_text
    assert "has no skill.yaml" in refused("skills", "push", str(tmp_path))
    assert "no skill ../etc" in refused("skills", "pull", "../etc")
    assert told("skills", "list") == []


def work(ok: Callable[..., str], task: str, steps: list[str]) -> None:
    """One run of a task in a session of its own."""
    session = uuid.uuid4().hex
    lines = [("task_start", task, "{}"), *(("step", step, "{}") for step in steps)]
    for kind, summary, payload in [*lines, ("task_end", "done", '{"outcome": "success"}')]:
        ok("events", "record", summary, "-t", kind, "--payload", payload, "-s", session)


def test_drafts_are_proposed_approved_and_rejected(ok, told, refused, client):
    assert ok("skills", "drafts", "propose") == "nothing new to propose\n"
    for number in range(3):
        work(ok, f"Refund ORD-2025-000{number}", [f"check ORD-2025-000{number}", f"pay back ORD-2025-000{number}"])
    (draft,) = told("skills", "drafts", "propose")
    assert [one["name"] for one in told("skills", "drafts", "list")] == [draft["name"]]
    assert draft["name"] in ok("skills", "drafts", "list")
    assert told("skills", "list") == []
    assert ok("skills", "drafts", "approve", draft["name"]) == f"approved {draft['name']}\n"
    assert [skill["name"] for skill in told("skills", "list")] == [draft["name"]]
    assert "no draft that waits" in refused("skills", "drafts", "reject", draft["name"])


# -- sessions and context ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "goal", "kept"),
    [
        ("以后周报一律用英文写", "写周报", "英文"),
        ("From now on always write the weekly report in English.", "write the report", "English"),
    ],
)
def test_a_session_is_looked_into_corrected_and_ended(ok, told, refused, client, said, goal, kept):
    opened = client.session("s-1", goal=goal, tool="editor").start()
    opened.user(said)
    opened.agent("ok \x1b[31m")
    assert opened.flush()
    assert [session["session_id"] for session in told("session", "list")] == ["s-1"]
    shown = ok("session", "show", "s-1", columns=80)
    for part in (goal, kept, "editor", "\ufffd[31m"):
        assert part in shown
    changes = ("--add-constraint", "两页", "--add-pending", "collect", "--slot", "format=pdf", "--slot", "a=b=c")
    state = told("session", "state", "s-1", *changes)
    assert (state["constraints"][-1], state["slots"]["format"], state["slots"]["a"]) == ("两页", "pdf", "b=c")
    state = told("session", "state", "-s", "s-1", "--finish", "collect", "--slot", "format=", "--goal", "")
    assert ("collect" in state["finished"], "format" in state["slots"], state["goal"]) == (True, False, "")
    block = ok("context", goal, "-s", "s-1")
    assert "两页" in block
    ended = told("session", "end", "s-1", "--wait")
    assert (ended["state"], ended["done_turns"], bool(ended["episode_id"])) == ("done", 2, True)
    ids = [result["memory_id"] for result in ended["results"]]
    assert any(kept in client.get(memory_id).content for memory_id in ids)
    assert ids[0] in ok("session", "end", "s-1")
    assert ok("session", "list") == "no open sessions\n"
    told_text = refused("session", "show", "s-1")
    assert "`memsvc session end s-1` what became of an ended one" in told_text


def test_a_session_that_is_discarded_leaves_nothing(told, refused, client):
    opened = client.session("s-2").start()
    opened.user("From now on always write the weekly report in English.")
    assert opened.flush()
    assert told("session", "end", "s-2", "--discard")["state"] == "discarded"
    assert list(client.list()) == []
    assert "no open session s-3" in refused("session", "end", "s-3")
    assert "name a session" in refused("session", "state", code=2)


def test_a_context_is_a_block_on_standard_output_and_nothing_else(run, ok, told, client):
    client.permanent.put("绝不给客户发测试邮件", kind="safety", reason="事故")
    client.write("The weekly report goes out as PDF", type="preference", subject="report.format")
    client.write("The office closes at six in the evening")
    done = run("context", "write the weekly report")
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ('<memory source="memsvc">', "</memory>")
    assert "绝不给客户发测试邮件" in done.stdout
    assert "goes out as PDF" in done.stdout
    assert "tokens, " in done.stderr
    block = told("context", "write the weekly report", "--section", "preferences", "--order", "best-first")
    assert {line["section"] for line in block["lines"]} == {"preferences"}
    assert (
        f"{block['token_count']} tokens" in run("context", "write the weekly report", "--section", "preferences").stderr
    )
    assert told("context", "report", "--budget", "32")["token_count"] <= 32
    messages = json.loads(ok("context", "report", "--format", "messages"))
    assert messages[0]["role"] == "system"
    assert '"memory": [' in ok("context", "report", "--format", "json")
    nothing = run("context", "report", "-u", "somebody-else")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "no memory fits" in nothing.stderr


# -- permanent store and lifecycle -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "better"), [("用户对花生过敏", "用户对坚果过敏"), ("The user is a pilot", "The user was a pilot")]
)
def test_a_permanent_memory_is_proposed_decided_replaced_and_removed(ok, told, refused, content, better):
    proposed = told("permanent", "propose", content, "-k", "profile", "--reason", "said twice")
    memory_id = proposed["memory_id"]
    assert ok("permanent", "list") == "no permanent memories\n"
    assert f"{content} [pending: said twice]" in ok("permanent", "list", "--proposals")
    assert ok("permanent", "decide", memory_id, "accept", "--reason", "asked") == f"accepted {memory_id}: {content}\n"
    assert "active already" in ok("permanent", "propose", content, "-k", "profile", "--reason", "again")
    ok("permanent", "put", better, "-k", "profile", "--reason", "wrong", "--replaces", memory_id)
    assert [memory["content"] for memory in told("permanent", "list")] == [better]
    assert [one["content"] for one in told("permanent", "history", memory_id)] == [better, content, content]
    assert "local: wrong" in ok("permanent", "history", memory_id, columns=80)
    assert ok("permanent", "remove", memory_id, "--reason", "gone").startswith(f"removed {memory_id}")
    assert "FORGOTTEN" in refused("permanent", "remove", memory_id, "--reason", "gone")
    assert "either the statement or --memory" in refused(
        "permanent", "propose", "-k", "profile", "--reason", "x", code=2
    )
    rejected = told("permanent", "propose", better, "-k", "safety", "--reason", "x")["memory_id"]
    assert told("permanent", "decide", rejected, "reject", "--reason", "no")["status"] == "forgotten"


def test_the_lifecycle_is_planned_with_content_and_reason_and_then_run(ok, told, client):
    due = told("remember", "临时口令区在三楼", "--expire-time", "2100-01-01T00:00:00Z")["memory_id"]
    assert "nothing would change" in ok("lifecycle", "plan")
    table = ok("lifecycle", "plan", "--at", "2100-01-02T00:00:00Z", columns=80)
    for part in ("expire", "临时口令区在三楼", "expire_time has passed", due, "1 expired"):
        assert part in table
    plan = told("lifecycle", "plan", "--at", "2100-01-02T00:00:00Z", "--all", "-n", "1")
    assert plan["counts"]["expired_count"] >= 1
    assert len(plan["steps"]) == 1
    assert told("lifecycle", "run")["seen_count"] == 1
    assert ok("lifecycle", "run").startswith("changed: 0 rank lower")
    assert client.get(due).status == "active"


# -- all of them -------------------------------------------------------------------------------------------------

LISTS = {
    ("facts", "list"): "no facts",
    ("events", "list"): "no events",
    ("skills", "list"): "no skills; `memsvc skills push DIR` stores one",
    ("skills", "match", "anything"): "no skill fits",
    ("skills", "drafts", "list"): "no drafts wait; `memsvc skills drafts propose` looks for some",
    ("session", "list"): "no open sessions",
    ("permanent", "list"): "no permanent memories",
}


@pytest.mark.parametrize("command", list(LISTS), ids=" ".join)
def test_an_empty_result_says_so_and_is_an_empty_list_in_json(ok, told, command):
    assert ok(*command) == f"{LISTS[command]}\n"
    assert told(*command) == []


@pytest.mark.parametrize("command", [*LISTS, ("context", "x"), ("lifecycle", "plan")], ids=" ".join)
def test_without_a_server_the_error_says_what_to_start(refused, command):
    assert "is `memsvc serve` running" in refused(*command, "--server", NOWHERE)


def test_control_characters_never_reach_the_terminal_and_json_keeps_them(ok, told, client):
    nasty = "a\x1b[31mb\x9b31mc\u202ed 👨‍👩‍👧 [bold]e[/bold]"
    client.facts.put("nasty", nasty)
    client.events.record(nasty, event_type="note", payload={"field": nasty}, participants=[nasty])
    for command in (("facts", "list"), ("facts", "get", "nasty"), ("events", "list"), ("context", "nasty")):
        for columns in (80, 200):
            text = ok(*command, columns=columns)
            assert not set(text) & set("\x1b\x9b\u202e"), command
            assert "[bold]e[/bold]" in text, command
        assert not set(ok(*command, "-o", "json")) & set("\x1b\x9b\u202e"), command
    assert told("facts", "get", "nasty")[0]["value"] == nasty
    assert told("events", "list")[0]["payload"] == {"field": nasty}
    assert "👨‍👩‍👧" in ok("facts", "get", "nasty")


def test_an_explained_recall_of_a_real_process_is_readable_in_80_columns(environment, client):
    content = "The staging server listens on port 9077 and restarts every Sunday"
    memory_id = client.write(content).memory_id
    command = [sys.executable, "-m", "memsvc", "recall", "which port does staging use?", "--explain"]
    settings = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=settings, check=True)
    assert memory_id in done.stdout
    assert done.stdout.count("The staging server listens on") == 2
    assert "bm25 " in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
