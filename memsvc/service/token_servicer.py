"""TokenService: what a token may do with itself.

Purpose: Exchange; reads the request, calls `auth.exchange` and `auth.tokens`, writes the answer.

Threading: as `server`.

Rejected: a call of AdminService (every token may make it).
"""

from __future__ import annotations

from collections.abc import Callable

import grpc

from memsvc.errors import TokenMissing
from memsvc.service import convert
from memsvc.service.auth.exchange import narrowed
from memsvc.service.auth.principal import CALLER
from memsvc.service.auth.rules import Kind
from memsvc.service.auth.tokens import Tokens, identity
from memsvc.service.calls import answers
from memsvc.service.token_calls import token_message
from memsvc.v1 import token_service_pb2 as tpb
from memsvc.v1 import token_service_pb2_grpc as rpc


class TokenServicer(rpc.TokenServiceServicer):
    """See the module."""

    def __init__(self, tokens: Tokens, *, clock_us: Callable[[], int]) -> None:
        self._tokens = tokens
        self._clock_us = clock_us

    @answers
    def Exchange(
        self, request: tpb.TokenServiceExchangeRequest, context: grpc.ServicerContext
    ) -> tpb.TokenServiceExchangeResponse:
        """A narrower token out of the call's own."""
        caller = CALLER.get()
        if caller.principal is None:
            raise TokenMissing("there is no token to exchange: `memsvc token create` makes one")
        parent = self._tokens.get(caller.principal.token_id)
        wanted = narrowed(
            caller,
            identity(parent).per_minute(),
            parent.expire_time_us - self._clock_us(),
            name=request.name,
            actor_agent_id=request.actor_agent_id,
            user_ids=request.user_ids,
            project_ids=request.project_ids,
            grants=request.grants,
            read_only=request.read_only,
            per_minute={Kind.READ: request.reads_per_minute, Kind.WRITE: request.writes_per_minute},
            ttl_us=convert.duration_us(request.ttl, "ttl") if request.HasField("ttl") else None,
        )
        secret, record = self._tokens.issue(wanted, caller.actor)
        return tpb.TokenServiceExchangeResponse(secret=secret, token=token_message(record))
