"""Mentions against a scan: every key and value is looked for in the text, one after the other, by the rules alone."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memsvc.retrieval.lexical import STOP_BIGRAMS, STOP_WORDS, analyze
from memsvc.retrieval.mentions import NAMED_MAX, PLAIN_VALUES, Mentions, Named, folded, key_term, value_term, whole_at

WORD = re.compile(r"[^\W_\u4e00-\u9fff]+|[\u4e00-\u9fff]+")
LETTER = r"[^\W\u4e00-\u9fff]"  # a letter, a digit or _: what a word at the phrase's edge would go on with


# -- the scan --------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())


def camel_parted(key: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", key)


def whole(text: str, phrase: str) -> int:
    """Where the phrase stands in the text with nothing that continues its first and last word; -1 for nowhere."""
    before = rf"(?<!{LETTER})(?<!{LETTER}[-.@])" if re.match(LETTER, phrase) else ""
    behind = rf"(?!{LETTER})(?![-.@]{LETTER})" if re.match(LETTER, phrase[-1]) else ""
    match = re.search(before + re.escape(phrase) + behind, text)
    return -1 if match is None else match.start()


def place_of_word(text: str, word: str) -> int:
    if "\u4e00" <= word[0] <= "\u9fff":
        return text.find(word)
    return next((match.start() for match in WORD.finditer(text) if match.group() == word), -1)


def place_of_key(text: str, key: str) -> int:
    places = []
    for form in (plain(key), plain(camel_parted(key))):
        words = WORD.findall(form)
        if any(len(word) > 1 and word not in STOP_WORDS | STOP_BIGRAMS for word in words):
            at = [place_of_word(text, word) for word in words]
            places.append(-1 if -1 in at else min(at))
        elif len(words) > 1 or (not words and (len(form) > 1 or not form.isascii())):
            places.append(whole(text, form))
    return min((place for place in places if place >= 0), default=-1)


def place_of_value(text: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > 128:
        return -1
    phrase = plain(str(value))
    if not phrase or phrase in PLAIN_VALUES | STOP_BIGRAMS:
        return -1
    if re.fullmatch(r"[+-]?[\d.,]*\d[\d.,]*", phrase):
        return whole(text, phrase) if sum(char.isdigit() for char in phrase) >= 4 else -1
    if all(word in STOP_WORDS for word in WORD.findall(phrase)):
        return -1
    least = 2 if re.search(r"[\u4e00-\u9fff]", phrase) else 3
    return whole(text, phrase) if len(phrase) >= least else -1


def scan(text: str, keys: list[str], values: list[object]) -> set[Named]:
    found = {Named(place_of_key(plain(text), key), key_term(key)) for key in keys}
    found |= {Named(place_of_value(plain(text), value), value_term(value)) for value in values}
    return {named for named in found if named.position >= 0}


# -- the index agrees with it ----------------------------------------------------------------------------------------

PARTS = (
    "default currency defaultCurrency GitHub the The what is x a1 1001 8080 3.14 v2 CNY ＣＮＹ naïve ﬁle Straße 默认 "
    "货币 默认货币 的 什么 我的 A股 中 💡 ! ？ !! % __ _ - . @ : / ' ’ 's = ~"
).split()
BITS = st.sampled_from([*PARTS, " ", " ", " ", "\n", "\u3000"])
PHRASES = st.lists(BITS, min_size=1, max_size=5).map("".join)
VALUES = PHRASES | st.integers(-20_000, 20_000) | st.booleans() | st.floats(0, 9999).map(lambda n: round(n, 2))


@settings(max_examples=600, deadline=None)
@given(
    st.lists(PHRASES, max_size=8, unique=True),
    st.lists(VALUES, max_size=8, unique_by=value_term),
    st.lists(BITS | PHRASES, max_size=10).map("".join),
    st.data(),
)
@example(["💡"], [], "what an idea💡!", None)
@example(["!!"], [], "stop!!!", None)
@example(["__"], [], "def __init__", None)
@example(["the the"], [], "i like the the", None)
@example(["什么"], [], "这是什么", None)
@example(["默认货币"], [], "默认默认货币 默认货币", None)
@example(["defaultCurrency"], [], "the currency is the default, as defaultcurrency", None)
def test_the_index_names_what_a_scan_finds(keys, values, text, data):
    if data is not None:  # most of what is named is named on purpose
        for said in data.draw(st.lists(st.sampled_from([*keys, *map(str, values), " "]), max_size=3)):
            text += " " + said + data.draw(BITS)
    keys = [key for key in keys if key.strip()]
    mentions = Mentions()
    mentions.add([*map(key_term, keys), *(value_term(value) for value in values)])
    named = mentions.named(text)
    assert set(named) == scan(text, keys, values)
    assert named == sorted(named)


@settings(max_examples=400, deadline=None)
@given(st.lists(BITS, max_size=8).map("".join).map(folded), st.lists(BITS, min_size=1, max_size=3).map("".join))
def test_whole_is_what_nothing_continues(text, phrase):
    phrase = folded(phrase)
    if phrase:
        assert whole_at(text, phrase) == whole(text, phrase)
        assert whole_at(phrase, phrase) == 0


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing(text):
    assert folded(folded(text)) == folded(text)


@settings(max_examples=200)
@given(
    st.lists(st.text("ab:_默💡", min_size=1, max_size=4), max_size=30),
    st.text("ab:_默💡", max_size=3),
    st.text("ab:_默💡", max_size=3),
)
def test_pages_of_keys_are_in_order_from_a_start_with_a_prefix(keys, start, prefix):
    mentions = Mentions()
    for key in keys:
        mentions.add([key_term(key), value_term(key)])
    assert mentions.keys == sorted(set(keys))
    expected = [key for key in sorted(set(keys)) if key >= start and key.startswith(prefix)]
    assert mentions.keys_from(start, prefix) == expected


# -- what else it promises -------------------------------------------------------------------------------------------


def test_terms_of_words_are_not_taken_up_and_a_term_is_taken_up_once():
    mentions = Mentions()
    mentions.add(analyze("ORD-2025-0110 runs in Frankfurt").counts)
    assert (mentions.count, mentions.keys, mentions.named("ORD-2025-0110 frankfurt")) == (0, [], [])
    for _ in range(2):
        mentions.add([key_term("region"), key_term("region"), ""])
    assert (mentions.count, mentions.keys) == (1, ["region"])
    assert mentions.named("which region") == [Named(6, key_term("region"))]


def test_the_first_that_are_named_come_back_when_there_are_too_many():
    mentions = Mentions()
    words = [f"key{number}" for number in range(NAMED_MAX + 20)]
    mentions.add(map(key_term, reversed(words)))
    named = mentions.named(" ".join(words))
    assert [one.term for one in named] == [key_term(word) for word in words[:NAMED_MAX]]


@pytest.mark.parametrize("value", [None, True, [], ["CNY"], {"a": "CNY"}, "", "  ", "💡💡💡", "yes", "x" * 129, 404])
def test_what_no_text_can_name_has_no_term(value):
    assert value_term(value) == ""


def test_a_key_waits_at_the_word_where_the_fewest_wait():
    mentions = Mentions()
    mentions.add(key_term(f"default currency of user {number}") for number in range(50))
    assert max(map(len, mentions._waiting.values())) < 50 / 2
    assert [one.term for one in mentions.named("user 33: currency of default")] == [
        key_term("default currency of user 33")
    ]
