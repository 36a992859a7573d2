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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

from mirror_lib.dev.ports import free_ports
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


@pytest.fixture
def client() -> Iterator[Client]:
    with LocalSchemaRegistry() as registry:
        yield Client(registry.url)


REFERENCE = {"references": [{"name": "r", "subject": "r", "version": 1}]}


def test_given_schemas_then_the_same_one_has_one_id_whatever_its_subject_and_layout(client: Client) -> None:
    record = '{"type": "record", "name": "R", "fields": []}'
    text = {"schema": '{"type":"string"}'}
    bodies = [STRING, STRING, LONG, {"schema": record}, {"schema": record.replace(" ", "")}]

    assert [client.register("a", body) for body in bodies] == [1, 1, 2, 3, 3]
    assert client.ask("GET", "/subjects/a/versions") == (200, [1, 2, 3])
    # The same text in another language is another schema.
    assert [client.register("b", body) for body in (STRING, text, text | {"schemaType": "JSON"})] == [1, 4, 5]
    places = [{"subject": "a", "version": 1}, {"subject": "b", "version": 1}]
    assert client.ask("GET", "/schemas/ids/1/versions") == (200, places)
    assert client.ask("GET", "/schemas/ids/1/subjects") == (200, ["a", "b"])
    assert "schemaType" not in client.ask("GET", "/schemas/ids/4")[1]
    assert client.ask("GET", "/schemas/ids/5")[1]["schemaType"] == "JSON"


def test_given_no_schema_then_it_is_refused(client: Client) -> None:
    unregistered = LONG | REFERENCE
    for body in [
        {},
        {"schema": ""},
        {"schema": "{"},
        {"schema": "{}"},
        {"schema": "x", "schemaType": "XML"},
        unregistered,
    ]:
        assert client.register("a", body) == 42201, body


def test_given_what_is_unknown_or_not_allowed_then_the_code_says_so(client: Client, subtests: pytest.Subtests) -> None:
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


def test_given_a_deleted_subject_then_its_schemas_are_found_by_id_until_it_is_deleted_for_good(client: Client) -> None:
    client.register("a", STRING)

    assert client.ask("DELETE", "/subjects/a") == (200, [1])
    assert client.ask("GET", "/schemas/ids/1")[0] == 200
    assert client.ask("GET", "/subjects?deleted=true") == (200, ["a"])
    assert client.ask("GET", "/subjects/a/versions/1?deleted=true")[0] == 200
    # It comes again with its id and a new version.
    assert client.register("a", STRING) == 1
    assert client.ask("GET", "/subjects/a/versions") == (200, [2])

    client.ask("DELETE", "/subjects/a")
    assert client.ask("DELETE", "/subjects/a?permanent=true") == (200, [1, 2])
    assert client.error("GET", "/schemas/ids/1") == (404, 40403)


def test_given_contexts_then_each_has_its_own_ids_subjects_and_references(client: Client) -> None:
    client.register("a", STRING)

    assert client.register(":.lab:r", LONG) == 1
    assert client.register(":.lab:a", STRING | REFERENCE) == 2
    assert client.ask("GET", "/contexts") == (200, [".", ".lab"])
    assert client.ask("GET", "/schemas/ids/1?subject=:.lab:")[1]["schema"] == '"long"'
    assert client.ask("GET", "/subjects?subjectPrefix=") == (200, ["a"])
    assert client.ask("GET", "/subjects?subjectPrefix=:.lab:") == (200, [":.lab:a", ":.lab:r"])
    assert client.ask("GET", "/contexts/.lab/subjects") == (200, [":.lab:a", ":.lab:r"])
    assert client.ask("GET", "/contexts/.lab/subjects/a/versions/1")[1]["subject"] == ":.lab:a"
    assert client.ask("GET", "/contexts/.lab/schemas/ids/2")[1]["references"] == REFERENCE["references"]


def test_given_modes_then_they_say_who_may_register_what(client: Client) -> None:
    assert client.ask("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert client.ask("GET", "/mode/a?defaultToGlobal=true") == (200, {"mode": "READWRITE"})
    assert client.register("a", STRING | {"id": 40}) == 42205

    client.ask("PUT", "/mode", {"mode": "IMPORT"})
    assert client.register("a", STRING) == 42205
    assert client.register("a", STRING | {"id": 40, "version": 3}) == 40
    assert client.register("b", LONG | {"id": 40}) == 42205
    assert client.ask("GET", "/subjects/a/versions") == (200, [3])

    assert client.ask("PUT", "/mode?force=true", {"mode": "IMPORT"})[0] == 200
    client.ask("PUT", "/mode/:.lab:", {"mode": "READONLY"})
    assert client.register(":.lab:a", STRING | {"id": 1}) == 42205


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
