"""Texts on one line inside a limit: for lines of a context, of a session's state, and of an event.

Purpose: one place that decides how what is too long for a line ends.

Threading: pure functions.

Rejected: cutting at a word (Chinese has none to cut at).
"""

from __future__ import annotations

ELLIPSIS = "…"


def shortened(text: str, limit: int) -> str:
    """One line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + ELLIPSIS
