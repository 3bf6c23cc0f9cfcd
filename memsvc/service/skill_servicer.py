"""The SkillService of the contract on top of the memory room.

Purpose: reads requests, calls the room, writes answers; holds no rules of its own.

Threading: methods run on the server's threads.

Rejected: a budget per Match (it is asked once a task, not once a turn; the caller's deadline is enough).
"""

from __future__ import annotations

import grpc

from memsvc.errors import InvalidArgument
from memsvc.memory.drafts import check_length, check_source
from memsvc.memory.listing import page_size
from memsvc.memory.recall import QUERY_MAX_CHARS
from memsvc.memory.skills.patterns import Proposals
from memsvc.memory.skills.skills import Match, RunOutcome, Skill, Skills
from memsvc.model import Scope
from memsvc.service import convert
from memsvc.service.calls import actor, answers, left_s, mutation, named
from memsvc.v1 import skill_service_pb2 as spb
from memsvc.v1 import skill_service_pb2_grpc as rpc

MATCH_LIMIT_S = 10.0
_OUTCOMES = {spb.RUN_OUTCOME_SUCCESS: RunOutcome.SUCCESS, spb.RUN_OUTCOME_FAILURE: RunOutcome.FAILURE}


class SkillServicer(rpc.SkillServiceServicer):
    """See the module."""

    def __init__(self, skills: Skills, proposals: Proposals) -> None:
        self._skills = skills
        self._proposals = proposals

    @answers
    def Push(self, request: spb.SkillServicePushRequest, context: grpc.ServicerContext) -> spb.SkillServicePushResponse:
        """Validates and stores a version."""
        scope = convert.optional_enum(Scope, request.scope, "scope")
        skill, changed = self._skills.push(
            convert.owners(request.owners), scope, request.source, mutation(request), dry_run=request.dry_run
        )
        return spb.SkillServicePushResponse(skill=_skill(skill), changed=changed)

    @answers
    def Get(self, request: spb.SkillServiceGetRequest, context: grpc.ServicerContext) -> spb.SkillServiceGetResponse:
        """Reads a skill."""
        return spb.SkillServiceGetResponse(
            skill=_skill(self._skills.get(named(request), request.name, request.version))
        )

    @answers
    def List(self, request: spb.SkillServiceListRequest, context: grpc.ServicerContext) -> spb.SkillServiceListResponse:
        """Lists skills by name."""
        size = page_size(request.page_size)
        page, token = self._skills.list_page(named(request), request.include_drafts, size, request.page_token)
        return spb.SkillServiceListResponse(skills=[_skill(skill) for skill in page], next_page_token=token)

    @answers
    def Versions(
        self, request: spb.SkillServiceVersionsRequest, context: grpc.ServicerContext
    ) -> spb.SkillServiceVersionsResponse:
        """All versions, newest first."""
        versions = self._skills.versions(named(request), request.name)
        return spb.SkillServiceVersionsResponse(skills=[_skill(skill) for skill in versions])

    @answers
    def Rollback(
        self, request: spb.SkillServiceRollbackRequest, context: grpc.ServicerContext
    ) -> spb.SkillServiceRollbackResponse:
        """Stores an older version again."""
        skill = self._skills.rollback(
            convert.owners(request.owners),
            named(request),
            request.name,
            request.version,
            request.reason,
            mutation(request),
        )
        return spb.SkillServiceRollbackResponse(skill=_skill(skill))

    @answers
    def Match(
        self, request: spb.SkillServiceMatchRequest, context: grpc.ServicerContext
    ) -> spb.SkillServiceMatchResponse:
        """The skills that fit a query."""
        check_length(request.query, QUERY_MAX_CHARS, "query")
        matches = self._skills.match(
            named(request), request.query, request.top_k, lambda: left_s(context, MATCH_LIMIT_S)
        )
        return spb.SkillServiceMatchResponse(matches=[_match(match) for match in matches])

    @answers
    def RecordRun(
        self, request: spb.SkillServiceRecordRunRequest, context: grpc.ServicerContext
    ) -> spb.SkillServiceRecordRunResponse:
        """Records how a run went."""
        if request.outcome not in _OUTCOMES:
            raise InvalidArgument("outcome must be SUCCESS or FAILURE", field="outcome")
        source = convert.source(request.source)
        check_source(source, "source")
        result = self._skills.record_run(
            convert.owners(request.owners),
            named(request),
            request.name,
            _OUTCOMES[request.outcome],
            request.note,
            source,
            mutation(request),
        )
        return spb.SkillServiceRecordRunResponse(result=convert.write_result(result))

    @answers
    def Propose(
        self, request: spb.SkillServiceProposeRequest, context: grpc.ServicerContext
    ) -> spb.SkillServiceProposeResponse:
        """Looks for step patterns that worked."""
        scope = convert.optional_enum(Scope, request.scope, "scope")
        drafts = self._proposals.propose(convert.owners(request.owners), scope, actor())
        return spb.SkillServiceProposeResponse(drafts=[_skill(skill) for skill in drafts])

    @answers
    def Decide(
        self, request: spb.SkillServiceDecideRequest, context: grpc.ServicerContext
    ) -> spb.SkillServiceDecideResponse:
        """Approves or rejects a draft."""
        skill = self._skills.decide(
            convert.owners(request.owners),
            named(request),
            request.name,
            request.approve,
            request.reason,
            mutation(request),
        )
        return spb.SkillServiceDecideResponse(skill=_skill(skill))


def _skill(skill: Skill) -> spb.Skill:
    document, memory = skill.document, skill.memory
    parameters = []
    for parameter in document.parameters:
        message = spb.SkillParameter(
            name=parameter.name, description=parameter.description, required=parameter.required
        )
        if parameter.default is not None:
            message.default_value.CopyFrom(convert.value_message(parameter.default))
        parameters.append(message)
    return spb.Skill(
        name=document.name,
        description=document.description,
        trigger=document.trigger,
        steps=document.steps,
        parameters=parameters,
        memory_refs=[
            spb.MemoryRef(
                parameter=ref.parameter,
                subject=ref.subject,
                query=ref.query,
                type=int(ref.type or 0),  # type: ignore[arg-type]
            )
            for ref in document.memory_refs
        ],
        label=document.label,
        version=memory.version,
        source=memory.skill,
        memory_id=memory.memory_id,
        namespace=convert.namespace_message(memory.namespace),
        status=int(memory.status),  # type: ignore[arg-type]
        update_time=convert.timestamp(memory.update_time_us),
        success_count=skill.success_count,
        failure_count=skill.failure_count,
    )


def _match(match: Match) -> spb.MatchedSkill:
    message = spb.MatchedSkill(skill=_skill(match.skill), score=match.score, missing=match.missing)
    for resolved in match.parameters:
        parameter = message.parameters.add(name=resolved.name, memory_id=resolved.memory_id)
        if resolved.value is not None:
            parameter.value.CopyFrom(convert.value_message(resolved.value))
    return message
