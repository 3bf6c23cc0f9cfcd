"""What the commands share: the app, options, clients, times, printing, progress.

Purpose: an option that many commands have is written once; `shared` adds those of every command that talks to a server
and hands them over as a `Call`.

Threading: one command a process.

Rejected: a global callback for the shared options (they would have to stand before the command's name).
"""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from memsvc.cli.connecting import TokenFile, check_reachable, root_certificates, token
from memsvc.config import ClientSettings, Settings
from memsvc_client import MemoryClient

app = typer.Typer(
    name="memsvc",
    help="An independent memory service for AI agents. Start it with `memsvc serve`, try it with `memsvc demo`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
err = Console(stderr=True)
out = Console()

CLI_TIMEOUT_S = 30.0
T = TypeVar("T")
_DURATION = re.compile(r"(\d{1,6})([mhdw])", re.ASCII)
_HARMLESS = "\n\t\u200c\u200d"  # the last two join letters of Persian and Indic scripts, and emoji
_UNSHOWN = re.compile(r"[\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")  # json escapes the others
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Output(StrEnum):
    """How to print."""

    text = "text"
    json = "json"


DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Data directory (env MEMSVC_DATA_DIR).")]
Server = Annotated[str, typer.Option("--server", help="HOST:PORT of the server (env MEMSVC_SERVER).")]
Format = Annotated[Output, typer.Option("-o", "--output", help="text or json.")]
MemoryId = Annotated[str, typer.Argument(help="mem_...")]
Limit = Annotated[int, typer.Option("-n", "--limit", min=0, help="At most this many; 0: all.")]
Scopes = Annotated[list[str] | None, typer.Option("--scope", help="Only these scopes; may be repeated.")]
OneScope = Annotated[
    str | None, typer.Option("--scope", help="session, agent, user, project or global; by the ids given if unset.")
]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the history.")]
OWNER_OPTIONS: dict[str, Any] = {
    "user_id": Annotated[str, typer.Option("-u", "--user-id", help="Whose memories (env MEMSVC_USER_ID).")],
    "project_id": Annotated[str, typer.Option("-p", "--project-id", help="Project (env MEMSVC_PROJECT_ID).")],
    "agent_id": Annotated[str, typer.Option("-a", "--agent-id", help="Agent (env MEMSVC_AGENT_ID).")],
    "session_id": Annotated[str, typer.Option("-s", "--session-id", help="Session (env MEMSVC_SESSION_ID).")],
}
# Whom memories outlive a session for: a session alone says where something was said, not whose it is.
LASTING_OWNERS = ("user_id", "project_id", "agent_id")


@dataclass(frozen=True)
class Call:
    """The shared options of one command, as given: "" is for the environment's value."""

    user_id: str = ""
    project_id: str = ""
    agent_id: str = ""
    session_id: str = ""
    server: str = ""
    token_file: Path | None = None
    output: Output = Output.text

    @property
    def wants_json(self) -> bool:
        """Whether to print JSON."""
        return self.output is Output.json

    def owners(self, needed: tuple[str, ...] = tuple(OWNER_OPTIONS)) -> dict[str, str]:
        """Ids of whom the command acts for: options, then environment; none of `needed` means user "default"."""
        settings = ClientSettings()
        ids = {name: getattr(self, name) or getattr(settings, name) for name in OWNER_OPTIONS}
        if not any(ids[name] for name in needed):
            ids["user_id"] = "default"
        given = {name: value for name, value in ids.items() if value}
        return {**given, "tenant": settings.tenant} if settings.tenant else given

    def client(self, owners: dict[str, str] | None = None, timeout_s: float = CLI_TIMEOUT_S) -> MemoryClient:
        """A client of the named server, for these owners or the command's. Raises memsvc_client's Unavailable when
        nothing listens there: a mutation would be tried again, in silence, until its timeout.
        """
        named: dict[str, Any] = self.owners() if owners is None else dict(owners)
        target = self.server or ClientSettings().server
        check_reachable(target)
        return MemoryClient(
            target,
            token=token(self.token_file) or None,
            root_certificates=root_certificates(),
            tool="memsvc-cli",
            timeout_s=timeout_s,
            write_timeout_s=timeout_s,
            recent_count=0,
            **named,
        )


def shared(command: Callable[..., None], *, output: bool = True) -> Callable[..., None]:
    """The command with the shared options (-u, -p, -a, -s, --server, --token-file, -o); it gets them as its first
    argument, `call`. `output=False` leaves -o out, for a command whose own --output names a file.
    """
    options: dict[str, Any] = {**OWNER_OPTIONS, "server": Server, "token_file": TokenFile}
    if output:
        options["output"] = Format

    @functools.wraps(command)
    def run(**given: Any) -> None:
        call = Call(**{name: given.pop(name) for name in options})
        command(call, **given)

    kind = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.signature(command, eval_str=True)
    own = [p.replace(kind=kind) for name, p in signature.parameters.items() if name != "call"]
    defaults = Call()
    added = [
        inspect.Parameter(name, kind, default=getattr(defaults, name), annotation=annotation)
        for name, annotation in options.items()
    ]
    run.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
    return run


def examples(*lines: str) -> str:
    """An epilog with one example a line."""
    return "\n\n".join(("Examples:", *(f"  $ {line}" for line in lines)))


def read_file(path: Path) -> bytes:
    """The bytes of a file; `-` is standard input. Raises typer.BadParameter for one that can't be read."""
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{path} can't be read: {error.strerror}") from error


def server_settings(**given: Any) -> Settings:
    """Settings of the server with what the command line gives."""
    return Settings(**{name: value for name, value in given.items() if value is not None})


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None and value != []}


def take(found: Iterable[T], limit: int) -> list[T]:
    """The first `limit` of a list that comes in pages; all for 0."""
    return list(itertools.islice(found, limit or None))


def utc_now() -> dt.datetime:
    """The wall clock; commands read it once and pass it on."""
    return dt.datetime.now(dt.UTC)


def duration(text: str, option: str) -> dt.timedelta:
    """A span such as 30m, 12h, 7d, 2w. Raises typer.BadParameter for anything else, naming the fix."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration; write 30m, 12h, 7d or 2w", param_hint=option)
    return dt.timedelta(**{_UNITS[match[2]]: int(match[1])})


def moment(text: str | None, option: str, now: dt.datetime | None = None) -> dt.datetime | None:
    """An ISO 8601 time with zone; with `now` also a duration, which counts back from it. Raises typer.BadParameter
    for anything else, naming the fix.
    """
    if text is None:
        return None
    if now is not None and _DURATION.fullmatch(text.strip().lower()):
        try:
            return now - duration(text, option)
        except OverflowError as error:
            raise typer.BadParameter(f"{text!r} is before the year 1", param_hint=option) from error
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError as error:
        fix = "an ISO 8601 time, e.g. 2025-01-10T09:00:00Z"
        fix += "" if now is None else ", nor a duration: 30m, 12h, 7d, 2w"
        raise typer.BadParameter(f"{text!r} is not {fix}", param_hint=option) from error
    if time.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone; add Z or +08:00", param_hint=option)
    return time


def escaped(text: str) -> str:
    """Text of memories is data: no markup, no control characters reach the terminal."""
    return printable(text).replace("[", "\\[")


def printable(text: str) -> str:
    """Text without control characters, for printing without markup."""
    return "".join(c if c.isprintable() or c in _HARMLESS else "\ufffd" for c in text)


def say(console: Console, line: str) -> None:
    """One line as it is: no markup, no wrapping, no control characters."""
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value on standard output; what a terminal would obey instead of show is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    sys.stdout.write(_UNSHOWN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


def progress() -> Progress:
    """A progress display on stderr that leaves nothing behind."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err, transient=True)


class Bar:
    """A progress bar that follows (stage, done, total) calls."""

    def __init__(self, display: Progress) -> None:
        self._display = display
        self._task = display.add_task("starting", total=None)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Shows how far it came; a total of 0 is not known yet."""
        self._display.update(self._task, description=stage, completed=done, total=total or None)
