"""HTTP requests to servers that are not trusted: token endpoints, schema registries, Airflow's REST API.

Each request has one deadline for everything (name lookup, connection, TLS, headers and body), so that a server that
sends one byte per second cannot delay a run. Redirects are not followed: they could send credentials to another host.
The size of responses is limited before decoding, and errors contain neither the URL nor text from the server.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mirror_lib.outside_json import parse_json

if TYPE_CHECKING:
    import httpx

_SUCCESS = range(200, 300)


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of one response."""

    #: For the whole request, from the name lookup to the last byte.
    deadline_seconds: float
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. Its repr shows no secret."""

    method: str
    #: http or https, percent-encoded, without user information.
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response of any status."""

    status: int
    #: By lower-case name.
    headers: Mapping[str, str] = field(repr=False)
    content: bytes = field(repr=False)

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""
        return self.status in _SUCCESS

    def json(self) -> Any:
        """Return the content as JSON.

        Raises:
            ValueError: see `parse_json`.
        """
        return parse_json(self.content)


class HttpError(Exception):
    """No usable response; the text may be shown."""


class HttpRequestInvalidError(HttpError):
    """URL or headers cannot be sent. The text contains no part of them."""


class HttpCertificateError(HttpError):
    """The server's certificate is not trusted."""


class HttpUnreachableError(HttpError):
    """The server did not respond in time, or with something that is not HTTP."""


class HttpResponseTooLargeError(HttpError):
    """The response has more bytes than the limit."""


def send(
    request: HttpRequest, limits: HttpLimits, tls: ssl.SSLContext | None = None, *, use_proxies: bool = True
) -> HttpResponse:
    """Send a request once and return the response, with any status.

    Args:
        request: the request to send.
        limits: of the response.
        tls: for https; by default the machine's certificate authorities are trusted.
        use_proxies: use the proxies in the environment.

    Raises:
        HttpError: one of the types above.
    """
    outcome: Future[HttpResponse] = Future()
    # A thread with its own event loop: only a loop can stop a request at any point, and callers may have one.
    work = _Exchange(request, limits, tls, use_proxies, outcome)
    Thread(target=work.run, name="http-request", daemon=True).start()
    return outcome.result()


@dataclass(frozen=True, slots=True)
class _Exchange:
    request: HttpRequest
    limits: HttpLimits
    tls: ssl.SSLContext | None
    use_proxies: bool
    outcome: Future[HttpResponse]

    def run(self) -> None:
        try:
            # The result is set before the loop ends, which waits for a name lookup that hangs.
            asyncio.run(self._settle())
        except BaseException as error:
            if not self.outcome.done():
                self.outcome.set_exception(error)

    async def _settle(self) -> None:
        try:
            async with asyncio.timeout(self.limits.deadline_seconds):
                response = await self._ask()
        except TimeoutError:
            seconds = f"{self.limits.deadline_seconds:g} s"
            self.outcome.set_exception(HttpUnreachableError(f"no complete response within {seconds}"))
        except HttpError as error:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(response)

    async def _ask(self) -> HttpResponse:
        try:
            import httpx
        except ImportError:
            raise HttpUnreachableError("the Python package httpx is not installed (batch-mirror[oauth])") from None
        _check_url(self.request.url)
        try:
            async with self._client() as client:
                request = client.build_request(
                    self.request.method,
                    self.request.url,
                    headers=dict(self.request.headers),
                    content=self.request.body,
                )
                response = await client.send(request, stream=True)
                try:
                    return await self._read(response)
                finally:
                    await response.aclose()
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError):
            # Their texts may contain secrets, such as a token with a line break after it.
            raise HttpRequestInvalidError("the URL or a header has characters that cannot be sent") from None
        except (httpx.HTTPError, OSError) as error:
            raise _failure(error) from None

    def _client(self) -> httpx.AsyncClient:
        import httpx

        try:
            return httpx.AsyncClient(
                # The machine's certificate authorities; httpx would use those of a Python package.
                verify=self.tls or ssl.create_default_context(),
                trust_env=self.use_proxies,
                follow_redirects=False,
                timeout=self.limits.deadline_seconds,
                # Compressed content could be a thousand times larger than the limit.
                headers={"Accept-Encoding": "identity", "User-Agent": "batch-mirror"},
            )
        except (ImportError, ValueError):
            raise HttpUnreachableError("the proxy in the environment variables cannot be used") from None

    async def _read(self, response: httpx.Response) -> HttpResponse:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise HttpUnreachableError("the response is compressed, although that was not requested")
        content = bytearray()
        async for part in response.aiter_raw():
            content += part
            if len(content) > self.limits.largest_bytes:
                raise HttpResponseTooLargeError(f"the response has more than {self.limits.largest_bytes:,} bytes")
        return HttpResponse(response.status_code, dict(response.headers), bytes(content))


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or "@" in parts.netloc or not url.isascii() or not url.isprintable() or " " in url:
        raise HttpRequestInvalidError("the URL or a header has characters that cannot be sent")


def _failure(error: BaseException) -> HttpError:
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return HttpCertificateError(cause.verify_message or "certificate verify failed")
    for cause in reversed(causes):
        if isinstance(cause, ssl.SSLError):
            return HttpUnreachableError(f"TLS: {cause.reason or 'handshake failed'}")
        if isinstance(cause, socket.gaierror):
            return HttpUnreachableError(f"name lookup: {cause.strerror}")
        if isinstance(cause, OSError) and cause.errno:
            return HttpUnreachableError(os.strerror(cause.errno))
    # Other errors' texts may contain text from the server.
    return HttpUnreachableError(type(error).__name__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, nearest first."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        each = todo.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            todo += each.exceptions
        todo += [inner for inner in (each.__cause__, each.__context__) if inner is not None]
