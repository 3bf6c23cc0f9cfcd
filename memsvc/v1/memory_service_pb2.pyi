import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memsvc.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WriteOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WRITE_OUTCOME_UNSPECIFIED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_CREATED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_MERGED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_SUPERSEDED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_REJECTED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_CONTESTED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_STAGED: _ClassVar[WriteOutcome]
    WRITE_OUTCOME_PENDING: _ClassVar[WriteOutcome]

class RecallPath(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_PATH_UNSPECIFIED: _ClassVar[RecallPath]
    RECALL_PATH_VECTOR: _ClassVar[RecallPath]
    RECALL_PATH_LEXICAL: _ClassVar[RecallPath]
    RECALL_PATH_EXACT: _ClassVar[RecallPath]
    RECALL_PATH_RECENT: _ClassVar[RecallPath]
    RECALL_PATH_NEIGHBOUR: _ClassVar[RecallPath]

class Degraded(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEGRADED_UNSPECIFIED: _ClassVar[Degraded]
    DEGRADED_VECTOR_SKIPPED: _ClassVar[Degraded]
    DEGRADED_NAMESPACES_SKIPPED: _ClassVar[Degraded]

class ChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_KIND_UNSPECIFIED: _ClassVar[ChangeKind]
    CHANGE_KIND_CREATED: _ClassVar[ChangeKind]
    CHANGE_KIND_UPDATED: _ClassVar[ChangeKind]
    CHANGE_KIND_SUPERSEDED: _ClassVar[ChangeKind]
    CHANGE_KIND_FORGOTTEN: _ClassVar[ChangeKind]
    CHANGE_KIND_PURGED: _ClassVar[ChangeKind]

class Speaker(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SPEAKER_UNSPECIFIED: _ClassVar[Speaker]
    SPEAKER_USER: _ClassVar[Speaker]
    SPEAKER_AGENT: _ClassVar[Speaker]
    SPEAKER_TOOL: _ClassVar[Speaker]
    SPEAKER_SYSTEM: _ClassVar[Speaker]

class VerdictDecision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_DECISION_UNSPECIFIED: _ClassVar[VerdictDecision]
    VERDICT_DECISION_KEPT: _ClassVar[VerdictDecision]
    VERDICT_DECISION_DROPPED: _ClassVar[VerdictDecision]
    VERDICT_DECISION_STAGED: _ClassVar[VerdictDecision]

class FunnelStage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FUNNEL_STAGE_UNSPECIFIED: _ClassVar[FunnelStage]
    FUNNEL_STAGE_RULE: _ClassVar[FunnelStage]
    FUNNEL_STAGE_SIGNAL: _ClassVar[FunnelStage]
    FUNNEL_STAGE_MODEL: _ClassVar[FunnelStage]

class ReviewAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REVIEW_ACTION_UNSPECIFIED: _ClassVar[ReviewAction]
    REVIEW_ACTION_CONFIRM: _ClassVar[ReviewAction]
    REVIEW_ACTION_CORRECT: _ClassVar[ReviewAction]
    REVIEW_ACTION_FORGET: _ClassVar[ReviewAction]
    REVIEW_ACTION_BLOCK: _ClassVar[ReviewAction]

class ConflictResolution(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFLICT_RESOLUTION_UNSPECIFIED: _ClassVar[ConflictResolution]
    CONFLICT_RESOLUTION_KEEP_NEWER: _ClassVar[ConflictResolution]
    CONFLICT_RESOLUTION_KEEP_OLDER: _ClassVar[ConflictResolution]
    CONFLICT_RESOLUTION_KEEP_BOTH: _ClassVar[ConflictResolution]
WRITE_OUTCOME_UNSPECIFIED: WriteOutcome
WRITE_OUTCOME_CREATED: WriteOutcome
WRITE_OUTCOME_MERGED: WriteOutcome
WRITE_OUTCOME_SUPERSEDED: WriteOutcome
WRITE_OUTCOME_REJECTED: WriteOutcome
WRITE_OUTCOME_CONTESTED: WriteOutcome
WRITE_OUTCOME_STAGED: WriteOutcome
WRITE_OUTCOME_PENDING: WriteOutcome
RECALL_PATH_UNSPECIFIED: RecallPath
RECALL_PATH_VECTOR: RecallPath
RECALL_PATH_LEXICAL: RecallPath
RECALL_PATH_EXACT: RecallPath
RECALL_PATH_RECENT: RecallPath
RECALL_PATH_NEIGHBOUR: RecallPath
DEGRADED_UNSPECIFIED: Degraded
DEGRADED_VECTOR_SKIPPED: Degraded
DEGRADED_NAMESPACES_SKIPPED: Degraded
CHANGE_KIND_UNSPECIFIED: ChangeKind
CHANGE_KIND_CREATED: ChangeKind
CHANGE_KIND_UPDATED: ChangeKind
CHANGE_KIND_SUPERSEDED: ChangeKind
CHANGE_KIND_FORGOTTEN: ChangeKind
CHANGE_KIND_PURGED: ChangeKind
SPEAKER_UNSPECIFIED: Speaker
SPEAKER_USER: Speaker
SPEAKER_AGENT: Speaker
SPEAKER_TOOL: Speaker
SPEAKER_SYSTEM: Speaker
VERDICT_DECISION_UNSPECIFIED: VerdictDecision
VERDICT_DECISION_KEPT: VerdictDecision
VERDICT_DECISION_DROPPED: VerdictDecision
VERDICT_DECISION_STAGED: VerdictDecision
FUNNEL_STAGE_UNSPECIFIED: FunnelStage
FUNNEL_STAGE_RULE: FunnelStage
FUNNEL_STAGE_SIGNAL: FunnelStage
FUNNEL_STAGE_MODEL: FunnelStage
REVIEW_ACTION_UNSPECIFIED: ReviewAction
REVIEW_ACTION_CONFIRM: ReviewAction
REVIEW_ACTION_CORRECT: ReviewAction
REVIEW_ACTION_FORGET: ReviewAction
REVIEW_ACTION_BLOCK: ReviewAction
CONFLICT_RESOLUTION_UNSPECIFIED: ConflictResolution
CONFLICT_RESOLUTION_KEEP_NEWER: ConflictResolution
CONFLICT_RESOLUTION_KEEP_OLDER: ConflictResolution
CONFLICT_RESOLUTION_KEEP_BOTH: ConflictResolution

class MemoryDraft(_message.Message):
    __slots__ = ("content", "type", "layer", "scope", "subject", "tags", "metadata", "source", "importance", "confidence", "occur_time", "expire_time", "supersedes", "event")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    OCCUR_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    content: str
    type: _memory_pb2.MemoryType
    layer: _memory_pb2.Layer
    scope: _memory_pb2.Scope
    subject: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    source: _memory_pb2.Source
    importance: float
    confidence: float
    occur_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    supersedes: _containers.RepeatedScalarFieldContainer[str]
    event: _memory_pb2.EventDetail
    def __init__(self, content: _Optional[str] = ..., type: _Optional[_Union[_memory_pb2.MemoryType, str]] = ..., layer: _Optional[_Union[_memory_pb2.Layer, str]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., subject: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., source: _Optional[_Union[_memory_pb2.Source, _Mapping]] = ..., importance: _Optional[float] = ..., confidence: _Optional[float] = ..., occur_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., supersedes: _Optional[_Iterable[str]] = ..., event: _Optional[_Union[_memory_pb2.EventDetail, _Mapping]] = ...) -> None: ...

class WriteRequest(_message.Message):
    __slots__ = ("owners", "memory", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory: MemoryDraft
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory: _Optional[_Union[MemoryDraft, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class WriteResult(_message.Message):
    __slots__ = ("memory_id", "outcome", "at", "version", "conflicting_ids", "evidence")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONFLICTING_IDS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    outcome: WriteOutcome
    at: _memory_pb2.NamespaceSequence
    version: int
    conflicting_ids: _containers.RepeatedScalarFieldContainer[str]
    evidence: _struct_pb2.Struct
    def __init__(self, memory_id: _Optional[str] = ..., outcome: _Optional[_Union[WriteOutcome, str]] = ..., at: _Optional[_Union[_memory_pb2.NamespaceSequence, _Mapping]] = ..., version: _Optional[int] = ..., conflicting_ids: _Optional[_Iterable[str]] = ..., evidence: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: WriteResult
    def __init__(self, result: _Optional[_Union[WriteResult, _Mapping]] = ...) -> None: ...

class BatchWriteRequest(_message.Message):
    __slots__ = ("owners", "memories", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memories: _containers.RepeatedCompositeFieldContainer[MemoryDraft]
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memories: _Optional[_Iterable[_Union[MemoryDraft, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class BatchWriteResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[WriteResult]
    def __init__(self, results: _Optional[_Iterable[_Union[WriteResult, _Mapping]]] = ...) -> None: ...

class RecallWeights(_message.Message):
    __slots__ = ("vector", "lexical", "time", "importance", "neighbour")
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOUR_FIELD_NUMBER: _ClassVar[int]
    vector: float
    lexical: float
    time: float
    importance: float
    neighbour: float
    def __init__(self, vector: _Optional[float] = ..., lexical: _Optional[float] = ..., time: _Optional[float] = ..., importance: _Optional[float] = ..., neighbour: _Optional[float] = ...) -> None: ...

class RecallRequest(_message.Message):
    __slots__ = ("owners", "scopes", "query", "top_k", "filter", "min_score", "weights", "include_inactive", "as_of", "min_sequences", "latency_budget")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_INACTIVE_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    MIN_SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    LATENCY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    query: str
    top_k: int
    filter: _memory_pb2.Filter
    min_score: float
    weights: RecallWeights
    include_inactive: bool
    as_of: _timestamp_pb2.Timestamp
    min_sequences: _containers.RepeatedCompositeFieldContainer[_memory_pb2.NamespaceSequence]
    latency_budget: _duration_pb2.Duration
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., query: _Optional[str] = ..., top_k: _Optional[int] = ..., filter: _Optional[_Union[_memory_pb2.Filter, _Mapping]] = ..., min_score: _Optional[float] = ..., weights: _Optional[_Union[RecallWeights, _Mapping]] = ..., include_inactive: _Optional[bool] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., min_sequences: _Optional[_Iterable[_Union[_memory_pb2.NamespaceSequence, _Mapping]]] = ..., latency_budget: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ScoreComponents(_message.Message):
    __slots__ = ("vector", "lexical", "exact", "time", "importance", "neighbour", "cosine", "bm25")
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOUR_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    BM25_FIELD_NUMBER: _ClassVar[int]
    vector: float
    lexical: float
    exact: float
    time: float
    importance: float
    neighbour: float
    cosine: float
    bm25: float
    def __init__(self, vector: _Optional[float] = ..., lexical: _Optional[float] = ..., exact: _Optional[float] = ..., time: _Optional[float] = ..., importance: _Optional[float] = ..., neighbour: _Optional[float] = ..., cosine: _Optional[float] = ..., bm25: _Optional[float] = ...) -> None: ...

class Hit(_message.Message):
    __slots__ = ("memory", "score", "components", "paths")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    COMPONENTS_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    score: float
    components: ScoreComponents
    paths: _containers.RepeatedScalarFieldContainer[RecallPath]
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., score: _Optional[float] = ..., components: _Optional[_Union[ScoreComponents, _Mapping]] = ..., paths: _Optional[_Iterable[_Union[RecallPath, str]]] = ...) -> None: ...

class RecallTimings(_message.Message):
    __slots__ = ("total_us", "plan_us", "embed_us", "search_us", "fetch_us", "vector_cached")
    TOTAL_US_FIELD_NUMBER: _ClassVar[int]
    PLAN_US_FIELD_NUMBER: _ClassVar[int]
    EMBED_US_FIELD_NUMBER: _ClassVar[int]
    SEARCH_US_FIELD_NUMBER: _ClassVar[int]
    FETCH_US_FIELD_NUMBER: _ClassVar[int]
    VECTOR_CACHED_FIELD_NUMBER: _ClassVar[int]
    total_us: int
    plan_us: int
    embed_us: int
    search_us: int
    fetch_us: int
    vector_cached: bool
    def __init__(self, total_us: _Optional[int] = ..., plan_us: _Optional[int] = ..., embed_us: _Optional[int] = ..., search_us: _Optional[int] = ..., fetch_us: _Optional[int] = ..., vector_cached: _Optional[bool] = ...) -> None: ...

class RecallResponse(_message.Message):
    __slots__ = ("hits", "degraded", "sequences", "timings")
    HITS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[Hit]
    degraded: _containers.RepeatedScalarFieldContainer[Degraded]
    sequences: _containers.RepeatedCompositeFieldContainer[_memory_pb2.NamespaceSequence]
    timings: RecallTimings
    def __init__(self, hits: _Optional[_Iterable[_Union[Hit, _Mapping]]] = ..., degraded: _Optional[_Iterable[_Union[Degraded, str]]] = ..., sequences: _Optional[_Iterable[_Union[_memory_pb2.NamespaceSequence, _Mapping]]] = ..., timings: _Optional[_Union[RecallTimings, _Mapping]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("owners", "memory_id", "version")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_id: str
    version: int
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("memory",)
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("owners", "scopes", "filter", "include_inactive", "page_size", "page_token")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_INACTIVE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    filter: _memory_pb2.Filter
    include_inactive: bool
    page_size: int
    page_token: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., filter: _Optional[_Union[_memory_pb2.Filter, _Mapping]] = ..., include_inactive: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("memories", "next_page_token")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    next_page_token: str
    def __init__(self, memories: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("owners", "memory_id", "patch", "update_mask", "etag", "request_id", "reason")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_id: str
    patch: MemoryPatch
    update_mask: _field_mask_pb2.FieldMask
    etag: str
    request_id: str
    reason: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_id: _Optional[str] = ..., patch: _Optional[_Union[MemoryPatch, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class MemoryPatch(_message.Message):
    __slots__ = ("content", "type", "subject", "tags", "metadata", "importance", "confidence", "occur_time", "expire_time")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    OCCUR_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    content: str
    type: _memory_pb2.MemoryType
    subject: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    importance: float
    confidence: float
    occur_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, content: _Optional[str] = ..., type: _Optional[_Union[_memory_pb2.MemoryType, str]] = ..., subject: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., importance: _Optional[float] = ..., confidence: _Optional[float] = ..., occur_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class UpdateResponse(_message.Message):
    __slots__ = ("memory",)
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ...) -> None: ...

class ForgetRequest(_message.Message):
    __slots__ = ("owners", "memory_ids", "all", "scopes", "filter", "reason", "etag", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    all: bool
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    filter: _memory_pb2.Filter
    reason: str
    etag: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_ids: _Optional[_Iterable[str]] = ..., all: _Optional[bool] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., filter: _Optional[_Union[_memory_pb2.Filter, _Mapping]] = ..., reason: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ForgetResponse(_message.Message):
    __slots__ = ("forgotten_count", "already_forgotten_ids", "at")
    FORGOTTEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ALREADY_FORGOTTEN_IDS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    forgotten_count: int
    already_forgotten_ids: _containers.RepeatedScalarFieldContainer[str]
    at: _containers.RepeatedCompositeFieldContainer[_memory_pb2.NamespaceSequence]
    def __init__(self, forgotten_count: _Optional[int] = ..., already_forgotten_ids: _Optional[_Iterable[str]] = ..., at: _Optional[_Iterable[_Union[_memory_pb2.NamespaceSequence, _Mapping]]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("at", "kind", "time", "actor", "reason", "request_id", "after", "before", "evidence")
    AT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    at: _memory_pb2.NamespaceSequence
    kind: ChangeKind
    time: _timestamp_pb2.Timestamp
    actor: str
    reason: str
    request_id: str
    after: _memory_pb2.Memory
    before: _memory_pb2.Memory
    evidence: _struct_pb2.Struct
    def __init__(self, at: _Optional[_Union[_memory_pb2.NamespaceSequence, _Mapping]] = ..., kind: _Optional[_Union[ChangeKind, str]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ..., after: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., before: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., evidence: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ("owners", "memory_id", "page_size", "page_token")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_id: str
    page_size: int
    page_token: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class HistoryResponse(_message.Message):
    __slots__ = ("changes", "next_page_token")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    next_page_token: str
    def __init__(self, changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("owners", "scopes", "after", "recent_count")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    RECENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    after: _containers.RepeatedCompositeFieldContainer[_memory_pb2.NamespaceSequence]
    recent_count: int
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., after: _Optional[_Iterable[_Union[_memory_pb2.NamespaceSequence, _Mapping]]] = ..., recent_count: _Optional[int] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("change", "started_at", "recent")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    RECENT_FIELD_NUMBER: _ClassVar[int]
    change: Change
    started_at: _containers.RepeatedCompositeFieldContainer[_memory_pb2.NamespaceSequence]
    recent: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    def __init__(self, change: _Optional[_Union[Change, _Mapping]] = ..., started_at: _Optional[_Iterable[_Union[_memory_pb2.NamespaceSequence, _Mapping]]] = ..., recent: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("name", "arguments")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    arguments: str
    def __init__(self, name: _Optional[str] = ..., arguments: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("speaker", "content", "time", "tool_calls", "message_id")
    SPEAKER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    speaker: Speaker
    content: str
    time: _timestamp_pb2.Timestamp
    tool_calls: _containers.RepeatedCompositeFieldContainer[ToolCall]
    message_id: str
    def __init__(self, speaker: _Optional[_Union[Speaker, str]] = ..., content: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tool_calls: _Optional[_Iterable[_Union[ToolCall, _Mapping]]] = ..., message_id: _Optional[str] = ...) -> None: ...

class IngestRequest(_message.Message):
    __slots__ = ("owners", "scope", "messages", "session_id", "tool", "dry_run", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    session_id: str
    tool: str
    dry_run: bool
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., session_id: _Optional[str] = ..., tool: _Optional[str] = ..., dry_run: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class IngestedMemory(_message.Message):
    __slots__ = ("memory", "stable", "result")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    STABLE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    memory: MemoryDraft
    stable: bool
    result: WriteResult
    def __init__(self, memory: _Optional[_Union[MemoryDraft, _Mapping]] = ..., stable: _Optional[bool] = ..., result: _Optional[_Union[WriteResult, _Mapping]] = ...) -> None: ...

class MessageVerdict(_message.Message):
    __slots__ = ("decision", "stage", "reason", "memories", "fell_back")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    FELL_BACK_FIELD_NUMBER: _ClassVar[int]
    decision: VerdictDecision
    stage: FunnelStage
    reason: str
    memories: _containers.RepeatedCompositeFieldContainer[IngestedMemory]
    fell_back: bool
    def __init__(self, decision: _Optional[_Union[VerdictDecision, str]] = ..., stage: _Optional[_Union[FunnelStage, str]] = ..., reason: _Optional[str] = ..., memories: _Optional[_Iterable[_Union[IngestedMemory, _Mapping]]] = ..., fell_back: _Optional[bool] = ...) -> None: ...

class IngestResponse(_message.Message):
    __slots__ = ("verdicts",)
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    verdicts: _containers.RepeatedCompositeFieldContainer[MessageVerdict]
    def __init__(self, verdicts: _Optional[_Iterable[_Union[MessageVerdict, _Mapping]]] = ...) -> None: ...

class ReviewDecision(_message.Message):
    __slots__ = ("memory_id", "action", "content", "reason")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    action: ReviewAction
    content: str
    reason: str
    def __init__(self, memory_id: _Optional[str] = ..., action: _Optional[_Union[ReviewAction, str]] = ..., content: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ReviewRequest(_message.Message):
    __slots__ = ("owners", "decisions", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    decisions: _containers.RepeatedCompositeFieldContainer[ReviewDecision]
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., decisions: _Optional[_Iterable[_Union[ReviewDecision, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReviewResponse(_message.Message):
    __slots__ = ("memories",)
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    def __init__(self, memories: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ...) -> None: ...

class ListConflictsRequest(_message.Message):
    __slots__ = ("owners", "scopes", "page_size", "page_token")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    page_size: int
    page_token: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class Conflict(_message.Message):
    __slots__ = ("newer", "older", "summary", "evidence")
    NEWER_FIELD_NUMBER: _ClassVar[int]
    OLDER_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    newer: _memory_pb2.Memory
    older: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    summary: str
    evidence: _struct_pb2.Struct
    def __init__(self, newer: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., older: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ..., summary: _Optional[str] = ..., evidence: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ListConflictsResponse(_message.Message):
    __slots__ = ("conflicts", "next_page_token")
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    conflicts: _containers.RepeatedCompositeFieldContainer[Conflict]
    next_page_token: str
    def __init__(self, conflicts: _Optional[_Iterable[_Union[Conflict, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ResolveConflictRequest(_message.Message):
    __slots__ = ("owners", "memory_id", "resolution", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_id: str
    resolution: ConflictResolution
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_id: _Optional[str] = ..., resolution: _Optional[_Union[ConflictResolution, str]] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResolveConflictResponse(_message.Message):
    __slots__ = ("memories",)
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    def __init__(self, memories: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ...) -> None: ...
