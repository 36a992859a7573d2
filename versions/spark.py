"""`./run versions --spark`: a copy and a transform through the real Spark job, with PySpark of several versions."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mirror_lib.config.local_state import STATE_DIR_VARIABLE
from mirror_lib.errors import MirrorError
from versions import workload
from versions.clusters import SOURCES, Log, Side, running
from versions.environments import Environment, environment

#: PySpark's release and a Python that it supports, by the version of Spark.
SPARKS: Mapping[str, tuple[str, str]] = {
    "3.5": ("3.5.9", "3.11"),
    "4.0": ("4.0.5", "3.12"),
    "4.1": ("4.1.4", "3.13"),
    "4.2": ("4.2.0", "3.11"),
    "4.3": ("4.3.0", "3.12"),
}
STEPS = ("copy", "transform", "second run")
_ORDERS, _PAYMENTS = "orders", "payments"
_PARTITIONS = 2
_COUNT = 600
_RUN_SECONDS = 600
#: The lock pins them for the one Spark of the project.
_FREE = ("pyspark", "pyspark-client", "batch-mirror")

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
class SparkResult:
    """The results of one version; a step without one was not reached."""

    spark: str
    release: str
    python: str
    #: By step: the error, or None.
    steps: dict[str, str | None]
    failure: str | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if every step was tested and succeeded."""
        return self.failure is None and self.steps == dict.fromkeys(STEPS)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "spark": self.release,
            "python": self.python,
            "ok": self.ok,
            "steps": self.steps,
            "failure": self.failure,
            "seconds": round(self.seconds, 1),
        }


def run(versions: Sequence[str], folder: Path, results: list[SparkResult], log: Log) -> None:
    """Test the versions one after the other; each result is added to `results` at once.

    Raises:
        MirrorError: the brokers could not be fetched or started.
    """
    newest = SOURCES[-1]
    with running("source", newest, folder, log) as source, running("target", newest, folder, log) as target:
        workload.create_topic(source.servers, _ORDERS, partitions=_PARTITIONS, configs={"retention.ms": "-1"})
        workload.create_topic(source.servers, _PAYMENTS, partitions=_PARTITIONS, configs={"retention.ms": "-1"})
        _produce(source, 0)
        for version in versions:
            _try(version, source, target, folder, results, log)


def _try(version: str, source: Side, target: Side, folder: Path, results: list[SparkResult], log: Log) -> None:
    release, python = SPARKS[version]
    result = SparkResult(version, release, python, {})
    results.append(result)
    began = time.monotonic()
    try:
        log(f"making an environment with PySpark {release} and Python {python}")
        made = environment(f"spark-{version}", python, [f"pyspark=={release}", "pandas", "setuptools"], free=_FREE)
        flow = _Flow(version, made, source, target, folder)
        for step, error in flow.steps():
            result.steps[step] = error
            log(f"  {step}: {error or 'ok'}")
    except MirrorError as error:
        result.failure = str(error)
        log(f"  {error}")
    result.seconds = time.monotonic() - began


class _Flow:
    """A flow whose runs are made by an environment's own Python and Spark."""

    def __init__(self, version: str, made: Environment, source: Side, target: Side, folder: Path) -> None:
        self._alias = f"spark{version.replace('.', '')}"
        self._home = folder / self._alias
        self._home.mkdir()
        self._made, self._source, self._target = made, source, target
        text = _TEMPLATE.format(
            source=self._alias, source_servers=source.servers, target_servers=target.servers, folder=self._home
        )
        (self._home / "mirror.properties").write_text(text, encoding="utf-8")

    def steps(self) -> list[tuple[str, str | None]]:
        """Run twice; return the error of each step, or None."""
        first = self._run()
        found = [("copy", first or self._differs(self._orders)), ("transform", first or self._differs(self._payments))]
        _produce(self._source, 1)
        second = self._run()
        return [*found, ("second run", second or self._differs(self._orders) or self._differs(self._payments))]

    def _run(self) -> str | None:
        command = [
            str(self._made.program("mirror")),
            "run",
            f"--config={self._home / 'mirror.properties'}",
            f"--flow={self._alias}->B",
            "--master=local[1]",
        ]
        hidden = ("SPARK_HOME", "PYTHONPATH", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        variables = {**kept, STATE_DIR_VARIABLE: str(self._home / "state")}
        try:
            done = subprocess.run(
                command, env=variables, capture_output=True, text=True, check=False, timeout=_RUN_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"the run did not end within {_RUN_SECONDS} s"
        return None if done.returncode == 0 else f"the run failed: {(done.stderr or done.stdout).strip()[-600:]}"

    def _differs(self, check: Any) -> str | None:
        try:
            check()
        except (AssertionError, KafkaException) as error:
            return str(error) or type(error).__name__
        return None

    def _orders(self) -> None:
        wanted = workload.consume(self._source.servers, _ORDERS)
        found = workload.consume(self._target.servers, f"{self._alias}.{_ORDERS}")
        assert found == wanted, f"{len(found)} records differ from the {len(wanted)} of the source"

    def _payments(self) -> None:
        given = workload.consume(self._source.servers, _PAYMENTS)
        wanted = [(each.partition, each.key, _masked(each)) for each in given if b'"FR"' not in (each.value or b"")]
        target = workload.consume(self._target.servers, f"{self._alias}.{_PAYMENTS}")
        found = [(each.partition, each.key, json.loads(each.value or b"null")) for each in target]
        assert found == wanted, f"{len(found)} records differ from the {len(wanted)} that the transform leaves"


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


def print_report(console: Console, results: Sequence[SparkResult]) -> None:
    """The table, and below it the errors."""
    table = Table(title="A copy and a transform by versions of Spark", title_justify="left")
    for name in ("Spark", "Python", *STEPS):
        table.add_column(name)
    table.add_column("seconds", justify="right")
    for result in results:
        cells = ("-" if step not in result.steps else "FAILED" if result.steps[step] else "ok" for step in STEPS)
        table.add_row(result.release, result.python, *cells, f"{result.seconds:.0f}")
    console.print(table)
    for result in results:
        told = [f"{step}: {error}" for step, error in result.steps.items() if error]
        for text in (*told, *([result.failure] if result.failure else [])):
            console.print(Text(f"FAILED Spark {result.release}, {text}"), soft_wrap=True)
