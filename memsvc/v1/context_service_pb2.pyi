from memsvc.v1 import context_pb2 as _context_pb2
from memsvc.v1 import memory_pb2 as _memory_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AssembleContextRequest(_message.Message):
    __slots__ = ("owners", "query", "options")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    query: str
    options: _context_pb2.ContextOptions
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., query: _Optional[str] = ..., options: _Optional[_Union[_context_pb2.ContextOptions, _Mapping]] = ...) -> None: ...

class AssembleContextResponse(_message.Message):
    __slots__ = ("context",)
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    context: _context_pb2.Context
    def __init__(self, context: _Optional[_Union[_context_pb2.Context, _Mapping]] = ...) -> None: ...
