import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from memsvc.v1 import admin_service_pb2 as _admin_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TokenServiceExchangeRequest(_message.Message):
    __slots__ = ("name", "actor_agent_id", "user_ids", "project_ids", "grants", "read_only", "ttl", "reads_per_minute", "writes_per_minute")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACTOR_AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_IDS_FIELD_NUMBER: _ClassVar[int]
    PROJECT_IDS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    READS_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    WRITES_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    actor_agent_id: str
    user_ids: _containers.RepeatedScalarFieldContainer[str]
    project_ids: _containers.RepeatedScalarFieldContainer[str]
    grants: _containers.RepeatedScalarFieldContainer[str]
    read_only: bool
    ttl: _duration_pb2.Duration
    reads_per_minute: int
    writes_per_minute: int
    def __init__(self, name: _Optional[str] = ..., actor_agent_id: _Optional[str] = ..., user_ids: _Optional[_Iterable[str]] = ..., project_ids: _Optional[_Iterable[str]] = ..., grants: _Optional[_Iterable[str]] = ..., read_only: _Optional[bool] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reads_per_minute: _Optional[int] = ..., writes_per_minute: _Optional[int] = ...) -> None: ...

class TokenServiceExchangeResponse(_message.Message):
    __slots__ = ("secret", "token")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    secret: str
    token: _admin_service_pb2.Token
    def __init__(self, secret: _Optional[str] = ..., token: _Optional[_Union[_admin_service_pb2.Token, _Mapping]] = ...) -> None: ...
