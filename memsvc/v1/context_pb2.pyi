import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from memsvc.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ContextSection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTEXT_SECTION_UNSPECIFIED: _ClassVar[ContextSection]
    CONTEXT_SECTION_PERMANENT: _ClassVar[ContextSection]
    CONTEXT_SECTION_PREFERENCES: _ClassVar[ContextSection]
    CONTEXT_SECTION_FACTS: _ClassVar[ContextSection]
    CONTEXT_SECTION_SKILLS: _ClassVar[ContextSection]
    CONTEXT_SECTION_EVENTS: _ClassVar[ContextSection]
    CONTEXT_SECTION_SESSION: _ClassVar[ContextSection]

class ContextFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTEXT_FORMAT_UNSPECIFIED: _ClassVar[ContextFormat]
    CONTEXT_FORMAT_TEXT: _ClassVar[ContextFormat]
    CONTEXT_FORMAT_JSON: _ClassVar[ContextFormat]
    CONTEXT_FORMAT_MESSAGES: _ClassVar[ContextFormat]

class ContextOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTEXT_ORDER_UNSPECIFIED: _ClassVar[ContextOrder]
    CONTEXT_ORDER_BEST_LAST: _ClassVar[ContextOrder]
    CONTEXT_ORDER_BEST_FIRST: _ClassVar[ContextOrder]
CONTEXT_SECTION_UNSPECIFIED: ContextSection
CONTEXT_SECTION_PERMANENT: ContextSection
CONTEXT_SECTION_PREFERENCES: ContextSection
CONTEXT_SECTION_FACTS: ContextSection
CONTEXT_SECTION_SKILLS: ContextSection
CONTEXT_SECTION_EVENTS: ContextSection
CONTEXT_SECTION_SESSION: ContextSection
CONTEXT_FORMAT_UNSPECIFIED: ContextFormat
CONTEXT_FORMAT_TEXT: ContextFormat
CONTEXT_FORMAT_JSON: ContextFormat
CONTEXT_FORMAT_MESSAGES: ContextFormat
CONTEXT_ORDER_UNSPECIFIED: ContextOrder
CONTEXT_ORDER_BEST_LAST: ContextOrder
CONTEXT_ORDER_BEST_FIRST: ContextOrder

class ContextOptions(_message.Message):
    __slots__ = ("token_budget", "sections", "format", "order", "max_memories", "filter", "scopes", "min_score", "latency_budget")
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    SECTIONS_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    MAX_MEMORIES_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    LATENCY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    token_budget: int
    sections: _containers.RepeatedScalarFieldContainer[ContextSection]
    format: ContextFormat
    order: ContextOrder
    max_memories: int
    filter: _memory_pb2.Filter
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    min_score: float
    latency_budget: _duration_pb2.Duration
    def __init__(self, token_budget: _Optional[int] = ..., sections: _Optional[_Iterable[_Union[ContextSection, str]]] = ..., format: _Optional[_Union[ContextFormat, str]] = ..., order: _Optional[_Union[ContextOrder, str]] = ..., max_memories: _Optional[int] = ..., filter: _Optional[_Union[_memory_pb2.Filter, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., min_score: _Optional[float] = ..., latency_budget: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ContextLine(_message.Message):
    __slots__ = ("section", "text", "memory_id", "score")
    SECTION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    section: ContextSection
    text: str
    memory_id: str
    score: float
    def __init__(self, section: _Optional[_Union[ContextSection, str]] = ..., text: _Optional[str] = ..., memory_id: _Optional[str] = ..., score: _Optional[float] = ...) -> None: ...

class ContextMessage(_message.Message):
    __slots__ = ("role", "content")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class Context(_message.Message):
    __slots__ = ("text", "messages", "token_count", "lines", "left_out_count", "degraded")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    text: str
    messages: _containers.RepeatedCompositeFieldContainer[ContextMessage]
    token_count: int
    lines: _containers.RepeatedCompositeFieldContainer[ContextLine]
    left_out_count: int
    degraded: bool
    def __init__(self, text: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[ContextMessage, _Mapping]]] = ..., token_count: _Optional[int] = ..., lines: _Optional[_Iterable[_Union[ContextLine, _Mapping]]] = ..., left_out_count: _Optional[int] = ..., degraded: _Optional[bool] = ...) -> None: ...
