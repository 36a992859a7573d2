"""The registry for development as any client sees it: requests and answers by Confluent's REST API (v1)."""

from __future__ import annotations

import base64
import hashlib
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
from testbed.schema_registry import LocalSchemaRegistry

STRING, LONG = {"schema": '"string"'}, {"schema": '"long"'}


@dataclass(frozen=True, slots=True)
class Client:
    """Plain requests."""

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


class TestRegistering:
    def test_given_different_schemas_then_ids_count_from_one(self, client: Client) -> None:
        assert [client.register("a-value", STRING), client.register("a-value", LONG)] == [1, 2]
        assert client.ask("GET", "/subjects/a-value/versions") == (200, [1, 2])

    def test_given_the_same_schema_again_then_it_has_the_same_id(self, client: Client) -> None:
        assert [client.register(subject, STRING) for subject in ("a-value", "a-value", "b-value")] == [1, 1, 1]
        places = [{"subject": "a-value", "version": 1}, {"subject": "b-value", "version": 1}]
        assert client.ask("GET", "/schemas/ids/1/versions") == (200, places)
        assert client.ask("GET", "/schemas/ids/1/subjects") == (200, ["a-value", "b-value"])

    def test_given_avro_in_another_layout_then_it_is_the_same_schema(self, client: Client) -> None:
        one = '{"type": "record", "name": "R", "fields": []}'

        assert client.register("a", {"schema": one}) == client.register("b", {"schema": one.replace(" ", "")})

    def test_given_the_same_text_in_another_language_then_it_is_another_schema(self, client: Client) -> None:
        text = '{"type":"string"}'

        assert client.register("a", {"schema": text}) != client.register("a", {"schema": text, "schemaType": "JSON"})

    def test_given_no_schema_then_it_is_refused(self, client: Client) -> None:
        for body in [{}, {"schema": ""}, {"schema": "{"}, {"schema": "{}"}, {"schema": "x", "schemaType": "XML"}]:
            assert client.register("a", body) == 42201, body

    def test_given_a_schema_then_its_type_is_named_unless_it_is_avro(self, client: Client) -> None:
        client.register("a", STRING)
        client.register("b", {"schema": "{}", "schemaType": "JSON"})

        assert "schemaType" not in client.ask("GET", "/schemas/ids/1")[1]
        assert client.ask("GET", "/schemas/ids/2")[1]["schemaType"] == "JSON"

    def test_given_a_schema_then_it_is_found_by_the_digest_of_its_text(self, client: Client) -> None:
        client.register("a", STRING)
        guid = UUID(bytes=hashlib.md5(b'"string"', usedforsecurity=False).digest())

        assert client.ask("GET", f"/schemas/guids/{guid}")[1]["schema"] == '"string"'
        assert client.error("GET", f"/schemas/guids/{UUID(int=0)}") == (404, 40403)


class TestWhatIsUnknown:
    def test_given_an_unknown_id_then_the_answer_is_40403(self, client: Client) -> None:
        for path in ("/schemas/ids/1", "/schemas/ids/1/versions", "/schemas/ids/1/subjects"):
            assert client.error("GET", path) == (404, 40403)

    def test_given_an_unknown_subject_then_the_answer_is_40401(self, client: Client) -> None:
        for method, path in (("GET", "/versions"), ("GET", "/versions/1"), ("DELETE", "")):
            assert client.error(method, f"/subjects/none{path}") == (404, 40401)
        assert client.error("POST", "/subjects/none", STRING) == (404, 40401)

    def test_given_an_unknown_version_then_the_answer_is_40402(self, client: Client) -> None:
        client.register("a", STRING)

        assert client.error("GET", "/subjects/a/versions/2") == (404, 40402)
        assert client.error("GET", "/subjects/a/versions/x") == (422, 42202)

    def test_given_a_schema_that_a_subject_lacks_then_the_answer_is_40403(self, client: Client) -> None:
        client.register("a", STRING)

        assert client.error("POST", "/subjects/a", LONG) == (404, 40403)

    def test_given_a_path_of_nobody_then_the_answer_is_404(self, client: Client) -> None:
        assert client.error("GET", "/nothing") == (404, 404)
        assert client.error("GET", "/schemas/ids/one") == (404, 404)


class TestReferences:
    def test_given_a_reference_then_it_must_be_registered(self, client: Client) -> None:
        references = [{"name": "ns.R", "subject": "r", "version": 1}]
        importing = {"schema": '{"type":"array","items":"ns.R"}', "references": references}

        assert client.register("a", importing) == 42201
        client.register("r", {"schema": '{"type":"record","name":"ns.R","fields":[]}'})
        assert client.register("a", importing) == 2
        assert client.ask("GET", "/schemas/ids/2")[1]["references"] == references

    def test_given_a_schema_that_is_imported_then_its_subject_cannot_be_deleted(self, client: Client) -> None:
        client.register("r", STRING)
        client.register("a", LONG | {"references": [{"name": "r", "subject": "r", "version": 1}]})

        assert client.error("DELETE", "/subjects/r") == (422, 42206)


class TestDeletion:
    def test_given_a_deleted_subject_then_its_schemas_are_still_found_by_id(self, client: Client) -> None:
        client.register("a", STRING)

        assert client.ask("DELETE", "/subjects/a") == (200, [1])
        assert client.ask("GET", "/schemas/ids/1")[0] == 200
        assert client.ask("GET", "/schemas/ids/1/versions") == (200, [])
        assert client.ask("GET", "/subjects") == (200, [])
        assert client.ask("GET", "/subjects?deleted=true") == (200, ["a"])
        assert client.ask("GET", "/subjects/a/versions/1?deleted=true")[0] == 200

    def test_given_a_subject_deleted_for_good_then_its_schemas_are_gone(self, client: Client) -> None:
        client.register("a", STRING)

        assert client.error("DELETE", "/subjects/a?permanent=true") == (404, 40405)
        client.ask("DELETE", "/subjects/a")
        assert client.ask("DELETE", "/subjects/a?permanent=true") == (200, [1])
        assert client.error("GET", "/schemas/ids/1") == (404, 40403)

    def test_given_a_deleted_schema_that_comes_again_then_it_has_its_id_and_a_new_version(self, client: Client) -> None:
        client.register("a", STRING)
        client.ask("DELETE", "/subjects/a")

        assert client.register("a", STRING) == 1
        assert client.ask("GET", "/subjects/a/versions") == (200, [2])


class TestContexts:
    def test_given_contexts_then_each_counts_its_own_ids(self, client: Client) -> None:
        client.register("a", STRING)

        assert client.register(":.lab:a", LONG) == 1
        assert client.ask("GET", "/schemas/ids/1")[1]["schema"] == '"string"'
        assert client.ask("GET", "/schemas/ids/1?subject=:.lab:")[1]["schema"] == '"long"'
        assert client.ask("GET", "/contexts") == (200, [".", ".lab"])

    def test_given_contexts_then_subjects_are_listed_by_them(self, client: Client) -> None:
        client.register("a", STRING)
        client.register(":.lab:a", LONG)

        assert client.ask("GET", "/subjects") == (200, [":.lab:a", "a"])
        assert client.ask("GET", "/subjects?subjectPrefix=") == (200, ["a"])
        assert client.ask("GET", "/subjects?subjectPrefix=:.lab:") == (200, [":.lab:a"])

    def test_given_a_context_in_the_path_then_it_is_that_of_subjects_and_ids(self, client: Client) -> None:
        client.register(":.lab:a", LONG)

        assert client.ask("GET", "/contexts/.lab/subjects") == (200, [":.lab:a"])
        assert client.ask("GET", "/contexts/.lab/subjects/a/versions/1")[1]["subject"] == ":.lab:a"
        assert client.ask("GET", "/contexts/.lab/schemas/ids/1")[0] == 200

    def test_given_an_importing_schema_in_a_context_then_its_references_are_of_the_context(
        self, client: Client
    ) -> None:
        client.register(":.lab:r", STRING)

        assert client.register(":.lab:a", LONG | {"references": [{"name": "r", "subject": "r", "version": 1}]}) == 2


class TestModes:
    def test_given_no_mode_then_it_is_readwrite(self, client: Client) -> None:
        assert client.ask("GET", "/mode") == (200, {"mode": "READWRITE"})
        assert client.ask("GET", "/mode/a?defaultToGlobal=true") == (200, {"mode": "READWRITE"})
        assert client.error("GET", "/mode/a") == (404, 40409)

    def test_given_the_mode_import_then_schemas_come_with_their_ids(self, client: Client) -> None:
        assert client.register("a", STRING | {"id": 40}) == 42205
        client.ask("PUT", "/mode", {"mode": "IMPORT"})

        assert client.register("a", STRING) == 42205
        assert client.register("a", STRING | {"id": 40, "version": 3}) == 40
        assert client.register("b", LONG | {"id": 40}) == 42205
        assert client.ask("GET", "/subjects/a/versions") == (200, [3])

    def test_given_schemas_then_import_needs_to_be_forced(self, client: Client) -> None:
        client.register("a", STRING)

        assert client.error("PUT", "/mode", {"mode": "IMPORT"}) == (422, 42205)
        assert client.ask("PUT", "/mode/b", {"mode": "IMPORT"})[0] == 200
        assert client.ask("PUT", "/mode?force=true", {"mode": "IMPORT"})[0] == 200
        assert client.error("PUT", "/mode", {"mode": "ANY"}) == (422, 42204)

    def test_given_a_context_that_is_read_only_then_others_are_not(self, client: Client) -> None:
        client.ask("PUT", "/mode/:.lab:", {"mode": "READONLY"})

        assert client.register(":.lab:a", STRING) == 42205
        assert client.register("a", STRING) == 1


class TestProtobuf:
    def test_given_a_serialized_schema_then_it_can_be_had_so(self, client: Client) -> None:
        text = base64.b64encode(b"a file descriptor").decode()
        client.register("a", {"schema": text, "schemaType": "PROTOBUF"})

        assert client.ask("GET", "/schemas/ids/1?format=serialized")[1]["schema"] == text

    def test_given_a_schema_as_text_then_it_is_not_compiled(self, client: Client) -> None:
        client.register("a", {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"})

        assert client.error("GET", "/schemas/ids/1?format=serialized") == (501, 501)
        assert client.ask("GET", "/schemas/ids/1")[0] == 200


class TestLogins:
    def test_given_users_then_nobody_else_is_served(self) -> None:
        with LocalSchemaRegistry(users={"me": "secret"}, tokens=["t0ken"]) as registry:
            client = Client(registry.url)

            assert client.ask("GET", "/subjects")[0] == 401
            for login in ("Basic " + base64.b64encode(b"me:wrong").decode(), "Bearer none"):
                assert client.ask("GET", "/subjects", Authorization=login)[0] == 401
            for login in ("Basic " + base64.b64encode(b"me:secret").decode(), "Bearer t0ken"):
                assert client.ask("GET", "/subjects", Authorization=login) == (200, [])


def test_as_a_process_it_serves_until_it_is_asked_to_end() -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "testbed.schema_registry", "--port", str(port), "--user", "me"]
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
