"""Model directories: what is inferred, what is refused, and a pull from a real server that speaks the hub's API."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from memsvc.errors import InvalidArgument, ModelCorrupt, ModelUnavailable
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.model_files import (
    MANIFEST_FILE,
    ModelManifest,
    check_files,
    load_manifest,
    pull_model,
    write_manifest,
)

TinyModel = Callable[..., Path]
REVISION = "0123456789abcdef0123456789abcdef01234567"


# -- manifests -----------------------------------------------------------------------------------------------------


def test_a_manifest_comes_back_as_written(tmp_path: Path, tiny_model: TinyModel) -> None:
    directory = tiny_model(tmp_path / "m")
    manifest = ModelManifest(id="x", dim=8, pooling="cls", thresholds={"duplicate": 0.9}, checksums={"a": "b"})
    write_manifest(directory, manifest)
    assert load_manifest(directory) == manifest


def test_facts_are_inferred_from_sentence_transformers_files(tmp_path: Path, tiny_model: TinyModel) -> None:
    directory = tiny_model(tmp_path / "some-model", nested=True)
    manifest = load_manifest(directory)
    checksum = hashlib.sha256((directory / "onnx/model.onnx").read_bytes()).hexdigest()
    assert manifest.id == f"some-model@{checksum[:12]}"
    assert (manifest.dim, manifest.pooling, manifest.max_tokens) == (8, "mean", 16)
    assert (manifest.query_prefix, manifest.passage_prefix) == ("query: ", "")
    assert manifest.model_file == "onnx/model.onnx"


def test_a_graph_that_pools_needs_no_pooling_file(tmp_path: Path, tiny_model: TinyModel) -> None:
    directory = tiny_model(tmp_path / "m", rank=2)
    (directory / "1_Pooling/config.json").unlink()
    assert load_manifest(directory).pooling == "none"


def test_unknown_pooling_is_refused_with_the_manifest_to_write(tmp_path: Path, tiny_model: TinyModel) -> None:
    directory = tiny_model(tmp_path / "m")
    (directory / "1_Pooling/config.json").unlink()
    with pytest.raises(ModelUnavailable, match=r"how to pool.*memsvc\.json.*\"pooling\""):
        load_manifest(directory)
    (directory / "1_Pooling/config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(ModelUnavailable, match="mean and cls"):
        load_manifest(directory)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, tiny_model: TinyModel, name: str) -> None:
    directory = tiny_model(tmp_path / "m")
    (directory / name).unlink()
    with pytest.raises(ModelUnavailable, match=f"has no {name}"):
        load_manifest(directory)


BAD_MANIFESTS = ["", "{", "[]", '{"format": 1}', '{"format": 99, "id": "x", "dim": 8}', '{"id": "x", "dim": "8"}']


@pytest.mark.parametrize("text", BAD_MANIFESTS)
def test_a_bad_manifest_is_corrupt(tmp_path: Path, tiny_model: TinyModel, text: str) -> None:
    directory = tiny_model(tmp_path / "m")
    (directory / MANIFEST_FILE).write_text(text)
    with pytest.raises(ModelCorrupt):
        load_manifest(directory)


@pytest.mark.parametrize("name", ["config.json", "1_Pooling/config.json", "model.onnx"])
def test_garbage_beside_an_inferred_manifest_is_corrupt(tmp_path: Path, tiny_model: TinyModel, name: str) -> None:
    directory = tiny_model(tmp_path / "m")
    (directory / name).write_bytes(b"\x00garbage")
    with pytest.raises(ModelCorrupt):
        load_manifest(directory)


def test_a_checksum_covers_a_missing_file(tmp_path: Path, tiny_model: TinyModel) -> None:
    directory = tiny_model(tmp_path / "m")
    with pytest.raises(ModelCorrupt, match="gone"):
        check_files(directory, ModelManifest(id="x", dim=8, checksums={"gone": "00"}))


# -- the hub -------------------------------------------------------------------------------------------------------


class Hub:
    """Files of one repository behind the parts of the hub's API that a pull uses."""

    def __init__(self, repo: str, files: dict[str, bytes]) -> None:
        self.repo = repo
        self.files = files
        self.wrong_checksums: set[str] = set()
        self.requests: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                hub.answer(self, body=False)

            def do_GET(self) -> None:
                hub.answer(self, body=True)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, *, body: bool) -> None:
        path = unquote(urlsplit(request.path).path)
        self.requests.append(f"{request.command} {path}")
        api, files = f"/api/models/{self.repo}", f"/{self.repo}/resolve/{REVISION}/"
        if path in (api, f"{api}/revision/{REVISION}", f"{api}/revision/main"):
            self.send(request, 200, json.dumps(self.info()).encode(), {"Content-Type": "application/json"}, body)
        elif path.startswith(files) and path.removeprefix(files) in self.files:
            content = self.files[path.removeprefix(files)]
            etag = hashlib.sha256(content).hexdigest()
            self.send(request, 200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": REVISION}, body)
        else:
            code = "EntryNotFound" if path.startswith(files) else "RepoNotFound"
            self.send(request, 404, b"", {"X-Error-Code": code, "X-Error-Message": "not here"}, body)

    def info(self) -> dict[str, object]:
        siblings = []
        for name, content in self.files.items():
            entry: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": "0" * 40}
            if not name.endswith(".json"):
                sha = "0" * 64 if name in self.wrong_checksums else hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": sha, "size": len(content), "pointerSize": 134}
            siblings.append(entry)
        return {"_id": "1", "id": self.repo, "modelId": self.repo, "sha": REVISION, "siblings": siblings}

    @staticmethod
    def send(request: BaseHTTPRequestHandler, status: int, content: bytes, headers: dict[str, str], body: bool) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            request.send_header(name, value)
        request.end_headers()
        if body:
            request.wfile.write(content)


@pytest.fixture
def hub(tmp_path: Path, tiny_model: TinyModel) -> Iterator[Hub]:
    source = tiny_model(tmp_path / "source", nested=True)
    files = {str(p.relative_to(source)): p.read_bytes() for p in source.rglob("*") if p.is_file()}
    files |= {"onnx/model.onnx_data": b"weights", "pytorch_model.bin": b"never fetched", "README.md": b"# tiny"}
    served = Hub("owner/tiny", files)
    yield served
    served.close()


def test_a_pull_fetches_checks_and_describes(hub: Hub, tmp_path: Path) -> None:
    stages: list[tuple[str, int, int]] = []
    target = tmp_path / "models" / "tiny"
    pulled = pull_model(hub.repo, None, target, endpoint=hub.endpoint, progress=lambda *stage: stages.append(stage))
    assert pulled == target
    manifest = load_manifest(target)
    assert (manifest.id, manifest.source, manifest.revision) == (f"owner/tiny@{REVISION}", "owner/tiny", REVISION)
    assert set(manifest.checksums) == {"model.onnx", "model.onnx_data", "tokenizer.json"}
    assert (manifest.dim, manifest.pooling, manifest.query_prefix) == (8, "mean", "query: ")
    assert not [request for request in hub.requests if "pytorch" in request or "README" in request]
    assert [p.name for p in target.parent.iterdir()] == ["tiny"]
    assert stages[-1] == ("fetched", 6, 6)
    opened = Embedder(target)
    assert opened.embed_query("red").shape == (8,)
    opened.close()


def test_a_pull_of_a_revision_replaces_an_older_pull(hub: Hub, tmp_path: Path) -> None:
    target = pull_model(hub.repo, "main", tmp_path / "m", endpoint=hub.endpoint)
    (target / "model.onnx").write_bytes(b"damaged")
    pull_model(hub.repo, REVISION, target, endpoint=hub.endpoint)
    check_files(target, load_manifest(target))


def test_a_pull_never_deletes_a_directory_that_is_not_a_pulled_model(hub: Hub, tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidArgument, match="not a pulled model"):
        pull_model(hub.repo, None, target, endpoint=hub.endpoint)
    assert (target / "thesis.txt").read_text() == "years of work"
    assert hub.requests == []


def test_a_file_that_is_not_the_hubs_is_refused(hub: Hub, tmp_path: Path) -> None:
    hub.wrong_checksums.add("onnx/model.onnx")
    with pytest.raises(ModelCorrupt, match="checksum"):
        pull_model(hub.repo, None, tmp_path / "models" / "m", endpoint=hub.endpoint)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_failed_pull_leaves_the_older_one(hub: Hub, tmp_path: Path) -> None:
    target = pull_model(hub.repo, None, tmp_path / "m", endpoint=hub.endpoint)
    hub.wrong_checksums.add("onnx/model.onnx_data")
    with pytest.raises(ModelCorrupt):
        pull_model(hub.repo, None, target, endpoint=hub.endpoint)
    check_files(target, load_manifest(target))


def test_a_repository_without_an_export_is_refused(hub: Hub, tmp_path: Path) -> None:
    del hub.files["onnx/model.onnx"]
    with pytest.raises(ModelUnavailable, match=r"no model\.onnx"):
        pull_model(hub.repo, None, tmp_path / "m", endpoint=hub.endpoint)


def test_an_unknown_repository_is_unavailable(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="owner/other"):
        pull_model("owner/other", None, tmp_path / "m", endpoint=hub.endpoint)


def test_a_bad_repository_name_is_the_callers_mistake(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="not the name"):
        pull_model("a/b/c/d", None, tmp_path / "m", endpoint=hub.endpoint)


def test_an_unreachable_hub_is_unavailable(hub: Hub, tmp_path: Path) -> None:
    hub.close()
    with pytest.raises(ModelUnavailable, match="could not pull"):
        pull_model(hub.repo, None, tmp_path / "models" / "m", endpoint=hub.endpoint)
    assert list((tmp_path / "models").iterdir()) == []


def test_without_huggingface_hub_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelUnavailable, match=r"memsvc\[hub\]"):
        pull_model("owner/tiny", None, tmp_path / "m")
