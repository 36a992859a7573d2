"""The steps while the writers are stopped: freeze, copy the rest, record the cut, compare."""

from __future__ import annotations

from collections.abc import Iterable

from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.flow_plan import compare_flow_logs
from mirror_lib.counted import counted
from mirror_lib.features.cutover import acl_fence, gates
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.model import Fence, Gate, Step
from mirror_lib.features.cutover.open_transactions import aborted_notes_of, at_the_end, open_transactions
from mirror_lib.features.cutover.order import has_passed
from mirror_lib.features.cutover.outcome import Outcome
from mirror_lib.features.cutover.positions import copied_to
from mirror_lib.features.cutover.scope import LogEnds, log_ends, scope_topics
from mirror_lib.features.cutover.steps.before import belongs_together, preflight
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.features.verify.tables import Verifications
from mirror_lib.ledger.cutover_rows import CutRow
from mirror_lib.ledger.handovers import with_handovers
from mirror_lib.planning.model import RunPlan
from mirror_lib.topology.names import TopicPartition

_LOOK_SECONDS = 0.5
#: In the facts of the freeze: log end offsets at the confirmation, by topic and partition.
_ENDS = "source_ends"


def before_freeze(context: CutoverContext) -> Outcome:
    """Check that the writers may be stopped now: the lag would not keep them waiting."""
    flow = context.flow
    ends = log_ends(flow, context.topics)
    lag = gates.lag_is_small(ends, copied_to(flow), context.definition.max_lag)
    if not lag.passed and context.engine is not None:
        context.copy()
        ends = log_ends(flow, context.topics)
        lag = gates.lag_is_small(ends, copied_to(flow), context.definition.max_lag)
    # The rehearsal may be days ago.
    ready = (*preflight(context).gates, *belongs_together(context))
    expected = context.facts_of(Step.REHEARSE).get("expected_stop_seconds")
    duration = Gate(
        "duration", True, f"expected downtime of the writers: about {expected} s, plus the time until the approval."
    )
    return Outcome((*ready, lag, duration) if expected is not None else (*ready, lag))


def while_waiting(context: CutoverContext) -> None:
    """Keep the lag small while the operator stops the writers."""
    if context.engine is not None:
        context.copy()


def freeze(context: CutoverContext) -> Outcome:
    """The operator confirms that the writers are stopped; the fence enforces it, if the definition has one."""
    gate = Gate("writers stopped", True, "confirmed by an operator.")
    if context.definition.fence is Fence.ACL:
        topics = [topic.source for topic in context.topics]
        known = context.facts_of(Step.FREEZE).get("fence", ())
        gate = acl_fence.raise_fence(context.whole_flow, topics, context.definition.writers, known, context.keep)
    ends: dict[str, list[int]] = {}
    for place, end in sorted(log_ends(context.whole_flow, context.topics).source.items()):
        ends.setdefault(place.topic, []).append(end)
    return Outcome((gate,), {_ENDS: ends})


def freeze_holds(context: CutoverContext) -> tuple[Gate, ...]:
    """Gates: nothing was written to the source since the cut, or since the confirmation, and it lost no records."""
    if has_passed(context.last.get(Step.DRAIN)):
        return gates.cut_holds(cuts(context), log_ends(context.whole_flow, context.topics), target_too=False)
    # Cutovers of 0.1.0 have not recorded it.
    noted = context.facts_of(Step.FREEZE).get(_ENDS, {})
    then = {TopicPartition(topic, number): end for topic, ends in noted.items() for number, end in enumerate(ends)}
    ends = log_ends(context.whole_flow, context.topics)
    return gates.source_as_reported(then, ends), gates.same_logs(_problems(_compare_logs(context)))


def drain(context: CutoverContext) -> Outcome:
    """Run rounds until everything is copied and the source was quiet for long enough; then record the cut."""
    wanted, began = context.definition, context.monotonic()
    ends = log_ends(context.flow, context.topics)
    still_since, rounds = context.monotonic(), 0
    while True:
        if _is_behind(context, ends):
            context.report_progress(f"Drain: round {rounds + 1}")
            context.copy()
            rounds += 1
        now = log_ends(context.flow, context.topics)
        if now.source != ends.source:
            still_since = context.monotonic()
            context.report_progress("Writers still wrote to the source")
        ends = now
        still = context.monotonic() - still_since
        if still >= wanted.quiet_seconds and not _is_behind(context, ends):
            break
        if context.monotonic() - began > wanted.drain_seconds:
            break
        context.sleep(min(_LOOK_SECONDS, max(wanted.quiet_seconds - still, 0.01)))
    return _cut_outcome(context, ends, still, rounds, context.monotonic() - began)


def _is_behind(context: CutoverContext, ends: LogEnds) -> bool:
    return bool(ends.behind(copied_to(context.flow)))


def _cut_outcome(context: CutoverContext, ends: LogEnds, still: float, rounds: int, seconds: float) -> Outcome:
    plan = _compare_logs(context)
    after = log_ends(context.flow, context.topics)
    # An operator may have stopped a partition: then nothing is planned for it, though it has lag.
    waiting = {each.source for each in plan.partitions} | set(after.behind(copied_to(context.flow)))
    problems = _problems(plan)
    if plan.stopped:
        problems.append(f"{counted(plan.stopped, 'partition')} whose replication an operator stopped (`mirror gaps`)")
    long_enough = still >= context.definition.quiet_seconds and after.source == ends.source
    found = (
        gates.topics_same(context.topics, scope_topics(context.flow, context.definition.topics, context.ledger)),
        gates.everything_copied(after, waiting, problems),
        at_the_end(context.flow, open_transactions(context.flow, after)),
        Gate(
            "no new source records",
            long_enough,
            f"no writes to the source for {still:.1f} s."
            if long_enough
            else f"the source was written to within the last {context.definition.quiet_seconds:g} s.",
            "Stop the writers, and confirm it again.",
        ),
    )
    outcome = Outcome(
        found,
        {"rounds": rounds, "seconds": round(seconds, 3), "quiet_seconds": round(still, 3)},
        # The writers were not stopped, against the confirmation.
        undoes=None if long_enough else Step.FREEZE,
    )
    if outcome.has_passed:
        Cutovers(context.ledger).save_cuts(context.definition.name, list(_cut_rows(context, after)))
    return outcome


def _cut_rows(context: CutoverContext, ends: LogEnds) -> Iterable[CutRow]:
    now = context.now()
    for topic in context.topics:
        for source, target in topic.pairs:
            yield CutRow(
                cutover=context.definition.name,
                topic=source.topic,
                partition=source.partition,
                target_topic=target.topic,
                source_end=ends.source[source],
                target_end=ends.target[source],
                cut_at=now,
            )


def cuts(context: CutoverContext) -> tuple[CutRow, ...]:
    """Return the cut of each partition."""
    return context.ledger.handovers.cuts(context.definition.name)


def cut_holds(context: CutoverContext) -> tuple[Gate, ...]:
    """Gates: both sides are unchanged since the cut, and are the logs that were copied."""
    ends = gates.cut_holds(cuts(context), log_ends(context.whole_flow, context.topics), target_too=True)
    selected = flow_topology(with_handovers(context.flow, context.ledger))
    if not any(selected.replicates(topic.source) for topic in context.topics):
        # After the switch the flow copies them no more.
        return ends
    return (*ends, gates.same_logs(_problems(_compare_logs(context))))


def _compare_logs(context: CutoverContext) -> RunPlan:
    """Compare all logs with what was copied: one that lost records and has grown again ends as before."""
    return compare_flow_logs(context.flow, context.run_options(), context.ledger)


def _problems(plan: RunPlan) -> list[str]:
    return [f"{each.source}: {each.error.reason}" for each in plan.problems]


def verify(context: CutoverContext) -> Outcome:
    """Compare everything that was copied since the last comparison, up to the cut."""
    report = context.compare(VerifyMode.RECENT)
    known = {
        (row.topic, row.partition): row.source_next
        for row in Verifications(context.ledger).verified_up_to(context.definition.flow)
    }
    short = [
        f"{size.topic}-{size.partition}"
        for size in context.ledger.map_sizes(context.definition.flow)
        if any(size.topic == topic.source for topic in context.topics)
        and known.get((size.topic, size.partition), -1) < size.source_next
    ]
    reaches = gates.counts(
        "compared up to the cut", short, "every partition was compared up to the end of its copy.", "Verify again."
    )
    facts = {"verification": report.verification_id, "records": report.records, "seconds": round(report.seconds, 3)}
    aborted = gates.aborted_are_known(aborted_notes_of(context))
    return Outcome((gates.is_equal(report), reaches, *aborted, *cut_holds(context)), facts)
