"""skill.yaml: from text to a checked skill, with every problem named by line and column.

Purpose: reads the text as YAML events into nodes that know their place, then checks names, limits, and that steps and
references use what is declared. All problems are collected, so that an author fixes them in one go.

    name: deploy-service
    description: Rolls a service out.
    trigger: When somebody asks to deploy a service.
    version: 1.2.0
    parameters:
      - name: env
        description: Where to.
        default: staging
        required: true
    memory_refs:
      - parameter: env
        subject: deploy.environment      # or query: which environment ...; type: preference
    steps:
      - Check that {env} is healthy.

`{name}` in a step stands for a parameter; `{{name}}` and `${name}` are left as they are.

Threading: pure functions.

Rejected: yaml.safe_load (values without places, no sight of duplicate keys, aliases that multiply); tags and aliases (a
skill needs neither, and both are ways to make a small text large); YAML 1.1's `yes`, `on` and base-60 numbers (values
are read as JSON would read them, everything else is text).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import yaml

from memsvc.errors import InvalidArgument, LimitExceeded
from memsvc.memory.drafts import SUBJECT_MAX_CHARS
from memsvc.model import MemoryType

SOURCE_MAX_BYTES = 65_536
DEPTH_MAX = 8
NODES_MAX = 4096
NAME_MAX_CHARS = 64
TEXT_MAX_CHARS = 1024
STEP_MAX_CHARS = 2048
LABEL_MAX_CHARS = 64
STEPS_MAX = 100
PARAMETERS_MAX = 64
FIELD = "source"
_PROBLEM_CHARS_MAX = 2000  # of all problems in an error: the transport bounds what it carries beside a status
_SHOWN_CHARS = 40

KEYS = ("name", "description", "trigger", "steps", "parameters", "memory_refs", "version")
_REQUIRED = ("name", "description", "trigger", "steps")
_PARAMETER_KEYS = ("name", "description", "default", "required")
_REF_KEYS = ("parameter", "subject", "query", "type")
_TYPES = {kind.name.lower(): kind for kind in MemoryType}
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
PLACEHOLDER = re.compile(r"(?<![{$])\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")


class Parameter(msgspec.Struct, frozen=True):
    """A parameter; `default` None: there is none."""

    name: str
    description: str = ""
    default: Any = None
    required: bool = False


class MemoryRef(msgspec.Struct, frozen=True):
    """Where a parameter's value comes from: the memory or fact of this subject, else what the query finds."""

    parameter: str
    subject: str = ""
    query: str = ""
    type: MemoryType | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A checked skill.yaml."""

    name: str
    description: str
    trigger: str
    steps: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    memory_refs: tuple[MemoryRef, ...] = ()
    label: str = ""


class _Node(NamedTuple):
    """A scalar, a list or a mapping (as pairs), and where it begins; lines and columns count from 1."""

    line: int
    column: int
    value: str | list[Any] | tuple[tuple[Any, Any], ...]
    plain: bool = False


def parse(source: str) -> Document:
    """The skill of a skill.yaml. Raises InvalidArgument naming all problems, LimitExceeded for a text that is too long;
    `field` is "source".
    """
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > SOURCE_MAX_BYTES:
        raise LimitExceeded(
            f"skill.yaml has {size} bytes, the limit is {SOURCE_MAX_BYTES}", field=FIELD, limit=str(SOURCE_MAX_BYTES)
        )
    return _Reader().document(_nodes(source))


# -- YAML ----------------------------------------------------------------------------------------------------------


def _refuse(line: int, column: int, what: str) -> InvalidArgument:
    return InvalidArgument(f"line {line}, column {column}: {what}", field=FIELD)


def _nodes(source: str) -> _Node:
    """The one document as nodes. Raises InvalidArgument for what is not YAML, and for tags, anchors and aliases."""
    loader = None
    try:
        loader = yaml.SafeLoader(source)
        return _Builder().build(_events(loader))
    except yaml.reader.ReaderError as error:
        before = source[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise _refuse(line, column, "a control character or something else that YAML can't hold") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise _refuse(line, column, f"no valid YAML: {_shown(error.problem or str(error.context))}") from error
    except (ValueError, OverflowError) as error:  # PyYAML lets them through for escapes beyond Unicode
        mark = loader.get_mark() if loader is not None else None
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise _refuse(line, column, "no valid YAML: a number or an escape is out of range") from error
    finally:
        if loader is not None:
            loader.dispose()


def _events(loader: yaml.SafeLoader) -> Iterator[Any]:
    while loader.check_event():
        yield loader.get_event()  # type: ignore[no-untyped-call]


class _Builder:
    """Builds nodes from events without recursion, inside the limits."""

    def __init__(self) -> None:
        self._open: list[tuple[Any, list[_Node]]] = []
        self._count = 0
        self._root: _Node | None = None

    def build(self, events: Iterator[Any]) -> _Node:
        documents = 0
        for event in events:
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _refuse(line, column, "a second document; keep one skill a file")
            elif isinstance(event, yaml.AliasEvent):
                raise _refuse(line, column, "aliases (*) are not allowed; write the value out")
            elif isinstance(event, yaml.NodeEvent):
                self._node(event, line, column)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close()
        if self._root is None:
            raise _refuse(1, 1, f"it is empty; a skill needs {', '.join(_REQUIRED)}")
        return self._root

    def _node(self, event: Any, line: int, column: int) -> None:
        self._count += 1
        if self._count > NODES_MAX:
            raise _refuse(line, column, f"more than {NODES_MAX} values and keys")
        if event.anchor is not None:
            raise _refuse(line, column, "anchors (&) are not allowed")
        if event.tag is not None:
            raise _refuse(line, column, "tags (!) are not allowed")
        if isinstance(event, yaml.ScalarEvent):
            self._add(_Node(line, column, event.value, event.style is None))
            return
        if len(self._open) >= DEPTH_MAX:
            raise _refuse(line, column, f"nested deeper than {DEPTH_MAX} levels")
        self._open.append((event, []))

    def _close(self) -> None:
        event, items = self._open.pop()
        value: Any = items
        if isinstance(event, yaml.MappingStartEvent):
            value = tuple(zip(items[::2], items[1::2], strict=True))
        self._add(_Node(event.start_mark.line + 1, event.start_mark.column + 1, value))

    def _add(self, node: _Node) -> None:
        if self._open:
            self._open[-1][1].append(node)
        else:
            self._root = node


# -- checks --------------------------------------------------------------------------------------------------------


class _Reader:
    """Checks the nodes of one document; collects problems with their places."""

    def __init__(self) -> None:
        self._problems: list[tuple[int, int, str]] = []

    def document(self, root: _Node) -> Document:
        top = self._mapping(root, "skill.yaml", KEYS)
        for key in _REQUIRED:
            if key not in top and isinstance(root.value, tuple):
                self._say(root, f"{key} is missing")
        name = self._text(top, "name", "name", NAME_MAX_CHARS)
        if name and not _NAME.fullmatch(name):
            self._say(top["name"], "name must be lower-case words with hyphens, such as deploy-service")
        description = self._text(top, "description", "description", TEXT_MAX_CHARS)
        trigger = self._text(top, "trigger", "trigger", TEXT_MAX_CHARS)
        label = self._text(top, "version", "version", LABEL_MAX_CHARS)
        parameters = self._parameters(top)
        known = [parameter.name for parameter in parameters]
        refs = self._refs(top, known)
        steps = self._steps(top, known)
        self._raise()
        return Document(
            name=name,
            description=description,
            trigger=trigger,
            steps=steps,
            parameters=parameters,
            memory_refs=refs,
            label=label,
        )

    def _say(self, node: _Node, what: str) -> None:
        self._problems.append((node.line, node.column, what))

    def _raise(self) -> None:
        """Raises InvalidArgument with the problems in order of their places, if there are any."""
        if not self._problems:
            return
        lines: list[str] = []
        for line, column, what in sorted(self._problems, key=lambda p: p[:2]):
            lines.append(f"line {line}, column {column}: {what}")
            if sum(map(len, lines)) > _PROBLEM_CHARS_MAX:
                break
        if len(lines) < len(self._problems):
            lines.append(f"and {len(self._problems) - len(lines)} more")
        raise InvalidArgument("\n".join(lines), field=FIELD, problem_count=str(len(self._problems)))

    def _mapping(self, node: _Node, what: str, keys: tuple[str, ...]) -> dict[str, _Node]:
        """The values by key; unknown and double keys are problems."""
        if not isinstance(node.value, tuple):
            self._say(node, f"{what} must be a mapping with the keys {', '.join(keys)}, not {_kind(node)}")
            return {}
        found: dict[str, _Node] = {}
        for key, value in node.value:
            if not isinstance(key.value, str):
                self._say(key, f"a key must be text, not {_kind(key)}")
            elif key.value not in keys:
                self._say(key, f"{what} has no key {_shown(key.value)}; {_nearest(key.value, keys)}")
            elif key.value in found:
                self._say(key, f"{key.value} is there twice; the first is on line {found[key.value].line}")
            else:
                found[key.value] = value
        return found

    def _items(self, top: Mapping[str, _Node], key: str, limit: int) -> list[_Node]:
        node = top.get(key)
        if node is None or _is_null(node):
            return []
        if not isinstance(node.value, list):
            self._say(node, f"{key} must be a list, not {_kind(node)}")
            return []
        if len(node.value) > limit:
            self._say(node, f"{key} has {len(node.value)} entries, the limit is {limit}")
        return node.value[:limit]

    def _text(self, holder: Mapping[str, _Node], key: str, what: str, limit: int) -> str:
        """The text of a key that may be missing; "" then."""
        return self._words(holder[key], what, limit) if key in holder else ""

    def _words(self, node: _Node, what: str, limit: int) -> str:
        if not isinstance(node.value, str):
            hint = "; quote it if it holds a colon and a space" if isinstance(node.value, tuple) else ""
            self._say(node, f"{what} must be text, not {_kind(node)}{hint}")
            return ""
        text = "" if _is_null(node) else node.value.strip()
        if not text:
            self._say(node, f"{what} is empty")
        elif len(text) > limit:
            self._say(node, f"{what} has {len(text)} characters, the limit is {limit}")
        elif _broken(text):
            self._say(node, f"{what} holds half of a surrogate pair")
        else:
            return text
        return ""

    def _steps(self, top: Mapping[str, _Node], known: list[str]) -> tuple[str, ...]:
        nodes = self._items(top, "steps", STEPS_MAX)
        if not nodes and "steps" in top and (_is_null(top["steps"]) or top["steps"].value == []):
            self._say(top["steps"], "steps is empty; a skill needs one at least")
        steps = []
        for i, node in enumerate(nodes):
            steps.append(self._words(node, f"steps[{i}]", STEP_MAX_CHARS))
            for name in dict.fromkeys(PLACEHOLDER.findall(steps[-1])):
                if name not in known:
                    near = difflib.get_close_matches(name, known, 1)
                    hint = f"; did you mean {{{near[0]}}}?" if near else "; write {{...}} for braces that stay"
                    self._say(node, f"steps[{i}] uses {{{_shown(name)}}}, which is not a parameter{hint}")
        return tuple(steps)

    def _parameters(self, top: Mapping[str, _Node]) -> tuple[Parameter, ...]:
        found: dict[str, Parameter] = {}
        for i, node in enumerate(self._items(top, "parameters", PARAMETERS_MAX)):
            what = f"parameters[{i}]"
            keys = self._mapping(node, what, _PARAMETER_KEYS)
            name = self._identifier(node, keys, "name", what)
            if name in found:
                self._say(keys["name"], f"{what}: there is a parameter {name} already")
            parameter = Parameter(
                name,
                self._text(keys, "description", f"{what}.description", TEXT_MAX_CHARS),
                self._value(keys["default"], f"{what}.default") if "default" in keys else None,
                self._flag(keys, "required", f"{what}.required"),
            )
            if name:
                found.setdefault(name, parameter)
        return tuple(found.values())

    def _refs(self, top: Mapping[str, _Node], known: list[str]) -> tuple[MemoryRef, ...]:
        found: dict[str, MemoryRef] = {}
        for i, node in enumerate(self._items(top, "memory_refs", PARAMETERS_MAX)):
            what = f"memory_refs[{i}]"
            keys = self._mapping(node, what, _REF_KEYS)
            name = self._identifier(node, keys, "parameter", what)
            if name and name not in known:
                self._say(keys["parameter"], f"{what} fills {_shown(name)}, no parameter; {_nearest(name, known)}")
            if name in found:
                self._say(keys["parameter"], f"{what}: {name} is filled by another reference already")
            subject = self._text(keys, "subject", f"{what}.subject", SUBJECT_MAX_CHARS)
            query = self._text(keys, "query", f"{what}.query", TEXT_MAX_CHARS)
            if isinstance(node.value, tuple) and not {"subject", "query"} & keys.keys():
                self._say(node, f"{what} needs subject or query")
            kind = self._text(keys, "type", f"{what}.type", LABEL_MAX_CHARS)
            if kind and kind.lower() not in _TYPES:
                self._say(keys["type"], f"{what}.type {_shown(kind)} is unknown; {_nearest(kind, tuple(_TYPES))}")
            if name:
                found.setdefault(name, MemoryRef(name, subject, query, _TYPES.get(kind.lower())))
        return tuple(found.values())

    def _identifier(self, node: _Node, keys: Mapping[str, _Node], key: str, what: str) -> str:
        if key not in keys:
            if isinstance(node.value, tuple):
                self._say(node, f"{what}.{key} is missing")
            return ""
        name = self._text(keys, key, f"{what}.{key}", NAME_MAX_CHARS)
        if name and not _IDENTIFIER.fullmatch(name):
            self._say(keys[key], f"{what}.{key} must be letters, digits and underscores, not a digit first")
            return ""
        return name

    def _flag(self, keys: Mapping[str, _Node], key: str, what: str) -> bool:
        value = _scalar(keys[key]) if key in keys and isinstance(keys[key].value, str) else None
        if key in keys and not isinstance(value, bool):
            self._say(keys[key], f"{what} must be true or false")
        return value is True

    def _value(self, node: _Node, what: str) -> Any:
        """A default: text, number, true, false, null, lists and mappings of them; the builder bounds the depth."""
        if isinstance(node.value, list):
            return [self._value(item, what) for item in node.value]
        if isinstance(node.value, tuple):
            pairs: dict[str, Any] = {}
            for key, value in node.value:
                if not isinstance(key.value, str) or key.value in pairs or _broken(key.value):
                    self._say(key, f"{what}: keys must be text, each once")
                else:
                    pairs[key.value] = self._value(value, what)
            return pairs
        if len(node.value) > STEP_MAX_CHARS or _broken(node.value):
            self._say(node, f"{what} must be text of at most {STEP_MAX_CHARS} characters")
            return None
        return _scalar(node)


def _broken(text: str) -> bool:
    """Whether escapes made half a surrogate pair, which is no Unicode text."""
    return any("\ud800" <= char <= "\udfff" for char in text)


def _is_null(node: _Node) -> bool:
    return node.plain and node.value in ("", "~", "null")


def _scalar(node: _Node) -> Any:
    """A scalar as JSON would read it; quoted ones are text."""
    text = node.value
    assert isinstance(text, str), "callers look before"
    if not node.plain:
        return text
    if _is_null(node):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        return number if abs(number) < float("inf") else text
    return text


def _kind(node: _Node) -> str:
    if isinstance(node.value, tuple):
        return "a mapping"
    if isinstance(node.value, list):
        return "a list"
    return "nothing" if _is_null(node) else "text"


def _nearest(word: str, known: tuple[str, ...] | list[str]) -> str:
    near = difflib.get_close_matches(word[:NAME_MAX_CHARS].lower(), known, 1)
    if near:
        return f"did you mean {near[0]}?"
    return f"the known ones are {', '.join(known)[:200]}" if known else "there are none"


def _shown(text: str) -> str:
    """A piece of the author's text for an error: short, one line, printable."""
    clean = "".join(char if char.isprintable() else " " for char in text[: _SHOWN_CHARS + 1])
    return clean if len(text) <= _SHOWN_CHARS else f"{clean[:_SHOWN_CHARS]}..."
