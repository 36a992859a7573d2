"""One Airflow for the files of this folder, and the configuration files of each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mirror_lib.dev.driver_host import DriverHost
from mirror_lib.dev.ports import LOOPBACK, free_ports
from mirror_lib.spark.driver_host_protocol import DRIVER_HOST_VARIABLE
from tests.support.airflow.shared import SharedAirflow, shared_airflow
from tests.support.clusters import KafkaPair
from tests.support.cutovers import Migration, migration
from tests.support.names import unique_name

_CONFIG = """\
clusters = {one}, {two}
{one}.bootstrap.servers = {source}
{two}.bootstrap.servers = {target}
{one}->{two}.enabled = true
{one}->{two}.topics = {topic}
{two}->{one}.enabled = false
emit.heartbeats.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
offset.storage.topic = mm2-offsets.{topic}.internal
offset.flush.interval.ms = 1000
tasks.max = 1
mirror.ledger.url = sqlite:///{folder}/ledger.db
"""

#: Drivers of this flow are killed, and each time somebody waits until its lock has expired.
_SHORT_LEASE = "mirror.run.lease.seconds = 12\n"
_WATCHED = """\
U->V.mirror.schedule = on-new-records
U->V.mirror.schedule.poll = 1s
U->V.mirror.schedule.longest = 1d
"""


#: More flows than the Airflow has worker slots.
WAITING = ("W1", "W2", "W3", "W4")
_WAITING = """\
mirror.airflow.deferrable = true
mirror.spark.connection = warm
"""


@dataclass(frozen=True, slots=True)
class Files:
    """Configuration files, and the topics that they name; whoever needs a topic creates it."""

    folder: Path
    #: Of the flows N->S and M->S.
    one: Path
    topic: str
    marked_topic: str
    #: Of the flow C->D, with the same ledger.
    other: Path
    #: Of the flow Q->R, with the same ledger.
    quiet: Path
    quiet_topic: str
    #: Of the flow U->V, which new records start, with the same ledger.
    watched: Path
    watched_topic: str
    #: Of the flows from each of `WAITING` to X, whose copies are deferred, with the same ledger.
    waiting: Path
    waiting_topic: str
    #: Of the flows A->B and B->A, with a ledger of their own.
    moving: Migration
    moving_topics: tuple[str, str, str]
    #: The Spark Connect server that the test of `waiting` starts, and the driver host.
    spark_port: int
    drivers: DriverHost

    @property
    def ledger_url(self) -> str:
        """Of the first two."""
        return f"sqlite:///{self.folder}/ledger.db"


@pytest.fixture(scope="package")
def files(kafka_pair: KafkaPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    folder = tmp_path_factory.mktemp("one-airflow")
    servers = {"source": kafka_pair.source.bootstrap_servers, "target": kafka_pair.target.bootstrap_servers}
    topic, marked_topic, others, quiet_topic, watched_topic, waiting_topic = (
        unique_name(name) for name in ("orders", "marked", "others", "quiet", "watched", "waiting")
    )
    one, other, quiet, watched, waiting = (
        folder / f"{name}.properties" for name in ("one", "other", "quiet", "watched", "waiting")
    )
    text = _CONFIG.format(one="N", two="S", topic=topic, folder=folder, **servers) + _SHORT_LEASE
    one.write_text(_with_flow(text, "M->S", servers["source"], marked_topic))
    other.write_text(_CONFIG.format(one="C", two="D", topic=others, folder=folder, **servers))
    quiet.write_text(_CONFIG.format(one="Q", two="R", topic=quiet_topic, folder=folder, **servers))
    watched.write_text(_CONFIG.format(one="U", two="V", topic=watched_topic, folder=folder, **servers) + _WATCHED)
    waiting.write_text(_waiting(waiting_topic, folder, **servers))
    (folder / "moving").mkdir()
    moving_topics = unique_name("moving"), unique_name("lost"), unique_name("kept")
    moving = migration(folder / "moving", kafka_pair, ",".join(moving_topics))
    yield Files(
        folder,
        *(one, topic, marked_topic, other, quiet, quiet_topic, watched, watched_topic, waiting, waiting_topic),
        *(moving, moving_topics),
        free_ports(1)[0],
        DriverHost(folder / "drivers"),
    )
    moving.ledger.close()


def _waiting(topic: str, folder: Path, *, source: str, target: str) -> str:
    text = _CONFIG.format(one=WAITING[0], two="X", topic=topic, folder=folder, source=source, target=target) + _WAITING
    for alias in WAITING[1:]:
        text = _with_flow(text, f"{alias}->X", source, topic)
    return text


def _with_flow(text: str, flow: str, source: str, topic: str) -> str:
    """A file with one flow more, from another alias of its source."""
    alias, _, _ = flow.partition("->")
    lines = (f"{alias}.bootstrap.servers = {source}", f"{flow}.enabled = true", f"{flow}.topics = {topic}")
    return "\n".join([text.replace("clusters = ", f"clusters = {alias}, ", 1), *lines, ""])


@pytest.fixture(scope="package")
def airflow(files: Files) -> Iterator[SharedAirflow]:
    warm = {"conn_type": "spark_connect", "host": LOOPBACK, "port": files.spark_port}
    more = {"AIRFLOW_CONN_WARM": json.dumps(warm), DRIVER_HOST_VARIABLE: str(files.drivers.socket)}
    watched = [files.one, files.other, files.quiet, files.watched, files.waiting, files.moving.there.path]
    with shared_airflow(files.folder, watched, more) as running:
        yield running
