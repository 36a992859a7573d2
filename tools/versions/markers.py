"""`./run versions --markers N`: very many markers on one partition with `mirror.offsets = same`, by versions of Kafka.

From EndTxn version 5 on brokers raise the producer's epoch with each transaction (KIP-890): 32,767 of them would be all
that a producer id has. A copy stays below that version, so that its producer never needs another epoch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.topics.flow import apply_flow_topics
from tests.support.flows import copy_here
from tools.versions import workload
from tools.versions.clusters import OWN, Log, Side, running

TITLE = "Markers on one partition"
_TOPIC = "markers"
#: One transaction after the other is slow: as many producers write to the partition at once.
_PRODUCERS = 16
_SECONDS = 60.0
_TEMPLATE = """\
clusters = {source}, {target}
{source}.bootstrap.servers = {source_servers}
{target}.bootstrap.servers = {target_servers}
{source}->{target}.enabled = true
{source}->{target}.topics = {topic}
mirror.offsets = same
emit.heartbeats.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
{target}.offset.storage.replication.factor = 1
{target}.offset.storage.partitions = 5
mirror.ledger.url = sqlite:///{folder}/ledger.sqlite3
"""


@dataclass(frozen=True, slots=True)
class MarkersResult:
    """What one version of brokers did as a target."""

    version: str
    markers: int
    seconds: float
    failure: str | None

    @property
    def ok(self) -> bool:
        """True if each record has its offset."""
        return self.failure is None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "version": self.version,
            "markers": self.markers,
            "ok": self.ok,
            "seconds": round(self.seconds, 1),
            "failure": self.failure,
        }


def run(targets: Sequence[str], markers: int, folder: Path, results: list[MarkersResult], log: Log) -> None:
    """Write a source once, and copy it to brokers of these versions; each result is added to `results` at once.

    Raises:
        MirrorError: the brokers could not be fetched or started.
    """
    with running("source", OWN, folder, log) as source:
        log(f"writing {markers:,} transactions of one record each")
        workload.create_topic(source.servers, _TOPIC, partitions=1, configs={"retention.ms": "-1"})
        with ThreadPoolExecutor(_PRODUCERS) as producers:
            shares = [len(range(number, markers, _PRODUCERS)) for number in range(_PRODUCERS)]
            list(producers.map(_write, [source] * _PRODUCERS, range(_PRODUCERS), shares))
        wanted = _offsets(source, _TOPIC)
        for version in targets:
            with running(f"to{version.replace('.', '')}", version, folder, log) as target:
                began, failure = time.monotonic(), None
                try:
                    _copy(source, target, folder)
                    found = _offsets(target, f"{source.alias}.{_TOPIC}")
                    if found != wanted:
                        failure = f"{len(set(found) ^ set(wanted))} records are at other offsets"
                except (MirrorError, KafkaException, AssertionError) as error:
                    failure = str(error)
                results.append(MarkersResult(version, markers, time.monotonic() - began, failure))
                log(f"  {version}: {failure or 'ok'}")


def _write(source: Side, number: int, transactions: int) -> None:
    settings = {"bootstrap.servers": source.servers, "transactional.id": f"writer-{number}", "linger.ms": 0}
    producer = Producer(settings)
    producer.init_transactions(_SECONDS)
    for count in range(transactions):
        producer.begin_transaction()
        producer.produce(_TOPIC, b"%d-%d" % (number, count), partition=0)
        producer.commit_transaction(_SECONDS)


def _copy(source: Side, target: Side, folder: Path) -> None:
    home = folder / f"{target.alias}-flow"
    home.mkdir()
    path = home / "mirror.properties"
    text = _TEMPLATE.format(
        source=source.alias,
        target=target.alias,
        source_servers=source.servers,
        target_servers=target.servers,
        topic=_TOPIC,
        folder=home,
    )
    path.write_text(text, encoding="utf-8")
    config = load(path)
    flow = config.flow(f"{source.alias}->{target.alias}")
    ledger = Ledger.open(config.ledger_url or "")
    ledger.migrate()
    try:
        apply_flow_topics(flow, flow_topology(flow), ledger)
        report = replicate(flow, ledger=ledger, make_runner=lambda: copy_here, options=RunOptions(trigger="versions"))
    finally:
        ledger.close()
    if report.errors:
        raise report.errors[0]


def _offsets(side: Side, topic: str) -> list[tuple[int, bytes | None]]:
    """The offsets of all records with their values, and the end of the log, as a consumer sees them."""
    return [*workload.consume_offsets(side.servers, topic), (workload.end_offset(side.servers, topic, 0), None)]


def print_report(console: Console, results: Sequence[MarkersResult]) -> None:
    """The table, and below it the errors."""
    table = Table(title=TITLE, title_justify="left")
    for name in ("Kafka", "markers", "seconds", "result"):
        table.add_column(name, justify="right" if name != "result" else "left")
    for each in results:
        table.add_row(each.version, f"{each.markers:,}", f"{each.seconds:.0f}", "ok" if each.ok else "FAILED")
    console.print(table)
    for each in results:
        if each.failure is not None:
            console.print(Text(f"FAILED {each.version}: {each.failure}"), soft_wrap=True)
