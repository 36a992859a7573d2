"""One run of a flow: plan, claim, copy, commit, and repeat until it has caught up or its time is over."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from mirror_lib.cluster.topics.position_format import SOURCE_CONNECTOR
from mirror_lib.cluster.topics.reader import HiddenRecordsError
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology, quarantine_topic
from mirror_lib.copy.claim.claim import chains_of, name_positions, open_partitions, store_first_positions
from mirror_lib.copy.claim.hidden_positions import uncover_positions
from mirror_lib.copy.commit.commit import commit_round
from mirror_lib.copy.commit.progress import RoundProgress
from mirror_lib.copy.commit.round_metrics import RoundAccount, Step
from mirror_lib.copy.commit.transaction_counts import with_transaction_counts
from mirror_lib.copy.flow_plan import plan_with_facts, stored_topics
from mirror_lib.copy.gaps.gaps import close_settled, note_losses, settle_losses
from mirror_lib.copy.gaps.resolutions import Resolution
from mirror_lib.copy.pacing import RoundPace
from mirror_lib.copy.run_lock import RunLease, hold_lock
from mirror_lib.copy.run_options import CopyRunner, Planner, RunOptions, RunReport
from mirror_lib.counted import counted
from mirror_lib.errors import (
    SOURCE_LOSS_REASONS,
    ConfigurationError,
    MirrorError,
    TopicMissingError,
    TopologyError,
    Where,
    attributes_of,
)
from mirror_lib.identity.clusters import check_clusters
from mirror_lib.identity.histories import SOUND_HISTORY
from mirror_lib.ledger.handovers import with_handovers
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.aborted_records import aborted_notes, copied_transactions
from mirror_lib.planning.altered_positions import note_altered
from mirror_lib.planning.by_transform_chain import whole_takeovers
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.known_topics import note_topics, topics_to_note
from mirror_lib.planning.model import (
    CopyJob,
    PartitionFacts,
    PartitionProblem,
    PartitionResult,
    PositionTopic,
    ProducerMemory,
    RunPlan,
)
from mirror_lib.planning.open_transactions import open_transaction_notes
from mirror_lib.planning.rate_limits import RunRate
from mirror_lib.planning.unknown_history import note_histories
from mirror_lib.planning.unselected import deleted_notes, note_unselected, unselected_notes
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
_NAMED_TOPICS = 3


def replicate(
    flow: FlowConfig,
    *,
    ledger: Ledger,
    make_runner: Callable[[], CopyRunner],
    options: RunOptions,
    planner: Planner | None = None,
) -> RunReport:
    """Copy all new records from the stored positions on.

    A failing partition does not stop the others; it is in the report with its error. Only an error of the whole flow is
    raised.

    Args:
        make_runner: called once, when there is something to copy and before any position is opened: starting Spark
            takes seconds that an idle run saves, and if it fails nothing has started yet.
        planner: determines what is copied, if not all new records.

    Raises:
        RunLockedError: another run of the flow is active.
        MirrorError: a cluster cannot be reached, or the ledger cannot be used.
    """
    report = _replicate(flow, ledger, make_runner, options, planner=planner)
    assert report is not None
    return report


def replicate_if(
    wanted: Callable[[RunPlan, FlowClusters], bool],
    flow: FlowConfig,
    *,
    ledger: Ledger,
    make_runner: Callable[[], CopyRunner],
    options: RunOptions,
) -> RunReport | None:
    """Run the flow if its first plan is wanted; else return None without changes to the clusters and the ledger.

    It plans once, under the flow's lock, so the run executes exactly the checked plan.

    Args:
        wanted: checks the first plan. Nothing has started yet.

    Raises:
        MirrorError: as `replicate`.
    """
    return _replicate(flow, ledger, make_runner, options, wanted=wanted)


def _replicate(
    flow: FlowConfig,
    ledger: Ledger,
    make_runner: Callable[[], CopyRunner],
    options: RunOptions,
    *,
    planner: Planner | None = None,
    wanted: Callable[[RunPlan, FlowClusters], bool] | None = None,
) -> RunReport | None:
    if planner is not None and flow.copy_settings.same_offsets:
        raise ConfigurationError(
            "a backfill copies records to other offsets than those at the source (mirror.offsets=same).",
            where=Where(flow=str(flow.flow)),
            action="Copy these records by a flow of its own, with mirror.offsets=own.",
        )
    began = time.monotonic()
    max_seconds = flow.copy_settings.run_max_seconds if options.max_seconds is None else options.max_seconds
    name = str(flow.flow)
    with hold_lock(ledger, flow=name, run_id=options.run_id, lease_seconds=flow.run_lease_seconds) as lease:
        # Read under the lock: a cutover holds it while it hands topics over.
        flow = with_handovers(flow, ledger)
        run = _Run(flow, ledger, lease, make_runner, options, planner)
        connector = planner.connector if planner else SOURCE_CONNECTOR
        with ExitStack() as stack:
            seen: FlowClusters | None = None
            if wanted is not None:
                seen = stack.enter_context(FlowClusters.connect(flow, connector=connector))
                check_clusters(flow, ledger, seen.ids())
                if not wanted(run.look_ahead(seen), seen):
                    return None
            for dead in ledger.close_dead_runs(name, living=options.run_id):
                _log.warning("flow %s: run %s has died; this run continues at its last position.", name, dead)
            ledger.start_run(run_id=options.run_id, flow=name, trigger=options.trigger)
            try:
                clusters = seen or stack.enter_context(FlowClusters.connect(flow, connector=connector))
                check_clusters(flow, ledger, clusters.ids(), note=True)
                until = began + max_seconds
                while run.keeps_pace(until) if run.round(clusters) else run.waits(until):
                    pass
            except BaseException as error:
                ledger.finish_run(options.run_id, state="failed", error=attributes_of(error))
                raise
        report = run.report(time.monotonic() - began)
        errors = report.errors
        # Before the lock is released: a `running` run without a lock counts as dead.
        ledger.finish_run(
            options.run_id,
            state="succeeded" if not errors else "partial" if report.records else "failed",
            rounds=report.rounds,
            records=report.records,
            bytes=report.bytes,
            error=errors[0].attributes() if errors else None,
        )
        return report


class _Run:
    """The rounds of one run, added up. Partitions that failed in one round are skipped in the next."""

    def __init__(
        self,
        flow: FlowConfig,
        ledger: Ledger,
        lease: RunLease,
        make_runner: Callable[[], CopyRunner],
        options: RunOptions,
        planner: Planner | None,
    ) -> None:
        self._planner = planner
        self._flow = flow
        self._ledger = ledger
        self._lease = lease
        self._make_runner = make_runner
        self._runner: CopyRunner | None = None
        self._options = options
        self._results: list[PartitionResult] = []
        self._problems: dict[object, PartitionProblem] = {}
        self._began = time.monotonic()
        self._rounds = 0
        self._idle = 0
        self._copy_seconds = 0.0
        self._caught_up = False
        self._rate = RunRate(
            flow, ledger, run_id=options.run_id, bytes_per_second=options.bytes_per_second, sliced=planner is None
        )
        # An operator's request is copied as fast as possible.
        self._pace = RoundPace(0.0 if planner else flow.copy_settings.run_round_seconds)
        self._accounts: list[RoundAccount] = []
        self._warnings: tuple[str, ...] = ()
        #: Of the round that has found the topics: later ones do not report them again.
        self._deleted: tuple[str, ...] = ()
        self._deletions: dict[object, PartitionProblem] = {}
        self._settled: tuple[Resolution, ...] = ()
        #: Partitions of the first round: the topics before a run are created for these.
        self._at_the_start: frozenset[TopicPartition] | None = None
        #: The plan of the first round, if it was requested in advance.
        self._ahead: tuple[RunPlan, tuple[PartitionFacts, ...]] | None = None

    def look_ahead(self, clusters: FlowClusters) -> RunPlan:
        """The plan of the first round; change nothing."""
        self._ahead = self._plan_with_facts(clusters)
        return self._ahead[0]

    def waits(self, until: float) -> bool:
        """Wait for new records if the flow polls; return False if the run ends, caught up or not.

        Args:
            until: the end of the time budget, by the monotonic clock.
        """
        chosen = self._options.poll_seconds
        pause = self._flow.copy_settings.run_poll_seconds if chosen is None else chosen
        caught_up = self._caught_up and not self._problems and self._planner is None
        if not pause or not caught_up or time.monotonic() + pause >= until:
            return False
        time.sleep(pause)
        return True

    def keeps_pace(self, until: float) -> bool:
        """Wait until the next round may start; return False if the time budget ends before.

        Args:
            until: the end of the time budget, by the monotonic clock.
        """
        # A round that copied only a part of its plan is followed by another one, regardless of the time.
        if self._rate.may_continue:
            # An operator's request is copied to its end.
            longest = math.inf if self._planner else self._flow.copy_settings.run_longest_seconds or math.inf
            return time.monotonic() < max(self._began + longest - self._options.elapsed_seconds, until)
        start = self._pace.next_start()
        if max(start, time.monotonic()) >= until:
            return False
        time.sleep(max(0.0, start - time.monotonic()))
        return True

    def round(self, clusters: FlowClusters) -> bool:
        """Plan and copy once; return whether another round could find more to do."""
        self._pace.begin()
        self._caught_up = False
        account = RoundAccount(
            self._ledger, flow=str(self._flow.flow), run_id=self._options.run_id, number=self._rounds + 1
        )
        with account.measure(Step.PLANNING):
            plan = self._plan_with_all_positions(clusters)
        self._rounds += 1
        self._idle = plan.idle
        self._note(plan.problems)
        # Their numbers change from round to round: only the newest are reported.
        noted = (
            *plan.warnings,
            *open_transaction_notes(plan.hidden, now=time.time()),
            *unselected_notes(plan.flow, plan.unselected),
        )
        self._warnings = noted or self._warnings
        self._deleted += tuple(deleted_notes(plan.flow, plan.unselected))
        account.record_plan(plan)
        self._lease.check()
        self._note(store_first_positions(self._flow, plan, clusters, self._ledger, run_id=self._options.run_id))
        name_positions(plan, clusters, run_id=self._options.run_id)
        taken = {each.source for each in (*plan.partitions, *plan.unnamed)}
        altered = [each for each in clusters.altered if each.after.source in taken]
        note_altered(self._flow.flow, altered, self._ledger, run_id=self._options.run_id)
        self._caught_up = not plan.partitions
        if self._caught_up:
            return False
        self._accounts.append(account)
        runner = self._runner = self._runner or self._make_runner()
        whole, plan = plan, self._rate.begin(plan)
        if not plan.partitions:
            return False
        if plan is not whole:
            account.begins(plan)
        self._lease.check()
        if self._planner is not None:
            self._planner.before_claims(clusters, plan)
        plan = with_transaction_counts(plan, clusters, self._ledger)
        with account.measure(Step.OPENING):
            opened, refused = open_partitions(
                self._flow, plan, clusters, run_id=self._options.run_id, ledger=self._ledger
            )
        self._note(tuple(replace(each, error=self._with_resolution(each.error)) for each in refused))
        bins = tuple(bin_ for bin_ in opened if bin_)
        if not bins:
            return False
        chains = chains_of(self._flow, {opened.plan.source.topic for bin_ in bins for opened in bin_})
        bins = whole_takeovers(bins, whole, chains)
        job = CopyJob(
            flow=self._flow.flow,
            run_id=self._options.run_id,
            source=clusters.source_data,
            target=clusters.target_data,
            read_committed=clusters.read_committed,
            settings=self._flow.copy_settings,
            bins=bins,
            positions=PositionTopic(
                clusters.positions_connection,
                self._flow.offset_storage_topic,
                self._flow.source_alias,
                self._flow.offset_flush_interval_ms / 1000,
                self._planner.connector if self._planner else SOURCE_CONNECTOR,
            ),
            quarantine_topic=quarantine_topic(self._flow),
            bytes_per_second=self._rate.bytes_per_second,
            chains=chains,
            producer_memory=clusters.producer_memory() if self._flow.old_records_in_transactions else ProducerMemory(),
        )
        began = time.monotonic()
        with account.measure(Step.COPYING), RoundProgress(job, clusters, self._ledger, round_number=self._rounds):
            results = [
                result if result.error is None else replace(result, error=self._with_resolution(result.error))
                for result in runner(job)
            ]
        self._rate.end(results)
        self._copy_seconds += time.monotonic() - began
        # The present holder of the lock takes over from the stored positions, so this run must not close them.
        self._lease.check()
        with account.measure(Step.COMMITTING):
            late = commit_round(self._flow, job, results, clusters, self._ledger, round_number=self._rounds)
        for problem in late:
            explained = replace(problem, error=self._with_resolution(problem.error))
            self._deletions.setdefault(problem.source, explained)
        account.record_commit(bins, results, datetime.now(UTC))
        self._results += results
        if self._planner is not None:
            self._planner.after_commit(results)
        return self._rate.may_continue or all(result.error is None for result in self._results)

    def _plan_with_all_positions(self, clusters: FlowClusters) -> RunPlan:
        try:
            return self._plan_or_part(clusters)
        except HiddenRecordsError as hidden:
            self._lease.check()
            if not uncover_positions(self._flow, clusters.target_data, hidden.partitions):
                raise
            return self._plan_or_part(clusters)

    def _plan_or_part(self, clusters: FlowClusters) -> RunPlan:
        if self._planner is None:
            return self._plan(clusters)
        plan = self._planner.plan(clusters)
        self._restore_buried(clusters)
        return plan

    def _plan(self, clusters: FlowClusters) -> RunPlan:
        ahead, self._ahead = self._ahead, None
        plan, facts = ahead or self._plan_with_facts(clusters)
        self._note_topics(clusters, facts)
        plan = self._without_latecomers(plan, facts)
        self._restore_buried(clusters)
        run_id, by = self._options.run_id, self._options.trigger
        self._note_histories(clusters, facts)
        noted = note_losses(self._flow.flow, plan.problems, self._ledger, run_id=run_id)
        close_settled(self._flow.flow, facts, plan.problems, self._ledger, by=by, run_id=run_id)
        topology = flow_topology(self._flow, self._options.topics)
        note_unselected(self._flow, topology, clusters, plan, facts, self._ledger, run_id=run_id, by=by)
        # A run may only decide about losses at the source; changes of the target need an operator.
        gaps = tuple(gap for gap in noted if gap.cause in SOURCE_LOSS_REASONS)
        if not gaps or self._options.losses is None:
            return plan
        self._lease.check()
        decision = self._options.losses
        settled = settle_losses(self._flow, clusters, self._ledger, gaps, decision, run_id=run_id, by=by)
        self._note(tuple(PartitionProblem(each.source, each.error) for each in settled if each.error is not None))
        self._settled += settled
        return self._without_latecomers(self._plan_with_facts(clusters)[0], facts)

    def _plan_with_facts(self, clusters: FlowClusters) -> tuple[RunPlan, tuple[PartitionFacts, ...]]:
        return plan_with_facts(self._flow, clusters, self._options, self._ledger, topics_synced=True)

    def _note_histories(self, clusters: FlowClusters, facts: Sequence[PartitionFacts]) -> None:
        stored = clusters.positions_at_plan.positions
        lacking = [fact.source for fact in facts if fact.history != SOUND_HISTORY and fact.source in stored]
        if lacking:
            self._lease.check()
            positions = {source: stored[source].position for source in lacking}
            note_histories(self._flow, positions, self._ledger, run_id=self._options.run_id)

    def _without_latecomers(self, plan: RunPlan, facts: Sequence[PartitionFacts]) -> RunPlan:
        """The plan without partitions that were created since the run began and have no target yet.

        The topic sync before the next run creates their targets: nothing here needs a decision, or can be tried again.
        """
        if self._at_the_start is None:
            self._at_the_start = frozenset(fact.source for fact in facts) | {each.source for each in plan.problems}
        late = {
            each.source
            for each in plan.problems
            if isinstance(each.error, TopicMissingError | TopologyError) and each.source not in self._at_the_start
        }
        if not late:
            return plan
        names = ", ".join(sorted({each.topic for each in late})[:_NAMED_TOPICS])
        note = f"{len(late)} partitions were created since the run began ({names}): the next run copies them."
        rest = tuple(each for each in plan.problems if each.source not in late)
        return replace(plan, problems=rest, warnings=(*plan.warnings, note))

    def _note_topics(self, clusters: FlowClusters, facts: Sequence[PartitionFacts]) -> None:
        """Note which topics there are; topics that are new in this run stay new until they have positions."""
        # A run of some topics knows nothing of the others.
        if self._rounds or self._options.topics:
            return
        known = stored_topics(self._flow, self._ledger)
        listed, selects = clusters.listed, flow_topology(self._flow).replicates
        self._lease.check()
        note_topics(str(self._flow.flow), self._ledger, known, topics_to_note(listed, known, facts, selects))

    def _restore_buried(self, clusters: FlowClusters) -> None:
        snapshot = clusters.positions_at_plan
        if snapshot.unneeded_parts:
            self._lease.check()
            clusters.positions.discard_parts(snapshot.unneeded_parts)
        if snapshot.buried:
            self._lease.check()
            known = snapshot.buried & snapshot.positions.keys()
            clusters.positions.write(snapshot.positions[source].position for source in known)
            clusters.positions.forget(snapshot.buried - known - snapshot.unreadable.keys())

    def _with_resolution(self, error: MirrorError) -> MirrorError:
        return error if self._planner is None else self._planner.with_resolution(error)

    def _note(self, problems: tuple[PartitionProblem, ...]) -> None:
        for problem in problems:
            self._problems.setdefault(problem.source, problem)

    def _left_for_the_next(self) -> tuple[str, ...]:
        if not self._rate.left:
            return ()
        longest = self._flow.copy_settings.run_longest_seconds
        return (
            f"The run has ended after {longest:g} s with earlier attempts (mirror.run.longest.seconds), before the "
            f"end of its plan: {self._rate.left} offsets are left. The next run continues there.",
        )

    def _about_lost(self) -> tuple[str, ...]:
        passed = [each for each in self._settled if each.skipped]
        if not passed:
            return ()
        first = passed[0]
        example = "" if first.before is None else f", first offset {first.before.offset + 1} of {first.source}"
        return (
            f"{counted(sum(each.skipped for each in passed), 'offset')} in {counted(len(passed), 'partition')} "
            f"that the source lost before the copy were skipped, as requested{example} (`mirror gaps list`).",
        )

    def _aborted_notes(self) -> tuple[str, ...]:
        """Notes about the records of transactions that this run has copied, and how earlier ones ended."""
        results = [each for each in self._results if each.transactions is not None]
        if not results:
            return ()
        aborted = Counter[str]()
        for each in results:
            aborted[each.source.topic] += each.aborted
        by_run = [(topic, records) for topic, records in aborted.items() if records]
        copied = copied_transactions(self._ledger, self._flow.flow, aborted.__contains__)
        return tuple(aborted_notes(self._flow.flow, copied, by_run=by_run))

    def report(self, seconds: float) -> RunReport:
        return RunReport(
            run_id=self._options.run_id,
            flow=str(self._flow.flow),
            rounds=self._rounds,
            idle=self._idle,
            seconds=seconds,
            copy_seconds=self._copy_seconds,
            results=tuple(self._results),
            problems=tuple(self._problems.values()),
            round_lags=tuple(account.row for account in self._accounts),
            warnings=(
                *self._warnings,
                *(note for note in self._deleted if note not in self._warnings),
                *self._about_lost(),
                *self._aborted_notes(),
                *self._left_for_the_next(),
            ),
            lost=sum(each.skipped for each in self._settled),
            deletions=tuple(self._deletions.values()),
        )
