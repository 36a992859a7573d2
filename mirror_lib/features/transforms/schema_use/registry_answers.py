"""Look up the schemas that records name in two schema registries, with the requests of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from mirror_lib.config.settings.keys_of_transforms import PREFIX, REGISTRY
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.transforms.model import FlowTransforms, TransformChain
from mirror_lib.features.transforms.schema_use.preflight import (
    Finding,
    Lookalike,
    Outcome,
    SchemaUse,
    SideUses,
    decoded_formats,
    finding_of_guid,
    finding_of_id,
    finding_of_unread,
    is_written,
)
from mirror_lib.features.transforms.schema_use.registry_sides import access_of, reader_of, registry_at
from mirror_lib.features.transforms.schemas.errors import SchemaRegistryError
from mirror_lib.features.transforms.schemas.identities import IdentityPlan, Registration
from mirror_lib.features.transforms.schemas.preflight import compare, missing_guids, register_missing
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.wire import Place

#: For a side that is not decoded, this many of the most frequent ids show if they are ids at all.
_PROBED = 20


class Registries(NamedTuple):
    """The registries of both sides of a flow."""

    source: SchemaRegistry
    target: SchemaRegistry


def registries_of(transforms: FlowTransforms, flow: str) -> Registries:
    """Return the registries of a flow; nothing is requested yet.

    Raises:
        ConfigurationError: one of them is not set.
    """
    sides = {"source": transforms.source_registry, "target": transforms.target_registry}
    missing = [side for side, registry in sides.items() if registry is None]
    if missing:
        raise ConfigurationError(
            "schema ids are compared between two schema registries, but the registry of the "
            f"{' and that of the '.join(missing)} is not set.",
            where=Where(flow=flow),
            action=f"Set {' and '.join(f'{PREFIX}{REGISTRY}.{side}.url' for side in missing)}.",
        )
    return Registries(*(registry_at(access_of(each)) for each in sides.values() if each is not None))


def written_by(chain: TransformChain, side: str, topic: str, remote_topic: str) -> int | None:
    """Return the source id that transforms write a side by; None if they do not write it.

    Raises:
        ConfigurationError: a transform decodes the side, and the source has no subject for it, or another format in it.
        SchemaRegistryError: the registry does not respond.
    """
    number = None
    if chain.source_registry is not None:
        for chosen in decoded_formats(chain, side):
            number = reader_of(side, chosen, chain.source_registry, {topic: remote_topic}).ids[topic]
    return number if is_written(chain, side) else None


def ask(registries: Registries, uses: SideUses) -> tuple[Finding, ...] | Lookalike:
    """Return the outcome for the schemas that one side of a topic names; changes nothing.

    Raises:
        SchemaRegistryError: a registry does not respond, or lacks a schema that another one imports.
    """
    if _has_lookalikes(registries.source, uses):
        return Lookalike.of(uses)
    plan = compare(*registries, dict.fromkeys(uses.ids, (uses.subject,)), target_subject=uses.remote_name)
    identities = {each.source_id: each for each in plan.identities}
    missing = {guid: _has(registries.source, guid) for guid in missing_guids(registries.target, uses.guids)}
    found = []
    for use in sorted(uses.records, key=_order):
        if uses.is_decoded and not use.is_read:
            found.append(finding_of_unread(uses, use))
        elif isinstance(use.schema, int):
            found.append(finding_of_id(uses, use, identities.get(use.schema)))
        else:
            guid = use.schema
            at_target = guid not in missing
            found.append(finding_of_guid(uses, use, at_source=at_target or missing[guid], at_target=at_target))
    return tuple(found)


def _order(use: SchemaUse) -> tuple[bool, bool, int]:
    """Order names: in front of the bytes before headers, ids before GUIDs."""
    return use.place is Place.HEADER, isinstance(use.schema, UUID), int(use.schema)


def register(registries: Registries, uses: SideUses, findings: Iterable[Finding]) -> Iterator[Registration]:
    """Register missing schemas at the target, and yield what was registered.

    An unchanged id that the target uses for another schema is skipped: registering cannot free it.

    Raises:
        SchemaRefusedError: the target rejects a schema; those before it stay registered.
        SchemaRegistryError: a registry does not respond.
    """
    lacking = [each.use.schema for each in findings if each.outcome is Outcome.MISSING]
    taken = {each.use.schema for each in findings if each.is_taken}
    numbers = [each for each in lacking if isinstance(each, int) and (uses.is_decoded or each not in taken)]
    if numbers:
        wanted = dict.fromkeys(numbers, (uses.subject,))
        plan = compare(*registries, wanted, target_subject=uses.remote_name)
        register_missing(plan, registries.target)
        yield from plan.registrations
    # The same schema may just have been registered for an id.
    for guid in missing_guids(registries.target, [each for each in lacking if isinstance(each, UUID)]):
        yield from _register_guid(registries, uses, guid)


def _register_guid(registries: Registries, uses: SideUses, guid: UUID) -> Iterator[Registration]:
    schema = registries.source.schema_of_guid(guid)
    if schema.references:
        # The GUID depends on the subjects of imported schemas too, which the target may keep elsewhere.
        return
    plan = IdentityPlan((), (Registration(uses.remote_subject, schema),))
    register_missing(plan, registries.target)
    yield from plan.registrations


def _has_lookalikes(source: SchemaRegistry, uses: SideUses) -> bool:
    """Return True if a side that is not decoded seems to have no schemas; a few lookups are enough."""
    probed = () if uses.is_decoded else uses.schemas[:_PROBED]
    return bool(probed) and not any(_has(source, each) for each in probed)


def _has(source: SchemaRegistry, schema: int | UUID) -> bool:
    if isinstance(schema, int):
        return source.find(schema) is not None
    try:
        source.schema_of_guid(schema)
    except SchemaRegistryError as error:
        if error.retriable:
            raise
        # Registries older than GUIDs do not have this request; what looks like one is not of theirs.
        return False
    return True
