"""The secrets filter: what must not reach the store is found, and refused or redacted.

Purpose: `find` for one text; `apply` for everything that a caller wants stored (content, tags, subject, metadata of
any depth, tool calls), under a policy per kind. The detectors live beside this file: `keys` (by shape),
`words` (by label), `numbers` (by check digit).

Threading: pure functions; policies are immutable.

Rejected: dropping a secret silently (the caller would believe that it is stored); a hash of the value in the error (a
phone number's hash is a phone number); redaction by stars (nobody could tell what was there).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from memsvc.errors import ConfigInvalid, SensitiveContent
from memsvc.memory.sensitive.keys import find_keys
from memsvc.memory.sensitive.numbers import find_numbers
from memsvc.memory.sensitive.text import PLACEHOLDER_OPEN, Finding, Kind, fold
from memsvc.memory.sensitive.words import find_words

# Where detectors disagree about the same characters, the first of these that is there names them.
_SPECIFIC_FIRST = (
    Kind.PRIVATE_KEY,
    Kind.JWT,
    Kind.NATIONAL_ID,
    Kind.BANK_CARD,
    Kind.PHONE,
    Kind.API_KEY,
    Kind.PASSWORD,
)
_RANK = {kind: rank for rank, kind in enumerate(_SPECIFIC_FIRST)}
_POSITIONS_MAX = 20  # in an error: the transport bounds what it carries beside a status
_PASSES_MAX = 16
_EXACT_FLOAT = 2**53


class Action(StrEnum):
    """What is done with a secret of a kind."""

    REJECT = "reject"
    REDACT = "redact"
    ALLOW = "allow"


class Policy(msgspec.Struct, frozen=True):
    """An action per kind; a kind that is not named is rejected."""

    actions: tuple[tuple[Kind, Action], ...] = ()

    @classmethod
    def parse(cls, value: str | bytes | Mapping[str, Any]) -> Policy:
        """A policy from `{"phone": "redact", ...}`, as JSON or as a mapping; empty text is the default policy.

        Raises ConfigInvalid on anything else: a policy that can't be read must not let secrets pass.
        """
        return cls(tuple(sorted((_kind(name), _action(name, action)) for name, action in _pairs_of(value))))

    def action(self, kind: Kind) -> Action:
        """What is done with secrets of the kind."""
        return next((action for named, action in self.actions if named == kind), Action.REJECT)

    def refusing_by(self, action: Action) -> Policy:
        """The policy with one action for all kinds that it does not allow."""
        return _refusing(self, action)


@lru_cache(1024)
def _refusing(policy: Policy, action: Action) -> Policy:
    return Policy(tuple((kind, Action.ALLOW if policy.action(kind) == Action.ALLOW else action) for kind in Kind))


def _pairs_of(value: str | bytes | Mapping[str, Any]) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, str | bytes):
        raise ConfigInvalid('the sensitive policy must be JSON such as {"phone": "redact"} or a mapping')
    if not value.strip():
        return []
    try:
        pairs = json.loads(value, object_pairs_hook=tuple)  # objects become tuples, arrays lists
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid('the sensitive policy is not JSON; write one such as {"phone": "redact"}') from error
    if not isinstance(pairs, tuple):
        raise ConfigInvalid('the sensitive policy must be one JSON object such as {"phone": "redact"}')
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ConfigInvalid("the sensitive policy names a kind twice; keep one of them")
    return list(pairs)


def _kind(name: object) -> Kind:
    if isinstance(name, str) and name in Kind._value2member_map_:
        return Kind(name)
    raise ConfigInvalid(f"the sensitive policy names an unknown kind; the kinds are {', '.join(Kind)}")


def _action(name: object, action: object) -> Action:
    if isinstance(action, str) and action in Action._value2member_map_:
        return Action(action)
    raise ConfigInvalid(f"the sensitive policy for {name} must be one of {', '.join(Action)}")


def find(text: str) -> list[Finding]:
    """The secrets of a text, sorted, without overlaps. Linear in the text's length; positions are in characters."""
    folded = fold(text)
    found = [*find_keys(folded), *find_words(folded), *find_numbers(folded)]
    return _merged(found) if len(found) > 1 else found


def _merged(found: list[Finding]) -> list[Finding]:
    """One finding per cluster that overlaps: all of its characters, under its most specific kind."""
    merged: list[Finding] = []
    for finding in sorted(found, key=lambda f: (f.start, f.end)):
        last = merged[-1] if merged else None
        if last is None or finding.start >= last.end:
            merged.append(finding)
            continue
        kind = min(last.kind, finding.kind, key=_RANK.__getitem__)
        merged[-1] = Finding(kind, last.start, max(last.end, finding.end))
    return merged


def placeholder(kind: Kind) -> str:
    """What stands for a redacted value."""
    return f"{PLACEHOLDER_OPEN}{kind}]"


def redact(text: str, kinds: frozenset[Kind] = frozenset(Kind)) -> str:
    """The text with every secret of the kinds replaced by its placeholder; redacting it again changes nothing.

    Raises SensitiveContent if secrets go on appearing (each redaction made a new one: the text was built to do so).
    """
    for _ in range(_PASSES_MAX):
        found = [finding for finding in find(text) if finding.kind in kinds]
        if not found:
            return text
        text = _replaced(text, found)
    raise _endless()


def _replaced(text: str, found: list[Finding]) -> str:
    pieces, last = [], 0
    for finding in found:
        pieces += [text[last : finding.start], placeholder(finding.kind)]
        last = finding.end
    return "".join([*pieces, text[last:]])


def _endless() -> SensitiveContent:
    return SensitiveContent("the content can't be redacted; remove its secrets")


def apply(value: Any, policy: Policy, path: str) -> Any:
    """The value with secrets redacted as the policy says; strings, numbers, lists, tuples and mappings of any depth,
    keys of mappings too. A number that is a secret becomes a string.

    Raises SensitiveContent when the policy rejects a kind that is there: `field` is the first place, metadata `kinds`
    and `positions` (`path:start-end` in characters, at most _POSITIONS_MAX) list them; no value is named.
    """
    walk = _Walk(policy)
    clean = walk.clean(value, path, "")
    if not walk.rejected:
        return clean
    kinds = sorted({finding.kind for _, finding in walk.rejected})
    listed = [f"{place}:{f.start}-{f.end}" for place, f in walk.rejected[:_POSITIONS_MAX]]
    raise SensitiveContent(
        f"{path} holds what must not be stored ({', '.join(kinds)})"
        "; remove it, or set the policy of the kind to redact",
        field=walk.rejected[0][0],
        kinds=",".join(kinds),
        positions=",".join(listed),
        count=str(len(walk.rejected)),
    )


class _Walk:
    """One pass over a value; collects what is rejected. Lives within one call of `apply`."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._redacts = frozenset(kind for kind in Kind if policy.action(kind) == Action.REDACT)
        self.rejected: list[tuple[str, Finding]] = []

    def clean(self, value: Any, path: str, label: str) -> Any:
        if isinstance(value, str):
            return self._text(value, path, label)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return self._number(value, path, label)
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, list | tuple):
            items = [self.clean(item, f"{path}[{i}]", label) for i, item in enumerate(value)]
            return tuple(items) if isinstance(value, tuple) else items
        raise TypeError(f"{path} holds a {type(value).__name__}, which can't be checked for secrets")

    def _mapping(self, value: Mapping[Any, Any], path: str) -> dict[Any, Any]:
        clean: dict[Any, Any] = {}
        for key, item in value.items():
            shown = redact(str(key))
            plain = self.clean(key, f"{path}.{shown}", "")
            while plain in clean:
                plain = f"{plain}_"  # two keys with the same placeholder: both items stay
            clean[plain] = self.clean(item, f"{path}.{shown}", str(key))
        return clean

    def _number(self, value: int | float, path: str, label: str) -> Any:
        if isinstance(value, float):
            if not value.is_integer() or abs(value) > _EXACT_FLOAT:
                return value
            value_text = str(int(value))
        else:
            value_text = str(value)
        clean = self._text(value_text, path, label)
        return value if clean == value_text else clean

    def _text(self, text: str, path: str, label: str) -> str:
        for _ in range(_PASSES_MAX):
            found = _find_labelled(text, label)
            kept = [f for f in found if self._policy.action(f.kind) == Action.REJECT]
            self.rejected += [(path, f) for f in kept]
            chosen = [f for f in found if f.kind in self._redacts]
            if kept or not chosen:
                return text
            text = _replaced(text, chosen)
        raise _endless()


def _find_labelled(text: str, label: str) -> list[Finding]:
    """The secrets of a mapping's item: its key says what it is (`password`), or what it isn't (`order_id`)."""
    if not label:
        return find(text)
    quote = next((mark for mark in "\"'`" if mark not in text), "")
    head = f'"{label}": {quote}'
    shift = len(head)
    found = [f for f in find(f"{head}{text}{quote}") if f.end > shift]
    cut = (Finding(f.kind, max(0, f.start - shift), min(len(text), f.end - shift)) for f in found)
    return [f for f in cut if f.end > f.start]
