"""Skills: the steps to follow.

Purpose: the calls of SkillService, and what they return.

Threading: as the client. `AsyncSkills.push` reads a file of at most some kilobytes in the loop.

Rejected: checking skill.yaml here (the server does, naming lines; a second parser would disagree with it one day).
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from . import requests
from ._proto import memory_pb2 as pb
from ._proto import skill_service_pb2 as kpb
from ._proto import skill_service_pb2_grpc as rpc
from .core import Core
from .errors import InvalidArgument
from .operations import (
    AsyncResource,
    Call,
    Pages,
    Resource,
    async_call,
    async_pages,
    page_of,
    sync_call,
    sync_pages,
)
from .results import WriteResult
from .values import plain
from .views import Owned

SKILL_FILE = "skill.yaml"


class Skill(Owned[kpb.Skill]):
    """A skill at one version."""

    __slots__ = ()
    NAMES: ClassVar[tuple[str, ...]] = (
        "name",
        "description",
        "trigger",
        "steps",
        "parameters",
        "memory_refs",
        "label",
        "version",
        "source",
        "memory_id",
        "scope",
        "owner",
        "status",
        "update_time",
        "success_count",
        "failure_count",
    )

    @property
    def name(self) -> str:
        """Lower-case words with hyphens."""
        return self._pb.name

    @property
    def description(self) -> str:
        """What it does."""
        return self._pb.description

    @property
    def trigger(self) -> str:
        """When to use it."""
        return self._pb.trigger

    @property
    def steps(self) -> list[str]:
        """What to do, in order; {name} stands for a parameter."""
        return list(self._pb.steps)

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """Each with name, description, default (None: there is none) and required."""
        return [
            {
                "name": one.name,
                "description": one.description,
                "default": plain(one.default_value) if one.HasField("default_value") else None,
                "required": one.required,
            }
            for one in self._pb.parameters
        ]

    @property
    def memory_refs(self) -> list[dict[str, str]]:
        """Parameters that are filled from memories, each with parameter, subject, query and type ("" for any)."""
        return [
            {
                "parameter": ref.parameter,
                "subject": ref.subject,
                "query": ref.query,
                "type": requests.enum_name(pb.MemoryType, "MEMORY_TYPE", ref.type),
            }
            for ref in self._pb.memory_refs
        ]

    @property
    def label(self) -> str:
        """The author's version, such as 1.2.0."""
        return self._pb.label

    @property
    def version(self) -> int:
        """The store's version; counts from 1."""
        return self._pb.version

    @property
    def source(self) -> str:
        """The text of skill.yaml as it was pushed."""
        return self._pb.source

    @property
    def memory_id(self) -> str:
        """Id of the memory that holds it."""
        return self._pb.memory_id

    id = memory_id

    @property
    def status(self) -> str:
        """active, or pending for a draft that waits for a person; forgotten for one that was rejected."""
        return requests.enum_name(pb.Status, "STATUS", self._pb.status)

    @property
    def update_time(self) -> dt.datetime | None:
        """When this version was stored."""
        return self._time("update_time")

    @property
    def success_count(self) -> int:
        """Runs that succeeded."""
        return self._pb.success_count

    @property
    def failure_count(self) -> int:
        """Runs that failed."""
        return self._pb.failure_count

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, version={self.version}, {self.status})"


class SkillWrite(Skill):
    """A skill as it is after a push."""

    __slots__ = ("_push",)
    NAMES = (*Skill.NAMES, "changed")

    def __init__(self, response: kpb.SkillServicePushResponse) -> None:
        super().__init__(response.skill)
        self._push = response

    @property
    def changed(self) -> bool:
        """Whether this push changed it (or would, in a dry run); False when the text was the same."""
        return self._push.changed


class MatchedSkill(Skill):
    """A skill that fits, with its parameters' values for this owner."""

    __slots__ = ("_match",)
    NAMES = (*Skill.NAMES, "score", "arguments", "argument_ids", "missing")

    def __init__(self, match: kpb.MatchedSkill) -> None:
        super().__init__(match.skill)
        self._match = match

    @property
    def score(self) -> float:
        """How well it fits, outcomes included."""
        return self._match.score

    @property
    def arguments(self) -> dict[str, Any]:
        """Values by parameter: a fact's value, a memory's text, or the default. Parameters without one are left out."""
        return {one.name: plain(one.value) for one in self._match.parameters if one.HasField("value")}

    @property
    def argument_ids(self) -> dict[str, str]:
        """Ids of the memories that gave values, by parameter; defaults have none."""
        return {one.name: one.memory_id for one in self._match.parameters if one.memory_id}

    @property
    def missing(self) -> list[str]:
        """Required parameters without a value."""
        return list(self._match.missing)


def source_text(source: str | os.PathLike[str]) -> str:
    """The text to push: `source` itself if it is a str, otherwise of the file of this path, or of skill.yaml in the
    directory. Raises InvalidArgument for one that can't be read or is not UTF-8.
    """
    if isinstance(source, str):
        return source
    path = Path(source)
    if path.is_dir():
        path /= SKILL_FILE
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise _unreadable(path, f"can't be read: {error.strerror}; give a file, or a directory with one") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _unreadable(path, f"line {line} is not UTF-8") from error
    except ValueError as error:  # a NUL in the name
        raise _unreadable(path, "is no name of a file") from error


def _unreadable(path: Path, what: str) -> InvalidArgument:
    return InvalidArgument(f"{path} {what}", field_violations=[("source", what)])


def push(
    core: Core, source: str | os.PathLike[str], *, scope: str | None = None, dry_run: bool = False
) -> Call[SkillWrite]:
    """Validates and stores a version of a skill; a dry run validates only. Retried with the same request_id.

    source: YAML text, or the path (a pathlib.Path) of a file, or of a directory that holds skill.yaml.
    Raises InvalidArgument whose message says, a line each, "line L, column C: what is wrong".
    """
    text = source_text(source)
    request = requests.encodable(
        lambda: kpb.SkillServicePushRequest(
            owners=core.owners,
            scope=requests.scope(scope),
            source=text,
            dry_run=dry_run,
            request_id=requests.fresh_request_id(),
        ),
        "source",
    )

    def read(response: kpb.SkillServicePushResponse) -> SkillWrite:
        if not dry_run:
            core.stored()
        return SkillWrite(response)

    return Call(rpc.SkillServiceStub, "Push", request, read, retried=True)


def get(
    core: Core,
    name: str,
    *,
    version: int = 0,
    scopes: Iterable[str] | None = None,
    timeout_s: float | None = None,
) -> Call[Skill]:
    """A skill of the narrowest scope that has it, now or at an older version. Raises NotFound."""
    request = requests.encodable(
        lambda: kpb.SkillServiceGetRequest(
            owners=core.owners, scopes=requests.scopes(scopes), name=name, version=version
        ),
        "name or version",
    )
    return Call(rpc.SkillServiceStub, "Get", request, _skill, timeout_s=timeout_s)


def list_(
    core: Core,
    *,
    include_drafts: bool = False,
    scopes: Iterable[str] | None = None,
    page_size: int = 100,
    timeout_s: float | None = None,
) -> Pages[Skill]:
    """The skills by name, with drafts that wait for a person if asked for; pages are fetched as they are needed."""
    request = requests.encodable(
        lambda: kpb.SkillServiceListRequest(
            owners=core.owners,
            scopes=requests.scopes(scopes),
            include_drafts=include_drafts,
            page_size=page_size,
        ),
        "page_size",
    )
    return Pages(Call(rpc.SkillServiceStub, "List", request, page_of("skills", Skill), timeout_s=timeout_s))


def versions(
    core: Core, name: str, *, scopes: Iterable[str] | None = None, timeout_s: float | None = None
) -> Call[list[Skill]]:
    """All versions of a skill, newest first. Raises NotFound."""
    request = requests.encodable(
        lambda: kpb.SkillServiceVersionsRequest(owners=core.owners, scopes=requests.scopes(scopes), name=name), "name"
    )
    return Call(
        rpc.SkillServiceStub,
        "Versions",
        request,
        lambda response: [Skill(skill) for skill in response.skills],
        timeout_s=timeout_s,
    )


def rollback(
    core: Core, name: str, version: int, *, reason: str = "", scopes: Iterable[str] | None = None
) -> Call[Skill]:
    """Stores an older version again as the newest one. Raises NotFound."""
    request = requests.encodable(
        lambda: kpb.SkillServiceRollbackRequest(
            owners=core.owners,
            scopes=requests.scopes(scopes),
            name=name,
            version=version,
            reason=reason,
            request_id=requests.fresh_request_id(),
        ),
        "the rollback",
    )
    return Call(rpc.SkillServiceStub, "Rollback", request, _stored(core), retried=True)


def match(
    core: Core,
    /,
    query: str = "",
    *,
    top_k: int | None = None,
    scopes: Iterable[str] | None = None,
    timeout_s: float | None = None,
    **others: Any,
) -> Call[list[MatchedSkill]]:
    """The skills that fit what is to be done, best first, with parameters filled from the owners' memories: top_k of
    them, 3 if None, at most 20. `text` and `limit` are accepted for query and top_k. Raises Timeout when the time does
    not suffice, since a hasty answer could leave out the one that fits.
    """
    query, top_k = requests.guessed("match", others, query=query, top_k=top_k)
    request = requests.encodable(
        lambda: kpb.SkillServiceMatchRequest(
            owners=core.owners, scopes=requests.scopes(scopes), query=query, top_k=top_k
        ),
        "the query",
    )
    return Call(
        rpc.SkillServiceStub,
        "Match",
        request,
        lambda response: [MatchedSkill(match) for match in response.matches],
        timeout_s=timeout_s,
    )


def record_run(
    core: Core,
    name: str,
    outcome: str,
    *,
    note: str = "",
    scopes: Iterable[str] | None = None,
    tool: str = "",
    session_id: str | None = None,
    message_id: str = "",
) -> Call[WriteResult]:
    """Records how a run of a skill went: "success" or "failure", which changes the order of `match`. The result is the
    event that keeps it. Retried with the same request_id. Raises NotFound.
    """
    number: Any = requests.enum_value(kpb.RunOutcome, "RUN_OUTCOME", outcome, "outcome")
    request = requests.encodable(
        lambda: kpb.SkillServiceRecordRunRequest(
            owners=core.owners,
            scopes=requests.scopes(scopes),
            name=name,
            outcome=number,
            note=note,
            source=core.source(tool, session_id, message_id),
            request_id=requests.fresh_request_id(),
        ),
        "the run",
    )

    def read(response: kpb.SkillServiceRecordRunResponse) -> WriteResult:
        core.stored([response.result.at])
        return WriteResult(response.result)

    return Call(rpc.SkillServiceStub, "RecordRun", request, read, retried=True)


def propose(core: Core, *, scope: str | None = None, timeout_s: float | None = None) -> Call[list[Skill]]:
    """Looks for steps that succeeded several times in the owners' events, and keeps them as drafts for `decide`. The
    drafts that this call made; the same steps are never proposed twice. Tried once.
    """
    request = kpb.SkillServiceProposeRequest(owners=core.owners, scope=requests.scope(scope))

    def read(response: kpb.SkillServiceProposeResponse) -> list[Skill]:
        core.stored()
        return [Skill(draft) for draft in response.drafts]

    return Call(rpc.SkillServiceStub, "Propose", request, read, timeout_s=timeout_s)


def decide(
    core: Core, name: str, *, approve: bool, reason: str = "", scopes: Iterable[str] | None = None
) -> Call[Skill]:
    """Approves or rejects a draft. Raises NotFound, and FailedPrecondition for a skill that is no draft."""
    request = requests.encodable(
        lambda: kpb.SkillServiceDecideRequest(
            owners=core.owners,
            scopes=requests.scopes(scopes),
            name=name,
            approve=approve,
            reason=reason,
            request_id=requests.fresh_request_id(),
        ),
        "the decision",
    )
    return Call(rpc.SkillServiceStub, "Decide", request, _stored(core), retried=True)


def _skill(response: Any) -> Skill:
    return Skill(response.skill)


def _stored(core: Core) -> Any:
    """Reads the skill of a mutation's answer."""

    def read(response: Any) -> Skill:
        core.stored()
        return Skill(response.skill)

    return read


class Skills(Resource):
    """Skills of the client's owners: kept with all versions, matched to what is to be done, ranked by how runs went."""

    push = sync_call(push)
    get = sync_call(get)
    list = sync_pages(list_)
    versions = sync_call(versions)
    history = versions
    rollback = sync_call(rollback)
    match = sync_call(match)
    record_run = sync_call(record_run)
    propose = sync_call(propose)
    decide = sync_call(decide)


class AsyncSkills(AsyncResource):
    """`Skills` for asyncio."""

    push = async_call(push)
    get = async_call(get)
    list = async_pages(list_)
    versions = async_call(versions)
    history = versions
    rollback = async_call(rollback)
    match = async_call(match)
    record_run = async_call(record_run)
    propose = async_call(propose)
    decide = async_call(decide)
