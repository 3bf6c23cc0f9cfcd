"""Secrets that show by the word beside them: passwords in Chinese and English, labelled keys and tokens.

Purpose: a label (`password`, `口令`, `api_key`), a way to bind it to a value (`=`, `is`, `改成`, a blank), and a
judgement whether the value is one. Talk about passwords has the label too, so the judgement is stricter the weaker
the binding is: behind `=` a word will do, behind a blank it must mix letters and digits.

Threading: pure functions over compiled tables.

Rejected: one regular expression for all of it (nobody could read it, and it would backtrack); a list of common
passwords (the uncommon ones are those that matter).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memsvc.memory.sensitive.keys import basic_login
from memsvc.memory.sensitive.text import Finding, Folded, Kind, is_placeholder, looks_random
from memsvc.memory.sensitive.values import (
    ENV_NAME,
    FUNCTION_WORDS,
    STOP,
    TAIL,
    TERMS,
    TWO_DIGITS,
    Bind,
    Value,
    has_digit,
    has_letter,
    is_secret,
    value_at,
)

# Plain words first: `re` skips fast to the first letters of an alternation of literals; groups would undo that.
_CORE = re.compile(
    "pass|pwd|pswd|psw|pw|pin|sk|ak|contrase|senha|kennwort|口令|密码|密 码|密碼|暗号|提取码|解压码|访问码"
    "|取件码|パスワード|비밀번호|secret|token|key|密钥|秘钥|密鑰"
    "|令牌|凭证|credential|cookie|phpsess|jsess"
)
_LABEL = re.compile(
    r"(?P<password>(?:(?:pass(?:words?|wd|phrase|code|wort)|pwd|pswd|contraseña|senha|kennwort)(?![a-z])"
    r"|口令|密 ?码|密碼|暗号|パスワード|비밀번호)(?:[0-9]{1,2}(?=[\s:=：]))?)"
    r"|(?P<short>pass|pw|psw)(?![a-z])"
    r"|(?P<sk>[as]k)(?=[\"']?\s?[:：=是])"
    r"|(?P<pin>pin(?:[ _-]?code|码)?(?![a-z])|提取码|解压码|访问码|取件码)"
    r"|(?P<key>(?:(?:secret|token|key)(?:[ _-]?(?:secret|key|token))?(?![a-z])|密钥|秘钥"
    r"|密鑰)(?:[0-9]{1,2}(?=[\s:=：]))?"
    r"|令牌|凭证|(?:credentials?|phpsessid|jsessionid|cookie)(?![a-z]))"
)
_STRONG_BEFORE = tuple(
    """api app access auth secret signing encryption client private master service account hmac webhook
    consumer deploy bot admin shared""".split()
)
_CLOSE = r"""(?:\\?["'`\]]|\*\*|\)){0,3}"""
_ASSIGN = re.compile(
    _CLOSE
    + r"(?:\s?[（(][^（()）\n]{1,24}[)）])?\s{0,3}(?::=|=>|->|={1,3}|[:：|>]|→|⇒|➜|-{1,2}(?=\s)|~|\(u?(?=[\"']))\s{0,3}"
)
_SAYS_VERBS = (
    r"(?:'s[ \t]{1,2}(?:(?:been|now|still|just|changed|set|reset|updated|to)[ \t]{1,2}){0,4}"
    r"|[ \t]{0,4}[:：=][ \t]{0,4}(?=\S)|[ \t]{1,4}(?:(?:has|have|had|is|was|are|were|be|will|should|shall"
    r"|gets?|got|been|being|now"
    r"|currently|still|just|temporarily|changed|set|reset|updated|rotated|switched|became|remains|to|as|equals?|from"
    r"|today|again|simply|probably|reads|goes)[ \t]{0,4}(?:(?<=[ \t])|(?=[:：]))){1,6})"
    r"[:：]?[ \t]{0,4}"
)
_SAYS = re.compile(_CLOSE + _SAYS_VERBS)
_SAYS_OF = re.compile(
    _CLOSE
    + r"[ \t]{1,4}(?:for|to|of|on|in|at|with|that|which|i|we|you|he|she|they)[ \t]"
    + r"(?:[^\n,;:!?=。，；.]|\.(?=\S)){1,48}?"
    + _SAYS_VERBS
)
_SAYS_ZH = re.compile(
    _CLOSE
    + r"(?P<gap>[^\n，。；,;!！?？\"“”「」<>{}=]{0,14}?)"
    + r"(?:是|为|叫|改成|改为|换成|换为|换了|改了|改到|改|设成|设为|设置成|设置为|变成|重置成|重置为|重置到"
    r"|更新为|更新成|定为|定成|配成|从"
    r"|用的|用|默认|统一[成为]|统一|调成|弄成|修改[为成]|[变更]更为|更改为|调整为|重设为|恢复[成为]|暂定|设的|填的?|输入?|写的?|给你|[:：=])(?:了|是|为)?\s?[:：]?\s{0,3}(?:(?:我|他"
    r"|她|咱|老婆|老公|孩子|女儿|儿子)[^，。,;；\s!-~]{0,6}\s?)?"
)
_ZH_TALK = re.compile(
    r"^(?:学|本|箱|器|机|框)|页面|按钮|颜色|图标|界面|弹窗|数据表|表用|管理|策略|规则|强度|长度|错误|字段|找回|加密|哈希|算法|过期|有效|位数|格式"
    r"|提示|生成|复杂|最短|至少"
    r"|不少于|必须|要求|不能|不对|忘|类型|存储|哪|什么|怎么|保护|轮换|验证|校验|接口|重试|次数|输错"
    r"|数据表|表用|频率|周期|版本|多少|几|不要|别用|数量|消耗|用量"
)
_SAYS_LATER = re.compile(  # `密码还没改，是 X`, `my password, it is X`
    r"(?:[^\n.,;:!?=<>{}]{0,24}, ?(?:so )?(?:now |and )?(?:it(?:'s| is| was)|that's|is) (?:now )?)|"
    r"[^\n。；;！!？?，,\"“<>={}!-~]{1,16}[，,]\s?(?:现在|目前|还|就|都|新的?)?(?:是|改成|换成|设成|叫|用)了?\s?"
)
_BLANK = re.compile(_CLOSE + r"\s{0,3}")
_THEN = re.compile(r"""["'`”」]?\s{0,2}(?:to|->|→|改成了?|改为|换成了?|变成|成了?|为|and|or|或者?|和|与)\s{0,2}""")

_WEAK_NOUN = re.compile(
    r"(?:public|publishable|primary|foreign|cache|partition|sort|idempoten\w*|object|s3|redis|routing|row"
    r"|shard|hot|lookup"
    r"|translation|i18n|issue|jira|index|dedup\w*|storage|map|dict|json|page|next|continuation|sync"
    r"|cursor|cancellation|group"
    r"|unique|host|hash|site|anon|answer|shortcut|arrow|enter|tab|ctrl|max|min|num|total|input|output|公"
    r"|主|缓存|幂等|索引|外|按|主键|字典"
    r"|pagetoken|pad|eos|bos|cls|sep|unk|mask|stop|special|redirect|product|ssh|gpg|host)[ _-]?$"
)
_BEARER = re.compile(r"\bbearer[ \t]+([a-z0-9._~+/\-]{12,4096}={0,2})")
_AUTH = re.compile(
    r"authorization\\?[\"']?\s{0,2}[:=：]\s{0,2}\\?[\"']?(?:(basic|bearer|token|apikey|digest"
    r"|api-key)[ \t]+)?([!-~]{8,4096})"
)
_PAIR = re.compile(
    r"(?:(?:账号|帐号|账户|用户名?)(?:和|/|、|及)?(?:密码|口令)|账密|credentials?|creds|登录信息"
    r"|user(?:name)?\s?/\s?pass(?:word)?|wi-?fi|无线网?络?)"
    r"(?:[ \t]{1,3}(?:for|to|on|at)[^\n:：,，]{1,40}?)??(?:\s{0,2}[:：=是为]|[ \t]{1,3}(?:is|are|用))\s{0,3}"
    r"[\"'`]?[^\s/|,，:：\"'`]{2,64}[\"'`]?\s?[/|:,，、 ]\s?([!-~]{4,64})"
)
_LOGIN_PAIR = re.compile(
    r"(?:(?:log|sign)(?:ged|ging|s)?[ -]?(?:in|on)|login|登录|登陆|ssh)[^\n/|,，;；]{0,40}?(?:with|as"
    r"|using|is|用|是|[:：])\s{0,3}"
    r"[\"'`]?[^\s/|,，:：\"'`]{2,64}[\"'`]?\s?[/|:]\s?([!-~]{4,64})"
)
_PAIR_LOGIN = re.compile(
    r"(?<![a-z0-9])(?:admin|administrator|root|user|test|guest|sa|ubuntu|postgres|oracle|demo"
    r"|operator)\s?[:/]\s?([!-~]{5,64}?)"
    r"\s{0,2}(?:登录|登陆|登进|能登|to log ?in|logs? in)"
)
_PAIRS = (
    (_PAIR_LOGIN, ("登", "log")),
    (_PAIR, ("账号", "帐号", "账户", "用户", "账密", "cred", "登录信息", "user", "wifi", "wi-fi", "无线")),
    (_LOGIN_PAIR, ("log", "sign", "登录", "登陆", "ssh")),
)
_REVERSE_VERBS = (" is ", " was ", " as ", " = ")
_REVERSE_VERBS_ZH = ("是", "作为", "当作", "当", "做")
_DETERMINERS = frozenset(
    """the my our your his her its their a an new old root admin current temporary temp wifi wi-fi db
    database master default login ssh vpn email bank router staging prod production server account guest
    user""".split()
)
_REVERSE_REACH = 120
_REVERSE_GAP = 18
_USER_BEFORE = re.compile(
    r"--$|(?:user(?:name)?|login|账号|帐号|用户名?|account)[\s:=：是为]{1,3}[^\s，,;；]{1,40}[\s，,;；/]{1,3}$"
)
_TALK_AFTER = re.compile(
    r"[ \t]?(?:manager|policy|grant|hash|field|reset|flow|based|protected|input|prompt|auth|算法|管理"
    r"|策略|登录|加密|重置|强度|格式)"
)
_WORDS = re.compile(r"[a-z]{3,12}(?: [a-z]{3,12}){3,23}(?![A-Za-z])")
_BINDS = (
    (Bind.ASSIGNS, _ASSIGN), (Bind.SAYS_ZH, _SAYS_ZH), (Bind.SAYS, _SAYS_OF), (Bind.SAYS, _SAYS),
    (Bind.BLANK, _BLANK), (Bind.BLANK, _SAYS_LATER),
)  # fmt: skip
_COMMANDS = (
    (" -p", re.compile(r"(?:(?:mysql[a-z]*|mariadb|7z)\b[^\n|;]{0,160}?[ \t]-p|(?:sshpass|docker[ \t]+login"
        r"|mongo[a-z]*)\b[^\n|;]{0,160}?[ \t]-p[ \t])[\"']?([^\s\"'\-][^\s\"']{3,64})")),
    (" -u", re.compile(r"(?:curl|wget|http|rclone)\b[^\n|;]{0,160}?[ \t](?:-u"
        r"|--user)[ \t=]?[\"']?[^\s:\"']{1,64}:([^\s\"']{4,64})")),
    (" -a", re.compile(r"redis-cli\b[^\n|;]{0,160}?[ \t]-a[ \t][\"']?([^\s\"']{4,64})")),
    ("identified by", re.compile(r"identified[ \t]+by[ \t]+[\"']([^\s\"']{3,64})")),
)  # fmt: skip


def find_words(folded: Folded) -> Iterator[Finding]:
    """Findings by label, in no order; they may overlap."""
    lower = folded.lower
    covered = 0
    for core in _CORE.finditer(lower):
        label = _LABEL.match(lower, core.start()) if core.start() >= covered else None
        if label is None:
            continue
        group = _group(lower, label)
        for span in _values(folded, label, group):
            kind = Kind.API_KEY if group in ("strong", "weak", "sk") else Kind.PASSWORD
            yield folded.finding(kind, *span)
            covered = max(covered, span[1])
        covered = max(covered, label.end())
    if "bearer" in lower or "authorization" in lower:
        yield from _headers(folded)
    yield from _pairs(folded)


def _group(lower: str, label: re.Match[str]) -> str:
    """What the label promises: `password`, `short`, `pin`, or a key, `strong` (of an API) or `weak` (of anything)."""
    group = label.lastgroup or ""
    if group != "key":
        return group  # `AK`, `SK`: how Chinese clouds call their keys
    if label[0].startswith(("secret", "密钥", "秘钥", "密鑰")) or "secret" in label[0]:
        return "strong"
    start = label.start()
    return "strong" if lower[max(0, start - 12) : start].rstrip(" _-").endswith(_STRONG_BEFORE) else "weak"


def _values(folded: Folded, label: re.Match[str], group: str) -> Iterator[tuple[int, int]]:
    """The spans that the label makes secrets of; most labels make none."""
    if group in ("short", "pin", "sk") and not _is_short_label(folded, label):
        return
    if group == "weak" and _WEAK_NOUN.search(folded.lower, max(0, label.start() - 16), label.start()):
        return
    found = _behind(folded, label, group) or _before(folded, label, group)
    for _ in range(4):
        if found is None:
            return
        yield found
        then = _THEN.match(folded.lower, found[1])  # "from A to B", "A or B"
        value = value_at(folded.text, then.end()) if then else None
        found = value[:2] if value and is_secret(folded.text, value, group, Bind.BLANK, label[0]) else None


def _is_short_label(folded: Folded, label: re.Match[str]) -> bool:
    """`pass` and `pw` count as words of their own, or as the last hump of a camel (`dbPass`)."""
    start = label.start()
    before = folded.lower[start - 1 : start] if start else ""
    return not "a" <= before <= "z" or (folded.text[start].isupper() and folded.text[start - 1].islower())


def _behind(folded: Folded, label: re.Match[str], group: str) -> tuple[int, int] | None:
    text, lower, at = folded.text, folded.lower, label.end()
    for bind, connector in _BINDS:
        bound = connector.match(lower, at)
        if bound is None or (bind == Bind.SAYS_ZH and _is_talk(bound["gap"], label[0])):
            continue
        if bind == Bind.BLANK:
            if bound.end() == at and label[0].isascii():
                continue
            if _USER_BEFORE.search(lower, max(0, label.start() - 60), label.start()):
                bind = Bind.ASSIGNS
        value = value_at(text, bound.end())
        if value and is_secret(text, value, group, bind, label[0]) and _is_closed(text, value, bound[0]):
            return value[:2]
        if bind >= Bind.SAYS and "phrase" in label[0]:
            words = _WORDS.match(text, bound.end())
            if words and not FUNCTION_WORDS.intersection(words[0].lower().split()):
                return words.span()
    return None


def _is_talk(gap: str, label: str) -> bool:
    """Whether what stands between a label and its verb says that no value follows (`密码长度是`, `password_timeout=`)"
    ".
    """
    return _ZH_TALK.search(gap) is not None or (
        label.isascii() and any(c.isascii() and (c.isalnum() or c in "_-.") for c in gap)
    )


def _is_closed(text: str, value: Value, connector: str) -> bool:
    """Whether a `>` that binds is that of a tag around the value."""
    return not connector.endswith(">") or connector.endswith(("->", "=>")) or text.startswith("</", value[1])


def _before(folded: Folded, label: re.Match[str], group: str) -> tuple[int, int] | None:
    """`Abc#123 is the password`, `Abc#123 作为密码`."""
    if group not in ("password", "strong") or _TALK_AFTER.match(folded.lower, label.end()):
        return None
    end = _said_before(folded.lower, label)
    while end > 0 and folded.lower[end - 1] in " \t":
        end -= 1
    start = end
    while start > 0 and end - start < 64 and "!" <= folded.text[start - 1] <= "~":
        start -= 1
    while start < end and folded.text[start] in "\"'`“(":
        start += 1
    while end > start and folded.text[end - 1] in TAIL:
        end -= 1
    word = folded.text[start:end]
    mixed = len(word) >= 6 and has_letter(word) and TWO_DIGITS.search(word) is not None
    if group == "password" and not (mixed and not TERMS.fullmatch(word)):
        return None
    bind = Bind.SAYS if group == "password" else Bind.BLANK
    return (start, end) if is_secret(folded.text, (start, end, False), group, bind, label[0]) else None


def _said_before(lower: str, label: re.Match[str]) -> int:
    """Where a value ends of which the label is said (`X is the|password`), 0 if there is none."""
    low, high = max(0, label.start() - _REVERSE_REACH), label.start()
    if not label[0].isascii():
        verbs = [(lower.rfind(verb, max(low, high - _REVERSE_GAP), high), verb) for verb in _REVERSE_VERBS_ZH]
        return max(verbs)[0] if max(verbs)[0] > 0 else 0
    at, verb = max((lower.rfind(verb, low, high), verb) for verb in _REVERSE_VERBS)
    return at if at > 0 and _DETERMINERS.issuperset(lower[at + len(verb) : high].split()) else 0


def _headers(folded: Folded) -> Iterator[Finding]:
    text, lower = folded.text, folded.lower
    for header in _AUTH.finditer(lower):
        start, end = header.span(2)
        end = start + len(text[start:end].rstrip(TAIL))
        value = text[start:end]
        if not is_placeholder(value) and (basic_login(value) if header[1] == "basic" else looks_random(value, 0.12)):
            yield folded.finding(Kind.API_KEY, start, end)
    for token in _BEARER.finditer(lower):
        value = text[token.start(1) : token.end(1)]
        if len(value) >= 16 and looks_random(value, 0.12):
            yield folded.finding(Kind.API_KEY, *token.span(1))


def _pairs(folded: Folded) -> Iterator[Finding]:
    """`admin / Abc#123` behind a word for logging in, and passwords on command lines."""
    text, lower = folded.text, folded.lower
    for pattern, hints in _PAIRS:
        if not any(hint in lower for hint in hints):
            continue
        for pair in pattern.finditer(lower):
            value = value_at(text, pair.start(1))
            if value is None:
                continue
            firm = text[: pair.start(1)][-3:].rstrip()[-1:] in ("/", "|", ":") or pattern is _PAIR
            bind = Bind.ASSIGNS if firm and has_digit(text[value[0] : value[1]]) else Bind.BLANK
            if is_secret(text, value, "password", bind, pair[0][:1]):
                yield folded.finding(Kind.PASSWORD, *value[:2])
    for hint, pattern in _COMMANDS:
        if hint in lower:
            for command in pattern.finditer(lower):
                word = text[command.start(1) : command.end(1)]
                if not is_placeholder(word) and not ENV_NAME.fullmatch(word) and word.lower() not in STOP:
                    yield folded.finding(Kind.PASSWORD, *command.span(1))
