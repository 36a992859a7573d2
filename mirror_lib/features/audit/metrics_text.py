"""An audit in Prometheus' text format, for node_exporter's textfile collector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from mirror_lib.features.audit.findings import Kind
from mirror_lib.features.audit.model import AuditReport, PartitionReport, Verdict
from mirror_lib.features.audit.pairs import TopicPair
from mirror_lib.printable import printable

#: Topics with series of their own: the number of series is to be bounded.
MOST_TOPICS = 1000
EQUAL = "equal"
_WORST_FIRST = (Verdict.NO_COPY, Verdict.WRONG, Verdict.UNVERIFIABLE, Verdict.EQUAL)


@dataclass(frozen=True, slots=True)
class AuditMetric:
    """One metric: a gauge with the value of the last audit."""

    name: str
    help: str
    #: In addition to `flow`.
    labels: tuple[str, ...] = ()


VERDICT = AuditMetric("mirror_audit_verdict", "1 for the verdict of the last audit, 0 for the others.", ("verdict",))
EXIT_CODE = AuditMetric(
    "mirror_audit_exit_code", "Exit code of the last audit: 0 right, 1 not verifiable as a whole, 3 wrong."
)
TIMESTAMP = AuditMetric(
    "mirror_audit_timestamp_seconds", "Unix time at which the last audit read the ends of the source."
)
DURATION = AuditMetric("mirror_audit_duration_seconds", "Duration of the last audit.")
RECORDS = AuditMetric("mirror_audit_records", "Records by kind in the last audit; `equal` are pairs.", ("kind",))
ALONE = AuditMetric(
    "mirror_audit_topics_without_copy", "Topics that the last audit did not compare: without a copy, or with several."
)
DIFFERENCES = AuditMetric("mirror_audit_differences", "Configs and ACLs of copies that differ, in the last audit.")
TOPIC_VERDICT = AuditMetric(
    "mirror_audit_topic_verdict",
    "1 for the verdict of the topic in the last audit.",
    ("topic", "target_topic", "verdict"),
)
TOPIC_RECORDS = AuditMetric(
    "mirror_audit_topic_records",
    "Records of the topic by kind in the last audit; kinds without records are absent, but for `equal`.",
    ("topic", "target_topic", "kind"),
)
METRICS = (VERDICT, EXIT_CODE, TIMESTAMP, DURATION, RECORDS, ALONE, DIFFERENCES, TOPIC_VERDICT, TOPIC_RECORDS)

_Labels = tuple[str, ...]


def metrics_text(report: AuditReport, flow: str, *, strict: bool = False) -> bytes:
    """Return the metrics of an audit.

    Args:
        flow: the label `flow`; two audits with the same one overwrite each other's series.
        strict: as for the exit code.
    """
    registry = CollectorRegistry()
    registry.register(_Collected(report, flow, strict=strict))
    return generate_latest(registry)


class _Collected(Collector):
    """Known values in the form that prometheus_client renders."""

    def __init__(self, report: AuditReport, flow: str, *, strict: bool) -> None:
        self._flow = flow
        self._found = list(_samples(report, strict=strict))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called by the registry: once for the names, once for the values."""
        for metric in METRICS:
            family = GaugeMetricFamily(metric.name, metric.help, labels=("flow", *metric.labels))
            for labels, value in (each[1:] for each in self._found if each[0] is metric):
                family.add_metric([printable(label, "\n") for label in (self._flow, *labels)], value)
            yield family


def _samples(report: AuditReport, *, strict: bool) -> Iterator[tuple[AuditMetric, _Labels, float]]:
    for verdict in Verdict:
        if verdict is not Verdict.NO_COPY:
            yield VERDICT, (verdict.value,), float(report.verdict is verdict)
    yield EXIT_CODE, (), report.exit_code(strict=strict)
    yield TIMESTAMP, (), report.began_at / 1000
    yield DURATION, (), report.seconds
    yield RECORDS, (EQUAL,), report.equal
    counts = report.counts
    for kind in Kind:
        yield RECORDS, (kind.value,), counts.get(kind, 0)
    yield ALONE, (), len(report.alone) + len(report.ambiguous)
    yield DIFFERENCES, (), len(report.differences)
    for names, topic in _worst_topics(report):
        yield TOPIC_VERDICT, (*names, topic.verdict.value), 1
        yield TOPIC_RECORDS, (*names, EQUAL), topic.equal
        for kind in Kind:
            if topic.counts[kind]:
                yield TOPIC_RECORDS, (*names, kind.value), topic.counts[kind]


@dataclass(slots=True)
class _Topic:
    """All partitions of a topic."""

    verdict: Verdict = Verdict.EQUAL
    equal: int = 0
    counts: Counter[Kind] = field(default_factory=Counter)

    def add(self, report: PartitionReport) -> None:
        self.verdict = min(self.verdict, report.verdict, key=_WORST_FIRST.index)
        self.equal += report.equal
        self.counts.update(report.counts)


def _worst_topics(report: AuditReport) -> list[tuple[TopicPair, _Topic]]:
    found: dict[TopicPair, _Topic] = {}
    for each in report.partitions:
        found.setdefault(TopicPair(each.source.topic, each.target.topic), _Topic()).add(each)
    worst = sorted(found.items(), key=lambda item: (_WORST_FIRST.index(item[1].verdict), item[0]))
    return worst[:MOST_TOPICS]
