"""Prepares all topics that a flow needs before it can copy: internal topics and target topics."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.name_patterns import named_topics
from mirror_lib.errors import AuthorizationError
from mirror_lib.feature import Hook
from mirror_lib.identity.clusters import check_clusters, cluster_pair
from mirror_lib.identity.positions import stored_positions
from mirror_lib.installed_features import provided
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.admins import flow_admins
from mirror_lib.sync.heartbeats.rules import mistaken_heartbeats
from mirror_lib.sync.loops.flow import namesake_notes
from mirror_lib.sync.topics.empty_selection import about_empty_selection
from mirror_lib.sync.topics.internal import InternalTopic, ensure_internal_topics
from mirror_lib.sync.topics.needed import check_needed_topics
from mirror_lib.sync.topics.plan import TopicFacts, TopicPlan, TopicResult, apply_plan, gather_topic_facts, plan_topics
from mirror_lib.sync.topics.refusals import INDISPENSABLE, Outcome
from mirror_lib.topology.flow_topology import FlowTopology

_log = logging.getLogger(__name__)
#: A log line for each of thousands of topics does not help.
_LINES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class TopicSync:
    """The plan for a flow's topics and, unless it was a dry run, its results."""

    plan: TopicPlan
    internal: tuple[InternalTopic, ...]
    results: tuple[TopicResult, ...] = ()
    #: Facts that could not be read, and obstacles of sync steps.
    notices: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[TopicResult, ...]:
        """The steps that the cluster rejected."""
        return tuple(result for result in self.results if result.error is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may need an operator: the notices, and topics that the plan leaves alone for now."""
        return (*self.plan.about_undecided, *self.notices)

    @property
    def exit_code(self) -> int:
        """0 without obstacles; 3 if a conflict needs an operator, 1 if a step failed."""
        if self.plan.conflicts:
            return 3
        return max((result.error.exit_code for result in self.results if result.error is not None), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` and XCom."""
        return {
            **self.plan.to_dict(),
            "internal": [
                {"name": topic.name, "cluster": topic.cluster, "state": topic.state.value} for topic in self.internal
            ],
            "notices": list(self.notices),
            "failed": [
                {**result.error.attributes(), "name": result.step.name} for result in self.failures if result.error
            ],
        }


def plan_flow_topics(flow: FlowConfig, topology: FlowTopology, ledger: Ledger | None = None) -> TopicSync:
    """Return the changes that are due for a flow. Reads both clusters, changes nothing.

    Args:
        flow: the flow.
        topology: its rules about topics, possibly limited to some topics.
        ledger: has the flow's cluster ids; None if there is none yet.

    Raises:
        ConfigurationError: the topology is limited to topics of which the flow selects none.
        MirrorError: a cluster cannot be used, the position topic is unsuitable, or an alias names another cluster.
    """
    with flow_admins(flow) as (source, target):
        check_clusters(flow, ledger, cluster_pair(source, target))
        _refuse_empty_choice(topology, source)
        obstacles = check_needed_topics(flow, source, target)
        planned = read_topic_plan(flow, topology, source, target)
        return replace(planned, notices=(*obstacles, *planned.notices))


def read_topic_plan(flow: FlowConfig, topology: FlowTopology, source: ClusterAdmin, target: ClusterAdmin) -> TopicSync:
    """Return the changes that are due for a flow whose clusters were checked, as `plan_flow_topics`.

    Raises:
        MirrorError: a cluster cannot be used, or the position topic is unsuitable.
    """
    internal = ensure_internal_topics(flow, source, target, dry_run=True)
    facts, notices = _facts(flow, topology, source, target)
    plan = plan_topics(flow, topology, facts)
    # Without permission to create topics, the creation reports it.
    checked = apply_plan(plan, target, kept=_kept_configs(flow), validate_only=True)
    return TopicSync(plan, internal, notices=(*notices, *_about(internal), *_rejection_notices(flow, checked)))


def apply_flow_topics(
    flow: FlowConfig, topology: FlowTopology, ledger: Ledger | None = None, *, refuse_empty_choice: bool = True
) -> TopicSync:
    """Create the internal topics, create and grow target topics. A topic that fails does not stop the others.

    Args:
        flow: the flow.
        topology: its rules about topics, possibly limited to some topics.
        ledger: as in `plan_flow_topics`.
        refuse_empty_choice: False if the caller reports by itself that the flow no longer has the topics.

    Raises:
        ConfigurationError: the topology is limited to topics of which the flow selects none.
        MirrorError: a cluster cannot be used, or an internal topic cannot be created or used; an alias names another
            cluster.
    """
    with flow_admins(flow) as (source, target):
        check_clusters(flow, ledger, cluster_pair(source, target))
        if refuse_empty_choice:
            _refuse_empty_choice(topology, source)
        obstacles = check_needed_topics(flow, source, target)
        internal = ensure_internal_topics(flow, source, target)
        facts, notices = _facts(flow, topology, source, target)
        plan = plan_topics(flow, topology, facts)
        results = apply_plan(plan, target, kept=_kept_configs(flow))
        notices = (*obstacles, *notices, *_about(internal), *_rejection_notices(flow, results))
        if flow.copy_settings.same_offsets:
            remote = {topic: topology.remote_topic(topic) for topic in facts.sources}
            prepare = provided(Hook.NEW_PARTITIONS, by="same_offsets", extra="")
            notices += prepare(flow, remote, source, target)
        return TopicSync(plan, internal, results, notices)


def _refuse_empty_choice(topology: FlowTopology, source: ClusterAdmin) -> None:
    """Refuse a misspelt choice before any topic is created."""
    if topology.limits:
        topology.refuse_empty_choice(source.list_topics())


def _kept_configs(flow: FlowConfig) -> frozenset[str]:
    """Configs that the file sets by name: without them the topic would not be as configured."""
    return INDISPENSABLE | flow.config_rules.override.keys()


def _about(internal: Iterable[InternalTopic]) -> Iterator[str]:
    yield from (topic.notice for topic in internal if topic.notice is not None)


def _rejection_notices(flow: FlowConfig, results: Iterable[TopicResult]) -> Iterator[str]:
    """Rejections of new topics by the target, a sentence for each config."""
    without = {result.step.name: result.without for result in results}
    yield from Outcome(dict.fromkeys(without), without).notices(flow.flow.target)


def _facts(
    flow: FlowConfig, topology: FlowTopology, source: ClusterAdmin, target: ClusterAdmin
) -> tuple[TopicFacts, tuple[str, ...]]:
    """The input of a plan, and notices about facts that could not be read."""
    notices: list[str] = []

    def positions() -> list[Position]:
        try:
            return _positions(flow)
        except AuthorizationError as refused:
            # The copy task, which may read it, then finds that the topic was recreated.
            notices.append(f"Whether missing target topics were deleted is unknown: {refused}")
            return []

    def check(listed: Collection[str], selected: Collection[str]) -> None:
        # The plan of the run has the notes.
        namesake_notes(flow, topology, lambda: cluster_pair(source, target), listed, selected)

    facts = gather_topic_facts(topology, source, target, named_topics(flow), positions, check)
    notices += mistaken_heartbeats(topology, facts.sources, facts.source_configs)
    return facts, (*notices, *about_empty_selection(flow, topology, facts.sources))


def _positions(flow: FlowConfig) -> list[Position]:
    if flow.flow.work:
        # The flow's positions do not apply to a backfill's topics; the backfill checks its own when it copies.
        return []
    return list(stored_positions(flow).values())


def sync_flow_topics(
    flow: FlowConfig, topology: FlowTopology, ledger: Ledger | None = None, *, dry_run: bool
) -> dict[str, Any]:
    """Run `apply_flow_topics` as a step of a scheduled run; log, and return counts and problems as plain data.

    Topics in conflict do not fail the step: the others must be copied, and the copy then reports the skipped ones.

    Raises:
        MirrorError: as `apply_flow_topics`.
    """
    done = (plan_flow_topics if dry_run else apply_flow_topics)(flow, topology, ledger)
    _log_sync(done, "would" if dry_run else "will")
    problems = [str(conflict) for conflict in done.plan.conflicts]
    problems += [f"{result.step}: {result.error}" for result in done.failures]
    return {
        "dry_run": dry_run,
        "created": len(done.plan.create),
        "grown": len(done.plan.grow),
        "unchanged": done.plan.unchanged,
        "problems": problems[:_LINES_SHOWN],
        "notices": list(done.notices[:_LINES_SHOWN]),
        "failed": len(problems),
    }


def _log_sync(done: TopicSync, verb: str) -> None:
    for topic in done.internal:
        _log.info("Internal topic %s on cluster %s: %s.", topic.name, topic.cluster, topic.state.value)
    steps = [*done.plan.create, *done.plan.grow]
    for step in steps[:_LINES_SHOWN]:
        _log.info("Flow %s %s %s.", done.plan.flow, verb, step)
    if len(steps) > _LINES_SHOWN:
        _log.info("... and %d more.", len(steps) - _LINES_SHOWN)
    _log.info("%d topics unchanged.", done.plan.unchanged)
    for notice in (*done.plan.about_undecided[:_LINES_SHOWN], *done.notices):
        _log.warning("Flow %s: %s", done.plan.flow, notice)
    for conflict in done.plan.conflicts:
        _log.error("Flow %s: %s", done.plan.flow, conflict)
    for result in done.failures:
        _log.error("Flow %s could not %s: %s", done.plan.flow, result.step, result.error)
