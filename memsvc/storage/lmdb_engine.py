"""The embedded store: one LMDB environment, durable group commit, a map that grows by itself.

Purpose: `LmdbEngine` implements `storage.engine.Engine`. LMDB is opened with its default, fully synchronous commit:
acknowledged means on disk. `lmdb_tables` and `lmdb_write` have the tables, `lmdb_writer` the queue of writers,
`lmdb_gate` the moment in which the map may move.

Threading: readers open snapshots freely, and never wait for writers. Writers share commits (`lmdb_writer`); each
operation of a group runs in a child transaction, so that its failure undoes it alone. Operations may run twice: when
the map was full, and when a group that did not fit is tried one by one.

Rejected: WRITEMAP (a stray write corrupts the file; no nested transactions), NOSYNC (loses acknowledged writes with
the power), one huge fixed map (containers limit address space; so it starts large, smaller where that is refused, and
grows when three quarters are used and nobody reads, or at the latest when it is full).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import lmdb

from memsvc.errors import (
    FormatVersionUnknown,
    InvalidArgument,
    MemsvcError,
    StorageFailure,
    StorageFull,
    StoreCorrupt,
    StoreLocked,
    Unavailable,
)
from memsvc.model import Namespace
from memsvc.storage import lmdb_rewrite, lmdb_verify
from memsvc.storage.engine import ReadTxn, VerifyProblem, WriteTxn
from memsvc.storage.lmdb_errors import OF_ONE_OPERATION, storage_error
from memsvc.storage.lmdb_gate import MapGate
from memsvc.storage.lmdb_rewrite import DATA_FILE
from memsvc.storage.lmdb_tables import LATER_TABLES, META_FORMAT, TABLES, LmdbReadTxn
from memsvc.storage.lmdb_write import LmdbWriteTxn
from memsvc.storage.lmdb_writer import GroupWriter, Operation

T = TypeVar("T")

FORMAT_VERSION = 1
PARTIAL_FILE = "data.mdb.partial"
LOCK_FILE = "memsvc.lock"
LOCK_FILE_BYTES = 32
INITIAL_MAP_BYTES = 16 << 30  # address space, not memory and not disk
LEAST_MAP_BYTES = 1 << 20
MAX_MAP_BYTES = 1 << 40
MAX_READERS = 1024
SPARE_READ_TXNS = 64
GROW_PATIENCE_S = 10.0
CLOSE_PATIENCE_S = 30.0
SWAP_PATIENCE_S = 30.0


class LmdbEngine:
    """See the module. Open it with `LmdbEngine.open`; `directory` is where it lives."""

    def __init__(self, directory: Path, lock_fd: int, env: lmdb.Environment, max_map_size_bytes: int) -> None:
        self.directory = directory
        self._lock_fd = lock_fd
        self._max_map_bytes = max_map_size_bytes
        self._env = env
        self._tables = _open_tables(env, directory)
        self._page_bytes = int(env.stat()["psize"])
        self._numbers: dict[Namespace, bytes] = {}
        self._gate = MapGate()
        self._writer = GroupWriter(self._commit_group)
        self._closed = False
        self._cannot_grow = False
        self._numbers_changed = False
        self._spoilt_map_bytes = 0
        self._close_lock = threading.Lock()

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        initial_map_size_bytes: int = INITIAL_MAP_BYTES,
        max_map_size_bytes: int = MAX_MAP_BYTES,
    ) -> LmdbEngine:
        """Opens or creates the store. Raises StoreLocked when another process (or this one) has it open,
        FormatVersionUnknown for another format (the file stays as it was), StoreCorrupt for a file that LMDB can't
        read, StorageFull and StorageFailure when the disk refuses.
        """
        try:
            _make_directory(directory)
            lock_fd = _lock(directory)
        except OSError as error:
            raise storage_error(error, "open") from error
        env = None
        try:
            lmdb_rewrite.finish(directory)
            env = _open_env(directory, initial_map_size_bytes, max_map_size_bytes)
            return cls(directory, lock_fd, env, max_map_size_bytes)
        except BaseException:
            if env is not None:
                env.close()
            os.close(lock_fd)
            raise

    # -- reading

    def read(self) -> AbstractContextManager[ReadTxn]:
        """See the protocol. Entering raises Unavailable after close, ResourceExhausted past MAX_READERS snapshots."""
        return _Snapshot(self)

    def _begin_read(self) -> lmdb.Transaction:
        self._gate.enter()
        try:
            if self._closed:
                raise Unavailable("the store is closed")
            return self._env.begin()
        except lmdb.Error as error:
            self._gate.leave()
            raise storage_error(error, "open a snapshot") from error
        except BaseException:
            self._gate.leave()
            raise

    # -- writing

    def write(self, operation: Callable[[WriteTxn], T], *, on_commit: Callable[[T], None] | None = None) -> T:
        """See the protocol."""
        mine = Operation(operation, on_commit)
        self._writer.submit(mine)
        result: T = mine.result
        return result

    def _commit_group(self, group: list[Operation]) -> None:
        """Makes a group durable. What does not fit together is tried one by one, so that a large operation does not
        take small ones down with it.
        """
        if group[0].is_alone:
            group[0].result = group[0].run()
            return
        try:
            self._commit(group)
        except StorageFull:
            if len(group) == 1:
                raise
            for operation in group:
                self._commit_alone(operation)
        self._grow_early()

    def _commit_alone(self, operation: Operation) -> None:
        operation.error = None
        try:
            self._commit([operation])
        except MemsvcError as error:
            operation.error = error

    def _commit(self, group: list[Operation]) -> None:
        """One durable transaction; grows the map and runs the group again when it was full."""
        if self._spoilt_map_bytes:
            self._reopen()
        while True:
            try:
                self._commit_once(group)
                return
            except lmdb.MapFullError:
                self._grow()
            except lmdb.Error as error:
                if isinstance(error, lmdb.PanicError):
                    self._reopen()
                raise storage_error(error, "commit") from error

    def _commit_once(self, group: list[Operation]) -> None:
        txn = self._env.begin(write=True)
        try:
            for operation in group:
                operation.error = None
                if len(group) == 1:
                    self._run_alone(txn, operation)
                else:
                    self._run_as_child(txn, operation)
            if any(operation.error is None for operation in group):
                txn.commit()
                if self._numbers_changed:
                    self._numbers = {}  # another dict: older snapshots go on with theirs
        finally:
            self._numbers_changed = False
            txn.abort()  # nothing happens after a commit

    def _run_alone(self, txn: lmdb.Transaction, operation: Operation) -> None:
        try:
            mine = LmdbWriteTxn(txn, self._tables)
            operation.result = operation.run(mine)
            self._numbers_changed |= mine.has_erased
        except OF_ONE_OPERATION as error:
            operation.error = _caused(storage_error(error, "run the operation"), error)
        except lmdb.Error:
            raise
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            operation.error = error

    def _run_as_child(self, txn: lmdb.Transaction, operation: Operation) -> None:
        child = self._env.begin(write=True, parent=txn)
        try:
            self._run_alone(child, operation)
            if operation.error is None:
                child.commit()
        finally:
            child.abort()  # nothing happens after a commit

    # -- the map

    def _grow(self) -> None:
        """Doubles the map. Raises StorageFull at the limit, Unavailable when snapshots stay open too long."""
        size = self._map_bytes()
        if size >= self._max_map_bytes:
            raise StorageFull(
                f"the store has reached its limit of {self._max_map_bytes} bytes (setting map_size_max_bytes)",
                limit=str(self._max_map_bytes),
            )
        if not self._gate.alone(self._double_map, patience_s=GROW_PATIENCE_S):
            raise Unavailable(
                f"the store's map must grow, but {self._gate.inside_count()} snapshots stayed open for "
                f"{GROW_PATIENCE_S:.0f} s; close them and try again"
            )

    def _grow_early(self) -> None:
        """Doubles the map when three quarters are used, if no snapshot is open just now."""
        size = self._map_bytes()
        if self._used_bytes() > size // 4 * 3 and size < self._max_map_bytes and not self._cannot_grow:
            try:
                self._gate.alone(self._double_map, patience_s=0)
            except StorageFull:
                self._cannot_grow = True  # what was committed stands; the write that finds the map full will report it

    def _double_map(self) -> None:
        size = self._map_bytes()
        new_size = min(size * 2, self._max_map_bytes)
        try:
            mmap.mmap(-1, new_size - size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
            self._env.set_mapsize(new_size)
        except OSError as error:  # found out before LMDB lets go of the map that it has
            raise StorageFull(f"the store can't grow past {size} bytes of address space: {error}") from error
        except lmdb.Error as error:
            self._open_again(size)
            raise StorageFull(f"the store can't grow past {size} bytes of address space: {error}") from error

    def _map_bytes(self) -> int:
        return int(self._env.info()["map_size"])

    def _used_bytes(self) -> int:
        return (int(self._env.info()["last_pgno"]) + 1) * self._page_bytes

    def _reopen(self) -> None:
        """After LMDB declared the environment unusable (a failed write of its meta page)."""
        size = self._spoilt_map_bytes or self._map_bytes()
        if not self._gate.alone(lambda: self._open_again(size), patience_s=GROW_PATIENCE_S):
            raise Unavailable("the store must be opened again, but snapshots stay open; close them and try again")

    def _open_again(self, map_bytes: int) -> None:
        """A fresh environment in place of a spoilt one. The caller is alone in the gate. Where it fails, reads raise
        StorageFailure, and the next write tries again.
        """
        self._spoilt_map_bytes = map_bytes
        self._env.close()
        self._env = _open_env(self.directory, map_bytes, max(map_bytes, self._max_map_bytes))
        self._tables = _open_tables(self._env, self.directory)
        self._spoilt_map_bytes = 0

    # -- care

    def verify(self) -> Iterator[VerifyProblem]:
        """See the protocol. The snapshot stays open until the iterator ends or is closed."""
        with self.read() as txn:
            assert isinstance(txn, LmdbReadTxn)
            yield from lmdb_verify.verify(txn)

    def backup(self, directory: Path) -> int:
        """See the protocol. The file gets its name when it is whole and on disk. Raises InvalidArgument when the
        directory is not empty, StorageFull, StorageFailure.
        """
        try:
            _make_directory(directory)
            if any(directory.iterdir()):
                raise InvalidArgument(f"{directory} is not empty", field="directory")
            size = self._copy_to(directory / PARTIAL_FILE)
            os.replace(directory / PARTIAL_FILE, directory / DATA_FILE)
            _sync_directory(directory)
        except (lmdb.Error, OSError) as error:
            raise storage_error(error, "back up") from error
        return size

    def rewrite(self) -> int:
        """See the protocol."""
        mine = Operation(self._rewrite, None, is_alone=True)
        self._writer.submit(mine)
        size: int = mine.result
        return size

    def _rewrite(self) -> int:
        """See `lmdb_rewrite`. On the leader's thread: nobody writes meanwhile."""
        try:
            lmdb_rewrite.finish(self.directory)
            size = self._copy_rows_to(self.directory / lmdb_rewrite.FRESH_FILE)
            if not self._gate.alone(self._swap, patience_s=SWAP_PATIENCE_S):
                lmdb_rewrite.finish(self.directory)
                raise Unavailable(
                    f"the store's file was made anew, but {self._gate.inside_count()} snapshots of the old one stay "
                    "open; close them and try again"
                )
            lmdb_rewrite.finish(self.directory)
        except (lmdb.Error, OSError) as error:
            raise storage_error(error, "make its file anew") from error
        return size

    def _copy_rows_to(self, path: Path) -> int:
        fresh = lmdb.open(
            str(path),
            subdir=False,
            lock=False,
            map_size=self._map_bytes(),
            max_dbs=len(TABLES),
            mode=0o600,
            sync=False,  # once, at the end
        )
        self._gate.enter()
        try:
            lmdb_rewrite.copy_rows(self._env, self._tables, fresh)
        finally:
            self._gate.leave()
            fresh.close()
        return path.stat().st_size

    def _swap(self) -> None:
        """Puts the fresh file in place of the old one. The caller is alone in the gate."""
        size = self._map_bytes()
        self._env.close()
        try:
            lmdb_rewrite.swap(self.directory)
        finally:
            self._numbers = {}
            self._open_again(size)

    def _copy_to(self, path: Path) -> int:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self._gate.enter()
            try:
                if self._closed:
                    raise Unavailable("the store is closed")
                self._env.copyfd(fd, compact=True)
            finally:
                self._gate.leave()
            os.fsync(fd)
            return os.fstat(fd).st_size
        except BaseException:
            path.unlink()
            raise
        finally:
            os.close(fd)

    def size_bytes(self) -> int:
        """See the protocol."""
        return self.directory.joinpath(DATA_FILE).stat().st_size

    def close(self) -> None:
        """See the protocol. Raises Unavailable when snapshots stay open for CLOSE_PATIENCE_S; the store then refuses
        new reads and writes and lets go of its directory with the process, or when `close` is called again.
        """
        self._writer.close()
        with self._close_lock:
            if self._lock_fd < 0:
                return
            self._closed = True  # those who enter the gate from now on turn back
            if not self._gate.alone(self._env.close, patience_s=CLOSE_PATIENCE_S):
                raise Unavailable(f"{self._gate.inside_count()} snapshots stay open; the store can't close")
            os.close(self._lock_fd)
            self._lock_fd = -1


class _Snapshot:
    """A read transaction as a context manager, without a generator's cost."""

    __slots__ = ("_engine", "_txn")

    def __init__(self, engine: LmdbEngine) -> None:
        self._engine = engine
        self._txn: lmdb.Transaction | None = None

    def __enter__(self) -> ReadTxn:
        engine = self._engine
        self._txn = engine._begin_read()
        return LmdbReadTxn(self._txn, engine._tables, engine._numbers)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._txn is not None
        try:
            self._txn.abort()
        finally:
            self._engine._gate.leave()
        if isinstance(error, lmdb.Error):
            raise storage_error(error, "read") from error


def _caused(error: MemsvcError, cause: Exception) -> MemsvcError:
    error.__cause__ = cause
    return error


# -- opening


def _open_env(directory: Path, initial_map_bytes: int, max_map_bytes: int) -> lmdb.Environment:
    """The environment, with the largest map up to `initial_map_bytes` that the process may have."""
    path = directory / DATA_FILE
    used = path.stat().st_size if path.exists() else 0
    map_bytes = max(min(max(initial_map_bytes, used * 3 // 2), max_map_bytes), used)
    while True:
        try:
            env = lmdb.open(
                str(directory),
                map_size=map_bytes,
                max_dbs=len(TABLES),
                max_readers=MAX_READERS,
                max_spare_txns=SPARE_READ_TXNS,
                mode=0o600,
                readahead=False,
            )
        except lmdb.MemoryError as error:
            if map_bytes <= max(used, LEAST_MAP_BYTES):
                raise storage_error(error, "map its file into memory") from error
            map_bytes = max(map_bytes // 2, used, LEAST_MAP_BYTES)
        except lmdb.InvalidError as error:
            raise StoreCorrupt(f"{path} is not a store, or damaged: restore a backup") from error
        except lmdb.VersionMismatchError as error:
            raise FormatVersionUnknown(f"{path} was written by another version of LMDB: {error}") from error
        except lmdb.Error as error:
            raise storage_error(error, "open") from error
        else:
            try:
                env.reader_check()
                _fill_up(env, path)
            except BaseException:
                env.close()
                raise
            return env


def _fill_up(env: lmdb.Environment, path: Path) -> None:
    """Lengthens a file that was cut to what its map says. Its pages of zeros are found to be damaged when they are
    read; reading past the file's end would kill the process. (Unwritten free pages at the end are no damage.)
    """
    needed_bytes = (int(env.info()["last_pgno"]) + 1) * int(env.stat()["psize"])
    try:
        if path.stat().st_size < needed_bytes:
            os.truncate(path, needed_bytes)
    except OSError as error:
        raise storage_error(error, "open") from error


def _open_tables(env: lmdb.Environment, directory: Path) -> dict[str, Any]:
    """The tables of a store of this format; makes them all, with the format, in one transaction if it is new."""
    try:
        if env.stat()["entries"] == 0:
            with env.begin(write=True) as txn:
                made = {name: env.open_db(name.encode(), txn=txn) for name in TABLES}
                txn.put(META_FORMAT.encode(), str(FORMAT_VERSION).encode(), db=made["meta"])
            _sync_directory(directory)
            return made
        _check_format(env, directory)
        return {name: env.open_db(name.encode(), create=name in LATER_TABLES) for name in TABLES}
    except lmdb.NotFoundError as error:
        raise StoreCorrupt(f"the store in {directory} lacks a table: restore a backup") from error
    except lmdb.Error as error:
        raise storage_error(error, "open") from error


def _check_format(env: lmdb.Environment, directory: Path) -> None:
    try:
        meta = env.open_db(b"meta", create=False)
        with env.begin() as txn:
            raw = txn.get(META_FORMAT.encode(), db=meta)
    except (lmdb.NotFoundError, lmdb.IncompatibleError):
        raw = None
    if raw == str(FORMAT_VERSION).encode():
        return
    found = "none" if raw is None else bytes(raw).decode("utf-8", "replace")
    raise FormatVersionUnknown(
        f"the store in {directory} was written by format {found}; this memsvc reads format {FORMAT_VERSION}: use the "
        "memsvc version that wrote it, or export from there and import here",
        found=found,
        known=str(FORMAT_VERSION),
    )


def _lock(directory: Path) -> int:
    """Takes the directory's lock, which dies with the process; the file names the holder."""
    fd = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(fd, str(os.getpid()).ljust(LOCK_FILE_BYTES).encode(), 0)  # same length: needs no space later
    except BlockingIOError as error:
        holder = os.pread(fd, LOCK_FILE_BYTES, 0).decode("ascii", "replace").strip()
        os.close(fd)
        who = "this process already" if holder == str(os.getpid()) else f"another process (pid {holder or 'unknown'})"
        raise StoreLocked(
            f"{directory} is open in {who}; stop that one, or talk to it instead of opening its directory",
            pid=holder,
        ) from error
    except OSError:
        os.close(fd)
        raise
    return fd


def _make_directory(directory: Path) -> None:
    """Makes the directory for its owner only, and its entry durable."""
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sync_directory(directory.parent)


def _sync_directory(directory: Path) -> None:
    try:
        lmdb_rewrite.sync_directory(directory)
    except OSError as error:
        raise StorageFailure(f"{directory} can't be made durable: {error}") from error
