"""Topics of a flow whose records may have schema ids, and the schemas in a sample of each. Read only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mirror_lib.cluster.admin.client import ClusterAdmin, OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.features.transforms.sampling.job import chain_of
from mirror_lib.features.transforms.sampling.sample import Edge, Sample, SampleStart, read_sample
from mirror_lib.features.transforms.schema_use.preflight import (
    SIDES,
    SchemaUse,
    TopicSample,
    decoded_formats,
    used_schemas,
)
from mirror_lib.sync.admins import source_admin
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition


class TopicSchemas(NamedTuple):
    """The schemas in a sample of a topic, by side."""

    sample: TopicSample
    used: Mapping[str, Counter[SchemaUse]]


def topics_with_schemas(flow: FlowConfig, topology: FlowTopology) -> dict[str, int]:
    """The topics of the flow whose records may have schema ids, with their numbers of offsets.

    Heartbeats are excluded unless a transform decodes them: their fields look like schema ids but are none.

    Raises:
        MirrorError: the source does not respond.
    """
    with source_admin(flow) as admin:
        found = [
            topic
            for topic in admin.list_topics()
            if topology.replicates(topic)
            and (not topology.policy.is_heartbeats_topic(topic) or _is_decoded(flow, topic))
        ]
        return _count_records(admin, flow, sorted(found))


def _is_decoded(flow: FlowConfig, topic: str) -> bool:
    chain = chain_of(flow, topic)
    return any(decoded_formats(chain, side) for side in SIDES)


def _count_records(admin: ClusterAdmin, flow: FlowConfig, topics: Sequence[str]) -> dict[str, int]:
    described = admin.describe_topics(topics)
    for error in described.errors.values():
        raise error
    partitions = [TopicPartition(topic, each.partition) for topic in topics for each in described[topic].partitions]
    is_committed = flow.isolation_level is IsolationLevel.READ_COMMITTED
    firsts = admin.list_offsets(partitions, OffsetSpec.EARLIEST)
    ends = admin.list_offsets(partitions, OffsetSpec.LAST_STABLE if is_committed else OffsetSpec.LATEST)
    held = dict.fromkeys(topics, 0)
    for each in partitions:
        held[each.topic] += max(0, _offset(ends[each]) - _offset(firsts[each]))
    return held


def _offset(fact: OffsetFact) -> int:
    if fact.error is not None:
        raise fact.error
    return fact.offset


def sampled_schemas(flow: FlowConfig, topic: str, held: int, most: int) -> TopicSchemas:
    """The schemas in the oldest and the newest records of all partitions of a topic.

    Args:
        held: number of offsets of the topic.
        most: maximum number of records.

    Raises:
        MirrorError: the source does not respond, or no longer has the topic.
    """
    samples: list[Sample] = []
    if held > most:
        # Schemas change with time: hardly any is only in the middle.
        wanted = {Edge.EARLIEST: -(-most // 2), Edge.LATEST: most // 2}
        samples = [read_sample(flow, topic, SampleStart(edge), most=count) for edge, count in wanted.items() if count]
    elif held:
        samples = [read_sample(flow, topic, SampleStart(Edge.EARLIEST), most=most)]
    # The two samples overlap in partitions with few records.
    records = {record.place: record for sample in samples for record in sample.records()}
    unreadable = {place for sample in samples for place in sample.unreadable}
    topic_sample = TopicSample(topic, len(records), held, len(unreadable))
    return TopicSchemas(topic_sample, {side: used_schemas(records.values(), side) for side in SIDES})
