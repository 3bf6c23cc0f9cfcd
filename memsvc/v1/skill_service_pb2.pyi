import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memsvc.v1 import memory_pb2 as _memory_pb2
from memsvc.v1 import memory_service_pb2 as _memory_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_OUTCOME_UNSPECIFIED: _ClassVar[RunOutcome]
    RUN_OUTCOME_SUCCESS: _ClassVar[RunOutcome]
    RUN_OUTCOME_FAILURE: _ClassVar[RunOutcome]
RUN_OUTCOME_UNSPECIFIED: RunOutcome
RUN_OUTCOME_SUCCESS: RunOutcome
RUN_OUTCOME_FAILURE: RunOutcome

class Skill(_message.Message):
    __slots__ = ("name", "description", "trigger", "steps", "parameters", "memory_refs", "label", "version", "source", "memory_id", "namespace", "status", "update_time", "success_count", "failure_count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_REFS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    trigger: str
    steps: _containers.RepeatedScalarFieldContainer[str]
    parameters: _containers.RepeatedCompositeFieldContainer[SkillParameter]
    memory_refs: _containers.RepeatedCompositeFieldContainer[MemoryRef]
    label: str
    version: int
    source: str
    memory_id: str
    namespace: _memory_pb2.Namespace
    status: _memory_pb2.Status
    update_time: _timestamp_pb2.Timestamp
    success_count: int
    failure_count: int
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., trigger: _Optional[str] = ..., steps: _Optional[_Iterable[str]] = ..., parameters: _Optional[_Iterable[_Union[SkillParameter, _Mapping]]] = ..., memory_refs: _Optional[_Iterable[_Union[MemoryRef, _Mapping]]] = ..., label: _Optional[str] = ..., version: _Optional[int] = ..., source: _Optional[str] = ..., memory_id: _Optional[str] = ..., namespace: _Optional[_Union[_memory_pb2.Namespace, _Mapping]] = ..., status: _Optional[_Union[_memory_pb2.Status, str]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., success_count: _Optional[int] = ..., failure_count: _Optional[int] = ...) -> None: ...

class SkillParameter(_message.Message):
    __slots__ = ("name", "description", "default_value", "required")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    default_value: _struct_pb2.Value
    required: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., default_value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., required: _Optional[bool] = ...) -> None: ...

class MemoryRef(_message.Message):
    __slots__ = ("parameter", "subject", "query", "type")
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    parameter: str
    subject: str
    query: str
    type: _memory_pb2.MemoryType
    def __init__(self, parameter: _Optional[str] = ..., subject: _Optional[str] = ..., query: _Optional[str] = ..., type: _Optional[_Union[_memory_pb2.MemoryType, str]] = ...) -> None: ...

class SkillServicePushRequest(_message.Message):
    __slots__ = ("owners", "scope", "source", "dry_run", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    source: str
    dry_run: bool
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., source: _Optional[str] = ..., dry_run: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class SkillServicePushResponse(_message.Message):
    __slots__ = ("skill", "changed")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    changed: bool
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ..., changed: _Optional[bool] = ...) -> None: ...

class SkillServiceGetRequest(_message.Message):
    __slots__ = ("owners", "scopes", "name", "version")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    name: str
    version: int
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., name: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class SkillServiceGetResponse(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ...) -> None: ...

class SkillServiceListRequest(_message.Message):
    __slots__ = ("owners", "scopes", "include_drafts", "page_size", "page_token")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DRAFTS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    include_drafts: bool
    page_size: int
    page_token: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., include_drafts: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class SkillServiceListResponse(_message.Message):
    __slots__ = ("skills", "next_page_token")
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    next_page_token: str
    def __init__(self, skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SkillServiceVersionsRequest(_message.Message):
    __slots__ = ("owners", "scopes", "name")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    name: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., name: _Optional[str] = ...) -> None: ...

class SkillServiceVersionsResponse(_message.Message):
    __slots__ = ("skills",)
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    def __init__(self, skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ...) -> None: ...

class SkillServiceRollbackRequest(_message.Message):
    __slots__ = ("owners", "scopes", "name", "version", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    name: str
    version: int
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., name: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SkillServiceRollbackResponse(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ...) -> None: ...

class SkillServiceMatchRequest(_message.Message):
    __slots__ = ("owners", "scopes", "query", "top_k")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    query: str
    top_k: int
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., query: _Optional[str] = ..., top_k: _Optional[int] = ...) -> None: ...

class ResolvedParameter(_message.Message):
    __slots__ = ("name", "value", "memory_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: _struct_pb2.Value
    memory_id: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., memory_id: _Optional[str] = ...) -> None: ...

class MatchedSkill(_message.Message):
    __slots__ = ("skill", "score", "parameters", "missing")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    score: float
    parameters: _containers.RepeatedCompositeFieldContainer[ResolvedParameter]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ..., score: _Optional[float] = ..., parameters: _Optional[_Iterable[_Union[ResolvedParameter, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class SkillServiceMatchResponse(_message.Message):
    __slots__ = ("matches",)
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[MatchedSkill]
    def __init__(self, matches: _Optional[_Iterable[_Union[MatchedSkill, _Mapping]]] = ...) -> None: ...

class SkillServiceRecordRunRequest(_message.Message):
    __slots__ = ("owners", "scopes", "name", "outcome", "note", "source", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    name: str
    outcome: RunOutcome
    note: str
    source: _memory_pb2.Source
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., name: _Optional[str] = ..., outcome: _Optional[_Union[RunOutcome, str]] = ..., note: _Optional[str] = ..., source: _Optional[_Union[_memory_pb2.Source, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SkillServiceRecordRunResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _memory_service_pb2.WriteResult
    def __init__(self, result: _Optional[_Union[_memory_service_pb2.WriteResult, _Mapping]] = ...) -> None: ...

class SkillServiceProposeRequest(_message.Message):
    __slots__ = ("owners", "scope")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ...) -> None: ...

class SkillServiceProposeResponse(_message.Message):
    __slots__ = ("drafts",)
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    drafts: _containers.RepeatedCompositeFieldContainer[Skill]
    def __init__(self, drafts: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ...) -> None: ...

class SkillServiceDecideRequest(_message.Message):
    __slots__ = ("owners", "scopes", "name", "approve", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    APPROVE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    name: str
    approve: bool
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., name: _Optional[str] = ..., approve: _Optional[bool] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SkillServiceDecideResponse(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ...) -> None: ...
