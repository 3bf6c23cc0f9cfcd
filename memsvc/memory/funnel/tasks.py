"""Requests to the assistant for work now: "帮我把接口改成流式的，必须兼容 Python 3.11", "can you rename the column?"

Purpose: what is asked for now is this turn's task, and so is what must hold for that work only. A clause that says
something else (a wish for good, a decision with its reason, a fact) keeps the whole sentence, or is kept without the
task in front of it.

Threading: pure functions.

Rejected: leaving it to the trained weights (they see "must" and a version number, and call it a rule); bare
imperatives ("use metric units" is a wish as often as a task, the weights tell them apart).
"""

from __future__ import annotations

import re

from memsvc.memory.funnel.cues import HAN

_LONG_CHARS = 400
_CUT_HAN = re.compile(r"[，；,;]\s*")
_CUT_EN = re.compile(
    r"[,;]\s+|\s+[-–—]\s+|\s+(?=(?:because|since|but|so that|and (?:it|they|don't|never|always|keep|from))\b)", re.I
)
_HINT = re.compile(
    r"帮|请|麻烦|劳驾|先|必须|务必|一定要|[，,]要|需要|不能|不得|不许"
    r"|\b(?:please|pls|can|could|would|will|help|let's|let’s|need you|want you|like you|must|should|has to|needs to)\b",
    re.I,
)

_LEAD_HAN = re.compile(
    r"^(?:(?:好的?|嗯+|那么?|行|对了|另外|还有|算了|等等|不对|ok|现在|今天|顺便|接下来|然后|首先)[，,。\s]*)+", re.I
)
_WORK_HAN = (
    r"写|改(?!口|天)|修|加(?!入|班)|补|删|查|跑|测|做|弄|看|生成|翻译|导出|导入|整理|检查|创建|新建|实现|重构|部署|"
    r"升级|迁移|合并|"
    r"拆|移|优化|调|画|列|算|总结|分析|排查|定位|解决|处理|准备|完成|开发|设计|调研|对比|重写|润色|清理|回滚|发布|"
    r"安装|配置|搭"
)
_TASK_HAN = re.compile(
    rf"^(?:(?:请|麻烦|劳驾|拜托)?(?:你|您)?(?:现在|先|再|也|顺便)*(?:能不能|能|可不可以|可以|可否)?(?:请)?帮(?:我们?|"
    rf"忙|个忙|一下忙?)"
    rf"(?!记|存|备注)|(?:请|麻烦|劳驾)(?:你|您)?(?:现在|先|再|也|顺便|尽快|马上)*(?:把.{{1,40}}?|给.{{1,20}}?|"
    rf"将.{{1,40}}?)?(?:{_WORK_HAN})"
    rf"|(?:我们?|咱们?)(?:还是)?先(?:来|去)?(?:把.{{1,40}}?|给.{{1,20}}?)?(?:{_WORK_HAN})|先(?:把.{{1,40}}?|"
    rf"给.{{1,20}}?)?(?:{_WORK_HAN}))"
)
# Work that is only named; an order when a clause behind it says what the work must be like.
_ORDER_HAN = re.compile(
    rf"^(?:现在|你来|那就?|快|再|(?:我们?|咱们?)(?:现在|今天)?(?:要|想要?|需要|打算|得)(?:你|您)?)*"
    rf"(?:(?:把|将).{{1,40}}?(?!写|看|算|做|画)(?:{_WORK_HAN})|(?:{_WORK_HAN})(?:一?下|好)|(?:重构|迁移|升级|部署|"
    rf"实现|重写|优化|开发))"
)
_MUST_HAN = re.compile(r"^(?:并且|而且|同时|但是?|还|也|它)*(?:必须|务必|一定要|要(?!是|么)|需要?|不能|不得|不许)")
_OWN_HAN = re.compile(
    r"^(?:(?:这次|本次|要求|另外|并且|而且|同时|但是?|还|也|它|接口|代码|结果|输出)*(?:必须|务必|一定要|不要|别|不能|"
    r"不得|只(?:用|要|能|写|改|看|做)"
    r"|要(?!是|么)|需要?|最多|最少|至少|控制在|保持|兼容|支持|尽量|尽快|越快越好|记得|注意|用|按|按照|顺便|再|并|"
    r"然后|最后|跑|加))|(?:谢谢|多谢|急|在线等|好吗|好不好|可以吗|行吗)$"
)
_DROPPED_HAN = re.compile(
    r"^.{0,16}?(?:先|就|暂时|还是)+不(?:要|用|再)?(?:做|弄|写|搞|改|管|开发|实现|修|查|看|部署|上)?.{0,12}?了?$|"
    r"^不(?:做|弄|写|搞|改|管|开发|实现|修)"
    r".{0,16}?了$|^(?:算了|等等|不对|我?改主意了)$"
)

_LEAD_EN = re.compile(
    r"^(?:(?:ok(?:ay)?|so|well|hi|hey|hello|thanks|great|now|right|actually|then|and|also|first|next|alright|"
    r"on second thoughts?|change of plans?)(?:[,.!:;]\s*|\s+))+",
    re.I,
)
_WORK_EN = (
    "write|rewrite|make|fix|add|implement|migrate|refactor|create|build|generate|rename|move|convert|translate|"
    "deploy|test|"
    "debug|review|update|change|run|rerun|check|find|look|show|send|open|remove|delete|summari[sz]e|draft|draw|list|"
    "compute|calculate|compare|analy[sz]e|investigate|clean|split|merge|upgrade|install|configure|set up|port|extend|"
    "finish|prepare|design|sort|explain|give|help|try|start|turn|replace|export|import|plot|book|order|print|get"
)
_TASK_EN = re.compile(
    rf"^(?:(?:please|pls|kindly)(?: (?:now|first|also|just|quickly))* (?:{_WORK_EN})\b"
    rf"|(?:can|could|would|will) you (?:please )?(?:also |just |quickly )?(?:{_WORK_EN})\b"
    rf"|(?:please )?help (?:me|us)\b|i(?: need|'d like| want| would like) you to (?:{_WORK_EN})\b"
    rf"|let'?s (?:first |now |just )?(?:{_WORK_EN})\b)",
    re.I,
)
_ORDER_EN = re.compile(
    rf"^(?:(?:i|we) (?:want|need|have) to |(?:i|we)(?:'d| would) like to )?(?:{_WORK_EN}) (?:the|this|our|my|an?|all)\b"
    r"|^(?:i|we) (?:want|need) (?:the|this|our|my|an?) .* to \w",
    re.I,
)
_OWN_EN = re.compile(
    r"^(?:and |but |also )*(?:(?:it|they|this|that|the (?:result|code|output|change))(?:'s| is| are)? ?(?:must|"
    r"should|has to|have to|needs? to|can'?t|may not|to be)\b"
    r"|(?:don'?t|do not|must|make sure|only|no|without|using|with|keep|use|at most|at least|then|thanks|thank you|"
    r"asap|please)\b|first\W*$)",
    re.I,
)
_DROPPED_EN = re.compile(
    r"^(?:never ?mind|forget|drop|scrap|skip|scratch|no more|let'?s (?:not|drop|skip|forget|leave)|no)\b.{0,60}$|"
    r"^on second thoughts?$",
    re.I,
)
_LASTING = re.compile(
    r"\b(?:from now on|from here on|always|never(?! ?mind)|ever|(?:every|each) (?:time|single|day|week|month|morning)|"
    r"for every|in (?:all|every|any)|whenever|any ?time|by default|going forward|henceforth|in (?:the )?future|"
    r"as a rule|"
    r"permanently|for good|until further notice|remember|decided|prefer|usually)\b"
    r"|以后|今后|往后|从现在|从今|总是|始终|永远|一律|统一|每(?:次|天|周|月|年|晚|早|逢|到|当|季|个月)|凡是|默认|"
    r"别再|不要再|下次|"
    r"不管|无论|记住|记得|记一下|决定|定了|因为|由于|所以|一直|平时|习惯|喜欢",
    re.I,
)
# A clause that stands without the request in front of it.
_STANDING = re.compile(
    r"^(?:and |but |also )?(?P<en>(?:from now on|going forward|henceforth|in (?:the )?future|whenever|always|"
    r"by default|"
    r"remember)\b.*)|^(?:另外|还有|而且|并且|但是?)?(?P<han>(?:请|麻烦)?(?:你|您)?(?:以后|今后|往后|从现在|从今|每次|"
    r"凡是|记住|默认).*)",
    re.I | re.S,
)
_POINTS = re.compile(r"\b(?:it|that|this|these|those|them|the same|so)\b|[这那它]|照此|同样", re.I)
# The sentence behind a request that speaks of what was asked for.
_FOLLOWS = re.compile(
    r"^(?:it|they|this|that) (?:must|should|has to|have to|needs? to|can'?t|may not)\b|^(?:它|它们|这个?)?(?:必须|"
    r"务必|一定要|需要)(?:兼容|支持|保持|能|可以)",
    re.I,
)


def without_task(sentence: str) -> str:
    """What a sentence says besides asking for work now: all of it when it asks for none, empty when it asks only."""
    if len(sentence) > _LONG_CHARS or _HINT.search(sentence) is None or "```" in sentence:
        return sentence
    is_han = HAN.search(sentence) is not None
    clauses = _clauses(sentence, is_han)
    first = next((place for place, clause in enumerate(clauses) if _is_task(clause, is_han)), -1)
    if first < 0:
        return "" if _is_order(clauses, is_han) else sentence
    if not all(_leads(clause, is_han) for clause in clauses[:first]):
        return sentence
    for place in range(first, len(clauses)):
        clause = clauses[place]
        if _LASTING.search(clause) is not None or not (_is_task(clause, is_han) or _is_own(clause, is_han)):
            rest = _STANDING.match(sentence[sentence.find(clause) :])
            if place == first or rest is None or _POINTS.search(rest.group()):
                return sentence
            return str(rest["en"] or rest["han"])
    return ""


def names_work(sentence: str) -> bool:
    """Whether a sentence names work without asking for it; the sentence behind it may make it an order."""
    is_han = HAN.search(sentence) is not None
    return _LASTING.search(sentence) is None and _names(sentence, is_han) and len(_clauses(sentence, is_han)) == 1


def continues_task(sentence: str) -> bool:
    """Whether the sentence behind a request only says what that work must be like."""
    return _FOLLOWS.search(sentence) is not None and _LASTING.search(sentence) is None


def _clauses(sentence: str, is_han: bool) -> list[str]:
    return [part for part in (_CUT_HAN if is_han else _CUT_EN).split(sentence) if part.strip()]


def _is_order(clauses: list[str], is_han: bool) -> bool:
    """Whether the first clause names work and all others say what that must be like."""
    if len(clauses) < 2 or not _names(clauses[0], is_han) or any(_LASTING.search(clause) for clause in clauses):
        return False
    if is_han:
        return all(_MUST_HAN.match(clause.strip()) for clause in clauses[1:])
    return all(_FOLLOWS.match(clause.strip()) for clause in clauses[1:])


def _names(clause: str, is_han: bool) -> bool:
    if is_han:
        return _ORDER_HAN.match(_LEAD_HAN.sub("", clause.strip())) is not None
    return _ORDER_EN.match(_LEAD_EN.sub("", clause.strip().replace("’", "'"))) is not None


def _is_task(clause: str, is_han: bool) -> bool:
    if is_han:
        return _TASK_HAN.match(_LEAD_HAN.sub("", clause.strip())) is not None
    return _TASK_EN.match(_LEAD_EN.sub("", clause.strip().replace("’", "'"))) is not None


def _is_own(clause: str, is_han: bool) -> bool:
    """Whether the clause says how the work is to be done, or is a courtesy."""
    bare = clause.strip().rstrip("。.!！?？~ ").replace("’", "'")
    return (_OWN_HAN if is_han else _OWN_EN).match(bare) is not None


def _leads(clause: str, is_han: bool) -> bool:
    """Whether the clause in front of a request only turns away from other work, or is a courtesy."""
    bare = clause.strip().rstrip("。.!！ ").replace("’", "'")
    if is_han:
        return _LASTING.search(bare) is None and (not _LEAD_HAN.sub("", bare) or _DROPPED_HAN.match(bare) is not None)
    bare_en = _LEAD_EN.sub("", bare + " ").strip()
    return _LASTING.search(bare) is None and (not bare_en or _DROPPED_EN.match(bare_en) is not None)
