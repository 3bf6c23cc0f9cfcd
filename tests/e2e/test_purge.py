"""Purge on real servers: everything that a user left is gone from every file, nothing of anybody else's."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memsvc.demo import ServerProcess
from memsvc_client import MemoryClient, NotFound

ROOT = Path(__file__).parents[2]
MARKS = ("zebrafish", "斑马鱼", "wolpertinger")  # in contents, in Chinese, and as the user's own name
USER, OTHER = "wolpertinger@example.org", "neighbour"
SKILL = "name: {0}-skill\ndescription: Feeds the {0}.\ntrigger: When the {0} is hungry.\nsteps:\n  - feed the {0}\n"
PATIENT_S = 60.0


def opened(address: str, user: str, **ids: str) -> MemoryClient:
    return MemoryClient(address, user_id=user, timeout_s=PATIENT_S, write_timeout_s=PATIENT_S, **ids)


def leave_traces(address: str, user: str, *, marks: tuple[str, ...] = MARKS) -> list[str]:
    """Something in every table and file; ids of two plain memories."""
    english, chinese = marks[:2]
    with opened(address, user) as client:
        first = client.write(f"The {english} is my favourite fish", type="preference", tags=[english])
        client.update(first.memory_id, content=f"The {english} is my most loved fish", reason=f"{english} again")
        second = client.write(f"用户喜欢{chinese}，每天都看", type="preference", metadata={chinese: english})
        client.forget(second.memory_id, reason=f"{chinese} no more")
        rows = [{"content": f"{english} number {i} swam by {chinese}", "type": "event"} for i in range(1200)]
        for at in range(0, len(rows), 400):
            client.batch_write(rows[at : at + 400])
        client.facts.put(f"{english}.tank", f"{chinese} tank")
        client.events.record(f"{english} fed", event_type=english, occur_time=dt.datetime.now(dt.UTC))
        client.skills.push(SKILL.format(english))
        client.permanent.put(f"I keep a {english}", kind="profile", reason=english)
        client.permanent.propose(f"Never feed the {chinese} twice", kind="safety", reason=chinese)
        session = client.session("s-1", goal=f"feed the {english}").start()
        session.user(f"Please feed the {english} ({chinese})")
        assert session.flush()
        client.recall(f"where is the {english}?")
        return [first.memory_id, second.memory_id]


def holding(data: Path, text: str) -> list[str]:
    """Files that hold the text's bytes."""
    files = [path for path in data.rglob("*") if path.is_file()]
    return [str(path.relative_to(data)) for path in files if text.encode() in path.read_bytes()]


def check_neighbour(address: str, kept: list[str]) -> None:
    with opened(address, OTHER) as client:
        assert client.get(kept[0]).content == "The goldfinch is my most loved fish"
        assert any("goldfinch" in hit.content for hit in client.recall("which is my most loved fish?"))
        assert client.facts.get("goldfinch.tank").value == "金翅雀 tank"


def memsvc(address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memsvc", *arguments, "--server", address]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_an_owner_leaves_no_byte(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "--log-level", "WARNING") as server:
        leave_traces(server.address, USER)
        kept = leave_traces(server.address, OTHER, marks=("goldfinch", "金翅雀"))
    with ServerProcess(data, "--log-level", "WARNING") as server:  # segments are saved now
        assert any(name.startswith("segments/") for name in holding(data, MARKS[0]))
        assert any(name.startswith("sessions/") for name in holding(data, MARKS[1]))
        assert all(any(name.startswith("store/") for name in holding(data, mark)) for mark in MARKS)
        with opened(server.address, USER) as client:
            planned = client.erasure.purge(reason="asked for", dry_run=True)
            assert client.recall("where is the zebrafish?")
            done = client.erasure.purge(reason="asked for by letter")
            assert (done.state, planned.memory_count, planned.receipt_id) == ("done", done.memory_count, "")
            assert done.memory_count > 1200
            assert done.session_count == 1
            assert list(client.recall("where is the zebrafish?")) == []
            assert list(client.list(include_inactive=True)) == []
            assert client.permanent.list(include_proposals=True) == []
        left = {mark: holding(data, mark) for mark in MARKS[:2]}
        assert left == {mark: [] for mark in MARKS[:2]}
        check_neighbour(server.address, kept)
        assert memsvc(server.address, "verify").returncode == 0
        assert memsvc(server.address, "audit", "verify").returncode == 0
        listed = json.loads(memsvc(server.address, "receipts", "list", "-o", "json").stdout)
        assert [one["hash"] for one in listed] == [done.hash]
        audit = memsvc(server.address, "audit", "list", "--scope", "global", "-o", "json").stdout
        assert f"receipt {done.receipt_id} sha256={done.hash}" in audit
        leave_traces(server.address, USER, marks=("heron", "苍鹭"))  # the owner begins anew
        with opened(server.address, USER) as client:
            assert any("heron" in hit.content for hit in client.recall("which is my most loved fish?"))
    assert {mark: holding(data, mark) for mark in MARKS[:2]} == left
    with ServerProcess(data, "--log-level", "WARNING") as server:
        check_neighbour(server.address, kept)
        assert memsvc(server.address, "verify").returncode == 0


def test_memories_leave_their_frame_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "--log-level", "WARNING") as server, opened(server.address, USER) as client:
        ids = [client.write(f"The {mark} lives in tank {i}", type="fact").memory_id for i, mark in enumerate(MARKS)]
        client.permanent.propose(memory_id=ids[0], kind="profile", reason="lasting")
        before = dt.datetime.now(dt.UTC)
        assert memsvc(server.address, "purge", ids[0], ids[1], "-u", USER, "--reason", "slip", "--yes").returncode == 0
        assert [holding(data, mark) for mark in MARKS[:2]] == [[], []]
        assert holding(data, MARKS[2])
        assert [hit.memory_id for hit in client.recall("tank", include_inactive=True)] == [ids[2]]
        assert [hit.memory_id for hit in client.recall("tank", as_of=before)] == [ids[2]]
        gone = client.get(ids[0])
        assert (gone.status, gone.content) == ("purged", "")
        assert [change.after.content for change in client.history(ids[0])] == ["", ""]
        assert client.permanent.list(include_proposals=True) == []
        with pytest.raises(NotFound):
            client.erasure.purge(["mem_0190f5c4-7a2e-7cc3-98c4-dc0c0c07398f"], reason="no such")
        assert memsvc(server.address, "verify").returncode == 0
        assert memsvc(server.address, "audit", "verify").returncode == 0


@pytest.mark.parametrize("stage", ["asked", "sessions", "erased", "segments", "rewritten"])
def test_a_kill_at_any_stage_is_made_up_for(tmp_path: Path, stage: str) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "--log-level", "WARNING") as server:
        leave_traces(server.address, USER)
        kept = leave_traces(server.address, OTHER, marks=("goldfinch", "金翅雀"))
    child = Path(__file__).parent / "purge_child.py"
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/clients/python"}
    killed = subprocess.run([sys.executable, str(child), stage, str(data), USER], env=env, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    with ServerProcess(data, "--log-level", "WARNING") as server:
        with opened(server.address, OTHER) as client:
            (receipt,) = client.erasure.receipts()
        assert receipt.state == "done"
        assert receipt.memory_count > 1200
        assert {mark: holding(data, mark) for mark in MARKS[:2]} == {mark: [] for mark in MARKS[:2]}
        check_neighbour(server.address, kept)
        assert memsvc(server.address, "verify").returncode == 0


def test_the_command_asks_and_names_its_owners(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--log-level", "WARNING") as server:
        with opened(server.address, "u1") as client:
            client.write("I like tea", type="preference")
        assert "name on the command line" in memsvc(server.address, "purge", "--reason", "r").stderr
        refused = memsvc(server.address, "purge", "-u", "u1", "--reason", "r")  # no answer on standard input
        assert refused.returncode != 0
        assert "1 memories" in refused.stderr
        planned = json.loads(
            memsvc(server.address, "purge", "-u", "u1", "--reason", "r", "--dry-run", "-o", "json").stdout
        )
        assert planned["memory_count"] == 1
        inside = memsvc(server.address, "backup", str(tmp_path / "data" / "copy"))
        assert "outside of the data directory" in inside.stderr
        done = json.loads(memsvc(server.address, "purge", "-u", "u1", "--reason", "r", "--yes", "-o", "json").stdout)
        assert (done["state"], done["memory_count"]) == ("done", 1)
