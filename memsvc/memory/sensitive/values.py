"""Values behind labels: where one ends, and whether it is a secret.

Purpose: the judgement of `words`. It is stricter the weaker the binding is: behind `=` a word will do, behind
a blank a value must mix letters and digits in a way that names and versions don't.

Threading: pure functions over compiled tables.

Rejected: entropy alone (a password that a person can type has little of it).
"""

from __future__ import annotations

import re
from enum import IntEnum

from memsvc.memory.sensitive.text import MARK, is_hex, is_orderly, is_placeholder, is_uuid, looks_random


class Bind(IntEnum):
    """How firmly a value is tied to its label; higher is firmer."""

    BLANK = 1
    SAYS = 2  # "is", "changed to"
    SAYS_ZH = 3  # the same in Chinese, where a Latin word is rarely prose
    ASSIGNS = 4


_QUOTES = {
    '"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』", "【": "】", "（": "）",
    "(": ")", "«": "»",
    "**": "**", "```": "```", '\\"': '\\"', "\\'": "\\'", "《": "》",
}  # fmt: skip
_OPEN = re.compile(r"""(?:r|b|u|f)?(?P<open>\\["']|```|\*\*(?=[^*])|["'`“‘「『【（(«《])""")
_BARE = re.compile(r"[!-;=-~\u00a1-\u024f]{1,160}")
_NEXT_FIELD = re.compile(
    r"""[,;&](?:\\?["'])?(?=[A-Za-z_][A-Za-z0-9_.\-]{0,40}(?:\\?["'])?\s?[=:])|(?:key|token|secret|password|pwd)="""
    r"""|\\[nrt]|<|，|","|':'|\}\}?[,\]]?$"""
)
TAIL = ".,;:?)]}>\"'`\\|*"

_UNIT = re.compile(
    r"\s{0,2}(?:位|个|次|天|分钟|小时|秒|年|月|日|周|字符|字节|种|条|倍|%|％|至|到|-\s?[0-9]|~\s?[0-9]"
    r"|(?:or more |to [0-9]+ |plus |\+ )?(?:char|digit|letter|day|time|min|attempt|word|byte|bit|hour"
    r"|month|week|year|second"
    r"|symbol|upper|lower|token|user|account|entr|fail|tries|test|case))"
)
TERMS = re.compile(
    r"(?i)(?:#[0-9a-f]{3,8}|md5|sha-?[0-9]{1,3}|sha3-[0-9]{3}|base-?(?:64|32|58)|utf-?(?:8|16)|bcrypt|argon2(?:id?)?"
    r"|scrypt|pbkdf2(?:-.*)?|oauth-?[12](?:\.[0-9])?"
    r"|rot13|x\.?509|aes-?[0-9]{0,3}(?:-.*)?|rsa-?[0-9]{0,4}|ed25519|ecdsa.*|2fa|mfa|totp|hotp|otp|sso"
    r"|ldap|saml-?2?(?:\.0)?|tls-?1?(?:\.[0-9])?|pkcs-?[0-9]{1,2}"
    r"|1password|keepass.*|bitwarden|lastpass|vault|kms|hsm|ascii|hex|http/?[12]?(?:\.[0-9])?|ipv[46]"
    r"|v[0-9]+(?:\.[0-9]+)*|[0-9]+(?:st|nd|rd|th)"
    r"|rfc-?[0-9]+|nist.*|iso-?[0-9].*|gpt-?[0-9].*|[0-9]+[kmgt]b?|[0-9]+(?:ms|s|min|h|d|w|x|k|m|px|em"
    r"|bit|bits|char|chars)|k8s|s3|ec2|i18n|hs256|rs256|es256"
    r"|web3|win(?:dows)?[0-9]+|python[0-9.]*|mysql[0-9.]*|h2|p[0-9]|q[1-4]|u2f|fido2|webauthn.*|srp6?a?"
    r"|ntlmv?2?|wpa[23].*)"
)
STOP = frozenset(
    """required optional string str text varchar char bytes none null nil undefined true false yes no on off
    empty blank unset missing invalid valid incorrect correct wrong right expired hashed hidden masked
    encrypted plain plaintext secure insecure strong weak medium unknown unchanged changed same default
    disabled enabled forgotten lost reset update updated change rotate rotated renew set get post put type
    name value field input label object number integer int float bool boolean any password passwd pwd pass
    secret token key todo tbd n/a na ask see here there stored saved generated random unique confidential
    private public sensitive protected leaked compromised the a an this that it my your our his her their
    and or but for with from must should can will may not never always at least only too very mandatory
    needed provided accepted rejected failed fail success ok okay error denied granted manager policy rules
    rule hint prompt reset forgot forgotten login logout auth authentication authorization authenticated
    bearer basic signing access refresh test testing example minimum maximum length case-sensitive read-only
    self let new old current previous next confirm confirmation continue proceed sign log use used using via
    env environment variable config settings base hash bcrypt argon2 sha md5 oauth jwt csrf expires expiry
    long short safe unsafe easy hard good bad great simple complex important important. critical everything
    something nothing what when where who why how which also just still now then today tomorrow back ready
    done fine working broken visible shown logged printed sent posted shared kept cached removed deleted
    cleared omitted redacted encoded decoded salted peppered column row table page form screen dialog box
    modal button link email mail phone sms app user users admin-only request response header body json yaml
    xml html sql bits characters digits count usage limit budget window stream flow exchange endpoint server
    service client vault keychain keyring prompted interactive stdin file path""".split()
)
_SUFFIX = re.compile(r"(?:ed|ing|able|ible|less|ful|ous|ive|ly|tion|ment|ness|ity|ism)$")
_CODE = re.compile(
    r"^[A-Za-z_]+(?:\.[A-Za-z_]+)*\(|"
    r"^(?:self|this|req|request|res|config|cfg|conf|settings|options|opts|args|params|process|os|env|ctx"
    r"|user|data|form|body"
    r"|event|props|state|secrets|credentials|account|row|obj|input|payload|faker|crypto|System"
    r"|Environment)(?:\?|!)?[.\[(]"
    r"|^[A-Za-z_][A-Za-z0-9_.]*\([^)]*\)?;?$|^(?:await|async|new|lambda|function|return|const|let|var)$"
    r"|^[A-Za-z_]+\[|=>|^&|^\|\|?$|^//|^/[a-z]|^\./"
)
ENV_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_SNAKE_NAME = re.compile(r"[a-z]+(?:[_.][a-z]+)+|[a-z]+(?:[A-Z][a-z]+)+")
_PROSE = re.compile(r"[A-Za-z]+(?:['’./_-][A-Za-z]+)*[.!]?")
_CLAUSE_END = re.compile(r"""\s{0,2}(?:["'`”’」』）)\]},.;!。，；！、|<&\\]|$|\n|[^\x00-\x7f])""")
_ZH_AFTER = re.compile(
    r"\s?(?:加密|存储|存的|存到|过的|哈希|格式|编码|登录|算法|校验|类型|字段|认证|方式|协议|签名|策略"
    r"|规则|这个|的(?!$|[。，]))"
)

_NUMBERS = re.compile(r"[0-9]+(?:[\-~./:,xX*+][0-9]+)*[%+]?")
_NAME_LIKE = re.compile(  # `iPhone15`, `Office2021`, `release-v2.1`, `OPS-1234`, addresses, files
    r"[A-Za-z]+(?:[-_. ][A-Za-z]+)*[-_. ]?v?(?:[0-9]{1,2}|(?:19|20)[0-9]{2}|[0-9]+(?:\.[0-9]+)+)|[A-Z]{2,10}-[0-9]+"
    r"|[^@\s]{1,64}@[^@\s]{1,64}\.[a-z]{2,}|[a-z0-9]+(?:[._/-][a-z0-9]+)*\.[a-z]{2,4}|[A-Za-z_\-]+=.*"
)
_FOREIGN = re.compile(
    r"[A-Z]{2,10}-[0-9]+|[^@\s]{1,64}@[^@\s]{1,64}\.[a-z]{2,}|[A-Za-z]+[ _-]?v?[0-9]+(?:\.[0-9]+)+"
    r"|[a-z0-9._/-]+\.[a-z]{2,4}"
)
_NAMES_LABEL = re.compile(r"(?i)pass(?:word|wd)|pwd|secret|token")
TWO_DIGITS = re.compile(r"[0-9].*[0-9]")
FUNCTION_WORDS = frozenset(
    """the a an is are be must should can could will not no to of in at on for with by from and or if it its
    this that your my our his her please have has than least contain contains required reset enter password
    characters see ask use""".split()
)
_ZH_NOT_VALUE = re.compile(
    r"密码|口令|错误|正确|必填|可选|为空|不能|请|登录|重置|修改|忘记|记住|输入|显示|隐藏|功能|按钮|字段|加密"
)
Value = tuple[int, int, bool]  # start, end, whether quotes mark both ends


def value_at(text: str, at: int) -> Value | None:
    """The value that starts at a position: what quotes enclose, or what runs to the next blank or field."""
    opened = _OPEN.match(text, at)
    if opened:
        start = opened.end()
        end = text.find(_QUOTES[opened["open"]], start, start + 256)
        if end == start:
            return None
        if end > start and "\n" not in text[start:end]:
            return start, end, True
        at = start
    bare = _BARE.match(text, at)
    if bare is None:
        return None
    start, end = bare.span()
    following = _NEXT_FIELD.search(text, start + 1, end)
    if following:
        end = following.start()
    while end > start and text[end - 1] in TAIL and not (text[end - 1] == ")" and "(" in text[start:end]):
        end -= 1
    return (start, end, False) if end > start else None


def is_secret(text: str, value: Value, group: str, bind: Bind, label: str) -> bool:
    """Whether a value is a secret, given what its label promises (`group`) and how firmly it is bound."""
    start, end, quoted = value
    word = text[start:end]
    if len(word) < 3 or is_placeholder(word) or TERMS.fullmatch(word) or "://" in word or MARK in word:
        return False
    if ENV_NAME.fullmatch(word) or (not quoted and _CODE.search(word)):
        return False
    if group in ("strong", "weak", "sk"):
        return _is_labelled_key(word, group, bind, label)
    if group == "pin":
        firm = bind >= Bind.SAYS or not label.isascii()
        short = word.isalnum() and word.isascii() and 4 <= len(word) <= 12
        return firm and short and has_digit(word) and not _UNIT.match(text, end)
    return _is_password(text, value, group, bind, label)


def has_digit(word: str) -> bool:
    """Whether there is a plain digit."""
    return any("0" <= c <= "9" for c in word)


def has_letter(word: str) -> bool:
    """Whether there is a letter of any script."""
    return any(c.isalpha() for c in word)


def _is_password(text: str, value: Value, group: str, bind: Bind, label: str) -> bool:
    start, end, quoted = value
    word = text[start:end]
    if " " in word or not word.isascii():
        return quoted and bind >= Bind.SAYS and _is_phrase(word, label)
    if word.strip("#*").isdigit():
        enough = len(word) >= 4 if bind >= Bind.SAYS else not label.isascii() and (len(word) >= 6 or "#" in word)
        return enough and group != "short" and not _UNIT.match(text, end)
    if _NUMBERS.fullmatch(word):
        return False
    if _PROSE.fullmatch(word):
        return _is_word_password(text, value, group, bind)
    if bind < Bind.ASSIGNS and "_" in word and _NAMES_LABEL.search(word):
        return False
    if len(word) < 4 or _SNAKE_NAME.fullmatch(word):
        return False
    if bind >= Bind.SAYS:
        return has_letter(word) or has_digit(word)
    if not label.isascii():
        return (
            len(word) >= 6 and has_letter(word) and TWO_DIGITS.search(word) is not None and not _FOREIGN.fullmatch(word)
        )
    return len(word) >= 6 and _is_strong(word)


def _is_strong(word: str) -> bool:
    """Letters and digits mixed in a way that names and versions are not."""
    if not (has_digit(word) and has_letter(word)) or _NAME_LIKE.fullmatch(word):
        return False
    kinds = sum((any(c.islower() for c in word), any(c.isupper() for c in word), any(not c.isalnum() for c in word)))
    return kinds >= 2 or looks_random(word, 0.2) or (len(word) >= 8 and "-" not in word and "." not in word)


def _is_phrase(word: str, label: str) -> bool:
    if word.isascii():
        words = word.lower().split()
        return not FUNCTION_WORDS.intersection(words) or (has_digit(word) and len(words) < 6)
    return not label.isascii() and 2 <= len(word) <= 16 and " " not in word and not _ZH_NOT_VALUE.search(word)


def _is_word_password(text: str, value: Value, group: str, bind: Bind) -> bool:
    """Whether a value of letters only is a password and not the next word of a sentence."""
    start, end, quoted = value
    word = text[start:end].lower().rstrip("!")
    parts = re.split(r"['’./_-]", word)
    if len(word) < 4 or word in STOP or parts[0] in STOP or parts[-1] in STOP or _SUFFIX.search(word):
        return False
    if "pass" in word or "secret" in word or "token" in word or _SNAKE_NAME.fullmatch(text[start:end]):
        return False
    if quoted:
        return bind >= Bind.SAYS
    if group == "short" or bind in (Bind.BLANK, Bind.SAYS):
        return False
    return _CLAUSE_END.match(text, end) is not None and not _ZH_AFTER.match(text, end)


def _is_labelled_key(word: str, group: str, bind: Bind, label: str) -> bool:
    if len(word) < 8 or " " in word or not word.isascii():
        return False
    if group == "strong":
        if bind == Bind.BLANK:
            return len(word) >= 16 and looks_random(word, 0.2)
        if len(word) >= 12 and looks_random(word, 0.12):
            return True
        plain = not any(c in "-_./:" for c in word)
        return plain and has_digit(word) and has_letter(word) and not is_orderly(word)
    if len(word) < 16 or (label == "key" and is_uuid(word)) or _is_path(word):
        return False
    if bind == Bind.BLANK:
        return len(word) >= 20 and looks_random(word, 0.2) and not is_hex(word) and not is_uuid(word)
    return looks_random(word)


def _is_path(word: str) -> bool:
    """Whether the value is a path or a compound of names (`users/1001/avatar.png`, `user:1001:profile`)."""
    parts = re.split(r"[/:]", word)
    return len(parts) > 1 and any(re.fullmatch(r"[a-z]{3,}|[A-Za-z0-9_\-]+\.[a-z]{2,4}", part) for part in parts)
