r"""Ground of the secrets filter: kinds, findings, folded text, and what a value looks like.

Purpose: every detector reads the same folded text, in which full-width and other decorated letters and digits are
plain ones and invisible characters are gone; positions lead back to the caller's text. The judgements that more than
one detector needs (is it a placeholder, is it random) live here too.

Threading: pure functions over tables that are built at import and never change.

Rejected: unicodedata.normalize (it changes lengths, so positions would be lost); `\b` and `\w` (a Chinese character
is a word character to `re`, so a key glued to it has no boundary there).
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from itertools import pairwise

import msgspec


class Kind(StrEnum):
    """What sort of secret it is; the values are part of the contract (policies, errors, placeholders)."""

    API_KEY = "api_key"
    PRIVATE_KEY = "private_key"
    JWT = "jwt"
    PASSWORD = "password"  # noqa: S105  the name of a kind
    PHONE = "phone"
    NATIONAL_ID = "national_id"
    BANK_CARD = "bank_card"


class Finding(msgspec.Struct, frozen=True):
    """A secret at text[start:end], in characters of the caller's text. It never holds the value."""

    kind: Kind
    start: int
    end: int


class Folded(msgspec.Struct, frozen=True):
    """Text made plain for matching. `lower` is as long as `text`; `origin` maps positions to the caller's text (with
    one more entry for its end), None where they are the same.
    """

    text: str
    lower: str
    origin: list[int] | None

    def finding(self, kind: Kind, start: int, end: int) -> Finding:
        """The finding for the folded span [start, end), which must not be empty."""
        if self.origin is None:
            return Finding(kind, start, end)
        return Finding(kind, self.origin[start], self.origin[end - 1] + 1)


# A redacted value stands in folded text as one character that no detector takes for part of a value.
MARK = "\ue000"
PLACEHOLDER_OPEN = "[REDACTED:"
_SENTENCE_MARKS = frozenset("，：；！？（）")  # detectors know these; folding them would cost time on all Chinese text
_DASHES = "‐‑‒–—―−﹣－"
_DIGIT_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xE50)
_NUMERALS = str.maketrans("零〇一二三四五六七八九幺", "001234567891")


def _fold_table() -> dict[int, str]:
    table = {}
    spans = ((0x2070, 0x20A0), (0x2460, 0x2500), (0xFF01, 0xFF5F), (0xFFE0, 0xFFE7), (0x1D400, 0x1D800))
    for start, end in spans:
        for code in range(start, end):
            plain = unicodedata.normalize("NFKC", chr(code))
            if len(plain) == 1 and plain != chr(code) and chr(code) not in _SENTENCE_MARKS:
                table[code] = plain
    for zero in _DIGIT_ZEROS:
        table.update({zero + digit: str(digit) for digit in range(10)})
    table.update({ord(dash): "-" for dash in _DASHES})
    table.update(dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "))
    return table


_FOLD = _fold_table()
# Ranges around the table's keys: `re` tests a short list of ranges fast, a list of 1,500 characters slowly.
_ODD = re.compile(
    "[\u00a0\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59\u2000-\u200a\u2010-\u2015"
    "\u202f\u205f\u2070-\u209f\u2212\u2460-\u24ff\u3000\ufe63\uff02-\uff07\uff0a\uff0b\uff0d-\uff19\uff1c-\uff1e"
    "\uff20-\uff5e\uffe0-\uffe6\U0001d400-\U0001d7ff]"
)
_DROPPED = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]+|\\[REDACTED:[a-z_]{1,32}\\]"
)
_NUMERAL_RUN = re.compile("[零〇一二三四五六七八九幺]{7,}")


def fold(text: str) -> Folded:
    """The text made plain. Costs a scan for plain text; builds a map of positions only when something is dropped."""
    if text.isascii():
        if PLACEHOLDER_OPEN not in text:
            return Folded(text, text.lower(), None)
        plain = text
    else:
        plain = text.translate(_FOLD) if _ODD.search(text) else text
        plain = _NUMERAL_RUN.sub(lambda run: run[0].translate(_NUMERALS), plain)
    origin = None
    if _DROPPED.search(plain):
        plain, origin = _without_dropped(plain)
    return Folded(plain, _lower(plain), origin)


def _without_dropped(text: str) -> tuple[str, list[int]]:
    pieces: list[str] = []
    origin: list[int] = []
    last = 0
    for dropped in _DROPPED.finditer(text):
        start, end = dropped.span()
        pieces.append(text[last:start])
        origin.extend(range(last, start))
        if text[start] == "[":
            pieces.append(MARK)
            origin.append(start)
        last = end
    pieces.append(text[last:])
    origin.extend(range(last, len(text) + 1))
    return "".join(pieces), origin


def _lower(text: str) -> str:
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)  # some letters grow, as the dotted I does


_MASKED = re.compile(
    r"""^[*•●·.xX#_?…\-]+$ | \*{3} | [xX]{4} | \.{3} | … | •{2} | ●{2} | ^[<{\[(%] | ^\$[A-Za-z_{(] | ^\\?\$\{
    | ^(?:op|vault|ssm|secretsmanager|keyring|env|file|sops|arn|ref|gcp|azure)(?:://|:)
    | ^!  (?:vault|secret) | ^ENC[\[(]
    | ^@(?:env|secret|ref) | \{\{ | \$\{ | ^(?:sha1|sha256|sha512|md5)[:\-] """,
    re.VERBOSE,
)
_SAID = re.compile(
    r"example|placeholder|redacted|changeme|change[-_]me|dummy|your[-_]?|replace[-_]?(?:me|with)|insert[-_]|todo|"
    r"masked|hidden|sample|foobar|my[-_](?:key|token|secret|pass)|some[-_](?:key|token|secret|pass)|"
    r"(?:key|token|secret)[-_]?here|goes[-_]?here|not[-_]a[-_]real|fake[-_]"
)


def is_placeholder(value: str) -> bool:
    """Whether the value stands for a secret (`****`, `<key>`, `$TOKEN`, `your-key`) and isn't one."""
    return MARK in value or _MASKED.search(value) is not None or _SAID.search(value.lower()) is not None


def is_orderly(value: str) -> bool:
    """Whether the value is typed by pattern (`abcdefgh`, `00000000`, `12341234`): half of its steps are 0 or 1, or it
    uses few different characters.
    """
    steps = sum(0 <= ord(b) - ord(a) <= 1 for a, b in pairwise(value))
    return 2 * steps > len(value) or len(set(value)) < min(8, 1 + len(value) // 3)


_CLASSES = str.maketrans(
    {chr(c): "d" if chr(c).isdigit() else "u" if chr(c).isupper() else "l" for c in range(128) if chr(c).isalnum()}
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX = re.compile(r"(?:[0-9a-f]+|[0-9A-F]+)")


def is_uuid(value: str) -> bool:
    """Whether the value is a UUID with dashes."""
    return _UUID.fullmatch(value) is not None


def is_hex(value: str) -> bool:
    """Whether the value is hexadecimal digits of one case."""
    return _HEX.fullmatch(value) is not None


def looks_random(value: str, share: float = 0.15) -> bool:
    """Whether a machine made the value: letters and digits mixed, classes changing at `share` of the positions or
    more (words joined by dashes change seldom), and no pattern.
    """
    classes = value.translate(_CLASSES)
    if "d" not in classes or not ("l" in classes or "u" in classes):
        mixed = "l" in classes and "u" in classes and len(value) >= 20
        if not mixed:
            return False
    changes = sum(1 for a, b in pairwise(classes) if a != b and a in "dlu" and b in "dlu")
    return changes >= share * len(value) and not is_orderly(value) and not is_placeholder(value)


def starts_freely(text: str, start: int) -> bool:
    r"""Whether a value may start here: behind no ASCII letter or digit, save those of an escape (`\n`, `%20`)."""
    before = text[max(0, start - 3) : start]
    if not before or not (before[-1].isascii() and before[-1].isalnum()):
        return True
    return before[-2:] in ("\\n", "\\r", "\\t") or (len(before) == 3 and before[0] == "%")
