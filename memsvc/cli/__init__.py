"""The command line.

Purpose: `memsvc serve` runs the service; the other commands talk to a running one through the Python client, or, where
the store must be free (`verify --data-dir`, `reindex --data-dir`), open it themselves. `-o json` prints one JSON value.
Each module registers its commands with the app of `common`.

Threading: one command a process.

Rejected: opening the store for reads beside a server (it is locked, rightly).
"""

from __future__ import annotations

import sys

from pydantic import ValidationError

# The order of --help.
# isort: off
from memsvc.cli import memories, learning, reviewing, review_queue  # noqa: F401  # they register commands
from memsvc.cli import facts, events, skills, sessions, context, permanent  # noqa: F401
from memsvc.cli import serving, admin, tokens, audit, purging, lifecycle, models  # noqa: F401

# isort: on
from memsvc.cli.common import app, err, say
from memsvc.errors import MemsvcError
from memsvc_client import MemsvcClientError, Unavailable

__all__ = ["app", "main"]


def main() -> None:
    """Entry point: errors become one line on stderr and exit code 1; Ctrl-C is 130."""
    try:
        app()
    except (MemsvcError, MemsvcClientError) as error:
        err.print(f"[red]error[/red] {error.reason or getattr(error, 'code', '')}: ", end="")
        hint = "; is `memsvc serve` running at that address?" if isinstance(error, Unavailable) else ""
        say(err, f"{error.message}{hint}")
        sys.exit(1)
    except ValidationError as error:
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"])
            err.print(f"error: setting {name}: {problem['msg']}", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
