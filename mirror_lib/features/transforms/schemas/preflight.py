"""Checks before a run whether every schema id in the source's records means the same schema at the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from mirror_lib.features.transforms.schemas.errors import SchemaMissingError
from mirror_lib.features.transforms.schemas.identities import IdentityPlan, SourceSchema, SourceSchemas, plan_identities
from mirror_lib.features.transforms.schemas.imports import read_imports
from mirror_lib.features.transforms.schemas.model import Schema, SchemaReference, SubjectVersion
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry


def subject_of_topic(topic: str, *, key: bool) -> str:
    """The subject of a topic's keys or values by the default strategy (Java `TopicNameStrategy`)."""
    return f"{topic}-{'key' if key else 'value'}"


def read_source(registry: SchemaRegistry, in_use: Mapping[int, Iterable[str]]) -> SourceSchemas:
    """The source registry's schemas of the ids in use, with all their imports.

    Args:
        registry: of the source.
        in_use: by id, the subjects by naming strategy of the topics whose records contain it.

    Raises:
        SchemaRegistryError: the registry does not respond, or lacks an imported schema.
    """
    found = {number: _read(registry, number, tuple(subjects)) for number, subjects in in_use.items()}
    imported: dict[SubjectVersion, Schema] = {}

    def read(reference: SchemaReference) -> Schema:
        known = imported.get(reference.place)
        return known or registry.version(reference.subject, reference.version).schema

    for number, each in found.items():
        if each is not None:
            all_of_it = read_imports(each.schema, read, label=f"the schema with the id {number}")
            imported |= {reference.place: schema for reference, schema in all_of_it.items()}
    return SourceSchemas(found, imported)


def _read(registry: SchemaRegistry, number: int, by_topic: tuple[str, ...]) -> SourceSchema | None:
    try:
        schema = registry.schema(number)
        holding = tuple(place.subject for place in registry.places(number))
    except SchemaMissingError:
        return None
    # Prefer a subject that holds it and belongs to a topic whose records contain it.
    subjects = (*(each for each in by_topic if each in holding), *holding, *by_topic)
    return SourceSchema(schema, tuple(dict.fromkeys(subjects)))


def compare(
    source: SchemaRegistry,
    target: SchemaRegistry,
    in_use: Mapping[int, Iterable[str]],
    *,
    target_subject: Callable[[str], str] = str,
) -> IdentityPlan:
    """Compare both registries without a change.

    Args:
        in_use: by id, the subjects by naming strategy of the topics whose records contain it.
        target_subject: the name at the target of a subject of the source.

    Raises:
        SchemaRegistryError: a registry does not respond.
    """
    return plan_identities(read_source(source, in_use), target, target_subject=target_subject)


def missing_guids(target: SchemaRegistry, in_use: Iterable[UUID]) -> tuple[UUID, ...]:
    """The GUIDs in the source's records that the target does not know.

    A GUID is a digest of the schema and of the places of its imports: it needs no rewriting, only a target where the
    same schema is registered in the same places.

    Raises:
        SchemaRegistryError: the registry does not respond.
    """
    missing = []
    for guid in in_use:
        try:
            target.schema_of_guid(guid)
        except SchemaMissingError:
            missing.append(guid)
    return tuple(missing)


def register_missing(plan: IdentityPlan, target: SchemaRegistry) -> None:
    """Register the schemas that a plan found missing, imported ones first. Idempotent.

    Compare again afterwards: the new plan's `rewrites` contain the ids that the target has assigned.

    Raises:
        SchemaRefusedError: the target rejects a schema; those before it stay registered.
    """
    kept = dict(plan.kept)
    for registration in plan.registrations:
        places = [kept[reference.place] for reference in registration.schema.references]
        schema = registration.schema.with_references(places) if places else replace(registration.schema, id=None)
        target.register(registration.subject, schema)
        if registration.imported_from:
            found = target.lookup(registration.subject, schema)
            if found is None:
                raise SchemaMissingError(
                    f"the schema just registered under {registration.subject} is not found there.",
                    action="Check whether someone deletes it at the same time.",
                )
            kept.update(dict.fromkeys(registration.imported_from, found.place))
