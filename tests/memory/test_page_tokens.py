"""One encoding of page tokens for every list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.errors import InvalidArgument
from memsvc.memory import page_tokens


@given(st.text(max_size=20), st.integers(-(2**63), 2**63 - 1), st.text(max_size=40))
def test_a_token_gives_its_place_back(kind, number, name):
    assert page_tokens.decode(page_tokens.encode(kind, number, name), kind, tuple[int, str]) == (number, name)


@pytest.mark.parametrize("text", ["", "x", "%%", "héllo", "wA==", "kA==", page_tokens.encode("a", "n", "m")])
def test_what_is_no_token_is_refused(text):
    with pytest.raises(InvalidArgument, match="not one of this service's") as error:
        page_tokens.decode(text, "a", tuple[int, str])
    assert error.value.field == "page_token"


@given(st.text(max_size=80))
def test_any_text_is_a_token_or_refused(text):
    with pytest.raises(InvalidArgument):
        page_tokens.decode(text, "no list has this name", tuple[int, str])


def test_a_token_belongs_to_its_list():
    with pytest.raises(InvalidArgument, match="another call"):
        page_tokens.decode(page_tokens.encode("facts", 1, "k"), "skills", tuple[int, str])


@given(st.lists(st.integers(0, 30), unique=True), st.integers(1, 5))
def test_pages_newest_first_hold_each_item_once(numbers, size):
    found, token, pages = [], "", 0
    while True:
        page, token = page_tokens.newest_first("numbers", numbers, lambda n: (n,), size, token, tuple[int])
        found += page
        pages += 1
        if not token:
            break
    assert found == sorted(numbers, reverse=True)
    assert pages == max(1, -(-len(numbers) // size))
