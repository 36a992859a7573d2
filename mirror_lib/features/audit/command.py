"""`mirror audit`: is a replication right? Read only, for any replicator."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli import ROWS_SHOWN, ConsoleOutput, Output, begin_with, capped_table, report_errors
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.audit.chosen import sample_of, since_ms, topics_pattern
from mirror_lib.features.audit.clusters import clusters_of_flow, connection_to
from mirror_lib.features.audit.html import to_html
from mirror_lib.features.audit.model import DEFAULT_MEMORY_BYTES, AuditJob, AuditReport
from mirror_lib.features.audit.pairs import TopicPair
from mirror_lib.features.audit.plan import AuditOptions
from mirror_lib.features.audit.run import audit
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
    some_of_each,
    ways_on,
    without_empty,
)
from mirror_lib.private_files import write_private

_MEGABYTE = 1024 * 1024

app = typer.Typer()


@app.command("audit")
@begin_with(report_errors)
def audit_command(
    output: Output,
    source: Annotated[
        str | None, typer.Option(metavar="BROKERS", help="Brokers of the source: host:port, separated by commas.")
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="BROKERS", help="Brokers of the target.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead of brokers: the MirrorMaker 2 properties file.")
    ] = None,
    flow: Annotated[str | None, typer.Option(help="The flow of the file, as SOURCE->TARGET.")] = None,
    topics: Annotated[str, typer.Option(metavar="REGEX", help="Source topics: names or Java regexes.")] = ".*",
    pair: Annotated[
        list[str] | None, typer.Option(metavar="SOURCE=TARGET", help="A topic and its copy; repeatable.")
    ] = None,
    client_config: Annotated[
        Path | None, typer.Option("--client.config", help="Properties of a Java client, for both clusters.")
    ] = None,
    source_config: Annotated[
        Path | None, typer.Option("--source.config", help="Properties of a Java client of the source.")
    ] = None,
    target_config: Annotated[
        Path | None, typer.Option("--target.config", help="Properties of a Java client of the target.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Compare only newer records: 30m, 1h, 2d, or a time (epoch ms or ISO 8601).")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Compare only ranges of so much of each partition: 1%.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of --sample: the same one chooses the same ranges.")] = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds that records are awaited on the target.")] = 60.0,
    memory: Annotated[int, typer.Option(min=16, help="Memory in MiB.")] = DEFAULT_MEMORY_BYTES // _MEGABYTE,
    processes: Annotated[int | None, typer.Option(min=1, help="Number of processes; default one per core.")] = None,
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Compare as readers of uncommitted records see both sides.")
    ] = False,
    merged: Annotated[
        bool, typer.Option("--merged", help="Other sources write to the copies, too: their records are only counted.")
    ] = False,
    ignore_header: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A header that is not compared; repeatable.")
    ] = None,
    ignore_timestamps: Annotated[
        bool, typer.Option("--ignore-timestamps", help="Compare no timestamps: the replicator does not keep them.")
    ] = False,
    same_offsets: Annotated[
        bool, typer.Option("--same-offsets", help="Records must have the source's offsets (mirror.offsets=same).")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep in this file what is done; continue from it after Ctrl-C.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as an HTML page to this file.")] = None,
    metrics: Annotated[
        Path | None,
        typer.Option(help="Output file for node_exporter's textfile collector, ending in .prom.", metavar="PATH"),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="The rest counts, too, not only records.")] = False,
) -> None:
    """Compare copies of topics by any replicator. Exit codes: 0 right, 1 not verifiable, 3 wrong.

    Either --source and --target, or --config and --flow are required. Nothing is written to either cluster. With a file
    the flow says which topic is the copy; else it is the one that --pair names, else the topic of the same name, else
    the only topic named *.NAME.
    """
    pattern = topics_pattern(topics, "--topics")
    if source and target and not (config or flow):
        here = connection_to("source", source, source_config or client_config)
        there = connection_to("target", target, target_config or client_config)
        rules = None
    elif config and flow and not (source or target):
        here, there, rules = clusters_of_flow(config, flow)
    else:
        raise typer.BadParameter("needed: --source and --target, or --config and --flow")
    options = AuditOptions(
        selected=lambda topic: pattern.fullmatch(topic) and (rules is None or rules.topology.replicates(topic)),
        named=tuple(_pair(text) for text in pair or ()),
        rules=rules,
        since=None if since is None else since_ms(since),
        wait_seconds=wait,
        memory_bytes=memory * _MEGABYTE,
        read_committed=not uncommitted,
        ignored_headers=tuple(ignore_header or ()),
        ignore_times=ignore_timestamps,
        merged=merged,
        same_offsets=same_offsets,
        sample=None if sample is None else sample_of(sample, seed),
        resume=resume,
        processes=processes or len(os.sched_getaffinity(0)),
    )
    for file in (html, metrics, resume):
        _check_folder(file)
    with output.progress("Auditing: reading the offsets") as progress:

        def begin(job: AuditJob) -> None:
            progress.update(0, total=job.offsets or None, description="Auditing: source offsets")

        try:
            report = audit(here, there, options, on_plan=begin, on_read=progress.advance)
        except KeyboardInterrupt:
            if resume is None:
                output.note("Interrupted. With --resume FILE an audit can be continued.")
            else:
                output.note(f"Interrupted. The same command continues from {resume}.")
            raise
    show(output, report)
    if options.sample is not None:
        output.note(f"The ranges were chosen by --seed {options.sample.seed}.")
    if metrics is not None:
        # prometheus_client is imported only if it is needed: it takes a while.
        from mirror_lib.features.audit.metrics_text import metrics_text
        from mirror_lib.features.metrics_file import write_metrics_file

        write_metrics_file(metrics, metrics_text(report, flow or f"{source}->{target}", strict=strict))
    if html is not None:
        write_private(html, to_html(report, f"Audit of {flow or f'{source} and {target}'}"))
        output.note(f"Report: {html}")
    output.exit_code = report.exit_code(strict=strict)


def _check_folder(file: Path | None) -> None:
    """Raise before the audit what would be the end of it."""
    if file is not None and not (file.parent.is_dir() and os.access(file.parent, os.W_OK)):
        raise ConfigurationError(
            f"{file} cannot be written: {file.parent} is no folder that you may write to.", action="Name another file."
        )


def _pair(text: str) -> TopicPair:
    if not re.fullmatch(r"[^=]+=[^=]+", text):
        raise ConfigurationError(f"--pair {text} is no pair of topics.", action="Write it as SOURCE=TARGET.")
    return TopicPair(*text.split("="))


def show(output: Output, report: AuditReport) -> None:
    """Show the report."""
    verdicts: tuple[Sequence[str], Sequence[Sequence[object]]] = PARTITION_COLUMNS, partition_rows(report)
    findings = finding_rows(report)
    if isinstance(output, ConsoleOutput):
        verdicts = without_empty(PARTITION_COLUMNS, partition_rows(report, by_topic=True))
        findings = some_of_each(findings, ROWS_SHOWN)
    capped_table(output, "verdicts", *verdicts)
    if findings:
        capped_table(output, "findings", FINDING_COLUMNS, findings)
    if report.groups:
        capped_table(output, "groups", GROUP_COLUMNS, group_rows(report.groups))
    if rows := difference_rows(report):
        capped_table(output, "differences", DIFFERENCE_COLUMNS, rows)
    for text in (*remarks(report), *ways_on(report)):
        output.note(text)
    output.note(sentence(report))
    # It has more than the tables of the same names.
    output.document(report.to_dict())
