"""What a run of a flow would do now: the plan, with what the logs, the ledger and the topics say about it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from mirror_lib.config.first_start import first_starts
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.named_exclusions import about_excluded
from mirror_lib.config.topology import flow_topology, replication_policy
from mirror_lib.copy.claim.claim import chains_of
from mirror_lib.copy.commit.round_metrics import expectation
from mirror_lib.copy.gaps.gaps import truncations
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import (
    TopicNotCreatableError,
)
from mirror_lib.identity.clusters import about_one_cluster, check_clusters
from mirror_lib.identity.ledger_positions import LedgerPositions
from mirror_lib.ledger.handovers import with_handovers
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.aborted_records import copied_transactions
from mirror_lib.planning.altered_positions import altered_notes
from mirror_lib.planning.facts import KnownState, gather_facts
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.foreign_writes import foreign_notes, offsets_behind_copies
from mirror_lib.planning.handed_over import after_cutovers
from mirror_lib.planning.lost_positions import find_lost_positions
from mirror_lib.planning.model import PartitionFacts, PartitionProblem, RunPlan
from mirror_lib.planning.new_topics import limits_of_new_topics
from mirror_lib.planning.open_transactions import hanging_problems, is_hanging
from mirror_lib.planning.parted_histories import with_parted_histories
from mirror_lib.planning.plan import plan_round
from mirror_lib.planning.record_paths import TopicPath, topic_paths
from mirror_lib.planning.source_logs import LONG_OPEN_SECONDS
from mirror_lib.planning.topic_limits import retention_warnings, timestamp_warnings, topic_warnings
from mirror_lib.planning.unknown_history import history_notes
from mirror_lib.planning.unselected import renamed_notes, unselected_partitions
from mirror_lib.sync.hidden_by_acls import about_missing
from mirror_lib.sync.loops.ledger import refuse_ledger_loops
from mirror_lib.sync.topics.empty_selection import about_empty_selection
from mirror_lib.sync.topics.needed import check_needed_topics
from mirror_lib.topology.names import FlowId

_log = logging.getLogger(__name__)


def plan_flow(
    flow: FlowConfig, options: RunOptions, ledger: Ledger | None = None, connected: FlowClusters | None = None
) -> RunPlan:
    """The plan of a run that starts now, after its topics are synced. Read both clusters, change nothing.

    Args:
        ledger: has the stopped partitions; None if there is none yet.
        connected: open clients.
    """
    flow = with_handovers(flow, ledger)
    with FlowClusters.connect(flow) if connected is None else nullcontext(connected) as clusters:
        check_clusters(flow, ledger, clusters.ids())
        plan, facts = plan_with_facts(flow, clusters, options, ledger, topics_synced=False)
        remote = {partition.source.topic: partition.target.topic for partition in plan.partitions}
        topics = {fact.source.topic for fact in facts} | {problem.source.topic for problem in plan.problems}
        policy, schedule = flow.copy_settings.poison_policy, flow.periodic_schedule
        admins = clusters.source_admin, clusters.target_admin
        limits = (
            *topic_warnings(
                *admins,
                remote,
                policy=policy,
                schedule=schedule,
                to_create=partial(limits_of_new_topics, flow, *admins),
            ),
            *_topics_not_creatable(flow, clusters),
        )
        topology = flow_topology(flow, options.topics)
        warnings = (*limits, *about_empty_selection(flow, topology, topics))
        # Warnings about replaced timestamps are in both.
        warnings = tuple(each for each in warnings if each not in plan.warnings)
    expected = expectation(plan, ledger, str(flow.flow))
    return replace(
        plan,
        warnings=(*plan.warnings, *warnings),
        limits=tuple(dict.fromkeys((*plan.limits, *limits))),
        expected=expected,
        paths=_paths(flow, (*facts, *plan.problems)),
        copied_transactions=copied_transactions(ledger, flow.flow, topology.replicates),
    )


def compare_flow_logs(flow: FlowConfig, options: RunOptions, ledger: Ledger) -> RunPlan:
    """The plan of a run as far as it compares the logs with what was copied, of all partitions.

    Without limits of topics, estimates and paths of records: a cutover's gates repeat it.
    """
    flow = with_handovers(flow, ledger)
    with FlowClusters.connect(flow) as clusters:
        check_clusters(flow, ledger, clusters.ids())
        return plan_with_facts(flow, clusters, replace(options, asks_all=True), ledger, topics_synced=False)[0]


def _topics_not_creatable(flow: FlowConfig, clusters: FlowClusters) -> Iterator[str]:
    try:
        check_needed_topics(flow, clusters.source_admin, clusters.target_admin)
    except TopicNotCreatableError as error:
        yield f"a run is refused: {error.what} {error.action}"


def _paths(flow: FlowConfig, found: Iterable[PartitionFacts | PartitionProblem]) -> tuple[TopicPath, ...]:
    """The paths of all topics of a flow, including idle topics and those that no run has created yet."""
    found = tuple(found)
    by_target: dict[str, set[str]] = {}
    for each in found:
        if isinstance(each, PartitionFacts):
            by_target.setdefault(each.target.topic, set()).add(each.source.topic)
    return topic_paths(
        sorted({each.source.topic for each in found}),
        flow.transforms,
        replication_policy(flow).is_heartbeats_topic,
        transactions=flow.transactions,
        merged={topic for topics in by_target.values() if len(topics) > 1 for topic in topics},
    )


def plan_with_facts(
    flow: FlowConfig, clusters: FlowClusters, options: RunOptions, ledger: Ledger | None, *, topics_synced: bool
) -> tuple[RunPlan, tuple[PartitionFacts, ...]]:
    """A plan and its facts: unlike the plan, the facts include the partitions that have nothing to copy.

    Raises:
        ConfigurationError: the run is limited to topics that the flow does not select.
        MirrorError: a cluster or the ledger does not respond.
    """
    topology = flow_topology(flow, options.topics)
    known = None if ledger is None else LedgerPositions.read(ledger, flow.flow)
    stopped = ledger.stopped_partitions(str(flow.flow)) if ledger else frozenset()
    facts, problems = gather_facts(
        flow,
        topology,
        clusters,
        KnownState(
            stopped=stopped,
            truncations=truncations(ledger.open_gaps(str(flow.flow)) if ledger else ()),
            runs_before=None if options.asks_all else lambda: ledger.count_runs(str(flow.flow)) if ledger else 0,
            topics=stored_topics(flow, ledger),
            ledger=known,
        ),
        topics_synced=topics_synced,
    )
    if ledger is not None:
        facts = with_parted_histories(flow.flow, facts, clusters, ledger)
    remote = {fact.source.topic: fact.target.topic for fact in facts if not fact.stopped}
    refuse_ledger_loops(flow, ledger, clusters.ids(), remote)
    lost = find_lost_positions(flow, facts, known, clusters.positions_at_plan.reset)
    after = after_cutovers(flow, topology, clusters, facts, ledger)
    if after.moved:
        snapshot = clusters.positions_at_plan
        clusters.positions_at_plan = replace(snapshot, positions={**snapshot.positions, **after.moved})
    refused = {problem.source for problem in (*lost, *after.refused)}
    plan = plan_round(
        flow.flow,
        [fact for fact in facts if fact.source not in refused],
        tasks_max=options.tasks_max or flow.tasks_max,
        first_starts=first_starts(flow),
        problems=(*problems, *lost, *after.refused, *after.late),
    )
    if not facts and not plan.problems:
        topology.refuse_empty_choice(clusters.source_admin.list_topics())
    foreign = () if _may_route(flow, facts) else tuple(_foreign_notes(flow.flow, clusters, facts))
    limits = (
        *timestamp_warnings(clusters.replaced_timestamps, flow.copy_settings.poison_policy),
        *(_retention_notes(flow, clusters, facts) if topics_synced else ()),
    )
    warnings = (
        *about_one_cluster(flow.flow, clusters.ids()),
        *about_excluded(flow),
        *about_missing(flow, clusters.missing_topics),
        *clusters.notes,
        *renamed_notes(flow.flow, clusters.ids(), known, ledger),
        *altered_notes(clusters.altered),
        # Next to a run that writes both, a plan without its lock reads two moments.
        *(history_notes(flow, facts) if topics_synced or not _is_running(flow, ledger) else ()),
        *after.notes,
        *foreign,
        *limits,
    )
    unselected = unselected_partitions(
        flow, topology, clusters, facts, problems, known=known, ledger=ledger, stopped=stopped
    )
    plan = replace(plan, warnings=(*plan.warnings, *warnings), limits=limits, foreign=foreign, unselected=unselected)
    return _with_open_transactions(plan, clusters), tuple(facts)


def _is_running(flow: FlowConfig, ledger: Ledger | None) -> bool:
    return ledger is not None and ledger.lock_holder(str(flow.flow)) is not None


def stored_topics(flow: FlowConfig, ledger: Ledger | None) -> frozenset[str] | None:
    """The topics that the source had at the last run; None if that is not known."""
    return ledger.known_topics(str(flow.flow)) if ledger else None


def _foreign_notes(flow: FlowId, clusters: FlowClusters, facts: Sequence[PartitionFacts]) -> Iterator[str]:
    return foreign_notes(flow, facts, clusters.target_writes.with_records(offsets_behind_copies(facts)))


def _retention_notes(flow: FlowConfig, clusters: FlowClusters, facts: Iterable[PartitionFacts]) -> tuple[str, ...]:
    """Notes in a run's report about topics of which nothing was copied yet: most of their records are old then."""
    new = {
        fact.source.topic: fact.target.topic
        for fact in facts
        if fact.position is None and not fact.stopped and fact.log_start < fact.log_end
    }
    return retention_warnings(clusters.source_admin, clusters.target_admin, new, flow.copy_settings.poison_policy)


def _may_route(flow: FlowConfig, facts: Iterable[PartitionFacts]) -> bool:
    """True if transforms may send records of one partition to the target partition of another one."""
    return any(chain.may_route for chain in chains_of(flow, {fact.source.topic for fact in facts}).values())


def _with_open_transactions(plan: RunPlan, clusters: FlowClusters) -> RunPlan:
    """The plan; partitions whose records stay hidden until an operator acts become problems."""
    now = time.time()
    # No cluster's limit is lower than this: most plans need not request the actual one.
    longest = LONG_OPEN_SECONDS
    old = [each for each in plan.hidden if is_hanging(each.records, now=now, longest_seconds=longest)]
    if not old:
        return plan
    longest_seconds = clusters.longest_transaction_seconds()
    hanging = hanging_problems(plan.flow, old, now=now, longest_seconds=longest_seconds)
    return replace(plan, problems=tuple(sorted((*plan.problems, *hanging), key=lambda problem: problem.source)))
