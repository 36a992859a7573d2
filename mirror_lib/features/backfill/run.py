"""Run a backfill: a bounded copy next to a flow, with the flow's protocol and its own name.

Positions, writers, run lock and ledger rows have the backfill's name, so it does not touch those of the flow, and a
repeated backfill continues at its position. docs/backfill.md describes what happens if both write to one topic.
"""

from __future__ import annotations

import logging
import math
import re
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from mirror_lib.cluster.topics.position_format import PositionState
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.gaps.resolutions import Decision
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.copy.run_options import CopyRunner, RunOptions, RunReport
from mirror_lib.errors import (
    ConfigurationError,
    MirrorError,
    RetentionGapError,
    TopicMissingError,
    Where,
    WrittenAfterCutoverError,
)
from mirror_lib.features.backfill.define import backfill_flow, backfill_topology, stored_backfill
from mirror_lib.features.backfill.late_writes import find_late_writes
from mirror_lib.features.backfill.model import Backfill, BackfillRange
from mirror_lib.features.backfill.plan import clip_facts, within_budget
from mirror_lib.features.backfill.same_topic import LivePositions
from mirror_lib.features.backfill.states import with_resolution
from mirror_lib.identity.positions import position_row
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.backfills import again
from mirror_lib.planning.facts import KnownState, gather_facts
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import WHOLE_TOPIC, PartitionFacts, PartitionProblem, PartitionResult, RunPlan
from mirror_lib.planning.plan import plan_round
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
#: Remaining share of the budget below which another round is not worth its cost.
_NEGLIGIBLE = 0.05


def run_backfill(
    flow: FlowConfig,
    name: str,
    *,
    ledger: Ledger,
    make_runner: Callable[[], CopyRunner],
    options: RunOptions,
    max_bytes: int | None = None,
) -> RunReport:
    """Copy the rest of a backfill, or as much as its budget allows.

    Args:
        flow: the flow itself.
        name: of a backfill that was defined (`prepare_backfill`).
        make_runner: as for `replicate`.
        options: their topics are ignored; `Decision.ACCEPT` skips records that the source has deleted.
        max_bytes: this run copies about as many bytes.

    Raises:
        ConfigurationError: there is no such backfill.
        RunLockedError: another run of the backfill is active or, if it writes to the flow's topics, a run of the flow.
        MirrorError: a cluster cannot be reached, or the ledger cannot be used.
    """
    backfill = stored_backfill(flow, ledger, name)
    if backfill is None:
        raise ConfigurationError(
            f"flow {flow.flow} has no backfill {name!r}.", action="Define it: `mirror backfill run --topics ...`."
        )
    options = replace(options, max_seconds=math.inf if options.max_seconds is None else options.max_seconds)
    planner = BackfillPlanner(flow, backfill, ledger, options, max_bytes)

    def copy() -> RunReport:
        own = backfill_flow(flow, backfill)
        return replicate(own, ledger=ledger, make_runner=make_runner, options=options, planner=planner)

    if backfill.request.after_cutover:
        report = copy()
        _settle_late_writes(flow, backfill, ledger, by=options.trigger)
        return report
    if not backfill.into_live:
        return copy()
    run_id = options.run_id
    with (
        hold_lock(ledger, flow=str(flow.flow), run_id=run_id, lease_seconds=flow.run_lease_seconds) as lease,
        LivePositions(flow, backfill, ledger, lease, run_id=run_id) as live,
    ):
        planner.live = live
        try:
            report = copy()
        except BaseException:
            # Release the partitions that were not started; the original error is more important.
            with suppress(MirrorError):
                live.settle()
            raise
        live.settle()
        return report


def _settle_late_writes(flow: FlowConfig, backfill: Backfill, ledger: Ledger, *, by: str) -> None:
    """Close the gaps of late records that are on the target by now."""
    own = backfill_flow(flow, backfill)
    with FlowClusters.connect(flow, connector=backfill.connector) as clusters:
        # A run that died after it stored its last position has not updated the ledger.
        stored = clusters.positions.read_all().positions
        ledger.save_positions([position_row(own, each.position) for each in stored.values()])
        names = [re.escape(topic) for topic in sorted(backfill.targets)]
        late = {each.source for each in find_late_writes(flow_topology(flow, names), clusters, ledger).writes}
    for gap in ledger.open_gaps(str(flow.flow)):
        source = TopicPartition(gap.topic, gap.partition)
        if gap.cause == WrittenAfterCutoverError.reason and source not in late and gap.topic in backfill.targets:
            note = f"copied to {backfill.targets[gap.topic]} by backfill {backfill.name}"
            ledger.decide_gap(gap.id, GapState.RECOPIED, by=by, note=note)


class BackfillPlanner:
    """Plans the rounds of one run of a backfill (`copy.run_options.Planner`)."""

    def __init__(
        self, flow: FlowConfig, backfill: Backfill, ledger: Ledger, options: RunOptions, max_bytes: int | None
    ) -> None:
        self.connector = backfill.connector
        #: Set if the backfill writes to the flow's own topics.
        self.live: LivePositions | None = None
        self._flow = backfill_flow(flow, backfill)
        self._topology = backfill_topology(flow, backfill)
        self._backfill = backfill
        self._ledger = ledger
        self._options = options
        self._max_bytes = max_bytes
        self._left = max_bytes

    def plan(self, clusters: FlowClusters) -> RunPlan:
        """The remaining ranges, or as much of them as the budget allows."""
        if not self._backfill.ranges:
            return RunPlan(flow=self._flow.flow, bins=(), problems=(), idle=0)
        found, problems = gather_facts(self._flow, self._topology, clusters, KnownState(runs_before=lambda: 0))
        facts = {fact.source: fact for fact in found}
        refused = self._rejections(clusters, problems, facts)
        chosen = [
            self._clip(clusters, facts[each.source], each)
            for each in self._backfill.ranges
            if each.source not in refused
        ]
        plan = plan_round(
            self._flow.flow,
            chosen,
            tasks_max=self._options.tasks_max or self._flow.tasks_max,
        )
        stopped = [PartitionProblem(source, error) for source, error in refused.items()]
        stopped += [replace(each, error=self._of_plan(clusters, each)) for each in plan.problems]
        plan = replace(plan, problems=tuple(sorted(stopped, key=lambda each: each.source)))
        if self._left is not None and self._max_bytes is not None and self._left < self._max_bytes * _NEGLIGIBLE:
            return replace(plan, bins=())
        return within_budget(plan, self._left)

    def before_claims(self, clusters: FlowClusters, plan: RunPlan) -> None:  # noqa: ARG002
        """Mark the flow's positions if the backfill writes to the same topics."""
        if self.live is not None:
            self.live.mark(plan.partitions)

    def after_commit(self, results: Sequence[PartitionResult]) -> None:
        """Subtract what was copied from the budget."""
        if self._left is not None:
            self._left -= sum(result.bytes for result in results)

    def with_resolution(self, error: MirrorError) -> MirrorError:
        """The error of a partition, with the resolution for a backfill."""
        return self._with_action(error)

    def _of_plan(self, clusters: FlowClusters, problem: PartitionProblem) -> MirrorError:
        stored = clusters.positions_at_plan.positions.get(problem.source)
        interrupted = stored is not None and stored.position.state is not PositionState.CLOSED
        return self._with_action(problem.error, interrupted=interrupted)

    def _with_action(self, error: MirrorError, *, interrupted: bool = False) -> MirrorError:
        topic, partition = error.where.topic, error.where.partition
        marked_at = None
        if self.live is not None and topic is not None and partition is not None:
            marked_at = self.live.marked_at(TopicPartition(topic, partition))
        return with_resolution(self._backfill, error, interrupted=interrupted, marked_at=marked_at)

    def _rejections(
        self,
        clusters: FlowClusters,
        problems: Sequence[PartitionProblem],
        facts: dict[TopicPartition, PartitionFacts],
    ) -> dict[TopicPartition, MirrorError]:
        known = {problem.source: self._with_action(problem.error) for problem in problems}
        refused: dict[TopicPartition, MirrorError] = {}
        for each in self._backfill.ranges:
            if each.source not in facts:
                topic = TopicPartition(each.source.topic, WHOLE_TOPIC)
                refused[each.source] = known.get(each.source) or known.get(topic) or self._topic_error(each)
        if self.live is not None:
            free = [each for each in self._backfill.ranges if each.source not in refused]
            refused.update(self.live.prepare(clusters, free))
        return refused

    def _topic_error(self, each: BackfillRange) -> MirrorError:
        excluded = backfill_topology(self._flow, self._backfill).exclusion(each.source.topic)
        if excluded is not None:
            return TopicMissingError(
                f"the flow no longer replicates the topic ({excluded}).",
                where=self._where(each.source),
                action="Copied records are kept. To copy the rest, let the flow replicate the topic again "
                f"({self._backfill.request.flow}.topics in the file), then repeat: "
                f"{again(self._flow.flow, self._backfill.name)}.",
            )
        return TopicMissingError(
            "the source no longer has this partition.",
            where=self._where(each.source),
            action="Copied records are kept; the remaining records are lost. The other partitions are copied.",
        )

    def _clip(self, clusters: FlowClusters, fact: PartitionFacts, wanted: BackfillRange) -> PartitionFacts:
        strict = clip_facts(fact, wanted)
        stored = clusters.positions_at_plan.positions.get(fact.source)
        interrupted = stored is not None and stored.position.state is not PositionState.CLOSED
        # What an interrupted run wrote to the target is compared with the source from where that run started.
        if self._options.losses is not Decision.ACCEPT or interrupted:
            return strict
        position = wanted.first if strict.position is None else strict.position
        if position >= strict.log_start or strict.position_topic_id not in (None, "", strict.topic_id):
            return strict
        self._note_gap(fact, position, strict.log_start)
        return clip_facts(fact, wanted, accept_gaps=True)

    def _note_gap(self, fact: PartitionFacts, first: int, following: int) -> None:
        now = datetime.now(UTC)
        detail = (
            f"the source deleted offsets {first} to {following - 1} before backfill {self._backfill.name} copied them."
        )
        _log.warning("flow %s, %s: %s", self._flow.flow, fact.source, detail)
        self._ledger.record_gap(
            GapRow(
                id=str(uuid.uuid4()),
                flow=str(self._flow.flow),
                topic=fact.source.topic,
                partition=fact.source.partition,
                cause=RetentionGapError.reason,
                first_offset=first,
                next_offset=following,
                topic_id=fact.topic_id,
                detail=detail,
                run_id=self._options.run_id,
                found_at=now,
                state=GapState.ACCEPTED.value,
                decided_by=self._options.trigger,
                decided_at=now,
            )
        )

    def _where(self, source: TopicPartition) -> Where:
        return Where(flow=str(self._flow.flow), topic=source.topic, partition=source.partition)
