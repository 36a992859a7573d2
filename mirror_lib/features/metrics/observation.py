"""Observe a flow once and store the result: the lag of every partition, since when, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from mirror_lib.cluster.raw.timestamps import first_timestamps
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.flow_plan import plan_with_facts
from mirror_lib.copy.health.after_run import ledger_tidied_up
from mirror_lib.copy.health.next_run import FlowForecast, PartitionForecast, forecast_of
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError, TopicMissingError
from mirror_lib.features.metrics.figures import GroupTotals
from mirror_lib.features.metrics.queries import MetricsQueries
from mirror_lib.identity.clusters import check_clusters
from mirror_lib.ledger.handovers import with_handovers
from mirror_lib.ledger.observed_rows import FlowObservationRow, PartitionObservationRow
from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import PartitionFacts, PartitionPlan, PartitionProblem, RunPlan
from mirror_lib.planning.open_transactions import hidden_detail
from mirror_lib.planning.unselected import unselected_error
from mirror_lib.topology.names import TopicPartition

#: Detail of partitions that an operator has stopped.
STOPPED = "replication was stopped by an operator"
#: State of a partition that failed in the latest run.
_FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FlowObserved:
    """A flow at one moment."""

    flow: FlowObservationRow
    #: All partitions that the flow selects, by topic and partition.
    partitions: tuple[PartitionObservationRow, ...]

    def summary(self) -> dict[str, Any]:
        """The flow only, as plain data: `"never"` if it never ends, null if it is unknown."""
        return _plain(self.flow)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`; `partition_rows` has one entry per partition."""
        return {
            **self.summary(),
            "partition_rows": [{**_plain(row), "records_behind": row.records_behind} for row in self.partitions],
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """The input of an observation, read at one moment."""

    flow: str
    now: datetime
    facts: tuple[PartitionFacts, ...]
    plan: RunPlan
    #: None without the feature that makes it.
    forecast: FlowForecast | None
    #: Timestamp of the first record that is not copied, by partition: epoch milliseconds.
    first_timestamps: Mapping[TopicPartition, int]
    #: Reasons of stalled partitions, in addition to the plan's problems.
    failures: Mapping[TopicPartition, Failure]
    #: For partitions whose facts are unknown.
    remote_topics: Mapping[str, str]
    #: Partitions without a target partition, and why they cannot be copied then.
    missing_targets: Mapping[TopicPartition, Failure] = field(default_factory=dict)
    #: When the newest run began: it had created the missing target topics before.
    run_started: datetime | None = None
    #: The partitions as last observed.
    before: Sequence[PartitionObservationRow] = ()
    groups: GroupTotals | None = None
    open_gaps: int = 0
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a partition is not copied."""

    reason: str
    detail: str | None

    @classmethod
    def of(cls, error: MirrorError) -> Failure:
        """An error's reason code, and what happened with what to do about it."""
        return cls(error.reason, f"{error.what} {error.action}".strip())


def observe_flow(flow: FlowConfig, ledger: Ledger, *, run_id: str | None = None) -> FlowObserved:
    """Observe all partitions of a flow and store the result in the ledger. Change nothing on the clusters.

    It also deletes expired data of old runs from the ledger, and closes runs that have died.

    Args:
        run_id: the run that this observation follows.

    Raises:
        MirrorError: a cluster cannot be reached, or the ledger cannot be used; nothing is stored then.
    """
    with ledger_tidied_up(flow, ledger):
        observed = observed_rows(look_at_flow(flow, ledger, run_id=run_id))
        ledger.observations.save_flow(observed.flow, observed.partitions)
    return observed


def look_at_flow(flow: FlowConfig, ledger: Ledger, *, run_id: str | None = None) -> Seen:
    """Read what an observation needs, each cluster once.

    Raises:
        MirrorError: as `observe_flow`.
    """
    flow, name = with_handovers(flow, ledger), str(flow.flow)
    with FlowClusters.connect(flow) as clusters:
        check_clusters(flow, ledger, clusters.ids())
        # A missing target topic must not hide the lag.
        plan, facts = plan_with_facts(flow, clusters, RunOptions(), ledger, topics_synced=False)
        missing = _missing_targets(plan.partitions, clusters)
    newest = next(iter(ledger.runs(name, 1)), None)
    now = datetime.now(UTC)
    topology = flow_topology(flow)
    without_facts = {each.source.topic for each in plan.problems} | {each.source.topic for each in plan.undecided}
    return Seen(
        flow=name,
        now=now,
        facts=facts,
        plan=plan,
        forecast=forecast_of(flow, plan, ledger),
        first_timestamps=first_timestamps(
            clusters.source_data, dict(_first_offsets(plan, facts)), read_committed=clusters.read_committed
        ),
        failures={} if newest is None else _failures_of_run(newest.id, ledger),
        missing_targets=missing,
        run_started=None if newest is None else newest.started_at,
        remote_topics={topic: topology.remote_topic(topic) for topic in without_facts},
        before=ledger.observations.partitions(name),
        groups=MetricsQueries(ledger).group_totals(name),
        open_gaps=len(ledger.open_gaps(name)),
        run_id=run_id,
    )


def _missing_targets(partitions: Sequence[PartitionPlan], clusters: FlowClusters) -> dict[TopicPartition, Failure]:
    """Partitions whose target topic or target partition is missing: the topic sync could not create it."""
    described = clusters.target_admin.describe_topics(sorted({each.target.topic for each in partitions}))
    found = {}
    for each in partitions:
        topic = described.get(each.target.topic)
        error = described.errors.get(each.target.topic)
        if topic is not None and each.target.partition < len(topic.partitions):
            continue
        if topic is None and error is not None and not isinstance(error, TopicMissingError):
            found[each.source] = Failure.of(error)
        else:
            found[each.source] = Failure(TopicMissingError.reason, f"{each.target} does not exist on the target yet.")
    return found


def _first_offsets(plan: RunPlan, facts: Iterable[PartitionFacts]) -> Iterator[tuple[TopicPartition, int]]:
    """Offset of the first record per partition that is not copied and that the source still has."""
    starts = {each.source: each.start for each in plan.partitions}
    for fact in facts:
        begin = starts.get(fact.source, fact.position)
        first = max(begin if begin is not None else fact.log_start, fact.log_start)
        # Those in the plan, and those that are stalled because of a loss.
        if not fact.stopped and first < fact.log_end and begin is not None:
            yield fact.source, first


def _failures_of_run(run_id: str, ledger: Ledger) -> dict[TopicPartition, Failure]:
    last: dict[TopicPartition, PartitionRunRow] = {
        TopicPartition(row.topic, row.partition): row for row in ledger.partition_runs(run_id)
    }
    return {source: Failure(row.reason or "error", row.detail) for source, row in last.items() if row.state == _FAILED}


def observed_rows(seen: Seen) -> FlowObserved:
    """The rows of an observation. Pure."""
    partitions = tuple(sorted(_partition_rows(seen), key=lambda row: (row.topic, row.partition)))
    lagging = [row for row in partitions if row.records_behind]
    outlooks = [Outlook(row.outlook) for row in partitions if row.records_behind or row.reason]
    flow = FlowObservationRow(
        flow=seen.flow,
        observed_at=seen.now,
        run_id=seen.run_id,
        partitions=len(partitions) - len(seen.plan.undecided),
        lagging=len(lagging),
        stalled=sum(row.reason is not None for row in partitions),
        records_behind=sum(row.records_behind for row in lagging),
        bytes_behind=_total([row.bytes_behind for row in lagging]),
        seconds_behind=_worst([_age(row.behind_since, seen.now) for row in lagging], idle=0.0, worst=max),
        catch_up_seconds=None if seen.forecast is None else seen.forecast.catch_up_seconds,
        headroom_seconds=_worst([row.headroom_seconds for row in lagging], idle=float("inf"), worst=min),
        outlook=max(outlooks, key=lambda outlook: outlook.severity, default=Outlook.OK).value,
        writes_per_second=_writes_per_second(seen, partitions),
        groups=seen.groups.groups if seen.groups else None,
        groups_behind=seen.groups.behind if seen.groups else None,
        duplicates=seen.groups.duplicates if seen.groups else None,
        skipped=seen.groups.skipped if seen.groups else None,
        open_gaps=seen.open_gaps,
    )
    return FlowObserved(flow, partitions)


def _partition_rows(seen: Seen) -> Iterator[PartitionObservationRow]:
    # A partition that has lost records may have two forecasts: the loss is worse.
    forecasts: dict[TopicPartition, PartitionForecast] = {}
    for each in _forecasts(seen):
        forecasts.setdefault(each.source, each)
    problems = {problem.source: problem for problem in seen.plan.problems}
    starts = {each.source: each.start for each in (*seen.plan.partitions, *seen.plan.first_seen)}
    before = {TopicPartition(row.topic, row.partition): row for row in seen.before}
    for fact in seen.facts:
        problem = problems.pop(fact.source, None)
        row = _row(seen, fact, starts.get(fact.source), problem, forecasts.get(fact.source))
        missing = seen.missing_targets.get(fact.source)
        if missing is not None and row.reason is None and row.records_behind:
            reason = missing.reason if _is_overdue(missing, before.get(fact.source), seen.run_started) else None
            row = replace(row, reason=reason, detail=missing.detail)
        yield row
    for gone in seen.plan.undecided:
        failure = Failure.of(unselected_error(seen.plan.flow, gone))
        yield PartitionObservationRow(
            flow=seen.flow,
            topic=gone.source.topic,
            partition=gone.source.partition,
            target_topic=seen.remote_topics.get(gone.source.topic, ""),
            # The last observation of its log: it is not observed now.
            observed_at=gone.observed_at or seen.now,
            log_end=gone.log_end,
            position=gone.position,
            outlook=Outlook.UNKNOWN.value,
            reason=failure.reason,
            detail=failure.detail,
        )
    for problem in problems.values():
        failure = Failure.of(problem.error)
        yield PartitionObservationRow(
            flow=seen.flow,
            topic=problem.source.topic,
            partition=problem.source.partition,
            target_topic=seen.remote_topics.get(problem.source.topic, ""),
            observed_at=seen.now,
            outlook=Outlook.UNKNOWN.value,
            reason=failure.reason,
            detail=failure.detail,
        )


def _forecasts(seen: Seen) -> Sequence[PartitionForecast]:
    return () if seen.forecast is None else seen.forecast.partitions


def _is_overdue(missing: Failure, before: PartitionObservationRow | None, run_started: datetime | None) -> bool:
    """Return False if no run could create the target partition yet: its topic is new on the source."""
    if missing.reason != TopicMissingError.reason:
        return True
    if before is None:
        return False
    return before.reason == missing.reason or (run_started is not None and before.observed_at < run_started)


def _row(
    seen: Seen,
    fact: PartitionFacts,
    start: int | None,
    problem: PartitionProblem | None,
    expected: PartitionForecast | None,
) -> PartitionObservationRow:
    row = PartitionObservationRow(
        flow=seen.flow,
        topic=fact.source.topic,
        partition=fact.source.partition,
        target_topic=fact.target.topic,
        observed_at=seen.now,
        outlook=Outlook.OK.value,
    )
    if fact.stopped:
        return replace(row, detail=STOPPED)
    # A first start after the log's start has nothing to copy before it.
    begins_late = fact.position is None and start is not None and start > fact.log_start
    row = replace(
        row,
        log_start=fact.log_start,
        log_end=fact.high_watermark,
        position=start if begins_late else fact.position,
        catch_up_seconds=0.0,
        headroom_seconds=float("inf"),
    )
    if row.records_behind or problem is not None:
        row = replace(
            row,
            behind_since=_time(_first_timestamp(seen, fact)) if row.records_behind else None,
            bytes_behind=expected.lag_bytes if expected else None,
            catch_up_seconds=expected.catch_up_seconds if expected else None,
            headroom_seconds=_headroom(expected),
            outlook=(expected.outlook if expected else Outlook.UNKNOWN).value,
        )
    failure = Failure.of(problem.error) if problem else seen.failures.get(fact.source) if row.records_behind else None
    if failure is not None:
        return replace(row, reason=failure.reason, detail=failure.detail)
    return row if fact.hidden is None else replace(row, detail=hidden_detail(fact.hidden, row.position or 0))


def _first_timestamp(seen: Seen, fact: PartitionFacts) -> int | None:
    """Timestamp of the first record that is not copied, which an open transaction may hide."""
    found = seen.first_timestamps.get(fact.source)
    return fact.hidden.first_timestamp if found is None and fact.hidden is not None else found


def _headroom(expected: PartitionForecast | None) -> float | None:
    """Seconds until the first record that is not copied may be deleted; None if no limit is known."""
    limits = (expected.deleted_by_time_seconds, expected.deleted_by_size_seconds) if expected else ()
    return min((limit for limit in limits if limit is not None), default=None)


def _writes_per_second(seen: Seen, partitions: Sequence[PartitionObservationRow]) -> float | None:
    """Offsets written to all partitions per second since the last observation; from the forecasts if there is none."""
    ends = {(row.topic, row.partition): (row.observed_at, row.log_end) for row in seen.before}
    written, seconds = 0, 0.0
    for row in partitions:
        at, end = ends.get((row.topic, row.partition), (None, None))
        # A log that is no longer observed is as old as before.
        if at is not None and at < row.observed_at and end is not None and row.log_end is not None:
            # A topic that was created again starts at 0.
            written += max(row.log_end - end, 0)
            seconds = max(seconds, (seen.now - at).total_seconds())
    if seconds > 0:
        return written / seconds
    rates = [each.writes_per_second for each in _forecasts(seen) if each.writes_per_second is not None]
    return sum(rates) if rates else None


def _time(milliseconds: int | None) -> datetime | None:
    """A record's timestamp. Producers may set any value."""
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _age(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else max((now - since).total_seconds(), 0.0)


def _total(sizes: Sequence[int | None]) -> int | None:
    """A lower bound if some are unknown, None if all are."""
    known = [size for size in sizes if size is not None]
    return sum(known) if known or not sizes else None


def _worst(values: Sequence[float | None], *, idle: float, worst: Any) -> float | None:
    known = [value for value in values if value is not None]
    if not values:
        return idle
    value: float | None = worst(known) if known else None
    return value


def _plain(row: FlowObservationRow | PartitionObservationRow) -> dict[str, Any]:
    return {name: _plain_value(getattr(row, name)) for name in row.__slots__}


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return "never" if value == float("inf") else round(value, 3)
    return value
