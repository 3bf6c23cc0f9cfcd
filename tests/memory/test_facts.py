"""Facts against a plain dict with versions, 10,000 of them, restarts, and what a mention is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsvc.errors import EtagMismatch
from memsvc.memory.facts import Facts, normal_key, same_value, value_text
from memsvc.memory.feed import ChangeFeed
from memsvc.memory.owners import Owners, namespace_for
from memsvc.memory.policies import Policies
from memsvc.memory.transactions import Mutation, Transactions
from memsvc.model import Fact, IdMinter, Memory, Source
from memsvc.retrieval.lexical import analyze_query
from memsvc.retrieval.mentions import Mentions, key_term, value_term, whole_at
from memsvc.retrieval.searcher import SearchQuery, search
from memsvc.retrieval.segments import SegmentStore
from memsvc.storage.lmdb_engine import LmdbEngine

DIM = 8
ALICE = Owners(user_id="alice")
HERE = namespace_for(ALICE, None)
NOBODY = Mutation("", b"", "test")


class NoEmbedder:
    """Facts are never embedded: all that is asked of the embedder is its name."""

    model_id = "m"
    dim = DIM


class House:
    """Facts on a store of their own; `reopen` is a restart."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.open()

    def open(self) -> None:
        self.engine = LmdbEngine.open(self.directory / "store", max_map_size_bytes=2**30)
        self.segments = SegmentStore(self.engine, "m", DIM, self.directory / "segments")
        transactions = Transactions(
            self.engine,
            NoEmbedder(),  # type: ignore[arg-type]
            self.segments,
            ChangeFeed(self.engine),
            clock_us=lambda: time.time_ns() // 1000,
            answer_retention_us=10**9,
        )
        self.facts = Facts(transactions, self.segments, Policies(""), minter=IdMinter(lambda: time.time_ns() // 1000))

    def reopen(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        self.segments.close()
        self.engine.close()

    def put(self, key: str, value: Any, if_version: int | None = None) -> Memory:
        return self.facts.put(ALICE, None, Fact(key, value), if_version, Source(), "", NOBODY).memory

    def delete(self, key: str, _: Any, if_version: int | None) -> bool:
        return self.facts.delete(ALICE, None, key, if_version, "", NOBODY).deleted

    def named(self, text: str) -> list[str]:
        return [memory.subject for memory in self.facts.match([HERE], text)]


@pytest.fixture
def make_house(tmp_path: Path) -> Iterator[Callable[[], House]]:
    houses: list[House] = []

    def make() -> House:
        houses.append(House(tmp_path / os.urandom(8).hex()))
        return houses[-1]

    yield make
    for house in houses:
        house.close()


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "a", "CNY", "true", "1", ""])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner)
)
KEYS = st.sampled_from(["k", "K", "a=b", "%", "💡", "user:1 x", "默认_货币"])
STEPS = st.tuples(st.sampled_from(["put", "put", "put", "delete"]), KEYS, VALUES, st.none() | st.integers(0, 4))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=30))
def test_facts_are_a_dict_with_versions(make_house, steps):
    house = make_house()
    model: dict[str, list[tuple[bool, Any]]] = {}  # key -> versions of (deleted, value)
    for number, (what, key, value, if_version) in enumerate(steps):
        versions = model.get(key, [])
        present = 0 if not versions or versions[-1][0] else len(versions)
        if if_version is not None and if_version != present:
            refused = house.put if what == "put" else house.delete
            with pytest.raises(EtagMismatch):
                refused(key, value, if_version)
            continue
        if what == "delete":
            assert house.delete(key, value, if_version) == bool(present)
            if present:
                versions.append((True, versions[-1][1]))
        else:
            stored = house.put(key, value, if_version)
            if not (present and same_value(versions[-1][1], value)):
                model.setdefault(key, versions).append((False, value))
            assert stored.version == len(model[key])
        if number % 10 == 9:
            house.reopen()
    standing = {key: versions[-1][1] for key, versions in model.items() if not versions[-1][0]}
    read = house.facts.get([HERE], sorted(standing)) if standing else []
    assert [(m.subject, repr(m.fact.value)) for m in read] == [(k, repr(standing[k])) for k in sorted(standing)]
    listed, token = house.facts.list_page([HERE], "", 1000, "")
    assert ([m.subject for m in listed], token) == (sorted(standing), "")
    for key, versions in model.items():
        assert [m.version for m in house.facts.history(HERE, key)] == list(range(len(versions), 0, -1))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (0, None, False),
        ("1", 1, False),
        ([1, {"a": True}], [1.0, {"a": True}], True),
        ([1, {"a": True}], [1, {"a": 1}], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([], {}, False),
        ([], [None], False),
    ],
)
def test_same_value_is_typed(one, other, same):
    assert same_value(one, other) is same


def test_content_shows_texts_without_quotes():
    assert [value_text(v) for v in ("CNY", 1, True, None, ["中"])] == ["CNY", "1", "true", "null", '["中"]']


def test_a_key_is_its_nfkc_form():
    assert normal_key("  Ｋｅｙ　") == "Key"


NAMED_BY_KEY = [
    ("default_currency", "default_currency", True),
    ("default_currency", "What is the DEFAULT currency?", True),
    ("default_currency", "the currency is the default", True),
    ("default_currency", "default currencies", False),
    ("default_currency", "mydefault_currency", False),
    ("defaultCurrency", "the default currency", True),
    ("defaultCurrency", "defaultcurrency", True),
    ("GitHub", "github login", True),
    ("user:1001 default_currency", "default currency of user:1001", True),
    ("user:1001 default_currency", "default currency of user:1002", False),
    ("默认货币", "请问我的默认货币是什么", True),
    ("默认货币", "默认的货币", False),
    ("默认_货币", "货币的默认值", True),
    ("A股代码", "查一下a股代码", True),
    ("x", "x marks it", False),
    ("the", "the end", False),
    ("what_is_it", "what is it", False),
    ("what_is_it", "see what_is_it for more", True),
    ("💡", "an idea 💡 here", True),
    ("💡", "an idea", False),
    ("%", "50% off", False),
    ("ＡＢＣ键", "abc键", True),
]


@pytest.mark.parametrize(("key", "text", "named"), NAMED_BY_KEY)
def test_when_a_text_names_a_key(key, text, named):
    mentions = Mentions()
    mentions.add([key_term(normal_key(key))])
    assert bool(mentions.named(text)) is named


NAMED_BY_VALUE = [
    ("CNY", "pay in cny.", True),
    ("CNY", "用CNY付款", True),
    ("CNY", "cny-usd", False),
    ("CNY", "cnyx", False),
    ("Visual  Studio Code", "I use visual studio\ncode daily", True),
    ("Visual Studio Code", "visual code studio", False),
    ("5", "5", False),
    (5, "5", False),
    (True, "true", False),
    ("true", "true", False),
    (None, "null", False),
    ("中", "中文", False),
    ("中文", "用中文回答", True),
    ("什么", "这是什么", False),
    ("ab", "ab", False),
    ("what", "what", False),
    (404, "404", False),
    (8080, "on port 8080, please", True),
    (8080, "on port 18080", False),
    (8080, "v8080", False),
    (3.141, "pi is 3.141", True),
    (["CNY"], "CNY", False),
    ("x" * 129, "x" * 129, False),
    ("bob@example.com", "ask bob@example.com.", True),
    ("example.com", "bob@example.com", False),
]


@pytest.mark.parametrize(("value", "text", "named"), NAMED_BY_VALUE)
def test_when_a_text_names_a_value(value, text, named):
    mentions = Mentions()
    mentions.add([term for term in [value_term(value)] if term])
    assert bool(mentions.named(text)) is named


@pytest.mark.parametrize(
    ("text", "phrase", "at"),
    [("ab abc", "abc", 3), ("a-b", "a", -1), ("a- b", "a", 0), ("a.", "a", 0), ("a.b", "b", -1), ("x", "", -1)],
)
def test_whole(text, phrase, at):
    assert whole_at(text, phrase) == at


WORDS = st.sampled_from(
    ["default", "currency", "the", "x", "货币", "默认", "CNY", "-", "_", " ", ":", "💡", "'s", "1001"]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=4).map("".join), max_size=8), st.lists(WORDS, max_size=8).map("".join)
)
def test_an_index_of_many_terms_names_what_each_alone_does(keys, text):
    terms = dict.fromkeys(term for key in keys if key.strip() for term in (key_term(key), value_term(key)) if term)
    together = Mentions()
    together.add(terms)
    alone = set()
    for term in terms:
        single = Mentions()
        single.add([term])
        alone |= set(single.named(text))
    assert set(together.named(text)) == alone


def test_ten_thousand_facts_restart_and_are_named_without_a_scan(make_house):
    house = make_house()
    for number in range(10_000):
        house.put(f"user:{number} default_currency", "CNY" if number % 2 else f"value-{number}")
    assert len(house.named("CNY")) == 100  # loads the segment, so that closing saves it
    house.reopen()
    assert list((house.directory / "segments").glob("*.seg"))
    assert house.named("the default currency of user:7777?") == ["user:7777 default_currency"]
    assert house.named("value-4444") == ["user:4444 default_currency"]
    assert len(house.named("CNY")) == 100
    segment = house.segments.get(HERE)
    assert segment is not None
    waiting = max(map(len, segment.mentions._waiting.values()))
    assert waiting < 100, "a word at which many keys wait would be a scan"
    page, token = house.facts.list_page([HERE], "user:77", 50, "")
    assert len(page) == 50
    assert token
    query = SearchQuery(analyze_query("user 7777"), None, 5, 10**18, text="default currency of user 7777")
    found, _ = search([(segment, None)], query)
    assert found[0].memory_id == house.facts.get([HERE], ["user:7777 default_currency"])[0].memory_id


def test_a_segment_without_facts_is_not_asked(make_house):
    house = make_house()
    house.put("k", [1])
    segment = house.segments.get(HERE)
    assert segment is not None
    assert segment.mentions.count == 1
    assert not np.any(segment.columns.has_vector[: segment.rows])
