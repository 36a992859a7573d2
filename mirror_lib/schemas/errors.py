"""What can go wrong between a flow and a schema registry, or between a record and its schema.

Refused credentials and broken TLS are `AuthenticationError` and `AuthorizationError`, as everywhere.
"""

from __future__ import annotations

from mirror_lib.errors import MirrorError


class SchemaRegistryError(MirrorError):
    """A schema registry answered with an error, or with what is no answer of a registry."""

    reason = "schema-registry"


class SchemaRegistryUnreachableError(SchemaRegistryError):
    """A schema registry did not answer, or only with errors that usually pass."""

    reason = "schema-registry-unreachable"
    retriable = True


class SchemaMissingError(SchemaRegistryError):
    """The registry does not know a schema id, a subject or a version."""

    reason = "schema-missing"
    exit_code = 3


class SchemaRefusedError(SchemaRegistryError):
    """The registry does not take a schema: it is invalid, incompatible, or the registry's mode forbids it."""

    reason = "schema-refused"
    exit_code = 3


class SchemaFormatError(MirrorError):
    """A schema cannot be parsed, or a record is not what its schema says."""

    reason = "schema-format"
    exit_code = 3
