"""The calls of AdminService about tokens: CreateToken, GetToken, ListTokens, RevokeToken, RotateKeys.

Purpose: reads requests, calls `auth.tokens`, writes answers; a part of `AdminServicer` in a file of its own.

Threading: as `AdminServicer`.

Rejected: a gRPC service of its own (the same people, the same right).
"""

from __future__ import annotations

import grpc

from memsvc.errors import NotFound
from memsvc.memory.listing import page_size
from memsvc.memory.owners import DEFAULT_TENANT
from memsvc.memory.token_register import TokenRecord
from memsvc.service import convert
from memsvc.service.auth.principal import ANY
from memsvc.service.auth.tokens import TTL_DEFAULT_US, Tokens, Wanted, identity
from memsvc.service.calls import actor, answers
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import admin_service_pb2_grpc as rpc


class TokenCalls(rpc.AdminServiceServicer):
    """See the module; `AdminServicer` sets the attribute."""

    _tokens: Tokens

    @answers
    def CreateToken(  # noqa: N802  (the method of the contract)
        self, request: apb.CreateTokenRequest, context: grpc.ServicerContext
    ) -> apb.CreateTokenResponse:
        """Issues a token."""
        secret, record = self._tokens.issue(wanted(request), actor())
        return apb.CreateTokenResponse(secret=secret, token=token_message(record))

    @answers
    def GetToken(  # noqa: N802  (the method of the contract)
        self, request: apb.GetTokenRequest, context: grpc.ServicerContext
    ) -> apb.GetTokenResponse:
        """What is registered of a token."""
        return apb.GetTokenResponse(token=token_message(self._of_tenant(request)))

    @answers
    def ListTokens(  # noqa: N802  (the method of the contract)
        self, request: apb.ListTokensRequest, context: grpc.ServicerContext
    ) -> apb.ListTokensResponse:
        """The tokens of a tenant, newest first."""
        tenant = request.tenant or DEFAULT_TENANT
        page, token = self._tokens.register.page(
            None if tenant == ANY else tenant, page_size(request.page_size), request.page_token
        )
        return apb.ListTokensResponse(tokens=[token_message(record) for record in page], next_page_token=token)

    @answers
    def RevokeToken(  # noqa: N802  (the method of the contract)
        self, request: apb.RevokeTokenRequest, context: grpc.ServicerContext
    ) -> apb.RevokeTokenResponse:
        """Revokes a token."""
        record = self._of_tenant(request)
        return apb.RevokeTokenResponse(token=token_message(self._tokens.revoke(record.token_id)))

    @answers
    def RotateKeys(  # noqa: N802  (the method of the contract)
        self, request: apb.RotateKeysRequest, context: grpc.ServicerContext
    ) -> apb.RotateKeysResponse:
        """Makes a new signing key."""
        kid, dropped = self._tokens.rotate_keys(drop_old=request.drop_old)
        return apb.RotateKeysResponse(key_id=kid, dropped_key_ids=dropped)

    def _of_tenant(self, request: apb.GetTokenRequest | apb.RevokeTokenRequest) -> TokenRecord:
        """The record, if it is of the request's tenant, which the guard has checked. Raises NotFound."""
        record = self._tokens.get(request.token_id)
        if (request.tenant or DEFAULT_TENANT) not in (record.tenant, ANY):
            raise NotFound(f"no token {request.token_id}", token_id=request.token_id)
        return record


def wanted(request: apb.CreateTokenRequest) -> Wanted:
    """What is asked for. Raises InvalidArgument."""
    return Wanted(
        name=request.name,
        tenant=request.tenant or DEFAULT_TENANT,
        agent_id=request.agent_id,
        user_ids=tuple(request.user_ids),
        project_ids=tuple(request.project_ids),
        grants=tuple(request.grants),
        read_only=request.read_only,
        admin=request.admin,
        reads_per_minute=request.reads_per_minute,
        writes_per_minute=request.writes_per_minute,
        ttl_us=convert.duration_us(request.ttl, "ttl") if request.HasField("ttl") else TTL_DEFAULT_US,
    )


def token_message(record: TokenRecord) -> apb.Token:
    """The contract's message."""
    claims = identity(record)
    message = apb.Token(
        token_id=record.token_id,
        name=record.name,
        tenant=claims.tenant,
        agent_id=claims.agent,
        user_ids=claims.users,
        project_ids=claims.projects,
        grants=claims.grants,
        read_only=claims.read_only,
        admin=claims.admin,
        reads_per_minute=claims.reads_per_minute,
        writes_per_minute=claims.writes_per_minute,
        issue_time=convert.timestamp(record.issue_time_us),
        expire_time=convert.timestamp(record.expire_time_us),
        key_id=record.kid,
        issuer=record.issuer,
        delegations=[apb.Delegation(actor_agent_id=step.agent, parent_token_id=step.parent) for step in claims.act],
    )
    if record.revoke_time_us:
        message.revoke_time.CopyFrom(convert.timestamp(record.revoke_time_us))
    if record.last_use_time_us:
        message.last_use_time.CopyFrom(convert.timestamp(record.last_use_time_us))
    return message
