"""Tokens: issuing, checking and revoking them.

Purpose: a token is a JWT signed with Ed25519; its claims are the principal. A checked token is remembered by its hash,
so that a warm call pays one hash and two look-ups; whether it expired or was revoked is asked on every call.

Threading: any number of threads. The cache is a dict whose races only cost a second check.

Rejected: taking the algorithm from the token's header (that is how `none` and confused keys get in); PyJWT's checks of
times (they read the wall clock themselves, and a remembered token needs them again anyway).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import jwt
import msgspec

from memsvc.errors import InvalidArgument, NotFound, TokenExpired, TokenRevoked, Unauthenticated
from memsvc.memory.drafts import check_length
from memsvc.memory.owners import DEFAULT_TENANT, ID_MAX_CHARS
from memsvc.memory.token_register import TokenRecord, TokenRegister
from memsvc.service.auth.keys import SigningKeys
from memsvc.service.auth.principal import ANY, LOCAL_ACTOR, Caller, Delegation, Principal, parse_grants
from memsvc.service.auth.rates import PER_MINUTE_MAX
from memsvc.service.auth.rules import Kind

ALGORITHM = "EdDSA"
ISSUER = "memsvc"
AUDIENCE = "memsvc"
CREATED, EXCHANGED = "AdminService/CreateToken", "TokenService/Exchange"  # as the audit names them
TOKEN_MAX_CHARS = 16_384
CACHE_ENTRIES = 4096
NAME_MAX_CHARS = 128
OWNERS_MAX = 64
_MICROS = 1_000_000
_DAY_US = 86_400 * _MICROS
TTL_DEFAULT_US = 90 * _DAY_US
TTL_MIN_US = 60 * _MICROS
TTL_MAX_US = 366 * _DAY_US
_REQUIRED = ["iss", "aud", "iat", "nbf", "exp", "jti"]
_OPTIONS: Any = {"require": _REQUIRED, "verify_exp": False, "verify_nbf": False, "verify_iat": False}


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alg: str
    kid: str
    typ: str = ""


class Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a token says; times are UTC seconds; calls a minute are 0 for the server's defaults."""

    iss: str
    aud: str
    iat: int
    nbf: int
    exp: int
    jti: str
    tenant: str
    agent: str = ""
    users: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    read_only: bool = False
    admin: bool = False
    act: tuple[Delegation, ...] = ()
    reads_per_minute: int = 0
    writes_per_minute: int = 0

    def per_minute(self) -> dict[Kind, int]:
        """How many calls of a kind it may make a minute; 0 for the server's default."""
        return {Kind.READ: self.reads_per_minute, Kind.WRITE: self.writes_per_minute}


class Checked(msgspec.Struct, frozen=True):
    """A token whose signature and form hold: who it is, when it is good, in UTC microseconds, and how many calls a
    minute it may make and each token that it was made from, which must be good as well, by their ids, its own first.
    """

    caller: Caller
    token_id: str
    kid: str
    not_before_us: int
    expire_time_us: int
    limits: tuple[tuple[str, dict[Kind, int]], ...]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a token shall be. `grants` are texts; see `principal.parse_grants`."""

    name: str = ""
    tenant: str = DEFAULT_TENANT
    agent_id: str = ""
    user_ids: tuple[str, ...] = ()
    project_ids: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    read_only: bool = False
    admin: bool = False
    reads_per_minute: int = 0
    writes_per_minute: int = 0
    ttl_us: int = TTL_DEFAULT_US
    act: tuple[Delegation, ...] = ()


class Tokens:
    """See the module. `make_id` gives ids that grow; `revoked` is called after each revocation."""

    def __init__(
        self,
        keys: SigningKeys,
        register: TokenRegister,
        *,
        clock_us: Callable[[], int],
        make_id: Callable[[], str],
        revoked: Callable[[], None] = lambda: None,
    ) -> None:
        self._keys = keys
        self.register = register
        self._clock_us = clock_us
        self._make_id = make_id
        self._revoked = revoked
        self._cache: dict[bytes, Checked] = {}

    # -- checking ------------------------------------------------------------------------------------------------

    def check(self, token: str) -> Checked:
        """Who a token is. Raises Unauthenticated, TokenExpired and TokenRevoked."""
        digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        checked = self._cache.get(digest)
        if checked is None:
            checked = self._opened(token)
            if len(self._cache) >= CACHE_ENTRIES:
                self._cache.clear()
            self._cache[digest] = checked
        self.register.note_use(checked.token_id, self.check_now(checked))
        return checked

    def check_now(self, checked: Checked) -> int:
        """Whether a checked token is still good; returns the time. Raises Unauthenticated, TokenExpired and
        TokenRevoked.
        """
        if self._keys.verifier(checked.kid) is None:
            raise _invalid()
        for token_id, _ in checked.limits:
            record = self.register.get(token_id)
            if record is None:
                raise _invalid()
            if record.revoke_time_us:
                raise TokenRevoked("the token was revoked; ask for a new one", token_id=token_id)
        now_us = self._clock_us()
        if now_us >= checked.expire_time_us:
            raise TokenExpired("the token has expired; ask for a new one", token_id=checked.token_id)
        if now_us < checked.not_before_us:
            raise TokenExpired("the token is not valid yet; compare the clocks", token_id=checked.token_id)
        return now_us

    def _opened(self, token: str) -> Checked:
        """The token with its signature and form checked. Raises Unauthenticated, the same for whatever is wrong."""
        if len(token) > TOKEN_MAX_CHARS or not token.isascii():
            raise _invalid()
        try:
            header = msgspec.json.decode(_decoded(token.partition(".")[0]), type=_Header)
            key = self._keys.verifier(header.kid)
            if header.alg != ALGORITHM or key is None:
                raise _invalid()
            plain = jwt.decode(token, key, algorithms=[ALGORITHM], audience=AUDIENCE, issuer=ISSUER, options=_OPTIONS)
            claims = msgspec.convert(plain, Claims)
            principal = Principal(
                token_id=claims.jti,
                tenant=claims.tenant,
                agent_id=claims.agent,
                user_ids=frozenset(claims.users),
                project_ids=frozenset(claims.projects),
                grants=parse_grants(claims.grants),
                read_only=claims.read_only,
                admin=claims.admin,
                act=claims.act,
            )
        except (jwt.PyJWTError, msgspec.MsgspecError, ValueError, RecursionError, InvalidArgument) as error:
            raise _invalid() from error
        return Checked(
            caller=Caller(principal),
            token_id=claims.jti,
            kid=header.kid,
            not_before_us=claims.nbf * _MICROS,
            expire_time_us=claims.exp * _MICROS,
            limits=((claims.jti, claims.per_minute()), *map(self._limits, claims.act)),
        )

    def _limits(self, step: Delegation) -> tuple[str, dict[Kind, int]]:
        """A parent's. Raises Unauthenticated when it is not known any more."""
        record = self.register.get(step.parent)
        if record is None:
            raise _invalid()
        return step.parent, identity(record).per_minute()

    # -- issuing -------------------------------------------------------------------------------------------------

    def issue(self, wanted: Wanted, issuer: str) -> tuple[str, TokenRecord]:
        """A new token and its record; the token is nowhere else. Raises InvalidArgument and LimitExceeded."""
        _check_wanted(wanted)
        grants = tuple(str(grant) for grant in parse_grants(wanted.grants))
        now_s = self._clock_us() // _MICROS
        kid, key = self._keys.signer()
        claims = Claims(
            iss=ISSUER,
            aud=AUDIENCE,
            iat=now_s,
            nbf=now_s,
            exp=now_s + wanted.ttl_us // _MICROS,
            jti=self._make_id(),
            tenant=wanted.tenant,
            agent=wanted.agent_id,
            users=tuple(sorted(set(wanted.user_ids))),
            projects=tuple(sorted(set(wanted.project_ids))),
            grants=grants,
            read_only=wanted.read_only,
            admin=wanted.admin,
            act=wanted.act,
            reads_per_minute=wanted.reads_per_minute,
            writes_per_minute=wanted.writes_per_minute,
        )
        token = jwt.encode(msgspec.to_builtins(claims), key, ALGORITHM, {"kid": kid})
        if len(token) > TOKEN_MAX_CHARS:
            raise InvalidArgument(f"the token would have {len(token)} characters; name fewer owners", field="user_ids")
        record = TokenRecord(
            token_id=claims.jti,
            tenant=wanted.tenant,
            name=wanted.name,
            identity=msgspec.json.encode(claims),
            kid=kid,
            issuer=issuer,
            issue_time_us=claims.iat * _MICROS,
            expire_time_us=claims.exp * _MICROS,
        )
        self.register.add(record, EXCHANGED if wanted.act else CREATED)
        return token, record

    def get(self, token_id: str) -> TokenRecord:
        """The record with its last use. Raises NotFound."""
        record = self.register.get(token_id)
        if record is None:
            raise NotFound(f"no token {token_id}", token_id=token_id)
        return self.register.with_use(record)

    def revoke(self, token_id: str, actor: str = LOCAL_ACTOR) -> TokenRecord:
        """No call that starts after this returns is answered with the token, and its open streams end. `actor`: who
        does it, for the audit. Raises NotFound.
        """
        record = self.register.revoke(token_id, self._clock_us(), actor)
        self._revoked()
        return self.register.with_use(record)

    def rotate_keys(self, *, drop_old: bool) -> tuple[str, list[str]]:
        """A new key signs from now on; an older one is dropped when no living token needs it, or with `drop_old` at
        once, which ends the tokens that it signed. Returns the new kid and the dropped ones.
        """
        still_used = set() if drop_old else self.register.kids_in_use(self._clock_us())
        done = self._keys.rotate(still_used)
        self._revoked()
        return done


def identity(record: TokenRecord) -> Claims:
    """What a registered token says."""
    return msgspec.json.decode(record.identity, type=Claims)


def _invalid() -> Unauthenticated:
    return Unauthenticated("the token is not valid here")


def _decoded(part: str) -> bytes:
    decoded: bytes = jwt.utils.base64url_decode(part)
    return decoded


def _check_wanted(wanted: Wanted) -> None:
    check_length(wanted.name, NAME_MAX_CHARS, "name")
    if not wanted.tenant:
        raise InvalidArgument("tenant is empty; leave it unset or give an id", field="tenant")
    if wanted.tenant == ANY and not wanted.admin:
        raise InvalidArgument("tenant * is for tokens with admin only", field="tenant")
    if not TTL_MIN_US <= wanted.ttl_us <= TTL_MAX_US:
        raise InvalidArgument(f"ttl must be from 1 minute to {TTL_MAX_US // _DAY_US} days", field="ttl")
    for field in ("reads_per_minute", "writes_per_minute"):
        if not 0 <= getattr(wanted, field) <= PER_MINUTE_MAX:
            raise InvalidArgument(f"{field} must be from 0 (the server's default) to {PER_MINUTE_MAX}", field=field)
    for field in ("user_ids", "project_ids"):
        ids = getattr(wanted, field)
        if len(ids) > OWNERS_MAX:
            raise InvalidArgument(f"{field} has {len(ids)} entries, the limit is {OWNERS_MAX}", field=field)
        if "" in ids:
            raise InvalidArgument(f"{field} holds an empty id", field=field)
    for field, ids in (
        ("tenant", (wanted.tenant,)),
        ("agent_id", (wanted.agent_id,)),
        ("user_ids", wanted.user_ids),
        ("project_ids", wanted.project_ids),
    ):
        for one in ids:
            check_length(one, ID_MAX_CHARS, field)
