"""Plan for a flow's consumer groups on the target, row by row, with a reason for each group that is not in sync.

The rules in `groups.plan` build it; operators, the ledger and the gates of a cutover read it. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from mirror_lib.cluster.admin.groups import CommittedOffset
from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.counted import counted
from mirror_lib.ledger.observed_rows import GroupObservationRow
from mirror_lib.offsets.checkpoints import CheckpointOffsets
from mirror_lib.offsets.group_standing import IN_SYNC, GroupReason, why_not_in_sync
from mirror_lib.printable import printable
from mirror_lib.topology.names import FlowId, TopicPartition

#: Reasons that need attention; the others pass by themselves, or follow from the configuration.
_TROUBLE = frozenset[GroupReason | None](
    {
        GroupReason.UNREADABLE,
        GroupReason.REFUSED,
        GroupReason.LEDGER_BEHIND,
        GroupReason.TARGET_CHANGED,
        GroupReason.SOURCE_CHANGED,
        GroupReason.BEYOND_TARGET_END,
    }
)


#: Reasons that no later run changes, with the operator action.
_NEVER = {
    GroupReason.ROUTED_BY_TRANSFORM: "transforms route their records to other topics; if a RegexRouter only renames "
    "topics, replace it with mirror.topics.rename.regex, else set the offsets manually (docs/transforms.md)",
    GroupReason.MERGED_TARGET: "several source partitions of the group share a target partition",
    GroupReason.OTHER_GROUP_ON_TARGET: "the name is used on the target by a group of another type; delete or rename it",
}


class GroupPartition(NamedTuple):
    """A group on one partition of one cluster: the key of a checkpoint on the target."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupFinding:
    """A group that is skipped as a whole."""

    group: str
    reason: GroupReason
    #: Details, if there are any.
    what: str = ""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group on one partition: its offset on the source, its offset on the target, and the planned changes."""

    group: str
    source: TopicPartition
    target: TopicPartition
    #: The group's committed offset on the source.
    upstream: int | None = None
    #: The current checkpoint: the new translation, or the last checkpoint if that is greater.
    checkpoint: CheckpointOffsets | None = None
    #: Takes the place of a checkpoint of a former copy, if there is no other: at the start of the present one.
    withdrawn_to: CheckpointOffsets | None = None
    #: Where the group continues on the target by the exact offset map; None if the map does not apply.
    exact: int | None = None
    #: The target's log start offset if it is after the translated offset: retention has deleted what is before it.
    log_start: int | None = None
    #: Duplicates on failover (records) if the group continues at `target_offset`; None without a usable map.
    duplicates: int | None = None
    #: Upper bound of the records that the group has not read on the source and would not find on the target if it
    #: continues at `target_offset`. None without a usable map.
    skipped: int | None = None
    #: The group's committed offset on the target; None if there is none, or if it was not read.
    target_committed: int | None = None
    #: Metadata that the group committed with its offset.
    metadata: str = ""
    #: The flow translates the group's offset here; otherwise see `reason`.
    translated: bool = False
    #: The checkpoint must be written.
    emit: bool = False
    #: `target_offset` must be committed on the target.
    commit: bool = False
    #: Why the group will not be in sync after the plan is applied; None if it will be.
    reason: GroupReason | None = None
    #: Details from a cluster.
    what: str = ""

    @property
    def target_offset(self) -> int | None:
        """The target offset at which the group continues; None if unknown.

        Never before the log start: a consumer resets an offset out of range, with `latest` to the log end.
        """
        offset = self.exact
        if offset is None and self.checkpoint is not None:
            offset = self.checkpoint.downstream_offset
        return offset if offset is None or self.log_start is None else max(offset, self.log_start)

    def with_reason(self) -> GroupRow:
        """The row with the reason that follows from its numbers."""
        return replace(self, reason=self._why_not(due=False))

    @property
    def present_reason(self) -> GroupReason | None:
        """The reason before the plan is applied."""
        return self._why_not(due=self.emit or self.commit)

    def _why_not(self, *, due: bool) -> GroupReason | None:
        return why_not_in_sync(self.reason, due=due, duplicates=self.duplicates, skipped=self.skipped)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "group": self.group,
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "upstream_offset": self.upstream,
            "checkpoint": None if self.checkpoint is None else self.checkpoint.downstream_offset,
            "exact": self.exact,
            "log_start": self.log_start,
            "duplicates": self.duplicates,
            "skipped": self.skipped,
            "target_committed": self.target_committed,
            "emit": self.emit,
            "commit": self.commit,
            "reason": None if self.reason is None else self.reason.value,
            "what": self.what,
        }


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Changes to a flow's groups. Two plans are equal if they make the same changes."""

    flow: FlowId
    rows: tuple[GroupRow, ...] = ()
    findings: tuple[GroupFinding, ...] = ()
    notices: tuple[str, ...] = ()
    #: True if the groups' committed offsets on the target were read: otherwise nothing is committed there.
    target_read: bool = False
    #: What an operator has to know, although nothing has failed.
    remarks: tuple[str, ...] = ()

    def of_group(self, group: str, *, taken: bool) -> GroupPlan:
        """The part of the plan for one group, with a finding if it has no rows.

        Args:
            taken: the flow's filter accepts the group.
        """
        rows = tuple(row for row in self.rows if row.group == group)
        findings = tuple(finding for finding in self.findings if finding.group == group)
        if not rows and not findings:
            findings = (_why_none(group, taken=taken),)
        return replace(self, rows=rows, findings=findings)

    def with_refusals(self, last: Iterable[GroupObservationRow]) -> GroupPlan:
        """The plan with commits that the target rejected last time marked as rejected instead of due.

        Args:
            last: the rows stored at the last observation.
        """
        refused = {
            (row.group, TopicPartition(row.topic, row.partition), row.target_offset): row.what or ""
            for row in last
            if row.reason == GroupReason.REFUSED
        }

        def with_refusal(row: GroupRow) -> GroupRow:
            what = refused.get((row.group, row.source, row.target_offset)) if row.commit else None
            return (
                row if what is None else replace(row, commit=False, emit=False, reason=GroupReason.REFUSED, what=what)
            )

        return replace(self, rows=tuple(map(with_refusal, self.rows)))

    def of_requested_topics(self) -> GroupPlan:
        """The part of the plan for the topics that the command is limited to."""
        rows = tuple(row for row in self.rows if row.reason is not GroupReason.TOPIC_NOT_REQUESTED)
        notices = self.notices if rows else (*self.notices, "no group has an offset on the selected topics.")
        return replace(self, rows=rows, notices=notices)

    def postponed(self, later: Container[TopicPartition]) -> GroupPlan:
        """The plan without changes in partitions whose logs only a later step compares.

        Args:
            later: source partitions.
        """
        waiting = {row.source for row in self.rows if row.source in later and (row.emit or row.commit)}
        if not waiting:
            return self
        rows = tuple(
            replace(row, emit=False, commit=False, reason=row.present_reason)
            if row.source in waiting and (row.emit or row.commit)
            else row
            for row in self.rows
        )
        notice = (
            f"group offsets on {counted(len(waiting), 'partition')} are written by later runs: before that the last "
            "copied records of a partition are compared on both clusters, and a run reads only some at a time "
            "(docs/reliability.md)."
        )
        return replace(self, rows=rows, notices=(*self.notices, notice))

    @property
    def checkpoints(self) -> Iterator[Checkpoint]:
        """The checkpoints to write."""
        for row in self.rows:
            offsets = row.checkpoint or row.withdrawn_to
            if row.emit and offsets is not None:
                yield Checkpoint(row.group, *row.target, *offsets, row.metadata)

    @property
    def commits(self) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        """The offsets to commit on the target, by group."""
        wanted: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        for row in self.rows:
            if row.commit and row.target_offset is not None:
                wanted.setdefault(row.group, {})[row.target] = CommittedOffset(row.target_offset, row.metadata)
        return wanted

    @property
    def changes(self) -> int:
        """The number of groups and partitions that applying the plan changes."""
        return sum(row.emit or row.commit for row in self.rows)

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems that need attention: offsets that a cluster did not return or accept."""
        groups = (f"group {printable(each.group)}: {each.what}" for each in self.findings if each.reason in _TROUBLE)
        rows = (
            f"group {printable(row.group)} on {row.source}: {row.what}" for row in self.rows if row.reason in _TROUBLE
        )
        return (*groups, *rows)

    @property
    def never_translated(self) -> tuple[str, ...]:
        """A sentence for each reason for which no run will ever translate some offsets."""
        found: dict[GroupReason, list[GroupRow]] = {}
        for row in self.rows:
            if row.reason in _NEVER:
                found.setdefault(row.reason, []).append(row)
        return tuple(
            f"{len(rows):,} positions are never translated ({reason}), such as {printable(rows[0].group)} on "
            f"{rows[0].source}: {_NEVER[reason]}."
            for reason, rows in sorted(found.items())
        )

    def counts(self, *, present: bool = False) -> dict[str, int]:
        """The number of rows and skipped groups by reason, and of those in sync.

        Args:
            present: before the plan is applied, not after.
        """
        reasons = Counter((row.present_reason if present else row.reason) or IN_SYNC for row in self.rows)
        reasons.update(finding.reason for finding in self.findings)
        return {str(reason): count for reason, count in sorted(reasons.items())}

    def summary(self) -> dict[str, Any]:
        """Counts as plain data, without rows."""
        return {
            "flow": str(self.flow),
            "groups": len({row.group for row in self.rows}),
            "partitions": len(self.rows),
            "checkpoints": sum(row.emit for row in self.rows),
            "commits": sum(row.commit for row in self.rows),
            "duplicates": sum(row.duplicates or 0 for row in self.rows),
            "skipped_records": sum(row.skipped or 0 for row in self.rows),
            "target_read": self.target_read,
            "reasons": self.counts(),
            "notices": [*self.notices, *self.never_translated, *self.remarks],
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            **self.summary(),
            "findings": [{**asdict(finding), "reason": finding.reason.value} for finding in self.findings],
            "rows": [row.to_dict() for row in self.rows],
        }


def _why_none(group: str, *, taken: bool) -> GroupFinding:
    if not taken:
        what = "excluded by `groups` and `groups.exclude` of the flow"
        return GroupFinding(group, GroupReason.GROUP_NOT_REPLICATED, what)
    what = "the source has no such group, or the group has no committed offset on a topic of the flow"
    return GroupFinding(group, GroupReason.GROUP_NOT_FOUND, what)
