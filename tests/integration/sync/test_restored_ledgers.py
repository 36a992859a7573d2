"""A ledger from a backup, or an empty one: groups wait until the map is known again, and then get the true offset."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.features.verify.findings import Verdict
from mirror_lib.features.verify.model import VerifyMode
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.flows import Flow
from tests.support.kafka import delete_records, delete_topic, records, transaction
from tests.support.ledger.ledgers import copied, ready_ledger
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import verify

Happened = Callable[[MirroredTopic, Flow], None]


def command(flow: Flow, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code of a command, and its document."""
    done = CliRunner().invoke(app, [*words, "--config", str(flow.path), "--flow", "A->B", "--json"])
    return done.exit_code, json.loads(done.stdout)


def copied_again(mirrored: MirroredTopic, flow: Flow) -> None:
    """300 of 600 records are left, and are at 0 to 299 of a new target topic."""
    delete_records(mirrored.source, mirrored.name, before=300)
    delete_topic(mirrored.target, mirrored.remote)
    assert [error.reason for error in flow.run().errors] == ["target-deleted"]
    assert command(flow, "gaps", "recopy", "--topic", mirrored.name, "--yes")[0] == 0
    assert flow.run().records == 300


def passed_over(mirrored: MirroredTopic, flow: Flow) -> None:
    """Records 600 to 799 are not copied, as an operator wanted it."""
    mirrored.produce(records(200, start=600))
    assert command(flow, "position", "set", "--topic", mirrored.name, "--to", "800", "--yes")[0] == 0


def went_on(mirrored: MirroredTopic, flow: Flow) -> None:
    """200 more records are copied."""
    mirrored.produce(records(200, start=600))
    assert flow.run().records == 200


@pytest.mark.parametrize(
    ("happened", "empty", "upstream", "downstream", "skipped"),
    [
        pytest.param(copied_again, False, 500, 200, 0, id="from before a new copy"),
        pytest.param(passed_over, False, 700, 600, 100, id="from before a position was set"),
        pytest.param(went_on, False, 700, 700, 0, id="of the same copy"),
        pytest.param(went_on, True, 500, 500, 0, id="empty"),
    ],
)
def test_given_a_ledger_that_is_behind_then_no_group_is_committed_until_the_map_is_rebuilt(
    mirrored: MirroredTopic, happened: Happened, *, empty: bool, upstream: int, downstream: int, skipped: int
) -> None:
    group = f"{mirrored.name}-group"
    settings = {
        "A->B.groups": group,
        "A->B.sync.group.offsets.enabled": "true",
        "checkpoints.topic.replication.factor": "1",
    }
    mirrored.create(records(600))
    flow = mirrored.flow(settings)
    flow.run()
    file, backup = flow.path.parent / "ledger.sqlite3", flow.path.parent / "backup.sqlite3"
    copied(file, backup)
    happened(mirrored, flow)
    flow = put_back(flow, file, None if empty else backup)
    commit_offset(mirrored.source, group, mirrored.name, upstream)

    # Before and after the next run.
    assert command(flow, "groups", "apply")[0] == 3
    copied_to = flow.position(mirrored.name).offset + 1
    mirrored.produce(records(300, start=copied_to))
    report = flow.run()
    assert (report.records, report.exit_code) == (300, 0)
    assert "The ledger lacks the history of 1 partition" in report.warnings[0]
    assert command(flow, "groups", "apply")[0] == 3
    assert committed_offsets(mirrored.target, group) == {}
    (gap,) = flow.ledger.open_gaps("A->B")
    assert (gap.cause, gap.next_offset) == ("ledger-behind", copied_to)

    if empty:
        # A decision about the partition does not say what the ledger lacks.
        assert command(flow, "gaps", "stop", "--all", "--yes")[0] == 0
        assert command(flow, "groups", "apply")[0] == 3
        assert command(flow, "gaps", "resume", "--all", "--yes")[0] == 0

    assert command(flow, "map", "rebuild", "--apply")[0] == 0

    assert flow.ledger.open_gaps("A->B") == ()
    code, plan = command(flow, "groups", "apply")
    assert code == 0
    assert committed_offsets(mirrored.target, group) == {(mirrored.remote, 0): downstream}
    assert [row["skipped"] for row in plan["rows"]] == [skipped]
    # The marks of the former copy do not count.
    (verdict,) = verify(flow, mode=VerifyMode.FULL).verdicts
    assert verdict.verdict == "equal"


def test_given_a_lost_position_topic_then_no_group_follows_the_map_of_a_copy_that_may_be_gone(
    mirrored: MirroredTopic,
) -> None:
    """Seed 20103 of the model: the target topic was created again, and a group at its beginning was "in sync"."""
    group, own = f"{mirrored.name}-group", f"positions-{mirrored.name}"
    mirrored.create(records(15))
    settings = {"A->B.groups": group, "B.offset.storage.topic": own, "checkpoints.topic.replication.factor": "1"}
    flow = mirrored.flow({**settings, "A->B.sync.group.offsets.enabled": "true"})
    assert flow.run().records == 15
    commit_offset(mirrored.source, group, mirrored.name, 0)
    for lost in (mirrored.remote, own):
        delete_topic(mirrored.target, lost)
    mirrored.create_remote()

    code, plan = command(flow, "groups", "apply")

    assert (code, [row["reason"] for row in plan["rows"]]) == (3, ["ledger-behind"])
    assert committed_offsets(mirrored.target, group) == {}


def test_given_a_ledger_that_is_behind_when_a_position_is_set_before_any_run_then_what_it_lacks_is_noted(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(60))
    flow = mirrored.flow()
    flow.run()
    file, backup = flow.path.parent / "ledger.sqlite3", flow.path.parent / "backup.sqlite3"
    copied(file, backup)
    mirrored.produce(records(20, start=60))
    flow.run()
    flow = put_back(flow, file, backup)

    assert command(flow, "position", "set", "--topic", mirrored.name, "--to", "latest", "--yes")[0] == 0

    gaps = {gap.cause: (gap.first_offset, gap.next_offset) for gap in flow.ledger.open_gaps("A->B")}
    assert gaps == {"ledger-behind": (60, 80)}


def put_back(flow: Flow, file: Path, backup: Path | None) -> Flow:
    flow.ledger.close()
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    if backup is not None:
        backup.rename(file)
    return Flow(flow.config, ready_ledger(f"sqlite:///{file}"), flow.path)


@pytest.mark.parametrize("empty", [False, True])
def test_given_a_ledger_that_is_behind_then_what_nobody_has_counted_is_not_zero(
    mirrored: MirroredTopic, *, empty: bool
) -> None:
    """Records of aborted and of open transactions that a flow of all records has copied."""
    mirrored.create(records(10))
    transaction(mirrored.source, mirrored.name, [b"1", b"2"], commit=False)
    flow = mirrored.flow()
    flow.run()
    file, backup = flow.path.parent / "ledger.sqlite3", flow.path.parent / "backup.sqlite3"
    copied(file, backup)
    transaction(mirrored.source, mirrored.name, [b"3", b"4", b"5"], commit=False)
    flow.run()
    assert counted(flow) == (5, 0)
    flow = put_back(flow, file, None if empty else backup)

    assert flow.run().records == 0

    # With the markers: 17 offsets in all, 13 in the backup.
    assert counted(flow) == ((0, 17) if empty else (2, 4))
    transaction(mirrored.source, mirrored.name, [b"6"], commit=False)
    flow.run()
    assert counted(flow) == ((1, 17) if empty else (3, 4))


def test_given_an_empty_ledger_then_an_empty_partition_that_is_deleted_later_is_named(mirrored: MirroredTopic) -> None:
    """Nothing was copied of it, so the ledger lacks nothing but its position."""
    mirrored.create(partitions=2)
    flow = mirrored.flow()
    flow.run()
    flow = put_back(flow, flow.path.parent / "ledger.sqlite3", None)
    assert flow.run().errors == ()

    delete_topic(mirrored.source, mirrored.name)

    named = command(flow, "plan")[1]["unselected"]
    assert [(each["topic"], each["partition"]) for each in named] == [(mirrored.name, 0), (mirrored.name, 1)]


@pytest.mark.parametrize(("deleted", "expired"), [(12, 10), (15, 15)])
def test_given_a_ledger_that_is_behind_then_what_retention_deleted_of_the_rest_is_no_difference(
    mirrored: MirroredTopic, *, deleted: int, expired: int
) -> None:
    """The map cannot be rebuilt from records that the target no longer has. Before its first record nothing is read."""
    mirrored.create(records(10))
    flow = mirrored.flow()
    flow.run()
    file = flow.path.parent / "ledger.sqlite3"
    backup = flow.path.parent / "backup.sqlite3"
    copied(file, backup)
    mirrored.produce(records(5, start=10))
    flow.run()
    flow = put_back(flow, file, backup)
    delete_records(mirrored.target, mirrored.remote, before=deleted)
    assert flow.run().errors == ()
    assert command(flow, "map", "rebuild", "--apply")[0] == 0

    (verdict,) = verify(flow, mode=VerifyMode.FULL).verdicts

    found = (verdict.verdict, verdict.expired_records, verdict.records)
    assert found == (Verdict.EQUAL, expired, 15 - deleted), verdict.differences


def counted(flow: Flow) -> tuple[int, int]:
    """Aborted records, and offsets that are not counted, as a plan says it."""
    (topic,) = command(flow, "plan")[1]["copied_transactions"]
    return topic["aborted"], topic["uncounted"]
