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

from mirror_lib.config import FlowConfig, longest_interval_seconds
from mirror_lib.errors import LOSS_REASONS
from mirror_lib.ledger import DELETIONS_WRITTEN, DISASTER, POSITION_SET, FlowFigures, FlowObservationRow, RoundRow
from mirror_lib.observe.forecasts import Outlook

PREFIX = "mirror_"
#: `GapRow.cause` of losses at source or target: those that `mirror gaps` resolves, and a disaster.
LOSS_CAUSES = (*sorted(LOSS_REASONS), DISASTER)
_RECREATED = "source-recreated"
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
    "1 when the newest observation is fresh, nothing stands still or is about to be lost, and the flow is at the "
    "source's end, near it, or nearer than the time before; else 0.",
)
OBSERVATION_AGE = _gauge("flow_observation_age_seconds", "Seconds since the flow was looked at last.")
PARTITIONS = _gauge("flow_partitions", "Partitions that the flow selects.", mm2="number of MBeans")
LAGGING = _gauge("flow_partitions_lagging", "Partitions with something to copy.")
RECORDS_BEHIND = _gauge("flow_records_behind", "Source offsets that are not copied.", mm2="none; KIP-971's record lag")
BYTES_BEHIND = _gauge("flow_bytes_behind", "Estimated bytes that are not copied; a lower bound, absent if not known.")
SECONDS_BEHIND = _gauge(
    "flow_seconds_behind",
    "Age of the oldest record that is not copied, counted up to now; 0 when there was none.",
    mm2="record-age-ms, replication-latency-ms",
)
SECONDS_BEHIND_BEFORE = _gauge(
    "flow_seconds_behind_before", "The same at the observation before the newest, as it was then."
)
WRITES = _gauge("flow_writes_per_second", "Source offsets written per second, between the last two observations.")
CATCHUP = _gauge("flow_catchup_seconds_estimate", "Seconds until all is copied at the speed of late; +Inf is never.")
HEADROOM = _gauge(
    "flow_retention_headroom_seconds",
    "Seconds until retention may delete the first record that is not copied, counted down to now; +Inf is never.",
)
STALLED = _gauge("partition_stalled", "Partitions that stand still, by reason.", "reason", mm2="failed tasks")
STALLED_RECORDS = _gauge(
    "partition_stalled_records",
    "Source offsets that are not copied, of partitions that stand still, by reason; of `source-transaction-open` those "
    "that the transaction hides.",
    "reason",
)
STALLED_ANY = _gauge("flow_partitions_stalled", "Partitions that stand still, for any reason.")
STALLED_BEFORE = _gauge("flow_partitions_stalled_before", "The same at the observation before the newest.")
PARTITION_BEHIND = _gauge(
    "partition_records_behind",
    "Source offsets that are not copied, of the partitions furthest behind; only when asked for.",
    "topic",
    "partition",
)

INTERVAL = _gauge(
    "flow_schedule_interval_seconds", "The longest time between two runs that the schedule asks for; absent without."
)
LATE_AFTER = _gauge("flow_late_after_seconds", f"{LATE_INTERVALS} intervals: what is older than this is late.")
SUCCESS_AGE = _gauge("flow_last_success_age_seconds", "Seconds since a run ended with everything copied.")
RUN_DURATION = _gauge("flow_run_duration_seconds", "Seconds that the newest ended run took.")
RUNNING = _gauge("flow_run_active_seconds", "Seconds since the run under way began; 0 when there is none.")
RUNS = _counter("runs_total", "Runs that began.")
RUNS_FAILED = _counter("runs_failed_total", "Runs that ended with something left uncopied.", mm2="task failures")
RECORDS = _counter("records_copied_total", "Records copied.", mm2="record-count, record-rate")
BYTES = _counter("bytes_copied_total", "Bytes of record batches written to the target.", mm2="byte-count, byte-rate")
RECORD_AGE = _gauge(
    "record_age_seconds",
    "Age of the oldest record of the newest run that copied something, when its copy began.",
    mm2="record-age-ms-max",
)
LATENCY_MAX = _gauge(
    "replication_latency_seconds_max",
    "From the oldest record's time to the end of the round that copied it, in the newest run that copied something.",
    mm2="replication-latency-ms-max",
)
LATENCY_MIN = _gauge(
    "replication_latency_seconds_min",
    "The same of its youngest record.",
    mm2="replication-latency-ms-min",
)
ROUND_AGE_MAX = _gauge(
    "round_record_age_seconds_max",
    "Age of the oldest record of the newest round that copied something, when it was committed.",
    mm2="replication-latency-ms-max",
)
ROUND_AGE_MIN = _gauge("round_record_age_seconds_min", "The same of its youngest record.", mm2="replication-latency-ms")
ROUND_LAG = _gauge("round_records_behind", "Source offsets that were not copied when that round was planned.")
ROUND_COST = _gauge(
    "round_seconds_by_expectation", "Seconds that it took, by those that were expected; absent without expectation."
)

GAP_RECORDS = _counter("gap_records_total", "Source records that were lost before they were copied.", "cause")
GAPS = _counter("gaps_total", "Stretches of the source that were lost before they were copied.", "cause")
GAPS_OPEN = _gauge("gaps_open", "Losses that nobody has decided about.")
RECREATED = _counter("topic_recreated_total", "Partitions whose source topic was deleted and created again.")
REJECTED = _counter(
    "rejected_records_total",
    "Records that were left out because the target or the policy refuses them.",
    "reason",
    mm2="total-records-skipped",
)
MISMATCHES = _counter("verify_mismatch_total", "Times that a verified partition differed from its source.")
VERIFIED = _gauge("verified_partitions", "Partitions found equal when they were compared last.")
VERIFIED_AGE = _gauge("verified_up_to_age_seconds", "Seconds since the partition compared longest ago was found equal.")
VERIFY_LAG = _gauge(
    "verify_lag_seconds", "Seconds for which copied records of a partition have waited to be compared; at the most."
)
VERIFY_LAG_RECORDS = _gauge("verify_lag_records", "Offsets that are copied and not compared, of compared partitions.")

GROUPS = _gauge("groups", "Consumer groups with a position in the flow's topics.")
GROUPS_BEHIND = _gauge("groups_behind", "Groups that do not go on exactly where they stand on the source.")
REREAD = _gauge("group_reread_records", "Records that all groups together would read again if they moved now.")
SKIPPED = _gauge(
    "group_skipped_records", "Records that all groups together would never read if they moved now; at most."
)
UNSYNCED = _gauge(
    "group_unsynced", "Groups and partitions that are not in sync, by reason.", "reason", mm2="none; checkpoints exist"
)
CONFIG_DRIFT = _gauge("config_drift", "Topics whose configs differed when they were looked at last, or were refused.")
ACL_DRIFT = _gauge("acl_drift", "ACLs that lacked on the target when they were looked at last, or were refused.")
STEP_AGE = _gauge("step_age_seconds", "Seconds since a step ran, or was left out.", "step", mm2="checkpoint-latency-ms")
STEP_FAILED = _gauge("step_failed", "What a cluster refused when the step ran last.", "step")
HEARTBEAT_AGE = _gauge("heartbeat_age_seconds", "Age of the newest heartbeat that arrived, counted up to now.", "pair")
HEARTBEAT_OK = _gauge("heartbeat_ok", "1 when the last check found heartbeats of the pair fresh.", "pair", "verdict")
CUTOVER = _gauge("cutover_state", "1 for the state and step of each cutover under way, and of the newest.", "cutover",
                 "state", "step")  # fmt: skip
CUTOVER_CARRIED = _gauge(
    "cutover_carried", "1 while a process carries a cutover out, or rolls it back; of those under way.", "cutover"
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
    interval = longest_interval_seconds(flow.schedule)
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
    interval = longest_interval_seconds(flow.schedule)
    yield INFO, 1.0, flow.flow.source, flow.flow.target, flow.schedule or ""
    yield HEALTHY, float(is_healthy(figures, late_after, now))
    yield LATE_AFTER, late_after
    if interval is not None:
        yield INTERVAL, interval
    if figures.observed is not None:
        yield from _observed(figures.observed, figures.observed_before, now)
    for reason, count in figures.stalled.items():
        yield STALLED, float(count), reason
    for reason, offsets in figures.stalled_behind.items():
        yield STALLED_RECORDS, float(offsets), reason
    for row in figures.worst:
        yield PARTITION_BEHIND, float(row.records_behind), row.topic, str(row.partition)
    yield from _runs(figures, now)
    yield from _losses(figures)
    yield from _verified(figures, now)
    yield from _beside(figures, now)


def _observed(seen: FlowObservationRow, before: FlowObservationRow | None, now: datetime) -> Iterator[_Value]:
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
    for cause, found in sorted(figures.gaps.items()):
        # Set positions and written deletions are an operator's own decisions.
        if cause not in (*LOSS_CAUSES, POSITION_SET, DELETIONS_WRITTEN):
            yield REJECTED, float(found.records), cause


def _verified(figures: FlowFigures, now: datetime) -> Iterator[_Value]:
    totals = figures.verified
    yield MISMATCHES, float(totals.mismatches if totals else 0)
    if totals is None:
        return
    yield VERIFIED, float(totals.equal)
    yield VERIFY_LAG_RECORDS, float(totals.unverified)
    yield VERIFY_LAG, 0.0 if totals.waiting_since is None else _seconds(totals.waiting_since, now)
    if totals.oldest_equal is not None:
        yield VERIFIED_AGE, _seconds(totals.oldest_equal, now)


def _beside(figures: FlowFigures, now: datetime) -> Iterator[_Value]:
    """Values of the sync steps."""
    if figures.groups is not None:
        yield GROUPS, float(figures.groups.groups)
        yield GROUPS_BEHIND, float(figures.groups.behind)
        if figures.groups.read_again is not None:
            yield REREAD, float(figures.groups.read_again)
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
