"""What names a thing without saying anything about it: identifiers, and numbers that count or label.

Purpose: "ticket T-1" and "ticket T-2", "note 5" and "note 6" are two things however alike the rest is; "port 8080" and
"port 9090" are two values of one. Losing one of the former is the worst error, so what has no sign of being a value is
a label.

Threading: pure functions.

Rejected: learning it from pairs (a calibration saw few of them and called templates contradictions).
"""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"(?<![\w.])(?:#\d+|[a-z]{1,12}[-_]\d[\w-]*|[a-z]{2,12}-(?:[a-z0-9]+-)*\d[\w-]*)(?![\w.])")
_UNITS = (
    r"%|[a-z]{1,3}\b|gb|mb|万|亿|元|块|天|年|月|日|号|点|分|秒|周|次|个|人|度|公里|小时|岁|位|层|条|份|折|倍|毫秒|美元"
)
_LABEL = re.compile(rf"第\s*\d+|(?<![\w.$¥€£%#:/-])\d+(?:\.\d+)?(?![\w%‰℃°]|\.\d|:\d|\s?(?:{_UNITS}))")
# Anything before a number that makes it a value: a copula, a verb of measure or choice, a preposition of amount, or
# the name of something that has a value.
_VALUED = re.compile(
    r"\b(?:is|are|was|were|be|been|at|by|to|than|under|over|above|below|within|every|after|before|least|most|only|"
    r"need(?:s|ed)?|require[sd]?|has|have|had|allow(?:s|ed)?|use[sd]?|using|set|keep(?:s)?|run(?:s)?|get(?:s)?|"
    r"cost(?:s)?|earn(?:s|ed)?|pay(?:s)?|take(?:s)?|last(?:s|ed)?|live(?:s)?|work(?:s)?|own(?:s)?|equal(?:s)?|"
    r"prefer(?:s|red)?|want(?:s|ed)?|support(?:s|ed)?|deploy(?:s|ed)?|moved?|raised?|lowered?|reduced?|increased?|"
    r"includes?|contains?|offers?|covers?|charges?|ships?|starts?|opens?|closes?|ends?|begins?|meets?|expires?|weighs?|"
    r"holds?|serves?|stores?|accepts?|delivers?|sends?|gives?|grants?|adds?|shows?|counts?|turned|lives?|buys?|bought|"
    r"port|timeout|limit|budget|price|version|age|size|max(?:imum)?|min(?:imum)?|rate|threshold|quota|capacity|"
    r"retries|attempts|replicas|count|python|java|node|go|postgres(?:ql)?|mysql|redis|kubernetes|ubuntu|debian)\b"
    r"|[:=<>≤≥]|是|为|到|成|有|超过|大于|小于|至少|最多|以上|满|每|需|要|用|定|改|共|端口|超时|上限|预算|价格|版本|额度"
    r"|人数|年龄|住|在|不|限"
)


def identifiers(lowered: str) -> frozenset[str]:
    """Identifiers such as `t-000123`, `ord-2025-0110` or `#42` in a text in lower case."""
    return frozenset(_IDENTIFIER.findall(lowered))


def labels(lowered: str) -> frozenset[str]:
    """Numbers that count or name (`note 5`, 第1条): nothing in front of them in the text makes them a value."""
    found = []
    for match in _LABEL.finditer(lowered):
        if match.group().startswith("第") or not _VALUED.search(lowered, 0, match.start()):
            found.append(match.group())
    return frozenset(found)
