"""A process that the fault tests kill or starve: `python lmdb_child.py COMMAND DIRECTORY`.

Says what it did on standard output, a line each, flushed.
"""

from __future__ import annotations

import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from lmdb_samples import NS, memory, put

from memsvc.errors import StorageFull, StoreLocked
from memsvc.storage.lmdb_engine import LmdbEngine

PAYLOAD = "x" * 3000


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def hold(directory: Path) -> None:
    """Opens the store and waits to be killed."""
    engine = LmdbEngine.open(directory)
    say("open")
    sys.stdin.read()
    engine.close()


def try_open(directory: Path) -> None:
    try:
        LmdbEngine.open(directory)
    except StoreLocked as error:
        say(error.reason, error.metadata["pid"], error.message)


def write_until_killed(directory: Path) -> None:
    """Four threads write pairs; each is acknowledged after it is durable. The map starts small, so that it grows."""
    engine = LmdbEngine.open(directory, initial_map_size_bytes=1 << 20)
    with engine.read() as txn:
        head = txn.head(NS)
    start = 0 if head is None else head.sequence

    def work(thread: int) -> None:
        number = start * 10 + thread * 10_000_000
        while True:
            number += 2
            engine.write(lambda txn, n=number: [put(txn, memory(n)), put(txn, memory(n + 1))])
            say("ack", number)

    for thread in range(4):
        threading.Thread(target=work, args=(thread,), daemon=True).start()
    sys.stdin.read()


def fill(engine: LmdbEngine, number: int) -> int:
    """Writes until the store says that it is full; returns the next number."""
    while True:
        try:
            engine.write(lambda txn, n=number: put(txn, memory(n, content=PAYLOAD + str(n))))
        except StorageFull as error:
            say("full", error.message)
            return number
        number += 1


def check(engine: LmdbEngine, count: int) -> None:
    with engine.read() as txn:
        assert sum(1 for _ in txn.scan(NS)) == count
    assert list(engine.verify()) == []


def disk_full(directory: Path) -> None:
    """The file may not grow past a limit: writing beyond it fails as on a full disk. Then it may."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    engine = LmdbEngine.open(directory)
    limit_bytes = 2 << 20
    for _ in range(2):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, resource.RLIM_INFINITY))
        with engine.read() as txn:
            head = txn.head(NS)
        count = fill(engine, 0 if head is None else head.memory_count)
        assert fill(engine, count) == count
        check(engine, count)
        limit_bytes *= 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for n in range(count, count + 300):
        engine.write(lambda txn, n=n: put(txn, memory(n, content=PAYLOAD)))
    check(engine, count + 300)
    engine.close()
    engine = LmdbEngine.open(directory)
    check(engine, count + 300)
    engine.close()
    say("done")


def address_space_full(directory: Path) -> None:
    """The process may not map more: the map can't grow. Then it may."""
    engine = LmdbEngine.open(directory, initial_map_size_bytes=4 << 20)
    mapped_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped_bytes + (48 << 20), resource.RLIM_INFINITY))
    count = fill(engine, 0)
    check(engine, count)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for n in range(count, count + 5000):
        engine.write(lambda txn, n=n: put(txn, memory(n, content=PAYLOAD)))
        if n % 1000 == 0:
            check(engine, n + 1)
    check(engine, count + 5000)
    engine.close()
    say("done")


def little_address_space(directory: Path) -> None:
    """The first map that it asks for is refused: it opens with a smaller one."""
    mapped_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped_bytes + (256 << 20), resource.RLIM_INFINITY))
    engine = LmdbEngine.open(directory)
    engine.write(lambda txn: put(txn, memory(1)))
    check(engine, 1)
    say("done")


COMMANDS: dict[str, Callable[[Path], None]] = {
    command.__name__: command
    for command in (hold, try_open, write_until_killed, disk_full, address_space_full, little_address_space)
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](Path(sys.argv[2]))
