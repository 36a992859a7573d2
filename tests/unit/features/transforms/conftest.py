"""Schema registries that run on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import RegistryAccess
from tools.testbed.schema_registry import LocalSchemaRegistry


@pytest.fixture
def local() -> Iterator[LocalSchemaRegistry]:
    with LocalSchemaRegistry() as registry:
        yield registry


@pytest.fixture
def registry(local: LocalSchemaRegistry) -> SchemaRegistry:
    """A client of the only registry of a test."""
    return SchemaRegistry(RegistryAccess.of(local.url))


@pytest.fixture
def source() -> Iterator[LocalSchemaRegistry]:
    with LocalSchemaRegistry() as registry:
        yield registry


@pytest.fixture
def target() -> Iterator[LocalSchemaRegistry]:
    with LocalSchemaRegistry() as registry:
        yield registry
