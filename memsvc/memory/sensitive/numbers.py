"""Numbers that belong to a person: phones, national ids, bank cards.

Purpose: check digits, issuer and area tables decide; words beside a number decide where there is no check (a label
such as 电话 makes a phone of it, one such as 订单号 says that it is not). Ids of countries: `ids`.

Threading: pure functions; phonenumbers loads its tables per region on first use, which is safe from any thread.

Rejected: PhoneNumberMatcher (it tries every number of a text, 0.1 ms each, and takes ids for phones).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from memsvc.memory.sensitive.ids import find_ids
from memsvc.memory.sensitive.text import Finding, Folded, Kind

_ENOUGH_DIGITS = re.compile(r"[0-9](?:[ \-.()/]{0,3}[0-9A-Za-z]){6}")
_REACH = 28  # characters before a number in which a label counts

# What a number is when one of these stands right before it. Words are looked up, not searched for: an alternation of
# a hundred words tried at every position cost 0.2 ms a number.
_ID_WORDS = frozenset(
    """order orders ticket tracking invoice serial sku barcode isbn issn upc ean part model case batch build
    version port timestamp epoch trace span request session transaction txn commit revision rev issue pr bug
    job run task event record row item product asset shipment parcel awb po rma doi seed hash checksum crc
    count total size bytes offset length duration elapsed time ts usec nsec nanos micros millis amount
    balance price revenue population views tokens rows pid tid uid gid oid uuid guid id ids ref reference
    confirmation policy claim seq sequence cursor lot device imei imsi mac channel group qq created updated
    expires modified ms ns us sn""".split()
)
_ID_WORDS_ZH = tuple(
    """订单 单号 编号 编码 流水 工单 批次 序列 货号 条码 条形码 合同 快递 运单 物流 发票 端口 版本 时间戳
    商品 产品 型号 追踪 批号 案号 卷号 学号 工号 数量 总数 总量 金额 余额 总额 销量 单量 大小 字节 行数 耗时
    偏移 哈希 校验和 种子 群号 交易 单据 设备 保单 受理 任务 流水号""".split()
)
_PHONE_WORDS = frozenset(
    """whatsapp phone phones mobile cell cellphone tel telephone fax call text sms dial ring reach contact
    landline viber signal imessage telegram wechat phonenumber mobilephone cellnumber telefono""".split()
)
_PHONE_WORDS_ZH = tuple(
    """电话 手机 座机 固话 联系方式 联系人 致电 来电 拨打 打给 打 拨 传真 短信 发短信到 微信 電話 携帯 전화
    热线 号码""".split()
)
_ID_LINKS = frozenset("number num no code key value is was in at for".split())
_LINKS = frozenset(
    """is was are me us him her them mom dad my his the our new personal work home number num no at on to
    via or and office main direct line mobile cell""".split()
)
_LINKS_ZH = ("号码", "番号", "换成", "改成", "改为", "变更为", "号", "码", "数", "是", "为", "叫", "了")
_JOINTS = " \t\"'`#(（:：=|[]._-+，,、/"
_LAST_WORD = re.compile(r"[a-z]+$")
_SERVICE = re.compile(
    r"热线|客服电话|客服热线|服务电话|客服专线|总机|官方|hotline|helpline|toll[- ]?free"
    r"|customer (?:service|support|care)|support line|service (?:line|number)|switchboard"
)
_UNIT_AFTER = re.compile(
    r"\s{0,2}(?:件|次(?!日)|条|个(?!人)|元(?!旦)|美元|块|万|亿|千|字节|行(?!政)|毫秒|微秒|秒|步|倍|[%％]|份|张|吨|人次|"
    r"(?:bytes?|ms|us|ns|rows?|tokens?|items?|users?|requests?|records?|files?|lines?|views?|times?|usd"
    r"|rmb|cny|dollars?|seconds?|samples?|steps|iterations|k?b|mb|gb|hz)(?![a-z]))"
)
_TOO_LONG = re.compile(r"[0-9]|[.][0-9]|[-/][0-9]{5}|[A-Za-z]")
_Regions = list[tuple[int, int]]
_REGION = re.compile(r"[+(（]{0,2}[0-9][0-9 \-.()/+（）]{6,}")
_LOOKAHEAD = 8


def find_numbers(folded: Folded) -> Iterator[Finding]:
    """Findings in numbers, in no order; they may overlap."""
    if _ENOUGH_DIGITS.search(folded.text) is None:
        return
    regions = [(r.start(), r.end() + _LOOKAHEAD) for r in _REGION.finditer(folded.text)]
    yield from find_ids(folded)
    if regions:
        yield from _cards(folded, regions)
        yield from _phones(folded, regions)


def _each(shape: re.Pattern[str], text: str, regions: _Regions) -> Iterator[re.Match[str]]:
    """The matches within the regions: most of a text has no digits and need not be tried."""
    at = 0
    for start, end in regions:
        at = max(at, start)
        while at < end and (match := shape.search(text, at, end)):
            at = match.end()
            yield match


def _is_labelled(
    words: frozenset[str], words_zh: tuple[str, ...], links: frozenset[str], folded: Folded, start: int
) -> bool:
    """Whether one of the words stands before the position with nothing but joints and links between."""
    head = folded.lower[max(0, start - _REACH) : start].rstrip(_JOINTS)
    for _ in range(6):
        if head.endswith(words_zh):
            return True
        last = _LAST_WORD.search(head)
        if last and last[0] in words:
            return True
        if last and last[0] in links:
            head = head[: last.start()].rstrip(_JOINTS)
            continue
        shorter = next((head.removesuffix(link) for link in _LINKS_ZH if head.endswith(link)), head)
        if shorter == head:
            return False
        head = shorter.rstrip(_JOINTS)
    return False


_PERSON_ID = re.compile(r"(?:user|account|member|customer|login|wechat|wx|client)[ _\-]?id[\"'`\s:：=是]{0,6}$")


def _is_id(folded: Folded, start: int) -> bool:
    """Whether the words before name something that has numbers of its own; the id of a person may well be a phone."""
    if _PERSON_ID.search(folded.lower, max(0, start - _REACH), start):
        return False
    return _is_labelled(_ID_WORDS, _ID_WORDS_ZH, _ID_LINKS, folded, start)


def _is_phone(folded: Folded, start: int) -> bool:
    return _is_labelled(_PHONE_WORDS, _PHONE_WORDS_ZH, _LINKS, folded, start)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether the number is not part of a longer number, an id or an amount."""
    if start and (text[start - 1] in "$¥€£#&" or (text[start - 1].isascii() and text[start - 1].isalnum())):
        letters = _WORD_BEFORE.search(text, max(0, start - 10), start)
        if letters is None:
            return False
    if start > 1 and text[start - 2].isascii() and text[start - 2].isalnum():
        joined = text[start - 1] in ".,-" or (text[start - 1] == "/" and text[start - 2].isdigit())
        if joined and _WORD_BEFORE.search(text, max(0, start - 11), start - 1) is None:
            return False
    return _TOO_LONG.match(text, end) is None


_WORD_BEFORE = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:card|tel|phone|mobile|cell|call|fax|no|is|wechat|wx|vx|at|to|[nrt](?<=\\[nrt]))$"
)

# Phones ---------------------------------------------------------------------------------------------------------

_CN_MOBILE = re.compile(r"(?<![0-9])(?:(?:\(?\+|00)?86\)?[ \-]{0,2})?(1[3-9](?:[ \-.]?[0-9]){9})")
_CN_GROUPS = frozenset(tuple(map(int, sizes)) for sizes in "344 38 74 335 443 434 56 533 353 3422 32222".split()) | {
    (11,),
    (1,) * 11,
}
_CN_FIXED = re.compile(
    r"(?<![0-9.\-/])(?:(?:\+|00)?86[ \-]{0,2})?([(（]?0?(?:10|2[0-9]"
    r"|[3-9][0-9]{2})[)）]?)([ \-]{0,2})([2-9][0-9]{2,3}[ \-]?[0-9]{4})"
)
_INTERNATIONAL = re.compile(r"(?<![0-9A-Za-z+])(?:\+|00(?=[1-9][0-9]))[ ]?[(]?[1-9](?:[ \-.()/]{0,3}[0-9]){6,14}")
_NANP = re.compile(
    r"(?<![0-9.\-/+])(?:1[ \-.])?(?:\([2-9][0-9]{2}\)[ \-]?|[2-9][0-9]{2}[ \-.])[2-9][0-9]{2}[ \-.][0-9]{4}"
)
_LABELLED = re.compile(r"(?<![0-9.\-/+])[(]?[0-9](?:[ \-.()]{0,2}[0-9]){6,14}")
_TOLL_FREE = re.compile(r"(?:\+?1[ \-.]?)?\(?(?:400|800|888|877|866|855|844|833|900)\)?[ \-.]")
_REGIONS = ("US", "GB", "CN", "HK", "TW", "SG", "JP", "KR", "IN", "AU", "DE", "FR", "BR", "MX", "ES", "IT")


_QUESTIONS_MAX = 64
_SERVICE_TYPES = frozenset((3, 4, 5, 8, 9, 10))  # toll free, premium, shared cost, UAN and the like: nobody's own


def _phones(folded: Folded, regions: _Regions) -> Iterator[Finding]:
    text = folded.text
    taken = 0
    for number in sorted(_phone_candidates(folded, regions)):
        start, end = number
        if start >= taken and _stands_alone(text, start, end) and not _UNIT_AFTER.match(folded.lower, end):
            taken = end
            yield folded.finding(Kind.PHONE, start, end)


def _phone_candidates(folded: Folded, regions: _Regions) -> Iterator[tuple[int, int]]:
    found = [*_cn_mobiles(folded, regions), *_cn_fixed(folded, regions), *_nanp(folded, regions)]
    yield from found
    library = _PhoneLibrary()
    yield from _international(folded, regions, library)
    known = {end for _, end in found}
    yield from _labelled_phones(folded, [r for r in regions if r[1] - _LOOKAHEAD not in known], library)


class _PhoneLibrary:
    """phonenumbers within a budget per text: a question costs 0.1 ms, and a hostile text could ask 100,000. Past the
    budget everything that looks like a phone is one.
    """

    def __init__(self) -> None:
        self._left = _QUESTIONS_MAX

    def is_personal(self, written: str, region: str | None, possible_will_do: bool) -> bool:
        """Whether the number, as written, can be a person's in the region (None: it has its country's code)."""
        self._left -= 1
        if self._left < 0:
            return True
        parse, is_valid, is_possible, type_of, refused = _phone_functions()
        try:
            number = parse(written, region)
        except refused:
            return False
        if type_of(number) in _SERVICE_TYPES:
            return False
        return is_valid(number) or (possible_will_do and is_possible(number))


@cache
def _phone_functions() -> Any:
    library = import_module("phonenumbers")  # on first use: 30 ms that a start needs not
    refused = library.NumberParseException
    return library.parse, library.is_valid_number, library.is_possible_number, library.number_type, refused


def _cn_mobiles(folded: Folded, regions: _Regions) -> Iterator[tuple[int, int]]:
    for number in _each(_CN_MOBILE, folded.text, regions):
        groups = tuple(len(part) for part in re.split(r"[ \-.]", number[1]))
        if groups in _CN_GROUPS and not _is_id(folded, number.start()):
            yield number.span()


def _cn_fixed(folded: Folded, regions: _Regions) -> Iterator[tuple[int, int]]:
    for number in _each(_CN_FIXED, folded.text, regions):
        area, gap, local = number[1].strip("()（）"), number[2], re.sub(r"[ \-]", "", number[3])
        prefixed = number[0][0] in "+" or number[0].startswith(("86", "0086"))
        if not (area.startswith("0") or prefixed):
            continue
        digits = area.lstrip("0") + local
        if len(local) < (8 if area.lstrip("0")[0] in "12" else 7) or len(digits) > 11:
            continue
        firm = gap or "(" in number[1] or "（" in number[1] or _is_phone(folded, number.start())
        if firm and not _is_id(folded, number.start()) and not _is_service(folded, number.start()):
            yield number.span()


def _is_service(folded: Folded, start: int) -> bool:
    """Whether the words before say that the number is a company's, for all to know."""
    return _SERVICE.search(folded.lower, max(0, start - _REACH), start) is not None


def _international(folded: Folded, regions: _Regions, library: _PhoneLibrary) -> Iterator[tuple[int, int]]:
    for number in _each(_INTERNATIONAL, folded.text, regions):
        written = number[0]
        if written.startswith("00"):
            if not _is_phone(folded, number.start()):
                continue
            written = "+" + written[2:]
        labelled = _is_phone(folded, number.start())
        grouped = re.search(r"[0-9][ \-.()/]+[0-9]", written) is not None
        if _is_service(folded, number.start()):
            continue
        if library.is_personal(written, None, labelled or grouped or len(written) > 11):
            yield number.span()


def _nanp(folded: Folded, regions: _Regions) -> Iterator[tuple[int, int]]:
    for number in _each(_NANP, folded.text, regions):
        if _TOLL_FREE.match(number[0]) or _is_service(folded, number.start()):
            continue
        if not _is_id(folded, number.start()):
            yield number.span()


def _labelled_phones(folded: Folded, regions: _Regions, library: _PhoneLibrary) -> Iterator[tuple[int, int]]:
    """Any national number of a known region, or seven or eight digits, behind a word for a phone."""
    for number in _each(_LABELLED, folded.text, regions):
        if not _is_phone(folded, number.start()) or _is_service(folded, number.start()):
            continue
        digits = re.sub(r"[^0-9]", "", number[0])
        if _TOLL_FREE.match(number[0]) or digits.startswith(("400", "800", "95")) or len(set(digits)) < 2:
            continue
        local = len(digits) in (7, 8) and digits[0] in "2356789" and not digits.startswith(("19", "20"))
        if local or any(library.is_personal(number[0], region, False) for region in _REGIONS):
            yield number.span()


# Bank cards -----------------------------------------------------------------------------------------------------

_CARD = re.compile(r"(?<![0-9])[0-9](?:[ \-]?[0-9]){12,18}(?![0-9])")
_CARD_LABEL = re.compile(r"卡号|银行卡|信用卡|储蓄卡|借记卡|工资卡|尾号|card|visa|master|amex|iban|account|账号|账户")
_CARD_GROUPS = re.compile(
    r"[0-9]{4}([ \-])[0-9]{4}\1[0-9]{4}\1[0-9]{1,4}(?:\1[0-9]{1,3})?|[0-9]{4}[ \-][0-9]{6}[ \-][0-9]{4,5}"
    r"|[0-9]{6}[ \-][0-9]{10,13}"
)


def luhn(digits: str) -> bool:
    """Whether the last digit is the Luhn check digit of the others."""
    odd = sum(map(int, digits[-1::-2]))
    even = sum(d * 2 - 9 * (d > 4) for d in map(int, digits[-2::-2]))
    return (odd + even) % 10 == 0


def _issuer_fits(digits: str) -> bool:
    size, two, four, six = len(digits), int(digits[:2]), int(digits[:4]), int(digits[:6])
    if digits[0] == "4":
        return size in (16, 19)
    if 51 <= two <= 55 or 2221 <= four <= 2720:
        return size == 16
    if two in (34, 37):
        return size == 15
    if two in (62, 81):
        return 16 <= size <= 19
    if four == 6011 or two in (64, 65) or 622126 <= six <= 622925:
        return 16 <= size <= 19
    if 3528 <= four <= 3589:
        return 16 <= size <= 19
    return four == 9558 and size == 19


def _cards(folded: Folded, regions: _Regions) -> Iterator[Finding]:
    text = folded.text
    for number in _each(_CARD, text, regions):
        digits = re.sub(r"[ \-]", "", number[0])
        if len(digits) != len(number[0]) and not _CARD_GROUPS.fullmatch(number[0]):
            continue
        if len(set(digits)) < 2:
            continue
        if not luhn(digits) or not _stands_alone(text, number.start(), number.end()):
            continue
        labelled = _CARD_LABEL.search(folded.lower, max(0, number.start() - _REACH), number.start()) is not None
        known = _issuer_fits(digits)
        other = labelled and (
            digits[:2] in ("36", "38", "30", "50", "56", "57", "58", "60", "67", "63", "95") or len(digits) >= 16
        )
        if (known and (labelled or not _is_id(folded, number.start()))) or other:
            yield folded.finding(Kind.BANK_CARD, *number.span())
