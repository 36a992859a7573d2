"""The report of a verification as an HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mirror_lib.counted import counted
from mirror_lib.features.verify.findings import Difference, PartitionVerdict, RoutedVerdict
from mirror_lib.features.verify.html_page import page, table
from mirror_lib.features.verify.report import VerifyReport

#: Names of columns, which are also keys of the command's JSON.
PARTITION_COLUMNS = (
    "topic",
    "partition",
    "verdict",
    "from",
    "to",
    "records",
    "MB",
    "compacted",
    "expired",
    "skipped",
    "differences",
    "remarks",
)
DIFFERENCE_COLUMNS = (
    "topic",
    "partition",
    "kind",
    "source offset",
    "target offset",
    "records",
    "what",
    "source digest",
    "target digest",
)
ROUTED_COLUMNS = (
    "target topic",
    "partition",
    "verdict",
    "source partitions",
    "records",
    "made",
    "standing",
    "compacted",
    "expired",
    "skipped",
    "differences",
    "remarks",
)
ROUTED_DIFFERENCE_COLUMNS = (
    "target topic",
    "partition",
    "kind",
    "source",
    "source offset",
    "target offset",
    "records",
)
_VERDICT_AT, _DIGEST_AT = 2, 11
#: With the digest before the remarks.
_WITH_DIGEST = (*PARTITION_COLUMNS[:-1], "digest", PARTITION_COLUMNS[-1])


def to_html(report: VerifyReport) -> str:
    """The page."""
    kind = {0: "equal", 3: "different"}.get(report.exit_code, "unverifiable")
    facts = [
        ("Flow", report.flow),
        ("Mode", report.mode.value),
        ("Seed", str(report.seed)),
        ("Began", f"{report.started:%Y-%m-%d %H:%M:%S} UTC"),
        ("Seconds", f"{report.seconds:,.1f}"),
        ("Source log read", f"{report.source_bytes / 1e6:,.1f} MB"),
        ("Partitions", f"{len(report.verdicts):,} ({report.idle:,} more had no records to compare)"),
        ("Verification", report.verification_id),
    ]
    if report.confidence is not None:
        facts.append(("Sample", report.confidence.sentence))
    return page(
        f"Verification of {report.flow}",
        kind,
        report.sentence,
        facts,
        [
            "<h2>Partitions</h2>",
            table(_WITH_DIGEST, (_partition(verdict) for verdict in report.verdicts), verdict_at=_VERDICT_AT),
            "<h2>Differences</h2>",
            "<p>Differences are shown as offsets and digests, not as record contents.</p>",
            table(DIFFERENCE_COLUMNS, _differences(report.verdicts)),
            *_routed_section(report.routed),
        ],
    )


def _partition(verdict: PartitionVerdict) -> tuple[object, ...]:
    return (
        verdict.source.topic,
        verdict.source.partition,
        verdict.verdict.value,
        verdict.source_first,
        verdict.source_next,
        verdict.records,
        round(verdict.source_bytes / 1e6, 2),
        verdict.compacted_records,
        verdict.expired_records,
        verdict.skipped,
        verdict.difference_count,
        (verdict.digest or "")[:16],
        "; ".join(remarks(verdict)),
    )


def _routed_section(verdicts: Sequence[RoutedVerdict]) -> Iterator[str]:
    """Return the section on records that transforms send to other partitions; most flows have none."""
    if not verdicts:
        return
    yield "<h2>Target partitions of routes</h2>"
    yield "<p>Compared by multiset digest: the same records with the same counts, in any order.</p>"
    yield table(ROUTED_COLUMNS, (routed_cells(verdict) for verdict in verdicts), verdict_at=_VERDICT_AT)
    differences = [cells for verdict in verdicts for cells in routed_difference_cells(verdict)]
    if differences:
        yield "<h2>Differences in target partitions of routes</h2>"
        yield table(ROUTED_DIFFERENCE_COLUMNS, differences)


def routed_cells(verdict: RoutedVerdict) -> tuple[object, ...]:
    """The verdict of a partition that records are sent to, as cells of a table."""
    return (
        *verdict.target,
        verdict.verdict.value,
        len(verdict.sources),
        verdict.records,
        verdict.made,
        verdict.standing,
        verdict.compacted,
        verdict.expired,
        verdict.skipped,
        verdict.difference_count,
        "; ".join(_routed_remarks(verdict)),
    )


def _routed_remarks(verdict: RoutedVerdict) -> Iterator[str]:
    if verdict.detail:
        yield verdict.detail
    if not verdict.timestamps_compared:
        yield "timestamps not compared (log-append time on the target)"


def routed_difference_cells(verdict: RoutedVerdict) -> Iterator[tuple[object, ...]]:
    """The differences of such a partition as cells of a table."""
    for each in verdict.differences:
        source = f"{each.source.topic}-{each.source.partition}" if each.source else None
        yield (*verdict.target, each.kind.value, source, each.source_offset, each.target_offset, each.records)
    more = verdict.difference_count - sum(each.records for each in verdict.differences)
    if more > 0:
        yield (*verdict.target, f"and {more:,} more", None, None, None, None)


def remarks(verdict: PartitionVerdict) -> Iterator[str]:
    """Yield further remarks on a partition."""
    if verdict.detail:
        yield verdict.detail
    if verdict.stopped is not None:
        yield f"stopped by the budget of {verdict.stopped.value}"
    if not verdict.timestamps_compared:
        yield "timestamps not compared (log-append time on the target)"
    if verdict.offsets_before_map:
        yield f"{verdict.offsets_before_map:,} source offsets before the map were not compared"
    if verdict.deletions_lost:
        yield (
            f"{counted(verdict.deletions_lost, 'key exists', 'keys exist')} on the target that the source has "
            "deleted: `mirror gaps "
            f"delete-keys --topic {verdict.source.topic} --partition {verdict.source.partition}`"
        )
    if verdict.aborted_keys:
        yield (
            f"{counted(verdict.aborted_keys, 'key ends', 'keys end')} with a record of an aborted transaction, which "
            "read_committed consumers see only on the side to which it was copied: set isolation.level = "
            "read_committed of the source's consumer, then delete the target topic and copy it again (`mirror gaps "
            "recopy`)"
        )
    for count, what in ((verdict.aborted, "aborted"), (verdict.undecided, "open")):
        if count:
            yield f"{counted(count, 'record')} of {what} transactions"
    if verdict.pending_keys:
        yield f"{counted(verdict.pending_keys, 'key has changed and is', 'keys have changed and are')} not copied yet"
    if verdict.before_map:
        yield (
            f"{counted(verdict.before_map, 'key of the source is', 'keys of the source are')} older than "
            "the map and not on the target"
        )
    if verdict.without_key:
        yield (
            f"{counted(verdict.without_key, 'record has no key and was', 'records have no key and were')} not compared"
        )
    outside = sum(each.outside_map for each in verdict.outcomes)
    if outside:
        yield f"{counted(outside, 'record is', 'records are')} equal but not in the map"


def _differences(verdicts: Iterable[PartitionVerdict]) -> Iterator[tuple[object, ...]]:
    for verdict in verdicts:
        for each in verdict.differences:
            yield (*verdict.source, *difference_cells(each))
        more = verdict.difference_count - len(verdict.differences)
        if more:
            yield (*verdict.source, f"and {more:,} more", None, None, None, None, None, None)


def difference_cells(each: Difference) -> tuple[object, ...]:
    """A difference as cells of a table."""
    return (
        each.kind.value,
        each.source_offset,
        each.target_offset,
        each.records,
        ", ".join(each.what),
        each.source_digest,
        each.target_digest,
    )
