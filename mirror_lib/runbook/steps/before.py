"""The steps while everybody still works: inventory, preflight, rehearsal. They can be repeated at will."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mirror_lib.cluster.admin.groups import GroupState
from mirror_lib.config.model import FlowConfig
from mirror_lib.ledger.rows import AclKind, AclState
from mirror_lib.observe.forecasts import Outlook
from mirror_lib.relay.health.forecast import forecast_plan
from mirror_lib.relay.run import plan_flow
from mirror_lib.runbook import fences, gates
from mirror_lib.runbook.context import Desk
from mirror_lib.runbook.dependencies import Belonging, find_splits, nothing_split
from mirror_lib.runbook.dependency_facts import read_belonging
from mirror_lib.runbook.failback.failback import ensure_topics, why_no_way_back
from mirror_lib.runbook.model import CutoverState, Fence, Gate, Step, StepState, VerifyScope
from mirror_lib.runbook.order import has_passed, is_released, last_attempts
from mirror_lib.runbook.outcome import Outcome
from mirror_lib.runbook.positions import copied_to
from mirror_lib.runbook.records import attempt_of
from mirror_lib.runbook.scope import WaveTopic, log_ends, wave_groups, wave_topics
from mirror_lib.runbook.states.situation import situation_of
from mirror_lib.sync.due_steps import why_not_emitted
from mirror_lib.sync.groups.flow import plan_flow_groups
from mirror_lib.verify.model import VerifyMode

#: Where more is written than is copied, no number of rounds would be enough.
_ROUNDS = 10


def inventory(desk: Desk) -> Outcome:
    """What moves, as it is now."""
    flow, wanted = desk.flow, desk.definition
    topics = wave_topics(flow, wanted.topics, desk.ledger)
    groups = wave_groups(flow, topics, wanted.groups) if topics else ()
    staged = [row for row in desk.ledger.acls(str(flow.flow)) if row.kind == AclKind.STAGED]
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
    use = read_belonging(flow, desk.opposite, topics, wanted.groups) if topics else Belonging()
    mine = {topic.source for topic in topics}
    facts["splits"] = [asdict(each) for each in find_splits(use, mine)]
    together = nothing_split(use, mine, wanted.may_split)
    found = Gate("groups", True, f"{len(groups):,} groups: {gates.named(group.name for group in groups) or 'none'}")
    return Outcome((gates.topics_found(topics), found, together, _no_other_cutover(desk, topics)), facts)


def belongs_together(desk: Desk) -> Gate:
    """Whether the cutover splits a group or a transactional id, looked at now."""
    use = read_belonging(desk.flow, desk.opposite, desk.topics, desk.definition.groups)
    return nothing_split(use, {topic.source for topic in desk.topics}, desk.definition.may_split)


def inventory_holds(desk: Desk) -> tuple[Gate, ...]:
    """What moves is still what was found. After the switch the flow takes it no more, so its names are looked for."""
    switched = desk.last.get(Step.SWITCH)
    if switched is not None and switched.state is not StepState.UNDONE:
        present = wave_topics(desk.whole_flow, desk.topic_regexes, desk.ledger)
    else:
        present = wave_topics(desk.flow, desk.definition.topics, desk.ledger)
    return (gates.topics_same(desk.topics, present),)


def _no_other_cutover(desk: Desk, topics: tuple[WaveTopic, ...]) -> Gate:
    mine = {topic.source for topic in topics}
    clashes = []
    for other in desk.ledger.cutovers.newest(desk.definition.flow):
        if other.name == desk.definition.name or CutoverState(other.state).ended:
            continue
        if mine & _held_by(desk, other.name):
            present = situation_of(desk.ledger, other.name)
            clashes.append(f"{other.name} ({present.state.value})")
    return gates.counts(
        "only cutover",
        clashes,
        "no other cutover moves these topics.",
        "Finish the other one by `mirror cutover run`, or take it back by `mirror cutover rollback`.",
    )


def _held_by(desk: Desk, name: str) -> set[str]:
    """The source topics that another cutover has taken, and that no second one may move meanwhile."""
    attempts = [attempt_of(row) for row in desk.ledger.cutovers.steps(name)]
    found = last_attempts(attempts).get(Step.INVENTORY)
    # An inventory that has not passed holds nothing: what it named is begun anew under another name.
    if not has_passed(found) or found is None:
        return set()
    topics = {topic["source"] for topic in found.facts.get("topics", ())}
    if is_released(attempts):
        # What a failback has brought home since is nobody's any more, whether or not the cutover came to its end.
        topics &= {row.topic for row in desk.ledger.cutovers.handed_over(desk.definition.flow) if row.cutover == name}
    return topics


def preflight(desk: Desk) -> Outcome:
    """Whether it can move."""
    flow, topics = desk.flow, desk.topics
    plan = plan_flow(flow, desk.run_options(), desk.ledger)
    mine = {topic.source for topic in topics}
    open_gaps = [gap for gap in desk.ledger.open_gaps(str(flow.flow)) if gap.topic in mine]
    forecast = forecast_plan(flow, plan, desk.ledger, run_begins=True)
    losses = [each for each in forecast.worries if each.outlook in (Outlook.WILL_BE_LOST, Outlook.ALREADY_LOST)]
    present = wave_topics(flow, desk.definition.topics, desk.ledger)
    no_groups = why_not_emitted(flow)
    return Outcome(
        (
            gates.topics_same(topics, present),
            gates.targets_ready(present),
            gates.counts(
                "partitions copy",
                [f"{each.source}: {each.error.reason}" for each in plan.problems],
                f"no partition stands still; {plan.idle:,} have nothing new.",
                "`mirror plan` tells each reason and what to do.",
            ),
            gates.counts(
                "gaps",
                [f"{gap.topic}-{gap.partition}: {gap.cause}" for gap in open_gaps],
                "no gap is open.",
                "Decide about them: `mirror gaps`.",
            ),
            gates.counts(
                "limits",
                list(plan.warnings),
                "the target takes what the source has.",
                "Raise the target topics' limits.",
            ),
            gates.counts(
                "retention",
                [f"{each.source}: {each.reason}" for each in losses],
                "nothing is deleted before it is copied.",
                "Raise the source's retention.",
            ),
            gates.counts(
                "group translation",
                [no_groups] if no_groups else [],
                "groups can be translated.",
                "Enable checkpoints and offset syncs of the flow.",
            ),
            *([fences.can_fence(flow)] if desk.definition.fence is Fence.ACL else []),
            _way_back(desk, flow),
        ),
        {"lag": sum(each.end - each.start for each in plan.partitions), "problems": len(plan.problems)},
    )


def _way_back(desk: Desk, flow: FlowConfig) -> Gate:
    missing = why_no_way_back(flow, desk.opposite, desk.topics)
    required = desk.definition.require_way_back
    return Gate(
        "way back",
        missing is None or not required,
        "prepared when the topics are switched." if missing is None else missing,
        "" if not required else f"Add it to the file, or {gates.begin_anew('require_way_back off')}.",
    )


def rehearse(desk: Desk) -> Outcome:
    """Copy, compare and plan the groups while everybody still works."""
    flow, wanted = desk.flow, desk.definition
    began = desk.monotonic()
    opposite = desk.opposite
    if opposite is not None and why_no_way_back(flow, opposite, desk.topics) is None:
        ensure_topics(opposite)
    seconds, problems = _catch_up(desk)
    desk.tell("Comparing what is copied")
    report = desk.compare(VerifyMode.FULL if wanted.scope is VerifyScope.FULL else VerifyMode.RECENT)
    compared = report.seconds
    # Once more: what comes since then is about what the window will have to compare.
    tail_seconds, _ = _catch_up(desk)
    tail = desk.compare(VerifyMode.RECENT)
    groups = wave_groups(flow, desk.topics, wanted.groups)
    names = {group.name for group in groups}
    plan = plan_flow_groups(flow, desk.topology(), commit=True, ledger=desk.ledger).plan
    rows = gates.rows_of_wave(plan, names, desk.topics)
    read_again = sum(row.read_again or 0 for row in rows)
    expected = wanted.still_seconds + tail_seconds + tail.seconds
    return Outcome(
        (
            gates.counts("copied", problems, "every partition copies.", "`mirror plan` tells each reason."),
            gates.is_equal(report),
            gates.lag_is_small(log_ends(flow, desk.topics), copied_to(flow), wanted.max_lag),
            gates.groups_can_move(plan, rows),
            gates.would_be_in_place(rows),
            belongs_together(desk),
            gates.rereads_are_known(rows),
            # Nothing that comes later makes it better: the records are not on the target.
            gates.skips_few(rows, wanted.max_skipped),
        ),
        {
            "catch_up_seconds": round(seconds, 3),
            "verify_seconds": round(compared, 3),
            "tail_copy_seconds": round(tail_seconds, 3),
            "tail_verify_seconds": round(tail.seconds, 3),
            "expected_stop_seconds": round(expected, 1),
            "read_again": read_again,
            "seconds": round(desk.monotonic() - began, 3),
        },
    )


def _catch_up(desk: Desk) -> tuple[float, list[str]]:
    """Rounds until there is little left, however much is written meanwhile; seconds of the last one, and problems."""
    seconds = 0.0
    for _ in range(_ROUNDS):
        began = desk.monotonic()
        report = desk.copy()
        seconds = desk.monotonic() - began
        if report is None:
            continue
        if report.errors:
            return seconds, [f"{error.where}: {error.what}" for error in report.errors]
        if report.records <= desk.definition.max_lag:
            break
    return seconds, []
