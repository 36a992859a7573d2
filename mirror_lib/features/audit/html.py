"""The report of an audit as an HTML page."""

from __future__ import annotations

from html import escape

from mirror_lib.features.audit.model import AuditReport, Verdict
from mirror_lib.features.audit.text import (
    DIFFERENCE_COLUMNS,
    FINDING_COLUMNS,
    GROUP_COLUMNS,
    PARTITION_COLUMNS,
    difference_rows,
    finding_rows,
    group_rows,
    partition_rows,
    remarks,
    sentence,
    time_text,
    ways_on,
)
from mirror_lib.features.verify.html_page import page, table

_KINDS = {Verdict.EQUAL: "equal", Verdict.UNVERIFIABLE: "unverifiable"}


def to_html(report: AuditReport, title: str) -> str:
    """The page.

    Args:
        title: what was compared with what.
    """
    facts = [
        ("Source as of", f"{time_text(report.began_at)} UTC"),
        ("Seconds", f"{report.seconds:,.1f}"),
        ("Equal records", f"{report.equal:,}"),
        *((kind.value.capitalize(), f"{count:,}") for kind, count in sorted(report.counts.items())),
    ]
    sections = [
        *(f"<p>{escape(each)}</p>" for each in (*remarks(report), *ways_on(report))),
        "<h2>Partitions</h2>",
        table(PARTITION_COLUMNS, partition_rows(report), verdict_at=PARTITION_COLUMNS.index("verdict")),
        "<h2>Findings</h2>",
        table(FINDING_COLUMNS, finding_rows(report)),
        "<h2>Consumer groups</h2>",
        "<p>Records that a group would skip or read twice if it moved to the target now.</p>",
        table(GROUP_COLUMNS, group_rows(report.groups)),
        "<h2>Configs and ACLs</h2>",
        "<p>What a copy should have as its topic has it, by MirrorMaker 2's rules, and has not.</p>",
        table(DIFFERENCE_COLUMNS, difference_rows(report)),
    ]
    return page(title, _KINDS.get(report.verdict, "different"), sentence(report), facts, sections)
