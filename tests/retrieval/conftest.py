"""Fixtures of the retrieval tests: the real default model, and a tiny one for what must be cheap to damage or serve."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

from memsvc.config import default_model_cache_dir
from memsvc.retrieval.default_model import ensure_default_model
from memsvc.retrieval.embedder import Embedder

TINY_DIM = 8
TINY_WORDS = ["[UNK]", "red", "green", "blue", "query", ":"]


@pytest.fixture(scope="session")
def default_model_dir() -> Path:
    """The default model, built once per machine (a file lock makes parallel test workers wait for one build)."""
    return ensure_default_model(default_model_cache_dir())


@pytest.fixture(scope="module")
def embedder(default_model_dir: Path) -> Iterator[Embedder]:
    opened = Embedder(default_model_dir)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def tiny_model() -> Callable[..., Path]:
    """Writes a tiny model directory; see `write_tiny_model`."""
    return write_tiny_model


def write_tiny_model(directory: Path, *, nested: bool = False, rank: int = 3, fail: bool = False) -> Path:
    """A table lookup as `model.onnx` with a word tokenizer and sentence-transformers' files; runs in microseconds.

    `rank` 2 pools in the graph; `fail` makes every run fail in the runtime (a reshape that can't fit).
    """
    directory.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(7).standard_normal((len(TINY_WORDS), TINY_DIM)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens_out"])]
    initializers = [numpy_helper.from_array(table, "table")]
    if fail:
        initializers.append(numpy_helper.from_array(np.array([1, 5, 77], np.int64), "shape"))
        nodes.append(helper.make_node("Reshape", ["tokens_out", "shape"], ["last_hidden_state"]))
    elif rank == 3:
        nodes.append(helper.make_node("Identity", ["tokens_out"], ["last_hidden_state"]))
    else:
        nodes.append(helper.make_node("ReduceMean", ["tokens_out"], ["sentence_embedding"], axes=[1], keepdims=0))
    name = "last_hidden_state" if rank == 3 else "sentence_embedding"
    shape = [1, "tokens", TINY_DIM] if rank == 3 else [1, TINY_DIM]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = directory / ("onnx/model.onnx" if nested else "model.onnx")
    path.parent.mkdir(exist_ok=True)
    onnx.save(model, str(path))
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(TINY_WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(directory / "tokenizer.json"))
    write_json(directory / "config.json", {"hidden_size": TINY_DIM, "max_position_embeddings": 16})
    write_json(directory / "1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
    write_json(directory / "config_sentence_transformers.json", {"prompts": {"query": "query: ", "document": ""}})
    return directory


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
