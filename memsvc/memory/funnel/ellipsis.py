"""Answers that mean nothing without the question before them: "PDF", "the second one", "每周三".

Purpose: tell a short answer that needs its question from a short statement that was merely said after one. Who says
"部署脚本的负责人是王芳" when asked "要不要先休息一下？" answers nothing.

Threading: pure functions.

Rejected: length alone (eleven Chinese characters hold a whole sentence); the embedding's nearness of question and
answer ("PDF" is near to nothing).
"""

from __future__ import annotations

import re

from memsvc.memory.funnel.cues import HAN

_LONG_HAN_CHARS = 12
_LONG_WORDS = 4
_WHOLE_SUBJECT_CHARS = 4  # so long a subject needs no object: "对账脚本每天凌晨跑"
# What points elsewhere is in nobody's statement.
_POINTS = re.compile(
    r"\b(?:it|that|this|those|these|ones?|both|either|neither|latter|former|first|second|third|same|so|there|then|"
    r"them|him|her|he|she|they)\b|[这那它他她]|前者|后者|第[一二三四1-4](?![\u3400-\u9fff]{0,4}[版期])|一样|都行|"
    r"都可以",
    re.I,
)
_LEAD = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yeah|no|well|sure|btw|by the way|also|actually)\b[,.!]\s*"
    r"|(?:好的?|嗯+|对了?|是的|哦|另外|还有|不)[，,。！!\s]+)+",
    re.I,
)
_SUBJECT_EN = re.compile(
    r"^(?:(?:the|our|my) (?P<noun>[\w-]+(?: [\w-]+){0,2}?)|(?:an?|all|every|no|each) [\w-]+|i|we|[\w-]+) "
    r"(?:(?:is|are|was|were|has|have|runs?|uses?|owns?|needs?|wants?|likes?|must|prefers?|leads?|lives?|works?|"
    r"ships?|handles?|manages?|requires?|costs?|starts?|ends?|belongs?|means|became|moved|speaks?|drinks?|eats?|hates?)"
    r"|(?<=i )\w+|(?<=we )\w+) \S",
    re.I,
)
_NO_SUBJECT_EN = re.compile(
    r"^(?:on|in|at|by|with|for|please|just|only|let|maybe|what|which|use|make|every|each)\b", re.I
)
_CHOOSES_EN = re.compile(
    r"^(?:i|we) (?:want|need|like|think|guess|choose|pick|take|can|could|will|would|do|am|are|have)\b", re.I
)
_RULE_EN = re.compile(r"^no \w+ (?:on|in|at|before|after|without) \S", re.I)
_VERB_HAN = re.compile(
    r"是|(?<![因认])为|叫|(?<![现正所])在|(?<![没所只])有(?!时)|住|归|由|(?<![不尽主])管|换成|换到|改成|改用|改为|"
    r"负责|属于|等于|必须|禁止|不(?:能|许|准|得|发|吃|喝|接|用|支持|允许|开)"
    r"|喜欢|习惯|讨厌|过敏|跑|部署|发布|发版|上线|支持|依赖|采用|(?<![费使])用|监听|运行|到期|包含|只能|"
    r"(?<![主重])要|吃|喝|养|开会|休"
)
# What stands before a verb without being its subject: adverbs, times, words of courtesy.
_NO_SUBJECT_HAN = re.compile(
    r"(?:就|总|应该|都|也|不|还|只|没|可|要|得|最好|可以|一般|通常|大概|当然|肯定|其实|主要|先|再|更|现在|目前|以后|"
    r"今天|明天|昨天|今晚|"
    r"是|请|麻烦|帮我|用|每|逢|天|晚|早上|下午|上午|周|星期|礼拜|月|年|[一二三四五六日\d点号末底初半]|的|吧|，|,|\s)*"
)
_CHOOSES_HAN = re.compile(
    r"^我们?(?:都|也|就|还是)?(?:选|要|想|觉得|认为|同意|知道|不知道|不确定|不要|不用|不想|不是|可以|没)"
)
_TIMED_HAN = re.compile(
    r"^(?:每?(?:周|星期|礼拜)[一二三四五六日天]|每天|每月|以后|今后)(?:不|别|都|必须|禁止|只能)[\u3400-\u9fff\w ]{2,}"
)
_ASKS_WHICH = re.compile(
    r"哪|什么|谁|几|多少|多久|怎么|怎样|何时|还是|\b(?:what|which|who|when|where|how|why|whose|or)\b", re.I
)
_HEARD = re.compile(r"^(?:ok(?:ay)?|alright|好的?|嗯+|行|收到)[，,。.!！\s]+(?P<rest>[^，,;；。]{4,}?)[。.!！]*$", re.I)
_WORDS = re.compile(r"[a-z]{3,}|(?=([\u3400-\u9fff]{2}))", re.I)
_ENDS = ("?", "？")


def needs(text: str, previous: str) -> bool:
    """Whether the text can't stand alone and `previous` is a question that completes it."""
    if not previous.rstrip().endswith(_ENDS) or not text.strip():
        return False
    said = _LEAD.sub("", text.strip()).rstrip("。.!！ ")
    if HAN.search(text):
        return len(text) <= _LONG_HAN_CHARS and not _stands_han(said, previous)
    return len(text.split()) <= _LONG_WORDS and not _stands_en(said, previous)


def is_heard_only(text: str, previous: str) -> bool:
    """Whether an "ok" at the start only says that `previous` was heard: a statement about something else follows."""
    match = _HEARD.match(text.strip())
    if match is None or not previous.rstrip().endswith(_ENDS):
        return False
    rest = match["rest"]
    if not (_stands_han if HAN.search(rest) else _stands_en)(rest, previous):
        return False
    return _words(rest).isdisjoint(_words(previous))


def _words(text: str) -> set[str]:
    return {match.group().lower() or match.group(1) for match in _WORDS.finditer(text)}


def _stands_en(said: str, question: str) -> bool:
    if _POINTS.search(said):
        return False
    if _RULE_EN.search(said):
        return True
    match = _SUBJECT_EN.match(said)
    if match is None or _NO_SUBJECT_EN.match(said) or _CHOOSES_EN.match(said):
        return False
    return not _repeats(match["noun"] or "", question)


def _stands_han(said: str, question: str) -> bool:
    if _POINTS.search(said):
        return False
    if _TIMED_HAN.match(said):
        return _ASKS_WHICH.search(question) is None
    if said.startswith("我"):
        return len(said) >= 4 and _CHOOSES_HAN.match(said) is None
    for verb in _VERB_HAN.finditer(said):
        subject = said[: verb.start()]
        has_object = len(said) > verb.end() or len(subject) >= _WHOLE_SUBJECT_CHARS
        if subject and has_object and _NO_SUBJECT_HAN.fullmatch(subject) is None:
            return not (len(subject) <= 2 and _repeats(subject, question))
    return False


def _repeats(noun: str, question: str) -> bool:
    """Whether a bare noun is the question's: "the port is 8080" says of which port only together with it."""
    return bool(noun) and " " not in noun and noun.lower() in question.lower()
