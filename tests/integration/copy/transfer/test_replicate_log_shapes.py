"""What brokers keep in their logs besides plain records: markers, aborted records, holes, broker times, merges."""

from __future__ import annotations

import pytest

from tests.support.kafka import (
    Record,
    consume,
    create_topic,
    delete_topic,
    produce,
    records,
    transaction,
    values,
    watermarks,
)
from tests.support.mirrored_topic import MirroredTopic


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions_arrive_as_their_isolation_level_shows_them(mirrored: MirroredTopic, isolation: str) -> None:
    mirrored.create()
    transaction(mirrored.source, mirrored.name, [b"a", b"b"], commit=True)
    transaction(mirrored.source, mirrored.name, [b"aborted"], commit=False)
    mirrored.produce([Record(value=b"plain")])
    transaction(mirrored.source, mirrored.name, [b"c"], commit=True)
    flow = mirrored.flow({"A.consumer.isolation.level": isolation})

    report = flow.run()

    assert report.errors == ()
    shown = consume(mirrored.source, mirrored.name, isolation=isolation)
    assert (b"aborted" in values(shown)) is (isolation == "read_uncommitted")
    # On the target nothing is part of a transaction any more: every reader sees the same, without holes.
    copied = mirrored.copied()
    assert values(copied) == values(shown)
    assert [record.offset for record in copied] == list(range(len(copied)))
    assert flow.run().records == 0


def test_two_topics_are_merged_into_one(mirrored: MirroredTopic) -> None:
    first, second, merged = f"{mirrored.name}-1", f"{mirrored.name}-2", f"{mirrored.name}-merged"
    for name in (first, second):
        create_topic(mirrored.source, name, partitions=2)
    settings = {"mirror.topics.rename": f"{first}:{merged}, {second}:{merged}", "mirror.topics.merge.enabled": "true"}
    flow = mirrored.flow(topics=f"{first}, {second}", settings=settings)
    for start in (0, 1_000):
        one = produce(mirrored.source, first, records(600, start=start))
        two = produce(mirrored.source, second, records(400, start=start + 600))

        report = flow.run()

        assert report.errors == ()
        assert report.records == 1_000
        copied = consume(mirrored.target, merged)[start:]
        for written in (one, two):
            wanted = values(written)
            assert [value for value in values(copied) if value in set(wanted)] == wanted
    assert watermarks(mirrored.target, merged)[1] == 2_000


def test_a_merge_can_be_run_topic_by_topic(mirrored: MirroredTopic) -> None:
    first, second, merged = f"{mirrored.name}-1", f"{mirrored.name}-2", f"{mirrored.name}-merged"
    for name in (first, second):
        create_topic(mirrored.source, name)
        produce(mirrored.source, name, records(10))
    settings = {"mirror.topics.rename": f"{first}:{merged}, {second}:{merged}", "mirror.topics.merge.enabled": "true"}
    flow = mirrored.flow(topics=f"{first}, {second}", settings=settings)
    assert flow.run().records == 20

    for name in (first, second, first):
        produce(mirrored.source, name, records(5))
        report = flow.run(topics=(name,))
        assert report.errors == ()
        assert report.records == 5

    delete_topic(mirrored.source, second)
    produce(mirrored.source, first, records(5))
    assert flow.run().records == 5
    assert watermarks(mirrored.target, merged)[1] == 40
