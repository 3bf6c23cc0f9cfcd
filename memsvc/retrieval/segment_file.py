"""Saved segments: one file of arrays per namespace, written whole, checked before use.

Purpose: a restart loads instead of re-analysing and re-indexing. A file that is missing, torn, of another format,
model or checksum is ignored and the segment is rebuilt from the store: derived data is never a reason to fail.

Layout of `<digest>.seg`: magic, format (u32), header length (u64), msgpack header (names, sequence, array table),
arrays back to back, 16-byte BLAKE2b over all before it. It is written to a temporary name, synced and renamed.

Threading: `save` copies what changes in place under the segment's lock and writes outside of it; it runs on the thread
that fills the graph.

Rejected: numpy's .npz (zip's CRC costs more than the read), pickle (runs code), one file per array (no atomicity).
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memsvc.errors import StorageFailure
from memsvc.model import Namespace
from memsvc.retrieval.columns import COLUMNS, Columns, Postings, RowList
from memsvc.retrieval.segment import OPEN_SEQ, Segment
from memsvc.storage.wipe import wipe

LOG = logging.getLogger("memsvc.segments")
MAGIC = b"MSVCSEG\x00"
FORMAT = 3  # 2: words of events, terms of exact facts, rank factors; 3: the links of the graph are an array
SAVE_FROM_ROWS = 1000  # smaller segments rebuild faster than a file is opened
_PREFIX = struct.Struct("<8sIQ")


class _Header(msgspec.Struct):
    tenant: str
    scope: int
    owner: str
    model_id: str
    dim: int
    rows: int
    document_count: int
    total_length: float
    free: int
    graph_first_row: int  # -1: no graph
    arrays: list[tuple[str, str, list[int]]]  # name, dtype, shape; in file order
    vocabulary: list[str]
    keywords: list[tuple[str, str, int]]  # kind, text, number of rows
    speakers: list[str]
    session_numbers: list[str]
    sessions: list[tuple[str, int]]  # id, number of rows


def _stem(namespace: Namespace) -> str:
    raw = msgspec.msgpack.encode((namespace.tenant, int(namespace.scope), namespace.owner))
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def save(directory: Path, segment: Segment) -> int:
    """Writes the segment as it is now; returns the sequence saved. Raises OSError (disk full, permissions)."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    stem = _stem(segment.namespace)
    temporary = directory / f"{stem}.tmp"
    try:
        header, arrays = _captured(segment)
        _write(temporary, header, arrays)
        temporary.replace(directory / f"{stem}.seg")
    finally:
        temporary.unlink(missing_ok=True)
    for old in directory.glob(f"{stem}.*.graph"):
        old.unlink(missing_ok=True)  # of format 2
    return header.rows


def wipe_saved(directory: Path, namespace: Namespace) -> None:
    """Overwrites and removes what is saved of a namespace, in every format. Raises StorageFailure."""
    stem = _stem(namespace)
    try:
        for path in (directory / f"{stem}.seg", directory / f"{stem}.tmp", *directory.glob(f"{stem}.*.graph")):
            wipe(path)
    except OSError as error:
        raise StorageFailure(f"a saved segment can't be removed: {error.strerror}") from error


def _captured(segment: Segment) -> tuple[_Header, list[tuple[str, NDArray[Any]]]]:
    """A consistent copy of the segment under its lock; the graph, which nobody fills meanwhile, may be behind."""
    with segment.lock:
        rows = segment.rows
        columns, postings = segment.columns, segment.postings
        terms = len(postings.vocabulary)
        arrays: list[tuple[str, NDArray[Any]]] = [(n, getattr(columns, n)[:rows].copy()) for n in (*COLUMNS, "ids")]
        arrays += [(n, getattr(postings, n)[:terms].copy()) for n in ("starts", "lengths", "capacities", "frequency")]
        arrays += [("rows", postings.rows[: postings.free].copy()), ("tfs", postings.tfs[: postings.free].copy())]
        lists = [(kind, text, rl.rows[: rl.count].copy()) for (kind, text), rl in segment.keywords.items()]
        sessions = [(name, np.array([row for _, row in order], np.int32)) for name, order in segment.sessions.items()]
        header = _Header(
            segment.namespace.tenant,
            int(segment.namespace.scope),
            segment.namespace.owner,
            segment.model_id,
            segment.vectors.dim,
            rows,
            segment.document_count,
            segment.total_length,
            postings.free,
            segment.vectors.first_row,
            [],
            list(postings.vocabulary),
            [(kind, text, len(rl)) for kind, text, rl in lists],
            list(segment.speakers),
            list(segment.session_numbers),
            [(name, len(order)) for name, order in sessions],
        )
        block = segment.vectors.block
    arrays.append(("keyword_rows", _joined([rl for _, _, rl in lists])))
    arrays.append(("session_rows", _joined([order for _, order in sessions])))
    arrays.append(("block", block[:rows].astype(np.float16)))  # the store's own precision: nothing is lost
    arrays.append(("links", segment.vectors.links[: segment.vectors.graph_rows]))
    header.arrays = [(name, array.dtype.str, list(array.shape)) for name, array in arrays]
    return header, arrays


def _joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate(parts) if parts else np.empty(0, np.int32)


def _write(path: Path, header: _Header, arrays: list[tuple[str, NDArray[Any]]]) -> None:
    digest = hashlib.blake2b(digest_size=16)
    encoded = msgspec.msgpack.encode(header)
    with path.open("wb") as file:
        for part in (
            _PREFIX.pack(MAGIC, FORMAT, len(encoded)),
            encoded,
            *(a.tobytes() for _, a in arrays if a.size),
        ):
            file.write(part)
            digest.update(part)
        file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())


def load(directory: Path, namespace: Namespace, model_id: str, dim: int) -> Segment | None:
    """The saved segment of a namespace, or None when there is none that can be trusted (the reason is logged)."""
    path = directory / f"{_stem(namespace)}.seg"
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        LOG.warning("saved segment %s can't be read (%s): rebuilding", path.name, error)
        return None
    try:
        header = _checked(raw, namespace, model_id, dim)
        segment = Segment(namespace, header.model_id, header.dim)
        _fill(segment, header, _arrays(raw, header))
    except (KeyError, ValueError, msgspec.MsgspecError, struct.error) as error:
        LOG.warning("saved segment %s is not usable (%s): rebuilding", path.name, error)
        return None
    return segment


def _checked(raw: bytes, namespace: Namespace, model_id: str, dim: int) -> _Header:
    """The header of a whole file of this namespace and model. Raises ValueError for any other."""
    magic, version, header_length = _PREFIX.unpack_from(raw)
    if magic != MAGIC or version != FORMAT:
        raise ValueError("another format")
    if hashlib.blake2b(memoryview(raw)[:-16], digest_size=16).digest() != raw[-16:]:
        raise ValueError("the checksum is wrong")
    header = msgspec.msgpack.decode(memoryview(raw)[_PREFIX.size : _PREFIX.size + header_length], type=_Header)
    if (header.tenant, header.scope, header.owner) != (namespace.tenant, int(namespace.scope), namespace.owner):
        raise ValueError("another namespace")
    if header.model_id != model_id or header.dim != dim:
        raise ValueError("another embedding model")
    return header


def _arrays(raw: bytes, header: _Header) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    offset = _PREFIX.size + _PREFIX.unpack_from(raw)[2]
    for name, dtype, shape in header.arrays:
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(raw, np.dtype(dtype), count, offset).reshape(shape)
        offset += arrays[name].nbytes
    return arrays


def _fill(segment: Segment, header: _Header, arrays: dict[str, NDArray[Any]]) -> None:
    rows = header.rows
    capacity = rows * 5 // 4 + 64
    segment.columns = Columns(capacity)
    for name in (*COLUMNS, "ids"):
        getattr(segment.columns, name)[:rows] = arrays[name]
    segment.vectors.reserve(capacity)
    segment.vectors.put(0, arrays["block"])
    segment.vectors.closed[:rows] = segment.columns.end_seq[:rows] != OPEN_SEQ
    if header.graph_first_row >= 0:
        segment.vectors.load_graph(arrays["links"], header.graph_first_row)
    segment.postings = _postings(header, arrays)
    segment.mentions.add(header.vocabulary)
    start = 0
    for kind, text, count in header.keywords:
        segment.keywords[kind, text] = RowList(arrays["keyword_rows"][start : start + count].copy())
        start += count
    start = 0
    for name, count in header.sessions:
        order = arrays["session_rows"][start : start + count]
        start += count
        segment.sessions[name] = list(zip(segment.columns.occur_us[order].tolist(), order.tolist(), strict=True))
    for name in header.session_numbers:
        segment.session_id(name)
    for name in header.speakers:
        segment.speaker_id(name)
    ids = arrays["ids"].tobytes()
    segment.row_of = {ids[16 * row : 16 * row + 16]: row for row in range(rows)}
    segment.document_count = header.document_count
    segment.total_length = header.total_length
    segment.rows = rows


def _postings(header: _Header, arrays: dict[str, NDArray[Any]]) -> Postings:
    postings = Postings()
    postings.vocabulary = {term: i for i, term in enumerate(header.vocabulary)}
    terms = len(header.vocabulary)
    size = max(256, 1 << terms.bit_length())
    for name in ("starts", "lengths", "capacities", "frequency"):
        grown = np.zeros(size, np.int64)
        grown[:terms] = arrays[name]
        setattr(postings, name, grown)
    room = max(1024, header.free * 5 // 4)
    postings.rows = np.zeros(room, np.int32)
    postings.rows[: header.free] = arrays["rows"]
    postings.tfs = np.zeros(room, np.uint8)
    postings.tfs[: header.free] = arrays["tfs"]
    postings.free = header.free
    return postings
