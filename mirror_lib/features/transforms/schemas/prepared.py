"""What the codecs of all formats have in common: schemas, each parsed once for all threads, and their errors."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from mirror_lib.features.transforms.schemas.errors import SchemaFormatError
from mirror_lib.features.transforms.schemas.model import Schema, SchemaType

_Parsed = TypeVar("_Parsed", bound="ParsedSchema")
_SHOWN = 300


class ParsedSchema:
    """A schema, ready for values."""

    #: Name of the format in errors.
    format: ClassVar[str]

    def __init__(self, label: str) -> None:
        """`label` is the schema's name in errors."""
        self._label = label

    def _unusable(self, error: Exception) -> SchemaFormatError:
        return SchemaFormatError(
            f"{self._label} is not a usable {self.format} schema: {_short(error)}.", action="Check it in the registry."
        )

    def _unreadable(self, payload: bytes, error: Exception) -> SchemaFormatError:
        return SchemaFormatError(
            f"a record of {len(payload)} bytes does not match {self._label}: {_short(error)}.",
            action=f"Check that its schema id belongs to this registry, and that its producer writes {self.format}.",
        )

    def _misfit(self, error: Exception) -> SchemaFormatError:
        return SchemaFormatError(
            f"a value does not match {self._label}: {_short(error)}.",
            action="Correct the source of the value, or set its schema.",
        )


class SchemaCodec(ABC, Generic[_Parsed]):
    """Keys or values with a schema id in front, by the schemas of a registry; each schema is parsed once.

    Raises:
        SchemaMissingError: from every method, if the registry does not know the schema.
        SchemaRegistryError: likewise, if it does not respond.
        SchemaFormatError: likewise, if the schema has another format, or bytes or value do not match it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: dict[int, _Parsed] = {}

    def schema(self, number: int) -> _Parsed:
        """The parsed schema of an id. A failure is retried on the next request."""
        with self._lock:
            known = self._ready.get(number)
        if known is None:
            # Not under the lock: a slow response for one schema must not block others.
            made = self._parse(number)
            with self._lock:
                known = self._ready.setdefault(number, made)
        return known

    @abstractmethod
    def _parse(self, number: int) -> _Parsed:
        """Request a schema from the registry, and parse it."""


def schema_of_type(schema: Schema, number: int, wanted: SchemaType) -> Schema:
    """Return a schema that has this type.

    Raises:
        SchemaFormatError: it has another type.
    """
    if schema.type is not wanted:
        raise SchemaFormatError(
            f"the schema with the id {number} is {schema.type}, not {wanted}.", action="Decode it in its own format."
        )
    return schema


def _short(error: Exception) -> str:
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return (str(text) or type(error).__name__)[:_SHOWN].rstrip(". ")
