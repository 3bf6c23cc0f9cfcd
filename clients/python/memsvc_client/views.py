"""What result objects share.

Purpose: a result is a thin view over a message of an answer: attributes with Python's types (aware datetimes,
lower-case enum names, plain dicts), converted when they are read. A view class lists its attributes in NAMES, and
`to_dict` follows from that.

Threading: values; a view never changes.

Rejected: dataclasses filled eagerly (60 us of a 0.8 ms recall).
"""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar, Generic, TypeVar

from google.protobuf.message import Message

from ._proto import memory_pb2 as pb
from .requests import datetime_of, enum_name

M = TypeVar("M", bound=Message)


class View(Generic[M]):
    """A view over one message."""

    __slots__ = ("_pb",)
    NAMES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, message: M) -> None:
        self._pb = message

    def _time(self, name: str) -> dt.datetime | None:
        return datetime_of(getattr(self._pb, name)) if self._pb.HasField(name) else None

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready: times as ISO 8601."""
        return {name: _json(getattr(self, name)) for name in self.NAMES}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.NAMES)})"


class Owned(View[M]):
    """A view over a message that belongs to a namespace."""

    __slots__ = ()

    @property
    def _namespace(self) -> pb.Namespace:
        namespace: pb.Namespace = getattr(self._pb, "namespace")  # noqa: B009  # M is any message
        return namespace

    @property
    def scope(self) -> str:
        """session, agent, user, project or global."""
        return enum_name(pb.Scope, "SCOPE", self._namespace.scope)

    @property
    def owner(self) -> str:
        """The owner's id inside the scope."""
        return self._namespace.owner


def source_dict(source: pb.Source) -> dict[str, str]:
    """Where something came from: tool, session_id, message_id."""
    return {"tool": source.tool, "session_id": source.session_id, "message_id": source.message_id}


def _json(value: Any) -> Any:
    """The value of an attribute as JSON has it."""
    if isinstance(value, View):
        return value.to_dict()
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return [_json(item) for item in value] if isinstance(value, list) else value
