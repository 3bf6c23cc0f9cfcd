import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memsvc.v1 import memory_pb2 as _memory_pb2
from memsvc.v1 import memory_service_pb2 as _memory_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventServiceRecordRequest(_message.Message):
    __slots__ = ("owners", "scope", "summary", "event", "occur_time", "tags", "source", "importance", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    OCCUR_TIME_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    summary: str
    event: _memory_pb2.EventDetail
    occur_time: _timestamp_pb2.Timestamp
    tags: _containers.RepeatedScalarFieldContainer[str]
    source: _memory_pb2.Source
    importance: float
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., summary: _Optional[str] = ..., event: _Optional[_Union[_memory_pb2.EventDetail, _Mapping]] = ..., occur_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tags: _Optional[_Iterable[str]] = ..., source: _Optional[_Union[_memory_pb2.Source, _Mapping]] = ..., importance: _Optional[float] = ..., request_id: _Optional[str] = ...) -> None: ...

class EventServiceRecordResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _memory_service_pb2.WriteResult
    def __init__(self, result: _Optional[_Union[_memory_service_pb2.WriteResult, _Mapping]] = ...) -> None: ...

class PayloadCondition(_message.Message):
    __slots__ = ("field", "equals")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    EQUALS_FIELD_NUMBER: _ClassVar[int]
    field: str
    equals: _struct_pb2.Value
    def __init__(self, field: _Optional[str] = ..., equals: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...

class EventServiceQueryRequest(_message.Message):
    __slots__ = ("owners", "scopes", "occur_time", "event_types", "payload", "participant", "mentions", "query", "page_size", "page_token", "newest_first")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    OCCUR_TIME_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    MENTIONS_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    occur_time: _memory_pb2.TimeRange
    event_types: _containers.RepeatedScalarFieldContainer[str]
    payload: _containers.RepeatedCompositeFieldContainer[PayloadCondition]
    participant: str
    mentions: str
    query: str
    page_size: int
    page_token: str
    newest_first: bool
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., occur_time: _Optional[_Union[_memory_pb2.TimeRange, _Mapping]] = ..., event_types: _Optional[_Iterable[str]] = ..., payload: _Optional[_Iterable[_Union[PayloadCondition, _Mapping]]] = ..., participant: _Optional[str] = ..., mentions: _Optional[str] = ..., query: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., newest_first: _Optional[bool] = ...) -> None: ...

class FoundEvent(_message.Message):
    __slots__ = ("memory", "causes", "consequences", "score")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    CONSEQUENCES_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    memory: _memory_pb2.Memory
    causes: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    consequences: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    score: float
    def __init__(self, memory: _Optional[_Union[_memory_pb2.Memory, _Mapping]] = ..., causes: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ..., consequences: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ..., score: _Optional[float] = ...) -> None: ...

class EventServiceQueryResponse(_message.Message):
    __slots__ = ("events", "next_page_token")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[FoundEvent]
    next_page_token: str
    def __init__(self, events: _Optional[_Iterable[_Union[FoundEvent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
