"""A target whose disks were put back to an earlier day: its positions agree with its records, the ledger knows more."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.verify.model import VerifyMode
from tests.integration.copy.losses.test_restored_source import restart_with
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.clusters import start_together
from tests.support.flows import Flow
from tests.support.kafka import consume, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import verify


def command(flow: Flow, *words: str) -> int:
    return CliRunner().invoke(app, [*words, "--config", str(flow.path), "--flow", "A->B"]).exit_code


def test_given_a_target_of_yesterday_then_it_is_said_and_what_was_verified_since_counts_no_more(
    mirrored: MirroredTopic, kafka_jars: Path, cluster_folder: Path
) -> None:
    target, group = KafkaCluster("restored", directory=cluster_folder / "restored", jars=kafka_jars), mirrored.name
    mirrored.create(records(100))
    with start_together(target):
        settings = {
            "A->B.groups": f"{group}.*",
            "A->B.sync.group.offsets.enabled": "true",
            "checkpoints.topic.replication.factor": "1",
        }
        flow = mirrored.between(target=target).flow(settings)
        assert flow.run().records == 100
        snapshot = cluster_folder / "yesterday"
        restart_with(target, take=snapshot)
        mirrored.produce(records(100, start=100))
        assert flow.run().records == 100
        commit_offset(mirrored.source, group, mirrored.name, 150)
        assert [each.records for each in verify(flow, mode=VerifyMode.FULL).verdicts] == [200]
        restart_with(target, put=snapshot)

        # Nothing was written since, so that the partition looks behind, and no more.
        assert command(flow, "groups", "apply") == 3
        assert committed_offsets(target, group) == {}
        (error,) = flow.run().errors
        assert error.reason == "target-truncated"
        assert "log end offset of" in error.what
        assert "is 100 on the target, but records were copied to it, up to offset 200" in error.what

        assert command(flow, "gaps", "accept", "--topic", mirrored.name, "--yes") == 0
        assert flow.run().records == 100
        copied = consume(target, mirrored.remote)
        assert [each.offset for each in copied] == list(range(200))
        # The copy of these is another one than what was compared.
        (recent,) = verify(flow, mode=VerifyMode.RECENT).verdicts
        assert (recent.verdict, recent.records) == ("equal", 200)
        assert command(flow, "groups", "apply") == 0
        assert committed_offsets(target, group) == {(mirrored.remote, 0): 150}
        # The target has kept what was copied before.
        late = f"{group}-late"
        commit_offset(mirrored.source, late, mirrored.name, 50)
        assert command(flow, "groups", "apply") == 0
        assert committed_offsets(target, late) == {(mirrored.remote, 0): 50}
