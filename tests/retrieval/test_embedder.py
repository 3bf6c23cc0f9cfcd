"""The embedder: one vector per text whatever is asked beside it, windows, lanes, caches, cancel and close."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from memsvc.errors import Cancelled, DeadlineExceeded, ModelCorrupt, ModelUnavailable, Unavailable
from memsvc.retrieval.embedder import CACHED_TEXT_CHARS, Embedder, _encodable
from memsvc.retrieval.model_files import load_manifest, write_manifest

TINY_DIM = 8
TinyModel = Callable[..., Path]

STRANGE = ["", "   ", "\x00", "a\x00b", "\ud800", "x\udfffy", "😀👩\u200d👩\u200d👧", "שלום עולם"]
STRANGE += ["\u202eabc", "\ufffd", "é" * 300, "▁▁"]


@pytest.fixture
def tiny(tmp_path: Path, tiny_model: TinyModel) -> Embedder:
    return Embedder(tiny_model(tmp_path / "tiny"))


def stalled(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Semaphore, threading.Event]:
    """Makes every run wait: (released by each run that begins, set this to let runs go on)."""
    begun, gate = threading.Semaphore(0), threading.Event()
    run = embedder._run

    def waiting(ids: list[int]) -> np.ndarray:
        begun.release()
        assert gate.wait(60)
        return run(ids)

    monkeypatch.setattr(embedder, "_run", waiting)
    return begun, gate


# -- vectors -------------------------------------------------------------------------------------------------------


def test_a_vector_is_a_read_only_unit_vector(embedder: Embedder) -> None:
    vector = embedder.embed_query("what does Alice drink")
    assert (vector.shape, vector.dtype, vector.flags.writeable) == ((embedder.dim,), np.float32, False)
    assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("what does Alice like to drink", "Alice enjoys green tea", "The build server runs Ubuntu"),
        ("爱丽丝喜欢喝什么", "爱丽丝爱喝绿茶", "构建服务器运行 Ubuntu 系统"),
        ("what does Alice like to drink", "爱丽丝爱喝绿茶", "构建服务器运行 Ubuntu 系统"),
        ("哪台机器跑构建", "The build server runs Ubuntu", "Alice enjoys green tea"),
    ],
)
def test_a_paraphrase_is_nearer_than_unrelated_text(embedder: Embedder, query: str, near: str, far: str) -> None:
    near_score, far_score = embedder.embed_passages([near, far]) @ embedder.embed_query(query)
    assert near_score > far_score


def test_what_is_embedded_beside_a_text_does_not_change_its_vector(default_model_dir: Path) -> None:
    texts = ["short", "a somewhat longer text about tea", "我喜欢喝茶", "word " * 100]
    alone = []
    for text in texts:
        one = Embedder(default_model_dir, passage_cache_entries=0)
        alone.append(one.embed_passages([text])[0])
        one.close()
    together = Embedder(default_model_dir, passage_cache_entries=0)
    assert np.array_equal(together.embed_passages(texts[::-1])[::-1], np.stack(alone))
    together.close()


def test_queries_and_passages_have_their_own_prefix(embedder: Embedder) -> None:
    assert not np.allclose(embedder.embed_query("tea"), embedder.embed_passages(["tea"])[0], atol=1e-3)


def test_rows_follow_the_texts_and_equal_ones_are_computed_once(embedder: Embedder) -> None:
    before = embedder.stats().passage_count
    texts = ["a longer text than the others", "rows one", "rows two", "rows one"]
    vectors = embedder.embed_passages(texts)
    assert vectors.shape == (4, embedder.dim)
    assert embedder.stats().passage_count - before == 3
    assert np.array_equal(vectors[1], vectors[3])
    assert np.array_equal(vectors[2], embedder.embed_passages(["rows two"])[0])
    assert embedder.stats().passage_count - before == 3  # the second time from the cache


def test_no_texts_make_an_empty_block(embedder: Embedder) -> None:
    assert embedder.embed_passages([]).shape == (0, embedder.dim)


@pytest.mark.parametrize("text", STRANGE, ids=ascii)
def test_strange_text_has_a_vector(embedder: Embedder, text: str) -> None:
    assert abs(float(np.linalg.norm(embedder.embed_query(text))) - 1) < 1e-5
    assert np.isfinite(embedder.embed_passages([text])).all()
    assert embedder.count_tokens(text) >= 0


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(), max_size=200))
def test_any_text_can_be_tokenised(embedder: Embedder, text: str) -> None:
    windows = embedder._windows("query: ", text)
    assert all(len(window) <= embedder.manifest.max_tokens for window in windows)


@pytest.fixture(scope="module")
def library_tokenizer(default_model_dir: Path) -> Tokenizer:
    return Tokenizer.from_file(str(default_model_dir / "tokenizer.json"))


WORDS = st.sampled_from(
    ["tea", "Straße", "绿茶", "喝", "ﬁ", "Ⅷ", "～", "\u200b", "<s>", "▁", "5432", "😀", "\ue000\ue001", "ا"]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(max_size=80), st.lists(st.one_of(WORDS, st.just(" "))).map("".join)))
def test_token_ids_are_the_librarys(embedder: Embedder, library_tokenizer: Tokenizer, text: str) -> None:
    assert embedder._ids(text, special=True) == library_tokenizer.encode(_encodable(text)).ids


def test_a_megabyte_is_split_and_nothing_is_dropped(embedder: Embedder) -> None:
    text = "记忆 memory " * 75_000
    windows = embedder._windows("passage: ", text)
    assert len(text.encode()) > 1_000_000
    assert sum(len(window) for window in windows) > embedder.count_tokens(text)
    assert max(len(window) for window in windows) <= embedder.manifest.max_tokens


# -- windows -------------------------------------------------------------------------------------------------------


def body_of(embedder: Embedder, window: list[int], prefix: str) -> list[int]:
    head = 1 + len(embedder._ids(prefix, special=False))
    return window[head:-1]


@pytest.mark.parametrize("words", [490, 520, 1000, 2000])
def test_windows_overlap_and_cover_every_token(embedder: Embedder, words: int) -> None:
    text = " ".join(f"w{i}" for i in range(words))
    ids = embedder._ids(text, special=False)
    windows = [body_of(embedder, window, "passage: ") for window in embedder._windows("passage: ", text)]
    assert len(windows) > 1
    end = 0
    for window in windows:
        start = next(i for i in range(max(end - 512, 0), end + 1) if ids[i : i + len(window)] == window)
        assert start < end or end == 0
        end = start + len(window)
    assert end == len(ids)


def test_a_long_text_is_the_length_weighted_mean_of_its_windows(embedder: Embedder) -> None:
    text = "tea is what Alice drinks. " * 60 + "The server runs Ubuntu. " * 60
    windows = embedder._windows("passage: ", text)
    expected = sum(len(window) * embedder._run(window) for window in windows)
    expected /= np.linalg.norm(expected)
    assert len(windows) > 1
    assert np.allclose(embedder.embed_passages([text])[0], expected, atol=1e-6)


# -- caches and lanes ----------------------------------------------------------------------------------------------


def test_a_query_is_cached_and_the_oldest_goes_first(tmp_path: Path, tiny_model: TinyModel) -> None:
    small = Embedder(tiny_model(tmp_path / "m"), query_cache_entries=2)
    assert small.cached_query("red") is None
    first = small.embed_query("red")
    assert small.cached_query("red") is first
    small.embed_query("green")
    small.cached_query("red")
    small.embed_query("blue")
    assert small.cached_query("green") is None
    assert small.cached_query("red") is first
    small.close()


def test_long_texts_are_not_cached(tiny: Embedder) -> None:
    text = "red " * CACHED_TEXT_CHARS
    tiny.embed_query(text)
    assert tiny.cached_query(text) is None
    tiny.close()


def test_the_same_query_twice_at_once_is_computed_once(tiny: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    _, gate = stalled(tiny, monkeypatch)
    first, second = tiny.submit_query("red"), tiny.submit_query("red")
    assert not first.cancel()  # it belongs to others too
    gate.set()
    assert second.result(60) is first.result(60)
    assert tiny.stats().query_count == 1
    tiny.close()


def test_a_query_does_not_wait_for_passages(tiny: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    run, gate, begun = tiny._run, threading.Event(), threading.Event()

    def passages_wait(ids: list[int]) -> np.ndarray:
        if threading.current_thread().name.startswith("embed-passage"):
            begun.set()
            assert gate.wait(60)
        return run(ids)

    monkeypatch.setattr(tiny, "_run", passages_wait)
    bulk = threading.Thread(target=tiny.embed_passages, args=(["red", "green", "blue"],))
    bulk.start()
    assert begun.wait(60)
    assert tiny.embed_query("red", timeout_s=60).shape == (TINY_DIM,)
    gate.set()
    bulk.join(60)
    tiny.close()


def test_a_short_text_overtakes_a_long_one(tiny: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gate = stalled(tiny, monkeypatch)
    finished: list[str] = []
    long_job, short_job = tiny._job("", "red " * 400), tiny._job("", "green")
    for name, job in (("long", long_job), ("short", short_job)):
        job.future.add_done_callback(lambda _, name=name: finished.append(name))
        tiny._passage_lane.submit(job)
    assert begun.acquire(timeout=60)
    gate.set()
    long_job.future.result(60)
    tiny.close()
    assert finished == ["short", "long"]


def test_many_threads_get_the_vectors_of_one(embedder: Embedder) -> None:
    texts = [f"fact {i} about tea" for i in range(12)]
    expected = embedder.embed_passages(texts)
    found: dict[int, Future[np.ndarray] | np.ndarray] = {}

    def work(i: int) -> None:
        found[i] = embedder.embed_passages([texts[i], f"other {i}"])[0]
        embedder.embed_query(texts[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert np.array_equal(np.stack([found[i] for i in range(len(texts))]), expected)


# -- failure, cancel, close ----------------------------------------------------------------------------------------


def test_a_query_that_is_late_is_a_typed_error(tiny: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    _, gate = stalled(tiny, monkeypatch)
    with pytest.raises(DeadlineExceeded):
        tiny.embed_query("red", timeout_s=0.01)
    gate.set()
    assert tiny.embed_query("red", timeout_s=60).shape == (TINY_DIM,)
    tiny.close()


def test_a_failing_runtime_is_a_typed_error_and_the_lane_lives_on(tmp_path: Path, tiny_model: TinyModel) -> None:
    broken = Embedder(tiny_model(tmp_path / "m", fail=True))
    for _ in range(2):
        with pytest.raises(Unavailable, match="failed"):
            broken.embed_query("red")
        with pytest.raises(Unavailable, match="failed"):
            broken.embed_passages(["red", "green"])
    assert broken.cached_query("red") is None
    broken.close()


def test_a_vector_without_direction_is_a_failure(tiny: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def run(self, outputs: object, feed: object) -> list[np.ndarray]:
            return [np.full((1, 3, TINY_DIM), np.nan, np.float32)]

    monkeypatch.setattr(tiny, "_session", Session())
    with pytest.raises(Unavailable, match="no usable vector"):
        tiny.embed_query("red")
    tiny.close()


def test_progress_counts_distinct_texts(tiny: Embedder) -> None:
    calls: list[tuple[int, int]] = []
    tiny.embed_passages([f"red {i}" for i in range(20)] * 2, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(8, 20), (16, 20), (20, 20)]
    tiny.close()


def test_a_cancel_stops_a_bulk_write_inside_a_long_text(tiny: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gate = stalled(tiny, monkeypatch)
    with pytest.raises(Cancelled):
        tiny.embed_passages(["red " * 10_000, "green"], cancelled=lambda: begun.acquire(blocking=False))
    gate.set()
    runs = tiny.embed_passages(["blue"])  # the lane is free again: the cancelled text's windows are not run
    assert runs.shape == (1, TINY_DIM)
    assert np.isfinite(tiny.embed_passages(["red", "green"])).all()
    tiny.close()


def test_close_fails_what_waits_and_joins_the_threads(tiny: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gate = stalled(tiny, monkeypatch)
    running, waiting = tiny.submit_query("red"), tiny.submit_query("green")
    errors: list[BaseException] = []

    def write() -> None:
        try:
            tiny.embed_passages(["red " * 1000, "blue"])
        except Unavailable as error:
            errors.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for _lane in ("query", "passage"):
        assert begun.acquire(timeout=60)
    closer = threading.Thread(target=tiny.close)
    closer.start()
    with pytest.raises(Unavailable, match="closed"):
        waiting.result(60)
    gate.set()
    closer.join(60)
    writer.join(60)
    assert running.result(60).shape == (TINY_DIM,)
    assert len(errors) == 1
    threads = {*tiny._query_lane._executor._threads, *tiny._passage_lane._executor._threads}
    assert len(threads) == 2
    assert not any(thread.is_alive() for thread in threads)
    tiny.close()
    with pytest.raises(Unavailable, match="closed"):
        tiny.submit_query("blue")
    with pytest.raises(Unavailable, match="closed"):
        tiny.embed_passages(["red"])


# -- model directories ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("rank", [2, 3])
def test_a_directory_without_manifest_embeds(tmp_path: Path, nested: bool, rank: int, tiny_model: TinyModel) -> None:
    opened = Embedder(tiny_model(tmp_path / "m", nested=nested, rank=rank))
    opened.warm()
    assert opened.dim == TINY_DIM
    assert opened.manifest.pooling == ("mean" if rank == 3 else "none")
    opened.close()


def test_a_manifest_with_another_dimension_is_refused(tmp_path: Path, tiny_model: TinyModel) -> None:
    directory = tiny_model(tmp_path / "m")
    manifest = load_manifest(directory)
    manifest.dim = 384
    write_manifest(directory, manifest)
    with pytest.raises(ModelCorrupt, match="384"):
        Embedder(directory)


def test_a_per_token_output_needs_a_pooling(tmp_path: Path, tiny_model: TinyModel) -> None:
    directory = tiny_model(tmp_path / "m")
    manifest = load_manifest(directory)
    manifest.pooling = "none"
    write_manifest(directory, manifest)
    with pytest.raises(ModelUnavailable, match="pool"):
        Embedder(directory)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_garbage_in_a_file_is_model_corrupt(tmp_path: Path, name: str, tiny_model: TinyModel) -> None:
    directory = tiny_model(tmp_path / "m")
    write_manifest(directory, load_manifest(directory))
    (directory / name).write_bytes(b"garbage")
    with pytest.raises(ModelCorrupt, match=name):
        Embedder(directory)
