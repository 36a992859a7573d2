"""The registry for development as any client sees it: requests and answers by Confluent's REST API (v1)."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

from mirror_lib.features.demo.ports import free_ports
from tools.testbed.schema_registry import LocalSchemaRegistry

STRING, LONG = {"schema": '"string"'}, {"schema": '"long"'}


@dataclass(frozen=True, slots=True)
class Client:
    """Plain requests. What the product's client asks for is in `test_registry_client.py`."""

    url: str

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON of the answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def register(self, subject: str, body: object) -> Any:
        """The answer's id, or its error code."""
        _, answer = self.ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        return answer.get("id", answer.get("error_code"))

    def error(self, method: str, path: str, body: object = None) -> tuple[int, int]:
        """Status and error code of the answer."""
        status, answer = self.ask(method, path, body)
        return status, answer["error_code"]


REFERENCE = {"references": [{"name": "r", "subject": "r", "version": 1}]}


def test_given_what_is_unknown_or_not_allowed_then_the_code_says_so(
    local: LocalSchemaRegistry, subtests: pytest.Subtests
) -> None:
    client = Client(local.url)
    client.register("a", STRING)
    client.register("r", STRING)
    client.register("importing", LONG | REFERENCE)
    client.register("text", {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"})

    for method, path, body, status, code in (
        *(("GET", f"/schemas/ids/9{more}", None, 404, 40403) for more in ("", "/versions", "/subjects")),
        ("GET", f"/schemas/guids/{UUID(int=0)}", None, 404, 40403),
        *(("GET", f"/subjects/none/versions{more}", None, 404, 40401) for more in ("", "/1")),
        ("DELETE", "/subjects/none", None, 404, 40401),
        ("POST", "/subjects/none", STRING, 404, 40401),
        ("GET", "/subjects/a/versions/2", None, 404, 40402),
        ("GET", "/subjects/a/versions/x", None, 422, 42202),
        ("POST", "/subjects/a", LONG, 404, 40403),
        ("GET", "/nothing", None, 404, 404),
        ("GET", "/schemas/ids/one", None, 404, 404),
        ("DELETE", "/subjects/r", None, 422, 42206),
        ("DELETE", "/subjects/a?permanent=true", None, 404, 40405),
        ("GET", "/mode/a", None, 404, 40409),
        ("PUT", "/mode", {"mode": "IMPORT"}, 422, 42205),
        ("PUT", "/mode", {"mode": "ANY"}, 422, 42204),
        # It is not compiled.
        ("GET", "/schemas/ids/3?format=serialized", None, 501, 501),
    ):
        with subtests.test(f"{method} {path}"):
            assert client.error(method, path, body) == (status, code)


def test_as_a_process_it_serves_until_it_is_asked_to_end() -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "tools.testbed.schema_registry", "--port", str(port), "--user", "me"]
    environment = {**os.environ, "MIRROR_REGISTRY_PASSWORD": "secret"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            login = "Basic " + base64.b64encode(b"me:secret").decode()
            assert Client(url).ask("GET", "/subjects", Authorization=login) == (200, [])
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
