"""The embedded store: one LMDB environment, durable group commit, a map that grows by itself.

Purpose: `LmdbEngine` implements `storage.engine.Engine`. LMDB is opened with its default, fully synchronous commit:
acknowledged means on disk.

Threading: readers open snapshots freely. Writers queue; whoever gets the commit lock runs everything that waits, each
operation in a child transaction when there is more than one, commits once and hands out the results. A lone writer so
pays for its own commit and for no hand-over. `on_commit` runs under the commit lock and must not write.
Growing the map excludes readers for the microseconds that it takes.

Rejected: a writer thread (two hand-overs a write, a third of a commit's time), WRITEMAP (a stray write corrupts the
file; no nested transactions), NOSYNC (loses acknowledged writes with the power).
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from memsvc.errors import (
    FormatVersionUnknown,
    InvalidArgument,
    MemsvcError,
    StorageFailure,
    StorageFull,
    StoreLocked,
    Unavailable,
)
from memsvc.locks import SharedLock
from memsvc.storage import lmdb_verify
from memsvc.storage.engine import ReadTxn, VerifyProblem, WriteTxn
from memsvc.storage.lmdb_tables import TABLES, LmdbReadTxn, LmdbWriteTxn

T = TypeVar("T")

FORMAT_VERSION = 1
META_FORMAT = "format_version"
DATA_FILE = "data.mdb"
LOCK_FILE = "memsvc.lock"
INITIAL_MAP_BYTES = 1 << 30
MAX_MAP_BYTES = 1 << 40
MAX_READERS = 1024
GROUP_MAX = 256  # operations that share a commit


class _Operation:
    """One queued write: what to run, and what came of it."""

    __slots__ = ("done", "error", "on_commit", "result", "run")

    def __init__(self, run: Callable[[WriteTxn], Any], on_commit: Callable[[Any], None] | None) -> None:
        self.run = run
        self.on_commit = on_commit
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False


class LmdbEngine:
    """See the module. Open it with `LmdbEngine.open`."""

    def __init__(self, directory: Path, lock_fd: int, map_size_bytes: int, max_map_size_bytes: int) -> None:
        self.directory = directory
        self._lock_fd = lock_fd
        self._max_map_bytes = max_map_size_bytes
        self._gate = SharedLock()
        self._commit_lock = threading.Lock()
        self._queue: list[_Operation] = []
        self._queue_lock = threading.Lock()
        self._closed = False
        self._env, self._tables = self._open_env(map_size_bytes)

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        initial_map_size_bytes: int = INITIAL_MAP_BYTES,
        max_map_size_bytes: int = MAX_MAP_BYTES,
    ) -> LmdbEngine:
        """Opens or creates the store. Raises StoreLocked when another process (or this one) has it open,
        FormatVersionUnknown for another format, StorageFull and StorageFailure when the disk refuses."""
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock_fd = _lock(directory)
        except OSError as error:
            raise _storage_error(error, "open") from error
        try:
            size = directory.joinpath(DATA_FILE).stat().st_size if directory.joinpath(DATA_FILE).exists() else 0
            map_size = min(max(initial_map_size_bytes, size * 3 // 2), max_map_size_bytes)
            engine = cls(directory, lock_fd, max(map_size, size), max_map_size_bytes)
            try:
                engine._check_format()
            except BaseException:
                engine._env.close()
                raise
        except BaseException:
            os.close(lock_fd)
            raise
        return engine

    def _open_env(self, map_size_bytes: int) -> tuple[Any, dict[str, Any]]:
        try:
            env = lmdb.open(
                str(self.directory),
                map_size=map_size_bytes,
                max_dbs=len(TABLES),
                max_readers=MAX_READERS,
                mode=0o600,
                readahead=False,
            )
            env.reader_check()
            tables = {name: env.open_db(name.encode()) for name in TABLES}
        except lmdb.Error as error:
            raise _storage_error(error, "open") from error
        _sync_directory(self.directory)
        return env, tables

    def _check_format(self) -> None:
        with self.read() as txn:
            raw = txn.meta(META_FORMAT)
            empty = next(iter(txn.heads()), None) is None
        if raw is None and empty:
            self.write(lambda txn: txn.put_meta(META_FORMAT, str(FORMAT_VERSION).encode()))
        elif raw != str(FORMAT_VERSION).encode():
            found = (raw or b"none").decode("utf-8", "replace")
            raise FormatVersionUnknown(
                f"the store in {self.directory} has format {found}, this memsvc reads format {FORMAT_VERSION}: open it "
                "with the version that wrote it, or upgrade memsvc (`pip install -U memsvc`)",
                found=found,
                known=str(FORMAT_VERSION),
            )

    # -- reading

    @contextmanager
    def read(self) -> Iterator[ReadTxn]:
        """See the protocol. Raises Unavailable after close."""
        with self._gate.shared:
            if self._closed:
                raise Unavailable("the store is closed")
            with self._env.begin() as txn:
                yield LmdbReadTxn(txn, self._tables)

    # -- writing

    def write(self, operation: Callable[[WriteTxn], T], *, on_commit: Callable[[T], None] | None = None) -> T:
        """See the protocol."""
        mine = _Operation(operation, on_commit)
        with self._queue_lock:
            self._queue.append(mine)
        while not mine.done:
            with self._commit_lock:
                if mine.done:
                    break
                with self._queue_lock:
                    group, self._queue = self._queue[:GROUP_MAX], self._queue[GROUP_MAX:]
                self._run_group(group)
        if mine.error is not None:
            raise mine.error
        result: T = mine.result
        return result

    def _run_group(self, group: list[_Operation]) -> None:
        """Runs and commits the operations; every one of them is done afterwards, with a result or an error."""
        try:
            if self._closed:
                raise Unavailable("the store is closed")
            self._commit(group)
        except BaseException as error:
            for operation in group:
                operation.error = operation.error or error
            if not isinstance(error, MemsvcError):
                raise
        else:
            for operation in group:
                if operation.error is None and operation.on_commit is not None:
                    operation.on_commit(operation.result)
        finally:
            for operation in group:
                operation.done = True

    def _commit(self, group: list[_Operation]) -> None:
        """One durable transaction for the group; grows the map and runs it again when it was full."""
        while True:
            try:
                with self._gate.shared, self._env.begin(write=True) as txn:
                    for operation in group:
                        self._run_one(txn, operation, alone=len(group) == 1)
                    if all(operation.error is not None for operation in group):
                        txn.abort()
                return
            except lmdb.MapFullError:
                self._grow()
            except lmdb.Error as error:
                if isinstance(error, lmdb.PanicError):
                    self._reopen()
                raise _storage_error(error, "commit") from error
            for operation in group:
                operation.error = None

    def _run_one(self, txn: Any, operation: _Operation, alone: bool) -> None:
        """Runs one operation; its exception undoes it alone. Only a full map or a failing disk ends the group."""
        child = txn if alone else self._env.begin(write=True, parent=txn)
        try:
            operation.result = operation.run(LmdbWriteTxn(child, self._tables))
        except lmdb.Error:
            if not alone:
                child.abort()
            raise
        except BaseException as error:
            operation.error = error
            if not alone:
                child.abort()
        else:
            if not alone:
                child.commit()

    def _grow(self) -> None:
        """Doubles the map. Raises StorageFull at the limit."""
        with self._gate.exclusive:
            size = self._env.info()["map_size"]
            if size >= self._max_map_bytes:
                raise StorageFull(
                    f"the store has reached its limit of {self._max_map_bytes} bytes (setting map_size_max_bytes)",
                    limit=str(self._max_map_bytes),
                )
            self._env.set_mapsize(min(size * 2, self._max_map_bytes))

    def _reopen(self) -> None:
        """After LMDB declared the environment unusable (a failed write of its meta page)."""
        with self._gate.exclusive:
            size = self._env.info()["map_size"]
            self._env.close()
            self._env, self._tables = self._open_env(size)

    # -- care

    def verify(self) -> Iterator[VerifyProblem]:
        """See the protocol."""
        with self.read() as txn:
            assert isinstance(txn, LmdbReadTxn)
            yield from lmdb_verify.verify(txn)

    def backup(self, directory: Path) -> int:
        """See the protocol. Raises InvalidArgument when the directory is not empty."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(directory.iterdir()):
            raise InvalidArgument(f"{directory} is not empty", field="directory")
        try:
            with self._gate.shared:
                if self._closed:
                    raise Unavailable("the store is closed")
                self._env.copy(str(directory), compact=True)
            with directory.joinpath(DATA_FILE).open("rb") as file:
                os.fsync(file.fileno())
            _sync_directory(directory)
        except (lmdb.Error, OSError) as error:
            raise _storage_error(error, "backup") from error
        return directory.joinpath(DATA_FILE).stat().st_size

    def size_bytes(self) -> int:
        """See the protocol."""
        return self.directory.joinpath(DATA_FILE).stat().st_size

    def close(self) -> None:
        """See the protocol."""
        with self._commit_lock, self._gate.exclusive:
            if self._closed:
                return
            self._closed = True
            self._env.close()
            os.close(self._lock_fd)


def _lock(directory: Path) -> int:
    """Takes the directory's lock, which dies with the process; the file names the holder."""
    fd = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        os.close(fd)
        raise StoreLocked(
            f"{directory} is open in another process (pid {holder or 'unknown'}); stop that one, or talk to it "
            "instead of opening its directory",
            pid=holder,
        ) from error
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _storage_error(error: Exception, what: str) -> MemsvcError:
    """StorageFull or StorageFailure for what the system said. py-lmdb gives the text of the errno only."""
    text = str(error)
    code = error.errno if isinstance(error, OSError) else None
    if code in _FULL or any(os.strerror(number) in text for number in _FULL):
        return StorageFull(f"the disk is full: {what} stored nothing; free space and try again")
    return StorageFailure(f"the store failed to {what}: {text}")
