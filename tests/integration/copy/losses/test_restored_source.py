"""A source whose disks were put back to an earlier day, and that has grown since: to what was copied, or beyond."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import SourceTruncatedError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.verify.model import VerifyMode
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.clusters import start_together
from tests.support.console import Console
from tests.support.kafka import consume, create_topic, produce, records, transaction, values
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import verify


def restart_with(cluster: KafkaCluster, *, take: Path | None = None, put: Path | None = None) -> None:
    """Stop the cluster, take a copy of its disks or put one back, and start it again."""
    cluster.stop()
    (data,) = cluster.data_folders
    if take is not None:
        shutil.copytree(data, take)
    if put is not None:
        shutil.rmtree(data)
        shutil.copytree(put, data)
    cluster.start()


def test_it_stops_the_partition_whose_copied_records_are_others_now(
    mirrored: MirroredTopic, kafka_jars: Path, cluster_folder: Path
) -> None:
    """As many restarts in both histories: the leader epochs of both are the same."""
    source = KafkaCluster("restored", directory=cluster_folder / "restored", jars=kafka_jars)
    snapshot, target = cluster_folder / "yesterday", mirrored.remote
    marked, plain, kept, level = 0, 1, 2, 3
    with start_together(source):
        create_topic(source, mirrored.name, partitions=4)
        for partition in (plain, marked, kept, level):
            produce(source, mirrored.name, records(10, partition=partition))
        settings = {
            "A->B.groups": mirrored.name,
            "A->B.sync.group.offsets.enabled": "true",
            "checkpoints.topic.replication.factor": "1",
        }
        flow = mirrored.between(source=source).flow(settings)
        assert flow.run().records == 40
        restart_with(source, take=snapshot)
        for partition in (plain, level):
            produce(source, mirrored.name, records(10, start=10, partition=partition))
        # Its log ends with a marker, which no reader sees.
        transaction(source, mirrored.name, [b"copied %d" % number for number in range(10)], commit=True)
        assert flow.run(sync=False).records == 30
        restart_with(source, put=snapshot)
        again = produce(source, mirrored.name, records(30, start=100, partition=plain))
        transaction(source, mirrored.name, [b"another %d" % number for number in range(30)], commit=True)
        produce(source, mirrored.name, records(5, start=10, partition=kept))
        # Lost as many as were written since: its end is that of the copy.
        others = produce(source, mirrored.name, records(10, start=200, partition=level))

        # Groups have read the records that are there now, and not the copied ones.
        for partition in (marked, plain, kept, level):
            commit_offset(source, mirrored.name, mirrored.name, 10 + partition, partition=partition)
        applied = Console(flow.path).say("groups", "apply")
        assert applied.exit_code == 3
        assert {row["partition"]: row["reason"] for row in applied.document["rows"]} == {
            **dict.fromkeys((marked, plain, level), "source-changed"),
            kept: "upstream-beyond-copied",
        }
        assert committed_offsets(mirrored.target, mirrored.name) == {(target, kept): 10}

        planned = plan_flow(flow.config, RunOptions(), flow.ledger)
        report = flow.run(sync=False)

        for errors in ([problem.error for problem in planned.problems], report.errors):
            assert [(type(each), each.where.partition) for each in errors] == [
                (SourceTruncatedError, marked),
                (SourceTruncatedError, plain),
                (SourceTruncatedError, level),
            ]
            assert all("is not the record that was copied from there" in each.what for each in errors)
        # Partition 2 has lost nothing.
        assert (report.exit_code, report.records) == (3, 5)
        assert len(consume(mirrored.target, target, partitions=[plain, marked, level])) == 60
        assert {gap.cause for gap in flow.ledger.open_gaps("A->B")} == {"source-truncated"}
        # The gaps name what was lost. What is there now was not copied.
        verdicts = {each.source.partition: each.verdict for each in verify(flow, mode=VerifyMode.FULL).verdicts}
        assert verdicts == {marked: "different", plain: "different", level: "different", kept: "equal"}
        # Here the operator knows where the snapshot ends, and copies from there.
        words = ["--config", str(flow.path), "--flow", "A->B", "--json", "--yes", "--topic", mirrored.name]
        moved, set_back = (
            CliRunner().invoke(app, ["position", "set", *words, "--partition", str(each), "--to", "10"])
            for each in (plain, level)
        )
        decided = CliRunner().invoke(app, ["gaps", "recopy", *words, "--partition", str(marked)])
        assert (moved.exit_code, set_back.exit_code) == (0, 0), moved.output + set_back.output
        assert decided.exit_code == 0, json.loads(decided.stdout)
        assert flow.run(sync=False).errors == ()
        for partition, written in ((plain, again), (level, others)):
            copied = consume(mirrored.target, target, partitions=[partition])
            assert [each.value for each in copied[20:]] == values(written)
        assert len(consume(mirrored.target, target, partitions=[marked])) == 20 + 40
        assert flow.ledger.open_gaps("A->B") == ()


def test_given_a_source_that_has_grown_to_less_or_to_more_then_accepting_copies_what_is_new_and_nothing_twice(
    mirrored: MirroredTopic, kafka_jars: Path, cluster_folder: Path
) -> None:
    """The leader epochs of both histories are the same, and where they part is known by the copies alone."""
    source = KafkaCluster("restored", directory=cluster_folder / "restored", jars=kafka_jars)
    snapshot, target = cluster_folder / "yesterday", mirrored.remote
    less, more, marked, shrunk = range(4)
    with start_together(source):
        # Copies have the timestamps that the source's broker has set.
        create_topic(source, mirrored.name, partitions=4, configs={"message.timestamp.type": "LogAppendTime"})
        for partition in (less, more, shrunk):
            produce(source, mirrored.name, records(10, partition=partition))
        transaction(source, mirrored.name, [b"committed"] * 3, commit=True, partition=marked)
        flow = mirrored.between(source=source).flow()
        assert flow.run().records == 33
        restart_with(source, take=snapshot)
        for partition in range(4):
            produce(source, mirrored.name, records(20, start=10, partition=partition))
        assert flow.run(sync=False).records == 80
        restart_with(source, put=snapshot)
        new = {
            partition: produce(source, mirrored.name, records(count, start=100, partition=partition))
            for partition, count in ((less, 7), (more, 30), (marked, 5))
        }

        report = flow.run(sync=False)

        assert {type(each) for each in report.errors} == {SourceTruncatedError}
        assert {gap.partition: gap.first_offset for gap in flow.ledger.open_gaps("A->B")} == {
            less: 10,
            more: 10,
            # After its marker.
            marked: 3,
            shrunk: 10,
        }
        Console(flow.path).say("gaps", "accept", "--all", "--yes")
        assert flow.run(sync=False).errors == ()
    for partition in range(4):
        copied = [each.value for each in consume(mirrored.target, target, partitions=[partition])]
        kept = 3 if partition == marked else 10
        assert copied[kept + 20 :] == values(new.get(partition, []))
