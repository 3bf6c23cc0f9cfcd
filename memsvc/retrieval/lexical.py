"""Text analysis: from text to index terms, the same for memories and queries.

Purpose: Unicode NFKC and case folding; words with Snowball stemming and stop words by script; scripts written without
spaces (Han, kana, Thai, ...) and Hangul as overlapping character bigrams, or the single character for a run of one;
identifiers (order numbers, `key:value`, paths, e-mail addresses, versions) also kept whole as exact terms, so that an
exact identifier can outrank every fuzzy hit.

Threading: `analyze` may be called from any thread. Snowball stemmers are not thread-safe, so misses of the stem cache
take a lock; hits don't.

Rejected: a Chinese word segmenter (tens of MB, and a word that it cuts wrongly is never found; bigrams reached 0.93
recall@10 on CMRC), language detection (a query of three words has none to detect; the script decides).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import msgspec
import Stemmer

# Scripts whose text runs without spaces, and Hangul, whose words carry particles: bigrams find their middles.
_RUN = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003ffff\u0e01-\u0e4e\u0e80-\u0edf\u1000-\u109f\u1780-\u17dd"
)
# A token of letters, digits and marks joined by the characters that identifiers use; never starts or ends with one
# of these except for a leading slash, tilde or dot of a path. The same join character repeats at most three times.
_TOKEN = re.compile(
    rf"(?P<run>[{_RUN}]+)"
    rf"|(?P<word>(?:(?<![^\W{_RUN}])[~.]{{0,2}}/)?[^\W{_RUN}]+(?:['’][^\W\d_{_RUN}]{{1,2}}(?![^\W{_RUN}])"
    rf"|[-./:@#+\\]{{1,3}}[^\W{_RUN}]+)*)",
    re.UNICODE,
)
_RUN_CHAR = re.compile(f"[{_RUN}]")
_PART = re.compile(r"[^\W_]+", re.UNICODE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINED = re.compile(r"[-./:@#+\\_]")

EXACT_PREFIX = "\x01"  # exact terms live in the same vocabulary; no analysed word can begin with a control character
MAX_TERM_CHARS = 96  # longer runs without a separator are base64 or hashes: their head is enough to tell them apart

_STEMMERS = {
    "LATIN": "english",
    "CYRILLIC": "russian",
    "GREEK": "greek",
    "ARABIC": "arabic",
    "ARMENIAN": "armenian",
    "DEVANAGARI": "hindi",
    "TAMIL": "tamil",
}

STOP_WORDS = frozenset(
    (
        "a about also am an and any are as at be been being but by can cant could couldnt d did didn "
        "didnt do does doesn doesnt doing don dont ever for from had has have having he her hers hes him "
        "his how i if im in into is isn isnt it its itself ive just ll m me might my of on or our ours "
        "re s she shes should so some such t than that thats the their theirs them then there these they "
        "this those to too us ve very was wasn wasnt we were what whats when where which while who whom "
        "whose why will with wont would wouldnt you your yours από για και με να που σε τα της το του "
        "των а бы было в во вот все вы да его ее же за и к как меня мне на не но он она от по с со так "
        "то ты у что я إلى التي الذي ذلك على عن في مع من هذا هذه"
    ).split()
)
# Bigrams of function words and question forms: in every question and in half of all sentences.
STOP_BIGRAMS = frozenset(
    (
        "あの から この した して その です ない ます まで 一个 不是 为什 么的 了吗 什么 "
        "他的 们的 你的 哪个 哪些 哪里 多少 她的 怎么 怎样 我的 是不 是什 是谁 的吗 的是 "
        "谁的 这个 那个 "
    ).split()
)


class Analysis(msgspec.Struct, frozen=True):
    """Terms of one text: `counts` maps a term to its frequency, exact identifiers included under EXACT_PREFIX;
    `length` is the number of word and bigram occurrences (for BM25's length normalisation).
    """

    counts: dict[str, int]
    length: int


class _Stemming:
    """Stems words with the Snowball stemmer of their script; remembers a bounded number of answers."""

    def __init__(self, cache_entries: int = 65536) -> None:
        self._cache: dict[str, str] = {}
        self._cache_entries = cache_entries
        self._lock = threading.Lock()
        self._stemmers = {script: Stemmer.Stemmer(name) for script, name in _STEMMERS.items()}

    def stem(self, word: str) -> str:
        known = self._cache.get(word)
        if known is not None:
            return known
        script = "LATIN" if word.isascii() else unicodedata.name(word[0], "").split(" ", 1)[0]
        stemmer = self._stemmers.get(script)
        with self._lock:
            stemmed: str = stemmer.stemWord(word) if stemmer is not None else word
            if len(self._cache) >= self._cache_entries:
                self._cache.clear()
            self._cache[word] = stemmed
        return stemmed

    def forget(self) -> None:
        with self._lock:
            self._cache.clear()


_STEMMING = _Stemming()


def forget_stems() -> None:
    """Empties the cache of stems."""
    _STEMMING.forget()


def normalize(text: str) -> str:
    """NFKC and case folding; lone surrogates and NULs become spaces, so that any str can be analysed."""
    if text.isascii():
        return text.casefold().replace("\x00", " ")
    clean = "".join(" " if "\ud800" <= c <= "\udfff" or c == "\x00" else c for c in text)
    return unicodedata.normalize("NFKC", clean).casefold()


def _is_identifier(token: str) -> bool:
    """Whether a joined token names one thing: it holds a digit, an @, a slash, an underscore or a doubled join."""
    if not _JOINED.search(token):
        has_digit = any(c.isdigit() for c in token)
        return has_digit and (len(token) >= 5 or any(c.isalpha() for c in token))
    return any(c.isdigit() or c in "@/_\\:" for c in token) or "." in token.strip(".")


def _add_words(token: str, counts: Counter[str]) -> int:
    """Adds the stemmed words of a token; returns how many occurrences it counted."""
    added = 0
    for match in _PART.finditer(token):
        word = match.group()[:MAX_TERM_CHARS]
        if word in STOP_WORDS:
            continue
        counts[_STEMMING.stem(word)] += 1
        added += 1
    return added


def _add_run(run: str, counts: Counter[str]) -> int:
    """Adds the bigrams of a run written without spaces, or its one character."""
    if len(run) == 1:
        counts[run] += 1
        return 1
    added = 0
    for i in range(len(run) - 1):
        bigram = run[i : i + 2]
        if bigram not in STOP_BIGRAMS:
            counts[bigram] += 1
            added += 1
    return added


def analyze(text: str) -> Analysis:
    """Analyses a text of any length and content; never fails. A text of stop words or punctuation has no terms."""
    counts: Counter[str] = Counter()
    length = 0
    for match in _TOKEN.finditer(normalize(text)):
        token = match.group()
        if match.lastgroup == "run":
            length += _add_run(token, counts)
            continue
        token = token.replace("’", "'")
        if token.endswith("'s"):
            token = token[:-2]
        if _is_identifier(token):
            counts[EXACT_PREFIX + token[:MAX_TERM_CHARS]] += 1
        length += _add_words(token.replace("'", ""), counts)
    return Analysis(dict(counts), length)


@lru_cache(maxsize=4096)
def analyze_query(text: str) -> Analysis:
    """`analyze` with a cache of recent queries; treat the result as read-only."""
    return analyze(text)


def pieces(text: str) -> Iterator[tuple[str, int]]:
    """Words and whole runs of a normalised text with their positions: unstemmed, stop words too, identifiers parted."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "run":
            yield match.group(), match.start()
        else:
            for part in _PART.finditer(match.group()):
                yield part.group(), match.start() + part.start()


def is_run_char(char: str) -> bool:
    """Whether a character belongs to a script whose text is cut into bigrams."""
    return _RUN_CHAR.match(char) is not None


def camel_split(text: str) -> str:
    """`defaultCurrency` as `default Currency`."""
    return _CAMEL.sub(" ", text)


def required_terms(text: str) -> list[str]:
    """Terms that every memory must have whose text holds this one whole; none if its words are too common or short."""
    found = analyze(text).counts
    return [term for term in found if not term.startswith(EXACT_PREFIX) and not (len(term) == 1 and is_run_char(term))]


def name_terms(name: str) -> tuple[str, ...]:
    """Stemmed words or bigrams of a person's name, for finding it in a query."""
    return tuple(term for term in analyze(name).counts if not term.startswith(EXACT_PREFIX))
