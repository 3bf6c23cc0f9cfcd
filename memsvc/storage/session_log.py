"""The journal of open sessions in files: one append-only file a session, below one directory.

Purpose: what a session was told survives kill -9. A file is named by the digest of its namespace; its first record is
the namespace, the others are the caller's. A record is its length, its crc32 and its bytes, both numbers as 32-bit
big-endian. A torn tail (the process or the machine died inside a write) is cut at load; a file with damage before its
end keeps the records before the damage, and the whole file is moved aside; both are logged.

Durability: `append` returns once the operating system has the bytes, so they survive kill -9 of the process at once. A
thread flushes them to the disk about once a second (as `appendfsync everysec` of Redis), so a power loss costs the last
second of turns. An fsync in each append would cost more than the whole call may take (twice a plain gRPC echo).

Threading: any number of threads; appends to one session take turns behind its lock. `_table_lock` guards the tables and
is never held while a file is written or flushed.

Rejected: LMDB with sync=False (a power loss may damage all of it, not a tail), a row a turn in the main store (an fsync
an append), one file for all sessions (a session that ends leaves a hole that someone must compact).
"""

from __future__ import annotations

import errno
import logging
import os
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from memsvc.errors import InvalidArgument, MemsvcError, StorageFailure, StorageFull, StoreCorrupt, Unavailable
from memsvc.model import Namespace
from memsvc.storage import codec
from memsvc.storage.wipe import wipe

LOG = logging.getLogger("memsvc.storage")
SUFFIX = ".log"
ASIDE_SUFFIX = ".damaged"
OPEN_FILES_MAX = 128
SYNC_EVERY_S = 1.0
RECORD_MAX_BYTES = 2**28
COPY_BYTES = 2**20
_HEAD = struct.Struct(">II")


class _File:
    """A session's file. `size_bytes` is where its last whole record ends; `fd` is -1 while it is closed."""

    def __init__(self, namespace: Namespace, path: Path, size_bytes: int) -> None:
        self.namespace = namespace
        self.path = path
        self.size_bytes = size_bytes
        self.fd = -1
        self.is_dropped = False
        self.lock = threading.Lock()


class FileSessionLog:
    """See the module. `directory` is made when it is not there."""

    def __init__(
        self, directory: Path, *, open_files_max: int = OPEN_FILES_MAX, sync_every_s: float = SYNC_EVERY_S
    ) -> None:
        """Opens the directory and checks every file. Raises StorageFailure when it can't be read or made."""
        self._directory = directory
        self._open_files_max = open_files_max
        self._sync_every_s = sync_every_s
        self._files: dict[Namespace, _File] = {}
        self._opened: OrderedDict[Namespace, _File] = OrderedDict()
        self._unsynced: dict[Path, None] = {}
        self._table_lock = threading.Lock()
        self._closing = threading.Event()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for path in sorted(directory.glob("*" + SUFFIX)):
                self._load(path)
        except OSError as error:
            raise _failure(error) from error
        self._syncer = threading.Thread(target=self._sync_often, name="session-log-sync", daemon=True)
        self._syncer.start()

    # -- protocol ------------------------------------------------------------------------------------------------

    def append(self, namespace: Namespace, record: bytes) -> None:
        """See `SessionLog`."""
        if not record:
            raise InvalidArgument("a record of a session is empty")
        if self._closing.is_set():
            raise Unavailable("the journal of sessions is closed")
        while not self._appended(self._file_of(namespace), record):
            pass  # dropped meanwhile: the record begins a new file

    def read(self, namespace: Namespace) -> list[bytes]:
        """See `SessionLog`."""
        with self._table_lock:
            file = self._files.get(namespace)
        if file is None:
            return []
        with file.lock:
            if file.is_dropped:
                return []
            try:
                raw = file.path.read_bytes()[: file.size_bytes]
            except OSError as error:
                raise _failure(error) from error
        records, end = whole_records(raw)
        if end != file.size_bytes:
            raise StoreCorrupt("the journal of a session is damaged", file=file.path.name)
        return records[1:]

    def open_sessions(self) -> Iterator[Namespace]:
        """See `SessionLog`."""
        with self._table_lock:
            names = list(self._files)
        return iter(names)

    def drop(self, namespace: Namespace, *, is_wiped: bool = False) -> None:
        """See `SessionLog`."""
        with self._table_lock:
            file = self._files.get(namespace)
        if file is None:
            return
        with file.lock:
            if file.is_dropped:
                return
            self._shut(file)
            try:
                if is_wiped:
                    wipe(file.path)
                    wipe(file.path.with_suffix(ASIDE_SUFFIX))
                else:
                    file.path.unlink(missing_ok=True)
            except OSError as error:
                raise _failure(error) from error
            file.is_dropped = True
            with self._table_lock:
                del self._files[namespace]
                self._opened.pop(namespace, None)
                self._unsynced.pop(file.path, None)

    def backup(self, directory: Path) -> int:
        """See `SessionLog`."""
        copied: set[Namespace] = set()
        size_bytes = 0
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for _ in range(2):  # the second time, where those are that were moved during the first
                for namespace in self.open_sessions():
                    if namespace not in copied:
                        copied.add(namespace)
                        size_bytes += self._copied(namespace, directory)
            _flush(directory)
        except OSError as error:
            raise _failure(error, "the copy of the sessions is not whole") from error
        return size_bytes

    def close(self) -> None:
        """See `SessionLog`."""
        self._closing.set()
        self._syncer.join()
        with self._table_lock:
            opened = list(self._opened.values())
            self._opened.clear()
        for file in opened:
            with file.lock:
                self._shut(file)

    def _copied(self, namespace: Namespace, directory: Path) -> int:
        """Copies a file up to the record that is its last now; its bytes, 0 for one that is gone. Raises OSError."""
        with self._table_lock:
            file = self._files.get(namespace)
        if file is None:
            return 0
        with file.lock:
            if file.is_dropped or not file.size_bytes:
                return 0
            size_bytes, source = file.size_bytes, file.path.open("rb")
        target = directory / file.path.name
        with source, open(target, "wb", opener=_private) as copy:  # dropped or appended to meanwhile: it reads the same
            left = size_bytes
            while left and (chunk := source.read(min(left, COPY_BYTES))):
                copy.write(chunk)
                left -= len(chunk)
        _flush(target)
        return size_bytes

    # -- one file ------------------------------------------------------------------------------------------------

    def _file_of(self, namespace: Namespace) -> _File:
        with self._table_lock:
            file = self._files.get(namespace)
            if file is None:
                path = self._directory / (codec.namespace_key(namespace).hex() + SUFFIX)
                file = self._files[namespace] = _File(namespace, path, 0)
            return file

    def _appended(self, file: _File, record: bytes) -> bool:
        """Writes the record; False when the file was dropped meanwhile."""
        with file.lock:
            if file.is_dropped:
                return False
            framed = _framed(record)
            if file.size_bytes == 0:
                framed = _framed(codec.encode_names(file.namespace)) + framed
            try:
                if file.fd < 0:
                    self._open(file)
                self._write(file, framed)
            except OSError as error:
                self._shut(file)  # opened anew, it is cut back to its last whole record
                raise _failure(error) from error
            file.size_bytes += len(framed)
        with self._table_lock:
            if not file.is_dropped:
                self._unsynced[file.path] = None
                self._opened[file.namespace] = file
                self._opened.move_to_end(file.namespace)
            spare = self._opened.popitem(last=False)[1] if len(self._opened) > self._open_files_max else None
        if spare is not None:
            with spare.lock:
                self._shut(spare)
        return True

    def _open(self, file: _File) -> None:
        file.fd = os.open(file.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if os.fstat(file.fd).st_size != file.size_bytes:
            os.ftruncate(file.fd, file.size_bytes)

    def _write(self, file: _File, framed: bytes) -> None:
        left = memoryview(framed)
        while left:
            left = left[os.write(file.fd, left) :]

    def _shut(self, file: _File) -> None:
        if file.fd >= 0:
            os.close(file.fd)
            file.fd = -1

    # -- load ----------------------------------------------------------------------------------------------------

    def _load(self, path: Path) -> None:
        """Takes a file into the table; cuts its torn tail, or moves it aside. Raises OSError."""
        raw = path.read_bytes()
        records, end = whole_records(raw)
        try:
            namespace = codec.decode_names(records[0]) if records else None
        except StoreCorrupt:
            namespace = None
        if len(records) < 2 and _is_torn(raw, end):
            LOG.warning("session journal %s ends before its first record and is removed", path.name)
            path.unlink()
            return
        if namespace is None or len(records) < 2 or path.stem != codec.namespace_key(namespace).hex():
            LOG.warning("session journal %s can't be read and is moved aside", path.name)
            path.replace(path.with_suffix(ASIDE_SUFFIX))
            return
        if end < len(raw):
            self._cut(path, raw, end)
        self._files[namespace] = _File(namespace, path, end)

    def _cut(self, path: Path, raw: bytes, end: int) -> None:
        if _is_torn(raw, end):
            LOG.warning("session journal %s: a torn tail of %d bytes is cut", path.name, len(raw) - end)
            os.truncate(path, end)
            return
        LOG.warning("session journal %s is damaged at byte %d: moved aside, what is before it stays", path.name, end)
        path.replace(path.with_suffix(ASIDE_SUFFIX))
        path.write_bytes(raw[:end])
        self._unsynced[path] = None

    # -- flush ---------------------------------------------------------------------------------------------------

    def _sync_often(self) -> None:
        """Flushes what was written since the last turn, until the journal is closed, and once more then."""
        while not self._closing.wait(self._sync_every_s):
            self._sync()
        self._sync()

    def _sync(self) -> None:
        with self._table_lock:
            due, self._unsynced = self._unsynced, {}
        try:
            for path in due:
                _flush(path)
            if due:
                _flush(self._directory)
        except OSError as error:
            LOG.error("the journal of sessions can't be flushed (%s); it is tried again", error.strerror)
            with self._table_lock:
                self._unsynced = {**due, **self._unsynced}


def whole_records(raw: bytes) -> tuple[list[bytes], int]:
    """The records up to the first that is not whole, and the byte at which they end."""
    records: list[bytes] = []
    at = 0
    while at + _HEAD.size <= len(raw):
        length, crc = _HEAD.unpack_from(raw, at)
        record = raw[at + _HEAD.size : at + _HEAD.size + length]
        if not 0 < length <= RECORD_MAX_BYTES or len(record) < length or zlib.crc32(record) != crc:
            break
        records.append(record)
        at += _HEAD.size + length
    return records, at


def _is_torn(raw: bytes, end: int) -> bool:
    """Whether what follows `end` is one unfinished write: cut short, or zeros where the data never came."""
    rest = raw[end:]
    if len(rest) < _HEAD.size or not any(rest):
        return True
    length, _ = _HEAD.unpack_from(rest)
    return bool(length >= len(rest) - _HEAD.size)


def _framed(record: bytes) -> bytes:
    if len(record) > RECORD_MAX_BYTES:
        raise InvalidArgument(f"a record of a session has {len(record)} bytes, the limit is {RECORD_MAX_BYTES}")
    return _HEAD.pack(len(record), zlib.crc32(record)) + record


def _flush(path: Path) -> None:
    """Brings a file or a directory to the disk; nothing to do for one that is gone. Raises OSError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _failure(error: OSError, outcome: str = "nothing was added to the session") -> MemsvcError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"the disk is full: {outcome}")
    return StorageFailure(f"the journal of sessions failed: {error.strerror}")
