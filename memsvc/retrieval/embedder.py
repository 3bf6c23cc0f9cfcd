"""The embedder: texts to vectors with ONNX Runtime, two lanes, caches. The only home of onnxruntime.

Purpose: `submit_query` for recalls, `embed_passages` for writes. A text longer than the model's window is cut into
overlapping windows whose vectors are averaged by length; nothing is silently dropped.

Threading: each lane is one thread with a queue, so that a bulk write never makes a query wait behind it; both run the
same session (one intra-op thread, no GIL while it runs). Public methods may be called from any thread. The same query
asked twice at once is computed once.

Every text is a run of its own. Measured (2 cores, AVX2): runs of 2 to 16 texts of one length gained 0 to 20 % a text,
and moved the vectors by 0.003 to 0.005 of cosine, since activations are quantised over the whole run; in this model's
narrow band that is the distance between a duplicate and a different fact. A vector must depend on its text alone.

Rejected: padding to common lengths (the same drift, and wasted work), two threads per run (slower on two cores).
"""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memsvc.errors import Cancelled, ModelCorrupt, ModelUnavailable, Unavailable
from memsvc.retrieval.model_files import MODEL_FILE, TOKENIZER_FILE, check_files, load_manifest

Vector = NDArray[np.float32]
WINDOW_OVERLAP = 8  # a window shares 1/8 of its tokens with the one before
MAX_WINDOWS = 512  # 200,000 tokens; content's own limit is far below
WARM_TEXT = "warm"
PASSAGE_CHUNK = 8  # texts between two looks at `cancelled`


class EmbedderStats(msgspec.Struct, frozen=True):
    """Counts since the start."""

    query_count: int
    query_cache_hits: int
    passage_count: int
    passage_cache_hits: int


class _Lane:
    """A thread that embeds queued texts, in order."""

    def __init__(self, name: str, embed: Callable[[str], Vector]) -> None:
        self._embed = embed
        self._queue: queue.SimpleQueue[tuple[str, Future[Vector]] | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, text: str) -> Future[Vector]:
        future: Future[Vector] = Future()
        with self._lock:
            if self._closed:
                raise Unavailable("the embedder is closed")
            self._queue.put((text, future))
        return future

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            text, future = item
            if self._closed:
                future.set_exception(Unavailable("the embedder is closed"))
            elif future.set_running_or_notify_cancel():
                try:
                    vector = self._embed(text)
                except Exception as error:  # whatever the runtime raises belongs to the future's owner
                    future.set_exception(error)
                else:
                    future.set_result(vector)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._queue.put(None)
        self._thread.join()


class _Lru:
    """A bounded map from text to vector; reads are lock-free enough for the hot path (OrderedDict under the GIL)."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._map: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0

    def get(self, text: str) -> Vector | None:
        with self._lock:
            vector = self._map.get(text)
            if vector is not None:
                self._map.move_to_end(text)
                self.hits += 1
            return vector

    def put(self, text: str, vector: Vector) -> None:
        with self._lock:
            self._map[text] = vector
            self._map.move_to_end(text)
            if len(self._map) > self._entries:
                self._map.popitem(last=False)


class Embedder:
    """See the module. `dim` is the vectors' length, `model_id` names the space that they live in."""

    def __init__(
        self, model_dir: Path, *, query_cache_entries: int = 4096, passage_cache_entries: int = 2048
    ) -> None:
        """Opens a model directory. Raises ModelUnavailable, ModelCorrupt."""
        self.manifest = load_manifest(model_dir)
        check_files(model_dir, self.manifest)
        self.model_id = self.manifest.id
        self.dim = self.manifest.dim
        self._session = _open_session(model_dir / MODEL_FILE)
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self._output, self._pooled = _choose_output(self._session)
        self._tokenizer = _open_tokenizer(model_dir / TOKENIZER_FILE)
        self._prefix_ids = {p: self._ids(p, special=False) for p in self._prefixes()}
        special = self._ids("", special=True)
        self._first, self._last = special[:1], special[1:]
        self._queries = _Lru(query_cache_entries)
        self._passages = _Lru(passage_cache_entries)
        self._pending: dict[str, Future[Vector]] = {}
        self._pending_lock = threading.Lock()
        self._query_count = 0
        self._passage_count = 0
        self._query_lane = _Lane("embed-query", lambda text: self._embed(self.manifest.query_prefix, text))
        self._passage_lane = _Lane("embed-passage", lambda text: self._embed(self.manifest.passage_prefix, text))

    def _prefixes(self) -> set[str]:
        return {self.manifest.query_prefix, self.manifest.passage_prefix}

    # -- public --------------------------------------------------------------------------------------------------

    def warm(self) -> None:
        """First runs of both lanes: allocations and code paths are touched. Raises ModelCorrupt when the model's
        output is not what the manifest says."""
        vector = self.embed_query(WARM_TEXT)
        self.embed_passages([WARM_TEXT])
        if vector.shape != (self.dim,):
            raise ModelCorrupt(f"the model gives {vector.shape[-1]} dimensions, its manifest says {self.dim}")

    def cached_query(self, text: str) -> Vector | None:
        """The query's vector if it is in the cache; no work otherwise."""
        return self._queries.get(text)

    def submit_query(self, text: str) -> Future[Vector]:
        """Starts embedding a query: a future of a (dim,) float32 unit vector, read-only. Fills the cache. Two callers
        of one text share one computation, so nobody should cancel the future."""
        with self._pending_lock:
            cached = self._queries.get(text)
            if cached is not None:
                done: Future[Vector] = Future()
                done.set_result(cached)
                return done
            pending = self._pending.get(text)
            if pending is not None:
                return pending
            self._query_count += 1
            future = self._pending[text] = self._query_lane.submit(text)
        future.add_done_callback(lambda f: self._finish_query(text, f))
        return future

    def _finish_query(self, text: str, future: Future[Vector]) -> None:
        with self._pending_lock:
            if future.exception() is None:
                self._queries.put(text, future.result())
            self._pending.pop(text, None)

    def embed_query(self, text: str, timeout_s: float | None = None) -> Vector:
        """The (dim,) float32 unit vector of a query. Raises TimeoutError, or what the runtime raised."""
        return self.submit_query(text).result(timeout_s)

    def embed_passages(
        self,
        texts: Sequence[str],
        progress: Callable[[int, int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Vector:
        """(n, dim) float32 unit vectors of texts to be stored; equal texts are computed once, short ones first.

        progress(done, total) counts distinct texts. Raises Cancelled as soon as `cancelled()` says so.
        """
        vectors = np.zeros((len(texts), self.dim), np.float32)
        places: dict[str, list[int]] = {}
        for i, text in enumerate(texts):
            places.setdefault(text, []).append(i)
        distinct = sorted(places, key=len)
        for start in range(0, len(distinct), PASSAGE_CHUNK):
            if cancelled is not None and cancelled():
                raise Cancelled("the caller is gone: nothing was stored")
            chunk = distinct[start : start + PASSAGE_CHUNK]
            futures = [(text, self._passage_future(text)) for text in chunk]
            for text, future in futures:
                vectors[places[text]] = vector = future.result()
                self._passages.put(text, vector)
            if progress is not None:
                progress(min(start + PASSAGE_CHUNK, len(distinct)), len(distinct))
        return vectors

    def _passage_future(self, text: str) -> Future[Vector]:
        cached = self._passages.get(text)
        if cached is None:
            self._passage_count += 1
            return self._passage_lane.submit(text)
        done: Future[Vector] = Future()
        done.set_result(cached)
        return done

    def count_tokens(self, text: str) -> int:
        """How many tokens of this model the text has, without prefix and special tokens."""
        return len(self._ids(text, special=False))

    def stats(self) -> EmbedderStats:
        """Counts since the start."""
        return EmbedderStats(self._query_count, self._queries.hits, self._passage_count, self._passages.hits)

    def close(self) -> None:
        """Fails what waits with Unavailable and joins the lanes. Idempotent."""
        self._query_lane.close()
        self._passage_lane.close()

    # -- one text ------------------------------------------------------------------------------------------------

    def _ids(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = self._tokenizer.encode(_encodable(text), add_special_tokens=special).ids
        return ids

    def _embed(self, prefix: str, text: str) -> Vector:
        ids = self._ids(prefix + text, special=True)
        if len(ids) <= self.manifest.max_tokens:
            vector = self._run(ids)
        else:
            vector = self._embed_windows(self._prefix_ids[prefix], self._ids(text, special=False))
        vector.flags.writeable = False
        return vector

    def _embed_windows(self, prefix_ids: list[int], ids: list[int]) -> Vector:
        """Mean of the windows' vectors, weighted by their tokens, normalised again."""
        width = self.manifest.max_tokens - len(self._first) - len(self._last) - len(prefix_ids)
        step = width - width // WINDOW_OVERLAP
        total = np.zeros(self.dim, np.float32)
        for start in range(0, min(len(ids), step * MAX_WINDOWS), step):
            window = ids[start : start + width]
            total += len(window) * self._run([*self._first, *prefix_ids, *window, *self._last])
            if start + width >= len(ids):
                break
        return _unit(total)

    def _run(self, ids: list[int]) -> Vector:
        tokens = np.array([ids], np.int64)
        feed: dict[str, Any] = {"input_ids": tokens}
        if "attention_mask" in self._inputs:
            feed["attention_mask"] = np.ones_like(tokens)
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(tokens)
        output = self._session.run([self._output], feed)[0]
        if self._pooled:
            vector = output[0]
        else:
            vector = output[0].mean(axis=0) if self.manifest.pooling == "mean" else output[0, 0]
        vector = np.array(vector, np.float32)
        return _unit(vector) if self.manifest.normalize else vector


def _unit(vector: Vector) -> Vector:
    norm = float(np.linalg.norm(vector))
    return vector / np.float32(norm) if norm > 0 else vector


def _encodable(text: str) -> str:
    """The text without lone surrogates (the tokenizer takes UTF-8)."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def _open_session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # the arena keeps the largest text's buffers for ever; cost not measurable
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exception classes are private; every one of them means the same here
        raise ModelCorrupt(f"{path} can't be loaded: {error}", file=str(path)) from error


def _open_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise ModelCorrupt(f"{path} can't be loaded: {error}", file=str(path)) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _choose_output(session: ort.InferenceSession) -> tuple[str, bool]:
    """Name of the output to read, and whether it is pooled already (rank 2)."""
    outputs = session.get_outputs()
    for name, rank in (("sentence_embedding", 2), ("last_hidden_state", 3), ("token_embeddings", 3)):
        for output in outputs:
            if output.name == name:
                return name, rank == 2
    first = outputs[0]
    if len(first.shape) not in (2, 3):
        raise ModelUnavailable(f"the model's output {first.name} has rank {len(first.shape)}; 2 or 3 are supported")
    return first.name, len(first.shape) == 2
