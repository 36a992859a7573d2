"""MirrorMaker 1 has copied and is stopped; its settings are imported, and our flow goes on where it committed."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config.loader import load
from mirror_lib.features.demo import jars as jar_sets
from mirror_lib.features.demo.background_process import start
from mirror_lib.spark.java import find_java
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import consume, create_topic, produce, records, watermarks
from tests.support.ledger.ledgers import ready_ledger

PARTITIONS = 2
#: The last line of releases whose jars hold both of Kafka's tools that are needed.
VERSION = "2.8.2"
_WAIT_SECONDS = 120.0


@contextmanager
def mirror_maker_1(folder: Path, options: list[str], *, wait_for: tuple[KafkaPair, str, int]) -> Iterator[None]:
    """Run MirrorMaker 1 until the topic on the target has so many records; it is stopped in order at the end."""
    jars = jar_sets.fetch(jar_sets.kafka_broker(VERSION))
    command = [str(find_java()), "-Xmx256m", "-cp", jar_sets.classpath(jars), "kafka.tools.MirrorMaker", *options]
    process = start(tuple(command), log=folder / "mm1.log", pid_file=folder / "mm1.pid")
    try:
        pair, topic, count = wait_for
        deadline = time.monotonic() + _WAIT_SECONDS
        while _on_target(pair, topic) < count:
            assert process.is_running, process.log_tail()
            assert time.monotonic() < deadline, process.log_tail()
            time.sleep(0.2)
        yield
    finally:
        process.stop(60.0)


def _on_target(pair: KafkaPair, topic: str) -> int:
    return sum(watermarks(pair.target, topic, number)[1] for number in range(PARTITIONS))


def consumer_groups_script(folder: Path) -> None:
    """Kafka's `kafka-consumer-groups.sh`, as its package has it."""
    jars = jar_sets.fetch(jar_sets.kafka_broker(VERSION))
    script = folder / "kafka-consumer-groups.sh"
    script.write_text(
        "#!/bin/sh\n"
        f'exec "{find_java()}" -cp "{jar_sets.classpath(jars)}" kafka.admin.ConsumerGroupCommand "$@" 2> /dev/null\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def commands_of(text: str) -> str:
    """The shell commands that an imported file holds in its comments for taking over positions."""
    lines = [line.removeprefix("#        ") for line in text.splitlines() if line.startswith("#        ")]
    first = next(number for number, line in enumerate(lines) if line.startswith("kafka-consumer-groups.sh"))
    last = lines.index("done")
    return "\n".join(lines[first : last + 1])


@pytest.mark.timeout(600)
def test_the_flow_goes_on_exactly_where_mirror_maker_1_committed_and_hands_back(
    interop_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    """Also where the topic had more records when it was stopped than it had copied."""
    pair = interop_pair
    for cluster in (pair.source, pair.target):
        create_topic(cluster, topic_name, partitions=PARTITIONS)
    written = [
        record
        for number in range(PARTITIONS)
        for record in produce(pair.source, topic_name, records(400, partition=number, start=number * 1000))
    ]
    consumer, producer = tmp_path / "consumer.properties", tmp_path / "producer.properties"
    consumer.write_text(
        f"bootstrap.servers={pair.source.bootstrap_servers}\ngroup.id=mm1-{topic_name}\nauto.offset.reset=earliest\n"
    )
    producer.write_text(f"bootstrap.servers={pair.target.bootstrap_servers}\nacks=all\n")
    command_line = ["--consumer.config", str(consumer), "--producer.config", str(producer), "--whitelist", topic_name]
    with mirror_maker_1(tmp_path, command_line, wait_for=(pair, topic_name, len(written))):
        pass
    for number in range(PARTITIONS):
        written += produce(pair.source, topic_name, records(150, partition=number, start=number * 1000 + 400))

    file = tmp_path / "mirror.properties"
    aliases = ["--source", "A", "--target", "B"]
    imported = CliRunner().invoke(app, ["config", "import", *command_line, *aliases, "--output", str(file)])
    assert imported.exit_code == 0, imported.output
    text = file.read_text() + f"\nmirror.ledger.url = sqlite:///{tmp_path}/ledger.sqlite3\n"
    file.write_text(text)
    config = load(file)
    ledger = ready_ledger(config.ledger_url or "")
    flow = Flow(config.flow("A->B"), ledger, file)
    flow.sync_topics()
    consumer_groups_script(tmp_path)
    search = os.pathsep.join((str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-c", commands_of(text).replace("FILE", str(file))],
        cwd=tmp_path,
        env={**os.environ, "PATH": search},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = flow.run()

    assert not report.errors
    assert report.records == PARTITIONS * 150
    assert _values(pair, topic_name) == Counter(record.value for record in written)

    # And back: its group gets our positions.
    shown = CliRunner().invoke(app, ["position", "show", "--config", str(file), "--flow", "A->B", "--json"])
    stored = json.loads(shown.stdout)["positions"]
    lines = [f"{each['topic']},{each['partition']},{each['next_offset']}\n" for each in stored]
    (tmp_path / "positions.csv").write_text("".join(lines))
    group = ["--group", f"mm1-{topic_name}", "--bootstrap-server", pair.source.bootstrap_servers]
    script = str(tmp_path / "kafka-consumer-groups.sh")
    subprocess.run(
        [script, *group, "--reset-offsets", "--from-file", str(tmp_path / "positions.csv"), "--execute"],
        capture_output=True,
        timeout=120,
        check=True,
    )
    for number in range(PARTITIONS):
        written += produce(pair.source, topic_name, records(50, partition=number, start=number * 1000 + 600))
    with mirror_maker_1(tmp_path, command_line, wait_for=(pair, topic_name, len(written))):
        pass
    assert _values(pair, topic_name) == Counter(record.value for record in written)


def _values(pair: KafkaPair, topic: str) -> Counter[bytes | None]:
    return Counter(record.value for record in consume(pair.target, topic))
