"""Asking a chat model: any OpenAI-compatible endpoint, for an answer of a given form.

Purpose: one question is one request with a JSON schema; the answer is read as strictly as a stranger's, and has to come
within one bound of time, retries and waits included. What the words are is the business of who asks.

Threading: `ask` may run in any number of threads, none of which may have a running event loop; each try has a loop of
its own.

Rejected: trusting the schema (endpoints ignore it, and a message may ask the model to); httpx's blocking client (its
timeouts are per read, so headers that trickle in have no end; a cancelled coroutine has); the vendor's client library
(its own retries and timeouts, and many packages for one POST).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from memsvc.errors import ConfigInvalid

T = TypeVar("T")

ANSWER_MAX_BYTES = 2**20
BACKOFF_S = 0.25  # before the second try; twice as long before each further one
_Answer = tuple[int, Any, bytes]  # status, headers, body
_UNFINISHED = ("length", "content_filter", "tool_calls", "function_call")


def object_schema(**properties: Any) -> dict[str, Any]:
    """The strict JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


class ChatSettings(msgspec.Struct, frozen=True):
    """The endpoint. `timeout_s` bounds one question, retries and waits included; `max_input_chars` one message;
    `batch` the messages of a question.

    ConfigInvalid when a value can't be used; it never holds the key or the URL.
    """

    base_url: str
    model: str
    api_key: str = ""
    timeout_s: float = 8.0
    max_output_tokens: int = 1024
    max_input_chars: int = 4000
    retries: int = 2
    batch: int = 8

    def __post_init__(self) -> None:
        if not _is_plain_url(self.base_url):
            raise ConfigInvalid(
                "chat_url must be http(s)://HOST[:PORT]/PATH without user, query and fragment", setting="chat_url"
            )
        if not self.model:
            raise ConfigInvalid("chat_model is empty: name the model to ask", setting="chat_model")
        if not all("!" <= char <= "~" for char in self.api_key):
            raise ConfigInvalid(
                "chat_api_key must be printable ASCII without blanks or line ends: check how it was copied",
                setting="chat_api_key",
            )
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise ConfigInvalid("chat_timeout_s must be above 0", setting="chat_timeout_s")
        for name, least in (("max_output_tokens", 1), ("max_input_chars", 1), ("batch", 1), ("retries", 0)):
            if getattr(self, name) < least:
                raise ConfigInvalid(f"{name} must be {least} or more", setting=name)

    def __repr__(self) -> str:
        """Without the key."""
        return f"ChatSettings(base_url={self.base_url!r}, model={self.model!r})"

    def __rich_repr__(self) -> Iterator[tuple[str, str]]:  # type: ignore[override]
        """Without the key, for rich."""
        yield "base_url", self.base_url
        yield "model", self.model


class Task(msgspec.Struct, frozen=True):
    """What the endpoint is to do: the system message, and name and JSON schema of the answer."""

    name: str
    system: str
    schema: dict[str, Any]


class ChatFailed(Exception):
    """A try without an answer that can be used. `reason` is a fixed phrase, for logs and metrics.

    `is_passing`: another try may help, after `wait_s` seconds at least. `is_down`: other batches would fail as well.
    """

    def __init__(self, reason: str, *, is_passing: bool = False, wait_s: float = 0.0, is_down: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_passing = is_passing
        self.wait_s = wait_s
        self.is_down = is_down


def http_library() -> Any:
    """The module httpx, which comes with an extra. Raises ConfigInvalid naming it."""
    try:
        import httpx
    except ImportError as error:
        raise ConfigInvalid("chat_url needs an HTTP client: pip install memsvc[llm]", setting="chat_url") from error
    return httpx


class ChatEndpoint:
    """See the module. `sleep` (seconds) and `timer_s` are passed in for tests. Raises ConfigInvalid without httpx."""

    def __init__(
        self,
        settings: ChatSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        timer_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._httpx = http_library()
        self.settings = settings
        self._sleep = sleep
        self._timer_s = timer_s
        self._url = settings.base_url.rstrip("/") + "/chat/completions"
        self._headers = {"accept-encoding": "identity", "content-type": "application/json"}
        if settings.api_key:
            self._headers["authorization"] = f"Bearer {settings.api_key}"
        self._tls = self._httpx.create_ssl_context()

    def ask(self, task: Task, data: Any, read: Callable[[str], T]) -> T:
        """What `read` makes of the answer to a task about JSON-able data. Raises ChatFailed when no try in the time
        gave something that can be used, which `read` says by raising it as well.
        """
        body = self._request(task, data)
        deadline_s = self._timer_s() + self.settings.timeout_s
        for attempt in range(self.settings.retries + 1):
            try:
                return _read(self._once(body, deadline_s - self._timer_s()), read)
            except ChatFailed as error:
                wait_s = max(error.wait_s, BACKOFF_S * 2**attempt)
                is_last = attempt == self.settings.retries
                if is_last or not error.is_passing or self._timer_s() + wait_s >= deadline_s:
                    raise
            self._sleep(wait_s)
        raise AssertionError("unreachable: the last try raises or returns")

    def _once(self, body: bytes, left_s: float) -> bytes:
        """The body of a 200 within `left_s` seconds. Raises ChatFailed."""
        if left_s <= 0:
            raise ChatFailed("timeout", is_down=True)
        try:
            status, headers, answer = _run(self._exchange(body, left_s))
        except (TimeoutError, self._httpx.TimeoutException) as error:
            raise ChatFailed("timeout", is_down=True) from error
        except self._httpx.HTTPError as error:
            raise ChatFailed("connection failed", is_passing=True, is_down=True) from error
        if status in (408, 429) or status >= 500:
            raise ChatFailed(f"status {status}", is_passing=True, wait_s=_retry_after_s(headers), is_down=True)
        if status != 200:
            raise ChatFailed(f"status {status}", is_down=status not in (400, 413, 422))
        return answer

    async def _exchange(self, body: bytes, left_s: float) -> _Answer:
        """Status, headers and body. A redirect isn't followed: the key is for this host only."""
        answer = bytearray()
        async with (
            asyncio.timeout(left_s),
            self._httpx.AsyncClient(verify=self._tls, timeout=left_s) as client,
            client.stream("POST", self._url, content=body, headers=self._headers) as response,
        ):
            async for chunk in response.aiter_raw():
                answer += chunk
                if len(answer) > ANSWER_MAX_BYTES:
                    raise ChatFailed("answer too large")
        return response.status_code, response.headers, bytes(answer)

    def _request(self, task: Task, data: Any) -> bytes:
        """The request's body. Only the inner JSON holds what people said."""
        request = {
            "model": self.settings.model,
            "temperature": 0,
            "max_tokens": self.settings.max_output_tokens,
            "messages": [
                {"role": "system", "content": task.system},
                {"role": "user", "content": json.dumps(data, ensure_ascii=False)},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": task.name, "strict": True, "schema": task.schema},
            },
        }
        return json.dumps(request).encode("ascii")  # a lone surrogate has no UTF-8, but an escape


def _run(exchange: Coroutine[Any, Any, _Answer]) -> _Answer:
    """The coroutine's result, in a loop of its own. asyncio.run would wait for a resolver that doesn't answer."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(exchange)
    finally:
        loop.close()


def _is_plain_url(url: str) -> bool:
    """http(s) with a host, and nothing that could hold a secret (httpx logs URLs)."""
    httpx = http_library()
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
        host = (parts.hostname or "").encode("idna")  # what the resolver does, and raises for
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(host)
        and has_port
        and not re.search(r"[@?#\\\s]", url)
        and url.isascii()
        and url.isprintable()
    )


def _retry_after_s(headers: Any) -> float:
    """Seconds of a Retry-After header: a number, or a date against the answer's own Date; 0 when it says nothing."""
    wanted = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", wanted):
        return float(wanted)
    until, now = _http_date(wanted), _http_date(headers.get("date", ""))
    return max(0.0, (until - now).total_seconds()) if until and now else 0.0


def _http_date(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)  # RFC 9110, 5.6.7
    except ValueError:
        return None


def _read(body: bytes, read: Callable[[str], T]) -> T:
    """The content of the one whole choice, read. Raises ChatFailed."""
    try:
        choice = json.loads(body)["choices"][0]
        finish = choice.get("finish_reason")
        message = choice["message"]
        if message.get("refusal"):
            raise ChatFailed("refusal")
        if finish not in ("stop", None):
            raise ChatFailed(f"finish_reason {finish if finish in _UNFINISHED else 'unknown'}")
        return read(message["content"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, msgspec.MsgspecError) as error:
        raise ChatFailed("answer of another form", is_passing=True) from error
