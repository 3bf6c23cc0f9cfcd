"""The cues of a statement: whether it corrects, updates, guesses, speaks of one time only, or adds.

Purpose: one regular expression per cue and language, shared by what compares statements.

Threading: pure functions.

Rejected: a trained classifier (cues are few, and evidence must name the reason).
"""

from __future__ import annotations

import re
from enum import IntFlag


class Cue(IntFlag):
    """What the wording of a statement says about its standing against others."""

    NONE = 0
    UPDATE = 1  # things have changed: "now", "no longer", 改成
    CORRECTION = 2  # the earlier words were wrong: "correction:", 不是A，是B
    HEDGE = 4  # hearsay or a guess: "I think", 听说
    ONE_OFF = 8  # for this time only: "just this once", 这次
    ADDED = 16  # something more, not instead: "also", 另外
    FRESH = 32  # a weaker sign of change: 已经, 了, "new"


# For each cue the words of English and of Chinese. Every Chinese alternative has a character that is not ASCII, and all
# begin with a literal, which `re` finds fast only when no `\b` stands among them: hence two expressions, not one.
_PATTERNS = {
    Cue.CORRECTION: (
        r"actually|correction|corrected|sorry|mistyped|misspoke|mistaken|scratch that|i was wrong|was wrong|"
        r"in fact|typo|to correct|i meant|turns out|should have been",
        r"更正|纠正|订正|不对[,，]|说错|写错|记错|弄错|搞错|打错|口误|不是.{1,16}[,，]?\s*(?:而)?是"
        r"|应该是.{0,10}才对|其实|准确地说",
    ),
    Cue.UPDATE: (
        r"now|no longer|any ?more|from now on|from here on|henceforth|promoted|pushed (?:to|back)"
        r"|sold|gave up|given up|no more|going forward|switched|switching|switch to|changed|changes to"
        r"|moved|moves to|migrated?|migrating|moving|replaced?|upgraded?|"
        r"raised|reduced|increased|lowered|extended|shortened|renamed|bumped|rescheduled|postponed|relocated|"
        r"became|has become|have become|quit|stopped|discontinued|mandatory now|went (?:up|down)|"
        r"went back|since|as of|has been|have been|was made|turned (?:on|off)|must .{1,40} not in|starting"
        r"|effective|drop|stop|"
        r"let's .{1,30} instead|new policy|new rule|updated|superseded|change of plan|we are moving|would rather",
        r"改成|改为|改用|改到|改存|改由|改约|改签|改名|改发|换成|换为|换到|换了|升级|迁到|迁移|迁至|搬到"
        r"|搬至|搬了|调整|放宽|收紧|减到|减为|减至|增到|增至|挪到|搬去|上调|下调|升任|晋升|调到|调成"
        r"|提高到|提到|提高|降到|降为|"
        r"缩短|延长|推迟|提前到|转到|转为|不再|放弃|作废|取消|跳槽|重写|重构|回到|变成|变为|以后|今后"
        r"|从.{1,8}起|从现在|新规|新制度|新任|现在|已经|已改|统一改|最终定|"
        r"别再|不用再|不要再|才行|改主意|改了|改在|改走|改吃|改喝",
    ),
    Cue.HEDGE: (
        r"i think|i believe|i guess|i heard|i suppose|maybe|perhaps|probably|possibly|might|may be|apparently|"
        r"seems?|seemingly|looks? like|heard that|rumou?r|someone (?:said|says|mentioned|told)|people say|they say|"
        r"not sure|unsure|not certain|supposedly|allegedly|presumably|if i remember|iirc|afaik|could be|word is|"
        r"i'm guessing|i assume|somebody",
        r"听.{0,4}说|据说|好像|似乎|大概|可能|也许|或许|我记得|印象中|印象里|貌似|估计|传闻|吧[。!！]?$"
        r"|不确定|不太确定|没准|应该是.{1,12}吧|有人说|说不定|猜",
    ),
    Cue.ONE_OFF: (
        r"this time|(?:just )?this once|(?:only|just) (?:for )?(?:today|this|tonight|once)"
        r"|for (?:this|today|tonight|once)|"
        r"(?:this|today's) (?:\w+ )?(?:only|one)|this (?:one )?(?:\w+ )?(?:hotfix|report|email|week only|exception)|"
        r"today|tonight|one[- ]off|temporar(?:y|ily)|for the moment|as an exception|exceptionally|(?:this"
        r"|next) week",
        r"这次|本次|这一次|此次|今天|今晚|今日|破例|例外一次|仅此|就这一|临时|暂时|这周的"
        r"|本周[一二三四五六日]?|这封|这一封|这份|这篇|下不为例|一次性|唯独这",
    ),
    Cue.ADDED: (
        r"also|too|as well|in addition|additionally|besides|on top of that|plus",
        r"另外|此外|还要"
        r"|还会|还喜欢|也喜欢|也会|也要|同时|额外",
    ),
    Cue.FRESH: (
        r"new",
        r"了(?:[,，。!！]|$)|新的|新买|新换|最新",
    ),
}
_LATIN = tuple((cue, re.compile(rf"\b(?=[a-z])(?:{latin})\b")) for cue, (latin, _) in _PATTERNS.items())
_HAN = tuple((cue, re.compile(han)) for cue, (_, han) in _PATTERNS.items())


def cues_of(lowered: str) -> Cue:
    """The cues of a text in lower case."""
    found = Cue.NONE
    for cue, pattern in _LATIN if lowered.isascii() else (*_LATIN, *_HAN):
        if pattern.search(lowered):
            found |= cue
    return found
