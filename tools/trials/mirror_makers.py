"""MirrorMaker 2 and MirrorMaker 1 as the replicators of a trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.features.demo import jars as jar_sets
from mirror_lib.features.demo.background_process import start
from mirror_lib.features.demo.broker import FAST_START_JVM
from mirror_lib.spark.java import find_java
from tests.support.kafka import Record, delete_topics, partition_count, topic_names, watermarks
from tools.testbed.mm2 import MirrorMaker
from tools.trials.scene import Scene

#: The last line of releases that have MirrorMaker 1.
_LAST_WITH_MM1 = "3.9.1"
_FACTORS = (
    *("", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic."),
    *("offset.storage.", "status.storage.", "config.storage."),
)


@dataclass(frozen=True, slots=True)
class MM2:
    """MirrorMaker 2 with a file of one flow, which copies the topic of a trial."""

    scene: Scene
    path: Path
    #: The name of the copy.
    copy: str

    @classmethod
    def of(cls, scene: Scene, settings: Mapping[str, str] | None = None, *, copy: str = "") -> MM2:
        """Write the file; `{source}` and `{target}` in names of settings are the aliases."""
        source, target = scene.alias, _target(scene)
        lines = {
            "clusters": f"{source}, {target}",
            f"{source}.bootstrap.servers": scene.source.bootstrap_servers,
            f"{target}.bootstrap.servers": scene.target.bootstrap_servers,
            f"{source}->{target}.enabled": "true",
            f"{source}->{target}.topics": scene.topic,
            **{f"{name}replication.factor": "1" for name in _FACTORS},
            # Partitions of Connect's own topics: a broker writes several files for each.
            f"{target}.offset.storage.partitions": "1",
            f"{target}.status.storage.partitions": "1",
            "emit.heartbeats.enabled": "false",
            "emit.checkpoints.enabled": "false",
            "sync.topic.acls.enabled": "false",
            "refresh.topics.interval.seconds": "2",
            **{name.format(source=source, target=target): value for name, value in (settings or {}).items()},
        }
        path = scene.folder / "mm2.properties"
        path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()), encoding="utf-8")
        return cls(scene, path, copy or scene.copy)

    @property
    def flow(self) -> tuple[Path, str]:
        """The file and its flow, for an audit that reads them."""
        return self.path, f"{self.scene.alias}->{_target(self.scene)}"

    @contextmanager
    def running(self) -> Iterator[MirrorMaker]:
        """Run it for the duration of the context; then it is stopped, and stores its positions."""
        with MirrorMaker(self.scene.folder / "mm2", jvm_flags=FAST_START_JVM, heap_megabytes=512) as process:
            process.start(self.path.read_text(encoding="utf-8"))
            yield process

    def copied(self, isolation: str = "read_committed") -> list[Record]:
        """Return what an independent consumer reads of the copy."""
        return self.scene.copied(self.copy, isolation=isolation)

    def until(self, process: MirrorMaker, counts: Mapping[int, int], isolation: str = "read_committed") -> None:
        """Wait until each partition of the copy has at least this number of records.

        Raises:
            TrialError: it has not in time, or MirrorMaker has ended.
        """

        def done() -> bool:
            process.cpu_seconds  # noqa: B018  # raises if it has ended
            if self.copy not in topic_names(self.scene.target):
                return False
            if partition_count(self.scene.target, self.copy) < len(counts):
                return False
            if any(watermarks(self.scene.target, self.copy, each)[1] < count for each, count in counts.items()):
                return False
            found = Counter(each.partition for each in self.copied(isolation))
            return all(found[each] >= count for each, count in counts.items())

        self.scene.wait(done, f"the copy of {dict(counts)} records", detail=lambda: process.log_tail(15))

    def forget_positions(self) -> None:
        """Delete the topic with the positions, as after a reset."""
        delete_topics(self.scene.target, containing=f"mm2-offsets.{self.scene.alias}")


def _target(scene: Scene) -> str:
    return f"to-{scene.topic}"


def copy_once(
    scene: Scene,
    counts: Mapping[int, int],
    settings: Mapping[str, str] | None = None,
    *,
    copy: str = "",
    isolation: str = "read_committed",
) -> MM2:
    """Run MirrorMaker 2 until each partition has this number of records, and stop it."""
    mm2 = MM2.of(scene, settings, copy=copy)
    with mm2.running() as process:
        mm2.until(process, counts, isolation)
    return mm2


def copy_by_mm1(scene: Scene, count: int) -> None:
    """Run MirrorMaker 1 until the copy, named as the source, has this number of records."""
    jars = jar_sets.fetch(jar_sets.kafka_broker(_LAST_WITH_MM1))
    consumer, producer = scene.folder / "consumer.properties", scene.folder / "producer.properties"
    consumer.write_text(
        f"bootstrap.servers={scene.source.bootstrap_servers}\ngroup.id={scene.topic}\nauto.offset.reset=earliest\n",
        encoding="utf-8",
    )
    producer.write_text(f"bootstrap.servers={scene.target.bootstrap_servers}\nacks=all\n", encoding="utf-8")
    process = start(
        (
            *(
                str(find_java()),
                "-Xmx256m",
                *FAST_START_JVM,
                "-cp",
                jar_sets.classpath(jars),
                "kafka.tools.MirrorMaker",
            ),
            *("--consumer.config", str(consumer), "--producer.config", str(producer), "--whitelist", scene.topic),
        ),
        log=scene.folder / "mm1.log",
        pid_file=scene.folder / "mm1.pid",
    )
    try:
        partitions = partition_count(scene.target, scene.topic)

        def done() -> bool:
            return sum(watermarks(scene.target, scene.topic, each)[1] for each in range(partitions)) >= count

        scene.wait(done, "the copy by MirrorMaker 1", detail=process.log_tail)
    finally:
        process.stop(60.0)
