"""The client against a registry that runs on this machine."""

from __future__ import annotations

import base64
import hashlib
import pickle
import ssl
import traceback
from contextlib import AbstractContextManager
from uuid import UUID

import pytest

from mirror_lib.cluster.auth.tls import Tls
from mirror_lib.errors import AuthenticationError, ConfigurationError, MirrorError
from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from mirror_lib.features.transforms.schemas.errors import (
    SchemaFormatError,
    SchemaMissingError,
    SchemaRefusedError,
    SchemaRegistryError,
    SchemaRegistryUnreachableError,
)
from mirror_lib.features.transforms.schemas.model import (
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaType,
    SubjectVersion,
    qualify,
    same_text,
    split_subject,
)
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import BasicLogin, BearerLogin, RegistryAccess
from tests.support.http_server import Reply, serving
from tests.support.security.pki import Certified
from tools.testbed.schema_registry import LocalSchemaRegistry

PASSWORD = "s3cret+/="
STRING, LONG = Schema(SchemaType.AVRO, '"string"'), Schema(SchemaType.AVRO, '"long"')


def client(*urls: str, login: BasicLogin | BearerLogin | None = None, **options: object) -> SchemaRegistry:
    """One that does not wait long."""
    return SchemaRegistry(RegistryAccess.of(",".join(urls), login, **{"pause_seconds": 0.001, **options}))


def everything_shown(error: MirrorError) -> str:
    """All that a person may see of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error.attributes())


class TestSchemas:
    def test_given_a_registered_schema_then_it_is_found_by_its_id_and_asked_for_once(
        self, local: LocalSchemaRegistry
    ) -> None:
        registry = client(local.url)

        number = registry.register("orders-value", STRING)
        local.asked.clear()

        assert registry.schema(number) == STRING
        assert registry.schema(number).id == number
        assert len(local.asked) == 1
        assert registry.find(number) == STRING
        assert registry.places(number) == (SubjectVersion("orders-value", 1),)

    def test_given_every_part_of_a_schema_then_it_comes_back_as_it_was(self, local: LocalSchemaRegistry) -> None:
        registry = client(local.url)
        registry.register("imported", LONG)
        schema = Schema(
            SchemaType.JSON,
            '{"type":"object"}',
            (SchemaReference("long.json", "imported", 1),),
            metadata='{"properties":{"owner":"me"}}',
            rule_set='{"domainRules":[{"kind":"CONDITION","name":"n"}]}',
        )

        number = registry.register("a", schema)

        assert registry.schema(number) == schema
        assert registry.version("a", 1) == RegisteredSchema("a", 1, number, schema)
        assert registry.lookup("a", schema) == RegisteredSchema("a", 1, number, schema)

    def test_given_an_unknown_id_then_it_is_missing_and_asked_for_again(self, local: LocalSchemaRegistry) -> None:
        registry = client(local.url)
        with pytest.raises(SchemaMissingError, match="Schema 1 not found"):
            registry.schema(1)
        with pytest.raises(SchemaMissingError):
            registry.places(1)
        assert registry.find(1) is None
        assert registry.lookup("a", STRING) is None

        registry.register("a", STRING)

        assert registry.find(1) == STRING
        assert registry.lookup("a", LONG) is None

    def test_given_a_guid_then_its_schema_is_found_and_asked_for_once(self, local: LocalSchemaRegistry) -> None:
        registry = client(local.url)
        registry.register("a", STRING)
        guid = UUID(bytes=hashlib.md5(b'"string"', usedforsecurity=False).digest())
        local.asked.clear()

        assert registry.schema_of_guid(guid) == registry.schema_of_guid(guid) == STRING
        assert len(local.asked) == 1
        with pytest.raises(SchemaMissingError):
            registry.schema_of_guid(UUID(int=0))

    def test_given_a_deleted_version_then_what_imports_it_still_finds_it(self, local: LocalSchemaRegistry) -> None:
        registry = client(local.url)
        number = registry.register("a", STRING)
        local.answer("DELETE", "/subjects/a", None, b"")

        assert registry.version("a", 1).schema == STRING
        assert registry.places(number) == ()
        assert registry.subjects() == ()

    def test_given_a_compiled_protobuf_schema_then_text_and_descriptor_are_kept_apart(
        self, local: LocalSchemaRegistry
    ) -> None:
        registry = client(local.url)
        schema = Schema(SchemaType.PROTOBUF, base64.b64encode(b"a file descriptor").decode())
        number = registry.register("a", schema)

        assert registry.descriptor(number) == schema
        assert registry.version("a", 1, serialized=True).schema == schema
        asked = [each.path for each in local.asked]
        assert f"/schemas/ids/{number}?format=serialized" in asked
        registry.schema(number)
        assert local.asked[-1].path == f"/schemas/ids/{number}"


class TestSubjects:
    def test_given_any_name_then_it_arrives_whole(self, local: LocalSchemaRegistry) -> None:
        registry = client(local.url)
        subjects = ("a/b", "a b", "ä?x=1#y", "%41", "a:b")
        for subject in subjects:
            registry.register(subject, STRING)
            assert registry.lookup(subject, STRING) is not None, subject

        assert set(registry.subjects()) == {*subjects}

    def test_given_a_context_then_all_is_of_it(self, local: LocalSchemaRegistry) -> None:
        whole, lab = client(local.url), client(local.url, context=".lab")
        whole.register("a", STRING)

        assert lab.register("a", LONG) == 1
        assert lab.schema(1) == LONG
        assert whole.schema(1) == STRING
        assert lab.places(1) == (SubjectVersion(":.lab:a", 1),)
        assert lab.version(":.lab:a", 1) == lab.version("a", 1)
        assert lab.subjects() == (":.lab:a",)
        assert whole.subjects() == (":.lab:a", "a")

    def test_given_modes_then_the_nearest_one_counts(self, local: LocalSchemaRegistry) -> None:
        local.answer("PUT", "/mode/:.lab:", None, b'{"mode": "READONLY"}')
        local.answer("PUT", "/mode/:.lab:a", None, b'{"mode": "IMPORT"}')
        whole, lab = client(local.url), client(local.url, context=".lab")

        assert (whole.mode(), whole.mode("a")) == ("READWRITE", "READWRITE")
        assert (lab.mode(), lab.mode("a"), lab.mode("b")) == ("READONLY", "IMPORT", "READONLY")

    def test_given_the_mode_import_then_a_schema_gets_the_id_that_it_is_to_have(
        self, local: LocalSchemaRegistry
    ) -> None:
        local.answer("PUT", "/mode", None, b'{"mode": "IMPORT"}')
        registry = client(local.url)

        assert registry.register("a", STRING, schema_id=40, version=3) == 40
        assert registry.version("a", 3).id == 40
        with pytest.raises(SchemaRefusedError, match="42205"):
            registry.register("a", LONG, schema_id=40)


class TestLogins:
    def test_given_the_right_login_then_it_is_served(self, subtests: pytest.Subtests) -> None:
        for login in [BasicLogin("me", PASSWORD), BearerLogin(PASSWORD)]:
            with subtests.test(login=login), LocalSchemaRegistry(users={"me": PASSWORD}, tokens=[PASSWORD]) as local:
                assert client(local.url, login=login).subjects() == ()
        with LocalSchemaRegistry(users={"me@home": PASSWORD}) as local:
            registry = client(local.url.replace("://", "://me%40home:s3cret%2B%2F%3D@"))
            assert registry.subjects() == ()
            assert registry.access.urls == (local.url,)
            assert "s3cret" not in repr(registry)

    def test_given_a_wrong_login_then_the_error_shows_nothing_of_it(self, subtests: pytest.Subtests) -> None:
        for login in [BasicLogin("me", PASSWORD), BearerLogin(PASSWORD)]:
            with subtests.test(login=login):
                with (
                    LocalSchemaRegistry(users={"me": "another"}) as local,
                    pytest.raises(AuthenticationError, match="401") as caught,
                ):
                    client(local.url, login=login).subjects()

                assert "s3cret" not in everything_shown(caught.value)
                assert len(local.asked) == 1

    def test_given_a_token_that_no_header_can_hold_then_the_error_shows_nothing_of_it(
        self, local: LocalSchemaRegistry
    ) -> None:
        for token in ("s3cret\n", "s3cret\nX: y", "s3cret\u20ac"):
            with pytest.raises(ConfigurationError, match="has invalid characters") as caught:
                client(local.url, login=BearerLogin(token)).subjects()

            assert "s3cret" not in everything_shown(caught.value), token
        assert local.asked == []

    def test_given_an_answer_that_repeats_the_login_then_the_error_does_not(self) -> None:
        login = BasicLogin("me", PASSWORD)
        body = f'{{"error_code": 42201, "message": "bad: {PASSWORD} {login.header}"}}'
        with _canned(422, body.encode()) as url, pytest.raises(SchemaRefusedError, match="bad") as caught:
            client(url, login=login).register("a", STRING)

        shown = everything_shown(caught.value)
        assert "s3cret" not in shown
        assert login.header.split()[1] not in shown

    def test_given_an_access_then_it_pickles_and_its_repr_has_no_secret(self) -> None:
        access = RegistryAccess.of("https://me:s3cret@a:1/base/,https://b:2", context=".lab")

        assert pickle.loads(pickle.dumps(access)) == access
        assert access.urls == ("https://a:1/base", "https://b:2")
        assert access.login == BasicLogin("me", "s3cret")
        assert "s3cret" not in repr(access)

    def test_given_no_url_of_a_registry_then_it_is_refused_unseen(self, subtests: pytest.Subtests) -> None:
        for url in ["", " , ", "ftp://me:s3cret@a", "a:8081", "http://me:s3cret@a:x", "http://a/?x=s3cret"]:
            with subtests.test(url):
                with pytest.raises(ConfigurationError) as caught:
                    RegistryAccess.of(url)

                assert "s3cret" not in everything_shown(caught.value)


class TestTls:
    def test_given_the_authority_then_the_registry_is_trusted(self) -> None:
        authority = Certified.root("authority")
        context = Tls(trusted=authority.pem).context()
        with LocalSchemaRegistry(tls=_server_context(authority)) as local:
            access = RegistryAccess.of(local.url)

            assert SchemaRegistry(access, context).subjects() == ()

    def test_given_another_authority_then_it_is_not_and_nothing_is_sent(self) -> None:
        context = Tls(trusted=Certified.root("another").pem).context()
        with LocalSchemaRegistry(tls=_server_context(Certified.root("authority"))) as local:
            with pytest.raises(AuthenticationError, match="not trusted"):
                SchemaRegistry(RegistryAccess.of(local.url), context).subjects()

            assert local.asked == []


class TestFaults:
    def test_given_an_error_that_passes_then_it_is_asked_again(self, local: LocalSchemaRegistry) -> None:
        for status in [429, 500, 502, 503, 504]:
            local.asked.clear()
            local.failures += [status, status]

            assert client(local.url).register("a", STRING) == 1, status
            assert [each.method for each in local.asked] == ["POST"] * 3, status

    def test_given_an_error_that_does_not_pass_then_it_is_told_after_all_attempts(
        self, local: LocalSchemaRegistry
    ) -> None:
        local.failures += [503] * 9

        with pytest.raises(SchemaRegistryUnreachableError, match="503") as caught:
            client(local.url, attempts=3).subjects()

        assert caught.value.retriable
        assert len(local.asked) == 3

    def test_given_any_other_error_then_it_is_told_at_once(
        self, local: LocalSchemaRegistry, subtests: pytest.Subtests
    ) -> None:
        for status in [400, 404, 405, 409, 422, 501]:
            with subtests.test(status=status):
                local.asked.clear()
                local.failures.append(status)

                with pytest.raises(SchemaRegistryError, match=str(status)) as caught:
                    client(local.url).subjects()

                assert not caught.value.retriable
                assert len(local.asked) == 1

    def test_given_a_server_that_is_down_then_the_next_one_is_asked_and_without_one_it_is_unreachable(
        self, local: LocalSchemaRegistry
    ) -> None:
        (port,) = free_ports(1)

        assert client(f"http://{LOOPBACK}:{port}", local.url).subjects() == ()

        (port,) = free_ports(1)

        with pytest.raises(SchemaRegistryUnreachableError, match="no response from the schema registry"):
            client(f"http://{LOOPBACK}:{port}", attempts=2).subjects()

    def test_given_a_path_that_is_no_registry_then_no_schema_counts_as_missing(
        self, local: LocalSchemaRegistry
    ) -> None:
        registry = client(f"{local.url}/elsewhere")

        for ask in (lambda: registry.find(1), lambda: registry.lookup("a", STRING)):
            with pytest.raises(SchemaRegistryError) as caught:
                ask()
            assert not isinstance(caught.value, SchemaMissingError)

    def test_given_an_answer_that_makes_no_sense_then_it_is_told(self, subtests: pytest.Subtests) -> None:
        for body in [b"<html>", b"[]", b"{}", b'{"schema": 1}', b'{"schema": "x", "schemaType": "XML"}', b"\xff"]:
            with subtests.test(body=body), _canned(200, body) as url, pytest.raises(SchemaRegistryError):
                client(url).schema(1)

    def test_given_a_redirect_then_it_is_not_followed(self, local: LocalSchemaRegistry) -> None:
        with (
            _canned(307, b"", Location=f"{local.url}/subjects") as url,
            pytest.raises(SchemaRegistryError, match="307"),
        ):
            client(url, login=BasicLogin("me", PASSWORD)).subjects()

        assert local.asked == []


def test_the_exit_code_asks_for_a_retry_exactly_if_one_may_help() -> None:
    for kind in (
        SchemaFormatError,
        SchemaMissingError,
        SchemaRefusedError,
        SchemaRegistryError,
        SchemaRegistryUnreachableError,
    ):
        assert (kind.exit_code == 1) is kind.retriable, kind


class TestValues:
    def test_given_the_same_schema_in_another_layout_then_it_says_the_same(self) -> None:
        one = Schema(SchemaType.AVRO, '{"type": "record", "name": "R", "fields": []}')

        assert same_text(one, Schema(SchemaType.AVRO, '{"fields":[],"name":"R","type":"record"}'))
        assert not same_text(one, Schema(SchemaType.AVRO, '{"fields":[],"name":"S","type":"record"}'))
        assert not same_text(one, Schema(SchemaType.JSON, one.text))
        assert not same_text(one, Schema(SchemaType.AVRO, one.text, metadata="{}"))

        one = Schema(SchemaType.PROTOBUF, 'syntax = "proto3";\nmessage A {\n  string b = 1;\n}\n')

        assert same_text(one, Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; message A { string b = 1; }'))
        assert not same_text(one, Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; message A { string b = 2; }'))

    def test_given_subjects_then_their_context_can_be_told(self) -> None:
        assert split_subject(":.lab:a:b") == (".lab", "a:b")
        assert split_subject("a") == (".", "a")
        assert split_subject(":.lab:") == (".lab", "")
        assert qualify(".lab", "a") == ":.lab:a"
        assert qualify(".lab", ":.x:a") == ":.x:a"
        assert qualify(".", "a") == "a"


def _canned(status: int, body: bytes, **headers: str) -> AbstractContextManager[str]:
    """The URL of a server that gives every request the same answer."""
    return serving(lambda _: Reply(status, body, headers))


def _server_context(authority: Certified) -> ssl.SSLContext:
    return authority.issue("registry", addresses=(LOOPBACK,)).server_context()
