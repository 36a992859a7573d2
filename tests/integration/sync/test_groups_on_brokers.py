"""Consumer groups of a flow between two real clusters: committed on the source, found again on the target."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as NativePartition
from typer import Typer
from typer.testing import CliRunner

from mirror_lib.cli.main import app as mirror
from mirror_lib.cli.sync import groups as groups_cli
from mirror_lib.cluster.admin.groups import CommittedOffset, GroupActiveError, GroupAdmin, GroupKind, GroupState
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.topics.mm2_formats import Checkpoint, OffsetSync, RecordFormatError
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import BrokerUnreachableError, ConfigurationError, TopicMissingError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.metrics.observation import observe_flow
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.sync.groups import flow as flow_groups
from mirror_lib.sync.groups.flow import GroupSync, apply_flow_groups, plan_flow_groups, sync_flow_groups
from mirror_lib.sync.intervals import SyncStep
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.groups import commit_offset as commit
from tests.support.brokers.groups import committed_offsets as committed
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, admin, consume, create_topic, produce, records, transaction
from tests.support.mirrored_topic import MirroredTopic

app = Typer()
app.add_typer(groups_cli.app)

WITH_COMMITS = {"A->B.sync.group.offsets.enabled": "true"}


def a_flow(mirrored: MirroredTopic, settings: Mapping[str, str] | None = None) -> Flow:
    own = {
        # Other tests leave groups and a heartbeats topic behind, which every flow would take.
        "A->B.groups": f"{mirrored.name}.*",
        "A->B.heartbeats.replication.enabled": "false",
        "checkpoints.topic.replication.factor": "1",
    }
    return mirrored.flow({**own, **(settings or {})})


def copy(flow: Flow) -> None:
    report = flow.run()
    assert report.errors == ()


def copied(mirrored: MirroredTopic, count: int, settings: Mapping[str, str] = WITH_COMMITS) -> Flow:
    """A flow that has copied so many records."""
    mirrored.create(records(count))
    flow = a_flow(mirrored, settings)
    copy(flow)
    return flow


def apply(flow: Flow) -> GroupSync:
    return apply_flow_groups(flow.config, flow_topology(flow.config))


def plan(flow: Flow) -> GroupSync:
    return plan_flow_groups(flow.config, flow_topology(flow.config))


def reasons(done: GroupSync) -> dict[str, GroupReason | None]:
    return {row.group: row.reason for row in done.plan.rows}


def checkpoints(pair: KafkaPair, group: str) -> list[Checkpoint]:
    found = []
    for each in consume(pair.target, "A.checkpoints.internal"):
        # A test leaves records there that are none.
        with suppress(RecordFormatError):
            found.append(Checkpoint.decode(each.key, each.value))
    return [each for each in found if each.group == group]


def test_metadata_of_a_commit_is_dropped_also_where_it_was_copied_before(mirrored: MirroredTopic) -> None:
    flow = copied(mirrored, 10)
    group, place = f"{mirrored.name}-g", NativePartition(mirrored.remote, 0)

    def metadata() -> str | None:
        request = [ConsumerGroupTopicPartitions(group, [place])]
        client = admin(mirrored.target)
        found = client.list_consumer_group_offsets(request)[group].result(60)
        return found.topic_partitions[0].metadata

    commit(mirrored.source, group, mirrored.name, 5, metadata="done: 7, 9")
    apply(flow)
    assert metadata() == "done: 7, 9"

    apply(a_flow(mirrored, {**WITH_COMMITS, "mirror.group.metadata": "drop"}))
    assert not metadata()


class Member:
    """A group's only member, which has its partitions; the client's heartbeats keep it in the group."""

    def __init__(self, cluster: KafkaCluster, group: str, topic: str, protocol: str) -> None:
        options: dict[str, Any] = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "log_level": 3,
        }
        self.consumer = Consumer(options)
        self._topic = topic
        self._assigned = False
        #: What came; errors too.
        self.messages: list[Any] = []

    def __enter__(self) -> Self:
        self.consumer.subscribe([self._topic], on_assign=self._note)
        self.poll_until(lambda: self._assigned)
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.close()

    def _note(self, *_: object) -> None:
        self._assigned = True

    def poll_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not done():
            assert time.monotonic() < deadline, "the consumer got nothing"
            message = self.consumer.poll(0.1)
            if message is not None:
                self.messages.append(message)


def test_a_group_is_found_on_the_target_where_mm2s_rule_puts_it(mirrored: MirroredTopic) -> None:
    mirrored.create([*records(500), *records(300, partition=1)], partitions=2)
    flow = a_flow(mirrored, WITH_COMMITS)
    copy(flow)
    # Offset-syncs stand at 0, 101, 202, ... and at the last record.
    for name, offset in {"begin": 0, "at-sync": 202, "behind-sync": 203, "between": 250, "end": 500}.items():
        commit(mirrored.source, f"{mirrored.name}-{name}", mirrored.name, offset)
    commit(mirrored.source, f"{mirrored.name}-end", mirrored.name, 300, partition=1)

    done = apply(flow)

    expected = {"begin": 0, "at-sync": 202, "behind-sync": 203, "between": 203, "end": 500}
    for name, offset in expected.items():
        assert committed(mirrored.target, f"{mirrored.name}-{name}")[mirrored.remote, 0] == offset, name
    assert committed(mirrored.target, f"{mirrored.name}-end")[mirrored.remote, 1] == 300
    # Four groups have no offset in the second partition.
    assert done.plan.counts() == {"between-syncs": 1, "in-sync": 5, "partition-uncommitted": 4}
    assert checkpoints(mirrored.pair, f"{mirrored.name}-between") == [
        Checkpoint(f"{mirrored.name}-between", mirrored.remote, 0, 250, 203)
    ]


def test_by_the_exact_map_neither_a_group_nor_its_checkpoint_reads_anything_again(mirrored: MirroredTopic) -> None:
    # Source offsets 0 to 99, a transaction of three records with its marker at 103, then 104 to 303.
    mirrored.create(records(100))
    transaction(mirrored.source, mirrored.name, [b"one", b"two", b"three"], commit=True)
    mirrored.produce(records(200, start=100))
    flow = a_flow(mirrored, WITH_COMMITS)
    copy(flow)
    wanted = {"before": 50, "marker": 103, "behind": 150, "end": 304}
    for name, offset in wanted.items():
        commit(mirrored.source, f"{mirrored.name}-{name}", mirrored.name, offset)

    done = apply_flow_groups(flow.config, flow_topology(flow.config), ledger=flow.ledger)

    # A group goes on at its next record: markers of either side have no counterpart, and the source's may come late.
    there = {record.value: record.offset for record in mirrored.copied()}
    at = {record.offset: there[record.value] for record in consume(mirrored.source, mirrored.name)}
    expected = {name: at[min(each for each in at if each >= offset)] for name, offset in wanted.items() if offset < 303}
    expected["end"] = max(at.values()) + 1
    for name, offset in expected.items():
        assert committed(mirrored.target, f"{mirrored.name}-{name}")[mirrored.remote, 0] == offset, name
    assert {row.duplicates for row in done.plan.rows} == {0}
    assert done.plan.counts() == {"in-sync": 4}
    for name, offset in expected.items():
        group = f"{mirrored.name}-{name}"
        assert checkpoints(mirrored.pair, group) == [Checkpoint(group, mirrored.remote, 0, wanted[name], offset)]
    # Nothing is left to do.
    again = apply_flow_groups(flow.config, flow_topology(flow.config), ledger=flow.ledger)
    assert again.plan.changes == 0


def test_in_what_another_replicator_copied_twice_a_rebuilt_map_is_exact_and_verification_passes(
    mirrored: MirroredTopic,
) -> None:
    """As MirrorMaker 2 after a crash: 0 to 79, then 50 to 99 once more; our flow continues at 100."""
    written = mirrored.create(records(150))
    mirrored.create_remote()
    mirrored.produce_remote([*written[:80], *written[50:100]])
    flow = a_flow(mirrored, WITH_COMMITS)
    flow.sync_topics()
    options = ["--config", str(flow.path), "--flow", "A->B"]
    for command in (f"position set --topic {mirrored.name} --to 100 --yes", *["map rebuild --apply"] * 2):
        done = CliRunner().invoke(mirror, [*command.split(), *options])
        assert done.exit_code == 0, done.output
        copy(flow)
    group = f"{mirrored.name}-g"
    commit(mirrored.source, group, mirrored.name, 60)

    applied = CliRunner().invoke(mirror, ["groups", "apply", *options])
    verified = CliRunner().invoke(mirror, ["verify", *options])

    assert applied.exit_code == 0, applied.output
    assert committed(mirrored.target, group) == {(mirrored.remote, 0): 80 + 10}
    assert "EQUAL: 150 records" in verified.stdout, verified.output
    assert [gap.cause for gap in flow.ledger.gaps("B->A", limit=None)] == ["repeated"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_on_the_target_is_left_alone_until_they_have_gone(
    mirrored: MirroredTopic, protocol: str
) -> None:
    flow = copied(mirrored, 20)
    group = f"{mirrored.name}-g"
    commit(mirrored.source, group, mirrored.name, 20)

    with Member(mirrored.target, group, mirrored.remote, protocol):
        active = apply(flow)
        assert committed(mirrored.target, group) == {}

    assert reasons(active) == {group: GroupReason.GROUP_ACTIVE_ON_TARGET}
    assert active.exit_code == 0
    assert reasons(apply(flow)) == {group: None}
    assert committed(mirrored.target, group) == {(mirrored.remote, 0): 20}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_that_moves_to_the_target_reads_on_where_it_stopped(mirrored: MirroredTopic, protocol: str) -> None:
    mirrored.create(records(20))
    group = f"{mirrored.name}-g"
    with Member(mirrored.source, group, mirrored.name, protocol) as member:
        member.consumer.commit(offsets=[NativePartition(mirrored.name, 0, 20)], asynchronous=False)
    flow = a_flow(mirrored, WITH_COMMITS)
    copy(flow)
    apply(flow)
    mirrored.produce_remote([Record(b"next")])

    with Member(mirrored.target, group, mirrored.remote, protocol) as member:
        member.poll_until(lambda: bool(member.messages))

    (message,) = member.messages
    assert (message.error(), message.offset(), message.value()) == (None, 20, b"next")


@pytest.mark.parametrize(
    ("location", "topic"),
    [("source", "mm2-offset-syncs.B.internal"), ("target", "mm2-offset-syncs.A.internal")],
)
def test_offset_syncs_are_read_where_they_are_and_rubbish_among_them_is_passed_over(
    mirrored: MirroredTopic, location: str, topic: str
) -> None:
    flow = copied(mirrored, 20, {**WITH_COMMITS, "A->B.offset-syncs.topic.location": location})
    commit(mirrored.source, f"{mirrored.name}-g", mirrored.name, 20)
    sync = OffsetSync(mirrored.name, 0, 5, 5)
    bad = [Record(key=b"no such key", value=b"?"), Record(key=sync.key(), value=None), Record(key=b"k", value=b"")]
    produce(getattr(mirrored.pair, location), topic, bad)

    done = apply(flow)

    assert committed(mirrored.target, f"{mirrored.name}-g") == {(mirrored.remote, 0): 20}
    assert any(f"{topic} on cluster {'A' if location == 'source' else 'B'}" in each for each in done.plan.notices)


def test_rubbish_among_checkpoints_is_told_and_stops_no_group(mirrored: MirroredTopic) -> None:
    flow = copied(mirrored, 20)
    groups = [f"{mirrored.name}-{name}" for name in ("first", "second")]
    commit(mirrored.source, groups[0], mirrored.name, 20)
    apply(flow)
    # A tombstone, which stops MM2's own readers, a record of another kind, and one that is cut short.
    key = Checkpoint(groups[0], mirrored.remote, 0, 20, 20).key()
    bad = [Record(key=key, value=None), Record(key=b"no such key", value=b"?"), Record(key=key, value=b"\0\0\0")]
    produce(mirrored.target, "A.checkpoints.internal", bad)
    commit(mirrored.source, groups[1], mirrored.name, 20)

    done = apply(flow)

    assert committed(mirrored.target, groups[1]) == {(mirrored.remote, 0): 20}
    assert reasons(done) == dict.fromkeys(groups)
    assert any(
        "A.checkpoints.internal on cluster B are not in MirrorMaker's format" in each for each in done.plan.notices
    )


def test_a_scheduled_step_keeps_mm2s_intervals_and_returns_counts(
    mirrored: MirroredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    flow = copied(mirrored, 20)
    commit(mirrored.source, f"{mirrored.name}-g", mirrored.name, 20)
    topology = flow_topology(flow.config)

    with caplog.at_level(logging.INFO):
        dry = sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=True)
        translated = sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.CHECKPOINTS, dry_run=False)
        assert committed(mirrored.target, f"{mirrored.name}-g") == {}
        done = sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False)
        soon = [
            sync_flow_groups(flow.config, topology, flow.ledger, step, dry_run=False)["skipped"]
            for step in (SyncStep.CHECKPOINTS, SyncStep.GROUP_OFFSETS)
        ]
        again = sync_flow_groups(
            flow.config, topology, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False, at_once=True
        )

    assert (dry["dry_run"], dry["checkpoints"], dry["commits"]) == (True, 1, 1)
    assert (translated["checkpoints"], translated["commits"]) == (1, 0)
    assert (done["checkpoints"], done["commits"], done["reasons"]) == (0, 1, {"in-sync": 1})
    assert "emit.checkpoints.interval.seconds" in soon[0]
    assert "sync.group.offsets.interval.seconds" in soon[1]
    assert (again["skipped"], again["commits"]) == (None, 0)
    assert json.loads(json.dumps(done)) == done
    assert "wrote 1 checkpoints and 0 committed offsets" in caplog.text
    assert "wrote 0 checkpoints and 1 committed offsets" in caplog.text
    assert committed(mirrored.target, f"{mirrored.name}-g") == {(mirrored.remote, 0): 20}


@pytest.mark.parametrize("switch", ["emit.checkpoints.enabled", "emit.offset-syncs.enabled"])
def test_a_flow_without_checkpoints_says_which_setting_it_is(mirrored: MirroredTopic, switch: str) -> None:
    flow = a_flow(mirrored, {f"A->B.{switch}": "false"})
    topology = flow_topology(flow.config)

    with pytest.raises(ConfigurationError, match=switch):
        apply_flow_groups(flow.config, topology)
    for step in (SyncStep.CHECKPOINTS, SyncStep.GROUP_OFFSETS):
        assert switch in sync_flow_groups(flow.config, topology, flow.ledger, step, dry_run=False)["skipped"]


def test_hundreds_of_groups_take_few_requests(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=2)
    names = [f"{mirrored.name}-{number:04}" for number in range(600)]
    places = [TopicPartition(mirrored.name, partition) for partition in range(2)]
    wanted = {
        name: {place: CommittedOffset(number, f"by {name} \u00e4") for place in places}
        for number, name in enumerate(names)
    }
    flow = a_flow(mirrored)

    with GroupAdmin(Connection.from_settings(flow.config.clients.source_admin)) as groups:
        outcome = groups.commit(wanted)
        assert all(error is None for answer in outcome.values() for error in answer.values())
        before = groups.requests
        listed = groups.list_groups()
        found = groups.fetch_committed(names)
        asked = groups.requests - before

    assert {listed[name].state for name in names} == {GroupState.EMPTY}
    assert {listed[name].kind for name in names} == {GroupKind.CLASSIC}
    assert (found.offsets, found.errors) == (wanted, {})
    # One to list, and one for every 100 groups, whose offsets fit into a response; their coordinators are known.
    assert asked == 1 + 6
    assert committed(mirrored.source, names[7]) == {(mirrored.name, 0): 7, (mirrored.name, 1): 7}


def test_brokers_before_kafka_3_are_asked_for_one_group_after_the_other(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.create()
    wanted = {
        f"{mirrored.name}-{number}": {TopicPartition(mirrored.name, 0): CommittedOffset(number)} for number in range(3)
    }
    flow = a_flow(mirrored)

    async def speaks(self: RawClient, node: int, api_key: int, version: int) -> bool:
        return False

    # New brokers still know the old requests.
    monkeypatch.setattr(RawClient, "speaks", speaks)
    with GroupAdmin(Connection.from_settings(flow.config.clients.source_admin)) as groups:
        outcome = groups.commit(wanted)
        listed = groups.list_groups()
        found = groups.fetch_committed([*wanted, f"{mirrored.name}-none"])

    assert all(error is None for answer in outcome.values() for error in answer.values())
    assert {(listed[name].state, listed[name].kind) for name in wanted} == {(GroupState.UNKNOWN, GroupKind.CLASSIC)}
    assert (found.offsets, found.errors) == ({**wanted, f"{mirrored.name}-none": {}}, {})


def test_a_commit_that_comes_too_late_is_refused_and_told_by_group(mirrored: MirroredTopic) -> None:
    create_topic(mirrored.target, mirrored.name)
    group, other = f"{mirrored.name}-active", f"{mirrored.name}-idle"
    offsets = {TopicPartition(mirrored.name, 0): CommittedOffset(1)}
    missing = TopicPartition(f"{mirrored.name}-missing", 0)
    flow = a_flow(mirrored)

    with (
        Member(mirrored.target, group, mirrored.name, "classic"),
        GroupAdmin(Connection.from_settings(flow.config.clients.target_admin)) as groups,
    ):
        assert groups.list_groups()[group].state is GroupState.ACTIVE
        outcome = groups.commit({group: offsets, other: {**offsets, missing: CommittedOffset(1)}})

    place = TopicPartition(mirrored.name, 0)
    assert isinstance(outcome[group][place], GroupActiveError)
    assert outcome[other][place] is None
    assert isinstance(outcome[other][missing], TopicMissingError)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_joins_commits_and_leaves_before_the_commit_is_not_set_back(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    flow = copied(mirrored, 30)
    group, remote = f"{mirrored.name}-g", mirrored.remote
    commit(mirrored.source, group, mirrored.name, 30)
    apply(flow)
    mirrored.produce(records(10, start=30))
    copy(flow)
    commit(mirrored.source, group, mirrored.name, 35)
    write = flow_groups._write_checkpoints

    def while_a_member_reads(*given: Any) -> None:
        """What happens between reading the groups and committing for them."""
        with Member(mirrored.target, group, remote, protocol) as member:
            member.poll_until(lambda: len(member.messages) == 10)
            member.consumer.commit(offsets=[NativePartition(remote, 0, 40)], asynchronous=False)
        write(*given)

    monkeypatch.setattr(flow_groups, "_write_checkpoints", while_a_member_reads)
    done = apply_flow_groups(flow.config, flow_topology(flow.config), ledger=flow.ledger)

    assert committed(mirrored.target, group) == {(remote, 0): 40}
    assert reasons(done) == {group: GroupReason.TARGET_AHEAD}


def test_an_unreachable_cluster_is_an_error_that_names_it(mirrored: MirroredTopic) -> None:
    flow = a_flow(mirrored, {"B.bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(BrokerUnreachableError) as caught:
        plan(flow)
    assert caught.value.where.cluster == "B"


def test_the_command_shows_what_is_due_does_it_and_says_what_is_not_in_sync(mirrored: MirroredTopic) -> None:
    mirrored.create(records(20), partitions=2)
    flow = a_flow(mirrored, WITH_COMMITS)
    copy(flow)
    group = f"{mirrored.name}-g"
    commit(mirrored.source, group, mirrored.name, 20)
    # Of the other partition nothing is copied.
    mirrored.produce([Record(b"k", b"v", partition=1)])
    commit(mirrored.source, group, mirrored.name, 0, partition=1)
    options = ["--config", str(flow.path), "--flow", "A->B"]

    planned = CliRunner().invoke(app, ["groups", "plan", *options, "--json"])
    applied = CliRunner().invoke(app, ["groups", "apply", *options])
    after = CliRunner().invoke(app, ["groups", "status", *options, "--group", group, "--json"])

    due = json.loads(planned.stdout)
    assert (due["exit_code"], due["checkpoints"], due["commits"], due["applied"]) == (0, 1, 1, False)
    assert [(row["partition"], row["target_offset"], row["commit"]) for row in due["changes"]] == [(0, 20, True)]
    assert applied.exit_code == 0
    assert "wrote 1 checkpoint and committed 1 offset: 1 group, " in applied.stdout
    assert after.exit_code == 1
    left = json.loads(after.stdout)
    assert left["reasons"] == {"in-sync": 1, "no-offset-sync-yet": 1}
    assert [(row["partition"], row["reason"]) for row in left["not_in_sync"]] == [(1, "no-offset-sync-yet")]


def test_groups_are_kept_by_the_step_that_moves_them(mirrored: MirroredTopic) -> None:
    flow = a_flow(mirrored, WITH_COMMITS)
    topology = flow_topology(flow.config)
    mirrored.create(records(50))
    flow.run()
    commit(mirrored.source, f"{mirrored.name}-follows", mirrored.name, 30)
    # It has read what is not copied yet.
    mirrored.produce(records(10, start=50))
    commit(mirrored.source, f"{mirrored.name}-ahead", mirrored.name, 55)

    sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.CHECKPOINTS, dry_run=False)
    assert flow.ledger.observations.groups("A->B") == ()
    sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False)

    kept = {row.group: row for row in flow.ledger.observations.groups("A->B")}
    follows, ahead = kept[f"{mirrored.name}-follows"], kept[f"{mirrored.name}-ahead"]
    assert (follows.upstream, follows.target_offset, follows.duplicates, follows.reason) == (30, 30, 0, None)
    assert (ahead.upstream, ahead.target_offset, ahead.reason) == (55, 50, "upstream-beyond-copied")
    seen = observe_flow(flow.config, flow.ledger).flow
    assert (seen.groups, seen.groups_behind, seen.duplicates) == (2, 1, 0)


def test_a_look_at_some_topics_leaves_what_is_known_of_all(mirrored: MirroredTopic) -> None:
    flow = a_flow(mirrored, WITH_COMMITS)
    mirrored.create(records(5))
    flow.run()
    commit(mirrored.source, f"{mirrored.name}-g", mirrored.name, 3)
    sync_flow_groups(flow.config, flow_topology(flow.config), flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False)
    before = flow.ledger.observations.groups("A->B")

    limited = flow_topology(flow.config, ["nothing"])
    sync_flow_groups(
        flow.config, limited, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False, complete=False, at_once=True
    )

    assert before
    assert flow.ledger.observations.groups("A->B") == before
