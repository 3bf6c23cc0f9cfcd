"""What the layers' commands do without a server's help: Ctrl-C, options that exclude each other, colours, README."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from memsvc.cli import lifecycle, main, sessions, skills
from memsvc.cli.common import Call
from memsvc_client import NotFound

README = Path(__file__).resolve().parents[2] / "README.md"


class StubClient:
    """A client whose parts are those of a test."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)

    def __enter__(self) -> StubClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> StubClient:
    stub = StubClient()
    monkeypatch.setattr(Call, "client", lambda *_, **__: stub)
    return stub


def exit_code(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["memsvc", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


def interrupted(**_: Any) -> Any:
    raise KeyboardInterrupt


# -- Ctrl-C ------------------------------------------------------------------------------------------------------


def test_a_lifecycle_run_that_is_stopped_says_that_what_was_done_stays(monkeypatch, client, capsys):
    client.lifecycle = SimpleNamespace(run=interrupted)
    assert exit_code(monkeypatch, "lifecycle", "run") == 130
    assert "stopped: what was done stays; `memsvc lifecycle run` goes on" in capsys.readouterr().err


class StubSession:
    """An ended session whose consolidation never ends."""

    session_id = "s42"

    def __init__(self) -> None:
        self.looks = 0

    def end(self, consolidate: bool) -> Any:
        return SimpleNamespace(is_final=False)

    def consolidation(self, wait_s: float) -> Any:
        self.looks += 1
        if self.looks > 2:
            raise KeyboardInterrupt
        return SimpleNamespace(is_final=False, done_turns=self.looks, total_turns=9)


def test_waiting_for_a_session_can_be_stopped_and_the_consolidation_goes_on(monkeypatch, client, capsys):
    session = StubSession()
    client.session = lambda _: session
    assert exit_code(monkeypatch, "session", "end", "s42", "--wait") == 130
    assert "the consolidation goes on; `memsvc session end s42 --wait`" in capsys.readouterr().err
    assert session.looks == 3


# -- whom sessions and contexts are for --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [("session", "show", "-s", "s1"), ("session", "list", "-s", "s1"), ("context", "x", "-s", "s1")]
)
def test_a_session_alone_is_the_default_users(monkeypatch, arguments):
    for name in ("USER_ID", "PROJECT_ID", "AGENT_ID", "SESSION_ID", "TENANT"):
        monkeypatch.delenv(f"MEMSVC_{name}", raising=False)
    asked: list[dict[str, str]] = []

    def client(call: Call, owners: dict[str, str]) -> Any:
        asked.append(owners)
        raise NotFound("no open session s1")

    monkeypatch.setattr(Call, "client", client)
    assert exit_code(monkeypatch, *arguments) == 1
    assert asked == [{"user_id": "default", "session_id": "s1"}]


# -- options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("facts", "set", "k", "v", "--if-absent", "--if-version", "0"), "exclude each other"),
        (("facts", "set", "k", "yes", "--type", "bool"), "true or false"),
        (("facts", "set", "k", "v", "--if-version", "-1"), "--if-version"),
        (("events", "record", "x", "-t", "error", "--payload", "[]"), "not a JSON object"),
        (("events", "list", "why?", "--newest-first"), "answered best first"),
        (("events", "list", "why?", "-n", "101"), "at most 100 answers"),
        (("events", "list", "--field", "order"), "NAME=VALUE"),
        (("events", "list", "--since", "soon"), "7d"),
        (("skills", "run", "x", "--outcome", "maybe"), "success"),
        (("skills", "rollback", "x", "0"), "VERSION"),
        (("session", "state", "s1", "--slot", "x"), "NAME=VALUE"),
        (("permanent", "propose", "-k", "profile", "--reason", "r"), "either the statement or --memory"),
        (("permanent", "put", "x", "-k", "wish", "--reason", "r"), "safety"),
        (("lifecycle", "plan", "--at", "2031-01-01T00:00"), "no time zone"),
        (("context", "x", "--order", "best"), "best-last"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_can_not_be_meant_is_refused_before_anybody_is_asked(monkeypatch, capsys, arguments, told):
    monkeypatch.setattr(Call, "client", lambda *_, **__: pytest.fail("asked the server"))
    assert exit_code(monkeypatch, *arguments) == 2
    assert told.lower() in " ".join(capsys.readouterr().err.replace("│", " ").split()).lower()


# -- diff --------------------------------------------------------------------------------------------------------


def test_a_diff_is_coloured_and_shows_what_a_terminal_would_hide(monkeypatch, client):
    sources = {1: "name: a\r\nold [b]\n", 2: "name: a\nnew \x1b[31m"}
    client.skills = SimpleNamespace(
        get=lambda name, version, scopes: SimpleNamespace(name="a", version=version or 2, source=sources[version or 2])
    )
    text = io.StringIO()
    terminal = Console(file=text, force_terminal=True, color_system="standard", width=80)
    monkeypatch.setattr(skills, "out", terminal)
    assert exit_code(monkeypatch, "skills", "diff", "a") == 0
    assert re.findall(r"\x1b\[(\d+)m([-+@].*?)\x1b", text.getvalue()) == [
        ("31", "--- a/skill.yaml (version 1)"),
        ("32", "+++ a/skill.yaml (version 2)"),
        ("36", "@@ -1,2 +1,2 @@"),
        ("31", "-name: a\ufffd"),
        ("31", "-old [b]"),
        ("32", "+name: a"),
        ("32", "+new \ufffd[31m"),
    ]


def test_the_diff_of_a_first_version_is_all_new():
    skill: Any = SimpleNamespace(name="a", version=1, source="x\ny\n")
    assert skills._diff(None, skill)[2:] == ["@@ -0,0 +1,2 @@\n", "+x\n", "+y\n"]
    assert skills._diff(skill, skill) == []


# -- documentation -----------------------------------------------------------------------------------------------


def test_readme_names_every_group_of_commands():
    readme = README.read_text("utf-8")
    for group in (lifecycle.lifecycle_app, sessions.session_app, skills.skills_app, skills.drafts_app):
        for command in group.registered_commands:
            assert re.search(rf"`(?:memsvc [\w ]*)?{command.name}\b", readme), command.name
    for name in ("facts", "events", "skills", "skills drafts", "session", "permanent", "lifecycle"):
        assert f"`memsvc {name} " in readme, name
