"""The guard: who calls, and whether the table of rules lets the call through.

Purpose: `Gate` is what one service's calls ask: `caller` reads the token, `allow` applies the row. Both come before the
call does anything.

Threading: any number of threads.

Rejected: a gRPC interceptor (a layer of handler objects on every call, and it sees bytes, not requests).
"""

from __future__ import annotations

import functools
from typing import Any

import grpc

from memsvc.errors import PermissionDenied, TokenMissing, Unauthenticated
from memsvc.memory.audit_book import AuditBook
from memsvc.memory.owners import DEFAULT_TENANT, Owners, check, namespace_for
from memsvc.memory.places import Places
from memsvc.model import Scope
from memsvc.service import convert
from memsvc.service.admission import HEAVY, Admission
from memsvc.service.auth.principal import ANY, LOCAL, Caller
from memsvc.service.auth.rates import Rates
from memsvc.service.auth.rules import RULES, AdminRule, OwnTokenRule, Rule, Whose, kind_of
from memsvc.service.auth.tokens import Checked, Tokens
from memsvc.service.shown import NOTED, named, shown

HEADER = "authorization"
_SCHEME = "bearer "
_MISSING = ("right", "scope", "layer", "owner")  # of a refusal's metadata, what the audit keeps


class Guard:
    """See the module. Without `token_required` a call without a token is the local caller's: the server must then
    listen on loopback only.
    """

    def __init__(
        self,
        tokens: Tokens,
        places: Places,
        rates: Rates,
        admission: Admission,
        book: AuditBook,
        *,
        token_required: bool,
    ) -> None:
        self._tokens = tokens
        self._places = places
        self._rates = rates
        self.admission = admission
        self.book = book
        self._token_required = token_required

    def gate(self, service: str) -> Gate:
        """What the calls of a service ask; `service` is its full name."""
        name = service.rpartition(".")[2] + "/"
        rows = {call.removeprefix(name): row for call, row in RULES.items() if call.startswith(name)}
        return Gate(self, name, rows, frozenset(call.removeprefix(name) for call in HEAVY if call.startswith(name)))

    def checked(self, context: grpc.ServicerContext) -> Checked | None:
        """The call's token; None for the local caller. Raises Unauthenticated and its kin."""
        token = _bearer(context)
        if token is not None:
            return self._tokens.check(token)
        if self._token_required:
            raise TokenMissing("this server takes calls with a token only; see `memsvc token create`")
        return None

    def count(self, row: Rule | AdminRule | OwnTokenRule | None, checked: Checked) -> None:
        """Counts a call of a token, whether it is allowed or not, against the tokens that it was made from as well.
        Raises RateLimited.
        """
        kind = kind_of(row)
        for token_id, per_minute in checked.limits:
            self._rates.take(token_id, kind, per_minute[kind])

    def allow(self, row: Rule | AdminRule | OwnTokenRule | None, caller: Caller, request: Any) -> None:
        """Raises PermissionDenied naming what is missing, and NotFound for another agent's or project's session. The
        local caller needs no right, but a session stays its agent's for it too.
        """
        if caller.principal is None:
            if isinstance(row, Rule) and row.whose is not None:
                self._check_session(row.whose, caller, _checked_owners(request))
            return
        if row is None:
            raise PermissionDenied("no rule allows this call with a token")
        if isinstance(row, AdminRule):
            caller.check_admin(row.tenant(request))
            return
        if isinstance(row, OwnTokenRule):
            return
        owners = _checked_owners(request)
        caller.check_owners(owners)
        if row.everyone is not None and row.everyone(request):
            caller.check_everyone()
        if row.whose is not None:
            self._check_session(row.whose, caller, owners)
        for right, reach in row.needs:
            for scope, layer in reach(request, owners, self._places):
                if scope == Scope.SESSION:
                    caller.check_session(owners)
                caller.check_right(right, scope, layer)

    def _check_session(self, whose: Whose, caller: Caller, owners: Owners) -> None:
        if owners.session_id is not None:
            caller.check_session_is_own(owners, whose(self._places, namespace_for(owners, Scope.SESSION)))

    def check_still(self, checked: Checked | None) -> None:
        """For streams: raises Unauthenticated and its kin when the token is not good any more."""
        if checked is not None:
            self._tokens.check_now(checked)


class Gate:
    """A guard with one service's rows, by the name of the call."""

    def __init__(
        self, guard: Guard, service: str, rows: dict[str, Rule | AdminRule | OwnTokenRule], heavy: frozenset[str]
    ) -> None:
        self.check_still = guard.check_still
        self._guard = guard
        self._service = service
        self._rows = rows
        self._heavy = heavy
        self._noted = frozenset(call.removeprefix(service) for call in NOTED if call.startswith(service))

    def note(self, call: str, request: Any, answer: Any, caller: Caller) -> None:
        """For the audit: what an answer shows, and to whom."""
        if call in self._noted:
            principal = caller.principal
            self._guard.book.read(
                caller.actor,
                self._service + call,
                functools.partial(shown, answer),
                functools.partial(named, request),
                always=principal is not None and bool(principal.act),
            )

    def enter(self, call: str, request: Any, context: grpc.ServicerContext) -> Checked | None:
        """The call's token, after the row of the call was applied. Raises Overloaded, Unauthenticated, RateLimited,
        PermissionDenied, NotFound for another's session, and InvalidArgument for what the call itself would refuse.
        """
        if call in self._heavy:
            self._guard.admission.check()
        checked = self._guard.checked(context)
        if checked is not None:
            self._guard.count(self._rows.get(call), checked)
        convert.refuse_unknown(request)
        caller = caller_of(checked)
        try:
            self._guard.allow(self._rows.get(call), caller, request)
        except PermissionDenied as error:
            self._note_denied(call, request, caller, error)
            raise
        return checked

    def _note_denied(self, call: str, request: Any, caller: Caller, error: PermissionDenied) -> None:
        if caller.principal is None:
            return
        missing = " ".join(f"{name}={error.metadata[name]}" for name in _MISSING if name in error.metadata)
        tenant = caller.principal.tenant
        names = named(request) if "owners" in request.DESCRIPTOR.fields_by_name else ()
        self._guard.book.denied(
            DEFAULT_TENANT if tenant == ANY else tenant, caller.actor, self._service + call, missing, names
        )


def caller_of(checked: Checked | None) -> Caller:
    """Who calls."""
    return LOCAL if checked is None else checked.caller


def _checked_owners(request: Any) -> Owners:
    owners: Owners = convert.owners(request.owners)
    check(owners)
    return owners


def _bearer(context: grpc.ServicerContext) -> str | None:
    """The token of the call; None without one. Raises Unauthenticated for a header that holds something else."""
    found: str | None = None
    for key, value in context.invocation_metadata():
        if key != HEADER:
            continue
        if found is not None or not isinstance(value, str) or value[: len(_SCHEME)].lower() != _SCHEME:
            raise Unauthenticated("the header `authorization` must be one `Bearer` and a token")
        found = value[len(_SCHEME) :].strip()
    return found
