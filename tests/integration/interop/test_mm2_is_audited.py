"""MirrorMaker 2's copies: right where it is right, its repeats as an independent consumer counts them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mirror_lib.features.audit.clusters import connection_to
from mirror_lib.features.audit.findings import Kind
from mirror_lib.features.audit.model import AuditReport, Verdict
from mirror_lib.features.audit.plan import AuditOptions
from mirror_lib.features.audit.run import audit
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, consume, create_topic, produce, records
from tests.support.mirror_maker import SharedFlow, shared_flow, wait_until
from tools.testbed.mm2 import MirrorMaker

_PARTITIONS = 2


def audited(shared: SharedFlow, topic: str) -> AuditReport:
    """An audit of the topic of a test."""
    source, target = (
        connection_to(side, cluster.bootstrap_servers, None)
        for side, cluster in (("source", shared.pair.source), ("target", shared.pair.target))
    )
    return audit(source, target, AuditOptions(selected=lambda name: name == topic, wait_seconds=30))


@pytest.mark.timeout(600)
def test_given_mirror_maker_killed_while_it_copies_then_its_repeats_are_all_that_is_found(
    interop_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    # Positions are stored rarely, so that a killed process repeats much.
    shared = shared_flow(tmp_path, interop_pair, topics=topic_name, flush_interval_ms=60_000)
    remote = f"{shared.source_alias}.{topic_name}"
    create_topic(interop_pair.source, topic_name, partitions=_PARTITIONS)
    written = 0

    def write(count: int) -> None:
        nonlocal written
        for partition in range(_PARTITIONS):
            produce(interop_pair.source, topic_name, records(count, partition=partition, start=written))
        written += count

    def copied() -> list[Record]:
        return consume(interop_pair.target, remote) if remote in shared.topics_on_target() else []

    def has_copied(least: int) -> bool:
        found = Counter(each.partition for each in copied())
        return all(found[each] >= least for each in range(_PARTITIONS))

    write(3_000)
    with MirrorMaker(tmp_path / "mm2") as mirror_maker:
        mirror_maker.start(shared.properties)
        wait_until(lambda: has_copied(3_000), mirror_maker, "the copy")
        assert audited(shared, topic_name).verdict is Verdict.EQUAL
        write(2_000)
        wait_until(lambda: has_copied(3_500), mirror_maker, "more of the copy")
        mirror_maker.kill()
    with MirrorMaker(tmp_path / "again") as mirror_maker:
        mirror_maker.start(shared.properties)
        write(1_000)

        def has_the_last() -> bool:
            return sum((each.value or b"").startswith(b"value-%d-" % (written - 1)) for each in copied()) == _PARTITIONS

        wait_until(has_the_last, mirror_maker, "the rest of the copy")

    report = audited(shared, topic_name)

    copies = Counter((each.partition, each.value) for each in copied())
    repeats = sum(count - 1 for count in copies.values())
    assert repeats > 0
    assert (dict(report.counts), report.equal) == ({Kind.REPEATED: repeats}, _PARTITIONS * written)
