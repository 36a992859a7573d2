"""Metrics: what the ledger's rows mean at the moment of asking.

The ledger in Prometheus' text format.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from math import inf
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mirror_lib.config.loader import load
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import LOSS_REASONS, MirrorError
from mirror_lib.features.audit.metrics_text import METRICS as AUDIT_METRICS
from mirror_lib.features.metrics import exported as metrics
from mirror_lib.features.metrics.exported import METRICS, Metric, is_healthy, late_after_seconds, samples
from mirror_lib.features.metrics.figures import FlowFigures, GapTotals, GroupTotals, RunTimes, RunTotals, VerifyTotals
from mirror_lib.features.metrics.prometheus import CONTENT_TYPE, render_metrics
from mirror_lib.features.metrics_file import write_metrics_file
from mirror_lib.ledger.cutover_rows import CutoverRow
from mirror_lib.ledger.observed_rows import FlowObservationRow, HeartbeatObservationRow, StepOutcomeRow
from mirror_lib.ledger.rows import DISASTER, RunRow
from mirror_lib.ledger.store import Ledger
from tests.support.flow_files import LEDGER, write_flow
from tests.support.ledger.cutover_rows import cutover_row
from tests.support.ledger.ledgers import ready_ledger
from tests.support.ledger.rows import NOON, observed_flow, observed_partition

FLOW = "A->B"
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(mirror_[a-z_]+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


@pytest.fixture
def make_flow(tmp_path: Path):
    def make(schedule: str = "5m") -> FlowConfig:
        return load(write_flow(tmp_path, f"mirror.schedule = {schedule}")).flow(FLOW)

    return make


def observation(age: float = 0.0, **values: object) -> FlowObservationRow:
    """A flow that is at the source's end, looked at so many seconds before noon."""
    at_the_end = {"lagging": 0, "bytes_behind": 0, "seconds_behind": 0.0, "catch_up_seconds": 0.0}
    seen = {"flow": FLOW, "observed_at": NOON - timedelta(seconds=age), "headroom_seconds": inf}
    return observed_flow(**{**seen, **at_the_end, **values})


def behind(age: float = 0.0, **values: object) -> FlowObservationRow:
    return observation(age, **{"lagging": 1, "records_behind": 10, "seconds_behind": 30.0, **values})


def run(**values: object) -> RunRow:
    began = NOON - timedelta(minutes=2)
    row = RunRow(id="r", flow=FLOW, trigger="cli", state="succeeded", started_at=began, heartbeat_at=began)
    return replace(row, **values)


@pytest.fixture
def values(make_flow):
    """The values of one metric, by its labels without the flow; a metric without them has the key ()."""

    def read(metric: Metric, flow: FlowConfig | None = None, **known: object) -> dict[tuple[str, ...], float]:
        figures = FlowFigures(FLOW, **known)
        found = dict(samples([figures], [flow or make_flow()], NOON))[metric]
        assert all(sample.labels[0] == FLOW for sample in found)
        assert all(len(sample.labels) == len(metric.all_labels) for sample in found)
        return {sample.labels[1:]: sample.value for sample in found}

    return read


def test_how_far_a_flow_is_behind_grows_while_nobody_looks_and_the_time_until_retention_runs_out(values) -> None:
    assert values(metrics.SECONDS_BEHIND, observed=behind(age=100, seconds_behind=30.0)) == {(): 130.0}
    assert values(metrics.OBSERVATION_AGE, observed=behind(age=100)) == {(): 100.0}
    assert values(metrics.HEADROOM, observed=behind(age=100, headroom_seconds=500.0)) == {(): 400.0}
    assert values(metrics.HEADROOM, observed=behind(age=100, headroom_seconds=50.0)) == {(): 0.0}

    # A flow that had nothing to copy is not said to be behind, and its age tells how old that is.
    assert values(metrics.SECONDS_BEHIND, observed=observation(age=100)) == {(): 0.0}
    assert values(metrics.OBSERVATION_AGE, observed=observation(age=100)) == {(): 100.0}
    assert values(metrics.HEADROOM, observed=observation(age=100)) == {(): inf}


def test_what_is_not_known_has_no_value(values) -> None:
    seen = behind(bytes_behind=None, seconds_behind=None, catch_up_seconds=None, headroom_seconds=None)

    for metric in (metrics.BYTES_BEHIND, metrics.SECONDS_BEHIND, metrics.CATCHUP, metrics.HEADROOM, metrics.WRITES):
        assert values(metric, observed=seen) == {}


def test_a_flow_that_was_never_looked_at_is_told_and_not_healthy(values) -> None:
    assert values(metrics.INFO) == {("A", "B", "5m"): 1.0}
    assert values(metrics.HEALTHY) == {(): 0.0}
    assert values(metrics.RECORDS_BEHIND) == {}


def test_partitions_that_stand_still_are_counted_by_reason(values) -> None:
    found = values(metrics.STALLED, stalled={"retention-gap": 2, "authorization": 1})
    assert found == {("retention-gap",): 2.0, ("authorization",): 1.0}
    # What a transaction of the source hides.
    found = values(metrics.STALLED_RECORDS, stalled_behind={"source-transaction-open": 501})
    assert found == {("source-transaction-open",): 501.0}
    # The observation before tells what lasts.
    before = behind(age=300, seconds_behind=900.0, stalled=2)
    assert values(metrics.SECONDS_BEHIND_BEFORE, observed=behind(), observed_before=before) == {(): 900.0}
    assert values(metrics.STALLED_BEFORE, observed=behind(), observed_before=before) == {(): 2.0}


def test_only_partitions_asked_for_are_named(values) -> None:
    worst = observed_partition(flow=FLOW, partition=3, log_start=0, log_end=9, position=2)

    assert values(metrics.PARTITION_BEHIND) == {}
    assert values(metrics.PARTITION_BEHIND, worst=(worst,)) == {("orders", "3"): 7.0}


def test_runs_are_added_up_and_the_newest_that_ended_is_timed(values) -> None:
    known = {
        "runs": RunTotals(5, 1, 1_000, 20_000, NOON - timedelta(seconds=60)),
        "last_run": run(finished_at=NOON - timedelta(seconds=60)),
        "newest_run": run(state="running"),
        "is_running": True,
    }

    assert values(metrics.RUNS, **known) == {(): 5.0}
    assert values(metrics.RUNS_FAILED, **known) == {(): 1.0}
    assert values(metrics.RECORDS, **known) == {(): 1_000.0}
    assert values(metrics.BYTES, **known) == {(): 20_000.0}
    assert values(metrics.SUCCESS_AGE, **known) == {(): 60.0}
    assert values(metrics.RUN_DURATION, **known) == {(): 60.0}
    assert values(metrics.RUNNING, **known) == {(): 120.0}
    assert values(metrics.RUNNING, **{**known, "is_running": False}) == {(): 0.0}


def test_latencies_are_those_of_the_oldest_and_youngest_record_of_any_round(values) -> None:
    def at(seconds: float) -> int:
        return int((NOON.timestamp() + seconds) * 1000)

    rounds = (
        RunTimes(at(-100), at(-50), NOON - timedelta(seconds=10), 5.0),
        RunTimes(at(-40), at(-9), NOON, 8.0),
    )

    assert values(metrics.LATENCY_MAX, times=rounds) == {(): 90.0}
    assert values(metrics.LATENCY_MIN, times=rounds) == {(): 9.0}
    # When its copy began, the oldest record was five seconds younger.
    assert values(metrics.RECORD_AGE, times=rounds) == {(): 85.0}


def test_losses_and_rejected_records_are_told_apart(values) -> None:
    gaps = {
        "retention-gap": GapTotals(2, 70, 1),
        "source-recreated": GapTotals(3, 0, 0),
        "record-too-large": GapTotals(4, 4, 0),
        # A person moved the position.
        "position-set": GapTotals(1, 500, 0),
    }

    lost = {(cause,): 0.0 for cause in (*LOSS_REASONS, "disaster")} | {("retention-gap",): 70.0}
    assert values(metrics.GAP_RECORDS, gaps=gaps) == lost
    assert values(metrics.GAPS_OPEN, gaps=gaps) == {(): 1.0}
    assert values(metrics.RECREATED, gaps=gaps) == {(): 3.0}
    assert values(metrics.REJECTED, gaps=gaps) == {("record-too-large",): 4.0}


def test_counters_of_losses_are_there_before_the_first_loss(values) -> None:
    """`increase()` sees no difference between a value and none."""
    assert set(values(metrics.GAPS).values()) == {0.0}
    assert values(metrics.MISMATCHES) == {(): 0.0}
    assert set(metrics.LOSS_CAUSES) == {*LOSS_REASONS, DISASTER}


def test_how_long_copied_records_wait_to_be_compared(values) -> None:
    known = VerifyTotals(1, 4, 3, NOON - timedelta(hours=2), 50, NOON - timedelta(hours=1))

    assert values(metrics.MISMATCHES, verified=known) == {(): 1.0}
    assert values(metrics.VERIFIED, verified=known) == {(): 3.0}
    assert values(metrics.VERIFIED_AGE, verified=known) == {(): 7_200.0}
    assert values(metrics.VERIFY_LAG, verified=known) == {(): 3_600.0}
    assert values(metrics.VERIFY_LAG_RECORDS, verified=known) == {(): 50.0}
    assert values(metrics.VERIFY_LAG, verified=known._replace(waiting_since=None)) == {(): 0.0}
    assert values(metrics.VERIFY_LAG) == {}


def test_groups_steps_heartbeats_and_cutovers_are_told(values) -> None:
    step = StepOutcomeRow(
        flow=FLOW, step="sync_topic_acls", finished_at=NOON - timedelta(seconds=9), differences=3, failed=1, summary={}
    )
    beat = HeartbeatObservationRow(
        flow=FLOW, pair="A->B", observed_at=NOON, emitted_at=NOON - timedelta(seconds=7), verdict="stale"
    )

    assert values(metrics.GROUPS, groups=GroupTotals(5, 2, 30)) == {(): 5.0}
    assert values(metrics.REREAD, groups=GroupTotals(5, 2, 30)) == {(): 30.0}
    assert values(metrics.REREAD, groups=GroupTotals(5, 2, None)) == {}
    assert values(metrics.SKIPPED, groups=GroupTotals(5, 2, 30, 7)) == {(): 7.0}
    assert values(metrics.SKIPPED, groups=GroupTotals(5, 2, 30)) == {}
    assert values(metrics.UNSYNCED, unsynced={"refused": 2}) == {("refused",): 2.0}
    assert values(metrics.ACL_DRIFT, steps=(step,)) == {(): 3.0}
    assert values(metrics.CONFIG_DRIFT, steps=(step,)) == {}
    assert values(metrics.STEP_FAILED, steps=(step,)) == {("sync_topic_acls",): 1.0}
    assert values(metrics.STEP_AGE, steps=(step,)) == {("sync_topic_acls",): 9.0}
    assert values(metrics.HEARTBEAT_OK, heartbeats=(beat,)) == {("A->B", "stale"): 0.0}
    assert values(metrics.HEARTBEAT_AGE, heartbeats=(beat,)) == {("A->B",): 7.0}


def cutovers(*states: tuple[str, str]) -> list[CutoverRow]:
    return [cutover_row(name, flow=FLOW, state=state, step="drain") for name, state in states]


def test_cutovers_that_ended_are_told_only_when_none_came_after(values) -> None:
    newest_first = cutovers(("c", "finished"), ("b", "running"), ("a", "rolled-back"))

    assert values(metrics.CUTOVER, cutovers=newest_first) == {
        ("c", "finished", "drain"): 1.0,
        ("b", "running", "drain"): 1.0,
    }


def test_of_cutovers_under_way_it_is_told_whether_a_process_carries_them_out(values) -> None:
    rows = cutovers(("c", "finished"), ("b", "waiting"), ("a", "failed"))

    assert values(metrics.CUTOVER_CARRIED, cutovers=rows, carried=frozenset({"b"})) == {("b",): 1.0, ("a",): 0.0}


def test_three_intervals_without_news_are_late(make_flow) -> None:
    for schedule, seconds in {"5m": 900, "@hourly": 10_800, "": 3 * 86_400, "@continuous": 900}.items():
        assert late_after_seconds(make_flow(schedule)) == seconds, schedule


def test_health_is_progress_towards_the_end_of_the_source() -> None:
    far = behind(seconds_behind=1e6)
    for what, seen, before, healthy in (
        ("everything is copied", observation(), None, True),
        ("nobody has looked for long", observation(age=901), None, False),
        ("a little behind", behind(), None, True),
        ("what was a little behind grew old", behind(age=880), None, False),
        ("far behind", far, None, False),
        ("far behind and catching up", far, behind(records_behind=11), True),
        ("far behind and no nearer", far, behind(records_behind=10), False),
        ("nobody knows since when", behind(seconds_behind=None), None, False),
        ("a partition stands still", observation(stalled=1), None, False),
        ("a loss is undecided", observation(open_gaps=1), None, False),
        ("retention is faster", behind(outlook="will-be-lost"), None, False),
        ("it may just do", behind(outlook="tight"), None, True),
    ):
        figures = FlowFigures(FLOW, observed=seen, observed_before=before)
        assert is_healthy(figures, late_after=900, now=NOON) is healthy, what


def test_every_metric_has_a_row_with_its_unit_labels_and_meaning_and_no_other_is_spoken_of() -> None:
    text = DOCUMENT.read_text()
    rows = {name: (unit, labels, meaning) for name, unit, labels, meaning in ROW.findall(text)}

    documented = (*metrics.METRICS, *AUDIT_METRICS)
    names = {metric.name for metric in documented}
    assert set(rows) == names
    for metric in documented:
        unit, labels, meaning = rows[metric.name]
        assert unit.strip(), metric.name
        assert re.findall(r"`([a-z_]+)`", labels) == list(metric.labels)
        assert meaning == metric.help
    assert set(re.findall(r"\bmirror_[a-z_]+\b", text)) == names


@pytest.fixture
def config(tmp_path: Path):
    return load(write_flow(tmp_path, "mirror.schedule = 5m", LEDGER))


@pytest.fixture
def ledger(tmp_path: Path):
    with ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        yield ledger


def observe(ledger: Ledger, topic: str = "orders") -> None:
    row = observed_partition(flow=FLOW, topic=topic, log_start=0, log_end=9, position=2)
    flow = observed_flow(flow=FLOW, partitions=1, records_behind=7, seconds_behind=20.0, headroom_seconds=inf)
    ledger.observations.save_flow(flow, [row])


def parsed(text: bytes) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    return {
        sample.name: {
            tuple(sorted(each.labels.items())): each.value for each in family.samples if each.name == sample.name
        }
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_metrics_have_help_a_type_and_the_flow_as_a_label(config, ledger: Ledger) -> None:
    observe(ledger)

    text = render_metrics(ledger, config.enabled_flows, NOON + timedelta(seconds=10))

    lines = text.decode().splitlines()
    assert "# TYPE mirror_flow_seconds_behind gauge" in lines
    assert "# TYPE mirror_records_copied_total counter" in lines
    assert 'mirror_flow_seconds_behind{flow="A->B"} 30.0' in lines
    assert 'mirror_flow_retention_headroom_seconds{flow="A->B"} +Inf' in lines
    assert 'mirror_flow_info{flow="A->B",schedule="5m",source="A",target="B"} 1.0' in lines
    assert any(line.startswith("# HELP mirror_flow_healthy ") for line in lines)
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_an_empty_ledger_tells_the_flows_and_no_more_than_it_knows(config, ledger: Ledger) -> None:
    text = render_metrics(ledger, config.enabled_flows, NOON)

    found = parsed(text)
    assert found["mirror_flow_healthy"] == {(("flow", FLOW),): 0.0}
    assert "mirror_flow_seconds_behind" not in found
    # Two renderings do not know of each other.
    assert render_metrics(ledger, config.enabled_flows, NOON) == text


def test_only_documented_names_are_exported_and_names_of_topics_survive_the_format(config, ledger: Ledger) -> None:
    odd = 'a"b\\c\nd'
    observe(ledger, odd)

    found = parsed(render_metrics(ledger, config.enabled_flows, NOON, worst_partitions=20))

    assert set(found) <= {metric.name for metric in METRICS}
    (labels,) = found["mirror_partition_records_behind"]
    assert dict(labels)["topic"] == odd


def test_a_textfile_is_replaced_as_a_whole_and_others_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "mirror.prom"

    write_metrics_file(path, b"mirror_flow_healthy 0\n")
    write_metrics_file(path, b"mirror_flow_healthy 1\n")

    assert path.read_bytes() == b"mirror_flow_healthy 1\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(MirrorError, match=r"cannot write the metrics to .*missing/mirror\.prom"):
        write_metrics_file(tmp_path / "missing" / "mirror.prom", b"")
