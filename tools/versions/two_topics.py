"""One flow with a copy and a transform between two brokers, which several versions of something run twice each."""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mirror_lib.errors import MirrorError
from tools.versions import workload
from tools.versions.clusters import OWN, Log, Side, running

STEPS = ("copy", "transform", "second run")
_ORDERS, _PAYMENTS = "orders", "payments"
_PARTITIONS = 2
_COUNT = 600

_TEMPLATE = """\
clusters = {source}, B
{source}.bootstrap.servers = {source_servers}
B.bootstrap.servers = {target_servers}
{source}->B.enabled = true
{source}->B.topics = orders, payments
emit.heartbeats.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
B.offset.storage.replication.factor = 1
B.offset.storage.partitions = 5
mirror.ledger.url = sqlite:///{folder}/ledger.sqlite3
{source}->B.mirror.transforms = mask
{source}->B.mirror.transform.mask.topics = payments
{source}->B.mirror.transform.mask.decode.value = json
{source}->B.mirror.transform.mask.schema.value = id BIGINT, country STRING, card STRING
{source}->B.mirror.transform.mask.filter = value.country <> 'FR'
{source}->B.mirror.transform.mask.value = struct(value.id AS id, value.country AS country, '****' AS card)
"""


@dataclass(slots=True)
class FlowResult:
    """The results of one version; a step without one was not reached."""

    #: Column -> text, such as `Python` -> `3.11`.
    versions: Mapping[str, str]
    #: By step: the error, or None.
    steps: dict[str, str | None] = field(default_factory=dict)
    failure: str | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if every step was tested and succeeded."""
        return self.failure is None and self.steps == dict.fromkeys(STEPS)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            **{name.lower(): text for name, text in self.versions.items()},
            "ok": self.ok,
            "steps": self.steps,
            "failure": self.failure,
            "seconds": round(self.seconds, 1),
        }


class TwoTopics(ABC):
    """A flow from the source's alias to B, in a folder of its own."""

    def __init__(self, alias: str, source: Side, target: Side, folder: Path, *, settings: str = "") -> None:
        """Write the properties file.

        Args:
            settings: more lines of it.
        """
        self.alias = alias
        self.home = folder / alias
        self.home.mkdir()
        self._source, self._target = source, target
        text = _TEMPLATE.format(
            source=alias, source_servers=source.servers, target_servers=target.servers, folder=self.home
        )
        self.properties.write_text(text + settings, encoding="utf-8")

    @property
    def properties(self) -> Path:
        """The configuration file."""
        return self.home / "mirror.properties"

    def steps(self) -> list[tuple[str, str | None]]:
        """Run twice; return the error of each step, or None."""
        first = self.run()
        found = [("copy", first or self._differs(self._orders)), ("transform", first or self._differs(self._payments))]
        _produce(self._source, 1)
        second = self.run()
        return [*found, ("second run", second or self._differs(self._orders) or self._differs(self._payments))]

    @abstractmethod
    def run(self) -> str | None:
        """Copy what is new; return the error, or None."""

    def _differs(self, check: Callable[[], None]) -> str | None:
        try:
            check()
        except (AssertionError, KafkaException) as error:
            return str(error) or type(error).__name__
        return None

    def _orders(self) -> None:
        wanted = workload.consume(self._source.servers, _ORDERS)
        found = workload.consume(self._target.servers, f"{self.alias}.{_ORDERS}")
        assert found == wanted, f"{len(found)} records differ from the {len(wanted)} of the source"

    def _payments(self) -> None:
        given = workload.consume(self._source.servers, _PAYMENTS)
        wanted = [(each.partition, each.key, _masked(each)) for each in given if b'"FR"' not in (each.value or b"")]
        target = workload.consume(self._target.servers, f"{self.alias}.{_PAYMENTS}")
        found = [(each.partition, each.key, json.loads(each.value or b"null")) for each in target]
        assert found == wanted, f"{len(found)} records differ from the {len(wanted)} that the transform leaves"


@contextmanager
def two_brokers(folder: Path, log: Log) -> Iterator[tuple[Side, Side]]:
    """Source and target of the Kafka that all tests use, with records in both topics of the source.

    Raises:
        MirrorError: the brokers could not be fetched or started.
    """
    with running("source", OWN, folder, log) as source, running("target", OWN, folder, log) as target:
        for topic in (_ORDERS, _PAYMENTS):
            workload.create_topic(source.servers, topic, partitions=_PARTITIONS, configs={"retention.ms": "-1"})
        _produce(source, 0)
        yield source, target


def try_flow(versions: Mapping[str, str], make: Callable[[], TwoTopics], results: list[FlowResult], log: Log) -> None:
    """Make a flow with its environment and run it; its result is added to `results` at once."""
    result = FlowResult(versions)
    results.append(result)
    log(", ".join(f"{name} {text}" for name, text in versions.items()))
    began = time.monotonic()
    try:
        for step, error in make().steps():
            result.steps[step] = error
            log(f"  {step}: {error or 'ok'}")
    except MirrorError as error:
        result.failure = str(error)
        log(f"  {error}")
    result.seconds = time.monotonic() - began


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what leads a Python to other packages."""
    hidden = ("SPARK_HOME", "PYTHONPATH", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def _masked(record: workload.Record) -> dict[str, Any]:
    return {**json.loads(record.value or b"null"), "card": "****"}


def _produce(source: Side, batch: int) -> None:
    workload.produce(source.servers, _ORDERS, _COUNT, partitions=_PARTITIONS, codec="zstd")
    workload.produce_documents(
        source.servers,
        _PAYMENTS,
        [
            {"id": batch * _COUNT + number, "country": ("DE", "FR", "IT")[number % 3], "card": f"4000-{number}"}
            for number in range(_COUNT)
        ],
        partitions=_PARTITIONS,
    )


def print_report(console: Console, title: str, results: Sequence[FlowResult]) -> None:
    """The table, and below it the errors."""
    table = Table(title=title, title_justify="left")
    names = list(results[0].versions) if results else []
    for name in (*names, *STEPS):
        table.add_column(name)
    table.add_column("seconds", justify="right")
    for result in results:
        cells = ("-" if step not in result.steps else "FAILED" if result.steps[step] else "ok" for step in STEPS)
        table.add_row(*result.versions.values(), *cells, f"{result.seconds:.0f}")
    console.print(table)
    for result in results:
        errors = [f"{step}: {error}" for step, error in result.steps.items() if error]
        for text in (*errors, *([result.failure] if result.failure else [])):
            console.print(Text(f"FAILED {' '.join(map(' '.join, result.versions.items()))}, {text}"), soft_wrap=True)
