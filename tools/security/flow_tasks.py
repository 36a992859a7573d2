"""The tasks of one flow whose clients have to log in, each checked by an independent client.

That client uses the brokers' listeners without security: its observations do not depend on the tested mechanism.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException

from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError
from mirror_lib.features.metrics.observation import observe_flow
from mirror_lib.features.verify.findings import Verdict
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.features.verify.run import VerifyOptions, verify_flow
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.acls.flow import apply_flow_acls
from mirror_lib.sync.configs.flow import apply_flow_configs
from mirror_lib.sync.groups.flow import apply_flow_groups
from mirror_lib.sync.heartbeats.flow import check_flow_heartbeats, emit_heartbeats
from mirror_lib.sync.heartbeats.rules import HeartbeatState, emitting_flows
from mirror_lib.sync.topics.flow import apply_flow_topics
from tests.support.flows import copy_here
from tools.security.results import TASKS, TaskResult
from tools.versions import workload

_PARTITIONS, _RECORDS = 2, 60
_READER = "User:reader"
_SPARK_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the matrix, as passed to the process that tests it."""

    way: str
    #: The properties file.
    config: Path
    #: The listeners without security.
    source: str
    target: str
    #: The flow's only topic, which does not exist yet, and its only group.
    topic: str
    group: str
    #: Copy by a Spark job, not by threads of this process.
    spark: bool = False

    def to_json(self) -> str:
        """Serialize for a command line."""
        return json.dumps([self.way, str(self.config), self.source, self.target, self.topic, self.group, self.spark])

    @classmethod
    def from_json(cls, text: str) -> Row:
        """The inverse of `to_json`."""
        way, config, source, target, topic, group, spark = json.loads(text)
        return cls(way, Path(config), source, target, topic, group, spark)


def try_tasks(row: Row) -> Iterator[TaskResult]:
    """Run the tasks in the order of `TASKS`; a failed one does not prevent the others."""
    config = load(row.config)
    with closing(Ledger.open(config.ledger_url or "")) as ledger:
        ledger.migrate()
        flow = _Flow(row, ledger)
        parts: dict[str, Callable[[], None]] = {
            "topics": flow.topics,
            "copy": flow.copy,
            "configs": flow.configs,
            "ACLs": flow.acls,
            "groups": flow.groups,
            "heartbeats": flow.heartbeats,
            "verify": flow.verify,
            "observe": flow.observe,
        }
        for task in TASKS:
            failure = None
            try:
                parts[task]()
            except (MirrorError, KafkaException, AssertionError) as error:
                failure = str(error) or type(error).__name__
            yield TaskResult(task, failure)


class _Flow:
    """The flow of a row."""

    def __init__(self, row: Row, ledger: Ledger) -> None:
        self._row = row
        self._ledger = ledger
        self._config = load(row.config)
        (self._flow,) = self._config.enabled_flows
        self._topology = flow_topology(self._flow)
        self._remote = f"{self._flow.flow.source}.{row.topic}"

    def topics(self) -> None:
        workload.create_topic(self._row.source, self._row.topic, partitions=_PARTITIONS, configs={"retention.ms": "-1"})
        emitted = emit_heartbeats(emitting_flows(self._config, self._flow.flow))
        _expect([str(each.error) for each in emitted if each.error], [], "heartbeats that could not be written")

        done = apply_flow_topics(self._flow, self._topology)

        _expect([str(failed.error) for failed in done.failures], [], "rejected topics")
        _expect(workload.config(self._row.target, self._remote, "retention.ms"), "-1", "retention.ms")

    def copy(self) -> None:
        workload.produce(self._row.source, self._row.topic, _RECORDS, partitions=_PARTITIONS, codec="gzip")

        self._copy_by_spark() if self._row.spark else self._copy_here()

        wanted = workload.consume(self._row.source, self._row.topic)
        found = workload.consume(self._row.target, self._remote)
        _expect(len(wanted), _RECORDS, "records on the source")
        assert found == wanted, f"{self._remote} holds {len(found)} records and differs from {self._row.topic}"

    def configs(self) -> None:
        workload.set_config(self._row.source, self._row.topic, "retention.ms", "3153600000000")

        done = apply_flow_configs(self._flow, self._topology)

        _expect([str(error) for error in done.errors], [], "rejected topic configs")
        workload.eventually(
            lambda: workload.config(self._row.target, self._remote, "retention.ms") == "3153600000000",
            "retention.ms did not arrive",
        )

    def acls(self) -> None:
        workload.grant(self._row.source, self._row.topic, _READER, "READ")

        done = apply_flow_acls(self._flow, self._topology, self._ledger, by="security")

        _expect(done.plan.notice, None, "notice")
        _expect([str(error) for _, error in done.failed], [], "rejected ACLs")
        workload.eventually(
            lambda: workload.grants(self._row.target, self._remote) == {(_READER, "READ")},
            "the grant to read is missing",
        )

    def groups(self) -> None:
        end = workload.end_offset(self._row.source, self._row.topic, 1)
        workload.commit(self._row.source, self._row.group, self._row.topic, 1, end)

        done = apply_flow_groups(self._flow, self._topology)

        _expect(list(done.plan.problems), [], "rejected groups")
        wanted = {(self._remote, 1): workload.end_offset(self._row.target, self._remote, 1)}
        _expect(workload.committed(self._row.target, self._row.group), wanted, "committed offsets of the group")

    def heartbeats(self) -> None:
        emit_heartbeats(emitting_flows(self._config, self._flow.flow))
        self._copy_here()
        source = check_flow_heartbeats(self._flow, ledger=self._ledger).source
        _expect((source.state, source.hops), (HeartbeatState.FRESH, 1), f"heartbeats of the source ({source.problem})")

    def verify(self) -> None:
        report = verify_flow(
            self._flow,
            ledger=self._ledger,
            make_runner=lambda _: run_locally(1),
            options=VerifyOptions(topics=(self._row.topic,), tasks_max=1),
        )
        _expect([each.reason for each in report.verdicts if each.verdict is not Verdict.EQUAL], [], "differences")
        _expect(report.records, _RECORDS, "records found equal")

    def observe(self) -> None:
        seen = observe_flow(self._flow, self._ledger)
        _expect(seen.flow.stalled, 0, "stalled partitions")
        _expect(seen.flow.records_behind, 0, "lag (records)")

    def _copy_here(self) -> None:
        """Run the tasks of a run in threads of this process."""
        report = replicate(self._flow, ledger=self._ledger, make_runner=lambda: copy_here, options=RunOptions())
        _expect([str(error) for error in report.errors], [], "partitions that were not copied")

    def _copy_by_spark(self) -> None:
        flow = str(self._flow.flow)
        command = [
            sys.executable,
            "-m",
            "mirror_lib.cli.main",
            "run",
            "--config",
            str(self._row.config),
            "--flow",
            flow,
        ]
        done = subprocess.run(
            [*command, "--master", "local[2]"],
            env={**os.environ, "MIRROR_STATE_DIR": str(self._row.config.parent / "state")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SPARK_SECONDS,
            check=False,
        )
        _expect(done.returncode, 0, f"exit code of mirror run, which said {done.stderr[-2_000:]!r}")


def _expect(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} instead of {wanted!r}")
