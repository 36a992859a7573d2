"""The ledger as Prometheus reads it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from mirror_lib.config import FlowConfig
from mirror_lib.errors import MirrorError
from mirror_lib.ledger import Ledger
from mirror_lib.observe.metrics import Kind, Metric, Sample, samples
from mirror_lib.printable import printable

#: Of what `render_metrics` gives.
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
#: Others than the owner may read it: node_exporter runs as a user of its own.
_READABLE = 0o644


def render_metrics(
    ledger: Ledger, flows: Sequence[FlowConfig], now: datetime | None = None, *, worst_partitions: int = 0
) -> bytes:
    """All metrics of some flows in Prometheus' text format. Asks the ledger alone, never a cluster.

    Args:
        flows: what the configuration has; others of the ledger are not told.
        now: the moment up to which ages count; by default this one.
        worst_partitions: how many partitions of each flow to name, those furthest behind; each is a time series.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    figures = ledger.metrics.figures([str(flow.flow) for flow in flows], worst_partitions=worst_partitions)
    registry = CollectorRegistry()
    registry.register(_Collected(tuple(samples(figures, flows, now or datetime.now(UTC)))))
    return generate_latest(registry)


def write_textfile(path: Path, text: bytes) -> None:
    """Put metrics where node_exporter's textfile collector finds them; it never sees half a file.

    Raises:
        MirrorError: the file cannot be written.
    """
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
            # A draft is its owner's alone.
            Path(draft).chmod(_READABLE)
            Path(draft).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(draft).unlink()
            raise
    except OSError as error:
        raise MirrorError(
            f"the metrics cannot be written to {path}: {error.strerror}.",
            action="Name a file in a folder that exists and may be written to, such as that of node_exporter's "
            "--collector.textfile.directory.",
        ) from error


class _Collected(Collector):
    """Values that are known already, in the shape that prometheus_client renders."""

    def __init__(self, collected: Iterable[tuple[Metric, Sequence[Sample]]]) -> None:
        self._collected = tuple(collected)

    def collect(self) -> Iterator[Family]:
        """Called by the registry: once for the names, once for the text."""
        for metric, found in self._collected:
            kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=metric.all_labels)
            for sample in found:
                # Prometheus' format escapes line breaks, and nothing else that steers a terminal or a page.
                family.add_metric([printable(label, "\n") for label in sample.labels], sample.value)
            if found:
                yield family
