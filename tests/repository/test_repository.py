"""The repository keeps its own rules: lint, types, imports, contract, stale stubs, documentation."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsvc import __version__
from memsvc.cli import app
from memsvc.config import ClientSettings, Settings

ROOT = Path(__file__).resolve().parents[2]
BUF = ROOT / ".venv" / "buf" / "node_modules" / ".bin" / "buf"
TOP_LEVEL = {
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "bench",
    "clients",
    "memsvc",
    "proto",
    "pyproject.toml",
    "tests",
}


def run(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


def tool(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_ruff_finds_nothing() -> None:
    run(tool("ruff"), "check", ".")


def test_code_is_formatted() -> None:
    run(tool("ruff"), "format", "--check", ".")


def test_mypy_strict() -> None:
    run(tool("mypy"))


def test_import_rules() -> None:
    run(tool("lint-imports"))


def test_stubs_are_fresh(tmp_path: Path) -> None:
    run(sys.executable, "proto/generate.py", "--out", str(tmp_path))
    for folder in ("memsvc/v1", "clients/python/memsvc_client/_proto"):
        made = sorted(p.name for p in (tmp_path / folder).glob("*.py*"))
        _, different, missing = filecmp.cmpfiles(tmp_path / folder, ROOT / folder, made, shallow=False)
        assert not different, f"{folder}: run `make proto`"
        assert not missing, f"{folder}: run `make proto`"


@pytest.fixture
def buf() -> str:
    if not BUF.exists():
        if os.environ.get("CI"):
            pytest.fail("buf is missing in CI")
        pytest.skip("buf is not installed: npm is missing (see make test)")
    return str(BUF)


def test_buf_lint(buf: str) -> None:
    run(buf, "lint", cwd=ROOT / "proto")


def test_buf_breaking(buf: str) -> None:
    run(buf, "breaking", "--against", "baseline.binpb", cwd=ROOT / "proto")


def test_top_level_entries() -> None:
    assert {name.split("/")[0] for name in tracked()} <= TOP_LEVEL


def test_nothing_names_the_workplace() -> None:
    for name in tracked():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".proto", ".sh"} and path != Path(__file__):
            assert "/work/" not in path.read_text("utf-8"), name


def test_versions_agree() -> None:
    import memsvc_client

    assert memsvc_client.__version__ == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_make_targets_have_help() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    for target in phony.group(1).split():
        assert re.search(rf"^{target}:.*## \S", text, re.MULTILINE), target


def test_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in app.registered_commands:
        name = command.name or command.callback.__name__.replace("_", "-")  # type: ignore[union-attr]
        assert f"`{name}" in readme or f"memsvc {name}" in readme, name
    for group in app.registered_groups:
        assert f"`memsvc {group.name} " in readme, group.name


def test_readme_names_every_setting() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for settings in (Settings, ClientSettings):
        for name in settings.model_fields:
            assert f"MEMSVC_{name.upper()}" in readme, name


@pytest.mark.skipif(shutil.which("sh") is None, reason="no POSIX shell")
def test_bootstrap_is_valid_shell() -> None:
    run("sh", "-n", ".ci/bootstrap")
    run("bash", "-n", ".ci/run")
