"""The conditions of a cutover, judged on what was read. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from mirror_lib.cluster.admin import GroupState
from mirror_lib.ledger import CutRow
from mirror_lib.offsets import GroupReason
from mirror_lib.runbook.model import Gate
from mirror_lib.runbook.scope import LogEnds, ScopeGroup, ScopeTopic
from mirror_lib.sync.groups import GroupPlan, GroupRow
from mirror_lib.topology import TopicPartition
from mirror_lib.verify import Verdict, VerifyReport

_NAMED = 3
#: A position that needs nothing more: it is in sync, nothing is to be taken over, or it goes on a little too early.
#: One that skips records is judged by how many.
_SETTLED = frozenset[GroupReason | None](
    {None, GroupReason.NO_COMMITTED_OFFSET, GroupReason.BETWEEN_SYNCS, GroupReason.SKIPS_RECORDS}
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
        GroupReason.TARGET_CHANGED,
        GroupReason.BEYOND_TARGET_END,
    }
)


def begin_anew(setting: str) -> str:
    """The way on where a limit stops a cutover: its settings stay as they were when it began."""
    return f"roll this cutover back and begin one under another name with {setting}"


def named(places: Iterable[object]) -> str:
    """The first few of something, and how many more there are."""
    listed = [str(place) for place in places]
    more = f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def topics_found(topics: Sequence[ScopeTopic]) -> Gate:
    """There is something to move."""
    partitions = sum(topic.partitions for topic in topics)
    return Gate(
        "topics",
        bool(topics),
        f"{len(topics):,} topics with {partitions:,} partitions: {named(topic.source for topic in topics)}"
        if topics
        else "no topic of the flow matches.",
        "Correct the cutover's topics; `mirror topics plan` lists what the flow takes.",
    )


def topics_same(before: Sequence[ScopeTopic], now: Sequence[ScopeTopic]) -> Gate:
    """What the inventory found is what there is. The target may have more partitions than the source, never fewer."""
    then, present = ({(each.source, each.target): _shape(each) for each in topics} for topics in (before, now))
    changed = sorted(key[0] for key in then.keys() | present.keys() if then.get(key) != present.get(key))
    return Gate(
        "inventory",
        not changed,
        f"{len(then):,} topics are as they were." if not changed else f"changed since the inventory: {named(changed)}",
        "Take the inventory again.",
    )


def _shape(topic: ScopeTopic) -> tuple[int, bool]:
    return topic.partitions, topic.target_partitions >= topic.partitions


def targets_ready(topics: Sequence[ScopeTopic]) -> Gate:
    """Every topic has all its partitions on the target."""
    lacking = [f"{each.target} ({each.target_partitions} of {each.partitions} partitions)" for each in topics]
    lacking = [text for text, each in zip(lacking, topics, strict=True) if each.target_partitions < each.partitions]
    return Gate(
        "target topics",
        not lacking,
        f"{len(topics):,} topics are on the target." if not lacking else f"not on the target: {named(lacking)}",
        "Run the flow, or `mirror topics apply`.",
    )


def cut_holds(cuts: Sequence[CutRow], ends: LogEnds, *, target_too: bool) -> tuple[Gate, ...]:
    """Nobody has written to the source since the cut, and nobody but the copy to the target.

    Args:
        target_too: whether the target is looked at; once it may be written to, it may not.
    """
    source = {TopicPartition(cut.topic, cut.partition): cut.source_end for cut in cuts}
    target = {TopicPartition(cut.topic, cut.partition): cut.target_end for cut in cuts}
    grown = [place for place, end in source.items() if ends.source.get(place) != end]
    gates = [
        Gate(
            "source stands still",
            not grown,
            f"{len(source):,} partitions end where they were cut."
            if not grown
            else f"{sum(ends.source.get(place, 0) - source[place] for place in grown):,} offsets were written to the "
            f"source since the cut: {named(grown)}",
            "Stop the writers, and say so again.",
        )
    ]
    if target_too:
        foreign = [place for place, end in target.items() if ends.target.get(place) != end]
        gates.append(
            Gate(
                "target is the copy",
                not foreign,
                f"{len(target):,} partitions end where the copy ended."
                if not foreign
                else f"somebody else has written to the target: {named(foreign)}",
                "Find out who writes there; what they wrote is on no other cluster.",
            )
        )
    return tuple(gates)


def source_as_told(then: Mapping[TopicPartition, int], ends: LogEnds) -> Gate:
    """Nobody has written to the source since the word that the writers are stopped.

    Args:
        then: where partitions ended when the word was taken.
    """
    grown = [place for place, end in then.items() if ends.source.get(place, 0) > end]
    return Gate(
        "source stands still",
        not grown,
        f"{len(then):,} partitions end where they ended when the writers were said to be stopped."
        if not grown
        else f"{sum(ends.source[place] - then[place] for place in grown):,} offsets were written to the source since "
        f"the writers were said to be stopped: {named(grown)}",
        "Stop the writers, and say so again.",
    )


def lag_is_small(ends: LogEnds, positions: Mapping[TopicPartition, int], max_lag: int) -> Gate:
    """What is left to copy is little enough for the writers to wait for it."""
    lag = sum(max(end - positions.get(place, 0), 0) for place, end in ends.source.items())
    return Gate(
        "lag",
        lag <= max_lag,
        f"{lag:,} offsets are left to copy; {max_lag:,} may be.",
        f"Let the flow catch up, or {begin_anew('a greater max_lag')}.",
    )


def everything_copied(ends: LogEnds, waiting: Collection[TopicPartition], problems: Sequence[str]) -> tuple[Gate, ...]:
    """Nothing is left to copy, nothing stands still, and no transaction is open."""
    return (
        Gate(
            "copied",
            not waiting and not problems,
            f"{len(ends.source):,} partitions are copied to their end."
            if not waiting and not problems
            else f"not copied to the end: {named(problems or sorted(waiting))}",
            "See `mirror status` and `mirror gaps list`.",
        ),
        Gate(
            "transactions",
            not ends.open_transactions,
            "no transaction is open on the source."
            if not ends.open_transactions
            else f"transactions are open: {named(ends.open_transactions)}",
            "End the writers' transactions, or abort them by Kafka's own kafka-transactions.sh.",
        ),
    )


def is_equal(report: VerifyReport) -> Gate:
    """The comparison found no difference, and left nothing out."""
    different, unverifiable = report.count(Verdict.DIFFERENT), report.count(Verdict.UNVERIFIABLE)
    passed = not different and not unverifiable and not report.cut
    return Gate(
        "equal",
        passed,
        f"{report.records:,} records compared in {report.seconds:.1f} s, all equal."
        if passed
        else f"{report.difference_count:,} differences in {different:,} partitions; {unverifiable + report.cut:,} "
        f"partitions could not be compared to their end (verification {report.verification_id}).",
        "`mirror verify` tells each difference with its offsets; mend it, by a backfill for instance.",
    )


def readers_stopped(groups: Sequence[ScopeGroup]) -> Gate:
    """No group of the scope has members on the source: their positions move no more."""
    active = [group.name for group in groups if group.on_source is GroupState.ACTIVE]
    return Gate(
        "readers stopped",
        not active,
        f"{len(groups):,} groups have no members on the source."
        if not active
        else f"{len(active):,} groups still have members on the source: {named(active)}",
        "Stop their consumers; a group is empty when its session timeout has passed.",
    )


def readers_finished(left: Mapping[str, int]) -> Gate:
    """Every group has read the source to its end: for readers that move last.

    Args:
        left: records that each group has still to read.
    """
    behind = {name: count for name, count in left.items() if count}
    return Gate(
        "source read to its end",
        not behind,
        f"{len(left):,} groups have read everything."
        if not behind
        else f"{sum(behind.values()):,} records are still to be read on the source by {named(sorted(behind))}",
        "Let the consumers read the source to its end.",
    )


def rows_of_wave(plan: GroupPlan, groups: Collection[str], topics: Sequence[ScopeTopic]) -> list[GroupRow]:
    """The positions that move: a group may read topics that stay, too."""
    names = {topic.source for topic in topics}
    return [row for row in plan.rows if row.group in groups and row.source.topic in names]


def groups_can_move(plan: GroupPlan, rows: Sequence[GroupRow]) -> Gate:
    """Nothing stands against the groups that will not pass by itself: better known before the writers stop."""
    lasting = [f"{row.group} on {row.source} ({row.reason})" for row in rows if row.reason in _LASTING]
    return counts(
        "groups can move",
        [*plan.problems, *lasting],
        f"nothing stands against {len({row.group for row in rows}):,} groups.",
        "See `mirror groups status`; stop members on the target, reset what is further on there, or write a transform "
        "that only renames topics as mirror.topics.rename.regex.",
    )


def would_be_in_place(rows: Sequence[GroupRow]) -> Gate:
    """What a move of the groups would not settle as they stand now; it may pass until then, so it only informs."""
    missing = [row for row in rows if row.reason not in _SETTLED and row.reason not in _LASTING]
    return Gate(
        "groups in place",
        True,
        f"{len(rows) - len(missing):,} positions would be in place if the groups moved now."
        if not missing
        else f"{len(missing):,} positions would not be in place if the groups moved now: "
        f"{named(f'{row.group} on {row.source} ({row.reason})' for row in missing)}",
    )


def rereads_are_known(rows: Sequence[GroupRow]) -> Gate:
    """The map tells how much groups would read again. The number falls until they move; a missing map stays missing."""
    read_again = sum(row.read_again or 0 for row in rows)
    unknown = [f"{row.group} on {row.source}" for row in rows if row.goes_on_at is not None and row.read_again is None]
    return Gate(
        "read again",
        not unknown,
        f"{read_again:,} records would be read again if the groups moved now."
        + (f" Of {len(unknown):,} positions it is not known: {named(unknown)}" if unknown else ""),
        "Rebuild the offset map by `mirror map rebuild`.",
    )


def groups_in_place(
    plan: GroupPlan,
    rows: Sequence[GroupRow],
    groups: Collection[str],
    max_read_again: int,
    max_skipped: int = 0,
    *,
    gone_on: bool = False,
) -> tuple[Gate, ...]:
    """Every group continues on the target at its source position; duplicates and skipped records are within limits.

    Args:
        rows: the positions that move.
        max_read_again: records that may be read twice.
        max_skipped: records that may not be read at all.
        gone_on: the groups had moved before, and may have read on.
    """
    settled = _SETTLED | _GONE_ON if gone_on else _SETTLED
    missing = [row for row in rows if row.present_reason not in settled]
    read_again = sum(row.read_again or 0 for row in rows)
    unknown = sum(row.read_again is None and row.translated for row in rows)
    problems = [*plan.problems, *(f"{row.group} on {row.source} ({row.present_reason})" for row in missing)]
    return (
        Gate(
            "groups in place",
            not problems,
            f"{len(groups):,} groups stand on the target where they go on, {len(rows):,} positions."
            if not problems
            else f"{len(problems):,} positions are not in place: {named(problems)}",
            "See `mirror groups status`.",
        ),
        Gate(
            "read again",
            read_again <= max_read_again and not unknown,
            f"{read_again:,} records will be read again; {max_read_again:,} may be."
            + (f" Of {unknown:,} positions it is not known." if unknown else ""),
            f"Rebuild the offset map by `mirror map rebuild`, or {begin_anew('a greater max_read_again')}.",
        ),
        skips_few(rows, max_skipped),
    )


def skips_few(rows: Iterable[GroupRow], max_skipped: int) -> Gate:
    """Groups find the records on the target that they have not read, but for as many as are allowed."""
    skipping = [row for row in rows if row.skipped]
    skipped = sum(row.skipped or 0 for row in skipping)
    places = f": {named(f'{row.group} on {row.source} ({row.skipped:,})' for row in skipping)}" if skipping else ""
    return Gate(
        "skipped",
        skipped <= max_skipped,
        f"{skipped:,} records are skipped; {max_skipped:,} may be{places}.",
        "Let the groups read to the end of the source first, copy the records by `mirror backfill`, or "
        f"{begin_anew('a greater max_skipped')}.",
    )


def counts(name: str, problems: Sequence[str], good: str, action: str) -> Gate:
    """There is none of something."""
    return Gate(name, not problems, good if not problems else f"{len(problems):,}: {named(problems)}", action)
