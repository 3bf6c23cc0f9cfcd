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

class PurgeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PURGE_STATE_UNSPECIFIED: _ClassVar[PurgeState]
    PURGE_STATE_STARTED: _ClassVar[PurgeState]
    PURGE_STATE_DONE: _ClassVar[PurgeState]
PURGE_STATE_UNSPECIFIED: PurgeState
PURGE_STATE_STARTED: PurgeState
PURGE_STATE_DONE: PurgeState

class PurgeReceipt(_message.Message):
    __slots__ = ("receipt_id", "state", "actor", "reason", "namespaces", "memory_ids", "start_time", "end_time", "memory_count", "version_count", "vector_count", "record_count", "session_count", "answer_count", "hash")
    RECEIPT_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    MEMORY_COUNT_FIELD_NUMBER: _ClassVar[int]
    VERSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    VECTOR_COUNT_FIELD_NUMBER: _ClassVar[int]
    RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    ANSWER_COUNT_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    receipt_id: str
    state: PurgeState
    actor: str
    reason: str
    namespaces: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Namespace]
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    memory_count: int
    version_count: int
    vector_count: int
    record_count: int
    session_count: int
    answer_count: int
    hash: str
    def __init__(self, receipt_id: _Optional[str] = ..., state: _Optional[_Union[PurgeState, str]] = ..., actor: _Optional[str] = ..., reason: _Optional[str] = ..., namespaces: _Optional[_Iterable[_Union[_memory_pb2.Namespace, _Mapping]]] = ..., memory_ids: _Optional[_Iterable[str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., memory_count: _Optional[int] = ..., version_count: _Optional[int] = ..., vector_count: _Optional[int] = ..., record_count: _Optional[int] = ..., session_count: _Optional[int] = ..., answer_count: _Optional[int] = ..., hash: _Optional[str] = ...) -> None: ...

class PurgeRequest(_message.Message):
    __slots__ = ("owners", "scopes", "memory_ids", "reason", "dry_run", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    dry_run: bool
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., memory_ids: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., dry_run: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class PurgeResponse(_message.Message):
    __slots__ = ("receipt",)
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    receipt: PurgeReceipt
    def __init__(self, receipt: _Optional[_Union[PurgeReceipt, _Mapping]] = ...) -> None: ...
