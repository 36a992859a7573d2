"""Exports the ledger in Prometheus' format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from mirror_lib.config.model import FlowConfig
from mirror_lib.features.metrics.exported import Kind, Metric, Sample, samples
from mirror_lib.features.metrics.queries import MetricsQueries
from mirror_lib.ledger.store import Ledger
from mirror_lib.printable import printable

#: The content type of `render_metrics`.
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def render_metrics(
    ledger: Ledger, flows: Sequence[FlowConfig], now: datetime | None = None, *, worst_partitions: int = 0
) -> bytes:
    """All metrics of some flows in Prometheus' text format. Reads only the ledger, never a cluster.

    Args:
        flows: the configured flows; other flows of the ledger are ignored.
        now: ages count up to this time; by default the current time.
        worst_partitions: number of partitions with the most lag to name for each flow; each is a time series.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    figures = MetricsQueries(ledger).figures([str(flow.flow) for flow in flows], worst_partitions=worst_partitions)
    registry = CollectorRegistry()
    registry.register(_Collected(tuple(samples(figures, flows, now or datetime.now(UTC)))))
    return generate_latest(registry)


class _Collected(Collector):
    """Known values in the form that prometheus_client renders."""

    def __init__(self, collected: Iterable[tuple[Metric, Sequence[Sample]]]) -> None:
        self._collected = tuple(collected)

    def collect(self) -> Iterator[Family]:
        """Called by the registry: once for the names, once for the values."""
        for metric, found in self._collected:
            kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=metric.all_labels)
            for sample in found:
                # Prometheus' format escapes line breaks, but no other control characters of a terminal or page.
                family.add_metric([printable(label, "\n") for label in sample.labels], sample.value)
            if found:
                yield family
