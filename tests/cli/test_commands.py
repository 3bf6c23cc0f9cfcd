"""The commands in this process: help, options, times; ingest and review through a stub of the client."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from memsvc.cli import app, learning, reviewing
from memsvc.cli.checklist import Decision
from memsvc.cli.common import Call, duration, moment
from memsvc.cli.learning import Progressed, send
from memsvc.cli.memories import told
from memsvc.cli.message_files import Record
from memsvc.cli.reviewing import apply_all, learnt
from memsvc_client import IngestResult, InvalidArgument, Memory, NotFound, Unavailable, WriteResult
from memsvc_client._proto import memory_pb2 as pb
from memsvc_client._proto import memory_service_pb2 as spb

NOW = dt.datetime(2025, 1, 10, 9, tzinfo=dt.UTC)
RUNNER = CliRunner()


def commands() -> Iterator[tuple[str, ...]]:
    def walk(group: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from walk(command, (*path, name))
            else:
                yield (*path, name)

    return walk(typer.main.get_command(app), ())


def test_all_commands_are_there():
    assert {" ".join(path) for path in commands()} >= {
        *"remember recall get list update forget history stats verify backup reindex serve demo version ingest".split(),
        *("token create", "token list", "token show", "token revoke", "token rotate-keys"),
        *(
            "model build",
            "model pull",
            "review export",
            "review apply",
            *(f"review {name}" for name in "list show resolve".split()),
            "conflicts list",
            "conflicts resolve",
        ),
        *(f"facts {name}" for name in "set get list history delete".split()),
        *("events record", "events list", "context", "lifecycle plan", "lifecycle run"),
        *(f"skills {name}" for name in "push pull list show history diff rollback match run".split()),
        *(f"skills drafts {name}" for name in "list propose approve reject".split()),
        *(f"session {name}" for name in "list show state end".split()),
        *("audit list", "audit verify", "audit export", "why"),
        *(f"permanent {name}" for name in "list propose decide put remove history".split()),
    }


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_every_command_has_help_and_examples(path):
    done = RUNNER.invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert "Examples:" in done.output
    assert f"$ memsvc {' '.join(path)}" in done.output


def test_the_shared_options_are_on_every_command_against_a_server():
    local = ("serve", "demo", "version", "stats", "verify", "backup", "reindex", "model", "token")
    for path in (" ".join(path) for path in commands() if path[0] not in local):
        done = RUNNER.invoke(app, [*path.split(), "--help"], env={"COLUMNS": "200"})
        for option in ("--user-id", "--project-id", "--agent-id", "--session-id", "--server", "--output"):
            assert option in done.output, (path, option)


def test_whom_a_command_acts_for(monkeypatch):
    for name in ("USER_ID", "PROJECT_ID", "AGENT_ID", "SESSION_ID", "TENANT"):
        monkeypatch.delenv(f"MEMSVC_{name}", raising=False)
    assert Call().owners() == {"user_id": "default"}
    assert Call(session_id="s").owners() == {"session_id": "s"}
    assert Call(session_id="s").owners(("user_id", "project_id", "agent_id")) == {
        "user_id": "default",
        "session_id": "s",
    }
    monkeypatch.setenv("MEMSVC_USER_ID", "env")
    monkeypatch.setenv("MEMSVC_TENANT", "acme")
    assert Call().owners() == {"user_id": "env", "tenant": "acme"}
    assert Call(user_id="u").owners() == {"user_id": "u", "tenant": "acme"}


# -- times -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30m", dt.timedelta(minutes=30)),
        ("12h", dt.timedelta(hours=12)),
        ("7d", dt.timedelta(days=7)),
        (" 2W ", dt.timedelta(weeks=2)),
        ("0d", dt.timedelta()),
    ],
)
def test_durations(text, span):
    assert duration(text, "--since") == span
    assert moment(text, "--since", NOW) == NOW - span


@pytest.mark.parametrize("text", ["", "7", "d", "-7d", "1.5h", "7 d", "7y", "7s", "１d", "9999999d", "7d7h"])
def test_what_is_no_duration_is_refused_naming_the_fix(text):
    with pytest.raises(typer.BadParameter, match="30m, 12h, 7d"):
        duration(text, "--since")
    with pytest.raises(typer.BadParameter, match="30m, 12h, 7d"):
        moment(text, "--since", NOW)


def test_moments():
    assert moment("2025-01-10T17:00:00+08:00", "--since", NOW) == NOW
    assert moment(None, "--since", NOW) is None
    with pytest.raises(typer.BadParameter, match="no time zone; add Z"):
        moment("2025-01-10T09:00", "--since", NOW)
    with pytest.raises(typer.BadParameter, match="before the year 1"):
        moment("999999w", "--since", NOW)
    with pytest.raises(typer.BadParameter, match="not an ISO 8601 time"):
        moment("7d", "--occur-time")


# -- outcomes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "others", "expected"),
    [
        ("created", [], ["created mem_1"]),
        ("merged", ["mem_1"], ["merged mem_1", "  it was said before: why"]),
        ("superseded", ["mem_2", "mem_3"], ["superseded mem_1", "  it replaces mem_2, mem_3: why"]),
        ("rejected", ["mem_1"], ["rejected mem_1", "  mem_1 stands against it: why"]),
        ("staged", [], ["staged mem_1", "  it is kept aside until the same is said in another session: why"]),
    ],
)
def test_remember_tells_which_memory_and_why(outcome, others, expected):
    number = spb.WriteOutcome.Value(f"WRITE_OUTCOME_{outcome.upper()}")
    message = spb.WriteResult(memory_id="mem_1", outcome=number, conflicting_ids=others)
    message.evidence.update({"reason": "why"})
    assert told(WriteResult(message)) == expected


# -- ingest ------------------------------------------------------------------------------------------------------


def records(count: int) -> list[Record]:
    return [Record(10 + i, {"role": "user", "content": f"{i}"}) for i in range(count)]


def judged(part: list[dict[str, Any]]) -> IngestResult:
    return IngestResult(spb.MessageVerdict(decision=spb.VERDICT_DECISION_KEPT, reason=m["content"]) for m in part)


def test_an_ingest_goes_in_parts_with_progress():
    sizes: list[int] = []
    steps: list[tuple[int, int]] = []

    def ingest(part: list[dict[str, Any]]) -> IngestResult:
        sizes.append(len(part))
        return judged(part)

    so_far = Progressed()
    send(ingest, records(450), so_far, lambda _, done, total: steps.append((done, total)))
    assert sizes == [200, 200, 50]
    assert steps == [(0, 450), (200, 450), (400, 450)]
    assert [(line, verdict.reason) for line, verdict in so_far.verdicts] == [(10 + i, f"{i}") for i in range(450)]


def test_messages_that_the_server_refuses_are_told_and_the_rest_goes_on(capsys):
    def ingest(part: list[dict[str, Any]]) -> IngestResult:
        wrong = [i for i, message in enumerate(part) if message["content"] in ("1", "3")]
        if wrong:
            path = f"messages[{wrong[0]}].content"
            raise InvalidArgument("the text", reason="LIMIT_EXCEEDED", field_violations=[(path, "too long")])
        return judged(part)

    so_far = Progressed()
    send(ingest, records(5), so_far, lambda *_: None)
    assert [line for line, _ in so_far.bad] == [11, 13]
    assert [line for line, _ in so_far.verdicts] == [10, 12, 14]
    assert so_far.done_count == 5
    assert "line 13: the server refuses it: LIMIT_EXCEEDED at messages[2].content" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["messages", "statements[0].content", "messages[9].content"])
def test_a_refusal_of_the_whole_part_is_raised(path):
    def ingest(part: list[dict[str, Any]]) -> IngestResult:
        raise InvalidArgument("no", field_violations=[(path, "no")])

    with pytest.raises(InvalidArgument):
        send(ingest, records(2), Progressed(), lambda *_: None)


class StubClient:
    """Judges one part and then stops; or finds no memory."""

    def __init__(self, stop: BaseException) -> None:
        self.stop = stop
        self.calls = 0

    def __enter__(self) -> StubClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ingest(self, part: list[dict[str, Any]], **_: Any) -> IngestResult:
        self.calls += 1
        if self.calls > 1:
            raise self.stop
        return judged(part)

    def review(self, decisions: Iterator[dict[str, str]]) -> None:
        self.calls += 1
        if self.calls > 1:
            raise self.stop


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (Unavailable("gone"), 1)])
def test_an_ingest_that_stops_keeps_what_was_acknowledged_and_says_how_far_it_came(monkeypatch, tmp_path, stop, code):
    stub = StubClient(stop)
    monkeypatch.setattr(learning.Call, "client", lambda *_: stub)
    file = tmp_path / "chat.jsonl"
    file.write_text('{"role": "user", "content": "x"}\n' * 250)
    done = RUNNER.invoke(app, ["ingest", str(file)])
    assert done.exit_code == code
    assert "200 kept, 0 staged, 0 dropped" in done.stdout
    assert "stopped: 200 of 250 messages were judged" in done.stderr
    assert "go on from line 201" in done.stderr


def test_an_ingest_with_bad_lines_ends_with_1(monkeypatch, tmp_path):
    monkeypatch.setattr(learning.Call, "client", lambda *_: StubClient(KeyboardInterrupt()))
    file = tmp_path / "chat.jsonl"
    file.write_text('{"role": "user", "content": "[bold]x[/bold]"}\n{"role": "user"}\n')
    done = RUNNER.invoke(app, ["ingest", str(file)], env={"COLUMNS": "200"})
    assert done.exit_code == 1
    assert "[bold]x[/bold]" in done.stdout
    assert "1 kept, 0 staged, 0 dropped, 1 bad lines" in done.stdout
    assert "line 2: message.content is missing" in done.stderr


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path):
    for command in (["ingest"], ["review", "apply"]):
        done = RUNNER.invoke(app, [*command, str(tmp_path / "none")], env={"COLUMNS": "400"})
        assert done.exit_code == 2
        assert "can't be read: No such file or directory" in done.stderr


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(learning.Call, "client", lambda *_: StubClient(KeyboardInterrupt()))
    done = RUNNER.invoke(app, ["ingest", "-", "-o", "json"], input='[{"role": "user", "content": "x"}]')
    assert done.exit_code == 0
    assert json.loads(done.stdout)["verdicts"][0]["line"] == 1
    done = RUNNER.invoke(app, ["review", "apply", "-", "--dry-run"], input="memory_id,action\nmem_1,forget\n")
    assert "forget 1" in done.stdout


# -- review ------------------------------------------------------------------------------------------------------


def test_a_review_that_fails_says_what_was_and_was_not_applied(capsys):
    decisions = [Decision(i + 2, f"mem_{i}", "confirm", "", "") for i in range(1500)]
    stop = NotFound("no such memory", field_violations=[("decisions[7].memory_id", "missing")])
    with pytest.raises(NotFound):
        apply_all(StubClient(stop), decisions)
    told_text = capsys.readouterr().err
    assert "applied: lines 2 to 1001 (1000 decisions)" in told_text
    assert "not applied: from line 1002 on (500 decisions)" in told_text
    assert "line 1009: refused by the server" in told_text


def test_an_export_asks_for_doubtful_and_for_all_staged_memories_newest_first():
    asked: list[dict[str, Any]] = []

    class Lister:
        def list(self, **options: Any) -> list[Memory]:
            asked.append(options)
            numbers = (3, 1) if "staged" in options["statuses"] else (2,)
            return [Memory(pb.Memory(memory_id=f"mem_{n}", create_time={"seconds": n})) for n in numbers]

    found = learnt(Lister(), NOW, 0.6)  # type: ignore[arg-type]
    assert [memory["memory_id"] for memory in found] == ["mem_3", "mem_2", "mem_1"]
    assert [(o["statuses"], o.get("max_confidence"), o["create_time"]) for o in asked] == [
        (["active", "contested"], 0.6, (NOW, None)),
        (["staged"], None, (NOW, None)),
    ]


def test_a_dry_run_of_a_review_asks_nobody(monkeypatch, tmp_path):
    monkeypatch.setattr(reviewing.Call, "client", lambda *_, **__: pytest.fail("asked the server"))
    file = tmp_path / "list.csv"
    file.write_text("memory_id,action\nmem_1,confirm\nmem_2,\nmem_3,block\n")
    done = RUNNER.invoke(app, ["review", "apply", str(file), "--dry-run"])
    assert done.stdout == "would apply: confirm 1, correct 0, forget 0, block 1; left as they are: 1\n"
    file.write_text("memory_id,action\nmem_1,confirm\nmem_2,approve\n")
    done = RUNNER.invoke(app, ["review", "apply", str(file)])
    assert done.exit_code == 1
    assert "line 3: unknown action 'approve'" in done.stderr
