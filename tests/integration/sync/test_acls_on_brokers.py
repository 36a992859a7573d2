"""ACLs carried between real clusters with authorizers: MM2's rewrite, what we remember of it, and the cutover.

And flows of users who lack some: what they may not do is told with its reason, and stops nothing else.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner

from mirror_lib.airflow.compatibility import AirflowFailException
from mirror_lib.airflow.flow import sync_tasks
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.cli.main import app
from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.kafka_errors import UnsupportedRequestError
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.config.model import ClientSettings
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import AuthorizationError
from mirror_lib.features.cutover.staged_acls import release_acls, revoke_acls
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.sync.acls.flow import AclSync, apply_flow_acls, plan_flow_acls, sync_flow_acls
from mirror_lib.sync.configs.flow import apply_flow_configs
from mirror_lib.topology.acls import AclBinding as OurBinding
from mirror_lib.topology.acls import AclPattern, AclPermission, AclResource
from tests.support.brokers.acls import acl, add_acls, guarded_cluster, login_of_alice
from tests.support.call_counts import counted
from tests.support.clusters import start_together
from tests.support.flows import Flow
from tests.support.kafka import admin, consume, create_topic, produce, records, values
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

WAIT_SECONDS = 30.0
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
#: Name, principal, operation, permission; as an independent client sees them.
Seen = tuple[str, str, str, str]


def add(cluster: KafkaCluster, *acls: AclBinding) -> None:
    add_acls(cluster, *acls)
    wait_for(lambda: all(found(cluster, each) for each in acls))


def remove(cluster: KafkaCluster, *acls: AclBinding) -> None:
    client = admin(cluster)
    filters = [AclBindingFilter(*each._to_tuple()) for each in acls]
    for future in client.delete_acls(filters).values():
        future.result(WAIT_SECONDS)
    wait_for(lambda: not any(found(cluster, each) for each in acls))


def found(cluster: KafkaCluster, binding: AclBinding) -> bool:
    client = admin(cluster)
    return bool(client.describe_acls(AclBindingFilter(*binding._to_tuple())).result(WAIT_SECONDS))


def any_acl(resource: ResourceType, principal: Any = None) -> AclBindingFilter:
    """Takes all ACLs of a kind of resource, or those of one principal."""
    anything: Any = None
    return AclBindingFilter(
        resource, anything, ResourcePatternType.ANY, principal, anything, AclOperation.ANY, AclPermissionType.ANY
    )


def seen(cluster: KafkaCluster, text: str, resource: ResourceType = TOPIC) -> set[Seen]:
    """The ACLs on resources with this text in their names."""
    client = admin(cluster)
    return {
        (each.name, each.principal, each.operation.name, each.permission_type.name)
        for each in client.describe_acls(any_acl(resource)).result(WAIT_SECONDS)
        if text in each.name
    }


def apply(flow: Flow) -> AclSync:
    return apply_flow_acls(flow.config, flow_topology(flow.config), flow.ledger, by="test")


def plan(flow: Flow) -> AclSync:
    return plan_flow_acls(flow.config, flow_topology(flow.config), flow.ledger)


STAGING = {"A->B.mirror.acls.stage.writes.enabled": "true"}


def test_acls_are_rewritten_as_mm2_does(mirrored: MirroredTopic) -> None:
    other = f"other-{mirrored.name}"
    add(
        mirrored.source,
        acl(mirrored.name, "READ"),
        acl(mirrored.name, "WRITE"),
        acl(mirrored.name, "ALL", principal="User:bob"),
        acl(mirrored.name, "WRITE", principal="User:carol", permission=DENY),
        acl(mirrored.name, "DESCRIBE", pattern=PREFIXED),
        acl(other, "READ"),
        acl(mirrored.name, "READ", resource=GROUP),
    )
    flow = mirrored.flow()

    done = apply(flow)

    remote = mirrored.remote
    expected = {
        (remote, "User:alice", "READ", "ALLOW"),
        (remote, "User:bob", "READ", "ALLOW"),
        (remote, "User:carol", "WRITE", "DENY"),
    }
    assert (done.exit_code, len(done.plan.create)) == (0, 3)
    wait_for(lambda: seen(mirrored.target, mirrored.name) == expected)
    assert seen(mirrored.target, mirrored.name, GROUP) == set()
    again = apply(flow)
    assert (again.plan.create, again.plan.unchanged) == ((), 3)
    assert {(row.name, row.state, row.changed_by) for row in flow.ledger.acls("A->B")} == {(remote, "created", "test")}


def test_prefixes_groups_and_principals_on_request(mirrored: MirroredTopic) -> None:
    create_topic(mirrored.source, f"{mirrored.name}-1")
    dn = f"User:CN={mirrored.name},O=x"
    add(
        mirrored.source,
        acl(f"{mirrored.name}-", "READ", principal=dn, pattern=PREFIXED),
        acl(mirrored.name, "READ", principal=dn, resource=GROUP),
        acl(mirrored.name, "WRITE", principal=dn, resource=ResourceType.TRANSACTIONAL_ID),
    )
    settings = {
        "A->B.mirror.acls.resources": "topic, group, transactional-id",
        "A->B.mirror.acls.patterns": "literal, prefixed",
        "A->B.mirror.acls.principals": f"{dn}=User:app",
        "A->B.groups": f"{mirrored.name}.*",
    }
    flow = mirrored.flow(settings, topics=f"{mirrored.name}.*")

    assert apply(flow).exit_code == 0

    prefix = acl(f"A.{mirrored.name}-", "READ", principal="User:app", pattern=PREFIXED)
    wait_for(lambda: found(mirrored.target, prefix))
    app_row = (mirrored.name, "User:app")
    wait_for(lambda: seen(mirrored.target, mirrored.name, GROUP) == {(*app_row, "READ", "ALLOW")})
    transactional = seen(mirrored.target, mirrored.name, ResourceType.TRANSACTIONAL_ID)
    assert transactional == {(*app_row, "WRITE", "ALLOW")}


def test_writes_wait_for_the_release_and_can_be_revoked(mirrored: MirroredTopic) -> None:
    remote = mirrored.remote
    add(mirrored.source, acl(mirrored.name, "WRITE"), acl(mirrored.name, "WRITE", principal="User:own"))
    add(mirrored.target, acl(remote, "WRITE", principal="User:own"))
    flow = mirrored.flow(STAGING)
    staged = apply(flow)
    assert (len(staged.plan.waiting), staged.plan.create) == (2, ())
    before = {(remote, "User:own", "WRITE", "ALLOW")}
    assert seen(mirrored.target, remote) == before
    # At a failover the source may be gone.
    without_source = mirrored.flow({**STAGING, "A.bootstrap.servers": "127.0.0.1:1"})

    released = release_acls(without_source.config, flow.ledger, by="test")

    assert [acl.principal for acl in released.changed] == ["User:alice"]
    assert [acl.principal for acl in released.present] == ["User:own"]
    wait_for(lambda: seen(mirrored.target, remote) == {*before, (remote, "User:alice", "WRITE", "ALLOW")})
    assert len(plan(flow).plan.released) == 1
    assert release_acls(without_source.config, flow.ledger, by="test").changed == ()

    revoked = revoke_acls(without_source.config, flow.ledger, by="test")

    assert [acl.principal for acl in revoked.changed] == ["User:alice"]
    wait_for(lambda: seen(mirrored.target, remote) == before)
    assert revoke_acls(without_source.config, flow.ledger, by="test").changed == ()
    assert len(release_acls(without_source.config, flow.ledger, by="test").changed) == 1


def test_what_the_source_withdrew_is_released_on_request_only(mirrored: MirroredTopic) -> None:
    add(mirrored.source, acl(mirrored.name, "WRITE"))
    flow = mirrored.flow(STAGING)
    apply(flow)
    remove(mirrored.source, acl(mirrored.name, "WRITE"))
    apply(flow)

    held_back = release_acls(flow.config, flow.ledger, by="test")
    asked_for = release_acls(flow.config, flow.ledger, by="test", with_withdrawn=True)

    assert (held_back.changed, len(held_back.withdrawn)) == ((), 1)
    assert (len(asked_for.changed), asked_for.withdrawn) == (1, ())


def test_a_release_says_where_a_denial_wins(mirrored: MirroredTopic) -> None:
    add(mirrored.source, acl(mirrored.name, "WRITE"), acl(mirrored.name, "WRITE", permission=DENY))
    flow = mirrored.flow(STAGING)
    apply(flow)
    wait_for(lambda: found(mirrored.target, acl(mirrored.remote, "WRITE", permission=DENY)))

    assert len(release_acls(flow.config, flow.ledger, by="test").denied) == 1


@pytest.fixture(scope="module")
def _other_clusters(kafka_jars: Path, brokers_folder: Path) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """One at which users must log in, and one without an authorizer."""
    guarded = guarded_cluster("guarded", brokers_folder, kafka_jars)
    without_authorizer = KafkaCluster("open", directory=brokers_folder / "open", jars=kafka_jars)
    with start_together(guarded, without_authorizer):
        yield guarded, without_authorizer


@pytest.fixture
def guarded(_other_clusters: tuple[KafkaCluster, KafkaCluster]) -> KafkaCluster:
    """A cluster at which alice logs in, who is allowed nothing by itself."""
    return _other_clusters[0]


@pytest.fixture
def open_cluster(_other_clusters: tuple[KafkaCluster, KafkaCluster]) -> KafkaCluster:
    """A cluster without an authorizer."""
    return _other_clusters[1]


@pytest.fixture
def alice(guarded: KafkaCluster) -> Iterator[ClusterAdmin]:
    """Our administration of the guarded cluster by somebody who is allowed nothing there."""
    settings = ClientSettings(cluster="B", role="test", properties=login_of_alice(guarded))
    with ClusterAdmin(Connection.from_settings(settings)) as admin_of_alice:
        yield admin_of_alice


def test_a_user_who_may_not_list_acls_is_refused_instead_of_told_that_there_are_none(alice: ClusterAdmin) -> None:
    with pytest.raises(AuthorizationError) as caught:
        alice.acls([AclResource.TOPIC])

    assert "DESCRIBE on the cluster" in caught.value.what


def test_every_acl_that_cannot_be_created_has_its_error(alice: ClusterAdmin, topic_name: str) -> None:
    read = OurBinding(AclResource.TOPIC, topic_name, AclPattern.LITERAL, "User:alice", "*", "READ", AclPermission.ALLOW)
    # Kafka 4 has it, the client library not yet.
    unknown = replace(read, resource=AclResource.TRANSACTIONAL_ID, operation="TWO_PHASE_COMMIT")

    errors = alice.create_acls([read, unknown])

    assert isinstance(errors[read], AuthorizationError)
    assert isinstance(errors[unknown], UnsupportedRequestError)
    assert isinstance(alice.delete_acls([read])[read], AuthorizationError)


@pytest.mark.parametrize("side", ["A", "B"])
def test_a_cluster_without_an_authorizer_is_a_notice_and_no_failure(
    mirrored: MirroredTopic, open_cluster: KafkaCluster, side: str
) -> None:
    add(mirrored.source, acl(mirrored.name, "READ"))
    settings = {f"{side}.bootstrap.servers": open_cluster.bootstrap_servers}
    flow = mirrored.flow(settings)

    done = apply(flow)
    step = sync_flow_acls(flow.config, flow_topology(flow.config), flow.ledger, dry_run=False, by="test")
    shown = CliRunner().invoke(app, ["acls", "plan", "--config", str(flow.path), "--flow", "A->B"])

    assert (done.exit_code, done.plan.create) == (0, ())
    assert f"Cluster {side} has no authorizer" in (done.plan.notice or "")
    assert step["skipped"] == done.plan.notice
    assert shown.exit_code == 0
    assert shown.stdout.count("has no authorizer") == 1


def test_without_an_authorizer_at_the_target_nothing_is_released_and_nothing_lost(
    mirrored: MirroredTopic, open_cluster: KafkaCluster
) -> None:
    add(mirrored.source, acl(mirrored.name, "WRITE"))
    apply(mirrored.flow(STAGING))
    settings = {**STAGING, "B.bootstrap.servers": open_cluster.bootstrap_servers}
    flow = mirrored.flow(settings)

    done = release_acls(flow.config, flow.ledger, by="test")

    assert (done.exit_code, done.changed) == (0, ())
    assert "Cluster B has no authorizer" in (done.notice or "")
    assert [row.state for row in flow.ledger.acls("A->B")] == ["waiting"]


def test_thousands_of_acls_take_few_requests(mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = f"User:{mirrored.name}"
    many = [acl(f"{mirrored.name}-{number}", "READ", principal=ours) for number in range(2_500)]
    add_acls(mirrored.source, *many)
    wait_for(lambda: len(seen(mirrored.source, mirrored.name)) == len(many))
    flow = mirrored.flow(topics=f"{mirrored.name}.*")
    created = counted(monkeypatch, AdminClient, "create_acls", "list_topics")
    asked = counted(monkeypatch, RawClient, "ask")

    done = apply(flow)

    assert (len(done.plan.create), done.exit_code) == (2_500, 0)
    # One list of each cluster, and 2,000 ACLs in a request.
    assert (asked["ask"], created["create_acls"]) == (2, 2)
    assert len(flow.ledger.acls("A->B")) == 2_500
    wait_for(lambda: len(seen(mirrored.target, mirrored.name)) == len(many))
    for cluster in (mirrored.source, mirrored.target):
        client, of_ours = admin(cluster), any_acl(TOPIC, principal=ours)
        client.delete_acls([of_ours])[of_ours].result(WAIT_SECONDS)


def test_the_commands_go_the_whole_way(mirrored: MirroredTopic) -> None:
    add(mirrored.source, acl(mirrored.name, "ALL"))
    flow = mirrored.flow(STAGING)
    options = ["--config", str(flow.path), "--flow", "A->B"]

    def told(*command: str) -> Any:
        done = CliRunner().invoke(app, ["acls", *command, *options, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    planned = told("plan")
    # To plan changes neither cluster nor ledger.
    assert seen(mirrored.target, mirrored.name) == set()
    assert flow.ledger.acls("A->B") == ()
    applied = told("apply")
    wait_for(lambda: found(mirrored.target, acl(mirrored.remote, "READ")))
    released = told("release")
    wait_for(lambda: found(mirrored.target, acl(mirrored.remote, "ALL")))
    shown = CliRunner().invoke(app, ["acls", "plan", *options])
    revoked = told("revoke")

    assert [acl["operation"] for acl in planned["create"]] == ["READ"]
    assert [acl["operation"] for acl in planned["waiting"]] == ["ALL"]
    assert applied["applied"] is True
    assert [acl["name"] for acl in released["changed"]] == [mirrored.remote]
    assert "0 WRITE grants staged (`mirror acls release`), 1 released" in shown.stdout
    assert revoked["changed"] == released["changed"]
    wait_for(lambda: not found(mirrored.target, acl(mirrored.remote, "ALL")))


def test_a_choice_without_any_acl_or_topic_is_told(mirrored: MirroredTopic) -> None:
    # ACLs may be there before their topic.
    add(mirrored.source, acl(mirrored.name, "ALL"))
    path = mirrored.flow(STAGING, topics=f"{mirrored.name}.*").path

    def told(command: str, topics: str) -> tuple[int, str]:
        options = ["--config", str(path), "--flow", "A->B", "--topics", topics]
        done = CliRunner().invoke(app, ["acls", command, *options])
        return done.exit_code, done.output

    assert told("apply", mirrored.name)[0] == 0
    for command in ("plan", "apply"):
        exit_code, text = told(command, f"{mirrored.name}-x")
        assert (exit_code, f"copies no topic that matches {mirrored.name}-x" in text) == (2, True), text
    # Both need the target and the ledger alone, and may be repeated.
    none = f": no grant on a target topic that matches A.{mirrored.name}-x is"
    assert told("release", f"A.{mirrored.name}-x") == (0, f"\n0 WRITE grants released{none} staged\n")
    assert told("revoke", f"A.{mirrored.name}-x") == (0, f"\n0 WRITE grants revoked{none} released\n")


def test_a_topic_whose_configs_and_records_are_denied_stops_no_other(
    guarded: KafkaCluster, mirrored: MirroredTopic
) -> None:
    open_, closed = f"{mirrored.name}-open", f"{mirrored.name}-closed"
    for topic in (open_, closed):
        create_topic(guarded, topic)
        create_topic(mirrored.target, f"A.{topic}", configs={"max.message.bytes": "55555"})
        produce(guarded, topic, records(20))
        add_acls(guarded, *(acl(topic, operation) for operation in ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")))
    denied = (acl(closed, name, permission=DENY) for name in ("READ", "DESCRIBE_CONFIGS"))
    add_acls(guarded, *denied)
    settings = {
        **{f"A.{name}": value for name, value in login_of_alice(guarded).items()},
        # Alice creates nothing on the source.
        "A->B.offset-syncs.topic.location": "target",
        "heartbeats.replication.enabled": "false",
    }
    flow = mirrored.flow(settings, topics=f"{mirrored.name}.*")

    configs = apply_flow_configs(flow.config, flow_topology(flow.config))
    copied = flow.run()

    assert [change.source for change in configs.plan.changes] == [open_]
    assert [(error.reason, error.where.topic) for error in configs.errors] == [("authorization", closed)]
    assert configs.exit_code == 3
    assert [(error.reason, error.where.topic) for error in copied.errors] == [("authorization", closed)]
    assert values(consume(mirrored.target, f"A.{open_}")) == values(consume(guarded, open_))
    # The step of a scheduled run fails with the same reason, and leaves it for the report.
    pushed: dict[str, Any] = {}
    instance = SimpleNamespace(
        try_number=1, xcom_push=lambda key, value: pushed.update({key: value}), xcom_pull=lambda **_: None
    )
    no_choice = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False, "gaps": "ask"}
    dag_run = SimpleNamespace(dag_id="mirror__A__B", run_id="scheduled 1")
    with pytest.raises(AirflowFailException, match=closed):
        sync_tasks.sync_topic_configs("A->B", str(flow.path), no_choice, ti=instance, dag_run=dag_run)
    assert pushed[STEP_KEY]["failed"] == 1
