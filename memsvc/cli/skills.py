"""Commands about skills: skills push, pull, list, show, history, diff, rollback, match, run, drafts.

Purpose: a skill lives in a directory of its author's and in the store; push and pull move its skill.yaml byte for byte.

Threading: one command a process.

Rejected: a push of many directories at once (a shell loop does that, and says which one failed).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from memsvc.cli.common import (
    Call,
    Limit,
    OneScope,
    Reason,
    Scopes,
    app,
    err,
    examples,
    out,
    print_json,
    printable,
    say,
    shared,
    take,
)
from memsvc.cli.skill_files import FILE, left_behind, read_skill, write_skill
from memsvc.cli.tables import Column, brief, fields_table, rows_table
from memsvc.cli.values import value_text
from memsvc_client import MatchedSkill, Skill

skills_app = typer.Typer(help="Skills: steps to follow, kept with their versions and outcomes.", no_args_is_help=True)
drafts_app = typer.Typer(help="Skills that were drafted from what worked; a person decides.", no_args_is_help=True)
app.add_typer(skills_app, name="skills")
skills_app.add_typer(drafts_app, name="drafts")

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_RUNS = (Column("ok", right=True), Column("failed", right=True))
_FORM = "\n\n".join(
    (
        "",
        "A skill.yaml (parameters, memory_refs and version may be left out):",
        "  name: deploy-service",
        "  description: Rolls a service out.",
        "  trigger: When somebody asks to deploy a service.",
        "  version: 1.2.0",
        "  parameters: [{name: env, description: Where to, default: staging, required: true}]",
        "  memory_refs: [{parameter: env, subject: deploy.environment}]",
        '  steps: ["Check that {env} is healthy.", "Roll out to {env}."]',
    )
)


class RunOutcome(StrEnum):
    """How a run went."""

    success = "success"
    failure = "failure"


Name = Annotated[str, typer.Argument(help="Name of the skill.")]
Version = Annotated[int, typer.Option("--version", min=0, help="A version of the store; the newest by default.")]


# -- push and pull -----------------------------------------------------------------------------------------------


@skills_app.command(
    "push",
    epilog=examples("memsvc skills push ./deploy-service", "memsvc skills push ./deploy-service --dry-run") + _FORM,
)
@shared
def skills_push(
    call: Call,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory that holds skill.yaml.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check it, and say what a push would do.")] = False,
    scope: OneScope = None,
) -> None:
    """Check DIR/skill.yaml and store it as the newest version of the skill that it names."""
    source = read_skill(directory)
    with call.client() as client:
        skill = client.skills.push(source, scope=scope, dry_run=dry_run)
    if call.wants_json:
        print_json({**skill.to_dict(), "dry_run": dry_run})
    elif skill.changed:
        say(out, f"{'would push' if dry_run else 'pushed'} {skill.name} version {skill.version}")
    else:
        say(out, f"unchanged {skill.name} version {skill.version}")
    warning = left_behind(directory)
    if warning:
        say(err, warning)


@skills_app.command(
    "pull", epilog=examples("memsvc skills pull deploy-service", "memsvc skills pull deploy-service ./old --version 2")
)
@shared
def skills_pull(
    call: Call,
    name: Name,
    directory: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Where to; ./NAME by default.")] = None,
    version: Version = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a skill.yaml that differs.")] = False,
    scope: Scopes = None,
) -> None:
    """Write a skill's directory, byte for byte as it was pushed."""
    with call.client() as client:
        skill = client.skills.get(name, version=version, scopes=scope)
    target = Path(skill.name) if directory is None else directory
    changed = write_skill(target, skill.source, force=force)
    if call.wants_json:
        print_json({**skill.to_dict(), "directory": str(target), "changed": changed})
    else:
        say(out, f"{'wrote' if changed else 'unchanged'} {target / FILE}: {skill.name} version {skill.version}")


# -- reading -----------------------------------------------------------------------------------------------------


@skills_app.command("list", epilog=examples("memsvc skills list", "memsvc skills list --scope project -p my-project"))
@shared
def skills_list(call: Call, scope: Scopes = None, limit: Limit = 50) -> None:
    """List skills by name. `memsvc skills drafts list` shows what waits for a person."""
    with call.client() as client:
        found = take(client.skills.list(scopes=scope), limit)
    _print_list(found, "no skills; `memsvc skills push DIR` stores one", call)


def _print_list(skills: Sequence[Skill], nothing: str, call: Call) -> None:
    if call.wants_json:
        print_json([skill.to_dict() for skill in skills])
    elif skills:
        columns = [*map(Column, ("name", "scope")), Column("description", text=True), Column("version"), *_RUNS]
        out.print(rows_table(columns, [(s.name, s.scope, s.description, _versions(s), *_runs(s)) for s in skills]))
    else:
        say(out, nothing)


def _runs(skill: Skill) -> tuple[str, str]:
    return str(skill.success_count), str(skill.failure_count)


def _versions(skill: Skill) -> str:
    return f"{skill.version} ({skill.label})" if skill.label else str(skill.version)


@skills_app.command("show", epilog=examples("memsvc skills show deploy-service", "memsvc skills show x --version 1"))
@shared
def skills_show(call: Call, name: Name, version: Version = 0, scope: Scopes = None) -> None:
    """Show a skill: what it does, when to use it, its steps and parameters."""
    with call.client() as client:
        skill = client.skills.get(name, version=version, scopes=scope)
    if call.wants_json:
        print_json(skill.to_dict())
        return
    refs = {ref["parameter"]: ref["subject"] or ref["query"] for ref in skill.memory_refs}
    parameters = []
    for one in skill.parameters:
        default = "" if one["default"] is None else f", {value_text(one['default'])} by default"
        required = ", required" if one["required"] else ""
        filled = f", from memory: {refs[one['name']]}" if one["name"] in refs else ""
        parameters.append(f"{one['name']}{required}{default}{filled}")
    fields = {
        "name": skill.name,
        "description": skill.description,
        "trigger": skill.trigger,
        "steps": "\n".join(f"{number}. {step}" for number, step in enumerate(skill.steps, 1)),
        "parameters": "\n".join(parameters),
        "version": _versions(skill),
        "status": skill.status,
        "scope": skill.scope,
        "stored": brief(skill.update_time),
        "runs": f"{skill.success_count} succeeded, {skill.failure_count} failed",
        "id": skill.memory_id,
    }
    out.print(fields_table(fields))


@skills_app.command("history", epilog=examples("memsvc skills history deploy-service"))
@shared
def skills_history(call: Call, name: Name, scope: Scopes = None) -> None:
    """List every version of a skill, newest first."""
    with call.client() as client:
        versions = client.skills.versions(name, scopes=scope)
    if call.wants_json:
        print_json([skill.to_dict() for skill in versions])
        return
    columns = [*map(Column, ("version", "time", "status")), Column("description", text=True)]
    rows = [(_versions(skill), brief(skill.update_time), skill.status, skill.description) for skill in versions]
    out.print(rows_table(columns, rows))


@skills_app.command(
    "diff", epilog=examples("memsvc skills diff deploy-service", "memsvc skills diff deploy-service 1 3")
)
@shared
def skills_diff(
    call: Call,
    name: Name,
    version: Annotated[int, typer.Argument(metavar="[V1]", min=0, help="The one before V2 by default.")] = 0,
    other: Annotated[int, typer.Argument(metavar="[V2]", min=0, help="The newest by default.")] = 0,
    scope: Scopes = None,
) -> None:
    """Show what changed in skill.yaml between two versions; by default, with the newest one."""
    with call.client() as client:
        newer = client.skills.get(name, version=other, scopes=scope)
        wanted = version or newer.version - 1
        older = client.skills.get(name, version=wanted, scopes=scope) if wanted else None
    lines = _diff(older, newer)
    if call.wants_json:
        print_json({"name": name, "from_version": wanted, "to_version": newer.version, "diff": "".join(lines)})
    elif not lines:
        say(out, f"versions {wanted} and {newer.version} of {name} say the same")
    else:
        for line in lines:
            text = Text(printable(line.removesuffix("\n")), style=_STYLES.get(line[0], ""))
            out.print(text, highlight=False, soft_wrap=True)


def _diff(older: Skill | None, newer: Skill) -> list[str]:
    """A unified diff; without an older version everything is new."""
    lines = difflib.unified_diff(
        [] if older is None else _lines(older.source),
        _lines(newer.source),
        f"{newer.name}/{FILE} (version {0 if older is None else older.version})",
        f"{newer.name}/{FILE} (version {newer.version})",
    )
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _lines(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [line for line in text.split("\n")[-1:] if line]


# -- use ---------------------------------------------------------------------------------------------------------


@skills_app.command(
    "rollback", epilog=examples("memsvc skills rollback deploy-service 2 --reason 'version 3 skips the check'")
)
@shared
def skills_rollback(
    call: Call,
    name: Name,
    version: Annotated[int, typer.Argument(min=1, help="The version to store again.")],
    reason: Reason = "",
    scope: Scopes = None,
) -> None:
    """Store an older version again as the newest one. Nothing is lost: the others stay in the history."""
    with call.client() as client:
        skill = client.skills.rollback(name, version, reason=reason, scopes=scope)
    if call.wants_json:
        print_json(skill.to_dict())
    else:
        say(out, f"rolled back {name} to version {version}, which is now version {skill.version}")


@skills_app.command(
    "match",
    epilog=examples('memsvc skills match "put billing on staging"', "memsvc skills match 发布服务 -k 1"),
)
@shared
def skills_match(
    call: Call,
    query: Annotated[str, typer.Argument(help="What is to be done.")],
    top_k: Annotated[int, typer.Option("-k", "--top-k", min=1, max=20, help="At most this many.")] = 3,
    scope: Scopes = None,
) -> None:
    """Find the skills that fit, best first, with their parameters filled from the owner's memories."""
    with call.client() as client:
        matches = client.skills.match(query, top_k=top_k, scopes=scope)
    if call.wants_json:
        print_json([match.to_dict() for match in matches])
    elif matches:
        out.print(_matches_table(matches))
    else:
        say(out, "no skill fits")


def _matches_table(matches: Sequence[MatchedSkill]) -> Table:
    columns = [Column("score", right=True), Column("name"), Column("what it does and takes", text=True), *_RUNS]
    rows = []
    for match in matches:
        lines = [match.description, *(f"{name} = {value_text(value)}" for name, value in match.arguments.items())]
        lines += [f"{name} is required and has no value" for name in match.missing]
        rows.append((f"{match.score:.3f}", match.name, "\n".join(lines), *_runs(match)))
    return rows_table(columns, rows)


@skills_app.command(
    "run", epilog=examples("memsvc skills run deploy-service --outcome failure --note 'health check timed out'")
)
@shared
def skills_run(
    call: Call,
    name: Name,
    outcome: Annotated[RunOutcome, typer.Option("--outcome", help="How it went.")],
    note: Annotated[str, typer.Option(help="What is worth knowing about it.")] = "",
    scope: Scopes = None,
) -> None:
    """Record how a run of a skill went. Outcomes change the order of `match`."""
    with call.client() as client:
        result = client.skills.record_run(name, outcome.value, note=note, scopes=scope)
    if call.wants_json:
        print_json(result.to_dict())
    else:
        say(out, f"recorded {outcome.value} of {name}: {result.memory_id}")


# -- drafts ------------------------------------------------------------------------------------------------------


@drafts_app.command("list", epilog=examples("memsvc skills drafts list", "memsvc skills drafts list -o json"))
@shared
def drafts_list(call: Call, scope: Scopes = None, limit: Limit = 50) -> None:
    """List drafts that wait for a person."""
    with call.client() as client:
        skills = client.skills.list(include_drafts=True, scopes=scope)
        found = take((skill for skill in skills if skill.status == "pending"), limit)
    _print_list(found, "no drafts wait; `memsvc skills drafts propose` looks for some", call)


@drafts_app.command(
    "propose", epilog=examples("memsvc skills drafts propose", "memsvc skills drafts propose -p my-project")
)
@shared
def drafts_propose(call: Call, scope: OneScope = None) -> None:
    """Look for steps that succeeded several times in the recorded events, and keep them as drafts."""
    with call.client() as client:
        drafts = client.skills.propose(scope=scope)
    _print_list(drafts, "nothing new to propose", call)


@drafts_app.command("approve", epilog=examples("memsvc skills drafts approve draft-1 --reason 'works for us'"))
@shared
def drafts_approve(call: Call, name: Name, reason: Reason = "", scope: Scopes = None) -> None:
    """Make a draft a skill."""
    _decide(call, name, True, reason, scope)


@drafts_app.command("reject", epilog=examples("memsvc skills drafts reject draft-1 --reason 'a coincidence'"))
@shared
def drafts_reject(call: Call, name: Name, reason: Reason = "", scope: Scopes = None) -> None:
    """Drop a draft; it is not proposed again."""
    _decide(call, name, False, reason, scope)


def _decide(call: Call, name: str, approve: bool, reason: str, scope: list[str] | None) -> None:
    with call.client() as client:
        skill = client.skills.decide(name, approve=approve, reason=reason, scopes=scope)
    if call.wants_json:
        print_json(skill.to_dict())
    else:
        say(out, f"{'approved' if approve else 'rejected'} {name}")
