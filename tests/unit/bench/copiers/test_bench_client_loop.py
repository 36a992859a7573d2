"""How the client loop is configured and shared out."""

from bench.copiers.client_loop import shares
from bench.copiers.settings import Copier, CopySetup
from bench.workloads.workload import WORKLOADS


def _setup(tasks: int = 2) -> CopySetup:
    return CopySetup(Copier.CLIENT_LOOP, 1, "200b-five", "localhost:1", "localhost:2", tasks)


def test_partitions_are_split_over_as_many_processes_as_the_others_have() -> None:
    workload = WORKLOADS[4].scaled(82)

    parts = shares(_setup(), workload, 8)

    assert [dict(part.ends) for part in parts] == [{0: 11, 2: 10, 4: 10, 6: 10}, {1: 11, 3: 10, 5: 10, 7: 10}]
    assert {(part.topic, part.target_topic) for part in parts} == {("200b-five", "clientloop1.200b-five")}


def test_clients_are_tuned_and_the_producer_is_as_safe_as_ours() -> None:
    (part,) = shares(_setup(tasks=1), WORKLOADS[4], 8)

    assert part.consumer["bootstrap.servers"] == "localhost:1"
    assert part.producer["bootstrap.servers"] == "localhost:2"
    assert part.producer["enable.idempotence"] is True
    assert (part.producer["linger.ms"], part.producer["batch.size"]) == (50, 524_288)


def test_the_target_is_compressed_as_the_source_is() -> None:
    codecs = {each.name: shares(_setup(), each, 8)[0].producer["compression.type"] for each in WORKLOADS[3:]}

    assert codecs == {"200b-single": "none", "200b-five": "lz4"}
