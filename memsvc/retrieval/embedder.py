"""The embedder: texts to vectors with ONNX Runtime, two lanes, caches. The only home of onnxruntime.

Purpose: `submit_query` for recalls, `embed_passages` for writes. A text longer than the model's window is cut into
overlapping windows whose vectors are averaged by length; nothing is silently dropped.

Threading: each lane is one thread, so that a bulk write never makes a query wait behind it; both run the same session
(one intra-op thread, no GIL while it runs). A lane runs one window at a time and puts a longer text back at the end of
its line, so a short text waits for one window of a long one at most, and `close` or a cancel for the running window
only. Queries longer than QUERY_LANE_CHARS go to the passage lane. Public methods may be called from any thread.
The same query asked twice at once is computed once.

Every text is a run of its own. Measured (2 cores, AVX2): runs of 2 to 16 texts of one length gained 3 to 24 % a text
(14 to 40 tokens) and moved the vectors by 0.003 of cosine, at most 0.004, since activations are quantised over the
whole run; in this model's narrow band that can turn a duplicate into a different fact. A vector must depend on its text
alone, so the same text gives the same bits whatever is embedded beside it.

Rejected: padding to common lengths (the same drift, and wasted work), two threads per run (slower on two cores),
loading without prepacked weights (the same memory, 1.3 times slower), a saved optimised graph (loads in 0.104 s instead
of 0.107 s).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from memsvc.errors import Cancelled, DeadlineExceeded, ModelCorrupt, ModelUnavailable, Unavailable
from memsvc.retrieval.model_files import TOKENIZER_FILE, ModelManifest, check_files, load_manifest
from memsvc.retrieval.tokenizer import open_tokenizer

Vector = NDArray[np.float32]
WINDOW_OVERLAP = 8  # a window shares 1/8 of its tokens with the one before
WARM_TEXT = "warm"
PASSAGE_CHUNK = 8  # texts of one caller in the lane at once; others get their turn between
QUERY_LANE_CHARS = 2048  # about one window
CACHED_TEXT_CHARS = 4096  # longer texts are not worth their room in a cache
CANCEL_POLL_S = 0.05
_ORT_STATE = ort.capi.onnxruntime_pybind11_state
_RUN_ERRORS: tuple[type[Exception], ...] = (
    _ORT_STATE.Fail,
    _ORT_STATE.InvalidArgument,
    _ORT_STATE.RuntimeException,
    _ORT_STATE.EPFail,
    _ORT_STATE.EngineError,
    _ORT_STATE.NotImplemented,
)


class EmbedderStats(msgspec.Struct, frozen=True):
    """Counts since the start. `query_count` and `passage_count` are texts computed, not asked for."""

    query_count: int
    query_cache_hits: int
    passage_count: int
    passage_cache_hits: int


class _Job:
    """One text on its way through a lane, a window a step."""

    def __init__(
        self, text: str, windows: Callable[[str], list[list[int]]], run: Callable[[list[int]], Vector]
    ) -> None:
        self.future: Future[Vector] = Future()
        self._text = text
        self._windows = windows
        self._run = run
        self._left: list[list[int]] | None = None
        self._total: Vector | None = None

    def step(self) -> bool:
        """Embeds the next window; whether more are left."""
        if self._left is None:
            self._left = self._windows(self._text)[::-1]
            if len(self._left) == 1:
                self._total = self._run(self._left.pop())
                return False
        window = self._left.pop()
        part = self._run(window) * np.float32(len(window))
        self._total = part if self._total is None else self._total + part
        return bool(self._left)

    def finish(self) -> None:
        """Hands the vector over, unless the caller has cancelled."""
        assert self._total is not None
        vector = _unit(self._total)
        vector.flags.writeable = False
        if self.future.running() or self.future.set_running_or_notify_cancel():
            self.future.set_result(vector)

    def fail(self, error: BaseException) -> None:
        """Hands a failure over, unless the caller has cancelled."""
        if self.future.running() or self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class _Lane:
    """One thread that takes jobs in turns, a step each. The executor carries whatever a step raises to its owner."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._closed = False

    def submit(self, job: _Job) -> None:
        """Queues the job's next step. A closed lane fails the job with Unavailable."""
        try:
            step = self._executor.submit(self._step, job)
        except RuntimeError:  # the executor is shut down: its only cause
            job.fail(_closed_error())
        else:
            step.add_done_callback(lambda done: self._after(job, done))

    def _step(self, job: _Job) -> bool:
        if self._closed:
            raise _closed_error()
        if job.future.cancelled():
            return False
        if job.step():
            return True
        job.finish()
        return False

    def _after(self, job: _Job, step: Future[bool]) -> None:
        if step.cancelled():
            job.fail(_closed_error())
        elif (error := step.exception()) is not None:
            job.fail(error)
        elif step.result():
            self.submit(job)

    def stop(self) -> None:
        """Fails what waits; does not wait for the running window."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Waits for the running window, after `stop`."""
        self._executor.shutdown(wait=True)


class _Lru:
    """A bounded map from text to vector."""

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
        if len(text) > CACHED_TEXT_CHARS:
            return
        with self._lock:
            self._map[text] = vector
            self._map.move_to_end(text)
            if len(self._map) > self._entries:
                self._map.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._map.clear()


class Embedder:
    """See the module. `dim` is the vectors' length, `model_id` names the space that they live in. `counts_add_up`:
    whether the tokens of texts joined by white space are those of each.
    """

    def __init__(self, model_dir: Path, *, query_cache_entries: int = 4096, passage_cache_entries: int = 2048) -> None:
        """Opens a model directory and checks its files. Raises ModelUnavailable, ModelCorrupt."""
        self.manifest: ModelManifest = load_manifest(model_dir)
        check_files(model_dir, self.manifest)
        self.model_id: str = self.manifest.id
        self.dim: int = self.manifest.dim
        self._session = _open_session(model_dir / self.manifest.model_file)
        self._inputs = _known_inputs(self._session)
        self._output, self._pooled = _choose_output(self._session, self.manifest)
        self._encode, self.counts_add_up = open_tokenizer(model_dir / TOKENIZER_FILE)
        special = self._ids("", special=True)
        self._first, self._last = special[:1], special[1:]
        self._queries = _Lru(query_cache_entries)
        self._passages = _Lru(passage_cache_entries)
        self._pending: dict[str, _Job] = {}
        self._counts_lock = threading.Lock()
        self._query_count = 0
        self._passage_count = 0
        self._closed = False
        self._query_lane = _Lane("embed-query")
        self._passage_lane = _Lane("embed-passage")

    # -- public --------------------------------------------------------------------------------------------------

    def warm(self) -> None:
        """First runs of both lanes, so that the first caller does not pay for them.

        Raises ModelCorrupt when the model's output is not what the manifest says.
        """
        vector = self.embed_query(WARM_TEXT)
        if vector.shape != (self.dim,):
            raise ModelCorrupt(f"the model gives {vector.shape[-1]} dimensions, its manifest says {self.dim}")
        self.embed_passages([WARM_TEXT])

    def cached_query(self, text: str) -> Vector | None:
        """The query's (dim,) vector if it is in the cache, under a microsecond; no work otherwise."""
        return self._queries.get(text)

    def forget_texts(self) -> None:
        """Empties the caches of vectors by text."""
        self._queries.clear()
        self._passages.clear()

    def submit_query(self, text: str) -> Future[Vector]:
        """Starts embedding a query: a future of a (dim,) float32 unit vector, read-only. Fills the cache.

        Callers of one text share one computation, so the future can't be cancelled. It fails with Unavailable when the
        runtime fails or the embedder is closed.
        """
        with self._counts_lock:
            cached = self._queries.get(text)
            if cached is not None:
                return _finished(cached)
            pending = self._pending.get(text)
            if pending is not None:
                return pending.future
            if self._closed:
                raise _closed_error()
            self._query_count += 1
            job = self._pending[text] = self._job(self.manifest.query_prefix, text)
        job.future.set_running_or_notify_cancel()
        job.future.add_done_callback(lambda future: self._finish_query(text, future))
        (self._query_lane if len(text) <= QUERY_LANE_CHARS else self._passage_lane).submit(job)
        return job.future

    def _finish_query(self, text: str, future: Future[Vector]) -> None:
        with self._counts_lock:
            if future.exception() is None:
                self._queries.put(text, future.result())
            self._pending.pop(text, None)

    def embed_query(self, text: str, timeout_s: float | None = None) -> Vector:
        """The (dim,) float32 unit vector of a query, read-only. Raises DeadlineExceeded, Unavailable."""
        try:
            return self.submit_query(text).result(timeout_s)
        except TimeoutError as error:
            raise DeadlineExceeded(f"the query was not embedded within {timeout_s} s") from error

    def embed_passages(
        self,
        texts: Sequence[str],
        progress: Callable[[int, int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Vector:
        """(n, dim) float32 unit vectors of texts to be stored; equal texts are computed once, short ones first.

        progress(done, total) counts distinct texts. Raises Cancelled soon after `cancelled()` says so, Unavailable when
        the runtime fails or the embedder is closed.
        """
        vectors = np.zeros((len(texts), self.dim), np.float32)
        places: dict[str, list[int]] = {}
        for i, text in enumerate(texts):
            places.setdefault(text, []).append(i)
        distinct = sorted(places, key=len)
        for start in range(0, len(distinct), PASSAGE_CHUNK):
            chunk = distinct[start : start + PASSAGE_CHUNK]
            futures = {text: self._passage_future(text) for text in chunk}
            try:
                _wait_for(futures.values(), cancelled)
                for text, future in futures.items():
                    vectors[places[text]] = vector = future.result()
                    self._passages.put(text, vector)
            finally:
                for future in futures.values():
                    future.cancel()  # after a failure, a cancel or Ctrl-C; nothing else waits for these
            if progress is not None:
                progress(start + len(chunk), len(distinct))
        return vectors

    def _passage_future(self, text: str) -> Future[Vector]:
        cached = self._passages.get(text)
        if cached is not None:
            return _finished(cached)
        if self._closed:
            raise _closed_error()
        with self._counts_lock:
            self._passage_count += 1
        job = self._job(self.manifest.passage_prefix, text)
        self._passage_lane.submit(job)
        return job.future

    def count_tokens(self, text: str) -> int:
        """How many tokens of this model the text has, without prefix and special tokens."""
        return len(self._ids(text, special=False))

    def stats(self) -> EmbedderStats:
        """Counts since the start."""
        return EmbedderStats(self._query_count, self._queries.hits, self._passage_count, self._passages.hits)

    def close(self) -> None:
        """Fails what waits with Unavailable and joins the lanes after their running windows. Idempotent."""
        self._closed = True
        lanes = (self._query_lane, self._passage_lane)
        for lane in lanes:
            lane.stop()
        for lane in lanes:
            lane.join()

    # -- one text ------------------------------------------------------------------------------------------------

    def _job(self, prefix: str, text: str) -> _Job:
        return _Job(text, lambda t: self._windows(prefix, t), self._run)

    def _ids(self, text: str, *, special: bool) -> list[int]:
        return self._encode(_encodable(text), special)

    def _windows(self, prefix: str, text: str) -> list[list[int]]:
        """Token ids of the text's windows, each with prefix and special tokens; one for all but long texts."""
        ids = self._ids(prefix + text, special=True)
        if len(ids) <= self.manifest.max_tokens:
            return [ids]
        prefix_ids, body = self._ids(prefix, special=False), self._ids(text, special=False)
        width = self.manifest.max_tokens - len(self._first) - len(self._last) - len(prefix_ids)
        step = width - width // WINDOW_OVERLAP
        starts = range(0, max(len(body) - width, 0) + step, step)
        return [[*self._first, *prefix_ids, *body[i : i + width], *self._last] for i in starts]

    def _run(self, ids: list[int]) -> Vector:
        """The (dim,) vector of one window. Raises Unavailable when the runtime fails."""
        tokens = np.array([ids], np.int64)
        feed: dict[str, Any] = {"input_ids": tokens}
        if "attention_mask" in self._inputs:
            feed["attention_mask"] = np.ones_like(tokens)
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(tokens)
        try:
            output = self._session.run([self._output], feed)[0]
        except _RUN_ERRORS as error:
            raise Unavailable(f"the model {self.model_id} failed: {error}", model=self.model_id) from error
        if self._pooled:
            vector = output[0]
        else:
            vector = output[0].mean(axis=0) if self.manifest.pooling == "mean" else output[0, 0]
        return _unit(np.array(vector, np.float32))


def _closed_error() -> Unavailable:
    return Unavailable("the embedder is closed")


def _finished(vector: Vector) -> Future[Vector]:
    future: Future[Vector] = Future()
    future.set_result(vector)
    return future


def _wait_for(futures: Iterable[Future[Vector]], cancelled: Callable[[], bool] | None) -> None:
    """Returns when all are done; looks at `cancelled` meanwhile. Raises Cancelled."""
    left: set[Future[Vector]] = set(futures)
    while left:
        if cancelled is not None and cancelled():
            raise Cancelled("the caller is gone: nothing was stored")
        left = wait(left, None if cancelled is None else CANCEL_POLL_S).not_done


def _unit(vector: Vector) -> Vector:
    """The vector at length 1. Raises Unavailable when it has no direction: a zero vector would match nothing."""
    norm = float(np.linalg.norm(vector))
    if not 0.0 < norm < float("inf"):
        raise Unavailable("the model gave no usable vector")
    return vector / np.float32(norm)


def _encodable(text: str) -> str:
    """The text without lone surrogates (the tokenizer takes UTF-8)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


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


def _known_inputs(session: ort.InferenceSession) -> set[str]:
    """Names of the graph's inputs. Raises ModelUnavailable when it wants more than tokens, mask and types."""
    names = {entry.name for entry in session.get_inputs()}
    unknown = names - {"input_ids", "attention_mask", "token_type_ids"}
    if unknown or "input_ids" not in names:
        raise ModelUnavailable(f"the model's inputs are {sorted(names)}: memsvc knows no text encoder with these")
    return names


def _choose_output(session: ort.InferenceSession, manifest: ModelManifest) -> tuple[str, bool]:
    """Name of the output to read, and whether it is pooled already (rank 2).

    Raises ModelUnavailable for another rank, ModelCorrupt when its width is not the manifest's.
    """
    outputs = {output.name: output for output in session.get_outputs()}
    names = ("sentence_embedding", "last_hidden_state", "token_embeddings", next(iter(outputs)))
    chosen = next(outputs[name] for name in names if name in outputs)
    rank, width = len(chosen.shape), chosen.shape[-1] if chosen.shape else 0
    if rank not in (2, 3):
        raise ModelUnavailable(f"the model's output {chosen.name} has rank {rank}; 2 or 3 are supported")
    if rank == 3 and manifest.pooling == "none":
        raise ModelUnavailable(f"the model's output {chosen.name} is per token: the manifest must say how to pool")
    if isinstance(width, int) and width != manifest.dim:
        raise ModelCorrupt(f"the model gives {width} dimensions, its manifest says {manifest.dim}")
    return chosen.name, rank == 2
