"""One verification of a flow: gather, plan, compare, store."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.features.verify.findings import PartitionVerdict, RoutedVerdict, Verdict
from mirror_lib.features.verify.model import Budget, VerifyJob, VerifyMode, VerifyPlan
from mirror_lib.features.verify.planning.facts import gather
from mirror_lib.features.verify.planning.plan import NO_BUDGET, plan_verification
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.state.plan import plan_state
from mirror_lib.features.verify.tables import VerificationRow, Verifications
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import TopicPartition

#: Compares every bin of a job and returns a verdict for each partition, including routed target partitions.
VerifyRunner = Callable[[VerifyJob], list[PartitionVerdict | RoutedVerdict]]
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Scope and bounds of one verification."""

    verification_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    #: Java regexes; empty takes all topics of the flow.
    topics: tuple[str, ...] = ()
    mode: VerifyMode = VerifyMode.FULL
    budget: Budget = NO_BUDGET
    seed: int = 0
    #: Maximum number of tasks; None takes `tasks.max`.
    tasks_max: int | None = None


def plan_flow_verification(flow: FlowConfig, ledger: Ledger, options: VerifyOptions) -> VerifyPlan:
    """Return what would be compared now. Reads both clusters and the ledger, changes nothing.

    Raises:
        MirrorError: a cluster cannot be reached, or the ledger cannot be used.
    """
    gathered = gather(flow, ledger, options.topics)
    if options.mode is VerifyMode.STATE:
        return plan_state(
            flow.flow,
            gathered.facts,
            budget=options.budget,
            bins_max=options.tasks_max or flow.tasks_max,
            unverifiable=gathered.unverifiable,
            copies=gathered.copies,
        )
    return plan_verification(
        flow.flow,
        gathered.facts,
        mode=options.mode,
        budget=options.budget,
        seed=options.seed,
        bins_max=options.tasks_max or flow.tasks_max,
        unverifiable=gathered.unverifiable,
        routed=gathered.routed,
        copies=gathered.copies,
    )


def job_of(flow: FlowConfig, plan: VerifyPlan) -> VerifyJob:
    """Return the input of the tasks of a plan."""
    max_bytes, max_seconds = plan.budget.max_bytes, plan.budget.max_seconds
    if plan.mode is VerifyMode.SAMPLE:
        # The budget has decided how many spans there are; each is read in whole batches.
        max_bytes = None
    return VerifyJob(
        flow=flow.flow,
        source=Connection.from_settings(flow.clients.data_consumer),
        target=Connection.from_settings(flow.clients.data_producer),
        read_committed=flow.isolation_level is IsolationLevel.READ_COMMITTED,
        bins=plan.bins,
        bin_max_bytes=None if max_bytes is None or not plan.bins else -(-max_bytes // len(plan.bins)),
        ends_at=None if max_seconds is None else time.time() + max_seconds,
        retry_seconds=flow.copy_settings.retry_max_seconds,
        memory_bytes=flow.copy_settings.task_memory_bytes,
        executor_wait_seconds=flow.copy_settings.spark_executor_wait_seconds,
        routed=plan.routed,
        digest_key=os.urandom(_KEY_BYTES),
    )


def verify_flow(
    flow: FlowConfig, *, ledger: Ledger, make_runner: Callable[[VerifyPlan], VerifyRunner], options: VerifyOptions
) -> VerifyReport:
    """Compare what the options select, and store the result in the ledger.

    Args:
        make_runner: called once, if there is something to compare.

    Raises:
        MirrorError: a cluster cannot be reached, or the ledger cannot be used. Errors of one partition are in its
            verdict.
    """
    started = datetime.now(UTC)
    plan = plan_flow_verification(flow, ledger, options)
    found = _run_job(make_runner, plan, job_of(flow, plan))
    finished = datetime.now(UTC)
    compared = [each for each in found if isinstance(each, PartitionVerdict)]
    routed = [each for each in found if isinstance(each, RoutedVerdict)]
    report = VerifyReport.of(
        plan,
        tuple(sorted((*compared, *plan.unverifiable), key=lambda verdict: verdict.source)),
        verification_id=options.verification_id,
        started=started,
        finished=finished,
        routed=tuple(sorted(routed, key=lambda verdict: verdict.target)),
    )
    Verifications(ledger).save(
        [replace(row, copy=plan.copies.get(TopicPartition(row.topic, row.partition))) for row in rows_of(report)]
    )
    return report


def _run_job(
    make_runner: Callable[[VerifyPlan], VerifyRunner], plan: VerifyPlan, job: VerifyJob
) -> list[PartitionVerdict | RoutedVerdict]:
    """Return the findings; a runner is made only if there is something to read."""
    if plan.bins or any(check.spans or check.outside for check in plan.routed.checks):
        return make_runner(plan)(job)
    if not plan.routed.checks:
        return []
    from mirror_lib.features.verify.routed.findings import RoutedFindings
    from mirror_lib.features.verify.routed.judge import judge_routed

    return [*judge_routed(job, RoutedFindings(), lambda _: (), lambda _: ())]


def rows_of(report: VerifyReport) -> Sequence[VerificationRow]:
    """Return a report as the ledger stores it, including partitions that were not compared because nothing was added.

    If the records that a source partition routes elsewhere are missing there, it counts as not verified itself, so that
    the next verification compares all of it again.
    """
    unequal_routed: dict[TopicPartition, RoutedVerdict] = {}
    for each in report.routed:
        if each.verdict is Verdict.DIFFERENT or (each.verdict is Verdict.UNVERIFIABLE and not each.lasting):
            for source in each.sources:
                if source not in unequal_routed or each.verdict is Verdict.DIFFERENT:
                    unequal_routed[source] = each
    return [
        _row(report, _with_routed_verdict(verdict, unequal_routed)) for verdict in (*report.verdicts, *report.confirmed)
    ]


def _with_routed_verdict(
    verdict: PartitionVerdict, unequal_routed: Mapping[TopicPartition, RoutedVerdict]
) -> PartitionVerdict:
    routed = unequal_routed.get(verdict.source)
    if routed is None or verdict.verdict is not Verdict.EQUAL:
        return verdict
    place = f"{routed.target.topic}-{routed.target.partition}"
    detail = f"verdict for its records routed to {place}: {routed.verdict.value}: {routed.detail or 'see the report'}"
    return replace(verdict, verdict=routed.verdict, reason=routed.reason, detail=detail)


def _row(report: VerifyReport, verdict: PartitionVerdict) -> VerificationRow:
    return VerificationRow(
        id=report.verification_id,
        flow=report.flow,
        topic=verdict.source.topic,
        partition=verdict.source.partition,
        target_topic=verdict.target.topic,
        mode=report.mode.value,
        verdict=verdict.verdict.value,
        reason=verdict.reason,
        detail=verdict.detail,
        source_first=verdict.outcomes[0].source_first if verdict.outcomes else None,
        source_next=verdict.outcomes[-1].source_next if verdict.outcomes else None,
        target_first=verdict.outcomes[0].target_first if verdict.outcomes else None,
        target_next=verdict.outcomes[-1].target_next if verdict.outcomes else None,
        records=verdict.records,
        bytes=verdict.source_bytes,
        digest=verdict.digest,
        difference_count=verdict.difference_count,
        differences=[each.to_dict() for each in verdict.differences] or None,
        started_at=report.started,
        finished_at=report.finished,
    )
