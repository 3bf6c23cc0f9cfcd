"""The review commands against a real server."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from memsvc.cli import app
from memsvc.cli.review_queue import Undecided
from memsvc.errors import InvalidArgument


@pytest.fixture
def run(service, fresh_id):
    """Runs a command in a tenant of the test's own."""
    environment = {"MEMSVC_TENANT": fresh_id(), "COLUMNS": "100"}

    def invoke(*arguments):
        done = CliRunner().invoke(app, [*arguments, "--server", service.server.address], env=environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


def test_from_remember_to_recall(run):
    told = run("remember", "The office closes at six.", "--scope", "global")
    memory_id = told.split()[1]
    assert f"memsvc review resolve {memory_id} approve" in told
    assert "nothing found" in run("recall", "office", "--scope", "global", "--include-inactive")
    assert "The office closes at six." in run("review", "list", "--scope", "global")
    (item,) = json.loads(run("review", "list", "--kind", "pending-write", "-o", "json"))
    assert (item["item_id"], item["actor"], item["memories"][0]["tool"]) == (memory_id, "local", "memsvc-cli")
    assert json.loads(run("review", "show", memory_id, "-o", "json")) == item
    assert "The office closes at six." in run("review", "show", memory_id)
    done = run(
        "review", "resolve", memory_id, "edit", "--content", "The office closes at 18:00.", "--etag", item["etag"]
    )
    assert done.split() == ["active", memory_id]
    assert "18:00" in run("recall", "office", "--scope", "global")
    assert "nothing waits" in run("review", "list", "--kind", "conflict")


def test_what_the_server_refuses_is_an_error(run):
    memory_id = run("remember", "Lunch is at noon.", "--scope", "global").split()[1]
    answer = json.loads(run("review", "resolve", memory_id, "reject", "--reason", "no", "-o", "json"))
    assert (answer["outcome"], answer["memories"][0]["status"]) == ("", "forgotten")
    with pytest.raises(Undecided, match="FORGOTTEN") as refused:
        run("review", "resolve", memory_id, "approve")
    assert refused.value.reason == "NOT_ACTIVE"
    with pytest.raises(InvalidArgument):
        run("review", "list", "--scope", "galaxy")
