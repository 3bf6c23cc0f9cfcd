"""What is written now and then: again after a failure, and once more at the end."""

from __future__ import annotations

import logging
import threading

import pytest

from memsvc.errors import StorageFailure
from memsvc.memory.periodic import Periodic

LOG = logging.getLogger("tests.periodic")


def test_a_failed_duty_is_told_and_tried_again(caplog):
    calls: list[int] = []
    again = threading.Event()

    def duty() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            raise StorageFailure("the disk is gone")
        again.set()

    periodic = Periodic("test", duty, every_s=0.001, log=LOG, failure="could not write")
    periodic.start()
    assert again.wait(20.0)
    periodic.close()
    assert [record.getMessage() for record in caplog.records] == [f"could not write: {StorageFailure.reason}"]


def test_close_runs_the_duty_once_more_also_without_a_start():
    calls: list[str] = []
    Periodic("test", lambda: calls.append("once"), every_s=3600.0, log=LOG, failure="").close()
    assert calls == ["once"]


def test_a_bug_is_not_swallowed():
    def duty() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        Periodic("test", duty, every_s=3600.0, log=LOG, failure="").close()
