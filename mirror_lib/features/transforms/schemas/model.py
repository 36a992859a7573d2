"""Objects of a schema registry, as values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from mirror_lib.outside_json import parse_json
from mirror_lib.outside_limits import SCHEMA_JSON_LEVELS

#: The context of subjects and ids without an explicit one (Java `QualifiedSubject`).
DEFAULT_CONTEXT = "."
_CONTEXT_PREFIX = ":."
_BLANKS = re.compile(r"\s+")


class SchemaType(StrEnum):
    """The types of schemas; a response without a type means Avro."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


class SubjectVersion(NamedTuple):
    """A place of a schema in a registry."""

    subject: str
    version: int

    def __str__(self) -> str:
        return f"{self.subject} version {self.version}"


class SchemaReference(NamedTuple):
    """A schema that another one imports."""

    #: Its name in the importing schema: a full name in Avro, a file in Protobuf, a URL in JSON Schema.
    name: str
    #: Its place; a subject without a context belongs to the importing schema's context.
    subject: str
    version: int

    @property
    def place(self) -> SubjectVersion:
        """Its place."""
        return SubjectVersion(self.subject, self.version)


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema from a registry. Two are equal if they have the same content, regardless of their ids."""

    type: SchemaType
    text: str = field(repr=False)
    references: tuple[SchemaReference, ...] = ()
    #: JSON of a data contract's parts, which belong to a schema's identity like its text.
    metadata: str | None = field(default=None, repr=False)
    rule_set: str | None = field(default=None, repr=False)
    #: In the registry that returned it.
    id: int | None = field(default=None, compare=False)

    def with_references(self, places: Sequence[SubjectVersion]) -> Schema:
        """The same schema with other places of its imports.

        Args:
            places: in the order of `references`.
        """
        moved = tuple(
            SchemaReference(reference.name, *place) for reference, place in zip(self.references, places, strict=True)
        )
        return Schema(self.type, self.text, moved, self.metadata, self.rule_set)


class RegisteredSchema(NamedTuple):
    """A schema with one of its places."""

    subject: str
    version: int
    id: int
    schema: Schema

    @property
    def place(self) -> SubjectVersion:
        """Its place."""
        return SubjectVersion(self.subject, self.version)


def same_text(one: Schema, other: Schema) -> bool:
    """True if two schemas are equal except for their references: type, text, and the data contract.

    Registries format the text differently. JSON is compared as such, regardless of the order of properties; in
    Protobuf, blanks are ignored.
    """
    return (one.type, one.metadata, one.rule_set) == (other.type, other.metadata, other.rule_set) and _canonical_form(
        one
    ) == _canonical_form(other)


def _canonical_form(schema: Schema) -> Any:
    if schema.type is SchemaType.PROTOBUF:
        return _BLANKS.sub("", schema.text)
    try:
        return parse_json(schema.text, levels=SCHEMA_JSON_LEVELS)
    except ValueError:
        # Avro's primitive types may be written without quotes.
        return schema.text.strip()


def split_subject(subject: str) -> tuple[str, str]:
    """The context and the rest of a subject's name: `:.lab:orders-value` is `orders-value` in `.lab`."""
    if not subject.startswith(_CONTEXT_PREFIX):
        return DEFAULT_CONTEXT, subject
    context, _, rest = subject[1:].partition(":")
    return context, rest


def qualify(context: str, subject: str) -> str:
    """A subject's name in a context; unchanged if it has an explicit one.

    Args:
        context: with its leading dot; `.` is the default one.
    """
    if context == DEFAULT_CONTEXT or subject.startswith(_CONTEXT_PREFIX):
        return subject
    return f":{context}:{subject}"
