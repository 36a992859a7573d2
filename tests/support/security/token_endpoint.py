"""A small identity provider: hands out signed tokens for client credentials, and publishes its key (JWKS)."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from mirror_lib.dev.ports import LOOPBACK
from tests.support.security.pki import Certified

ISSUER, AUDIENCE = "https://issuer.test", "kafka"
_KEY_ID = "test"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a token, without the secret."""

    client_id: str
    secret_was_right: bool
    form: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(slots=True)
class Behaviour:
    """What tests may change while it runs."""

    lifetime_seconds: float = 600.0
    #: Answers with these codes first, one per request.
    failures: list[int] = field(default_factory=list)
    #: What is answered in place of a token.
    answer: Mapping[str, Any] | None = None
    #: The same as text, which may be no JSON.
    raw: str | None = None
    #: Of `answer`.
    status: int = 200
    #: Answers byte by byte, without an end.
    drip: bool = False
    #: Where the request is sent on to.
    redirect: str | None = None


class TokenEndpoint:
    """One on a free port of this machine. Use as a context manager."""

    def __init__(self, clients: Mapping[str, str], certified: Certified | None = None) -> None:
        """Nothing starts yet.

        Args:
            clients: secrets by client id.
            certified: for https.
        """
        self.clients = dict(clients)
        self.behaviour = Behaviour()
        self.asked: list[Asked] = []
        self._key = _key()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint._answer_token(self)

            def do_GET(self) -> None:
                _send(self, 200, endpoint.jwks)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._scheme = "http"
        if certified is not None:
            self._scheme = "https"
            self._server.socket = _server_context(certified).wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @contextmanager
    def over_tls(self, certified: Certified) -> Iterator[str]:
        """A second endpoint, by https, with the same clients and tokens; yields where it gives them."""
        with TokenEndpoint(self.clients, certified) as other:
            other._key = self._key
            yield other.url

    @property
    def url(self) -> str:
        """Where tokens are given."""
        return f"{self._scheme}://{LOOPBACK}:{self._server.server_address[1]}/token"

    @cached_property
    def jwks(self) -> dict[str, Any]:
        """The key that tokens are checked by (RFC 7517)."""
        numbers = self._key.public_key().public_numbers()
        return {
            "keys": [
                {
                    "kty": "RSA",
                    "kid": _KEY_ID,
                    "use": "sig",
                    "alg": "RS256",
                    "n": _base64url(numbers.n.to_bytes(256)),
                    "e": _base64url(numbers.e.to_bytes(3)),
                }
            ]
        }

    def write_jwks(self, path: Path) -> str:
        """The same as a file; returns its URL."""
        path.write_text(json.dumps(self.jwks), encoding="utf-8")
        return path.as_uri()

    def token(self, subject: str, *, lifetime_seconds: float | None = None, **claims: Any) -> str:
        """A token signed by RS256."""
        now = time.time()
        lifetime = self.behaviour.lifetime_seconds if lifetime_seconds is None else lifetime_seconds
        payload = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "scope": "kafka",
            # Kafka refuses tokens from the future, and those without a beginning.
            "iat": int(now) - 5,
            "exp": int(now + lifetime),
            **claims,
        }
        header = {"alg": "RS256", "kid": _KEY_ID, "typ": "JWT"}
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in (header, payload))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64url(signature)}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer_token(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", "0"))).decode()
        form = dict(urllib.parse.parse_qsl(body))
        client_id, _, secret = base64.b64decode(request.headers["Authorization"].split()[1]).decode().partition(":")
        right = client_id in self.clients and self.clients[client_id] == secret
        self.asked.append(Asked(client_id, right, form, dict(request.headers)))
        if self.behaviour.redirect is not None:
            request.send_response(307)
            request.send_header("Location", self.behaviour.redirect)
            request.send_header("Content-Length", "0")
            request.end_headers()
        elif self.behaviour.failures:
            _send(request, self.behaviour.failures.pop(0), {"error": "temporarily_unavailable"})
        elif not right:
            _send(request, 401, {"error": "invalid_client", "error_description": f"{client_id}:{secret} is wrong"})
        elif self.behaviour.drip:
            _drip(request)
        elif self.behaviour.raw is not None:
            _send_text(request, 200, self.behaviour.raw)
        elif self.behaviour.answer is not None:
            _send(request, self.behaviour.status, self.behaviour.answer)
        else:
            lifetime = self.behaviour.lifetime_seconds
            token = self.token(client_id)
            _send(request, 200, {"access_token": token, "token_type": "Bearer", "expires_in": int(lifetime)})


@cache
def _key() -> rsa.RSAPrivateKey:
    """One for all endpoints of a process: to make it takes half a second."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _send(request: BaseHTTPRequestHandler, code: int, value: object) -> None:
    _send_text(request, code, json.dumps(value))


def _drip(request: BaseHTTPRequestHandler) -> None:
    """Until the other side is gone."""
    request.send_response(200)
    request.send_header("Content-Length", "100000000")
    request.end_headers()
    with suppress(OSError):
        while True:
            request.wfile.write(b" ")
            threading.Event().wait(0.02)


def _send_text(request: BaseHTTPRequestHandler, code: int, text: str) -> None:
    body = text.encode()
    request.send_response(code)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def _server_context(certified: Certified) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "server.pem")
        path.write_text(certified.key_pem() + certified.chain_pem, encoding="ascii")
        context.load_cert_chain(path)
    return context


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
