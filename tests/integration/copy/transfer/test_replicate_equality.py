"""A run makes the target equal to the source; a second one has nothing to do; a third copies only what is new."""

from __future__ import annotations

import sys

import pytest

from tests.support.kafka import consume, records
from tests.support.mirrored_topic import MirroredTopic


def test_all_records_arrive_equal_with_every_codec(mirrored: MirroredTopic) -> None:
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    mirrored.create(partitions=len(codecs))
    for partition, codec in enumerate(codecs):
        mirrored.produce(records(2_000, size=300, partition=partition), compression_type=codec)
    flow = mirrored.flow({"A->B.tasks.max": "2"})

    report = flow.run()

    assert report.errors == ()
    assert report.records == 2_000 * len(codecs)
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)


def test_records_arrive_on_asyncios_own_loop_too(mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop comes with the extra `spark`; a Spark of somebody else may be without it."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    mirrored.create([*records(2_000), *records(2_000, partition=1)], partitions=2)

    assert mirrored.flow().run().errors == ()

    assert mirrored.copied() == consume(mirrored.source, mirrored.name)


def test_a_second_run_copies_nothing_and_a_third_only_what_is_new(mirrored: MirroredTopic) -> None:
    mirrored.create([*records(500), *records(300, partition=1)], partitions=2)
    flow = mirrored.flow()

    assert flow.run().records == 800

    second = flow.run()
    assert (second.records, second.errors, second.idle) == (0, (), 2)

    mirrored.produce(records(70, partition=1, start=300))
    assert flow.run().records == 70
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)
