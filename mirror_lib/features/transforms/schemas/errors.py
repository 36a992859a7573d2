"""Errors of schema registries, and of records that do not match their schema.

Rejected credentials and failed TLS handshakes are `AuthenticationError` and `AuthorizationError`, as elsewhere.
"""

from __future__ import annotations

from mirror_lib.errors import MirrorError


class SchemaRegistryError(MirrorError):
    """A schema registry responded with an error, or with a malformed response."""

    reason = "schema-registry"
    # Errors that usually pass are those of `SchemaRegistryUnreachableError`.
    exit_code = 3


class SchemaRegistryUnreachableError(SchemaRegistryError):
    """A schema registry did not respond, or only with errors that usually pass."""

    reason = "schema-registry-unreachable"
    exit_code = 1
    retriable = True


class SchemaMissingError(SchemaRegistryError):
    """The registry does not know a schema id, a subject or a version."""

    reason = "schema-missing"
    exit_code = 3


class SchemaRefusedError(SchemaRegistryError):
    """The registry rejects a schema: it is invalid, incompatible, or the registry's mode forbids it."""

    reason = "schema-refused"
    exit_code = 3


class SchemaFormatError(MirrorError):
    """A schema cannot be parsed, or a record does not match its schema."""

    reason = "schema-format"
    exit_code = 3
