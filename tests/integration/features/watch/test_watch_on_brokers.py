"""The poller that starts runs on new records, with real brokers."""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.watch import poller as polling
from mirror_lib.features.watch.poller import FilePoller, Start
from tests.support.console import Console
from tests.support.flows import Flow, make_flow
from tests.support.kafka import create_topic, delete_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

_SECONDS = 20.0
_WATCHED = {"A->B.mirror.schedule": "on-new-records", "A->B.mirror.schedule.poll": "1s"}


class Watch:
    """A running poller, and what it says."""

    def __init__(self, path: Path, is_watched: Callable[[str], bool] = lambda _: True) -> None:
        self._polls: queue.Queue[Mapping[str, Start]] = queue.Queue()
        self.poller = FilePoller(path, lambda: load(path), self._polls.put, is_watched)
        self.poller.start()

    def next_start(self, after: int, flow: str = "A->B", seconds: float = _SECONDS) -> Start:
        """The first start of a flow with a higher number.

        Args:
            seconds: between two polls.
        """
        while True:
            start = self._polls.get(timeout=seconds).get(flow)
            if start is not None and start.number > after:
                return start

    def polls(self, count: int) -> Mapping[str, Start]:
        """The last of some polls that begin after this call."""
        while not self._polls.empty():
            self._polls.get()
        # One may be under way.
        return [self._polls.get(timeout=_SECONDS) for _ in range(count + 1)][-1]


@pytest.fixture
def caught_up(mirrored: MirroredTopic) -> Flow:
    """A flow that has copied two partitions."""
    mirrored.create(records(20), partitions=2)
    flow = mirrored.flow(topics=f"{mirrored.name}.*", settings=_WATCHED)
    assert flow.run().records == 20
    return flow


@pytest.fixture
def watch(caught_up: Flow, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    monkeypatch.setattr(polling, "_TOPICS_SECONDS", 1.0)
    watch = Watch(caught_up.path)
    yield watch
    watch.poller.stop()


def test_new_records_start_one_run_and_its_end_settles_them(
    watch: Watch, caught_up: Flow, mirrored: MirroredTopic
) -> None:
    # Nothing is new since the last run.
    assert not watch.polls(2)

    mirrored.produce(records(3))
    start = watch.next_start(0)
    assert (start.payload["topics"], start.payload["records"]) == ([mirrored.name], 3)
    # Airflow has not begun the run yet: more records change nothing.
    mirrored.produce(records(2))
    assert watch.polls(2)["A->B"].number == 1

    assert caught_up.run().records == 5
    assert watch.polls(2)["A->B"].number == 1
    mirrored.produce(records(1))
    assert watch.next_start(1).payload["records"] == 1


def test_new_topics_are_found_and_deleted_ones_hold_up_nothing(
    watch: Watch, mirrored: MirroredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    created = f"{mirrored.name}-new"
    create_topic(mirrored.source, created)
    produce(mirrored.source, created, records(1))
    assert watch.next_start(0).payload["topics"] == [created]

    with caplog.at_level(logging.INFO):
        delete_topic(mirrored.source, created)
        while f"no longer watched for new records: {created}" not in caplog.text:
            watch.polls(1)
        watch.polls(3)
    assert caplog.text.count("no longer watched") == 1
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_cluster_that_is_down_is_logged_once_and_delays_no_other(
    caught_up: Flow, mirrored: MirroredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    # Nobody listens there.
    more = {
        "clusters": "A, B, C",
        "C.bootstrap.servers": "127.0.0.1:1",
        "C->B.enabled": "true",
        "C->B.topics": mirrored.name,
        "C->B.mirror.schedule": "on-new-records",
    }
    Console(caught_up.path).change(more)
    with caplog.at_level(logging.ERROR):
        watch = Watch(caught_up.path)
        mirrored.produce(records(1))
        assert watch.next_start(0)
        while "cluster C cannot be watched" not in caplog.text:
            watch.polls(1)
        watch.polls(6)
        watch.poller.stop()

    assert caplog.text.count("cannot be watched") == 1
    (step,) = caught_up.ledger.observations.steps("C->B")
    assert (step.step, step.failed) == (polling.STEP, 1)
    assert not caught_up.ledger.observations.steps("A->B")


def test_given_a_paused_flow_when_it_has_records_then_it_costs_nothing_until_it_is_watched_again(
    caught_up: Flow, mirrored: MirroredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    other = f"{mirrored.name}-of-c"
    create_topic(mirrored.source, other)
    # Nobody listens at D.
    more = {
        "clusters": "A, B, C, D",
        "C.bootstrap.servers": mirrored.source.bootstrap_servers,
        "D.bootstrap.servers": "127.0.0.1:1",
        "C->B.topics": other,
        **{f"{flow}.enabled": "true" for flow in ("C->B", "D->B")},
        **{f"{flow}.mirror.schedule": "on-new-records" for flow in ("C->B", "D->B")},
    }
    Console(caught_up.path).change(more)
    watched = {"C->B"}
    with caplog.at_level(logging.INFO):
        watch = Watch(caught_up.path, watched.__contains__)
        watch.polls(1)
        mirrored.produce(records(3))
        assert "A->B" not in watch.polls(3)
        assert not caplog.records

        watched.add("A->B")
        assert watch.next_start(0).payload["records"] == 3
        assert caught_up.run().records == 3
        watched.remove("A->B")
        watch.polls(2)
        # An event now would start a run that copies nothing.
        watched.add("A->B")
        assert "A->B" not in watch.polls(3)
        watch.poller.stop()
    assert "cannot be watched" not in caplog.text


def test_a_cluster_that_comes_back_is_watched_again(
    kafka_jars: Path, cluster_folder: Path, topic_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with KafkaCluster("restarting", directory=cluster_folder, jars=kafka_jars) as cluster:
        create_topic(cluster, topic_name)
        servers = cluster.bootstrap_servers
        flow = make_flow(tmp_path, servers, servers, topics=topic_name, settings=_WATCHED)
        watch = Watch(flow.path)
        watch.polls(1)
        (broker,) = cluster.node_ids
        cluster.kill(broker)
        wait_for(lambda: "cannot be watched" in caplog.text, 90)
        cluster.start()
        produce(cluster, topic_name, records(1))

        assert watch.next_start(0, seconds=90.0).payload["records"] == 1
        watch.poller.stop()
    assert caplog.text.count("cannot be watched") == caplog.text.count("is watched again") == 1
    (step,) = flow.ledger.observations.steps("A->B")
    assert (step.step, step.failed) == (polling.STEP, 0)


def test_without_a_ledger_every_change_starts_a_run(mirrored: MirroredTopic, caplog: pytest.LogCaptureFixture) -> None:
    mirrored.create(records(2))
    flow = mirrored.flow(_WATCHED)
    flow.ledger.close()
    (mirrored.folder / "ledger.sqlite3").unlink()

    watch = Watch(flow.path)
    assert watch.next_start(0).payload["records"] is None
    watch.poller.stop()
    assert caplog.text.count("The ledger cannot be read") == 1
