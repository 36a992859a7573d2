"""What two schema registries answer about the schemas that records name, asked as a run asks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.schemas import (
    IdentityPlan,
    Place,
    Registration,
    SchemaRegistry,
    SchemaRegistryError,
    compare,
    missing_guids,
    register_missing,
)
from mirror_lib.transform.model import FlowTransforms, TransformChain
from mirror_lib.transform.schemas.preflight import (
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
from mirror_lib.transform.schemas.registry_sides import access_of, reader_of, registry_at
from mirror_lib.transform.setting_keys import PREFIX, REGISTRY

#: So many ids of a side that nothing decodes, those that most records have, tell whether they are ids at all.
_PROBED = 20


class Registries(NamedTuple):
    """Those of the two sides of a flow."""

    source: SchemaRegistry
    target: SchemaRegistry


def registries_of(transforms: FlowTransforms, flow: str) -> Registries:
    """The registries of a flow; nobody is asked yet.

    Raises:
        ConfigurationError: one of them is not set.
    """
    sides = {"source": transforms.source_registry, "target": transforms.target_registry}
    missing = [side for side, registry in sides.items() if registry is None]
    if missing:
        raise ConfigurationError(
            "schema ids are compared between two schema registries, and that of the "
            f"{' and that of the '.join(missing)} is not set.",
            where=Where(flow=flow),
            action=f"Set {' and '.join(f'{PREFIX}{REGISTRY}.{side}.url' for side in missing)}.",
        )
    return Registries(*(registry_at(access_of(each)) for each in sides.values() if each is not None))


def written_by(chain: TransformChain, side: str, topic: str, remote_topic: str) -> int | None:
    """The id at the source that transforms write a side by; None where they do not write it.

    Raises:
        ConfigurationError: a transform decodes the side, and the source has no subject for it, or another format in it.
        SchemaRegistryError: the registry does not answer.
    """
    number = None
    if chain.source_registry is not None:
        for chosen in decoded_formats(chain, side):
            number = reader_of(side, chosen, chain.source_registry, {topic: remote_topic}).ids[topic]
    return number if is_written(chain, side) else None


def ask(registries: Registries, uses: SideUses) -> tuple[Finding, ...] | Lookalike:
    """What becomes of the schemas that one side of a topic names; changes nothing.

    Raises:
        SchemaRegistryError: a registry does not answer, or lacks what a schema imports.
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
    """In front of the bytes before headers, ids before GUIDs."""
    return use.place is Place.HEADER, isinstance(use.schema, UUID), int(use.schema)


def register(registries: Registries, uses: SideUses, findings: Iterable[Finding]) -> Iterator[Registration]:
    """Register at the target what is missing there, and tell what was registered.

    A kept id that is another schema's at the target is passed over: registering cannot free it.

    Raises:
        SchemaRefusedError: the target does not take a schema; those before it stay registered.
        SchemaRegistryError: a registry does not answer.
    """
    lacking = [each.use.schema for each in findings if each.outcome is Outcome.MISSING]
    taken = {each.use.schema for each in findings if each.is_taken}
    numbers = [each for each in lacking if isinstance(each, int) and (uses.is_decoded or each not in taken)]
    if numbers:
        wanted = dict.fromkeys(numbers, (uses.subject,))
        plan = compare(*registries, wanted, target_subject=uses.remote_name)
        register_missing(plan, registries.target)
        yield from plan.registrations
    # The same schema may have been registered for an id just now.
    for guid in missing_guids(registries.target, [each for each in lacking if isinstance(each, UUID)]):
        yield from _register_guid(registries, uses, guid)


def _register_guid(registries: Registries, uses: SideUses, guid: UUID) -> Iterator[Registration]:
    schema = registries.source.schema_of_guid(guid)
    if schema.references:
        # The GUID is of the places of what is imported too, and the target may keep that elsewhere.
        return
    plan = IdentityPlan((), (Registration(uses.remote_subject, schema),))
    register_missing(plan, registries.target)
    yield from plan.registrations


def _has_lookalikes(source: SchemaRegistry, uses: SideUses) -> bool:
    """Whether a side that nothing decodes seems to have no schemas; asking for thousands of numbers tells no more."""
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
        # Registries that are older than GUIDs know no such request; what looks like one is not of theirs.
        return False
    return True
