"""What preflight checks before a flow's tasks run: configuration, clusters, ledger, Spark."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.spark.connection import check_connect_server, check_submitter, describe_master, master_of
from mirror_lib.cluster.broker_limits import version_limits
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.name_patterns import named_topics
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.health.next_run import look_at_next_run
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.feature import Hook
from mirror_lib.identity.clusters import check_clusters
from mirror_lib.installed_features import installed_features
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from mirror_lib.ledger.location import open_ledger
from mirror_lib.masked_urls import masked_addresses
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.new_topics import limits_of_new_topics
from mirror_lib.planning.topic_limits import topic_warnings
from mirror_lib.spark.cluster_check import cluster_notes
from mirror_lib.spark.connect_server import is_connect
from mirror_lib.spark.java import find_java
from mirror_lib.spark.submit import runs_here, spark_defaults, submit_settings
from mirror_lib.sync.hidden_by_acls import about_missing
from mirror_lib.sync.loops.flow import refuse_loops
from mirror_lib.sync.topics.flow import read_topic_plan
from mirror_lib.sync.topics.needed import check_needed_topics

if TYPE_CHECKING:
    from mirror_lib.cluster.admin.client import ClusterAdmin
    from mirror_lib.cluster.broker_limits import VersionLimit
    from mirror_lib.config.model import ClientSettings, FlowConfig, MirrorConfig
    from mirror_lib.copy.health.next_run import NextRun
    from mirror_lib.planning.model import RunPlan
    from mirror_lib.sync.topics.flow import TopicSync
    from mirror_lib.topology.flow_topology import FlowTopology

_log = logging.getLogger(__name__)
#: A cluster without a response for this time is unreachable; the task is retried later anyway.
_CONTACT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class CheckedFlow:
    """A flow whose clusters, ledger and Spark were checked."""

    config: MirrorConfig
    settings: FlowConfig
    topology: FlowTopology
    selected_topics: int
    #: Names of all topics of the source that its user may describe.
    source_topics: frozenset[str]
    #: What the run would copy now; None if it could not be planned.
    plan: RunPlan | None
    #: What `sync_topics` would do now; None if it could not be planned.
    topic_sync: TopicSync | None
    warnings: frozenset[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for XCom."""
        return {"selected_topics": self.selected_topics, "source_topics": len(self.source_topics)}


def check_flow(choices: JobArguments) -> CheckedFlow:
    """Read the configuration, check both clusters, the ledger and Spark, and log what this run selects.

    Raises:
        MirrorError: the flow cannot run.
    """
    flow = choices.flow
    config, settings = load_flow_as_it_runs(choices.config, flow)
    for problem in config.warnings:
        _log.warning("%s: %s", config.path, problem.message)
    topology = flow_topology(settings, choices.topics)
    with FlowClusters.connect(settings, admin_seconds=_CONTACT_SECONDS) as clusters:
        topics = _topics_of(settings, clusters.source_admin, settings.clients.source_admin)
        _topics_of(settings, clusters.target_admin, settings.clients.target_admin)
        _check_clusters(config, clusters)
        obstacles = check_needed_topics(settings, clusters.source_admin, clusters.target_admin)
        selected = [topic for topic in topics if topology.replicates(topic)]
        topology.refuse_empty_choice(topics)
        _log.info("Flow %s selects %d of %d topics.", flow, len(selected), len(topics))
        for loop in refuse_loops(config, settings, selected):
            _log.warning("Other flows of %s would copy records of this flow in a loop: %s.", config.path, loop)
        next_run = _next_run(config, clusters, choices)
        topic_sync = _topic_sync(topology, clusters)
        warnings = (
            *about_missing(settings, sorted(named_topics(settings) - set(topics))),
            *obstacles,
            *(topic_sync.warnings if topic_sync else ()),
            *_version_limits(settings),
            *_limit_warnings(clusters, topology, selected),
            *next_run.warnings,
        )
        for warning in warnings:
            _log.warning("Flow %s: %s", flow, warning)
    _check_spark(settings, choices)
    for check in installed_features().at(Hook.PREFLIGHT, all_needed=True):
        for warning in check(settings):
            _log.warning("Flow %s: %s", flow, warning)
    if settings.airflow_pool:
        # Tasks cannot list Airflow's pools.
        _log.info("The copy uses a slot of the pool %s, and waits until this pool exists.", settings.airflow_pool)
    return CheckedFlow(
        config,
        settings,
        topology,
        len(selected),
        frozenset(topics),
        next_run.plan,
        topic_sync,
        frozenset(map(str, warnings)),
    )


def _version_limits(settings: FlowConfig) -> list[VersionLimit]:
    sides = ((settings.clients.source_admin, True), (settings.clients.target_admin, False))
    return [
        limit for client, source in sides for limit in version_limits(Connection.from_settings(client), source=source)
    ]


def _topics_of(settings: FlowConfig, admin: ClusterAdmin, client: ClientSettings) -> list[str]:
    try:
        return list(admin.list_topics())
    except MirrorError:
        servers = masked_addresses(client.properties["bootstrap.servers"])
        _log.error("Flow %s: cannot use cluster %s at %s.", settings.flow, client.cluster, servers)
        raise


def _check_clusters(config: MirrorConfig, clusters: FlowClusters) -> None:
    """Fail if the ledger belongs to other clusters than the aliases name: the sync tasks use it in parallel."""
    with open_ledger(config) as ledger:
        check_clusters(clusters.flow, ledger, clusters.ids())


def _limit_warnings(clusters: FlowClusters, topology: FlowTopology, topics: list[str]) -> list[str]:
    """Return warnings about what target topics may reject or delete, including topics that `sync_topics` will
    create.
    """
    remote = {topic: topology.remote_topic(topic) for topic in topics}
    policy, schedule = clusters.flow.copy_settings.poison_policy, clusters.flow.periodic_schedule
    admins = clusters.source_admin, clusters.target_admin
    new = partial(limits_of_new_topics, clusters.flow, *admins)
    return topic_warnings(*admins, remote, policy=policy, schedule=schedule, to_create=new)


def _next_run(config: MirrorConfig, clusters: FlowClusters, choices: JobArguments) -> NextRun:
    """Return what is to be copied, and what the source's retention deletes, or may delete, before it is."""
    with open_ledger(config) as ledger:
        return look_at_next_run(clusters.flow, RunOptions(topics=choices.topics), ledger, clusters)


def _topic_sync(topology: FlowTopology, clusters: FlowClusters) -> TopicSync | None:
    """Return what `sync_topics` would do; None if that cannot be read, which then fails that task."""
    try:
        return read_topic_plan(clusters.flow, topology, clusters.source_admin, clusters.target_admin)
    except MirrorError as error:
        _log.warning("Flow %s: task sync_topics will retry: %s", clusters.flow.flow, error)
        return None


def _check_spark(settings: FlowConfig, choices: JobArguments) -> None:
    """Check where Spark's driver will run, and that it can."""
    _log.info("%s", describe_master(settings.spark_connection))
    if warning := check_submitter(settings.spark_connection):
        _log.warning("%s", warning)
    master = master_of(settings.spark_connection)
    _check_java(master)
    check_connect_server(settings.spark_connection)
    for note in cluster_notes(
        {**spark_defaults(os.environ), **submit_settings(master)},
        master=master,
        tasks=choices.tasks or settings.tasks_max,
        task_memory_bytes=settings.copy_settings.task_memory_bytes,
        transforms=bool(settings.transforms),
    ):
        _log.warning("%s", note)


def _check_java(master: str) -> None:
    """Check the Java of Spark's driver: unless Spark Connect is used, it is a JVM on this machine."""
    if is_connect(master):
        return
    try:
        find_java()
    except ConfigurationError as error:
        if runs_here(master):
            raise
        # On machines of a cluster, only `spark-env.sh` may name it.
        _log.warning("%s The job's driver runs on this machine, and fails unless spark-env.sh sets JAVA_HOME.", error)
