"""MirrorMaker 2 itself runs beside our brokers, so that we can be compared with it and take over from it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mirror_lib.dev.processes import ProcessError
from testbed.mm2 import MirrorMaker
from tests.support.clusters import KafkaPair
from tests.support.kafka import admin, consume, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.names import unique_name


def properties(mirrored: MirroredTopic, alias: str) -> str:
    factors = "".join(
        f"{name}replication.factor = 1\n"
        for name in (
            *("", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic."),
            *("offset.storage.", "status.storage.", "config.storage."),
        )
    )
    return (
        f"clusters = {alias}, target\n"
        f"{alias}.bootstrap.servers = {mirrored.source.bootstrap_servers}\n"
        f"target.bootstrap.servers = {mirrored.target.bootstrap_servers}\n"
        f"{alias}->target.enabled = true\n"
        f"{alias}->target.topics = {mirrored.name}\n"
        "emit.heartbeats.enabled = false\n"
        "emit.checkpoints.enabled = false\n"
        f"{factors}"
    )


def test_given_mirror_maker_when_a_record_is_written_then_it_copies_it(mirrored: MirroredTopic) -> None:
    alias = unique_name("src")
    written = mirrored.create(records(3))
    copied = f"{alias}.{mirrored.name}"

    with MirrorMaker(mirrored.folder / "mm2") as mirror_maker:
        mirror_maker.start(properties(mirrored, alias)).wait_started()
        _wait_for(copied, mirrored.pair, mirror_maker)
        assert consume(mirrored.target, copied) == written
        assert mirror_maker.cpu_seconds > 0
    assert mirror_maker.process is None


def test_given_a_file_that_mirror_maker_refuses_when_started_then_the_error_shows_its_log(tmp_path: Path) -> None:
    mirror_maker = MirrorMaker(tmp_path / "mm2")

    with pytest.raises(ProcessError, match=r"(?s)ended while starting.*ConfigException"), mirror_maker:
        mirror_maker.start("clusters = A, B\n").wait_started()


def _wait_for(topic: str, pair: KafkaPair, mirror_maker: MirrorMaker) -> None:
    deadline = time.monotonic() + 120
    while topic not in admin(pair.target).list_topics(timeout=10).topics or len(consume(pair.target, topic)) < 3:
        assert time.monotonic() < deadline, mirror_maker.log_tail(40)
        time.sleep(0.5)
