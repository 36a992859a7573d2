"""How each gate of a cutover is judged, on facts that were read. Pure. `steps` says which gates a step needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from mirror_lib.cluster.admin.groups import GroupState
from mirror_lib.counted import counted
from mirror_lib.features.cutover.model import Gate
from mirror_lib.features.cutover.scope import LogEnds, ScopeGroup, ScopeTopic
from mirror_lib.features.verify.findings import Verdict
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.identity.unselected import Unselected
from mirror_lib.ledger.cutover_rows import CutRow
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.printable import printable
from mirror_lib.sync.groups.model import GroupPlan, GroupRow
from mirror_lib.topology.names import TopicPartition

_NAMED = 3
#: Positions that need no action: in sync, nothing to take over, or continuing slightly too early. Positions that skip
#: records are judged by their number, partitions without an offset by `runbook.uncommitted`.
_SETTLED = frozenset[GroupReason | None](
    {
        None,
        GroupReason.NO_COMMITTED_OFFSET,
        GroupReason.BETWEEN_SYNCS,
        GroupReason.SKIPS_RECORDS,
        GroupReason.PARTITION_UNCOMMITTED,
    }
)
_GONE_ON = frozenset[GroupReason | None]({GroupReason.TARGET_AHEAD, GroupReason.GROUP_ACTIVE_ON_TARGET})
_LASTING = frozenset[GroupReason | None](
    {
        GroupReason.TARGET_AHEAD,
        GroupReason.GROUP_ACTIVE_ON_TARGET,
        GroupReason.OTHER_GROUP_ON_TARGET,
        GroupReason.MERGED_TARGET,
        GroupReason.ROUTED_BY_TRANSFORM,
        GroupReason.UNREADABLE,
        GroupReason.LEDGER_BEHIND,
        GroupReason.TARGET_CHANGED,
        GroupReason.SOURCE_CHANGED,
        GroupReason.BEYOND_SOURCE_END,
        GroupReason.BEYOND_TARGET_END,
    }
)


def begin_anew(setting: str) -> str:
    """Return what to do if a limit stops a cutover: its settings cannot change after it has begun."""
    return f"roll this cutover back and start a new one with another name and {setting}"


#: No log can be repaired in its middle.
_COPY_AGAIN = (
    "To make both sides equal again: roll the cutover back, delete the topic on the target, copy it again with "
    "`mirror gaps recopy`, and start a new cutover with another name."
)


def first_places(places: Iterable[object]) -> str:
    """Return the first few of something, and how many more there are."""
    listed = [printable(str(place)) for place in places]
    more = f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def topics_found(topics: Sequence[ScopeTopic]) -> Gate:
    """Gate: there is something to move."""
    partitions = sum(topic.partitions for topic in topics)
    return Gate(
        "topics",
        bool(topics),
        f"{counted(len(topics), 'topic')} with {counted(partitions, 'partition')}: "
        f"{first_places(topic.source for topic in topics)}"
        if topics
        else "no topic of the flow matches.",
        f"`mirror topics plan` lists the topics of the flow; {begin_anew('other topics')}.",
    )


def none_left(gone: Sequence[Unselected]) -> Gate:
    """Gate: the scope's patterns mean no partition that the flow has copied and selects no longer."""
    deleted = sorted({each.source.topic for each in gone if not each.needs_decision})
    without = (
        f" without {counted(len(deleted), 'topic')} deleted at the source after being copied: {first_places(deleted)}"
        if deleted
        else ""
    )
    return counts(
        "no longer selected",
        [f"{each.source}: {each.progress}" for each in gone if each.needs_decision],
        f"the flow still selects every partition that it has copied{without}.",
        "Correct `topics`, `topics.exclude` or the topic; or run the flow, and `mirror gaps accept` says that it is "
        "meant. Then take the inventory again.",
    )


def topics_same(before: Sequence[ScopeTopic], now: Sequence[ScopeTopic]) -> Gate:
    """Gate: the topics are those of the inventory. The target may have more partitions than the source, never fewer."""
    then, present = ({(each.source, each.target): _shape(each) for each in topics} for topics in (before, now))
    changed = sorted(key[0] for key in then.keys() | present.keys() if then.get(key) != present.get(key))
    return Gate(
        "inventory",
        not changed,
        f"{counted(len(then), 'topic is', 'topics are')} unchanged."
        if not changed
        else f"changed since the inventory: {first_places(changed)}",
        "Take the inventory again.",
    )


def _shape(topic: ScopeTopic) -> tuple[int, bool]:
    return topic.partitions, topic.target_partitions >= topic.partitions


def targets_ready(topics: Sequence[ScopeTopic]) -> Gate:
    """Gate: every topic has all its partitions on the target."""
    lacking = [f"{each.target} ({each.target_partitions} of {each.partitions} partitions)" for each in topics]
    lacking = [text for text, each in zip(lacking, topics, strict=True) if each.target_partitions < each.partitions]
    return Gate(
        "target topics",
        not lacking,
        f"{counted(len(topics), 'topic is', 'topics are')} on the target."
        if not lacking
        else f"not on the target: {first_places(lacking)}",
        "Run the flow, or `mirror topics apply`.",
    )


def cut_holds(cuts: Sequence[CutRow], ends: LogEnds, *, target_too: bool) -> tuple[Gate, ...]:
    """Gate: since the cut nothing was written to the source, and only the copy was written to the target.

    Args:
        target_too: check the target too; False once others may write to it.
    """
    source = {TopicPartition(cut.topic, cut.partition): cut.source_end for cut in cuts}
    target = {TopicPartition(cut.topic, cut.partition): cut.target_end for cut in cuts}
    grown = [place for place, end in source.items() if ends.source.get(place) != end]
    gates = [
        Gate(
            "no new source records",
            not grown,
            f"{counted(len(source), 'partition ends', 'partitions end')} at the cut."
            if not grown
            else f"{_written(sum(ends.source.get(place, 0) - source[place] for place in grown))} the cut: "
            f"{first_places(grown)}",
            "Stop the writers, and confirm it again.",
        )
    ]
    if target_too:
        foreign = [place for place, end in target.items() if ends.target.get(place) != end]
        gates.append(
            Gate(
                "no unexpected records",
                not foreign,
                f"{counted(len(target), 'partition ends', 'partitions end')} where the copy ended."
                if not foreign
                else f"another producer wrote to the target: {first_places(foreign)}",
                f"Find the producer and stop it; its records are on no other cluster. {_COPY_AGAIN}",
            )
        )
    return tuple(gates)


def same_logs(problems: Sequence[str]) -> Gate:
    """Gate: both sides have the logs that were copied; their ends alone do not show it."""
    return Gate(
        "same logs",
        not problems,
        "source and target have the logs that were copied."
        if not problems
        else f"whether both sides still have the logs that were copied is not certain: {first_places(problems)}",
        f"`mirror plan` shows each reason and what to do. If records are another log's: {_COPY_AGAIN}",
    )


def _written(count: int) -> str:
    return f"{counted(count, 'offset was', 'offsets were')} written to the source since"


def source_as_reported(then: Mapping[TopicPartition, int], ends: LogEnds) -> Gate:
    """Gate: nothing was written to the source since the operator confirmed that the writers are stopped.

    Args:
        then: log end offsets at the time of the confirmation.
    """
    grown = [place for place, end in then.items() if ends.source.get(place, 0) > end]
    shrunk = [place for place, end in then.items() if ends.source.get(place, 0) < end]
    if shrunk:
        lost = sum(then[place] - ends.source.get(place, 0) for place in shrunk)
        return Gate(
            "no new source records",
            False,
            f"the source lost {counted(lost, 'offset')} since the writers were confirmed as stopped: "
            f"{first_places(shrunk)}",
            "`mirror plan` shows what it lost. Confirm again that the writers are stopped.",
        )
    return Gate(
        "no new source records",
        not grown,
        f"{counted(len(then), 'partition has', 'partitions have')} no new records since the writers were confirmed as "
        "stopped."
        if not grown
        else f"{_written(sum(ends.source[place] - then[place] for place in grown))} the writers were confirmed as "
        f"stopped: {first_places(grown)}",
        "Stop the writers, and confirm it again.",
    )


def lag_is_small(ends: LogEnds, positions: Mapping[TopicPartition, int], max_lag: int) -> Gate:
    """Gate: the lag is small enough for the writers to wait for it."""
    lag = sum(max(end - positions.get(place, 0), 0) for place, end in ends.source.items())
    return Gate(
        "lag",
        lag <= max_lag,
        f"lag is {counted(lag, 'offset')}; the maximum is {max_lag:,}.",
        f"Let the flow catch up, or {begin_anew('a greater `--max-lag`')}.",
    )


def everything_copied(ends: LogEnds, waiting: Collection[TopicPartition], problems: Sequence[str]) -> Gate:
    """Gate: nothing is left to copy, and no partition is stalled."""
    return Gate(
        "copied",
        not waiting and not problems,
        f"{counted(len(ends.source), 'partition is', 'partitions are')} copied to their end."
        if not waiting and not problems
        else f"not copied to the end: {first_places(problems or sorted(waiting))}",
        "See `mirror status` and `mirror gaps list`.",
    )


def notes(found: Iterable[str]) -> tuple[Gate, ...]:
    """Gate: other sentences of the plan, if there are any. They stop no cutover."""
    said = " ".join(found)
    return (Gate("notes", True, said),) if said else ()


def aborted_are_known(notes: Sequence[str]) -> tuple[Gate, ...]:
    """Gate: records of aborted transactions on the target are named, if there are any. They stop no cutover: whether
    they matter depends on the isolation level of the consumers.
    """
    return (Gate("aborted records", True, " ".join(notes)),) if notes else ()


def is_equal(report: VerifyReport) -> Gate:
    """Gate: the comparison found no difference, and skipped nothing."""
    different, unverifiable = report.count(Verdict.DIFFERENT), report.count(Verdict.UNVERIFIABLE)
    passed = not different and not unverifiable and not report.partial
    return Gate(
        "equal",
        passed,
        f"{counted(report.records, 'record')} compared in {report.seconds:.1f} s, all equal.{report.uncommitted}"
        if passed
        else f"{counted(report.difference_count, 'difference')} in {counted(different, 'partition')}; "
        f"{counted(unverifiable + report.partial, 'partition')} could not be compared to their end "
        f"(verification {report.verification_id}).",
        f"`mirror verify` shows each difference with its offsets. {_COPY_AGAIN}",
    )


def readers_stopped(groups: Sequence[ScopeGroup]) -> Gate:
    """Gate: no group of the scope has members on the source: their positions do not change any more."""
    active = [group.name for group in groups if group.on_source is GroupState.ACTIVE]
    return Gate(
        "readers stopped",
        not active,
        f"{counted(len(groups), 'group has', 'groups have')} no members on the source."
        if not active
        else f"{counted(len(active), 'group still has', 'groups still have')} members on the source: "
        f"{first_places(active)}",
        "Stop their consumers; a group is empty when its session timeout has passed.",
    )


def readers_finished(left: Mapping[str, int]) -> Gate:
    """Gate: every group has read the source to its end, if readers move last.

    Args:
        left: lag of each group in records.
    """
    behind = {name: count for name, count in left.items() if count}
    return Gate(
        "source read to the end",
        not behind,
        f"{counted(len(left), 'group has', 'groups have')} read all records."
        if not behind
        else f"{sum(behind.values()):,} records on the source are not read yet by {first_places(sorted(behind))}",
        "Let the consumers read the source to its end.",
    )


def rows_of_wave(plan: GroupPlan, groups: Collection[str], topics: Sequence[ScopeTopic]) -> list[GroupRow]:
    """Return the positions that move: a group may read topics that stay, too."""
    names = {topic.source for topic in topics}
    return [row for row in plan.rows if row.group in groups and row.source.topic in names]


def groups_can_move(plan: GroupPlan, rows: Sequence[GroupRow]) -> Gate:
    """Gate: no group has a permanent obstacle; checked before the writers stop."""
    lasting = [f"{row.group} on {row.source} ({row.reason})" for row in rows if row.reason in _LASTING]
    return counts(
        "groups ready",
        [*plan.problems, *lasting],
        f"{counted(len({row.group for row in rows}), 'group is', 'groups are')} ready.",
        "See `mirror groups status`. Stop members on the target, reset groups that are ahead there or, on the source, "
        "after the log end, or replace a transform that only renames topics by mirror.topics.rename.regex.",
    )


def would_be_in_place(rows: Sequence[GroupRow]) -> Gate:
    """Gate: which groups could not move with their present positions. That may change, so the gate only informs."""
    missing = [row for row in rows if row.reason not in _SETTLED and row.reason not in _LASTING]
    return Gate(
        "group offsets",
        True,
        f"{counted(len(rows) - len(missing), 'group offset would', 'group offsets would')} be correct on failover now."
        if not missing
        else f"{counted(len(missing), 'group offset would', 'group offsets would')} not be correct on failover now: "
        f"{first_places(f'{row.group} on {row.source} ({row.reason})' for row in missing)}",
    )


def rereads_are_known(rows: Sequence[GroupRow]) -> Gate:
    """Gate: the duplicates of the groups are known. Their number falls until they move; a missing map stays missing."""
    duplicates = sum(row.duplicates or 0 for row in rows)
    moving = [row for row in rows if row.translated and row.target_offset is not None]
    unknown = [f"{row.group} on {row.source}" for row in moving if row.duplicates is None]
    return Gate(
        "duplicates",
        not unknown,
        f"{counted(duplicates, 'duplicate')} on failover now."
        + (f" Unknown for {counted(len(unknown), 'partition')}: {first_places(unknown)}" if unknown else ""),
        "Rebuild the offset map with `mirror map rebuild`.",
    )


def groups_in_place(
    plan: GroupPlan,
    rows: Sequence[GroupRow],
    groups: Collection[str],
    max_duplicates: int,
    max_skipped: int = 0,
    *,
    gone_on: bool = False,
) -> tuple[Gate, ...]:
    """Gate: every group continues on the target at its source position; duplicates and skipped records are within
    limits.

    Args:
        rows: the positions that move.
        max_duplicates: maximum number of duplicates (records).
        max_skipped: maximum number of skipped records.
        gone_on: the groups had moved before, and may have read further.
    """
    settled = _SETTLED | _GONE_ON if gone_on else _SETTLED
    missing = [row for row in rows if row.present_reason not in settled]
    duplicates = sum(row.duplicates or 0 for row in rows)
    unknown = sum(row.duplicates is None and row.translated for row in rows)
    problems = [*plan.problems, *(f"{row.group} on {row.source} ({row.present_reason})" for row in missing)]
    return (
        Gate(
            "group offsets",
            not problems,
            f"the offsets of {counted(len(groups), 'group')} are correct on the target, "
            f"{counted(len(rows), 'partition')}."
            if not problems
            else f"{counted(len(problems), 'group offset is', 'group offsets are')} not correct: "
            f"{first_places(problems)}",
            "See `mirror groups status`.",
        ),
        Gate(
            "duplicates",
            duplicates <= max_duplicates and not unknown,
            f"{counted(duplicates, 'duplicate')}; the maximum is {max_duplicates:,}."
            + (f" Unknown for {counted(unknown, 'partition')}." if unknown else ""),
            f"Rebuild the offset map with `mirror map rebuild`, or {begin_anew('a greater `--max-duplicates`')}.",
        ),
        skips_few(rows, max_skipped),
    )


def skips_few(rows: Iterable[GroupRow], max_skipped: int) -> Gate:
    """Gate: groups find their unread records on the target, except for an allowed number."""
    skipping = [row for row in rows if row.skipped]
    skipped = sum(row.skipped or 0 for row in skipping)
    places = (
        f": {first_places(f'{row.group} on {row.source} ({row.skipped:,})' for row in skipping)}" if skipping else ""
    )
    return Gate(
        "skipped",
        skipped <= max_skipped,
        f"{counted(skipped, 'skipped record')}; the maximum is {max_skipped:,}{places}.",
        "Let the groups read to the end of the source first, copy the records with `mirror backfill`, or "
        f"{begin_anew('a greater `--max-skipped`')}.",
    )


def counts(name: str, problems: Sequence[str], good: str, action: str) -> Gate:
    """Gate: a list of problems is empty."""
    return Gate(name, not problems, good if not problems else f"{len(problems):,}: {first_places(problems)}", action)
