"""National ids: check digits where a country has them, and a word beside the number where chance could pass them.

Purpose: a Chinese id is known by itself (date and check digit leave one number in 100,000); the ids of other countries
need their name nearby.

Threading: pure functions; python-stdnum's modules are imported on first use, which is safe from any thread.

Rejected: python-stdnum's own check of Chinese ids (it refuses districts that were renamed); ids of companies (they
are public).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from importlib import import_module

from memsvc.memory.sensitive.text import Finding, Folded, Kind, starts_freely

_CN_ID = re.compile(
    r"(?<![0-9])[1-9][0-9]{5}[ \-]?(?:18|19"
    r"|20)[0-9]{2}[ \-]?[01][0-9][ \-]?[0-3][0-9][ \-]?[0-9]{3}[ \-]?[0-9Xx]"
    r"|(?<![0-9])[1-9][0-9]{5}[ \-]?(?:18|19|20)[0-9]{2}[ \-]?[01][0-9][0-3][0-9][ \-]?[0-9]{3}[0-9Xx]"
)
_CN_ID_OLD = re.compile(r"(?<![0-9])[1-9][0-9]{5}[0-9]{2}[01][0-9][0-3][0-9][0-9]{3}(?![0-9Xx])")
_compiled = cache(re.compile)  # on first use: few texts name an id
_EIGHTEEN = re.compile(r"[0-9](?:[ \-]?[0-9]){16}")
_ID_LABELS = tuple(
    """身份 證 证件 居民 护照 passport 通行证 ssn social 社保 社会安全 itin taxpayer national nino ni nhs
    aadha uidai pan income sin tfn tax cpf dni nie nif nir securit sécurit séc insee codice fiscal steuer
    idnr pesel bsn burger personnummer curp 주민 resident rrn マイナ number 個人 nric fin singapore 新加坡
    hkid hong 香港 台湾 臺灣 taiwan 统一编号 韩国""".split()
)
_CN_PROVINCES = frozenset(
    """11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82
    83 91""".split()
)
_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def find_ids(folded: Folded) -> Iterator[Finding]:
    """Findings in no order; they may overlap. Cheap for texts without long numbers and names of ids."""
    text = folded.text
    for number in _CN_ID.finditer(text) if _EIGHTEEN.search(text) else ():
        if _is_cn_id(re.sub(r"[ \-]", "", number[0])) and _edge_is_free(text, *number.span()):
            yield folded.finding(Kind.NATIONAL_ID, *number.span())
    if not any(word in folded.lower for word in _ID_LABELS):
        return
    for label_form, form, check in _ID_FORMS:
        label, shape = _compiled(label_form), _compiled(form)
        if label.search(folded.lower) is None:
            continue
        for number in shape.finditer(text):
            near = label.search(folded.lower, max(0, number.start() - 48), number.end() + 24)
            if near and _edge_is_free(text, *number.span()) and check(number[0]):
                yield folded.finding(Kind.NATIONAL_ID, *number.span())


def _edge_is_free(text: str, start: int, end: int) -> bool:
    after = text[end : end + 1]
    return starts_freely(text, start) and not (after.isascii() and after.isalnum())


def _is_cn_id(digits: str) -> bool:
    check = "10X98765432"[sum(int(d) * w for d, w in zip(digits, _CN_WEIGHTS, strict=False)) % 11]
    return digits[17].upper() == check and digits[:2] in _CN_PROVINCES and _is_date(digits[6:14])


def _is_date(digits: str) -> bool:
    try:
        date(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
    except ValueError:
        return False
    return True


def _stdnum(module: str) -> Callable[[str], bool]:
    """The check of one of python-stdnum's modules, imported on first use."""

    def check(number: str) -> bool:
        valid: bool = import_module(f"stdnum.{module}").is_valid(number)
        return valid

    return check


def _is_old_cn_id(number: str) -> bool:
    return number[:2] in _CN_PROVINCES and _is_date("19" + number[6:12])


def _is_hk_id(number: str) -> bool:
    plain = re.sub(r"[()（） ]", "", number).upper()
    letters = plain[:-7].rjust(2)
    values = [36 if c == " " else ord(c) - 55 for c in letters] + [int(d) for d in plain[-7:-1]]
    last = 10 if plain[-1] == "A" else int(plain[-1])
    return (sum(v * w for v, w in zip(values, range(9, 1, -1), strict=True)) + last) % 11 == 0


def _is_nric(number: str) -> bool:
    plain = number.upper()
    total = sum(int(d) * w for d, w in zip(plain[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True)) + (
        4 if plain[0] in "TG" else 0
    )
    return plain[8] == ("JZIHGFEDCBA" if plain[0] in "ST" else "XWUTRQPNMLK")[total % 11]


def _is_nino(number: str) -> bool:
    plain = number.replace(" ", "").upper()
    return plain[:2] not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


def _is_tw_id(number: str) -> bool:
    code = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0].upper()) + 10
    digits = [code // 10, code % 10, *map(int, number[1:])]
    return sum(d * w for d, w in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0


def _always(number: str) -> bool:
    return any(c.isdigit() for c in number)


_ID_FORMS: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    (r"身份证|证件号|居民证|公民身份", _CN_ID_OLD.pattern, _is_old_cn_id),
    (
        r"护照|passport|通行证",
        r"(?<![A-Za-z0-9])(?:[EGDSPK][A-Z]?[0-9]{7,8}|[A-Z]{1,2}[0-9]{7}|[HMC][0-9]{8,10})(?![0-9])",
        _always,
    ),
    (r"passport (?:no|num|is)|护照号", r"(?<![A-Za-z0-9])[0-9]{9}(?![0-9])", _always),
    (
        r"\bssn\b|social security|社保号|社会安全|ssn",
        r"(?<![0-9\-])[0-9]{3}[ \-]?[0-9]{2}[ \-]?[0-9]{4}(?![0-9\-])",
        _stdnum("us.ssn"),
    ),
    (r"itin|taxpayer", r"(?<![0-9\-])9[0-9]{2}[ \-]?[0-9]{2}[ \-]?[0-9]{4}(?![0-9\-])", _stdnum("us.itin")),
    (
        r"national insurance|nino|\bni (?:no|num)",
        r"(?i:(?<![A-Z0-9])[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D](?![A-Z0-9]))",
        _is_nino,
    ),
    (r"nhs", r"(?<![0-9])[0-9]{3}[ \-]?[0-9]{3}[ \-]?[0-9]{4}(?![0-9])", _stdnum("gb.nhs")),
    (r"aadha+r|uidai", r"(?<![0-9])[2-9][0-9]{3}[ \-]?[0-9]{4}[ \-]?[0-9]{4}(?![0-9])", _stdnum("in_.aadhaar")),
    (
        r"\bpan\b|income tax",
        r"(?<![A-Za-z0-9])[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z](?![A-Za-z0-9])",
        _stdnum("in_.pan"),
    ),
    (r"\bsin\b|social insurance", r"(?<![0-9])[0-9]{3}[ \-]?[0-9]{3}[ \-]?[0-9]{3}(?![0-9])", _stdnum("ca.sin")),
    (r"\btfn\b|tax file", r"(?<![0-9])[0-9]{3} ?[0-9]{3} ?[0-9]{2,3}(?![0-9])", _stdnum("au.tfn")),
    (r"cpf", r"(?<![0-9])[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2}(?![0-9])", _stdnum("br.cpf")),
    (r"\bdni\b|\bnie\b|nif", r"(?i:(?<![A-Z0-9])[XYZ]?-?[0-9]{7,8}-?[A-Z](?![A-Z0-9]))", _stdnum("es.nif")),
    (
        r"\bnir\b|s[ée]curit[ée] sociale|insee",
        r"(?<![0-9])[12] ?[0-9]{2} ?[0-9]{2} ?[0-9AB]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}(?![0-9])",
        _stdnum("fr.nir"),
    ),
    (
        r"codice fiscale|fiscal code",
        r"(?i:(?<![A-Z0-9])[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z](?![A-Z0-9]))",
        _stdnum("it.codicefiscale"),
    ),
    (r"steuer|\bidnr|tax id", r"(?<![0-9])[1-9][0-9](?: ?[0-9]{3}){3}(?![0-9])", _stdnum("de.idnr")),
    (r"pesel", r"(?<![0-9])[0-9]{11}(?![0-9])", _stdnum("pl.pesel")),
    (r"\bbsn\b|burgerservice", r"(?<![0-9])[0-9]{9}(?![0-9])", _stdnum("nl.bsn")),
    (r"personnummer", r"(?<![0-9])(?:19|20)?[0-9]{6}[\-+]?[0-9]{4}(?![0-9])", _stdnum("se.personnummer")),
    (r"curp", r"(?<![A-Za-z0-9])[A-Z]{4}[0-9]{6}[HM][A-Z]{5}[A-Z0-9][0-9](?![A-Za-z0-9])", _stdnum("mx.curp")),
    (
        r"주민|resident registration|\brrn\b|韩国身份",
        r"(?<![0-9])[0-9]{6}-?[1-8][0-9]{6}(?![0-9])",
        _stdnum("kr.rrn"),
    ),
    (
        r"マイナンバー|my number|個人番号",
        r"(?<![0-9])[0-9]{4}[ \-]?[0-9]{4}[ \-]?[0-9]{4}(?![0-9])",
        _stdnum("jp.in_"),
    ),
    (r"nric|\bfin\b|singapore id|新加坡", r"(?i:(?<![A-Z0-9])[STFG][0-9]{7}[A-Z](?![A-Z0-9]))", _is_nric),
    (
        r"hkid|香港身份|身份证|hong kong id|身份證",
        r"(?i:(?<![A-Z0-9])[A-Z]{1,2} ?[0-9]{6} ?[(（]?[0-9A][)）]?)",
        _is_hk_id,
    ),
    (r"台湾|臺灣|taiwan|身份证|身分證|统一编号", r"(?i:(?<![A-Z0-9])[A-Z][12][0-9]{8}(?![A-Z0-9]))", _is_tw_id),
)
