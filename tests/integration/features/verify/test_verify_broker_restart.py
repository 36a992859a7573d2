"""A broker that goes away in the middle of a comparison and comes back: it continues where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mirror_lib.features.audit.clusters import clusters_of_flow
from mirror_lib.features.audit.plan import AuditOptions
from mirror_lib.features.audit.run import audit
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.verify.findings import Verdict
from mirror_lib.features.verify.raw.local import run_locally
from tests.support.flows import Flow, make_flow
from tests.support.kafka import create_topic, leaders, produce, records
from tests.support.names import unique_name
from tests.support.verifying import verify

_RECORDS = 8_000
_TOPIC = "restarted"


@dataclass(frozen=True)
class Copied:
    """A topic and its copy, both on one cluster of two brokers."""

    cluster: KafkaCluster
    flow: Flow

    def homes(self) -> set[int]:
        """The brokers that lead partitions of either topic."""
        topics = _TOPIC, f"A.{_TOPIC}"
        return {home for each in topics for home in leaders(self.cluster, each, partitions=2).values()}

    @contextmanager
    def restart(self, node: int) -> Iterator[Callable[[int], None]]:
        """Yield what stops a broker when something is read for the first time, and starts it again meanwhile."""
        started: list[Future[object]] = []
        with ThreadPoolExecutor(max_workers=1) as pool:

            def fault(_: int) -> None:
                if not started:
                    # Responses that are on their way are lost.
                    self.cluster.stop_broker(node)
                    started.append(pool.submit(self.cluster.start))

            yield fault
            started[0].result()


@pytest.fixture(scope="module")
def copied(kafka_jars: Path, brokers_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copied]:
    folder = brokers_folder / unique_name("restarted")
    with KafkaCluster("verified", directory=folder, brokers=2, jars=kafka_jars) as cluster:
        create_topic(cluster, _TOPIC, partitions=2)
        for partition in range(2):
            produce(cluster, _TOPIC, records(_RECORDS, size=2_000, partition=partition))
        servers = cluster.bootstrap_servers
        settings = {"A->B.replication.factor": "2", "mirror.retry.max.seconds": "90"}
        flow = make_flow(tmp_path_factory.mktemp("flow"), servers, servers, topics=_TOPIC, settings=settings)
        assert flow.run().records == 2 * _RECORDS
        yield Copied(cluster, flow)


def test_a_broker_restarts_and_its_partitions_get_another_leader(copied: Copied) -> None:
    assert 2 in copied.homes()
    with copied.restart(2) as fault:
        report = verify(copied.flow, make_runner=lambda _: run_locally(1, fault), tasks_max=1)

    assert copied.homes() == {1}
    assert [verdict.verdict for verdict in report.verdicts] == [Verdict.EQUAL] * 2, report.to_dict()
    assert report.records == 2 * _RECORDS


def test_an_audit_waits_for_a_cluster_that_goes_away_and_comes_back(copied: Copied) -> None:
    source, target, rules = clusters_of_flow(copied.flow.path, "A->B")
    options = AuditOptions(lambda topic: topic == _TOPIC, rules=rules, wait_seconds=0)
    # The only controller: nothing leads while it is away.
    with copied.restart(1) as fault:
        report = audit(source, target, options, on_read=fault)

    assert (report.exit_code(), report.equal) == (0, 2 * _RECORDS), report.to_dict()
