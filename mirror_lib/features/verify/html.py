"""A report as one self-contained HTML page; light or dark as the reader's system is set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from mirror_lib.counted import counted
from mirror_lib.features.verify.findings import Difference, PartitionVerdict, RoutedVerdict
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.printable import LINES, printable

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --soft: #f6f8fa;
  --equal: #116329; --different: #a40e26; --unverifiable: #7d4e00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0d1117; --line: #30363d; --soft: #161b22;
    --equal: #56d364; --different: #ff7b72; --unverifiable: #e3b341; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.result { font-weight: 600; padding: .6rem .9rem; border-left: 4px solid; background: var(--soft); }
.equal { color: var(--equal); } .different { color: var(--different); } .unverifiable { color: var(--unverifiable); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { background: var(--soft); white-space: nowrap; } td.number, th.number { text-align: right; }
code { font: 13px ui-monospace, monospace; word-break: break-all; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; }
"""
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
#: Headings that are not the name of their column.
_HEADINGS = {"what": "difference"}


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
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Verification of {escape(report.flow)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>Verification of {escape(report.flow)}</h1>",
        f'<p class="result {kind}">{escape(report.sentence)}</p>',
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts) + "</dl>",
        "<h2>Partitions</h2>",
        _table(_WITH_DIGEST, (_partition(verdict) for verdict in report.verdicts), verdict_at=_VERDICT_AT),
        "<h2>Differences</h2>",
        "<p>Differences are shown as offsets and digests, not as record contents.</p>",
        _table(DIFFERENCE_COLUMNS, _differences(report.verdicts)),
        *_routed_section(report.routed),
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


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
    yield _table(ROUTED_COLUMNS, (routed_cells(verdict) for verdict in verdicts), verdict_at=_VERDICT_AT)
    differences = [cells for verdict in verdicts for cells in routed_difference_cells(verdict)]
    if differences:
        yield "<h2>Differences in target partitions of routes</h2>"
        yield _table(ROUTED_DIFFERENCE_COLUMNS, differences)


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


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, verdict_at: int | None = None) -> str:
    body = "".join(_row(row, verdict_at) for row in rows)
    if not body:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(_HEADINGS.get(column, column))}</th>" for column in columns)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(row: Sequence[object], verdict_at: int | None) -> str:
    return f"<tr>{''.join(_cell(value, is_verdict=place == verdict_at) for place, value in enumerate(row))}</tr>\n"


def _cell(value: object, *, is_verdict: bool) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, int | float):
        return f'<td class="number">{value:,}</td>'
    text = escape(printable(str(value), LINES))
    return f'<td class="{text}">{text}</td>' if is_verdict else f"<td>{text}</td>"
