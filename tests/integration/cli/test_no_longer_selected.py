"""A partition that was copied and that the flow selects no longer: every view says so, until it is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from tests.support.console import Console
from tests.support.kafka import create_topic, delete_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic

LEFT = "no-longer-selected"

pytestmark = pytest.mark.usefixtures("without_spark")


def left(document: Mapping[str, Any]) -> list[tuple[str, int, int, int | None]]:
    """Topic, partition, position and last observed end of what a plan says is selected no longer."""
    return [(each["topic"], each["partition"], each["position"], each["log_end"]) for each in document["unselected"]]


def open_gaps(console: Console) -> list[tuple[str, int, str, int, int]]:
    rows = console.say("gaps", "list", "--open").document["gaps"]
    return sorted((row["topic"], row["partition"], row["cause"], row["from"], row["to"]) for row in rows)


def stalled(console: Console) -> list[tuple[str, int, int, str]]:
    """What an observation says is stalled, and by how much."""
    rows = console.say("observe").document["observed"]["partition_rows"]
    return [(row["topic"], row["partition"], row["records_behind"], row["reason"]) for row in rows if row["reason"]]


def warned(document: Mapping[str, Any], *words: str) -> bool:
    return any(all(word in warning for word in words) for warning in document["warnings"])


def metrics(console: Console) -> Sequence[str]:
    return CliRunner().invoke(app, ["metrics", "--config", str(console.path)]).stdout.splitlines()


def test_a_topic_that_was_created_again_with_fewer_partitions(mirrored: MirroredTopic) -> None:
    name = mirrored.name
    mirrored.create([each for n in range(6) for each in records(20, partition=n)], partitions=6)
    console = Console(mirrored.flow().path)
    console.copied()
    mirrored.produce(each for n in range(6) for each in records(10, partition=n, start=20))
    console.say("observe")
    delete_topic(mirrored.source, name)
    create_topic(mirrored.source, name, partitions=3)

    run = console.run()

    assert run.reasons == {"source-recreated"}
    assert {each["partition"] for each in run.failures} == {0, 1, 2}
    assert warned(run.document, f"{name}-3 (the topic has only 3 partitions", "up to source offset 19", "10 offsets")
    assert [each for each in open_gaps(console) if each[2] == LEFT] == [(name, n, LEFT, 20, 30) for n in (3, 4, 5)]
    # Twice: an observation keeps what it can no longer see.
    assert stalled(console)[3:] == stalled(console)[3:] == [(name, n, 10, LEFT) for n in (3, 4, 5)]
    assert left(console.say("plan").document) == [(name, n, 20, 30) for n in (3, 4, 5)]
    assert f'mirror_partition_stalled{{flow="A->B",reason="{LEFT}"}} 3.0' in metrics(console)

    refused = console.say("gaps", "recopy", "--topic", name, "--partition", "3", "--yes")
    assert (refused.exit_code, len(open_gaps(console))) == (3, 6)
    assert console.say("gaps", "accept", "--topic", name, "--yes").document["done"] == 6

    mirrored.produce(records(5))
    console.runs_on()
    assert left(console.say("plan").document) == stalled(console) == []


def test_a_target_topic_to_which_only_such_a_partition_was_copied_is_created_again(mirrored: MirroredTopic) -> None:
    mirrored.create(records(5, partition=1), partitions=2)
    console = Console(mirrored.flow().path)
    console.copied()
    delete_topic(mirrored.target, mirrored.remote)
    delete_topic(mirrored.source, mirrored.name)
    mirrored.create(records(3))

    # Its successor has partition 0 alone, which was never copied.
    assert console.run().reasons == {"source-recreated"}
    console.say("gaps", "accept", "--topic", mirrored.name, "--yes")

    assert console.run().document["run"]["records"] == 3
    console.runs_on()


class TestAPattern:
    """A flow of `name.*`: one topic stays, another one with uncopied records leaves."""

    @pytest.fixture
    def other(self, mirrored: MirroredTopic) -> str:
        return f"{mirrored.name}-other"

    @pytest.fixture
    def console(self, mirrored: MirroredTopic, other: str) -> Console:
        mirrored.create(records(5))
        create_topic(mirrored.source, other)
        produce(mirrored.source, other, records(20))
        console = Console(mirrored.flow(topics=f"{mirrored.name}.*").path)
        console.copied()
        produce(mirrored.source, other, records(10, start=20))
        return console

    def test_a_deleted_topic(self, mirrored: MirroredTopic, other: str, console: Console) -> None:
        finished = f"{mirrored.name}-finished"
        create_topic(mirrored.source, finished, partitions=2)
        console.copied()
        produce(mirrored.source, other, records(10, start=30))
        # Of this one all was copied, as far as anybody knows; of the other one not.
        console.say("observe")
        for each in (finished, other):
            delete_topic(mirrored.source, each)
        mirrored.produce(records(5, start=5))

        run = console.run()

        # The flow goes on, and so does its schedule.
        assert (run.exit_code, run.document["run"]["records"]) == (0, 5)
        assert warned(run.document, f"{other}-0 (the topic was deleted on A", "log end offset 40", "unknown")
        assert (console.say("gaps", "list").exit_code, console.say("observe").exit_code) == (3, 3)
        assert open_gaps(console) == [(other, 0, LEFT, 30, 40)]
        status = console.say("status").document
        (waiting,) = status["open_gaps"]
        assert (waiting["flow"], waiting["cause"], waiting["gaps"], waiting["topics"]) == ("A->B", LEFT, 1, other)

        # That is said once, and needs no decision.
        assert warned(run.document, "1 topic was deleted on A, after being copied", finished, "is unknown")
        assert status["deleted_topics"] == [{"flow": "A->B", "topics": 1, "first": [finished]}]
        assert not warned(console.run().document, finished)

        # Twice: an open gap is noted once.
        assert warned(console.run().document, f"mirror gaps accept --flow 'A->B' --topic {other}")
        assert len(open_gaps(console)) == 1
        console.say("gaps", "accept", "--topic", other, "--yes")
        console.runs_on()
        assert (console.say("observe").exit_code, console.say("status").document["open_gaps"]) == (0, [])

    def test_a_typing_error(self, mirrored: MirroredTopic, other: str, console: Console) -> None:
        name, right = mirrored.name, f"{mirrored.name}.*"
        console.say("observe")
        console.change({"A->B.topics": f"{name}[.]*"})
        assert console.run().exit_code == 0
        assert open_gaps(console) == [(other, 0, LEFT, 20, 30)]

        # Runs of other topics do not judge it.
        assert left(console.say("plan", "--topics", name).document) == []

        # Corrected, the gap closes itself, and the copy continues.
        console.change({"A->B.topics": right})
        assert console.run().document["run"]["records"] == 10
        console.runs_on()

        # The same error another time is another question, also if it was meant once.
        for _ in range(2):
            console.change({"A->B.topics": f"{name}[.]*"})
            console.copied()
            assert open_gaps(console) == [(other, 0, LEFT, 30, 30)]
            console.say("gaps", "accept", "--topic", other, "--yes")
            console.change({"A->B.topics": right})
            console.copied()

        # A literal name in the exclusions is meant; a pattern may match by mistake.
        console.change({"A->B.topics.exclude": f"{name}-o.*"})
        console.copied()
        assert open_gaps(console) == [(other, 0, LEFT, 30, 30)]
        console.change({"A->B.topics.exclude": other})
        console.runs_on()

    def test_a_flow_that_the_file_runs_no_longer(self, mirrored: MirroredTopic, console: Console) -> None:
        renamed = {"clusters": "A, B, C", "C.bootstrap.servers": mirrored.source.bootstrap_servers}
        console.change(
            {**renamed, "A->B.enabled": "false", "C->B.enabled": "true", "C->B.topics": f"{mirrored.name}.*"}
        )

        plan = Console(console.path, "C->B").say("plan")

        assert warned(plan.document, "C->B has copied nothing", "A->B between the same clusters (2 partitions")
        (flow,) = console.say("status").document["other_flows"]
        assert (flow["flow"], flow["partitions"], flow["behind"]) == ("A->B", 2, 0)
        assert flow["why_it_does_not_run"] == "not enabled"
