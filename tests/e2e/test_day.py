"""A day of one user: three sessions of 20 turns in two tools, Chinese and English, through the real process.

The script and what it must end with are data. The same script with SIGKILL in the middle of each phase ends the same.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from memsvc.v1 import context_service_pb2 as cpb
from memsvc.v1 import context_service_pb2_grpc as context_rpc
from memsvc.v1 import event_service_pb2 as epb
from memsvc.v1 import event_service_pb2_grpc as event_rpc
from memsvc.v1 import fact_service_pb2 as fpb
from memsvc.v1 import fact_service_pb2_grpc as fact_rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import memory_service_pb2_grpc as memory_rpc
from memsvc.v1 import permanent_service_pb2 as ppb
from memsvc.v1 import permanent_service_pb2_grpc as permanent_rpc
from memsvc.v1 import session_service_pb2 as spb
from memsvc.v1 import session_service_pb2_grpc as session_rpc
from memsvc.v1 import skill_service_pb2 as kpb
from memsvc.v1 import skill_service_pb2_grpc as skill_rpc

sys.path.insert(0, str(Path(__file__).parent))  # the script beside this file, in pytest's importlib mode
from day_script import (
    CHAIN,
    CONTEXTS,
    EPISODES,
    EVENING,
    EVENTS,
    KEY,
    MORNING,
    NOON,
    NOWHERE,
    PASSWORD,
    REPLACED,
    SCRIPT,
    STANDS,
    STATES,
    TURNS,
    Step,
)

LIMIT_S = 60.0

SERVICES = {
    "sessions": (session_rpc.SessionServiceStub, spb, "SessionService"),
    "events": (event_rpc.EventServiceStub, epb, "EventService"),
    "facts": (fact_rpc.FactServiceStub, fpb, "FactService"),
    "skills": (skill_rpc.SkillServiceStub, kpb, "SkillService"),
    "permanent": (permanent_rpc.PermanentServiceStub, ppb, "PermanentService"),
    "context": (context_rpc.ContextServiceStub, cpb, ""),
    "memories": (memory_rpc.MemoryServiceStub, mpb, ""),
}


class Day:
    """Runs the script in a directory. `kills`: the process is killed in the middle of each step that has a phase:
    while the call is under way, or when it was answered and nobody heard it. The call is then made again.
    """

    def __init__(self, directory: Path, *, kills: bool) -> None:
        self.directory = directory
        self.kills = kills
        self.kill_count = 0
        self.answers: dict[str, Any] = {}
        self.ids: dict[str, str] = {}
        self._start()

    def _start(self) -> None:
        arguments = ["serve", "--data-dir", str(self.directory), "--listen", "127.0.0.1:0", "--log-level", "WARNING"]
        self.process = subprocess.Popen([sys.executable, "-m", "memsvc", *arguments], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = self.process.stdout.readline().partition("grpc=")[2].split()[0]
        self.channel = grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)])

    def close(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LIMIT_S)
        self.channel.close()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def run(self) -> None:
        for name, steps in SCRIPT.items():
            for number, step in enumerate(steps):
                self._step(name, number, step)

    def _step(self, name: str, number: int, step: Step) -> None:
        fields = dict(step.fields)
        if step.service == "events":
            causes = [self.ids[cause] for cause in fields["event"]["caused_by"]]
            fields["event"] = {**fields["event"], "caused_by": causes}
        with_id = step.service != "context" and (step.service != "sessions" or step.method == "AppendTurns")
        if with_id:
            fields["request_id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name} {number}"))
        whom = pb.Owners(user_id="lin")
        if step.service in ("sessions", "context") and name in TURNS:
            whom.session_id = name
        if self.kills and step.phase:
            self._killed(step, whom, fields)
        answer = self.ask(step.service, step.method, owners=whom, **fields)
        if step.keep:
            self.answers[step.keep] = answer
        if step.service == "events":
            self.ids[step.keep] = answer.result.memory_id

    def _killed(self, step: Step, whom: pb.Owners, fields: dict[str, Any]) -> None:
        stub, request = self._call(step.service, step.method, {"owners": whom, **fields})
        under_way = getattr(stub, step.method).future(request)
        if self.kill_count % 2 or step.phase == "end":
            under_way.result(LIMIT_S)
        self.close()
        under_way.cancel()
        self.kill_count += 1
        self._start()

    def _call(self, service: str, method: str, fields: dict[str, Any]) -> tuple[Any, Any]:
        stub, module, prefix = SERVICES[service]
        return stub(self.channel), getattr(module, f"{prefix}{method}Request")(**fields)

    def ask(self, service: str, method: str, **fields: Any) -> Any:
        stub, request = self._call(service, method, fields)
        return getattr(stub, method)(request, timeout=LIMIT_S)

    def memories(self) -> dict[str, pb.Memory]:
        listed = self.ask(
            "memories", "List", owners=pb.Owners(user_id="lin"), include_inactive=True, page_size=1000
        ).memories
        return {memory.memory_id: memory for memory in listed}

    def events(self, **fields: Any) -> list[epb.FoundEvent]:
        return list(self.ask("events", "Query", owners=pb.Owners(user_id="lin"), **fields).events)


@pytest.fixture(scope="module")
def run_day() -> Iterator[Callable[..., Day]]:
    days: list[Day] = []

    def run(directory: Path, *, kills: bool) -> Day:
        days.append(Day(directory, kills=kills))
        days[-1].run()
        return days[-1]

    yield run
    for one in days:
        one.close()


@pytest.fixture(scope="module")
def day(run_day, tmp_path_factory) -> Day:
    return run_day(tmp_path_factory.mktemp("day"), kills=False)


def holding(text: str, memories: Sequence[pb.Memory]) -> list[pb.Memory]:
    return [memory for memory in memories if text.lower() in memory.content.lower()]


def test_the_script_is_a_day():
    assert {name: len(turns) for name, turns in TURNS.items()} == dict.fromkeys((MORNING, NOON, EVENING), 20)
    for name in TURNS:
        steps = SCRIPT[name]
        said = [turn.content for step in steps if step.method == "AppendTurns" for turn in step.fields["turns"]]
        assert said == [content for _, content in TURNS[name]]
        assert {"start", "append", "update", "end"} <= {step.phase for step in steps}


@pytest.mark.parametrize("text", STANDS)
def test_what_must_stand_stands_once(day, text):
    standing = [
        m
        for m in day.memories().values()
        if m.status == pb.STATUS_ACTIVE and m.layer == pb.LAYER_SEMANTIC and not m.HasField("fact")
    ]
    found = holding(text, standing)
    assert [memory.content for memory in found][1:] == []
    assert found, [memory.content for memory in standing]
    assert found[0].type in STANDS[text]


def test_each_memory_names_where_it_was_said(day):
    said = {f"{name}#{n}": content for name in TURNS for n, (_, content) in enumerate(TURNS[name], 1)}
    memories = day.memories().values()
    for text in STANDS:
        for memory in holding(text, [m for m in memories if m.layer == pb.LAYER_SEMANTIC and not m.HasField("fact")]):
            source = memory.source
            assert source.tool == EPISODES[source.session_id][0]
            assert text.lower() in said[source.message_id].lower()


@pytest.mark.parametrize("text", REPLACED)
def test_the_newer_fact_supersedes_the_older(day, text):
    memories = day.memories()
    (old,) = [m for m in holding(text, list(memories.values())) if m.layer == pb.LAYER_SEMANTIC]
    assert old.status == pb.STATUS_SUPERSEDED
    assert REPLACED[text] in memories[old.superseded_by].content


@pytest.mark.parametrize("text", NOWHERE)
def test_noise_is_in_no_memory(day, text):
    assert holding(text, list(day.memories().values())) == []


@pytest.mark.parametrize("secret", [PASSWORD, KEY])
def test_a_secret_never_reaches_the_disk(day, secret):
    for path in day.directory.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("part", ["goal", "constraints", "pending", "finished", "slots"])
@pytest.mark.parametrize("name", STATES)
def test_state_of_each_session_before_its_end(day, name, part):
    wanted, found = STATES[name][part], getattr(day.answers[f"{name} state"].state, part)
    if part == "slots":
        assert dict(found) == wanted
        return
    texts = [found] if part == "goal" else list(found)
    for text in wanted:
        assert any(text in one for one in texts), texts
    for text in STATES[name].get(f"not {part}", ()):
        assert not any(text in one for one in texts), texts
    if part == "pending":
        assert len(texts) == len(wanted), texts


@pytest.mark.parametrize("name", EPISODES)
def test_each_session_leaves_one_event(day, name):
    tool, goal = EPISODES[name]
    (found,) = day.events(event_types=["session_summary"], mentions=goal)
    payload, view = found.memory.event.payload, day.answers[f"{name} consolidation"].consolidation
    assert view.state == spb.CONSOLIDATION_STATE_DONE
    assert (view.done_turns, view.episode_id) == (20, found.memory.memory_id)
    assert (payload["tool"], payload["turn_count"], found.memory.source.session_id) == (tool, 20, name)
    assert goal in payload["goal"]
    kept = {r.memory_id for r in view.results if r.outcome != mpb.WRITE_OUTCOME_STAGED}
    assert set(payload["memory_ids"]) == kept


def test_the_chain_of_the_order_and_its_causes(day):
    chain = [found for found in day.events(mentions="ORD-2025-0110") if found.memory.event.event_type in EVENT_TYPES]
    assert [found.memory.memory_id for found in chain] == [day.ids[name] for name in CHAIN]
    every = {found.memory.memory_id: found for found in day.events(event_types=list(EVENT_TYPES))}
    assert list(every) == list(day.ids.values())
    for name, (_, _, summary, _, causes) in EVENTS.items():
        found = every[day.ids[name]]
        assert found.memory.content == summary
        assert [cause.memory_id for cause in found.causes] == [day.ids[cause] for cause in causes]
        led_to = [day.ids[other] for other in EVENTS if name in EVENTS[other][4]]
        assert [one.memory_id for one in found.consequences] == led_to


EVENT_TYPES = tuple(dict.fromkeys(kind for _, kind, *_ in EVENTS.values()))


@pytest.mark.parametrize("query", ["上次导出报错是怎么解决的", "how was the out-of-memory error of the export solved?"])
def test_a_question_finds_the_error_and_its_recovery(day, query):
    best = day.events(query=query, page_size=3)
    found = {m.memory_id for one in best for m in (one.memory, *one.causes, *one.consequences)}
    assert {day.ids["error"], day.ids["recovery"]} <= found


@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts_hold_what_the_day_taught(day, name):
    block = day.answers[name].context
    held, gone = CONTEXTS[name]
    assert [text for text in held if text not in block.text] == [], block.text
    assert [text for text in gone if text in block.text] == [], block.text
    assert block.token_count <= 1024
    assert not block.degraded


def test_facts_and_skills(day):
    lin = pb.Owners(user_id="lin")
    history = day.ask("facts", "History", owners=lin, key="default_currency").facts
    assert [(fact.version, fact.value.string_value) for fact in history] == [(2, "EUR"), (1, "CNY")]
    (match,) = day.ask("skills", "Match", owners=lin, query="export the orders of May").matches
    assert (match.skill.name, match.skill.success_count, match.skill.failure_count) == ("export-orders", 1, 0)
    assert [(p.name, p.value.string_value) for p in match.parameters] == [("currency", "EUR")]


# -- the twin ----------------------------------------------------------------------------------------------------------


def left(day: Day) -> dict[str, Any]:
    """What a day left, without ids and the times of the run."""
    memories = day.memories()
    texts = {memory_id: memory.content for memory_id, memory in memories.items()}

    def told(memory: pb.Memory) -> tuple[Any, ...]:
        event = memory.event
        payload = {key: value for key, value in event.payload.items() if key not in ("memory_ids", "memory_id")}
        named = [texts[one] for one in event.payload["memory_ids"]] if "memory_ids" in event.payload else []
        return (
            memory.content, memory.type, memory.layer, memory.status, memory.subject, memory.version,
            round(memory.importance, 6), round(memory.confidence, 6), memory.seen_count, str(memory.source),
            memory.occur_time.ToDatetime() if memory.HasField("event") and event.event_type != "skill_run" else None,
            event.event_type, sorted(event.participants), str(sorted(payload.items())), named,
            sorted(texts[one] for one in event.caused_by), sorted(texts[one] for one in memory.supersedes),
            texts.get(memory.superseded_by, ""),
        )  # fmt: skip

    states = {}
    for name in TURNS:
        answer = day.answers[f"{name} state"]
        window = [(turn.speaker, turn.content) for turn in answer.window]
        states[name] = (str(answer.state), window, answer.summary, answer.session.turn_count)
    views = [day.answers[f"{name} consolidation"].consolidation for name in TURNS]
    return {
        "memories": sorted(map(told, memories.values()), key=str),
        "states": states,
        "results": [[(r.outcome, texts[r.memory_id]) for r in view.results] for view in views],
        "contexts": {name: [line.text for line in day.answers[name].context.lines] for name in CONTEXTS},
    }


@pytest.mark.timeout(900)  # about 20 starts of the server
def test_killed_in_every_phase_it_ends_the_same(day, run_day, tmp_path):
    twin = run_day(tmp_path, kills=True)
    assert twin.kill_count == sum(bool(step.phase) for steps in SCRIPT.values() for step in steps)
    wanted, found = left(day), left(twin)
    for part, value in wanted.items():
        assert found[part] == value, part
    test_facts_and_skills(twin)
    test_the_chain_of_the_order_and_its_causes(twin)
