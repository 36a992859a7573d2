"""The sentences of an audit: for the console, and for people who only read those. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from mirror_lib.counted import counted
from mirror_lib.features.audit.findings import Finding, Kind, Offsets
from mirror_lib.features.audit.model import AuditReport, GroupReport, Jump, PartitionReport, Verdict
from mirror_lib.planning.model import WHOLE_TOPIC

PARTITION_COLUMNS = ("topic", "partition", "on the target", "verdict", "equal", *(kind.value for kind in Kind), "why")
FINDING_COLUMNS = ("topic", "partition", "kind", "records", "source offsets", "target offsets", "times", "what")
#: Share of the records, and their number, from which on extra ones suggest another source.
_MUCH, _MANY = 0.05, 100
DIFFERENCE_COLUMNS = ("copy", "config or ACL", "on the source", "on the target")
GROUP_COLUMNS = (
    "group",
    "topic",
    "partitions",
    "checkpoint skips",
    "checkpoint duplicates",
    "commit skips",
    "commit duplicates",
)


def group_rows(groups: Iterable[GroupReport]) -> list[tuple[object, ...]]:
    """Rows of the table of groups: by group and topic, those that skip most come first."""
    found: dict[tuple[str, str], list[GroupReport]] = defaultdict(list)
    for each in groups:
        found[each.group, each.source.topic].append(each)
    rows = [
        (
            *names,
            len(reports),
            *_sums([each.checkpoint for each in reports]),
            *_sums([each.commit for each in reports]),
        )
        for names, reports in found.items()
    ]
    return sorted(rows, key=lambda row: tuple(-each if isinstance(each, int) else 0 for each in row[3:]))


def _sums(jumps: Sequence[Jump | None]) -> tuple[object, object]:
    known = [each for each in jumps if each is not None]
    if not known:
        return "none", "none"
    return sum(each.skips for each in known), sum(each.duplicates for each in known)


def difference_rows(report: AuditReport) -> list[tuple[object, ...]]:
    """Rows of the table of configs and ACLs that differ."""
    return [(each.topic, each.what, each.source, each.target) for each in report.differences]


def partition_rows(report: AuditReport) -> list[tuple[object, ...]]:
    """Rows of the table of partitions, wrong ones first."""
    return [_partition_cells(each) for each in _in_order(report)]


def finding_rows(report: AuditReport) -> list[tuple[object, ...]]:
    """Rows of the table of findings, in the order of the partitions."""
    return [
        (each.source.topic, found.partition, *_finding_cells(found))
        for each in _in_order(report)
        for found in each.findings
    ]


def _partition_cells(report: PartitionReport) -> tuple[object, ...]:
    return (
        report.source.topic,
        "all" if report.source.partition == WHOLE_TOPIC else report.source.partition,
        report.target.topic,
        report.verdict.value,
        report.equal,
        *(report.counts.get(kind, 0) for kind in Kind),
        report.why,
    )


def _finding_cells(finding: Finding) -> tuple[object, ...]:
    what = ", ".join(finding.parts)
    return (
        finding.kind.value,
        finding.records,
        _offsets(finding.source),
        _offsets(finding.target),
        _times(finding.source or finding.target),
        "; ".join(filter(None, (what, finding.why))),
    )


def _offsets(range_: Offsets | None) -> str:
    if range_ is None:
        return ""
    return str(range_.first) if range_.first == range_.last else f"{range_.first} to {range_.last}"


def _times(range_: Offsets | None) -> str:
    if range_ is None or range_.first_time is None or range_.last_time is None:
        return ""
    first, last = time_text(range_.first_time), time_text(range_.last_time)
    return first if first == last else f"{first} to {last}"


def time_text(milliseconds: int) -> str:
    """Epoch milliseconds as a time in UTC."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)


def sentence(report: AuditReport) -> str:
    """The verdict in one sentence."""
    if not report.partitions:
        return "Nothing to compare: no selected topic of the source has a copy on the target."
    if report.verdict is Verdict.EQUAL and not report.equal:
        return "Right, but there is nothing: the compared topics are empty on both sides."
    counts = report.counts
    topics = len({each.source.topic for each in report.partitions})
    where = f"{counted(topics, 'topic')}, {counted(len(report.partitions), 'partition')}"
    if report.verdict is Verdict.EQUAL:
        right = "Right in the sample" if any(each.sampled for each in report.partitions) else "Right"
        return f"{right}: {counted(report.equal, 'record')} of {where} are on the target, in order, once, unchanged."
    if report.verdict is Verdict.WRONG:
        faults = [
            f"{counts[kind]:,} {kind.value}" for kind in Kind if counts.get(kind) and kind is not Kind.UNVERIFIABLE
        ]
        foreign = sum(each.verdict is Verdict.NO_COPY for each in report.partitions)
        if foreign:
            faults.append(f"{counted(foreign, 'partition')} that are no copy")
        return f"Wrong: {', '.join(faults)}; {counted(report.equal, 'record')} of {where} are equal."
    return f"Not verifiable as a whole: {counted(report.equal, 'record')} of {where} are equal, and nothing is wrong."


def remarks(report: AuditReport) -> Iterator[str]:
    """Sentences about what was not compared."""
    if report.alone:
        yield f"Without a copy: {_named(report.alone)}."
    for topic, copies in report.ambiguous.items():
        yield f"{topic} has several possible copies: {', '.join(copies)}. Name one with --pair {topic}=..."
    yield from report.notes
    for error in report.group_errors:
        yield f"Groups are not judged: {error}"
    untimed = [each for each in report.partitions if not each.times_compared]
    if untimed:
        yield (
            f"Timestamps of {counted(len(untimed), 'partition')} are not compared: the target's brokers replace them "
            "(message.timestamp.type=LogAppendTime)."
        )
    if sampled := [each for each in report.partitions if each.sampled]:
        records = counted(sum(each.equal for each in sampled), "record")
        yield (
            f"A sample: of {counted(len(sampled), 'partition')} only {records} in some ranges were compared, which are "
            "equal; nothing is known of the others, nor of groups."
        )
    if others := sum(each.others for each in report.partitions):
        yield (
            f"{counted(others, 'record')} of merged copies are not of these topics. Whether some of them are repeats "
            "is not known."
        )
    elif report.counts.get(Kind.EXTRA, 0) > max(report.equal * _MUCH, _MANY):
        yield "If other sources write to the copies, too, compare with --merged: only their number is said then."
    passes = max((each.passes for each in report.partitions), default=1)
    if passes > 1:
        yield f"The source was read up to {passes} times, to find the originals of what the target has once more."


def _named(names: tuple[str, ...], most: int = 10) -> str:
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _in_order(report: AuditReport) -> list[PartitionReport]:
    """Wrong ones first: tables are cut."""
    worst = [Verdict.NO_COPY, Verdict.WRONG, Verdict.UNVERIFIABLE, Verdict.EQUAL]
    return sorted(report.partitions, key=lambda each: (worst.index(each.verdict), each.source, each.target))
