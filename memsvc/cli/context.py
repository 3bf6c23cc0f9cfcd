"""The command about context: context.

Purpose: the block that an agent puts in front of its prompt, on standard output and nothing else there, so that it can
be piped; what it cost and what was left out goes to standard error.

Threading: one command a process.

Rejected: a table of the lines (`-o json` has them with their ids and scores).
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from memsvc.cli.common import (
    LASTING_OWNERS,
    Call,
    Scopes,
    app,
    err,
    examples,
    given,
    print_json,
    printable,
    say,
    shared,
)
from memsvc.errors import Unavailable


class BlockFormat(StrEnum):
    """Form of the block."""

    text = "text"
    json = "json"
    messages = "messages"


class Order(StrEnum):
    """Where the lines that matter most stand in a section."""

    best_last = "best-last"
    best_first = "best-first"


class Section(StrEnum):
    """Parts of the block."""

    permanent = "permanent"
    preferences = "preferences"
    facts = "facts"
    skills = "skills"
    events = "events"
    session = "session"


@app.command(
    epilog=examples(
        'memsvc context "write the weekly report" --budget 300',
        "memsvc context 写周报 --format messages --section preferences --section facts",
        'memsvc context "what is next?" -s s42 --order best-first -o json',
    )
)
@shared
def context(
    call: Call,
    query: Annotated[str, typer.Argument(help="What the next step is about.")] = "",
    budget: Annotated[int | None, typer.Option("-b", "--budget", help="At most this many tokens.")] = None,
    form: Annotated[BlockFormat, typer.Option("--format", help="text, json or messages.")] = BlockFormat.text,
    order: Annotated[
        Order, typer.Option(help="best-last puts what matters most next to the question.")
    ] = Order.best_last,
    section: Annotated[list[Section] | None, typer.Option(help="Only this section; may be repeated.")] = None,
    max_memories: Annotated[
        int | None, typer.Option(help="At most this many memories besides permanent ones and session state.")
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Leave out what scores lower.")] = None,
    scope: Scopes = None,
) -> None:
    """Print the block of memories for a prompt, inside a token budget."""
    options = given(
        token_budget=budget,
        sections=[one.value for one in section or ()],
        max_memories=max_memories,
        min_score=min_score,
        scopes=scope,
    )
    with call.client(call.owners(LASTING_OWNERS)) as client:
        block = client.context(query, format=form.value, order=order.value.replace("-", "_"), **options)
    if block.source == "none":
        raise Unavailable(f"no answer from the server ({', '.join(block.degraded)}); is `memsvc serve` running?")
    if call.wants_json:
        print_json(block.to_dict())
        return
    if block.text:
        sys.stdout.write(printable(block.text) + "\n")
    told = f"{block.token_count} tokens, {len(block.lines)} lines" if block.text else "nothing to say: no memory fits"
    say(err, told + (f", {block.left_out_count} memories left out" if block.left_out_count else ""))
    if block.degraded:
        say(err, f"degraded: {', '.join(block.degraded)}")
