"""The tables that a claim is read with, compiled once from words: words to senses, units, numerals, name forms.

Purpose: everything of reading that is data rather than a step: what a word means, which words deny or update, what a
Chinese numeral is worth, what looks like a name.

Threading: built at import, read only.

Rejected: looking words up in words as written (parsing its text costs more than reading a thousand claims).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import msgspec

from memsvc.memory.conflict import words


class Group(IntEnum):
    """What a term is, and so what it means when the other statement has another one of its kind."""

    WORD = 0  # a concept or an unknown word
    QUALIFIER = 1  # environment, platform, period, relation: another one is another thing
    VALUE = 2  # language, tool, place, weekday: another one is another value
    NUMBER = 3
    NAME = 4  # of a person or a thing
    MARK = 5  # identifiers, versions, single letters
    POLE = 6  # one of two opposite sides
    HAN = 7  # one Chinese character of an unknown word
    FRAME = 8  # verbs that say little by themselves


class Zone(IntEnum):
    """Where a term stands."""

    TOPIC = 0
    VALUE = 1
    CONDITION = 2


class Term(NamedTuple):
    """One concept of a statement. `weight` counts it in overlaps; `denied` says that it is negated or given up."""

    weight: float
    kind: str
    group: Group
    zone: Zone
    denied: bool


class Sense(msgspec.Struct, frozen=True):
    """What a word means: its concept ("" for none), how it counts, and what it does to the words after it."""

    concept: str
    kind: str
    group: Group
    weight: float
    role: str = ""  # "exclusive", "additive", "update" or "deny"
    denied: bool = False


_STOP = Sense("", "", Group.FRAME, 0.0)
PARITY_POLES = frozenset("allow like enable mandatory open vegetarian accept include smoke".split())

_UPDATE_HAN = (
    "改成 改为 改用 改到 改存 改由 改约 改签 改签到 改名 改名为 改 换成 换为 换到 换了 换 转到 转为 转 "
    "升级到 升级 升到 降到 降为 调到 调成 调整为 调整到 调整 "
    "迁到 迁移到 迁至 搬到 搬至 搬了 推迟到 推迟 提前到 提前 提高到 提高 提到 降低到 缩短到 延长到 增加到 "
    "减少到 切到 切换到 重写 重写成 重构成 重构为 "
    "放宽到 放宽 收紧到 减到 减为 减至 增到 增至 挪到 搬去 上调到 下调到 升任 晋升 升职 "
    "回到 变成 变为 不再 放弃 跳槽去 跳槽到 跳槽"
)
_DENY_HAN = (
    "不 没 没有 无 别 勿 非 不要 不用 不用再 不再 不是 而不是 不会 "
    "不必 不需要 无需 未 不支持 无法 不算 不想 不了 不允许"
)
DENY_LATIN = frozenset(
    "not no never without dont doesnt didnt isnt arent wasnt werent wont shouldnt stop stopped drop "
    "dropped nor neither "
    "none quit instead rather sold hasnt havent nobody nothing cease ceased discontinue".split()
)
_UPDATE_LATIN = frozenset(
    "switch switched change changed move moved migrate migrated replace replaced upgrade upgraded raise "
    "raised reduce "
    "reduced increase increased rename renamed bump bumped postpone postponed reschedule rescheduled "
    "shorten shortened "
    "extend extended relocate relocated turn turned become became lower lowered cut rewrite join joined "
    "adjust adjusted".split()
)
MONTHS = {
    name: number + 1
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep "
        "sept|october oct|"
        "november nov|december dec".split("|")
    )
    for name in names.split()
}
COUNTS = {
    name: float(value)
    for value, name in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen "
        "eighteen nineteen twenty".split()
    )
} | {
    "thirty": 30.0,
    "forty": 40.0,
    "fifty": 50.0,
    "sixty": 60.0,
    "ninety": 90.0,
    "hundred": 100.0,
    "once": 1.0,
    "twice": 2.0,
}
HAN_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000}
LATIN_SCALES = {
    "k": 1000.0,
    "万": 10_000.0,
    "亿": 100_000_000.0,
    "千": 1000.0,
    "million": 1_000_000.0,
    "thousand": 1000.0,
}
SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
_TITLES = ("医生", "老师", "工", "总", "经理", "律师", "教授", "姐", "哥")


def _name_of(entry: str) -> str:
    return entry.replace("/", " ").split()[0]


def _add_poles(add: Callable[[str, Sense], None]) -> None:
    """Both sides of each pair of opposites; modal ones weigh little, "must" and "may" are in every rule."""
    for entry in words.POLES.split(";"):
        if not entry.strip():
            continue
        first, second = entry.split("~")
        name = _name_of(first)
        for side, denied in ((first, False), (second, True)):
            weight = 0.4 if name in ("allow", "mandatory") else 0.8
            add(side, Sense(name, "pole", Group.POLE, weight, "exclusive" if name in ("like", "allow") else "", denied))


def _add_roles(latin: dict[str, Sense], han: dict[str, Sense]) -> None:
    """Words without content that deny or update; they win over any other sense."""
    for word in words.STOP_HAN.split():
        han.setdefault(word, _STOP)
    for word in _UPDATE_HAN.split():
        han[word] = Sense("", "", Group.FRAME, 0.0, "deny" if word in ("不再", "放弃") else "update")
    for word in _DENY_HAN.split():
        han[word] = Sense("", "", Group.FRAME, 0.0, "deny")
    for word in _UPDATE_LATIN:
        latin[word] = Sense("", "", Group.FRAME, 0.0, "update")


def _compile() -> tuple[dict[str, Sense], dict[str, Sense], frozenset[str]]:
    """Latin words (raw and stemmed, phrases joined by `_`), Han words, and the phrases' first words."""
    latin: dict[str, Sense] = {}
    han: dict[str, Sense] = {}

    def add(entry: str, sense: Sense) -> None:
        left, _, right = entry.partition("/")
        for word in left.split():
            latin.setdefault(word, sense)
            latin.setdefault(words.stem(word), sense)
        for word in right.split():
            han.setdefault(word, sense)

    for word in words.STOP.split():
        latin[word] = _STOP
    for role, text, weight in (
        ("exclusive", words.EXCLUSIVE, 0.15),
        ("additive", words.ADDITIVE, 0.15),
        ("frame", words.FRAME, 0.0),
    ):
        for entry in text.split(";"):
            add(entry, Sense(_name_of(entry), role, Group.FRAME, weight, role))
    _add_poles(add)
    for table, group in ((words.QUALIFIERS, Group.QUALIFIER), (words.VALUES, Group.VALUE)):
        for kind, text in table.items():
            for entry in text.split(";"):
                add(entry, Sense(_name_of(entry), kind, group, 1.0))
    for entry in words.GENERIC.split(";"):
        add(entry, Sense(_name_of(entry), "word", Group.WORD, 0.15 if _name_of(entry) in ("user", "use") else 1.0))
    _add_roles(latin, han)
    starts = frozenset(word.split("_")[0] for word in latin if "_" in word)
    return latin, han, starts


LATIN, HAN, PHRASE_STARTS = _compile()
HAN_LONGEST = max(map(len, HAN))
UNITS = {word: unit for unit, text in words.UNITS.items() for side in text.split("/") for word in side.split()}
HAN_UNITS_LONGEST = 4
LOOSE_UNITS = frozenset(
    "money piece person times char thread mday floor room age".split()
)  # left out at times: 4500 is 4500 元


def han_name(run: str, at: int, known: int) -> int:
    """Length of a name by its form (小李, 老周, 张工, 陈医生) at this place, 0 for none.

    `known` is the length of the word of the tables that was found there.
    """
    head, second = run[at], run[at + 1 : at + 2]
    if known < 2 and head in "小老阿" and second and second in SURNAMES:
        return 2
    if known >= 2 or head not in SURNAMES:
        return 0
    for title in _TITLES:
        if run.startswith(title, at + 1):
            return 1 + len(title)
    before, rest = run[at - 1 : at], len(run) - at
    if before and before in "是叫为由找" and 2 <= rest <= 3:
        return rest
    if at == 0 or before in "叫由找":
        for size in (2, 3):
            after = run[at + size : at + size + 2]
            if (
                after
                and (after[0] in "的是在有叫住用" or (len(after) == 2 and after in HAN))
                and run[at : at + size] not in HAN
            ):
                return size
    return 0


def han_value(numeral: str) -> float:
    """The value of a Chinese numeral below 10^8: 十二 12, 三百 300, 二零二四 2024."""
    if not any(c in HAN_SCALES for c in numeral):
        return float("".join(str(HAN_DIGITS[c]) for c in numeral))
    total, section, digit = 0, 0, 0
    for c in numeral:
        if c in HAN_DIGITS:
            digit = HAN_DIGITS[c]
        elif c == "万":
            total, section, digit = total + (section + digit) * 10_000, 0, 0
        else:
            section, digit = section + (digit or 1) * HAN_SCALES[c], 0
    return float(total + section + digit)
