"""The outcome of an audit for Airflow: XCom, log lines, and whether the task fails."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from typing import Any

from rich.console import Console

from mirror_lib.cli import ConsoleOutput
from mirror_lib.errors import MirrorError
from mirror_lib.features.audit.command import show
from mirror_lib.features.audit.findings import WRONG, Kind
from mirror_lib.features.audit.model import AuditReport, PartitionReport, Verdict
from mirror_lib.features.audit.text import FINDING_COLUMNS, finding_rows, remarks, sentence, ways_on
from mirror_lib.planning.model import WHOLE_TOPIC

_log = logging.getLogger(__name__)
_WIDTH = 240
#: XCom is not made for thousands of findings.
_KEPT = 20
_SHOWN = 3


class WrongCopyError(MirrorError):
    """An audit found a copy that is wrong: an operator must find the cause."""

    reason = "copy-wrong"
    exit_code = 3


class NotAuditedError(MirrorError):
    """An audit could compare nothing."""

    reason = "not-audited"
    retriable = True


def log_report(report: AuditReport) -> None:
    """Log what the command prints."""
    text = StringIO()
    show(ConsoleOutput(Console(file=text, width=_WIDTH, highlight=False)), report)
    for line in text.getvalue().splitlines():
        _log.info("%s", line.rstrip())


def xcom_value(report: AuditReport, *, strict: bool = False) -> dict[str, Any]:
    """Return counts and the first findings, as plain data."""
    return {
        "exit_code": report.exit_code(strict=strict),
        "verdict": report.verdict.value,
        "result": sentence(report),
        "seconds": round(report.seconds, 3),
        "partitions": len(report.partitions),
        "equal": report.equal,
        **{kind.value: report.counts.get(kind, 0) for kind in Kind},
        "faults": list(_faults(report))[:_KEPT],
        "not_verified": list(_obstacles(report))[:_KEPT],
        "topics_without_copy": list(report.alone)[:_KEPT],
        "differences": len(report.differences),
    }


def judge(report: AuditReport, subject: str, again: str, *, strict: bool = False) -> None:
    """Return if the copies are right as far as they can be compared; log a warning if that is not everything.

    Args:
        subject: what was audited.
        again: a command that audits the same.

    Raises:
        WrongCopyError: a copy is wrong.
        NotAuditedError: nothing could be compared.
    """
    code = report.exit_code(strict=strict)
    if report.verdict is Verdict.WRONG:
        ways = " ".join(ways_on(report))
        faults = "; ".join(each for each in (_first(_faults(report)), _topics(report)) if each)
        raise WrongCopyError(f"{subject}: {sentence(report)} {faults}.", action=f"{ways} `{again}` lists all.".lstrip())
    if code == WrongCopyError.exit_code:
        notes = " ".join(_strictly_wrong(report))
        raise WrongCopyError(f"{subject}: {sentence(report)} {notes}", action=f"`{again} --strict` lists all.")
    if not any(each.equal or not each.why for each in report.partitions):
        notes = _first(_obstacles(report)) or " ".join(list(remarks(report))[:_SHOWN])
        raise NotAuditedError(f"{subject}: {sentence(report)} {notes}".rstrip(), action=f"Check it with `{again}`.")
    if code:
        _log.warning("%s: %s %s", subject, sentence(report), _first(_obstacles(report)))


def _strictly_wrong(report: AuditReport) -> Iterator[str]:
    """Yield what is wrong besides the records."""
    if report.alone:
        yield f"Without a copy: {_first(iter(report.alone), _KEPT)}."
    if report.differences:
        names = dict.fromkeys(each.topic for each in report.differences)
        yield f"Configs or ACLs differ of {_first(iter(names), _KEPT)}."
    if groups := dict.fromkeys(
        each.group for each in report.groups if any(jump and jump.skips for jump in (each.checkpoint, each.commit))
    ):
        yield f"Groups would skip records: {_first(iter(groups), _KEPT)}."


def _faults(report: AuditReport) -> Iterator[str]:
    """Yield what is wrong, partition by partition: kind, number, offsets, times."""
    for each in report.partitions:
        if each.verdict is Verdict.NO_COPY:
            yield _why(each)
    yield from _rows(report, wrong=True)


def _obstacles(report: AuditReport) -> Iterator[str]:
    """Yield what could not be compared."""
    for each in report.partitions:
        if each.verdict is Verdict.UNVERIFIABLE and each.why:
            yield _why(each)
    yield from _rows(report, wrong=False)


def _why(report: PartitionReport) -> str:
    topic, number = report.source
    return f"{topic if number == WHOLE_TOPIC else f'{topic}-{number}'}: {report.why}"


def _rows(report: AuditReport, *, wrong: bool) -> Iterator[str]:
    for row in finding_rows(report):
        cells = dict(zip(FINDING_COLUMNS, map(str, row), strict=True))
        if (Kind(cells["kind"]) in WRONG) is wrong:
            places = [f"{name} {cells[name]}" for name in ("source offsets", "target offsets") if cells[name]]
            details = ", ".join(each for each in (*places, cells["times"], cells["what"]) if each)
            yield f"{cells['topic']}-{cells['partition']}: {cells['records']} {cells['kind']} ({details})"


def _topics(report: AuditReport) -> str:
    """Return the wrong topics with their kinds, if there are more findings than are shown."""
    found: dict[str, Counter[str]] = {}
    for each in report.partitions:
        counts = {kind.value: number for kind, number in each.counts.items() if kind in WRONG}
        if each.verdict is Verdict.NO_COPY or counts:
            found.setdefault(each.source.topic, Counter()).update(counts or {Verdict.NO_COPY.value: 1})
    texts = (f"{topic} ({', '.join(f'{number:,} {kind}' for kind, number in c.items())})" for topic, c in found.items())
    return f"Topics: {_first(texts, _KEPT)}" if len(list(_faults(report))) > _SHOWN else ""


def _first(found: Iterator[str], most: int = _SHOWN) -> str:
    texts = list(found)
    more = f" (and {len(texts) - most:,} more)" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more
