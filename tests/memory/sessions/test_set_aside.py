"""An id whose consolidation failed for good is opened again: the failed session is kept beside the new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memsvc.app import Service
from memsvc.errors import InvalidArgument, NotActive, NotFound
from memsvc.memory.funnel import Message
from memsvc.memory.owners import Owners, namespace_for
from memsvc.memory.policies import Policies
from memsvc.memory.sessions.consolidation import Consolidation, ConsolidationState, Consolidator
from memsvc.memory.sessions.sessions import Sessions, SessionSettings
from memsvc.memory.transactions import Mutation
from memsvc.model import NO_FILTER, Scope
from memsvc.storage.session_log import FileSessionLog

STATE = ConsolidationState
FIRST, SECOND = "We decided to use PostgreSQL for billing.", "Please always write the weekly report as PDF."
DAY_US = 86_400_000_000


class Killed(BaseException):
    """A crash at this point: nothing after it runs."""


class House:
    """A consolidator on real sessions; its ingestor fails on what `poison` is in."""

    def __init__(self, service: Service, directory: Path) -> None:
        self.service = service
        self.directory = directory
        self.poison = ""
        self.open()

    def open(self) -> None:
        """A new process on the same journal."""
        service = self.service
        self.sessions = Sessions(
            FileSessionLog(self.directory),
            clock_us=service.transactions.clock_us,
            count_tokens=len,
            settings=SessionSettings(),
            policies=Policies(""),
            make_id=lambda: "made",
        )
        self.consolidator = Consolidator(
            service.engine,
            self.sessions,
            self,  # type: ignore[arg-type]
            service.memories,
            service.policies,
            clock_us=service.transactions.clock_us,
        )
        self.consolidator.start()

    def close(self) -> None:
        self.consolidator.close()
        self.sessions.close()

    def ingest(self, owners, scope, batch, **options):
        if self.poison and any(self.poison in turn.content for turn in batch):
            raise InvalidArgument("poisoned")
        return self.service.ingestor.ingest(owners, scope, batch, **options)

    def talk(self, owners: Owners, text: str) -> None:
        _, resumed = self.consolidator.open(owners)
        assert not resumed
        self.sessions.append_turns(owners, [Message("user", text, DAY_US)], Mutation("", b"", "test"))

    def ended(self, owners: Owners) -> Consolidation:
        self.consolidator.end(owners, None, False, "test")
        return self.consolidator.wait(owners, 30.0)

    def said(self, owners: Owners) -> list[str]:
        return [turn.content for turn in self.sessions.turns(namespace_for(owners, Scope.SESSION))]


@pytest.fixture
def house(service, tmp_path) -> Iterator[House]:
    made = House(service, tmp_path)
    yield made
    made.close()


@pytest.fixture
def me(fresh_id) -> Owners:
    return Owners(user_id=fresh_id(), session_id="one")


def under(owners: Owners, session_id: str) -> Owners:
    return msgspec.structs.replace(owners, session_id=session_id)


def failed_once(house: House, me: Owners) -> Consolidation:
    house.talk(me, FIRST)
    house.poison = "PostgreSQL"
    failed = house.ended(me)
    assert failed.state == STATE.FAILED
    return failed


def test_the_new_session_begins_anew_and_the_failed_one_is_told_and_kept(house: House, me: Owners) -> None:
    failed = failed_once(house, me)
    house.talk(me, SECOND)
    told = house.consolidator.status(me)
    assert (told.state, told.error) == (STATE.FAILED, failed.error)
    aside = under(me, told.set_aside_id)
    kept = house.consolidator.status(aside)
    assert (kept.state, kept.session_id, kept.update_time_us) == (STATE.FAILED, aside.session_id, failed.update_time_us)
    assert (house.said(me), house.said(aside)) == ([SECOND], [FIRST])
    assert house.ended(me).state == STATE.DONE  # still poisoned: the new turns don't suffer from the old ones
    assert house.consolidator.status(me).set_aside_id == aside.session_id


@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_set_aside_is_tried_again_under_its_id(house: House, me: Owners, restarts: bool) -> None:
    failed_once(house, me)
    house.talk(me, SECOND)
    aside = under(me, house.consolidator.status(me).set_aside_id)
    if restarts:
        house.close()
        house.open()
    assert house.said(me) == [SECOND]
    with pytest.raises(NotActive):
        house.sessions.start(aside)
    house.poison = ""
    done = house.ended(aside)
    assert (done.state, done.done_turns) == (STATE.DONE, 1)
    page, _ = house.service.memories.list_page([namespace_for(me, None)], NO_FILTER, True, 100, "")
    (source,) = {memory.source.session_id for memory in page if "PostgreSQL" in memory.content and not memory.event}
    assert source == "one"
    assert house.sessions.open_session(namespace_for(aside, Scope.SESSION)) is None
    house.ended(me)
    assert house.consolidator.status(me).set_aside_id == ""


def test_each_that_failed_is_found_from_the_one_after_it(house: House, me: Owners) -> None:
    failed_once(house, me)
    house.talk(me, FIRST + " Again.")
    assert house.ended(me).state == STATE.FAILED
    house.talk(me, SECOND)
    second = under(me, house.ended(me).set_aside_id)
    first = under(me, house.consolidator.status(second).set_aside_id)
    assert (house.said(second), house.said(first)) == ([FIRST + " Again."], [FIRST])
    assert house.consolidator.status(first).set_aside_id == ""


def test_only_a_failure_frees_an_id(house: House, me: Owners) -> None:
    house.talk(me, FIRST)
    house.consolidator.close()
    house.consolidator.end(me, None, False, "test")
    with pytest.raises(NotActive):
        house.consolidator.open(me)
    one, two = (namespace_for(under(me, name), Scope.SESSION) for name in ("one", "two"))
    with pytest.raises(NotFound):
        house.sessions.move(two, one)


@pytest.mark.parametrize("step", ["put the records", "move", "copy a record", "forget"])
def test_a_crash_on_the_way_loses_nothing(house: House, me: Owners, step: str, monkeypatch) -> None:
    failed_once(house, me)

    def killed(*arguments, **options):
        raise Killed

    target, name = {
        "put the records": (house.consolidator._engine, "write"),
        "move": (house.sessions, "move"),
        "copy a record": (house.sessions._log, "append"),
        "forget": (house.sessions, "_forget"),
    }[step]
    with monkeypatch.context() as crash:
        crash.setattr(target, name, killed)
        with pytest.raises(Killed):
            house.consolidator.open(me)
    house.close()
    house.open()
    house.talk(me, SECOND)
    aside = under(me, house.consolidator.status(me).set_aside_id)
    assert (house.said(me), house.said(aside)) == ([SECOND], [FIRST])
    house.poison = ""
    assert house.ended(aside).state == STATE.DONE
    assert house.ended(me).state == STATE.DONE


def test_its_turns_go_after_the_retention_and_a_crash_in_between_frees_the_id(
    house: House, me: Owners, monkeypatch
) -> None:
    failed_once(house, me)
    house.consolidator._retention_us = -DAY_US

    def killed(*arguments, **options):
        raise Killed

    with monkeypatch.context() as crash:
        crash.setattr(house.sessions, "drop", killed)
        with pytest.raises(Killed):
            house.consolidator.sweep()
    with pytest.raises(NotFound):
        house.consolidator.status(me)
    house.talk(me, SECOND)
    assert house.said(me) == [SECOND]
