"""What every call shares: checking the envelope, mapping errors, counting.

Purpose: `answers` wraps a servicer method so that its gate says who calls and whether they may, unknown fields are
refused, memsvc errors become statuses, and a bug becomes INTERNAL with its traceback in the log and no content in the
answer.

Threading: wrappers run on the server's threads.

Rejected: grpc interceptors (each costs a layer of handler objects on every call of a 0.4 ms budget).
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

from memsvc.errors import InvalidArgument, MemsvcError
from memsvc.memory.owners import Owners, check, namespaces_for, reached_by
from memsvc.memory.transactions import Mutation, fingerprint
from memsvc.memory.waiting import Viewer
from memsvc.model import Namespace, Scope
from memsvc.service import convert, status
from memsvc.service.auth.guard import caller_of
from memsvc.service.auth.principal import CALLER, Caller, Right

LOG = logging.getLogger("memsvc.service")
F = TypeVar("F", bound=Callable[..., Any])


def answers(method: F) -> F:
    """Wraps a unary servicer method; see the module. The server gives the servicer its `gate`."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Any, request: Message, context: grpc.ServicerContext) -> Any:
        try:
            caller = caller_of(self.gate.enter(name, request, context))
            with_caller = CALLER.set(caller)
            try:
                answer = method(self, request, context)
                self.gate.note(name, request, answer, caller)
                return answer
            finally:
                CALLER.reset(with_caller)
        except MemsvcError as error:
            LOG.debug("%s refused: %s", name, error.reason)
            status.abort(context, error)
        except Exception as error:  # the edge of the process: a bug must answer INTERNAL and be logged, whatever it is
            LOG.exception("%s failed", name)
            status.abort(context, MemsvcError(f"internal error in {name}: {type(error).__name__}; see the log"))
        raise AssertionError("unreachable: abort raises")

    return call  # type: ignore[return-value]


def check_request_id(request_id: str) -> str:
    """The request_id in canonical form; "" stays "". Raises InvalidArgument unless it is a UUID."""
    if not request_id:
        return ""
    try:
        return str(uuid.UUID(request_id))
    except ValueError as error:
        raise InvalidArgument("request_id is not a UUID", field="request_id") from error


def actor() -> str:
    """Who the call's changes are by: `local`, or `token:` and the token's id."""
    return CALLER.get().actor


def viewer() -> Viewer:
    """The call's principal, as the memory room asks for it."""
    return viewer_of(CALLER.get())


def viewer_of(caller: Caller) -> Viewer:
    """A caller, as the memory room asks for it."""
    return Viewer(caller.actor, functools.partial(caller.may, Right.APPROVE))


def mutation(request: Any) -> Mutation:
    """The replay identity of a request (its request_id, and a hash of the request without it) and its actor."""
    request_id = check_request_id(request.request_id)
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("request_id")
    descriptor = request.DESCRIPTOR
    body = fingerprint(descriptor.full_name.encode(), bare.SerializeToString(deterministic=True))
    return Mutation(request_id, body, actor(), call_of(descriptor.full_name, descriptor.file))


_CALL_OF: dict[str, str] = {}


def call_of(request_name: str, file: FileDescriptor) -> str:
    """`Service/Call` of the call whose request this is: no two calls share a request."""
    if request_name not in _CALL_OF:
        for service in file.services_by_name.values():
            _CALL_OF.update(
                {method.input_type.full_name: f"{service.name}/{method.name}" for method in service.methods}
            )
    return _CALL_OF[request_name]


def named(request: Any) -> list[Namespace]:
    """Namespaces of a request with owners and scopes."""
    owner_ids = convert.owners(request.owners)
    check(owner_ids)
    return namespaces_for(owner_ids, convert.enums(Scope, request.scopes, "scopes"))


def reached(request: Any) -> tuple[Owners, list[Namespace]]:
    """Owner ids of a request and every namespace that they name; GLOBAL alone if they name none."""
    owner_ids = convert.owners(request.owners)
    check(owner_ids)
    return owner_ids, reached_by(owner_ids)


def still_wanted(context: grpc.ServicerContext) -> Callable[[], bool]:
    """Whether the caller is still there and its deadline not passed."""
    return context.is_active


def left_s(context: grpc.ServicerContext, limit_s: float) -> float:
    """Seconds that the call may take: the limit, or what the caller's deadline leaves."""
    remaining = context.time_remaining()
    return limit_s if remaining is None else min(limit_s, remaining)


def budget_s(context: grpc.ServicerContext, holder: Any, path: str, default_s: float) -> float:
    """Seconds that a recall may take: `holder.latency_budget`, or the default where that is not set, or what the
    caller's deadline leaves. Raises InvalidArgument naming the field `path` for a budget that is not positive.
    """
    if not holder.HasField("latency_budget"):
        return left_s(context, default_s)
    asked_s = holder.latency_budget.seconds + holder.latency_budget.nanos / 1e9
    if asked_s <= 0:
        raise InvalidArgument(f"{path} must be positive", field=path)
    return left_s(context, asked_s)
