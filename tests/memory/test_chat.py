"""Settings of the chat endpoint. What it answers is tested with those who ask it."""

from __future__ import annotations

from typing import Any

import pytest
from chat_double import KEY
from rich.pretty import pretty_repr

from memsvc.errors import ConfigInvalid
from memsvc.memory.chat import ChatEndpoint, ChatSettings


def test_the_key_is_in_no_representation() -> None:
    settings = ChatSettings("http://x", "m", KEY)
    assert KEY not in repr(settings) + str(settings) + pretty_repr(settings)
    assert KEY not in repr(ChatEndpoint(settings))


@pytest.mark.parametrize(
    ("setting", "bad"),
    [
        *(
            ("chat_url", {"base_url": url})
            for url in (
                "",
                "localhost:8000",
                "ftp://x/v1",
                "http://",
                "http://:80",
                "http://x:0",
                "http://x:99999",
                "http://x:port",
                "http://[::1/v1",
                "http://x..y",
                "http://" + "x" * 64,
                "http://300.1.1.1",
                f"http://user:{KEY}@x/v1",
                f"http://x/v1?key={KEY}",
                f"http://x/v1#{KEY}",
                "http://x/v 1",
                "http://x/v1\n",
                "http://x\\y",
                "http://münchen.example",
            )
        ),
        ("chat_model", {"model": ""}),
        *(("chat_api_key", {"api_key": KEY + end}) for end in ("é", "\n", " ", "\x00", "密")),
        *(("chat_timeout_s", {"timeout_s": value}) for value in (0.0, -1.0, float("nan"), float("inf"))),
        *((name, {name: 0}) for name in ("batch", "max_output_tokens", "max_input_chars")),
        ("retries", {"retries": -1}),
    ],
)
def test_a_bad_setting_is_named_and_not_shown(setting: str, bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        ChatSettings(**{"base_url": "http://x", "model": "m", "api_key": KEY, **bad})
    assert raised.value.metadata["setting"] == setting
    assert setting in str(raised.value)
    assert KEY not in str(raised.value) + repr(raised.value) + str(raised.value.metadata)


@pytest.mark.parametrize("url", ["http://x", "https://x/v1/", "http://127.0.0.1:8000/v1", "http://[::1]:8000/v1"])
def test_a_good_url(url: str) -> None:
    assert ChatSettings(url, "m").base_url == url
