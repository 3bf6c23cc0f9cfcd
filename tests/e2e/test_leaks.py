"""Nothing that was said, and no token, gets into logs, argv or error texts: a server at level DEBUG, every call of the
contract with marked texts in every field, right and wrong.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import uuid
from pathlib import Path

import grpc
import pytest
from google.protobuf import struct_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from grpc_status import rpc_status

import memsvc.v1
from memsvc.v1 import admin_service_pb2 as apb
from memsvc.v1 import memory_pb2 as pb

SAID = "zebrafish-was-said"  # in every text that is content
SAID_ZH = "斑马鱼说过的话"
SECRET = "sk-proj-Zx81kQm0Aa73LpT94vBnWq2RsYh6UdEcXf5GjKoM"  # looks like an API key
NAMED = "narwhal-is-an-id"  # in every text that names something: may be in an error text, not in a log
NAMES = set("memory_id memory_ids item_id receipt_id token_id supersedes caused_by directory model_directory".split())
OWNERS = {"tenant", "user_id", "project_id", "agent_id", "session_id"}
SKILL = f"name: tea\ndescription: {SAID}\ntrigger: {SAID_ZH}\nsteps:\n  - {SAID}\n"
FILES = [
    importlib.import_module(f"memsvc.v1.{module.name}").DESCRIPTOR
    for module in pkgutil.iter_modules(memsvc.v1.__path__)
    if module.name.endswith("_pb2")
]
METHODS = {
    f"{service.name}/{method.name}": method
    for file in FILES
    for service in file.services_by_name.values()
    for method in service.methods
}
WHOM = pb.Owners(user_id="u", project_id="p", agent_id="a")
SESSION = pb.Owners(user_id="u", session_id="s")
# Right requests, so that calls come to their ends; every call is made with marked texts in all fields besides.
RIGHT = [
    ("MemoryService/Write", {"owners": WHOM, "memory": {"content": f"I like the {SAID}", "type": 2, "tags": [SAID]}}),
    ("MemoryService/Write", {"owners": WHOM, "memory": {"content": f"我喜欢{SAID_ZH}", "type": 2, "subject": SAID}}),
    ("MemoryService/Write", {"owners": WHOM, "memory": {"content": f"My key is {SECRET}", "type": 1}}),
    ("MemoryService/Recall", {"owners": WHOM, "query": f"{SAID} {SAID_ZH} {SECRET}"}),
    ("MemoryService/List", {"owners": WHOM}),
    ("MemoryService/Ingest", {"owners": WHOM, "messages": [{"speaker": 1, "content": f"I prefer {SAID}, always."}]}),
    ("SessionService/Start", {"owners": SESSION, "goal": f"find the {SAID}"}),
    ("SessionService/AppendTurns", {"owners": SESSION, "turns": [{"speaker": 1, "content": f"{SAID_ZH} {SECRET}"}]}),
    ("SessionService/RecordToolOutput", {"owners": SESSION, "tool": "kettle", "content": SAID}),
    ("SessionService/UpdateState", {"owners": SESSION, "add_pending": [SAID]}),
    ("SessionService/Assemble", {"owners": SESSION, "query": SAID}),
    ("SessionService/End", {"owners": SESSION}),
    ("ContextService/AssembleContext", {"owners": WHOM, "query": SAID}),
    ("FactService/Put", {"owners": WHOM, "key": "fish.kind", "value": {"string_value": SAID}}),
    ("FactService/Match", {"owners": WHOM, "query": SAID}),
    ("EventService/Record", {"owners": WHOM, "summary": f"{SAID} came", "event": {"event_type": "visit"}}),
    ("EventService/Query", {"owners": WHOM, "query": SAID}),
    ("SkillService/Push", {"owners": WHOM, "source": SKILL}),
    ("SkillService/Push", {"owners": WHOM, "source": f"{SAID}: ["}),
    ("SkillService/Match", {"owners": WHOM, "query": SAID}),
    ("PermanentService/Put", {"owners": WHOM, "kind": 1, "content": SAID, "reason": SAID}),
    ("PermanentService/Propose", {"owners": WHOM, "kind": 1, "content": f"{SAID} {SECRET}", "reason": SAID}),
    ("MemoryService/Forget", {"owners": WHOM, "all": True, "reason": SAID}),
    ("ErasureService/Purge", {"owners": WHOM, "reason": SAID}),
]


def marked(descriptor, chance: int, depth: int = 0) -> Message:
    """A message with a marked text in every field."""
    message = descriptor._concrete_class()
    for field in descriptor.fields:
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            fill_message(message, field, chance, depth)
        elif field.type == FieldDescriptor.TYPE_STRING:
            put(message, field, text_of(field.name, chance))
        elif field.type == FieldDescriptor.TYPE_BYTES:
            put(message, field, SAID.encode())
        elif field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
            put(message, field, 0.5)
        elif field.type == FieldDescriptor.TYPE_BOOL:
            put(message, field, bool(chance % 2))
        else:
            put(message, field, 1)
    return message


def fill_message(message: Message, field: FieldDescriptor, chance: int, depth: int) -> None:
    kind = field.message_type
    if kind.full_name == "google.protobuf.Struct":
        getattr(message, field.name).update({SAID: [SAID_ZH, {SECRET: SAID}]})
    elif kind.full_name == "google.protobuf.Value":
        getattr(message, field.name).CopyFrom(struct_pb2.Value(string_value=SAID))
    elif kind.full_name.startswith("google.protobuf.") or kind.GetOptions().map_entry or depth > 3:
        return
    elif field.is_repeated:
        getattr(message, field.name).add().CopyFrom(marked(kind, chance, depth + 1))
    elif kind.name == "Owners":
        message.owners.CopyFrom(WHOM)
    else:
        getattr(message, field.name).CopyFrom(marked(kind, chance, depth + 1))


def text_of(name: str, chance: int) -> str:
    if name == "request_id":
        return str(uuid.uuid4()) if chance % 3 else SAID
    if name in OWNERS:
        return "u"
    if name in NAMES:
        return NAMED
    return (SAID, SAID_ZH, SECRET)[chance % 3] * (1 if chance % 4 else 3000)


def put(message: Message, field: FieldDescriptor, value: object) -> None:
    if field.is_repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


class Caller:
    """Calls by name; `told` is every text of an error that came back."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self.told: list[tuple[str, str]] = []
        self.made: set[str] = set()

    def __call__(self, name: str, request, metadata=None):
        method = METHODS[name]
        message = request if isinstance(request, Message) else method.input_type._concrete_class(**request)
        path = f"/{method.containing_service.full_name}/{method.name}"
        make = self._channel.unary_stream if method.server_streaming else self._channel.unary_unary
        call = make(
            path,
            request_serializer=type(message).SerializeToString,
            response_deserializer=method.output_type._concrete_class.FromString,
        )
        self.made.add(name)
        try:
            answer = call(message, metadata=metadata, timeout=30)
            if method.server_streaming:
                next(answer)
                answer.cancel()
            return answer
        except grpc.RpcError as error:
            status = rpc_status.from_call(error)
            packed = b"" if status is None else status.SerializeToString()
            self.told.append((name, f"{error.code()} {error.details()} {packed.decode('utf-8', 'replace')}"))
            return None


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> tuple[Caller, Path, list[str]]:
    """What a server at level DEBUG wrote, and what its callers were told, after all calls."""
    folder = tmp_path_factory.mktemp("leaks")
    out, err = folder / "out", folder / "err"
    command = [sys.executable, "-m", "memsvc", "serve", "--data-dir", str(folder / "data"), "--listen", "127.0.0.1:0"]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen([*command, "--log-level", "DEBUG"], stdout=stdout, stderr=stderr, cwd=folder)
    try:
        while "ready" not in out.read_text():
            assert process.poll() is None, err.read_text()
        address = out.read_text().split("grpc=")[1].split()[0]
        with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
            caller = Caller(channel)
            tokens = make_all_calls(caller)
        argv = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
    finally:
        process.terminate()
        process.wait(60)
    (folder / "argv").write_text(argv)
    return caller, folder, tokens


def make_all_calls(caller: Caller) -> list[str]:
    """The tokens that were in use."""
    created = caller("AdminService/CreateToken", apb.CreateTokenRequest(user_ids=["*"], name="laptop"))
    token = created.secret
    for name, request in RIGHT:
        caller(name, request)
        caller(name, request, (("authorization", f"Bearer {token}"),))
    for name in sorted(METHODS):
        if name in ("AdminService/StartReindex", "AdminService/RotateKeys"):
            caller(name, {"model_directory": NAMED} if name.endswith("Reindex") else {})
            continue
        for chance in range(6):
            caller(name, marked(METHODS[name].input_type, chance))
        caller(name, {}, (("authorization", f"Bearer {token[:-6]}broken"),))
        caller(name, {}, (("authorization", token),))
    return [token, f"{token[:-6]}broken", token.split(".")[2]]


def test_every_call_was_made(logs):
    caller, _, _ = logs
    assert caller.made == set(METHODS)
    assert len(caller.told) > len(METHODS)
    assert [told for told in caller.told if "StatusCode.INTERNAL" in told[1] or "StatusCode.UNKNOWN" in told[1]] == []


def test_logs_hold_nothing_that_was_said(logs):
    _, folder, tokens = logs
    written = (folder / "out").read_text() + (folder / "err").read_text()
    assert "DEBUG" in written
    assert [text for text in (SAID, SAID_ZH, SECRET, SECRET[8:], NAMED, *tokens) if text in written] == []


def test_error_texts_hold_neither_content_nor_tokens(logs):
    caller, _, tokens = logs
    leaks = {
        (name, told[:200]) for name, told in caller.told if any(t in told for t in (SAID, SAID_ZH, SECRET, *tokens))
    }
    assert leaks == set()


def test_the_command_line_holds_no_secret(logs):
    _, folder, tokens = logs
    assert not any(token in (folder / "argv").read_text() for token in tokens)
