"""The directory of a skill: out and back byte for byte, and nothing outside of it is read or written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memsvc.cli.skill_files import left_behind, read_skill, write_skill
from memsvc.errors import InvalidArgument, MemsvcError

GOOD = "name: deploy\ndescription: 发布服务 👨‍👩‍👧\ntrigger: on request\nsteps:\n  - Check it.\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "deploy"
    made.mkdir()
    return made


def refused(directory: Path) -> str:
    with pytest.raises(InvalidArgument) as caught:
        read_skill(directory)
    return caught.value.message


@pytest.mark.parametrize(
    "source",
    [GOOD, GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD, GOOD.removesuffix("\n"), GOOD + "\n\n# 结束\n"],
    ids=["plain", "crlf", "bom", "no-last-line-end", "comment"],
)
def test_a_skill_goes_out_and_comes_back_byte_for_byte(directory, tmp_path, source):
    (directory / "skill.yaml").write_bytes(source.encode())
    read = read_skill(directory)
    target = tmp_path / "there" / "deploy"
    assert write_skill(target, read, force=False)
    assert (target / "skill.yaml").read_bytes() == source.encode()
    assert os.listdir(target) == ["skill.yaml"]
    assert not write_skill(target, read, force=False)


def test_every_problem_is_told_with_file_line_and_column(directory, capsys):
    file = directory / "skill.yaml"
    file.write_text("name: Deploy It\ndescripton: x\ntrigger: y\nsteps:\n  - use {env}\n")
    assert f"nothing was pushed; mend {file}" in refused(directory)
    told = capsys.readouterr().err
    assert f"{file}: line 1, column 7: name must be lower-case" in told
    assert f"{file}: line 2, column 1: skill.yaml has no key descripton; did you mean description?" in told
    assert f"{file}: line 5, column 5: steps[0] uses {{env}}, which is not a parameter" in told


def test_a_yaml_bomb_is_refused_on_its_first_anchor(directory, capsys):
    layers = [f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]" for i in range(8)]
    (directory / "skill.yaml").write_text("a: &a [lol, lol]\n" + "\n".join(layers))
    refused(directory)
    assert "line 1, column 4: anchors (&) are not allowed" in capsys.readouterr().err


def test_what_is_no_skill_directory_is_refused_naming_the_fix(directory, tmp_path):
    assert "has no skill.yaml; write one" in refused(directory)
    (directory / "skill.yml").write_text(GOOD)
    assert "rename skill.yml to it" in refused(directory)
    assert "there is no directory" in refused(tmp_path / "none")
    assert f"is a file; name its directory: memsvc skills push {directory}" in refused(directory / "skill.yml")
    (directory / "skill.yaml").mkdir()
    assert "is not a file" in refused(directory)


def test_what_is_not_text_or_too_long_is_refused(directory):
    file = directory / "skill.yaml"
    file.write_bytes(GOOD.replace("发布服务", "").encode() + "版本: x\n".encode("gbk"))
    assert "line 6: not UTF-8" in refused(directory)
    file.write_bytes(b"# " + b"x" * 65_536)
    assert "has 65538 bytes, the limit is 65536" in refused(directory)


def test_a_link_out_of_the_directory_is_neither_read_nor_written(directory, tmp_path, capsys):
    secret = tmp_path / "secret"
    secret.write_text("the key is swordfish")
    (directory / "skill.yaml").symlink_to(secret)
    assert "is a link out of the directory" in refused(directory)
    with pytest.raises(InvalidArgument, match="is a link out of the directory"):
        write_skill(directory, GOOD, force=True)
    assert secret.read_text() == "the key is swordfish"
    assert "swordfish" not in capsys.readouterr().err


def test_a_link_inside_of_the_directory_and_to_it_is_fine(directory, tmp_path):
    (directory / "real.yaml").write_text(GOOD)
    (directory / "skill.yaml").symlink_to("real.yaml")
    (tmp_path / "alias").symlink_to(directory)
    assert read_skill(tmp_path / "alias") == GOOD


def test_an_edited_file_is_overwritten_by_force_only(directory):
    file = directory / "skill.yaml"
    file.write_text("my edits")
    with pytest.raises(InvalidArgument, match="--force overwrites"):
        write_skill(directory, GOOD, force=False)
    assert file.read_text() == "my edits"
    assert write_skill(directory, GOOD, force=True)
    assert file.read_text() == GOOD


def test_a_directory_that_can_not_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MemsvcError, match="can't be written"):
        write_skill(tmp_path / "file" / "deploy", GOOD, force=False)


def test_what_a_push_leaves_behind_is_named(directory):
    (directory / "skill.yaml").write_text(GOOD)
    (directory / ".git").mkdir()
    assert left_behind(directory) == ""
    for name in "gfedcba":
        (directory / name).write_text("")
    assert left_behind(directory) == "not pushed: a, b, c, d, e, ... (a skill is its skill.yaml)"
