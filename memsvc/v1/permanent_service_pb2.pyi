import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memsvc.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PermanentKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PERMANENT_KIND_UNSPECIFIED: _ClassVar[PermanentKind]
    PERMANENT_KIND_PROFILE: _ClassVar[PermanentKind]
    PERMANENT_KIND_SAFETY: _ClassVar[PermanentKind]
    PERMANENT_KIND_IDENTITY: _ClassVar[PermanentKind]
PERMANENT_KIND_UNSPECIFIED: PermanentKind
PERMANENT_KIND_PROFILE: PermanentKind
PERMANENT_KIND_SAFETY: PermanentKind
PERMANENT_KIND_IDENTITY: PermanentKind

class PermanentMemory(_message.Message):
    __slots__ = ("memory_id", "version", "namespace", "kind", "content", "status", "proposed_from", "actor", "reason", "create_time", "update_time")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_FROM_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    version: int
    namespace: _memory_pb2.Namespace
    kind: PermanentKind
    content: str
    status: _memory_pb2.Status
    proposed_from: str
    actor: str
    reason: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, memory_id: _Optional[str] = ..., version: _Optional[int] = ..., namespace: _Optional[_Union[_memory_pb2.Namespace, _Mapping]] = ..., kind: _Optional[_Union[PermanentKind, str]] = ..., content: _Optional[str] = ..., status: _Optional[_Union[_memory_pb2.Status, str]] = ..., proposed_from: _Optional[str] = ..., actor: _Optional[str] = ..., reason: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PermanentServiceListRequest(_message.Message):
    __slots__ = ("owners", "scopes", "include_proposals")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PROPOSALS_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    include_proposals: bool
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., include_proposals: _Optional[bool] = ...) -> None: ...

class PermanentServiceListResponse(_message.Message):
    __slots__ = ("memories",)
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[PermanentMemory]
    def __init__(self, memories: _Optional[_Iterable[_Union[PermanentMemory, _Mapping]]] = ...) -> None: ...

class PermanentServiceProposeRequest(_message.Message):
    __slots__ = ("owners", "scope", "kind", "content", "memory_id", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    kind: PermanentKind
    content: str
    memory_id: str
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., kind: _Optional[_Union[PermanentKind, str]] = ..., content: _Optional[str] = ..., memory_id: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PermanentServiceProposeResponse(_message.Message):
    __slots__ = ("memory",)
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    memory: PermanentMemory
    def __init__(self, memory: _Optional[_Union[PermanentMemory, _Mapping]] = ...) -> None: ...

class PermanentServiceDecideRequest(_message.Message):
    __slots__ = ("owners", "memory_id", "accept", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_id: str
    accept: bool
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_id: _Optional[str] = ..., accept: _Optional[bool] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PermanentServiceDecideResponse(_message.Message):
    __slots__ = ("memory",)
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    memory: PermanentMemory
    def __init__(self, memory: _Optional[_Union[PermanentMemory, _Mapping]] = ...) -> None: ...

class PermanentServicePutRequest(_message.Message):
    __slots__ = ("owners", "scope", "kind", "content", "memory_id", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    kind: PermanentKind
    content: str
    memory_id: str
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., kind: _Optional[_Union[PermanentKind, str]] = ..., content: _Optional[str] = ..., memory_id: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PermanentServicePutResponse(_message.Message):
    __slots__ = ("memory",)
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    memory: PermanentMemory
    def __init__(self, memory: _Optional[_Union[PermanentMemory, _Mapping]] = ...) -> None: ...

class PermanentServiceRemoveRequest(_message.Message):
    __slots__ = ("owners", "memory_id", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_id: str
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_id: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PermanentServiceRemoveResponse(_message.Message):
    __slots__ = ("memory",)
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    memory: PermanentMemory
    def __init__(self, memory: _Optional[_Union[PermanentMemory, _Mapping]] = ...) -> None: ...

class PermanentServiceHistoryRequest(_message.Message):
    __slots__ = ("owners", "memory_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    memory_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., memory_id: _Optional[str] = ...) -> None: ...

class PermanentServiceHistoryResponse(_message.Message):
    __slots__ = ("versions",)
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[PermanentMemory]
    def __init__(self, versions: _Optional[_Iterable[_Union[PermanentMemory, _Mapping]]] = ...) -> None: ...
