"""Exported metrics: names, help texts, and their values from the ledger. No I/O.

Every value is as old as the observation or run that it comes from. Ages and durations that grow without a new
observation (the lag in seconds, the time since the last success) count up to the time of the scrape, and the age of the
observation has its own metric: old data never looks fresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import inf
from typing import NamedTuple

from mirror_lib.config.model import FlowConfig
from mirror_lib.config.schedule import longest_interval_seconds
from mirror_lib.errors import LOSS_REASONS, UNKNOWN_REASONS
from mirror_lib.features.metrics.figures import FlowFigures
from mirror_lib.ledger.observed_rows import FlowObservationRow
from mirror_lib.ledger.rows import (
    DELETIONS_WRITTEN,
    DISASTER,
    NOT_COPIED,
    POSITION_SET,
    REPEATED,
    SOURCE_DELETED,
    RoundRow,
)
from mirror_lib.past_runs.outlooks import Outlook

PREFIX = "mirror_"
#: `GapRow.cause` of losses at source or target: those that `mirror gaps` resolves, and a disaster.
LOSS_CAUSES = (*sorted(LOSS_REASONS), DISASTER)
_RECREATED = "source-recreated"
#: Causes of an operator's own decisions, and of gaps with unknown content.
_NOT_REJECTED = (POSITION_SET, DELETIONS_WRITTEN, NOT_COPIED, REPEATED, SOURCE_DELETED, *UNKNOWN_REASONS)
#: Number of intervals without a new observation after which a flow counts as late.
LATE_INTERVALS = 3
#: Assumed interval of flows without a schedule: one day.
_BY_HAND_SECONDS = 86_400.0
#: Assumed interval of flows whose runs follow each other; they are observed more often.
_CONTINUOUS_SECONDS = 300.0
_LOSING = frozenset({Outlook.WILL_BE_LOST.value, Outlook.ALREADY_LOST.value})


class Kind(StrEnum):
    """The used types of Prometheus metrics."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Metric:
    """One exported metric."""

    #: Without the prefix.
    base: str
    kind: Kind
    help: str
    #: In addition to `flow`.
    labels: tuple[str, ...] = ()
    #: The attribute of MirrorMaker 2's MBeans with the same or a similar meaning.
    mm2: str = ""

    @property
    def name(self) -> str:
        """The exported name."""
        return PREFIX + self.base

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Label names in the order of `Sample.labels`."""
        return ("flow", *self.labels)


class Sample(NamedTuple):
    """One value of a metric, with the values of its labels in the order of `Metric.all_labels`."""

    labels: tuple[str, ...]
    value: float


def _gauge(base: str, help_text: str, *labels: str, mm2: str = "") -> Metric:
    return Metric(base, Kind.GAUGE, help_text, labels, mm2)


def _counter(base: str, help_text: str, *labels: str, mm2: str = "") -> Metric:
    return Metric(base, Kind.COUNTER, help_text, labels, mm2)


INFO = _gauge("flow_info", "1 for every enabled flow of the configuration.", "source", "target", "schedule")
HEALTHY = _gauge(
    "flow_healthy",
    "1 if the latest observation is fresh, no partition is stalled or about to lose records, and the lag is zero, "
    "small, or smaller than at the observation before; else 0.",
)
OBSERVATION_AGE = _gauge("flow_observation_age_seconds", "Seconds since the last observation of the flow.")
PARTITIONS = _gauge("flow_partitions", "Partitions that the flow selects.", mm2="number of MBeans")
LAGGING = _gauge("flow_partitions_lagging", "Partitions with lag.")
RECORDS_BEHIND = _gauge("flow_records_behind", "Lag in source offsets.", mm2="none; KIP-971's record lag")
BYTES_BEHIND = _gauge("flow_bytes_behind", "Estimated lag in bytes; a lower bound, absent if unknown.")
SECONDS_BEHIND = _gauge(
    "flow_seconds_behind",
    "Age of the oldest record that is not copied, counted up to now; 0 without lag.",
    mm2="record-age-ms, replication-latency-ms",
)
SECONDS_BEHIND_BEFORE = _gauge(
    "flow_seconds_behind_before", "Age of the oldest record that was not copied, at the observation before the latest."
)
WRITES = _gauge("flow_writes_per_second", "Source offsets written per second, between the last two observations.")
CATCHUP = _gauge(
    "flow_catchup_seconds_estimate", "Seconds until the flow has caught up, at the rate of recent runs; +Inf is never."
)
HEADROOM = _gauge(
    "flow_retention_headroom_seconds",
    "Seconds until retention may delete the first record that is not copied, counted down to now; +Inf is never.",
)
STALLED = _gauge("partition_stalled", "Stalled partitions, by reason.", "reason", mm2="failed tasks")
STALLED_RECORDS = _gauge(
    "partition_stalled_records",
    "Lag of stalled partitions in source offsets, by reason; for `source-transaction-open`, the offsets that the "
    "transaction hides.",
    "reason",
)
STALLED_ANY = _gauge("flow_partitions_stalled", "Stalled partitions, for any reason.")
STALLED_BEFORE = _gauge("flow_partitions_stalled_before", "Stalled partitions, at the observation before the latest.")
PARTITION_BEHIND = _gauge(
    "partition_records_behind",
    "Lag in source offsets of the partitions with the largest lag; only on request.",
    "topic",
    "partition",
)

INTERVAL = _gauge(
    "flow_schedule_interval_seconds", "Longest time between two scheduled runs; absent without a schedule."
)
LATE_AFTER = _gauge("flow_late_after_seconds", f"{LATE_INTERVALS} schedule intervals: an older observation is late.")
SUCCESS_AGE = _gauge("flow_last_success_age_seconds", "Seconds since the last run that copied all partitions.")
RUN_DURATION = _gauge("flow_run_duration_seconds", "Duration of the latest finished run, in seconds.")
RUNNING = _gauge("flow_run_active_seconds", "Seconds since the active run started; 0 if there is none.")
RUNS = _counter("runs_total", "Started runs.")
RUNS_FAILED = _counter("runs_failed_total", "Runs that did not copy all partitions.", mm2="task failures")
RECORDS = _counter("records_copied_total", "Records copied.", mm2="record-count, record-rate")
BYTES = _counter("bytes_copied_total", "Bytes of record batches written to the target.", mm2="byte-count, byte-rate")
RECORD_AGE = _gauge(
    "record_age_seconds",
    "Age of the oldest record in the latest run with records, when its copy started.",
    mm2="record-age-ms-max",
)
LATENCY_MAX = _gauge(
    "replication_latency_seconds_max",
    "Time from the oldest record to the end of the round that copied it, in the latest run with records.",
    mm2="replication-latency-ms-max",
)
LATENCY_MIN = _gauge(
    "replication_latency_seconds_min",
    "Time from the newest record to the end of the round that copied it, in the latest run with records.",
    mm2="replication-latency-ms-min",
)
ROUND_AGE_MAX = _gauge(
    "round_record_age_seconds_max",
    "Age of the oldest record in the latest round with records, when it was committed.",
    mm2="replication-latency-ms-max",
)
ROUND_AGE_MIN = _gauge(
    "round_record_age_seconds_min",
    "Age of the newest record in the latest round with records, when it was committed.",
    mm2="replication-latency-ms",
)
ROUND_LAG = _gauge("round_records_behind", "Lag in source offsets when that round was planned.")
ROUND_COST = _gauge(
    "round_seconds_by_expectation",
    "Actual duration of that round divided by the expected duration; absent without an expectation.",
)

GAP_RECORDS = _counter("gap_records_total", "Source records that were lost before they were copied.", "cause")
GAPS = _counter("gaps_total", "Ranges of source records that were lost before they were copied.", "cause")
GAPS_OPEN = _gauge("gaps_open", "Gaps without a resolution.")
RECREATED = _counter("topic_recreated_total", "Partitions whose source topic was deleted and recreated.")
UNCOMMITTED = _gauge(
    "uncommitted_records",
    "Records on the target whose transactions were aborted at the source, or open when they were copied.",
    "outcome",
)
REJECTED = _counter(
    "rejected_records_total",
    "Records skipped because the target or the policy rejects them.",
    "reason",
    mm2="total-records-skipped",
)
MISMATCHES = _counter("verify_mismatch_total", "Verified partitions that differed from the source.")
VERIFIED = _gauge("verified_partitions", "Partitions that were equal in their latest comparison.")
VERIFIED_AGE = _gauge(
    "verified_up_to_age_seconds", "Seconds since the oldest of the latest comparisons that found a partition equal."
)
VERIFY_LAG = _gauge(
    "verify_lag_seconds",
    "Longest time that copied records of a partition have waited for their comparison, in seconds.",
)
VERIFY_LAG_RECORDS = _gauge("verify_lag_records", "Copied offsets that are not compared yet, of compared partitions.")

GROUPS = _gauge("groups", "Consumer groups with committed offsets in the topics of the flow.")
GROUPS_BEHIND = _gauge(
    "groups_behind", "Groups that would not continue exactly at their source offsets on failover now."
)
REREAD = _gauge(
    "group_reread_records", "Duplicates on failover now: records that groups would read twice, summed over all groups."
)
SKIPPED = _gauge(
    "group_skipped_records",
    "Skipped on failover now: records that groups would never read, summed over all groups; an upper bound.",
)
UNSYNCED = _gauge(
    "group_unsynced", "Groups and partitions that are not in sync, by reason.", "reason", mm2="none; checkpoints exist"
)
CONFIG_DRIFT = _gauge("config_drift", "Topics whose configs differ or were rejected, at the latest sync.")
ACL_DRIFT = _gauge("acl_drift", "ACLs that are missing on the target or were rejected, at the latest sync.")
STEP_AGE = _gauge(
    "step_age_seconds", "Seconds since a sync step ran or was skipped.", "step", mm2="checkpoint-latency-ms"
)
STEP_FAILED = _gauge("step_failed", "Changes that a cluster rejected in the latest run of the sync step.", "step")
HEARTBEAT_AGE = _gauge("heartbeat_age_seconds", "Age of the newest heartbeat that arrived, counted up to now.", "pair")
HEARTBEAT_OK = _gauge(
    "heartbeat_ok", "1 if the heartbeats of the pair were fresh at the last check.", "pair", "verdict"
)
CUTOVER = _gauge("cutover_state", "1 for the state and step of each active cutover, and of the latest.", "cutover",
                 "state", "step")  # fmt: skip
CUTOVER_CARRIED = _gauge(
    "cutover_carried", "1 while a process runs a cutover or rolls it back; for active cutovers.", "cutover"
)

METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))

#: `StepOutcomeRow.step` of the steps whose differences have a metric of their own.
_DRIFT_STEPS = {"sync_topic_configs": CONFIG_DRIFT, "sync_topic_acls": ACL_DRIFT}
#: `sync.heartbeats.HeartbeatState`.
_FRESH = "fresh"
#: `runbook.model.CutoverState` of finished cutovers.
_ENDED_CUTOVERS = frozenset({"finished", "rolled-back"})


def samples(
    figures: Iterable[FlowFigures], flows: Sequence[FlowConfig], now: datetime
) -> Iterator[tuple[Metric, list[Sample]]]:
    """Every metric with its values, in the order of `METRICS`; the list is empty for metrics without values.

    Args:
        figures: from the ledger; flows without figures have only `flow_info`, and are not healthy.
        flows: the configured flows.
        now: the time of the scrape.
    """
    found: dict[Metric, list[Sample]] = {metric: [] for metric in METRICS}
    known = {each.flow: each for each in figures}
    for flow in flows:
        name = str(flow.flow)
        for metric, value, *labels in _of_flow(flow, known.get(name, FlowFigures(name)), now):
            found[metric].append(Sample((name, *labels), value))
    yield from found.items()


def late_after_seconds(flow: FlowConfig) -> float:
    """Maximum age of an observation before a flow counts as late: three intervals of its schedule.

    Flows without a schedule are assumed to run once a day, and those whose runs follow each other every five minutes.
    The time that a run may take for more rounds is added.
    """
    interval = longest_interval_seconds(flow.periodic_schedule)
    if interval is None:
        continuous = (flow.schedule or "").strip() == "@continuous"
        interval = _CONTINUOUS_SECONDS if continuous else _BY_HAND_SECONDS
    return LATE_INTERVALS * interval + flow.copy_settings.run_max_seconds


def is_healthy(figures: FlowFigures, late_after: float, now: datetime) -> bool:
    """Return true if a flow makes progress towards the source's log end, regardless of the state of processes.

    All of these must hold: it was observed within `late_after`; no partition is stalled and no gap is open; the
    forecast says that retention deletes nothing before it is copied; and there is no lag, or the oldest record that is
    not copied is younger than `late_after`, or the lag is smaller than at the previous observation.
    """
    seen, before = figures.observed, figures.observed_before
    if seen is None or _seconds(seen.observed_at, now) > late_after:
        return False
    if seen.stalled or seen.open_gaps or seen.outlook in _LOSING:
        return False
    if not seen.records_behind:
        return True
    if seen.seconds_behind is not None and seen.seconds_behind + _seconds(seen.observed_at, now) <= late_after:
        return True
    return before is not None and seen.records_behind < before.records_behind


_Value = (
    tuple[Metric, float]
    | tuple[Metric, float, str]
    | tuple[Metric, float, str, str]
    | tuple[Metric, float, str, str, str]
)


def _of_flow(flow: FlowConfig, figures: FlowFigures, now: datetime) -> Iterator[_Value]:
    late_after = late_after_seconds(flow)
    interval = longest_interval_seconds(flow.periodic_schedule)
    yield INFO, 1.0, flow.flow.source, flow.flow.target, flow.schedule or ""
    yield HEALTHY, float(is_healthy(figures, late_after, now))
    yield LATE_AFTER, late_after
    if interval is not None:
        yield INTERVAL, interval
    if figures.observed is not None:
        yield from _observation_values(figures.observed, figures.observed_before, now)
    for reason, count in figures.stalled.items():
        yield STALLED, float(count), reason
    for reason, offsets in figures.stalled_behind.items():
        yield STALLED_RECORDS, float(offsets), reason
    for row in figures.worst:
        yield PARTITION_BEHIND, float(row.records_behind), row.topic, str(row.partition)
    yield from _runs(figures, now)
    yield from _losses(figures)
    yield from _verification_values(figures, now)
    yield from _sync_values(figures, now)


def _observation_values(seen: FlowObservationRow, before: FlowObservationRow | None, now: datetime) -> Iterator[_Value]:
    age = _seconds(seen.observed_at, now)
    yield OBSERVATION_AGE, age
    yield PARTITIONS, float(seen.partitions)
    yield LAGGING, float(seen.lagging)
    yield STALLED_ANY, float(seen.stalled)
    yield RECORDS_BEHIND, float(seen.records_behind)
    if seen.bytes_behind is not None:
        yield BYTES_BEHIND, float(seen.bytes_behind)
    if seen.seconds_behind is not None:
        # There is no newer observation: records that were not copied then count as not copied now.
        yield SECONDS_BEHIND, seen.seconds_behind + age if seen.lagging else 0.0
    if seen.writes_per_second is not None:
        yield WRITES, seen.writes_per_second
    if seen.catch_up_seconds is not None:
        yield CATCHUP, seen.catch_up_seconds
    if seen.headroom_seconds is not None:
        yield HEADROOM, inf if seen.headroom_seconds == inf else max(seen.headroom_seconds - age, 0.0)
    if before is not None:
        yield STALLED_BEFORE, float(before.stalled)
        if before.seconds_behind is not None:
            yield SECONDS_BEHIND_BEFORE, before.seconds_behind


def _runs(figures: FlowFigures, now: datetime) -> Iterator[_Value]:
    totals = figures.runs
    yield RUNS, float(totals.runs)
    yield RUNS_FAILED, float(totals.failed)
    yield RECORDS, float(totals.records)
    yield BYTES, float(totals.bytes)
    if totals.last_success is not None:
        yield SUCCESS_AGE, _seconds(totals.last_success, now)
    if figures.last_run is not None and figures.last_run.finished_at is not None:
        yield RUN_DURATION, _seconds(figures.last_run.started_at, figures.last_run.finished_at)
    newest = figures.newest_run
    if newest is not None:
        yield RUNNING, _seconds(newest.started_at, now) if figures.is_running else 0.0
    if figures.times:
        ends = [(each, each.stored_at.timestamp()) for each in figures.times]
        yield LATENCY_MAX, max(0.0, *(end - each.first_timestamp / 1000 for each, end in ends))
        yield LATENCY_MIN, max(0.0, min(end - each.last_timestamp / 1000 for each, end in ends))
        yield RECORD_AGE, max(0.0, *(end - each.seconds - each.first_timestamp / 1000 for each, end in ends))
    if figures.last_round is not None:
        yield from _round_values(figures.last_round)


def _round_values(row: RoundRow) -> Iterator[tuple[Metric, float]]:
    yield ROUND_LAG, row.lag_records
    for metric, milliseconds in ((ROUND_AGE_MAX, row.oldest_age_ms), (ROUND_AGE_MIN, row.newest_age_ms)):
        if milliseconds is not None:
            yield metric, milliseconds / 1000
    if row.expected_seconds:
        yield ROUND_COST, row.seconds / row.expected_seconds


def _losses(figures: FlowFigures) -> Iterator[_Value]:
    yield GAPS_OPEN, float(sum(each.open for each in figures.gaps.values()))
    # A counter that starts with its first loss would hide it from `increase()`.
    for cause in LOSS_CAUSES:
        found = figures.gaps.get(cause)
        yield GAP_RECORDS, float(found.records if found else 0), cause
        yield GAPS, float(found.gaps if found else 0), cause
    recreated = figures.gaps.get(_RECREATED)
    yield RECREATED, float(recreated.gaps if recreated else 0)
    yield UNCOMMITTED, float(figures.uncommitted.aborted), "aborted"
    yield UNCOMMITTED, float(figures.uncommitted.open), "open"
    for cause, found in sorted(figures.gaps.items()):
        if cause not in (*LOSS_CAUSES, *_NOT_REJECTED):
            yield REJECTED, float(found.records), cause


def _verification_values(figures: FlowFigures, now: datetime) -> Iterator[_Value]:
    totals = figures.verified
    yield MISMATCHES, float(totals.mismatches if totals else 0)
    if totals is None:
        return
    yield VERIFIED, float(totals.equal)
    yield VERIFY_LAG_RECORDS, float(totals.unverified)
    yield VERIFY_LAG, 0.0 if totals.waiting_since is None else _seconds(totals.waiting_since, now)
    if totals.oldest_equal is not None:
        yield VERIFIED_AGE, _seconds(totals.oldest_equal, now)


def _sync_values(figures: FlowFigures, now: datetime) -> Iterator[_Value]:
    """Values of the sync steps."""
    if figures.groups is not None:
        yield GROUPS, float(figures.groups.groups)
        yield GROUPS_BEHIND, float(figures.groups.behind)
        if figures.groups.duplicates is not None:
            yield REREAD, float(figures.groups.duplicates)
        if figures.groups.skipped is not None:
            yield SKIPPED, float(figures.groups.skipped)
    for reason, count in sorted(figures.unsynced.items()):
        yield UNSYNCED, float(count), reason
    for step in figures.steps:
        yield STEP_AGE, _seconds(step.finished_at, now), step.step
        yield STEP_FAILED, float(step.failed), step.step
        if step.step in _DRIFT_STEPS:
            yield _DRIFT_STEPS[step.step], float(step.differences)
    for beat in figures.heartbeats:
        yield HEARTBEAT_OK, float(beat.verdict == _FRESH), beat.pair, beat.verdict
        if beat.emitted_at is not None:
            yield HEARTBEAT_AGE, _seconds(beat.emitted_at, now), beat.pair
    for place, cutover in enumerate(figures.cutovers):
        if place == 0 or cutover.state not in _ENDED_CUTOVERS:
            yield CUTOVER, 1.0, cutover.name, cutover.state, cutover.step
        if cutover.state not in _ENDED_CUTOVERS:
            yield CUTOVER_CARRIED, float(cutover.name in figures.carried), cutover.name


def _seconds(since: datetime, until: datetime) -> float:
    return max((until - since).total_seconds(), 0.0)
