"""Real processes: commands about the audit, a store that was tampered with, and a kill in the middle of writing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import lmdb
import pytest

from memsvc.demo import ServerProcess
from memsvc.model import AuditEntry, AuditKind, ChangeKind, Namespace, Scope
from memsvc.storage.audit_chain import ChainCheck
from memsvc_client import MemoryClient, MemsvcClientError

MARK = "Zyxomarker"
WRITES_BEFORE_KILL = 60
SAID = (f"{MARK} drinks tea.", "The office is in Lyon.", "Bob owns a kayak.", "Rent is due on Monday.")


def memsvc(*arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MEMSVC_")}
    return subprocess.run(
        [sys.executable, "-m", "memsvc", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**clean, "COLUMNS": "80", **{f"MEMSVC_{name}": str(value) for name, value in environment.items()}},
        check=False,
    )


def opened(address):
    return MemoryClient(address, user_id="u", tool="editor", timeout_s=30, write_timeout_s=30)


@pytest.fixture
def filled(tmp_path):
    """A data directory with four entries of user u, and the head of its chain, the server stopped."""
    with ServerProcess(tmp_path / "data", "--log-level", "WARNING") as server:
        with opened(server.address) as client:
            for content in SAID:
                client.write(content)
        (chain,) = json.loads(
            memsvc("audit", "verify", "-u", "u", "--scope", "user", "-o", "json", SERVER=server.address).stdout
        )
    assert chain["whole"]
    return tmp_path / "data", chain["head"]


def tamper(data, change):
    """Runs `change(keys, txn, table)` on the entries of the store's audit table."""
    with lmdb.open(str(data / "store"), max_dbs=64, map_size=1 << 30) as env:
        table = env.open_db(b"audit", create=False)
        with env.begin(write=True, db=table) as txn:
            change([key for key, _ in txn.cursor()], txn, table)


def test_a_flipped_byte_is_found_where_it_is(filled):
    data, _ = filled

    def flip(keys, txn, table):
        raw = bytearray(txn.get(keys[2]))
        raw[raw.index(b"local")] ^= 1
        txn.put(keys[2], bytes(raw))

    tamper(data, flip)
    offline = memsvc("audit", "verify", "--data-dir", data)
    assert offline.returncode == 1, offline.stderr
    assert "user u: BROKEN at entry 3" in offline.stdout
    with ServerProcess(data, "--log-level", "WARNING") as server:
        online = memsvc("audit", "verify", SERVER=server.address)
        assert online.returncode == 1
        assert "user u: BROKEN at entry 3" in online.stdout


def test_a_byte_that_leaves_no_entry_is_found_too(filled):
    data, _ = filled
    tamper(data, lambda keys, txn, table: txn.put(keys[1], b"\x00" + txn.get(keys[1])[1:]))
    done = memsvc("audit", "verify", "--data-dir", data)
    assert done.returncode == 1
    assert "user u: BROKEN at entry 2" in done.stdout


def test_a_tail_that_was_cut_off(filled):
    data, head = filled
    assert head.startswith("4:")
    whole = memsvc("audit", "verify", "-u", "u", "--scope", "user", "--expect", head, "--data-dir", data)
    assert whole.returncode == 0, whole.stdout
    tamper(data, lambda keys, txn, table: txn.delete(keys[3]))
    cut = memsvc("audit", "verify", "-u", "u", "--scope", "user", "--expect", head, "--data-dir", data)
    assert cut.returncode == 1
    assert "ends at 3: its tail was cut off" in cut.stdout
    compared = memsvc("audit", "verify", "--data-dir", data)
    assert compared.returncode == 1
    assert "1 changes without an entry, the first is 4" in compared.stdout


def test_killed_while_writing_the_audit_is_whole(tmp_path):
    data, written = tmp_path / "data", []
    with ServerProcess(data, "--log-level", "WARNING") as server:
        enough = threading.Event()

        def write(thread):
            with opened(server.address) as client:
                try:
                    while True:
                        result = client.write(f"Number {len(written)} of thread {thread}.", type="event")
                        if result.memory_id:
                            written.append(result.memory_id)
                        if len(written) >= WRITES_BEFORE_KILL:
                            enough.set()
                except MemsvcClientError:
                    return

        threads = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(4)]
        for thread in threads:
            thread.start()
        assert enough.wait(60)
        os.kill(server.pid, signal.SIGKILL)
    done = memsvc("audit", "verify", "--data-dir", data, "-o", "json")
    assert done.returncode == 0, done.stdout
    (chain,) = (chain for chain in json.loads(done.stdout) if chain["scope"] == "USER")
    assert int(chain["head"].partition(":")[0]) >= WRITES_BEFORE_KILL
    assert chain["whole"]


def chain_of(lines):
    """The check of an export's chain, from nothing but its lines."""
    first = lines[0]
    check = ChainCheck(Namespace(first["tenant"], Scope[first["scope"]], first["owner"]))
    for line in lines:
        fields = {name: line[name] for name in AuditEntry.__struct_fields__ if name in line}
        fields["kind"] = AuditKind[line["kind"]]
        fields["change"] = ChangeKind[line["change"]] if line["change"] else None
        fields["memory_ids"] = tuple(line["memory_ids"])
        fields["hash"], fields["reason_hash"] = bytes.fromhex(line["hash"]), bytes.fromhex(line["reason_hash"])
        assert check.problem(AuditEntry(**fields)) == ""
    return check


def test_export_list_and_why(tmp_path):
    with ServerProcess(tmp_path / "data", "--log-level", "WARNING") as server:
        at = {"SERVER": server.address}
        with opened(server.address) as client:
            made = [client.write(content).memory_id for content in SAID]
            client.forget(made[1], reason=f"{MARK} moved")
        session = memsvc("remember", "Only here.", "-u", "u/1", "-s", "a b", "--scope", "session", **at)
        assert session.returncode == 0, session.stderr
        done = memsvc("audit", "export", "--output", tmp_path / "all.jsonl", **at)
        assert done.returncode == 0, done.stderr
        text = (tmp_path / "all.jsonl").read_text()
        assert MARK.lower() not in text.lower()
        lines = [json.loads(line) for line in text.splitlines()]
        assert {line["scope"] for line in lines} == {"USER", "SESSION"}
        own = [line for line in lines if line["scope"] == "USER"]
        assert [line["number"] for line in own] == [1, 2, 3, 4, 5]
        assert chain_of(own).number == 5
        assert len(memsvc("audit", "export", "-u", "u", "--scope", "user", **at).stdout.splitlines()) == 5
        forgotten = memsvc("audit", "list", "-u", "u", "--memory", made[1], "-o", "json", **at)
        assert [one["call"] for one in json.loads(forgotten.stdout)] == ["MemoryService/Forget", "MemoryService/Write"]
        assert "MemoryService/Forget forgotten" in memsvc("audit", "list", "-u", "u", **at).stdout.replace("\n", " ")
        for bad in (("list", "--kind", "x"), ("verify", "--scope", "x"), ("verify", "--expect", "x")):
            assert memsvc("audit", *bad, **at).returncode == 2
        told = memsvc("why", made[1], "-u", "u", **at).stdout
        for part in (
            "The office is in Lyon. [forgotten]",
            "source tool editor",
            "recalled never",
            f"forgotten by local: {MARK}",
        ):
            assert part in told
        plain = json.loads(memsvc("why", made[1], "-u", "u", "-o", "json", **at).stdout)
        assert plain["changes"][1]["reason"] == f"{MARK} moved"
        assert "NOT_FOUND" in memsvc("why", made[1], "-u", "v", **at).stderr
