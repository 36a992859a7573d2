"""A small identity provider: hands out signed tokens for client credentials, and its key as a file (JWKS)."""

from __future__ import annotations

import base64
import json
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.http_server import Reply, Request, json_reply, serving
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
        #: Where tokens are given, once it runs.
        self.url = ""
        self.behaviour = Behaviour()
        self.asked: list[Asked] = []
        self._key = _key()
        self._tls = None if certified is None else certified.server_context()
        self._running = ExitStack()

    def write_jwks(self, path: Path) -> str:
        """Write the key that tokens are checked by (RFC 7517); returns the file's URL."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "kid": _KEY_ID,
            "use": "sig",
            "alg": "RS256",
            "n": _base64url(numbers.n.to_bytes(256)),
            "e": _base64url(numbers.e.to_bytes(3)),
        }
        path.write_text(json.dumps({"keys": [key]}), encoding="utf-8")
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
        self.url = f"{self._running.enter_context(serving(self._answer, self._tls))}/token"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def _answer(self, request: Request) -> Reply:
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        client_id, _, secret = base64.b64decode(request.headers["Authorization"].split()[1]).decode().partition(":")
        right = client_id in self.clients and self.clients[client_id] == secret
        self.asked.append(Asked(client_id, right, form, dict(request.headers)))
        behaviour = self.behaviour
        if behaviour.redirect is not None:
            return Reply(307, headers={"Location": behaviour.redirect})
        if behaviour.failures:
            return json_reply({"error": "temporarily_unavailable"}, behaviour.failures.pop(0))
        if not right:
            description = f"{client_id}:{secret} is wrong"
            return json_reply({"error": "invalid_client", "error_description": description}, 401)
        if behaviour.drip:
            return Reply(body=_dripping(), headers={"Content-Length": "100000000"})
        if behaviour.raw is not None:
            return Reply(body=behaviour.raw.encode(), headers={"Content-Type": "application/json"})
        if behaviour.answer is not None:
            return json_reply(behaviour.answer, behaviour.status)
        lifetime = int(behaviour.lifetime_seconds)
        return json_reply({"access_token": self.token(client_id), "token_type": "Bearer", "expires_in": lifetime})


@cache
def _key() -> rsa.RSAPrivateKey:
    """One for all endpoints of a process: to make it takes half a second."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _dripping() -> Iterator[bytes]:
    """An answer without an end."""
    while True:
        yield b" "
        time.sleep(0.02)


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
