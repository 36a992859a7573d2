"""The one HTTP client against servers that mean harm."""

from __future__ import annotations

import json
import socket
import threading
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib import outside_json
from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from mirror_lib.features.http_client import (
    HttpError,
    HttpLimits,
    HttpRequest,
    HttpRequestInvalidError,
    HttpResponse,
    HttpResponseTooLargeError,
    HttpUnreachableError,
    send,
)
from mirror_lib.outside_json import parse_json
from mirror_lib.outside_limits import JSON_ELEMENTS, JSON_LEVELS

SECRET = "s3cret"
LIMITS = HttpLimits(deadline_seconds=60.0, largest_bytes=1000)


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """One that reads the head of a request and then does what it is given."""
    with socket.create_server((LOOPBACK, 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                connected, _ = listening.accept()
                with connected:
                    connected.recv(65536)
                    talk(connected)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://{LOOPBACK}:{listening.getsockname()[1]}"
        thread.join(60)
        assert not thread.is_alive()


def fetch(url: str, limits: HttpLimits = LIMITS, headers: dict[str, str] | None = None) -> HttpResponse:
    return send(HttpRequest("GET", url, headers or {}), limits, use_proxies=False)


def drip(head: bytes) -> Callable[[socket.socket], None]:
    """A byte at a time, for as long as the other side is there: no single read waits long."""

    def talk(connected: socket.socket) -> None:
        connected.sendall(head)
        while True:
            connected.sendall(b"1")
            threading.Event().wait(0.02)

    return talk


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"]
)
def test_given_a_server_that_drips_then_the_deadline_of_the_whole_response_ends_it(head: bytes) -> None:
    with server(drip(head)) as url, pytest.raises(HttpUnreachableError, match=r"no complete response within 0.5 s"):
        fetch(url, HttpLimits(deadline_seconds=0.5, largest_bytes=10_000_000))


def test_given_more_bytes_than_allowed_then_reading_stops() -> None:
    def talk(connected: socket.socket) -> None:
        connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connected.sendall(b"x" * 1000)

    with server(talk) as url, pytest.raises(HttpResponseTooLargeError, match="more than 1,000 bytes"):
        fetch(url)


def answers(*lines: str, body: bytes = b"") -> Callable[[socket.socket], None]:
    head = "".join(f"{line}\r\n" for line in (*lines, f"Content-Length: {len(body)}", "Connection: close"))
    return lambda connected: connected.sendall(head.encode() + b"\r\n" + body)


def test_given_a_redirect_then_it_is_the_answer_and_is_not_followed() -> None:
    asked = threading.Event()
    with server(lambda _: asked.set()) as elsewhere:
        with server(answers("HTTP/1.1 302 Found", f"Location: {elsewhere}/", f"Set-Cookie: a={SECRET}")) as url:
            assert fetch(url, headers={"Authorization": SECRET}).status == 302
        assert not asked.is_set()
        # Let the other one end.
        with pytest.raises(HttpError):
            fetch(elsewhere)


def test_given_compressed_content_then_it_is_refused_and_not_expanded() -> None:
    body = b"\x1f\x8b" + b"\0" * 100
    with (
        server(answers("HTTP/1.1 200 OK", "Content-Encoding: gzip", body=body)) as url,
        pytest.raises(HttpUnreachableError, match="compressed"),
    ):
        fetch(url)


def test_given_what_is_no_http_then_the_error_repeats_nothing_of_it() -> None:
    talk = answers(SECRET)
    with server(talk) as url, pytest.raises(HttpUnreachableError) as failure:
        fetch(f"{url}/?key={SECRET}")
    assert SECRET not in "".join(traceback.format_exception(failure.value))


def test_given_an_url_that_is_no_plain_http_then_it_is_refused_and_not_repeated(subtests: pytest.Subtests) -> None:
    for url in (
        "file:///etc/passwd",
        "ftp://h/x",
        f"http://u:{SECRET}@{LOOPBACK}:1/",
        f"http://{LOOPBACK}:{SECRET}/",
        f"http://{LOOPBACK}:1/{SECRET} x",
        f"http://{LOOPBACK}:1/{SECRET}\u00e9",
        f"http://{LOOPBACK}:1/{SECRET}\nx",
        f"http://[{SECRET}/",
        SECRET,
    ):
        with subtests.test(url=url):
            with pytest.raises(HttpRequestInvalidError) as refusal:
                fetch(url)
            assert SECRET not in "".join(traceback.format_exception(refusal.value)) + repr(HttpRequest("GET", url, {}))


def test_given_a_header_that_cannot_be_sent_then_it_is_refused_and_not_repeated() -> None:
    for value in (f"{SECRET}\r\nX: y", f"{SECRET}\u20ac"):
        with socket.create_server((LOOPBACK, 0)) as listening, pytest.raises(HttpRequestInvalidError) as refusal:
            fetch(f"http://{LOOPBACK}:{listening.getsockname()[1]}/", headers={"Authorization": value})
        assert SECRET not in "".join(traceback.format_exception(refusal.value))


def test_given_nobody_there_then_the_error_says_why() -> None:
    (port,) = free_ports(1)
    with pytest.raises(HttpUnreachableError, match="Connection refused"):
        fetch(f"http://{LOOPBACK}:{port}")


def test_given_a_proxy_that_cannot_be_used_then_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"nonsense://{SECRET}")
    with pytest.raises(HttpUnreachableError, match="proxy") as failure:
        send(HttpRequest("GET", f"http://{LOOPBACK}:1", {}), LIMITS)
    assert SECRET not in "".join(traceback.format_exception(failure.value))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_json_is_read_as_it_is(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


def test_json_of_the_largest_depth_is_read_and_a_deeper_one_is_a_value_error() -> None:
    assert parse_json("[" * JSON_LEVELS + "1" + "]" * JSON_LEVELS)
    for depth in (JSON_LEVELS + 1, 1000, 100_000, 1_000_000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            with pytest.raises(ValueError, match=r"not JSON|levels|values"):
                parse_json(opening * depth + "1" + closing * depth)


#: Instead of half a million.
_FEW = 5_000


@pytest.mark.parametrize(
    "text",
    [
        "[" + "[]," * _FEW + "[]]",
        "[" + "{}," * _FEW + "{}]",
        '{"a":[' + "1," * _FEW + "1]}",
        "[" + '"",' * _FEW + '""]',
        "{" + ",".join(f'"{number}":1' for number in range(_FEW + 1)) + "}",
        '["\\\\",' + "1," * _FEW + "1]",
        '""' * 3 * _FEW,
        ("[" + "[]," * _FEW + "[]]").encode("utf-16"),
    ],
    ids=["lists", "objects", "numbers", "texts", "members", "after an escaped backslash", "texts alone", "UTF-16"],
)
def test_json_of_too_many_values_is_a_value_error_and_takes_little_memory(
    text: str | bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside_json, "JSON_ELEMENTS", _FEW)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 5,000 values"):
            parse_json(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Its text, and the error.
    assert most < 4 * len(text) + 20_000


def test_long_json_of_few_values_is_read() -> None:
    values = ["," * JSON_ELEMENTS, '[{"\\' * JSON_ELEMENTS, {"a,[": list(range(JSON_ELEMENTS // 10))}]
    assert parse_json(json.dumps(values)) == values
    assert parse_json(json.dumps(values).encode("utf-8-sig")) == values


def test_what_is_no_json_is_a_value_error(subtests: pytest.Subtests) -> None:
    texts: tuple[str | bytes, ...] = (
        *("NaN", "[Infinity]", '{"a": -Infinity}', "", "\x00"),
        *(b"\xff", "[1", "9" * 5000),
        # Strings without an end, which would be searched from each of their quotes.
        *('"' + r"\"" * JSON_ELEMENTS, '"' + r"\"" * JSON_ELEMENTS + "\\"),
    )
    for text in texts:
        with subtests.test(text=text[:20]), pytest.raises(ValueError, match="not JSON"):
            parse_json(text)
