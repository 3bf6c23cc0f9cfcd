"""Commands about tokens: token create, exchange, list, show, revoke, rotate-keys.

Purpose: AdminService of a running server; with --data-dir the keys and the register of a stopped one, which is how a
server that takes calls with tokens only gets its first.

Threading: one command a process.

Rejected: writing the token into a file (the shell does that: `> FILE`, with the mode that its umask says).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from rich.table import Table

from memsvc.cli.common import (
    CLI_TIMEOUT_S,
    DataDir,
    Format,
    Output,
    Server,
    app,
    duration,
    err,
    escaped,
    examples,
    out,
    print_json,
    say,
    server_settings,
    utc_now,
)
from memsvc.cli.connecting import TokenFile, ask, ask_admin
from memsvc.cli.tables import ID, Column, rows_table
from memsvc.config import ClientSettings
from memsvc.memory.owners import DEFAULT_TENANT
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import token_service_pb2 as tpb
from memsvc.v1 import token_service_pb2_grpc as trpc

if TYPE_CHECKING:
    from memsvc.service.auth.tokens import Tokens

PAGE_SIZE = 1000
INT32_MAX = 2**31 - 1

token_app = typer.Typer(help="Issue, list and revoke tokens.", no_args_is_help=True)
app.add_typer(token_app, name="token")

TokenId = Annotated[str, typer.Argument(help="tok_...")]
Tenant = Annotated[
    str, typer.Option("--tenant", help="Tenant (env MEMSVC_TENANT); '*' for the whole server.", show_default="default")
]


@token_app.command(
    epilog=examples(
        "memsvc token create --name laptop --user u1 --project p1",
        "memsvc token create --agent code-review --user u1 --grant user:semantic=read --grant project=read,write",
        "memsvc token create --data-dir ~/memories --name ops --tenant '*' --admin",
    )
)
def create(
    name: Annotated[str, typer.Option(help="Name that people know it by.")] = "",
    tenant: Tenant = "",
    agent: Annotated[str, typer.Option(help="Agent that it acts for; '*' for any.")] = "",
    user: Annotated[list[str] | None, typer.Option(help="User that it acts for; may be repeated; '*': any.")] = None,
    project: Annotated[
        list[str] | None, typer.Option(help="Project that it acts for; may be repeated; '*': any.")
    ] = None,
    grant: Annotated[
        list[str] | None,
        typer.Option(
            help="scope[:layer]=right,right (read, write, propose, approve, maintain, audit, erase) or scope=none."
        ),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Nothing but reading.")] = False,
    admin: Annotated[bool, typer.Option("--admin", help="AdminService of the tenant.")] = False,
    reads_per_minute: Annotated[
        int, typer.Option(min=0, max=INT32_MAX, help="Reading calls a minute; 0: the server's default.")
    ] = 0,
    writes_per_minute: Annotated[
        int, typer.Option(min=0, max=INT32_MAX, help="Other calls a minute; 0: the server's default.")
    ] = 0,
    ttl: Annotated[str, typer.Option(help="How long it is good: 12h, 30d, 26w.")] = "90d",
    data_dir: DataDir = None,
    server: Server = "",
    token_file: TokenFile = None,
    output: Format = Output.text,
) -> None:
    """Issue a token and print it, once: it is stored nowhere. With --data-dir on a stopped server's directory."""
    request = apb.CreateTokenRequest(
        name=name,
        tenant=_tenant(tenant),
        agent_id=agent,
        user_ids=user or [],
        project_ids=project or [],
        grants=grant or [],
        read_only=read_only,
        admin=admin,
        reads_per_minute=reads_per_minute,
        writes_per_minute=writes_per_minute,
    )
    request.ttl.FromTimedelta(duration(ttl, "--ttl"))
    if data_dir is None:
        answer = ask_admin(server, "CreateToken", request, CLI_TIMEOUT_S, token_file)
    else:
        with _stopped(data_dir) as tokens:
            answer = _issued(tokens, request)
    _print_secret(answer, output)


@token_app.command(
    epilog=examples(
        "memsvc token exchange --for-agent helper --grant project:semantic=read --ttl 2h",
        "memsvc token exchange --read-only --token-file ~/.memsvc/token",
    )
)
def exchange(
    name: Annotated[str, typer.Option(help="Name that people know it by.")] = "",
    for_agent: Annotated[str, typer.Option(help="Agent that will use it; named in what it changes.")] = "",
    user: Annotated[list[str] | None, typer.Option(help="One of the token's users; may be repeated.")] = None,
    project: Annotated[list[str] | None, typer.Option(help="One of the token's projects; may be repeated.")] = None,
    grant: Annotated[
        list[str] | None, typer.Option(help="scope[:layer]=right,right; the token's own grants if none is given.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Nothing but reading.")] = False,
    reads_per_minute: Annotated[int, typer.Option(min=0, help="Reading calls a minute; 0: as the token.")] = 0,
    writes_per_minute: Annotated[int, typer.Option(min=0, help="Other calls a minute; 0: as the token.")] = 0,
    ttl: Annotated[str, typer.Option(help="How long it is good: 10m, 12h.", show_default="1h or what is left")] = "",
    server: Server = "",
    token_file: TokenFile = None,
    output: Format = Output.text,
) -> None:
    """Make a narrower token out of your own, to hand to another agent, and print it, once. It ends with yours."""
    request = tpb.TokenServiceExchangeRequest(
        name=name,
        actor_agent_id=for_agent,
        user_ids=user or [],
        project_ids=project or [],
        grants=grant or [],
        read_only=read_only,
        reads_per_minute=reads_per_minute,
        writes_per_minute=writes_per_minute,
    )
    if ttl:
        request.ttl.FromTimedelta(duration(ttl, "--ttl"))
    _print_secret(ask(trpc.TokenServiceStub, server, "Exchange", request, CLI_TIMEOUT_S, token_file), output)


@token_app.command("list", epilog=examples("memsvc token list", "memsvc token list --tenant '*' -o json"))
def list_tokens(
    tenant: Tenant = "", server: Server = "", token_file: TokenFile = None, output: Format = Output.text
) -> None:
    """List the tokens of a tenant, newest first, expired and revoked ones too."""
    request = apb.ListTokensRequest(tenant=_tenant(tenant), page_size=PAGE_SIZE)
    found: list[apb.Token] = []
    while True:
        answer = ask_admin(server, "ListTokens", request, CLI_TIMEOUT_S, token_file)
        found.extend(answer.tokens)
        request.page_token = answer.next_page_token
        if not request.page_token:
            break
    if output is Output.json:
        print_json([_plain(token) for token in found])
        return
    if not found:
        say(out, "no tokens; `memsvc token create` makes one")
        return
    now = utc_now()
    columns = (
        Column("name"),
        Column("acts for", text=True),
        Column("state", aside=True),
        Column("use", aside=True),
        Column("limits", aside=True),
        ID,
    )
    rows = [
        (
            token.name,
            _acts_for(token),
            _state(token, now),
            f"last used {_time(token.last_use_time)}" if token.HasField("last_use_time") else "not used yet",
            _limits(token),
            token.token_id,
        )
        for token in found
    ]
    out.print(rows_table(columns, rows))


@token_app.command(epilog=examples("memsvc token show tok_018f..."))
def show(
    token_id: TokenId,
    tenant: Tenant = "",
    server: Server = "",
    token_file: TokenFile = None,
    output: Format = Output.text,
) -> None:
    """Show what is registered of a token, its grants among it."""
    request = apb.GetTokenRequest(tenant=_tenant(tenant), token_id=token_id)
    _print(ask_admin(server, "GetToken", request, CLI_TIMEOUT_S, token_file).token, output)


@token_app.command(epilog=examples("memsvc token revoke tok_018f..."))
def revoke(
    token_id: TokenId,
    tenant: Tenant = "",
    data_dir: DataDir = None,
    server: Server = "",
    token_file: TokenFile = None,
    output: Format = Output.text,
) -> None:
    """Revoke a token for good: no call that starts afterwards is accepted with it."""
    if data_dir is None:
        request = apb.RevokeTokenRequest(tenant=_tenant(tenant), token_id=token_id)
        token = ask_admin(server, "RevokeToken", request, CLI_TIMEOUT_S, token_file).token
    else:
        with _stopped(data_dir) as tokens:
            from memsvc.service.token_calls import token_message

            token = token_message(tokens.revoke(token_id))
    _print(token, output)


@token_app.command("rotate-keys", epilog=examples("memsvc token rotate-keys", "memsvc token rotate-keys --drop-old"))
def rotate_keys(
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="End every token of the older keys: for a key that leaked.")
    ] = False,
    data_dir: DataDir = None,
    server: Server = "",
    token_file: TokenFile = None,
    output: Format = Output.text,
) -> None:
    """Make a new signing key; tokens of older keys stay good until they expire."""
    if data_dir is None:
        answer = ask_admin(server, "RotateKeys", apb.RotateKeysRequest(drop_old=drop_old), CLI_TIMEOUT_S, token_file)
        kid, dropped = answer.key_id, list(answer.dropped_key_ids)
    else:
        with _stopped(data_dir) as tokens:
            kid, dropped = tokens.rotate_keys(drop_old=drop_old)
    if output is Output.json:
        print_json({"key_id": kid, "dropped_key_ids": dropped})
    else:
        say(out, f"{kid} signs from now on, {len(dropped)} older keys dropped")


@contextmanager
def _stopped(data_dir: Any) -> Iterator[Tokens]:
    """The tokens of a data directory that no server has open. Raises StoreLocked."""
    from memsvc.app import open_engine, open_tokens

    settings = server_settings(data_dir=data_dir)
    engine = open_engine(settings)
    try:
        yield open_tokens(settings, engine)
    finally:
        engine.close()


def _issued(tokens: Tokens, request: apb.CreateTokenRequest) -> apb.CreateTokenResponse:
    from memsvc.service.auth.principal import LOCAL_ACTOR
    from memsvc.service.token_calls import token_message, wanted

    secret, record = tokens.issue(wanted(request), LOCAL_ACTOR)
    return apb.CreateTokenResponse(secret=secret, token=token_message(record))


def _print_secret(answer: apb.CreateTokenResponse | tpb.TokenServiceExchangeResponse, output: Output) -> None:
    if output is Output.json:
        print_json({"secret": answer.secret, **_plain(answer.token)})
        return
    say(out, answer.secret)
    say(err, f"{answer.token.token_id}, expires {_time(answer.token.expire_time)}; keep it, it is shown only now")


def _tenant(given: str) -> str:
    return given or ClientSettings().tenant or DEFAULT_TENANT


def _time(time: Timestamp) -> str:
    return time.ToDatetime(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _state(token: apb.Token, now: dt.datetime) -> str:
    if token.HasField("revoke_time"):
        return f"revoked {_time(token.revoke_time)}"
    ends = token.expire_time.ToDatetime(dt.UTC)
    return f"{'expired' if ends <= now else 'good until'} {_time(token.expire_time)}"


def _acts_for(token: apb.Token) -> str:
    named = [("tenant", token.tenant), ("agent", token.agent_id)]
    named += [("used by", step.actor_agent_id) for step in token.delegations[:1]]
    named += [("user", one) for one in token.user_ids] + [("project", one) for one in token.project_ids]
    return ", ".join(f"{what} {one}" for what, one in named if one)


def _limits(token: apb.Token) -> str:
    named = [("reads", token.reads_per_minute), ("writes", token.writes_per_minute)]
    limits = ", ".join(f"{count} {what}" for what, count in named if count)
    return f"{limits} a minute" if limits else ""


def _plain(token: apb.Token) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    plain: dict[str, Any] = MessageToDict(
        token, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return plain


def _print(token: apb.Token, output: Output) -> None:
    plain = _plain(token)
    if output is Output.json:
        print_json(plain)
        return
    table = Table(show_header=False)
    for name, value in plain.items():
        if name == "delegations":
            value = [f"{step['actor_agent_id'] or '(no name)'} from {step['parent_token_id']}" for step in value]
        if name.endswith("_per_minute") and not value:
            value = "the server's default"
        if value not in ("", []):
            table.add_row(name, escaped(", ".join(value) if isinstance(value, list) else str(value)))
    out.print(table)
