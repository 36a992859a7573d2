"""A broker that goes away in the middle of a verification and comes back: the comparison goes on where it was."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.verify.findings import Verdict
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.features.verify.run import VerifyOptions, verify_flow
from tests.support.flows import make_flow
from tests.support.kafka import create_topic, leaders, produce, records

_RECORDS = 8_000


def test_a_broker_restarts_and_its_partitions_get_another_leader(
    kafka_jars: Path, cluster_folder: Path, topic_name: str, tmp_path: Path
) -> None:
    with KafkaCluster("verified", directory=cluster_folder, brokers=2, jars=kafka_jars) as cluster:
        create_topic(cluster, topic_name, partitions=2)
        for partition in range(2):
            produce(cluster, topic_name, records(_RECORDS, size=2_000, partition=partition))
        servers = cluster.bootstrap_servers
        settings = {"A->B.replication.factor": "2", "mirror.retry.max.seconds": "90"}
        flow = make_flow(tmp_path, servers, servers, topics=topic_name, settings=settings)
        assert flow.run().records == 2 * _RECORDS
        remote = f"A.{topic_name}"

        def homes() -> set[int]:
            return {home for topic in (topic_name, remote) for home in leaders(cluster, topic, partitions=2).values()}

        assert 2 in homes()
        started: list[Future[object]] = []

        with ThreadPoolExecutor(max_workers=1) as pool:

            def fault(_: int) -> None:
                if not started:
                    # It hands its partitions to the other broker, and answers that are on their way are lost.
                    cluster.stop_broker(2)
                    started.append(pool.submit(cluster.start))

            report = verify_flow(
                flow.config,
                ledger=flow.ledger,
                make_runner=lambda _: run_locally(1, fault),
                options=VerifyOptions(tasks_max=1),
            )
            started[0].result()

        assert homes() == {1}
        assert [verdict.verdict for verdict in report.verdicts] == [Verdict.EQUAL] * 2, report.to_dict()
        assert report.records == 2 * _RECORDS
