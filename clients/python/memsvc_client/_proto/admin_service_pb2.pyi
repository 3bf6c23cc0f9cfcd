import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import erasure_service_pb2 as _erasure_service_pb2
from . import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LifecycleAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIFECYCLE_ACTION_UNSPECIFIED: _ClassVar[LifecycleAction]
    LIFECYCLE_ACTION_FADE: _ClassVar[LifecycleAction]
    LIFECYCLE_ACTION_ARCHIVE: _ClassVar[LifecycleAction]
    LIFECYCLE_ACTION_EXPIRE: _ClassVar[LifecycleAction]
    LIFECYCLE_ACTION_PROPOSE: _ClassVar[LifecycleAction]

class ReindexState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REINDEX_STATE_UNSPECIFIED: _ClassVar[ReindexState]
    REINDEX_STATE_IDLE: _ClassVar[ReindexState]
    REINDEX_STATE_RUNNING: _ClassVar[ReindexState]
    REINDEX_STATE_DONE: _ClassVar[ReindexState]
    REINDEX_STATE_FAILED: _ClassVar[ReindexState]
LIFECYCLE_ACTION_UNSPECIFIED: LifecycleAction
LIFECYCLE_ACTION_FADE: LifecycleAction
LIFECYCLE_ACTION_ARCHIVE: LifecycleAction
LIFECYCLE_ACTION_EXPIRE: LifecycleAction
LIFECYCLE_ACTION_PROPOSE: LifecycleAction
REINDEX_STATE_UNSPECIFIED: ReindexState
REINDEX_STATE_IDLE: ReindexState
REINDEX_STATE_RUNNING: ReindexState
REINDEX_STATE_DONE: ReindexState
REINDEX_STATE_FAILED: ReindexState

class Delegation(_message.Message):
    __slots__ = ("actor_agent_id", "parent_token_id")
    ACTOR_AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    actor_agent_id: str
    parent_token_id: str
    def __init__(self, actor_agent_id: _Optional[str] = ..., parent_token_id: _Optional[str] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("token_id", "name", "tenant", "agent_id", "user_ids", "project_ids", "grants", "read_only", "admin", "issue_time", "expire_time", "revoke_time", "last_use_time", "key_id", "issuer", "reads_per_minute", "writes_per_minute", "delegations")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_IDS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_IDS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    ADMIN_FIELD_NUMBER: _ClassVar[int]
    ISSUE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    REVOKE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_USE_TIME_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    READS_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    WRITES_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    DELEGATIONS_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    name: str
    tenant: str
    agent_id: str
    user_ids: _containers.RepeatedScalarFieldContainer[str]
    project_ids: _containers.RepeatedScalarFieldContainer[str]
    grants: _containers.RepeatedScalarFieldContainer[str]
    read_only: bool
    admin: bool
    issue_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    revoke_time: _timestamp_pb2.Timestamp
    last_use_time: _timestamp_pb2.Timestamp
    key_id: str
    issuer: str
    reads_per_minute: int
    writes_per_minute: int
    delegations: _containers.RepeatedCompositeFieldContainer[Delegation]
    def __init__(self, token_id: _Optional[str] = ..., name: _Optional[str] = ..., tenant: _Optional[str] = ..., agent_id: _Optional[str] = ..., user_ids: _Optional[_Iterable[str]] = ..., project_ids: _Optional[_Iterable[str]] = ..., grants: _Optional[_Iterable[str]] = ..., read_only: _Optional[bool] = ..., admin: _Optional[bool] = ..., issue_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revoke_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_use_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key_id: _Optional[str] = ..., issuer: _Optional[str] = ..., reads_per_minute: _Optional[int] = ..., writes_per_minute: _Optional[int] = ..., delegations: _Optional[_Iterable[_Union[Delegation, _Mapping]]] = ...) -> None: ...

class CreateTokenRequest(_message.Message):
    __slots__ = ("name", "tenant", "agent_id", "user_ids", "project_ids", "grants", "read_only", "admin", "ttl", "reads_per_minute", "writes_per_minute")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_IDS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_IDS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    ADMIN_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    READS_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    WRITES_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    tenant: str
    agent_id: str
    user_ids: _containers.RepeatedScalarFieldContainer[str]
    project_ids: _containers.RepeatedScalarFieldContainer[str]
    grants: _containers.RepeatedScalarFieldContainer[str]
    read_only: bool
    admin: bool
    ttl: _duration_pb2.Duration
    reads_per_minute: int
    writes_per_minute: int
    def __init__(self, name: _Optional[str] = ..., tenant: _Optional[str] = ..., agent_id: _Optional[str] = ..., user_ids: _Optional[_Iterable[str]] = ..., project_ids: _Optional[_Iterable[str]] = ..., grants: _Optional[_Iterable[str]] = ..., read_only: _Optional[bool] = ..., admin: _Optional[bool] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reads_per_minute: _Optional[int] = ..., writes_per_minute: _Optional[int] = ...) -> None: ...

class CreateTokenResponse(_message.Message):
    __slots__ = ("secret", "token")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    secret: str
    token: Token
    def __init__(self, secret: _Optional[str] = ..., token: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class GetTokenRequest(_message.Message):
    __slots__ = ("tenant", "token_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    token_id: str
    def __init__(self, tenant: _Optional[str] = ..., token_id: _Optional[str] = ...) -> None: ...

class GetTokenResponse(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: Token
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class ListTokensRequest(_message.Message):
    __slots__ = ("tenant", "page_size", "page_token")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    page_size: int
    page_token: str
    def __init__(self, tenant: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTokensResponse(_message.Message):
    __slots__ = ("tokens", "next_page_token")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    next_page_token: str
    def __init__(self, tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RevokeTokenRequest(_message.Message):
    __slots__ = ("tenant", "token_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    token_id: str
    def __init__(self, tenant: _Optional[str] = ..., token_id: _Optional[str] = ...) -> None: ...

class RevokeTokenResponse(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: Token
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class RotateKeysRequest(_message.Message):
    __slots__ = ("drop_old",)
    DROP_OLD_FIELD_NUMBER: _ClassVar[int]
    drop_old: bool
    def __init__(self, drop_old: _Optional[bool] = ...) -> None: ...

class RotateKeysResponse(_message.Message):
    __slots__ = ("key_id", "dropped_key_ids")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    DROPPED_KEY_IDS_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    dropped_key_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key_id: _Optional[str] = ..., dropped_key_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class LifecycleStep(_message.Message):
    __slots__ = ("memory_id", "namespace", "action", "retention", "reason")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    namespace: _memory_pb2.Namespace
    action: LifecycleAction
    retention: float
    reason: str
    def __init__(self, memory_id: _Optional[str] = ..., namespace: _Optional[_Union[_memory_pb2.Namespace, _Mapping]] = ..., action: _Optional[_Union[LifecycleAction, str]] = ..., retention: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class LifecycleCounts(_message.Message):
    __slots__ = ("seen_count", "faded_count", "archived_count", "expired_count", "proposed_count")
    SEEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    FADED_COUNT_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    seen_count: int
    faded_count: int
    archived_count: int
    expired_count: int
    proposed_count: int
    def __init__(self, seen_count: _Optional[int] = ..., faded_count: _Optional[int] = ..., archived_count: _Optional[int] = ..., expired_count: _Optional[int] = ..., proposed_count: _Optional[int] = ...) -> None: ...

class PlanLifecycleRequest(_message.Message):
    __slots__ = ("owners", "max_steps", "at_time")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    AT_TIME_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    max_steps: int
    at_time: _timestamp_pb2.Timestamp
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., max_steps: _Optional[int] = ..., at_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PlanLifecycleResponse(_message.Message):
    __slots__ = ("counts", "steps")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    counts: LifecycleCounts
    steps: _containers.RepeatedCompositeFieldContainer[LifecycleStep]
    def __init__(self, counts: _Optional[_Union[LifecycleCounts, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[LifecycleStep, _Mapping]]] = ...) -> None: ...

class RunLifecycleRequest(_message.Message):
    __slots__ = ("owners",)
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ...) -> None: ...

class RunLifecycleResponse(_message.Message):
    __slots__ = ("counts",)
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    counts: LifecycleCounts
    def __init__(self, counts: _Optional[_Union[LifecycleCounts, _Mapping]] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NamespaceStats(_message.Message):
    __slots__ = ("at", "memory_count", "active_count")
    AT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    at: _memory_pb2.NamespaceSequence
    memory_count: int
    active_count: int
    def __init__(self, at: _Optional[_Union[_memory_pb2.NamespaceSequence, _Mapping]] = ..., memory_count: _Optional[int] = ..., active_count: _Optional[int] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("server_version", "embedding", "memory_count", "active_count", "namespace_count", "namespaces", "disk_size_bytes", "resident_size_bytes", "recall_count", "degraded_recall_count", "write_count", "uptime_s", "unindexed_row_count", "ingested_message_count", "kept_message_count", "evaluator_fallback_count")
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_COUNT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    DISK_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_RECALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    WRITE_COUNT_FIELD_NUMBER: _ClassVar[int]
    UPTIME_S_FIELD_NUMBER: _ClassVar[int]
    UNINDEXED_ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    INGESTED_MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    KEPT_MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FALLBACK_COUNT_FIELD_NUMBER: _ClassVar[int]
    server_version: str
    embedding: _memory_pb2.EmbeddingInfo
    memory_count: int
    active_count: int
    namespace_count: int
    namespaces: _containers.RepeatedCompositeFieldContainer[NamespaceStats]
    disk_size_bytes: int
    resident_size_bytes: int
    recall_count: int
    degraded_recall_count: int
    write_count: int
    uptime_s: int
    unindexed_row_count: int
    ingested_message_count: int
    kept_message_count: int
    evaluator_fallback_count: int
    def __init__(self, server_version: _Optional[str] = ..., embedding: _Optional[_Union[_memory_pb2.EmbeddingInfo, _Mapping]] = ..., memory_count: _Optional[int] = ..., active_count: _Optional[int] = ..., namespace_count: _Optional[int] = ..., namespaces: _Optional[_Iterable[_Union[NamespaceStats, _Mapping]]] = ..., disk_size_bytes: _Optional[int] = ..., resident_size_bytes: _Optional[int] = ..., recall_count: _Optional[int] = ..., degraded_recall_count: _Optional[int] = ..., write_count: _Optional[int] = ..., uptime_s: _Optional[int] = ..., unindexed_row_count: _Optional[int] = ..., ingested_message_count: _Optional[int] = ..., kept_message_count: _Optional[int] = ..., evaluator_fallback_count: _Optional[int] = ...) -> None: ...

class VerifyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VerifyProblem(_message.Message):
    __slots__ = ("where", "what")
    WHERE_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    where: str
    what: str
    def __init__(self, where: _Optional[str] = ..., what: _Optional[str] = ...) -> None: ...

class VerifyResponse(_message.Message):
    __slots__ = ("problems", "memory_count")
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    problems: _containers.RepeatedCompositeFieldContainer[VerifyProblem]
    memory_count: int
    def __init__(self, problems: _Optional[_Iterable[_Union[VerifyProblem, _Mapping]]] = ..., memory_count: _Optional[int] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ("directory",)
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    directory: str
    def __init__(self, directory: _Optional[str] = ...) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ("size_bytes",)
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    size_bytes: int
    def __init__(self, size_bytes: _Optional[int] = ...) -> None: ...

class StartReindexRequest(_message.Message):
    __slots__ = ("model_directory",)
    MODEL_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    model_directory: str
    def __init__(self, model_directory: _Optional[str] = ...) -> None: ...

class StartReindexResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: ReindexStatus
    def __init__(self, status: _Optional[_Union[ReindexStatus, _Mapping]] = ...) -> None: ...

class GetReindexRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetReindexResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: ReindexStatus
    def __init__(self, status: _Optional[_Union[ReindexStatus, _Mapping]] = ...) -> None: ...

class ReindexStatus(_message.Message):
    __slots__ = ("state", "target", "done_count", "total_count", "error")
    STATE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    DONE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    state: ReindexState
    target: _memory_pb2.EmbeddingInfo
    done_count: int
    total_count: int
    error: str
    def __init__(self, state: _Optional[_Union[ReindexState, str]] = ..., target: _Optional[_Union[_memory_pb2.EmbeddingInfo, _Mapping]] = ..., done_count: _Optional[int] = ..., total_count: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class GetReceiptRequest(_message.Message):
    __slots__ = ("tenant", "receipt_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    receipt_id: str
    def __init__(self, tenant: _Optional[str] = ..., receipt_id: _Optional[str] = ...) -> None: ...

class GetReceiptResponse(_message.Message):
    __slots__ = ("receipt",)
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    receipt: _erasure_service_pb2.PurgeReceipt
    def __init__(self, receipt: _Optional[_Union[_erasure_service_pb2.PurgeReceipt, _Mapping]] = ...) -> None: ...

class ListReceiptsRequest(_message.Message):
    __slots__ = ("tenant", "page_size", "page_token")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    page_size: int
    page_token: str
    def __init__(self, tenant: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListReceiptsResponse(_message.Message):
    __slots__ = ("receipts", "next_page_token")
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    receipts: _containers.RepeatedCompositeFieldContainer[_erasure_service_pb2.PurgeReceipt]
    next_page_token: str
    def __init__(self, receipts: _Optional[_Iterable[_Union[_erasure_service_pb2.PurgeReceipt, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
