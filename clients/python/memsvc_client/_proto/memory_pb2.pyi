import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Layer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LAYER_UNSPECIFIED: _ClassVar[Layer]
    LAYER_WORKING: _ClassVar[Layer]
    LAYER_EPISODIC: _ClassVar[Layer]
    LAYER_SEMANTIC: _ClassVar[Layer]
    LAYER_PROCEDURAL: _ClassVar[Layer]
    LAYER_PERMANENT: _ClassVar[Layer]

class MemoryType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_TYPE_UNSPECIFIED: _ClassVar[MemoryType]
    MEMORY_TYPE_FACT: _ClassVar[MemoryType]
    MEMORY_TYPE_PREFERENCE: _ClassVar[MemoryType]
    MEMORY_TYPE_DECISION: _ClassVar[MemoryType]
    MEMORY_TYPE_EVENT: _ClassVar[MemoryType]
    MEMORY_TYPE_RULE: _ClassVar[MemoryType]

class Scope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCOPE_UNSPECIFIED: _ClassVar[Scope]
    SCOPE_SESSION: _ClassVar[Scope]
    SCOPE_AGENT: _ClassVar[Scope]
    SCOPE_USER: _ClassVar[Scope]
    SCOPE_PROJECT: _ClassVar[Scope]
    SCOPE_GLOBAL: _ClassVar[Scope]

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATUS_UNSPECIFIED: _ClassVar[Status]
    STATUS_ACTIVE: _ClassVar[Status]
    STATUS_SUPERSEDED: _ClassVar[Status]
    STATUS_FORGOTTEN: _ClassVar[Status]
    STATUS_EXPIRED: _ClassVar[Status]
    STATUS_ARCHIVED: _ClassVar[Status]
    STATUS_CONTESTED: _ClassVar[Status]
    STATUS_PENDING: _ClassVar[Status]
    STATUS_STAGED: _ClassVar[Status]
    STATUS_PURGED: _ClassVar[Status]
LAYER_UNSPECIFIED: Layer
LAYER_WORKING: Layer
LAYER_EPISODIC: Layer
LAYER_SEMANTIC: Layer
LAYER_PROCEDURAL: Layer
LAYER_PERMANENT: Layer
MEMORY_TYPE_UNSPECIFIED: MemoryType
MEMORY_TYPE_FACT: MemoryType
MEMORY_TYPE_PREFERENCE: MemoryType
MEMORY_TYPE_DECISION: MemoryType
MEMORY_TYPE_EVENT: MemoryType
MEMORY_TYPE_RULE: MemoryType
SCOPE_UNSPECIFIED: Scope
SCOPE_SESSION: Scope
SCOPE_AGENT: Scope
SCOPE_USER: Scope
SCOPE_PROJECT: Scope
SCOPE_GLOBAL: Scope
STATUS_UNSPECIFIED: Status
STATUS_ACTIVE: Status
STATUS_SUPERSEDED: Status
STATUS_FORGOTTEN: Status
STATUS_EXPIRED: Status
STATUS_ARCHIVED: Status
STATUS_CONTESTED: Status
STATUS_PENDING: Status
STATUS_STAGED: Status
STATUS_PURGED: Status

class Namespace(_message.Message):
    __slots__ = ("tenant", "scope", "owner")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    scope: Scope
    owner: str
    def __init__(self, tenant: _Optional[str] = ..., scope: _Optional[_Union[Scope, str]] = ..., owner: _Optional[str] = ...) -> None: ...

class Owners(_message.Message):
    __slots__ = ("tenant", "user_id", "project_id", "agent_id", "session_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    user_id: str
    project_id: str
    agent_id: str
    session_id: str
    def __init__(self, tenant: _Optional[str] = ..., user_id: _Optional[str] = ..., project_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class NamespaceSequence(_message.Message):
    __slots__ = ("namespace", "sequence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    sequence: int
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ..., sequence: _Optional[int] = ...) -> None: ...

class Source(_message.Message):
    __slots__ = ("tool", "session_id", "message_id")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    tool: str
    session_id: str
    message_id: str
    def __init__(self, tool: _Optional[str] = ..., session_id: _Optional[str] = ..., message_id: _Optional[str] = ...) -> None: ...

class EmbeddingInfo(_message.Message):
    __slots__ = ("model", "dim")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DIM_FIELD_NUMBER: _ClassVar[int]
    model: str
    dim: int
    def __init__(self, model: _Optional[str] = ..., dim: _Optional[int] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("memory_id", "version", "namespace", "layer", "type", "subject", "content", "tags", "metadata", "source", "importance", "confidence", "status", "superseded_by", "supersedes", "create_time", "update_time", "occur_time", "expire_time", "last_access_time", "access_count", "etag", "embedding", "sequence", "seen_count", "last_seen_time", "further_sources", "blocked", "event", "fact", "skill_name", "retention")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    OCCUR_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_ACCESS_TIME_FIELD_NUMBER: _ClassVar[int]
    ACCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SEEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_TIME_FIELD_NUMBER: _ClassVar[int]
    FURTHER_SOURCES_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    SKILL_NAME_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    version: int
    namespace: Namespace
    layer: Layer
    type: MemoryType
    subject: str
    content: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    metadata: _struct_pb2.Struct
    source: Source
    importance: float
    confidence: float
    status: Status
    superseded_by: str
    supersedes: _containers.RepeatedScalarFieldContainer[str]
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    occur_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    last_access_time: _timestamp_pb2.Timestamp
    access_count: int
    etag: str
    embedding: EmbeddingInfo
    sequence: int
    seen_count: int
    last_seen_time: _timestamp_pb2.Timestamp
    further_sources: _containers.RepeatedCompositeFieldContainer[Source]
    blocked: bool
    event: EventDetail
    fact: FactDetail
    skill_name: str
    retention: float
    def __init__(self, memory_id: _Optional[str] = ..., version: _Optional[int] = ..., namespace: _Optional[_Union[Namespace, _Mapping]] = ..., layer: _Optional[_Union[Layer, str]] = ..., type: _Optional[_Union[MemoryType, str]] = ..., subject: _Optional[str] = ..., content: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., source: _Optional[_Union[Source, _Mapping]] = ..., importance: _Optional[float] = ..., confidence: _Optional[float] = ..., status: _Optional[_Union[Status, str]] = ..., superseded_by: _Optional[str] = ..., supersedes: _Optional[_Iterable[str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., occur_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_access_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., access_count: _Optional[int] = ..., etag: _Optional[str] = ..., embedding: _Optional[_Union[EmbeddingInfo, _Mapping]] = ..., sequence: _Optional[int] = ..., seen_count: _Optional[int] = ..., last_seen_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., further_sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., blocked: _Optional[bool] = ..., event: _Optional[_Union[EventDetail, _Mapping]] = ..., fact: _Optional[_Union[FactDetail, _Mapping]] = ..., skill_name: _Optional[str] = ..., retention: _Optional[float] = ...) -> None: ...

class EventDetail(_message.Message):
    __slots__ = ("event_type", "payload", "participants", "caused_by")
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    CAUSED_BY_FIELD_NUMBER: _ClassVar[int]
    event_type: str
    payload: _struct_pb2.Struct
    participants: _containers.RepeatedScalarFieldContainer[str]
    caused_by: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, event_type: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., participants: _Optional[_Iterable[str]] = ..., caused_by: _Optional[_Iterable[str]] = ...) -> None: ...

class FactDetail(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _struct_pb2.Value
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...

class TimeRange(_message.Message):
    __slots__ = ("start_time", "end_time")
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("types", "layers", "statuses", "tags_all", "tags_any", "subjects", "source_tools", "source_session_ids", "create_time", "occur_time", "min_importance", "max_importance", "min_confidence", "max_confidence")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    TAGS_ALL_FIELD_NUMBER: _ClassVar[int]
    TAGS_ANY_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOOLS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    OCCUR_TIME_FIELD_NUMBER: _ClassVar[int]
    MIN_IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    MAX_IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    MIN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedScalarFieldContainer[MemoryType]
    layers: _containers.RepeatedScalarFieldContainer[Layer]
    statuses: _containers.RepeatedScalarFieldContainer[Status]
    tags_all: _containers.RepeatedScalarFieldContainer[str]
    tags_any: _containers.RepeatedScalarFieldContainer[str]
    subjects: _containers.RepeatedScalarFieldContainer[str]
    source_tools: _containers.RepeatedScalarFieldContainer[str]
    source_session_ids: _containers.RepeatedScalarFieldContainer[str]
    create_time: TimeRange
    occur_time: TimeRange
    min_importance: float
    max_importance: float
    min_confidence: float
    max_confidence: float
    def __init__(self, types: _Optional[_Iterable[_Union[MemoryType, str]]] = ..., layers: _Optional[_Iterable[_Union[Layer, str]]] = ..., statuses: _Optional[_Iterable[_Union[Status, str]]] = ..., tags_all: _Optional[_Iterable[str]] = ..., tags_any: _Optional[_Iterable[str]] = ..., subjects: _Optional[_Iterable[str]] = ..., source_tools: _Optional[_Iterable[str]] = ..., source_session_ids: _Optional[_Iterable[str]] = ..., create_time: _Optional[_Union[TimeRange, _Mapping]] = ..., occur_time: _Optional[_Union[TimeRange, _Mapping]] = ..., min_importance: _Optional[float] = ..., max_importance: _Optional[float] = ..., min_confidence: _Optional[float] = ..., max_confidence: _Optional[float] = ...) -> None: ...
