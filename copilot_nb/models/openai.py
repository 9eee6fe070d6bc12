"""Any OpenAI-compatible endpoint.

Through the `openai` client, with three of its costs avoided: it walks the whole history against type
unions on every call (50 ms at 200 messages), so the body is encoded here; it builds a typed object per
streamed chunk, so the stream is read as raw lines (`wire`); and it puts options and headers together anew
for each request (a third of a short call's CPU), so the requests of our own client go straight to its HTTP
client. Its retries are off: the engine retries, visibly.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import ssl
import sys
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from copilot_nb.errors import ModelError, UsageError
from copilot_nb.events import JSON
from copilot_nb.models.base import ModelKind, Reply, Request, Sink
from copilot_nb.models.wire import Lines, Reader, decode_chunk, encode_request

OPENAI_URL = "https://api.openai.com/v1"
IDLE_TIMEOUT = 300.0  # seconds without a byte; reasoning models can be silent for minutes


class OpenAIModel:
    """Answers turns from ``{base_url}/chat/completions``.

    Parameters
    ----------
    model
        The model's name at the endpoint.
    base_url
        For example ``http://127.0.0.1:11434/v1``.
    api_key
        Sent as a bearer token; kept out of `repr` and of every error.
    idle_timeout
        Seconds without a byte after which the call is given up (and retried by the engine).
    extra
        More fields of the request's body, for example ``{"temperature": 0}``.
    client
        An `openai.AsyncOpenAI` to use instead of an own one; it stays open at `close`.
    """

    kind: ModelKind = "provider"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        idle_timeout: float = IDLE_TIMEOUT,
        max_prompt_tokens: int | None = None,
        extra: JSON | None = None,
        client: Any = None,
        name: str | None = None,
    ) -> None:
        self.model = model
        self.name = name or f"openai:{model}"
        self.base_url = str(client.base_url) if client is not None else (base_url or OPENAI_URL)
        self.max_prompt_tokens = max_prompt_tokens
        host = urlsplit(self.base_url).netloc.rpartition("@")[2]
        self.label = self.name if host == "api.openai.com" else f"{self.name} at {host}"
        self._key = api_key
        self._idle_timeout = idle_timeout
        self._extra = dict(extra or {})
        self._foreign = client is not None
        self._client: Any = client.with_options(max_retries=0) if client is not None else None
        self._opening = asyncio.Lock()
        self._http: Any = None
        self._blank: Any = None  # a request without a body: each call takes over its headers and timeouts

    def __repr__(self) -> str:
        return f"OpenAIModel({self.model!r}, base_url={self.base_url!r})"

    async def reply(self, request: Request, sink: Sink) -> Reply:
        """Answer one request; cancelling closes the connection at once."""
        body = encode_request(self.model, request, self._extra)
        try:
            response = await self._post(body)
            try:
                if response.status_code >= 400:
                    await response.aread()
                    raise self._refused(response)
                return await (_read if request.stream else _read_whole)(response, sink)
            finally:
                await response.aclose()
        except (_openai().OpenAIError, _http().HTTPError, _http().StreamError) as error:
            raise self._as_model_error(error) from None  # the cause holds the request with its key

    async def _post(self, body: bytes) -> Any:
        """The response, its body still to be read."""
        client = self._client or await self._open()
        if self._foreign:  # it may sign, route or renew in its own way
            options = {"headers": {"Content-Type": "application/json"}}
            kind, stream = _http().Response, _openai().AsyncStream
            return await client.post(
                _PATH, cast_to=kind, content=body, options=options, stream=True, stream_cls=stream
            )
        blank, cookies = self._blank, self._http.cookies
        request = _http().Request(
            "POST",
            blank.url,
            headers=blank.headers,
            cookies=cookies,
            content=body,
            extensions=blank.extensions,
        )
        return await self._http.send(request, stream=True)

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and not self._foreign:
            await client.close()

    async def _open(self) -> Any:
        async with self._opening:
            if self._client is None:  # half a second of imports: not on the kernel's loop
                self._client = await asyncio.to_thread(self._make_client)
        return self._client

    def _make_client(self) -> Any:
        import anyio

        anyio.run(anyio.sleep, 0)  # brings in what the first request would import on the kernel's loop
        timeout = _http().Timeout(self._idle_timeout, connect=min(30.0, self._idle_timeout))
        verify: Any = True
        if urlsplit(self.base_url).scheme == "http":
            # No certificates to load (70 ms); should TLS be needed after all, it fails for want of them.
            verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._http = _openai().DefaultAsyncHttpxClient(timeout=timeout, verify=verify)
        url = _http().URL(self.base_url)
        client = _openai().AsyncOpenAI(
            base_url=self.base_url,
            api_key=self._key or "none",  # local servers need none, but the client insists
            max_retries=0,
            http_client=self._http,
        )
        headers = {**client.default_headers, **client.auth_headers}
        said = {name: value for name, value in headers.items() if _matters(name, value)}
        url = url.copy_with(path=url.path.rstrip("/") + _PATH)
        self._blank = self._http.build_request("POST", url, headers=said)
        self._blank.headers.pop("Content-Length", None)
        return client

    def _as_model_error(self, error: Exception) -> ModelError:
        if getattr(error, "status_code", None) is not None:
            return self._refused(error.response)  # type: ignore[attr-defined]
        if "Timeout" in type(error).__name__:
            message = f"No answer from {self.base_url} within {self._idle_timeout:g} seconds."
        else:
            cause = error.__cause__ or error
            message = f"Cannot reach {self.base_url}: {str(cause).rstrip('.')}. Is the server running there?"
        return self._secretly(message)

    def _refused(self, response: Any) -> ModelError:
        """What a response with an error status says."""
        detail: Any = None
        with contextlib.suppress(ValueError):
            detail = response.json()
        if isinstance(detail, Mapping):
            detail = detail.get("error", detail)
        fields: Mapping[str, Any] = detail if isinstance(detail, Mapping) else {}
        said = fields.get("message") or response.text[:500].strip() or f"HTTP status {response.status_code}"
        code, wait = fields.get("code"), retry_after(response.headers)
        return self._secretly(
            str(said), status=response.status_code, code=None if code is None else str(code), retry_after=wait
        )

    def _secretly(self, message: str, **more: Any) -> ModelError:
        return ModelError(message.replace(self._key, "***") if self._key else message, **more)


_PATH = "/chat/completions"


def _matters(name: str, value: object) -> bool:
    """Not the client's report on itself: seven headers that are checked twice on every call."""
    return isinstance(value, str) and not name.lower().startswith("x-stainless-")


async def _read(response: Any, sink: Sink) -> Reply:
    lines, reader = Lines(), Reader(sink)
    take = reader.data
    async with contextlib.aclosing(response.aiter_bytes()) as blocks:
        async for block in blocks:
            for payload in lines.feed(block):
                take(payload)
            if reader.done:
                break
        if reader.done:  # read to the end, so that the connection can be used again
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    async for _ in blocks:
                        pass
    for payload in lines.end():
        take(payload)
    return reader.reply()


async def _read_whole(response: Any, sink: Sink) -> Reply:
    reader = Reader(sink)
    reader.chunk(decode_chunk(await response.aread()))
    reader.done = True
    return reader.reply()


def _openai() -> Any:
    import openai

    return openai


def _http() -> Any:
    """The HTTP library under the client (httpx2 since openai 3, httpx before)."""
    names = {base.__module__.partition(".")[0] for base in _openai().DefaultAsyncHttpxClient.__mro__}
    return sys.modules["httpx2" if "httpx2" in names else "httpx"]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from ``retry-after-ms`` or ``retry-after`` (a number or an HTTP date); None when absent."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    with contextlib.suppress(ValueError):
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    date = email.utils.parsedate_tz(value)
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def from_environment(
    model: str, *, base_url: str | None, api_key: str | None, environ: Mapping[str, str]
) -> OpenAIModel:
    """The model with address and key from arguments, else ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``."""
    if not model:
        raise UsageError("Name a model after 'openai:', for example openai:gpt-4.1-mini.")
    url = base_url or environ.get("OPENAI_BASE_URL") or OPENAI_URL
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(
            f"The base URL {url!r} is no http(s) address; write it like http://127.0.0.1:11434/v1."
        )
    key = api_key or environ.get("OPENAI_API_KEY")
    if not key and parts.netloc == "api.openai.com":
        raise UsageError(
            "There is no key for api.openai.com: set OPENAI_API_KEY, or give the base URL of another server."
        )
    return OpenAIModel(model, base_url=url, api_key=key)
