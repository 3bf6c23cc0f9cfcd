import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import memory_pb2 as _memory_pb2
from . import memory_service_pb2 as _memory_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AuditKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_KIND_UNSPECIFIED: _ClassVar[AuditKind]
    AUDIT_KIND_READ: _ClassVar[AuditKind]
    AUDIT_KIND_CHANGE: _ClassVar[AuditKind]
    AUDIT_KIND_ADMIN: _ClassVar[AuditKind]
    AUDIT_KIND_DENIED: _ClassVar[AuditKind]

class MemoryRelation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_RELATION_UNSPECIFIED: _ClassVar[MemoryRelation]
    MEMORY_RELATION_SUPERSEDED: _ClassVar[MemoryRelation]
    MEMORY_RELATION_SUPERSEDED_BY: _ClassVar[MemoryRelation]
    MEMORY_RELATION_CONTESTED: _ClassVar[MemoryRelation]
AUDIT_KIND_UNSPECIFIED: AuditKind
AUDIT_KIND_READ: AuditKind
AUDIT_KIND_CHANGE: AuditKind
AUDIT_KIND_ADMIN: AuditKind
AUDIT_KIND_DENIED: AuditKind
MEMORY_RELATION_UNSPECIFIED: MemoryRelation
MEMORY_RELATION_SUPERSEDED: MemoryRelation
MEMORY_RELATION_SUPERSEDED_BY: MemoryRelation
MEMORY_RELATION_CONTESTED: MemoryRelation

class AuditEntry(_message.Message):
    __slots__ = ("namespace", "number", "entry_time", "kind", "actor", "call", "outcome", "memory_ids", "count", "sequence", "change", "detail", "reason_hash", "hash")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ENTRY_TIME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    REASON_HASH_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    namespace: _memory_pb2.Namespace
    number: int
    entry_time: _timestamp_pb2.Timestamp
    kind: AuditKind
    actor: str
    call: str
    outcome: str
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    count: int
    sequence: int
    change: _memory_service_pb2.ChangeKind
    detail: str
    reason_hash: str
    hash: str
    def __init__(self, namespace: _Optional[_Union[_memory_pb2.Namespace, _Mapping]] = ..., number: _Optional[int] = ..., entry_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[_Union[AuditKind, str]] = ..., actor: _Optional[str] = ..., call: _Optional[str] = ..., outcome: _Optional[str] = ..., memory_ids: _Optional[_Iterable[str]] = ..., count: _Optional[int] = ..., sequence: _Optional[int] = ..., change: _Optional[_Union[_memory_service_pb2.ChangeKind, str]] = ..., detail: _Optional[str] = ..., reason_hash: _Optional[str] = ..., hash: _Optional[str] = ...) -> None: ...

class AuditServiceQueryRequest(_message.Message):
    __slots__ = ("owners", "scopes", "kinds", "actor", "memory_id", "entry_time", "newest_first", "page_size", "page_token")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRY_TIME_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    kinds: _containers.RepeatedScalarFieldContainer[AuditKind]
    actor: str
    memory_id: str
    entry_time: _memory_pb2.TimeRange
    newest_first: bool
    page_size: int
    page_token: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., kinds: _Optional[_Iterable[_Union[AuditKind, str]]] = ..., actor: _Optional[str] = ..., memory_id: _Optional[str] = ..., entry_time: _Optional[_Union[_memory_pb2.TimeRange, _Mapping]] = ..., newest_first: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class AuditServiceQueryResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AuditHead(_message.Message):
    __slots__ = ("number", "hash")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    number: int
    hash: str
    def __init__(self, number: _Optional[int] = ..., hash: _Optional[str] = ...) -> None: ...

class AuditServiceVerifyRequest(_message.Message):
    __slots__ = ("owners", "scopes", "all", "expect")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    EXPECT_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    all: bool
    expect: AuditHead
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., all: _Optional[bool] = ..., expect: _Optional[_Union[AuditHead, _Mapping]] = ...) -> None: ...

class AuditServiceVerifyResponse(_message.Message):
    __slots__ = ("chains",)
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    chains: _containers.RepeatedCompositeFieldContainer[AuditChain]
    def __init__(self, chains: _Optional[_Iterable[_Union[AuditChain, _Mapping]]] = ...) -> None: ...

class AuditChain(_message.Message):
    __slots__ = ("namespace", "head", "broken_number", "problem", "baseline_sequence", "missing_count", "first_missing_sequence", "stray_count", "first_stray_number")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    BROKEN_NUMBER_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    BASELINE_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MISSING_COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_MISSING_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STRAY_COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_STRAY_NUMBER_FIELD_NUMBER: _ClassVar[int]
    namespace: _memory_pb2.Namespace
    head: AuditHead
    broken_number: int
    problem: str
    baseline_sequence: int
    missing_count: int
    first_missing_sequence: int
    stray_count: int
    first_stray_number: int
    def __init__(self, namespace: _Optional[_Union[_memory_pb2.Namespace, _Mapping]] = ..., head: _Optional[_Union[AuditHead, _Mapping]] = ..., broken_number: _Optional[int] = ..., problem: _Optional[str] = ..., baseline_sequence: _Optional[int] = ..., missing_count: _Optional[int] = ..., first_missing_sequence: _Optional[int] = ..., stray_count: _Optional[int] = ..., first_stray_number: _Optional[int] = ...) -> None: ...

class AuditServiceWhyRequest(_message.Message):
    __slots__ = ("owners", "memory_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_id: _Optional[str] = ...) -> None: ...

class RelatedMemory(_message.Message):
    __slots__ = ("relation", "memory_id", "status")
    RELATION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    relation: MemoryRelation
    memory_id: str
    status: _memory_pb2.Status
    def __init__(self, relation: _Optional[_Union[MemoryRelation, str]] = ..., memory_id: _Optional[str] = ..., status: _Optional[_Union[_memory_pb2.Status, str]] = ...) -> None: ...

class AuditServiceWhyResponse(_message.Message):
    __slots__ = ("memory", "changes", "related", "reads")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RELATED_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    changes: _containers.RepeatedCompositeFieldContainer[_memory_service_pb2.Change]
    related: _containers.RepeatedCompositeFieldContainer[RelatedMemory]
    reads: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[_memory_service_pb2.Change, _Mapping]]] = ..., related: _Optional[_Iterable[_Union[RelatedMemory, _Mapping]]] = ..., reads: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ...) -> None: ...
