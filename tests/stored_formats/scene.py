"""What the chapters work with: two clusters, flows between them that share a ledger, a console, and the facts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig
from mirror_lib.ledger.store import Ledger
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, watermarks

#: What a file for clusters of one broker needs.
_ONE_BROKER = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "5",
    "mirror.retry.max.seconds": "20",
}


class Facts:
    """What the stored formats have to say, by kind: input, and what an independent client reads from the logs."""

    def __init__(self) -> None:
        self.by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def add(self, subject: str, /, **fact: Any) -> None:
        """Keep one fact."""
        self.by_kind[subject].append(fact)


@dataclass
class Scene:
    """Two clusters and one ledger.

    Attributes:
        outputs: documents that the product has printed or written, by file name.
    """

    pair: KafkaPair
    folder: Path
    ledger_url: str
    #: Who acts at the console, as commands name a person.
    person: str = "marta@mirror-1"
    facts: Facts = field(default_factory=Facts)
    outputs: dict[str, Any] = field(default_factory=dict)

    def flow(self, source: str, target: str, topics: str, settings: Mapping[str, str]) -> Flow:
        """Write the properties file of a flow between the two clusters under these aliases, and load it."""
        name = f"{source}->{target}"
        lines = {
            "clusters": f"{source}, {target}",
            f"{source}.bootstrap.servers": self.pair.source.bootstrap_servers,
            f"{target}.bootstrap.servers": self.pair.target.bootstrap_servers,
            f"{name}.enabled": "true",
            f"{name}.topics": topics,
            "mirror.ledger.url": self.ledger_url,
            **_ONE_BROKER,
            **settings,
        }
        path = self.folder / f"{source}-{target}.properties"
        path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()), encoding="utf-8")
        ledger = Ledger.open(self.ledger_url)
        ledger.migrate()
        return Flow(load(path).flow(name), ledger, path)

    def config(self, flow: Flow) -> MirrorConfig:
        """The whole file of a flow."""
        return load(flow.path)

    def call(self, flow: Flow, *words: str, exit_code: int = 0, keep: str = "") -> dict[str, Any]:
        """Run a `mirror` command with --json, which must end with this exit code.

        Args:
            keep: name of the output file to store the document in.
        """
        arguments = [*words, "--config", str(flow.path), "--json"]
        result = CliRunner().invoke(app, arguments)
        if result.exit_code != exit_code:
            raise RuntimeError(f"mirror {' '.join(words)} ended with {result.exit_code}: {result.output}")
        document: dict[str, Any] = json.loads(result.stdout)
        if keep:
            self.outputs[keep] = document
        return document

    def call_for_flow(self, flow: Flow, *words: str, exit_code: int = 0, keep: str = "") -> dict[str, Any]:
        """As `call`, with the flow's name."""
        return self.call(flow, *words, "--flow", str(flow.config.flow), exit_code=exit_code, keep=keep)

    def run(self, flow: Flow, records: int, *, trigger: str = "cli", keep: str = "", **options: Any) -> None:
        """One run that has to copy a known number of records without an error."""
        report = flow.run(trigger=trigger, **options)
        if report.errors or report.records != records:
            raise RuntimeError(f"{flow.config.flow}: {report.records} records instead of {records}: {report.errors}")
        if keep:
            self.outputs[keep] = report.to_dict()
        self.expect_run(flow, report.run_id, "succeeded", records, trigger)

    def expect_run(
        self, flow: Flow, run_id: str, state: str, records: int, trigger: str = "cli", reason: str | None = None
    ) -> None:
        """Keep what is known of a run."""
        self.facts.add(
            "runs",
            id=run_id,
            flow=str(flow.config.flow),
            state=state,
            records=records,
            trigger=trigger,
            reason=reason,
        )

    def expect_running(self, flow: str, run_id: str, trigger: str) -> None:
        """Keep what is known of a run that has not ended."""
        self.facts.add("runs", id=run_id, flow=flow, state="running", records=0, trigger=trigger, reason=None)

    def expect_position(self, flow: Flow, topic: str, partition: int = 0, *, target: str) -> None:
        """Keep that everything of a partition is copied: its position is the log end offset on either side."""
        self.facts.add(
            "positions",
            flow=str(flow.config.flow),
            topic=topic,
            partition=partition,
            next_offset=watermarks(self.pair.source, topic, partition)[1],
            target_offset=watermarks(self.pair.target, target, partition)[1],
        )

    def expect_map(self, flow: str, topic: str, partition: int = 0, *, target: str, first: int = 0) -> None:
        """Keep where each record of a partition is on the target, as both logs have it now.

        Args:
            flow: whose map has it; a backfill has its own.
            first: the first source offset that counts.
        """
        source = consume(self.pair.source, topic, partitions=[partition])
        copies = {
            _content(each): each.offset or 0 for each in consume(self.pair.target, target, partitions=[partition])
        }
        pairs = [
            (record.offset or 0, copies[_content(record)])
            for record in source
            if _content(record) in copies and (record.offset or 0) >= first
        ]
        if not pairs:
            raise RuntimeError(f"no record of {topic}-{partition} is in {target}")
        self.facts.add(
            "offset_map",
            flow=flow,
            topic=topic,
            partition=partition,
            pairs=pairs,
            holes=sorted(set(range(pairs[0][0], pairs[-1][0])) - {pair[0] for pair in pairs}),
        )


def _content(record: Record) -> tuple[bytes | None, bytes | None]:
    return record.key, record.value
