"""Untrusted input: hand-over files, marks in the errors of Spark, HTTP responses, texts for the terminal."""

from __future__ import annotations

import base64
import http.server
import io
import json
import logging
import tempfile
import threading
from functools import cache
from pathlib import Path
from random import Random

from rich.console import Console

from mirror_lib.cli.output import ConsoleOutput
from mirror_lib.errors import NOWHERE, AuthenticationError, MirrorError
from mirror_lib.features.demo.ports import LOOPBACK
from mirror_lib.features.http_client import HttpError, HttpLimits, HttpRequest, send
from mirror_lib.features.oauth.oauth_tokens import as_token
from mirror_lib.features.transforms.record_mark import mark, read_mark
from mirror_lib.features.transforms.rows.reader_result import ReaderResult
from mirror_lib.masked_urls import masked_urls
from mirror_lib.outside_json import parse_json
from mirror_lib.printable import LINES
from mirror_lib.printable_logs import PrintableFormatter
from tools.fuzz.model import Target, Wrong
from tools.fuzz.mutation import mutated

_SECRET = "5ec2e7" * 10 + "abcd"
_WORD = {"end": 17, "why": "input", "next": [1, None, True]}


class HandOverFiles(Target):
    """A file in place of the progress file of a task's reading half."""

    name = "hand-over"
    what = "words that tasks leave for their other half"
    errors = (MirrorError,)
    weight = 0.3

    def make(self, random: Random) -> bytes:
        """Return a damaged progress file."""
        return mutated(_left(), random)

    def run(self, data: bytes) -> str:
        """Check that only a valid one is accepted."""
        with tempfile.TemporaryDirectory() as folder:
            place = ReaderResult(_SECRET, 3, 0, Path(folder))
            place.leave(None)
            (attempt,) = Path(folder).iterdir()
            (attempt / "word").write_bytes(data)
            found = place.take()
        if data != _left():
            raise Wrong(f"a word that nobody left counts: {found!r}")
        return "as left"


@cache
def _left() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        ReaderResult(_SECRET, 3, 0, Path(folder)).leave(_WORD)
        (attempt,) = Path(folder).iterdir()
        return (attempt / "word").read_bytes()


class Marks(Target):
    """The mark of a record in a text of Spark, mixed with record content."""

    name = "marks"
    what = "marks of records in the errors of Spark"

    def make(self, random: Random) -> bytes:
        """Return damaged texts with marks."""
        numbers = random.getrandbits(70) - 2**69, random.getrandbits(70)
        text = f"org.apache.spark.SparkException: {mark(*numbers)} no JSON\n"
        return mutated((text * random.randrange(1, 4)).encode(), random)

    def run(self, data: bytes) -> str:
        """Check that a mark is one that `mark` writes, or none."""
        text = data.decode(errors="surrogateescape")
        found = read_mark(text)
        if found is None:
            return "none"
        if "\n" in found.what or found.what != found.what.strip():
            raise Wrong("its text is no line")
        if abs(found.place) >= 10**19 or abs(found.offset) >= 10**19:
            raise Wrong("it names a number that no offset is")
        return "a mark"


_ANSWER = {"access_token": "e30.eyJleHAiOjQxMDI0NDQ4MDB9.", "expires_in": 60, "error": "invalid_client", "list": [[1]]}
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
_LIMITS = HttpLimits(deadline_seconds=2.0, largest_bytes=4096)


class HttpAnswers(Target):
    """Bytes from an HTTP server."""

    name = "http-answers"
    what = "answers of token endpoints and schema registries"
    errors = (HttpError, ValueError, AuthenticationError)
    # Each uses a real connection.
    weight = 0.1

    def make(self, random: Random) -> bytes:
        """Return a response, damaged in head or body."""
        body = json.dumps(_ANSWER).encode()
        if random.random() < 0.5:
            body = mutated(body, random)
        whole = _HEAD % (len(body), body)
        return whole if random.random() < 0.5 else mutated(whole, random)

    def run(self, data: bytes) -> str:
        """Send a request to a server with this response."""
        server = _server()
        server.says = data
        response = send(HttpRequest("GET", server.url, {}), _LIMITS, use_proxies=False)
        if len(response.content) > _LIMITS.largest_bytes:
            raise Wrong("more was read than may be")
        response.json()
        return f"status {response.status // 100}xx"


class _Server(http.server.ThreadingHTTPServer):
    says = b""

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}/"


class _Handler(http.server.BaseHTTPRequestHandler):
    def handle(self) -> None:
        self.request.recv(65536)
        self.request.sendall(self.server.says)  # type: ignore[attr-defined]


@cache
def _server() -> _Server:
    server = _Server((LOOPBACK, 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class TokenAnswers(Target):
    """Untrusted JSON, and tokens in it."""

    name = "tokens"
    what = "JSON of token endpoints, and the claims of tokens"
    errors = (ValueError, AuthenticationError)

    def make(self, random: Random) -> bytes:
        """Return claims, damaged, or many brackets."""
        if random.random() < 0.1:
            return random.choice((b"[", b'{"a":')) * random.randrange(1, 5000)
        end = random.choice((b"4102444800", b"NaN", b"1e999", b"-1", b"true", b'"1"', b"9" * 400, b"1e300"))
        return mutated(b'{"sub": "me", "exp": %s}' % end, random)

    def run(self, data: bytes) -> str:
        """Check that no token is valid forever."""
        value = f"e30.{base64.urlsafe_b64encode(data).rstrip(b'=').decode()}."
        token = as_token(value, NOWHERE, "the fuzz", "sub")
        if not token.began < token.fresh_until < token.began + 86_400:
            raise Wrong(f"a token is fresh until {token.fresh_until}")
        parse_json(data)
        return "a token"


_NAMES = (
    "orders",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe",
    "a\r\nerror: all is lost",
    "[red]x[/red]",
    "\0",
    "\ud800",
)


class TerminalTexts(Target):
    """Untrusted names and texts, wherever they are shown."""

    name = "terminal-texts"
    what = "names and errors of strangers on terminal, log and HTML page"
    weight = 0.3

    def make(self, random: Random) -> bytes:
        """Return damaged names with terminal control sequences."""
        text = " ".join(random.choices(_NAMES, k=random.randrange(1, 5)))
        return mutated(text.encode("utf-8", "surrogatepass"), random)

    def run(self, data: bytes) -> str:
        """Check that the output has only printable characters and the line breaks of the table."""
        text = data.decode("utf-8", errors="surrogateescape")
        out = io.StringIO()
        console = Console(file=out, highlight=False, width=200, color_system=None)
        output = ConsoleOutput(console, console)
        output.table("groups", ["group"], [[text]])
        output.values("facts", {text: text})
        output.note(text)
        output.error(MirrorError(f"group {text} is empty.", action=text))
        record = logging.LogRecord("x", logging.WARNING, "x.py", 1, "group %s", (text,), None)
        shown = out.getvalue() + PrintableFormatter().format(record) + masked_urls(MirrorError(text).what)
        if wrong := sorted({each for each in shown if not each.isprintable() and each not in LINES}):
            raise Wrong(f"it shows {wrong!r}")
        shown.encode()
        return "shown"


TARGETS = (HandOverFiles(), Marks(), HttpAnswers(), TokenAnswers(), TerminalTexts())
