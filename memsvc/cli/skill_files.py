"""The directory of a skill: reading skill.yaml for a push, writing it back for a pull.

Purpose: the text goes out and comes back byte for byte, so line ends and a byte order mark stay. It is checked by the
server's own parser before anything is sent; every problem is told with file and line.

Threading: one command a process.

Rejected: a parser of the command line's own (two truths about what a skill is); following a link out of the directory
(a skill of somebody else could send any file of this machine to the server, or overwrite one).
"""

from __future__ import annotations

import os
from pathlib import Path

from memsvc.cli.common import err, say
from memsvc.errors import InvalidArgument, MemsvcError

FILE = "skill.yaml"
FILES_NAMED_MAX = 5


def read_skill(directory: Path) -> str:
    """The checked text of DIR/skill.yaml. Raises InvalidArgument naming the fix; problems of the text are told first,
    a line each.
    """
    from memsvc.memory.skills.document import SOURCE_MAX_BYTES, parse

    file = _existing(directory)
    try:
        raw = file.read_bytes() if file.stat().st_size <= SOURCE_MAX_BYTES else None
    except OSError as error:
        raise InvalidArgument(f"{file} can't be read: {error.strerror}") from error
    if raw is None:
        raise InvalidArgument(f"{file} has {file.stat().st_size} bytes, the limit is {SOURCE_MAX_BYTES}")
    try:
        source = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidArgument(f"{file}: line {line}: not UTF-8; save the file as UTF-8") from error
    try:
        parse(source)
    except InvalidArgument as error:
        for problem in error.message.splitlines():
            say(err, f"{file}: {problem}")
        raise InvalidArgument(f"nothing was pushed; mend {file} and push again") from error
    return source


def _existing(directory: Path) -> Path:
    """DIR/skill.yaml, which is a file inside of DIR."""
    if directory.is_file():
        parent = directory.parent
        raise InvalidArgument(f"{directory} is a file; name its directory: memsvc skills push {parent}")
    if not directory.is_dir():
        raise InvalidArgument(f"there is no directory {directory}")
    file = directory / FILE
    if not os.path.lexists(file):
        near = next((name for name in ("skill.yml", "SKILL.yaml", "Skill.yaml") if (directory / name).exists()), "")
        fix = f"rename {near} to it" if near else "write one; memsvc skills push --help shows its form"
        raise InvalidArgument(f"{directory} has no {FILE}; {fix}")
    if not file.resolve().is_relative_to(directory.resolve()):
        raise InvalidArgument(f"{file} is a link out of the directory; copy the file into it")
    if not file.is_file():
        raise InvalidArgument(f"{file} is not a file")
    return file


def left_behind(directory: Path) -> str:
    """A warning about what else the directory holds, which a push does not send; "" for nothing."""
    others = sorted(path.name for path in directory.iterdir() if path.name != FILE and not path.name.startswith("."))
    if not others:
        return ""
    names = ", ".join(others[:FILES_NAMED_MAX]) + (", ..." if len(others) > FILES_NAMED_MAX else "")
    return f"not pushed: {names} (a skill is its {FILE})"


def write_skill(directory: Path, source: str, *, force: bool) -> bool:
    """Writes DIR/skill.yaml, whole or not at all; False if it held the same bytes already. Raises InvalidArgument for a
    file that differs unless `force`, and for a link out of the directory; MemsvcError if it can't be written.
    """
    file, raw = directory / FILE, source.encode()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(file):
            if not file.resolve().is_relative_to(directory.resolve()):
                raise InvalidArgument(f"{file} is a link out of the directory; remove it and pull again")
            if file.read_bytes() == raw:
                return False
            if not force:
                raise InvalidArgument(f"{file} differs from the stored skill; --force overwrites it")
        _replace(file, raw)
    except OSError as error:
        raise MemsvcError(f"{error.filename or file} can't be written: {error.strerror}") from error
    return True


def _replace(file: Path, raw: bytes) -> None:
    """A new file in place of the old one, in one step."""
    temporary = file.with_name(f".{FILE}.{os.getpid()}")
    try:
        with temporary.open("xb") as opened:
            opened.write(raw)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
