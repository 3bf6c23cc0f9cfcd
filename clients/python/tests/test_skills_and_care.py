"""Skills, permanent memories and the lifecycle through both clients against a real server."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from memsvc_client import FailedPrecondition, InvalidArgument, NotFound, PermanentMemory, Skill

DEPLOY = """\
name: deploy-service
description: Rolls a service out.
trigger: When somebody asks to deploy a service.
version: {label}
parameters:
  - name: env
    description: Where to.
    required: true
  - name: replicas
    default: 2
  - name: approver
    required: true
memory_refs:
  - parameter: env
    subject: deploy.environment
steps:
  - Check that {{env}} is healthy.
  - Roll out {{replicas}} replicas.
"""


def deploy(label: str = "1.0.0") -> str:
    return DEPLOY.format(label=label)


# -- skills ------------------------------------------------------------------------------------------------------


def test_a_skill_is_pushed_from_text_file_or_directory(mem, tmp_path: Path):
    pushed = mem.skills.push(deploy())
    assert (pushed.name, pushed.version, pushed.label, pushed.changed) == ("deploy-service", 1, "1.0.0", True)
    assert not mem.skills.push(deploy()).changed
    (tmp_path / "skill.yaml").write_text(deploy("2.0.0"), "utf-8")
    assert mem.skills.push(tmp_path).label == "2.0.0"
    marked = tmp_path / "other.yaml"
    marked.write_text(deploy("3.0.0"), "utf-8-sig")
    assert mem.skills.push(marked).label == "3.0.0"
    assert mem.skills.push(deploy("4.0.0"), dry_run=True).changed
    assert mem.skills.get("deploy-service").source == deploy("3.0.0")


def test_versions_rollback_and_list(mem):
    for label in ("1.0.0", "2.0.0"):
        mem.skills.push(deploy(label))
    mem.skills.push(deploy().replace("deploy-service", "a-first-one"), scope="project")
    assert mem.skills.get("deploy-service", version=1).label == "1.0.0"
    assert mem.skills.rollback("deploy-service", 1, reason="2 is broken").version == 3
    assert [(s.version, s.label) for s in mem.skills.versions("deploy-service")] == [
        (3, "1.0.0"),
        (2, "2.0.0"),
        (1, "1.0.0"),
    ]
    assert len(mem.skills.history("deploy-service")) == 3
    assert [(s.name, s.scope) for s in mem.skills.list(page_size=1)] == [
        ("a-first-one", "project"),
        ("deploy-service", "user"),
    ]
    assert [s.name for s in mem.skills.list(scopes=["user"])] == ["deploy-service"]
    for call in (
        lambda: mem.skills.get("nothing"),
        lambda: mem.skills.versions("nothing"),
        lambda: mem.skills.get("deploy-service", version=9),
        lambda: mem.skills.record_run("nothing", "success"),
    ):
        with pytest.raises(NotFound):
            call()


def test_a_match_fills_parameters_from_memories_and_outcomes_count(mem):
    mem.skills.push(deploy())
    (bare,) = mem.skills.match("deploy a service")
    assert (bare.name, bare.arguments, bare.missing) == ("deploy-service", {"replicas": 2}, ["env", "approver"])
    fact = mem.facts.put("deploy.environment", "staging")
    (match,) = mem.skills.match(text="deploy a service", limit=1)
    assert match.arguments == {"env": "staging", "replicas": 2}
    assert match.argument_ids == {"env": fact.memory_id}
    assert match.missing == ["approver"]
    assert match.steps == ["Check that {env} is healthy.", "Roll out {replicas} replicas."]
    assert match.parameters[1] == {"name": "replicas", "description": "", "default": 2, "required": False}
    assert match.memory_refs == [{"parameter": "env", "subject": "deploy.environment", "query": "", "type": ""}]
    kept = mem.skills.record_run("deploy-service", "failure", note="web-1 was down", session_id="s1")
    assert mem.get(kept.memory_id).source == {"tool": "tests", "session_id": "s1", "message_id": ""}
    assert mem.recall("web-1")[0].memory_id == kept.memory_id
    mem.skills.record_run("deploy-service", "success")
    (after,) = mem.skills.match("deploy a service")
    assert (after.success_count, after.failure_count) == (1, 1)
    assert mem.skills.match("what is the weather?") == []
    shown = json.loads(json.dumps(match.to_dict()))
    assert list(shown) == [*Skill.NAMES, "score", "arguments", "argument_ids", "missing"]
    assert mem.get(match.memory_id).skill_name == "deploy-service"


def test_problems_keep_the_servers_lines(mem, tmp_path: Path):
    wrong = deploy().replace("parameters:", "parametrs:").replace("trigger:", "triger:")
    (tmp_path / "skill.yaml").write_text(wrong, "utf-8")
    for source in (wrong, tmp_path):
        with pytest.raises(InvalidArgument) as refused:
            mem.skills.push(source, dry_run=True)
        problems = refused.value.message.splitlines()
        assert problems[0].startswith("line 1, column 1: trigger is missing")
        assert problems[1].startswith("line 3, column 1: skill.yaml has no key triger")
        assert problems[2].startswith("line 5, column 1: skill.yaml has no key parametrs")
        assert refused.value.field_violations[0][0] == "source"
    with pytest.raises(InvalidArgument, match="line 1, column 1: it is empty"):
        mem.skills.push("")


def test_paths_that_give_no_text_are_named(mem, tmp_path: Path):
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: x\ntrigger: caf\u00e9".encode("latin-1"))
    for path, hint in (
        (tmp_path / "absent.yaml", "absent.yaml can't be read: No such file"),
        (tmp_path, "skill.yaml can't be read: No such file"),
        (latin, "latin.yaml line 2 is not UTF-8"),
        (Path("a\0b"), "no name of a file"),
    ):
        with pytest.raises(InvalidArgument, match=hint):
            mem.skills.push(path)
    with pytest.raises(InvalidArgument, match="outcome 'ok' is not one of success, failure"):
        mem.skills.record_run("x", "ok")


def test_a_text_is_never_a_path(mem, tmp_path: Path, monkeypatch):
    (tmp_path / "skill.yaml").write_text(deploy(), "utf-8")
    monkeypatch.chdir(tmp_path)
    for text in ("skill.yaml", str(tmp_path), "name: one-line"):
        with pytest.raises(InvalidArgument, match="line 1, column 1"):
            mem.skills.push(text)


def work(mem: Any, order: str) -> None:
    """One run of a task in a session of its own."""
    session = uuid.uuid4().hex
    for kind, summary, payload in (
        ("task_start", f"Refund {order}", None),
        ("step", f"check stock of {order}", None),
        ("step", f"pay back order {order}", None),
        ("task_end", "done", {"outcome": "success"}),
    ):
        mem.events.record(summary, event_type=kind, payload=payload, session_id=session, tool="shop")


def test_what_worked_three_times_is_proposed_and_decided(mem):
    for i in range(3):
        work(mem, f"ORD-2025-000{i}")
    (draft,) = mem.skills.propose()
    assert (draft.name, draft.status) == ("refund", "pending")
    assert mem.skills.propose() == []
    assert list(mem.skills.list()) == []
    assert [s.name for s in mem.skills.list(include_drafts=True)] == ["refund"]
    assert mem.skills.decide("refund", approve=True, reason="looks right").status == "active"
    with pytest.raises(FailedPrecondition):
        mem.skills.decide("refund", approve=False)


# -- permanent memories ------------------------------------------------------------------------------------------


def test_a_permanent_memory_is_proposed_decided_replaced_and_removed(mem):
    proposal = mem.permanent.propose("Speaks Chinese and English.", kind="profile", reason="said so")
    assert (proposal.status, proposal.kind, proposal.scope) == ("pending", "profile", "user")
    assert mem.permanent.list() == []
    assert [one.id for one in mem.permanent.list(include_proposals=True)] == [proposal.memory_id]
    accepted = mem.permanent.decide(proposal.memory_id, accept=True, reason="true")
    assert (accepted.status, accepted.version) == ("active", 2)
    limit = mem.permanent.put("Never delete a branch.", kind="safety", reason="policy", scope="project")
    assert [one.content for one in mem.permanent.list()] == ["Never delete a branch.", "Speaks Chinese and English."]
    assert [one.scope for one in mem.permanent.list(scopes=["project"])] == ["project"]
    newer = mem.permanent.put("Never push to main.", kind="safety", reason="wider", memory_id=limit.memory_id)
    assert (newer.memory_id, newer.version, newer.create_time) == (limit.memory_id, 2, limit.create_time)
    assert mem.permanent.remove(limit.memory_id, reason="obsolete").status == "forgotten"
    versions = mem.permanent.history(limit.memory_id)
    assert [(one.version, one.reason) for one in versions] == [(3, "obsolete"), (2, "wider"), (1, "policy")]
    with pytest.raises(FailedPrecondition):
        mem.permanent.remove(limit.memory_id, reason="again")
    with pytest.raises(NotFound):
        mem.permanent.history(f"mem_{uuid.uuid4()}")
    shown = json.loads(json.dumps(newer.to_dict()))
    assert list(shown) == list(PermanentMemory.NAMES)
    assert shown["create_time"] == newer.create_time.isoformat()


def test_a_memory_is_proposed_and_rejected(mem):
    written = mem.write("prefers short answers", type="preference")
    proposal = mem.permanent.propose(memory_id=written.memory_id, kind="profile", reason="often used")
    assert (proposal.content, proposal.proposed_from) == ("prefers short answers", written.memory_id)
    assert mem.permanent.decide(proposal.id, accept=False, reason="a mood").status == "forgotten"
    for call, error in (
        (
            lambda: mem.permanent.put("x", kind="rule", reason="r"),
            "kind 'rule' is not one of profile, safety, identity",
        ),
        (lambda: mem.permanent.put("x", kind="safety", reason=""), "reason"),
        (lambda: mem.permanent.propose("x", kind="safety", memory_id=written.memory_id, reason="r"), "not both"),
    ):
        with pytest.raises(InvalidArgument, match=error):
            call()


# -- lifecycle ---------------------------------------------------------------------------------------------------


def test_a_plan_shows_what_a_run_does(mem):
    now = dt.datetime.now(dt.UTC)
    expiring = mem.write("the demo is in room 4", expire_time=now + dt.timedelta(days=1)).memory_id
    mem.write("the office is in Lyon")
    plan = mem.lifecycle.plan(at_time=now + dt.timedelta(days=2))
    assert (plan.counts.seen_count, plan.counts.expired_count, plan.counts.archived_count) == (2, 1, 0)
    (step,) = [step for step in plan.steps if step.action == "expire"]
    assert (step.memory_id, step.scope) == (expiring, "user")
    assert json.loads(json.dumps(plan.to_dict()))["steps"][0]["memory_id"] == plan.steps[0].id
    assert mem.lifecycle.plan(at_time=now + dt.timedelta(days=2), max_steps=1).counts.seen_count == 2
    assert mem.lifecycle.plan(all_owners=True).counts.seen_count >= 2
    done = mem.lifecycle.run()
    assert (done.seen_count, done.expired_count, done.proposed_count) == (2, 0, 0)
    with pytest.raises(InvalidArgument) as refused:
        mem.lifecycle.plan(max_steps=10_001)
    assert refused.value.field_violations[0][0] == "max_steps"
    with pytest.raises(InvalidArgument, match="no time zone"):
        mem.lifecycle.plan(at_time=dt.datetime(2025, 1, 1))
