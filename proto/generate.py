"""Generates the Python stubs of the contract: for the server into memsvc/v1, for the client into its `_proto`.

Usage: `python proto/generate.py [--out DIR]`. With --out the tree is written below DIR instead (the test for stale
stubs compares). protoc writes absolute imports by proto path; the client's copy must not need the server's package,
so its imports are rewritten to be relative.

Rejected: buf generate with remote plugins (needs a network), checking nothing in (an install would need protoc).
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTO_DIR = ROOT / "proto"
SERVER_DIR = Path("memsvc/v1")
CLIENT_DIR = Path("clients/python/memsvc_client/_proto")
CLIENT_PROTOS = (
    "admin_service",
    "audit_service",
    "memory",
    "memory_service",
    "context",
    "context_service",
    "erasure_service",
    "event_service",
    "fact_service",
    "permanent_service",
    "session_service",
    "skill_service",
)


def compile_protos(out: Path) -> None:
    """Runs protoc for every proto of the contract; raises RuntimeError when it fails."""
    protos = sorted(str(path) for path in (PROTO_DIR / "memsvc" / "v1").glob("*.proto"))
    include = str(files("grpc_tools") / "_proto")
    arguments = ["protoc", f"-I{PROTO_DIR}", f"-I{include}", f"--python_out={out}", f"--pyi_out={out}"]
    if protoc.main([*arguments, f"--grpc_python_out={out}", *protos]) != 0:
        raise RuntimeError("protoc failed; its messages are above")


def write_package(source: Path, target: Path, stems: tuple[str, ...] | None, relative: bool) -> None:
    """Copies generated modules into the package folder `target`, with relative imports if asked."""
    target.mkdir(parents=True, exist_ok=True)
    (target / "__init__.py").write_text('"""Generated from proto/ by `make proto`; do not edit."""\n')
    for path in sorted(source.glob("*_pb2*")):
        if stems is not None and path.name.split("_pb2")[0] not in stems:
            continue
        text = path.read_text()
        if relative:
            text = re.sub(r"^from memsvc\.v1 import ", "from . import ", text, flags=re.MULTILINE)
        (target / path.name).write_text(text)


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT, help="write the tree below this directory")
    out = parser.parse_args().out
    scratch = Path(tempfile.mkdtemp(prefix="memsvc-proto-"))
    try:
        compile_protos(scratch)
        write_package(scratch / "memsvc" / "v1", out / SERVER_DIR, None, relative=False)
        write_package(scratch / "memsvc" / "v1", out / CLIENT_DIR, CLIENT_PROTOS, relative=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
