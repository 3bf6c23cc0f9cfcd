"""Commands about sessions: session list, show, state, end.

Purpose: look into the working memory of a conversation from outside of it, correct it, end it.

Threading: one command a process.

Rejected: appending turns from a shell (`memsvc ingest` judges a whole log, an agent appends through a client).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from memsvc.cli.common import (
    LASTING_OWNERS,
    Bar,
    Call,
    Limit,
    app,
    err,
    examples,
    given,
    out,
    print_json,
    progress,
    say,
    shared,
    take,
)
from memsvc.cli.tables import Column, brief, fields_table, rows_table
from memsvc.config import ClientSettings
from memsvc.errors import NotFound, Unavailable
from memsvc_client import Consolidation, DialogueState, MemoryClient, Session
from memsvc_client import NotFound as NotInStore

WAIT_S = 1.0  # between two looks at a consolidation: how often the bar moves

session_app = typer.Typer(help="Sessions: the working memory of a conversation.", no_args_is_help=True)
app.add_typer(session_app, name="session")

SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the session; -s, or the environment's, if left out.")
]


def _client(call: Call) -> MemoryClient:
    """A client whose sessions are those of the user, as for everything else: by default of user "default"."""
    return call.client(call.owners(LASTING_OWNERS))


def _named(call: Call, session_id: str) -> str:
    """The session that a command is about. Raises typer.BadParameter naming the fix."""
    named = session_id or call.session_id or ClientSettings().session_id
    if not named:
        raise typer.BadParameter("name a session; `memsvc session list` shows the open ones", param_hint="ID")
    return named


@contextmanager
def _opened(call: Call, session_id: str) -> Iterator[Session]:
    """The named session, which somebody else opened. Raises NotFound naming the fix if nobody did."""
    named = _named(call, session_id)
    try:
        with _client(call) as client:
            yield client.session(named)
    except NotInStore as error:
        fix = f"`memsvc session list` shows the open ones, `memsvc session end {named}` what became of an ended one"
        raise NotFound(f"{error.message}; {fix}") from error


@session_app.command("list", epilog=examples("memsvc session list", "memsvc session list -p my-project -o json"))
@shared
def session_list(call: Call, limit: Limit = 50) -> None:
    """List open sessions of the named owners, newest first."""
    with _client(call) as client:
        found = take(client.sessions(), limit)
    if call.wants_json:
        print_json([session.to_dict() for session in found])
    elif found:
        columns = [Column("session", text=True), Column("tool"), Column("turns", right=True), Column("last used")]
        rows = [(one.session_id, one.tool, str(one.turn_count), brief(one.update_time)) for one in found]
        out.print(rows_table(columns, rows))
    else:
        say(out, "no open sessions")


@session_app.command("show", epilog=examples("memsvc session show s42", "memsvc session show s42 -o json"))
@shared
def session_show(call: Call, session: SessionId = "") -> None:
    """Show a session: its state, the last turns word for word, and what came before them in short."""
    with _opened(call, session) as opened:
        state = opened.state()
    if call.wants_json:
        print_json(state.to_dict())
        return
    info = state.session
    about = {
        "session": info.session_id,
        "tool": info.tool,
        "started": brief(info.start_time),
        "last used": brief(info.update_time),
        "ends by itself": brief(info.expire_time),
        "turns": str(info.turn_count),
    }
    before = f"{state.summary} ({state.summary_tokens} tokens)" if state.summary else ""
    out.print(fields_table({**about, **_fields(state), "before": before}))
    if state.window:
        rows = [(turn.speaker, turn.content) for turn in state.window]
        out.print(rows_table([Column("speaker"), Column("last turns", text=True)], rows))


def _fields(state: DialogueState) -> dict[str, str]:
    """A state, one text a field; empty ones are "" and not shown."""
    return {
        "goal": state.goal,
        "constraints": "\n".join(state.constraints),
        "finished": "\n".join(state.finished),
        "pending": "\n".join(state.pending),
        "slots": "\n".join(f"{name} = {value}" for name, value in state.slots.items()),
        "tool outputs": "\n".join(
            f"{one.tool}: {one.content}" + (" (cut)" if one.truncated else "") for one in state.tool_outputs
        ),
    }


@session_app.command(
    "state",
    epilog=examples(
        "memsvc session state s42",
        'memsvc session state s42 --goal "ship the report" --finish "collect numbers" --slot format=pdf',
    ),
)
@shared
def session_state(
    call: Call,
    session: SessionId = "",
    goal: Annotated[str | None, typer.Option(help="New goal; empty clears it.")] = None,
    add_constraint: Annotated[list[str] | None, typer.Option(help="A constraint to add; may be repeated.")] = None,
    remove_constraint: Annotated[
        list[str] | None, typer.Option(help="A constraint to take away, as it stands; may be repeated.")
    ] = None,
    add_pending: Annotated[list[str] | None, typer.Option(help="A step that is still to do; may be repeated.")] = None,
    finish: Annotated[list[str] | None, typer.Option(help="A step that is done; may be repeated.")] = None,
    slot: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A named value; an empty one removes it.")
    ] = None,
) -> None:
    """Show what a session is about now; with options, change it first."""
    changes = given(
        goal=goal,
        add_constraints=add_constraint,
        remove_constraints=remove_constraint,
        add_pending=add_pending,
        finish=finish,
        set_slots=dict(_slot(one) for one in slot) if slot else None,
    )
    with _opened(call, session) as opened:
        state: DialogueState = opened.update_state(**changes) if changes else opened.state()
    if call.wants_json:
        print_json(state.to_dict())
        return
    fields = _fields(state)
    out.print(fields_table(fields) if any(fields.values()) else "nothing is known yet")


def _slot(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text[:40]!r} is not NAME=VALUE", param_hint="--slot")
    return name, value


@session_app.command(
    "end",
    epilog=examples("memsvc session end s42 --wait", "memsvc session end s42 --discard"),
)
@shared
def session_end(
    call: Call,
    session: SessionId = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until what mattered is stored, and list it.")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Drop everything; store nothing.")] = False,
) -> None:
    """End a session; what mattered moves to the long-term layers behind the answer.

    Again, it says how far that is; a failed consolidation is started once more.
    """
    with _opened(call, session) as opened:
        ended = opened.end(consolidate=not discard)
        if ended is None:
            raise Unavailable(f"the session was not ended ({', '.join(opened.degraded) or 'no answer'}); try again")
        if wait and not ended.is_final:
            ended = _waited(opened)
    if call.wants_json:
        print_json(ended.to_dict())
    else:
        _print_consolidation(ended)
    if ended.state == "failed":
        raise typer.Exit(1)


def _waited(session: Session) -> Consolidation:
    """The consolidation when it is done or failed. Ctrl-C stops the waiting, not the consolidation."""
    try:
        with progress() as display:
            bar = Bar(display)
            while not (ended := session.consolidation(wait_s=WAIT_S)).is_final:
                bar("consolidating", ended.done_turns, ended.total_turns)
            return ended
    except KeyboardInterrupt:
        say(err, f"the consolidation goes on; `memsvc session end {session.session_id} --wait` waits for it again")
        raise


def _print_consolidation(ended: Consolidation) -> None:
    say(out, f"{ended.state}: session {ended.session_id}, {ended.done_turns} of {ended.total_turns} turns judged")
    if ended.error:
        say(err, f"{ended.error}; the turns are kept, `memsvc session end {ended.session_id}` tries again")
    if ended.set_aside_id:
        say(err, f"an earlier one failed and waits: `memsvc session end {ended.set_aside_id}` tries it again")
    for result in ended.results:
        say(out, f"  {result.outcome} {result.memory_id}")
    if ended.episode_id:
        say(out, f"  summed up in {ended.episode_id}")
    elif ended.state == "done" and not ended.results:
        say(out, "  nothing of it lasts")
