"""The DAG that audits a flow's copies, and the operator for DAGs of one's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag

from mirror_lib.airflow.dags import mirror_dags
from mirror_lib.airflow.retries import is_hopeless
from mirror_lib.config.loader import load
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.features.audit.airflow import tasks
from mirror_lib.features.audit.airflow.operator import AuditOperator
from mirror_lib.features.audit.airflow.outcome import NotAuditedError, WrongCopyError, judge
from mirror_lib.features.audit.differences import Difference
from mirror_lib.features.audit.findings import Finding, Kind, Offsets
from mirror_lib.features.audit.model import AuditReport, GroupReport, Jump, PartitionReport, Verdict
from mirror_lib.features.audit.plan import AuditOptions
from mirror_lib.features.audit.sampling import Sample
from mirror_lib.planning.model import WHOLE_TOPIC
from mirror_lib.topology.names import TopicPartition
from tests.support.flow_files import write_flow

DAG_ID = "mirror_audit__A__B"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "dags"
SCHEDULE = "A->B.mirror.audit.schedule = 1h"


def partition(topic: str, number: int, verdict: Verdict, *kinds: Kind, **more: Any) -> PartitionReport:
    findings = tuple(Finding(kind, 10, Offsets(700, 709, 0, 1_000, number), None) for kind in kinds)
    source, target = TopicPartition(topic, number), TopicPartition(f"A.{topic}", number)
    return PartitionReport(source, target, verdict, **{"equal": 3_000, "findings": findings, **more})


RIGHT = AuditReport((partition("orders", 0, Verdict.EQUAL),))
MISSING = AuditReport((partition("orders", 2, Verdict.WRONG, Kind.MISSING), partition("audits", 0, Verdict.EQUAL)))
EDGE = AuditReport((partition("orders", 0, Verdict.UNVERIFIABLE, Kind.UNVERIFIABLE),))
AWAY = AuditReport((partition("orders", 0, Verdict.UNVERIFIABLE, equal=0, why="a broker is away"),))


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., Path]:
    return partial(write_flow, tmp_path, SCHEDULE)


class Audits:
    """Stands in for audits: what they were asked, and what their tasks pushed."""

    def __init__(self, report: AuditReport) -> None:
        self.report = report
        self.options: list[AuditOptions] = []
        self.pushed: dict[str, Any] = {}

    def __call__(self, _source: object, _target: object, options: AuditOptions) -> AuditReport:
        self.options.append(options)
        return self.report

    def xcom_push(self, *, key: str, value: Any) -> None:
        self.pushed[key] = value


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> Audits:
    found = Audits(RIGHT)
    monkeypatch.setattr(tasks, "audit", found)
    return found


def run(path: Path, audits: Audits, **form: Any) -> None:
    params = {"topics": None, "since": None, "sample": None, "wait": None, **form}
    tasks.audit_flow("A->B", str(path), params, ti=audits)


def test_only_a_flow_with_a_schedule_has_the_dag(tmp_path: Path, config: Callable[..., Path]) -> None:
    assert DAG_ID not in mirror_dags(write_flow(tmp_path))

    dag = mirror_dags(config())[DAG_ID]

    assert (dag.schedule, dag.catchup, dag.max_active_runs) == (timedelta(hours=1), False, 1)
    assert set(dag.params) == {"topics", "since", "sample", "wait"}
    assert [(task.task_id, task.pool) for task in dag.tasks] == [("audit", "default_pool")]
    assert type(dag.get_task("audit").retry_policy).__name__ == "ErrorClassRetryPolicy"
    assert "backfill" not in dag.allowed_run_types


@pytest.mark.parametrize(
    ("lines", "age"),
    [
        ((), timedelta(hours=2)),
        (("A->B.mirror.audit.schedule = @daily",), timedelta(days=2)),
        (("A->B.mirror.audit.schedule = @continuous",), None),
        (("A->B.mirror.audit.since = 30m",), timedelta(minutes=30)),
        (("A->B.mirror.audit.since = all",), None),
    ],
)
def test_it_compares_the_records_of_two_intervals_unless_the_setting_says_otherwise(
    config: Callable[..., Path], audits: Audits, lines: tuple[str, ...], age: timedelta | None
) -> None:
    from time import time

    run(config(*lines), audits)

    (options,) = audits.options
    if age is None:
        assert options.since is None
    else:
        assert options.since is not None
        assert time() - options.since / 1000 == pytest.approx(age.total_seconds(), abs=60)
    assert (options.wait_seconds, options.processes) == (60, 1)
    assert options.rules is not None
    assert (options.rules.topology.remote_topic("orders"), options.selected("orders")) == ("A.orders", True)


def test_the_form_chooses_topics_time_and_wait_and_a_part_of_the_topics_writes_no_metrics(
    tmp_path: Path, config: Callable[..., Path], audits: Audits
) -> None:
    metrics = tmp_path / "audit.prom"
    path = config(f"A->B.mirror.audit.metrics = {metrics}")

    run(path, audits, topics=["pay.*"], since="2026-01-31T00:00:00Z", wait=5)

    (options,) = audits.options
    assert (options.since, options.wait_seconds) == (1_769_817_600_000, 5)
    assert (options.selected("payments"), options.selected("orders")) == (True, False)
    assert not metrics.exists()
    run(path, audits, sample="1%")
    assert audits.options[-1].sample is not None
    assert audits.options[-1].sample.share == 0.01
    assert not metrics.exists()
    run(path, audits, since="all")
    assert 'mirror_audit_exit_code{flow="A->B"} 0.0' in metrics.read_text()


@pytest.mark.parametrize(
    "line",
    [
        "mirror.audit.schedule = hourly",
        "mirror.audit.since = yesterday",
        "mirror.audit.metrics = audit.prom",
        "mirror.audit.metrics = /tmp/audit.txt",
    ],
)
def test_settings_that_cannot_be_used_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigurationError, match="must be"):
        load(write_flow(tmp_path, f"A->B.{line}"))


def test_a_wrong_copy_fails_for_good_with_the_report_the_metrics_and_what_to_do(
    tmp_path: Path, config: Callable[..., Path], audits: Audits, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = tmp_path / "audit.prom"
    audits.report = MISSING

    with caplog.at_level(logging.INFO), pytest.raises(WrongCopyError) as caught:
        run(config(f"A->B.mirror.audit.metrics = {metrics}"), audits)

    text = str(caught.value)
    assert is_hopeless(caught.value)
    assert "flow A->B: Wrong: 10 missing" in text
    assert "orders-2: 10 missing (source offsets 700 to 709, 1970-01-01 00:00:00 to 1970-01-01 00:00:01)" in text
    assert "audit again with a longer --wait" in text
    assert f"`mirror audit --config {tmp_path}/mirror.properties --flow 'A->B' --since 7200s`" in text
    # What the command prints.
    for shown in ("verdicts", "findings", "700 to 709", "Wrong: 10 missing; 6,000 records equal (2 topics"):
        assert shown in caplog.text
    assert 'mirror_audit_records{flow="A->B",kind="missing"} 10.0' in metrics.read_text()
    pushed = audits.pushed["audit"]
    assert (pushed["verdict"], pushed["exit_code"], pushed["missing"], pushed["equal"]) == ("wrong", 3, 10, 6_000)
    assert pushed["faults"][0].startswith("orders-2: 10 missing")


def test_metrics_that_cannot_be_written_fail_the_task_but_hide_no_wrong_copy(
    tmp_path: Path, config: Callable[..., Path], audits: Audits
) -> None:
    path = config(f"A->B.mirror.audit.metrics = {tmp_path}/nowhere/audit.prom")

    with pytest.raises(MirrorError, match="cannot write the metrics"):
        run(path, audits)
    audits.report = MISSING
    with pytest.raises(WrongCopyError):
        run(path, audits)


def test_records_that_cannot_be_verified_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        judge(EDGE, "flow A->B", "mirror audit")

    assert "flow A->B: Not verifiable as a whole: nothing is wrong, and 3,000 records" in caplog.text
    assert "orders-0: 10 unverifiable" in caplog.text


def test_an_audit_that_could_compare_nothing_is_tried_again() -> None:
    for report, told in (
        (AWAY, "orders-0: a broker is away"),
        (AuditReport((), alone=("new",)), "Without a copy: new"),
    ):
        with pytest.raises(NotAuditedError, match=told) as caught:
            judge(report, "flow A->B", "mirror audit")
        assert not is_hopeless(caught.value)


def test_of_many_findings_the_first_are_shown_and_all_topics_with_their_kinds() -> None:
    wrong = [partition("orders", n, Verdict.WRONG, Kind.MISSING, Kind.EXTRA) for n in range(3)]
    foreign = partition("other", WHOLE_TOPIC, Verdict.NO_COPY, why="3% of the records match: this is not a copy")

    with pytest.raises(WrongCopyError) as caught:
        judge(AuditReport((*wrong, foreign)), "flow A->B", "mirror audit")

    assert "other: 3% of the records match" in str(caught.value)
    assert "(and 4 more); Topics: orders (30 missing, 30 extra); other (1 not a copy)." in str(caught.value)
    assert "find the other producer of the target topic" in str(caught.value)


def test_topics_without_a_copy_are_wrong_if_that_is_strict() -> None:
    report = AuditReport(RIGHT.partitions, alone=("new",))

    judge(report, "copies", "mirror audit")
    with pytest.raises(WrongCopyError, match="Without a copy: new") as caught:
        judge(report, "copies", "mirror audit", strict=True)
    assert str(caught.value).endswith("`mirror audit --strict` lists all.")


def test_configs_that_differ_and_groups_that_would_skip_records_are_wrong_if_that_is_strict() -> None:
    place = RIGHT.partitions[0]
    group = GroupReport("billing", place.source, place.target, committed=5, exact=5, checkpoint=Jump(9, 4, 0))
    report = AuditReport(
        RIGHT.partitions, groups=(group,), differences=(Difference("A.orders", "retention.ms", "1", "2"),)
    )

    judge(report, "copies", "mirror audit")
    with pytest.raises(WrongCopyError, match=r"differ of A\.orders\. Groups would skip records: billing\."):
        judge(report, "copies", "mirror audit", strict=True)


def test_the_operator_audits_two_clusters_with_files_of_java_clients(
    tmp_path: Path, audits: Audits, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(tasks, "connection_to", lambda *side: asked.append(side))
    metrics, one, both = tmp_path / "audit.prom", str(tmp_path / "source"), str(tmp_path / "both")
    operator = AuditOperator(
        task_id="audit",
        source="old:9092",
        target="new:9092",
        topics="orders.*",
        pairs={"orders": "copy"},
        client_config=both,
        source_config=one,
        since="2h",
        wait=1,
        sample="5%",
        seed=7,
        ignored_headers=["origin"],
        ignore_timestamps=True,
        same_offsets=True,
        merged=True,
        metrics=str(metrics),
        retries=5,
    )

    operator.execute({"ti": audits})

    assert asked == [("source", "old:9092", Path(one)), ("target", "new:9092", Path(both))]
    (options,) = audits.options
    assert options.named == (("orders", "copy"),)
    assert (options.wait_seconds, options.ignored_headers, options.processes) == (1, ("origin",), 1)
    assert (options.sample, options.ignore_times, options.same_offsets) == (Sample(0.05, 7), True, True)
    assert (options.selected("orders-eu"), options.selected("payments")) == (True, False)
    assert 'mirror_audit_exit_code{flow="old:9092->new:9092"} 0.0' in metrics.read_text()
    assert audits.pushed["audit"]["verdict"] == "equal"
    audits.report = MISSING
    with pytest.raises(WrongCopyError, match="mirror audit --source old:9092 --target new:9092") as caught:
        operator.execute({"ti": SimpleNamespace(xcom_push=lambda **_: None)})
    again = (
        f"--client.config {both} --source.config {one} --pair orders=copy --since 2h --sample 5% --seed 7 "
        "--ignore-header origin --ignore-timestamps --same-offsets --merged"
    )
    assert again in str(caught.value)


def test_airflow_parses_the_example_without_kafka_or_a_file(tmp_path: Path) -> None:
    bag = DagBag(str(EXAMPLES / "audit_mm2.py"))

    assert bag.import_errors == {}
    (task,) = bag.dags["audit_mm2"].tasks
    assert isinstance(task, AuditOperator)
    assert (task.source, task.topics, task.since) == ("old-1:9092,old-2:9092", "orders.*", "2h")
