"""A target that closes connections over large requests (`socket.request.max.bytes`), and `max.request.size`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from mirror_lib.errors import RecordTooLargeError
from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.clusters import FAST_HOUSEKEEPING, start_together
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, values
from tests.support.mirrored_topic import MirroredTopic
from tests.support.names import unique_name

LIMIT = 200_000
TOO_LARGE = 7


@pytest.fixture(scope="module")
def narrow(brokers_folder: Path, kafka_jars: Path) -> Iterator[KafkaCluster]:
    """A target that takes no request above the limit."""
    overrides = {**FAST_HOUSEKEEPING, "socket.request.max.bytes": str(LIMIT)}
    target = KafkaCluster(
        "narrow", directory=brokers_folder / unique_name("narrow"), jars=kafka_jars, overrides=overrides
    )
    with start_together(target):
        yield target


@pytest.fixture
def mirrored(mirrored: MirroredTopic, narrow: KafkaCluster) -> MirroredTopic:
    return mirrored.between(target=narrow)


def written(mirrored: MirroredTopic) -> list[Record]:
    """60 records of 10 kB, and among them one above the target's limit; nothing of it can be compressed."""
    mirrored.create()
    random = Random(7)
    sizes = [10_000] * 60
    sizes[TOO_LARGE] = LIMIT + 10_000
    return mirrored.produce([Record(value=random.randbytes(size)) for size in sizes], message_max_bytes=10**6)


def flow(mirrored: MirroredTopic, policy: str, **settings: str) -> Flow:
    own = {"mirror.poison.policy": policy, "mirror.quarantine.topic": f"{mirrored.name}-kept"}
    return mirrored.flow({**own, **settings})


@pytest.mark.parametrize("size", [None, LIMIT - 2_000])
def test_a_record_above_the_limit_is_named(mirrored: MirroredTopic, size: int | None) -> None:
    records = written(mirrored)
    settings = {} if size is None else {"B.producer.max.request.size": str(size)}

    report = flow(mirrored, "fail", **settings).run()

    (error,) = report.errors
    assert isinstance(error, RecordTooLargeError), error
    assert error.where.offset == TOO_LARGE
    assert values(mirrored.copied()) == values(records[:TOO_LARGE])
    assert ("socket.request.max.bytes" if size is None else "max.request.size") in error.action


@pytest.mark.parametrize("size", [None, LIMIT - 2_000])
def test_all_others_are_copied_by_a_policy(mirrored: MirroredTopic, size: int | None) -> None:
    records = written(mirrored)
    settings = {} if size is None else {"B.producer.max.request.size": str(size)}

    report = flow(mirrored, "quarantine", **settings).run()

    assert report.errors == ()
    assert [each.first_offset for result in report.results for each in result.poison] == [TOO_LARGE]
    expected = [record for record in records if record.offset != TOO_LARGE]
    assert values(mirrored.copied()) == values(expected)
    kept = consume(mirrored.target, f"{mirrored.name}-kept")
    assert b"".join(each.value or b"" for each in kept).count(records[TOO_LARGE].value or b"?") == 1


def test_a_topic_may_take_more_than_a_request_may_have(mirrored: MirroredTopic) -> None:
    mirrored.create()
    random = Random(8)
    records = mirrored.produce([Record(value=random.randbytes(1_000)) for _ in range(3_000)])

    report = flow(mirrored, "fail").run()

    assert report.errors == ()
    assert values(mirrored.copied()) == values(records)
