"""HTTP servers on this machine whose answers a test chooses."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mirror_lib.features.demo.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it was received."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; a body in parts is sent until the other side is gone, and the headers have its length."""

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def json_reply(value: object, status: int = 200) -> Reply:
    """A value as JSON."""
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


@contextmanager
def serving(answer: Callable[[Request], Reply], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve every request; yields the URL without a path.

    Args:
        tls: for https.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            reply = answer(Request(self.command, self.path, self.headers, body))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if isinstance(reply.body, bytes):
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            with suppress(OSError):
                for part in [reply.body] if isinstance(reply.body, bytes) else reply.body:
                    self.wfile.write(part)

        do_POST = do_GET  # noqa: N815  # as the server calls it

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://{LOOPBACK}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
