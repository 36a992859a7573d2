"""Metrics of an audit: what Prometheus' parser reads of them, and that the number of series is bounded."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mirror_lib.features.audit import metrics_text as metrics
from mirror_lib.features.audit.findings import Finding, Kind, Offsets
from mirror_lib.features.audit.metrics_text import METRICS, metrics_text
from mirror_lib.features.audit.model import AuditReport, PartitionReport, Verdict
from mirror_lib.topology.names import TopicPartition
from tests.support.fresh_imports import loaded_after

_Samples = Mapping[tuple[str, ...], float]


def partition(
    topic: str, number: int, verdict: Verdict = Verdict.EQUAL, equal: int = 0, **kinds: int
) -> PartitionReport:
    """A partition with so many records of each kind."""
    findings = tuple(
        Finding(Kind(kind), count, Offsets(0, count - 1, 1_000, 2_000), None) for kind, count in kinds.items()
    )
    source, target = TopicPartition(topic, number), TopicPartition(f"A.{topic}", number)
    return PartitionReport(source, target, verdict, equal, findings=findings)


def read(report: AuditReport, *, strict: bool = False) -> dict[str, _Samples]:
    """The samples by metric and labels without the flow."""
    found = {}
    for family in text_string_to_metric_families(metrics_text(report, "A->B", strict=strict).decode()):
        assert family.type == "gauge"
        assert {sample.labels.pop("flow") for sample in family.samples} <= {"A->B"}
        (labels,) = (metric.labels for metric in METRICS if metric.name == family.name)
        found[family.name] = {tuple(each.labels.pop(n) for n in labels): each.value for each in family.samples}
        assert not any(sample.labels for sample in family.samples)
    return found


def test_the_numbers_of_a_report_are_read_by_prometheus() -> None:
    report = AuditReport(
        (
            partition("orders", 0, equal=7),
            partition("orders", 1, Verdict.WRONG, equal=3, missing=5, repeated=2),
            partition("payments", 0, Verdict.UNVERIFIABLE, unverifiable=4),
        ),
        alone=("new",),
        ambiguous={"twice": ("a.twice", "b.twice")},
        began_at=1_700_000_000_500,
        seconds=1.5,
    )

    found = read(report)

    assert set(found) == {metric.name for metric in METRICS}
    assert found["mirror_audit_verdict"] == {("equal",): 0, ("wrong",): 1, ("unverifiable",): 0}
    assert found["mirror_audit_exit_code"] == {(): 3}
    assert found["mirror_audit_timestamp_seconds"] == {(): 1_700_000_000.5}
    assert found["mirror_audit_duration_seconds"] == {(): 1.5}
    assert found["mirror_audit_topics_without_copy"] == {(): 2}
    counts = {
        "equal": 10,
        "missing": 5,
        "repeated": 2,
        "reordered": 0,
        "changed": 0,
        "extra": 0,
        "moved": 0,
        "unverifiable": 4,
    }
    assert found["mirror_audit_records"] == {(kind,): count for kind, count in counts.items()}
    assert found["mirror_audit_topic_verdict"] == {
        ("orders", "A.orders", "wrong"): 1,
        ("payments", "A.payments", "unverifiable"): 1,
    }
    assert found["mirror_audit_topic_records"] == {
        ("orders", "A.orders", "equal"): 10,
        ("orders", "A.orders", "missing"): 5,
        ("orders", "A.orders", "repeated"): 2,
        ("payments", "A.payments", "equal"): 0,
        ("payments", "A.payments", "unverifiable"): 4,
    }


def test_a_right_copy_without_topics_for_others_is_wrong_only_if_that_is_strict() -> None:
    report = AuditReport((partition("orders", 0, equal=1),), alone=("new",))

    assert read(report)["mirror_audit_exit_code"] == {(): 0}
    assert read(report, strict=True)["mirror_audit_exit_code"] == {(): 3}


def test_of_too_many_topics_the_worst_have_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_TOPICS", 2)
    verdicts = {"a": Verdict.EQUAL, "b": Verdict.WRONG, "c": Verdict.UNVERIFIABLE, "d": Verdict.NO_COPY}
    report = AuditReport(tuple(partition(topic, 0, verdict, equal=1) for topic, verdict in verdicts.items()))

    found = read(report)

    assert [labels[0] for labels in found["mirror_audit_topic_verdict"]] == ["d", "b"]
    assert found["mirror_audit_records"]["equal",] == 4


def test_the_command_does_not_import_the_library_of_metrics() -> None:
    assert loaded_after("import mirror_lib.features.audit.command", ["prometheus_client"]) == []
