"""A few records of a topic, as a preview takes them from real brokers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mirror_lib.config import FlowConfig
from mirror_lib.errors import ConfigurationError, TopicMissingError
from mirror_lib.relay.preview.sample import MOST_BYTES, Sample, SampleStart, read_sample
from mirror_lib.transform.preview.preview import RecordPlace
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, create_topic, delete_records, produce, records, transaction
from tests.support.own_process import MEBIBYTE, measured

#: Records of 4 MiB: several times as many as a sample may have.
_LARGE = 80


@pytest.fixture
def flow(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> Flow:
    return pair_flow(tmp_path, kafka_pair, topics=topic_name)


def sampled(flow: Flow, topic: str, start: str, most: int, partition: int | None = None) -> Sample:
    return read_sample(flow.config, topic, SampleStart.parse(start), most=most, partition=partition)


def places(sample: Sample) -> list[tuple[int, int]]:
    return [tuple(each.place) for each in sample.records()]


def offsets(partition: int, numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(partition, number) for number in numbers]


def test_the_first_and_the_last_of_a_partition(flow: Flow, kafka_pair: KafkaPair, topic_name: str) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(100))

    assert places(sampled(flow, topic_name, "earliest", 3)) == offsets(0, range(3))
    assert places(sampled(flow, topic_name, "latest", 3)) == offsets(0, range(97, 100))
    assert places(sampled(flow, topic_name, "40", 3)) == offsets(0, range(40, 43))
    assert places(sampled(flow, topic_name, "98", 30)) == offsets(0, range(98, 100))


def test_a_record_is_what_was_written(flow: Flow, kafka_pair: KafkaPair, topic_name: str) -> None:
    create_topic(kafka_pair.source, topic_name)
    (given,) = records(1)
    produce(kafka_pair.source, topic_name, [given, Record(key=b"gone", timestamp_ms=5)])

    first, tombstone = sampled(flow, topic_name, "earliest", 10).records()

    assert (first.key, first.value, first.headers, first.timestamp) == (
        given.key,
        given.value,
        given.headers,
        given.timestamp_ms,
    )
    assert (tombstone.key, tombstone.value, tombstone.headers, tombstone.timestamp) == (b"gone", None, (), 5)


def test_from_a_time_on(flow: Flow, kafka_pair: KafkaPair, topic_name: str) -> None:
    create_topic(kafka_pair.source, topic_name)
    # A record each second of the year 2024.
    produce(kafka_pair.source, topic_name, records(100))

    assert places(sampled(flow, topic_name, "2024-01-01T00:00:59.5Z", 2)) == offsets(0, [60, 61])
    assert places(sampled(flow, topic_name, "2023-01-01", 1)) == offsets(0, [0])
    assert places(sampled(flow, topic_name, "2025-01-01", 1)) == [], "all are older"


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_partitions_give_as_evenly_as_they_can(flow: Flow, kafka_pair: KafkaPair, topic_name: str, start: str) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=4)
    # The last one is empty.
    written = [*records(100), *records(2, partition=1), *records(100, partition=2)]
    produce(kafka_pair.source, topic_name, written)

    found = places(sampled(flow, topic_name, start, 12))

    by_partition = [[offset for partition, offset in found if partition == number] for number in range(4)]
    assert [len(each) for each in by_partition] == [5, 2, 5, 0]
    assert by_partition[2] == (list(range(5)) if start == "earliest" else list(range(95, 100)))
    assert len(places(sampled(flow, topic_name, start, 2))) == 2, "fewer than there are partitions"
    assert len(places(sampled(flow, topic_name, start, 1000))) == 202, "all that there is"
    assert {partition for partition, _ in places(sampled(flow, topic_name, start, 12, partition=2))} == {2}


def test_where_the_log_begins_later(flow: Flow, kafka_pair: KafkaPair, topic_name: str) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(100))
    delete_records(kafka_pair.source, topic_name, before=90)

    assert places(sampled(flow, topic_name, "earliest", 2)) == offsets(0, [90, 91])
    assert places(sampled(flow, topic_name, "latest", 50)) == offsets(0, range(90, 100))
    with pytest.raises(ConfigurationError, match="does not contain offset 89"):
        sampled(flow, topic_name, "89", 1)
    with pytest.raises(ConfigurationError, match="does not contain offset 100"):
        sampled(flow, topic_name, "100", 1)


def test_what_a_reader_of_the_flow_does_not_see_is_not_shown(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(3))
    transaction(kafka_pair.source, topic_name, [b"aborted"] * 40, commit=False)
    transaction(kafka_pair.source, topic_name, [b"committed"] * 2, commit=True)
    settings = {"A.consumer.isolation.level": "read_committed"}
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    # Offset 43 is a marker.
    assert places(sampled(flow, topic_name, "latest", 3)) == offsets(0, [2, 44, 45])
    assert places(sampled(flow, topic_name, "earliest", 4)) == offsets(0, [0, 1, 2, 44])


def test_a_record_that_cannot_be_a_row_is_told_and_hides_no_others(
    flow: Flow, kafka_pair: KafkaPair, topic_name: str
) -> None:
    # Later than Spark's microseconds can say, which brokers refuse unless they are told otherwise.
    create_topic(kafka_pair.source, topic_name, configs={"message.timestamp.after.max.ms": str(2**63 - 1)})
    times = [1_000, 2**62, 2**62, 1_000, 1_000, 1_000]
    produce(kafka_pair.source, topic_name, [Record(value=b"v", timestamp_ms=time) for time in times])

    found = sampled(flow, topic_name, "earliest", 5)

    assert places(found) == offsets(0, [0, 3, 4])
    assert list(found.unreadable) == [RecordPlace(0, 1), RecordPlace(0, 2)]


def test_an_empty_topic_gives_nothing(flow: Flow, kafka_pair: KafkaPair, topic_name: str) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=3)

    assert places(sampled(flow, topic_name, "earliest", 5)) == []
    assert places(sampled(flow, topic_name, "latest", 5)) == []


def test_what_is_not_there_is_told(flow: Flow, kafka_pair: KafkaPair, topic_name: str) -> None:
    with pytest.raises(TopicMissingError):
        sampled(flow, topic_name, "earliest", 5)
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, records(5))

    with pytest.raises(ConfigurationError, match="no partition 7"):
        sampled(flow, topic_name, "earliest", 5, partition=7)
    with pytest.raises(ConfigurationError, match="needs a partition") as refused:
        sampled(flow, topic_name, "3", 5)
    assert "--partition" in refused.value.action
    assert places(sampled(flow, topic_name, "3", 5, partition=0)) == offsets(0, [3, 4])


def sampled_places(config: FlowConfig, topic: str, start: str) -> tuple[list[tuple[int, int]], bool]:
    sample = read_sample(config, topic, SampleStart.parse(start), most=_LARGE)
    return places(sample), sample.is_cut


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_sample_of_records_that_become_large_has_fewer_of_them(
    flow: Flow, kafka_pair: KafkaPair, topic_name: str, start: str
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    for partition in range(2):
        at_once = [Record(value=bytes(4 * MEBIBYTE), partition=partition)] * (_LARGE // 2)
        produce(kafka_pair.source, topic_name, at_once, compression_type="zstd", message_max_bytes=10**8)

    found = measured(sampled_places, flow.config, topic_name, start)

    numbers, is_cut = found.result
    assert is_cut
    # Four records of 4 MiB are a little more than half of the limit.
    taken = range(3) if start == "earliest" else range(_LARGE // 2 - 3, _LARGE // 2)
    assert numbers == [*offsets(0, taken), *offsets(1, taken)]
    # Rows, one table of them, and what is read at the moment.
    assert found.grown < 5 * MOST_BYTES
