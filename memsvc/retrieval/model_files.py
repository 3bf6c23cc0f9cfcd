"""Model directories: what is in them, whether it is whole, and how to get one from a hub.

Purpose: any directory with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json` can embed. A manifest,
`memsvc.json`, says the rest (pooling, prefixes, window, thresholds, checksums); without one it is inferred from the
graph and the files that sentence-transformers writes beside it, or refused with what is missing.

Threading: pure functions over files; a pull writes into a temporary directory and renames it.

Rejected: guessing pooling or prefixes (a wrong prefix costs a tenth of recall and nobody notices), an inferred id made
of the directory's name alone (two models in two directories of one name would share vectors).
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

from memsvc.errors import InvalidArgument, ModelCorrupt, ModelUnavailable

MANIFEST_FILE = "memsvc.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FORMAT = 1
_CHUNK_BYTES = 1 << 22
Progress = Callable[[str, int, int], None]


class ModelManifest(msgspec.Struct, kw_only=True):
    """What a model directory holds. `thresholds` are cosines calibrated for this model, by name.

    `pooling` "none" means that the graph pools; `normalize` false that it gives unit vectors already (vectors are
    compared by cosine, so they are always brought to length 1). `checksums` are SHA-256 in hex by file name.
    """

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
    model_file: str = MODEL_FILE
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
    path = directory / MANIFEST_FILE
    manifest = _read_manifest(path) if path.is_file() else None
    model_file = manifest.model_file if manifest is not None else _find_model_file(directory)
    for name in (model_file, TOKENIZER_FILE):
        if not (directory / name).is_file():
            raise ModelUnavailable(
                f"{directory} has no {name}; a model directory needs {MODEL_FILE} (or onnx/{MODEL_FILE}) "
                f"and {TOKENIZER_FILE}",
                directory=str(directory),
            )
    return manifest if manifest is not None else _infer(directory, model_file)


def _find_model_file(directory: Path) -> str:
    nested = f"onnx/{MODEL_FILE}"
    return nested if not (directory / MODEL_FILE).is_file() and (directory / nested).is_file() else MODEL_FILE


def _read_manifest(path: Path) -> ModelManifest:
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


def _infer(directory: Path, model_file: str) -> ModelManifest:
    """A manifest from the graph and sentence-transformers' files: dimension, pooling, prompts, window."""
    config = _json(directory / "config.json") or {}
    prompts = (_json(directory / "config_sentence_transformers.json") or {}).get("prompts", {})
    window = (_json(directory / "sentence_bert_config.json") or {}).get("max_seq_length")
    pools_itself, width = _output_of(directory / model_file)
    pooling = "none" if pools_itself else _pooling(directory)
    dim = width or config.get("hidden_size")
    if pooling is None or dim is None:
        fact = "how to pool" if pooling is None else "its dimension"
        raise ModelUnavailable(
            f"{directory} does not say {fact}: add {MANIFEST_FILE} with at least "
            '{"format": 1, "id": "name", "dim": 384, "pooling": "mean", "query_prefix": "", "passage_prefix": ""}',
            directory=str(directory),
        )
    checksum = sha256_of(directory / model_file)
    return ModelManifest(
        id=f"{config.get('_name_or_path') or directory.resolve().name}@{checksum[:12]}",
        dim=int(dim),
        pooling=pooling,
        query_prefix=prompts.get("query", ""),
        passage_prefix=prompts.get("passage", prompts.get("document", "")),
        max_tokens=int(window or min(config.get("max_position_embeddings", 512), 8192)),
        model_file=model_file,
    )


def _pooling(directory: Path) -> Literal["mean", "cls"] | None:
    """What sentence-transformers' pooling file says; None without one. Raises ModelUnavailable for other poolings."""
    config = _json(directory / "1_Pooling" / "config.json")
    if config is None:
        return None
    if config.get("pooling_mode_mean_tokens"):
        return "mean"
    if config.get("pooling_mode_cls_token"):
        return "cls"
    raise ModelUnavailable(f"{directory} pools in a way that memsvc does not know; mean and cls are supported")


def _output_of(path: Path) -> tuple[bool, int | None]:
    """Whether the graph has a pooled output, and the width of the output that will be read (None if it is dynamic).

    Raises ModelCorrupt when the file is not an ONNX model.
    """
    import onnx  # only here: a directory with a manifest must not pay for it

    try:
        graph = onnx.load(str(path), load_external_data=False).graph
    except Exception as error:  # protobuf's decoder error, whose home is not this room
        raise ModelCorrupt(f"{path} is not an ONNX model: {error}", file=str(path)) from error
    outputs = {output.name: output.type.tensor_type.shape.dim for output in graph.output}
    if not outputs:
        raise ModelCorrupt(f"{path} is not an ONNX model: it has no output", file=str(path))
    names = ("sentence_embedding", "last_hidden_state", "token_embeddings", next(iter(outputs)))
    shape = next(outputs[name] for name in names if name in outputs)
    return len(shape) == 2, (shape[-1].dim_value or None) if shape else None


_CONFIG_FILES = ("tokenizer.json", "config.json", "config_sentence_transformers.json", "sentence_bert_config.json")


def pull_model(
    repo: str, revision: str | None, target: Path, *, endpoint: str = "", progress: Progress = no_progress
) -> Path:
    """Fetches an ONNX export from a Hugging Face hub into `target`, with checksums and a manifest; returns `target`.

    Takes `model.onnx` or `onnx/model.onnx` with its external data; an empty `endpoint` is huggingface.co. Raises
    ModelUnavailable when huggingface_hub is not installed, the hub can't be reached or the repository has no ONNX
    export, ModelCorrupt when a file does not match the hub's checksum, InvalidArgument for a bad repository name
    or a `target` that exists and is not a pulled model. A pulled model is replaced only after everything was fetched.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise ModelUnavailable("`memsvc model pull` needs huggingface_hub: pip install 'memsvc[hub]'") from error
    _check_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".pull-", dir=target.parent))
    # HfHubHTTPError's bases are the transport's own error and OSError, whichever HTTP library the hub's client uses.
    try:
        info = HfApi(endpoint=endpoint or None).model_info(repo, revision=revision, files_metadata=True)
        _fetch_into(staging, repo, info, endpoint, progress)
        staging.chmod(0o755)  # mkdtemp's 0700 would lock out a server that runs as another user
        if target.exists():
            shutil.rmtree(target)
        staging.rename(target)
    except HFValidationError as error:
        raise InvalidArgument(f"{repo} is not the name of a repository: {error}", field="repo") from error
    except HfHubHTTPError.__bases__ as error:
        raise ModelUnavailable(f"could not pull {repo}: {error}", repo=repo) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _check_replaceable(target: Path) -> None:
    """Raises InvalidArgument when `target` holds something that a pull must not delete."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / MANIFEST_FILE).is_file() or not _read_manifest(target / MANIFEST_FILE).source:
        raise InvalidArgument(f"{target} exists and is not a pulled model: name a new directory", field="directory")


def _fetch_into(staging: Path, repo: str, info: Any, endpoint: str, progress: Progress) -> None:
    """Downloads, checks and describes the files of the revision that `info` names."""
    from huggingface_hub import hf_hub_download

    remote = {sibling.rfilename: sibling for sibling in info.siblings or []}
    wanted = _wanted_files(set(remote), repo)
    raw = staging / ".raw"
    for done, (name, local) in enumerate(wanted.items()):
        progress(f"fetching {name}", done, len(wanted))
        fetched = Path(hf_hub_download(repo, name, revision=info.sha, endpoint=endpoint or None, local_dir=raw))
        lfs = remote[name].lfs
        if lfs is not None and sha256_of(fetched) != lfs.sha256:
            raise ModelCorrupt(f"{name} does not match the hub's checksum", file=name)
        (staging / local).parent.mkdir(parents=True, exist_ok=True)
        fetched.rename(staging / local)
    progress("fetched", len(wanted), len(wanted))
    shutil.rmtree(raw, ignore_errors=True)
    manifest = load_manifest(staging)
    manifest.id = f"{repo}@{info.sha}" if info.sha else repo
    manifest.source, manifest.revision = repo, info.sha or ""
    manifest.checksums = {
        local: sha256_of(staging / local)
        for local in wanted.values()
        if local == TOKENIZER_FILE or not local.endswith(".json")
    }
    write_manifest(staging, manifest)


def _wanted_files(names: set[str], repo: str) -> dict[str, str]:
    """Remote name -> local name of what a model directory needs. Raises ModelUnavailable without an ONNX export."""
    folder = next((f for f in ("onnx/", "") if f"{f}{MODEL_FILE}" in names), None)
    if folder is None or TOKENIZER_FILE not in names:
        raise ModelUnavailable(f"{repo} has no {MODEL_FILE} (nor onnx/{MODEL_FILE}) with a {TOKENIZER_FILE}", repo=repo)
    wanted = {f"{folder}{MODEL_FILE}": MODEL_FILE}
    data = (f"{folder}{MODEL_FILE}_data", f"{folder}{MODEL_FILE}.data")
    wanted |= {n: n.removeprefix(folder) for n in sorted(names) if n.startswith(data)}
    if any("/" in local for local in wanted.values()):
        raise ModelUnavailable(f"{repo} keeps its weights in a way that memsvc does not know", repo=repo)
    wanted |= {name: name for name in (*_CONFIG_FILES, "1_Pooling/config.json") if name in names}
    return wanted
