"""`mirror transform`: the transforms of a flow's topics, and their effect on real records."""

from __future__ import annotations

from typing import Annotated

import typer

from mirror_lib.cli import (
    FlowCommand,
    PartitionOption,
    TopicsOption,
    begin_with,
    capped_table,
    command_group,
    flow_command,
    show_paths,
)
from mirror_lib.features.transforms.cli.preflight import show_preflight
from mirror_lib.features.transforms.cli.preview import Wanted, show_preview
from mirror_lib.features.transforms.sampling.sample import SampleStart
from mirror_lib.planning.record_paths import topic_paths
from mirror_lib.sync.admins import source_admin

app = command_group("transform")

_TRANSFORM_COLUMNS = ("transform", "topics", "what", "deterministic")
#: A single task: the sample is too small for more.
_MASTER = "local[1]"
_MOST_RECORDS = 1_000
_MOST_LOOKED_AT = 100_000


@app.command("list")
@begin_with(flow_command)
def list_transforms(
    command: FlowCommand,
    topics: TopicsOption = None,
    offline: Annotated[bool, typer.Option("--offline", help="Read only the settings; connect to no cluster.")] = False,
) -> None:
    """Show the transforms of a flow in order, and the transforms that apply to each topic; changes nothing."""
    output, settings = command.output, command.settings
    output.document({"flow": str(settings.flow)})
    capped_table(output, "transforms", _TRANSFORM_COLUMNS, settings.transforms.described())
    if not settings.transforms:
        output.note(f"Flow {settings.flow} has no transforms: every topic is copied unchanged.")
    if not offline:
        _list_topics(command, topics)


def _list_topics(command: FlowCommand, topics: list[str] | None) -> None:
    output, settings, topology = command.output, command.settings, command.topology(topics)
    with output.progress(f"Listing the topics of {settings.flow.source}"), source_admin(settings) as admin:
        found = [topic for topic in admin.list_topics() if topology.replicates(topic)]
    paths = topic_paths(
        found, settings.transforms, topology.policy.is_heartbeats_topic, transactions=settings.transactions
    )
    # Topics with transforms first: the table is cut.
    show_paths(output, "topics", sorted(paths, key=lambda path: (not path.transforms, path.topic)))
    output.document({"topics": [path.to_dict() for path in paths]})
    through = sum(bool(path.transforms) for path in paths)
    output.note(f"{through:,} of {len(paths):,} topics are transformed.")


@app.command()
@begin_with(flow_command)
def preview(
    command: FlowCommand,
    topic: Annotated[str, typer.Option(help="Source topic.")],
    records: Annotated[
        int, typer.Option(min=1, max=_MOST_RECORDS, help="Maximum number of records, across all partitions.")
    ] = 10,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="earliest, latest, an offset (with --partition), or a time such as 2026-01-31T00:00:00Z: the first "
            "records that are not older.",
        ),
    ] = "earliest",
    partition: PartitionOption = None,
    master: Annotated[
        str, typer.Option(help="Spark master URL, or address of a Spark Connect server (sc://...).")
    ] = _MASTER,
) -> None:
    """Show records of a source topic before and after its transforms; nothing is written to either cluster.

    Exit code 1 if a record cannot be transformed. Keys, values and headers are truncated; --json prints them in full.
    """
    wanted = Wanted(topic, SampleStart.parse(begin), records, partition)
    show_preview(command.output, command.config.absolute(), command.settings, wanted, master)


@app.command()
@begin_with(flow_command)
def preflight(
    command: FlowCommand,
    topics: TopicsOption = None,
    records: Annotated[
        int,
        typer.Option(
            min=1,
            max=_MOST_LOOKED_AT,
            help="Maximum number of records to sample from each topic, across all partitions: the oldest and the "
            "newest.",
        ),
    ] = 1_000,
    register_missing: Annotated[
        bool, typer.Option("--register", help="Register missing schemas in the target's registry, then check again.")
    ] = False,
) -> None:
    """Look up the schema ids of sampled records in the registries of both sides; writes nothing without --register.

    Exit code 1 if a schema id does not resolve to the same schema on the target.
    """
    show_preflight(command.output, command.settings, topics or (), records, registers=register_missing)
