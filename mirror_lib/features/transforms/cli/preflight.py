"""Implementation of `mirror transform preflight`: find the schemas that records name, and look up each on the
target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from mirror_lib.cli import Output
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.features.transforms.model import transforms_of
from mirror_lib.features.transforms.sampling.job import chain_of
from mirror_lib.features.transforms.sampling.schema_sample import TopicSchemas, sampled_schemas, topics_with_schemas
from mirror_lib.features.transforms.schema_use.preflight import (
    SIDES,
    Finding,
    Lookalike,
    SchemaPreflight,
    SchemaUse,
    SideUses,
    TopicSample,
    decoded_formats,
)
from mirror_lib.features.transforms.schema_use.registry_answers import (
    Registries,
    ask,
    register,
    registries_of,
    written_by,
)
from mirror_lib.features.transforms.schemas.wire import Place
from mirror_lib.topology.flow_topology import FlowTopology

#: Lines for ten thousand topics are not readable; JSON has all of them.
_LINES_SHOWN = 200


def show_preflight(output: Output, flow: FlowConfig, topics: Sequence[str], most: int, *, registers: bool) -> None:
    """Show the state on the target of the schemas that a flow's records name; set exit code 1 if some are missing.

    Args:
        topics: Java regexes that limit the flow's topics; none selects all of them.
        most: number of records read of each topic.
        registers: register missing schemas on the target.

    Raises:
        ConfigurationError: a registry is not set, or a transform decodes by a subject that the source does not have.
        SchemaRegistryError: a registry does not respond, or rejects a schema.
        MirrorError: the source does not respond.
    """
    registries = registries_of(transforms_of(flow), str(flow.flow))
    output.document({"flow": str(flow.flow), "is_sample": True})
    topology = flow_topology(flow, topics)
    samples, uses = _looked_at(output, flow, topology, most)
    found = _query_registries(output, registries, samples, uses)
    if registers:
        _register(output, registries, uses, found)
        found = _query_registries(output, registries, samples, uses)
    _show(output, found, registers=registers)


def _looked_at(
    output: Output, flow: FlowConfig, topology: FlowTopology, most: int
) -> tuple[tuple[TopicSample, ...], list[SideUses]]:
    with output.progress(f"Listing the topics of {flow.flow.source}"):
        held = topics_with_schemas(flow, topology)
    samples: list[TopicSample] = []
    uses: list[SideUses] = []
    with output.progress(f"Reading records on {flow.flow.source}", total=len(held)) as progress:
        for topic, count in held.items():
            found = sampled_schemas(flow, topic, count, most)
            samples.append(found.sample)
            if count:
                uses += _side_uses(flow, topology.remote_topic(topic), found)
            progress.advance()
    return tuple(samples), uses


def _side_uses(flow: FlowConfig, remote_topic: str, found: TopicSchemas) -> Iterable[SideUses]:
    topic = found.sample.topic
    chain = chain_of(flow, topic)
    for side in SIDES:
        records = dict(found.used[side])
        latest = written_by(chain, side, topic, remote_topic)
        if latest is not None:
            records.setdefault(SchemaUse(latest, Place.PREFIX), 0)
        if records:
            yield SideUses(topic, remote_topic, side, bool(decoded_formats(chain, side)), records)


def _query_registries(
    output: Output, registries: Registries, samples: tuple[TopicSample, ...], uses: Sequence[SideUses]
) -> SchemaPreflight:
    findings: list[Finding] = []
    lookalikes: list[Lookalike] = []
    with output.progress("Reading the schema registries", total=len(uses)) as progress:
        for each in uses:
            found = ask(registries, each)
            if isinstance(found, Lookalike):
                lookalikes.append(found)
            else:
                findings += found
            progress.advance()
    return SchemaPreflight(samples, tuple(findings), tuple(lookalikes))


def _register(output: Output, registries: Registries, uses: Sequence[SideUses], found: SchemaPreflight) -> None:
    registered: list[dict[str, str]] = []
    # Reported even if the next one is rejected.
    output.document({"registered": registered})
    own: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in found.unresolved_ids:
        own[finding.topic, finding.side].append(finding)
    for each in uses:
        for registration in register(registries, each, own[each.topic, each.side]):
            kind = registration.schema.type.value
            registered.append({"subject": registration.subject, "type": kind})
            output.note(f"Registered {kind} under {registration.subject} on the target.")


def _show(output: Output, found: SchemaPreflight, *, registers: bool) -> None:
    output.document(found.to_dict())
    lines = list(found.lines())
    for line in islice(lines, _LINES_SHOWN):
        output.note(line)
    if len(lines) > _LINES_SHOWN:
        output.note(f"... and {len(lines) - _LINES_SHOWN:,} more lines; --json lists them all.")
    for line in found.summary():
        output.note(line)
    if not registers:
        output.note("Nothing was written.")
    if not found.in_order:
        output.exit_code = 1
