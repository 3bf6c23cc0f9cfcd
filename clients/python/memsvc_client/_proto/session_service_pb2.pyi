import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from . import context_pb2 as _context_pb2
from . import memory_pb2 as _memory_pb2
from . import memory_service_pb2 as _memory_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ConsolidationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONSOLIDATION_STATE_UNSPECIFIED: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_PENDING: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_RUNNING: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_DONE: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_FAILED: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_DISCARDED: _ClassVar[ConsolidationState]
CONSOLIDATION_STATE_UNSPECIFIED: ConsolidationState
CONSOLIDATION_STATE_PENDING: ConsolidationState
CONSOLIDATION_STATE_RUNNING: ConsolidationState
CONSOLIDATION_STATE_DONE: ConsolidationState
CONSOLIDATION_STATE_FAILED: ConsolidationState
CONSOLIDATION_STATE_DISCARDED: ConsolidationState

class DialogueState(_message.Message):
    __slots__ = ("goal", "constraints", "finished", "pending", "slots", "tool_outputs")
    class SlotsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    GOAL_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    TOOL_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    goal: str
    constraints: _containers.RepeatedScalarFieldContainer[str]
    finished: _containers.RepeatedScalarFieldContainer[str]
    pending: _containers.RepeatedScalarFieldContainer[str]
    slots: _containers.ScalarMap[str, str]
    tool_outputs: _containers.RepeatedCompositeFieldContainer[ToolOutput]
    def __init__(self, goal: _Optional[str] = ..., constraints: _Optional[_Iterable[str]] = ..., finished: _Optional[_Iterable[str]] = ..., pending: _Optional[_Iterable[str]] = ..., slots: _Optional[_Mapping[str, str]] = ..., tool_outputs: _Optional[_Iterable[_Union[ToolOutput, _Mapping]]] = ...) -> None: ...

class ToolOutput(_message.Message):
    __slots__ = ("tool", "content", "truncated", "time")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    tool: str
    content: str
    truncated: bool
    time: _timestamp_pb2.Timestamp
    def __init__(self, tool: _Optional[str] = ..., content: _Optional[str] = ..., truncated: _Optional[bool] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("session_id", "tool", "start_time", "update_time", "expire_time", "turn_count", "etag")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    TURN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    tool: str
    start_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    turn_count: int
    etag: str
    def __init__(self, session_id: _Optional[str] = ..., tool: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., turn_count: _Optional[int] = ..., etag: _Optional[str] = ...) -> None: ...

class SessionServiceStartRequest(_message.Message):
    __slots__ = ("owners", "tool", "ttl", "goal")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    tool: str
    ttl: _duration_pb2.Duration
    goal: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., tool: _Optional[str] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., goal: _Optional[str] = ...) -> None: ...

class SessionServiceStartResponse(_message.Message):
    __slots__ = ("session", "resumed")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    session: Session
    resumed: bool
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., resumed: _Optional[bool] = ...) -> None: ...

class SessionServiceAppendTurnsRequest(_message.Message):
    __slots__ = ("owners", "turns", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    turns: _containers.RepeatedCompositeFieldContainer[_memory_service_pb2.Message]
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., turns: _Optional[_Iterable[_Union[_memory_service_pb2.Message, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SessionServiceAppendTurnsResponse(_message.Message):
    __slots__ = ("first_turn", "turn_count")
    FIRST_TURN_FIELD_NUMBER: _ClassVar[int]
    TURN_COUNT_FIELD_NUMBER: _ClassVar[int]
    first_turn: int
    turn_count: int
    def __init__(self, first_turn: _Optional[int] = ..., turn_count: _Optional[int] = ...) -> None: ...

class SessionServiceGetStateRequest(_message.Message):
    __slots__ = ("owners",)
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ...) -> None: ...

class SessionServiceGetStateResponse(_message.Message):
    __slots__ = ("session", "state", "window", "summary", "window_tokens", "summary_tokens")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    WINDOW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_TOKENS_FIELD_NUMBER: _ClassVar[int]
    session: Session
    state: DialogueState
    window: _containers.RepeatedCompositeFieldContainer[_memory_service_pb2.Message]
    summary: str
    window_tokens: int
    summary_tokens: int
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., state: _Optional[_Union[DialogueState, _Mapping]] = ..., window: _Optional[_Iterable[_Union[_memory_service_pb2.Message, _Mapping]]] = ..., summary: _Optional[str] = ..., window_tokens: _Optional[int] = ..., summary_tokens: _Optional[int] = ...) -> None: ...

class SessionServiceUpdateStateRequest(_message.Message):
    __slots__ = ("owners", "goal", "add_constraints", "remove_constraints", "add_pending", "finish", "set_slots", "etag")
    class SetSlotsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    ADD_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    ADD_PENDING_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    SET_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    goal: str
    add_constraints: _containers.RepeatedScalarFieldContainer[str]
    remove_constraints: _containers.RepeatedScalarFieldContainer[str]
    add_pending: _containers.RepeatedScalarFieldContainer[str]
    finish: _containers.RepeatedScalarFieldContainer[str]
    set_slots: _containers.ScalarMap[str, str]
    etag: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., goal: _Optional[str] = ..., add_constraints: _Optional[_Iterable[str]] = ..., remove_constraints: _Optional[_Iterable[str]] = ..., add_pending: _Optional[_Iterable[str]] = ..., finish: _Optional[_Iterable[str]] = ..., set_slots: _Optional[_Mapping[str, str]] = ..., etag: _Optional[str] = ...) -> None: ...

class SessionServiceUpdateStateResponse(_message.Message):
    __slots__ = ("session", "state")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    session: Session
    state: DialogueState
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., state: _Optional[_Union[DialogueState, _Mapping]] = ...) -> None: ...

class SessionServiceRecordToolOutputRequest(_message.Message):
    __slots__ = ("owners", "tool", "content", "request_id")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    tool: str
    content: str
    request_id: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., tool: _Optional[str] = ..., content: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SessionServiceRecordToolOutputResponse(_message.Message):
    __slots__ = ("truncated",)
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    truncated: bool
    def __init__(self, truncated: _Optional[bool] = ...) -> None: ...

class SessionServiceAssembleRequest(_message.Message):
    __slots__ = ("owners", "query", "options")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    query: str
    options: _context_pb2.ContextOptions
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., query: _Optional[str] = ..., options: _Optional[_Union[_context_pb2.ContextOptions, _Mapping]] = ...) -> None: ...

class SessionServiceAssembleResponse(_message.Message):
    __slots__ = ("context",)
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    context: _context_pb2.Context
    def __init__(self, context: _Optional[_Union[_context_pb2.Context, _Mapping]] = ...) -> None: ...

class SessionServiceEndRequest(_message.Message):
    __slots__ = ("owners", "scope", "discard")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    DISCARD_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    scope: _memory_pb2.Scope
    discard: bool
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., scope: _Optional[_Union[_memory_pb2.Scope, str]] = ..., discard: _Optional[bool] = ...) -> None: ...

class SessionServiceEndResponse(_message.Message):
    __slots__ = ("consolidation",)
    CONSOLIDATION_FIELD_NUMBER: _ClassVar[int]
    consolidation: Consolidation
    def __init__(self, consolidation: _Optional[_Union[Consolidation, _Mapping]] = ...) -> None: ...

class Consolidation(_message.Message):
    __slots__ = ("session_id", "state", "done_turns", "total_turns", "results", "episode_id", "error", "create_time", "update_time", "set_aside_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DONE_TURNS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TURNS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SET_ASIDE_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    state: ConsolidationState
    done_turns: int
    total_turns: int
    results: _containers.RepeatedCompositeFieldContainer[_memory_service_pb2.WriteResult]
    episode_id: str
    error: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    set_aside_id: str
    def __init__(self, session_id: _Optional[str] = ..., state: _Optional[_Union[ConsolidationState, str]] = ..., done_turns: _Optional[int] = ..., total_turns: _Optional[int] = ..., results: _Optional[_Iterable[_Union[_memory_service_pb2.WriteResult, _Mapping]]] = ..., episode_id: _Optional[str] = ..., error: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., set_aside_id: _Optional[str] = ...) -> None: ...

class SessionServiceGetConsolidationRequest(_message.Message):
    __slots__ = ("owners", "wait")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    wait: _duration_pb2.Duration
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SessionServiceGetConsolidationResponse(_message.Message):
    __slots__ = ("consolidation",)
    CONSOLIDATION_FIELD_NUMBER: _ClassVar[int]
    consolidation: Consolidation
    def __init__(self, consolidation: _Optional[_Union[Consolidation, _Mapping]] = ...) -> None: ...

class SessionServiceListRequest(_message.Message):
    __slots__ = ("owners", "page_size", "page_token")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owners: _memory_pb2.Owners
    page_size: int
    page_token: str
    def __init__(self, owners: _Optional[_Union[_memory_pb2.Owners, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class SessionServiceListResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
