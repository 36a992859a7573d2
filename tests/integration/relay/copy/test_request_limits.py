"""A target that closes connections over large requests (`socket.request.max.bytes`), and `max.request.size`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.errors import RecordTooLargeError
from tests.support.clusters import FAST_HOUSEKEEPING, KafkaPair, start_together
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, consume, create_topic, produce, values
from tests.support.names import unique_name

LIMIT = 200_000
TOO_LARGE = 7


@pytest.fixture(scope="module")
def pair(kafka_pair: KafkaPair, brokers_folder: Path, kafka_jars: Path) -> Iterator[KafkaPair]:
    """The shared source, and a target that takes no request above the limit."""
    overrides = {**FAST_HOUSEKEEPING, "socket.request.max.bytes": str(LIMIT)}
    target = KafkaCluster(
        "narrow", directory=brokers_folder / unique_name("narrow"), jars=kafka_jars, overrides=overrides
    )
    with start_together(target):
        yield KafkaPair(kafka_pair.source, target)


def written(pair: KafkaPair, topic: str) -> list[Record]:
    """60 records of 10 kB, and among them one above the target's limit; nothing of it can be compressed."""
    create_topic(pair.source, topic)
    random = Random(7)
    sizes = [10_000] * 60
    sizes[TOO_LARGE] = LIMIT + 10_000
    return produce(
        pair.source, topic, [Record(value=random.randbytes(size)) for size in sizes], message_max_bytes=10**6
    )


def flow(folder: Path, pair: KafkaPair, topic: str, policy: str, **settings: str) -> Flow:
    own = {"mirror.poison.policy": policy, "mirror.quarantine.topic": f"{topic}-kept"}
    return pair_flow(folder, pair, topics=topic, settings={**own, **settings})


@pytest.mark.parametrize("size", [None, LIMIT - 2_000])
def test_a_record_above_the_limit_is_named(pair: KafkaPair, topic_name: str, tmp_path: Path, size: int | None) -> None:
    records = written(pair, topic_name)
    settings = {} if size is None else {"B.producer.max.request.size": str(size)}

    report = flow(tmp_path, pair, topic_name, "fail", **settings).run()

    (error,) = report.errors
    assert isinstance(error, RecordTooLargeError), error
    assert error.where.offset == TOO_LARGE
    assert values(consume(pair.target, f"A.{topic_name}")) == values(records[:TOO_LARGE])
    assert ("socket.request.max.bytes" if size is None else "max.request.size") in error.action


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
@pytest.mark.parametrize("size", [None, LIMIT - 2_000])
def test_all_others_are_copied_by_a_policy(
    pair: KafkaPair, topic_name: str, tmp_path: Path, size: int | None, policy: str
) -> None:
    records = written(pair, topic_name)
    settings = {} if size is None else {"B.producer.max.request.size": str(size)}

    report = flow(tmp_path, pair, topic_name, policy, **settings).run()

    assert report.errors == ()
    assert [each.first_offset for result in report.results for each in result.poison] == [TOO_LARGE]
    expected = [record for record in records if record.offset != TOO_LARGE]
    assert values(consume(pair.target, f"A.{topic_name}")) == values(expected)
    if policy == "quarantine":
        kept = consume(pair.target, f"{topic_name}-kept")
        assert b"".join(each.value or b"" for each in kept).count(records[TOO_LARGE].value or b"?") == 1


def test_a_topic_may_take_more_than_a_request_may_have(pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(pair.source, topic_name)
    random = Random(8)
    records = produce(pair.source, topic_name, [Record(value=random.randbytes(1_000)) for _ in range(3_000)])

    report = flow(tmp_path, pair, topic_name, "fail").run()

    assert report.errors == ()
    assert values(consume(pair.target, f"A.{topic_name}")) == values(records)
