"""A client for schema registries with Confluent's REST API (v1): Confluent's own, Karapace, Redpanda."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from mirror_lib.features.transforms.schemas.errors import SchemaMissingError, SchemaRegistryError
from mirror_lib.features.transforms.schemas.model import (
    DEFAULT_CONTEXT,
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaType,
    SubjectVersion,
    qualify,
)
from mirror_lib.features.transforms.schemas.rest import RegistryAccess, RegistryConnection

#: The format that requests Protobuf's file descriptors in base64 instead of the text.
_SERIALIZED = "serialized"


class SchemaRegistry:
    """One registry, or one context of it. Thread-safe.

    A schema never changes under its id, so each is requested once. Unknown ids are requested again: they may have been
    registered since.

    Args:
        access: its addresses and login.
        tls: for https; None uses the system's trust store.

    Raises:
        AuthenticationError: from every method, if the login is rejected, or the certificate is not trusted.
        AuthorizationError: likewise, if the login may not do this.
        ConfigurationError: likewise, if URL or login contain characters that cannot be sent.
        SchemaRegistryUnreachableError: likewise, if no response came in any attempt.
        SchemaRegistryError: likewise, for every other error or malformed response.
    """

    def __init__(self, access: RegistryAccess, tls: ssl.SSLContext | None = None) -> None:
        self.access = access
        self._connection = RegistryConnection(access, tls)
        self._lock = threading.Lock()
        self._by_id: dict[tuple[int, str | None], Schema] = {}
        self._by_guid: dict[UUID, Schema] = {}

    def __repr__(self) -> str:
        return f"SchemaRegistry({self.access!r})"

    def schema(self, schema_id: int) -> Schema:
        """The schema of an id.

        Raises:
            SchemaMissingError: the registry has none.
        """
        return self._of_id(schema_id, None)

    def find(self, schema_id: int) -> Schema | None:
        """The schema of an id; None if there is none."""
        try:
            return self.schema(schema_id)
        except SchemaMissingError:
            return None

    def descriptor(self, schema_id: int) -> Schema:
        """A Protobuf schema whose text is its compiled form: a `FileDescriptorProto` in base64.

        Raises:
            SchemaMissingError: the registry has none.
        """
        return self._of_id(schema_id, _SERIALIZED)

    def schema_of_guid(self, guid: UUID) -> Schema:
        """The schema of a GUID, in any context.

        Raises:
            SchemaMissingError: the registry has none, or is older than GUIDs.
        """
        with self._lock:
            known = self._by_guid.get(guid)
        if known is not None:
            return known
        found = _schema(self._get(f"/schemas/guids/{guid}"), None)
        with self._lock:
            return self._by_guid.setdefault(guid, found)

    def places(self, schema_id: int) -> tuple[SubjectVersion, ...]:
        """The subjects and versions with the schema of an id, without deleted ones.

        Raises:
            SchemaMissingError: the id does not exist.
        """
        response = self._get(f"/schemas/ids/{schema_id}/versions", subject=self._context_only())
        return tuple(
            sorted(SubjectVersion(_text(each, "subject"), _number(each, "version")) for each in _list(response))
        )

    def version(self, subject: str, version: int, *, serialized: bool = False) -> RegisteredSchema:
        """A version of a subject, including deleted ones: schemas that import it still need it.

        Args:
            serialized: for Protobuf: with the text as `descriptor` returns it.

        Raises:
            SchemaMissingError: it does not exist.
        """
        form = _SERIALIZED if serialized else None
        response = self._get(f"{self._subject(subject)}/versions/{version}", format=form, deleted="true")
        return _parse_registered(response)

    def latest(self, subject: str) -> RegisteredSchema:
        """The latest version of a subject; requested each time.

        Raises:
            SchemaMissingError: the subject does not exist, or all its versions are deleted.
        """
        return _parse_registered(self._get(f"{self._subject(subject)}/versions/latest"))

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        """The version of a subject with exactly this schema; None if there is none."""
        try:
            response = self._connection.request("POST", self._subject(subject), _body(schema))
        except SchemaMissingError:
            return None
        return _parse_registered(response)

    def register(
        self, subject: str, schema: Schema, *, schema_id: int | None = None, version: int | None = None
    ) -> int:
        """Register a schema under a subject; no effect if it exists. Return its id.

        Args:
            schema_id: the required id; only in a registry (or subject) in mode IMPORT.
            version: likewise the version.

        Raises:
            SchemaRefusedError: it is invalid or incompatible, the mode forbids it, or the id belongs to another schema.
        """
        body = _body(schema)
        if schema_id is not None:
            body["id"] = schema_id
        if version is not None:
            body["version"] = version
        return _number(self._connection.request("POST", f"{self._subject(subject)}/versions", body), "id")

    def subjects(self) -> tuple[str, ...]:
        """The qualified names of subjects, without deleted ones: of the client's context, or of all if it has none."""
        context = self.access.context
        prefix = None if context == DEFAULT_CONTEXT else qualify(context, "")
        names = [str(name) for name in _list(self._get("/subjects", subjectPrefix=prefix))]
        return tuple(sorted(name for name in names if prefix is None or name.startswith(prefix)))

    def mode(self, subject: str | None = None) -> str:
        """The registry's mode: `READWRITE`, `READONLY`, `IMPORT` (schemas come with their ids) or `FORWARD`.

        Args:
            subject: None for the whole registry, or for the client's context if it has one.
        """
        named = self._context_only() if subject is None else qualify(self.access.context, subject)
        path = "/mode" if named is None else f"/mode/{quote(named, safe='')}"
        return _text(self._get(path, defaultToGlobal="true"), "mode")

    def _of_id(self, schema_id: int, form: str | None) -> Schema:
        with self._lock:
            known = self._by_id.get((schema_id, form))
        if known is not None:
            return known
        response = self._get(f"/schemas/ids/{schema_id}", subject=self._context_only(), format=form)
        found = _schema(response, schema_id)
        with self._lock:
            return self._by_id.setdefault((schema_id, form), found)

    def _get(self, path: str, **query: str | None) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._connection.request("GET", f"{path}?{urlencode(given)}" if given else path)

    def _subject(self, subject: str) -> str:
        return f"/subjects/{quote(qualify(self.access.context, subject), safe='')}"

    def _context_only(self) -> str | None:
        """A subject's name with only the context, for look-ups by id."""
        return None if self.access.context == DEFAULT_CONTEXT else qualify(self.access.context, "")


def _body(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.type is not SchemaType.AVRO:
        # Registries before 5.5 support only Avro, and lack this field.
        body["schemaType"] = schema.type.value
    if schema.references:
        body["references"] = [reference._asdict() for reference in schema.references]
    if schema.metadata is not None:
        body["metadata"] = json.loads(schema.metadata)
    if schema.rule_set is not None:
        body["ruleSet"] = json.loads(schema.rule_set)
    return body


def _schema(response: Any, schema_id: int | None) -> Schema:
    kind = response.get("schemaType") or SchemaType.AVRO if isinstance(response, Mapping) else None
    if not isinstance(kind, str) or kind not in SchemaType.__members__:
        raise SchemaRegistryError(
            f"the registry has a schema of the unknown type {kind}.",
            action="Avro, Protobuf and JSON Schema are supported; check the registry's address.",
        )
    references = tuple(
        SchemaReference(_text(each, "name"), _text(each, "subject"), _number(each, "version"))
        for each in _list(response.get("references") or [])
    )
    text = _text(response, "schema")
    contract = (_stable_json(response.get("metadata")), _stable_json(response.get("ruleSet")))
    return Schema(SchemaType(kind), text, references, *contract, id=schema_id)


def _parse_registered(response: Any) -> RegisteredSchema:
    number = _number(response, "id")
    return RegisteredSchema(_text(response, "subject"), _number(response, "version"), number, _schema(response, number))


def _stable_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))


def _text(response: Any, name: str) -> str:
    found = response.get(name) if isinstance(response, Mapping) else None
    if not isinstance(found, str):
        raise _senseless(f"has no {name}")
    return found


def _number(response: Any, name: str) -> int:
    found = response.get(name) if isinstance(response, Mapping) else None
    if not isinstance(found, int):
        raise _senseless(f"has no {name}")
    return found


def _list(response: Any) -> list[Any]:
    if not isinstance(response, list):
        raise _senseless("is not a list")
    return response


def _senseless(why: str) -> SchemaRegistryError:
    return SchemaRegistryError(
        f"a response of the schema registry {why}.",
        action="Check that its URL is that of a registry with Confluent's API.",
    )
