"""What a schema registry keeps, as values."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

#: Of subjects and ids that name no context (Java `QualifiedSubject`).
DEFAULT_CONTEXT = "."
_CONTEXT_PREFIX = ":."
_BLANKS = re.compile(r"\s+")


class SchemaType(StrEnum):
    """The languages of schemas; an answer of a registry that names none means Avro."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


class SubjectVersion(NamedTuple):
    """A place in a registry that holds a schema."""

    subject: str
    version: int

    def __str__(self) -> str:
        return f"{self.subject} version {self.version}"


class SchemaReference(NamedTuple):
    """A schema that another one imports."""

    #: As the importing schema calls it: a full name in Avro, a file in Protobuf, an URL in JSON Schema.
    name: str
    #: Where it is kept; a subject without a context is one of the importing schema's context.
    subject: str
    version: int

    @property
    def place(self) -> SubjectVersion:
        """Where it is kept."""
        return SubjectVersion(self.subject, self.version)


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as a registry gives it. Two are equal when they say the same by the same words, whatever their ids."""

    type: SchemaType
    text: str = field(repr=False)
    references: tuple[SchemaReference, ...] = ()
    #: JSON of a data contract's parts, which count for a schema's identity as its text does.
    metadata: str | None = field(default=None, repr=False)
    rule_set: str | None = field(default=None, repr=False)
    #: In the registry that gave it.
    id: int | None = field(default=None, compare=False)

    def with_references(self, places: Sequence[SubjectVersion]) -> Schema:
        """The same schema where what it imports is kept elsewhere.

        Args:
            places: in the order of `references`.
        """
        moved = tuple(
            SchemaReference(reference.name, *place) for reference, place in zip(self.references, places, strict=True)
        )
        return Schema(self.type, self.text, moved, self.metadata, self.rule_set)


class RegisteredSchema(NamedTuple):
    """A schema with one of the places that hold it."""

    subject: str
    version: int
    id: int
    schema: Schema

    @property
    def place(self) -> SubjectVersion:
        """Where it is kept."""
        return SubjectVersion(self.subject, self.version)


def same_text(one: Schema, other: Schema) -> bool:
    """Whether two schemas say the same but for their references: type, text, and the data contract.

    Registries lay the text out in their own ways. What is JSON is compared as such, where the order of properties means
    nothing; in Protobuf blanks are not compared.
    """
    return (one.type, one.metadata, one.rule_set) == (other.type, other.metadata, other.rule_set) and _meaning(
        one
    ) == _meaning(other)


def _meaning(schema: Schema) -> Any:
    if schema.type is SchemaType.PROTOBUF:
        return _BLANKS.sub("", schema.text)
    try:
        return json.loads(schema.text)
    except ValueError:
        # Avro's primitive types may be written without quotes.
        return schema.text.strip()


def split_subject(subject: str) -> tuple[str, str]:
    """The context and the rest of a subject's name: `:.lab:orders-value` is `orders-value` in `.lab`."""
    if not subject.startswith(_CONTEXT_PREFIX):
        return DEFAULT_CONTEXT, subject
    context, _, rest = subject[1:].partition(":")
    return context, rest


def qualified(context: str, subject: str) -> str:
    """A subject's name in a context; one that names its own context stays.

    Args:
        context: with its leading dot; `.` is the default one.
    """
    if context == DEFAULT_CONTEXT or subject.startswith(_CONTEXT_PREFIX):
        return subject
    return f":{context}:{subject}"
