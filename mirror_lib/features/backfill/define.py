"""Resolve what a backfill copies, and estimate it: topics, times and ends become offsets once, in the ledger."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from mirror_lib.cluster.admin.client import OffsetFact
from mirror_lib.cluster.admin.model import TopicDescription
from mirror_lib.cluster.topics.position_store import PositionStore, StoredPosition
from mirror_lib.config.first_start import FirstStarts, parse_first_start
from mirror_lib.config.model import ExistingTarget, FirstStart, FlowConfig, Rename
from mirror_lib.config.name_patterns import named_topics, plain_names
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.backfill.late_writes import find_late_writes
from mirror_lib.features.backfill.model import (
    Backfill,
    BackfillRange,
    BackfillRequest,
    checked_name,
    shown_bound,
)
from mirror_lib.features.backfill.plan import BackfillEstimate, bound_offset, estimate_range
from mirror_lib.features.backfill.tables import BackfillRow, Backfills
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.speeds import copy_speed
from mirror_lib.planning.backfills import FROM_CUTOVER
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.source_logs import SourceLogs, read_source_logs
from mirror_lib.sync.hidden_by_acls import hidden_topics
from mirror_lib.sync.topics.flow import TopicSync, apply_flow_topics
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition

#: Number of the flow's latest runs from which its speed is measured.
_SPEED_RUNS = 20
#: Maximum number of logs that an error shows.
_LOGS_SHOWN = 3


def backfill_flow(flow: FlowConfig, backfill: Backfill) -> FlowConfig:
    """The flow as a backfill sees it: with its own name and target topics, and without offset-syncs."""
    appends = backfill.into_live or backfill.request.after_cutover
    return flow.model_copy(
        update={
            "flow": backfill.flow,
            "rename": Rename(explicit=backfill.targets),
            # A sync with a lower offset would make every reader forget the flow's syncs.
            "emit_offset_syncs_enabled": False,
            # Late records are fetched into the same topic repeatedly until their producer is found.
            "existing_target": ExistingTarget.APPEND if appends else flow.existing_target,
            "handovers": _with_handed_over(flow).handovers,
        }
    )


def _with_handed_over(flow: FlowConfig) -> FlowConfig:
    """The flow including the topics that cutovers removed from it: a backfill may still copy them into other topics."""
    return flow.model_copy(update={"handovers": replace(flow.handovers, away=frozenset())})


def backfill_topology(flow: FlowConfig, backfill: Backfill) -> FlowTopology:
    """The topics of a backfill, with their target topics."""
    return flow_topology(backfill_flow(flow, backfill), [re.escape(topic) for topic in sorted(backfill.targets)])


def request_of(
    flow: FlowConfig,
    topics: Sequence[str],
    begin: str,
    end: str,
    *,
    into: str | None = None,
    into_suffix: str | None = None,
    into_same: bool = False,
) -> BackfillRequest:
    """Return the request that an operator's options describe.

    Args:
        into_same: copy into the flow's own target topics. It must be explicit, since duplicates there remain.

    Raises:
        ConfigurationError: the options are invalid.
    """
    if sum(map(bool, (into, into_suffix, into_same))) != 1:
        raise ConfigurationError(
            "a backfill needs exactly one target.",
            action="Choose one topic, a suffix for all topic names, or the flow's own topics.",
        )
    if not topics:
        raise ConfigurationError(
            "a backfill needs topics.",
            action="Select source topics by Java regexes, '.*' for all topics of the flow.",
        )
    after_cutover = begin.strip().lower() == FROM_CUTOVER
    if after_cutover and into_same:
        raise ConfigurationError(
            "records written after a cutover cannot be copied into the moved topics: applications write there.",
            action="Copy them into separate topics, with the suffix .late; the application decides about them.",
        )
    return BackfillRequest(
        flow.flow,
        tuple(topics),
        _parse_bound("from", "earliest" if after_cutover else begin),
        _parse_bound("to", end),
        into or None,
        into_suffix or None,
        after_cutover,
    )


def _parse_bound(name: str, text: str) -> FirstStart:
    try:
        bound = parse_first_start(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{name}: {text!r} must be {error}.", action="Use earliest, latest, an offset or a time."
        ) from error
    if bound is None:
        raise ConfigurationError(f"{name} is empty.", action="Use earliest, latest, an offset or a time.")
    return bound


def stored_backfill(flow: FlowConfig, ledger: Ledger, name: str) -> Backfill | None:
    """A backfill from the ledger, None if the name is new."""
    row = Backfills(ledger).find(str(flow.flow), name)
    return None if row is None else _of_row(flow, row)


def every_backfill(flow: FlowConfig, ledger: Ledger) -> tuple[Backfill, ...]:
    """All backfills of a flow in the ledger, newest first."""
    return tuple(_of_row(flow, row) for row in Backfills(ledger).of_flow(str(flow.flow)))


def _of_row(flow: FlowConfig, row: BackfillRow) -> Backfill:
    stored_request = row.definition["request"]
    into, suffix = stored_request["into"], stored_request["into_suffix"]
    request = request_of(
        flow,
        stored_request["topics"],
        stored_request["from"],
        stored_request["to"],
        into=into,
        into_suffix=suffix,
        into_same=not (into or suffix),
    )
    return Backfill.from_dict(row.definition, request)


def find_backfill(
    flow: FlowConfig, clusters: FlowClusters, ledger: Ledger | None, request: BackfillRequest | None, name: str | None
) -> tuple[Backfill, bool]:
    """Return the backfill of a request or a name, and whether it is in the ledger; change nothing.

    Args:
        request: None to find a backfill by its name only.
        name: None for the name that the request derives.

    Raises:
        ConfigurationError: the name is unknown or belongs to another request, or no topic is selected.
        MirrorError: a cluster does not respond.
    """
    if name is None:
        if request is None:
            raise ConfigurationError(
                "the backfill has neither a range nor a name.",
                action="Pass topics, from, to and a target, or the name of an existing backfill.",
            )
        if request.after_cutover:
            return _of_late_writes(flow, clusters, ledger, request)
        name = request.derived_name
    stored = stored_backfill(flow, ledger, checked_name(name)) if ledger is not None else None
    if stored is None:
        if request is None:
            raise ConfigurationError(
                f"flow {flow.flow} has no backfill {name!r}.",
                action="Pass topics, from, to and a target to define it.",
            )
        return _resolve(flow, clusters, ledger, request, name), False
    if request is not None and stored.request != request:
        raise ConfigurationError(
            f"flow {flow.flow} already has a backfill {name!r} with another definition: {stored.request}.",
            action="Use another name, or none: the default name depends on topics and range.",
        )
    return stored, True


def _of_late_writes(
    flow: FlowConfig, clusters: FlowClusters, ledger: Ledger | None, request: BackfillRequest
) -> tuple[Backfill, bool]:
    """The backfill of the late records that are not fetched yet. A backfill that has started is finished first."""
    for row in Backfills(ledger).of_flow(str(flow.flow)) if ledger else ():
        if ledger is None or row.definition["request"] != request.to_dict():
            continue
        known = Backfill.from_dict(row.definition, request)
        fetched = {TopicPartition(each.topic, each.partition): each for each in ledger.positions(str(known.flow))}
        if any(each.source not in fetched or fetched[each.source].offset + 1 < each.following for each in known.ranges):
            return known, True
    found = _resolve(flow, clusters, ledger, request, request.derived_name)
    # The same request fetches other records next time.
    return replace(found, name=found.name_by_ranges), False


def prepare_backfill(
    flow: FlowConfig, clusters: FlowClusters, ledger: Ledger, request: BackfillRequest | None, name: str | None
) -> tuple[BackfillEstimate, TopicSync | None]:
    """Define a backfill in the ledger if it is new, create its target topics, and return what remains to copy.

    Raises:
        ConfigurationError: as `find_backfill`.
        MirrorError: a cluster or the ledger cannot be used.
    """
    backfill, _ = find_backfill(flow, clusters, ledger, request, name)
    Backfills(ledger).define(
        BackfillRow(
            flow=str(flow.flow), name=backfill.name, definition=backfill.to_dict(), created_at=backfill.created_at
        )
    )
    # Another process may have defined it first.
    backfill = stored_backfill(flow, ledger, backfill.name) or backfill
    topics = None
    if backfill.ranges and not backfill.into_live:
        topology = backfill_topology(flow, backfill)
        # What became of its topics is reported by partition, when its positions are known.
        topics = apply_flow_topics(backfill_flow(flow, backfill), topology, ledger, refuse_empty_choice=False)
    return estimate(flow, clusters, ledger, backfill, defined=True), topics


def estimate(
    flow: FlowConfig,
    clusters: FlowClusters,
    ledger: Ledger | None,
    backfill: Backfill,
    *,
    defined: bool,
) -> BackfillEstimate:
    """Estimate the remaining work of a backfill; change nothing."""
    positions = _positions(flow, clusters, backfill) if defined else {}
    sources = [each.source for each in backfill.ranges]
    logs = _logs(clusters, sources, FirstStart(reset="earliest"))
    speed = copy_speed(ledger.newest_rounds(str(flow.flow), _SPEED_RUNS)) if ledger is not None else None
    ranges = []
    for each in backfill.ranges:
        stored = positions.get(each.source)
        position = None if stored is None else stored.position.offset + 1
        extent = logs.starts[each.source].offset, logs.ends[each.source].offset
        ranges.append(estimate_range(each, position, extent, logs.sizes))
    rate, at_least = (speed.bytes_per_second, speed.at_least) if speed is not None else (None, False)
    return BackfillEstimate(backfill, defined, tuple(ranges), rate, at_least)


def _positions(flow: FlowConfig, clusters: FlowClusters, backfill: Backfill) -> Mapping[TopicPartition, StoredPosition]:
    topic, alias = flow.offset_storage_topic, flow.source_alias
    with PositionStore(clusters.positions_connection, topic, alias, connector=backfill.connector) as store:
        return store.read_all().positions


def _logs(clusters: FlowClusters, sources: Sequence[TopicPartition], begin: FirstStart) -> SourceLogs:
    return read_source_logs(
        clusters.source_admin,
        clusters.source_data,
        sources,
        {},
        read_committed=clusters.read_committed,
        first_starts=FirstStarts(default=begin),
    )


def _resolve(
    flow: FlowConfig, clusters: FlowClusters, ledger: Ledger | None, request: BackfillRequest, name: str
) -> Backfill:
    if request.takes_nothing:
        raise _nothing_to_copy(flow, request, "it ends at or before its start.")
    topics, targets = _targets(flow, clusters, request)
    late = {}
    if request.after_cutover:
        late = {
            each.source: each for each in find_late_writes(flow_topology(flow, request.topics), clusters, ledger).writes
        }
    sources = [
        TopicPartition(topic, partition.partition)
        for topic, described in sorted(topics.items())
        for partition in described.partitions
        if not request.after_cutover or TopicPartition(topic, partition.partition) in late
    ]
    logs = _logs(clusters, sources, request.begin)
    until: Mapping[TopicPartition, OffsetFact] = {}
    if request.end.timestamp_ms is not None:
        until = clusters.source_admin.offsets_at(dict.fromkeys(sources, request.end.timestamp_ms))
    ranges = []
    for source in sources:
        error = logs.error(source) or (until[source].error if source in until else None)
        if error is not None:
            raise error
        log_start, log_end = logs.starts[source].offset, logs.ends[source].offset
        first = bound_offset(request.begin, log_start, log_end, logs.firsts.get(source))
        if source in late:
            first = max(late[source].first, log_start)
        following = bound_offset(request.end, log_start, log_end, until.get(source))
        if first < following:
            target = TopicPartition(targets[source.topic], source.partition)
            ranges.append(BackfillRange(source, target, topics[source.topic].topic_id, first, following))
    if not ranges and not request.after_cutover:
        held = [
            f"{each} {logs.starts[each].offset} to {logs.ends[each].offset}" for each in sources if _holds(logs, each)
        ]
        if held:
            raise _nothing_to_copy(flow, request, f"offsets on the source: {', '.join(held[:_LOGS_SHOWN])}.")
    live = flow_topology(flow)
    into_live = any(target == live.remote_topic(topic) for topic, target in targets.items())
    return Backfill(name, request, into_live, tuple(ranges), datetime.now(UTC))


def _holds(logs: SourceLogs, source: TopicPartition) -> bool:
    return logs.ends[source].offset > logs.starts[source].offset


def _nothing_to_copy(flow: FlowConfig, request: BackfillRequest, why: str) -> ConfigurationError:
    # Records between two times may still exist: brokers return only the first one from a time on.
    by_time = request.begin.timestamp_ms is not None or request.end.timestamp_ms is not None
    times = (
        "A time is the first record of a partition that is not older: if timestamps do not ascend, use offsets. "
        if by_time
        else ""
    )
    return ConfigurationError(
        f"the range of this backfill, from {request.begins} to {shown_bound(request.end)}, is empty: {why}",
        where=Where(flow=str(flow.flow)),
        action=f"Correct `from` and `to`. {times}The backfill was not defined.",
    )


def _targets(
    flow: FlowConfig, clusters: FlowClusters, request: BackfillRequest
) -> tuple[Mapping[str, TopicDescription], Mapping[str, str]]:
    """The source topics and their target topics.

    Raises:
        ConfigurationError: no topic is selected, or a target topic is already in use.
    """
    where = Where(flow=str(flow.flow))
    moved, flow = flow.handovers.away, _with_handed_over(flow)
    live = flow_topology(flow)
    listed = clusters.source_admin.list_topics()
    replicated = [topic for topic in listed if live.replicates(topic)]
    chosen = flow_topology(flow, request.topics)
    named = named_topics(flow) | plain_names(request.topics)
    for refusal in hidden_topics(clusters.source_admin, filter(chosen.replicates, named), listed).values():
        raise refusal
    names = [topic for topic in replicated if chosen.replicates(topic)]
    if not names:
        raise ConfigurationError(
            f"no topic of flow {flow.flow} matches {', '.join(request.topics)}.",
            where=where,
            action="`mirror topics plan` lists the topics of the flow.",
        )
    if request.into is not None and len(names) > 1:
        raise ConfigurationError(
            f"{len(names)} topics cannot be copied into one topic {request.into}: {', '.join(sorted(names)[:5])}.",
            where=where,
            action="Select one topic, or use a suffix for the names.",
        )
    described = clusters.source_admin.describe_topics(names)
    for error in described.errors.values():
        raise error
    writers: dict[str, list[str]] = {}
    for topic in replicated:
        writers.setdefault(live.remote_topic(topic), []).append(topic)
    targets = {topic: request.into or live.remote_topic(topic) + (request.into_suffix or "") for topic in names}
    for topic, target in targets.items():
        if topic in moved and target == live.remote_topic(topic):
            raise ConfigurationError(
                f"{topic} cannot be copied into {target}: a cutover has moved its producers there.",
                where=where,
                action="Copy it into a separate topic, with the suffix .late; the application decides about it.",
            )
        others = [writer for writer in writers.get(target, ()) if writer != topic]
        if others:
            raise ConfigurationError(
                f"{topic} cannot be copied into {target}: the flow copies {', '.join(others[:5])} to it.",
                where=where,
                action="Use a target topic that the flow does not write to.",
            )
    return described, targets
