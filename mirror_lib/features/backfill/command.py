"""`mirror backfill`: a bounded copy next to a flow, estimated first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, NamedTuple

import typer

from mirror_lib.cli import (
    ConfigOption,
    FlowCommand,
    FlowOption,
    JsonOption,
    MasterOption,
    Output,
    TasksOption,
    TopicsOption,
    begin_with,
    capped_table,
    command_group,
    flow_command,
    megabytes,
    report_errors,
)
from mirror_lib.cli.run.command import copy_and_report
from mirror_lib.cli.sync.topics import show_topics
from mirror_lib.copy.job.arguments import ASK, JobArguments
from mirror_lib.features.backfill import states as backfill_states
from mirror_lib.features.backfill.define import estimate, find_backfill, prepare_backfill, request_of
from mirror_lib.features.backfill.model import BackfillRequest
from mirror_lib.features.backfill.plan import BackfillEstimate
from mirror_lib.features.backfill.situation import situations_of
from mirror_lib.ledger.location import open_ledger
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.spark.submit import LOCAL_MASTER

app = command_group("backfill")

_BOUND = (
    "earliest, latest, an offset (`offset 4711`), or a time such as 2026-01-31T00:00:00Z: the first record of each "
    "partition that is not older."
)
FromOption = Annotated[
    str,
    typer.Option(
        "--from", help=f"Start of the range: {_BOUND} `cutover`: only records that were written after the cutover."
    ),
]
ToOption = Annotated[str, typer.Option("--to", help=f"End of the range, exclusive: {_BOUND}")]
IntoOption = Annotated[str | None, typer.Option(help="Target topic; for one source topic.")]
SuffixOption = Annotated[str | None, typer.Option(help="Suffix of the remote topic names, such as .backfill.")]
SameOption = Annotated[bool, typer.Option("--into-same", help="Append to the target topics of the flow itself.")]
NameOption = Annotated[str | None, typer.Option(help="Name of the backfill; by default derived from topics and range.")]
RateOption = Annotated[
    int | None, typer.Option(min=1, help="Maximum read rate from the source in bytes/s, across all tasks.")
]

_LIST_COLUMNS = ("backfill", "state", "lag (offsets)", "range", "defined")
_COLUMNS = ("topic", "partition", "on the target", "from", "to", "next", "offsets", "MB")


class _Wanted(NamedTuple):
    """A command about one backfill of a flow."""

    command: FlowCommand
    #: None: the backfill exists and is known by its name.
    request: BackfillRequest | None
    name: str | None


@contextmanager
def _backfill_command(
    config: ConfigOption,
    flow: FlowOption,
    topics: TopicsOption = None,
    begin: FromOption = "earliest",
    end: ToOption = "latest",
    into: IntoOption = None,
    into_suffix: SuffixOption = None,
    into_same: SameOption = False,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> Iterator[_Wanted]:
    with flow_command(config, flow, as_json) as command:
        request = None
        if topics or into or into_suffix or into_same or (begin, end) != ("earliest", "latest"):
            request = request_of(
                command.settings, topics or (), begin, end, into=into, into_suffix=into_suffix, into_same=into_same
            )
        yield _Wanted(command, request, name)


@app.command()
@begin_with(_backfill_command)
def plan(wanted: _Wanted, bytes_per_second: RateOption = None) -> None:
    """Show what a backfill would copy or has left to copy, with its expected duration; changes nothing."""
    command, settings = wanted.command, wanted.command.settings
    with command.known_ledger() as known, FlowClusters.connect(settings) as clusters:
        found, defined = find_backfill(settings, clusters, known, wanted.request, wanted.name)
        expected = estimate(settings, clusters, known, found, defined=defined)
    _show_estimate(command.output, replace(expected, bytes_per_second=bytes_per_second))


@app.command()
@begin_with(_backfill_command)
def run(
    wanted: _Wanted,
    max_bytes: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of bytes to copy in this run; repeat the command for the rest."),
    ] = None,
    bytes_per_second: RateOption = None,
    accept_gaps: Annotated[
        bool, typer.Option("--accept-gaps", help="Skip records that the source has already deleted.")
    ] = False,
    tasks: TasksOption = None,
    master: MasterOption = LOCAL_MASTER,
) -> None:
    """Copy the rest of a backfill. If repeated, it continues at its last position; a finished backfill copies nothing.

    The first run fixes topics and offsets, and needs one of --into, --into-suffix and --into-same; afterwards --name is
    enough.
    """
    command, settings = wanted.command, wanted.command.settings
    with open_ledger(command.file) as ledger:
        with command.progress(), FlowClusters.connect(settings) as clusters:
            expected, created = prepare_backfill(settings, clusters, ledger, wanted.request, wanted.name)
        if created is not None:
            show_topics(command.output, created)
        _show_estimate(command.output, replace(expected, bytes_per_second=bytes_per_second))
        choices = JobArguments(
            config=command.config.absolute(),
            flow=str(settings.flow),
            tasks=tasks,
            gaps="accept" if accept_gaps else ASK,
            backfill=expected.backfill.name,
            max_bytes=max_bytes,
            bytes_per_second=bytes_per_second,
        )
        copy_and_report(command, choices, master, ledger)


@app.command("list")
@begin_with(flow_command)
def list_(command: FlowCommand) -> None:
    """List the backfills of a flow with their states and the next action for each. Reads only the ledger."""
    output, settings = command.output, command.settings
    with open_ledger(command.file) as ledger:
        found = situations_of(settings, ledger)
    rows = [
        (
            each.backfill.name,
            each.state.value,
            each.left,
            str(each.backfill.request),
            f"{each.backfill.created_at:%Y-%m-%d %H:%M:%SZ}",
        )
        for each in found
    ]
    capped_table(output, "list", _LIST_COLUMNS, rows)
    output.document({"backfills": [each.to_dict() for each in found]})
    for each in found:
        if each.do:
            output.note(f"{each.backfill.name}: {each.what} {each.do}")
    if not found:
        output.note(f"Flow {settings.flow} has no backfill.")


@app.command()
def states(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables of docs/backfill.md.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the states of a backfill, the reasons that stop a partition, and how each continues."""
    with report_errors(as_json) as output:
        if markdown and not as_json:
            typer.echo(backfill_states.markdown(), nl=False)
            return
        output.table("states", ("state", "meaning", "action"), list(backfill_states.rows()))
        output.table("stops", ("reason", "resolution", "first"), list(backfill_states.stop_rows()))


def _show_estimate(output: Output, expected: BackfillEstimate) -> None:
    rows = [
        (
            *each.wanted.source,
            each.wanted.target.topic,
            each.wanted.first,
            each.wanted.following,
            each.position,
            each.offsets,
            None if each.bytes is None else megabytes(each.bytes),
        )
        for each in expected.ranges
    ]
    capped_table(output, "ranges", _COLUMNS, rows)
    output.document({"backfill": expected.to_dict()})
    seconds = expected.seconds
    # An offset may have no record (compaction, markers).
    output.note(
        f"Backfill {expected.backfill.name} of flow {expected.backfill.request.flow}: at most {expected.offsets:,} "
        f"records, about {megabytes(expected.bytes):,.2f} MB left to copy; "
        + _in_minutes(seconds, at_most=expected.at_least)
    )
    if expected.backfill.into_live:
        output.note("It writes to the flow's own topics: the flow waits while a run of the backfill copies.")


def _in_minutes(seconds: float | None, *, at_most: bool) -> str:
    if seconds is None:
        return "expected duration unknown: the flow has not copied anything recently."
    return f"expected duration: {'at most ' if at_most else ''}about {seconds / 60:,.1f} minutes."
