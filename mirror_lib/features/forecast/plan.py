"""The forecast of a flow: read the input of `verdicts.forecast`, only for partitions that have lag.

All requests are batched over these partitions: log starts, topic configs, and the offsets at six times. Nothing is
changed, and missing input leaves a verdict open instead of failing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mirror_lib.cluster.admin.client import ClusterAdmin, OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.schedule import parse_schedule
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError, RetentionGapError, SourceTransactionOpenError
from mirror_lib.features.forecast.rates import Demand, SeenEnd, run_interval, shared_rates, write_rate
from mirror_lib.features.forecast.verdicts import (
    AgeMark,
    Backlog,
    Pace,
    PartitionForecast,
    behind_transaction,
    forecast,
    with_deletions,
    worst_first,
)
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.past_runs.retention import Retention
from mirror_lib.past_runs.speeds import CopySpeed, copy_speed
from mirror_lib.planning.lost_deletions import last_caught_up
from mirror_lib.planning.model import PartitionPlan, PartitionProblem, RunPlan
from mirror_lib.sync.admins import source_admin
from mirror_lib.topology.names import TopicPartition

#: Times at which the write rate is measured, in seconds ago.
_WRITE_WINDOWS = (3_600, 600)
#: Ages for which offsets are requested, as fractions of the topic's retention.
_AGE_PARTS = (1.0, 0.75, 0.5, 0.25)
#: Number of runs from which the speed, and the interval between starts, are measured.
_SPEED_RUNS, _INTERVAL_RUNS = 10, 20
#: Minimum age of runs in the ledger whose planned ends are compared with the current ends.
_RECORDED_AFTER = timedelta(minutes=5)
_RECORDED_RUNS = 3
_TOPICS_NAMED = 5

_Offsets = Mapping[TopicPartition, OffsetFact]


@dataclass(frozen=True, slots=True)
class FlowForecast:
    """The forecast for a flow's partitions that have lag or have lost records."""

    #: Worst first.
    partitions: tuple[PartitionForecast, ...]
    speed: CopySpeed | None
    #: Seconds within which the next run begins; None if unknown.
    interval_seconds: float | None

    @property
    def worries(self) -> tuple[PartitionForecast, ...]:
        """Partitions with another verdict than ok."""
        return tuple(each for each in self.partitions if each.outlook is not Outlook.OK)

    @property
    def catch_up_seconds(self) -> float | None:
        """Seconds until the last partition has caught up; infinite if one never will, None if one is unknown."""
        known = [each.catch_up_seconds for each in self.partitions if each.catch_up_seconds is not None]
        if float("inf") in known:
            return float("inf")
        return max(known, default=0.0) if len(known) == len(self.partitions) else None

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain data for `--json` output: one entry per partition."""
        return [each.to_dict() for each in self.partitions]

    def warnings(self) -> list[str]:
        """A sentence for every verdict other than ok, the worst first, with some of its partitions."""
        by_outlook: dict[Outlook, list[PartitionForecast]] = {}
        for each in self.worries:
            by_outlook.setdefault(each.outlook, []).append(each)
        return [_warning_text(outlook, found) for outlook, found in by_outlook.items()]


_SAID = {
    Outlook.ALREADY_LOST: "lost records to the source's retention before they were copied",
    Outlook.WILL_BE_LOST: "will lose records to the source's retention before they are copied",
    Outlook.TIGHT: "may lose records, or deletions of compacted topics, before they are copied",
    Outlook.UNKNOWN: "cannot be forecast",
}
_TODO = {
    Outlook.ALREADY_LOST: " `mirror gaps list` shows them; decide with `mirror gaps accept|recopy|stop`.",
    Outlook.WILL_BE_LOST: " Raise retention.ms or retention.bytes of the source topics until they are copied, or copy "
    "faster (tasks.max) or more often (mirror.schedule).",
    Outlook.TIGHT: " Run the flow soon, or raise retention.ms (of compacted topics delete.retention.ms) on the source "
    "until it has caught up.",
    Outlook.UNKNOWN: "",
}


def _warning_text(outlook: Outlook, found: Sequence[PartitionForecast]) -> str:
    named = ", ".join(str(each.source) for each in found[:_TOPICS_NAMED])
    more = f" and {len(found) - _TOPICS_NAMED:,} more" if len(found) > _TOPICS_NAMED else ""
    count = f"{len(found):,} partition{'s' if len(found) > 1 else ''}"
    return f"{count} {_SAID[outlook]}: {named}{more}. Of {found[0].source}: {found[0].reason}.{_TODO[outlook]}"


def forecast_flow(
    flow: FlowConfig, options: RunOptions, ledger: Ledger | None = None, *, run_begins: bool = False
) -> FlowForecast:
    """Plan a flow and forecast the plan. Read both clusters, change nothing."""
    return forecast_plan(flow, plan_flow(flow, options, ledger), ledger, run_begins=run_begins)


def forecast_plan(
    flow: FlowConfig,
    plan: RunPlan,
    ledger: Ledger | None = None,
    *,
    run_begins: bool = False,
    connected: ClusterAdmin | None = None,
) -> FlowForecast:
    """Forecast a plan. Query the source and the ledger, change nothing.

    Args:
        run_begins: a run of this plan begins now; otherwise one begins within the usual interval.
        connected: an open client of the source.

    Raises:
        MirrorError: the source cannot be reached, or the ledger cannot be used.
    """
    partitions = _with_hidden(plan)
    if not partitions:
        return FlowForecast(tuple(worst_first(_losses(plan.problems))), speed=None, interval_seconds=None)
    history = _read_history(flow, ledger)
    with source_admin(flow) if connected is None else nullcontext(connected) as admin:
        facts = _read_facts(admin, partitions, history.now)
    backlogs = [_backlog(partition, facts, history) for partition in partitions]
    wait = 0.0 if run_begins else history.interval_seconds or 0.0
    rates = _rates(backlogs, history.speed)
    at_least = history.speed is None or history.speed.at_least
    ages = _deletion_ages(flow, plan, facts, ledger, history.now)
    forecasts = [
        with_deletions(
            _with_refusal(
                facts,
                forecast(
                    backlog,
                    facts.retentions.get(backlog.source.topic),
                    Pace(wait, rates.get(backlog.source, 0.0), at_least=at_least),
                ),
            ),
            facts.retentions.get(backlog.source.topic),
            ages.get(backlog.source),
            wait,
        )
        for backlog in backlogs
    ]
    stuck = {each.source for each in plan.problems if isinstance(each.error, SourceTransactionOpenError)}
    hidden = {each.source: each.offsets for each in plan.hidden if each.source in stuck}
    forecasts = [behind_transaction(each, hidden[each.source]) if each.source in hidden else each for each in forecasts]
    return FlowForecast(
        partitions=tuple(worst_first([*_losses(plan.problems), *forecasts])),
        speed=history.speed,
        interval_seconds=history.interval_seconds,
    )


def _with_hidden(plan: RunPlan) -> list[PartitionPlan]:
    """All records that are not copied: retention also deletes those hidden by open transactions."""
    whole = {each.source: each.plan for each in plan.hidden}
    return [whole.pop(each.source, each) for each in plan.partitions] + list(whole.values())


def _deletion_ages(
    flow: FlowConfig, plan: RunPlan, facts: _Facts, ledger: Ledger | None, now: datetime
) -> Mapping[TopicPartition, float]:
    """Seconds since the copy was at the end of compacted partitions, if known."""
    compacted = {topic for topic, each in facts.retentions.items() if each.tombstone_seconds is not None}
    # A first copy has no records on the target yet that could have been deleted.
    times = {
        each.source: (each.start, each.caught_up_at)
        for each in plan.partitions
        if each.source.topic in compacted and each.caught_up_at != each.asked_at
    }
    if not times:
        return {}
    at = {source: stored for source, (_, stored) in times.items()}
    if ledger is not None:
        at = last_caught_up(ledger, flow.flow, times)
    return {source: now.timestamp() - stored / 1000 for source, stored in at.items() if stored is not None}


@dataclass(frozen=True, slots=True)
class _History:
    """The flow's history in the ledger."""

    now: datetime
    speed: CopySpeed | None = None
    interval_seconds: float | None = None
    #: Newest first.
    ends: tuple[tuple[float, Mapping[TopicPartition, int]], ...] = ()

    def last_end(self, source: TopicPartition) -> SeenEnd | None:
        """The end of a partition when it was last planned, at least some minutes ago."""
        for seconds_ago, ends in self.ends:
            if source in ends:
                return SeenEnd(seconds_ago, ends[source])
        return None


def _read_history(flow: FlowConfig, ledger: Ledger | None) -> _History:
    now = datetime.now(UTC)
    if ledger is None:
        return _History(now, interval_seconds=_scheduled_interval(flow))
    name = str(flow.flow)
    runs = ledger.runs(name, _INTERVAL_RUNS)
    ends = []
    for run in [run for run in runs if now - run.started_at >= _RECORDED_AFTER and run.rounds][:_RECORDED_RUNS]:
        # The planning times of later rounds are not recorded.
        first = [row for row in ledger.partition_runs(run.id) if row.round == 1]
        planned = {TopicPartition(row.topic, row.partition): row.end_offset for row in first}
        ends.append(((now - run.started_at).total_seconds(), planned))
    return _History(
        now,
        copy_speed(ledger.newest_rounds(name, _SPEED_RUNS)),
        _scheduled_interval(flow) or run_interval([run.started_at.timestamp() for run in runs]),
        tuple(ends),
    )


def _scheduled_interval(flow: FlowConfig) -> float | None:
    """The interval in the configuration; for cron expressions and presets the ledger shows it."""
    schedule = parse_schedule(flow.periodic_schedule)
    return schedule.total_seconds() if isinstance(schedule, timedelta) else None


@dataclass(frozen=True, slots=True)
class _Facts:
    """The source's responses for partitions that have lag."""

    starts: _Offsets
    #: By topic; unreadable ones are missing.
    retentions: Mapping[str, Retention]
    #: By topic: why its retention cannot be read.
    refusals: Mapping[str, MirrorError]
    #: By seconds ago.
    windows: Mapping[int, _Offsets]
    #: By fraction of the topic's retention.
    ages: Mapping[float, _Offsets]


def _read_facts(admin: ClusterAdmin, partitions: Iterable[PartitionPlan], now: datetime) -> _Facts:
    sources = sorted(partition.source for partition in partitions)
    milliseconds = int(now.timestamp() * 1000)
    configs = admin.topic_configs({source.topic for source in sources})
    retentions = {topic: Retention.of(each) for topic, each in configs.items()}
    return _Facts(
        starts=admin.list_offsets(sources, OffsetSpec.EARLIEST),
        retentions=retentions,
        refusals=configs.errors,
        windows={
            seconds: admin.offsets_at(dict.fromkeys(sources, milliseconds - seconds * 1000))
            for seconds in _WRITE_WINDOWS
        },
        ages={part: _offsets_of_age(admin, sources, retentions, part, milliseconds) for part in _AGE_PARTS},
    )


def _with_refusal(facts: _Facts, expected: PartitionForecast) -> PartitionForecast:
    """A forecast that failed because the topic's configs are unreadable, with the cluster's response."""
    refusal = facts.refusals.get(expected.source.topic)
    if refusal is None or expected.outlook is not Outlook.UNKNOWN:
        return expected
    return replace(expected, reason=f"{expected.reason}: {refusal.what} {refusal.action}".rstrip(". "))


def _offsets_of_age(
    admin: ClusterAdmin,
    sources: Iterable[TopicPartition],
    retentions: Mapping[str, Retention],
    part: float,
    now: int,
) -> _Offsets:
    bounds = {topic: each.seconds for topic, each in retentions.items() if each.seconds is not None}
    times = {
        source: max(now - round(bounds[source.topic] * part * 1000), 0) for source in sources if source.topic in bounds
    }
    return admin.offsets_at(times) if times else {}


def _backlog(partition: PartitionPlan, facts: _Facts, history: _History) -> Backlog:
    source = partition.source
    retention = facts.retentions.get(source.topic, Retention())
    started = facts.starts.get(source)
    log_start = partition.start if started is None or started.error else started.offset
    lag = partition.end - partition.start
    # For a log in tiered storage, brokers report the size of its local part.
    sized = partition.estimated_bytes and lag and not retention.remote
    return Backlog(
        source=source,
        position=partition.start,
        log_start=log_start,
        log_end=partition.end,
        log_bytes=round(partition.estimated_bytes / lag * (partition.end - log_start)) if sized else None,
        writes_per_second=write_rate(
            log_start,
            partition.end,
            by_time=[
                SeenEnd(seconds, offset)
                for seconds, answers in facts.windows.items()
                if (offset := _offset(answers.get(source), partition.end)) is not None
            ],
            recorded=history.last_end(source),
            append_time=retention.append_time,
        ),
        marks=tuple(
            AgeMark(part * (retention.seconds or 0.0), offset)
            for part, answers in facts.ages.items()
            if (offset := _offset(answers.get(source), partition.end)) is not None
        ),
    )


def _offset(fact: OffsetFact | None, log_end: int) -> int | None:
    """The offset of a time: the log end offset if no record is that recent, None without a response."""
    if fact is None or fact.error is not None:
        return None
    return log_end if fact.offset < 0 else min(fact.offset, log_end)


def _rates(backlogs: Sequence[Backlog], speed: CopySpeed | None) -> dict[TopicPartition, float]:
    """Offsets per second for each partition, calculated in bytes if all sizes are known, since record sizes differ."""
    if speed is None or not backlogs:
        return {}
    sizes = {each.source: each.bytes_per_offset for each in backlogs}
    if any(size is None for size in sizes.values()):
        sizes = dict.fromkeys(sizes, 1.0)
        whole, single = speed.records_per_second, speed.partition_records_per_second
    else:
        whole, single = speed.bytes_per_second, speed.partition_bytes_per_second
    size_of = {source: size or 1.0 for source, size in sizes.items()}
    demands = {
        each.source: Demand(each.lag * size_of[each.source], (each.writes_per_second or 0.0) * size_of[each.source])
        for each in backlogs
    }
    return {source: rate / size_of[source] for source, rate in shared_rates(demands, whole, single).items()}


def _losses(problems: Iterable[PartitionProblem]) -> list[PartitionForecast]:
    """Partitions that are stalled because retention deleted records before the copy."""
    return [
        PartitionForecast(
            source=problem.source,
            lag=0,
            lag_bytes=None,
            writes_per_second=None,
            copies_per_second=None,
            catch_up_seconds=float("inf"),
            deleted_by_time_seconds=0.0,
            deleted_by_size_seconds=None,
            outlook=Outlook.ALREADY_LOST,
            reason=_loss_reason(problem),
        )
        for problem in problems
        if isinstance(problem.error, RetentionGapError)
    ]


def _loss_reason(problem: PartitionProblem) -> str:
    if problem.loss is None:
        return problem.error.what
    count = problem.loss.next_offset - problem.loss.first_offset
    return f"{count:,} offsets were deleted before they were copied; operator action needed"
