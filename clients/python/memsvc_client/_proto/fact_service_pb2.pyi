import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Fact(_message.Message):
    __slots__ = ("key", "value", "version", "namespace", "memory_id", "update_time", "deleted", "source")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _struct_pb2.Value
    version: int
    namespace: _memory_pb2.Namespace
    memory_id: str
    update_time: _timestamp_pb2.Timestamp
    deleted: bool
    source: _memory_pb2.Source
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., version: _Optional[int] = ..., namespace: _Optional[_Union[_memory_pb2.Namespace, _Mapping]] = ..., memory_id: _Optional[str] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deleted: _Optional[bool] = ..., source: _Optional[_Union[_memory_pb2.Source, _Mapping]] = ...) -> None: ...

class FactServicePutRequest(_message.Message):
    __slots__ = ("owners", "scope", "key", "value", "if_version", "source", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    key: str
    value: _struct_pb2.Value
    if_version: int
    source: _memory_pb2.Source
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., if_version: _Optional[int] = ..., source: _Optional[_Union[_memory_pb2.Source, _Mapping]] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class FactServicePutResponse(_message.Message):
    __slots__ = ("fact", "changed", "at")
    FACT_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    fact: Fact
    changed: bool
    at: _memory_pb2.NamespaceSequence
    def __init__(self, fact: _Optional[_Union[Fact, _Mapping]] = ..., changed: _Optional[bool] = ..., at: _Optional[_Union[_memory_pb2.NamespaceSequence, _Mapping]] = ...) -> None: ...

class FactServiceGetRequest(_message.Message):
    __slots__ = ("owners", "scopes", "keys")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...

class FactServiceGetResponse(_message.Message):
    __slots__ = ("facts",)
    FACTS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[Fact]
    def __init__(self, facts: _Optional[_Iterable[_Union[Fact, _Mapping]]] = ...) -> None: ...

class FactServiceListRequest(_message.Message):
    __slots__ = ("owners", "scopes", "key_prefix", "page_size", "page_token")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    KEY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    key_prefix: str
    page_size: int
    page_token: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., key_prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class FactServiceListResponse(_message.Message):
    __slots__ = ("facts", "next_page_token")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[Fact]
    next_page_token: str
    def __init__(self, facts: _Optional[_Iterable[_Union[Fact, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class FactServiceHistoryRequest(_message.Message):
    __slots__ = ("owners", "scope", "key")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    key: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., key: _Optional[str] = ...) -> None: ...

class FactServiceHistoryResponse(_message.Message):
    __slots__ = ("facts",)
    FACTS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[Fact]
    def __init__(self, facts: _Optional[_Iterable[_Union[Fact, _Mapping]]] = ...) -> None: ...

class FactServiceDeleteRequest(_message.Message):
    __slots__ = ("owners", "scope", "key", "if_version", "reason", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    key: str
    if_version: int
    reason: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., key: _Optional[str] = ..., if_version: _Optional[int] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class FactServiceDeleteResponse(_message.Message):
    __slots__ = ("deleted", "at")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    at: _memory_pb2.NamespaceSequence
    def __init__(self, deleted: _Optional[bool] = ..., at: _Optional[_Union[_memory_pb2.NamespaceSequence, _Mapping]] = ...) -> None: ...

class FactServiceMatchRequest(_message.Message):
    __slots__ = ("owners", "scopes", "query")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    query: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., query: _Optional[str] = ...) -> None: ...

class FactServiceMatchResponse(_message.Message):
    __slots__ = ("facts",)
    FACTS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[Fact]
    def __init__(self, facts: _Optional[_Iterable[_Union[Fact, _Mapping]]] = ...) -> None: ...
