"""Whether a statement that a chat model wrote is made of what was said.

Purpose: a model may invent, be talked into something by the message it reads, or lose a "not". A statement passes when
its numbers, names and addresses are the message's and in the message's order, most of its other words are, and each of
its clauses is negated where the clause that it comes from is. Words are compared as words; scripts without spaces
between them (Han, kana, Hangul, Thai, the Indic ones) by pairs of characters in order.

Threading: pure functions.

Rejected: embeddings (a flipped "not" or number hardly moves a cosine); a second model as the referee (it reads the same
injected text); accepting when in doubt (what is refused is judged locally, which costs little).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import msgspec

GROUNDED_SHARE = 0.6  # of a statement's plain words, and of its pairs of characters

_D = "\u0900-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_W = rf"[^\W{_D}]"
_TOKEN = re.compile(
    rf"(?P<dense>(?:(?!\d)[{_D}])+)|(?:(?<!\w)-(?=\d))?[$€£¥]?{_W}+(?:(?:[.:/@'’+&?=#~%-]+|,(?=\d)){_W}+)*%?"
)
_PARTS = re.compile(r"(?<=[^\W\d])\W+(?=\w)|(?<=\w)\W+(?=[^\W\d])")  # "a:80" are two, "10:30" and "-5" are one
_ADDRESS = re.compile(r"[@/:.?=#]")
_DIGIT = re.compile(r"\d")
_POSSESSIVE = re.compile(r"['’]s$")
_JOINER = re.compile(r"(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")  # spelling in Persian and Indic scripts
_FRAME = frozenset(
    "the a an of to in on for and or is are was be been has have had user user's users their they them that this i we "
    "my our with by from as at it its prefers prefer wants want likes like asks does do will should would "
    "not no never don doesn didn isn aren wasn won can couldn shouldn wouldn не "
    "пользователь пользователя предпочитает хочет просит для на по что это".split()
)
_DENSE_FRAME = re.compile(
    r"用户|偏好|喜欢|希望|要求|需要|他们|ユーザー|を好む|を希望|사용자(?:는|가|의)?|선호한다|원한다|ผู้ใช้|ต้องการ"
)
_COUNTS = frozenset(
    "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty seventy eighty "
    "ninety hundred thousand million billion half twice".split()
)
_HAN_COUNT = re.compile(r"[零〇一二三四五六七八九十百千万亿两半億萬兩]+")
_NEGATION = re.compile(
    r"n['’]t\b|\b(?:do|does|did|is|are|was|wo|ca|should|would|could)nt\b|\bnot\b(?! only)|\b(?:no|never|none|nothing|"
    r"nobody|without|cannot|neither|nor|avoid\w*|stop\w*|quit\w*|refus\w+|reject\w*|dislik\w+|hat(?:e|es|ed)|forbid\w*|"
    r"prohibit\w*|disabl\w+|den(?:y|ies|ied)|exclud\w+|ban(?:s|ned)?)\b|"
    r"\b(?:nicht|kein\w*|niemals|nie|ohne|pas|jamais|sans|nunca|jamás|sin)\b|"
    r"\bне\b(?! только)|\b(?:нет|ни|без|никогда|никто|ничего|нельзя|избега\w*|запре[щт]\w*|отказ\w*|ненавид\w*)\b|"
    r"不(?![错仅但过同锈断管论少])|[没沒](?!准|问题)|(?<![特区區级級分个個])[别別](?![人的墅名々])|[勿莫]|未(?!来|來)|"
    r"[无無](?![线论線論])|非(?![常洲])|禁止|避免|讨厌|討厭|拒绝|拒絕|禁用|停用|关闭|關閉|取消|反对|反對|"
    r"ない|なく|なかっ|なけれ|ません|ずに|嫌い|やめ|避け|ダメ|だめ|"
    r"않|(?<![가-힣])안 |(?<!잘)못|없|아니|지 ?말(?=[고아라자것])|지 ?마(?=[세라시요십])|금지|싫|"
    r"ไม่|อย่า|ห้าม|เลิก|เกลียด|หลีกเลี่ยง|नहीं",
    re.I,
)
_CLAUSE_END = re.compile(r"([,，、](?!\d))|[;；。!?！？।\n]|\.(?=\s)|\bbut\b|(?<!不)但是?|而是|지만|\bно\b", re.I)
_LIST_ITEM = re.compile(
    rf"\s*(?:(?:and|or|и|или)\s+)?(?:[{_D}]{{1,2}}|[^\s{_D}]+(?:\s+(?:and|or|и|или)\s+\S+)?)\s*\W?", re.I
)


class _Said(msgspec.Struct, frozen=True):
    """A statement's words without its framing ("the user prefers"): `exact` are numbers, names and addresses."""

    exact: tuple[str, ...]
    plain: tuple[str, ...]
    pairs: tuple[str, ...]

    def shared(self, known: _Known) -> int:
        """How many of its different words a text has."""
        return len({*self.exact, *self.plain, *self.pairs} & known.words)


class _Known(msgspec.Struct, frozen=True):
    """A text to look words up in: `order` has each as it stands, as a whole and in parts; `words` the stems as well.

    `pairs` has each character and each two neighbours of the dense runs, in order; `words` holds these too.
    """

    order: tuple[str, ...]
    words: frozenset[str]
    names: frozenset[str]
    pairs: tuple[str, ...]


class _Clause(msgspec.Struct, frozen=True):
    """A clause's text without the negation itself, which is no word to share.

    `is_negated` is None in "no tea, milk or sugar" for what follows the comma: who knows.
    """

    text: str
    is_negated: bool | None


def is_grounded(statement: str, message: str, previous: str = "") -> bool:
    """Whether a statement is made of its message and of the one before, as the module says. False when in doubt.

    `previous` counts because an answer ("the second one, please") only means something with its question.
    """
    said_text, own, before = _normal(statement), _normal(message), _normal(previous)
    if not said_text.isprintable():
        return False
    known = _known(f"{before}\n{own}")
    said = _said(said_text, known.names)
    if not (said.exact or said.plain or said.pairs) or not _is_in_order(said.exact, known.order):
        return False
    if sum(word in known.words for word in said.plain) < GROUNDED_SHARE * len(said.plain):
        return False
    if _common_in_order(said.pairs, known.pairs) < GROUNDED_SHARE * len(said.pairs):
        return False
    return _is_negated_alike(said_text, own, before)


def _normal(text: str) -> str:
    """NFKC, ASCII digits, one kind of joiner: none."""
    text = _JOINER.sub("", unicodedata.normalize("NFKC", text.strip()))
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def _said(text: str, names: frozenset[str]) -> _Said:
    exact: list[str] = []
    plain: list[str] = []
    pairs: list[str] = []
    is_first = True
    for token, is_dense in _tokens(text):
        name = _folded(token)
        if is_dense:
            exact += _counts(token)
            pairs += _pairs(_DENSE_FRAME.split(token))
        elif _ADDRESS.search(name):
            exact.append(name)
        elif name not in _FRAME:
            is_name = _has_capital(token[1:]) or (_has_capital(token) and (not is_first or name in names))
            for part in _PARTS.split(name):
                if is_name or _DIGIT.search(part) or part in _COUNTS:
                    exact.append(part)
                elif len(part) > 1 and part not in _FRAME:
                    plain.append(_stem(part))
        is_first = False
    return _Said(tuple(exact), tuple(plain), tuple(pairs))


def _known(text: str) -> _Known:
    order: list[str] = []
    names: set[str] = set()
    pairs: list[str] = []
    for token, is_dense in _tokens(text):
        if is_dense:
            order += _counts(token)
            for at, char in enumerate(token):
                pairs += (char, token[at : at + 2])
            continue
        name = _folded(token)
        forms = [name, *_PARTS.split(name)]
        order += forms
        if _has_capital(token):
            names.update(forms)
    words = frozenset((*order, *pairs, *map(_stem, order)))
    return _Known(tuple(order), words, frozenset(names), tuple(pairs))


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Words, and runs of a dense script, in order; whether it is such a run."""
    for match in _TOKEN.finditer(text):
        yield match[0], match["dense"] is not None


def _folded(token: str) -> str:
    return _POSSESSIVE.sub("", token.casefold())


def _has_capital(token: str) -> bool:
    return token != token.lower()


def _counts(run: str) -> list[str]:
    return [count for count in _HAN_COUNT.findall(run) if count != "一"]


def _pairs(runs: Iterable[str]) -> Iterator[str]:
    """Each two neighbours of each run; a run of one is itself."""
    for run in runs:
        if len(run) == 1:
            yield run
        yield from (run[at : at + 2] for at in range(len(run) - 1))


def _stem(word: str) -> str:
    """Without an English ending; of a word of another alphabet all but two letters, but at least four."""
    if not word.isascii():
        return word[: max(4, len(word) - 2)]
    for suffix in ("ing", "ed", "es", "s"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def _is_in_order(wanted: Sequence[str], there: Sequence[str]) -> bool:
    """Whether all are met, one after the other."""
    left = iter(there)
    return all(word in left for word in wanted)


def _common_in_order(wanted: Sequence[str], there: Sequence[str]) -> int:
    """Length of the longest common subsequence: Hyyrö 2004, "Bit-parallel LCS-length computation revisited"."""
    places: dict[str, int] = {}
    for at, word in enumerate(wanted):
        places[word] = places.get(word, 0) | 1 << at
    full = (1 << len(wanted)) - 1
    free = full
    for word in there:
        met = free & places.get(word, 0)
        free = ((free + met) | (free - met)) & full
    return len(wanted) - free.bit_count()


def _is_negated_alike(said: str, own: str, before: str) -> bool:
    """Whether no clause lost or got a negation. An answer's "no" also negates what it takes from the question."""
    answers, asked = _known_clauses(own), _known_clauses(before)
    has_no = any(is_negated for _, is_negated in answers)
    for clause in _clauses(said):
        words = _said(clause.text, frozenset())
        share, negated = _nearest(words, answers)
        asked_share, asked_negated = _nearest(words, asked)
        if asked_share > share:
            negated = {True} if has_no else asked_negated
        if clause.is_negated not in negated:
            return False
    return True


def _known_clauses(text: str) -> list[tuple[_Known, bool | None]]:
    return [(_known(clause.text), clause.is_negated) for clause in _clauses(text)]


def _nearest(words: _Said, clauses: list[tuple[_Known, bool | None]]) -> tuple[int, set[bool | None]]:
    """How many words the nearest clauses share, and whether these are negated. Names and numbers say first which are
    near: in "use PDF for reports, not Word" the words around Word are beside PDF.
    """
    names = set(words.exact)
    shares = [((len(names & known.words), words.shared(known)), is_negated) for known, is_negated in clauses]
    most = max(share for share, _ in shares)
    return most[1], {is_negated for share, is_negated in shares if share == most}


def _clauses(text: str) -> list[_Clause]:
    """The clauses of a text, one at least."""
    pieces = _CLAUSE_END.split(text)
    clauses: list[_Clause] = []
    for comma, piece in zip([None, *pieces[1::2]], pieces[::2], strict=True):
        if clauses and not piece.strip():
            continue
        is_negated: bool | None = _NEGATION.search(piece) is not None
        is_item = comma is not None and _LIST_ITEM.fullmatch(piece) is not None
        if is_item and not is_negated and clauses[-1].is_negated is not False:
            is_negated = None
        clauses.append(_Clause(_NEGATION.sub(" ", piece), is_negated))
    return clauses
