"""A schema registry for development and tests: Confluent's REST API, as far as clients of records need it, in memory.

    with LocalSchemaRegistry() as registry:
        connect(registry.url)

or as a process of its own: `python -m tools.testbed.schema_registry --port 8081`.

Schemas are not compiled: one of Protobuf can be had in the format `serialized` only if it was registered so.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hmac
import json
import os
import signal
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from mirror_lib.features.demo.ports import LOOPBACK
from mirror_lib.features.transforms.schemas.model import DEFAULT_CONTEXT, qualify
from tools.testbed.schema_store import ALL_CONTEXTS, TYPES, Refusal, SchemaStore

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A received request, without its login."""

    method: str
    path: str


class LocalSchemaRegistry:
    """A registry on a port of this machine. Use as a context manager."""

    def __init__(
        self,
        port: int = 0,
        *,
        users: Mapping[str, str] | None = None,
        tokens: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Nothing listens yet: it does when it is entered.

        Args:
            port: 0 for any that is free.
            users: passwords by name; None without tokens needs no login.
            tokens: accepted bearer tokens.
            tls: for https.
        """
        self._store = SchemaStore()
        self._lock = threading.Lock()
        self._logins = {
            *(b"Basic " + base64.b64encode(f"{name}:{word}".encode()) for name, word in (users or {}).items()),
            *(f"Bearer {token}".encode() for token in tokens),
        }
        self.asked: list[Asked] = []
        #: Status codes of the next responses, one each.
        self.failures: list[int] = []
        self._server = ThreadingHTTPServer((LOOPBACK, port), partial(_Handler, self))
        self._server.daemon_threads = True
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self._scheme}://{LOOPBACK}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, target: str, login: str | None, body: bytes) -> tuple[int, Any]:
        """Return status and JSON of a response."""
        parts = urlsplit(target)
        with self._lock:
            self.asked.append(Asked(method, target))
            if self.failures:
                status = self.failures.pop(0)
                return status, {"error_code": status * 100 + 1, "message": "told to fail"}
            try:
                self._check_login(login)
                path, query = _in_context([unquote(each) for each in parts.path.strip("/").split("/")], parts.query)
                return 200, self._route(method, path, query, _json_object(body) if body else {})
            except Refusal as refusal:
                return refusal.status, {"error_code": refusal.code, "message": str(refusal)}

    def _check_login(self, login: str | None) -> None:
        given = (login or "").encode()
        if self._logins and not any(hmac.compare_digest(given, each) for each in self._logins):
            raise Refusal(401, "Unauthorized")

    def _route(self, method: str, path: list[str], query: Mapping[str, str], body: Mapping[str, Any]) -> Any:
        store, deleted, force = self._store, query.get("deleted") == "true", query.get("force") == "true"
        match method, path:
            case "GET", ["schemas", "ids", number]:
                return _formatted(store.by_id(_id(number), query.get("subject", "")).answer(), query)
            case "GET", ["schemas", "ids", number, "versions"]:
                return store.places(_id(number), query.get("subject", ""), deleted=deleted)
            case "GET", ["schemas", "ids", number, "subjects"]:
                places = store.places(_id(number), query.get("subject", ""), deleted=deleted)
                return list(dict.fromkeys(place["subject"] for place in places))
            case "GET", ["schemas", "guids", guid]:
                return _formatted(store.by_guid(guid).answer(), query)
            case "GET", ["schemas", "types"]:
                return sorted(TYPES)
            case "GET", ["contexts"]:
                return sorted({DEFAULT_CONTEXT, *store.contexts})
            case "GET", ["subjects"]:
                return store.subjects(query.get("subjectPrefix", ALL_CONTEXTS), deleted=deleted)
            case "POST", ["subjects", subject]:
                return store.lookup(subject, body, deleted=deleted)
            case "DELETE", ["subjects", subject]:
                return store.delete(subject, permanent=query.get("permanent") == "true")
            case "GET", ["subjects", subject, "versions"]:
                return store.versions(subject, deleted=deleted)
            case "POST", ["subjects", subject, "versions"]:
                return store.register(subject, body)
            case "GET", ["subjects", subject, "versions", version]:
                return _formatted(store.version(subject, version, deleted=deleted), query)
            case "GET", ["mode"]:
                return {"mode": store.mode("", or_wider=True)}
            case "GET", ["mode", subject]:
                return {"mode": store.mode(subject, or_wider=query.get("defaultToGlobal") == "true")}
            case "PUT", ["mode"]:
                return store.set_mode("", body.get("mode"), force=force)
            case "PUT", ["mode", subject]:
                return store.set_mode(subject, body.get("mode"), force=force)
        raise Refusal(404, "HTTP 404 Not Found")


def _in_context(path: list[str], query: str) -> tuple[list[str], dict[str, str]]:
    """Translate `/contexts/.lab/subjects/x` to `/subjects/:.lab:x` (Java `ContextFilter`)."""
    given = dict(parse_qsl(query, keep_blank_values=True))
    if len(path) < 3 or path[0] != "contexts":
        return path, given
    context, rest = path[1] if path[1].startswith(".") else f".{path[1]}", path[2:]
    if rest[0] in ("subjects", "mode") and len(rest) > 1:
        rest[1] = qualify(context, rest[1])
    elif rest == ["mode"]:
        rest.append(qualify(context, ""))
    elif rest == ["subjects"]:
        given["subjectPrefix"] = qualify(context, given.get("subjectPrefix", ""))
    elif rest[0] == "schemas":
        given["subject"] = qualify(context, given.get("subject", ""))
    return rest, given


def _formatted(answer: dict[str, Any], query: Mapping[str, str]) -> dict[str, Any]:
    if query.get("format") != "serialized" or answer.get("schemaType") != "PROTOBUF":
        return answer
    try:
        base64.b64decode(answer["schema"], validate=True)
    except binascii.Error:
        raise Refusal(
            501, "This registry does not compile Protobuf: register the schema in its serialized form"
        ) from None
    return answer


def _id(text: str) -> int:
    if not text.isdigit():
        raise Refusal(404, "HTTP 404 Not Found")
    return int(text)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refusal(400, "The body is no JSON object")
    return found


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, registry: LocalSchemaRegistry, *arguments: Any) -> None:
        self._registry = registry
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        status, answer = self._registry.answer(self.command, self.path, self.headers.get("Authorization"), body)
        content = json.dumps(answer).encode()
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="registry"')
        self.send_header("Content-Type", _MEDIA_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a registry until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.testbed.schema_registry", description="A schema registry.")
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--user", help="who may log in, with the password of the variable MIRROR_REGISTRY_PASSWORD")
    given = parser.parse_args(arguments)
    users = {given.user: os.environ["MIRROR_REGISTRY_PASSWORD"]} if given.user else None
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with LocalSchemaRegistry(given.port, users=users) as registry:
        print(registry.url, flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
