"""A few records of a topic, as a preview takes them from real brokers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import ConfigurationError, TopicMissingError
from mirror_lib.features.transforms.preview.preview import RecordPlace
from mirror_lib.features.transforms.sampling.sample import MOST_BYTES, Sample, SampleStart, read_sample
from tests.support.flows import Flow
from tests.support.kafka import Record, delete_records, records, transaction
from tests.support.mirrored_topic import MirroredTopic
from tests.support.own_process import MEBIBYTE, measured

#: Records of 4 MiB: several times as many as a sample may have.
_LARGE = 80


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    return mirrored.flow()


def sampled(flow: Flow, topic: str, start: str, most: int, partition: int | None = None) -> Sample:
    return read_sample(flow.config, topic, SampleStart.parse(start), most=most, partition=partition)


def places(sample: Sample) -> list[tuple[int, int]]:
    return [tuple(each.place) for each in sample.records()]


def offsets(partition: int, numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(partition, number) for number in numbers]


def test_the_first_and_the_last_of_a_partition(flow: Flow, mirrored: MirroredTopic) -> None:
    mirrored.create(records(100))

    assert places(sampled(flow, mirrored.name, "earliest", 3)) == offsets(0, range(3))
    assert places(sampled(flow, mirrored.name, "latest", 3)) == offsets(0, range(97, 100))
    assert places(sampled(flow, mirrored.name, "40", 3)) == offsets(0, range(40, 43))
    assert places(sampled(flow, mirrored.name, "98", 30)) == offsets(0, range(98, 100))


def test_from_a_time_on(flow: Flow, mirrored: MirroredTopic) -> None:
    # A record each second of the year 2024.
    mirrored.create(records(100))

    assert places(sampled(flow, mirrored.name, "2024-01-01T00:00:59.5Z", 2)) == offsets(0, [60, 61])
    assert places(sampled(flow, mirrored.name, "2023-01-01", 1)) == offsets(0, [0])
    assert places(sampled(flow, mirrored.name, "2025-01-01", 1)) == [], "all are older"


def test_where_the_log_begins_later(flow: Flow, mirrored: MirroredTopic) -> None:
    mirrored.create(records(100))
    delete_records(mirrored.source, mirrored.name, before=90)

    assert places(sampled(flow, mirrored.name, "earliest", 2)) == offsets(0, [90, 91])
    assert places(sampled(flow, mirrored.name, "latest", 50)) == offsets(0, range(90, 100))
    with pytest.raises(ConfigurationError, match="does not contain offset 89"):
        sampled(flow, mirrored.name, "89", 1)
    with pytest.raises(ConfigurationError, match="does not contain offset 100"):
        sampled(flow, mirrored.name, "100", 1)


def test_what_a_reader_of_the_flow_does_not_see_is_not_shown(mirrored: MirroredTopic) -> None:
    mirrored.create(records(3))
    transaction(mirrored.source, mirrored.name, [b"aborted"] * 40, commit=False)
    transaction(mirrored.source, mirrored.name, [b"committed"] * 2, commit=True)
    settings = {"A.consumer.isolation.level": "read_committed"}
    flow = mirrored.flow(settings)

    # Offset 43 is a marker.
    assert places(sampled(flow, mirrored.name, "latest", 3)) == offsets(0, [2, 44, 45])
    assert places(sampled(flow, mirrored.name, "earliest", 4)) == offsets(0, [0, 1, 2, 44])


def test_a_record_that_cannot_be_a_row_is_told_and_hides_no_others(flow: Flow, mirrored: MirroredTopic) -> None:
    # Later than Spark's microseconds can say, which brokers refuse unless they are told otherwise.
    mirrored.create(configs={"message.timestamp.after.max.ms": str(2**63 - 1)})
    times = [1_000, 2**62, 2**62, 1_000, 1_000, 1_000]
    mirrored.produce([Record(value=b"v", timestamp_ms=time) for time in times])

    found = sampled(flow, mirrored.name, "earliest", 5)

    assert places(found) == offsets(0, [0, 3, 4])
    assert list(found.unreadable) == [RecordPlace(0, 1), RecordPlace(0, 2)]


def test_an_empty_topic_gives_nothing(flow: Flow, mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=3)

    assert places(sampled(flow, mirrored.name, "earliest", 5)) == []
    assert places(sampled(flow, mirrored.name, "latest", 5)) == []


def test_what_is_not_there_is_told(flow: Flow, mirrored: MirroredTopic) -> None:
    with pytest.raises(TopicMissingError):
        sampled(flow, mirrored.name, "earliest", 5)
    mirrored.create(records(5), partitions=2)

    with pytest.raises(ConfigurationError, match="no partition 7"):
        sampled(flow, mirrored.name, "earliest", 5, partition=7)
    with pytest.raises(ConfigurationError, match="needs a partition") as refused:
        sampled(flow, mirrored.name, "3", 5)
    assert "--partition" in refused.value.action
    assert places(sampled(flow, mirrored.name, "3", 5, partition=0)) == offsets(0, [3, 4])


def sampled_places(config: FlowConfig, topic: str, start: str) -> tuple[list[tuple[int, int]], bool]:
    sample = read_sample(config, topic, SampleStart.parse(start), most=_LARGE)
    return places(sample), sample.is_cut


def test_a_sample_of_records_that_become_large_has_fewer_of_them(flow: Flow, mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=2)
    for partition in range(2):
        at_once = [Record(value=bytes(4 * MEBIBYTE), partition=partition)] * (_LARGE // 2)
        mirrored.produce(at_once, compression_type="zstd", message_max_bytes=10**8)

    # Four records of 4 MiB are a little more than half of the limit.
    for start, taken in (("earliest", range(3)), ("latest", range(_LARGE // 2 - 3, _LARGE // 2))):
        found = measured(sampled_places, flow.config, mirrored.name, start)

        numbers, is_cut = found.result
        assert is_cut, start
        assert numbers == [*offsets(0, taken), *offsets(1, taken)], start
        # Rows, one table of them, and what is read at the moment.
        assert found.grown < 5 * MOST_BYTES, start
