"""Fetching alone, producing alone and the client loop on real brokers: nothing is left out of what is measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.clusters import KafkaPair
from tests.support.kafka import delete_records, produce, records
from tests.support.names import unique_name
from tools.bench.clusters.pair import Pair
from tools.bench.clusters.topics import Topics
from tools.bench.clusters.transport import Transport
from tools.bench.comparison import samples
from tools.bench.comparison.copying import Copy, measure_client_loop
from tools.bench.comparison.samples import compare
from tools.bench.copiers.settings import Copier, CopySetup
from tools.bench.errors import BenchError
from tools.bench.limit.measure import LimitProcesses
from tools.bench.limit.model import PRODUCE_WAYS
from tools.bench.workloads.loading import load
from tools.bench.workloads.workload import WORKLOADS, Workload

pytestmark = pytest.mark.integration

_PARTITIONS = 3
_FULL, _SINGLE, _FIVE = WORKLOADS[0], WORKLOADS[3], WORKLOADS[4]


@pytest.fixture
def pair(kafka_pair: KafkaPair) -> Pair:
    addresses = kafka_pair.source.bootstrap_servers, kafka_pair.target.bootstrap_servers
    transport = Transport(*addresses)
    # Brokers that others use are not waited for until they are idle.
    return Pair(Topics(addresses[0]), Topics(addresses[1]), processes=(), clear=transport, tls=transport)


def _loaded(pair: Pair, workload: Workload) -> Workload:
    """The workload on the source, under a name of its own."""
    named = replace(workload, name=unique_name("limit"))
    pair.source.create(named.name, _PARTITIONS)
    load(pair.source.bootstrap_servers, named, _PARTITIONS)
    return named


def test_what_is_produced_alone_equals_the_source_and_differences_are_noticed(
    kafka_pair: KafkaPair, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = _loaded(pair, _FULL.scaled(3_000))
    topic = f"{workload.name}-copy"
    pair.target.create(topic, _PARTITIONS)

    with LimitProcesses(pair, workload, partitions=_PARTITIONS, processes=2) as measuring:
        seconds, cpu_seconds = measuring.append(PRODUCE_WAYS[0], topic)

    found = compare(pair.source, pair.target, workload, topic, _PARTITIONS)
    assert (found.target_records, found.differing) == (workload.records, 0)
    assert seconds > 0
    assert cpu_seconds > 0

    produce(kafka_pair.target, topic, records(1))
    found = compare(pair.source, pair.target, workload, topic, _PARTITIONS)
    assert found.target_records == workload.records + 1
    delete_records(kafka_pair.target, topic, before=1)
    monkeypatch.setattr(samples, "_TIMEOUT", 2.0)
    with pytest.raises(BenchError, match="did not come in time: 0 from 0"):
        compare(pair.source, pair.target, workload, topic, _PARTITIONS)


def test_the_client_loop_copies_everything_with_its_partitions_and_times(pair: Pair, tmp_path: Path) -> None:
    workload = _loaded(pair, _FIVE.scaled(5_000))
    setup = CopySetup(
        copier=Copier.CLIENT_LOOP,
        round=1,
        topic=workload.name,
        source_bootstrap=pair.clear.source_bootstrap,
        target_bootstrap=pair.clear.target_bootstrap,
        tasks=2,
    )

    measurement = measure_client_loop(pair, Copy(workload, setup, _PARTITIONS, tmp_path))

    assert measurement.complete
    assert measurement.window.records == 5_000
    assert measurement.window.cpu_seconds > 0
