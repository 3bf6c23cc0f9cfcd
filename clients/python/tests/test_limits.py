"""A client whose token made its calls of the minute: it answers from what it knows and asks again when it may."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.service.auth.tokens import Wanted

READS_PER_MINUTE = 30
WAIT_S = 60 / READS_PER_MINUTE


@pytest.fixture(scope="module")
def issue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[str, str]]]:
    """A server, and tokens of a user with a limit: issue(user) -> address, token."""
    service = Service(
        Settings(data_dir=tmp_path_factory.mktemp("limits"), listen="127.0.0.1:0", latency_budget_ms=20_000)
    )
    try:
        address = service.start()
        yield lambda user: (
            address,
            service.tokens.issue(Wanted(user_ids=(user,), reads_per_minute=READS_PER_MINUTE), "local")[0],
        )
    finally:
        service.close()


@pytest.mark.parametrize("call", ["recall", "context"])
def test_a_refused_call_is_answered_from_what_is_known_until_the_wait_has_passed(
    issue: Callable[[str], tuple[str, str]], open_client: Any, call: str
) -> None:
    user, now_s = uuid.uuid4().hex, [100.0]
    address, token = issue(user)
    client = open_client(address, user_id=user, token=token, timer_s=lambda: now_s[0])
    client.write("the spare key is under the mat")
    ask = getattr(client, call)
    assert ask("spare key").source == "server"
    degraded: list[str] = []
    numbers = iter(range(100_000))
    while not degraded:
        degraded = client.recall(f"number {next(numbers)}").degraded
    assert degraded[0] == "SERVER_RESOURCE_EXHAUSTED"

    assert client.write("the garden is large", type="event").memory_id  # so that no kept answer is the server's now
    time.sleep(2 * WAIT_S)  # the server would answer again, but by the client's clock no time has passed
    known = ask("spare key")
    assert (known.source, known.degraded[0]) == ("cache", "RETRY_LATER")
    assert "under the mat" in (known.text if call == "context" else " ".join(hit.content for hit in known))

    now_s[0] += WAIT_S
    again = ask("spare key")
    assert (again.source, again.degraded) == ("server", [])
