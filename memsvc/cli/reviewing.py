"""Commands of a review: review export, review apply.

Purpose: what was learnt lately and without much confidence goes to a person as a checklist, and comes back as
decisions. A checklist is read and checked as a whole before one decision is sent.

Threading: one command a process.

Rejected: asking memory by memory in the terminal (nobody reviews two hundred statements that way, and none can be
handed on).
"""

from __future__ import annotations

import datetime as dt
import functools
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from memsvc.cli import checklist
from memsvc.cli.checklist import Decision
from memsvc.cli.common import (
    Bar,
    Call,
    app,
    err,
    examples,
    moment,
    out,
    print_json,
    progress,
    read_file,
    say,
    shared,
    utc_now,
)
from memsvc.errors import MemsvcError
from memsvc_client import MemoryClient, MemsvcClientError, TransportError
from memsvc_client.learning import DECISIONS_MAX

_INDEX = re.compile(r"decisions\[(\d+)\]")
PAGE_SIZE = 1000
REVIEW_TIMEOUT_S = 120.0

review_app = typer.Typer(help="Decide what waits for a person; review what was learnt.", no_args_is_help=True)
app.add_typer(review_app, name="review")


@review_app.command(
    "export",
    epilog=examples(
        "memsvc review export --since 7d --output review.csv",
        "memsvc review export --since 2w --max-confidence 0.6 --format jsonl > review.jsonl",
    ),
)
@functools.partial(shared, output=False)
def review_export(
    call: Call,
    since: Annotated[str, typer.Option(help="How far back: 30m, 12h, 7d, 2w, or an ISO 8601 time with zone.")] = "7d",
    max_confidence: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Standing memories up to this confidence; staged ones always.")
    ] = 0.8,
    form: Annotated[
        checklist.Format | None, typer.Option("--format", help="csv or jsonl; by the file's name, or csv, if unset.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", dir_okay=False, help="File to write; standard output if unset.")
    ] = None,
) -> None:
    """Write what was learnt lately without much confidence as a checklist.

    Fill in the column action: confirm, correct (with the right statement in new_content), forget, or block (forget it,
    and reject whatever says the same from now on). What is left empty stays as it is. Then `memsvc review apply FILE`.
    """
    start = moment(since, "--since", utc_now())
    with call.client() as client:
        found = learnt(client, start, max_confidence)
    if form is None:
        is_jsonl = output is not None and output.suffix.lower() == ".jsonl"
        form = checklist.Format.jsonl if is_jsonl else checklist.Format.csv
    text = checklist.write(found, form)
    if output is None:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(text.encode("utf-8-sig" if form is checklist.Format.csv else "utf-8"))
    except OSError as error:
        raise MemsvcError(f"{output} can't be written: {error.strerror}") from error
    say(err, f"{len(found)} memories in {output}; fill in the column action, then: memsvc review apply {output}")


def learnt(client: MemoryClient, since: dt.datetime | None, max_confidence: float) -> list[dict[str, Any]]:
    """Memories stored since then, newest first: standing ones of low confidence, and all staged ones."""
    span = (since, None)
    doubtful = client.list(
        page_size=PAGE_SIZE, create_time=span, statuses=["active", "contested"], max_confidence=max_confidence
    )
    staged = client.list(page_size=PAGE_SIZE, create_time=span, statuses=["staged"])
    found = {memory.memory_id: memory.to_dict() for memories in (doubtful, staged) for memory in memories}
    return sorted(found.values(), key=lambda memory: (memory["create_time"], memory["memory_id"]), reverse=True)


@review_app.command(
    "apply", epilog=examples("memsvc review apply review.csv --dry-run", "memsvc review apply review.csv")
)
@shared
def review_apply(
    call: Call,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE|-", help="The checklist, as CSV or JSON Lines; `-` reads standard input."),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the file and say what it decides; no more.")
    ] = False,
) -> None:
    """Carry out the decisions of a checklist. One bad line and nothing is carried out; 1000 go into one transaction."""
    found = checklist.read(read_file(file))
    for line, reason in found.problems:
        say(err, f"line {line}: {reason}")
    if found.problems:
        raise MemsvcError(f"nothing was applied: {len(found.problems)} lines of {file} can't be")
    if not dry_run and found.decisions:
        with call.client(timeout_s=REVIEW_TIMEOUT_S) as client:
            apply_all(client, found.decisions)
    counts = Counter(decision.action for decision in found.decisions)
    if call.wants_json:
        told = {action: counts[action] for action in checklist.ACTIONS}
        print_json({"applied": not dry_run, **told, "skipped": found.skipped_count})
    else:
        told_text = ", ".join(f"{action} {counts[action]}" for action in checklist.ACTIONS)
        say(out, f"{'would apply' if dry_run else 'applied'}: {told_text}; left as they are: {found.skipped_count}")


def apply_all(client: MemoryClient, decisions: Sequence[Decision]) -> None:
    """Sends decisions, 1000 to a transaction. Says what was and was not carried out before it raises."""
    done = 0
    try:
        with progress() as display:
            bar = Bar(display)
            for start in range(0, len(decisions), DECISIONS_MAX):
                bar("applying", start, len(decisions))
                client.review(decision.fields() for decision in decisions[start : start + DECISIONS_MAX])
                done = start + len(decisions[start : start + DECISIONS_MAX])
    except (KeyboardInterrupt, MemsvcClientError) as error:
        _tell_how_far(decisions, done, error)
        raise


def _tell_how_far(decisions: Sequence[Decision], done: int, error: BaseException) -> None:
    if done:
        say(err, f"applied: lines {decisions[0].line} to {decisions[done - 1].line} ({done} decisions)")
    left = len(decisions) - done
    doubt = "; the first of them may be" if isinstance(error, (KeyboardInterrupt, TransportError)) else ""
    say(err, f"not applied: from line {decisions[done].line} on ({left} decisions{doubt})")
    for path, _ in getattr(error, "field_violations", ()):
        match = _INDEX.match(path)
        if match is not None and done + int(match[1]) < len(decisions):
            say(err, f"line {decisions[done + int(match[1])].line}: refused by the server ({path})")
