"""Commands about embedding models: model build, model pull.

Purpose: fetch or build a model ahead of the first start.

Threading: one command a process.

Rejected: pulling a model inside `serve` (a start must not depend on a hub).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memsvc.cli.common import Bar, app, examples, out, progress
from memsvc.config import Settings, default_model_cache_dir

model_app = typer.Typer(help="Embedding models: build the default one, or pull one from a hub.", no_args_is_help=True)
app.add_typer(model_app, name="model")


@model_app.command("build", epilog=examples("memsvc model build"))
def model_build() -> None:
    """Build the default model now instead of at the first start."""
    from memsvc.retrieval.default_model import ensure_default_model

    with progress() as display:
        path = ensure_default_model(default_model_cache_dir(), Bar(display))
    out.print(str(path), highlight=False)


@model_app.command("pull", epilog=examples("memsvc model pull intfloat/multilingual-e5-small"))
def model_pull(
    repo: Annotated[str, typer.Argument(help="REPO or REPO@REVISION on the Hugging Face hub, with an ONNX export.")],
    directory: Annotated[Path | None, typer.Option(help="Where to put it; below the cache directory if unset.")] = None,
) -> None:
    """Fetch an embedding model (needs the extra `hub`). Serve with it: `memsvc serve --model DIR`."""
    from memsvc.retrieval.model_files import pull_model

    name, _, revision = repo.partition("@")
    target = directory or default_model_cache_dir() / name.replace("/", "--")
    with progress() as display:
        endpoint = Settings().hf_endpoint
        path = pull_model(name, revision or None, target, endpoint=endpoint, progress=Bar(display))
    out.print(str(path), highlight=False)
