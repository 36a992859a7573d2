"""The ledger in Prometheus' text format."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mirror_lib.config.loader import load
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.store import Ledger
from mirror_lib.observe.metrics import METRICS
from mirror_lib.observe.prometheus import CONTENT_TYPE, render_metrics, write_textfile
from tests.support.flow_files import LEDGER, write_flow
from tests.support.ledger.ledgers import ready_ledger
from tests.support.ledger.rows import NOON, observed_flow, observed_partition

FLOW = "A->B"


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

    write_textfile(path, b"mirror_flow_healthy 0\n")
    write_textfile(path, b"mirror_flow_healthy 1\n")

    assert path.read_bytes() == b"mirror_flow_healthy 1\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(MirrorError, match=r"cannot write the metrics to .*missing/mirror\.prom"):
        write_textfile(tmp_path / "missing" / "mirror.prom", b"")
