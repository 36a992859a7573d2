"""One Airflow for the files of this folder, and the configuration files of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.clusters import KafkaPair
from tests.support.cutovers import Migration, migration
from tests.support.names import unique_name
from tests.support.shared_airflow import SharedAirflow, shared_airflow

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

_WATCHED = """\
U->V.mirror.schedule = on-new-records
U->V.mirror.schedule.poll = 1s
U->V.mirror.schedule.longest = 1d
"""


@dataclass(frozen=True, slots=True)
class Files:
    """Configuration files, and the topics that they name; whoever needs a topic creates it."""

    folder: Path
    #: Of the flow N->S.
    one: Path
    topic: str
    #: Of the flow C->D, with the same ledger.
    other: Path
    #: Of the flow Q->R, with the same ledger.
    quiet: Path
    quiet_topic: str
    #: Of the flow U->V, which new records start, with the same ledger.
    watched: Path
    watched_topic: str
    #: Of the flows A->B and B->A, with a ledger of their own.
    moving: Migration
    moving_topics: tuple[str, str, str]

    @property
    def ledger_url(self) -> str:
        """Of the first two."""
        return f"sqlite:///{self.folder}/ledger.db"


@pytest.fixture(scope="package")
def files(kafka_pair: KafkaPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    folder = tmp_path_factory.mktemp("one-airflow")
    servers = {"source": kafka_pair.source.bootstrap_servers, "target": kafka_pair.target.bootstrap_servers}
    topic, others, quiet_topic, watched_topic = (unique_name(name) for name in ("orders", "others", "quiet", "watched"))
    one, other, quiet, watched = (folder / f"{name}.properties" for name in ("one", "other", "quiet", "watched"))
    one.write_text(_CONFIG.format(one="N", two="S", topic=topic, folder=folder, **servers))
    other.write_text(_CONFIG.format(one="C", two="D", topic=others, folder=folder, **servers))
    quiet.write_text(_CONFIG.format(one="Q", two="R", topic=quiet_topic, folder=folder, **servers))
    watched.write_text(_CONFIG.format(one="U", two="V", topic=watched_topic, folder=folder, **servers) + _WATCHED)
    (folder / "moving").mkdir()
    moving_topics = unique_name("moving"), unique_name("lost"), unique_name("kept")
    moving = migration(folder / "moving", kafka_pair, ",".join(moving_topics))
    yield Files(folder, one, topic, other, quiet, quiet_topic, watched, watched_topic, moving, moving_topics)
    moving.ledger.close()


@pytest.fixture(scope="package")
def airflow(files: Files) -> Iterator[SharedAirflow]:
    with shared_airflow(
        files.folder, [files.one, files.other, files.quiet, files.watched, files.moving.there.path]
    ) as running:
        yield running
