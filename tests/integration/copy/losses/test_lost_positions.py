"""A position topic that was deleted, or another one: what the ledger knows to be copied is not copied again."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config.topology import flow_topology
from mirror_lib.ledger.rows import POSITION_SET
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.sync.groups.flow import plan_flow_groups
from tests.support.brokers.groups import commit_offset
from tests.support.kafka import consume, delete_topic, produce, records, values
from tests.support.mirrored_topic import MirroredTopic


@pytest.mark.parametrize("existing", ["fail", "append"])
def test_given_a_lost_position_then_nothing_is_appended_and_the_named_command_goes_on(
    mirrored: MirroredTopic, existing: str
) -> None:
    mirrored.create(records(100))
    own = f"positions-{mirrored.name}"
    flow = mirrored.flow({"mirror.target.existing": existing, "B.offset.storage.topic": own})
    assert flow.run().records == 100
    mirrored.produce(records(5, start=100))
    delete_topic(mirrored.target, own)

    (error,) = flow.run().errors

    assert error.reason == "position-lost"
    assert "up to source offset 99" in error.what
    words = ["position", "set", "--flow", "A->B", "--topic", mirrored.name, "--partition", "0", "--to", "100"]
    assert f"`mirror {' '.join(words)}`".replace("A->B", "'A->B'") in error.action
    done = CliRunner().invoke(app, [*words, "--yes", "--config", str(flow.path)])
    assert done.exit_code == 0, done.output
    assert flow.run().records == 5
    assert values(mirrored.copied()) == values(records(105))


def test_given_a_lost_position_then_what_a_decision_passes_over_is_noted_and_groups_that_have_not_read_it_are_named(
    mirrored: MirroredTopic,
) -> None:
    """Copied up to 10 by the ledger, continued at 30: twenty records are at the source alone."""
    mirrored.create(records(10))
    own = f"positions-{mirrored.name}"
    flow = mirrored.flow({"B.offset.storage.topic": own, "groups": mirrored.name})
    assert flow.run().records == 10
    mirrored.produce(records(30, start=10))
    delete_topic(mirrored.target, own)
    assert [error.reason for error in flow.run().errors] == ["position-lost"]
    commit_offset(mirrored.source, mirrored.name, mirrored.name, 15)

    words = ["position", "set", "--flow", "A->B", "--topic", mirrored.name, "--to", "30", "--yes"]
    done = CliRunner().invoke(app, [*words, "--config", str(flow.path)])

    assert (done.exit_code, "offsets 10 to 29 are skipped" in done.output) == (0, True), done.output
    assert flow.run().records == 10
    (row,) = plan_flow_groups(flow.config, flow_topology(flow.config), ledger=flow.ledger).plan.rows
    assert (row.reason, row.skipped) == (GroupReason.SKIPS_RECORDS, 15)
    gaps = [(gap.first_offset, gap.next_offset) for gap in flow.ledger.gaps("A->B") if gap.cause == POSITION_SET]
    assert gaps == [(10, 30)]


def test_given_a_lost_position_and_a_lost_target_then_the_named_command_copies_all_partitions_again(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create([*records(10), *records(10, partition=1)], partitions=2)
    own = f"positions-{mirrored.name}"
    flow = mirrored.flow({"B.offset.storage.topic": own})
    assert flow.run().records == 20
    delete_topic(mirrored.target, mirrored.remote)
    delete_topic(mirrored.target, own)
    # One partition has all that was copied, or as much.
    mirrored.create_remote(partitions=2)
    mirrored.produce_remote(records(10))

    errors = flow.run().errors

    assert [error.reason for error in errors] == ["position-lost"] * 2
    words = ["position", "set", "--flow", "A->B", "--topic", mirrored.name, "--to", "earliest"]
    assert all(f"`mirror {' '.join(words)}`".replace("A->B", "'A->B'") in error.action for error in errors)
    delete_topic(mirrored.target, mirrored.remote)
    assert CliRunner().invoke(app, [*words, "--yes", "--config", str(flow.path)]).exit_code == 0
    assert flow.run().records == 20


def test_given_positions_of_yesterday_on_a_target_of_today_then_nothing_is_appended_and_the_named_command_goes_on(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(60))
    own = f"positions-{mirrored.name}"
    flow = mirrored.flow({"B.offset.storage.topic": own})
    assert flow.run().records == 60
    backup = consume(mirrored.target, own)
    mirrored.produce(records(40, start=60))
    assert flow.run().records == 40
    delete_topic(mirrored.target, own)
    flow.sync_internal_topics()
    produce(mirrored.target, own, backup)

    (error,) = flow.run().errors

    assert error.reason == "position-lost"
    assert "has its position at source offset 59, but the ledger" in error.what
    assert "copied up to source offset 99" in error.what
    words = ["position", "set", "--flow", "A->B", "--topic", mirrored.name, "--partition", "0", "--to", "100"]
    done = CliRunner().invoke(app, [*words, "--yes", "--config", str(flow.path)])
    assert done.exit_code == 0, done.output
    mirrored.produce(records(5, start=100))
    assert flow.run().records == 5
    assert values(mirrored.copied()) == values(records(105))


def test_given_a_lost_position_of_an_empty_partition_then_what_was_written_since_is_copied(
    mirrored: MirroredTopic,
) -> None:
    """Seed 7003 of the model: `latest` began at the log end a second time, and passed over 24 records."""
    mirrored.create([])
    own = f"positions-{mirrored.name}"
    flow = mirrored.flow({"A->B.mirror.first.start": "latest", "B.offset.storage.topic": own})
    assert flow.run().records == 0
    delete_topic(mirrored.target, own)
    mirrored.produce(records(24))

    assert flow.run().records == 24


def test_given_a_lost_position_of_a_killed_first_copy_then_nothing_is_appended(mirrored: MirroredTopic) -> None:
    mirrored.create([])
    own = f"positions-{mirrored.name}"
    flow = mirrored.flow({"mirror.target.existing": "append", "B.offset.storage.topic": own})
    assert flow.run().records == 0
    # The killed run has left its records there, and the ledger has the position before them.
    produce(mirrored.target, f"A.{mirrored.name}", records(24))
    mirrored.produce(records(24))
    delete_topic(mirrored.target, own)

    (error,) = flow.run().errors

    assert (error.reason, "nothing copied" in error.what) == ("position-lost", True)
