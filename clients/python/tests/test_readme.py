"""The examples of the README run as they stand, each for a user of its own, against a real server."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from memsvc_client import MemoryClient

PATIENT_S = 20.0
README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split("\n", 1)[0][:40] for block in BLOCKS])
def test_an_example_runs_and_prints_what_its_comments_say(server, capsys, block):
    limits = {"timeout_s": PATIENT_S, "write_timeout_s": PATIENT_S}
    with MemoryClient(server, user_id=uuid.uuid4().hex, **limits) as mem:
        names = {"mem": mem}
        exec(compile(block.replace("127.0.0.1:50051", server), "README.md", "exec"), names)
        names["mem"].close()
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print\(.*\)  # (\[.*\])$", block, re.MULTILINE)
    assert [line for line in promised if line not in printed] == []


def test_promises_are_found():
    assert len(re.findall(r"^print\(.*\)  # \[", README, re.MULTILINE)) == 3
