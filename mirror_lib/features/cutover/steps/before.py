"""The steps while clients still work: inventory, preflight, rehearsal. They can be repeated at will."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mirror_lib.cluster.admin.groups import GroupState
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.counted import counted
from mirror_lib.errors import NoLongerSelectedError
from mirror_lib.features.cutover import acl_fence, gates, uncommitted
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.dependencies import Belonging, every_topic_has_an_offset, find_splits, nothing_split
from mirror_lib.features.cutover.dependency_facts import read_belonging
from mirror_lib.features.cutover.failback.failback import ensure_topics, why_no_failback
from mirror_lib.features.cutover.model import CutoverState, Fence, Gate, Step, StepState, VerifyScope
from mirror_lib.features.cutover.open_transactions import aborted_notes_of, before_the_writers_stop, open_transactions
from mirror_lib.features.cutover.order import has_passed, is_released, last_attempts
from mirror_lib.features.cutover.outcome import Outcome
from mirror_lib.features.cutover.positions import copied_to
from mirror_lib.features.cutover.records import attempt_of
from mirror_lib.features.cutover.scope import ScopeTopic, log_ends, scope_groups, scope_topics
from mirror_lib.features.cutover.states.situation import situation_of
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.features.forecast.plan import forecast_plan
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.ledger.rows import AclKind, AclState
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.sync.due_steps import why_not_emitted
from mirror_lib.sync.groups.flow import plan_flow_groups

#: If more is written than copied, no number of rounds would be enough.
_ROUNDS = 10


def inventory(context: CutoverContext) -> Outcome:
    """Return the present scope."""
    flow, wanted = context.flow, context.definition
    topics = scope_topics(flow, wanted.topics, context.ledger)
    groups = scope_groups(flow, topics, wanted.groups) if topics else ()
    staged = [row for row in context.ledger.acls(str(flow.flow)) if row.kind == AclKind.STAGED]
    facts: dict[str, Any] = {
        "topics": [asdict(topic) for topic in topics],
        "groups": [
            {
                "name": group.name,
                "partitions": len(group.committed),
                "active": group.on_source is GroupState.ACTIVE,
            }
            for group in groups
        ],
        "staged_grants": sum(row.state == AclState.WAITING for row in staged),
    }
    use = read_belonging(flow, context.opposite, topics, wanted.groups) if topics else Belonging()
    mine = {topic.source for topic in topics}
    facts["splits"] = [asdict(each) for each in find_splits(use, mine)]
    together = nothing_split(use, mine, wanted.may_split)
    found = Gate(
        "groups",
        True,
        f"{counted(len(groups), 'group')}: {gates.first_places(group.name for group in groups) or 'none'}",
    )
    named = RunOptions(topics=wanted.topics)
    gone = plan_flow(flow, named, context.ledger).unselected if topics else ()
    chosen = gates.topics_found(topics), gates.none_left(gone)
    return Outcome((*chosen, found, together, _no_other_cutover(context, topics)), facts)


def belongs_together(context: CutoverContext) -> tuple[Gate, ...]:
    """Gates: the cutover splits no group or transactional id, and knows what its groups read, checked now."""
    wanted, topics = context.definition, {topic.source for topic in context.topics}
    use = read_belonging(context.flow, context.opposite, context.topics, wanted.groups)
    return nothing_split(use, topics, wanted.may_split), every_topic_has_an_offset(use, topics, wanted.may_reset)


def inventory_holds(context: CutoverContext) -> tuple[Gate, ...]:
    """Gates: the scope is still that of the inventory. After the switch the flow excludes it, so its names are looked
    up.
    """
    switched = context.last.get(Step.SWITCH)
    if switched is not None and switched.state is not StepState.UNDONE:
        present = scope_topics(context.whole_flow, context.topic_regexes, context.ledger)
    else:
        present = scope_topics(context.flow, context.definition.topics, context.ledger)
    return (gates.topics_same(context.topics, present),)


def _no_other_cutover(context: CutoverContext, topics: tuple[ScopeTopic, ...]) -> Gate:
    mine = {topic.source for topic in topics}
    clashes = []
    for other in Cutovers(context.ledger).newest(context.definition.flow):
        if other.name == context.definition.name or CutoverState(other.state).has_ended:
            continue
        if mine & _held_by(context, other.name):
            present = situation_of(context.ledger, other.name)
            clashes.append(f"{other.name} ({present.state.value})")
    return gates.counts(
        "only cutover",
        clashes,
        "no other cutover moves these topics.",
        "Finish the other cutover with `mirror cutover run`, or roll it back with `mirror cutover rollback`.",
    )


def _held_by(context: CutoverContext, name: str) -> set[str]:
    """Return the source topics that another cutover holds; no second one may move them meanwhile."""
    attempts = [attempt_of(row) for row in Cutovers(context.ledger).steps(name)]
    found = last_attempts(attempts).get(Step.INVENTORY)
    # An inventory that has not passed holds nothing: its topics are begun again under another name.
    if not has_passed(found) or found is None:
        return set()
    topics = {topic["source"] for topic in found.facts.get("topics", ())}
    if is_released(attempts):
        # Topics that a failback has moved back since are free, even if the cutover has not ended.
        topics &= {
            row.topic for row in context.ledger.handovers.handed_over(context.definition.flow) if row.cutover == name
        }
    return topics


def preflight(context: CutoverContext) -> Outcome:
    """Check that the scope can move."""
    flow, topics = context.flow, context.topics
    plan = plan_flow(flow, context.run_options(), context.ledger)
    mine = {topic.source for topic in topics}
    open_gaps = {
        f"{gap.topic}-{gap.partition}: {gap.cause}"
        for gap in context.ledger.open_gaps(str(flow.flow))
        if gap.topic in mine
    } | {f"{each.source}: {NoLongerSelectedError.reason}" for each in plan.undecided}
    forecast = forecast_plan(flow, plan, context.ledger, run_begins=True)
    losses = [each for each in forecast.worries if each.outlook in (Outlook.WILL_BE_LOST, Outlook.ALREADY_LOST)]
    present = scope_topics(flow, context.definition.topics, context.ledger)
    no_groups = why_not_emitted(flow)
    return Outcome(
        (
            gates.topics_same(topics, present),
            gates.targets_ready(present),
            uncommitted.partition_counts(present),
            gates.counts(
                "partitions copy",
                [f"{each.source}: {each.error.reason}" for each in plan.problems],
                f"no partition is stalled; {counted(plan.idle, 'has no new records', 'have no new records')}.",
                "`mirror plan` shows each reason and what to do.",
            ),
            gates.counts(
                "gaps",
                sorted(open_gaps),
                "no open gaps.",
                "Resolve them with `mirror gaps`.",
            ),
            gates.counts(
                "limits",
                list(plan.limits),
                "the target accepts the records of the source.",
                "Each sentence says what helps; where the target refuses records, increase the limits of its topics.",
            ),
            gates.counts(
                "no unexpected records",
                list(plan.foreign),
                "the target has no records of other producers behind the copies.",
                "Find the producer and stop it; its records are on no other cluster.",
            ),
            *gates.notes(each for each in plan.warnings if each not in (*plan.limits, *plan.foreign)),
            gates.counts(
                "retention",
                [f"{each.source}: {each.reason}" for each in losses],
                "no records will be deleted before they are copied.",
                "Increase the retention of the source.",
            ),
            gates.counts(
                "group translation",
                [no_groups] if no_groups else [],
                "group offsets can be translated.",
                "Enable checkpoints and offset-syncs of the flow.",
            ),
            before_the_writers_stop(flow, open_transactions(flow, log_ends(flow, present))),
            *([acl_fence.can_fence(flow)] if context.definition.fence is Fence.ACL else []),
            _reverse_flow_gate(context, flow),
        ),
        {"lag": sum(each.end - each.start for each in plan.partitions), "problems": len(plan.problems)},
    )


def _reverse_flow_gate(context: CutoverContext, flow: FlowConfig) -> Gate:
    missing = why_no_failback(flow, context.opposite, context.topics)
    required = context.definition.require_failback
    return Gate(
        "failback",
        missing is None or not required,
        "possible; prepared by the switch step." if missing is None else missing,
        "" if not required else f"Add the failback flow to the file, or {gates.begin_anew('`--no-failback`')}.",
    )


def rehearse(context: CutoverContext) -> Outcome:
    """Copy, compare and plan the groups while clients still work."""
    flow, wanted = context.flow, context.definition
    began = context.monotonic()
    opposite = context.opposite
    if opposite is not None and why_no_failback(flow, opposite, context.topics) is None:
        ensure_topics(opposite)
    seconds, problems = _catch_up(context)
    context.report_progress("Comparing the copied records")
    report = context.compare(VerifyMode.FULL if wanted.scope is VerifyScope.FULL else VerifyMode.RECENT)
    compared = report.seconds
    # Once more: the records since then are about as many as the window will have to compare.
    tail_seconds, _ = _catch_up(context)
    tail = context.compare(VerifyMode.RECENT)
    ends = log_ends(flow, context.topics)
    groups = scope_groups(flow, context.topics, wanted.groups)
    names = {group.name for group in groups}
    plan = plan_flow_groups(flow, context.topology(), commit=True, ledger=context.ledger).plan
    rows = gates.rows_of_wave(plan, names, context.topics)
    duplicates = sum(row.duplicates or 0 for row in rows)
    expected = wanted.quiet_seconds + tail_seconds + tail.seconds
    return Outcome(
        (
            gates.counts("copied", problems, "all partitions are copied.", "`mirror plan` shows each reason."),
            gates.is_equal(report),
            *gates.aborted_are_known(aborted_notes_of(context)),
            before_the_writers_stop(flow, open_transactions(flow, ends)),
            gates.lag_is_small(ends, copied_to(flow), wanted.max_lag),
            gates.groups_can_move(plan, rows),
            gates.would_be_in_place(rows),
            uncommitted.every_partition_has_an_offset(rows, wanted.may_reset),
            *belongs_together(context),
            gates.rereads_are_known(rows),
            # Later steps cannot improve it: the records are not on the target.
            gates.skips_few(rows, wanted.max_skipped),
        ),
        {
            "catch_up_seconds": round(seconds, 3),
            "verify_seconds": round(compared, 3),
            "tail_copy_seconds": round(tail_seconds, 3),
            "tail_verify_seconds": round(tail.seconds, 3),
            "expected_stop_seconds": round(expected, 1),
            "duplicates": duplicates,
            "seconds": round(context.monotonic() - began, 3),
        },
    )


def _catch_up(context: CutoverContext) -> tuple[float, list[str]]:
    """Run rounds until the lag is small, whatever is written meanwhile; return seconds of the last one, and
    problems.
    """
    seconds = 0.0
    for _ in range(_ROUNDS):
        began = context.monotonic()
        report = context.copy()
        seconds = context.monotonic() - began
        if report is None:
            continue
        if report.errors:
            return seconds, [f"{error.where}: {error.what}" for error in report.errors]
        if report.records <= context.definition.max_lag:
            break
    return seconds, []
