"""Class archives for the brokers and the Spark of the tests: `python -m tests.support.class_archives` makes them once.

Starting JVMs is the largest part of what the tests cost. With its archive a broker starts in 60 % of the processor
time, Spark with a first task in 60 % of what it takes with the same compiler.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.broker import CLASS_ARCHIVE, FAST_START_JVM, KafkaCluster
from mirror_lib.features.demo.class_archive import archive_path, make_archive, reading_options
from mirror_lib.features.demo.jars import fetch, kafka_broker
from mirror_lib.features.demo.state import exclusive, jars_dir
from mirror_lib.features.warm_spark.class_archive import write_class_archive
from mirror_lib.spark.submit import LOCAL_SETTINGS, find_spark_home, job_file, spark_submit
from tests.support.kafka import consume, create_topic, produce, records

_SECONDS = 300
#: Tests run for seconds: the optimizing compiler costs more than it gains.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1"


def make_kafka_archive() -> bool:
    """Make the archive of the broker's classes unless it exists."""
    jars = fetch(kafka_broker())

    def run(options: tuple[str, ...]) -> None:
        with tempfile.TemporaryDirectory(prefix="mirror-classes-") as folder:
            flags = (*FAST_START_JVM, *options)
            with KafkaCluster("classes", directory=Path(folder), jars=jars, jvm_flags=flags) as cluster:
                create_topic(cluster, "classes")
                produce(cluster, "classes", records(10, size=100))
                consume(cluster, "classes")
                # It writes the archive when it ends, for longer than other brokers may take to end.
                cluster.stop_broker(cluster.node_ids[0], grace_seconds=_SECONDS)

    return make_archive(archive_path(jars, CLASS_ARCHIVE), run)


def make_spark_archive() -> bool:
    """Make the archive of the classes of Spark in local mode unless it exists."""
    archive = _spark_archive()
    with exclusive(archive.with_suffix(".lock")):
        if archive.is_file():
            return False
        program = job_file().with_name("class_archive.py")
        submit = spark_submit(find_spark_home(os.environ))
        write_class_archive(archive, submit=submit, program=program, settings=LOCAL_SETTINGS)
    return True


def jvm_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables with which tests start JVMs; an environment's own values stay."""
    options = " ".join((_SHORT_LIVED, *reading_options(_spark_archive())))
    daemons = f"{_SHORT_LIVED} -XX:+UseSerialGC"
    variables = {
        # Of all that have no options of their own: executors, MirrorMaker, Connect.
        "JDK_JAVA_OPTIONS": _SHORT_LIVED,
        "SPARK_SUBMIT_OPTS": options,
        "SPARK_DAEMON_JAVA_OPTS": daemons,
        # Of the JVM that prints the command of the next one.
        "SPARK_LAUNCHER_OPTS": daemons,
    }
    return {name: value for name, value in variables.items() if name not in environment}


def _spark_archive() -> Path:
    # Spark's version is part of the class path: its folder.
    return archive_path(jars_dir(), "spark-classes")


def main() -> None:
    """Make both."""
    for name, make in (("the broker", make_kafka_archive), ("Spark", make_spark_archive)):
        try:
            if make():
                print(f"archived the classes of {name}", file=sys.stderr)
        except MirrorError as error:
            sys.exit(f"the classes of {name} could not be archived: {error}")


if __name__ == "__main__":
    main()
