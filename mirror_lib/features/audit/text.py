"""The sentences of an audit: for the console, and for people who only read those. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from mirror_lib.counted import counted
from mirror_lib.features.audit.findings import ABORTED, Finding, Kind, Offsets
from mirror_lib.features.audit.model import AuditReport, GroupReport, Jump, PartitionReport, Verdict
from mirror_lib.planning.model import WHOLE_TOPIC

PARTITION_COLUMNS = ("topic", "partition", "on the target", "verdict", "equal", *(kind.value for kind in Kind), "why")
FINDING_COLUMNS = ("topic", "partition", "kind", "records", "source offsets", "target offsets", "times", "what")
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


def partition_rows(report: AuditReport, *, by_topic: bool = False) -> list[tuple[object, ...]]:
    """Rows of the table of partitions, wrong ones first.

    Args:
        report: of the audit.
        by_topic: one row for all partitions of a topic without a fault.
    """
    equal: dict[tuple[str, str], list[PartitionReport]] = defaultdict(list)
    rest: list[PartitionReport] = []
    for each in _in_order(report):
        is_equal = by_topic and each.verdict is Verdict.EQUAL and not each.why
        (equal[each.source.topic, each.target.topic] if is_equal else rest).append(each)
    alike = [_partition_cells(found[0]) if len(found) == 1 else _equal_cells(found) for found in equal.values()]
    return [*map(_partition_cells, rest), *alike]


def without_empty(
    columns: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """The table without its columns of zeros and of empty texts, for a console."""
    kept = [place for place, column in enumerate(columns) if column == "equal" or any(row[place] for row in rows)]
    # Partition 0 is a number, too.
    kept = sorted({*kept, columns.index("partition")})
    return tuple(columns[each] for each in kept), [tuple(row[each] for each in kept) for row in rows]


def finding_rows(report: AuditReport) -> list[tuple[object, ...]]:
    """Rows of the table of findings, in the order of the partitions."""
    return [
        (each.source.topic, found.partition, *_finding_cells(found))
        for each in _in_order(report)
        for found in each.findings
    ]


def some_of_each(rows: Sequence[tuple[object, ...]], most: int) -> list[tuple[object, ...]]:
    """The rows of findings, with as many of each topic, partition and kind as there is room for among the first."""
    seen: Counter[tuple[object, ...]] = Counter()
    ranks = []
    for row in rows:
        ranks.append(seen[row[:3]])
        seen[row[:3]] += 1
    first = set(sorted(range(len(rows)), key=ranks.__getitem__)[:most])
    return [rows[place] for place in sorted(range(len(rows)), key=lambda place: place not in first)]


def _equal_cells(reports: Sequence[PartitionReport]) -> tuple[object, ...]:
    first = _partition_cells(reports[0])
    equal = sum(each.equal for each in reports)
    return (first[0], f"{len(reports)} partitions", *first[2:4], equal, *first[5:])


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
    counts = report.counts
    topics = len({each.source.topic for each in report.partitions})
    where = f"{counted(topics, 'topic')} and {counted(len(report.partitions), 'partition')} compared"
    if report.since is not None:
        where += f", only records since {time_text(report.since)} UTC"
    equal = counted(report.equal, "record")
    if report.verdict is Verdict.EQUAL:
        if not report.equal:
            return f"Right, but there are no records ({where})."
        if any(each.sampled for each in report.partitions):
            return f"Right in the sample: {equal} are on the target, in order and unchanged ({where})."
        order = "in the order of their keys" if all(each.by_key for each in report.partitions) else "in order"
        return f"Right: {equal} are on the target, {order}, once, unchanged ({where})."
    if report.verdict is Verdict.WRONG:
        faults = [
            f"{counts[kind]:,} {kind.value}" for kind in Kind if counts.get(kind) and kind is not Kind.UNVERIFIABLE
        ]
        foreign = sum(each.verdict is Verdict.NO_COPY for each in report.partitions)
        if foreign:
            faults.append(f"{counted(foreign, 'partition')} that are no copy")
        return f"Wrong: {', '.join(faults)}; {equal} equal ({where})."
    return f"Not verifiable as a whole: nothing is wrong, and {equal} equal ({where})."


_WAYS_ON = {
    Kind.MISSING: "Missing records: if the replicator lags, audit again with a longer --wait. Else it skipped them "
    "(retention while it was stopped, a topic that was created again): copy them again.",
    Kind.REPEATED: "Repeated records: delivered at least once, after a restart of the replicator or a reset of its "
    "offsets; consumers read them twice.",
    Kind.CHANGED: "Changed records: find what changes them on their way (transforms, serializers, timestamp settings).",
    Kind.MOVED: "Moved records: they have other offsets than on the source, so consumers that keep offsets themselves "
    "cannot move. Copy them to a new topic with mirror.offsets=same.",
    Kind.EXTRA: "Extra records: find the other producer of the target topic, or the source topic was created again. If "
    "other sources are meant to write to the copy, too, compare with --merged.",
    Kind.REORDERED: "Reordered records: find the other producer, or let the replicator keep the order of retries "
    "(enable.idempotence).",
}
_OF_ABORTED = (
    "Records of aborted transactions: the replicator reads uncommitted records. Set its consumer's isolation.level to "
    "read_committed, or compare with --uncommitted if that is meant."
)


def ways_on(report: AuditReport) -> Iterator[str]:
    """What to do about each kind of fault, and about what could not be compared."""
    found = [each for partition in report.partitions for each in partition.findings]
    aborted = any(each.why == ABORTED for each in found)
    kinds = {each.kind for each in found if each.why != ABORTED}
    yield from (text for kind, text in _WAYS_ON.items() if kind in kinds)
    if aborted:
        yield _OF_ABORTED
    yield from dict.fromkeys(each.action for each in report.partitions if each.action)


def remarks(report: AuditReport) -> Iterator[str]:
    """Sentences about what was not compared."""
    if report.alone:
        yield f"Without a copy: {_named(report.alone)}."
    yield from report.notes
    for error in report.group_errors:
        yield f"Groups are not judged: {error}"
    untimed = [each for each in report.partitions if not each.times_compared]
    if untimed:
        yield (
            f"Timestamps of {counted(len(untimed), 'partition')} are not compared: --ignore-timestamps, or the "
            "target's brokers replace them (message.timestamp.type=LogAppendTime)."
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
    if by_key := {each.source.topic for each in report.partitions if each.by_key}:
        yield (
            f"Compared by key, in the order of each key: {_named(tuple(sorted(by_key)))}. Their copies have other "
            "partitions."
        )
    passes = max((each.passes for each in report.partitions), default=1)
    if passes > 1:
        yield f"The source was read up to {passes} times, to look up records without an equal."


def _named(names: tuple[str, ...], most: int = 10) -> str:
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _in_order(report: AuditReport) -> list[PartitionReport]:
    """Wrong ones first: tables are cut."""
    worst = [Verdict.NO_COPY, Verdict.WRONG, Verdict.UNVERIFIABLE, Verdict.EQUAL]
    return sorted(report.partitions, key=lambda each: (worst.index(each.verdict), each.source, each.target))
