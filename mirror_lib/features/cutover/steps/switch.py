"""The steps that move the clients: groups, approval, switch, write grants, watch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mirror_lib.cluster.admin.groups import GroupState
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.counted import counted
from mirror_lib.features.backfill.late_writes import accounted_for
from mirror_lib.features.cutover import acl_fence, gates, handover, uncommitted
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.failback.failback import prepare_failback, why_no_failback
from mirror_lib.features.cutover.model import Gate, Step, Style
from mirror_lib.features.cutover.order import RELEASING, STEPS, comes_before, last_attempts, writers_stood_still
from mirror_lib.features.cutover.outcome import Outcome
from mirror_lib.features.cutover.positions import written_to
from mirror_lib.features.cutover.records import attempt_of
from mirror_lib.features.cutover.scope import (
    ScopeGroup,
    exactly,
    log_ends,
    pending_offsets,
    scope_groups,
    without_handovers,
)
from mirror_lib.features.cutover.staged_acls import release_acls
from mirror_lib.features.cutover.steps.cut import cut_holds, cuts
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.handovers import opposite_of
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.sync.groups.flow import apply_flow_groups, plan_flow_groups
from mirror_lib.sync.groups.model import GroupRow
from mirror_lib.topology.names import TopicPartition

_LOOK_SECONDS = 1.0


def translate(context: CutoverContext) -> Outcome:
    """Commit on the target the translated source positions of the groups; their readers are stopped by then."""
    wanted, flow = context.definition, context.whole_flow
    groups = scope_groups(flow, context.topics, wanted.groups)
    first = [gates.readers_stopped(groups)]
    if wanted.style is Style.PRODUCERS_FIRST:
        first.append(gates.readers_finished(_left_to_read(context, groups)))
    if not all(gate.passed for gate in first):
        return Outcome(tuple(first))
    if comes_before(wanted.style, Step.TRANSLATE, Step.FREEZE) and context.engine is not None:
        # What they have read must be on the target before they continue there.
        context.copy()
    names = {group.name for group in groups}
    if names:
        apply_flow_groups(_with_groups(flow, names), context.topology(), commit=True, ledger=context.ledger)
    placed, rows = _check_offsets(context, groups)
    facts = {
        "groups": len(names),
        "positions": len(rows),
        "duplicates": sum(row.duplicates or 0 for row in rows),
        "by_group": {name: sum(row.duplicates or 0 for row in rows if row.group == name) for name in sorted(names)},
    }
    return Outcome((*first, *placed), facts)


def _with_groups(flow: FlowConfig, names: Collection[str]) -> FlowConfig:
    return flow.model_copy(update={"groups": exactly(sorted(names))}) if names else flow


def _check_offsets(
    context: CutoverContext, groups: Sequence[ScopeGroup] | None = None
) -> tuple[tuple[Gate, ...], list[GroupRow]]:
    """Check that the groups' offsets on the target are where they continue, and return these."""
    flow, wanted = context.whole_flow, context.definition
    if groups is None:
        groups = scope_groups(flow, context.topics, wanted.groups)
    names = {group.name for group in groups}
    plan = plan_flow_groups(_with_groups(flow, names), context.topology(), commit=True, ledger=context.ledger).plan
    rows = gates.rows_of_wave(plan, names, context.topics)
    # Readers that moved first have read further by the time this is repeated.
    gone_on = wanted.style is Style.CONSUMERS_FIRST and context.last[Step.TRANSLATE].number > 1
    placed = gates.groups_in_place(plan, rows, names, wanted.max_duplicates, wanted.max_skipped, gone_on=gone_on)
    settled = gates.counts(
        "pending offsets",
        pending_offsets(flow, names),
        "no open transaction will replace an offset of a group.",
        "A stopped application has left a transaction with these offsets. Run again when it has ended: the coordinator "
        "aborts it after transaction.timeout.ms, or at the next start of the application.",
    )
    return (*placed, settled, uncommitted.every_partition_has_an_offset(rows, wanted.may_reset)), rows


def _left_to_read(context: CutoverContext, groups: Sequence[ScopeGroup]) -> dict[str, int]:
    """Return the lag of each group on the source in records; offsets without a record, such as markers, do not
    count.
    """
    ends = {TopicPartition(cut.topic, cut.partition): cut.source_end for cut in cuts(context)}
    left = {}
    for group in groups:
        left[group.name] = sum(
            OffsetMap.of_segments(context.ledger.segments(context.definition.flow, *place)).source_records_between(
                committed.offset, ends[place]
            )
            for place, committed in group.committed.items()
            if committed.offset < ends.get(place, 0)
        )
    return left


def before_approval(context: CutoverContext) -> Outcome:
    """Check everything that the operator is to approve: all findings, and that they still hold."""
    found = [*cut_holds(context), *_readers_stay_away(context)]
    if context.definition.style is Style.TOGETHER:
        found += _check_offsets(context)[0]
    return Outcome(tuple(found))


def approve(context: CutoverContext) -> Outcome:
    """The operator has approved."""
    return Outcome(cut_holds(context))


def switch(context: CutoverContext) -> Outcome:
    """Stop copying these topics, and prepare failback."""
    flow, wanted = context.whole_flow, context.definition
    opposite = context.opposite
    missing = why_no_failback(flow, opposite, context.topics)
    # No run of the flow is active when its topics are taken from it: it could copy what a late writer produces.
    with context.hold_lock(flow):
        found = [*cut_holds(context), *_readers_stay_away(context)]
        if missing is not None and wanted.require_failback:
            found.append(
                Gate(
                    "failback", False, missing, "Add the failback flow to the file, or start a new cutover without it."
                )
            )
        if not all(gate.passed for gate in found):
            return Outcome(tuple(found))
        facts: dict[str, object] = {}
        if missing is None and opposite is not None:
            with context.hold_lock(opposite):
                prepared = prepare_failback(flow, opposite, cuts(context), context.ledger)
            facts["failback"] = {"flow": prepared.flow, "partitions": prepared.partitions}
        change = handover.plan(context)
        # Recorded before it is done, so that an interruption can be undone.
        context.keep(change.to_facts())
        handover.apply(context, change)
    what = f"flow {wanted.flow} no longer copies {counted(len(context.topics), 'topic')}."
    return Outcome((*found, Gate("handed over", True, what)), facts)


def _readers_stay_away(context: CutoverContext) -> tuple[Gate, ...]:
    """Gate: readers that have moved do not commit on the source any more; other styles move readers at another step."""
    if context.definition.style is not Style.TOGETHER:
        return ()
    return (gates.readers_stopped(scope_groups(context.whole_flow, context.topics, context.definition.groups)),)


def release(context: CutoverContext) -> Outcome:
    """Create the staged write grants on the target, and remove an earlier fence there."""
    flow, wanted = context.whole_flow, context.definition
    # Once it has begun, clients may write to the target.
    began = bool(context.facts_of(Step.RELEASE).get(RELEASING))
    found = list(gates.cut_holds(cuts(context), log_ends(flow, context.topics), target_too=not began))
    if not all(gate.passed for gate in found):
        return Outcome(tuple(found))
    context.keep({RELEASING: True})
    back = opposite_of(context.config, flow)
    if back is not None and (fence := _earlier_fence(context, str(back.flow))):
        found.append(acl_fence.lower_fence(without_handovers(back), fence))
    done = release_acls(
        flow,
        context.ledger,
        by=context.by,
        with_withdrawn=wanted.with_withdrawn,
        topics=exactly(topic.target for topic in context.topics),
    )
    failed = [str(error) for _, error in done.failed]
    good = done.notice or f"{counted(len(done.changed), 'grant to write is', 'grants to write are')} on the target."
    found.append(gates.counts("grants to write", failed, good, "Grant the replicator permission to alter ACLs."))
    found.append(
        gates.counts(
            "no DENY ACLs",
            [str(acl) for acl in done.denied],
            "no DENY ACL on the target overrides them.",
            "Remove the DENY ACLs on the target.",
        )
    )
    return Outcome(tuple(found), {"released": len(done.changed), "withdrawn": len(done.withdrawn)})


def _earlier_fence(context: CutoverContext, back: str) -> list[Mapping[str, Any]]:
    """Return the ACLs with which cutovers of the opposite direction fenced the present target."""
    mine = {topic.target for topic in context.topics}
    return [acl for acl in context.ledger.handovers.fences(back) if acl["name"] in mine]


def watch(context: CutoverContext) -> Outcome:
    """Wait until clients have arrived on the target and none is left on the source."""
    wanted, began = context.definition, context.monotonic()
    while True:
        found = _arrivals(context)
        seconds = context.monotonic() - began
        if all(gate.passed for gate in found) or seconds >= wanted.watch_seconds:
            return Outcome(found, {"seconds": round(seconds, 3)})
        context.report_progress("; ".join(gate.what for gate in found if not gate.passed))
        context.sleep(_LOOK_SECONDS)


def _arrivals(context: CutoverContext) -> tuple[Gate, ...]:
    flow, wanted = context.whole_flow, context.definition
    ends, cut = log_ends(flow, context.topics), cuts(context)
    # The failback flow may have copied new records back.
    opposite = context.opposite
    brought = {} if opposite is None else _brought_back(opposite)
    rows = context.ledger.handovers.handed_over(str(flow.flow))
    settled = accounted_for(context.ledger, flow.flow, rows)
    places = {TopicPartition(each.topic, each.partition): each.source_end for each in cut}
    late = [
        str(place)
        for place, end in places.items()
        if ends.source[place] > max(end, brought.get(place, 0), settled.get(place, 0))
    ]
    found = [
        gates.counts(
            "no writer on the source",
            late,
            "no writes to the source.",
            "Find that writer, and move it. The next run of the flow names the commands that copy its records into a "
            "separate topic, or leave them on the source; then continue the cutover.",
        )
    ]
    if wanted.watch_seconds:
        new = sum(ends.target[TopicPartition(each.topic, each.partition)] - each.target_end for each in cut)
        arrived = f"{counted(new, 'new offset')} on the target."
        found.append(Gate("writers arrived", new > 0, arrived, "Start the writers on the target."))
        # Groups without members before the cutover need none now.
        moving = {group["name"] for group in context.facts_of(Step.INVENTORY)["groups"] if group["active"]}
        groups = [each for each in scope_groups(flow, context.topics, wanted.groups) if each.name in moving]
        found.append(_readers_arrived(groups))
    return tuple(found)


def _brought_back(opposite: FlowConfig) -> dict[TopicPartition, int]:
    """Return how far the failback flow has written on this flow's source, by its topics' partitions."""
    topology = flow_topology(without_handovers(opposite))
    return {
        TopicPartition(topology.remote_topic(place.topic), place.partition): end
        for place, end in written_to(opposite).items()
    }


def _readers_arrived(groups: Sequence[ScopeGroup]) -> Gate:
    missing = [group.name for group in groups if group.on_target is not GroupState.ACTIVE]
    good = f"{counted(len(groups), 'group has', 'groups have')} members on the target."
    return gates.counts("readers arrived", missing, good, "Start their consumers on the target.")


def finish(context: CutoverContext) -> Outcome:
    """Summarize everything."""
    rows = Cutovers(context.ledger).steps(context.definition.name)
    attempts = [attempt_of(row) for row in rows]
    stopped = writers_stood_still(attempts)
    last = last_attempts(attempts)
    line = {step.value: round(last[step].seconds or 0.0, 3) for step in STEPS[context.definition.style] if step in last}
    what = (
        "the downtime of the writers is unknown." if stopped is None else f"downtime of the writers: {stopped:.1f} s."
    )
    return Outcome((Gate("finished", True, what),), {"producer_downtime_seconds": stopped, "seconds_by_step": line})
