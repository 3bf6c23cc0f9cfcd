import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memsvc.v1 import memory_pb2 as _memory_pb2
from memsvc.v1 import memory_service_pb2 as _memory_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReviewItemKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REVIEW_ITEM_KIND_UNSPECIFIED: _ClassVar[ReviewItemKind]
    REVIEW_ITEM_KIND_PENDING_WRITE: _ClassVar[ReviewItemKind]
    REVIEW_ITEM_KIND_CONFLICT: _ClassVar[ReviewItemKind]

class ReviewItemAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REVIEW_ITEM_ACTION_UNSPECIFIED: _ClassVar[ReviewItemAction]
    REVIEW_ITEM_ACTION_APPROVE: _ClassVar[ReviewItemAction]
    REVIEW_ITEM_ACTION_REJECT: _ClassVar[ReviewItemAction]
    REVIEW_ITEM_ACTION_EDIT: _ClassVar[ReviewItemAction]
    REVIEW_ITEM_ACTION_KEEP_NEWER: _ClassVar[ReviewItemAction]
    REVIEW_ITEM_ACTION_KEEP_OLDER: _ClassVar[ReviewItemAction]
    REVIEW_ITEM_ACTION_KEEP_BOTH: _ClassVar[ReviewItemAction]
REVIEW_ITEM_KIND_UNSPECIFIED: ReviewItemKind
REVIEW_ITEM_KIND_PENDING_WRITE: ReviewItemKind
REVIEW_ITEM_KIND_CONFLICT: ReviewItemKind
REVIEW_ITEM_ACTION_UNSPECIFIED: ReviewItemAction
REVIEW_ITEM_ACTION_APPROVE: ReviewItemAction
REVIEW_ITEM_ACTION_REJECT: ReviewItemAction
REVIEW_ITEM_ACTION_EDIT: ReviewItemAction
REVIEW_ITEM_ACTION_KEEP_NEWER: ReviewItemAction
REVIEW_ITEM_ACTION_KEEP_OLDER: ReviewItemAction
REVIEW_ITEM_ACTION_KEEP_BOTH: ReviewItemAction

class ReviewItem(_message.Message):
    __slots__ = ("item_id", "kind", "etag", "memories", "summary", "actor", "create_time")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    kind: ReviewItemKind
    etag: str
    memories: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    summary: str
    actor: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, item_id: _Optional[str] = ..., kind: _Optional[_Union[ReviewItemKind, str]] = ..., etag: _Optional[str] = ..., memories: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ..., summary: _Optional[str] = ..., actor: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReviewServiceListRequest(_message.Message):
    __slots__ = ("owners", "scopes", "kinds", "page_size", "page_token")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scopes: _containers.RepeatedScalarFieldContainer[_memory_pb2.Scope]
    kinds: _containers.RepeatedScalarFieldContainer[ReviewItemKind]
    page_size: int
    page_token: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_memory_pb2.Scope, str]]] = ..., kinds: _Optional[_Iterable[_Union[ReviewItemKind, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ReviewServiceListResponse(_message.Message):
    __slots__ = ("items", "next_page_token")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ReviewItem]
    next_page_token: str
    def __init__(self, items: _Optional[_Iterable[_Union[ReviewItem, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReviewServiceGetRequest(_message.Message):
    __slots__ = ("owners", "item_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    item_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., item_id: _Optional[str] = ...) -> None: ...

class ReviewServiceGetResponse(_message.Message):
    __slots__ = ("item",)
    ITEM_FIELD_NUMBER: _ClassVar[int]
    item: ReviewItem
    def __init__(self, item: _Optional[_Union[ReviewItem, _Mapping]] = ...) -> None: ...

class ReviewItemDecision(_message.Message):
    __slots__ = ("item_id", "action", "content", "etag", "reason")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    action: ReviewItemAction
    content: str
    etag: str
    reason: str
    def __init__(self, item_id: _Optional[str] = ..., action: _Optional[_Union[ReviewItemAction, str]] = ..., content: _Optional[str] = ..., etag: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ReviewServiceResolveRequest(_message.Message):
    __slots__ = ("owners", "decisions", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    decisions: _containers.RepeatedCompositeFieldContainer[ReviewItemDecision]
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., decisions: _Optional[_Iterable[_Union[ReviewItemDecision, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReviewItemResult(_message.Message):
    __slots__ = ("item_id", "memories", "outcome", "error_reason", "error_message")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    memories: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Memory]
    outcome: _memory_service_pb2.WriteOutcome
    error_reason: str
    error_message: str
    def __init__(self, item_id: _Optional[str] = ..., memories: _Optional[_Iterable[_Union[_memory_pb2.Memory, _Mapping]]] = ..., outcome: _Optional[_Union[_memory_service_pb2.WriteOutcome, str]] = ..., error_reason: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...

class ReviewServiceResolveResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ReviewItemResult]
    def __init__(self, results: _Optional[_Iterable[_Union[ReviewItemResult, _Mapping]]] = ...) -> None: ...
