"""Model directories: what is in them, whether it is whole, and how to get one from a hub.

Purpose: any directory with `model.onnx` and `tokenizer.json` can embed. A manifest, `memsvc.json`, says the rest
(pooling, prefixes, window, thresholds, checksums); without one it is inferred from the files that sentence-transformers
writes beside them, or refused with what is missing.

Threading: pure functions over files; a pull writes into a temporary directory and renames it.

Rejected: guessing pooling or prefixes (a wrong prefix costs a tenth of recall and nobody notices).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from memsvc.errors import ModelCorrupt, ModelUnavailable

MANIFEST_FILE = "memsvc.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FORMAT = 1
_CHUNK_BYTES = 1 << 22
Progress = Callable[[str, int, int], None]


class ModelManifest(msgspec.Struct, kw_only=True):
    """What a model directory holds. `thresholds` are cosines calibrated for this model, by name."""

    format: int = MANIFEST_FORMAT
    id: str
    dim: int
    pooling: Literal["mean", "cls", "none"] = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = 512
    normalize: bool = True
    source: str = ""
    revision: str = ""
    checksums: dict[str, str] = {}
    thresholds: dict[str, float] = {}


def no_progress(stage: str, done: int, total: int) -> None:
    """The progress callback of callers without a bar."""


def sha256_of(path: Path, progress: Callable[[int, int], None] | None = None) -> str:
    """Hex SHA-256 of a file."""
    digest = hashlib.sha256()
    total, done = path.stat().st_size, 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total)
    return digest.hexdigest()


def write_manifest(directory: Path, manifest: ModelManifest) -> None:
    """Writes `memsvc.json`."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    (directory / MANIFEST_FILE).write_bytes(text + b"\n")


def load_manifest(directory: Path) -> ModelManifest:
    """The manifest of a model directory, inferred where there is none.

    Raises ModelUnavailable when files or facts are missing (naming them), ModelCorrupt for a bad manifest.
    """
    for name in (MODEL_FILE, TOKENIZER_FILE):
        if not (directory / name).is_file():
            raise ModelUnavailable(
                f"{directory} has no {name}; a model directory needs {MODEL_FILE} and {TOKENIZER_FILE}",
                directory=str(directory),
            )
    path = directory / MANIFEST_FILE
    if not path.is_file():
        return _infer(directory)
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=ModelManifest)
    except msgspec.MsgspecError as error:
        raise ModelCorrupt(f"{path} is not a manifest: {error}", file=str(path)) from error
    if manifest.format != MANIFEST_FORMAT:
        raise ModelCorrupt(f"{path} has format {manifest.format}, this memsvc reads {MANIFEST_FORMAT}", file=str(path))
    return manifest


def check_files(directory: Path, manifest: ModelManifest) -> None:
    """Raises ModelCorrupt when a file does not match its checksum in the manifest."""
    for name, expected in manifest.checksums.items():
        path = directory / name
        if not path.is_file() or sha256_of(path) != expected:
            raise ModelCorrupt(
                f"{path} does not match its checksum: remove {directory} so that it is made again, or pull it again",
                file=str(path),
            )


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ModelCorrupt(f"{path} is not JSON", file=str(path)) from error


def _infer(directory: Path) -> ModelManifest:
    """A manifest from sentence-transformers' files: pooling, prompts, window, dimension."""
    pooling_config = _json(directory / "1_Pooling" / "config.json")
    config = _json(directory / "config.json") or {}
    prompts = (_json(directory / "config_sentence_transformers.json") or {}).get("prompts", {})
    window = (_json(directory / "sentence_bert_config.json") or {}).get("max_seq_length")
    if pooling_config is None or "hidden_size" not in config:
        raise ModelUnavailable(
            f"{directory} does not say how to pool: add {MANIFEST_FILE} with at least "
            '{"format": 1, "id": "name", "dim": 384, "pooling": "mean", "query_prefix": "", "passage_prefix": ""}',
            directory=str(directory),
        )
    pooling: Literal["mean", "cls"]
    if pooling_config.get("pooling_mode_mean_tokens"):
        pooling = "mean"
    elif pooling_config.get("pooling_mode_cls_token"):
        pooling = "cls"
    else:
        raise ModelUnavailable(f"{directory} pools in a way that memsvc does not know; mean and cls are supported")
    return ModelManifest(
        id=config.get("_name_or_path") or directory.resolve().name,
        dim=int(pooling_config.get("word_embedding_dimension", config["hidden_size"])),
        pooling=pooling,
        query_prefix=prompts.get("query", ""),
        passage_prefix=prompts.get("passage", prompts.get("document", "")),
        max_tokens=int(window or min(config.get("max_position_embeddings", 512), 8192)),
    )


_PATTERNS = ("tokenizer.json", "config.json", "config_sentence_transformers.json", "sentence_bert_config.json")


def pull_model(
    repo: str, revision: str | None, target: Path, *, endpoint: str = "", progress: Progress = no_progress
) -> Path:
    """Fetches an ONNX export from a Hugging Face hub into `target`, with checksums and a manifest; returns `target`.

    Takes `model.onnx` or `onnx/model.onnx` with its external data. Raises ModelUnavailable when huggingface_hub is not
    installed, the hub can't be reached or the repository has no ONNX export, ModelCorrupt when a file does not match
    the hub's checksum. A `target` that exists is replaced only after everything was fetched.
    """
    try:
        from huggingface_hub import HfApi, hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise ModelUnavailable("`memsvc model pull` needs huggingface_hub: pip install 'memsvc[hub]'") from error
    import httpx

    api = HfApi(endpoint=endpoint or None)
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".pull-", dir=target.parent))
    try:
        info = api.model_info(repo, revision=revision, files_metadata=True)
        wanted = _wanted_files({s.rfilename for s in info.siblings or []}, repo)
        remote = {s.rfilename: s for s in info.siblings or []}
        for done, (name, local) in enumerate(wanted.items()):
            progress(f"fetching {name}", done, len(wanted))
            fetched = hf_hub_download(
                repo, name, revision=info.sha, endpoint=endpoint or None, local_dir=staging / ".raw"
            )
            lfs = remote[name].lfs
            if lfs is not None and sha256_of(Path(fetched)) != lfs.sha256:
                raise ModelCorrupt(f"{name} does not match the hub's checksum", file=name)
            (staging / local).parent.mkdir(parents=True, exist_ok=True)
            Path(fetched).rename(staging / local)
        progress("fetched", len(wanted), len(wanted))
        shutil.rmtree(staging / ".raw", ignore_errors=True)
        manifest = load_manifest(staging)
        manifest.id = f"{repo}@{info.sha}" if info.sha else repo
        manifest.source, manifest.revision = repo, info.sha or ""
        manifest.checksums = {
            local: sha256_of(staging / local) for local in wanted.values() if not local.endswith(".json")
        } | {TOKENIZER_FILE: sha256_of(staging / TOKENIZER_FILE)}
        write_manifest(staging, manifest)
        if target.exists():
            shutil.rmtree(target)
        staging.rename(target)
    except (HfHubHTTPError, httpx.HTTPError, OSError) as error:
        raise ModelUnavailable(f"could not pull {repo}: {error}", repo=repo) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _wanted_files(names: set[str], repo: str) -> dict[str, str]:
    """Remote name -> local name of what a model directory needs. Raises ModelUnavailable without an ONNX export."""
    folder = next((f for f in ("onnx/", "") if f"{f}{MODEL_FILE}" in names), None)
    if folder is None or TOKENIZER_FILE not in names:
        raise ModelUnavailable(f"{repo} has no {MODEL_FILE} (nor onnx/{MODEL_FILE}) with a {TOKENIZER_FILE}", repo=repo)
    wanted = {f"{folder}{MODEL_FILE}": MODEL_FILE}
    wanted |= {name: name.removeprefix(folder) for name in names if name.startswith(f"{folder}{MODEL_FILE}_data")}
    wanted |= {name: name for name in (*_PATTERNS, "1_Pooling/config.json") if name in names}
    return wanted
