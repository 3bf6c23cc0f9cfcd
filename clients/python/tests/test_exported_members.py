"""What the package exports is there, documented, and complete."""

from __future__ import annotations

import inspect
import subprocess
import sys

import memsvc_client
from memsvc_client import AsyncMemoryClient, MemoryClient, errors

CALLS = ["write", "add", "recall", "search", "get", "list", "get_all", "update", "delete", "forget", "history", "watch"]
LEARNING_CALLS = ["ingest", "review", "list_conflicts", "resolve_conflict"]
SESSION_CALLS = ["context", "session", "sessions"]
RESOURCES = {
    "facts": "Facts",
    "events": "Events",
    "skills": "Skills",
    "permanent": "Permanent",
    "erasure": "Erasure",
    "audit": "Audit",
    "lifecycle": "Lifecycle",
}


def test_every_exported_name_exists_and_has_a_docstring():
    assert sorted(memsvc_client.__all__) == list(memsvc_client.__all__)
    for name in memsvc_client.__all__:
        assert inspect.getdoc(getattr(memsvc_client, name)), name


def test_every_error_class_is_exported():
    named = {n for n, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.MemsvcClientError)}
    assert named <= set(memsvc_client.__all__)


def test_both_clients_have_the_same_calls_with_the_names_people_know():
    def public(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert public(MemoryClient) == public(AsyncMemoryClient)
    assert {*CALLS, *LEARNING_CALLS, *SESSION_CALLS} <= public(MemoryClient)


def test_both_clients_hold_the_resources():
    for cls, prefix in ((MemoryClient, ""), (AsyncMemoryClient, "Async")):
        client = cls()
        held = {name for name in vars(client) if not name.startswith("_")}
        assert held == set(RESOURCES)
        for name, kind in RESOURCES.items():
            assert type(getattr(client, name)) is getattr(memsvc_client, prefix + kind)
            assert f"`{name}`" in (inspect.getdoc(MemoryClient) or "")


def test_every_public_member_of_an_exported_class_has_a_docstring():
    for name in memsvc_client.__all__:
        for member, value in vars(getattr(memsvc_client, name)).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_an_application_that_sets_up_no_logging_hears_nothing():
    program = "import logging, memsvc_client; logging.getLogger('memsvc_client.session').warning('unasked')"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (told.stdout, told.stderr) == ("", "")


def test_both_clients_take_the_same_arguments():
    single = ("__init__", "recall", "write", "update", "forget", "forget_all", "get", "list", "history")
    for name in (*single, *LEARNING_CALLS, *SESSION_CALLS):
        one, two = (inspect.signature(getattr(cls, name)) for cls in (MemoryClient, AsyncMemoryClient))
        assert list(one.parameters) == list(two.parameters), name
        assert [p.default for p in one.parameters.values()] == [p.default for p in two.parameters.values()]
